/* SPDX-License-Identifier: MIT
 * Costs of moving operands around the stages of a product: transfers between host and device,
 * predicted from bytes, and waking workers that slept meanwhile. */
#ifndef TND_MOVES_H
#define TND_MOVES_H

#include "tune/estimate.h"

struct tnd_moves {
    char device[16];            /* device that reads X and writes Y; "": host memory */
    struct tnd_estimate inside; /* between the stages: weights in F32; always paid */
    struct tnd_estimate x;      /* upload of X */
    struct tnd_estimate y;      /* download of Y */
};

/** Time of moving `bytes` to or from a backend; all zero for one that works in host memory, that
 * is, without transfers in the table. */
struct tnd_estimate tnd_estimate_transfer(const struct tandem_table *table, const char *backend,
                                          enum tnd_direction direction, int64_t bytes);

/** The moves of one product. False if it uses a device whose transfers are not in the table; tables
 * of version 1 include them in the times of stages. */
bool tnd_estimate_moves(const struct tandem_table *table, const struct tnd_table_profile *profile,
                        int64_t n, int64_t k, int64_t m, struct tnd_moves *out);

/** Extra cost of handing work to `threads` sleeping workers instead of spinning ones, interpolated
 * linearly between measured counts; 0 for one thread or if unknown. */
double tnd_estimate_wake(const struct tandem_table *table, int threads);

/** Cost of handing work to `threads` spinning workers and waiting for all of them, interpolated
 * linearly between measured counts; 0 for one thread or if unknown. */
double tnd_estimate_handoff(const struct tandem_table *table, int threads);
/** Cost of sharing a node among threads beside its measured stages: cache lines that one thread
 * wrote before move to the others' caches, each at the price of a hand-off. Their number is a guess
 * (TND_SHARED_LINES), which keeps the nodes of tiny models on one thread. 0 for one thread. */
double tnd_estimate_sharing(const struct tandem_table *table, int threads);

/** Whether idle workers sleep during a stage of the profile and no other stage wakes them, so that
 * the next node has to. If another stage wakes them, its measured time includes that. */
bool tnd_profile_leaves_sleepers(const struct tnd_table_profile *profile);

#endif
