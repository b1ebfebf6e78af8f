/* SPDX-License-Identifier: MIT
 * Points of a line, and their uncertainty. */
#include "measure/adapt_line.h"

#include <limits.h>
#include <math.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "table/tnd_table.h"
#include "tune/policy.h"

int tnd_adapt_find(const struct tnd_adapt_points *points, int64_t m)
{
    int i = points->n_points - 1;
    while (i >= 0 && points->points[i].m > m) {
        i--;
    }
    return i;
}

static double along(const struct tnd_adapt_point *a, const struct tnd_adapt_point *b, int64_t m)
{
    TND_ASSERT(a->m < b->m);
    double part = (double)(m - a->m) / (double)(b->m - a->m);
    return fmax(a->us + part * (b->us - a->us), 0.0);
}

static double doublings(int64_t a, int64_t b)
{
    return fabs(log2((double)b / (double)a));
}

/* ---- adding trials ---- */

static void repeat_trial(struct tnd_adapt_point *point, double us, double spread, bool is_noisy)
{
    if (us < point->us) {
        point->second_us = point->us;
        point->us = us;
        point->spread = spread;
        point->is_noisy = is_noisy;
    } else if (point->second_us == 0 || us < point->second_us) {
        point->second_us = us;
    }
    point->trials++;
}

/* Uncertainty that remains in each half after a range was divided. One right prediction does not
 * prove that the curve is straight: kernels have steps at their tile sizes. */
static double uncertainty_left(int64_t low, int64_t high, double wrong)
{
    return fmax(TND_UNCERTAIN_SEEN * (wrong - TND_MEASURE_SPREAD),
                TND_UNCERTAIN_LEFT * TND_UNCERTAIN_GAP * doublings(low, high));
}

enum tandem_status tnd_adapt_put(struct tnd_adapt_points *points, int64_t m,
                                 const struct tnd_stage_time *total)
{
    TND_ASSERT(m >= 1);
    double us = total->median_us;
    double spread =
        us > 0 && total->count > 0 ? total->spread_us / us / sqrt((double)total->count) : 0;
    bool is_noisy = total->spread_us > TND_NOISY_FRAC * us;
    int before = tnd_adapt_find(points, m);
    if (before >= 0 && points->points[before].m == m) {
        repeat_trial(&points->points[before], us, spread, is_noisy);
        return TANDEM_OK;
    }
    TND_TRY(
        tnd_vector_insert(&points->points_vector, sizeof(points->points[0]), INT_MAX, before + 1));
    double uncertainty = -1;
    if (before >= 0 && before + 2 < points->n_points) {
        struct tnd_adapt_point *low = &points->points[before];
        double predicted = along(low, &low[2], m);
        double wrong = us > 0 ? fabs(predicted - us) / us : 0;
        low->uncertainty = uncertainty_left(low->m, m, wrong);
        uncertainty = uncertainty_left(m, low[2].m, wrong);
    }
    struct tnd_adapt_point *at = &points->points[before + 1];
    *at = (struct tnd_adapt_point){.m = m,
                                   .us = us,
                                   .spread = spread,
                                   .is_noisy = is_noisy,
                                   .trials = 1,
                                   .uncertainty = uncertainty};
    return TANDEM_OK;
}

/* ---- times ---- */

double tnd_adapt_line_us(const struct tnd_adapt_points *points, int64_t m, double fixed_tokens,
                         bool safely)
{
    TND_ASSERT(points->n_points > 0 && m >= 1);
    const struct tnd_adapt_point *first = &points->points[0];
    const struct tnd_adapt_point *last = &points->points[points->n_points - 1];
    if (m > last->m) {
        if (safely) {
            return last->us * (double)m / (double)last->m;
        }
        if (points->n_points > 1) {
            double slope = (last->us - last[-1].us) / (double)(last->m - last[-1].m);
            return last->us + fmax(slope, 0.0) * (double)(m - last->m);
        }
        return last->us * ((double)m + fixed_tokens) / ((double)last->m + fixed_tokens);
    }
    if (m <= first->m) {
        return safely ? first->us
                      : first->us * ((double)m + fixed_tokens) / ((double)first->m + fixed_tokens);
    }
    int before = tnd_adapt_find(points, m);
    const struct tnd_adapt_point *a = &points->points[before];
    return a->m == m ? a->us : along(a, a + 1, m);
}

/* ---- uncertainties ---- */

/* A step or a bend of the curve shows as a difference between the lines before and after the
 * gap. */
static double bend(const struct tnd_adapt_points *points, int low, int64_t m)
{
    TND_ASSERT(low >= 0 && low + 1 < points->n_points);
    const struct tnd_adapt_point *p = points->points;
    double us = along(&p[low], &p[low + 1], m);
    double differs = 0;
    if (us <= 0) {
        return 0;
    }
    if (low > 0) {
        differs = fabs(along(&p[low - 1], &p[low], m) - us);
    }
    if (low + 2 < points->n_points) {
        differs = fmax(differs, fabs(along(&p[low + 1], &p[low + 2], m) - us));
    }
    return differs / us;
}

double tnd_adapt_gap_uncertainty(const struct tnd_adapt_points *points, int64_t m)
{
    const struct tnd_adapt_point *p = points->points;
    int n = points->n_points;
    if (n == 0) {
        return 1.0;
    }
    int low = tnd_adapt_find(points, m);
    if (low < 0 || low == n - 1) {
        double far = doublings(low < 0 ? p[0].m : p[n - 1].m, m);
        return fmin(1.0,
                    far * (n == 1 || low < 0 ? TND_UNCERTAIN_BEYOND_ONE : 2 * TND_UNCERTAIN_GAP));
    }
    if (p[low].uncertainty >= 0) {
        return p[low].uncertainty;
    }
    double prior = TND_UNCERTAIN_GAP * doublings(p[low].m, p[low + 1].m);
    return fmin(1.0, fmax(prior, TND_UNCERTAIN_BEND * bend(points, low, m)));
}

double tnd_adapt_point_uncertainty(const struct tnd_adapt_point *point)
{
    if (point->trials < 2 || point->us <= 0) {
        return fmax(point->spread, TND_SINGLE_SHOT_ERROR);
    }
    double differs = (point->second_us - point->us) / point->us;
    return fmax(point->spread, differs / point->trials);
}

double tnd_adapt_outlier(const struct tnd_adapt_points *points, int i)
{
    TND_ASSERT(i >= 0 && i < points->n_points);
    const struct tnd_adapt_point *point = &points->points[i];
    double credible = point->us;
    for (int j = i + 1; j < points->n_points; j++) {
        credible = fmin(credible, points->points[j].us);
    }
    if (i > 0) {
        double told = point[-1].us * (double)point->m / (double)point[-1].m;
        if (i + 1 < points->n_points) {
            told = fmin(told, fmax(along(point - 1, point + 1, point->m), point[-1].us));
        }
        credible = fmin(credible, told * (1 + TND_CREDIBLE_STEP));
    }
    return point->us > 0 ? (point->us - credible) / point->us : 0;
}

int64_t tnd_adapt_middle(int64_t low, int64_t high)
{
    TND_ASSERT(low >= 1 && high > low);
    if (high - low < 2 || (double)high / (double)low < TND_CLOSE_RATIO) {
        return 0;
    }
    /* Few tokens: powers of two and the midpoints between them. Many: kernels work in tiles of 8,
     * 12 or 16 tokens, so that times are stairs; programs will use any M on a stair, so its middle
     * is more representative than its end. */
    double wanted = sqrt((double)low * (double)high);
    int64_t mid_stair = (int64_t)(wanted / 8) * 8 + 4;
    if (wanted >= TND_MANY_TOKENS && mid_stair > low && mid_stair < high) {
        return mid_stair;
    }
    double nearest = INFINITY;
    int64_t best = 0;
    for (int64_t power = 1; power < high; power *= 2) {
        const int64_t tries[2] = {power, power + power / 2};
        for (int i = 0; i < 2; i++) {
            double distance = fabs(log2((double)tries[i] / wanted));
            if (tries[i] > low && tries[i] < high && distance < nearest) {
                nearest = distance;
                best = tries[i];
            }
        }
    }
    return best > 0 ? best : (int64_t)(wanted + 0.5);
}
