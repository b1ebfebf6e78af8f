/* SPDX-License-Identifier: MIT
 * A fixed assignment of weights to devices, as fit_model.h chose it. Weights are identified by the
 * address of their data. */
#ifndef TND_PLACEMENT_H
#define TND_PLACEMENT_H

#include "tandem/tensor.h"
#include "tune/experts.h"

struct tnd_placed {
    const void *data;    /* of the root tensor */
    int32_t slot;        /* of the backend; the CPU's slot: host memory */
    const float *shares; /* {n_shares}: fraction of tokens that use each expert; NULL: unknown */
    int64_t n_shares;
};

struct tnd_placement;

/** Copies the list and its shares. If entries have the same data, the smallest slot counts. Errors:
 * MEMORY. */
enum tandem_status tnd_placement_new(const struct tnd_placed *list, int n,
                                     struct tnd_placement **out_placement,
                                     struct tandem_error *error);
/** NULL is allowed. */
void tnd_placement_free(struct tnd_placement *placement);

/** Slot of a weight; -1 if the placement does not mention it or is NULL. */
int tnd_placement_slot(const struct tnd_placement *placement, const void *data);
/** Use of the weight's experts; NULL: unknown. Owned by the placement. */
struct tnd_expert_use *tnd_placement_use(const struct tnd_placement *placement, const void *data);
/** The subset of `devices` (bit a slot) that must not keep the weight. */
uint32_t tnd_placement_refused(const struct tnd_placement *placement, const void *data,
                               uint32_t devices);

#endif
