/* SPDX-License-Identifier: MIT
 * How far a measured time can be trusted, by its samples, by the noise of the machine when it was
 * measured, and by the times of more tokens. */
#ifndef TND_JUDGE_H
#define TND_JUDGE_H

#include "table/tnd_table.h"

/* Least standard error of a single sample, and the one if its sweep is unknown (older tables, text
 * tables). Unit: share of the time. Why: measured: cells of 20 to 100 samples have a standard
 * deviation of 4.0 % (committed table of a Zen 4) and 2.0 % (Zen 5) in the median. Test:
 * one_sample_is_never_exact. */
#define TND_SINGLE_SHOT_ERROR 0.04
/* Least standard error of any time, however many samples it has: they are of one moment, and the
 * memory speed of a shared machine changes from minute to minute. Unit: share. Why: after a lead of
 * 4 % F32 at M = 1 lost 36 % (Zen 4, 60 s table); three standard errors of two such times are 4.2
 * %. Test: many_samples_of_one_moment_leave_its_error. */
#define TND_MOMENT_ERROR      0.01
/* Additional standard error of a sample for each month that it is older than the newest sample of
 * its table; grows with the square root of the months, up to that of a single sample. Samples of
 * one age are not affected. Unit: share. Why: every month is another moment; updates come in
 * between. Test: older_samples_have_larger_errors. */
#define TND_MONTH_ERROR       0.01
/* Samples that both times need before they prove that more tokens take less. Unit: samples. Why: as
 * for TND_MEASURE_REPEATS; kernels whose tiles make them faster with more tokens have as many.
 * Test: a_fall_that_many_samples_show_is_believed. */
#define TND_PROOF_SAMPLES     7
/* Standard deviations in one median absolute deviation of normally distributed samples. Unit:
 * ratio. Why: mathematics. Test: a_clear_lead_is_three_sigmas_and_a_tenth. */
#define TND_MAD_TO_SIGMA      1.4826
/* Standard errors of the difference by which a time must be shorter than another to be shorter for
 * certain. Unit: standard errors. Why: 1 of 370 normally distributed differences is larger by
 * chance. Test: a_clear_lead_is_three_sigmas_and_a_tenth. */
#define TND_CLEAR_SIGMAS      3.0

/** Standard error, in microseconds, of the median of `count` samples (0, unknown: one) with this
 * median absolute deviation. `single_shot` is the relative standard error of one sample on that
 * machine at that moment: it counts as one more sample. The spread of a single sample is the time
 * that other programs were seen to take from it. */
double tnd_time_error(double us, double spread_us, uint32_t count, double single_shot);

/** Median (of an even number, the lower of the middle two), median absolute deviation and number of
 * successive measurements; only the first 64 count. All are 0 for none. */
double tnd_judge_median(const float *us, int n, double *out_spread_us, uint32_t *out_count);

/** Standard error of a sample in microseconds: the one of tnd_table_judge, or else by its own
 * samples and the default noise. Above 0 for any time above 0. */
double tnd_sample_error(const struct tnd_sample *sample);
/** The time to use for a sample: its median, or what tnd_table_judge made of it. */
static inline double tnd_sample_us(const struct tnd_sample *sample)
{
    return sample->error_us > 0 ? sample->fit_us : sample->median_us;
}
/** Whether samples of other M contradict this one: more tokens took clearly less. False before
 * tnd_table_judge. */
bool tnd_sample_is_contradicted(const struct tnd_sample *sample);

/** Sets each sample's standard error, from the noise of its sweep and its age relative to the
 * newest sample, and the time to use for it: the median, unless a curve that never falls with M (or
 * bytes) is clearly below or above it; then that of the curve, and the distance counts as error.
 * Falls that many samples show on both sides are kept. The curve is an isotonic regression with
 * weights 1 / error^2 (pool adjacent violators: Ayer and others, "An Empirical Distribution
 * Function for Sampling with Incomplete Information", 1955), repeated with less weight on what lies
 * above it, since disturbances only slow down. Parsing and merging a table call it. Errors:
 * MEMORY. */
enum tandem_status tnd_table_judge(struct tandem_table *table);

#endif
