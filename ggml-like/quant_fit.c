/* SPDX-License-Identifier: MIT
 * Least-squares choice of group scales for the K-quants, in three steps. (1) For each group,
 * several step widths around its range are tried; for the levels that each gives, the best scale
 * (and minimum) follow in closed form. (2) The scales become integers times the super-block's d and
 * dmin: of the integers around each group's scale, those with the least error are chosen. (3) d and
 * dmin are fitted again to the chosen integers and levels. Errors are weighted, see
 * tnd_fit_weigh(). Every step tolerates NaN and infinities. Start at tnd_fit_affine. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/half.h"
#include "ggml-like/quant_fit.h"

/* Candidates are computed side by side, so that compilers vectorise over them. */
enum { LANES = 12 };

/* Candidates of step 1. `tenths`: by how many tenths of a level the range is wider than the levels;
 * `begin`: the level of the range's low end; `part`: the range begins at this part of its low end,
 * because when one value is far below the others, the others are best served by sharing a level
 * less. The first candidate wins unless another is clearly better, so that similar groups get
 * similar scales. Chosen by trial over normal, heavy-tailed, sparse and constant rows with outliers
 * (tools/judges/quants.py). */
static const struct candidate {
    float tenths, begin, part;
} affine_list[LANES] = {{0, 0, 1},      {-2, 0, 1},    {2, 0, 1},     {-4, 0, 1},
                        {4, 0, 1},      {-7, 0, 1},    {7, 0, 1},     {-10, 0, 1},
                        {0, -0.25f, 1}, {0, 0.25f, 1}, {0, 0.45f, 1}, {0, 0, 0.5f}};
static const float symmetric_tenths[LANES] = {0, -1, 1, -3, 3, -5, 5, -7, 7, -9, 9, 11};

/* Errors that differ by less than this part of sum w x^2 differ by rounding only. */
#define CLEARLY 1e-5f

/* If step 2 raises the error to more than this multiple, OTHER_UNITS other values of d are
 * tried. */
#define COARSE      1.25
#define OTHER_UNITS 8

/* Nearest integer in low..high, whose magnitudes are below 2^21; halves go to the even one. Adding
 * 1.5 x 2^23 rounds to integers. NaN becomes `low`. Without branches and calls. */
static inline float nearest_whole(float value, float low, float high)
{
    const float magic = 12582912.0f;
    float v = value > low ? value : low;
    v = v < high ? v : high;
    return (v + magic) - magic;
}

static int nearest(float value, int low, int high)
{
    return (int)nearest_whole(value, (float)low, (float)high);
}

static float inverse(float value)
{
    return value != 0.0f ? 1.0f / value : 0.0f;
}

/* The block that is fitted. */
struct block {
    const float *x;
    float w[TND_FIT_VALUES]; /* weight of each value's squared error */
    int group;               /* values per group */
    float low, high;         /* lowest and highest level */
};

/* Importance divided by its mean; 1 if no value is important. */
static void scale_importance(const float *importance, int n, float *w)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        w[i] = importance != NULL && importance[i] > 0 && importance[i] < 1e30f ? importance[i] : 0;
        sum += (double)w[i];
    }
    const float scale = sum > 1e-30 ? (float)((double)n / sum) : 0.0f;
    for (int i = 0; i < n; i++) {
        w[i] = scale > 0 ? w[i] * scale : 1.0f;
    }
}

void tnd_fit_weigh(const float *x, const float *importance, int n, float *w)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    const double mean = sum / n;
    const bool is_usable = mean > 1e-60 && mean < 1e60;
    const float scale = is_usable ? (float)(1.0 / mean) : 0.0f;
    scale_importance(importance, n, w);
    for (int i = 0; i < n; i++) {
        w[i] *= sqrtf(1.0f + x[i] * x[i] * scale);
    }
}

/* Sums over a group; those over levels q have one value per candidate. */
struct sums {
    float w, x, xx;
    float q[LANES], qq[LANES], qx[LANES];
};

/* Adds values to the sums, with the levels that (x + shift) * step gives for each candidate. */
static void add_levels(const struct block *block, int begin, const float shifts[LANES],
                       const float steps[LANES], struct sums *sums)
{
    for (int i = begin; i < begin + block->group; i++) {
        const float x = block->x[i];
        const float w = block->w[i];
        const float wx = w * x;
        sums->w += w;
        sums->x += wx;
        sums->xx += wx * x;
        for (int t = 0; t < LANES; t++) {
            const float q = nearest_whole((x + shifts[t]) * steps[t], block->low, block->high);
            sums->q[t] += w * q;
            sums->qq[t] += w * q * q;
            sums->qx[t] += wx * q;
        }
    }
}

/* The candidate of least error if it is clearly the least, else the first one. */
static int best_of(const float errors[LANES], float clearly)
{
    int best = 0;
    for (int t = 1; t < LANES; t++) {
        best = errors[t] < errors[best] - clearly ? t : best;
    }
    return best;
}

/* ---- affine: x = scale * level - min, scale and min >= 0 ---- */

struct affine {
    float scale, min;
    float error;
};

/* Best scale and minimum for the levels of candidate t, with their squared error. */
static struct affine solve_affine(const struct sums *sums, int t)
{
    const float q = sums->q[t];
    const float qq = sums->qq[t];
    const float qx = sums->qx[t];
    const float determinant = sums->w * qq - q * q;
    struct affine out;
    float scale = determinant > 0 ? (sums->w * qx - sums->x * q) / determinant : 0;
    float min = (scale * q - sums->x) / sums->w;
    if (!(min >= 0)) { /* the layout has no negative minimum: fit a line through the origin */
        min = 0;
        scale = qq > 0 ? qx / qq : 0;
    }
    scale = scale > 0 ? scale : 0;
    out.scale = scale;
    out.min = min;
    /* the squared error, expanded */
    out.error = sums->xx + scale * scale * qq + min * min * sums->w - 2 * scale * qx +
                2 * min * sums->x - 2 * scale * min * q;
    return out;
}

static struct affine fit_group_affine(const struct block *block, int begin)
{
    float low = 0;
    float high = block->x[begin];
    for (int i = begin; i < begin + block->group; i++) {
        low = block->x[i] < low ? block->x[i] : low;
        high = block->x[i] > high ? block->x[i] : high;
    }
    struct affine trials[LANES] = {{0, -low, 0}};
    const float width = high - low;
    if (!(width > 0) || isinf(width)) {
        return trials[0];
    }
    struct sums sums = {0};
    float shifts[LANES];
    float steps[LANES];
    float errors[LANES];
    for (int t = 0; t < LANES; t++) {
        const struct candidate *c = &affine_list[t];
        const float first = low * c->part;
        steps[t] = (block->high + 0.1f * c->tenths) / (high > first ? high - first : width);
        shifts[t] = c->begin / steps[t] - first;
    }
    add_levels(block, begin, shifts, steps, &sums);
    for (int t = 0; t < LANES; t++) {
        trials[t] = solve_affine(&sums, t);
        errors[t] = trials[t].error;
    }
    return trials[best_of(errors, CLEARLY * sums.xx)];
}

/* Chooses the integers of a group for the d and dmin in `fit`: the best of twelve pairs around
 * those of `ideal`. Returns its error. */
static float choose_affine(const struct block *block, int g, const struct affine *ideal,
                           int scale_top, struct tnd_fit *fit)
{
    const float d = tnd_f16_to_f32(fit->d);
    const float dmin = tnd_f16_to_f32(fit->dmin);
    const float wanted = ideal->scale * inverse(d);
    const int scale_near = nearest(wanted, 0, scale_top);
    const int min_near = nearest(ideal->min * inverse(dmin), 0, scale_top);
    const int scale_first = scale_near - ((float)scale_near > wanted ? 2 : 1);
    int scale[LANES];
    int min[LANES];
    float scales[LANES];
    float mins[LANES];
    float steps[LANES];
    float errors[LANES] = {0};
    for (int t = 0; t < LANES; t++) {
        scale[t] = nearest((float)(scale_first + t % 4), 0, scale_top);
        min[t] = nearest((float)(min_near + t / 4 - 1), 0, scale_top);
        scales[t] = d * (float)scale[t];
        mins[t] = dmin * (float)min[t];
        steps[t] = inverse(scales[t]);
    }
    for (int i = g * block->group; i < (g + 1) * block->group; i++) {
        const float x = block->x[i];
        const float w = block->w[i];
        for (int t = 0; t < LANES; t++) {
            const float q = nearest_whole((x + mins[t]) * steps[t], block->low, block->high);
            const float difference = scales[t] * q - mins[t] - x;
            errors[t] += w * difference * difference;
        }
    }
    int best = 4 + scale_near - scale_first;
    for (int t = 0; t < LANES; t++) {
        best = errors[t] < errors[best] ? t : best;
    }
    fit->scale[g] = scale[best];
    fit->min[g] = min[best];
    return errors[best];
}

/* Chooses levels for the scales and minima as stored; returns the squared error. */
static double affine_levels(const struct block *block, struct tnd_fit *fit)
{
    const float d = tnd_f16_to_f32(fit->d);
    const float dmin = tnd_f16_to_f32(fit->dmin);
    double error = 0;
    for (int g = 0; g < TND_FIT_VALUES / block->group; g++) {
        const float scale = d * (float)fit->scale[g];
        const float min = dmin * (float)fit->min[g];
        const float steps = inverse(scale);
        for (int i = g * block->group; i < (g + 1) * block->group; i++) {
            const float q = nearest_whole((block->x[i] + min) * steps, block->low, block->high);
            const double difference = (double)(scale * q - min) - (double)block->x[i];
            fit->level[i] = (int)q;
            error += (double)block->w[i] * difference * difference;
        }
    }
    return error;
}

/* d and dmin of least squared error for the integers in `fit`; false if they are not unique. */
static bool refit_affine(const struct block *block, struct tnd_fit *fit)
{
    double aa = 0;
    double ab = 0;
    double bb = 0;
    double ax = 0;
    double bx = 0;
    for (int i = 0; i < TND_FIT_VALUES; i++) {
        const double w = (double)block->w[i];
        const double a = (double)(fit->scale[i / block->group] * fit->level[i]);
        const double b = -(double)fit->min[i / block->group];
        aa += w * a * a;
        ab += w * a * b;
        bb += w * b * b;
        ax += w * a * (double)block->x[i];
        bx += w * b * (double)block->x[i];
    }
    const double determinant = aa * bb - ab * ab;
    double d = 0;
    double dmin = 0;
    if (determinant > 1e-6 * aa * bb) {
        d = (ax * bb - bx * ab) / determinant;
        dmin = (bx * aa - ax * ab) / determinant;
    } else if (bb == 0 && aa > 0) {
        d = ax / aa;
    }
    if (!(d > 0 && d < 65504 && dmin >= 0 && dmin < 65504)) {
        return false;
    }
    fit->d = tnd_f32_to_f16((float)d);
    fit->dmin = tnd_f32_to_f16((float)dmin);
    return true;
}

/* Steps 2 and 3 for one choice of d and dmin; keeps the result in `out` if it is better. */
static void try_affine(const struct block *block, const struct affine *groups, int scale_top,
                       float d, float dmin, struct tnd_fit *out, double *best)
{
    struct tnd_fit fit = *out;
    fit.d = tnd_f32_to_f16(d);
    fit.dmin = tnd_f32_to_f16(dmin);
    for (int g = 0; g < TND_FIT_VALUES / block->group; g++) {
        (void)choose_affine(block, g, &groups[g], scale_top, &fit);
    }
    for (int i = 0; i < 2; i++) {
        const double error = affine_levels(block, &fit);
        if (error < *best) {
            *best = error;
            *out = fit;
        }
        if (i == 0 && !refit_affine(block, &fit)) {
            break;
        }
    }
}

void tnd_fit_affine(const float *x, const float *importance, int group, int level_top,
                    int scale_top, struct tnd_fit *out)
{
    struct block block = {.x = x, .group = group, .low = 0, .high = (float)level_top};
    struct affine groups[TND_FIT_GROUPS_MAX] = {{0}};
    float max_scale = 0;
    float max_min = 0;
    double ideal = 0;
    tnd_fit_weigh(x, importance, TND_FIT_VALUES, block.w);
    for (int g = 0; g < TND_FIT_VALUES / group; g++) {
        groups[g] = fit_group_affine(&block, g * group);
        max_scale = groups[g].scale > max_scale ? groups[g].scale : max_scale;
        max_min = groups[g].min > max_min ? groups[g].min : max_min;
        ideal += groups[g].error > 0 ? (double)groups[g].error : 0;
    }
    double best = INFINITY;
    *out = (struct tnd_fit){0};
    try_affine(&block, groups, scale_top, max_scale / (float)scale_top, max_min / (float)scale_top,
               out, &best);
    /* with very different groups, the largest scale leaves too few integers to the others */
    for (int i = 1; i <= OTHER_UNITS && best > COARSE * ideal; i++) {
        try_affine(&block, groups, scale_top, max_scale / (float)(scale_top - i),
                   max_min / (float)scale_top, out, &best);
    }
}

/* ---- symmetric: x = scale * level, level in low..-low-1, scale of either sign ---- */

/* Best scale of a group; adds its squared error to *error. */
static float fit_group_symmetric(const struct block *block, int begin, double *error)
{
    float extreme = block->x[begin];
    for (int i = begin; i < begin + block->group; i++) {
        extreme = fabsf(block->x[i]) > fabsf(extreme) ? block->x[i] : extreme;
    }
    if (!(fabsf(extreme) > 0) || isinf(extreme)) {
        return 0;
    }
    struct sums sums = {0};
    const float shifts[LANES] = {0};
    float steps[LANES];
    float errors[LANES];
    for (int t = 0; t < LANES; t++) {
        /* the extreme value gets the low end, which has one more level */
        steps[t] = (block->low + 0.1f * symmetric_tenths[t]) / extreme;
    }
    add_levels(block, begin, shifts, steps, &sums);
    for (int t = 0; t < LANES; t++) {
        /* error with the best scale, minus sum w x^2 */
        errors[t] = sums.qq[t] > 0 ? -sums.qx[t] * sums.qx[t] / sums.qq[t] : 0;
    }
    const int t = best_of(errors, CLEARLY * sums.xx);
    *error += sums.xx + errors[t] > 0 ? (double)(sums.xx + errors[t]) : 0;
    return sums.qq[t] > 0 ? sums.qx[t] / sums.qq[t] : 0;
}

/* As choose_affine: chooses among the integers around the scale. */
static void choose_symmetric(const struct block *block, int g, float ideal, int scale_low,
                             struct tnd_fit *fit)
{
    const float d = tnd_f16_to_f32(fit->d);
    const int near = nearest(ideal * inverse(d), scale_low, -scale_low - 1);
    int scale[LANES];
    float scales[LANES];
    float steps[LANES];
    float errors[LANES] = {0};
    for (int t = 0; t < 4; t++) {
        scale[t] = nearest((float)(near + t - 1), scale_low, -scale_low - 1);
        scales[t] = d * (float)scale[t];
        steps[t] = inverse(scales[t]);
    }
    for (int i = g * block->group; i < (g + 1) * block->group; i++) {
        for (int t = 0; t < 4; t++) {
            const float q = nearest_whole(block->x[i] * steps[t], block->low, block->high);
            const float difference = scales[t] * q - block->x[i];
            errors[t] += block->w[i] * difference * difference;
        }
    }
    int best = 1;
    for (int t = 0; t < 4; t++) {
        best = errors[t] < errors[best] ? t : best;
    }
    fit->scale[g] = scale[best];
}

static double symmetric_levels(const struct block *block, struct tnd_fit *fit)
{
    const float d = tnd_f16_to_f32(fit->d);
    double error = 0;
    for (int g = 0; g < TND_FIT_GROUPS_MAX; g++) {
        const float scale = d * (float)fit->scale[g];
        const float steps = inverse(scale);
        for (int i = g * block->group; i < (g + 1) * block->group; i++) {
            const float q = nearest_whole(block->x[i] * steps, block->low, block->high);
            const double difference = (double)(scale * q) - (double)block->x[i];
            fit->level[i] = (int)q;
            error += (double)block->w[i] * difference * difference;
        }
    }
    return error;
}

static bool refit_symmetric(const struct block *block, struct tnd_fit *fit)
{
    double aa = 0;
    double ax = 0;
    for (int i = 0; i < TND_FIT_VALUES; i++) {
        const double a = (double)(fit->scale[i / block->group] * fit->level[i]);
        aa += (double)block->w[i] * a * a;
        ax += (double)block->w[i] * a * (double)block->x[i];
    }
    const double d = aa > 0 ? ax / aa : 0;
    if (!(fabs(d) > 0 && fabs(d) < 65504)) {
        return false;
    }
    fit->d = tnd_f32_to_f16((float)d);
    return true;
}

/* As try_affine. */
static void try_symmetric(const struct block *block, const float *scales, int scale_low, float d,
                          struct tnd_fit *out, double *best)
{
    struct tnd_fit fit = *out;
    fit.d = tnd_f32_to_f16(d);
    for (int g = 0; g < TND_FIT_GROUPS_MAX; g++) {
        choose_symmetric(block, g, scales[g], scale_low, &fit);
    }
    for (int i = 0; i < 2; i++) {
        const double error = symmetric_levels(block, &fit);
        if (error < *best) {
            *best = error;
            *out = fit;
        }
        if (i == 0 && !refit_symmetric(block, &fit)) {
            break;
        }
    }
}

void tnd_fit_symmetric(const float *x, const float *importance, int level_low, int scale_low,
                       struct tnd_fit *out)
{
    struct block block = {
        .x = x, .group = 16, .low = (float)level_low, .high = (float)(-level_low - 1)};
    float scales[TND_FIT_GROUPS_MAX];
    float extreme = 0;
    double ideal = 0;
    tnd_fit_weigh(x, importance, TND_FIT_VALUES, block.w);
    for (int g = 0; g < TND_FIT_GROUPS_MAX; g++) {
        scales[g] = fit_group_symmetric(&block, g * 16, &ideal);
        extreme = fabsf(scales[g]) > fabsf(extreme) ? scales[g] : extreme;
    }
    double best = INFINITY;
    *out = (struct tnd_fit){0};
    try_symmetric(&block, scales, scale_low, extreme / (float)scale_low, out, &best);
    for (int i = 1; i <= OTHER_UNITS && best > COARSE * ideal; i++) {
        try_symmetric(&block, scales, scale_low, extreme / (float)(scale_low + i), out, &best);
    }
}
