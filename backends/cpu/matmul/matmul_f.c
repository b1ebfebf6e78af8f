/* SPDX-License-Identifier: MIT
 * Driver of float products: F32, F16 and BF16 weights (plain 16-bit ones use matmul_packed_f.c),
 * and quantised ones converted row by row; two-dimensional, strided and batched. A block of rows is
 * packed part by part of K and multiplied by all tokens. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

enum {
    BLOCK_ROWS = 128,         /* rows packed together; they stay in L2 */
    X_STRIDE = TND_KC_F + 16, /* avoids conflicts of tokens in cache sets */
    TAIL_ROW_BYTES = TND_KC_F * 4,
    TOKENS_MAX = 16,
    SPAN = 64,       /* values packed between two prefetches */
    AHEAD = TND_KC_F /* prefetch distance in values, from packing */
};

struct scratch {
    float w[BLOCK_ROWS * TND_KC_F];
    float x[TOKENS_MAX * X_STRIDE];
    float y[TOKENS_MAX * TND_TILE_ROWS_MAX];
    uint8_t tail[TND_LANES_MAX * TAIL_ROW_BYTES];
};

/* One matrix of W and all matrices of X that are multiplied by it. */
struct product {
    const struct tnd_cpu_kernels *kernels;
    enum tandem_type type;
    const struct tnd_type_traits *traits;
    tnd_decode_f_fn *decode;
    const uint8_t *w;
    size_t w_row_bytes;
    const struct tandem_tensor *x, *y;
    int64_t x2_begin, x2_end, x3_begin, x3_end;
    int64_t k, n;
    int64_t block; /* rows packed together */
    int tile_tokens;
    tnd_gemm_f_fn *gemm;
    bool copy_x; /* if rows of x would compete for the same cache sets */
};

size_t tnd_matmul_f_scratch(int64_t m, int64_t k)
{
    size_t bytes = tnd_matmul_wide_scratch(m, k);
    const size_t panels = tnd_matmul_packed_f_scratch(m, k);
    bytes = panels > bytes ? panels : bytes;
    bytes = sizeof(struct scratch) > bytes ? sizeof(struct scratch) : bytes;
    return (bytes + 63) / 64 * 64;
}

/* Prefetches `n` values of `lanes` rows AHEAD values after column k, or of the next block's rows at
 * the end of the row. Inlined: gcc drops calls of functions that only prefetch. */
TND_INLINE void prefetch_rows(const struct product *p, int64_t row, int64_t k, int64_t n)
{
    k += AHEAD;
    if (k >= p->k) {
        k = k % AHEAD;
        row += p->block;
    }
    int lanes = p->kernels->f.lanes;
    size_t bytes = (size_t)n * p->traits->block_bytes;
    const uint8_t *from = p->w + (size_t)row * p->w_row_bytes + (size_t)k * p->traits->block_bytes;
    for (int r = 0; r < lanes && row + r < p->n; r++, from += p->w_row_bytes) {
        for (size_t i = 0; i < bytes; i += 64) {
            __builtin_prefetch(from + i, 0, 3);
        }
    }
}

/* Packs through a copy: for missing rows or values, and for quantised weights. */
static void pack_copy(const struct product *p, struct scratch *s, const uint8_t *rows, int valid,
                      int64_t n, float *out)
{
    int lanes = p->kernels->f.lanes;
    int64_t padded = (n + 7) / 8 * 8;
    tnd_decode_f_fn *decode = p->decode != NULL ? p->decode : p->kernels->f.decode[TANDEM_TYPE_F32];
    for (int r = 0; r < lanes; r++) {
        uint8_t *to = s->tail + (size_t)r * TAIL_ROW_BYTES;
        const uint8_t *from = r < valid ? rows + (size_t)r * p->w_row_bytes : NULL;
        if (from == NULL || p->decode != NULL) {
            size_t bytes = from != NULL ? (size_t)n * p->traits->block_bytes : 0;
            if (from != NULL) {
                memcpy(to, from, bytes);
            }
            memset(to + bytes, 0, (size_t)padded * sizeof(float) - bytes);
        } else {
            p->kernels->dequantize[p->type](from, (float *)(void *)to, n);
        }
    }
    decode(s->tail, TAIL_ROW_BYTES, padded, out);
}

/* Packs `n` values from column k0 on of one panel, padded with zeros to a multiple of 8. */
static void pack_panel(const struct product *p, struct scratch *s, int64_t row, int valid,
                       int64_t k0, int64_t n, float *out)
{
    int lanes = p->kernels->f.lanes;
    size_t offset = (size_t)(k0 / p->traits->block_values) * p->traits->block_bytes;
    TND_ASSERT(0 < n && n <= TND_KC_F && k0 + n <= p->k);
    TND_ASSERT(0 <= valid && valid <= lanes && (valid == 0 || row + valid <= p->n));
    const uint8_t *rows = valid > 0 ? p->w + (size_t)row * p->w_row_bytes + offset : NULL;
    int64_t direct = p->decode != NULL && valid >= lanes ? n / 8 * 8 : 0;
    for (int64_t i = 0; i < direct; i += SPAN) {
        prefetch_rows(p, row, k0 + i, SPAN);
        p->decode(rows + (size_t)i * p->traits->block_bytes, p->w_row_bytes,
                  tnd_min(SPAN, direct - i), out + i * lanes);
    }
    if (direct < n) {
        const uint8_t *rest =
            rows != NULL && direct > 0 ? rows + (size_t)direct * p->traits->block_bytes : rows;
        pack_copy(p, s, rest, valid, n - direct, out + direct * lanes);
    }
}

/* Multiplies one tile; through copies if the kernel cannot work in place. */
static void multiply_tile(const struct product *p, struct scratch *s, struct tnd_tile_f *tile,
                          int n_rows)
{
    size_t tile_rows = (size_t)p->kernels->f.lanes * (size_t)p->kernels->f.panels;
    TND_ASSERT(0 < n_rows && (size_t)n_rows <= tile_rows && tile->n_tokens <= TOKENS_MAX);
    if ((size_t)n_rows == tile_rows) {
        p->gemm(tile);
        return;
    }
    struct tnd_tile_f part = *tile;
    part.y = s->y;
    part.y_stride = tile_rows;
    for (int t = 0; t < tile->n_tokens && tile->accumulate; t++) {
        memcpy(part.y + (size_t)t * tile_rows, tile->y + (size_t)t * tile->y_stride,
               (size_t)n_rows * sizeof(float));
    }
    p->gemm(&part);
    for (int t = 0; t < tile->n_tokens; t++) {
        memcpy(tile->y + (size_t)t * tile->y_stride, part.y + (size_t)t * tile_rows,
               (size_t)n_rows * sizeof(float));
    }
}

/* Multiplies the packed block by all tokens of one matrix of X. */
static void multiply_matrix(const struct product *p, struct scratch *s, const char *x, char *y,
                            int64_t row, int64_t n_rows, int64_t k0, int64_t n)
{
    int64_t tile_rows = (int64_t)p->kernels->f.lanes * p->kernels->f.panels;
    int64_t padded = (n + 7) / 8 * 8;
    size_t x_row_bytes = p->x->nb[1];
    int64_t m = p->x->ne[1];
    for (int64_t t = 0; t < m; t += p->tile_tokens) {
        int tokens = (int)tnd_min(m - t, p->tile_tokens);
        const float *from = (const float *)(const void *)(x + (size_t)t * x_row_bytes) + k0;
        size_t x_stride = x_row_bytes / sizeof(float);
        if (p->copy_x) {
            for (int i = 0; i < tokens; i++) {
                memcpy(s->x + i * X_STRIDE, from + (size_t)i * x_stride, (size_t)n * sizeof(float));
            }
            from = s->x;
            x_stride = X_STRIDE;
        }
        for (int64_t r = 0; r < n_rows; r += tile_rows) {
            struct tnd_tile_f tile = {
                .w = s->w + r * padded,
                .w_panel = (size_t)padded * (size_t)p->kernels->f.lanes,
                .n_values = (int)n,
                .n_tokens = tokens,
                .x = from,
                .x_stride = x_stride,
                .y = (float *)(void *)(y + (size_t)t * p->y->nb[1]) + row + r,
                .y_stride = p->y->nb[1] / sizeof(float),
                .accumulate = k0 > 0,
            };
            multiply_tile(p, s, &tile, (int)tnd_min(tile_rows, n_rows - r));
        }
    }
}

/* Computes rows row .. row + n_rows - 1 (at most BLOCK_ROWS) of the product. */
static void multiply_block(const struct product *p, struct scratch *s, int64_t row, int64_t n_rows)
{
    int lanes = p->kernels->f.lanes;
    int64_t tile_rows = (int64_t)lanes * p->kernels->f.panels;
    int64_t packed_rows = (n_rows + tile_rows - 1) / tile_rows * tile_rows;
    for (int64_t k0 = 0; k0 == 0 || k0 < p->k; k0 += TND_KC_F) { /* at least once: K may be 0 */
        int64_t n = tnd_min(TND_KC_F, p->k - k0);
        int64_t padded = (n + 7) / 8 * 8;
        for (int64_t r = 0; r < packed_rows && n > 0; r += lanes) {
            int valid = (int)(n_rows > r ? tnd_min(lanes, n_rows - r) : 0);
            pack_panel(p, s, row + r, valid, k0, n, s->w + r * padded);
        }
        for (int64_t i3 = p->x3_begin; i3 < p->x3_end; i3++) {
            for (int64_t i2 = p->x2_begin; i2 < p->x2_end; i2++) {
                const char *x =
                    (const char *)p->x->data + (size_t)i2 * p->x->nb[2] + (size_t)i3 * p->x->nb[3];
                char *y = (char *)p->y->data + (size_t)i2 * p->y->nb[2] + (size_t)i3 * p->y->nb[3];
                multiply_matrix(p, s, x, y, row, n_rows, k0, n);
            }
        }
    }
}

void tnd_matmul_f(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                  struct tandem_worker *worker)
{
    const struct tandem_tensor *y = work->node;
    const struct tandem_tensor *w = y->src[0];
    const struct tandem_tensor *x = y->src[1];
    bool from_workspace = work->task == TANDEM_TASK_MUL_MAT_F32 && w->type != TANDEM_TYPE_F32;
    if (tnd_matmul_wide_fits(x->ne[1], w->ne[0])) {
        tnd_matmul_wide(kernels, work, worker);
        return;
    }
    if (w->type != TANDEM_TYPE_F32 && !from_workspace && kernels->packed_f[w->type] != NULL &&
        tnd_mul_mat_is_plain(y)) { /* 16 bits */
        tnd_matmul_packed_f(kernels, NULL, work, worker);
        return;
    }
    struct product p = {
        .kernels = kernels,
        .type = from_workspace ? TANDEM_TYPE_F32 : w->type,
        .gemm = kernels->f.gemm,
        .x = x,
        .y = y,
        .k = w->ne[0],
        .n = w->ne[1],
        .tile_tokens = tnd_tile_tokens(x->ne[1], kernels->f.tokens),
        .copy_x = x->ne[1] > 4 && x->nb[1] % 1024 == 0,
    };
    p.traits = tnd_type_traits(p.type);
    p.decode = kernels->f.decode[p.type];
    p.w_row_bytes = from_workspace ? (size_t)w->ne[0] * sizeof(float) : w->nb[1];

    /* with few rows, smaller blocks, so that all workers have work */
    int64_t tile_rows = (int64_t)kernels->f.lanes * kernels->f.panels;
    int64_t n_rows = work->row_end - work->row_begin;
    int64_t matrices = w->ne[2] * w->ne[3];
    int64_t block = BLOCK_ROWS / tile_rows * tile_rows;
    while (block > tile_rows && matrices * (n_rows / block) < 4 * (int64_t)worker->count) {
        block -= tile_rows;
    }
    if (x->ne[1] <= 4) {
        block = tile_rows; /* more rows gain nothing, and the next block is prefetched */
    }
    TND_ASSERT(block >= tile_rows && block <= BLOCK_ROWS);
    p.block = block;
    int64_t n_blocks = (n_rows + block - 1) / block;
    int64_t repeat_2 = w->ne[2] > 0 ? x->ne[2] / w->ne[2] : 0;
    int64_t repeat_3 = w->ne[3] > 0 ? x->ne[3] / w->ne[3] : 0;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, matrices * n_blocks, 1, &begin, &end)) {
        for (int64_t item = begin; item < end; item++) {
            int64_t matrix = item / n_blocks;
            int64_t i2 = matrix % w->ne[2];
            int64_t i3 = matrix / w->ne[2];
            int64_t row = work->row_begin + item % n_blocks * block;
            p.w = from_workspace
                      ? work->workspace
                      : (const uint8_t *)w->data + (size_t)i2 * w->nb[2] + (size_t)i3 * w->nb[3];
            p.x2_begin = i2 * repeat_2;
            p.x2_end = p.x2_begin + repeat_2;
            p.x3_begin = i3 * repeat_3;
            p.x3_end = p.x3_begin + repeat_3;
            multiply_block(&p, worker->scratch, row, tnd_min(block, work->row_end - row));
        }
    }
}
