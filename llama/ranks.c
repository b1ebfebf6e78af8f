/* SPDX-License-Identifier: MIT
 * Sessions of several ranks. Rank 0 runs the program: it samples, reads the user's input, and never
 * drafts. Each call that changes its session is sent to the other ranks as an order, which they
 * carry out on their own sessions; between orders they wait. The same orders give the same KV cache
 * cells on all ranks, so cell numbers are never sent. */
#include "llama/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/phases.h"
#include "llama/shard.h"

enum { MOST_SESSIONS = 64, REASON = 160, PIECE = 4 << 20 /* bytes of a state per message */ };

static enum tandem_status tell(tandem_communicator *communicator,
                               const struct tnd_llama_order *order, const void *more,
                               struct tandem_error *error)
{
    struct tnd_llama_order sent = *order;
    LLAMA_TRY(tandem_communicator_broadcast(communicator, &sent, sizeof(sent), error));
    return order->bytes == 0 ? TANDEM_OK
                             : tandem_communicator_broadcast(communicator, (void *)(uintptr_t)more,
                                                             (size_t)order->bytes, error);
}

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_MEMORY, "cluster", 0, 0,
                          "llama: no memory for a session of several ranks");
}

/* ---- the same file ---- */

struct file {
    uint64_t bytes, hash;
};

static uint64_t mix_text(uint64_t hash, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = tnd_llama_mix(hash, (unsigned char)text[i]);
    }
    return tnd_llama_mix(hash, n);
}

static uint64_t mix_value(uint64_t hash, const struct tandem_source_value *value)
{
    uint64_t number = 0;
    hash = mix_text(hash, value->key, strlen(value->key));
    switch (value->kind) {
    case TANDEM_VALUE_INTEGER:
        return tnd_llama_mix(hash, (uint64_t)value->integer);
    case TANDEM_VALUE_NUMBER:
        memcpy(&number, &value->number, sizeof(number));
        return tnd_llama_mix(hash, number);
    case TANDEM_VALUE_TEXT:
        return mix_text(hash, value->text, strlen(value->text));
    case TANDEM_VALUE_ARRAY:
        return tnd_llama_mix(hash, (uint64_t)value->array.count);
    }
    return hash;
}

/* Fingerprint of a model file: its header, its size, and the first bytes of each tensor. Reading
 * all weights would read those of other ranks. */
static struct file file_of(const tandem_source *source)
{
    struct file file = {.hash = 1};
    struct tandem_source_value value;
    struct tandem_source_tensor tensor;
    for (int i = 0; tandem_source_value_at(source, i, &value); i++) {
        file.hash = mix_value(file.hash, &value);
    }
    for (int i = 0; tandem_source_tensor_at(source, i, &tensor); i++) {
        file.hash = mix_text(file.hash, tensor.name, strlen(tensor.name));
        file.hash = tnd_llama_mix(file.hash, (uint64_t)tensor.type);
        for (int d = 0; d < TANDEM_MAX_DIMS; d++) {
            file.hash = tnd_llama_mix(file.hash, (uint64_t)tensor.ne[d]);
        }
        file.hash = mix_text(file.hash, tensor.data,
                             tensor.bytes < TND_LLAMA_COMPARED ? tensor.bytes : TND_LLAMA_COMPARED);
        file.bytes += tensor.bytes;
    }
    return file;
}

/* Gathers `bytes` bytes from each rank to `out`. */
static enum tandem_status gather(tandem_communicator *communicator, const void *mine, size_t bytes,
                                 void *out, struct tandem_error *error)
{
    const int count = tandem_communicator_count(communicator);
    size_t *all = calloc((size_t)count, sizeof(all[0]));
    if (all == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < count; i++) {
        all[i] = bytes;
    }
    const enum tandem_status status =
        tandem_communicator_all_gather(communicator, mine, all, out, error);
    free(all);
    return status;
}

/* Every rank sees all fingerprints, so all return the same result. */
static enum tandem_status compare_files(const tandem_model *model,
                                        tandem_communicator *communicator,
                                        struct tandem_error *error)
{
    const int count = tandem_communicator_count(communicator);
    const struct file mine = file_of(model->source);
    struct file *all = calloc((size_t)count, sizeof(all[0]));
    if (all == NULL) {
        return no_memory(error);
    }
    enum tandem_status status = gather(communicator, &mine, sizeof(mine), all, error);
    for (int i = 1; status == TANDEM_OK && i < count; i++) {
        if (all[i].bytes != all[0].bytes || all[i].hash != all[0].hash) {
            status = tnd_llama_fail(
                error, TANDEM_E_FORMAT, "cluster", (int64_t)all[i].bytes, (int64_t)all[0].bytes,
                "llama: rank %d on %s has another model file than rank 0 on %s: %llu bytes of "
                "weights, hash %016llx; expected %llu bytes, hash %016llx",
                i, tandem_communicator_host(communicator, i),
                tandem_communicator_host(communicator, 0), (unsigned long long)all[i].bytes,
                (unsigned long long)all[i].hash, (unsigned long long)all[0].bytes,
                (unsigned long long)all[0].hash);
        }
    }
    free(all);
    return status;
}

/* ---- all or none ---- */

struct outcome {
    int64_t status;
    char reason[REASON];
};

enum tandem_status tnd_llama_agree(tandem_communicator *communicator, enum tandem_status status,
                                   const struct tandem_error *own, struct tandem_error *error)
{
    const int count = tandem_communicator_count(communicator);
    struct outcome mine = {.status = status};
    struct outcome *all = calloc((size_t)count, sizeof(all[0]));
    if (all == NULL) {
        return no_memory(error);
    }
    snprintf(mine.reason, sizeof(mine.reason), "%s", status != TANDEM_OK ? own->text : "");
    status = gather(communicator, &mine, sizeof(mine), all, error);
    for (int i = 0; status == TANDEM_OK && i < count; i++) {
        all[i].reason[REASON - 1] = '\0';
        if (all[i].status != TANDEM_OK) {
            status = tnd_llama_fail(error, (enum tandem_status)all[i].status, "cluster", i, count,
                                    "rank %d on %s: %s", i,
                                    tandem_communicator_host(communicator, i), all[i].reason);
        }
    }
    free(all);
    return status;
}

enum tandem_status tnd_llama_during(enum tandem_status status, const char *what,
                                    struct tandem_error *error)
{
    if (status == TANDEM_E_RANK && error != NULL) {
        const size_t n = strlen(error->text);
        snprintf(error->text + n, sizeof(error->text) - n, ", while %s", what);
    }
    return status;
}

/* Makes this rank's parts of the model, by shares {2, count}. Succeeds on all ranks or on none. */
static enum tandem_status make_parts(const tandem_model *model, tandem_communicator *communicator,
                                     enum tandem_division division, bool has_whole_experts,
                                     const double *shares, tandem_model **out_part,
                                     tandem_model **out_prompt_part, struct tandem_error *error)
{
    struct tandem_error own = {.text = ""};
    tandem_model *part = NULL, *prompt_part = NULL;
    const bool is_mixed = division == TANDEM_DIVIDE_MIXED;
    LLAMA_TRY(compare_files(model, communicator, error));
    enum tandem_status status =
        tnd_llama_shard_new(model, communicator, is_mixed ? TANDEM_DIVIDE_ROWS : division,
                            has_whole_experts, shares, &part, &own);
    if (status == TANDEM_OK && is_mixed) {
        status = tnd_llama_shard_new(model, communicator, TANDEM_DIVIDE_LAYERS, false,
                                     shares + tandem_communicator_count(communicator), &prompt_part,
                                     &own);
    }
    status = tnd_llama_agree(communicator, status, &own, error);
    if (status != TANDEM_OK) {
        tandem_model_free(part);
        tandem_model_free(prompt_part);
        return status;
    }
    *out_part = part;
    *out_prompt_part = prompt_part;
    return TANDEM_OK;
}

/* ---- rank 0 ---- */

/* Numbers sessions, for orders. (No lock: a communicator is used by one thread.) */
static int64_t next_number(void)
{
    static atomic_int_least64_t last;
    return atomic_fetch_add(&last, 1) % MOST_SESSIONS;
}

/* Shares {2, count} after NEW: of rows (or whatever is divided), then of layers. */
static double *shares_in(char *more)
{
    return (double *)(void *)(more + sizeof(struct tnd_llama_new_session));
}

/* Data sent after NEW, {out_bytes}; NULL: out of memory. */
static char *new_message(const struct tandem_session_options *options, int count, size_t *out_bytes)
{
    const struct tnd_llama_new_session told = {options->context,
                                               options->n_cells,
                                               options->n_sequences,
                                               (int64_t)options->cache_type,
                                               (int64_t)options->is_unfused,
                                               (int64_t)options->has_embeddings,
                                               (int64_t)options->division,
                                               options->micro_batches,
                                               options->prompt_batch,
                                               options->has_whole_experts};
    const double *of_layers =
        options->layer_shares != NULL ? options->layer_shares : options->shares;
    *out_bytes = sizeof(told) + 2 * (size_t)count * sizeof(double);
    char *more = malloc(*out_bytes);
    if (more == NULL) {
        return NULL;
    }
    double *shares = shares_in(more);
    memcpy(more, &told, sizeof(told));
    for (int i = 0; i < count; i++) {
        shares[i] = options->shares != NULL ? options->shares[i] : 1;
        shares[count + i] = of_layers != NULL ? of_layers[i] : 1;
    }
    return more;
}

enum tandem_status tnd_llama_lead(tandem_session *session,
                                  const struct tandem_session_options *options,
                                  struct tandem_error *error)
{
    tandem_communicator *communicator = options->communicator;
    size_t bytes;
    if (tandem_communicator_rank(communicator) != 0) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "cluster",
                              tandem_communicator_rank(communicator), 0,
                              "llama: rank %d opens a session of several ranks: rank 0 does, the "
                              "others call tandem_session_follow",
                              tandem_communicator_rank(communicator));
    }
    char *more = new_message(options, tandem_communicator_count(communicator), &bytes);
    if (more == NULL) {
        return no_memory(error);
    }
    session->number = next_number();
    const struct tnd_llama_order order = {
        .command = TND_ORDER_NEW, .session = session->number, .bytes = (int64_t)bytes};
    enum tandem_status status = tell(communicator, &order, more, error);
    status = status == TANDEM_OK ? make_parts(session->model, communicator, options->division,
                                              options->has_whole_experts, shares_in(more),
                                              &session->part, &session->prompt_part, error)
                                 : status;
    free(more);
    LLAMA_TRY(status);
    session->model = session->part;
    session->leads = communicator;
    return TANDEM_OK;
}

static struct tnd_llama_order order_of(const tandem_session *session,
                                       enum tnd_llama_command command, int64_t a, int64_t b,
                                       int64_t c)
{
    return (struct tnd_llama_order){.command = command, .session = session->number, .n = {a, b, c}};
}

void tnd_llama_lead_end(tandem_session *session)
{
    if (session->leads != NULL) {
        const struct tnd_llama_order order = order_of(session, TND_ORDER_FREE, 0, 0, 0);
        (void)tell(session->leads, &order, NULL, NULL);
    }
}

enum tandem_status tnd_llama_tell_shift(const tandem_session *session, int32_t sequence,
                                        int64_t keep, int64_t n, struct tandem_error *error)
{
    const struct tnd_llama_order order = order_of(session, TND_ORDER_SHIFT, sequence, keep, n);
    return session->leads != NULL ? tell(session->leads, &order, NULL, error) : TANDEM_OK;
}

enum tandem_status tnd_llama_tell_copy(const tandem_session *session, int32_t from, int32_t to,
                                       int64_t n, struct tandem_error *error)
{
    const struct tnd_llama_order order = order_of(session, TND_ORDER_COPY, from, to, n);
    return session->leads != NULL ? tell(session->leads, &order, NULL, error) : TANDEM_OK;
}

void tnd_llama_tell_rollback(const tandem_session *session, int32_t sequence, int64_t position)
{
    const struct tnd_llama_order order =
        order_of(session, TND_ORDER_ROLLBACK, sequence, position, 0);
    if (session->leads != NULL) {
        (void)tell(session->leads, &order, NULL, NULL);
    }
}

enum tandem_status tnd_llama_tell_state_write(const tandem_session *session,
                                              enum tandem_status status,
                                              const struct tandem_error *own,
                                              struct tandem_error *error)
{
    const struct tnd_llama_order order = order_of(session, TND_ORDER_STATE_WRITE, 0, 0, 0);
    LLAMA_TRY(tell(session->leads, &order, NULL, error));
    return tnd_llama_agree(session->leads, status, own, error);
}

enum tandem_status tnd_llama_tell_place(const tandem_session *session,
                                        const struct tandem_place_options *options,
                                        struct tandem_error *error)
{
    const struct tnd_llama_order order =
        order_of(session, TND_ORDER_PLACE, (int64_t)options->objective, options->prompt_tokens,
                 (int64_t)options->only_if_needed);
    return session->leads != NULL ? tell(session->leads, &order, NULL, error) : TANDEM_OK;
}

/* Sent in pieces, since the time limit applies to each message. */
static enum tandem_status broadcast_state(tandem_communicator *communicator, char *bytes, size_t n,
                                          struct tandem_error *error)
{
    for (size_t at = 0; at < n; at += PIECE) {
        LLAMA_TRY(tandem_communicator_broadcast(communicator, bytes + at,
                                                n - at < PIECE ? n - at : PIECE, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_llama_tell_state_read(const tandem_session *session, const void *bytes,
                                             size_t n, struct tandem_error *error)
{
    const struct tnd_llama_order order = order_of(session, TND_ORDER_STATE_READ, (int64_t)n, 0, 0);
    if (session->leads == NULL) {
        return TANDEM_OK;
    }
    const struct tandem_error none = {.text = ""};
    LLAMA_TRY(tell(session->leads, &order, NULL, error));
    LLAMA_TRY(tnd_llama_agree(session->leads, TANDEM_OK, &none, error)); /* all have the memory */
    LLAMA_TRY(broadcast_state(session->leads, (char *)(uintptr_t)bytes, n, error)); /* only read */
    return tnd_llama_agree(session->leads, TANDEM_OK, &none, error); /* all have received it */
}

enum tandem_status tnd_llama_tell_decode(const tandem_session *session,
                                         const struct tandem_batch_entry *entries,
                                         int64_t n_entries, struct tandem_error *error)
{
    int64_t n_tokens = 0;
    if (session->leads == NULL) {
        return TANDEM_OK;
    }
    for (int64_t i = 0; i < n_entries; i++) {
        n_tokens += entries[i].n;
    }
    const size_t heads = (size_t)n_entries * sizeof(struct tnd_llama_told_entry);
    const size_t choices = session->best.n > 0 ? session->best.n_told : 0;
    const size_t bytes = heads + (size_t)n_tokens * sizeof(int32_t) + choices;
    char *more = malloc(bytes);
    if (more == NULL) {
        return no_memory(error);
    }
    char *at = more + heads;
    for (int64_t i = 0; i < n_entries; i++) {
        const struct tnd_llama_told_entry told = {entries[i].n, entries[i].sequence,
                                                  entries[i].wants_logits};
        memcpy(more + (size_t)i * sizeof(told), &told, sizeof(told));
        memcpy(at, entries[i].tokens, (size_t)told.n * sizeof(int32_t));
        at += (size_t)told.n * sizeof(int32_t);
    }
    if (choices > 0) {
        memcpy(at, session->best.told, choices);
    }
    struct tnd_llama_order order =
        order_of(session, TND_ORDER_DECODE, n_entries, n_tokens, (int64_t)choices);
    order.bytes = (int64_t)bytes;
    const double limit_s = tandem_communicator_limit(session->leads);
    const bool has_layers = tnd_llama_by_layers(session->model) || session->prompt_part != NULL;
    if (has_layers && limit_s > 0) { /* other ranks may be a batch behind */
        tandem_communicator_set_limit(session->leads, -limit_s);
    }
    const enum tandem_status status = tell(session->leads, &order, more, error);
    tandem_communicator_set_limit(session->leads, limit_s);
    free(more);
    return status;
}

enum tandem_status tnd_llama_refuse_ranks(const tandem_session *session, const char *what,
                                          struct tandem_error *error)
{
    return session->model->shard == NULL
               ? TANDEM_OK
               : tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, "cluster",
                                session->model->shard->count, 1,
                                "llama: %s: not for a session of several ranks yet", what);
}

enum tandem_status tandem_session_dismiss(tandem_communicator *communicator,
                                          struct tandem_error *error)
{
    const struct tnd_llama_order order = {.command = TND_ORDER_END};
    LLAMA_REQUIRE(communicator, error);
    return tandem_communicator_count(communicator) > 1 ? tell(communicator, &order, NULL, error)
                                                       : TANDEM_OK;
}

/* ---- the other ranks ---- */

struct follower {
    const tandem_model *model;
    tandem_runtime *runtime;
    tandem_communicator *communicator;
    tandem_session *sessions[MOST_SESSIONS];
    char *more; /* {order.bytes}: data after the current order */
};

/* A refusal of one rank is one of all and ends nothing; only a failed communicator does. */
static enum tandem_status refused_by_all(const struct follower *f, enum tandem_status status)
{
    return tandem_communicator_error(f->communicator) != NULL ? status : TANDEM_OK;
}

static enum tandem_status begin_session(struct follower *f, const struct tnd_llama_order *order,
                                        struct tandem_error *error)
{
    struct tandem_session_options options = TANDEM_SESSION_OPTIONS_INIT;
    const int count = tandem_communicator_count(f->communicator);
    struct tnd_llama_new_session told;
    tandem_model *part = NULL, *prompt_part = NULL;
    if ((size_t)order->bytes != sizeof(told) + 2 * (size_t)count * sizeof(double) ||
        f->sessions[order->session] != NULL) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", order->bytes, count,
                              "llama: rank 0 begins session %lld with %lld bytes",
                              (long long)order->session, (long long)order->bytes);
    }
    memcpy(&told, f->more, sizeof(told));
    enum tandem_status status =
        make_parts(f->model, f->communicator, (enum tandem_division)told.division,
                   told.has_whole_experts != 0, shares_in(f->more), &part, &prompt_part, error);
    if (status != TANDEM_OK) { /* the same on all ranks: another session may follow */
        return refused_by_all(f, status);
    }
    options.context = told.context;
    options.n_cells = told.n_cells;
    options.n_sequences = (int)told.n_sequences;
    options.cache_type = (enum tandem_type)told.cache_type;
    options.is_unfused = told.is_unfused != 0;
    options.has_embeddings = told.has_embeddings != 0;
    options.micro_batches = (int)told.micro_batches;
    options.prompt_batch = told.prompt_batch;
    status = tnd_llama_session_of_part(part, prompt_part, f->runtime, &options,
                                       &f->sessions[order->session], error);
    return status == TANDEM_E_ARGUMENT ? TANDEM_OK : status; /* rank 0 has refused the same call */
}

static enum tandem_status run_batch(struct follower *f, tandem_session *session,
                                    const struct tnd_llama_order *order, struct tandem_error *error)
{
    const size_t n = (size_t)order->n[0];
    const size_t heads = n * sizeof(struct tnd_llama_told_entry);
    if (order->n[0] < 1 || order->n[0] > TND_LLAMA_MAX_SEQUENCES || order->n[1] < 1 ||
        order->n[1] > order->bytes || order->n[2] < 0 || order->n[2] > order->bytes ||
        (size_t)order->bytes !=
            heads + (size_t)order->n[1] * sizeof(int32_t) + (size_t)order->n[2]) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", order->bytes, order->n[1],
                              "llama: rank 0 tells a batch of %lld entries and %lld tokens in "
                              "%lld bytes",
                              (long long)order->n[0], (long long)order->n[1],
                              (long long)order->bytes);
    }
    struct tandem_batch_entry entries[TND_LLAMA_MAX_SEQUENCES];
    const int32_t *tokens = (const int32_t *)(const void *)(f->more + heads);
    int64_t left = order->n[1], n_outputs = 0;
    for (size_t i = 0; i < n; i++) {
        struct tnd_llama_told_entry told;
        memcpy(&told, f->more + i * sizeof(told), sizeof(told));
        if (told.n < 1 || told.n > left) {
            return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", told.n, left,
                                  "llama: rank 0 tells an entry of %lld tokens of %lld",
                                  (long long)told.n, (long long)left);
        }
        entries[i] = (struct tandem_batch_entry){.tokens = tokens,
                                                 .n = told.n,
                                                 .sequence = (int32_t)told.sequence,
                                                 .wants_logits = told.wants_logits != 0};
        tokens += told.n;
        left -= told.n;
        n_outputs += told.wants_logits != 0;
    }
    LLAMA_TRY(tnd_llama_best_take(session, tokens + left, (size_t)order->n[2], n_outputs, error));
    return tandem_session_decode_batch(session, entries, (int64_t)n, error);
}

static enum tandem_status make_room(const tandem_session *session, int64_t n, char **out,
                                    struct tandem_error *error)
{
    const size_t most = tnd_llama_state_most(session);
    if (n < 0 || (size_t)n > most) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", n, (int64_t)most,
                              "llama: rank 0 tells a state of %lld bytes", (long long)n);
    }
    *out = malloc((size_t)n + 1);
    return *out != NULL ? TANDEM_OK : no_memory(error);
}

/* Changes nothing until all ranks have the complete state. */
static enum tandem_status read_state(const struct follower *f, tandem_session *session,
                                     const struct tnd_llama_order *order,
                                     struct tandem_error *error)
{
    const size_t n = (size_t)order->n[0];
    struct tandem_error own = {.text = ""};
    char *bytes = NULL;
    enum tandem_status status = make_room(session, order->n[0], &bytes, &own);
    status = tnd_llama_agree(f->communicator, status, &own, error);
    status = status == TANDEM_OK ? broadcast_state(f->communicator, bytes, n, error) : status;
    if (status == TANDEM_OK) {
        status = tnd_llama_state_check(session, bytes, n, &own);
        status = tnd_llama_agree(f->communicator, status, &own, error);
    }
    status = status == TANDEM_OK ? tnd_llama_state_take(session, bytes, n, error)
                                 : refused_by_all(f, status);
    free(bytes);
    return status;
}

/* If a rank cannot place its part, all keep their placement, and rank 0 reports it. */
static enum tandem_status place_part(const struct follower *f, tandem_session *session,
                                     const struct tnd_llama_order *order,
                                     struct tandem_error *error)
{
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    struct tandem_error own = {.text = ""};
    options.objective = (enum tandem_place_objective)order->n[0];
    options.prompt_tokens = order->n[1];
    options.only_if_needed = order->n[2] != 0;
    const enum tandem_status status =
        tnd_llama_agree(f->communicator, tnd_llama_place(session, &options, &own), &own, error);
    return status == TANDEM_OK ? status : refused_by_all(f, status);
}

static enum tandem_status carry_out(struct follower *f, const struct tnd_llama_order *order,
                                    struct tandem_error *error)
{
    tandem_session **session = &f->sessions[order->session];
    if (order->command == TND_ORDER_NEW) {
        return begin_session(f, order, error);
    }
    if (*session == NULL) { /* could not be opened; rank 0 knows */
        return TANDEM_OK;
    }
    switch (order->command) {
    case TND_ORDER_DECODE:
        return run_batch(f, *session, order, error);
    case TND_ORDER_SHIFT:
        return tandem_session_shift(*session, (int32_t)order->n[0], order->n[1], order->n[2],
                                    error);
    case TND_ORDER_ROLLBACK:
        (void)tandem_session_rollback(*session, (int32_t)order->n[0], order->n[1]);
        return TANDEM_OK;
    case TND_ORDER_COPY:
        return tandem_session_copy(*session, (int32_t)order->n[0], (int32_t)order->n[1],
                                   order->n[2], error);
    case TND_ORDER_STATE_WRITE:
        return tnd_llama_during(refused_by_all(f, tnd_llama_state_send(*session, error)),
                                "a state was saved", error);
    case TND_ORDER_STATE_READ:
        return tnd_llama_during(read_state(f, *session, order, error), "a state was read", error);
    case TND_ORDER_PLACE:
        return place_part(f, *session, order, error);
    case TND_ORDER_FREE:
        tandem_session_free(*session);
        *session = NULL;
        return TANDEM_OK;
    default:
        return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", order->command, TND_ORDER_END,
                              "llama: rank 0 gives an order %lld that this version does not know",
                              (long long)order->command);
    }
}

/* Waits for the next order as long as rank 0 is alive: its user may be thinking. */
static enum tandem_status next_order(struct follower *f, struct tnd_llama_order *out,
                                     struct tandem_error *error)
{
    const double limit_s = tandem_communicator_limit(f->communicator);
    tandem_communicator_set_limit(f->communicator, -limit_s);
    const enum tandem_status status =
        tandem_communicator_broadcast(f->communicator, out, sizeof(*out), error);
    tandem_communicator_set_limit(f->communicator, limit_s);
    LLAMA_TRY(status);
    if (out->session < 0 || out->session >= MOST_SESSIONS || out->bytes < 0 ||
        out->bytes > INT32_MAX) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, "cluster", out->session, MOST_SESSIONS,
                              "llama: rank 0 gives an order for session %lld with %lld bytes",
                              (long long)out->session, (long long)out->bytes);
    }
    free(f->more);
    f->more = out->bytes > 0 ? malloc((size_t)out->bytes) : NULL;
    if (out->bytes == 0) {
        return TANDEM_OK;
    }
    return f->more == NULL
               ? no_memory(error)
               : tandem_communicator_broadcast(f->communicator, f->more, (size_t)out->bytes, error);
}

bool tnd_llama_is_refusal(enum tandem_status status)
{
    return status == TANDEM_E_LIMIT || status == TANDEM_E_NOT_FOUND;
}

enum tandem_status tandem_session_follow(const tandem_model *model, tandem_runtime *runtime,
                                         tandem_communicator *communicator,
                                         struct tandem_error *error)
{
    struct follower f = {.model = model, .runtime = runtime, .communicator = communicator};
    struct tandem_error own = {.text = ""};
    struct tnd_llama_order order;
    LLAMA_REQUIRE(model, error);
    LLAMA_REQUIRE(runtime, error);
    LLAMA_REQUIRE(communicator, error);
    enum tandem_status status = next_order(&f, &order, &own);
    while (status == TANDEM_OK && order.command != TND_ORDER_END) {
        status = carry_out(&f, &order, &own);
        status = status == TANDEM_OK || tnd_llama_is_refusal(status) ? next_order(&f, &order, &own)
                                                                     : status;
    }
    for (int i = 0; i < MOST_SESSIONS; i++) {
        tandem_session_free(f.sessions[i]);
    }
    free(f.more);
    if (status != TANDEM_OK) {
        tandem_communicator_fail(communicator, &own);
        if (error != NULL) {
            *error = own;
        }
    }
    return status;
}
