/* SPDX-License-Identifier: MIT
 * Costs of operations other than plain matrix products, and their best thread counts. In a table
 * they are curves of their own op: n values a row (of a query for attention), k keys (passes over a
 * row for sample, else 1), over m rows. Attention's curves have the type of its keys, others F32.
 * docs/planning.md "The other operations". */
#ifndef TND_OP_COST_H
#define TND_OP_COST_H

#include "tandem/ops.h"
#include "tune/estimate.h"

/* A node's work as the table's curves count it. */
struct tnd_op_work {
    enum tandem_op op; /* the measured operation with the same work per value: add for sub, ... */
    enum tandem_type type; /* of attention's keys; else F32 */
    int64_t n, k, m;
    int64_t shares; /* parts that can go to different workers */
};

/** False for matrix products and for operations that are never measured (custom). */
bool tnd_op_work_of(const tandem_tensor *node, struct tnd_op_work *out);

/** Number of passes over a row by `sample` with these steps (enum tandem_sample_steps), which
 * identifies its curve: 1 for the largest value, 1 to weigh and draw, and 3 (one per digit) for
 * each border. */
int64_t tnd_op_sample_passes(int steps);

/** Key of an operation's curve on this many threads of the CPU, or on a device; type F32. */
struct tnd_curve_key tnd_op_key(enum tandem_op op, int64_t n, int64_t k, int threads);
struct tnd_curve_key tnd_op_device_key(enum tandem_op op, int64_t n, int64_t k,
                                       const char *backend);

/** Time on `threads` threads, hand-off included: by the nearest measured row length, with as many
 * rows as make the same work. Attention over keys of a type that was not measured is priced as over
 * F32. False if the table has no times of the operation. */
bool tnd_op_estimate(const struct tandem_table *table, const struct tnd_op_work *work, int threads,
                     struct tnd_estimate *out);
/** Like tnd_op_estimate, on a device with memory of its own that holds operands and result. */
bool tnd_op_device_estimate(const struct tandem_table *table, const struct tnd_op_work *work,
                            const char *backend, struct tnd_estimate *out);

/** Finds the thread count of 1, 2, 4, .. limit that is predicted fastest; more than one thread only
 * if their gain exceeds the error bars. `incumbent`: a count that is kept unless another one is
 * clearly better (tnd_lead_is_clear); 0: none. `out_us` (may be NULL) gets the predicted time.
 * False if the table has no times of the operation. */
bool tnd_op_threads(const struct tandem_table *table, const tandem_tensor *node, int limit,
                    int incumbent, int *out_threads, double *out_us);

#endif
