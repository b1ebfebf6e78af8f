/* SPDX-License-Identifier: MIT
 * The forward pass of the llama family (Touvron et al. 2023, arXiv:2302.13971; Jiang et al. 2023,
 * arXiv:2310.06825; Yang et al. 2024, arXiv:2407.10671) and of its mixtures of experts (Jiang et
 * al. 2024, arXiv:2401.04088), one function a formula of the papers.
 * Shapes stand behind each tensor, fastest dimension first; M tokens, T cells of the KV cache. */
#include <math.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/model.h"
#include "llama/shard.h"

/* What every formula needs. */
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
    tandem_tensor *zeros;     /* {dim, M}, what a rank adds that has nothing of a block */
    /* [1] of layers with a window: orders I32 {T + M}; F32 {T, M} when not fused; NULL: all is seen
     */
    tandem_tensor *mask[2];
    int64_t m, t;
    int64_t begin; /* of the first token in the whole batch, which `outputs` of a batch count */
};

/* Tokens that go through a layer together: a batch, or one of its micro-batches. */
struct part {
    struct pass pass;
    struct tnd_llama_batch batch;
    struct tnd_llama_kv_cache cache; /* as these tokens see it: nothing of later ones */
    tandem_tensor *x;                /* {dim, M} */
};

/* y + b; b may be NULL */
static tandem_tensor *plus(const struct pass *p, tandem_tensor *y, tandem_tensor *b)
{
    return b == NULL ? y : tandem_add(p->context, y, b);
}

/* x / rms(x) * g (Zhang and Sennrich 2019), or (x - mean) / deviation * g + b (Ba et al. 2016); x
 * itself where g is NULL. */
static tandem_tensor *norm(const struct pass *p, tandem_tensor *x, tandem_tensor *g,
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

static tandem_tensor *scaled(const struct pass *p, tandem_tensor *x, float scale)
{
    return scale == 1.0f ? x : tandem_scale(p->context, x, scale);
}

/* W y, of which each rank has a part; zeros where it has none of W. */
static tandem_tensor *sum_of_ranks(const struct pass *p, tandem_tensor *w, tandem_tensor *y)
{
    y = w != NULL ? tandem_mul_mat(p->context, w, y) : p->zeros;
    return tnd_llama_sum_ranks(p->model, p->context, y);
}

/* x + y, as much of y as the model says */
static tandem_tensor *add_block(const struct pass *p, tandem_tensor *x, tandem_tensor *y)
{
    return tandem_add(p->context, x, scaled(p, y, p->model->hparams.residual_scale));
}

static tandem_tensor *number(const struct pass *p, enum tnd_llama_number i)
{
    const int64_t one = 1;
    return tandem_view(p->context, p->model->numbers, 1, &one, NULL, (size_t)i * sizeof(float));
}

/* cap tanh(scale x / cap): no more than cap (Gemma 2; Bello et al. 2016) */
static tandem_tensor *capped(const struct pass *p, tandem_tensor *x, float cap, float scale)
{
    tandem_context *c = p->context;
    return tandem_scale(c, tandem_tanh(c, tandem_scale(c, x, scale / cap)), cap);
}

/* Values begin .. begin + n * heads - 1 of each row as heads of n; `y` has rows of `row` values. */
static tandem_tensor *heads_at(const struct pass *p, tandem_tensor *y, int64_t row, int64_t begin,
                               int64_t heads)
{
    const int64_t ne[] = {p->model->hparams.head_size, heads, p->m};
    const size_t nb[] = {(size_t)ne[0] * sizeof(float), (size_t)row * sizeof(float),
                         (size_t)(row * p->m) * sizeof(float)};
    return ne[0] * heads == row
               ? tandem_reshape(p->context, y, 3, ne)
               : tandem_view(p->context, y, 3, ne, nb, (size_t)begin * sizeof(float));
}

/* Rows of y + b as heads, b and g may be NULL: with a norm of all heads of a token together, g
 * {head_size * heads} (OLMo 2), or of each, g {head_size} (Yang et al. 2025, arXiv:2505.09388) or
 * {head_size, heads}. */
static tandem_tensor *split(const struct pass *p, tandem_tensor *y, tandem_tensor *b,
                            tandem_tensor *g, int64_t heads)
{
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t row = heads * h->head_size;
    const bool is_wide = g != NULL && tandem_tensor_ne(g)[0] != h->head_size;
    y = plus(p, y, b);
    y = heads_at(p, is_wide ? norm(p, y, g, NULL) : y, row, 0, heads);
    return is_wide || h->norms_after_rope ? y : norm(p, y, g, NULL);
}

/* Queries, keys and values of the new tokens, before rope: {head_size, heads, M} */
struct qkv {
    tandem_tensor *q, *k, *v;
};

/* One product, or three of one X one after another: they run concurrently. */
static struct qkv project(const struct pass *p, const struct tnd_llama_layer *w, tandem_tensor *y)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t row = h->q_dim + 2 * h->kv_dim;
    if (w->wqkv != NULL) {
        y = plus(p, tandem_mul_mat(c, w->wqkv, y), w->bqkv); /* {q_dim + 2 kv_dim, M} */
        return (struct qkv){heads_at(p, y, row, 0, h->heads),
                            heads_at(p, y, row, h->q_dim, h->kv_heads),
                            heads_at(p, y, row, h->q_dim + h->kv_dim, h->kv_heads)};
    }
    tandem_tensor *q = tandem_mul_mat(c, w->wq, y);
    tandem_tensor *k = tandem_mul_mat(c, w->wk, y);
    tandem_tensor *v = tandem_mul_mat(c, w->wv, y);
    q = split(p, q, w->bq, w->attn_q_norm, h->heads);
    k = split(p, k, w->bk, w->attn_k_norm, h->kv_heads);
    return (struct qkv){q, k, split(p, v, w->bv, NULL, h->kv_heads)};
}

bool tnd_llama_has_window(const struct tandem_hparams *h, int64_t layer)
{
    return h->window > 0 && (h->windowed != NULL    ? h->windowed[layer] != 0
                             : h->window_period > 0 ? (layer + 1) % h->window_period != 0
                                                    : true);
}

bool tnd_llama_has_rope(const struct tandem_hparams *h, int64_t layer)
{
    return (!h->is_rotated_in_windows || tnd_llama_has_window(h, layer)) &&
           (h->rotated != NULL   ? h->rotated[layer] != 0
            : h->rope_period > 0 ? (layer + 1) % h->rope_period != 0
                                 : true);
}

static bool scales_rope(const struct tandem_hparams *h, int64_t layer)
{
    return h->window_freq_base == 0.0f || !tnd_llama_has_window(h, layer);
}

/* Rotates pairs of values by their position (Su et al. 2021). */
static tandem_tensor *rope(const tandem_model *model, const struct tnd_llama_kv_cache *cache,
                           tandem_context *c, int64_t layer, tandem_tensor *heads,
                           tandem_tensor *positions)
{
    const struct tandem_hparams *h = &model->hparams;
    const bool is_scaled = scales_rope(h, layer);
    tandem_tensor *factors = !is_scaled       ? NULL
                             : cache->is_long ? model->rope_long
                                              : model->rope_factors;
    const struct tandem_rope_options options = {.size = sizeof(options),
                                                .pairs = h->rope_pairs,
                                                .n_rot = h->n_rot,
                                                .freq_base =
                                                    is_scaled ? h->freq_base : h->window_freq_base,
                                                .freq_scale = is_scaled ? h->freq_scale : 1.0f};
    if (model->positions != NULL || !tnd_llama_has_rope(h, layer)) {
        return heads;
    }
    return factors == NULL ? tandem_rope(c, heads, positions, &options)
                           : tandem_rope_factors(c, heads, positions, factors, &options);
}

/* One more score for each head and token, which takes a share and adds nothing (gpt-oss). `S` is
 * {T, M, heads}, and stays what it is: a column of it is only the place of the numbers. */
static tandem_tensor *add_sinks(const struct pass *p, tandem_tensor *S, tandem_tensor *sinks)
{
    tandem_context *c = p->context;
    const int64_t heads = p->model->hparams.heads;
    const int64_t column[] = {1, p->m, heads};
    const int64_t each[] = {1, 1, heads};
    tandem_tensor *zeros =
        tandem_scale(c, tandem_view(c, S, 3, column, tandem_tensor_nb(S) + 1, 0), 0.0f);
    return tandem_concat(c, S, tandem_add(c, zeros, tandem_reshape(c, sinks, 3, each)), 0);
}

/* Attention by two products: V is {T, head_size, kv_heads}. */
static tandem_tensor *unfused(const struct pass *p, tandem_tensor *Q, tandem_tensor *K,
                              tandem_tensor *V, tandem_tensor *mask, float scale,
                              tandem_tensor *sinks)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    tandem_tensor *S = tandem_mul_mat(c, K, Q); /* {T, M, heads} */
    if (h->attention_cap != 0.0f) {
        S = capped(p, S, h->attention_cap, scale);
        scale = 1.0f;
    }
    if (sinks != NULL) {
        S = add_sinks(p, scaled(p, S, scale), sinks);
        scale = 1.0f;
    }
    tandem_tensor *P = tandem_soft_max(c, S, mask, scale); /* {T or T + 1, M, heads} */
    if (sinks != NULL && P != NULL) {
        const int64_t ne[] = {p->t, p->m, h->heads};
        P = tandem_view(c, P, 3, ne, tandem_tensor_nb(P) + 1, 0);
    }
    tandem_tensor *O = tandem_mul_mat(c, V, P); /* {head_size, M, heads} */
    return p->m > 1 ? tandem_cont(c, tandem_permute(c, O, 0, 2, 1, 3)) : O;
}

/* Rotated queries and keys grow: where all of a head is rotated, attention's scale takes it. */
static bool has_magnitude(const struct tandem_hparams *h, int64_t layer)
{
    return scales_rope(h, layer) && tnd_llama_has_rope(h, layer) && !h->norms_after_rope;
}

/* softmax(Q K^T / sqrt(head_size)) V over the cells that each token sees; a KV head serves several
 * query heads (Vaswani et al. 2017; Ainslie et al. 2023) */
static tandem_tensor *attention(const struct pass *p, tandem_tensor *q, int64_t layer)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t ne[] = {h->q_dim, p->m};
    const bool is_grown = h->n_rot == h->head_size && has_magnitude(h, layer);
    const float grown = is_grown ? h->rope_magnitude * h->rope_magnitude : 1.0f;
    const float scale = h->attention_scale != 0.0f ? grown * h->attention_scale
                                                   : grown / sqrtf((float)h->head_size);
    tandem_tensor *Q = tandem_permute(c, q, 0, 2, 1, 3);              /* {head_size, M, heads} */
    tandem_tensor *K = tnd_llama_read_keys(p->cache, c, layer, p->t); /* {head_size, T, kv_heads} */
    tandem_tensor *V = tnd_llama_read_values(p->cache, c, layer, p->t);
    const bool is_windowed = tnd_llama_has_window(h, layer);
    tandem_tensor *mask = p->mask[is_windowed];
    tandem_tensor *O;
    if (!p->cache->is_transposed) { /* V: as K */
        const int64_t window = is_windowed ? h->window : TND_LLAMA_POSITIONS;
        O = mask == NULL ? tandem_attention(c, Q, K, V, NULL, scale)
                         : tandem_attention_ordered(c, Q, K, V, mask, window, scale);
    } else {
        O = unfused(p, Q, K, V, mask, scale, p->model->layers[layer].sinks);
    }
    return tandem_reshape(c, O, 2, ne); /* {head_size, heads, M} to {q_dim, M} */
}

/* Keys and values of the new tokens go to the cache, then queries look at them: {q_dim, M} */
static tandem_tensor *look(const struct pass *p, const struct tnd_llama_layer *w, tandem_tensor *y,
                           int64_t layer)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    struct qkv x = project(p, w, y);
    x.q = rope(p->model, p->cache, c, layer, x.q, p->positions);
    x.k = rope(p->model, p->cache, c, layer, x.k, p->positions);
    if (h->norms_after_rope) { /* what they grow by is gone then, but for the norm's epsilon */
        x.q = norm(p, scaled(p, x.q, h->rope_magnitude), w->attn_q_norm, NULL);
        x.k = norm(p, scaled(p, x.k, h->rope_magnitude), w->attn_k_norm, NULL);
    }
    if (p->model->rope_gain != NULL && has_magnitude(h, layer)) {
        x.q = tandem_mul(c, x.q, p->model->rope_gain);
    }
    tnd_llama_kv_write(p->cache, p->graph, c, layer, x.k, x.v, p->cells);
    return attention(p, x.q, layer);
}

/* Wo attention(y) */
static tandem_tensor *attend(const struct pass *p, tandem_tensor *y, int64_t layer)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    if (w->wo == NULL) { /* no keys want y here, but those of other ranks do: sums go on */
        tandem_graph_add(p->graph, y);
    }
    tandem_tensor *o = w->wo != NULL ? look(p, w, y, layer) : NULL; /* {q_dim, M} */
    return plus(p, sum_of_ranks(p, w->wo, o), w->bo);               /* {dim, M} */
}

/* At most 7: what lies above is taken away. */
static tandem_tensor *at_most(const struct pass *p, tandem_tensor *x)
{
    tandem_context *c = p->context;
    return tandem_sub(c, x, tandem_relu(c, tandem_sub(c, x, number(p, TND_LLAMA_CLAMP))));
}

/* What the other half of a gate is multiplied by: itself, or clamped and one more. */
static tandem_tensor *other_half(const struct pass *p, tandem_tensor *up)
{
    tandem_context *c = p->context;
    if (p->model->hparams.activation != TANDEM_ACTIVATION_CLAMPED) {
        return up;
    }
    tandem_tensor *below = tandem_sub(c, tandem_scale(c, up, -1.0f), number(p, TND_LLAMA_CLAMP));
    return tandem_add(c, at_most(p, tandem_add(c, up, tandem_relu(c, below))),
                      number(p, TND_LLAMA_ONE));
}

/* What a gate goes through; silu nearly always. */
static tandem_tensor *activate(const struct pass *p, tandem_tensor *gate)
{
    tandem_context *c = p->context;
    const float quick = 1.702f;
    switch (p->model->hparams.activation) {
    case TANDEM_ACTIVATION_SILU:
        return tandem_silu(c, gate);
    case TANDEM_ACTIVATION_GELU:
        return tandem_gelu_erf(c, gate);
    case TANDEM_ACTIVATION_GELU_TANH:
        return tandem_gelu(c, gate);
    case TANDEM_ACTIVATION_CLAMPED:
        gate = at_most(p, gate);
        return tandem_scale(c, tandem_silu(c, tandem_scale(c, gate, quick)), 1.0f / quick);
    case TANDEM_ACTIVATION_QUICK_GELU:
        return tandem_scale(c, tandem_silu(c, tandem_scale(c, gate, quick)), 1.0f / quick);
    case TANDEM_ACTIVATION_RELU:
        return tandem_relu(c, gate);
    case TANDEM_ACTIVATION_RELU2:
        return tandem_sqr(c, tandem_relu(c, gate));
    case TANDEM_ACTIVATION_LINEAR:
        break;
    }
    return gate;
}

/* Which experts a token uses, and how much each counts: the largest of softmax(Wr y), or of
 * sigmoid(Wr y) (DeepSeek-AI 2024, arXiv:2412.19437), which add up to 1 again where the model says
 * so. */
static tandem_tensor *route(const struct pass *p, const struct tnd_llama_layer *w, tandem_tensor *y,
                            tandem_tensor **out_ids)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    tandem_tensor *scores =
        plus(p, tandem_mul_mat(c, w->router, y), w->router_b); /* {experts, M} */
    tandem_tensor *g;                                          /* {used, M} */
    if (h->router == TANDEM_ROUTER_SIGMOID) {
        scores = tandem_sigmoid(c, scores);
        *out_ids = tandem_top_k(c, plus(p, scores, w->choice_b), h->experts_used);
        g = tandem_gather(c, scores, *out_ids);
        g = h->has_normed_experts ? tandem_div(c, g, tandem_mul_mat(c, p->model->ones, g)) : g;
    } else {
        *out_ids = tandem_top_k(c, scores, h->experts_used); /* I32 {used, M} */
        g = h->has_normed_experts /* of those that are used: the same, divided by their sum */
                ? tandem_soft_max(c, tandem_gather(c, scores, *out_ids), NULL, 1.0f)
                : tandem_gather(c, tandem_soft_max(c, scores, NULL, 1.0f), *out_ids);
    }
    return scaled(p, g, h->expert_scale);
}

/* An expert that every token uses, times sigmoid(wg y) where there is a wg. */
static tandem_tensor *shared_expert(const struct pass *p, const struct tnd_llama_layer *w,
                                    tandem_tensor *y)
{
    tandem_context *c = p->context;
    tandem_tensor *gate = tandem_mul_mat(c, w->gate_shexp, y); /* {shared_hidden, M} */
    tandem_tensor *up = tandem_mul_mat(c, w->up_shexp, y);
    tandem_tensor *down = tandem_mul_mat(c, w->down_shexp, tandem_mul(c, activate(p, gate), up));
    if (w->shared_gate == NULL) {
        return down;
    }
    tandem_tensor *share = tandem_sigmoid(c, tandem_mul_mat(c, w->shared_gate, y)); /* {1, M} */
    return tandem_mul(c, down, share);                                              /* {dim, M} */
}

/* y + the biases of its experts, {N, experts}; NULL: none. `y`: {N, used, M}. */
static tandem_tensor *plus_of(const struct pass *p, tandem_tensor *y, tandem_tensor *biases,
                              tandem_tensor *ids)
{
    tandem_context *c = p->context;
    const int64_t used = p->model->hparams.experts_used;
    const int64_t n = used * p->m;
    if (biases == NULL || y == NULL) {
        return y;
    }
    const int64_t ne[] = {tandem_tensor_ne(y)[0], used, p->m};
    tandem_tensor *rows = tandem_get_rows(c, biases, tandem_reshape(c, ids, 1, &n));
    return tandem_add(c, y, tandem_reshape(c, rows, 3, ne));
}

/* The sum of g_e W2_e (silu(W1_e y) * W3_e y) over the experts e of each token; ids that are -1 add
 * nothing. `b` has their biases. */
static tandem_tensor *sum_experts(const struct pass *p, const struct tnd_llama_hot_layer *w,
                                  const struct tnd_llama_layer *b, tandem_tensor *y,
                                  tandem_tensor *ids, tandem_tensor *g)
{
    tandem_context *c = p->context;
    const int64_t ne[] = {p->model->hparams.dim, 1, p->m};
    tandem_tensor *row = tandem_reshape(c, y, 3, ne);                   /* {dim, 1, M} */
    tandem_tensor *gate = tandem_mul_mat_id(c, w->gate_exps, row, ids); /* {hidden, used, M} */
    tandem_tensor *up = tandem_mul_mat_id(c, w->up_exps, row, ids);
    tandem_tensor *both = tandem_mul(c, activate(p, plus_of(p, gate, b->b1_exps, ids)),
                                     other_half(p, plus_of(p, up, b->b3_exps, ids)));
    tandem_tensor *down = tandem_mul_mat_id(c, w->down_exps, both, ids); /* {dim, used, M} */
    return tandem_weighted_sum(c, plus_of(p, down, b->b2_exps, ids), g); /* {dim, M} */
}

/* Other numbers of experts, by a table I32 {1, experts}. */
static tandem_tensor *map_ids(const struct pass *p, tandem_tensor *ids, tandem_tensor *table)
{
    const int64_t used = p->model->hparams.experts_used;
    const int64_t n = used * p->m;
    const int64_t ne[] = {used, p->m};
    tandem_tensor *mapped =
        tandem_get_rows(p->context, table, tandem_reshape(p->context, ids, 1, &n)); /* {1, n} */
    return tandem_reshape(p->context, mapped, 2, ne);                               /* {used, M} */
}

/* Hot experts, which a device keeps, and cold ones in the model's weights: two chains that do not
 * depend on one another, so that both sides work at once. */
static tandem_tensor *sum_all_experts(const struct pass *p, int64_t layer, tandem_tensor *y,
                                      tandem_tensor *ids, tandem_tensor *g)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    const struct tnd_llama_hot_layer all = {
        .gate_exps = w->gate_exps, .up_exps = w->up_exps, .down_exps = w->down_exps};
    const struct tnd_llama_hot_layer *hot = p->batch->hot != NULL ? &p->batch->hot[layer] : NULL;
    if (hot == NULL || hot->context == NULL) {
        return sum_experts(p, &all, w, y, ids, g);
    }
    tandem_tensor *of_hot = sum_experts(p, hot, w, y, map_ids(p, ids, hot->to_hot), g);
    tandem_tensor *of_cold = sum_experts(p, &all, w, y, map_ids(p, ids, hot->to_cold), g);
    return tandem_add(p->context, of_hot, of_cold);
}

/* What both kinds of experts add, of which each rank has some rows: one sum over ranks. */
static tandem_tensor *experts_of_rank(const struct pass *p, int64_t layer, tandem_tensor *y,
                                      tandem_tensor *ids, tandem_tensor *g)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    tandem_tensor *sum = w->up_exps != NULL ? sum_all_experts(p, layer, y, ids, g) : p->zeros;
    if (w->up_shexp != NULL) {
        sum = tandem_add(p->context, sum, shared_expert(p, w, y));
    }
    return tnd_llama_sum_ranks(p->model, p->context, sum);
}

/* x + sum of g_e W2_e (silu(W1_e y) * W3_e y) over the experts e of each token */
static tandem_tensor *experts_block(const struct pass *p, tandem_tensor *x, tandem_tensor *y,
                                    int64_t layer)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    tandem_tensor *ids = NULL;
    tandem_tensor *g = route(p, w, y, &ids); /* {used, M} */
    if (p->batch->expert_ids != NULL) {
        tandem_graph_add(p->graph, ids);
        p->batch->expert_ids[layer] = ids;
    }
    if (p->model->shard != NULL) {
        return add_block(p, x, experts_of_rank(p, layer, y, ids, g));
    }
    x = add_block(p, x, sum_all_experts(p, layer, y, ids, g));
    return w->up_shexp == NULL ? x : add_block(p, x, shared_expert(p, w, y)); /* {dim, M} */
}

/* silu(W1 y) * W3 y, SwiGLU and its kind (Shazeer 2020), or gelu(W3 y): {hidden, M} */
static tandem_tensor *gated(const struct pass *p, const struct tnd_llama_layer *w, tandem_tensor *y)
{
    tandem_context *c = p->context;
    const int64_t ne[] = {p->model->hparams.hidden, p->m};
    tandem_tensor *gate = w->w1 == NULL ? NULL : tandem_mul_mat(c, w->w1, y); /* {hidden, M} */
    tandem_tensor *up = tandem_mul_mat(c, w->w3, y); /* {hidden, M}, or {2 hidden, M} */
    if (gate != NULL) {
        return tandem_mul(c, activate(p, plus(p, gate, w->b1)), other_half(p, plus(p, up, w->b3)));
    }
    if (tandem_tensor_ne(w->w3)[1] == 2 * ne[0] && up != NULL) {
        const size_t *nb = tandem_tensor_nb(up) + 1;
        gate = tandem_view(c, up, 2, ne, nb, 0);
        up = tandem_view(c, up, 2, ne, nb, (size_t)ne[0] * sizeof(float));
        return tandem_mul(c, activate(p, gate), other_half(p, up));
    }
    return activate(p, plus(p, up, w->b3));
}

/* W2 of that */
static tandem_tensor *feed_forward(const struct pass *p, const struct tnd_llama_layer *w,
                                   tandem_tensor *y)
{
    tandem_tensor *both = w->w3 != NULL ? gated(p, w, y) : NULL;
    return plus(p, sum_of_ranks(p, w->w2, both), w->b2); /* {dim, M} */
}

/* x + attention of its norm, and behind it or beside it the feed-forward network or the experts.
 * What a block adds may be normed once more (Gemma 2, OLMo 2). */
static tandem_tensor *run_layer(const struct pass *p, tandem_tensor *x, int64_t layer)
{
    const struct tandem_hparams *h = &p->model->hparams;
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    /* with no other norm of the feed-forward network it is that one (gpt-oss) */
    const bool is_post = w->ffn_norm != NULL || w->ffn_post_norm != NULL;
    tandem_tensor *y = norm(p, x, w->attn_norm, w->attn_norm_b); /* {dim, M} */
    tandem_tensor *of_attention =
        w->attn_norm_2 == NULL ? y : norm(p, x, w->attn_norm_2, w->attn_norm_2_b);
    tandem_tensor *a = attend(p, of_attention, layer);
    a = is_post ? norm(p, a, w->attn_post_norm, NULL) : a;
    tandem_tensor *sum = add_block(p, x, a);
    if (!h->is_parallel) {
        y = is_post ? norm(p, sum, w->ffn_norm, w->ffn_norm_b)
                    : norm(p, sum, w->attn_post_norm, NULL);
    } else if (w->ffn_norm != NULL) {
        y = norm(p, x, w->ffn_norm, w->ffn_norm_b);
    }
    if (w->router != NULL) {
        return experts_block(p, sum, y, layer);
    }
    return add_block(p, sum, norm(p, feed_forward(p, w, y), w->ffn_post_norm, NULL));
}

/* Logits of the tokens that somebody asks for: nobody reads those of the others. */
static tandem_tensor *classifier(const struct pass *p, tandem_tensor *x,
                                 tandem_tensor **out_embeddings)
{
    tandem_tensor *wanted = NULL; /* {dim, outputs} */
    if (p->batch->n_outputs == 1) {
        const int64_t ne[] = {p->model->hparams.dim, 1};
        const size_t row = (size_t)p->model->hparams.dim * sizeof(float);
        wanted = tandem_view(p->context, x, 2, ne, NULL,
                             (size_t)(p->batch->outputs[0] - p->begin) * row);
    } else {
        wanted = tandem_get_rows(p->context, x, p->outputs);
    }
    const struct tandem_hparams *h = &p->model->hparams;
    tandem_tensor *y = norm(p, wanted, p->model->output_norm, p->model->output_norm_b);
    if (p->batch->wants_embeddings) {
        tandem_graph_add(p->graph, y);
        *out_embeddings = y;
    }
    tandem_tensor *output = p->model->output; /* NULL: a rank without any of it */
    tandem_tensor *logits = output != NULL ? tandem_mul_mat(p->context, output, y) : y;
    logits = tnd_llama_gather_logits(p->model, p->context, logits); /* {vocabulary, outputs} */
    logits = plus(p, logits, p->model->output_b);
    logits = scaled(p, logits, h->logit_scale);
    return h->logit_cap == 0.0f ? logits : capped(p, logits, h->logit_cap, 1.0f);
}

/* ---- inputs ---- */

static tandem_tensor *integers(tandem_context *context, const int32_t *values, int64_t n)
{
    tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &n);
    if (tensor != NULL) {
        memcpy(tandem_tensor_data(tensor), values, (size_t)n * sizeof(values[0]));
    }
    return tensor;
}

static bool is_seen(const struct pass *p, bool is_windowed, int64_t cell, int64_t i)
{
    const int64_t window = is_windowed ? p->model->hparams.window : TND_LLAMA_POSITIONS;
    const int64_t order = (int64_t)p->batch->sequences[i] * TND_LLAMA_SPAN + p->batch->positions[i];
    const int64_t distance = order - p->cache->orders[cell];
    return distance >= 0 && distance < window;
}

static bool is_all_seen(const struct pass *p, bool is_windowed)
{
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t cell = 0; cell < p->t; cell++) {
            if (!is_seen(p, is_windowed, cell, i)) {
                return false;
            }
        }
    }
    return true;
}

/* Numbers in place of a mask: M + T of them. */
static tandem_tensor *make_orders(const struct pass *p)
{
    const int64_t n = p->t + p->m;
    tandem_tensor *orders = tandem_tensor_new(p->context, TANDEM_TYPE_I32, 1, &n);
    if (orders != NULL) {
        int32_t *values = tandem_tensor_data(orders);
        memcpy(values, p->cache->orders, (size_t)p->t * sizeof(values[0]));
        for (int64_t i = 0; i < p->m; i++) {
            values[p->t + i] = p->batch->sequences[i] * TND_LLAMA_SPAN + p->batch->positions[i];
        }
    }
    return orders;
}

static tandem_tensor *make_mask(const struct pass *p, bool is_windowed)
{
    const int64_t ne[] = {p->t + p->model->hparams.has_sinks, p->m}; /* sinks are seen */
    tandem_tensor *mask = tandem_tensor_new(p->context, TANDEM_TYPE_F32, 2, ne);
    float *values = tandem_tensor_data(mask);
    for (int64_t i = 0; mask != NULL && i < p->m; i++) {
        for (int64_t cell = 0; cell < ne[0]; cell++) {
            const bool sees = cell == p->t || is_seen(p, is_windowed, cell, i);
            values[i * ne[0] + cell] = sees ? 0.0f : -INFINITY;
        }
    }
    return mask;
}

static enum tandem_status make_inputs(struct pass *p, struct tandem_error *error)
{
    const struct tnd_llama_batch *batch = p->batch;
    p->tokens = integers(p->context, batch->tokens, p->m);
    p->positions = integers(p->context, batch->positions, p->m);
    if (batch->is_on_cpu && tnd_llama_kv_is_scattered(p->cache)) {
        p->cells = integers(p->context, p->cache->taken, p->m);
    }
    if (batch->n_outputs > 1) {
        p->outputs = integers(p->context, batch->outputs, batch->n_outputs);
        int32_t *outputs = tandem_tensor_data(p->outputs);
        for (int64_t i = 0; outputs != NULL && i < batch->n_outputs; i++) {
            outputs[i] -= (int32_t)p->begin;
        }
    }
    const struct tandem_hparams *h = &p->model->hparams;
    if (p->model->shard != NULL) {
        p->zeros = tnd_llama_zeros(p->context, h->dim, p->m);
    }
    const bool has_kind[] = {!tnd_llama_is_windowed(h), h->window > 0};
    for (int kind = 0; kind < 2; kind++) {
        if (has_kind[kind] && !is_all_seen(p, kind != 0)) {
            p->mask[kind] = p->cache->is_transposed ? make_mask(p, kind != 0)
                            : p->mask[0] != NULL    ? p->mask[0] /* orders serve both */
                                                    : make_orders(p);
        }
    }
    return tandem_context_status(p->context, error);
}

/* ---- batches and micro-batches ---- */

/* The cells that tokens up to `end` see: without those of later ones, as far as these are the last.
 * What stands between is hidden by its order. */
static int64_t cells_until(const struct tnd_llama_kv_cache *cache, int64_t end)
{
    int64_t t = cache->n_used;
    for (int64_t i = cache->n_taken; i > end && cache->taken[i - 1] == t - 1; i--) {
        t--;
    }
    return t;
}

/* Tokens begin .. end - 1 of a batch. */
static enum tandem_status begin_part(struct part *part, const tandem_model *model,
                                     const struct tnd_llama_kv_cache *cache,
                                     const struct tnd_llama_batch *whole, int number, int64_t begin,
                                     int64_t end, struct tandem_error *error)
{
    part->batch = *whole;
    part->batch.m = end - begin;
    part->batch.tokens += begin;
    part->batch.positions += begin;
    part->batch.sequences += begin;
    part->batch.n_outputs = 0;
    for (int64_t i = 0; i < whole->n_outputs && whole->outputs[i] < end; i++) {
        part->batch.outputs += whole->outputs[i] < begin;
        part->batch.n_outputs += whole->outputs[i] >= begin;
    }
    if (whole->expert_ids != NULL) {
        part->batch.expert_ids += number * model->hparams.layers;
    }
    part->cache = *cache;
    part->cache.taken += begin;
    part->cache.n_taken = end - begin;
    part->cache.n_used = cells_until(cache, end);
    struct pass *p = &part->pass;
    p->model = model;
    p->cache = &part->cache;
    p->batch = &part->batch;
    p->m = part->batch.m;
    p->t = part->cache.n_used;
    p->begin = begin;
    LLAMA_TRY(make_inputs(p, error));
    part->x = scaled(p, tandem_get_rows(p->context, model->token_embedding, p->tokens),
                     model->hparams.embedding_scale); /* {dim, M} */
    if (model->positions != NULL) {
        part->x = tandem_add(p->context, part->x,
                             tandem_get_rows(p->context, model->positions, p->positions));
    }
    return TANDEM_OK;
}

/* The layers of a stage, and behind the last one the classifier. */
static void run_stage(struct part *part, const struct tnd_llama_split *split, int stage, int number,
                      struct tnd_llama_forward *forward)
{
    const struct pass *p = &part->pass;
    for (int64_t layer = 0; layer < p->model->hparams.layers; layer++) {
        if (split->n_stages == 1 || split->stages[layer] == stage) {
            part->x = run_layer(p, part->x, layer);
        }
    }
    if (stage == split->n_stages - 1 && part->batch.n_outputs > 0) {
        forward->logits[number] =
            tandem_tensor_set_name(classifier(p, part->x, &forward->embeddings[number]), "logits");
        tandem_graph_add(p->graph, forward->logits[number]);
    }
}

/* Micro-batch i is in a stage while micro-batch i + 1 is in the stage before, which stands first:
 * its place gets its work before anybody waits for the other one. A micro-batch sees keys and
 * values of earlier ones, which have left the layer. Each is a chain, with memory of its own. */
enum tandem_status tnd_llama_forward(const tandem_model *model,
                                     const struct tnd_llama_kv_cache *cache,
                                     const struct tnd_llama_batch *batch, tandem_context *context,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error)
{
    const struct tnd_llama_split one = {.n = 1, .begin = {0, batch->m}, .n_stages = 1};
    const struct tnd_llama_split *split = batch->split != NULL ? batch->split : &one;
    struct part parts[TND_LLAMA_MICRO_BATCHES];
    struct tnd_llama_forward forward = {.graph = tandem_graph_new(context), .n_parts = split->n};
    LLAMA_ASSERT(batch->m > 0 && batch->m == cache->n_taken && batch->n_outputs <= batch->m);
    LLAMA_ASSERT(split->n >= 1 && split->n <= TND_LLAMA_MICRO_BATCHES);
    memset(parts, 0, sizeof(parts));
    for (int step = 0; step < split->n + split->n_stages - 1; step++) {
        for (int i = step < split->n ? step : split->n - 1; i >= 0; i--) {
            const int stage = step - i;
            tandem_context_set_chain(context, i);
            if (stage == 0) {
                parts[i].pass.context = context;
                parts[i].pass.graph = forward.graph;
                LLAMA_TRY(begin_part(&parts[i], model, cache, batch, i, split->begin[i],
                                     split->begin[i + 1], error));
            }
            if (stage < split->n_stages) {
                run_stage(&parts[i], split, stage, i, &forward);
            }
        }
    }
    LLAMA_TRY(tandem_graph_finish(forward.graph, error));
    *out_forward = forward;
    return TANDEM_OK;
}

/* ---- context shift ---- */

/* Rotates the keys of n adjacent cells by deltas[cell] positions. Angles add up, so the keys need
 * not be known as they were before rope. Rows pass through floats, whatever the type of the cache.
 * */
static void shift_run(const tandem_model *model, const struct tnd_llama_kv_cache *cache,
                      int64_t layer, int64_t cell, int64_t n, const int32_t *deltas,
                      tandem_context *c, tandem_graph *graph)
{
    const int64_t kv_dim = cache->head_size * cache->kv_heads;
    const int64_t all_ne[] = {kv_dim, cache->n_cells};
    const int64_t ne[] = {cache->head_size, cache->kv_heads, n};
    const size_t row = tandem_type_row_bytes(cache->type, kv_dim);
    tandem_tensor *ids = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n);
    tandem_tensor *angles = integers(c, deltas + cell, n);
    int32_t *id = tandem_tensor_data(ids);
    for (int64_t i = 0; ids != NULL && i < n; i++) {
        id[i] = (int32_t)(cell + i);
    }
    tandem_tensor *all = tandem_view(c, cache->keys[layer], 2, all_ne, NULL, 0);
    tandem_tensor *rows = tandem_get_rows(c, all, ids); /* {kv_dim, n} */
    tandem_tensor *k = rope(model, cache, c, layer, tandem_reshape(c, rows, 3, ne), angles);
    tandem_tensor *place = tandem_view(c, cache->keys[layer], 3, ne, NULL, (size_t)cell * row);
    tandem_graph_add(graph, tandem_cpy(c, k, place));
}

enum tandem_status tnd_llama_shift(const tandem_model *model,
                                   const struct tnd_llama_kv_cache *cache, const int32_t *deltas,
                                   tandem_context *context, tandem_graph **out_graph,
                                   struct tandem_error *error)
{
    tandem_graph *graph = NULL;
    if (model->positions != NULL || model->hparams.norms_after_rope) {
        return tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, "llama", 0, 0,
                              "llama: keys of a model of architecture %s cannot be moved to other "
                              "positions: the text is too long for its context",
                              model->hparams.architecture);
    }
    for (int64_t cell = 0; cell < cache->n_used;) {
        int64_t n = 1;
        while (cell + n < cache->n_used && (deltas[cell + n] != 0) == (deltas[cell] != 0)) {
            n++;
        }
        if (deltas[cell] != 0) {
            graph = graph != NULL ? graph : tandem_graph_new(context);
            for (int64_t layer = 0; layer < cache->layers; layer++) {
                if (!tnd_llama_has_rope(&model->hparams, layer)) {
                    continue;
                }
                shift_run(model, cache, layer, cell, n, deltas, context, graph);
            }
        }
        cell += n;
    }
    if (graph != NULL) {
        LLAMA_TRY(tandem_graph_finish(graph, error));
    }
    *out_graph = graph;
    return TANDEM_OK;
}
