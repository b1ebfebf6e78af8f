/* SPDX-License-Identifier: MIT
 * From measured curves to a time at any M, thread count and shape. */
#ifndef TND_ESTIMATE_H
#define TND_ESTIMATE_H

#include "table/tnd_table.h"

struct tnd_estimate {
    double us;
    double error_us;     /* expected deviation: noise_us and the distance from the samples */
    double noise_us;     /* standard error of the samples behind it alone (table/judge.h) */
    double spread_us;    /* spread of these samples, whatever their number */
    double below_us;     /* on thread counts beyond the measured ones: between us - below_us ... */
    double above_us;     /* ... and us + above_us, which error_us contains; else 0 */
    double outside;      /* doublings of M from the nearest one that was measured on any threads */
    bool measured_shape; /* this (N, K) was measured; else scaled from the nearest one */
    bool stale;          /* it rests on samples that were found wrong while programs ran */
    bool noisy;          /* spread_us is above TND_NOISY_FRAC of the time */
};

/** One curve at M: linear between the two measured neighbours; outside of them along a line of
 *  fixed cost and cost a token through the samples at that end (curve_line.h). False without
 *  samples. */
bool tnd_estimate_curve(const struct tnd_curve *curve, int64_t m, double *out_us);
/** As tnd_estimate_curve, with the time's expected deviation. */
bool tnd_estimate_point(const struct tnd_curve *curve, int64_t m, double *out_us,
                        double *out_error_us);

/** One stage for (type, n, k, m, threads). Other thread counts than the measured ones follow
 *  thread_model.h; tables of version 1 divide parallel stages by the thread count. Outside of the
 *  measured M and thread counts no time is less than the table's peaks allow (roof.h). An (n, k)
 *  that was not measured lies on the line, over the work of the task, through the nearest smaller
 *  and the nearest larger measured shape of the type within a factor of 8 in n * k; with one of
 *  them alone it is scaled by the work. False when nothing applies. */
bool tnd_estimate_stage(const struct tandem_table *table, const struct tnd_table_stage *stage,
                        enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                        int64_t m, int threads, struct tnd_estimate *out);

/** Time of exactly this shape and stage at `m` on key->threads threads, between measured counts by
 *  the same model. False where the table has no curve of it. */
bool tnd_estimate_key(const struct tandem_table *table, const struct tnd_curve_key *key, int64_t m,
                      struct tnd_estimate *out);

/** All stages of a profile, each and together, without what moving operands costs (moves.h).
 *  `is_warm`: by times of weights that stay in the cache, where there are some of the shape.
 *  `out_stages` (TANDEM_STAGES entries) are all zero where a stage does not exist. False when one
 *  that exists has no estimate. */
bool tnd_estimate_stages(const struct tandem_table *table, const struct tnd_table_profile *profile,
                         enum tandem_type type, int64_t n, int64_t k, int64_t m, int threads,
                         bool is_warm, struct tnd_estimate *out_stages, struct tnd_estimate *out);

/** All stages of a profile together, and the transfers between them and with neighbours in host
 *  memory; out_stage_us (TANDEM_STAGES entries), which may be NULL, gets the stages alone. False
 *  when a stage that exists has no estimate. */
bool tnd_estimate_profile(const struct tandem_table *table, const struct tnd_table_profile *profile,
                          enum tandem_type type, int64_t n, int64_t k, int64_t m, int threads,
                          struct tnd_estimate *out, double *out_stage_us);

#endif
