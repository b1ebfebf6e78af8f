/* SPDX-License-Identifier: MIT
 * Chooses which weights live in the memory of which device: a knapsack by saved time per byte. The
 * problem is abstract: items in the order of a computation, each with its bytes and its time on
 * every side, and a cost for moving activations between sides. fit_model.h builds such a problem
 * from a model. */
#ifndef TND_FIT_H
#define TND_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"

enum { TND_FIT_SIDES = 8, TND_FIT_MAX_ITEMS = 4096 };

/* Weights that move together. */
struct tnd_fit_item {
    int64_t bytes;            /* device memory that it needs; >= 0 */
    double us[TND_FIT_SIDES]; /* on each side; INFINITY: not possible; side 0 always is */
};

struct tnd_fit_problem {
    int n_sides; /* 1 .. TND_FIT_SIDES; side 0 is host memory, without a limit */
    int64_t capacity[TND_FIT_SIDES]; /* bytes of a device; less than 0 counts as 0 */
    int n_items;
    const struct tnd_fit_item *items;             /* in the order of the computation */
    double move_us[TND_FIT_SIDES][TND_FIT_SIDES]; /* activations from a side to the next item's */
};

/** Time of a choice: its items, and moving activations between consecutive items on different
 * sides. The computation begins and ends in host memory. */
double tnd_fit_us(const struct tnd_fit_problem *problem, const uint8_t *sides);

/** Bytes of the items on a side; and whether every device has room for its items. */
int64_t tnd_fit_bytes(const struct tnd_fit_problem *problem, const uint8_t *sides, int side);
bool tnd_fit_holds(const struct tnd_fit_problem *problem, const uint8_t *sides);

/** Fills `out_sides` (`n_items` entries). Greedy: moves the run of consecutive items that saves
 * most time per byte to a device with room for it, until nothing saves time; then swaps items as
 * long as that saves time. Never slower than everything in host memory, nor than the best single
 * run that fits. Cost: O(n_items^3), some milliseconds for a hundred items. Deterministic. Errors:
 * ARGUMENT (invalid sizes or times), MEMORY. */
enum tandem_status tnd_fit_choose(const struct tnd_fit_problem *problem, uint8_t *out_sides,
                                  struct tandem_error *error);

/** Places weights as most programs do: as many whole layers as the device holds, the last ones
 * first, and items after the layers only if all layers fit. `layer_of` (`n_items` entries, rising)
 * is the layer of each item: -1: before the first one, `n_layers`: after the last one. Fills one
 * device after the other. */
void tnd_fit_whole_layers(const struct tnd_fit_problem *problem, const int32_t *layer_of,
                          int32_t n_layers, uint8_t *out_sides);

#endif
