/* SPDX-License-Identifier: MIT
 * What the formulas of the forward pass share: forward.c has the layers and their inputs,
 * forward_attention.c and forward_ffn.c the two blocks of a layer. */
#ifndef TND_LLAMA_FORWARD_H
#define TND_LLAMA_FORWARD_H

#include "llama/kv_cache.h"
#include "llama/model.h"
#include "llama/shard.h"

/* Arguments of every formula. */
struct pass {
    const tandem_model *model;
    const struct tnd_llama_kv_cache *cache;
    const struct tnd_llama_batch *batch;
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor *tokens;    /* I32 {M} */
    tandem_tensor *positions; /* I32 {M} */
    tandem_tensor *cells;     /* I32 {M}, of the new keys and values; NULL: written run by run */
    tandem_tensor *outputs;   /* I32 {outputs} */
    tandem_tensor *zeros;     /* {dim, M}: what a rank without a part of a block adds */
    /* [0] of ordinary layers, [1] of layers with a window: orders I32 {T + M}; F32 {T, M} if not
     * fused; NULL: all is visible */
    tandem_tensor *mask[2];
    int64_t m, t;          /* encoders have no cells: T is M */
    tandem_tensor *types;  /* I32 {M}; NULL: tokens have none */
    int64_t begin;         /* first token's index in the whole batch, to which `outputs` refer */
    tandem_tensor **after; /* by layers: the last message to or from another rank */
};

/* y + b; b may be NULL */
static inline tandem_tensor *plus(const struct pass *p, tandem_tensor *y, tandem_tensor *b)
{
    return b == NULL ? y : tandem_add(p->context, y, b);
}

/* x / rms(x) * g (Zhang and Sennrich 2019), or (x - mean) / deviation * g + b (Ba et al. 2016); x
 * itself where g is NULL. */
static inline tandem_tensor *norm(const struct pass *p, tandem_tensor *x, tandem_tensor *g,
                                  tandem_tensor *b)
{
    const struct tandem_hparams *h = &p->model->hparams;
    if (g == NULL) {
        return x;
    }
    tandem_tensor *normed = h->norm == TANDEM_LLAMA_LAYER_NORM
                                ? tandem_norm(p->context, x, h->norm_eps)
                                : tandem_rms_norm(p->context, x, h->norm_eps);
    return plus(p, tandem_mul(p->context, normed, g), b);
}

static inline tandem_tensor *scaled(const struct pass *p, tandem_tensor *x, float scale)
{
    return scale == 1.0f ? x : tandem_scale(p->context, x, scale);
}

/* Number of orders that a query sees, including its own, in layers with or without a window. */
int64_t tnd_llama_window(const struct tandem_hparams *h, bool is_windowed);

/* W y, summed over ranks that each have a part of W; zeros if this rank has none. */
static inline tandem_tensor *sum_of_ranks(const struct pass *p, tandem_tensor *w, tandem_tensor *y)
{
    y = w != NULL ? tandem_mul_mat(p->context, w, y) : p->zeros;
    return tnd_llama_sum_ranks(p->model, p->context, y);
}

/* x + residual_scale y */
static inline tandem_tensor *add_block(const struct pass *p, tandem_tensor *x, tandem_tensor *y)
{
    return tandem_add(p->context, x, scaled(p, y, p->model->hparams.residual_scale));
}

static inline tandem_tensor *number(const struct pass *p, enum tnd_llama_number i)
{
    const int64_t one = 1;
    return tandem_view(p->context, p->model->numbers, 1, &one, NULL, (size_t)i * sizeof(float));
}

/* cap tanh(scale x / cap): bounded by cap (Gemma 2; Bello et al. 2016) */
static inline tandem_tensor *capped(const struct pass *p, tandem_tensor *x, float cap, float scale)
{
    tandem_context *c = p->context;
    return tandem_scale(c, tandem_tanh(c, tandem_scale(c, x, scale / cap)), cap);
}

/** Wo attention(y) of a layer; stores its keys and values in the cache first. {dim, M} */
tandem_tensor *tnd_llama_attend(const struct pass *p, tandem_tensor *y, int64_t layer);
/** W2 (silu(W1 y) * W3 y), SwiGLU and its kind (Shazeer 2020), or W2 gelu(W3 y). {dim, M} */
tandem_tensor *tnd_llama_feed_forward(const struct pass *p, const struct tnd_llama_layer *w,
                                      tandem_tensor *y);
/** x + the sum of g_e W2_e (silu(W1_e y) * W3_e y) over the experts e of each token. {dim, M} */
tandem_tensor *tnd_llama_experts(const struct pass *p, tandem_tensor *x, tandem_tensor *y,
                                 int64_t layer);
/** I32 {n} */
tandem_tensor *tnd_llama_integers(tandem_context *context, const int32_t *values, int64_t n);

#endif
