/* SPDX-License-Identifier: MIT
 * Driver of products with AMX tiles. Activations are converted to blocks once, in the workspace: to
 * bytes for quantised weights, else to bf16 numbers. Weights are converted part by part of K, a few
 * strips of rows at a time, and multiplied by all tokens while they are in the L1 cache. They come
 * from the packed copy if there is one that kernels can unpack, else from the original rows, with
 * the same bits. Layouts and error bounds are in kernels/amx.h. Knows no instruction set. */
#include <string.h>

#include "backends/cpu/matmul/matmul_parts.h"
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/tnd_type.h"

enum {
    LANES = TND_AMX_LANES,
    VALUES = TND_AMX_VALUES,
    STRIPS_MOST = 4, /* most strips of rows per worker at a time: half of an L1 cache of 48 KiB */
    PAIR = TND_AMX_STRIPS
};

/* Strips of floats with several parts: half as many, so that they fit. */
enum {
    BLOCKS_BYTES = STRIPS_MOST * sizeof(struct tnd_amx_block),
    PARTS_BYTES = PAIR * TND_AMX_PARTS * TND_AMX_PART * sizeof(uint16_t),
    W_BYTES = (int)BLOCKS_BYTES > (int)PARTS_BYTES ? BLOCKS_BYTES : PARTS_BYTES
};

struct scratch {
    _Alignas(64) char w[W_BYTES];
    float values[VALUES * LANES]; /* of one block: for each value of K, the lanes */
    float scales[VALUES / 16 * LANES];
    float mins[VALUES / 16 * LANES];
    float row[VALUES];
    uint8_t codes[VALUES * LANES];
};

/* What is constant during a call. */
struct product {
    const struct tnd_cpu_kernels *kernels;
    const struct tnd_packed_weight *packed; /* NULL: the original rows are used */
    const struct tandem_tensor *w;
    const struct tnd_type_traits *traits;
    const struct tnd_quant_code *code;
    const char *x;
    int x_parts, w_parts; /* of floats; 0: bytes */
    size_t x_block_bytes, w_block_bytes;
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

static int parts_of_w(enum tandem_type type)
{
    return type == TANDEM_TYPE_BF16  ? 1
           : type == TANDEM_TYPE_F16 ? 2
           : type == TANDEM_TYPE_F32 ? 3
                                     : 0;
}

int tnd_matmul_amx_x_parts(enum tandem_type type)
{
    int parts = parts_of_w(type);
    return parts == 1 ? 2 : parts;
}

static size_t block_bytes(int parts)
{
    return parts == 0 ? sizeof(struct tnd_amx_block)
                      : (size_t)(parts * TND_AMX_PART) * sizeof(uint16_t);
}

size_t tnd_matmul_amx_workspace(enum tandem_type type, int64_t m, int64_t k)
{
    return (size_t)(strips_of(m) * blocks_of(k)) * block_bytes(tnd_matmul_amx_x_parts(type));
}

size_t tnd_matmul_amx_scratch(void)
{
    return (sizeof(struct scratch) + 63) / 64 * 64;
}

static void make_block(const struct tnd_cpu_kernels *kernels, const float *values, int64_t n,
                       int parts, bool is_w, void *out)
{
    if (parts > 0) {
        kernels->amx.split(values, (int)n, parts, is_w, out);
    } else {
        kernels->amx.quantize(values, (int)n, is_w, out);
    }
}

/* ---- activations ---- */

/* Gathers `n` values of the strip's tokens; missing tokens are zeros. */
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
    const int parts = tnd_matmul_amx_x_parts(work->node->src[0]->type);
    TND_ASSERT((parts > 0 || k % TND_X_BLOCK == 0) && x->nb[0] == sizeof(float));
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_strips, 1, &begin, &end)) {
        for (int64_t strip = begin; strip < end; strip++) {
            char *out =
                (char *)work->workspace + (size_t)(strip * blocks_of(k)) * block_bytes(parts);
            for (int64_t k0 = 0; k0 < k; k0 += VALUES, out += block_bytes(parts)) {
                int64_t n = tnd_min(VALUES, k - k0);
                gather_x(x, strip * LANES, k0, n, s->values);
                make_block(kernels, s->values, n, parts, false, out);
            }
        }
    }
}

/* ---- weights ---- */

static void to_floats(const struct product *p, const void *from, int64_t n, float *out)
{
    if (p->w->type == TANDEM_TYPE_F32) {
        memcpy(out, from, (size_t)n * sizeof(float));
    } else {
        p->kernels->dequantize[p->w->type](from, out, n);
    }
}

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

/* A panel has 32 rows, two strips; for each value of K their numbers. */
static void gather_packed_f(const struct product *p, struct scratch *s, int64_t strip, int64_t k0,
                            int64_t n)
{
    const size_t number = p->traits->block_bytes;
    const uint8_t *panel = tnd_packed_panel(NULL, p->packed, strip / 2);
    const uint8_t *from = panel + (size_t)(k0 * TND_PANEL_F_ROWS + strip % 2 * LANES) * number;
    for (int64_t i = 0; i < n; i++, from += TND_PANEL_F_ROWS * number) {
        to_floats(p, from, LANES, s->values + i * LANES);
    }
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
        to_floats(p, row + offset, n, s->row);
        for (int64_t i = 0; i < n; i++) {
            s->values[i * LANES + r] = s->row[i];
        }
    }
}

/* ---- products ---- */

static void decode_strip(const struct product *p, struct scratch *s, int64_t strip, int64_t k0,
                         int64_t n, void *out)
{
    if (p->packed == NULL) {
        gather_rows(p, s, strip, k0, n);
    } else if (p->w_parts > 0) {
        gather_packed_f(p, s, strip, k0, n);
    } else {
        gather_packed(p, s, strip, k0, n);
    }
    make_block(p->kernels, s->values, n, p->w_parts, true, out);
}

/* Multiplies one block of a few strips of rows by all tokens. */
static void multiply_block(const struct product *p, struct scratch *s, int64_t strip, int n_strips,
                           int64_t block)
{
    const int64_t n = tnd_min(VALUES, p->k - block * VALUES);
    const size_t x_strip_bytes = (size_t)p->n_blocks * p->x_block_bytes;
    const struct tnd_amx_kernels *amx = &p->kernels->amx;
    tnd_amx_multiply_fn *multiply = p->w_parts > 0 ? amx->multiply_parts : amx->multiply;
    for (int i = 0; i < n_strips; i++) {
        decode_strip(p, s, strip + i, block * VALUES, n, s->w + (size_t)i * p->w_block_bytes);
    }
    for (int64_t t = 0; t < p->m; t += PAIR * LANES) {
        const char *x =
            p->x + (size_t)(t / LANES) * x_strip_bytes + (size_t)block * p->x_block_bytes;
        const int64_t n_tokens = tnd_min(PAIR * LANES, p->m - t);
        for (int i = 0; i < n_strips; i += PAIR) {
            const int64_t row = (strip + i) * LANES;
            const char *w = s->w + (size_t)i * p->w_block_bytes;
            multiply(&(struct tnd_amx_tile){
                .x = {x, n_tokens > LANES ? x + x_strip_bytes : NULL},
                .w = {w, i + 1 < n_strips ? w + p->w_block_bytes : NULL},
                .x_parts = p->x_parts,
                .w_parts = p->w_parts,
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

/* Takes fewer strips at a time if there would not be enough work for all workers. */
static int choose_strips(int64_t n_strips, int w_parts, int workers)
{
    return w_parts > 1 || n_strips / STRIPS_MOST < 4 * (int64_t)workers ? PAIR : STRIPS_MOST;
}

static bool can_unpack(const struct tnd_cpu_kernels *kernels, enum tandem_type type)
{
    return parts_of_w(type) > 0 || kernels->packed[type].unpack != NULL;
}

void tnd_matmul_amx(const struct tnd_cpu_kernels *kernels, const struct tnd_packed_weight *packed,
                    const struct tandem_work *work, struct tandem_worker *worker)
{
    const struct tandem_tensor *node = work->node;
    const struct tandem_tensor *w = node->src[0];
    const struct product p = {
        .kernels = kernels,
        .packed = can_unpack(kernels, w->type) ? packed : NULL,
        .w = w,
        .traits = tnd_type_traits(w->type),
        .code = tnd_quant_code(w->type),
        .x = work->workspace,
        .x_parts = tnd_matmul_amx_x_parts(w->type),
        .w_parts = parts_of_w(w->type),
        .x_block_bytes = block_bytes(tnd_matmul_amx_x_parts(w->type)),
        .w_block_bytes = block_bytes(parts_of_w(w->type)),
        .y = node->data,
        .y_stride = node->nb[1] / sizeof(float),
        .m = node->ne[1],
        .n = w->ne[1],
        .k = w->ne[0],
        .n_blocks = blocks_of(w->ne[0]),
        .row_begin = work->row_begin,
        .row_end = work->row_end,
    };
    TND_ASSERT(p.w_parts > 0 || (p.code != NULL && p.k % TND_X_BLOCK == 0));
    TND_ASSERT(VALUES % p.traits->block_values == 0);
    if (p.row_begin >= p.row_end) {
        return;
    }
    const int64_t first = p.row_begin / LANES;
    const int64_t n_strips = strips_of(p.row_end) - first;
    const int strips = choose_strips(n_strips, p.w_parts, worker->count);
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
