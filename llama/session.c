/* SPDX-License-Identifier: MIT
 * Sessions: each batch takes cells of the KV cache, builds its graph in the same context, which
 * keeps its memory, and computes it. */
#include "llama/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/session_internal.h"

/* Tokens fed at once to a model with a window: its cache holds a window and a batch. */
enum { WINDOW_BATCH = 512 };

/* ---- opening ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "llama", 0, 0, "llama: no memory for a session");
}

/* Room for m tokens in a batch. */
static enum tandem_status grow_room(struct tnd_llama_session *session, int64_t m,
                                    struct tandem_error *error)
{
    struct tnd_llama_batch_room *room = &session->room;
    if (m <= room->capacity) {
        return TANDEM_OK;
    }
    int32_t *all = malloc(4 * (size_t)m * sizeof(all[0])); /* m is at most the cells' number */
    if (all == NULL) {
        return no_memory(error);
    }
    free(room->tokens);
    *room = (struct tnd_llama_batch_room){m, all, all + m, all + 2 * m, all + 3 * m};
    return TANDEM_OK;
}

static enum tandem_status init_sequences(struct tnd_llama_session *session,
                                         struct tandem_error *error)
{
    const size_t vocabulary = (size_t)session->model->hparams.vocabulary;
    session->sequences = calloc((size_t)session->n_sequences, sizeof(session->sequences[0]));
    if (session->sequences == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < session->n_sequences; i++) {
        session->sequences[i].logits = calloc(vocabulary, sizeof(float));
        if (session->sequences[i].logits == NULL) {
            return no_memory(error);
        }
    }
    return TANDEM_OK;
}

/* Cells that are needed: a text, or what its window sees and one batch. */
static int64_t cells_needed(const struct tnd_llama_session *session)
{
    const int64_t window = session->model->hparams.window;
    const int64_t one = window > 0 && window + WINDOW_BATCH < session->n_positions
                            ? window + WINDOW_BATCH
                            : session->n_positions;
    return one * session->n_sequences;
}

static enum tandem_status init(struct tnd_llama_session *session,
                               const struct tnd_llama_session_options *options,
                               struct tandem_error *error)
{
    const struct tnd_llama_hparams *h = &session->model->hparams;
    int64_t n =
        options->context <= 0 || options->context > h->context ? h->context : options->context;
    n = n < TND_LLAMA_POSITIONS ? n : TND_LLAMA_POSITIONS;
    session->n_positions = n;
    session->adjust = options->adjust;
    session->adjust_user = options->adjust_user;
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
                                            .is_transposed = options->is_unfused};
    session->batch_max = kv.n_cells;
    if (h->window > 0 && kv.n_cells > h->window) {
        session->batch_max = kv.n_cells - h->window;
    }
    LLAMA_TRY(tandem_context_new(NULL, &session->context, error));
    LLAMA_TRY(tnd_llama_kv_cache_init(&session->cache, h, &kv, error));
    return init_sequences(session, error);
}

enum tandem_status tnd_llama_session_open(const struct tnd_llama_model *model,
                                          tandem_runtime *runtime,
                                          const struct tnd_llama_session_options *options,
                                          struct tnd_llama_session **out_session,
                                          struct tandem_error *error)
{
    struct tnd_llama_session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        return no_memory(error);
    }
    session->model = model;
    session->runtime = runtime;
    const enum tandem_status status = init(session, options, error);
    if (status != TANDEM_OK) {
        tnd_llama_session_free(session);
        return status;
    }
    *out_session = session;
    return TANDEM_OK;
}

enum tandem_status tnd_llama_session_new(const struct tnd_llama_model *model,
                                         tandem_runtime *runtime, int64_t context,
                                         struct tnd_llama_session **out_session,
                                         struct tandem_error *error)
{
    const struct tnd_llama_session_options options = {.context = context};
    return tnd_llama_session_open(model, runtime, &options, out_session, error);
}

void tnd_llama_session_free(struct tnd_llama_session *session)
{
    if (session == NULL) {
        return;
    }
    for (int i = 0; session->sequences != NULL && i < session->n_sequences; i++) {
        free(session->sequences[i].logits);
    }
    free(session->sequences);
    free(session->room.tokens);
    free(session->deltas);
    tnd_llama_kv_cache_leave(&session->cache, session->runtime);
    tnd_llama_kv_cache_fini(&session->cache);
    tandem_context_free(session->context);
    free(session);
}

/* ---- batches ---- */

/* Prints how a graph will run; what is printed is not what is run, but the same choices. */
static enum tandem_status print_plan(const struct tnd_llama_session *session,
                                     const tandem_graph *graph, int64_t m, int64_t position,
                                     struct tandem_error *error)
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
    const struct tnd_llama_session *session = user;
    return session->cancel != NULL && session->cancel(session->cancel_user);
}

static void tell_time(void *user, const tandem_tensor *node, enum tandem_stage stage, double us)
{
    const struct tnd_llama_session *session = user;
    session->timed(session->timed_user, node, stage, us);
}

static enum tandem_status compute(struct tnd_llama_session *session, tandem_graph *graph,
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

/* Describes pieces as a batch. The logits wanted are those of the last token of each piece, or
 * none. */
static enum tandem_status describe(struct tnd_llama_session *session,
                                   const struct tnd_llama_piece *pieces, int64_t n_pieces,
                                   bool with_logits, struct tnd_llama_batch *out,
                                   struct tandem_error *error)
{
    struct tnd_llama_batch_room *room = &session->room;
    int64_t m = 0;
    for (int64_t i = 0; i < n_pieces; i++) {
        m += pieces[i].n;
    }
    LLAMA_TRY(grow_room(session, m, error));
    m = 0;
    for (int64_t i = 0; i < n_pieces; i++) {
        const int64_t n_past = session->sequences[pieces[i].sequence].n_past;
        for (int64_t j = 0; j < pieces[i].n; j++, m++) {
            room->tokens[m] = pieces[i].tokens[j];
            room->positions[m] = (int32_t)(n_past + j);
            room->sequences[m] = pieces[i].sequence;
        }
        room->outputs[i] = (int32_t)(m - 1);
    }
    *out = (struct tnd_llama_batch){.m = m,
                                    .tokens = room->tokens,
                                    .positions = room->positions,
                                    .sequences = room->sequences,
                                    .outputs = room->outputs,
                                    .n_outputs = with_logits ? n_pieces : 0};
    return TANDEM_OK;
}

/* Copies the logits and moves the sequences on. */
static void take_results(struct tnd_llama_session *session, const struct tnd_llama_piece *pieces,
                         int64_t n_pieces, const struct tnd_llama_forward *forward)
{
    const size_t vocabulary = (size_t)session->model->hparams.vocabulary;
    for (int64_t i = 0; i < n_pieces; i++) {
        struct tnd_llama_sequence *sequence = &session->sequences[pieces[i].sequence];
        sequence->n_past += pieces[i].n;
        if (forward->logits != NULL) {
            const float *logits = tandem_tensor_data(forward->logits);
            memcpy(sequence->logits, logits + (size_t)i * vocabulary, vocabulary * sizeof(float));
            sequence->has_logits = true;
        }
    }
}

static enum tandem_status run_taken(struct tnd_llama_session *session,
                                    const struct tnd_llama_piece *pieces, int64_t n_pieces,
                                    const struct tnd_llama_batch *batch, struct tandem_error *error)
{
    struct tnd_llama_forward forward;
    tandem_context_reset(session->context);
    LLAMA_TRY(tnd_llama_forward(session->model, &session->cache, batch, session->context, &forward,
                                error));
    if (session->print != NULL) {
        LLAMA_TRY(print_plan(session, forward.graph, batch->m, batch->positions[0], error));
    }
    LLAMA_TRY(compute(session, forward.graph, error));
    take_results(session, pieces, n_pieces, &forward);
    return TANDEM_OK;
}

static enum tandem_status run_pieces(struct tnd_llama_session *session,
                                     const struct tnd_llama_piece *pieces, int64_t n_pieces,
                                     bool with_logits, struct tandem_error *error)
{
    struct tnd_llama_batch batch;
    LLAMA_TRY(describe(session, pieces, n_pieces, with_logits, &batch, error));
    LLAMA_TRY(
        tnd_llama_kv_cache_take(&session->cache, batch.sequences, batch.positions, batch.m, error));
    const enum tandem_status status = run_taken(session, pieces, n_pieces, &batch, error);
    if (status != TANDEM_OK) {
        tnd_llama_kv_cache_untake(&session->cache);
    }
    return status;
}

static enum tandem_status check_room(const struct tnd_llama_session *session, int32_t sequence,
                                     int64_t n, struct tandem_error *error)
{
    const int64_t n_past = session->sequences[sequence].n_past;
    const int64_t room = session->n_positions - n_past;
    if (n <= room) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_LIMIT, "llama", n, room,
                          "llama: %lld more tokens do not fit: %lld of %lld positions are used",
                          (long long)n, (long long)n_past, (long long)session->n_positions);
}

static enum tandem_status check_tokens(const struct tnd_llama_session *session,
                                       const int32_t *tokens, int64_t n, struct tandem_error *error)
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

enum tandem_status tnd_llama_session_feed(struct tnd_llama_session *session, const int32_t *tokens,
                                          int64_t n, int64_t batch, struct tandem_error *error)
{
    const int64_t most = batch > 0 && batch < session->batch_max ? batch : session->batch_max;
    LLAMA_TRY(check_room(session, 0, n, error));
    LLAMA_TRY(check_tokens(session, tokens, n, error));
    for (int64_t at = 0; at < n;) {
        const int64_t left = n - at;
        const int64_t m = most < left ? most : left;
        const struct tnd_llama_piece piece = {.sequence = 0, .tokens = tokens + at, .n = m};
        LLAMA_TRY(run_pieces(session, &piece, 1, m == left, error));
        at += m;
    }
    return TANDEM_OK;
}

static enum tandem_status check_piece(const struct tnd_llama_session *session,
                                      const struct tnd_llama_piece *pieces, int64_t i,
                                      struct tandem_error *error)
{
    const struct tnd_llama_piece *piece = &pieces[i];
    bool is_new = true;
    for (int64_t j = 0; j < i; j++) {
        is_new = is_new && pieces[j].sequence != piece->sequence;
    }
    if (piece->sequence < 0 || piece->sequence >= session->n_sequences || piece->n < 1 || !is_new) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "llama", piece->sequence, session->n_sequences,
            "llama: piece %lld has %lld tokens for sequence %d; expected 1 or "
            "more, and each of %d sequences at most once",
            (long long)i, (long long)piece->n, (int)piece->sequence, session->n_sequences);
    }
    LLAMA_TRY(check_room(session, piece->sequence, piece->n, error));
    return check_tokens(session, piece->tokens, piece->n, error);
}

enum tandem_status tnd_llama_session_feed_pieces(struct tnd_llama_session *session,
                                                 const struct tnd_llama_piece *pieces,
                                                 int64_t n_pieces, struct tandem_error *error)
{
    if (n_pieces < 1) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", n_pieces, 1,
                              "llama: a batch needs at least one piece");
    }
    for (int64_t i = 0; i < n_pieces; i++) {
        LLAMA_TRY(check_piece(session, pieces, i, error));
    }
    return run_pieces(session, pieces, n_pieces, true, error);
}

enum tandem_status tnd_llama_session_plan(struct tnd_llama_session *session, int64_t m,
                                          tandem_graph **out_graph, tandem_plan **out_plan,
                                          struct tandem_error *error)
{
    struct tnd_llama_forward forward;
    struct tnd_llama_batch batch;
    LLAMA_TRY(check_room(session, 0, m, error));
    int32_t *zeros = calloc((size_t)(m > 0 ? m : 1), sizeof(zeros[0]));
    if (zeros == NULL) {
        return no_memory(error);
    }
    const struct tnd_llama_piece piece = {.sequence = 0, .tokens = zeros, .n = m};
    enum tandem_status status = describe(session, &piece, 1, true, &batch, error);
    free(zeros);
    LLAMA_TRY(status);
    LLAMA_TRY(
        tnd_llama_kv_cache_take(&session->cache, batch.sequences, batch.positions, batch.m, error));
    tandem_context_reset(session->context);
    status = tnd_llama_forward(session->model, &session->cache, &batch, session->context, &forward,
                               error);
    tnd_llama_kv_cache_untake(&session->cache);
    LLAMA_TRY(status);
    LLAMA_TRY(tandem_runtime_plan(session->runtime, forward.graph, out_plan, error));
    *out_graph = forward.graph;
    return TANDEM_OK;
}

/* ---- shift ---- */

/* Positions by which each cell moves; remembers nothing. */
static bool find_deltas(struct tnd_llama_session *session, int32_t sequence, int64_t from,
                        int64_t n)
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

enum tandem_status tnd_llama_session_shift(struct tnd_llama_session *session, int32_t sequence,
                                           int64_t keep, int64_t n, struct tandem_error *error)
{
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
    if (find_deltas(session, sequence, keep + n, n)) {
        tandem_context_reset(session->context);
        LLAMA_TRY(tnd_llama_shift(session->model, cache, session->deltas, session->context, &graph,
                                  error));
        /* not to be cancelled: half of the layers would be turned */
        LLAMA_TRY(tandem_runtime_compute(session->runtime, graph, NULL, NULL, error));
    }
    tnd_llama_kv_cache_forget(cache, sequence, keep, keep + n);
    for (int64_t i = 0; i < cache->n_used; i++) {
        cache->orders[i] += session->deltas[i];
    }
    session->sequences[sequence].n_past -= n;
    return TANDEM_OK;
}

/* ---- the rest ---- */

int64_t tnd_llama_session_rewind_of(struct tnd_llama_session *session, int32_t sequence,
                                    int64_t position)
{
    struct tnd_llama_sequence *s = &session->sequences[sequence];
    const int64_t window = session->cache.window;
    if (position < 0 || position >= s->n_past) {
        return s->n_past;
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

int64_t tnd_llama_session_rewind(struct tnd_llama_session *session, int64_t position)
{
    return tnd_llama_session_rewind_of(session, 0, position);
}

const float *tnd_llama_session_logits_of(const struct tnd_llama_session *session, int32_t sequence)
{
    const struct tnd_llama_sequence *s = &session->sequences[sequence];
    return s->has_logits ? s->logits : NULL;
}

const float *tnd_llama_session_logits(const struct tnd_llama_session *session)
{
    return tnd_llama_session_logits_of(session, 0);
}

int64_t tnd_llama_session_position_of(const struct tnd_llama_session *session, int32_t sequence)
{
    return session->sequences[sequence].n_past;
}

int64_t tnd_llama_session_position(const struct tnd_llama_session *session)
{
    return session->sequences[0].n_past;
}

int64_t tnd_llama_session_context(const struct tnd_llama_session *session)
{
    return session->n_positions;
}

void tnd_llama_session_set_cancel(struct tnd_llama_session *session, bool (*cancel)(void *user),
                                  void *user)
{
    session->cancel = cancel;
    session->cancel_user = user;
}

void tnd_llama_session_set_timed(struct tnd_llama_session *session,
                                 void (*timed)(void *user, const tandem_tensor *node,
                                               enum tandem_stage stage, double us),
                                 void *user)
{
    session->timed = timed;
    session->timed_user = user;
}

void tnd_llama_session_set_runtime(struct tnd_llama_session *session, tandem_runtime *runtime)
{
    if (runtime != session->runtime) {
        tnd_llama_kv_cache_leave(&session->cache, session->runtime);
    }
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

size_t tnd_llama_session_cache_bytes(const struct tnd_llama_session *session)
{
    return tandem_context_bytes(session->cache.owner);
}
