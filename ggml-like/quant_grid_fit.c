/* SPDX-License-Identifier: MIT
 * Encoding for the grids of IQ1, IQ2 and IQ3. With weights w, a grid point g and a scale s, the
 * error of some values is sum w (x - s g)^2 = sum w x^2 + s (s B - 2 A), A = sum w x g, B = sum w
 * g^2: sums by digit are computed once for all scales that are tried. (1) For each group, the scale
 * whose points give the least error at their own best scale. (2) Scales become odd integers times
 * d; of the integers around each group's scale, the best. (3) d is fitted again to the chosen
 * points. Signs are those of the values; if the number of signs has to be even, the least important
 * value gets the wrong one. Every step tolerates NaN and infinities. */
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "ggml-like/quant.h"
#include "ggml-like/quant_fit.h"
#include "ggml-like/quant_grid.h"

enum {
    VALUES = TND_GRID_VALUES,
    UNITS = VALUES / 8,
    LANES = 16, /* scales that are tried per group */
    AROUND = 5  /* integers that are tried for a group's scale */
};

/* Properties of a type. */
struct kind {
    enum tnd_grid_name grid;
    void (*need)(void); /* builds the list of near points */
    bool is_even;       /* an even number of signs per 8 values */
    bool is_shifted;    /* IQ1: values are 8 g + 1 or 8 g - 1; points include signs */
    int shift_values;   /* values that share a shift */
    int group;          /* values that share a scale */
    int scale_top;      /* scales go up to 2 * scale_top + 1 */
    float unit;         /* as in tnd_grid_values */
    float first, step;  /* scales to try: multiples of the grid's maximum at the top */
};

/* The encoding chosen for a block. */
struct choice {
    uint16_t d;
    int scale[16];
    int point[VALUES / 4]; /* for each `width` values */
    uint8_t signs[UNITS];
    int shift[UNITS]; /* -1 or 1 */
};

/* The block that is encoded. */
struct block {
    const struct kind *kind;
    const struct tnd_grid *grid;
    float x[VALUES]; /* magnitudes, negative where the sign is wrong; IQ1: the values */
    float w[VALUES];
};

/* ---- near points ---- */

/* If the digits nearest to the values form a grid point, they are the best choice. If not, the NEAR
 * grid points at the least distance from them, in digits, are compared. */
enum { NEAR = 24, CODES_MAX = 6561, PARTS_MAX = 81 };
struct near {
    int16_t point[CODES_MAX]; /* -1: none */
    uint16_t list[CODES_MAX][NEAR];
};
static struct near near_of[TND_GRIDS];

static int parts_of(const struct tnd_grid *grid)
{
    return grid->width == 8 ? 81 : 64; /* base^(width / 2) */
}

/* Squared distance of two halves of a point's digits. */
static int half_distance(const struct tnd_grid *grid, int a, int b)
{
    int sum = 0;
    for (int j = 0; j < grid->width / 2; j++, a /= grid->base, b /= grid->base) {
        const int difference = a % grid->base - b % grid->base;
        sum += difference * difference;
    }
    return sum;
}

static void list_near(const struct tnd_grid *grid, uint8_t distances[PARTS_MAX][PARTS_MAX],
                      int code, uint16_t list[NEAR])
{
    enum { FAR = 2 * 98 + 1 }; /* above all distances */
    const int parts = parts_of(grid);
    const uint8_t *low = distances[code % parts];
    const uint8_t *high = distances[code / parts];
    int begin[FAR + 1] = {0}; /* by distance: where its points would begin in a full list */
    for (int i = 0; i < grid->n; i++) {
        begin[low[grid->codes[i] % parts] + high[grid->codes[i] / parts] + 1]++;
    }
    for (int d = 0; d < FAR; d++) {
        begin[d + 1] += begin[d];
    }
    for (int i = 0; i < grid->n; i++) {
        const int at = begin[low[grid->codes[i] % parts] + high[grid->codes[i] / parts]]++;
        if (at < NEAR) {
            list[at] = (uint16_t)i;
        }
    }
}

static void make_near(enum tnd_grid_name name)
{
    const struct tnd_grid *grid = tnd_grid(name);
    const int parts = parts_of(grid);
    struct near *near = &near_of[name];
    uint8_t distances[PARTS_MAX][PARTS_MAX];
    for (int a = 0; a < parts * parts; a++) {
        distances[a / parts][a % parts] = (uint8_t)half_distance(grid, a / parts, a % parts);
    }
    for (int code = 0; code < parts * parts; code++) {
        near->point[code] = -1;
    }
    for (int i = 0; i < grid->n; i++) {
        near->point[grid->codes[i]] = (int16_t)i;
    }
    for (int code = 0; code < parts * parts; code++) {
        if (near->point[code] < 0) {
            list_near(grid, distances, code, near->list[code]);
        }
    }
}

#define NEAR_GRID(NAME)                                                                            \
    static pthread_once_t once_##NAME = PTHREAD_ONCE_INIT;                                         \
    static void make_##NAME(void)                                                                  \
    {                                                                                              \
        make_near(TND_GRID_##NAME);                                                                \
    }                                                                                              \
    static void need_##NAME(void)                                                                  \
    {                                                                                              \
        pthread_once(&once_##NAME, make_##NAME);                                                   \
    }
NEAR_GRID(IQ2_XXS)
NEAR_GRID(IQ2_XS)
NEAR_GRID(IQ2_S)
NEAR_GRID(IQ1)
NEAR_GRID(IQ3_XXS)
NEAR_GRID(IQ3_S)

/* ---- sums over points ---- */

/* A and B of all points for `width` values from i on, separately for each half of the digits. */
struct sums {
    float a[2][PARTS_MAX], b[2][PARTS_MAX];
};

static void add_halves(const struct block *block, int i, int shift, struct sums *sums)
{
    const struct tnd_grid *grid = block->grid;
    for (int h = 0; h < 2; h++) {
        int n = 1; /* number of sums so far, the first digit running fastest */
        sums->a[h][0] = 0;
        sums->b[h][0] = 0;
        for (int j = 0; j < grid->width / 2; j++, n *= grid->base) {
            const int at = i + h * grid->width / 2 + j;
            for (int digit = grid->base - 1; digit >= 0; digit--) {
                const float g = (float)(grid->magnitudes[digit] + shift);
                const float b = block->w[at] * g;
                const float a = b * block->x[at];
                for (int p = 0; p < n; p++) {
                    sums->a[h][digit * n + p] = sums->a[h][p] + a;
                    sums->b[h][digit * n + p] = sums->b[h][p] + b * g;
                }
            }
        }
    }
}

/* The code of the digits nearest to `width` values at a scale, given as its inverse. */
static int nearest_digits(const struct block *block, int i, int shift, float inverse)
{
    const struct tnd_grid *grid = block->grid;
    int code = 0;
    for (int j = grid->width - 1; j >= 0; j--) {
        const float twice = 2 * (block->x[i + j] * inverse - (float)shift);
        int digit = 0;
        for (int d = 1; d < grid->base; d++) {
            digit += twice > (float)(grid->magnitudes[d - 1] + grid->magnitudes[d]) ? 1 : 0;
        }
        code = code * grid->base + digit;
    }
    return code;
}

struct best {
    int point;
    float a, b;
    float error; /* without sum w x^2 */
};

static struct best find_point(const struct block *block, const struct sums *sums, int code,
                              float scale)
{
    const struct tnd_grid *grid = block->grid;
    const struct near *near = &near_of[block->kind->grid];
    const int parts = parts_of(grid);
    const bool is_point = near->point[code] >= 0;
    struct best best = {.error = INFINITY};
    for (int k = 0; k < (is_point ? 1 : NEAR); k++) {
        const int point = is_point ? near->point[code] : near->list[code][k];
        const int low = grid->codes[point] % parts;
        const int high = grid->codes[point] / parts;
        const float a = sums->a[0][low] + sums->a[1][high];
        const float b = sums->b[0][low] + sums->b[1][high];
        const float error = scale * (scale * b - 2 * a);
        if (error < best.error || k == 0) {
            best = (struct best){point, a, b, error};
        }
    }
    return best;
}

/* For each scale tried: points, shifts and error of a group, or of the part of it that shares a
 * shift. */
struct trial {
    int point[8][LANES]; /* for each `width` values */
    int shift[4][LANES]; /* for each 8 values */
    float a[LANES], b[LANES];
    float error[LANES];
};

/* Tries scales for `n` values from i on with one shift; stores them in `out` after its first `done`
 * values. */
static void try_values(const struct block *block, int i, int n, int shift, int done,
                       const float *scales, int n_scales, struct trial *out)
{
    struct sums sums;
    const int width = block->grid->width;
    for (int k = 0; k < n; k += width) {
        add_halves(block, i + k, shift, &sums);
        for (int t = 0; t < n_scales; t++) {
            const float inverse = scales[t] > 0 ? 1.0f / scales[t] : 0.0f;
            const int code = nearest_digits(block, i + k, shift, inverse);
            const struct best best = find_point(block, &sums, code, scales[t]);
            out->point[(done + k) / width][t] = best.point;
            out->shift[(done + k) / 8][t] = shift;
            out->a[t] += best.a;
            out->b[t] += best.b;
            out->error[t] += best.error;
        }
    }
}

/* Copies one lane of `from`, the result for the other shift, for the `n` values after the first
 * `done`. */
static void take_lane(const struct trial *from, int t, int done, int n, int width, struct trial *to)
{
    for (int k = 0; k < n; k += width) {
        to->point[(done + k) / width][t] = from->point[(done + k) / width][t];
        to->shift[(done + k) / 8][t] = from->shift[(done + k) / 8][t];
    }
    to->a[t] = from->a[t];
    to->b[t] = from->b[t];
    to->error[t] = from->error[t];
}

static void try_group(const struct block *block, int i, const float *scales, int n_scales,
                      struct trial *out)
{
    const struct kind *kind = block->kind;
    memset(out, 0, sizeof(*out));
    if (!kind->is_shifted) {
        try_values(block, i, kind->group, 0, 0, scales, n_scales, out);
        return;
    }
    for (int done = 0; done < kind->group; done += kind->shift_values) {
        struct trial other = *out;
        try_values(block, i + done, kind->shift_values, 1, done, scales, n_scales, out);
        try_values(block, i + done, kind->shift_values, -1, done, scales, n_scales, &other);
        for (int t = 0; t < n_scales; t++) {
            if (other.error[t] < out->error[t]) {
                take_lane(&other, t, done, kind->shift_values, 8, out);
            }
        }
    }
}

/* ---- a block ---- */

/* The scale of least error for a group; 0 if there is none. */
static float fit_group(const struct block *block, int i)
{
    const struct kind *kind = block->kind;
    const struct tnd_grid *grid = block->grid;
    const float shift = kind->is_shifted ? 1.0f : 0.0f;
    const float grid_top = (float)grid->magnitudes[grid->base - 1] + shift;
    float top = 0;
    float scales[LANES];
    struct trial trial;
    for (int k = 0; k < kind->group; k++) {
        top = fabsf(block->x[i + k]) > top ? fabsf(block->x[i + k]) : top;
    }
    if (!(top > 0) || isinf(top)) {
        return 0;
    }
    for (int t = 0; t < LANES; t++) { /* also those that put the top at a digit */
        const float part = t < grid->base - 1
                               ? fabsf((float)grid->magnitudes[t] + shift) / grid_top
                               : kind->first + kind->step * (float)(t - grid->base + 1);
        scales[t] = top / (grid_top * part);
    }
    try_group(block, i, scales, LANES, &trial);
    float best = 0;
    float best_gain = 0;
    for (int t = 0; t < LANES; t++) {
        const float gain = trial.b[t] > 0 ? trial.a[t] * trial.a[t] / trial.b[t] : 0;
        if (trial.a[t] > 0 && gain > best_gain * 1.00001f) {
            best_gain = gain;
            best = trial.a[t] / trial.b[t];
        }
    }
    return best;
}

static int clamp_scale(float value, int top)
{
    return !(value > 0) ? 0 : value < (float)top ? (int)(value + 0.5f) : top;
}

/* Chooses the odd integer scale of a group, its points and shifts. */
static void choose_group(const struct block *block, int g, float wanted, float unit,
                         struct choice *out)
{
    const struct kind *kind = block->kind;
    const int width = block->grid->width;
    const int i = g * kind->group;
    const float ratio = unit > 0 ? wanted / unit : 0;
    const int near = clamp_scale(0.5f * (ratio - 1), kind->scale_top);
    float scales[AROUND];
    struct trial trial;
    int best = 0;
    for (int t = 0; t < AROUND; t++) {
        static const int around[AROUND] = {0, -1, 1, -2, 2};
        const int scale = near + around[t];
        const bool fits = scale >= 0 && scale <= kind->scale_top;
        scales[t] = unit * (float)(2 * (fits ? scale : near) + 1);
    }
    try_group(block, i, scales, AROUND, &trial);
    for (int t = 1; t < AROUND; t++) {
        best = trial.error[t] < trial.error[best] ? t : best;
    }
    out->scale[g] = unit > 0 ? clamp_scale(0.5f * (scales[best] / unit - 1), kind->scale_top) : 0;
    for (int k = 0; k < kind->group; k += width) {
        out->point[(i + k) / width] = trial.point[k / width][best];
    }
    for (int k = 0; k < kind->group; k += 8) {
        out->shift[(i + k) / 8] = trial.shift[k / 8][best];
    }
}

/* Returns the squared error at scale d; *out_best: the d of least error, or 0. */
static double measure(const struct block *block, const struct choice *choice, float d,
                      double *out_best)
{
    const int width = block->grid->width == 8 ? 8 : 4; /* tells the compiler the bounds of loops */
    double xv = 0;
    double vv = 0;
    double xx = 0;
    for (int i = 0; i < VALUES; i++) {
        const int g = block->grid->points[choice->point[i / width] * width + i % width];
        const int shift = block->kind->is_shifted ? choice->shift[i / 8] : 0;
        const double v = (double)((2 * choice->scale[i / block->kind->group] + 1) * (g + shift)) *
                         (double)block->kind->unit;
        const double w = (double)block->w[i];
        xv += w * (double)block->x[i] * v;
        vv += w * v * v;
        xx += w * (double)block->x[i] * (double)block->x[i];
    }
    const double best = vv > 0 ? xv / vv : 0;
    *out_best = best > 0 && best < 65504 ? best : 0;
    return xx + (double)d * ((double)d * vv - 2 * xv);
}

/* Takes the signs out of 8 values, which become magnitudes. */
static uint8_t take_signs(struct block *block, int i)
{
    int signs = 0;
    int n = 0;
    int least = 0;
    float least_loss = INFINITY;
    for (int j = 0; j < 8; j++) {
        const float x = block->x[i + j];
        const float loss = block->w[i + j] * x * x;
        if (x < 0) {
            signs |= 1 << j;
            n++;
        }
        if (loss < least_loss) {
            least_loss = loss;
            least = j;
        }
        block->x[i + j] = fabsf(x);
    }
    if (block->kind->is_even && n % 2 != 0) {
        signs ^= 1 << least;
        block->x[i + least] = -block->x[i + least];
    }
    return (uint8_t)signs;
}

static void choose(const struct kind *kind, const float *x, const float *importance,
                   struct choice *out)
{
    struct block block = {.kind = kind, .grid = tnd_grid(kind->grid)};
    kind->need();
    float scales[16] = {0};
    float top = 0;
    double best_d;
    memcpy(block.x, x, sizeof(block.x));
    for (int i = 0; i < VALUES; i++) {
        block.w[i] = 1;
    }
    if (importance != NULL) {
        tnd_fit_weigh(x, importance, VALUES, block.w);
    }
    for (int u = 0; u < UNITS && !kind->is_shifted; u++) {
        out->signs[u] = take_signs(&block, 8 * u);
    }
    for (int g = 0; g < VALUES / kind->group; g++) {
        scales[g] = fit_group(&block, g * kind->group);
        top = scales[g] > top ? scales[g] : top;
    }
    out->d = tnd_f32_to_f16(top / (kind->unit * (float)(2 * kind->scale_top + 1)));
    const float unit = tnd_f16_to_f32(out->d) * kind->unit;
    for (int g = 0; g < VALUES / kind->group; g++) {
        choose_group(&block, g, scales[g], unit, out);
    }
    const double error = measure(&block, out, tnd_f16_to_f32(out->d), &best_d);
    const uint16_t again = tnd_f32_to_f16((float)best_d);
    if (best_d > 0 && measure(&block, out, tnd_f16_to_f32(again), &best_d) < error) {
        out->d = again;
    }
}

/* ---- block layouts ---- */

static void put_16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static void put_bits(uint8_t *p, int shift, int value)
{
    *p = (uint8_t)(*p | value << shift);
}

/* Four times 7 signs, then 4 bits of scale. */
static void put_signs_and_scale(uint8_t *p, const uint8_t *signs, int scale)
{
    uint32_t word = (uint32_t)scale << 28;
    for (int i = 0; i < 4; i++) {
        word |= (uint32_t)(signs[i] & 127) << 7 * i;
    }
    put_16(p, word & 0xffff);
    put_16(p + 2, word >> 16);
}

typedef void put_fn(const struct choice *choice, uint8_t *block);

static void put_IQ2_XXS(const struct choice *choice, uint8_t *p)
{
    put_16(p, choice->d);
    for (int i = 0; i < UNITS; i++) {
        p[2 + 8 * (i / 4) + i % 4] = (uint8_t)choice->point[i];
    }
    for (int g = 0; g < 8; g++) {
        put_signs_and_scale(p + 6 + 8 * g, choice->signs + 4 * g, choice->scale[g]);
    }
}

static void put_IQ2_XS(const struct choice *choice, uint8_t *p)
{
    put_16(p, choice->d);
    for (int i = 0; i < UNITS; i++) {
        put_16(p + 2 + 2 * i, (unsigned)(choice->point[i] | (choice->signs[i] & 127) << 9));
    }
    for (int g = 0; g < 16; g++) {
        put_bits(p + 66 + g / 2, 4 * (g % 2), choice->scale[g]);
    }
}

static void put_IQ2_S(const struct choice *choice, uint8_t *p)
{
    put_16(p, choice->d);
    for (int i = 0; i < UNITS; i++) {
        p[2 + i] = (uint8_t)choice->point[i];
        p[34 + i] = choice->signs[i];
        put_bits(p + 66 + i / 4, 2 * (i % 4), choice->point[i] >> 8);
    }
    for (int g = 0; g < 16; g++) {
        put_bits(p + 74 + g / 2, 4 * (g % 2), choice->scale[g]);
    }
}

static void put_IQ3_XXS(const struct choice *choice, uint8_t *p)
{
    put_16(p, choice->d);
    for (int i = 0; i < 2 * UNITS; i++) {
        p[2 + i] = (uint8_t)choice->point[i];
    }
    for (int g = 0; g < 8; g++) {
        put_signs_and_scale(p + 66 + 4 * g, choice->signs + 4 * g, choice->scale[g]);
    }
}

static void put_IQ3_S(const struct choice *choice, uint8_t *p)
{
    put_16(p, choice->d);
    for (int i = 0; i < 2 * UNITS; i++) {
        p[2 + i] = (uint8_t)choice->point[i];
        put_bits(p + 66 + i / 8, i % 8, choice->point[i] >> 8);
    }
    for (int i = 0; i < UNITS; i++) {
        p[74 + i] = choice->signs[i];
    }
    for (int g = 0; g < 8; g++) {
        put_bits(p + 106 + g / 2, 4 * (g % 2), choice->scale[g]);
    }
}

static void put_IQ1_S(const struct choice *choice, uint8_t *p)
{
    put_16(p, choice->d);
    for (int g = 0; g < 8; g++) {
        int word = choice->scale[g] << 12 | (choice->shift[4 * g] < 0 ? 0x8000 : 0);
        for (int i = 0; i < 4; i++) {
            p[2 + 4 * g + i] = (uint8_t)choice->point[4 * g + i];
            word |= (choice->point[4 * g + i] >> 8) << 3 * i;
        }
        put_16(p + 34 + 2 * g, (unsigned)word);
    }
}

static void put_IQ1_M(const struct choice *choice, uint8_t *p)
{
    for (int i = 0; i < UNITS; i++) {
        p[i] = (uint8_t)choice->point[i];
        put_bits(p + 32 + i / 2, 4 * (i % 2),
                 choice->point[i] >> 8 | (choice->shift[i] < 0 ? 8 : 0));
    }
    for (int i = 0; i < 4; i++) {
        unsigned word = (choice->d >> 4 * i & 15u) << 12;
        for (int j = 0; j < 4; j++) {
            word |= (unsigned)choice->scale[4 * i + j] << 3 * j;
        }
        put_16(p + 48 + 2 * i, word);
    }
}

static void quantize(const struct kind *kind, put_fn *put, size_t bytes, const float *src,
                     const float *importance, void *dst, int64_t n)
{
    for (int64_t b = 0; b < n / VALUES; b++) {
        struct choice choice = {0};
        uint8_t *block = (uint8_t *)dst + (size_t)b * bytes;
        choose(kind, src + b * VALUES, importance != NULL ? importance + b * VALUES : NULL,
               &choice);
        memset(block, 0, bytes);
        put(&choice, block);
    }
}

/* X(NAME, bytes, kind) */
#define FITTED_TYPES(X)                                                                            \
    X(IQ3_XXS, 98, {TND_GRID_IQ3_XXS, need_IQ3_XXS, true, false, 0, 32, 15, 0.25f, 0.85f, 0.03f})  \
    X(IQ3_S, 110, {TND_GRID_IQ3_S, need_IQ3_S, false, false, 0, 32, 15, 1.0f, 0.85f, 0.03f})       \
    X(IQ2_XXS, 66, {TND_GRID_IQ2_XXS, need_IQ2_XXS, true, false, 0, 32, 15, 0.125f, 0.65f, 0.06f}) \
    X(IQ2_XS, 74, {TND_GRID_IQ2_XS, need_IQ2_XS, true, false, 0, 16, 15, 0.125f, 0.65f, 0.06f})    \
    X(IQ2_S, 82, {TND_GRID_IQ2_S, need_IQ2_S, false, false, 0, 16, 15, 0.125f, 0.65f, 0.06f})      \
    X(IQ1_S, 50, {TND_GRID_IQ1, need_IQ1, false, true, 32, 32, 7, 0.125f, 0.7f, 0.17f})            \
    X(IQ1_M, 56, {TND_GRID_IQ1, need_IQ1, false, true, 8, 16, 7, 0.125f, 0.7f, 0.17f})

#define QUANTIZE(NAME, bytes, ...)                                                                 \
    void tnd_quantize_weighted_##NAME(const float *src, const float *importance, void *dst,        \
                                      int64_t n)                                                   \
    {                                                                                              \
        static const struct kind kind = __VA_ARGS__;                                               \
        quantize(&kind, put_##NAME, bytes, src, importance, dst, n);                               \
    }                                                                                              \
    void tnd_quantize_##NAME(const float *src, void *dst, int64_t n)                               \
    {                                                                                              \
        tnd_quantize_weighted_##NAME(src, NULL, dst, n);                                           \
    }
FITTED_TYPES(QUANTIZE)
