/* SPDX-License-Identifier: MIT
 * Sessions: opening and closing; rollback, copies and shifts of texts; accessors. Decoding is in
 * decode.c. */
#include "llama/session.h"

#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/phases.h"
#include "llama/ranks.h"
#include "llama/shard.h"

/* Batch size of models with a window: their cache holds a window and one batch. */
enum { WINDOW_BATCH = 512 };

/* ---- opening ---- */

enum tandem_status tnd_llama_no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", 0, 0, "llama: no memory for a session");
}

enum tandem_status tnd_llama_check_writer(const tandem_session *session, struct tandem_error *error)
{
    return !session->model->hparams.is_encoder
               ? TANDEM_OK
               : tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, "llama", 0, 0,
                                "llama: a model of architecture %s is an encoder, which writes no "
                                "text: it gives embeddings or scores of texts",
                                session->model->hparams.architecture);
}

static enum tandem_status init_sequences(tandem_session *session, struct tandem_error *error)
{
    const size_t vocabulary = (size_t)session->model->hparams.vocabulary;
    session->sequences = calloc((size_t)session->n_sequences, sizeof(session->sequences[0]));
    if (session->sequences == NULL) {
        return tnd_llama_no_memory(error);
    }
    for (int i = 0; i < session->n_sequences; i++) {
        session->sequences[i].logits = calloc(vocabulary, sizeof(float));
        const size_t dim = session->has_embeddings ? (size_t)session->n_embedding : 0;
        session->sequences[i].embedding = dim > 0 ? calloc(dim, sizeof(float)) : NULL;
        if (session->sequences[i].logits == NULL ||
            (dim > 0 && session->sequences[i].embedding == NULL)) {
            return tnd_llama_no_memory(error);
        }
    }
    return TANDEM_OK;
}

/* Number of cells needed: for a text, or for a window and one batch. */
static int64_t cells_needed(const tandem_session *session)
{
    const struct tandem_hparams *h = &session->model->hparams;
    const int64_t window = tnd_llama_is_windowed(h) ? h->window : 0;
    const int64_t one = window > 0 && window + WINDOW_BATCH < session->n_positions
                            ? window + WINDOW_BATCH
                            : session->n_positions;
    return one * session->n_sequences;
}

/* The file's pooling applies unless the caller asks for another one. */
static enum tandem_status init_pooling(tandem_session *session, enum tandem_pooling wanted,
                                       struct tandem_error *error)
{
    const struct tandem_hparams *h = &session->model->hparams;
    const bool is_ranked = h->pooling == TANDEM_POOLING_RANK;
    session->pooling = wanted != TANDEM_POOLING_NONE ? wanted : h->pooling;
    session->n_embedding = is_ranked ? h->labels : h->dim;
    if (!h->is_encoder) {
        return wanted == TANDEM_POOLING_NONE || wanted == TANDEM_POOLING_LAST
                   ? TANDEM_OK
                   : tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", wanted, TANDEM_POOLING_LAST,
                                    "llama: a decoder gives the vector of the last token only");
    }
    if (session->pooling == TANDEM_POOLING_NONE) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", 0, 0,
                              "llama: the model does not say how the vectors of a text's tokens "
                              "become one (pooling_type, or 1_Pooling/config.json); choose mean, "
                              "cls or last (--pooling)");
    }
    if (session->pooling < TANDEM_POOLING_NONE || session->pooling > TANDEM_POOLING_RANK ||
        is_ranked != (session->pooling == TANDEM_POOLING_RANK)) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", session->pooling, h->pooling,
                              is_ranked
                                  ? "llama: pooling %d, expected none (0): a reranker gives scores"
                                  : "llama: pooling %d, expected mean, cls or last (1 to 3)",
                              (int)session->pooling);
    }
    return TANDEM_OK;
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
    session->has_embeddings = options->has_embeddings || h->is_encoder;
    session->prompt_batch =
        options->prompt_batch > 0 ? options->prompt_batch : 2 * (int64_t)TANDEM_MICRO_BATCH_TOKENS;
    session->flights.wanted = options->batches_in_flight;
    session->micro.wanted = h->is_encoder ? 1 : options->micro_batches; /* a text stays whole */
    LLAMA_TRY(init_pooling(session, options->pooling, error));
    session->n_sequences = options->n_sequences == 0 ? 1 : options->n_sequences;
    if (session->n_sequences < 1 || session->n_sequences > TND_LLAMA_MAX_SEQUENCES ||
        options->n_cells < 0 || options->n_cells >= INT32_MAX) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "llama", options->n_sequences, TND_LLAMA_MAX_SEQUENCES,
            "llama: %d sequences and %lld cells, expected 1 to %d sequences", options->n_sequences,
            (long long)options->n_cells, TND_LLAMA_MAX_SEQUENCES);
    }
    if (options->micro_batches < 0 || options->micro_batches > TND_LLAMA_MICRO_BATCHES) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", options->micro_batches,
                              TND_LLAMA_MICRO_BATCHES,
                              "llama: a batch in %d micro-batches; expected 0 (the timing table "
                              "decides) to %d",
                              options->micro_batches, TND_LLAMA_MICRO_BATCHES);
    }
    if (options->batches_in_flight < 0 || options->batches_in_flight > TANDEM_BATCHES_IN_FLIGHT) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", options->batches_in_flight,
                              TANDEM_BATCHES_IN_FLIGHT,
                              "llama: %d batches in flight; expected 0 (as many as ranks have "
                              "layers) to %d",
                              options->batches_in_flight, TANDEM_BATCHES_IN_FLIGHT);
    }
    const struct tnd_llama_range own = tnd_llama_own_layers(session->model);
    const struct tnd_llama_kv_options kv = {.n_cells = options->n_cells > 0 ? options->n_cells
                                                                            : cells_needed(session),
                                            .type = options->cache_type,
                                            .is_transposed = options->is_unfused,
                                            .has_blocks = session->n_sequences > 1,
                                            .begin = own.begin,
                                            .end = own.end,
                                            .wide = tnd_llama_wide_layers(session)};
    session->batch_max = kv.n_cells;
    LLAMA_TRY(tandem_context_new(NULL, &session->context, error));
    LLAMA_TRY(tnd_llama_kv_cache_init(&session->cache, h, &kv, error));
    session->cache.is_long =
        session->model->rope_long != NULL && (double)session->n_positions > h->rope_original;
    LLAMA_TRY(tnd_llama_experts_init(&session->experts, session->model, error));
    LLAMA_TRY(tnd_llama_hot_init(&session->hot, session->model, error));
    LLAMA_TRY(tnd_llama_micro_init(&session->micro, session->model, error));
    if (session->cache.window > 0 && kv.n_cells > session->cache.window) {
        session->batch_max = kv.n_cells - session->cache.window;
    }
    return init_sequences(session, error);
}

/* `status`: of the previous steps. */
static enum tandem_status finish_new(tandem_session *session, enum tandem_status status,
                                     const struct tandem_session_options *options,
                                     tandem_session **out_session, struct tandem_error *error)
{
    status = status == TANDEM_OK ? init(session, options, error) : status;
    if (status != TANDEM_OK) {
        tandem_session_free(session);
        return status;
    }
    *out_session = session;
    return TANDEM_OK;
}

/* Chooses `cache_type`. */
static enum tandem_status plan_cache(tandem_session *session,
                                     struct tandem_session_options *options,
                                     struct tandem_error *error)
{
    const int64_t known = session->model->hparams.context;
    const int64_t n = options->context <= 0 || options->context > known ? known : options->context;
    const int64_t texts = options->n_sequences > 1 ? options->n_sequences : 1;
    const int64_t cells = options->n_cells > 0    ? options->n_cells
                          : n < INT32_MAX / texts ? n * texts
                                                  : INT32_MAX;
    return tnd_llama_choose_cache(session->model, session->runtime, cells, n, options->is_unfused,
                                  options->cache_memory, &session->cache_choices,
                                  &options->cache_type, error);
}

bool tandem_session_cache(const tandem_session *session, int i, struct tandem_cache_info *out)
{
    struct tnd_llama_cache_choices given;
    const struct tnd_llama_cache_choices *choices;
    if (session == NULL || out == NULL || i < 0) {
        return false;
    }
    choices = &session->cache_choices;
    if (choices->n == 0) {
        tnd_llama_cache_given(&session->cache, &given);
        choices = &given;
    }
    if (i < choices->n) {
        *out = choices->list[i];
    }
    return i < choices->n;
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
        return tnd_llama_no_memory(error);
    }
    session->model = model;
    session->runtime = runtime;
    enum tandem_status status =
        options.is_cache_planned ? plan_cache(session, &options, error) : TANDEM_OK;
    if (status == TANDEM_OK && tandem_communicator_count(options.communicator) > 1) {
        status = tnd_llama_lead(session, &options, error);
    }
    return finish_new(session, status, &options, out_session, error);
}

enum tandem_status tnd_llama_session_of_part(tandem_model *part, tandem_model *prompt_part,
                                             tandem_runtime *runtime,
                                             const struct tandem_session_options *options,
                                             tandem_session **out_session,
                                             struct tandem_error *error)
{
    tandem_session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        tandem_model_free(part);
        tandem_model_free(prompt_part);
        return tnd_llama_no_memory(error);
    }
    session->model = session->part = part;
    session->prompt_part = prompt_part;
    session->runtime = runtime;
    return finish_new(session, TANDEM_OK, options, out_session, error);
}

void tandem_session_free(tandem_session *session)
{
    if (session == NULL) {
        return;
    }
    if (session->leads != NULL && tandem_communicator_error(session->leads) == NULL) {
        (void)tnd_llama_flights_finish(session, -1, NULL); /* receives what others send */
    }
    for (int i = 0; session->sequences != NULL && i < session->n_sequences; i++) {
        free(session->sequences[i].logits);
        free(session->sequences[i].embedding);
    }
    tnd_llama_flights_fini(&session->flights);
    tnd_llama_lead_end(session);
    tnd_llama_draft_fini(session);
    tnd_llama_sampling_fini(&session->sampling);
    tnd_llama_best_fini(&session->best);
    free(session->sequences);
    free(session->batch.tokens);
    free(session->deltas);
    tnd_llama_hot_drop(session);
    tnd_llama_hot_fini(&session->hot);
    tnd_llama_micro_fini(&session->micro);
    tnd_llama_experts_fini(&session->experts);
    tnd_llama_kv_cache_leave(&session->cache, session->runtime);
    tnd_llama_kv_cache_fini(&session->cache);
    tandem_context_free(session->context);
    tandem_model_free(session->part);
    tandem_model_free(session->prompt_part);
    free(session);
}

/* ---- shift ---- */

/* Fills session->deltas: by how many positions each cell moves. */
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
    LLAMA_TRY(tnd_llama_flights_finish(session, sequence, error));
    if (session->deltas == NULL) {
        session->deltas = calloc((size_t)cache->n_cells, sizeof(session->deltas[0]));
    }
    if (session->deltas == NULL) {
        return tnd_llama_no_memory(error);
    }
    LLAMA_TRY(tnd_llama_tell_shift(session, sequence, keep, n, error));
    tnd_llama_draft_forget(session, sequence, keep);
    LLAMA_TRY(tnd_llama_collect(session, error)); /* recovery needs tokens that go */
    if (find_deltas(session, sequence, keep + n, n)) {
        tandem_context_reset(session->context);
        LLAMA_TRY(tnd_llama_shift(session->model, cache, session->deltas, session->context, &graph,
                                  error));
        /* not cancellable: otherwise half of the layers could be rotated */
        LLAMA_TRY(tandem_runtime_compute(session->runtime, graph, NULL, NULL, error));
        const enum tandem_status status =
            tnd_llama_kv_cache_fetch(cache, session->runtime, false, error);
        if (status != TANDEM_OK) { /* some keys were moved, others not */
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

/* ---- rollback, copies, accessors ---- */

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
    (void)tnd_llama_flights_finish(session, sequence, NULL); /* the next decode reports a failure */
    tnd_llama_tell_rollback(session, sequence, position);
    /* the next token sees the window - 1 tokens before it */
    const int64_t seen = window > 0 && position >= window ? position - window + 1 : 0;
    if (!tnd_llama_kv_cache_has(&session->cache, sequence, seen, position)) {
        position = 0;
    }
    tnd_llama_draft_forget(session, sequence, position);
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
    LLAMA_TRY(tnd_llama_flights_finish(session, to, error));
    LLAMA_TRY(tnd_llama_tell_copy(session, from, to, n, error));
    LLAMA_TRY(tnd_llama_collect(session, error));
    LLAMA_TRY(tnd_llama_kv_cache_fetch(&session->cache, session->runtime, true, error));
    LLAMA_TRY(tnd_llama_kv_cache_copy(&session->cache, from, to, n, error));
    copy->n_past = n;
    copy->has_logits = copy->has_embedding = false;
    copy->chosen_for = NULL;
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
    return s != NULL && s->has_embedding ? s->embedding : NULL;
}

int64_t tandem_session_embedding_size(const tandem_session *session)
{
    return session != NULL && session->has_embeddings ? session->n_embedding : 0;
}

void tandem_session_set_second(tandem_session *session, int32_t sequence, int64_t begin)
{
    struct tnd_llama_sequence *s = find_sequence(session, sequence);
    if (s != NULL) {
        s->second = begin > 0 ? begin : 0;
    }
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
        memset(&session->times, 0, sizeof(session->times));
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
