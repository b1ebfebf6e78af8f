/* SPDX-License-Identifier: MIT
 * Interpolation over the samples of one curve. Runs while a graph is planned: no allocation, one
 * binary search. */
#include "table/curve_line.h"

#include <math.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "table/curve_fit.h"
#include "table/judge.h"

/* Beyond the last sample a token costs at least this share of its cost at that sample, for a task
 * whose work grows with the tokens. Unit: share. Why: noise and memory-bound samples may show no
 * growth, and then any M would be free; measured: 95th percentile of misses at four times the range
 * is 55 % with 0.2 and 63 % with 0 (bench-data, 2,834 cases). */
#define LEAST_SHARE      0.2
/* Assumed residual of a line through fewer than three samples, which always fits. Unit: share. Why:
 * the spread of calm samples. */
#define RESIDUAL_UNKNOWN 0.05

/* Whether the time is the same for any M: all weights are converted to floats. */
static bool is_constant(const struct tnd_curve *curve)
{
    return tnd_task_is(curve->key.task, TND_TASK_LEAVES_W);
}

static struct tnd_curve_fit fit_end(const struct tnd_curve *curve, bool at_end, int64_t step)
{
    const struct tnd_sample *end = &curve->samples[at_end ? curve->n_samples - 1 : 0];
    struct tnd_curve_fit fit = {INFINITY, RESIDUAL_UNKNOWN}; /* all time proportional to M */
    if (curve->n_samples > 1) {
        fit = tnd_curve_fit_end(curve, at_end, step);
    }
    if (curve->n_samples < 3) {
        fit.residual = RESIDUAL_UNKNOWN;
    }
    fit.per_m = fmin(fit.per_m, tnd_sample_us(end) / (double)tnd_step_up(end->m, step));
    if (is_constant(curve)) {
        fit.per_m = 0;
    }
    return fit;
}

double tnd_sample_line(const struct tnd_sample *a, const struct tnd_sample *b, int64_t m)
{
    double part = (double)(m - a->m) / (double)(b->m - a->m);
    return tnd_sample_us(a) + part * (tnd_sample_us(b) - tnd_sample_us(a));
}

static struct tnd_curve_point below_first(const struct tnd_curve *curve, int64_t m,
                                          const struct tnd_curve_bounds *bounds)
{
    const struct tnd_sample *first = &curve->samples[0];
    struct tnd_curve_fit fit = fit_end(curve, false, bounds->step);
    int64_t fewer = tnd_step_up(first->m, bounds->step) - tnd_step_up(m, bounds->step);
    double us = tnd_sample_us(first) - fit.per_m * (double)fewer;
    double floor_us = fmin(bounds->floor_us, tnd_sample_us(first));
    return (struct tnd_curve_point){fmax(us, floor_us), fit.residual, 0, 0, false};
}

static struct tnd_curve_point beyond_last(const struct tnd_curve *curve, int64_t m,
                                          const struct tnd_curve_bounds *bounds)
{
    int at = curve->n_samples - 1;
    const struct tnd_sample *last = &curve->samples[at];
    struct tnd_curve_fit fit = fit_end(curve, true, bounds->step);
    int64_t known = tnd_step_up(last->m, bounds->step);
    double most = tnd_sample_us(last) / (double)known;
    double least = is_constant(curve) ? 0.0 : LEAST_SHARE * most;
    double per_m = fmax(fit.per_m, fmin(fmax(least, bounds->least_per_m), most));
    double us = tnd_sample_us(last) + per_m * (double)(tnd_step_up(m, bounds->step) - known);
    return (struct tnd_curve_point){us, fit.residual, at, at, false};
}

/* Interpolates between two samples; the upper one may be at m. */
static struct tnd_curve_point between(const struct tnd_curve *curve, int64_t m, int64_t step)
{
    int low = 0; /* samples[low].m < m <= samples[high].m */
    int high = curve->n_samples - 1;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (curve->samples[middle].m < m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    struct tnd_sample a = curve->samples[low];
    struct tnd_sample b = curve->samples[high];
    if (b.m == m) {
        return (struct tnd_curve_point){tnd_sample_us(&b), 0, high, high, false};
    }
    bool is_stair = step > 1 && m >= step && tnd_step_up(a.m, step) < tnd_step_up(b.m, step);
    if (is_stair) {
        a.m = tnd_step_up(a.m, step);
        b.m = tnd_step_up(b.m, step);
        m = tnd_step_up(m, step);
    }
    return (struct tnd_curve_point){tnd_sample_line(&a, &b, m), 0, low, high, is_stair};
}

static struct tnd_curve_point on_samples(const struct tnd_curve *curve, int64_t m,
                                         const struct tnd_curve_bounds *bounds)
{
    if (m < curve->samples[0].m) {
        return below_first(curve, m, bounds);
    }
    if (m > curve->samples[curve->n_samples - 1].m) {
        return beyond_last(curve, m, bounds);
    }
    if (m == curve->samples[0].m) {
        return (struct tnd_curve_point){tnd_sample_us(&curve->samples[0]), 0, 0, 0, false};
    }
    return between(curve, m, bounds->step);
}

/* Uses only the samples on m's side of the first whole step. */
static struct tnd_curve_point on_stairs(const struct tnd_curve *curve, int64_t m,
                                        const struct tnd_curve_bounds *bounds)
{
    int n_below = 0; /* samples below the first whole step */
    while (n_below < curve->n_samples && curve->samples[n_below].m < bounds->step) {
        n_below++;
    }
    bool is_whole = m >= bounds->step;
    struct tnd_curve side = *curve; /* a view */
    side.samples += is_whole ? n_below : 0;
    side.n_samples = is_whole ? curve->n_samples - n_below : n_below;
    /* With few tokens, one sample is not enough, and the line through two is noise beyond twice the
     * last. */
    bool is_told = is_whole || (n_below > 1 && m <= 2 * side.samples[n_below - 1].m);
    if (n_below == 0 || n_below == curve->n_samples || !is_told) {
        return on_samples(curve, m, bounds);
    }
    struct tnd_curve_point point = on_samples(&side, m, bounds);
    bool is_split = m < side.samples[0].m || m > side.samples[side.n_samples - 1].m;
    if (is_whole) {
        point.us = fmax(point.us,
                        fmin(tnd_sample_us(&curve->samples[0]), tnd_sample_us(&side.samples[0])));
        point.low += n_below;
        point.high += n_below;
    }
    point.is_stair = point.is_stair || is_split;
    return point;
}

struct tnd_curve_point tnd_curve_at(const struct tnd_curve *curve, int64_t m,
                                    const struct tnd_curve_bounds *bounds)
{
    static const struct tnd_curve_bounds none = {0};
    TND_ASSERT(curve->n_samples > 0 && m > 0);
    bounds = bounds != NULL ? bounds : &none;
    return bounds->step > 1 ? on_stairs(curve, m, bounds) : on_samples(curve, m, bounds);
}

double tnd_transfer_line(const struct tnd_curve *curve, int64_t bytes)
{
    int64_t least = curve->samples[0].m;
    return tnd_curve_at(curve, bytes > least ? bytes : least, NULL).us;
}
