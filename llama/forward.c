/* SPDX-License-Identifier: MIT
 * The forward pass of a llama (Touvron et al. 2023, arXiv:2302.13971), one function a formula of
 * the paper. Shapes stand behind each tensor, fastest dimension first; M tokens, T positions filled
 * so far. */
#include <math.h>

#include "llama/llama_error.h"
#include "llama/model.h"

/* What every formula needs. */
struct pass {
    const struct tnd_llama_model *model;
    const struct tnd_llama_kv_cache *cache;
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor *positions; /* I32 {M} */
    int64_t n_past;
    int64_t m;
};

/* x / rms(x) * g (Zhang and Sennrich 2019) */
static tandem_tensor *rms_norm(const struct pass *p, tandem_tensor *x, tandem_tensor *g)
{
    tandem_tensor *normed = tandem_rms_norm(p->context, x, p->model->hparams.norm_eps);
    return tandem_mul(p->context, normed, g);
}

/* Cuts rows of y into heads and turns each by its position (Su et al. 2021). */
static tandem_tensor *rope(const struct pass *p, tandem_tensor *y, int64_t heads)
{
    const struct tnd_llama_hparams *h = &p->model->hparams;
    const int64_t ne[] = {h->head_size, heads, p->m};
    tandem_tensor *split = tandem_reshape(p->context, y, 3, ne); /* {head_size, heads, M} */
    return tandem_rope(p->context, split, p->positions, &h->rope);
}

/* softmax(Q K^T / sqrt(head_size)) V over all tokens so far, causal; a KV head serves several query
 * heads (Vaswani et al. 2017; Ainslie et al. 2023) */
static tandem_tensor *attention(const struct pass *p, tandem_tensor *q, int64_t layer)
{
    tandem_context *c = p->context;
    const struct tnd_llama_hparams *h = &p->model->hparams;
    const int64_t t = p->n_past + p->m;
    const float scale = 1.0f / sqrtf((float)h->head_size);
    tandem_tensor *Q = tandem_permute(c, q, 0, 2, 1, 3);              /* {head_size, M, heads} */
    tandem_tensor *K = tnd_llama_read_keys(p->cache, c, layer, t);    /* {head_size, T, kv_heads} */
    tandem_tensor *Vt = tnd_llama_read_values(p->cache, c, layer, t); /* {T, head_size, kv_heads} */
    tandem_tensor *S = tandem_mul_mat(c, K, Q);                       /* {T, M, heads} */
    if (p->m > 1) { /* the last token sees everything: nothing to mask for one alone */
        S = tandem_diag_mask_inf(c, S, p->n_past);
    }
    tandem_tensor *P = tandem_soft_max(c, S, NULL, scale); /* {T, M, heads} */
    tandem_tensor *O = tandem_mul_mat(c, Vt, P);           /* {head_size, M, heads} */
    if (p->m > 1) {
        O = tandem_cont(c, tandem_permute(c, O, 0, 2, 1, 3)); /* {head_size, heads, M} */
    }
    const int64_t ne[] = {h->dim, p->m};
    return tandem_reshape(c, O, 2, ne); /* {dim, M} */
}

/* x + Wo attention(norm(x)); keys and values of the new tokens go to the cache first */
static tandem_tensor *attention_block(const struct pass *p, tandem_tensor *x, int64_t layer)
{
    tandem_context *c = p->context;
    const struct tnd_llama_hparams *h = &p->model->hparams;
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    tandem_tensor *y = rms_norm(p, x, w->attn_norm);                      /* {dim, M} */
    tandem_tensor *q = rope(p, tandem_mul_mat(c, w->wq, y), h->heads);    /* {hs, heads, M} */
    tandem_tensor *k = rope(p, tandem_mul_mat(c, w->wk, y), h->kv_heads); /* {hs, kv_heads, M} */
    tandem_tensor *v = tandem_mul_mat(c, w->wv, y);                       /* {kv_dim, M} */
    tandem_graph_add(p->graph, tnd_llama_write_keys(p->cache, c, layer, k, p->n_past, p->m));
    tandem_graph_add(p->graph, tnd_llama_write_values(p->cache, c, layer, v, p->n_past, p->m));
    tandem_tensor *o = attention(p, q, layer);            /* {dim, M} */
    return tandem_add(c, x, tandem_mul_mat(c, w->wo, o)); /* {dim, M} */
}

/* x + W2 (silu(W1 norm(x)) * W3 norm(x)), SwiGLU (Shazeer 2020) */
static tandem_tensor *feed_forward_block(const struct pass *p, tandem_tensor *x, int64_t layer)
{
    tandem_context *c = p->context;
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    tandem_tensor *y = rms_norm(p, x, w->ffn_norm);                          /* {dim, M} */
    tandem_tensor *gate = tandem_silu(c, tandem_mul_mat(c, w->w1, y));       /* {hidden, M} */
    tandem_tensor *up = tandem_mul_mat(c, w->w3, y);                         /* {hidden, M} */
    tandem_tensor *down = tandem_mul_mat(c, w->w2, tandem_mul(c, gate, up)); /* {dim, M} */
    return tandem_add(c, x, down);
}

/* Logits of the last of M tokens: nobody reads those of the others. */
static tandem_tensor *classifier(const struct pass *p, tandem_tensor *x)
{
    const int64_t ne[] = {p->model->hparams.dim, 1};
    const size_t offset = (size_t)(p->model->hparams.dim * (p->m - 1)) * sizeof(float);
    tandem_tensor *last = tandem_view(p->context, x, 2, ne, NULL, offset); /* {dim, 1} */
    tandem_tensor *y = rms_norm(p, last, p->model->output_norm);           /* {dim, 1} */
    return tandem_mul_mat(p->context, p->model->output, y);                /* {vocabulary, 1} */
}

enum tandem_status tnd_llama_forward(const struct tnd_llama_model *model,
                                     const struct tnd_llama_kv_cache *cache, int64_t n_past,
                                     int64_t m, bool with_logits, tandem_context *context,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error)
{
    struct pass p = {.model = model, .cache = cache, .context = context, .n_past = n_past, .m = m};
    struct tnd_llama_forward forward = {.graph = tandem_graph_new(context)};
    forward.tokens = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &m);
    forward.positions = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &m);
    LLAMA_TRY(tandem_context_status(context, error));
    p.graph = forward.graph;
    p.positions = forward.positions;

    tandem_tensor *x =
        tandem_get_rows(context, model->token_embedding, forward.tokens); /* {dim, M} */
    for (int64_t layer = 0; layer < model->hparams.layers; layer++) {
        x = attention_block(&p, x, layer);
        x = feed_forward_block(&p, x, layer);
    }
    if (with_logits) {
        forward.logits = tandem_tensor_set_name(classifier(&p, x), "logits");
        tandem_graph_add(p.graph, forward.logits);
    }
    LLAMA_TRY(tandem_graph_finish(p.graph, error));
    *out_forward = forward;
    return TANDEM_OK;
}
