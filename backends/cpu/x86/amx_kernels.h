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

/* Stores 4 values of each lane, bytes in `words`, at value k of a plane. */
TND_INLINE void store_words(const int32_t *words, int k, bool is_w, int8_t *plane)
{
    int8_t *tile = plane + k / TND_AMX_STEP * TND_AMX_TILE;
    int in_tile = k % TND_AMX_STEP;
    if (is_w) {
        memcpy(tile + in_tile * LANES, words, LANES * sizeof(*words));
        return;
    }
    for (int l = 0; l < LANES; l++) {
        memcpy(tile + l * TND_AMX_STEP + in_tile, &words[l], sizeof(words[l]));
    }
}

/* One plane: zeros where a lane does not need it. */
TND_INLINE void store_plane(const float *scaled, int n, const int plane, const int32_t *planes,
                            bool is_w, int8_t *out)
{
    for (int k = 0; k < n; k += 4) {
        int32_t words[LANES] = {0};
        for (int j = 0; j < 4; j++, scaled += LANES) {
            for (int l = 0; l < LANES; l++) {
                float value = scaled[l];
                value = plane > 0 ? rest_of(value) : value;
                value = plane > 1 ? rest_of(value) : value;
                int32_t byte = planes[l] > plane ? (int32_t)nearest(value) & 255 : 0;
                words[l] |= (int32_t)((uint32_t)byte << 8 * j);
            }
        }
        store_words(words, k, is_w, out);
    }
    const int32_t zeros[LANES] = {0};
    for (int k = n; k % TND_AMX_STEP != 0; k += 4) {
        store_words(zeros, k, is_w, out);
    }
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

/* A plane of a strip, or NULL where the strip is missing or its plane would be all zeros. */
TND_INLINE const int8_t *find_plane(const struct tnd_amx_block *block, int plane)
{
    return block != NULL && plane < block->n_planes ? block->plane[plane] : NULL;
}

/* Adds the products of one plane of each operand to tiles 0..3: x[i] * w[j] to tile 2 i + j. */
static void add_planes(const struct tnd_amx_tile *tile, int x_plane, int w_plane)
{
    const int n_steps = (tile->n_values + TND_AMX_STEP - 1) / TND_AMX_STEP;
    const int8_t *x0 = find_plane(tile->x[0], x_plane);
    const int8_t *x1 = find_plane(tile->x[1], x_plane);
    const int8_t *w0 = find_plane(tile->w[0], w_plane);
    const int8_t *w1 = find_plane(tile->w[1], w_plane);
    for (int at = 0; at < n_steps * TND_AMX_TILE; at += TND_AMX_TILE) {
        if (w0 != NULL) {
            TILE_LOAD(6, w0 + at, TILE_ROW_BYTES);
        }
        if (w1 != NULL) {
            TILE_LOAD(7, w1 + at, TILE_ROW_BYTES);
        }
        if (x0 != NULL) {
            TILE_LOAD(4, x0 + at, TILE_ROW_BYTES);
            if (w0 != NULL) {
                TILE_DOT_S8(0, 4, 6);
            }
            if (w1 != NULL) {
                TILE_DOT_S8(1, 4, 7);
            }
        }
        if (x1 != NULL) {
            TILE_LOAD(5, x1 + at, TILE_ROW_BYTES);
            if (w0 != NULL) {
                TILE_DOT_S8(2, 5, 6);
            }
            if (w1 != NULL) {
                TILE_DOT_S8(3, 5, 7);
            }
        }
    }
}

/* y += sums * scales of one pair of strips; factor: the power of 128 of their planes. Rows of
 * y that are missing are not touched. A result starts from +0, so that adding nothing never
 * changes it. */
static void add_sums(const struct tnd_amx_tile *tile, int i, int j, const int32_t *sums,
                     float factor, bool accumulate)
{
    const int first = (int)tnd_max(tile->row_begin - j * LANES, 0);
    const int last = (int)tnd_min(tile->row_end - j * LANES, LANES);
    const int n_tokens = (int)tnd_min(tile->n_tokens - i * LANES, LANES);
    float *y = tile->y + (size_t)(i * LANES) * tile->y_stride + j * LANES;
    for (int t = 0; t < n_tokens; t++, y += tile->y_stride, sums += LANES) {
        const float x_scale = tile->x[i]->scale[t] * factor;
        const float *w_scale = tile->w[j]->scale;
        if (!accumulate) {
            for (int r = first; r < last; r++) {
                y[r] = 0;
            }
        }
        if (first == 0 && last == LANES) {
            for (int r = 0; r < LANES; r++) {
                y[r] += (float)sums[r] * x_scale * w_scale[r];
            }
        } else {
            for (int r = first; r < last; r++) {
                y[r] += (float)sums[r] * x_scale * w_scale[r];
            }
        }
    }
}

static int most_planes(const struct tnd_amx_block *const strips[TND_AMX_STRIPS])
{
    int first = strips[0]->n_planes;
    int second = strips[1] != NULL ? strips[1]->n_planes : 0;
    return first > second ? first : second;
}

/* Sums of the products of all planes that have one power of 128 together. */
static void sum_order(const struct tnd_amx_tile *tile, int order, int x_planes, int w_planes)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
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
    _Alignas(64) int32_t sums[TND_AMX_STRIPS * TND_AMX_STRIPS][LANES * LANES];
    const int x_planes = most_planes(tile->x);
    const int w_planes = most_planes(tile->w);
    for (int order = 0; order < x_planes + w_planes - 1; order++) {
        sum_order(tile, order, x_planes, w_planes);
        TILE_STORE(0, sums[0], TILE_ROW_BYTES);
        TILE_STORE(1, sums[1], TILE_ROW_BYTES);
        TILE_STORE(2, sums[2], TILE_ROW_BYTES);
        TILE_STORE(3, sums[3], TILE_ROW_BYTES);
        for (int i = 0; i < TND_AMX_STRIPS && tile->x[i] != NULL; i++) {
            for (int j = 0; j < TND_AMX_STRIPS && tile->w[j] != NULL; j++) {
                add_sums(tile, i, j, sums[2 * i + j], factors[order],
                         tile->accumulate || order > 0);
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
                                        .multiply = amx_multiply};
}
