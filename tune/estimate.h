/* SPDX-License-Identifier: MIT
 * Estimates a time at any M, thread count and shape from measured curves. */
#ifndef TND_ESTIMATE_H
#define TND_ESTIMATE_H

#include "table/tnd_table.h"

struct tnd_estimate {
    double us;
    double error_us;     /* expected deviation: noise_us and the distance from the samples */
    double noise_us;     /* standard error of its samples alone (table/judge.h) */
    double spread_us;    /* spread of these samples, not divided by their number */
    double below_us;     /* for thread counts beyond the measured ones: time in us - below_us */
    double above_us;     /* ... and us + above_us, which error_us contains; else 0 */
    double outside;      /* doublings of M beyond the nearest one measured on any thread count */
    bool measured_shape; /* this (N, K) was measured; else scaled from the nearest one */
    bool stale;          /* uses samples that were found wrong while programs ran */
    bool noisy;          /* spread_us is above TND_NOISY_FRAC of the time */
};

/** Time of one curve at M: linear between the two neighbouring samples; outside of them along a
 * line of fixed cost plus cost per token through the samples at that end (curve_line.h). False if
 * the curve has no samples. */
bool tnd_estimate_curve(const struct tnd_curve *curve, int64_t m, double *out_us);
/** Like tnd_estimate_curve, with the expected deviation. */
bool tnd_estimate_point(const struct tnd_curve *curve, int64_t m, double *out_us,
                        double *out_error_us);

/** Estimates one stage for (type, n, k, m, threads). Thread counts that were not measured follow
 * thread_model.h; in tables of version 1 the time of parallel stages is divided by the thread
 * count. Outside of the measured M and thread counts no time is less than the table's peaks allow
 * (roof.h). An (n, k) that was not measured lies on a line over the work of the task, through the
 * nearest smaller and the nearest larger measured shape of the type within a factor of 8 in n * k;
 * with only one of them, its time is scaled by the work. False if the table has nothing to estimate
 * from. */
bool tnd_estimate_stage(const struct tandem_table *table, const struct tnd_table_stage *stage,
                        enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                        int64_t m, int threads, struct tnd_estimate *out);

/** Time of exactly this shape and stage at `m` on key->threads threads, between measured thread
 * counts by thread_model.h. False if the table has no curve for it. */
bool tnd_estimate_key(const struct tandem_table *table, const struct tnd_curve_key *key, int64_t m,
                      struct tnd_estimate *out);

/** Estimates all stages of a profile, each and in total, without the cost of moving operands
 * (moves.h). `is_warm`: prefer times of weights that stay in the cache, if the table has them for
 * the shape. `out_stages` (TANDEM_STAGES entries) are all zero for stages that do not exist. False
 * if an existing stage has no estimate. */
bool tnd_estimate_stages(const struct tandem_table *table, const struct tnd_table_profile *profile,
                         enum tandem_type type, int64_t n, int64_t k, int64_t m, int threads,
                         bool is_warm, struct tnd_estimate *out_stages, struct tnd_estimate *out);

/** Estimates all stages of a profile in total, with the transfers between them and with neighbours
 * in host memory. `out_stage_us` (TANDEM_STAGES entries; may be NULL) gets the stages alone. False
 * if an existing stage has no estimate. */
bool tnd_estimate_profile(const struct tandem_table *table, const struct tnd_table_profile *profile,
                          enum tandem_type type, int64_t n, int64_t k, int64_t m, int threads,
                          struct tnd_estimate *out, double *out_stage_us);

#endif
