/* SPDX-License-Identifier: MIT
 * Driver of packed float weights. 16-bit weights may be unpacked: parts of their rows are packed
 * when they are needed. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"

enum { ROWS = TND_PANEL_F_ROWS };

/* Tokens that are transposed together: the weights are read once for all of them. More for unpacked
 * rows, which are packed once for all of them; as pairs they take no more memory. */
enum { BLOCK_TOKENS = 4 * TND_PACKED_F_TOKENS, BLOCK_TOKENS_ROWS = 7 * TND_PACKED_F_TOKENS };

struct scratch {
    float y[BLOCK_TOKENS_ROWS * ROWS];
    uint8_t part[TND_KC_F * ROWS * 2]; /* of a panel of 16-bit rows */
    /* by tile and value of K, the numbers of the tile's tokens; for BF16 pairs of values, and after
     * them the rounded rows of the current tile */
    float x[];
};

size_t tnd_matmul_packed_f_scratch(int64_t m, int64_t k)
{
    size_t values = (size_t)tnd_min(m, BLOCK_TOKENS) * (size_t)(k + 1);
    return (sizeof(struct scratch) + values * sizeof(float) + 63) / 64 * 64;
}

/* What is constant during a call. */
struct product {
    const struct tnd_packed_bf16_kernels *bf16; /* NULL: activations stay floats */
    tnd_packed_f_fn *kernel;
    int64_t columns;                        /* of the transposed numbers: K, or its pairs */
    const struct tnd_packed_weight *packed; /* NULL: the original rows are used */
    const struct tandem_tensor *w;
    const struct tandem_tensor *x;
    float *y;
    size_t y_stride;
    int64_t row_begin, row_end;
    int tile;     /* tokens per kernel call */
    size_t ahead; /* prefetch distance of a panel's first tile, in bytes */
};

/* ---- activations ---- */

typedef float four __attribute__((vector_size(16)));
#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int32_t four_lanes __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four_lanes){__VA_ARGS__})
#endif

/* Transposes four values of four tokens. */
TND_INLINE void transpose_4x4(const float *const rows[4], int64_t at, float *out, int64_t stride)
{
    four in[4];
    TND_UNROLL
    for (int t = 0; t < 4; t++) {
        memcpy(&in[t], rows[t] + at, sizeof(four));
    }
    const four low[2] = {SHUFFLE(in[0], in[1], 0, 4, 1, 5), SHUFFLE(in[2], in[3], 0, 4, 1, 5)};
    const four high[2] = {SHUFFLE(in[0], in[1], 2, 6, 3, 7), SHUFFLE(in[2], in[3], 2, 6, 3, 7)};
    const four columns[4] = {
        SHUFFLE(low[0], low[1], 0, 1, 4, 5), SHUFFLE(low[0], low[1], 2, 3, 6, 7),
        SHUFFLE(high[0], high[1], 0, 1, 4, 5), SHUFFLE(high[0], high[1], 2, 3, 6, 7)};
    TND_UNROLL
    for (int i = 0; i < 4; i++) {
        memcpy(out + (at + i) * stride, &columns[i], sizeof(four));
    }
}
#undef SHUFFLE

/* Transposes the rows of n tokens, a tile. Each worker does it for itself, and value by value it
 * would take a tenth of the time of a product with a few hundred rows of weights; so it goes by
 * fours, and the last four tokens may overlap the ones before. */
static void transpose_rows(const float *const *rows, int n, int64_t k, float *out)
{
    enum { PART = 16 }; /* a cache line of each token */
    const int64_t in_fours = n < 4 ? 0 : k / 4 * 4;
    for (int64_t k0 = 0; k0 < in_fours; k0 += PART) {
        const int64_t end = tnd_min(in_fours, k0 + PART);
        for (int t = 0; t < n; t += 4) {
            const int from = (int)tnd_min(t, n - 4);
            for (int64_t i = k0; i < end; i += 4) {
                transpose_4x4(rows + from, i, out + from, n);
            }
        }
    }
    for (int64_t i = in_fours; i < k; i++) {
        for (int t = 0; t < n; t++) {
            out[i * n + t] = rows[t][i];
        }
    }
}

/* Transposes tokens first .. first + n - 1 of a tile; `spare` has room for their rounded rows. */
static void transpose_x(const struct product *p, int64_t first, int n, float *spare, float *out)
{
    const float *rows[TND_PACKED_F_TOKENS];
    TND_ASSERT(0 < n && n <= TND_PACKED_F_TOKENS);
    for (int t = 0; t < n; t++) {
        rows[t] = (const float *)(const void *)((const char *)p->x->data +
                                                (size_t)(first + t) * p->x->nb[1]);
        if (p->bf16 != NULL) {
            float *pairs = spare + t * p->columns;
            pairs[p->columns - 1] = 0.0f; /* second half of the last pair if K is odd */
            p->bf16->round(rows[t], p->w->ne[0], (uint16_t *)(void *)pairs);
            rows[t] = pairs;
        }
    }
    transpose_rows(rows, n, p->columns, out);
}

/* Multiplies values k0 .. k0 + n - 1 of a panel by a block of tokens. */
static void multiply_tiles(const struct product *p, const float *x, const uint8_t *panel,
                           int64_t k0, int64_t n, int64_t n_tokens, float *y, size_t y_stride)
{
    const int64_t column = p->bf16 != NULL ? k0 / 2 : k0;
    for (int64_t t = 0; t < n_tokens; t += p->tile) {
        const int tokens = (int)tnd_min(p->tile, n_tokens - t);
        p->kernel(&(struct tnd_tile_packed_f){
            .panel = panel,
            .k = n,
            .n_tokens = tokens,
            .x = x + t * p->columns + column * tokens,
            .y = y + (size_t)t * y_stride,
            .y_stride = y_stride,
            .accumulate = k0 > 0,
            .ahead = t == 0 ? p->ahead : 0,
        });
    }
}

/* Multiplies a panel of rows, of which `n_rows` exist. */
static void multiply_rows(const struct product *p, struct scratch *s, int64_t row, int n_rows,
                          int64_t n_tokens, float *y, size_t y_stride)
{
    const int64_t k = p->w->ne[0];
    const uint8_t *rows = (const uint8_t *)p->w->data + (size_t)row * p->w->nb[1];
    for (int64_t k0 = 0; k0 == 0 || k0 < k; k0 += TND_KC_F) {
        const int64_t n = tnd_min(k - k0, TND_KC_F);
        tnd_pack_panel_f(p->w->type, rows, p->w->nb[1], n_rows, k0, k0 + n, s->part);
        multiply_tiles(p, s->x, s->part, k0, n, n_tokens, y, y_stride);
    }
}

/* Multiplies one panel by a block of tokens. A panel at an end of the rows goes through a copy,
 * because kernels write all of it. */
static void multiply_panel(const struct product *p, struct scratch *s, int64_t panel, int64_t token,
                           int64_t n_tokens)
{
    int64_t row = panel * ROWS;
    int low = (int)tnd_max(p->row_begin - row, 0);
    int high = (int)tnd_min(p->row_end - row, ROWS);
    bool whole = high - low == ROWS;
    TND_ASSERT(0 <= low && low < high && 0 < n_tokens && n_tokens <= BLOCK_TOKENS_ROWS);
    float *y = p->y + (size_t)token * p->y_stride + row;
    float *to = whole ? y : s->y;
    const size_t to_stride = whole ? p->y_stride : ROWS;
    if (p->packed != NULL) {
        multiply_tiles(p, s->x, tnd_packed_panel(NULL, p->packed, panel), 0, p->w->ne[0], n_tokens,
                       to, to_stride);
    } else {
        multiply_rows(p, s, row, (int)tnd_min(p->w->ne[1] - row, ROWS), n_tokens, to, to_stride);
    }
    for (int t = 0; t < n_tokens && !whole; t++) {
        memcpy(y + (size_t)t * p->y_stride + low, s->y + t * ROWS + low,
               (size_t)(high - low) * sizeof(float));
    }
}

/* Up to WORK_MOST multiply-adds per line of weights, memory is the limit: prefetching far ahead
 * delays lines that are needed sooner. (Zen 5: F32 from 8 tokens on, F16 from 4 on, pairs of BF16
 * from 8 on gain from 16 KiB; with fewer tokens they lose.) */
static size_t bytes_ahead(const struct product *p, const struct tnd_tuning *tuning)
{
    enum { LINE = 64, WORK_MOST = 127 };
    const size_t values = LINE / tandem_type_row_bytes(p->w->type, 1);
    const size_t work = (size_t)p->tile * values / (p->bf16 != NULL ? 2 : 1);
    return (size_t)(work > WORK_MOST ? tuning->float_ahead_many : tuning->float_ahead);
}

void tnd_matmul_packed_f(const struct tnd_cpu_kernels *kernels,
                         const struct tnd_packed_weight *packed, const struct tandem_work *work,
                         struct tandem_worker *worker)
{
    const struct tandem_tensor *node = work->node;
    const struct tandem_tensor *w = node->src[0];
    const bool is_bf16 = work->task == TANDEM_TASK_MUL_MAT_BF16;
    struct product p = {
        .bf16 = is_bf16 ? &kernels->packed_bf16 : NULL,
        .kernel = is_bf16 ? kernels->packed_bf16.multiply : kernels->packed_f[w->type],
        .columns = is_bf16 ? (w->ne[0] + 1) / 2 : w->ne[0],
        .packed = packed,
        .w = w,
        .x = node->src[1],
        .y = node->data,
        .y_stride = node->nb[1] / sizeof(float),
        .row_begin = work->row_begin,
        .row_end = work->row_end,
    };
    struct scratch *s = worker->scratch;
    const int64_t m = node->ne[1];
    const int64_t first = p.row_begin / ROWS;
    int64_t transposed = -1; /* block of tokens that is in the scratch memory */
    int64_t begin;
    int64_t end;
    TND_ASSERT(p.kernel != NULL && (packed != NULL || w->type != TANDEM_TYPE_F32));
    TND_ASSERT(packed == NULL || (packed->n == node->ne[0] && packed->k == w->ne[0]));
    if (p.row_begin >= p.row_end || m == 0) {
        return;
    }
    const int64_t most = packed == NULL && is_bf16 ? BLOCK_TOKENS_ROWS : BLOCK_TOKENS;
    const int64_t n_blocks = (m + most - 1) / most;
    const int64_t block_tokens = (m + n_blocks - 1) / n_blocks;
    p.tile = tnd_tile_tokens(block_tokens, TND_PACKED_F_TOKENS);
    const int64_t n_panels = (p.row_end - 1) / ROWS + 1 - first;
    p.ahead = packed != NULL ? bytes_ahead(&p, &kernels->tuning) : 0;
    const int64_t chunk = tnd_chunk(n_panels, worker->count, 4);
    while (worker->next(worker, n_blocks * n_panels, chunk, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            int64_t block = i / n_panels;
            int64_t token = block * block_tokens;
            int64_t tokens = tnd_min(block_tokens, m - token);
            for (int64_t t = 0; t < tokens && block != transposed; t += p.tile) {
                transpose_x(&p, token + t, (int)tnd_min(p.tile, tokens - t),
                            s->x + tokens * p.columns, s->x + t * p.columns);
            }
            transposed = block;
            multiply_panel(&p, s, first + i % n_panels, token, tokens);
        }
    }
}
