/* SPDX-License-Identifier: MIT
 * Hot experts: copies of expert weights that a device keeps separately from the others of their
 * layer. The runtime requests the copies, again after each change of placement. The host's weights
 * stay: they are used when the device is lost. */
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/session.h"

enum {
    PERIOD = 512,     /* tokens between checks: of 128 experts with 8 used, each gets 32 */
    PERIOD_MOST = 16, /* longest period, in periods, after checks that changed nothing */
    PRIOR = 8         /* weight of the prior (all experts used evenly), in tokens */
};
#define KEEP_TOKENS 2048.0 /* tokens whose savings must pay for a move twice */

static int64_t experts_of(const tandem_session *session)
{
    return session->model->hparams.experts;
}

enum tandem_status tnd_llama_hot_init(struct tnd_llama_hot *hot, const tandem_model *model,
                                      struct tandem_error *error)
{
    const size_t layers = (size_t)model->hparams.layers;
    const size_t n = layers * (size_t)model->hparams.experts;
    if (n == 0) {
        return TANDEM_OK;
    }
    hot->period = hot->next_look = PERIOD;
    hot->layers = calloc(layers, sizeof(hot->layers[0]));
    hot->next = calloc(layers, sizeof(hot->next[0]));
    hot->now = calloc(n, 1);
    hot->whole = calloc(layers, sizeof(hot->whole[0]));
    hot->recent = calloc(n, sizeof(hot->recent[0]));
    hot->use = calloc(n, sizeof(hot->use[0]));
    if (hot->layers == NULL || hot->next == NULL || hot->now == NULL || hot->whole == NULL ||
        hot->recent == NULL || hot->use == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", model->hparams.experts, 0,
                              "llama: no memory for the use of %lld experts",
                              (long long)model->hparams.experts);
    }
    return TANDEM_OK;
}

/* ---- copies ---- */

static void free_layer(struct tnd_llama_hot_layer *layer, tandem_runtime *runtime)
{
    const tandem_tensor *all[] = {layer->gate_exps, layer->up_exps, layer->down_exps, layer->to_hot,
                                  layer->to_cold};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && layer->context != NULL; i++) {
        tandem_runtime_forget(runtime, all[i]);
    }
    tandem_context_free(layer->context);
    *layer = (struct tnd_llama_hot_layer){.context = NULL};
}

/* Copies some experts of a weight, one after the other. */
static tandem_tensor *gather(tandem_context *context, const tandem_tensor *from,
                             const int32_t *experts, int64_t n, int64_t all)
{
    const int64_t ne[] = {tandem_tensor_ne(from)[0], tandem_tensor_ne(from)[1], n};
    const size_t bytes = tandem_tensor_bytes(from) / (size_t)all;
    tandem_tensor *to = tandem_tensor_new(context, tandem_tensor_type(from), 3, ne);
    if (to == NULL) {
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy((char *)tandem_tensor_data(to) + (size_t)i * bytes,
               (const char *)tandem_tensor_data(from) + (size_t)experts[i] * bytes, bytes);
    }
    tandem_tensor_set_role(to, TANDEM_ROLE_CONSTANT);
    return to;
}

/* Maps an expert to its index among the hot ones, or a cold expert to itself; else to -1. */
static tandem_tensor *make_table(tandem_context *context, const int32_t *experts, int64_t n,
                                 int64_t all, bool is_hot)
{
    const int64_t ne[] = {1, all};
    tandem_tensor *table = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, ne);
    if (table == NULL) {
        return NULL;
    }
    int32_t *values = tandem_tensor_data(table);
    for (int64_t e = 0; e < all; e++) {
        values[e] = is_hot ? -1 : (int32_t)e;
    }
    for (int64_t i = 0; i < n; i++) {
        values[experts[i]] = is_hot ? (int32_t)i : -1;
    }
    return table;
}

/* If memory is short, `out` has no context. */
static void make_layer(const struct tnd_llama_layer *w, const int32_t *experts, int64_t n,
                       int64_t all, struct tnd_llama_hot_layer *out)
{
    struct tnd_llama_hot_layer made = {.n = n};
    if (tandem_context_new(NULL, &made.context, NULL) != TANDEM_OK) {
        return;
    }
    made.gate_exps = gather(made.context, w->gate_exps, experts, n, all);
    made.up_exps = gather(made.context, w->up_exps, experts, n, all);
    made.down_exps = gather(made.context, w->down_exps, experts, n, all);
    made.to_hot = make_table(made.context, experts, n, all, true);
    made.to_cold = make_table(made.context, experts, n, all, false);
    if (tandem_context_status(made.context, NULL) != TANDEM_OK) {
        tandem_context_free(made.context);
        return;
    }
    made.bytes = (int64_t)(tandem_tensor_bytes(made.gate_exps) + tandem_tensor_bytes(made.up_exps) +
                           tandem_tensor_bytes(made.down_exps));
    *out = made;
}

static bool is_same_set(const uint8_t *now, const int32_t *experts, int64_t n, int64_t n_before,
                        int backend)
{
    for (int64_t i = 0; i < n; i++) {
        if (now[experts[i]] != backend) {
            return false;
        }
    }
    return n == n_before;
}

const void *tnd_llama_hot_gather(void *user, int weight, const int32_t *experts, int64_t n,
                                 int backend)
{
    tandem_session *session = user;
    struct tnd_llama_hot *hot = &session->hot;
    struct tandem_source_tensor tensor;
    const int64_t all = experts_of(session);
    if (!tandem_source_tensor_at(session->model->source, weight, &tensor) || backend > UINT8_MAX) {
        return NULL;
    }
    for (int64_t l = 0; l < session->model->hparams.layers; l++) {
        const struct tnd_llama_layer *w = &session->model->layers[l];
        struct tnd_llama_hot_layer *next = &hot->next[l];
        const bool is_gate =
            w->gate_exps != NULL && tandem_tensor_data(w->gate_exps) == tensor.data;
        const bool is_up = w->up_exps != NULL && tandem_tensor_data(w->up_exps) == tensor.data;
        const bool is_down =
            w->down_exps != NULL && tandem_tensor_data(w->down_exps) == tensor.data;
        if (!is_gate && !is_up && !is_down) {
            continue;
        }
        if (next->context == NULL &&
            is_same_set(hot->now + l * all, experts, n, hot->layers[l].n, backend)) {
            *next = hot->layers[l];
        } else if (next->context == NULL && next->n == 0) {
            next->n = -1; /* all of its weights, or none */
            make_layer(w, experts, n, all, next);
        }
        next->backend = (uint8_t)backend;
        return next->context == NULL ? NULL
                                     : tandem_tensor_data(is_gate ? next->gate_exps
                                                          : is_up ? next->up_exps
                                                                  : next->down_exps);
    }
    return NULL;
}

/* ---- adopting a new placement ---- */

/* Frees layers that were made but not kept, and those that were replaced; unchanged ones stay. */
static void end_layers(struct tnd_llama_hot_layer *gone, const struct tnd_llama_hot_layer *kept,
                       int64_t n, tandem_runtime *runtime)
{
    for (int64_t l = 0; l < n; l++) {
        if (gone[l].context == kept[l].context) {
            gone[l] = (struct tnd_llama_hot_layer){.context = NULL};
        }
        free_layer(&gone[l], runtime);
    }
}

void tnd_llama_hot_drop_next(tandem_session *session)
{
    end_layers(session->hot.next, session->hot.layers, session->model->hparams.layers,
               session->runtime);
}

void tnd_llama_hot_take_next(tandem_session *session)
{
    struct tnd_llama_hot *hot = &session->hot;
    const int64_t layers = session->model->hparams.layers;
    const int64_t all = experts_of(session);
    end_layers(hot->layers, hot->next, layers, session->runtime);
    struct tnd_llama_hot_layer *before = hot->layers;
    hot->layers = hot->next;
    hot->next = before;
    hot->n = hot->bytes = 0;
    for (int64_t l = 0; l < layers; l++) {
        const struct tnd_llama_hot_layer *layer = &hot->layers[l];
        const int32_t *to_hot = layer->context != NULL ? tandem_tensor_data(layer->to_hot) : NULL;
        for (int64_t e = 0; e < all; e++) {
            hot->now[l * all + e] = to_hot != NULL && to_hot[e] >= 0 ? layer->backend : 0;
        }
        hot->n += layer->context != NULL ? layer->n : 0;
        hot->bytes += layer->bytes;
    }
}

void tnd_llama_hot_drop(tandem_session *session)
{
    struct tnd_llama_hot *hot = &session->hot;
    if (hot->layers == NULL || hot->next == NULL || hot->now == NULL || hot->whole == NULL) {
        return; /* no experts, or it was never made */
    }
    const bool had = hot->n > 0;
    tnd_llama_hot_drop_next(session);
    tnd_llama_hot_take_next(session); /* which is empty: drops the old ones */
    memset(hot->whole, 0, (size_t)session->model->hparams.layers * sizeof(hot->whole[0]));
    if (had) { /* the runtime's list has addresses of freed weights */
        (void)tandem_runtime_place(session->runtime, NULL, 0, NULL, NULL);
    }
    hot->is_placed = false;
}

void tnd_llama_hot_fini(struct tnd_llama_hot *hot)
{
    free(hot->layers);
    free(hot->next);
    free(hot->now);
    free(hot->whole);
    free(hot->recent);
    free(hot->use);
}

/* ---- use ---- */

const double *tnd_llama_hot_use(tandem_session *session)
{
    struct tnd_llama_hot *hot = &session->hot;
    const struct tandem_hparams *h = &session->model->hparams;
    const double even = (double)PRIOR * (double)h->experts_used / (double)h->experts;
    if (hot->recent_tokens < (double)(hot->period > 0 ? hot->period : PERIOD)) {
        return NULL;
    }
    for (int64_t i = 0; i < h->layers * h->experts; i++) {
        const double share = (hot->recent[i] + even) / (hot->recent_tokens + PRIOR);
        hot->use[i] = share < 1 ? share : 1;
    }
    return hot->use;
}

void tnd_llama_hot_count(struct tnd_llama_hot *hot, int64_t m)
{
    hot->recent_tokens += (double)m;
    hot->tokens_since += m;
}

void tnd_llama_hot_look(tandem_session *session)
{
    struct tnd_llama_hot *hot = &session->hot;
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    const int64_t n = session->model->hparams.layers * experts_of(session);
    if (!hot->is_placed || hot->period == 0 || hot->tokens_since < hot->next_look) {
        return;
    }
    struct tandem_place_options options = hot->options;
    options.keep_tokens = KEEP_TOKENS;
    options.device_memory = hot->device_memory;
    hot->n_looks++;
    const bool is_placed = tnd_llama_place(session, &options, NULL) == TANDEM_OK &&
                           tandem_runtime_placement(session->runtime, &info) == TANDEM_OK;
    const bool has_moved = is_placed && !info.is_kept && info.n_moved > 0;
    const int64_t longer = 2 * hot->next_look;
    const int64_t most = PERIOD_MOST * hot->period;
    hot->n_moves += has_moved;
    hot->next_look = has_moved ? hot->period : longer < most ? longer : most;
    hot->tokens_since = 0;
    hot->recent_tokens /= 2;
    for (int64_t i = 0; i < n; i++) {
        hot->recent[i] /= 2;
    }
}

void tandem_session_replan_experts(tandem_session *session, int64_t tokens)
{
    if (session == NULL) {
        return;
    }
    session->hot.period = session->hot.next_look = tokens > 0 ? tokens : 0;
}

bool tandem_session_hot_experts(const tandem_session *session, struct tandem_hot_experts *out)
{
    if (session == NULL || out == NULL || session->hot.layers == NULL) {
        return false;
    }
    const struct tnd_llama_hot *hot = &session->hot;
    const struct tandem_hparams *h = &session->model->hparams;
    *out = (struct tandem_hot_experts){.n_experts = h->layers * h->experts,
                                       .n_hot = hot->n,
                                       .hot_bytes = hot->bytes,
                                       .cold_bytes_last = session->experts.cold_bytes_last,
                                       .cold_bytes_sum = session->experts.cold_bytes_sum,
                                       .n_looks = hot->n_looks,
                                       .n_moves = hot->n_moves,
                                       .is_hot = hot->now};
    return true;
}
