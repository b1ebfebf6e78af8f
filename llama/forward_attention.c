/* SPDX-License-Identifier: MIT
 * Attention: queries, keys and values (Vaswani et al. 2017; Ainslie et al. 2023), rope (Su et al.
 * 2021), and the cache whose keys move when a text is shortened. */
#include <math.h>

#include "llama/forward.h"
#include "llama/llama_error.h"

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

/* The epsilon of these norms is the same whatever that of the others is. */
static tandem_tensor *norm_latent(const struct pass *p, tandem_tensor *x, tandem_tensor *g)
{
    return tandem_mul(p->context, tandem_rms_norm(p->context, x, 1e-6f), g);
}

/* Queries, and one key that is the value, too, of latent vectors (DeepSeek-AI 2024): what rotates,
 * which goes before the rest, and the latent vector. What a head would make of the latter its
 * queries take over: (Wk c) q = c (Wk^T q). */
static struct qkv project_latent(const struct pass *p, const struct tnd_llama_layer *w,
                                 tandem_tensor *y)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t own = tandem_tensor_ne(w->k_b)[0]; /* values that do not rotate */
    const size_t all_nb = (size_t)(own + h->n_rot) * sizeof(float);
    const int64_t own_ne[] = {own, h->heads, p->m};
    const int64_t rot_ne[] = {h->n_rot, h->heads, p->m};
    const int64_t one_ne[] = {h->n_rot, p->m};
    const int64_t latent_ne[] = {h->kv_latent, p->m};
    const int64_t key_ne[] = {h->head_size, 1, p->m};
    const size_t q_nb[] = {all_nb, all_nb * (size_t)h->heads, all_nb * (size_t)(h->heads * p->m)};
    tandem_tensor *q =
        w->q_a == NULL
            ? tandem_mul_mat(c, w->wq, y)
            : tandem_mul_mat(c, w->q_b, norm_latent(p, tandem_mul_mat(c, w->q_a, y), w->q_a_norm));
    tandem_tensor *q_own = tandem_view(c, q, 3, own_ne, q_nb, 0);
    tandem_tensor *q_rot = tandem_view(c, q, 3, rot_ne, q_nb, (size_t)own * sizeof(float));
    q_own =
        tandem_mul_mat(c, w->k_b, tandem_permute(c, q_own, 0, 2, 1, 3)); /* {latent, M, heads} */
    q_own = tandem_permute(c, q_own, 0, 2, 1, 3);
    tandem_tensor *kv = tandem_mul_mat(c, w->kv_a, y); /* {kv_latent + n_rot, M} */
    const size_t kv_row = (size_t)h->head_size * sizeof(float);
    const size_t kv_nb[] = {kv_row, kv_row * (size_t)p->m, kv_row * (size_t)p->m};
    tandem_tensor *latent = tandem_view(c, kv, 2, latent_ne, kv_nb, 0);
    tandem_tensor *k_rot =
        tandem_view(c, kv, 2, one_ne, kv_nb, (size_t)h->kv_latent * sizeof(float));
    latent = norm_latent(p, tandem_cont(c, latent), w->kv_a_norm);
    tandem_tensor *k =
        tandem_reshape(c, tandem_concat(c, tandem_cont(c, k_rot), latent, 0), 3, key_ne);
    return (struct qkv){tandem_concat(c, tandem_cont(c, q_rot), tandem_cont(c, q_own), 0), k, k};
}

/* What each head makes of its share of the latent vectors: {heads * value_size, M} */
static tandem_tensor *from_latent(const struct pass *p, const struct tnd_llama_layer *w,
                                  tandem_tensor *O)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t whole_ne[] = {h->head_size, h->heads, p->m};
    const int64_t ne[] = {h->kv_latent, h->heads, p->m};
    const int64_t out_ne[] = {h->heads * h->value_size, p->m};
    const size_t row = (size_t)h->head_size * sizeof(float);
    const size_t nb[] = {row, row * (size_t)h->heads, row * (size_t)(h->heads * p->m)};
    O = tandem_view(c, tandem_reshape(c, O, 3, whole_ne), 3, ne, nb,
                    (size_t)h->n_rot * sizeof(float));
    O = tandem_mul_mat(c, w->v_b, tandem_permute(c, O, 0, 2, 1, 3)); /* {value_size, M, heads} */
    return tandem_reshape(c, tandem_cont(c, tandem_permute(c, O, 0, 2, 1, 3)), 2, out_ne);
}

bool tnd_llama_has_window(const struct tandem_hparams *h, int64_t layer)
{
    return h->window > 0 &&
           (h->windowed != NULL    ? h->windowed[layer] != 0
            : h->window_period > 0 ? (layer + (h->has_wide_first ? 0 : 1)) % h->window_period != 0
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
static tandem_tensor *attention(const struct pass *p, const struct qkv *x, int64_t layer)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t ne[] = {h->q_dim, p->m};
    const bool is_grown = h->n_rot == h->head_size && has_magnitude(h, layer);
    const float grown = is_grown ? h->rope_magnitude * h->rope_magnitude : 1.0f;
    const float scale = h->attention_scale != 0.0f ? grown * h->attention_scale
                                                   : grown / sqrtf((float)h->head_size);
    tandem_tensor *Q = tandem_permute(c, x->q, 0, 2, 1, 3); /* {head_size, M, heads} */
    tandem_tensor *K, *V;                                   /* {head_size, T, kv_heads} */
    if (h->is_encoder) {
        K = tandem_permute(c, x->k, 0, 2, 1, 3);
        V = !p->cache->is_transposed ? tandem_permute(c, x->v, 0, 2, 1, 3)
                                     : tandem_cont(c, tandem_permute(c, x->v, 1, 2, 0, 3));
    } else {
        K = tnd_llama_read_keys(p->cache, c, layer, p->t);
        V = tnd_llama_read_values(p->cache, c, layer, p->t);
    }
    const bool is_windowed = tnd_llama_has_window(h, layer);
    tandem_tensor *mask = p->mask[is_windowed];
    tandem_tensor *O;
    if (!p->cache->is_transposed) { /* V: as K */
        const struct tandem_attention_options options = {.size = sizeof(options),
                                                         .scale = scale,
                                                         .cap = h->attention_cap,
                                                         .mask = mask,
                                                         .window = tnd_llama_window(h, is_windowed),
                                                         .sinks = p->model->layers[layer].sinks};
        O = tandem_attention_with(c, Q, K, V, &options);
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
    struct qkv x = w->kv_a != NULL ? project_latent(p, w, y) : project(p, w, y);
    x.q = rope(p->model, p->cache, c, layer, x.q, p->positions);
    x.k = rope(p->model, p->cache, c, layer, x.k, p->positions);
    x.v = w->kv_a != NULL ? x.k : x.v; /* of which the rotated part is left out */
    if (h->norms_after_rope) { /* what they grow by is gone then, but for the norm's epsilon */
        x.q = norm(p, scaled(p, x.q, h->rope_magnitude), w->attn_q_norm, NULL);
        x.k = norm(p, scaled(p, x.k, h->rope_magnitude), w->attn_k_norm, NULL);
    }
    if (p->model->rope_gain != NULL && has_magnitude(h, layer)) {
        x.q = tandem_mul(c, x.q, p->model->rope_gain);
    }
    if (!h->is_encoder) {
        tnd_llama_kv_write(p->cache, p->graph, c, layer, x.k, x.v, p->cells);
    }
    tandem_tensor *o = attention(p, &x, layer);
    return w->kv_a != NULL ? from_latent(p, w, o) : o;
}

tandem_tensor *tnd_llama_attend(const struct pass *p, tandem_tensor *y, int64_t layer)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    if (w->wo == NULL) { /* no keys want y here, but those of other ranks do: sums go on */
        tandem_graph_add(p->graph, y);
    }
    tandem_tensor *o = w->wo != NULL ? look(p, w, y, layer) : NULL; /* {q_dim, M} */
    return plus(p, sum_of_ranks(p, w->wo, o), w->bo);               /* {dim, M} */
}

/* ---- context shift ---- */

/* Rotates the keys of n adjacent cells by deltas[cell] positions. Angles add up, so the keys need
 * not be known as they were before rope. Rows pass through floats, whatever the type of the cache.
 * */
static void shift_run(const tandem_model *model, const struct tnd_llama_kv_cache *cache,
                      int64_t layer, int64_t cell, int64_t n, const int32_t *deltas,
                      tandem_context *c, tandem_graph *graph)
{
    const int64_t heads = tnd_llama_kv_heads_of(cache, layer);
    const int64_t kv_dim = cache->head_size * heads;
    const int64_t all_ne[] = {kv_dim, cache->n_cells};
    const int64_t ne[] = {cache->head_size, heads, n};
    const size_t row = tandem_type_row_bytes(cache->type, kv_dim);
    tandem_tensor *ids = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n);
    tandem_tensor *angles = tnd_llama_integers(c, deltas + cell, n);
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
            for (int64_t layer = cache->begin; layer < cache->end; layer++) {
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
