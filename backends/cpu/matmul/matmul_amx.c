/* SPDX-License-Identifier: MIT
 * Driver of quantised weights times activations by the tiles of AMX. Activations become blocks of
 * bytes once, in the workspace. Weights do part by part of K, a few strips of rows at a time, and
 * all tokens pass over them while they are in the L1 cache. They come from the packed copy where
 * there is one and kernels unpack it, else from the rows: with the same bits. The layout and the
 * bound are in kernels/amx.h. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

enum {
    LANES = TND_AMX_LANES,
    VALUES = TND_AMX_VALUES,
    STRIPS_MOST = 4, /* of rows, that a worker takes at once: half of an L1 cache of 48 KiB */
    PAIR = TND_AMX_STRIPS
};

struct scratch {
    struct tnd_amx_block w[STRIPS_MOST];
    float values[VALUES * LANES]; /* of one block, value by value the lanes */
    float scales[VALUES / 16 * LANES];
    float mins[VALUES / 16 * LANES];
    float row[VALUES];
    uint8_t codes[VALUES * LANES];
};

/* What stays the same during one call. */
struct product {
    const struct tnd_cpu_kernels *kernels;
    const struct tnd_packed_weight *packed; /* NULL: the rows serve */
    const struct tandem_tensor *w;
    const struct tnd_type_traits *traits;
    const struct tnd_quant_code *code;
    const struct tnd_amx_block *x;
    float *y;
    size_t y_stride;
    int64_t m, n, k;
    int64_t n_blocks; /* along K */
    int64_t row_begin, row_end;
};

static int64_t blocks_of(int64_t k)
{
    return (k + VALUES - 1) / VALUES;
}

static int64_t strips_of(int64_t n)
{
    return (n + LANES - 1) / LANES;
}

size_t tnd_matmul_amx_workspace(int64_t m, int64_t k)
{
    return (size_t)(strips_of(m) * blocks_of(k)) * sizeof(struct tnd_amx_block);
}

size_t tnd_matmul_amx_scratch(void)
{
    return (sizeof(struct scratch) + 63) / 64 * 64;
}

/* ---- activations ---- */

/* `n` values of the strip's tokens; missing tokens are zeros. */
static void gather_x(const struct tandem_tensor *x, int64_t token, int64_t k0, int64_t n,
                     float *values)
{
    const int64_t valid = tnd_min(LANES, x->ne[1] - token);
    if (valid < LANES) {
        memset(values, 0, (size_t)(n * LANES) * sizeof(float));
    }
    for (int64_t t = 0; t < valid; t++) {
        const char *row = (const char *)x->data + (size_t)(token + t) * x->nb[1];
        const float *from = (const float *)(const void *)row + k0;
        for (int64_t i = 0; i < n; i++) {
            values[i * LANES + t] = from[i];
        }
    }
}

void tnd_matmul_amx_tile_x(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                           struct tandem_worker *worker)
{
    const struct tandem_tensor *x = work->node->src[1];
    struct scratch *s = worker->scratch;
    const int64_t k = x->ne[0];
    const int64_t n_strips = strips_of(x->ne[1]);
    TND_ASSERT(k % TND_X_BLOCK == 0 && x->nb[0] == sizeof(float));
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_strips, 1, &begin, &end)) {
        for (int64_t strip = begin; strip < end; strip++) {
            struct tnd_amx_block *out =
                (struct tnd_amx_block *)work->workspace + strip * blocks_of(k);
            for (int64_t k0 = 0; k0 < k; k0 += VALUES, out++) {
                int64_t n = tnd_min(VALUES, k - k0);
                gather_x(x, strip * LANES, k0, n, s->values);
                kernels->amx.quantize(s->values, (int)n, false, out);
            }
        }
    }
}

/* ---- weights ---- */

static void gather_packed(const struct product *p, struct scratch *s, int64_t strip, int64_t k0,
                          int64_t n)
{
    const enum tandem_type type = p->w->type;
    const uint8_t *units = tnd_packed_panel(&p->kernels->q, p->packed, strip);
    units += (size_t)(k0 / tnd_packed_unit_values(type)) * tnd_packed_unit_bytes(type);
    p->kernels->packed[type].unpack(units, (int)(n / 32), p->packed->panel_bytes, s->codes,
                                    s->scales, s->mins);
    p->kernels->amx.expand(s->codes, s->scales, s->mins, (int)n, p->code->form, p->code->offset,
                           s->values);
}

static void gather_rows(const struct product *p, struct scratch *s, int64_t strip, int64_t k0,
                        int64_t n)
{
    const size_t offset = (size_t)(k0 / p->traits->block_values) * p->traits->block_bytes;
    const int64_t valid = tnd_min(LANES, p->n - strip * LANES);
    if (valid < LANES) {
        memset(s->values, 0, (size_t)(n * LANES) * sizeof(float));
    }
    for (int64_t r = 0; r < valid; r++) {
        const char *row = (const char *)p->w->data + (size_t)(strip * LANES + r) * p->w->nb[1];
        p->kernels->dequantize[p->w->type](row + offset, s->row, n);
        for (int64_t i = 0; i < n; i++) {
            s->values[i * LANES + r] = s->row[i];
        }
    }
}

/* ---- products ---- */

/* All tokens over one block of up to STRIPS_MOST strips of rows. */
static void multiply_block(const struct product *p, struct scratch *s, int64_t strip, int n_strips,
                           int64_t block)
{
    const int64_t k0 = block * VALUES;
    const int64_t n = tnd_min(VALUES, p->k - k0);
    for (int i = 0; i < n_strips; i++) {
        if (p->packed != NULL) {
            gather_packed(p, s, strip + i, k0, n);
        } else {
            gather_rows(p, s, strip + i, k0, n);
        }
        p->kernels->amx.quantize(s->values, (int)n, true, &s->w[i]);
    }
    for (int64_t t = 0; t < p->m; t += PAIR * LANES) {
        const struct tnd_amx_block *x = p->x + t / LANES * p->n_blocks + block;
        const int64_t n_tokens = tnd_min(PAIR * LANES, p->m - t);
        for (int i = 0; i < n_strips; i += PAIR) {
            const int64_t row = (strip + i) * LANES;
            p->kernels->amx.multiply(&(struct tnd_amx_tile){
                .x = {x, n_tokens > LANES ? x + p->n_blocks : NULL},
                .w = {&s->w[i], i + 1 < n_strips ? &s->w[i + 1] : NULL},
                .n_values = (int)n,
                .n_tokens = (int)n_tokens,
                .y = p->y + (size_t)t * p->y_stride + row,
                .y_stride = p->y_stride,
                .row_begin = (int)tnd_max(p->row_begin - row, 0),
                .row_end = (int)tnd_min(p->row_end - row, PAIR * LANES),
                .accumulate = block > 0,
            });
        }
    }
}

/* K is 0. */
static void clear_rows(const struct product *p, int64_t begin, int64_t end)
{
    for (int64_t t = 0; t < p->m && begin < end; t++) {
        memset(p->y + (size_t)t * p->y_stride + begin, 0, (size_t)(end - begin) * sizeof(float));
    }
}

/* Fewer strips at once where there would not be work for everybody. */
static int choose_strips(int64_t n_strips, int workers)
{
    return n_strips / STRIPS_MOST < 4 * (int64_t)workers ? PAIR : STRIPS_MOST;
}

void tnd_matmul_amx(const struct tnd_cpu_kernels *kernels, const struct tnd_packed_weight *packed,
                    const struct tandem_work *work, struct tandem_worker *worker)
{
    const struct tandem_tensor *node = work->node;
    const struct tandem_tensor *w = node->src[0];
    const struct product p = {
        .kernels = kernels,
        .packed = kernels->packed[w->type].unpack != NULL ? packed : NULL,
        .w = w,
        .traits = tnd_type_traits(w->type),
        .code = tnd_quant_code(w->type),
        .x = work->workspace,
        .y = node->data,
        .y_stride = node->nb[1] / sizeof(float),
        .m = node->ne[1],
        .n = w->ne[1],
        .k = w->ne[0],
        .n_blocks = blocks_of(w->ne[0]),
        .row_begin = work->row_begin,
        .row_end = work->row_end,
    };
    TND_ASSERT(p.code != NULL && p.k % TND_X_BLOCK == 0 && VALUES % p.traits->block_values == 0);
    if (p.row_begin >= p.row_end) {
        return;
    }
    const int64_t first = p.row_begin / LANES;
    const int64_t n_strips = strips_of(p.row_end) - first;
    const int strips = choose_strips(n_strips, worker->count);
    int64_t begin;
    int64_t end;
    kernels->amx.begin();
    while (worker->next(worker, (n_strips + strips - 1) / strips, 1, &begin, &end)) {
        for (int64_t item = begin; item < end; item++) {
            const int64_t strip = first + item * strips;
            const int count = (int)tnd_min(strips, first + n_strips - strip);
            for (int64_t block = 0; block < p.n_blocks; block++) {
                multiply_block(&p, worker->scratch, strip, count, block);
            }
            if (p.n_blocks == 0) {
                clear_rows(&p, tnd_max(p.row_begin, strip * LANES),
                           tnd_min(p.row_end, (strip + count) * LANES));
            }
        }
    }
    kernels->amx.end();
}
