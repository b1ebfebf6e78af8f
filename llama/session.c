/* SPDX-License-Identifier: MIT
 * Sessions: each batch takes cells of the KV cache, builds its graph in the same context, which
 * keeps its memory, and computes it. */
#include "llama/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"

/* Tokens decoded at once by a model with a window: its cache holds a window and a batch. */
enum { WINDOW_BATCH = 512 };

/* ---- opening ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", 0, 0, "llama: no memory for a session");
}

/* Memory for m tokens in a batch. */
static enum tandem_status reserve_batch(tandem_session *session, int64_t m,
                                        struct tandem_error *error)
{
    struct tnd_llama_batch_memory *memory = &session->batch;
    if (m <= memory->capacity) {
        return TANDEM_OK;
    }
    int32_t *all = malloc(4 * (size_t)m * sizeof(all[0])); /* m is at most the cells' number */
    if (all == NULL) {
        return no_memory(error);
    }
    free(memory->tokens);
    *memory = (struct tnd_llama_batch_memory){m, all, all + m, all + 2 * m, all + 3 * m};
    return TANDEM_OK;
}

static enum tandem_status init_sequences(tandem_session *session, struct tandem_error *error)
{
    const size_t vocabulary = (size_t)session->model->hparams.vocabulary;
    session->sequences = calloc((size_t)session->n_sequences, sizeof(session->sequences[0]));
    if (session->sequences == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < session->n_sequences; i++) {
        session->sequences[i].logits = calloc(vocabulary, sizeof(float));
        const size_t dim = session->has_embeddings ? (size_t)session->model->hparams.dim : 0;
        session->sequences[i].embedding = dim > 0 ? calloc(dim, sizeof(float)) : NULL;
        if (session->sequences[i].logits == NULL ||
            (dim > 0 && session->sequences[i].embedding == NULL)) {
            return no_memory(error);
        }
    }
    return TANDEM_OK;
}

/* Cells that are needed: a text, or what its window sees and one batch. */
static int64_t cells_needed(const tandem_session *session)
{
    const struct tandem_hparams *h = &session->model->hparams;
    const int64_t window = h->windowed == NULL ? h->window : 0;
    const int64_t one = window > 0 && window + WINDOW_BATCH < session->n_positions
                            ? window + WINDOW_BATCH
                            : session->n_positions;
    return one * session->n_sequences;
}

static enum tandem_status init(tandem_session *session,
                               const struct tandem_session_options *options,
                               struct tandem_error *error)
{
    const struct tandem_hparams *h = &session->model->hparams;
    int64_t n =
        options->context <= 0 || options->context > h->context ? h->context : options->context;
    n = n < TND_LLAMA_POSITIONS ? n : TND_LLAMA_POSITIONS;
    session->n_positions = n;
    session->adjust = options->adjust;
    session->adjust_user = options->adjust_user;
    session->has_embeddings = options->has_embeddings;
    session->n_sequences = options->n_sequences == 0 ? 1 : options->n_sequences;
    if (session->n_sequences < 1 || session->n_sequences > TND_LLAMA_MAX_SEQUENCES ||
        options->n_cells < 0 || options->n_cells >= INT32_MAX) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "llama", options->n_sequences, TND_LLAMA_MAX_SEQUENCES,
            "llama: %d sequences and %lld cells, expected 1 to %d sequences", options->n_sequences,
            (long long)options->n_cells, TND_LLAMA_MAX_SEQUENCES);
    }
    const struct tnd_llama_kv_options kv = {.n_cells = options->n_cells > 0 ? options->n_cells
                                                                            : cells_needed(session),
                                            .type = options->cache_type,
                                            .is_transposed = options->is_unfused,
                                            .has_blocks = session->n_sequences > 1};
    session->batch_max = kv.n_cells;
    LLAMA_TRY(tandem_context_new(NULL, &session->context, error));
    LLAMA_TRY(tnd_llama_kv_cache_init(&session->cache, h, &kv, error));
    LLAMA_TRY(tnd_llama_experts_init(&session->experts, session->model, error));
    LLAMA_TRY(tnd_llama_hot_init(&session->hot, session->model, error));
    if (session->cache.window > 0 && kv.n_cells > session->cache.window) {
        session->batch_max = kv.n_cells - session->cache.window;
    }
    return init_sequences(session, error);
}

enum tandem_status tandem_session_new(const tandem_model *model, tandem_runtime *runtime,
                                      const struct tandem_session_options *given,
                                      tandem_session **out_session, struct tandem_error *error)
{
    LLAMA_REQUIRE(model, error);
    LLAMA_REQUIRE(runtime, error);
    LLAMA_REQUIRE(out_session, error);
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "session options", &options, sizeof(options), error));
    tandem_session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        return no_memory(error);
    }
    session->model = model;
    session->runtime = runtime;
    const enum tandem_status status = init(session, &options, error);
    if (status != TANDEM_OK) {
        tandem_session_free(session);
        return status;
    }
    *out_session = session;
    return TANDEM_OK;
}

void tandem_session_free(tandem_session *session)
{
    if (session == NULL) {
        return;
    }
    for (int i = 0; session->sequences != NULL && i < session->n_sequences; i++) {
        free(session->sequences[i].logits);
        free(session->sequences[i].embedding);
    }
    free(session->sequences);
    free(session->batch.tokens);
    free(session->deltas);
    tnd_llama_hot_drop(session);
    tnd_llama_hot_fini(&session->hot);
    tnd_llama_experts_fini(&session->experts);
    tnd_llama_kv_cache_leave(&session->cache, session->runtime);
    tnd_llama_kv_cache_fini(&session->cache);
    tandem_context_free(session->context);
    free(session);
}

/* ---- batches ---- */

/* Prints how a graph will run; what is printed is not what is run, but the same choices. */
static enum tandem_status print_plan(const tandem_session *session, const tandem_graph *graph,
                                     int64_t m, int64_t position, struct tandem_error *error)
{
    tandem_plan *plan;
    char head[128];
    LLAMA_TRY(tandem_runtime_plan(session->runtime, graph, &plan, error));
    const int n =
        snprintf(head, sizeof(head), "plan for %lld tokens from position %lld, made in %.1f us:\n",
                 (long long)m, (long long)position, tandem_plan_took_us(plan));
    session->print(session->print_user, head, (unsigned long)n);
    const enum tandem_status status = tandem_runtime_print_plan(
        session->runtime, graph, plan, session->print, session->print_user);
    tandem_plan_free(plan);
    return status == TANDEM_OK ? TANDEM_OK
                               : tnd_llama_fail(error, status, "plan", 0, 0,
                                                "llama: the plan could not be printed");
}

static bool ask_cancel(void *user)
{
    const tandem_session *session = user;
    return session->cancel != NULL && session->cancel(session->cancel_user);
}

static void tell_time(void *user, const tandem_tensor *node, enum tandem_stage stage, double us)
{
    const tandem_session *session = user;
    session->timed(session->timed_user, node, stage, us);
}

static enum tandem_status compute(tandem_session *session, tandem_graph *graph,
                                  struct tandem_error *error)
{
    const struct tandem_compute_options options = {.size = sizeof(options),
                                                   .cancel = ask_cancel,
                                                   .user = session,
                                                   .timed =
                                                       session->timed != NULL ? tell_time : NULL};
    tandem_plan *plan = NULL;
    if (session->adjust != NULL) {
        LLAMA_TRY(tandem_runtime_plan(session->runtime, graph, &plan, error));
        session->adjust(session->adjust_user, graph, plan);
    }
    const enum tandem_status status =
        tandem_runtime_compute(session->runtime, graph, plan, &options, error);
    tandem_plan_free(plan);
    return status;
}

/* Describes entries as a batch. */
static enum tandem_status describe(tandem_session *session,
                                   const struct tandem_batch_entry *entries, int64_t n_entries,
                                   struct tnd_llama_batch *out, struct tandem_error *error)
{
    struct tnd_llama_batch_memory *memory = &session->batch;
    int64_t m = 0, n_outputs = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        m += entries[i].n;
    }
    LLAMA_TRY(reserve_batch(session, m, error));
    m = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        const struct tandem_batch_entry *entry = &entries[i];
        const int64_t n_past = session->sequences[entry->sequence].n_past;
        LLAMA_ASSERT(entry->n > 0 && n_past + entry->n <= session->n_positions);
        for (int64_t j = 0; j < entry->n; j++, m++) {
            memory->tokens[m] = entry->tokens[j];
            memory->positions[m] = (int32_t)(n_past + j);
            memory->sequences[m] = entry->sequence;
        }
        if (entry->wants_logits) {
            memory->outputs[n_outputs++] = (int32_t)(m - 1);
        }
    }
    *out = (struct tnd_llama_batch){.m = m,
                                    .tokens = memory->tokens,
                                    .positions = memory->positions,
                                    .sequences = memory->sequences,
                                    .outputs = memory->outputs,
                                    .n_outputs = n_outputs,
                                    .expert_ids = session->experts.ids,
                                    .wants_embeddings = session->has_embeddings,
                                    .hot = session->hot.layers};
    return TANDEM_OK;
}

/* Copies the logits and moves the sequences on. */
static void take_results(tandem_session *session, const struct tandem_batch_entry *entries,
                         int64_t n_entries, const struct tnd_llama_forward *forward)
{
    const size_t vocabulary = (size_t)session->model->hparams.vocabulary;
    const float *logits = forward->logits != NULL ? tandem_tensor_data(forward->logits)
                                                  : NULL; /* {vocabulary, outputs} */
    const size_t dim = (size_t)session->model->hparams.dim;
    const float *embeddings =
        forward->embeddings != NULL ? tandem_tensor_data(forward->embeddings) : NULL;
    for (int64_t i = 0; i < n_entries; i++) {
        struct tnd_llama_sequence *sequence = &session->sequences[entries[i].sequence];
        sequence->n_past += entries[i].n;
        sequence->has_logits = entries[i].wants_logits;
        if (entries[i].wants_logits) {
            memcpy(sequence->logits, logits, vocabulary * sizeof(float));
            logits += vocabulary;
        }
        if (entries[i].wants_logits && embeddings != NULL) {
            memcpy(sequence->embedding, embeddings, dim * sizeof(float));
            embeddings += dim;
        }
    }
}

static enum tandem_status run_batch(tandem_session *session, const struct tnd_llama_batch *batch,
                                    struct tnd_llama_forward *out_forward,
                                    struct tandem_error *error)
{
    tandem_context_reset(session->context);
    LLAMA_TRY(tnd_llama_forward(session->model, &session->cache, batch, session->context,
                                out_forward, error));
    if (session->print != NULL) {
        LLAMA_TRY(print_plan(session, out_forward->graph, batch->m, batch->positions[0], error));
    }
    return compute(session, out_forward->graph, error);
}

/* ---- keys and values that a device was lost with ---- */

/* A batch of those tokens of an earlier one that are still there. */
static enum tandem_status describe_again(tandem_session *session, int64_t number,
                                         struct tnd_llama_batch *out, struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    struct tnd_llama_batch_memory *memory = &session->batch;
    const int64_t m = tnd_llama_kv_cache_retake(cache, number);
    LLAMA_TRY(reserve_batch(session, m, error));
    for (int64_t i = 0; i < m; i++) {
        const int32_t cell = cache->taken[i];
        memory->tokens[i] = cache->tokens[cell];
        memory->sequences[i] = cache->orders[cell] / TND_LLAMA_SPAN;
        memory->positions[i] = cache->orders[cell] % TND_LLAMA_SPAN;
    }
    *out = (struct tnd_llama_batch){.m = m,
                                    .tokens = memory->tokens,
                                    .positions = memory->positions,
                                    .sequences = memory->sequences,
                                    .outputs = memory->outputs};
    return TANDEM_OK;
}

/* The newest batches once more, into the same cells: what they see has come before them. */
static enum tandem_status recover(tandem_session *session, struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    const int64_t oldest = session->n_batches - TANDEM_STATE_DEBT;
    int64_t done = oldest > session->n_on_host ? oldest : session->n_on_host;
    session->must_recover = true;
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, true, error));
    tnd_llama_kv_cache_clear_after(cache, done); /* what never reached the host may be no number */
    while (done < session->n_batches) {
        struct tnd_llama_batch batch;
        struct tnd_llama_forward forward;
        LLAMA_TRY(describe_again(session, ++done, &batch, error));
        if (batch.m > 0) {
            tandem_context_reset(session->context);
            LLAMA_TRY(tnd_llama_forward(session->model, cache, &batch, session->context, &forward,
                                        error));
            LLAMA_TRY(compute(session, forward.graph, error));
        }
    }
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, false, error));
    session->n_on_host = session->n_batches;
    session->must_recover = false;
    return TANDEM_OK;
}

/* Host memory has all keys and values when it returns. */
static enum tandem_status collect(tandem_session *session, struct tandem_error *error)
{
    if (session->must_recover ||
        tnd_llama_kv_cache_fetch(&session->cache, session->runtime, false, NULL) != TANDEM_OK) {
        return recover(session, error);
    }
    session->n_on_host = session->n_batches;
    return TANDEM_OK;
}

/* ---- decoding ---- */

static enum tandem_status try_decode(tandem_session *session,
                                     const struct tandem_batch_entry *entries, int64_t n_entries,
                                     struct tnd_llama_batch *out_batch,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    LLAMA_TRY(session->must_recover ? recover(session, error) : TANDEM_OK);
    LLAMA_TRY(describe(session, entries, n_entries, out_batch, error));
    LLAMA_TRY(tnd_llama_kv_cache_take(cache, out_batch->sequences, out_batch->positions,
                                      out_batch->m, error));
    const enum tandem_status status = run_batch(session, out_batch, out_forward, error);
    if (status != TANDEM_OK) {
        tnd_llama_kv_cache_rollback(cache);
        return status;
    }
    tnd_llama_kv_cache_note(cache, out_batch->tokens, ++session->n_batches);
    return TANDEM_OK;
}

static enum tandem_status decode(tandem_session *session, const struct tandem_batch_entry *entries,
                                 int64_t n_entries, struct tandem_error *error)
{
    struct tnd_llama_batch batch;
    struct tnd_llama_forward forward;
    tnd_llama_hot_look(session);
    enum tandem_status status = try_decode(session, entries, n_entries, &batch, &forward, error);
    if (status != TANDEM_OK && !session->must_recover &&
        tnd_llama_kv_cache_fetch(&session->cache, session->runtime, false, NULL) != TANDEM_OK) {
        session->must_recover = true;
        status = try_decode(session, entries, n_entries, &batch, &forward, error);
    }
    LLAMA_TRY(status);
    take_results(session, entries, n_entries, &forward);
    tnd_llama_experts_count(session, batch.m);
    return TANDEM_OK;
}

static enum tandem_status check_fits(const tandem_session *session, int32_t sequence, int64_t n,
                                     struct tandem_error *error)
{
    const int64_t n_past = session->sequences[sequence].n_past;
    const int64_t n_free = session->n_positions - n_past;
    if (n <= n_free) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_LIMIT, "llama", n, n_free,
                          "llama: %lld more tokens do not fit: %lld of %lld positions are used",
                          (long long)n, (long long)n_past, (long long)session->n_positions);
}

static enum tandem_status check_tokens(const tandem_session *session, const int32_t *tokens,
                                       int64_t n, struct tandem_error *error)
{
    const int64_t vocabulary = session->model->hparams.vocabulary;
    for (int64_t i = 0; i < n; i++) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary) {
            return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", tokens[i], vocabulary - 1,
                                  "llama: token %d is outside of the vocabulary of %lld",
                                  (int)tokens[i], (long long)vocabulary);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tandem_session_decode(tandem_session *session, const int32_t *tokens, int64_t n,
                                         int64_t batch, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(tokens, error);
    const int64_t most = batch > 0 && batch < session->batch_max ? batch : session->batch_max;
    LLAMA_TRY(check_fits(session, 0, n, error));
    LLAMA_TRY(check_tokens(session, tokens, n, error));
    for (int64_t at = 0; at < n;) {
        const int64_t left = n - at;
        const int64_t m = most < left ? most : left;
        const struct tandem_batch_entry entry = {
            .tokens = tokens + at, .n = m, .wants_logits = m == left};
        LLAMA_TRY(decode(session, &entry, 1, error));
        at += m;
    }
    return TANDEM_OK;
}

static enum tandem_status check_entry(const tandem_session *session,
                                      const struct tandem_batch_entry *entries, int64_t i,
                                      struct tandem_error *error)
{
    const struct tandem_batch_entry *entry = &entries[i];
    bool is_new = true;
    for (int64_t j = 0; j < i; j++) {
        is_new = is_new && entries[j].sequence != entry->sequence;
    }
    if (entry->sequence < 0 || entry->sequence >= session->n_sequences || entry->n < 1 || !is_new) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "llama", entry->sequence, session->n_sequences,
            "llama: batch entry %lld has %lld tokens for sequence %d; expected 1 or "
            "more, and each of %d sequences at most once",
            (long long)i, (long long)entry->n, (int)entry->sequence, session->n_sequences);
    }
    LLAMA_TRY(check_fits(session, entry->sequence, entry->n, error));
    return check_tokens(session, entry->tokens, entry->n, error);
}

enum tandem_status tandem_session_decode_batch(tandem_session *session,
                                               const struct tandem_batch_entry *entries,
                                               int64_t n_entries, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(entries, error);
    if (n_entries < 1) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", n_entries, 1,
                              "llama: a batch needs at least one entry");
    }
    for (int64_t i = 0; i < n_entries; i++) {
        LLAMA_TRY(check_entry(session, entries, i, error));
    }
    return decode(session, entries, n_entries, error);
}

enum tandem_status tandem_session_plan(tandem_session *session, int64_t m, tandem_graph **out_graph,
                                       tandem_plan **out_plan, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(out_graph, error);
    LLAMA_REQUIRE(out_plan, error);
    struct tnd_llama_forward forward;
    struct tnd_llama_batch batch;
    int32_t *zeros = calloc((size_t)(m > 0 ? m : 1), sizeof(zeros[0]));
    if (zeros == NULL) {
        return no_memory(error);
    }
    const struct tandem_batch_entry entry = {.tokens = zeros, .n = m, .wants_logits = true};
    enum tandem_status status = check_entry(session, &entry, 0, error);
    if (status == TANDEM_OK) {
        status = describe(session, &entry, 1, &batch, error);
    }
    free(zeros);
    LLAMA_TRY(status);
    LLAMA_TRY(
        tnd_llama_kv_cache_take(&session->cache, batch.sequences, batch.positions, batch.m, error));
    tandem_context_reset(session->context);
    status = tnd_llama_forward(session->model, &session->cache, &batch, session->context, &forward,
                               error);
    tnd_llama_kv_cache_rollback(&session->cache);
    LLAMA_TRY(status);
    LLAMA_TRY(tandem_runtime_plan(session->runtime, forward.graph, out_plan, error));
    *out_graph = forward.graph;
    return TANDEM_OK;
}

/* ---- shift ---- */

/* Fills session->deltas: positions by which each cell moves. */
static bool find_deltas(tandem_session *session, int32_t sequence, int64_t from, int64_t n)
{
    const struct tnd_llama_kv_cache *cache = &session->cache;
    bool any = false;
    for (int64_t i = 0; i < cache->n_cells; i++) {
        const int64_t position = (int64_t)cache->orders[i] - (int64_t)sequence * TND_LLAMA_SPAN;
        const bool moves = position >= from && position < TND_LLAMA_POSITIONS;
        session->deltas[i] = moves ? (int32_t)-n : 0;
        any = any || moves;
    }
    return any;
}

enum tandem_status tandem_session_shift(tandem_session *session, int32_t sequence, int64_t keep,
                                        int64_t n, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tnd_llama_kv_cache *cache = &session->cache;
    tandem_graph *graph = NULL;
    if (sequence < 0 || sequence >= session->n_sequences || keep < 0 || n < 1 ||
        n > session->sequences[sequence].n_past - keep) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", n, keep,
                              "llama: %lld tokens behind the first %lld of sequence %d cannot be "
                              "forgotten: they are not there",
                              (long long)n, (long long)keep, (int)sequence);
    }
    if (session->deltas == NULL) {
        session->deltas = calloc((size_t)cache->n_cells, sizeof(session->deltas[0]));
    }
    if (session->deltas == NULL) {
        return no_memory(error);
    }
    LLAMA_TRY(collect(session, error)); /* tokens that go are not there to recover from */
    if (find_deltas(session, sequence, keep + n, n)) {
        tandem_context_reset(session->context);
        LLAMA_TRY(tnd_llama_shift(session->model, cache, session->deltas, session->context, &graph,
                                  error));
        /* not to be cancelled: half of the layers would be rotated */
        LLAMA_TRY(tandem_runtime_compute(session->runtime, graph, NULL, NULL, error));
        const enum tandem_status status =
            tnd_llama_kv_cache_fetch(cache, session->runtime, false, error);
        if (status != TANDEM_OK) { /* some keys were moved, others were not */
            (void)tnd_llama_kv_cache_fetch(cache, session->runtime, true, NULL);
            tnd_llama_kv_cache_forget(cache, sequence, 0, TND_LLAMA_POSITIONS);
            session->sequences[sequence].n_past = 0;
            return status;
        }
    }
    tnd_llama_kv_cache_forget(cache, sequence, keep, keep + n);
    for (int64_t i = 0; i < cache->n_used; i++) {
        cache->orders[i] += session->deltas[i];
    }
    session->sequences[sequence].n_past -= n;
    return TANDEM_OK;
}

/* ---- the rest ---- */

static struct tnd_llama_sequence *find_sequence(const tandem_session *session, int32_t i)
{
    return session != NULL && i >= 0 && i < session->n_sequences ? &session->sequences[i] : NULL;
}

int64_t tandem_session_rollback(tandem_session *session, int32_t sequence, int64_t position)
{
    if (session == NULL) {
        return 0;
    }
    struct tnd_llama_sequence *s = find_sequence(session, sequence);
    const int64_t window = session->cache.window;
    if (s == NULL || position < 0 || position >= s->n_past) {
        return s == NULL ? 0 : s->n_past;
    }
    /* the next token sees the window - 1 tokens before it */
    const int64_t seen = window > 0 && position >= window ? position - window + 1 : 0;
    if (!tnd_llama_kv_cache_has(&session->cache, sequence, seen, position)) {
        position = 0;
    }
    tnd_llama_kv_cache_forget(&session->cache, sequence, position, TND_LLAMA_POSITIONS);
    s->n_past = position;
    return position;
}

enum tandem_status tandem_session_copy(tandem_session *session, int32_t from, int32_t to, int64_t n,
                                       struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    struct tnd_llama_sequence *source = find_sequence(session, from);
    struct tnd_llama_sequence *copy = find_sequence(session, to);
    if (source == NULL || copy == NULL || from == to || copy->n_past != 0 || n < 1 ||
        n > source->n_past) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "llama", n, source != NULL ? source->n_past : 0,
            "llama: %lld tokens cannot be copied from sequence %d to %d; expected as many as the "
            "first one has or fewer, and another one of %d that is empty",
            (long long)n, (int)from, (int)to, session->n_sequences);
    }
    const int64_t window = session->cache.window;
    const int64_t seen = window > 0 && n >= window ? n - window + 1 : 0;
    if (!tnd_llama_kv_cache_has(&session->cache, from, seen, n)) {
        return tnd_llama_fail(error, TANDEM_E_NOT_FOUND, "llama", n, source->n_past,
                              "llama: the window of %lld tokens has left position %lld of "
                              "sequence %d behind",
                              (long long)window, (long long)n, (int)from);
    }
    LLAMA_TRY(collect(session, error));
    LLAMA_TRY(tnd_llama_kv_cache_fetch(&session->cache, session->runtime, true, error));
    LLAMA_TRY(tnd_llama_kv_cache_copy(&session->cache, from, to, n, error));
    copy->n_past = n;
    copy->has_logits = false;
    return TANDEM_OK;
}

const float *tandem_session_logits(const tandem_session *session, int32_t sequence)
{
    const struct tnd_llama_sequence *s = find_sequence(session, sequence);
    return s != NULL && s->has_logits ? s->logits : NULL;
}

const float *tandem_session_embedding(const tandem_session *session, int32_t sequence)
{
    const struct tnd_llama_sequence *s = find_sequence(session, sequence);
    return s != NULL && s->has_logits ? s->embedding : NULL;
}

int64_t tandem_session_position(const tandem_session *session, int32_t sequence)
{
    const struct tnd_llama_sequence *s = find_sequence(session, sequence);
    return s != NULL ? s->n_past : 0;
}

int64_t tandem_session_context(const tandem_session *session)
{
    return session != NULL ? session->n_positions : 0;
}

void tandem_session_set_cancel(tandem_session *session, bool (*cancel)(void *user), void *user)
{
    if (session == NULL) {
        return;
    }
    session->cancel = cancel;
    session->cancel_user = user;
}

void tandem_session_set_timed(tandem_session *session,
                              void (*timed)(void *user, const tandem_tensor *node,
                                            enum tandem_stage stage, double us),
                              void *user)
{
    if (session == NULL) {
        return;
    }
    session->timed = timed;
    session->timed_user = user;
}

void tandem_session_set_runtime(tandem_session *session, tandem_runtime *runtime)
{
    if (session == NULL || runtime == NULL) {
        return;
    }
    if (runtime != session->runtime) {
        session->must_recover =
            session->must_recover ||
            tnd_llama_kv_cache_fetch(&session->cache, session->runtime, false, NULL) != TANDEM_OK;
        session->n_on_host = session->must_recover ? session->n_on_host : session->n_batches;
        tnd_llama_kv_cache_leave(&session->cache, session->runtime);
        tnd_llama_hot_drop(session);
    }
    session->runtime = runtime;
}

void tandem_session_print_plans(tandem_session *session, tandem_write_fn write, void *user)
{
    if (session == NULL) {
        return;
    }
    session->print = write;
    session->print_user = user;
}

size_t tandem_session_graph_bytes(const tandem_session *session)
{
    return session != NULL ? tandem_context_bytes(session->context) : 0;
}

size_t tandem_session_cache_bytes(const tandem_session *session)
{
    return session != NULL ? tandem_context_bytes(session->cache.owner) : 0;
}
