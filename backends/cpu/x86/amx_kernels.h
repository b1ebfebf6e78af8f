/* SPDX-License-Identifier: MIT
 * Kernels of kernels/amx.h, written once for real and emulated tiles. Lanes are processed in
 * vectors of the including file's instruction set (base/lanes.h). All versions give the same bits:
 * integer sums are exact, and each float is computed by the same operations in the same order. */
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/amx_int8.h"
#include "backends/cpu/x86/amx_tiles.h"
#include "base/lanes.h"
#include "base/tnd_assert.h"

enum { LANES = TND_AMX_LANES, GROUP = 32, WIDTH = TND_VEC_LANES };

typedef int32_t vec_int __attribute__((vector_size(WIDTH * sizeof(int32_t))));

static void amx_begin(void)
{
    const struct tile_config config = tiles_all();
    tiles_configure(&config);
}

static void amx_end(void)
{
#if defined(TND_TILES_EMULATED)
    TND_ASSERT(tiles.fault == TILE_NO_FAULT);
#endif
    tiles_release();
}

/* ---- floats to planes ---- */

/* The functions below work on lanes l .. l + WIDTH - 1 of a strip. */

/* Adding it to a magnitude below 2^22 leaves the nearest integer, ties to even, in the low bits of
 * the sum. */
#define TO_INTEGER 12582912.0f /* 1.5 * 2^23 */

/* Values minus their nearest integers, in units of the next plane. */
TND_INLINE tnd_vec rest_of(tnd_vec value)
{
    return (value - ((value + TO_INTEGER) - TO_INTEGER)) * 128.0f;
}

TND_INLINE tnd_vec_bits blend(tnd_vec_bits mask, tnd_vec_bits a, tnd_vec_bits b)
{
    return (mask & a) | (~mask & b);
}

/* Divides values by the scale. In a lane whose scale is infinite or NaN they become 0: the scale
 * alone makes the result infinite or NaN. */
static void scale_values(const float *values, int n, float *scaled, float *scale)
{
    tnd_vec top = {0};
    for (int k = 0; k < n; k++) {
        top = tnd_vec_max(tnd_vec_abs(tnd_vec_load(values + k * LANES)), top);
    }
    const tnd_vec zero = {0};
    const tnd_vec_bits is_zero = (tnd_vec_bits)(top < TND_X_TINY);
    const tnd_vec inverse = tnd_vec_select(is_zero, zero, 127.0f / top);
    tnd_vec_store(scale, tnd_vec_select(is_zero, zero, top / 127.0f));
    for (int k = 0; k < n; k++) {
        tnd_vec value = tnd_vec_load(values + k * LANES) * inverse;
        tnd_vec_bits is_usual = (tnd_vec_bits)(tnd_vec_abs(value) < 128.0f);
        tnd_vec_store(scaled + k * LANES, (tnd_vec)((tnd_vec_bits)value & is_usual));
    }
}

/* Which lanes need a second and a third plane to be accurate enough for each 32 values: see amx.h.
 * A lane that needs the third needs the second: |rest_2| <= 128 |rest|. */
static void find_planes(const float *scaled, int n, tnd_vec_bits need[2])
{
    need[0] = need[1] = (tnd_vec_bits){0};
    for (int k0 = 0; k0 < n; k0 += GROUP) {
        tnd_vec length = {0};
        tnd_vec first = {0};  /* squared errors after one plane and after two, in units of the */
        tnd_vec second = {0}; /* next plane */
        for (int k = k0; k < k0 + GROUP; k++) {
            tnd_vec value = tnd_vec_load(scaled + k * LANES);
            tnd_vec rest = rest_of(value);
            tnd_vec rest_2 = rest_of(rest);
            length += value * value;
            first += rest * rest;
            second += rest_2 * rest_2;
        }
        tnd_vec harmless = length * (TND_AMX_HARMLESS * 0x1p14f);
        need[0] |= (tnd_vec_bits)(first > harmless);
        need[1] |= (tnd_vec_bits)(second > harmless * 0x1p14f);
    }
}

static bool is_any(tnd_vec_bits mask)
{
    uint32_t any = 0;
    for (int l = 0; l < WIDTH; l++) {
        any |= mask[l];
    }
    return any != 0;
}

/* Stores word `i` of each lane, 4 bytes or 2 bf16 numbers, in a run of tiles. */
TND_INLINE void store_words(tnd_vec_bits words, int i, int l, bool is_w, void *run)
{
    char *tile = (char *)run + i / LANES * TND_AMX_TILE;
    if (is_w) {
        memcpy(tile + i % LANES * TILE_ROW_BYTES + l * 4, &words, sizeof(words));
        return;
    }
    uint32_t of_lanes[WIDTH];
    memcpy(of_lanes, &words, sizeof(words));
    for (int j = 0; j < WIDTH; j++) {
        memcpy(tile + (l + j) * TILE_ROW_BYTES + i % LANES * 4, &of_lanes[j], 4);
    }
}

/* Stores zeros up to the end of a tile. */
static void store_zeros(int i, int l, bool is_w, void *run)
{
    for (; i % LANES != 0; i++) {
        store_words((tnd_vec_bits){0}, i, l, is_w, run);
    }
}

/* Stores one plane, zeros for lanes that do not need it. */
TND_INLINE void store_plane(const float *scaled, int n, const int plane, tnd_vec_bits need, int l,
                            bool is_w, int8_t *out)
{
    for (int k = 0; k < n; k += 4) {
        tnd_vec_bits words = {0};
        for (int j = 0; j < 4; j++) {
            tnd_vec value = tnd_vec_load(scaled + (k + j) * LANES);
            value = plane > 0 ? rest_of(value) : value;
            value = plane > 1 ? rest_of(value) : value;
            words |= ((tnd_vec_bits)(value + TO_INTEGER) & 255) << 8 * j;
        }
        store_words(words & need, k / 4, l, is_w, out);
    }
    store_zeros(n / 4, l, is_w, out);
}

static void amx_quantize(const float *values, int n, bool is_w, struct tnd_amx_block *out)
{
    _Alignas(64) float scaled[TND_AMX_PLANE_BYTES];
    tnd_vec_bits need[LANES / WIDTH][2];
    TND_ASSERT(0 < n && n <= TND_AMX_VALUES && n % GROUP == 0);
    out->n_planes = 1;
    for (int l = 0; l < LANES; l += WIDTH) {
        tnd_vec_bits *needed = need[l / WIDTH];
        scale_values(values + l, n, scaled + l, out->scale + l);
        find_planes(scaled + l, n, needed);
        int planes = is_any(needed[1]) ? 3 : is_any(needed[0]) ? 2 : 1;
        out->n_planes = planes > out->n_planes ? planes : out->n_planes;
    }
    for (int l = 0; l < LANES; l += WIDTH) {
        const tnd_vec_bits all = ~(tnd_vec_bits){0};
        store_plane(scaled + l, n, 0, all, l, is_w, out->plane[0]);
        if (out->n_planes > 1) {
            store_plane(scaled + l, n, 1, need[l / WIDTH][0], l, is_w, out->plane[1]);
        }
        if (out->n_planes > 2) {
            store_plane(scaled + l, n, 2, need[l / WIDTH][1], l, is_w, out->plane[2]);
        }
    }
}

/* ---- floats to parts ---- */

/* The nearest bf16 number, ties to even, at most the largest finite one. NaN stays NaN. */
TND_INLINE tnd_vec_bits to_bf16(tnd_vec value)
{
    const tnd_vec_bits bits = (tnd_vec_bits)value;
    const tnd_vec_bits cut = bits >> 16;
    const tnd_vec_bits rounded = (bits + 0x7fff + (cut & 1)) >> 16;
    const tnd_vec_bits overflows = (tnd_vec_bits)((rounded & 0x7f80) == 0x7f80);
    const tnd_vec_bits is_nan = (tnd_vec_bits)((bits & 0x7fffffff) > 0x7f800000);
    return blend(overflows, cut | (is_nan & 0x40), rounded);
}

/* Values minus their bf16 parts: exact; 0 if not finite. */
TND_INLINE tnd_vec rest_of_bf16(tnd_vec value, tnd_vec_bits part)
{
    const tnd_vec_bits is_finite = (tnd_vec_bits)((part & 0x7f80) != 0x7f80);
    return (tnd_vec)((tnd_vec_bits)(value - (tnd_vec)(part << 16)) & is_finite);
}

TND_INLINE void split_lanes(const float *values, int n, int n_parts, int l, bool is_w,
                            uint16_t *out)
{
    for (int k = 0; k < n; k += 2) {
        tnd_vec low = tnd_vec_load(values + k * LANES);
        tnd_vec high = k + 1 < n ? tnd_vec_load(values + (k + 1) * LANES) : (tnd_vec){0};
        for (int p = 0; p < n_parts; p++) {
            tnd_vec_bits low_part = to_bf16(low);
            tnd_vec_bits high_part = to_bf16(high);
            low = rest_of_bf16(low, low_part);
            high = rest_of_bf16(high, high_part);
            store_words(low_part | high_part << 16, k / 2, l, is_w, out + p * TND_AMX_PART);
        }
    }
    for (int p = 0; p < n_parts; p++) {
        store_zeros((n + 1) / 2, l, is_w, out + p * TND_AMX_PART);
    }
}

static void amx_split(const float *values, int n, int n_parts, bool is_w, uint16_t *out)
{
    TND_ASSERT(0 < n && n <= TND_AMX_VALUES && 0 < n_parts && n_parts <= TND_AMX_PARTS);
    for (int l = 0; l < LANES; l += WIDTH) {
        split_lanes(values + l, n, n_parts, l, is_w, out);
    }
}

/* ---- codes to floats ---- */

/* value = scale * (code - offset), or scale * code + min. */
static void amx_expand(const uint8_t *codes, const float *scales, const float *mins, int n,
                       int form, int offset, float *values)
{
    const int group = (form & TND_GROUPS_OF_16) != 0 ? 16 : 32;
    const bool is_affine = (form & TND_AFFINE) != 0;
    for (int k = 0; k < n; k += 4, codes += 4 * LANES) {
        for (int l = 0; l < LANES; l += WIDTH) {
            const tnd_vec scale = tnd_vec_load(scales + k / group * LANES + l);
            const tnd_vec min =
                is_affine ? tnd_vec_load(mins + k / group * LANES + l) : (tnd_vec){0};
            vec_int words;
            memcpy(&words, codes + 4 * l, sizeof(words));
            for (int j = 0; j < 4; j++) {
                vec_int code = (words >> 8 * j & 255) - offset;
                tnd_vec value = scale * __builtin_convertvector(code, tnd_vec) + min;
                tnd_vec_store(values + (k + j) * LANES + l, value);
            }
        }
    }
}

/* ---- products ---- */

/* Adds the products of tiles of `type` (S8 or BF16) to tiles 0..3: x[i] * w[j] to tile 2 i + j.
 * Operands are runs of tiles; NULL: all zeros. */
#define ADD_TILES(type, n_tiles, x0, x1, w0, w1)                                                   \
    for (int at = 0; at < (n_tiles)*TND_AMX_TILE; at += TND_AMX_TILE) {                            \
        if ((w0) != NULL) {                                                                        \
            TILE_LOAD(6, (w0) + at, TILE_ROW_BYTES);                                               \
        }                                                                                          \
        if ((w1) != NULL) {                                                                        \
            TILE_LOAD(7, (w1) + at, TILE_ROW_BYTES);                                               \
        }                                                                                          \
        if ((x0) != NULL) {                                                                        \
            TILE_LOAD(4, (x0) + at, TILE_ROW_BYTES);                                               \
            if ((w0) != NULL) {                                                                    \
                TILE_DOT_##type(0, 4, 6);                                                          \
            }                                                                                      \
            if ((w1) != NULL) {                                                                    \
                TILE_DOT_##type(1, 4, 7);                                                          \
            }                                                                                      \
        }                                                                                          \
        if ((x1) != NULL) {                                                                        \
            TILE_LOAD(5, (x1) + at, TILE_ROW_BYTES);                                               \
            if ((w0) != NULL) {                                                                    \
                TILE_DOT_##type(2, 5, 6);                                                          \
            }                                                                                      \
            if ((w1) != NULL) {                                                                    \
                TILE_DOT_##type(3, 5, 7);                                                          \
            }                                                                                      \
        }                                                                                          \
    }

static void zero_sums(void)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

/* Stores tile 2 i + j at sums + (2 i + j) * 256 numbers. */
static void store_sums(void *sums)
{
    char *to = sums;
    TILE_STORE(0, to, TILE_ROW_BYTES);
    TILE_STORE(1, to + TND_AMX_TILE, TILE_ROW_BYTES);
    TILE_STORE(2, to + 2 * TND_AMX_TILE, TILE_ROW_BYTES);
    TILE_STORE(3, to + 3 * TND_AMX_TILE, TILE_ROW_BYTES);
}

/* A plane of a strip; NULL if the strip is missing or the plane is all zeros. */
TND_INLINE const int8_t *find_plane(const void *block, int plane)
{
    const struct tnd_amx_block *planes = block;
    return planes != NULL && plane < planes->n_planes ? planes->plane[plane] : NULL;
}

static void add_planes(const struct tnd_amx_tile *tile, int x_plane, int w_plane)
{
    const int n_tiles = (tile->n_values + TND_AMX_STEP - 1) / TND_AMX_STEP;
    const int8_t *x0 = find_plane(tile->x[0], x_plane);
    const int8_t *x1 = find_plane(tile->x[1], x_plane);
    const int8_t *w0 = find_plane(tile->w[0], w_plane);
    const int8_t *w1 = find_plane(tile->w[1], w_plane);
    ADD_TILES(S8, n_tiles, x0, x1, w0, w1)
}

/* The wanted rows of strip j and tokens of strip i; rows in vectors. */
struct window {
    int first_row, last_row, step, n_tokens;
    float *y;
};

static struct window find_window(const struct tnd_amx_tile *tile, int i, int j)
{
    struct window at = {
        .first_row = (int)tnd_max(tile->row_begin - j * LANES, 0),
        .last_row = (int)tnd_min(tile->row_end - j * LANES, LANES),
        .n_tokens = (int)tnd_min(tile->n_tokens - i * LANES, LANES),
        .y = tile->y + (size_t)(i * LANES) * tile->y_stride + j * LANES,
    };
    at.step = at.first_row == 0 && at.last_row == LANES ? WIDTH : 1;
    return at;
}

/* y += sums * scales for one pair of strips; factor: the power of 128 of their planes. Does not
 * touch missing rows of y. Results start from +0, so that adding nothing never changes them. */
static void add_sums(const struct tnd_amx_tile *tile, int i, int j, const int32_t *sums,
                     float factor, bool accumulate)
{
    const struct tnd_amx_block *x = tile->x[i];
    const struct tnd_amx_block *w = tile->w[j];
    const struct window at = find_window(tile, i, j);
    float *y = at.y;
    for (int t = 0; t < at.n_tokens; t++, y += tile->y_stride, sums += LANES) {
        const float x_scale = x->scale[t] * factor;
        for (int r = at.first_row; r < at.last_row && !accumulate; r++) {
            y[r] = 0;
        }
        for (int r = at.first_row; r < at.last_row; r += at.step) {
            if (at.step == 1) {
                y[r] += (float)sums[r] * x_scale * w->scale[r];
                continue;
            }
            vec_int sum;
            memcpy(&sum, sums + r, sizeof(sum));
            tnd_vec scaled = __builtin_convertvector(sum, tnd_vec) * x_scale;
            tnd_vec_store(y + r, tnd_vec_load(y + r) + scaled * tnd_vec_load(w->scale + r));
        }
    }
}

static int planes_of(const void *block)
{
    return block != NULL ? ((const struct tnd_amx_block *)block)->n_planes : 0;
}

static int most_planes(const void *const strips[TND_AMX_STRIPS])
{
    int first = planes_of(strips[0]);
    int second = planes_of(strips[1]);
    return first > second ? first : second;
}

/* Sums the products of all planes with the same power of 128. */
static void sum_order(const struct tnd_amx_tile *tile, int order, int x_planes, int w_planes)
{
    zero_sums();
    for (int x_plane = 0; x_plane < x_planes; x_plane++) {
        int w_plane = order - x_plane;
        if (0 <= w_plane && w_plane < w_planes) {
            add_planes(tile, x_plane, w_plane);
        }
    }
}

static void amx_multiply(const struct tnd_amx_tile *tile)
{
    static const float factors[] = {1.0f, 0x1p-7f, 0x1p-14f, 0x1p-21f, 0x1p-28f};
    _Alignas(64) int32_t sums[TND_AMX_STRIPS][TND_AMX_STRIPS][LANES * LANES];
    const int x_planes = most_planes(tile->x);
    const int w_planes = most_planes(tile->w);
    for (int order = 0; order < x_planes + w_planes - 1; order++) {
        sum_order(tile, order, x_planes, w_planes);
        store_sums(sums);
        for (int i = 0; i < TND_AMX_STRIPS && tile->x[i] != NULL; i++) {
            for (int j = 0; j < TND_AMX_STRIPS && tile->w[j] != NULL; j++) {
                add_sums(tile, i, j, sums[i][j], factors[order], tile->accumulate || order > 0);
            }
        }
    }
}

/* ---- products of floats ---- */

TND_INLINE const uint16_t *find_part(const void *block, int part)
{
    return block != NULL ? (const uint16_t *)block + part * TND_AMX_PART : NULL;
}

static void add_parts(const struct tnd_amx_tile *tile, int x_part, int w_part)
{
    const int n_tiles = (tile->n_values + TND_AMX_STEP / 2 - 1) / (TND_AMX_STEP / 2);
    const char *x0 = (const char *)find_part(tile->x[0], x_part);
    const char *x1 = (const char *)find_part(tile->x[1], x_part);
    const char *w0 = (const char *)find_part(tile->w[0], w_part);
    const char *w1 = (const char *)find_part(tile->w[1], w_part);
    ADD_TILES(BF16, n_tiles, x0, x1, w0, w1)
}

/* Adds small products first. */
static void amx_multiply_parts(const struct tnd_amx_tile *tile)
{
    _Alignas(64) float sums[TND_AMX_STRIPS][TND_AMX_STRIPS][LANES * LANES];
    zero_sums();
    for (int order = TND_AMX_PARTS - 1; order >= 0; order--) {
        for (int w_part = 0; w_part <= order && w_part < tile->w_parts; w_part++) {
            if (order - w_part < tile->x_parts) {
                add_parts(tile, order - w_part, w_part);
            }
        }
    }
    store_sums(sums);
    for (int i = 0; i < TND_AMX_STRIPS && tile->x[i] != NULL; i++) {
        for (int j = 0; j < TND_AMX_STRIPS && tile->w[j] != NULL; j++) {
            const struct window at = find_window(tile, i, j);
            float *y = at.y;
            for (int t = 0; t < at.n_tokens; t++, y += tile->y_stride) {
                for (int r = at.first_row; r < at.last_row; r++) {
                    float before = tile->accumulate ? y[r] : 0.0f;
                    y[r] = before + sums[i][j][t * LANES + r];
                }
            }
        }
    }
}

static void fill_amx(const char *name, struct tnd_cpu_kernels *out)
{
    out->amx = (struct tnd_amx_kernels){.name = name,
                                        .begin = amx_begin,
                                        .end = amx_end,
                                        .quantize = amx_quantize,
                                        .expand = amx_expand,
                                        .multiply = amx_multiply,
                                        .split = amx_split,
                                        .multiply_parts = amx_multiply_parts};
    fill_amx_int8(out);
}
