/* SPDX-License-Identifier: MIT
 * What the operations beside plain matrix products cost, and on how many threads they run best. In
 * a table they are curves of their own op: n values a row (of a query for attention), k keys
 * (passes over a row for sample, 1 elsewhere), over m rows. Attention's are of the type of its
 * keys, others of F32.
 * docs/planning.md "The other operations". */
#ifndef TND_OP_COST_H
#define TND_OP_COST_H

#include "tandem/ops.h"
#include "tune/estimate.h"

/* A node in the terms of the table. */
struct tnd_op_work {
    enum tandem_op op;     /* the measured one that does as much a value: add for sub, ... */
    enum tandem_type type; /* of attention's keys; else F32 */
    int64_t n, k, m;
    int64_t shares; /* workers that can have a part of it */
};

/** False for matrix products and for operations of which nothing is measured (custom). */
bool tnd_op_work_of(const tandem_tensor *node, struct tnd_op_work *out);

/** How often `sample` with these steps (enum tandem_sample_steps) reads a row, by which its curves
 *  are told apart: 1 for the largest value, 1 to weigh and draw, and 3, a digit each, for either
 *  border. */
int64_t tnd_op_sample_passes(int steps);

/** Key of the curve of an operation on that many threads of the CPU, or on a device; F32. */
struct tnd_curve_key tnd_op_key(enum tandem_op op, int64_t n, int64_t k, int threads);
struct tnd_curve_key tnd_op_device_key(enum tandem_op op, int64_t n, int64_t k,
                                       const char *backend);

/** Time on `threads` threads, hand-off included: by the nearest measured row length, with as many
 *  rows as make the same work. Attention over keys of a type that was not measured costs what it
 *  costs over floats. False where the table knows nothing of the operation. */
bool tnd_op_estimate(const struct tandem_table *table, const struct tnd_op_work *work, int threads,
                     struct tnd_estimate *out);
/** The same on a device with memory of its own, operands and result there. */
bool tnd_op_device_estimate(const struct tandem_table *table, const struct tnd_op_work *work,
                            const char *backend, struct tnd_estimate *out);

/** The thread count of 1, 2, 4, .. limit that is predicted fastest; more threads than one only
 *  where their gain exceeds the error bars. `incumbent`: a count that is kept unless another one is
 *  clearly better (tnd_lead_is_clear); 0: none. `out_us` (may be NULL) gets the predicted time.
 *  False where the table knows nothing of the operation. */
bool tnd_op_threads(const struct tandem_table *table, const tandem_tensor *node, int limit,
                    int incumbent, int *out_threads, double *out_us);

#endif
