/* SPDX-License-Identifier: MIT
 * Which weights are kept on which device, as decided once (fit_model.h). Weights are known by the
 * address of their data. */
#ifndef TND_PLACEMENT_H
#define TND_PLACEMENT_H

#include "tandem/tensor.h"
#include "tune/experts.h"

struct tnd_placed {
    const void *data;    /* of the root tensor */
    int32_t slot;        /* backend; that of the CPU: in host memory */
    const float *shares; /* {n_shares}: of all tokens, those that use each expert; NULL: unknown */
    int64_t n_shares;
};

struct tnd_placement;

/** Copies the list and its shares. Of entries with the same data the smallest slot counts. Errors:
 *  MEMORY. */
enum tandem_status tnd_placement_new(const struct tnd_placed *list, int n,
                                     struct tnd_placement **out_placement,
                                     struct tandem_error *error);
/** NULL is allowed. */
void tnd_placement_free(struct tnd_placement *placement);

/** Slot of the weight; -1 for one of which nothing was decided, and for a placement of NULL. */
int tnd_placement_slot(const struct tnd_placement *placement, const void *data);
/** How experts of the weight are used; NULL: unknown. Belongs to the placement. */
struct tnd_expert_use *tnd_placement_use(const struct tnd_placement *placement, const void *data);
/** Those of `devices` (bit a slot) that shall not keep the weight. */
uint32_t tnd_placement_refused(const struct tnd_placement *placement, const void *data,
                               uint32_t devices);

#endif
