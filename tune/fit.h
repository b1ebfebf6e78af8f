/* SPDX-License-Identifier: MIT
 * Which weights live in the memory of which device: a knapsack by saved time per byte. The problem
 * is abstract: items in the order of a computation, each with its bytes and its time on every side,
 * and a price for going from one side to another. fit_model.h makes such a problem of a model. */
#ifndef TND_FIT_H
#define TND_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/status.h"

enum { TND_FIT_SIDES = 8, TND_FIT_MAX_ITEMS = 4096 };

/* Weights that move together. */
struct tnd_fit_item {
    int64_t bytes;            /* of the device's memory that it takes there; >= 0 */
    double us[TND_FIT_SIDES]; /* on each side; INFINITY: it cannot be there. Side 0 always can */
};

struct tnd_fit_problem {
    int n_sides; /* 1 .. TND_FIT_SIDES; side 0 is host memory, whose size is not asked */
    int64_t capacity[TND_FIT_SIDES]; /* bytes of a device; less than 0 counts as 0 */
    int n_items;
    const struct tnd_fit_item *items;             /* in the order of the computation */
    double move_us[TND_FIT_SIDES][TND_FIT_SIDES]; /* activations from a side to the next item's */
};

/** Time of a choice: of its items, and of moving activations between neighbours on different sides;
 *  the computation begins and ends in host memory. */
double tnd_fit_us(const struct tnd_fit_problem *problem, const uint8_t *sides);

/** Bytes of the items on a side, and whether every device holds its own. */
int64_t tnd_fit_bytes(const struct tnd_fit_problem *problem, const uint8_t *sides, int side);
bool tnd_fit_holds(const struct tnd_fit_problem *problem, const uint8_t *sides);

/** Fills `out_sides` (`n_items` entries). Time and again the run of neighbours that saves most time
 *  per byte moves to a device that has room for it; then items change places as long as that saves
 *  time. Never slower than everything in host memory, nor than the best single run that fits. Cost:
 *  the cube of n_items, some milliseconds for a hundred. The same problem gives the same answer.
 *  Errors: ARGUMENT (sizes or times that cannot be), MEMORY. */
enum tandem_status tnd_fit_choose(const struct tnd_fit_problem *problem, uint8_t *out_sides,
                                  struct tandem_error *error);

/** What most programs do: as many whole layers as the device holds, the last ones first, and what
 *  comes behind the layers only when all of them are there. `layer_of` (`n_items` entries, rising)
 *  says to which layer an item belongs: -1: before the first one, `n_layers`: behind the last one.
 *  Devices are filled one after the other. */
void tnd_fit_whole_layers(const struct tnd_fit_problem *problem, const int32_t *layer_of,
                          int32_t n_layers, uint8_t *out_sides);

#endif
