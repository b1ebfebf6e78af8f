/* SPDX-License-Identifier: MIT
 * Parts of weights as roots of their own, for devices that compute a part of a product: a device
 * keeps the bytes of its part only. They stay from run to run, so that mirrors know them again, and
 * hang in the buffer of the weight's root, where they are found without a search. Rows of a weight
 * lie in its memory; columns are copied once. */
#ifndef TND_SHADOWS_H
#define TND_SHADOWS_H

#include "sched/mirrors.h"
#include "tandem/profile.h"

struct tnd_shadows;

/** Errors: MEMORY. */
enum tandem_status tnd_shadows_new(struct tnd_shadows **out_shadows, struct tandem_error *error);
/** No run may use them; mirrors are gone already. NULL is allowed. */
void tnd_shadows_free(struct tnd_shadows *shadows);

/** Rows or columns begin .. end - 1 of a constant, dense weight; made when there is none yet. Lives
 *  until the weight is forgotten or its context is gone. Any thread. `mirrors` (or NULL) gives up
 *  what it has of contexts that are gone. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_shadows_take(struct tnd_shadows *shadows, struct tnd_mirrors *mirrors,
                                    const struct tandem_tensor *weight, enum tandem_split split,
                                    int64_t begin, int64_t end, struct tandem_tensor **out_shadow,
                                    struct tandem_error *error);
/** The same if it is there already, else NULL. */
const struct tandem_tensor *tnd_shadows_find(struct tnd_shadows *shadows,
                                             const struct tandem_tensor *weight,
                                             enum tandem_split split, int64_t begin, int64_t end);
/** Gives up all parts of the weights in a root and what `mirrors` (or NULL) has of them; no run
 *  uses them. */
void tnd_shadows_forget(struct tnd_shadows *shadows, struct tnd_mirrors *mirrors,
                        const struct tandem_tensor *root);

#endif
