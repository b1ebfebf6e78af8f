/* SPDX-License-Identifier: MIT
 * Driver of float products with many tokens. Here vector lanes are tokens: X is packed once per
 * block of tokens, and the rows of W, at most converted to floats, are broadcast value by value, so
 * that the large operand is never transposed. The kernel is that of matmul_f.c with its operands
 * exchanged, so results are bit-identical. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/cpu_profiles.h"
#include "backends/cpu/matmul/matmul_parts.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

enum {
    ROWS = 96,                         /* of W, per item */
    TILE_ROWS = 16,                    /* at least as many as a kernel's tile has */
    W_STRIDE = TND_KC_F + 16,          /* avoids conflicts of rows in cache sets */
    TOKENS = 384,                      /* per block: its part of K stays in L2 */
    TOKENS_UNIT = 32,                  /* a multiple of every kernel's tile */
    TOKENS_LEAST = TND_CPU_TOKEN_STEP, /* with fewer, unused lanes cost more than packing saves */
    Y_STRIDE = TOKENS + 16,
    X_FLOATS_MOST = 2 << 20
};

struct scratch {
    float w[TILE_ROWS * W_STRIDE];
    float y[ROWS * Y_STRIDE]; /* by row, all tokens */
    float transposed[Y_STRIDE * TND_LANES_MAX];
    float tail[TND_LANES_MAX * TND_KC_F];
    float x[]; /* by part of K, panel of tokens and value: the lanes */
};

struct product {
    const struct tnd_cpu_kernels *kernels;
    enum tandem_type type;
    const struct tnd_type_traits *traits;
    tnd_decode_f_fn *transpose; /* transposes floats of `lanes` rows */
    size_t w_row_bytes;
    size_t x_row_bytes, y_row_bytes;
    int64_t k, n;
    int64_t block_tokens; /* a multiple of TOKENS_UNIT */
    bool in_place;        /* rows are F32 already */
};

/* What an item works on. */
struct item {
    const uint8_t *w;
    char *y;        /* at the block's first token */
    int64_t tokens; /* existing ones of the block */
    int64_t row, n_rows;
};

static int64_t padded_k(int64_t k)
{
    return (k + TND_KC_F - 1) / TND_KC_F * TND_KC_F;
}

/* Tokens packed together; 0 if this driver is not suitable for the product. */
static int64_t block_tokens(int64_t m, int64_t k)
{
    if (m < TOKENS_LEAST || k < 1 || padded_k(k) > X_FLOATS_MOST / TOKENS_UNIT) {
        return 0;
    }
    int64_t most = tnd_min(TOKENS, X_FLOATS_MOST / padded_k(k) / TOKENS_UNIT * TOKENS_UNIT);
    int64_t blocks = (m + most - 1) / most;
    int64_t tokens = (m + blocks - 1) / blocks;
    return (tokens + TOKENS_UNIT - 1) / TOKENS_UNIT * TOKENS_UNIT;
}

bool tnd_matmul_wide_fits(int64_t m, int64_t k)
{
    return block_tokens(m, k) > 0;
}

size_t tnd_matmul_wide_scratch(int64_t m, int64_t k)
{
    int64_t tokens = block_tokens(m, k);
    return tokens == 0 ? 0
                       : sizeof(struct scratch) + (size_t)(tokens * padded_k(k)) * sizeof(float);
}

/* Packs all K of the block's tokens; missing tokens are zeros. */
static void pack_x(const struct product *p, struct scratch *s, const char *x, int64_t tokens)
{
    int64_t lanes = p->kernels->f.lanes;
    float *out = s->x;
    for (int64_t k0 = 0; k0 < p->k; k0 += TND_KC_F) {
        int64_t n = tnd_min(TND_KC_F, p->k - k0);
        for (int64_t t = 0; t < p->block_tokens; t += lanes, out += TND_KC_F * lanes) {
            const char *from = x + (size_t)t * p->x_row_bytes + (size_t)k0 * sizeof(float);
            int64_t valid = tnd_min(lanes, tokens - t);
            int64_t direct = valid == lanes ? n / 8 * 8 : 0;
            if (direct > 0) {
                p->transpose((const uint8_t *)from, p->x_row_bytes, direct, out);
            }
            if (direct < n) {
                memset(s->tail, 0, sizeof(s->tail));
                for (int64_t r = 0; r < valid; r++) {
                    const char *row =
                        from + (size_t)r * p->x_row_bytes + (size_t)direct * sizeof(float);
                    memcpy(s->tail + r * TND_KC_F, row, (size_t)(n - direct) * sizeof(float));
                }
                p->transpose((const uint8_t *)s->tail, TND_KC_F * sizeof(float),
                             (n - direct + 7) / 8 * 8, out + direct * lanes);
            }
        }
    }
}

/* Converts `n` values of each row of a tile to floats. */
static void convert_rows(const struct product *p, struct scratch *s, const uint8_t *from,
                         int n_rows, int64_t n)
{
    for (int r = 0; r < n_rows; r++, from += p->w_row_bytes) {
        p->kernels->dequantize[p->type](from, s->w + r * W_STRIDE, n);
    }
}

/* Sets what to prefetch: the same part of the next rows, or the next part of the item's first rows.
 * No more than that, because rows that are a power of two apart share few cache sets. */
static void look_ahead(const struct product *p, const struct item *item, int64_t r, int64_t k0,
                       struct tnd_tile_f *tile)
{
    r += tile->n_tokens;
    if (r >= item->n_rows) {
        r = 0;
        k0 += TND_KC_F;
    }
    if (k0 >= p->k) {
        r = item->n_rows;
        k0 = 0;
    }
    if (item->row + r + tile->n_tokens <= p->n) {
        int64_t blocks = tnd_min(TND_KC_F, p->k - k0) / p->traits->block_values;
        tile->ahead = (const char *)item->w + (size_t)(item->row + r) * p->w_row_bytes +
                      (size_t)(k0 / p->traits->block_values) * p->traits->block_bytes;
        tile->ahead_stride = p->w_row_bytes;
        tile->ahead_bytes = (size_t)blocks * p->traits->block_bytes;
    }
}

/* Multiplies part of K of the item's rows by all tokens of the block. */
static void multiply_part(const struct product *p, struct scratch *s, const struct item *item,
                          int64_t k0, int64_t n)
{
    const struct tnd_kernels_f *f = &p->kernels->f;
    const int64_t step = (int64_t)f->lanes * f->panels; /* tokens per tile */
    TND_ASSERT(0 < n && n <= TND_KC_F && item->n_rows <= ROWS && item->row + item->n_rows <= p->n);
    int tile_rows = tnd_tile_tokens(item->n_rows, f->tokens);
    for (int64_t r = 0; r < item->n_rows; r += tile_rows) {
        struct tnd_tile_f tile = {
            .w = s->x + k0 * p->block_tokens,
            .w_panel = (size_t)(TND_KC_F * f->lanes),
            .n_values = (int)n,
            .n_tokens = (int)tnd_min(tile_rows, item->n_rows - r),
            .x = s->w,
            .x_stride = W_STRIDE,
            .y = s->y + r * Y_STRIDE,
            .y_stride = Y_STRIDE,
            .accumulate = k0 > 0,
        };
        const uint8_t *from = item->w + (size_t)(item->row + r) * p->w_row_bytes +
                              (size_t)(k0 / p->traits->block_values) * p->traits->block_bytes;
        if (p->in_place) {
            tile.x = (const float *)(const void *)from;
            tile.x_stride = p->w_row_bytes / sizeof(float);
        } else {
            convert_rows(p, s, from, tile.n_tokens, n);
        }
        look_ahead(p, item, r, k0, &tile);
        for (int64_t t = 0; t < item->tokens; t += step) {
            bool is_panel = item->tokens - t <= f->lanes && f->gemm_panel != NULL;
            (is_panel ? f->gemm_panel : f->gemm)(&tile);
            tile.ahead = NULL;
            tile.w += step * TND_KC_F;
            tile.y += step;
        }
    }
}

/* Transposes the result: from rows by tokens to tokens by rows. */
static void store_y(const struct product *p, struct scratch *s, const struct item *item)
{
    int64_t lanes = p->kernels->f.lanes;
    int64_t padded = (item->tokens + 7) / 8 * 8;
    for (int64_t r = 0; r < item->n_rows; r += lanes) {
        size_t bytes = (size_t)tnd_min(lanes, item->n_rows - r) * sizeof(float);
        p->transpose((const uint8_t *)(s->y + r * Y_STRIDE), Y_STRIDE * sizeof(float), padded,
                     s->transposed);
        char *to = item->y + (size_t)(item->row + r) * sizeof(float);
        for (int64_t t = 0; t < item->tokens; t++, to += p->y_row_bytes) {
            memcpy(to, s->transposed + t * lanes, bytes);
        }
    }
}

/* Rows per item; fewer if there would not be work for all workers. */
static int64_t choose_rows(int64_t n_rows, int64_t others, int tile_rows, int workers)
{
    int64_t rows = ROWS / tile_rows * tile_rows;
    while (rows > tile_rows && others * (n_rows / rows) < 8 * (int64_t)workers) {
        rows -= tile_rows;
    }
    return rows;
}

void tnd_matmul_wide(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                     struct tandem_worker *worker)
{
    const struct tandem_tensor *y = work->node;
    const struct tandem_tensor *w = y->src[0];
    const struct tandem_tensor *x = y->src[1];
    struct scratch *s = worker->scratch;
    bool from_workspace = work->task == TANDEM_TASK_MUL_MAT_F32 && w->type != TANDEM_TYPE_F32;
    struct product p = {
        .kernels = kernels,
        .type = from_workspace ? TANDEM_TYPE_F32 : w->type,
        .transpose = kernels->f.decode[TANDEM_TYPE_F32],
        .w_row_bytes = from_workspace ? (size_t)w->ne[0] * sizeof(float) : w->nb[1],
        .x_row_bytes = x->nb[1],
        .y_row_bytes = y->nb[1],
        .k = w->ne[0],
        .n = w->ne[1],
        .block_tokens = block_tokens(x->ne[1], w->ne[0]),
    };
    p.traits = tnd_type_traits(p.type);
    p.in_place = p.type == TANDEM_TYPE_F32 && p.w_row_bytes % sizeof(float) == 0 &&
                 (uintptr_t)w->data % sizeof(float) == 0;
    int64_t m = x->ne[1];
    int64_t n_rows = work->row_end - work->row_begin;
    int64_t token_blocks = (m + p.block_tokens - 1) / p.block_tokens;
    int64_t matrices = x->ne[2] * x->ne[3] * token_blocks; /* each is packed separately */
    TND_ASSERT(p.traits != NULL && (p.traits->dequantize != NULL || p.in_place));
    int64_t rows = choose_rows(n_rows, matrices, kernels->f.tokens, worker->count);
    int64_t row_blocks = (n_rows + rows - 1) / rows;
    int64_t packed = -1;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, matrices * row_blocks, 1, &begin, &end)) {
        for (int64_t i = begin; i < end; i++) {
            int64_t matrix = i / row_blocks;
            int64_t token = matrix % token_blocks * p.block_tokens;
            int64_t i2 = matrix / token_blocks % x->ne[2];
            int64_t i3 = matrix / token_blocks / x->ne[2];
            int64_t w2 = i2 / (x->ne[2] / w->ne[2]);
            int64_t w3 = i3 / (x->ne[3] / w->ne[3]);
            struct item item = {
                .w = from_workspace
                         ? work->workspace
                         : (const uint8_t *)w->data + (size_t)w2 * w->nb[2] + (size_t)w3 * w->nb[3],
                .y = (char *)y->data + (size_t)i2 * y->nb[2] + (size_t)i3 * y->nb[3] +
                     (size_t)token * y->nb[1],
                .tokens = tnd_min(p.block_tokens, m - token),
                .row = work->row_begin + i % row_blocks * rows,
            };
            item.n_rows = tnd_min(rows, work->row_end - item.row);
            if (packed != matrix) {
                pack_x(&p, s,
                       (const char *)x->data + (size_t)i2 * x->nb[2] + (size_t)i3 * x->nb[3] +
                           (size_t)token * x->nb[1],
                       item.tokens);
                packed = matrix;
            }
            for (int64_t k0 = 0; k0 < p.k; k0 += TND_KC_F) {
                int64_t n = tnd_min(TND_KC_F, p.k - k0);
                multiply_part(&p, s, &item, k0, n);
            }
            store_y(&p, s, &item);
        }
    }
}
