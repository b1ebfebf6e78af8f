/* SPDX-License-Identifier: MIT
 * Least-squares choice of group scales for the K-quants: per group several step widths around the
 * range are tried; for the levels that each gives, the best scale (and minimum) follow in closed
 * form, and the trial with the smallest squared error wins. Then the super-block's d and dmin are
 * fitted once more to the integers chosen. Every step stands NaN and infinities. Start at
 * tnd_fit_affine. */
#include <math.h>
#include <stddef.h>

#include "base/half.h"
#include "ggml-like/quant_fit.h"

/* Step widths tried, in tenths of a level more than the range holds. All are tried side by side, so
 * that compilers make vectors of them: LANES is the next multiple of four, the rest repeats. */
enum { TRIAL_FIRST = -9, TRIAL_STEP = 2, TRIALS = 10, LANES = 12 };

/* Nearest whole number in low..high; NaN becomes the one of them nearest to 0. Without branches and
 * calls (floorf may be one); low is 0 or less. */
static inline float nearest_whole(float value, float low, float high)
{
    float v = value != value ? 0.0f : value;
    v = low > v ? low : v;
    v = high < v ? high : v;
    v += 0.5f;
    const int whole = (int)v; /* towards 0; the range is small */
    return (float)(whole - ((float)whole > v));
}

static int nearest(float value, int low, int high)
{
    return (int)nearest_whole(value, (float)low, (float)high);
}

/* Levels per unit of each trial: (levels + tenths / 10) / width. */
static void trial_steps(float levels, float width, float steps[LANES])
{
    for (int t = 0; t < LANES; t++) {
        const int tenths = TRIAL_FIRST + TRIAL_STEP * (t < TRIALS ? t : 0);
        steps[t] = (levels + 0.1f * (float)tenths) / width;
    }
}

static float inverse(float value)
{
    return value != 0.0f ? 1.0f / value : 0.0f;
}

/* ---- affine: x = scale * level - min, scale and min >= 0 ---- */

struct affine {
    float scale, min;
};

/* Sums over a group; those with a level q are one a trial. */
struct sums {
    float x, xx;
    float q[LANES], qq[LANES], qx[LANES];
};

/* Adds one value to the sums, whose levels are those of `offset` times the steps. */
static inline void add_levels(struct sums *sums, float x, float offset, const float steps[LANES],
                              float low, float high)
{
    for (int t = 0; t < LANES; t++) {
        const float q = nearest_whole(offset * steps[t], low, high);
        sums->q[t] += q;
        sums->qq[t] += q * q;
        sums->qx[t] += q * x;
    }
}

/* Best scale and minimum for the levels of trial t, and their squared error. */
static float solve_affine(const struct sums *sums, int t, int n, struct affine *out)
{
    const float q = sums->q[t];
    const float qq = sums->qq[t];
    const float qx = sums->qx[t];
    float determinant = (float)n * qq - q * q;
    float scale = determinant > 0 ? ((float)n * qx - sums->x * q) / determinant : 0;
    float min = (scale * q - sums->x) / (float)n;
    if (!(min >= 0)) { /* the layout has no negative minimum: fit through the origin */
        min = 0;
        scale = qq > 0 ? qx / qq : 0;
    }
    out->scale = scale > 0 ? scale : 0;
    out->min = min;
    /* the error, multiplied out */
    scale = out->scale;
    return sums->xx + scale * scale * qq + min * min * (float)n - 2 * scale * qx +
           2 * min * sums->x - 2 * scale * min * q;
}

static struct affine fit_group_affine(const float *x, int n, int top)
{
    float low = 0;
    float high = x[0];
    for (int i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    struct affine best = {0, -low};
    float width = high - low;
    if (!(width > 0) || isinf(width)) {
        return best;
    }
    struct sums sums = {0};
    float steps[LANES];
    trial_steps((float)top, width, steps);
    for (int i = 0; i < n; i++) {
        add_levels(&sums, x[i], x[i] - low, steps, 0.0f, (float)top);
        sums.x += x[i];
        sums.xx += x[i] * x[i];
    }
    float best_error = INFINITY;
    for (int t = 0; t < TRIALS; t++) {
        struct affine trial;
        float error = solve_affine(&sums, t, n, &trial);
        if (error < best_error) {
            best_error = error;
            best = trial;
        }
    }
    return best;
}

/* Levels for the scales and minima as stored; returns the squared error. */
static double affine_levels(const float *x, int group, int top, struct tnd_fit *fit)
{
    float d = tnd_f16_to_f32(fit->d);
    float dmin = tnd_f16_to_f32(fit->dmin);
    double error = 0;
    for (int g = 0; g < TND_FIT_VALUES / group; g++) {
        float scale = d * (float)fit->scale[g];
        float min = dmin * (float)fit->min[g];
        float steps = inverse(scale);
        for (int i = g * group; i < (g + 1) * group; i++) {
            fit->level[i] = nearest((x[i] + min) * steps, 0, top);
            double difference = (double)(scale * (float)fit->level[i] - min) - (double)x[i];
            error += difference * difference;
        }
    }
    return error;
}

/* d and dmin of least squared error for the integers in `fit`; false when not unique. */
static int refit_affine(const float *x, int group, struct tnd_fit *fit)
{
    double aa = 0;
    double ab = 0;
    double bb = 0;
    double ax = 0;
    double bx = 0;
    for (int i = 0; i < TND_FIT_VALUES; i++) {
        double a = (double)fit->scale[i / group] * fit->level[i];
        double b = -(double)fit->min[i / group];
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ax += a * (double)x[i];
        bx += b * (double)x[i];
    }
    double determinant = aa * bb - ab * ab;
    if (!(determinant > 1e-6 * aa * bb)) {
        return 0;
    }
    double d = (ax * bb - bx * ab) / determinant;
    double dmin = (bx * aa - ax * ab) / determinant;
    if (!(d > 0 && d < 65504 && dmin >= 0 && dmin < 65504)) {
        return 0;
    }
    fit->d = tnd_f32_to_f16((float)d);
    fit->dmin = tnd_f32_to_f16((float)dmin);
    return 1;
}

void tnd_fit_affine(const float *x, int group, int level_top, int scale_top, struct tnd_fit *out)
{
    struct affine groups[TND_FIT_GROUPS_MAX];
    int n_groups = TND_FIT_VALUES / group;
    float max_scale = 0;
    float max_min = 0;
    for (int g = 0; g < n_groups; g++) {
        groups[g] = fit_group_affine(x + g * group, group, level_top);
        max_scale = groups[g].scale > max_scale ? groups[g].scale : max_scale;
        max_min = groups[g].min > max_min ? groups[g].min : max_min;
    }
    out->d = tnd_f32_to_f16(max_scale / (float)scale_top);
    out->dmin = tnd_f32_to_f16(max_min / (float)scale_top);
    float to_scale = inverse(tnd_f16_to_f32(out->d));
    float to_min = inverse(tnd_f16_to_f32(out->dmin));
    for (int g = 0; g < n_groups; g++) {
        out->scale[g] = nearest(groups[g].scale * to_scale, 0, scale_top);
        out->min[g] = nearest(groups[g].min * to_min, 0, scale_top);
    }
    double error = affine_levels(x, group, level_top, out);
    struct tnd_fit refined = *out;
    if (refit_affine(x, group, &refined) && affine_levels(x, group, level_top, &refined) < error) {
        *out = refined;
    }
}

/* ---- symmetric: x = scale * level, level in low..-low-1, scale of either sign ---- */

static float fit_group_symmetric(const float *x, int n, int level_low)
{
    float extreme = x[0];
    for (int i = 1; i < n; i++) {
        extreme = fabsf(x[i]) > fabsf(extreme) ? x[i] : extreme;
    }
    if (!(fabsf(extreme) > 0) || isinf(extreme)) {
        return 0;
    }
    struct sums sums = {0};
    float steps[LANES];
    /* the extreme value takes the low end, which reaches one level further */
    trial_steps((float)level_low, extreme, steps);
    for (int i = 0; i < n; i++) {
        add_levels(&sums, x[i], x[i], steps, (float)level_low, (float)(-level_low - 1));
    }
    float best_scale = 0;
    float best_gain = 0;
    for (int t = 0; t < TRIALS; t++) {
        /* squared error = sum x^2 - gain, at the best scale */
        const float qq = sums.qq[t];
        const float qx = sums.qx[t];
        float gain = qq > 0 ? qx * qx / qq : 0;
        if (gain > best_gain) {
            best_gain = gain;
            best_scale = qx / qq;
        }
    }
    return best_scale;
}

static double symmetric_levels(const float *x, int level_low, struct tnd_fit *fit)
{
    float d = tnd_f16_to_f32(fit->d);
    double error = 0;
    for (int g = 0; g < TND_FIT_GROUPS_MAX; g++) {
        float scale = d * (float)fit->scale[g];
        float steps = inverse(scale);
        for (int i = g * 16; i < (g + 1) * 16; i++) {
            fit->level[i] = nearest(x[i] * steps, level_low, -level_low - 1);
            double difference = (double)(scale * (float)fit->level[i]) - (double)x[i];
            error += difference * difference;
        }
    }
    return error;
}

static int refit_symmetric(const float *x, struct tnd_fit *fit)
{
    double aa = 0;
    double ax = 0;
    for (int i = 0; i < TND_FIT_VALUES; i++) {
        double a = (double)fit->scale[i / 16] * fit->level[i];
        aa += a * a;
        ax += a * (double)x[i];
    }
    double d = aa > 0 ? ax / aa : 0;
    if (!(fabs(d) > 0 && fabs(d) < 65504)) {
        return 0;
    }
    fit->d = tnd_f32_to_f16((float)d);
    return 1;
}

void tnd_fit_symmetric(const float *x, int level_low, int scale_low, struct tnd_fit *out)
{
    float scales[TND_FIT_GROUPS_MAX];
    float extreme = 0;
    for (int g = 0; g < TND_FIT_GROUPS_MAX; g++) {
        scales[g] = fit_group_symmetric(x + g * 16, 16, level_low);
        extreme = fabsf(scales[g]) > fabsf(extreme) ? scales[g] : extreme;
    }
    out->dmin = 0;
    out->d = tnd_f32_to_f16(extreme / (float)scale_low);
    float to_scale = inverse(tnd_f16_to_f32(out->d));
    for (int g = 0; g < TND_FIT_GROUPS_MAX; g++) {
        out->min[g] = 0;
        out->scale[g] = nearest(scales[g] * to_scale, scale_low, -scale_low - 1);
    }
    double error = symmetric_levels(x, level_low, out);
    struct tnd_fit refined = *out;
    if (refit_symmetric(x, &refined) && symmetric_levels(x, level_low, &refined) < error) {
        *out = refined;
    }
}
