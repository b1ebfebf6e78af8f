/* SPDX-License-Identifier: MIT
 * Sessions: each batch builds its graph in the same context, which keeps its memory, and computes
 * it. */
#include "llama/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"

struct tnd_llama_session {
    const struct tnd_llama_model *model;
    tandem_runtime *runtime;
    tandem_context *context; /* of the graph in hand: reset for each batch */
    struct tnd_llama_kv_cache cache;
    int64_t n_past;
    float *logits; /* {vocabulary}; a copy, since the context is reset */
    bool has_logits;
    tandem_write_fn print; /* NULL: plans are not printed */
    void *print_user;
};

enum tandem_status tnd_llama_session_new(const struct tnd_llama_model *model,
                                         tandem_runtime *runtime, int64_t context,
                                         struct tnd_llama_session **out_session,
                                         struct tandem_error *error)
{
    const struct tnd_llama_hparams *h = &model->hparams;
    const int64_t room = context <= 0 || context > h->context ? h->context : context;
    struct tnd_llama_session *session = calloc(1, sizeof(*session));
    float *logits = calloc((size_t)h->vocabulary, sizeof(logits[0]));
    enum tandem_status status = TANDEM_OK;
    if (session == NULL || logits == NULL) {
        free(session);
        free(logits);
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", h->vocabulary, 0,
                              "llama: no memory for a session");
    }
    session->model = model;
    session->runtime = runtime;
    session->logits = logits;
    status = tandem_context_new(NULL, &session->context, error);
    if (status == TANDEM_OK) {
        status = tnd_llama_kv_cache_init(&session->cache, h, room, error);
    }
    if (status != TANDEM_OK) {
        tnd_llama_session_free(session);
        return status;
    }
    *out_session = session;
    return TANDEM_OK;
}

void tnd_llama_session_free(struct tnd_llama_session *session)
{
    if (session != NULL) {
        tnd_llama_kv_cache_fini(&session->cache);
        tandem_context_free(session->context);
        free(session->logits);
        free(session);
    }
}

/* Prints how a graph will run; what is printed is not what is run, but the same choices. */
static enum tandem_status print_plan(const struct tnd_llama_session *session,
                                     const tandem_graph *graph, int64_t m,
                                     struct tandem_error *error)
{
    tandem_plan *plan;
    char head[128];
    LLAMA_TRY(tandem_runtime_plan(session->runtime, graph, &plan, error));
    const int n =
        snprintf(head, sizeof(head), "plan for %lld tokens from position %lld, made in %.1f us:\n",
                 (long long)m, (long long)session->n_past, tandem_plan_took_us(plan));
    session->print(session->print_user, head, (unsigned long)n);
    const enum tandem_status status = tandem_runtime_print_plan(
        session->runtime, graph, plan, session->print, session->print_user);
    tandem_plan_free(plan);
    return status == TANDEM_OK ? TANDEM_OK
                               : tnd_llama_fail(error, status, "plan", 0, 0,
                                                "llama: the plan could not be printed");
}

static enum tandem_status run_batch(struct tnd_llama_session *session, const int32_t *tokens,
                                    int64_t m, bool with_logits, struct tandem_error *error)
{
    struct tnd_llama_forward forward;
    tandem_context_reset(session->context);
    LLAMA_TRY(tnd_llama_forward(session->model, &session->cache, session->n_past, m, with_logits,
                                session->context, &forward, error));
    memcpy(tandem_tensor_data(forward.tokens), tokens, (size_t)m * sizeof(tokens[0]));
    int32_t *positions = tandem_tensor_data(forward.positions);
    for (int64_t i = 0; i < m; i++) {
        positions[i] = (int32_t)(session->n_past + i);
    }
    if (session->print != NULL) {
        LLAMA_TRY(print_plan(session, forward.graph, m, error));
    }
    LLAMA_TRY(tandem_runtime_compute(session->runtime, forward.graph, NULL, NULL, error));
    if (with_logits) {
        memcpy(session->logits, tandem_tensor_data(forward.logits),
               (size_t)session->model->hparams.vocabulary * sizeof(float));
        session->has_logits = true;
    }
    session->n_past += m;
    return TANDEM_OK;
}

static enum tandem_status check_room(const struct tnd_llama_session *session, int64_t n,
                                     struct tandem_error *error)
{
    const int64_t room = session->cache.context - session->n_past;
    if (n <= room) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_LIMIT, "llama", n, room,
                          "llama: %lld more tokens do not fit: %lld of %lld positions are used",
                          (long long)n, (long long)session->n_past,
                          (long long)session->cache.context);
}

enum tandem_status tnd_llama_session_plan(struct tnd_llama_session *session, int64_t m,
                                          tandem_graph **out_graph, tandem_plan **out_plan,
                                          struct tandem_error *error)
{
    struct tnd_llama_forward forward;
    LLAMA_TRY(check_room(session, m, error));
    tandem_context_reset(session->context);
    LLAMA_TRY(tnd_llama_forward(session->model, &session->cache, session->n_past, m, true,
                                session->context, &forward, error));
    LLAMA_TRY(tandem_runtime_plan(session->runtime, forward.graph, out_plan, error));
    *out_graph = forward.graph;
    return TANDEM_OK;
}

enum tandem_status tnd_llama_session_feed(struct tnd_llama_session *session, const int32_t *tokens,
                                          int64_t n, int64_t batch, struct tandem_error *error)
{
    const int64_t vocabulary = session->model->hparams.vocabulary;
    LLAMA_TRY(check_room(session, n, error));
    for (int64_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary) {
            return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", tokens[i], vocabulary - 1,
                                  "llama: token %d is outside of the vocabulary of %lld",
                                  (int)tokens[i], (long long)vocabulary);
        }
    }
    for (int64_t at = 0; at < n;) {
        const int64_t left = n - at;
        const int64_t m = batch > 0 && batch < left ? batch : left;
        LLAMA_TRY(run_batch(session, tokens + at, m, m == left, error));
        at += m;
    }
    return TANDEM_OK;
}

const float *tnd_llama_session_logits(const struct tnd_llama_session *session)
{
    return session->has_logits ? session->logits : NULL;
}

int64_t tnd_llama_session_position(const struct tnd_llama_session *session)
{
    return session->n_past;
}

int64_t tnd_llama_session_context(const struct tnd_llama_session *session)
{
    return session->cache.context;
}

void tnd_llama_session_rewind(struct tnd_llama_session *session, int64_t position)
{
    if (position >= 0 && position < session->n_past) {
        session->n_past = position;
    }
}

void tnd_llama_session_set_runtime(struct tnd_llama_session *session, tandem_runtime *runtime)
{
    session->runtime = runtime;
}

void tnd_llama_session_print_plans(struct tnd_llama_session *session, tandem_write_fn write,
                                   void *user)
{
    session->print = write;
    session->print_user = user;
}

size_t tnd_llama_session_graph_bytes(const struct tnd_llama_session *session)
{
    return tandem_context_bytes(session->context);
}
