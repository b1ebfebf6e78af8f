/* SPDX-License-Identifier: MIT
 * Kernels of kernels/amx.h, written once for tiles of the CPU and for emulated ones. Loops over
 * lanes are plain C that compilers turn into vectors. Every version has the same bits: integer sums
 * are exact, and each float is made by the same operations in the same order. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/amx_tiles.h"
#include "base/tnd_assert.h"

enum { LANES = TND_AMX_LANES, GROUP = 32 };

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

/* The nearest integer, halves to even, of a magnitude below 2^22; without a call. */
TND_INLINE float nearest(float value)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23 */
    return (value + shift) - shift;
}

/* Magnitudes as integers, in which what is not a number is the largest. */
static void find_scales(const float *values, int n, float *scale, float *inverse)
{
    int32_t top[LANES] = {0};
    for (int k = 0; k < n; k++, values += LANES) {
        int32_t bits[LANES];
        memcpy(bits, values, sizeof(bits));
        for (int l = 0; l < LANES; l++) {
            int32_t magnitude = bits[l] & INT32_MAX;
            top[l] = magnitude > top[l] ? magnitude : top[l];
        }
    }
    for (int l = 0; l < LANES; l++) {
        float most;
        memcpy(&most, &top[l], sizeof(most));
        bool is_zero = most < TND_X_TINY;
        scale[l] = is_zero ? 0.0f : most / 127.0f;
        inverse[l] = is_zero ? 0.0f : 127.0f / most;
    }
}

/* Values in units of the scale. Those of a lane whose scale is infinite or no number become 0:
 * the scale alone makes the result so. */
static void scale_values(const float *values, int n, const float *inverse, float *scaled)
{
    for (int k = 0; k < n; k++, values += LANES, scaled += LANES) {
        for (int l = 0; l < LANES; l++) {
            float value = values[l] * inverse[l];
            scaled[l] = fabsf(value) < 128.0f ? value : 0.0f;
        }
    }
}

/* What is left of a value by its nearest integer, in units of the next plane. */
TND_INLINE float rest_of(float value)
{
    return (value - nearest(value)) * 128.0f;
}

/* Planes that each lane needs, so that each 32 values are close enough: see amx.h. Returns the most
 * that one needs. */
static int find_planes(const float *scaled, int n, int32_t *planes)
{
    int32_t most = 1;
    for (int l = 0; l < LANES; l++) {
        planes[l] = 1;
    }
    for (int k0 = 0; k0 < n; k0 += GROUP) {
        float length[LANES] = {0};
        float first[LANES] = {0};  /* squared errors after one plane and after two, in units of */
        float second[LANES] = {0}; /* the plane behind it */
        for (int k = k0; k < k0 + GROUP; k++, scaled += LANES) {
            for (int l = 0; l < LANES; l++) {
                float rest = rest_of(scaled[l]);
                float rest_2 = rest_of(rest);
                length[l] += scaled[l] * scaled[l];
                first[l] += rest * rest;
                second[l] += rest_2 * rest_2;
            }
        }
        for (int l = 0; l < LANES; l++) {
            float harmless = TND_AMX_HARMLESS * 0x1p14f * length[l];
            int32_t needed = second[l] > harmless * 0x1p14f ? 3 : first[l] > harmless ? 2 : 1;
            planes[l] = needed > planes[l] ? needed : planes[l];
            most = needed > most ? needed : most;
        }
    }
    return most;
}

/* Stores word number `i` of each lane, 4 bytes or 2 bf16 numbers, in a run of tiles. */
TND_INLINE void store_words(const uint32_t *words, int i, bool is_w, void *run)
{
    char *tile = (char *)run + i / LANES * TND_AMX_TILE;
    if (is_w) {
        memcpy(tile + i % LANES * TILE_ROW_BYTES, words, LANES * sizeof(*words));
        return;
    }
    for (int l = 0; l < LANES; l++) {
        memcpy(tile + l * TILE_ROW_BYTES + i % LANES * 4, &words[l], sizeof(words[l]));
    }
}

/* Zeros up to the end of a tile. */
static void store_zeros(int i, bool is_w, void *run)
{
    const uint32_t zeros[LANES] = {0};
    for (; i % LANES != 0; i++) {
        store_words(zeros, i, is_w, run);
    }
}

/* One plane: zeros where a lane does not need it. */
TND_INLINE void store_plane(const float *scaled, int n, const int plane, const int32_t *planes,
                            bool is_w, int8_t *out)
{
    for (int k = 0; k < n; k += 4) {
        uint32_t words[LANES] = {0};
        for (int j = 0; j < 4; j++, scaled += LANES) {
            for (int l = 0; l < LANES; l++) {
                float value = scaled[l];
                value = plane > 0 ? rest_of(value) : value;
                value = plane > 1 ? rest_of(value) : value;
                int32_t byte = planes[l] > plane ? (int32_t)nearest(value) & 255 : 0;
                words[l] |= (uint32_t)byte << 8 * j;
            }
        }
        store_words(words, k / 4, is_w, out);
    }
    store_zeros(n / 4, is_w, out);
}

static void amx_quantize(const float *values, int n, bool is_w, struct tnd_amx_block *out)
{
    _Alignas(64) float scaled[TND_AMX_PLANE_BYTES];
    float inverse[LANES];
    int32_t planes[LANES];
    TND_ASSERT(0 < n && n <= TND_AMX_VALUES && n % GROUP == 0);
    find_scales(values, n, out->scale, inverse);
    scale_values(values, n, inverse, scaled);
    out->n_planes = find_planes(scaled, n, planes);
    store_plane(scaled, n, 0, planes, is_w, out->plane[0]);
    if (out->n_planes > 1) {
        store_plane(scaled, n, 1, planes, is_w, out->plane[1]);
    }
    if (out->n_planes > 2) {
        store_plane(scaled, n, 2, planes, is_w, out->plane[2]);
    }
}

/* ---- floats to parts ---- */

/* The nearest bf16 number, halves to even; not beyond the largest one. What is no number stays
 * so. */
TND_INLINE uint32_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t cut = bits >> 16;
    uint32_t rounded = (bits + 0x7fff + (cut & 1)) >> 16;
    uint32_t special = cut | ((bits & 0x7fffff) != 0 ? 0x40 : 0);
    uint32_t finite = (rounded & 0x7f80) == 0x7f80 ? cut : rounded;
    return (bits & 0x7f800000) == 0x7f800000 ? special : finite;
}

/* What a bf16 number leaves of a value: exact, and 0 of what is not finite. */
TND_INLINE float rest_of_bf16(float value, uint32_t part)
{
    uint32_t bits = part << 16;
    float number;
    memcpy(&number, &bits, sizeof(number));
    return (part & 0x7f80) == 0x7f80 ? 0.0f : value - number;
}

static void amx_split(const float *values, int n, int n_parts, bool is_w, uint16_t *out)
{
    TND_ASSERT(0 < n && n <= TND_AMX_VALUES && 0 < n_parts && n_parts <= TND_AMX_PARTS);
    for (int k = 0; k < n; k += 2, values += 2 * LANES) {
        uint32_t words[TND_AMX_PARTS][LANES] = {{0}};
        for (int j = 0; j < 2 && k + j < n; j++) {
            float rest[LANES];
            memcpy(rest, values + j * LANES, sizeof(rest));
            for (int p = 0; p < n_parts; p++) {
                for (int l = 0; l < LANES; l++) {
                    uint32_t part = to_bf16(rest[l]);
                    rest[l] = rest_of_bf16(rest[l], part);
                    words[p][l] |= part << 16 * j;
                }
            }
        }
        for (int p = 0; p < n_parts; p++) {
            store_words(words[p], k / 2, is_w, out + p * TND_AMX_PART);
        }
    }
    for (int p = 0; p < n_parts; p++) {
        store_zeros((n + 1) / 2, is_w, out + p * TND_AMX_PART);
    }
}

/* ---- codes to floats ---- */

static void amx_expand(const uint8_t *codes, const float *scales, const float *mins, int n,
                       int form, int offset, float *values)
{
    const int group = (form & TND_GROUPS_OF_16) != 0 ? 16 : 32;
    const float zeros[LANES] = {0};
    for (int k = 0; k < n; k += 4, codes += 4 * LANES) {
        const float *scale = scales + k / group * LANES;
        const float *min = (form & TND_AFFINE) != 0 ? mins + k / group * LANES : zeros;
        uint32_t words[LANES];
        memcpy(words, codes, sizeof(words));
        for (int j = 0; j < 4; j++, values += LANES) {
            for (int l = 0; l < LANES; l++) {
                int32_t code = (int32_t)(words[l] >> 8 * j & 255) - offset;
                values[l] = scale[l] * (float)code + min[l];
            }
        }
    }
}

/* ---- products ---- */

/* Adds the products of tiles of `type` (S8 or BF16) to tiles 0..3: x[i] * w[j] to tile 2 i + j.
 * Operands are runs of tiles; NULL: nothing but zeros. */
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

/* Tile 2 i + j at sums + (2 i + j) * 256 numbers. */
static void store_sums(void *sums)
{
    char *to = sums;
    TILE_STORE(0, to, TILE_ROW_BYTES);
    TILE_STORE(1, to + TND_AMX_TILE, TILE_ROW_BYTES);
    TILE_STORE(2, to + 2 * TND_AMX_TILE, TILE_ROW_BYTES);
    TILE_STORE(3, to + 3 * TND_AMX_TILE, TILE_ROW_BYTES);
}

/* A plane of a strip, or NULL where the strip is missing or its plane would be all zeros. */
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

/* The rows of strip j and the tokens of strip i that are wanted. */
struct window {
    int first_row, last_row, n_tokens;
    float *y;
};

static struct window find_window(const struct tnd_amx_tile *tile, int i, int j)
{
    return (struct window){
        .first_row = (int)tnd_max(tile->row_begin - j * LANES, 0),
        .last_row = (int)tnd_min(tile->row_end - j * LANES, LANES),
        .n_tokens = (int)tnd_min(tile->n_tokens - i * LANES, LANES),
        .y = tile->y + (size_t)(i * LANES) * tile->y_stride + j * LANES,
    };
}

/* y += sums * scales of one pair of strips; factor: the power of 128 of their planes. Rows of
 * y that are missing are not touched. A result starts from +0, so that adding nothing never
 * changes it. */
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
        if (at.first_row == 0 && at.last_row == LANES) {
            for (int r = 0; r < LANES; r++) {
                y[r] += (float)sums[r] * x_scale * w->scale[r];
            }
        } else {
            for (int r = at.first_row; r < at.last_row; r++) {
                y[r] += (float)sums[r] * x_scale * w->scale[r];
            }
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

/* Sums of the products of all planes that have one power of 128 together. */
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

/* Small products first. */
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
}
