/* SPDX-License-Identifier: MIT
 * Decoding: each batch takes cells of the KV cache, builds its graph in the session's context,
 * whose memory is reused, and computes it. Results that were lost with a device are recomputed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "llama/llama_error.h"
#include "llama/phases.h"
#include "llama/ranks.h"
#include "llama/shard.h"
#include "llama/session.h"

/* ---- batches ---- */

/* Allocates memory that describes a batch of m tokens. */
static enum tandem_status reserve_batch(tandem_session *session, int64_t m,
                                        struct tandem_error *error)
{
    struct tnd_llama_batch_memory *memory = &session->batch;
    if (m <= memory->capacity) {
        return TANDEM_OK;
    }
    int32_t *all = malloc(5 * (size_t)m * sizeof(all[0])); /* m is at most the number of cells */
    if (all == NULL) {
        return tnd_llama_no_memory(error);
    }
    free(memory->tokens);
    *memory =
        (struct tnd_llama_batch_memory){m, all, all + m, all + 2 * m, all + 3 * m, all + 4 * m};
    return TANDEM_OK;
}

/* Prints how a graph will run. A plan is made just for printing, with the same choices as the one
 * that runs. */
static enum tandem_status print_plan(const tandem_session *session, const tandem_graph *graph,
                                     const struct tnd_llama_batch *batch,
                                     struct tandem_error *error)
{
    tandem_plan *plan;
    char head[192];
    char split[64] = "";
    const struct tnd_llama_shard *shard = session->model->shard;
    if (batch->split->n > 1) {
        snprintf(split, sizeof(split), " in %d micro-batches over %d %s", batch->split->n,
                 shard != NULL ? shard->count : session->micro.stages.n_places,
                 shard != NULL ? "ranks" : "places");
    }
    LLAMA_TRY(tandem_runtime_plan(session->runtime, graph, &plan, error));
    const int n = snprintf(
        head, sizeof(head), "plan for %lld tokens from position %lld%s, made in %.1f us:\n",
        (long long)batch->m, (long long)batch->positions[0], split, tandem_plan_took_us(plan));
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

static enum tandem_status compute(tandem_session *session, tandem_graph *graph, bool is_split,
                                  struct tandem_error *error)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    const struct tandem_compute_options options = {.size = sizeof(options),
                                                   /* (not with ranks: the others would wait for
                                                    * half a batch) */
                                                   .cancel = shard == NULL ? ask_cancel : NULL,
                                                   .user = session,
                                                   .timed =
                                                       session->timed != NULL ? tell_time : NULL};
    tandem_plan *plan = NULL;
    if (session->adjust != NULL || is_split) {
        LLAMA_TRY(tandem_runtime_plan(session->runtime, graph, &plan, error));
    }
    if (session->adjust != NULL) {
        session->adjust(session->adjust_user, graph, plan);
    }
    const enum tandem_status status =
        tandem_runtime_compute(session->runtime, graph, plan, &options, error);
    session->micro.was_at_once = plan != NULL && tandem_plan_order(plan) != NULL;
    tandem_plan_free(plan);
    const struct tandem_error *why =
        shard != NULL ? tandem_communicator_error(shard->communicator) : NULL;
    if (status != TANDEM_OK && why != NULL && error != NULL) {
        *error = *why;
    }
    return status;
}

/* Whether only this machine's CPU computes. */
static bool is_cpu_alone(const tandem_runtime *runtime)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    return tandem_runtime_describe(runtime, &info) == TANDEM_OK && info.n_devices == 0;
}

/* Describes entries as a batch. */
static enum tandem_status describe(tandem_session *session,
                                   const struct tandem_batch_entry *entries, const int64_t *drafted,
                                   int64_t n_entries, struct tnd_llama_batch *out,
                                   struct tandem_error *error)
{
    struct tnd_llama_batch_memory *memory = &session->batch;
    int64_t m = 0, n_outputs = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        m += entries[i].n;
    }
    LLAMA_TRY(reserve_batch(session, m, error));
    tnd_llama_experts_forget(session); /* a rank may compute other layers than for the last batch */
    m = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        const struct tandem_batch_entry *entry = &entries[i];
        const int64_t n_past = session->sequences[entry->sequence].n_past;
        const int64_t n_types = session->model->hparams.token_types;
        const int64_t second = n_types > 1 ? session->sequences[entry->sequence].second : 0;
        LLAMA_ASSERT(entry->n > 0 && n_past + entry->n <= session->n_positions);
        for (int64_t j = 0; j < entry->n; j++, m++) {
            memory->tokens[m] = entry->tokens[j];
            memory->positions[m] = (int32_t)(n_past + j);
            memory->sequences[m] = entry->sequence;
            memory->types[m] = second > 0 && j >= second;
        }
        const int64_t first = m - 1 - (drafted != NULL ? drafted[i] : 0);
        for (int64_t j = first; entry->wants_logits && j < m; j++) {
            memory->outputs[n_outputs++] = (int32_t)j;
        }
    }
    *out = (struct tnd_llama_batch){.m = m,
                                    .tokens = memory->tokens,
                                    .positions = memory->positions,
                                    .sequences = memory->sequences,
                                    .types = memory->types,
                                    .outputs = memory->outputs,
                                    .n_outputs = n_outputs,
                                    .pooling = session->pooling,
                                    .expert_ids = session->experts.ids,
                                    .wants_embeddings = session->has_embeddings,
                                    .wants_hidden = tnd_llama_draft_wants_hidden(session),
                                    .hidden = session->hidden,
                                    .is_on_cpu = is_cpu_alone(session->runtime),
                                    .hot = session->hot.layers,
                                    .best = session->best.n > 0 ? &session->best : NULL,
                                    .is_begun = session->is_beginning};
    if (drafted == NULL) {
        tnd_llama_sampling_ask(session, entries, n_entries, out);
    }
    return TANDEM_OK;
}

/* Copies the i-th column of the results {n, outputs} of all micro-batches. */
static void take_column(float *out, tandem_tensor *const *results, int n_parts, int64_t i)
{
    for (int part = 0; part < n_parts; part++) {
        if (results[part] == NULL) {
            continue;
        }
        const int64_t *ne = tandem_tensor_ne(results[part]);
        if (i < ne[1]) {
            const float *values = tandem_tensor_data(results[part]);
            memcpy(out, values + i * ne[0], (size_t)ne[0] * sizeof(out[0]));
            return;
        }
        i -= ne[1];
    }
}

/* Copies the i-th result: logits, or the token that a device or the ranks have chosen instead. */
static void take_result(tandem_session *session, struct tnd_llama_sequence *sequence,
                        const struct tnd_llama_forward *forward, int64_t i)
{
    const struct tnd_llama_best *best = &session->best;
    const bool is_first = session->model->shard == NULL || session->model->shard->rank == 0;
    if (forward->choices != NULL) {
        sequence->choice =
            ((const struct tandem_sample_choice *)tandem_tensor_data(forward->choices))[i];
        sequence->chosen_for = sequence->sampler;
        return;
    }
    if (i < best->n && best->columns[i].is_chosen) {
        sequence->choice = best->columns[i].choice;
        sequence->chosen_for = sequence->sampler;
    } else if (is_first && !session->model->hparams.is_encoder) {
        take_column(sequence->logits, forward->logits, forward->n_parts, i);
        sequence->has_logits = true;
    }
    if (sequence->embedding != NULL && is_first) {
        take_column(sequence->embedding, forward->embeddings, forward->n_parts, i);
        sequence->has_embedding = true;
    }
}

/* Advances the sequences by the tokens of a batch. */
static void move_on(tandem_session *session, const struct tandem_batch_entry *entries,
                    const int64_t *drafted, int64_t n_entries)
{
    for (int64_t i = 0; i < n_entries; i++) {
        struct tnd_llama_sequence *sequence = &session->sequences[entries[i].sequence];
        sequence->n_past += entries[i].n - (drafted != NULL ? drafted[i] : 0);
        sequence->has_logits = sequence->has_embedding = false;
        sequence->chosen_for = NULL;
        sequence->second = 0;
    }
}

/* Copies the results that the batch's entries asked for. */
static void take_results(tandem_session *session, const struct tandem_batch_entry *entries,
                         const int64_t *drafted, int64_t n_entries,
                         const struct tnd_llama_forward *forward)
{
    int64_t n_taken = 0;
    for (int64_t i = 0; i < n_entries; i++) {
        struct tnd_llama_sequence *sequence = &session->sequences[entries[i].sequence];
        const int64_t n_drafted = drafted != NULL ? drafted[i] : 0;
        if (!entries[i].wants_logits) {
            continue;
        }
        take_result(session, sequence, forward, n_taken++);
        for (int64_t j = 0; j < n_drafted; j++) {
            float *results = tnd_llama_draft_results(session, entries[i].sequence, j);
            take_column(results, forward->logits, forward->n_parts, n_taken);
            if (sequence->embedding != NULL) {
                take_column(results + session->model->hparams.vocabulary, forward->embeddings,
                            forward->n_parts, n_taken);
            }
            n_taken++;
        }
    }
}

/* Passes the hidden states of all tokens to the draft layer. */
static void note_hidden(tandem_session *session, const struct tnd_llama_batch *batch,
                        const struct tnd_llama_forward *forward)
{
    int64_t at = 0;
    for (int part = 0; part < forward->n_parts && batch->wants_hidden; part++) {
        const int64_t *ne = tandem_tensor_ne(forward->hidden[part]);
        const float *states = tandem_tensor_data(forward->hidden[part]);
        for (int64_t i = 0; i < ne[1]; i++, at++) {
            tnd_llama_draft_note(session, batch->sequences[at], batch->positions[at],
                                 states + i * ne[0]);
        }
    }
}

/* Chooses the number of micro-batches, and builds the batch's graph. */
static enum tandem_status build(tandem_session *session, struct tnd_llama_batch *batch,
                                struct tnd_llama_forward *out_forward, struct tandem_error *error)
{
    LLAMA_TRY(tnd_llama_micro_choose(session, batch, error));
    tandem_context_reset(session->context);
    return tnd_llama_forward(tnd_llama_part_for(session, batch->m), &session->cache, batch,
                             session->context, out_forward, error);
}

static enum tandem_status run_batch(tandem_session *session, struct tnd_llama_batch *batch,
                                    struct tnd_llama_forward *out_forward,
                                    struct tandem_error *error)
{
    if (!tnd_llama_takes_part(tnd_llama_part_for(session, batch->m))) {
        memset(out_forward, 0, sizeof(*out_forward));
        return tnd_llama_micro_choose(session, batch, error);
    }
    LLAMA_TRY(build(session, batch, out_forward, error));
    if (session->print != NULL) {
        LLAMA_TRY(print_plan(session, out_forward->graph, batch, error));
    }
    return compute(session, out_forward->graph, batch->split->n > 1, error);
}

/* ---- keys and values that were lost with a device ---- */

/* Describes an earlier batch again, with those of its tokens that still have cells. */
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

/* Recomputes the newest batches into the same cells, oldest first, since each depends on earlier
 * ones. */
static enum tandem_status recover(tandem_session *session, struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    const int64_t oldest = session->n_batches - TANDEM_STATE_DEBT;
    int64_t done = oldest > session->n_on_host ? oldest : session->n_on_host;
    session->must_recover = true;
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, true, error));
    tnd_llama_kv_cache_clear_after(cache, done); /* what never reached the host may be NaN */
    while (done < session->n_batches) {
        struct tnd_llama_batch batch;
        struct tnd_llama_forward forward;
        LLAMA_TRY(describe_again(session, ++done, &batch, error));
        if (batch.m > 0) {
            tandem_context_reset(session->context);
            LLAMA_TRY(tnd_llama_forward(session->model, cache, &batch, session->context, &forward,
                                        error));
            LLAMA_TRY(compute(session, forward.graph, false, error));
        }
    }
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, false, error));
    session->n_on_host = session->n_batches;
    session->must_recover = false;
    return TANDEM_OK;
}

enum tandem_status tnd_llama_collect(tandem_session *session, struct tandem_error *error)
{
    if (session->must_recover ||
        tnd_llama_kv_cache_fetch(&session->cache, session->runtime, false, NULL) != TANDEM_OK) {
        return recover(session, error);
    }
    session->n_on_host = session->n_batches;
    return TANDEM_OK;
}

/* ---- decoding ---- */

static enum tandem_status
try_decode(tandem_session *session, const struct tandem_batch_entry *entries,
           const int64_t *drafted, int64_t n_entries, struct tnd_llama_batch *out_batch,
           struct tnd_llama_forward *out_forward, struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    LLAMA_TRY(session->must_recover ? recover(session, error) : TANDEM_OK);
    LLAMA_TRY(describe(session, entries, drafted, n_entries, out_batch, error));
    LLAMA_TRY(tnd_llama_phase_begin(session, out_batch->m, error));
    LLAMA_TRY(tnd_llama_kv_cache_take(cache, out_batch->sequences, out_batch->positions,
                                      out_batch->m, error));
    enum tandem_status status = run_batch(session, out_batch, out_forward, error);
    status = status == TANDEM_OK ? tnd_llama_phase_end(session, out_batch->m, error) : status;
    if (status != TANDEM_OK) {
        tnd_llama_kv_cache_rollback(cache);
        return status;
    }
    tnd_llama_kv_cache_note(cache, out_batch->tokens, ++session->n_batches);
    return TANDEM_OK;
}

static double now_us(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Whether the batch is a step: one token per text, plus drafts. */
static bool is_step(const struct tandem_batch_entry *entries, const int64_t *drafted,
                    int64_t n_entries)
{
    for (int64_t i = 0; i < n_entries; i++) {
        if (entries[i].n - (drafted != NULL ? drafted[i] : 0) != 1) {
            return false;
        }
    }
    return true;
}

/* Sends the batch to the other ranks. */
static enum tandem_status tell_batch(tandem_session *session,
                                     const struct tandem_batch_entry *entries, int64_t n_entries,
                                     struct tandem_error *error)
{
    enum tandem_status status = tnd_llama_best_ask(session, entries, n_entries, error);
    status =
        status == TANDEM_OK ? tnd_llama_tell_decode(session, entries, n_entries, error) : status;
    if (status != TANDEM_OK) {
        tnd_llama_best_forget(&session->best);
    }
    return status;
}

/* Ends the communication after a rank fails alone: the others are halfway through the batch and
 * wait for messages that it no longer sends. */
static void end_ranks(const tandem_session *session, enum tandem_status status,
                      const struct tandem_error *why)
{
    if (session->model->shard != NULL && status != TANDEM_OK && !tnd_llama_is_refusal(status)) {
        struct tandem_error lost = *why;
        lost.status = TANDEM_E_RANK;
        tandem_communicator_fail(session->model->shard->communicator, &lost);
    }
}

/* Decodes a batch, and once more after failures that this may repair: keys and values that were
 * lost with a device are recomputed. A cut batch is decoded again whole: its micro-batches read
 * cells before later ones are written, so it cannot be resumed halfway. */
static enum tandem_status decode_batch(tandem_session *session,
                                       const struct tandem_batch_entry *entries,
                                       const int64_t *drafted, int64_t n_entries,
                                       struct tnd_llama_flight *flight, struct tandem_error *error)
{
    struct tnd_llama_batch batch = {.split = NULL};
    struct tnd_llama_forward forward;
    struct tandem_error own = {.text = ""};
    const bool is_shared = session->model->shard != NULL;
    error = error != NULL ? error : &own;
    if (is_shared && ask_cancel(session)) {
        return tnd_llama_fail(error, TANDEM_E_CANCELLED, "llama", 0, 0,
                              "llama: cancelled before a batch");
    }
    LLAMA_TRY(tell_batch(session, entries, n_entries, error));
    tnd_llama_hot_look(session);
    const double begin_us = now_us();
    enum tandem_status status =
        try_decode(session, entries, drafted, n_entries, &batch, &forward, error);
    const bool was_split = batch.split != NULL && batch.split->n > 1;
    const bool is_lost =
        status != TANDEM_OK && !is_shared && !session->must_recover &&
        tnd_llama_kv_cache_fetch(&session->cache, session->runtime, false, NULL) != TANDEM_OK;
    session->must_recover = session->must_recover || is_lost;
    if (is_lost ||
        (status != TANDEM_OK && status != TANDEM_E_CANCELLED && was_split && !is_shared)) {
        session->micro.is_off = true;
        status = try_decode(session, entries, drafted, n_entries, &batch, &forward, error);
        session->micro.is_off = false;
    }
    end_ranks(session, status, error);
    LLAMA_TRY(status);
    move_on(session, entries, drafted, n_entries);
    tnd_llama_micro_note(session, batch.split, now_us() - begin_us);
    if (flight != NULL) {
        *flight = (struct tnd_llama_flight){.entries = flight->entries,
                                            .n_entries = n_entries,
                                            .m = batch.m,
                                            .is_step = is_step(entries, drafted, n_entries),
                                            .forward = forward,
                                            .begin_us = begin_us};
        memcpy(flight->entries, entries, (size_t)n_entries * sizeof(entries[0]));
    } else {
        tnd_batch_times_note(&session->times, batch.m, is_step(entries, drafted, n_entries),
                             now_us() - begin_us);
        take_results(session, entries, drafted, n_entries, &forward);
        note_hidden(session, &batch, &forward);
    }
    tnd_llama_experts_count(session, &batch);
    return TANDEM_OK;
}

enum tandem_status tnd_llama_decode(tandem_session *session,
                                    const struct tandem_batch_entry *entries,
                                    const int64_t *drafted, int64_t n_entries,
                                    struct tandem_error *error)
{
    LLAMA_TRY(tnd_llama_flights_finish(session, -1, error));
    return decode_batch(session, entries, drafted, n_entries, NULL, error);
}

enum tandem_status tnd_llama_decode_begin(tandem_session *session,
                                          const struct tandem_batch_entry *entries,
                                          int64_t n_entries, struct tnd_llama_flight *flight,
                                          struct tandem_error *error)
{
    session->is_beginning = true;
    const enum tandem_status status =
        decode_batch(session, entries, NULL, n_entries, flight, error);
    session->is_beginning = false;
    return status;
}

enum tandem_status tnd_llama_decode_end(tandem_session *session, struct tnd_llama_flight *flight,
                                        struct tandem_error *error)
{
    struct tandem_error own = {.text = ""};
    struct tnd_llama_flights *flights = &session->flights;
    error = error != NULL ? error : &own;
    tandem_context_reset(session->context);
    enum tandem_status status = tnd_llama_forward_end(session->model, session->has_embeddings,
                                                      session->context, &flight->forward, error);
    status = status == TANDEM_OK ? compute(session, flight->forward.graph, false, error) : status;
    end_ranks(session, status, error);
    LLAMA_TRY(status);
    take_results(session, flight->entries, NULL, flight->n_entries, &flight->forward);
    /* only the time that it took in addition to those before it */
    const double now = now_us();
    const double from = flight->begin_us > flights->end_us ? flight->begin_us : flights->end_us;
    tnd_batch_times_note(&session->times, flight->m, flight->is_step, now - from);
    flights->end_us = now;
    return TANDEM_OK;
}

static enum tandem_status decode(tandem_session *session, const struct tandem_batch_entry *entries,
                                 int64_t n_entries, struct tandem_error *error)
{
    return session->draft != NULL ? tnd_llama_decode_ahead(session, entries, n_entries, error)
                                  : tnd_llama_decode(session, entries, NULL, n_entries, error);
}

enum tandem_status tnd_llama_forget_samplers(tandem_session *session, enum tandem_status status)
{
    for (int i = 0; i < session->n_sequences; i++) {
        session->sequences[i].sampler = NULL;
    }
    return status;
}

static enum tandem_status check_is_not_in_flight(const tandem_session *session, int32_t sequence,
                                                 struct tandem_error *error)
{
    return !session->sequences[sequence].is_in_flight
               ? TANDEM_OK
               : tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", sequence, 0,
                                "llama: sequence %d is in a batch that was begun: "
                                "tandem_session_end_batch ends the oldest one",
                                (int)sequence);
}

static enum tandem_status check_fits(const tandem_session *session, int32_t sequence, int64_t n,
                                     struct tandem_error *error)
{
    const int64_t n_past = session->sequences[sequence].n_past;
    const int64_t n_free = session->n_positions - n_past;
    if (session->model->hparams.is_encoder && n_past > 0) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", n, n_past,
                              "llama: a text of an encoder is decoded at once, and sequence %d has "
                              "%lld tokens already: tandem_session_rollback drops them",
                              (int)sequence, (long long)n_past);
    }
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

static enum tandem_status decode_tokens(tandem_session *session, const int32_t *tokens, int64_t n,
                                        int64_t batch, struct tandem_error *error)
{
    const bool is_cut = batch > 0 && batch < session->batch_max;
    const int64_t most = is_cut && !session->model->hparams.is_encoder ? batch : session->batch_max;
    LLAMA_TRY(check_is_not_in_flight(session, 0, error));
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

enum tandem_status tandem_session_decode(tandem_session *session, const int32_t *tokens, int64_t n,
                                         int64_t batch, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(tokens, error);
    return tnd_llama_forget_samplers(session, decode_tokens(session, tokens, n, batch, error));
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

enum tandem_status tnd_llama_check_entries(const tandem_session *session,
                                           const struct tandem_batch_entry *entries,
                                           int64_t n_entries, struct tandem_error *error)
{
    if (n_entries < 1) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "llama", n_entries, 1,
                              "llama: a batch needs at least one entry");
    }
    for (int64_t i = 0; i < n_entries; i++) {
        LLAMA_TRY(check_entry(session, entries, i, error));
        LLAMA_TRY(check_is_not_in_flight(session, entries[i].sequence, error));
    }
    return TANDEM_OK;
}

enum tandem_status tandem_session_decode_batch(tandem_session *session,
                                               const struct tandem_batch_entry *entries,
                                               int64_t n_entries, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(entries, error);
    enum tandem_status status = tnd_llama_check_entries(session, entries, n_entries, error);
    status = status == TANDEM_OK ? decode(session, entries, n_entries, error) : status;
    return tnd_llama_forget_samplers(session, status);
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
        return tnd_llama_no_memory(error);
    }
    const struct tandem_batch_entry entry = {.tokens = zeros, .n = m, .wants_logits = true};
    tnd_llama_draft_drop(session, 0);
    session->best.n = 0;
    enum tandem_status status = check_entry(session, &entry, 0, error);
    if (status == TANDEM_OK) {
        status = describe(session, &entry, NULL, 1, &batch, error);
    }
    free(zeros);
    LLAMA_TRY(status);
    LLAMA_TRY(
        tnd_llama_kv_cache_take(&session->cache, batch.sequences, batch.positions, batch.m, error));
    status = build(session, &batch, &forward, error);
    tnd_llama_kv_cache_rollback(&session->cache);
    LLAMA_TRY(status);
    LLAMA_TRY(tandem_runtime_plan(session->runtime, forward.graph, out_plan, error));
    *out_graph = forward.graph;
    return TANDEM_OK;
}

void tnd_llama_predict_times(tandem_session *session)
{
    struct tnd_batch_times *times = &session->times;
    if (times->is_predicted || tnd_llama_draft_is_ahead(session) ||
        tandem_runtime_table_status(session->runtime, NULL) != TANDEM_OK) {
        return;
    }
    times->is_predicted = true;
    const int64_t left = session->n_positions - session->sequences[0].n_past;
    for (int i = 0; i < TND_BATCH_POWERS && (int64_t)1 << i <= left; i++) {
        tandem_graph *graph = NULL;
        tandem_plan *plan = NULL;
        struct tandem_prediction prediction = {0};
        if (tandem_session_plan(session, (int64_t)1 << i, &graph, &plan, NULL) != TANDEM_OK ||
            tandem_runtime_predict(session->runtime, graph, &prediction, NULL) != TANDEM_OK) {
            tandem_plan_free(plan);
            return;
        }
        tandem_plan_free(plan);
        times->predicted_us[i] = prediction.us;
    }
}

bool tandem_session_expect(tandem_session *session, int64_t m, struct tandem_expected *out)
{
    if (session == NULL || out == NULL || m < 1) {
        return false;
    }
    tnd_llama_predict_times(session);
    const struct tnd_batch_expected found = tnd_batch_times_expect(&session->times, m, false);
    if (found.us > 0) {
        *out = (struct tandem_expected){found.us, found.error_us};
    }
    return found.us > 0;
}
