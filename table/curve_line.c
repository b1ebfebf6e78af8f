/* SPDX-License-Identifier: MIT
 * Interpolation over the samples of one curve. Runs while a graph is planned: no allocation, one
 * binary search. */
#include "table/curve_line.h"

#include <math.h>

#include "backends/task.h"
#include "base/tnd_assert.h"

/* Slope of the line through the last points: the median of the slopes between the last three, which
 * one bad point cannot turn. A stage does not become cheaper with more tokens, so it is never
 * negative. */
static double last_slope(const struct tnd_curve *curve)
{
    int n = curve->n_samples < 3 ? curve->n_samples : 3;
    const struct tnd_sample *p = curve->samples + curve->n_samples - n;
    double slope[3];
    int count = 0;
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            slope[count++] = (p[j].median_us - p[i].median_us) / (double)(p[j].m - p[i].m);
        }
    }
    double middle = slope[0];
    if (count == 3) {
        middle = fmax(fmin(slope[0], slope[1]), fmin(fmax(slope[0], slope[1]), slope[2]));
    }
    return fmax(middle, 0.0);
}

/* Whether the stage's time grows with M. Told by the first two points: which of "held" and "through
 * the origin" predicts the first from the second better. With a single point the task itself must
 * say. */
static bool goes_with_m(const struct tnd_curve *curve)
{
    if (curve->n_samples < 2) {
        return !tnd_task_is(curve->key.task, TND_TASK_LEAVES_W);
    }
    const struct tnd_sample *p = curve->samples;
    double scaled = p[1].median_us * (double)p[0].m / (double)p[1].m;
    return fabs(scaled - p[0].median_us) < fabs(p[1].median_us - p[0].median_us);
}

double tnd_sample_line(const struct tnd_sample *a, const struct tnd_sample *b, int64_t m)
{
    double part = (double)(m - a->m) / (double)(b->m - a->m);
    return a->median_us + part * (b->median_us - a->median_us);
}

static double below_first(const struct tnd_curve *curve, int64_t m)
{
    const struct tnd_sample *first = &curve->samples[0];
    bool is_scaled = m < first->m && goes_with_m(curve);
    return is_scaled ? first->median_us * ((double)m / (double)first->m) : first->median_us;
}

static double beyond_last(const struct tnd_curve *curve, int64_t m)
{
    const struct tnd_sample *last = &curve->samples[curve->n_samples - 1];
    if (curve->n_samples > 1) {
        return last->median_us + last_slope(curve) * (double)(m - last->m);
    }
    return goes_with_m(curve) ? last->median_us * ((double)m / (double)last->m) : last->median_us;
}

double tnd_curve_line(const struct tnd_curve *curve, int64_t m, int *out_low, int *out_high)
{
    TND_ASSERT(curve->n_samples > 0 && m > 0);
    int low = 0; /* samples[low].m < m <= samples[high].m */
    int high = curve->n_samples - 1;
    if (m <= curve->samples[0].m || m > curve->samples[high].m) {
        bool is_below = m <= curve->samples[0].m;
        *out_low = *out_high = is_below ? 0 : high;
        return is_below ? below_first(curve, m) : beyond_last(curve, m);
    }
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (curve->samples[middle].m < m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    bool is_exact = curve->samples[high].m == m;
    *out_low = is_exact ? high : low;
    *out_high = high;
    return is_exact ? curve->samples[high].median_us
                    : tnd_sample_line(&curve->samples[low], &curve->samples[high], m);
}

double tnd_transfer_line(const struct tnd_curve *curve, int64_t bytes)
{
    int low;
    int high;
    int64_t least = curve->samples[0].m;
    return tnd_curve_line(curve, bytes > least ? bytes : least, &low, &high);
}
