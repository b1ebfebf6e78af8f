/* SPDX-License-Identifier: MIT
 * The feed-forward network of a layer, and its mixtures of experts (Jiang et al. 2024,
 * arXiv:2401.04088). */
#include <math.h>

#include "llama/forward.h"

/* The factor of the gate: `up` itself, or clamped plus one. */
static tandem_tensor *other_half(const struct pass *p, tandem_tensor *up)
{
    tandem_context *c = p->context;
    if (p->model->hparams.activation != TANDEM_ACTIVATION_CLAMPED) {
        return up;
    }
    up = tandem_clamp(c, up, -TND_LLAMA_CLAMPED_AT, TND_LLAMA_CLAMPED_AT);
    return tandem_add(c, up, number(p, TND_LLAMA_ONE));
}

/* The gate's activation; usually silu. */
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
        gate = tandem_clamp(c, gate, -INFINITY, TND_LLAMA_CLAMPED_AT);
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

/* Sum of the first n values of each row of a: {1, rows}. */
static tandem_tensor *sum_rows(const struct pass *p, tandem_tensor *a, int64_t n)
{
    return tandem_mul_mat(p->context, tandem_view(p->context, p->model->group_ones, 1, &n, NULL, 0),
                          a);
}

/* Scores {experts, M}, far below zero except in the groups that a token uses: those with the best
 * single expert (DeepSeek V2), or with the largest sum of their best two (V3). */
static tandem_tensor *of_groups(const struct pass *p, tandem_tensor *scores)
{
    tandem_context *c = p->context;
    const struct tandem_hparams *h = &p->model->hparams;
    const int64_t groups = h->expert_groups;
    const int64_t used = h->expert_groups_used;
    if (groups == 0) {
        return scores;
    }
    const int64_t n_best = h->router == TANDEM_ROUTER_SIGMOID ? 2 : 1;
    const int64_t rows_ne[] = {h->experts / groups, groups * p->m};
    const int64_t groups_ne[] = {groups, p->m};
    const int64_t marks_ne[] = {groups, used, p->m};
    const int64_t far_ne[] = {1, groups, p->m};
    const int64_t apart_ne[] = {h->experts / groups, groups, p->m};
    const int64_t ne[] = {h->experts, p->m};
    const int64_t n = used * p->m;
    tandem_tensor *rows = tandem_reshape(c, scores, 2, rows_ne);
    tandem_tensor *best = tandem_gather(c, rows, tandem_top_k(c, rows, n_best));
    tandem_tensor *of_each = tandem_reshape(c, sum_rows(p, best, n_best), 2, groups_ne);
    tandem_tensor *taken = tandem_reshape(c, tandem_top_k(c, of_each, used), 1, &n);
    tandem_tensor *marks = tandem_get_rows(c, p->model->group_rows, taken); /* {groups, n} */
    marks = tandem_permute(c, tandem_reshape(c, marks, 3, marks_ne), 1, 0, 2, 3);
    tandem_tensor *far = sum_rows(p, tandem_cont(c, marks), used); /* {1, groups, M} */
    far = tandem_sub(c, tandem_reshape(c, far, 3, far_ne), number(p, TND_LLAMA_FAR_OFF));
    scores = tandem_add(c, tandem_reshape(c, scores, 3, apart_ne), far);
    return tandem_reshape(c, scores, 2, ne);
}

/* Chooses the experts of each token and their weights: the largest of softmax(Wr y), or of
 * sigmoid(Wr y) (DeepSeek-AI 2024, arXiv:2412.19437), normalised to sum 1 if the model says so. */
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
        *out_ids = tandem_top_k(c, of_groups(p, plus(p, scores, w->choice_b)), h->experts_used);
        g = tandem_gather(c, scores, *out_ids);
        g = h->has_normed_experts ? tandem_div(c, g, tandem_mul_mat(c, p->model->ones, g)) : g;
    } else {
        *out_ids = tandem_top_k(c, of_groups(p, scores), h->experts_used); /* I32 {used, M} */
        g = h->has_normed_experts /* of the chosen ones: the same, divided by their sum */
                ? tandem_soft_max(c, tandem_gather(c, scores, *out_ids), NULL, 1.0f)
                : tandem_gather(c, tandem_soft_max(c, scores, NULL, 1.0f), *out_ids);
    }
    return scaled(p, g, h->expert_scale);
}

/* The expert that every token uses, times sigmoid(wg y) if there is a wg. */
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

/* y + the biases {N, experts} of its experts; NULL: none. `y`: {N, used, M}. */
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

/* Sum of g_e W2_e (silu(W1_e y) * W3_e y) over the experts e of each token; ids of -1 add nothing.
 * `b` has the biases for `all_ids`, which are added once. */
static tandem_tensor *sum_experts(const struct pass *p, const struct tnd_llama_hot_layer *w,
                                  const struct tnd_llama_layer *b, tandem_tensor *y,
                                  tandem_tensor *ids, tandem_tensor *all_ids, tandem_tensor *g)
{
    tandem_context *c = p->context;
    const int64_t ne[] = {p->model->hparams.dim, 1, p->m};
    tandem_tensor *row = tandem_reshape(c, y, 3, ne);                   /* {dim, 1, M} */
    tandem_tensor *gate = tandem_mul_mat_id(c, w->gate_exps, row, ids); /* {hidden, used, M} */
    tandem_tensor *up = tandem_mul_mat_id(c, w->up_exps, row, ids);
    tandem_tensor *both = tandem_mul(c, activate(p, plus_of(p, gate, b->b1_exps, all_ids)),
                                     other_half(p, plus_of(p, up, b->b3_exps, all_ids)));
    tandem_tensor *down = tandem_mul_mat_id(c, w->down_exps, both, ids);     /* {dim, used, M} */
    return tandem_weighted_sum(c, plus_of(p, down, b->b2_exps, all_ids), g); /* {dim, M} */
}

/* Renumbers experts by a table I32 {1, experts}. */
static tandem_tensor *map_ids(const struct pass *p, tandem_tensor *ids, tandem_tensor *table)
{
    const int64_t used = p->model->hparams.experts_used;
    const int64_t n = used * p->m;
    const int64_t ne[] = {used, p->m};
    tandem_tensor *mapped =
        tandem_get_rows(p->context, table, tandem_reshape(p->context, ids, 1, &n)); /* {1, n} */
    return tandem_reshape(p->context, mapped, 2, ne);                               /* {used, M} */
}

/* Hot experts, which a device keeps, and cold ones in the model's weights: two independent chains,
 * so that host and device work at once. */
static tandem_tensor *sum_all_experts(const struct pass *p, int64_t layer, tandem_tensor *y,
                                      tandem_tensor *ids, tandem_tensor *g)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    const struct tnd_llama_hot_layer all = {
        .gate_exps = w->gate_exps, .up_exps = w->up_exps, .down_exps = w->down_exps};
    const struct tnd_llama_hot_layer *hot = p->batch->hot != NULL ? &p->batch->hot[layer] : NULL;
    if (hot == NULL || hot->context == NULL) {
        const bool is_part = p->model->own_experts != NULL; /* of a rank */
        tandem_tensor *own = is_part ? map_ids(p, ids, p->model->own_experts) : ids;
        return sum_experts(p, &all, w, y, own, ids, g);
    }
    tandem_tensor *of_hot = sum_experts(p, hot, w, y, map_ids(p, ids, hot->to_hot), ids, g);
    tandem_tensor *of_cold = sum_experts(p, &all, w, y, map_ids(p, ids, hot->to_cold), ids, g);
    return tandem_add(p->context, of_hot, of_cold);
}

/* The sum of hot and cold experts. If ranks have some experts each, or some rows of them, one sum
 * over ranks. */
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

tandem_tensor *tnd_llama_experts(const struct pass *p, tandem_tensor *x, tandem_tensor *y,
                                 int64_t layer)
{
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    tandem_tensor *ids = NULL;
    tandem_tensor *g = route(p, w, y, &ids); /* {used, M} */
    if (p->batch->expert_ids != NULL) {
        tandem_graph_add(p->graph, ids);
        p->batch->expert_ids[layer] = ids;
    }
    if (tnd_llama_by_rows(p->model)) {
        return add_block(p, x, experts_of_rank(p, layer, y, ids, g));
    }
    x = add_block(p, x, sum_all_experts(p, layer, y, ids, g));
    return w->up_shexp == NULL ? x : add_block(p, x, shared_expert(p, w, y)); /* {dim, M} */
}

/* silu(W1 y) * W3 y or gelu(W3 y): {hidden, M} */
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

tandem_tensor *tnd_llama_feed_forward(const struct pass *p, const struct tnd_llama_layer *w,
                                      tandem_tensor *y)
{
    tandem_tensor *both = w->w3 != NULL ? gated(p, w, y) : NULL;
    return plus(p, sum_of_ranks(p, w->w2, both), w->b2); /* {dim, M} */
}
