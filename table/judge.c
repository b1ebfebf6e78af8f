/* SPDX-License-Identifier: MIT
 * Standard errors of samples, and a monotone curve through them. Runs when a table is read or
 * merged, not while a graph is planned. */
#include "table/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

enum { TND_JUDGED = 64 }; /* times considered at most */
enum { ROUNDS = 3 };      /* of reweighting; the fourth changes less than TND_MOMENT_ERROR */

/* ---- errors ---- */

double tnd_time_error(double us, double spread_us, uint32_t count, double single_shot)
{
    const double n = count > 0 ? (double)count : 1.0;
    const double seen = us > 0 ? TND_MAD_TO_SIGMA * spread_us / us : 0.0;
    const double single = n > 1.0 ? single_shot : fmax(single_shot, seen); /* seen by its clocks */
    const double variance = (single * single + (n - 1.0) * seen * seen) / n;
    return us * sqrt(variance / n + TND_MOMENT_ERROR * TND_MOMENT_ERROR);
}

double tnd_sample_error(const struct tnd_sample *sample)
{
    return sample->error_us > 0 ? sample->error_us
                                : tnd_time_error(sample->median_us, sample->spread_us,
                                                 sample->count, TND_SINGLE_SHOT_ERROR);
}

/* ---- successive measurements ---- */

static int compare_floats(const void *a, const void *b)
{
    const float x = *(const float *)a;
    const float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Of the two middle ones the lower: disturbances only slow down. */
static double lower_median(float *values, int n)
{
    qsort(values, (size_t)n, sizeof(values[0]), compare_floats);
    return (double)values[(n - 1) / 2];
}

double tnd_judge_median(const float *us, int n, double *out_spread_us, uint32_t *out_count)
{
    float values[TND_JUDGED];
    double middle = 0;
    *out_spread_us = 0;
    n = us == NULL || n < 0 ? 0 : n < TND_JUDGED ? n : TND_JUDGED;
    *out_count = (uint32_t)n;
    if (n > 0) {
        memcpy(values, us, (size_t)n * sizeof(values[0]));
        middle = lower_median(values, n);
        for (int i = 0; i < n; i++) {
            values[i] = fabsf(us[i] - (float)middle);
        }
        *out_spread_us = lower_median(values, n);
    }
    return middle;
}

double tandem_judge_times(const float *us, int n, double *out_error_us)
{
    double spread_us;
    uint32_t count;
    const double middle = tnd_judge_median(us, n, &spread_us, &count);
    if (out_error_us != NULL) {
        *out_error_us = tnd_time_error(middle, spread_us, count, TND_SINGLE_SHOT_ERROR);
    }
    return middle;
}

/* ---- samples of a table ---- */

/* Relative excess of the reference kernel's mean time over its fastest run of the same moment. A
 * mean, because programs that share a CPU interrupt rarely, but for long. */
static double noise_of(const struct tnd_reference_time *time)
{
    return time->fastest_us > 0 ? time->mean_us / time->fastest_us - 1.0 : 0.0;
}

/* Relative standard error of a single measurement in the sweep that began at `when`; at least the
 * default of any machine. Only the reference times before and after the sweep count: the slowest
 * moment in between says little about all the others. */
static double single_shot_of(const struct tandem_table *table, int64_t when)
{
    double noise = TND_SINGLE_SHOT_ERROR;
    for (int i = 0; i < table->n_sweeps; i++) {
        const struct tnd_sweep_state *sweep = &table->sweeps[i];
        if (sweep->when == when && when > 0) {
            noise = fmax(noise, fmax(noise_of(&sweep->before), noise_of(&sweep->after)));
        }
    }
    return noise;
}

static void find_newest(const struct tnd_curve *curve, int64_t *io_newest)
{
    for (int i = 0; i < curve->n_samples; i++) {
        *io_newest = curve->samples[i].when > *io_newest ? curve->samples[i].when : *io_newest;
    }
}

static double age_error(int64_t when, int64_t newest)
{
    const double months = (double)(newest - when) / (30.0 * 86400.0);
    return when > 0 && newest > when ? fmin(TND_MONTH_ERROR * sqrt(months), TND_SINGLE_SHOT_ERROR)
                                     : 0.0;
}

bool tnd_sample_is_contradicted(const struct tnd_sample *sample)
{
    return sample->error_us > 0 && sample->fit_us != sample->median_us;
}

/* ---- a monotone curve ---- */

/* Neighbouring samples that share one time. */
struct block {
    int n;
    double us, weight;
};

/* Whether b, of more tokens, takes less time than a for certain. */
static bool is_proven_fall(const struct tnd_sample *a, const struct tnd_sample *b)
{
    return a->count >= TND_PROOF_SAMPLES && b->count >= TND_PROOF_SAMPLES &&
           a->median_us - b->median_us > TND_CLEAR_SIGMAS * hypot(a->error_us, b->error_us);
}

/* Relative standard error of the sample; time above the fitted curve counts as error. */
static double relative_error(const struct tnd_sample *sample)
{
    const double above_us = fmax(sample->median_us - sample->fit_us, 0.0);
    return fmax(hypot(sample->error_us, above_us) / fmax(sample->median_us, 1e-9),
                TND_MOMENT_ERROR);
}

static void pool(struct tnd_sample *samples, int n, struct block *blocks)
{
    int n_blocks = 0;
    for (int i = 0; i < n; i++) {
        const double error = relative_error(&samples[i]);
        blocks[n_blocks++] = (struct block){1, samples[i].median_us, 1.0 / (error * error)};
        while (n_blocks > 1 && blocks[n_blocks - 2].us > blocks[n_blocks - 1].us) {
            const struct block *b = &blocks[--n_blocks];
            struct block *a = &blocks[n_blocks - 1];
            a->us = (a->weight * a->us + b->weight * b->us) / (a->weight + b->weight);
            a->weight += b->weight;
            a->n += b->n;
        }
    }
    for (int i = 0, b = 0; b < n_blocks; b++) {
        for (int end = i + blocks[b].n; i < end; i++) {
            samples[i].fit_us = blocks[b].us;
        }
    }
}

/* Fits the samples between two proven falls, each with its own error. */
static void judge_run(struct tnd_sample *samples, int n, struct block *blocks)
{
    bool rises = true;
    for (int i = 1; i < n && rises; i++) {
        rises = samples[i - 1].median_us <= samples[i].median_us;
    }
    for (int round = 0; round < ROUNDS && !rises; round++) {
        pool(samples, n, blocks);
    }
    for (int i = 0; i < n && !rises; i++) {
        struct tnd_sample *sample = &samples[i];
        const double away_us = fabs(sample->median_us - sample->fit_us);
        if (away_us > TND_CLEAR_SIGMAS * sample->error_us) {
            sample->error_us = hypot(sample->error_us, away_us);
        } else {
            sample->fit_us = sample->median_us; /* within noise: keep the measured time */
        }
    }
}

static void judge_curve(const struct tandem_table *table, struct tnd_curve *curve, int64_t newest,
                        struct block *blocks)
{
    struct tnd_sample *samples = curve->samples;
    for (int i = 0; i < curve->n_samples; i++) {
        samples[i].fit_us = samples[i].median_us;
        samples[i].error_us =
            hypot(tnd_time_error(samples[i].median_us, samples[i].spread_us, samples[i].count,
                                 single_shot_of(table, samples[i].when)),
                  samples[i].median_us * age_error(samples[i].when, newest));
    }
    for (int begin = 0, end = 1; begin < curve->n_samples; begin = end++) {
        while (end < curve->n_samples && !is_proven_fall(&samples[end - 1], &samples[end])) {
            end++;
        }
        judge_run(samples + begin, end - begin, blocks);
    }
}

enum tandem_status tnd_table_judge(struct tandem_table *table)
{
    int most = 1;
    int64_t newest = 0;
    for (int i = 0; i < table->n_curves; i++) {
        find_newest(&table->curves[i], &newest);
        most = table->curves[i].n_samples > most ? table->curves[i].n_samples : most;
    }
    for (int i = 0; i < table->n_transfers; i++) {
        const int n = table->transfers[i].curve.n_samples;
        most = n > most ? n : most;
    }
    struct block *blocks = tnd_calloc((size_t)most, sizeof(blocks[0]));
    if (blocks == NULL) {
        return TANDEM_E_MEMORY;
    }
    for (int i = 0; i < table->n_curves; i++) {
        judge_curve(table, &table->curves[i], newest, blocks);
    }
    for (int i = 0; i < table->n_transfers; i++) {
        judge_curve(table, &table->transfers[i].curve, newest, blocks);
    }
    tnd_free(blocks);
    return TANDEM_OK;
}
