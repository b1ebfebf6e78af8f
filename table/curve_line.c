/* SPDX-License-Identifier: MIT
 * Interpolation over the samples of one curve. Runs while a graph is planned: no allocation, one
 * binary search. */
#include "table/curve_line.h"

#include <math.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "table/curve_fit.h"

/* Beyond the last sample a token costs at least this part of what a token costs at that sample, for
 * a task that works by token. Unit: share. Why: noise and memory-bound samples show no growth, and
 * no growth would make any M free; measured: 95th percentile of misses at four times the range is
 * 55 % with 0.2 and 63 % with 0 (bench-data, 2,834 cases). */
#define LEAST_SHARE      0.2
/* Residual of a line through fewer than three samples, which always fits. Unit: share. Why: the
 * spread of calm samples. */
#define RESIDUAL_UNKNOWN 0.05

/* Whether the time is the same for any M: the weights are turned into floats as a whole. */
static bool is_constant(const struct tnd_curve *curve)
{
    return tnd_task_is(curve->key.task, TND_TASK_LEAVES_W);
}

static struct tnd_curve_fit fit_end(const struct tnd_curve *curve, bool at_end)
{
    const struct tnd_sample *end = &curve->samples[at_end ? curve->n_samples - 1 : 0];
    struct tnd_curve_fit fit = {end->median_us / (double)end->m, RESIDUAL_UNKNOWN};
    if (curve->n_samples > 1) {
        fit = tnd_curve_fit_end(curve, at_end);
    }
    if (curve->n_samples < 3) {
        fit.residual = RESIDUAL_UNKNOWN;
    }
    if (is_constant(curve)) {
        fit.per_m = 0;
    }
    return fit;
}

double tnd_sample_line(const struct tnd_sample *a, const struct tnd_sample *b, int64_t m)
{
    double part = (double)(m - a->m) / (double)(b->m - a->m);
    return a->median_us + part * (b->median_us - a->median_us);
}

static struct tnd_curve_point below_first(const struct tnd_curve *curve, int64_t m,
                                          const struct tnd_curve_bounds *bounds)
{
    const struct tnd_sample *first = &curve->samples[0];
    struct tnd_curve_fit fit = fit_end(curve, false);
    double per_m = fmin(fit.per_m, first->median_us / (double)first->m);
    double us = first->median_us - per_m * (double)(first->m - m);
    double floor_us = bounds != NULL ? fmin(bounds->floor_us, first->median_us) : 0.0;
    return (struct tnd_curve_point){fmax(us, floor_us), fit.residual, 0, 0};
}

static struct tnd_curve_point beyond_last(const struct tnd_curve *curve, int64_t m,
                                          const struct tnd_curve_bounds *bounds)
{
    int at = curve->n_samples - 1;
    const struct tnd_sample *last = &curve->samples[at];
    struct tnd_curve_fit fit = fit_end(curve, true);
    double most = last->median_us / (double)last->m;
    double least = is_constant(curve) ? 0.0 : LEAST_SHARE * most;
    least = fmax(least, bounds != NULL ? bounds->least_per_m : 0.0);
    double per_m = fmin(fmax(fit.per_m, least), most);
    double us = last->median_us + per_m * (double)(m - last->m);
    return (struct tnd_curve_point){us, fit.residual, at, at};
}

struct tnd_curve_point tnd_curve_at(const struct tnd_curve *curve, int64_t m,
                                    const struct tnd_curve_bounds *bounds)
{
    TND_ASSERT(curve->n_samples > 0 && m > 0);
    int low = 0; /* samples[low].m < m <= samples[high].m */
    int high = curve->n_samples - 1;
    if (m < curve->samples[0].m) {
        return below_first(curve, m, bounds);
    }
    if (m > curve->samples[high].m) {
        return beyond_last(curve, m, bounds);
    }
    if (m == curve->samples[0].m) {
        return (struct tnd_curve_point){curve->samples[0].median_us, 0, 0, 0};
    }
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (curve->samples[middle].m < m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct tnd_sample *above = &curve->samples[high];
    if (above->m == m) {
        return (struct tnd_curve_point){above->median_us, 0, high, high};
    }
    return (struct tnd_curve_point){tnd_sample_line(&curve->samples[low], above, m), 0, low, high};
}

double tnd_transfer_line(const struct tnd_curve *curve, int64_t bytes)
{
    int64_t least = curve->samples[0].m;
    return tnd_curve_at(curve, bytes > least ? bytes : least, NULL).us;
}
