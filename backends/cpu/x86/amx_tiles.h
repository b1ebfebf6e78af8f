/* SPDX-License-Identifier: MIT
 * The tile instructions of AMX, and the only place that knows whether a CPU or plain C does them: a
 * file that defines TND_TILES_EMULATED before it includes this header gets the emulation, which
 * every machine can run.
 *
 * Intel SDM volume 2 has the operations (LDTILECFG to TILEZERO), volume 1, chapter 18 the shape of
 * the state: eight tiles of at most 16 rows of 64 bytes. A product is C += A * B with A of
 * M rows, C of M rows and N columns, and B of K / 4 rows whose dword n holds 4 values of column n
 * (2 of them where values are bf16).
 *
 * Instructions are written as assembly. gcc 12 declares the configuration as 8 bytes, and says of
 * no tile load that it reads memory: stores before them are dropped. Here each says so.
 *
 *   tiles_configure(config)  tiles_read_config(config)  tiles_release()
 *   TILE_LOAD(tile, base, stride)  TILE_STREAM(tile, base, stride): the same, read once
 *   TILE_STORE(tile, base, stride)  TILE_ZERO(tile)
 *   TILE_DOT_S8(c, a, b): signed bytes to 32 bits  TILE_DOT_BF16(c, a, b): bf16 to floats
 *   TILE_DOT_U8S8(c, a, b): bytes of A count from 0
 *
 * Tiles are literal digits. */
#ifndef TND_AMX_TILES_H
#define TND_AMX_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TILE_NUMBER = 8, TILE_ROWS = 16, TILE_ROW_BYTES = 64, TILE_BYTES = 1024 };

/* Operand of LDTILECFG, 64 bytes. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Configures eight full tiles. */
static inline struct tile_config tiles_all(void)
{
    struct tile_config config = {.palette = 1};
    for (int i = 0; i < TILE_NUMBER; i++) {
        config.row_bytes[i] = TILE_ROW_BYTES;
        config.rows[i] = TILE_ROWS;
    }
    return config;
}

#if !defined(TND_TILES_EMULATED)

static inline void tiles_configure(const struct tile_config *config)
{
    __asm__ volatile("ldtilecfg %0" ::"m"(*config));
}

static inline void tiles_read_config(struct tile_config *config)
{
    __asm__ volatile("sttilecfg %0" : "=m"(*config));
}

static inline void tiles_release(void)
{
    __asm__ volatile("tilerelease" ::: "memory");
}

#define TILE_AT(base, stride) "r"((const void *)(base)), "r"((ptrdiff_t)(stride))
#define TILE_LOAD(tile, base, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::TILE_AT(base, stride) : "memory")
#define TILE_STREAM(tile, base, stride)                                                            \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile ::TILE_AT(base, stride) : "memory")
#define TILE_STORE(tile, base, stride)                                                             \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::TILE_AT(base, stride) : "memory")
#define TILE_ZERO(tile)        __asm__ volatile("tilezero %%tmm" #tile::)
#define TILE_DOT_S8(c, a, b)   __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c::)
#define TILE_DOT_U8S8(c, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c::)
#define TILE_DOT_BF16(c, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c::)

#else
#include <float.h>
#include <math.h>

enum tile_fault {
    TILE_NO_FAULT,
    TILE_GENERAL_PROTECTION, /* #GP: an invalid configuration */
    TILE_UNDEFINED           /* #UD: tiles that are not configured, or do not match each other */
};

/* The state of a thread. An instruction that faults only changes `fault`. */
static _Thread_local struct {
    struct tile_config config; /* palette 0: no tiles are configured */
    enum tile_fault fault;
    uint8_t rows[TILE_NUMBER][TILE_ROWS][TILE_ROW_BYTES];
} tiles;

static inline void tiles_release(void)
{
    memset(&tiles.config, 0, sizeof(tiles.config));
    memset(tiles.rows, 0, sizeof(tiles.rows));
}

static inline bool tiles_are_zero(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < n; i++) {
        if (at[i] != 0) {
            return false;
        }
    }
    return true;
}

static inline void tiles_configure(const struct tile_config *config)
{
    bool is_valid = config->palette == 1 && config->start_row < TILE_ROWS &&
                    tiles_are_zero(config->reserved, sizeof(config->reserved)) &&
                    tiles_are_zero(config->row_bytes + TILE_NUMBER, 2 * TILE_NUMBER) &&
                    tiles_are_zero(config->rows + TILE_NUMBER, TILE_NUMBER);
    for (int i = 0; i < TILE_NUMBER; i++) {
        is_valid = is_valid && config->row_bytes[i] <= TILE_ROW_BYTES &&
                   config->rows[i] <= TILE_ROWS &&
                   (config->row_bytes[i] == 0) == (config->rows[i] == 0);
    }
    if (config->palette != 0 && !is_valid) {
        tiles.fault = TILE_GENERAL_PROTECTION;
        return;
    }
    tiles_release();
    if (config->palette != 0) {
        tiles.config = *config;
    }
}

static inline void tiles_read_config(struct tile_config *config)
{
    *config = tiles.config;
}

static inline bool tile_exists(int tile)
{
    bool exists = tiles.config.palette != 0 && tiles.config.rows[tile] > 0;
    tiles.fault = exists ? tiles.fault : TILE_UNDEFINED;
    return exists;
}

/* Rows before start_row, which is only nonzero after an interrupted instruction, are unchanged. */
static inline void tile_load(int tile, const void *base, ptrdiff_t stride)
{
    if (!tile_exists(tile)) {
        return;
    }
    const char *from = base;
    for (int r = tiles.config.start_row; r < TILE_ROWS; r++) {
        memset(tiles.rows[tile][r], 0, TILE_ROW_BYTES);
        if (r < tiles.config.rows[tile]) {
            memcpy(tiles.rows[tile][r], from + r * stride, tiles.config.row_bytes[tile]);
        }
    }
    tiles.config.start_row = 0;
}

static inline void tile_store(int tile, void *base, ptrdiff_t stride)
{
    if (!tile_exists(tile)) {
        return;
    }
    char *to = base;
    for (int r = tiles.config.start_row; r < tiles.config.rows[tile]; r++) {
        memcpy(to + r * stride, tiles.rows[tile][r], tiles.config.row_bytes[tile]);
    }
    tiles.config.start_row = 0;
}

static inline void tile_zero(int tile)
{
    if (tile_exists(tile)) {
        memset(tiles.rows[tile], 0, sizeof(tiles.rows[tile]));
        tiles.config.start_row = 0;
    }
}

/* Whether the shapes of C += A * B match. */
static inline bool tiles_fit(int c, int a, int b)
{
    if (!tile_exists(c) || !tile_exists(a) || !tile_exists(b)) {
        return false;
    }
    const struct tile_config *of = &tiles.config;
    bool fit = c != a && c != b && a != b && of->start_row == 0 && of->rows[c] == of->rows[a] &&
               of->row_bytes[c] == of->row_bytes[b] && of->row_bytes[a] == 4 * of->rows[b] &&
               of->row_bytes[c] % 4 == 0;
    tiles.fault = fit ? tiles.fault : TILE_UNDEFINED;
    return fit;
}

static inline void tile_clear_behind(int tile, int row, int bytes)
{
    memset(tiles.rows[tile][row] + bytes, 0, (size_t)(TILE_ROW_BYTES - bytes));
}

/* C += A * B for bytes; those of B are signed. */
static inline void tile_dot_bytes(int c, int a, int b, bool a_is_unsigned)
{
    if (!tiles_fit(c, a, b)) {
        return;
    }
    for (int m = 0; m < tiles.config.rows[c]; m++) {
        uint32_t sums[TILE_ROW_BYTES / 4]; /* wrap around */
        memcpy(sums, tiles.rows[c][m], sizeof(sums));
        for (int k = 0; k < tiles.config.rows[b]; k++) {
            int x[4];
            int8_t w[TILE_ROW_BYTES];
            for (int i = 0; i < 4; i++) {
                const uint8_t byte = tiles.rows[a][m][4 * k + i];
                x[i] = a_is_unsigned ? byte : (int8_t)byte;
            }
            memcpy(w, tiles.rows[b][k], sizeof(w));
            for (int n = 0; n < TILE_ROW_BYTES / 4; n++) {
                sums[n] += (uint32_t)(x[0] * w[4 * n] + x[1] * w[4 * n + 1] + x[2] * w[4 * n + 2] +
                                      x[3] * w[4 * n + 3]);
            }
        }
        memcpy(tiles.rows[c][m], sums, sizeof(sums));
        tile_clear_behind(c, m, tiles.config.row_bytes[c]);
    }
}

/* ---- bf16 ---- */

/* Denormals become zeros, as operands and as results. */
static inline float tile_flush(float value)
{
    return fabsf(value) < FLT_MIN ? copysignf(0.0f, value) : value;
}

static inline float tile_bf16(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof(value));
    return tile_flush(value);
}

/* a * b + c rounded once to nearest even. A result that is tiny when rounded to 24 bits is flushed
 * to zero, even if rounding to the fixed precision of denormals gives FLT_MIN. */
static inline float tile_fma(float a, float b, float c)
{
    const float up = 0x1p64f;
    float result = fmaf(a, b, c);
    if (fabsf(result) == FLT_MIN) {
        float scaled = fabsf(a) < fabsf(b) ? fmaf(a * up, b, c * up) : fmaf(a, b * up, c * up);
        result = fabsf(scaled) < FLT_MIN * up ? 0.5f * result : result;
    }
    return tile_flush(result);
}

/* Even and odd values have separate sums, each a chain from zero; then c + (even + odd). */
static inline float tile_dot_bf16_value(float c, const uint16_t *x, const uint16_t *w, int n_pairs)
{
    float even = 0;
    float odd = 0;
    for (int k = 0; k < n_pairs; k++) {
        even = tile_fma(tile_bf16(x[2 * k]), tile_bf16(w[k * TILE_ROW_BYTES / 2]), even);
        odd = tile_fma(tile_bf16(x[2 * k + 1]), tile_bf16(w[k * TILE_ROW_BYTES / 2 + 1]), odd);
    }
    return tile_flush(tile_flush(c) + tile_flush(even + odd));
}

static inline void tile_dot_bf16(int c, int a, int b)
{
    if (!tiles_fit(c, a, b)) {
        return;
    }
    uint16_t w[TILE_ROWS * TILE_ROW_BYTES / 2];
    memcpy(w, tiles.rows[b], sizeof(w));
    for (int m = 0; m < tiles.config.rows[c]; m++) {
        uint16_t x[TILE_ROW_BYTES / 2];
        float sums[TILE_ROW_BYTES / 4];
        memcpy(x, tiles.rows[a][m], sizeof(x));
        memcpy(sums, tiles.rows[c][m], sizeof(sums));
        for (int n = 0; n < tiles.config.row_bytes[c] / 4; n++) {
            sums[n] = tile_dot_bf16_value(sums[n], x, w + 2 * n, tiles.config.rows[b]);
        }
        memcpy(tiles.rows[c][m], sums, sizeof(sums));
        tile_clear_behind(c, m, tiles.config.row_bytes[c]);
    }
}

#define TILE_LOAD(tile, base, stride)   tile_load(tile, base, stride)
#define TILE_STREAM(tile, base, stride) tile_load(tile, base, stride)
#define TILE_STORE(tile, base, stride)  tile_store(tile, base, stride)
#define TILE_ZERO(tile)                 tile_zero(tile)
#define TILE_DOT_S8(c, a, b)            tile_dot_bytes(c, a, b, false)
#define TILE_DOT_U8S8(c, a, b)          tile_dot_bytes(c, a, b, true)
#define TILE_DOT_BF16(c, a, b)          tile_dot_bf16(c, a, b)

#endif
#endif
