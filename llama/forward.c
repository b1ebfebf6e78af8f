/* SPDX-License-Identifier: MIT
 * The forward pass of the llama family (Touvron et al. 2023, arXiv:2302.13971; Jiang et al. 2023,
 * arXiv:2310.06825; Yang et al. 2024, arXiv:2407.10671), one function per formula of the papers.
 * Comments give the shape of each tensor, fastest dimension first; M tokens, T cells of the KV
 * cache. */
#include "llama/forward.h"

#include <math.h>
#include <string.h>

#include "llama/best.h"
#include "llama/llama_error.h"
#include "tandem/sample.h"

/* Tokens that go through a layer together: a batch, or one of its micro-batches. */
struct part {
    struct pass pass;
    struct tnd_llama_batch batch;
    struct tnd_llama_kv_cache cache; /* as these tokens see it: without later ones */
    tandem_tensor *x;                /* {dim, M} */
};
/* x + attention(norm(x)), then the feed-forward network or the experts, after it or in parallel.
 * The sum may be normed, too (Gemma 2, OLMo 2). */
static tandem_tensor *run_layer(const struct pass *p, tandem_tensor *x, int64_t layer)
{
    const struct tandem_hparams *h = &p->model->hparams;
    const struct tnd_llama_layer *w = &p->model->layers[layer];
    /* if the feed-forward network has no other norm, this is its norm (gpt-oss) */
    const bool is_post = w->ffn_norm != NULL || w->ffn_post_norm != NULL;
    tandem_tensor *y = norm(p, x, w->attn_norm, w->attn_norm_b); /* {dim, M} */
    tandem_tensor *of_attention =
        w->attn_norm_2 == NULL ? y : norm(p, x, w->attn_norm_2, w->attn_norm_2_b);
    tandem_tensor *a = tnd_llama_attend(p, of_attention, layer);
    a = is_post ? norm(p, a, w->attn_post_norm, NULL) : a;
    tandem_tensor *sum = norm(p, add_block(p, x, a), w->attn_sum_norm, w->attn_sum_norm_b);
    if (!h->is_parallel) {
        y = is_post ? norm(p, sum, w->ffn_norm, w->ffn_norm_b)
                    : norm(p, sum, w->attn_post_norm, NULL);
    } else if (w->ffn_norm != NULL) {
        y = norm(p, x, w->ffn_norm, w->ffn_norm_b);
    }
    if (w->router != NULL) {
        return tnd_llama_experts(p, sum, y, layer);
    }
    sum = add_block(p, sum, norm(p, tnd_llama_feed_forward(p, w, y), w->ffn_post_norm, NULL));
    return norm(p, sum, w->layer_sum_norm, w->layer_sum_norm_b);
}

/* Index of the first token of the text whose last token is `last`. */
static int64_t first_of(const struct tnd_llama_batch *batch, int64_t last)
{
    int64_t first = last;
    while (first > 0 && batch->sequences[first - 1] == batch->sequences[last]) {
        first--;
    }
    return first;
}

/* Weights of each token in the mean of each text: {M, outputs} */
static tandem_tensor *shares(const struct pass *p)
{
    const struct tnd_llama_batch *batch = p->batch;
    const int64_t ne[] = {p->m, batch->n_outputs};
    tandem_tensor *tensor = tandem_tensor_new(p->context, TANDEM_TYPE_F32, 2, ne);
    float *values = tandem_tensor_data(tensor);
    for (int64_t i = 0; values != NULL && i < batch->n_outputs; i++, values += p->m) {
        const int64_t last = batch->outputs[i];
        const int64_t first = first_of(batch, last);
        for (int64_t j = 0; j < p->m; j++) {
            values[j] = j >= first && j <= last ? 1.0f / (float)(last + 1 - first) : 0.0f;
        }
    }
    return tensor;
}

/* Input of the classifier: tanh(Wr x + br) (Devlin et al. 2018; Liu et al. 2019, arXiv:1907.11692),
 * or the norm of gelu(Wr x) (Warner et al. 2024, arXiv:2412.13663). */
static tandem_tensor *before_scores(const struct pass *p, tandem_tensor *x)
{
    const tandem_model *model = p->model;
    x = plus(p, tandem_mul_mat(p->context, model->rank, x), model->rank_b);
    return model->rank_norm == NULL
               ? tandem_tanh(p->context, x)
               : norm(p, tandem_gelu_erf(p->context, x), model->rank_norm, NULL);
}

/* One vector per text, or its scores by a classifier: {dim or labels, outputs} */
static tandem_tensor *pool(const struct pass *p, tandem_tensor *x)
{
    tandem_context *c = p->context;
    const tandem_model *model = p->model;
    x = norm(p, x, model->output_norm, model->output_norm_b);
    const bool is_ranked = p->batch->pooling == TANDEM_POOLING_RANK;
    if (p->batch->pooling == TANDEM_POOLING_MEAN || (is_ranked && model->hparams.scores_mean)) {
        x = tandem_mul_mat(c, tandem_cont(c, tandem_permute(c, x, 1, 0, 2, 3)), shares(p));
    } else {
        int32_t *tokens = tandem_tensor_data(p->outputs);
        for (int64_t i = 0; tokens != NULL && i < p->batch->n_outputs; i++) {
            const bool is_last = p->batch->pooling == TANDEM_POOLING_LAST;
            tokens[i] =
                is_last ? p->batch->outputs[i] : (int32_t)first_of(p->batch, p->batch->outputs[i]);
        }
        x = tandem_get_rows(c, x, p->outputs);
    }
    return !is_ranked ? x
                      : plus(p, tandem_mul_mat(c, model->rank_output, before_scores(p, x)),
                             model->rank_output_b);
}

/* The states of the tokens whose logits are wanted: {dim, outputs} */
static tandem_tensor *wanted_states(const struct pass *p, tandem_tensor *x)
{
    if (p->batch->n_outputs != 1) {
        return tandem_get_rows(p->context, x, p->outputs);
    }
    const int64_t ne[] = {p->model->hparams.dim, 1};
    const size_t row = (size_t)p->model->hparams.dim * sizeof(float);
    return tandem_view(p->context, x, 2, ne, NULL, (size_t)(p->batch->outputs[0] - p->begin) * row);
}

/* Logits {vocabulary, outputs}; by rows, on rank 0 and only of the columns that the ranks have not
 * chosen. */
static tandem_tensor *classifier(const struct pass *p, tandem_tensor *wanted,
                                 tandem_tensor **out_embeddings)
{
    const struct tandem_hparams *h = &p->model->hparams;
    tandem_tensor *y = norm(p, wanted, p->model->output_norm, p->model->output_norm_b);
    if (p->batch
            ->wants_embeddings) { /* a layer that predicts ahead goes on from the state itself */
        *out_embeddings = p->model->eh_proj == NULL ? y : tandem_cont(p->context, wanted);
        tandem_graph_add(p->graph, *out_embeddings);
    }
    tandem_tensor *logits = y;
    if (p->model->output != NULL) { /* NULL: this rank has no part of it */
        logits = plus(p, tandem_mul_mat(p->context, p->model->output, y), p->model->output_b);
        logits = scaled(p, logits, h->logit_scale);
        logits = h->logit_cap == 0.0f ? logits : capped(p, logits, h->logit_cap, 1.0f);
    }
    return tnd_llama_gather_logits(p->model, p->context, p->batch->best, logits);
}

/* Choices, I32 {4, outputs}: a token for each output. */
static tandem_tensor *choices(const struct pass *p, tandem_tensor *logits)
{
    const struct tnd_llama_batch *batch = p->batch;
    const int64_t ne[] = {sizeof(batch->settings[0]) / sizeof(int32_t), batch->n_outputs};
    tandem_tensor *settings = tandem_tensor_new(p->context, TANDEM_TYPE_I32, 2, ne);
    if (settings != NULL) {
        memcpy(tandem_tensor_data(settings), batch->settings,
               (size_t)batch->n_outputs * sizeof(batch->settings[0]));
    }
    return tandem_tensor_set_name(
        tandem_sample(p->context, logits, settings, batch->sample_mask, batch->sample_steps),
        "choices");
}

/* ---- inputs ---- */

tandem_tensor *tnd_llama_integers(tandem_context *context, const int32_t *values, int64_t n)
{
    tandem_tensor *tensor = tandem_tensor_new(context, TANDEM_TYPE_I32, 1, &n);
    if (tensor != NULL) {
        memcpy(tandem_tensor_data(tensor), values, (size_t)n * sizeof(values[0]));
    }
    return tensor;
}

static int32_t order_of(const struct tnd_llama_batch *batch, int64_t i)
{
    return batch->sequences[i] * TND_LLAMA_SPAN + batch->positions[i];
}

/* Tokens on each side of a two-sided window, bounded so that position + half a window stays within
 * the span of a text. */
static int32_t half_window(const struct tandem_hparams *h)
{
    return (int32_t)(h->window / 2 < TND_LLAMA_POSITIONS ? h->window / 2 : TND_LLAMA_POSITIONS - 1);
}

int64_t tnd_llama_window(const struct tandem_hparams *h, bool is_windowed)
{
    return !is_windowed    ? TND_LLAMA_POSITIONS
           : h->is_encoder ? 2 * (int64_t)half_window(h) + 1
                           : h->window;
}

/* The order of a key: of its cell, or in encoders of its token. */
static int32_t key_order(const struct pass *p, int64_t cell)
{
    return p->model->hparams.is_encoder ? order_of(p->batch, cell) : p->cache->orders[cell];
}

/* The order of an encoder's query, which must be above all keys that it sees: the whole text, or
 * half of a window beyond its position. */
static int32_t query_order(const struct pass *p, bool is_windowed, int64_t i)
{
    const struct tandem_hparams *h = &p->model->hparams;
    return !h->is_encoder ? order_of(p->batch, i)
           : is_windowed  ? order_of(p->batch, i) + half_window(h)
                          : p->batch->sequences[i] * TND_LLAMA_SPAN + TND_LLAMA_POSITIONS - 1;
}

static bool is_seen(const struct pass *p, bool is_windowed, int64_t cell, int64_t i)
{
    const int64_t distance = (int64_t)query_order(p, is_windowed, i) - key_order(p, cell);
    return distance >= 0 && distance < tnd_llama_window(&p->model->hparams, is_windowed);
}

/* (It suffices to compare the keys of the least and of the largest order.) */
static bool is_all_seen(const struct pass *p, bool is_windowed)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    bool all_seen = true;
    for (int64_t cell = 0; cell < p->t; cell++) {
        const int64_t order = key_order(p, cell);
        least = order < least ? order : least;
        most = order > most ? order : most;
    }
    for (int64_t i = 0; i < p->m && all_seen; i++) {
        const int64_t order = query_order(p, is_windowed, i);
        all_seen =
            order >= most && order - least < tnd_llama_window(&p->model->hparams, is_windowed);
    }
    return all_seen;
}

/* Orders of M queries and T keys, in place of a mask. */
static tandem_tensor *make_orders(const struct pass *p, bool is_windowed)
{
    const int64_t n = p->t + p->m;
    tandem_tensor *orders = tandem_tensor_new(p->context, TANDEM_TYPE_I32, 1, &n);
    if (orders != NULL) {
        int32_t *values = tandem_tensor_data(orders);
        for (int64_t cell = 0; cell < p->t; cell++) {
            values[cell] = key_order(p, cell);
        }
        for (int64_t i = 0; i < p->m; i++) {
            values[p->t + i] = query_order(p, is_windowed, i);
        }
    }
    return orders;
}

static tandem_tensor *make_mask(const struct pass *p, bool is_windowed)
{
    const int64_t ne[] = {p->t + p->model->hparams.has_sinks, p->m}; /* sinks are always visible */
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
    p->tokens = tnd_llama_integers(p->context, batch->tokens, p->m);
    p->positions = tnd_llama_integers(p->context, batch->positions, p->m);
    if (batch->is_on_cpu && tnd_llama_kv_is_scattered(p->cache)) {
        p->cells = tnd_llama_integers(p->context, p->cache->taken, p->m);
    }
    if (p->model->token_types != NULL) {
        p->types = tnd_llama_integers(p->context, batch->types, p->m);
    }
    if (batch->n_outputs > 1 || (p->model->hparams.is_encoder && batch->n_outputs > 0)) {
        p->outputs = tnd_llama_integers(p->context, batch->outputs, batch->n_outputs);
        int32_t *outputs = tandem_tensor_data(p->outputs);
        for (int64_t i = 0; outputs != NULL && i < batch->n_outputs; i++) {
            outputs[i] -= (int32_t)p->begin;
        }
    }
    const struct tandem_hparams *h = &p->model->hparams;
    if (tnd_llama_by_rows(p->model)) {
        p->zeros = tnd_llama_zeros(p->context, h->dim, p->m);
    }
    const bool has_kind[] = {!tnd_llama_is_windowed(h), h->window > 0};
    for (int kind = 0; kind < 2; kind++) {
        if (has_kind[kind] && !is_all_seen(p, kind != 0)) {
            const bool serves_both = p->mask[0] != NULL && !h->is_encoder;
            p->mask[kind] = p->cache->is_transposed ? make_mask(p, kind != 0)
                            : serves_both           ? p->mask[0]
                                                    : make_orders(p, kind != 0);
        }
    }
    return tandem_context_status(p->context, error);
}

/* W (norm of the embedding, norm of the state): input of the draft layer (DeepSeek-AI 2024,
 * arXiv:2412.19437, formula 21). {dim, M} */
static tandem_tensor *join_hidden(const struct pass *p, tandem_tensor *x)
{
    const tandem_model *model = p->model;
    const int64_t ne[] = {model->hparams.dim, p->m};
    const size_t bytes = (size_t)(model->hparams.dim * p->m) * sizeof(float);
    tandem_tensor *hidden = tandem_tensor_new(p->context, TANDEM_TYPE_F32, 2, ne);
    float *values = tandem_tensor_data(hidden);
    if (values != NULL && p->batch->hidden != NULL) {
        memcpy(values, p->batch->hidden, bytes);
    } else if (values != NULL) {
        memset(values, 0, bytes);
    }
    x = norm(p, x, model->embedding_head_norm, NULL);
    hidden = norm(p, hidden, model->hidden_head_norm, NULL);
    return tandem_mul_mat(p->context, model->eh_proj, tandem_concat(p->context, x, hidden, 0));
}

/* ---- batches and micro-batches ---- */

/* Number of cells that tokens up to `end` can see. Cells of later tokens are left out only if they
 * are the last ones; others are hidden by their orders. */
static int64_t cells_until(const struct tnd_llama_kv_cache *cache, int64_t end)
{
    int64_t t = cache->n_used;
    for (int64_t i = cache->n_taken; i > end && cache->taken[i - 1] == t - 1; i--) {
        t--;
    }
    return t;
}

/* By layers: receives the state that the previous rank has computed. {dim, M} */
static void begin_behind(struct part *part)
{
    const struct pass *p = &part->pass;
    const struct tnd_llama_range own = tnd_llama_own_layers(p->model);
    if (own.end > own.begin) {
        part->x = tnd_llama_receive(p->model, p->context, p->model->shard->before,
                                    p->model->hparams.dim, p->m, p->after);
    }
}

/* Begins a part: tokens begin .. end - 1 of a batch. */
static enum tandem_status begin_part(struct part *part, const tandem_model *model,
                                     const struct tnd_llama_kv_cache *cache,
                                     const struct tnd_llama_batch *whole, int number, int64_t begin,
                                     int64_t end, struct tandem_error *error)
{
    part->batch = *whole;
    part->batch.m = end - begin;
    part->batch.best = end - begin == whole->m ? whole->best : NULL;
    part->batch.tokens += begin;
    part->batch.positions += begin;
    part->batch.sequences += begin;
    if (whole->hidden != NULL) {
        part->batch.hidden += begin * model->hparams.dim;
    }
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
    if (tnd_llama_by_layers(model)) {
        tnd_llama_kv_widen(&part->cache);
    }
    struct pass *p = &part->pass;
    p->model = model;
    p->cache = &part->cache;
    p->batch = &part->batch;
    p->m = part->batch.m;
    p->t = model->hparams.is_encoder ? p->m : part->cache.n_used;
    p->begin = begin;
    LLAMA_TRY(make_inputs(p, error));
    if (tnd_llama_by_layers(model)) {
        *p->after = *p->after != NULL ? *p->after : p->positions;
    }
    if (tnd_llama_by_layers(model) && model->shard->before >= 0) {
        begin_behind(part);
        return TANDEM_OK;
    }
    part->x = scaled(p, tandem_get_rows(p->context, model->token_embedding, p->tokens),
                     model->hparams.embedding_scale); /* {dim, M} */
    if (model->positions != NULL) {
        part->x = tandem_add(p->context, part->x,
                             tandem_get_rows(p->context, model->positions, p->positions));
    }
    if (model->token_types != NULL) {
        part->x = tandem_add(p->context, part->x,
                             tandem_get_rows(p->context, model->token_types, p->types));
    }
    part->x = norm(p, part->x, model->embedding_norm, model->embedding_norm_b);
    part->x = model->eh_proj != NULL ? join_hidden(p, part->x) : part->x;
    return TANDEM_OK;
}

/* By layers: sends the state that leaves this rank. */
static void end_own(struct part *part)
{
    const struct pass *p = &part->pass;
    const struct tnd_llama_shard *shard = p->model->shard;
    const struct tnd_llama_range own = tnd_llama_own_layers(p->model);
    if (own.end > own.begin && shard->behind >= 0) {
        tandem_graph_add(p->graph,
                         tnd_llama_send(p->model, p->context, shard->behind, part->x, p->after));
    }
}

/* Moves x {n, outputs} from rank `from` to rank `to`; on other ranks returns x itself. */
static tandem_tensor *hand_over(const struct pass *p, int from, int to, int64_t n, tandem_tensor *x)
{
    const int rank = p->model->shard->rank;
    if (from != to && rank == from) {
        tandem_graph_add(p->graph, tnd_llama_send(p->model, p->context, to, x, p->after));
    } else if (from != to && rank == to) {
        x = tnd_llama_receive(p->model, p->context, from, n, p->batch->n_outputs, p->after);
        tandem_graph_add(p->graph, x);
    }
    return x;
}

/* By layers, when all micro-batches are in flight: moves states from the last layer's rank to the
 * classifier's rank, and the results to rank 0. */
static void end_part(struct part *part, int number, struct tnd_llama_forward *forward)
{
    const struct pass *p = &part->pass;
    const struct tandem_hparams *h = &p->model->hparams;
    const struct tnd_llama_shard *shard = p->model->shard;
    tandem_tensor *logits = NULL, *embeddings = NULL;
    if (part->batch.n_outputs == 0) {
        return;
    }
    tandem_tensor *wanted = shard->rank == shard->last ? wanted_states(p, part->x) : NULL;
    wanted = hand_over(p, shard->last, shard->head, h->dim, wanted);
    if (shard->rank == shard->head) {
        logits = tandem_tensor_set_name(classifier(p, wanted, &embeddings), "logits");
        tandem_graph_add(p->graph, logits);
    }
    forward->logits[number] = hand_over(p, shard->head, 0, h->vocabulary, logits);
    if (p->batch->wants_embeddings) {
        forward->embeddings[number] = hand_over(p, shard->head, 0, h->dim, embeddings);
    }
}

/* The layers of a stage, and after the last one the classifier. */
static void run_stage(struct part *part, const struct tnd_llama_split *split, int stage, int number,
                      struct tnd_llama_forward *forward)
{
    const struct pass *p = &part->pass;
    const struct tnd_llama_range own = tnd_llama_own_layers(p->model);
    for (int64_t layer = own.begin; layer < own.end; layer++) {
        if (split->n_stages == 1 || split->stages[layer] == stage) {
            part->x = run_layer(p, part->x, layer);
        }
    }
    if (tnd_llama_by_layers(p->model)) {
        end_own(part);
        return;
    }
    const bool is_last = stage == split->n_stages - 1 && part->batch.n_outputs > 0;
    if (stage == split->n_stages - 1 && part->batch.wants_hidden) {
        forward->hidden[number] = norm(p, part->x, p->model->output_norm, p->model->output_norm_b);
        tandem_graph_add(p->graph, forward->hidden[number]);
    }
    if (is_last && p->model->hparams.is_encoder) {
        forward->embeddings[number] = tandem_tensor_set_name(pool(p, part->x), "embeddings");
        tandem_graph_add(p->graph, forward->embeddings[number]);
    } else if (is_last) {
        forward->logits[number] = tandem_tensor_set_name(
            classifier(p, wanted_states(p, part->x), &forward->embeddings[number]), "logits");
        if (part->batch.settings != NULL && split->n == 1) {
            forward->choices = choices(p, forward->logits[number]);
        }
        tandem_graph_add(p->graph,
                         forward->choices != NULL ? forward->choices : forward->logits[number]);
    }
}

/* Software pipeline: micro-batch i is in a stage while micro-batch i + 1 is in the stage before.
 * The earlier stage comes first in the graph, so that its device gets work before anything waits
 * for the other. A micro-batch sees keys and values of earlier ones, which have passed the layer
 * already. Each micro-batch is a chain with memory of its own. */
enum tandem_status tnd_llama_forward(const tandem_model *model,
                                     const struct tnd_llama_kv_cache *cache,
                                     const struct tnd_llama_batch *batch, tandem_context *context,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error)
{
    const struct tnd_llama_split one = {.n = 1, .begin = {0, batch->m}, .n_stages = 1};
    const struct tnd_llama_split *split = batch->split != NULL ? batch->split : &one;
    struct part parts[TND_LLAMA_MICRO_BATCHES];
    tandem_tensor *after = NULL;
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
                parts[i].pass.after = &after;
                LLAMA_TRY(begin_part(&parts[i], model, cache, batch, i, split->begin[i],
                                     split->begin[i + 1], error));
            }
            if (stage < split->n_stages) {
                run_stage(&parts[i], split, stage, i, &forward);
            }
        }
    }
    for (int i = 0; tnd_llama_by_layers(model) && !batch->is_begun && i < split->n; i++) {
        tandem_context_set_chain(context, i);
        end_part(&parts[i], i, &forward);
    }
    for (int i = 0; i < split->n; i++) {
        forward.n_outputs[i] = parts[i].batch.n_outputs;
    }
    if (model->shard != NULL) {
        tandem_graph_set_runs_once(forward.graph); /* messages */
    }
    LLAMA_TRY(tandem_graph_finish(forward.graph, error));
    *out_forward = forward;
    return TANDEM_OK;
}

enum tandem_status tnd_llama_forward_end(const tandem_model *model, bool wants_embeddings,
                                         tandem_context *context,
                                         struct tnd_llama_forward *io_forward,
                                         struct tandem_error *error)
{
    const int64_t one = 1;
    tandem_tensor *after = tandem_tensor_new(context, TANDEM_TYPE_F32, 1, &one);
    struct tnd_llama_forward *forward = io_forward;
    forward->graph = tandem_graph_new(context);
    for (int i = 0; i < forward->n_parts; i++) {
        struct part part;
        memset(&part, 0, sizeof(part));
        part.batch.n_outputs = forward->n_outputs[i];
        part.batch.wants_embeddings = wants_embeddings;
        part.pass.model = model;
        part.pass.context = context;
        part.pass.graph = forward->graph;
        part.pass.batch = &part.batch;
        part.pass.after = &after;
        tandem_context_set_chain(context, i);
        end_part(&part, i, forward);
    }
    if (model->shard != NULL) {
        tandem_graph_set_runs_once(forward->graph);
    }
    return tandem_graph_finish(forward->graph, error);
}
