/* SPDX-License-Identifier: MIT
 * What moving operands costs around the stages of a product: transfers between host and device,
 * predicted from bytes, and waking the workers that slept meanwhile. */
#ifndef TND_MOVES_H
#define TND_MOVES_H

#include "tune/estimate.h"

struct tnd_moves {
    char device[16];            /* the device that reads X and leaves Y; "": host memory */
    struct tnd_estimate inside; /* between the stages: weights in F32. Paid always */
    struct tnd_estimate x;      /* X from the host to the device */
    struct tnd_estimate y;      /* Y from the device to the host */
};

/** Moving `bytes` to or from a backend; all zero for one that works in host memory, that is, of
 *  which the table knows no transfers. */
struct tnd_estimate tnd_estimate_transfer(const struct tandem_table *table, const char *backend,
                                          enum tnd_direction direction, int64_t bytes);

/** The moves of one product. False when a device takes part of whose transfers the table says
 *  nothing; in tables of version 1 they are in the times of the stages. */
bool tnd_estimate_moves(const struct tandem_table *table, const struct tnd_table_profile *profile,
                        int64_t n, int64_t k, int64_t m, struct tnd_moves *out);

/** What it costs more to hand work to `threads` workers that sleep than to spinning ones; between
 *  measured counts along the line, 0 for one thread or when nothing is known. */
double tnd_estimate_wake(const struct tandem_table *table, int threads);

/** What handing work to `threads` workers that spin costs, until all are back; between measured
 *  counts along the line, 0 for one thread or when nothing is known. */
double tnd_estimate_handoff(const struct tandem_table *table, int threads);
/** What sharing a node among threads costs beside its measured stages: what one thread wrote before
 *  comes to the others' caches line by line, each at the price of a hand-off. A guess of how many;
 *  it keeps the nodes of tiny models on one thread. 0 for one thread. */
double tnd_estimate_sharing(const struct tandem_table *table, int threads);

/** Whether idle workers sleep in a stage of the profile and no other stage wakes them: the next
 *  node does. Where another stage does, its measured time holds the waking. */
bool tnd_profile_leaves_sleepers(const struct tnd_table_profile *profile);

#endif
