/* SPDX-License-Identifier: MIT
 * Steps: a batch through the model, then a token for each text. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tandem-server/srv_bias.h"
#include "tools/tandem-server/srv_engine_parts.h"

/* ---- tokens ---- */

/* The bytes of a token as shown in the text. */
static size_t show(struct srv_engine *engine, struct srv_sequence *s, int32_t id, char *out,
                   size_t capacity)
{
    /* answers are split at marks that are special tokens in some vocabularies */
    s->stream.shows_special = s->job->params.style == SRV_CHAT &&
                              tnd_srv_vocabulary_is_mark(engine->options.vocabulary, id);
    const size_t n = tandem_token_stream_next(&s->stream, id, out, capacity);
    return n <= capacity ? n : 0;
}

/* Adds a token to the job's text, and ends the job if it is complete. */
static void add(struct srv_engine *engine, struct srv_sequence *s, const struct srv_token *token)
{
    char bytes[1024];
    struct srv_job *job = s->job;
    const size_t n = show(engine, s, token->id, bytes, sizeof(bytes));
    if (!tnd_srv_job_add(job, token, bytes, n)) {
        tnd_srv_end(engine, s, SRV_FAILED, "no memory for the text");
    } else if (tnd_srv_job_stops(job)) {
        tnd_srv_end(engine, s, SRV_STOPPED, NULL);
    } else if (tandem_sampler_grammar_state(s->sampler) == TANDEM_GRAMMAR_COMPLETE) {
        tnd_srv_end(engine, s, SRV_ENDED, NULL);
    } else if (job->n_generated >= job->params.max_tokens) {
        tnd_srv_end(engine, s, SRV_LENGTH, NULL);
    } else {
        tnd_srv_job_tell(job);
    }
}

/* The grammar allows no further token: the text is complete, or in a dead end. */
static void end_by_grammar(struct srv_engine *engine, struct srv_sequence *s)
{
    const enum tandem_grammar_state state = tandem_sampler_grammar_state(s->sampler);
    if (state == TANDEM_GRAMMAR_COMPLETE || state == TANDEM_GRAMMAR_MAY_END) {
        tnd_srv_end(engine, s, SRV_ENDED, NULL);
    } else {
        tnd_srv_end(engine, s, SRV_FAILED,
                    state == TANDEM_GRAMMAR_BROKEN
                        ? "the grammar is too ambiguous for this text"
                        : "no token of the model can go on what the grammar allows");
    }
}

/* Whether choosing needs the logits on the host. */
static bool needs_logits(const struct srv_params *params)
{
    return params->wants_logprobs || !tnd_srv_bias_is_empty(&params->bias);
}

/* Chooses the next token of a text; the logits may be NULL if they are not needed. */
static void choose(struct srv_engine *engine, struct srv_sequence *s, int32_t sequence)
{
    const float *logits = tandem_session_logits(engine->session, sequence);
    const struct srv_vocabulary *vocabulary = engine->options.vocabulary;
    const struct srv_params *params = &s->job->params;
    struct srv_token token;
    token.id = !needs_logits(params)
                   ? tandem_session_sample(engine->session, sequence, s->sampler, NULL)
                   : tandem_sampler_sample(
                         s->sampler,
                         tnd_srv_bias_apply(&params->bias, vocabulary, s->tokens + s->job->n_prompt,
                                            s->n - s->job->n_prompt, logits, engine->scratch));
    if (token.id < 0) {
        end_by_grammar(engine, s);
        return;
    }
    tandem_sampler_accept(s->sampler, token.id, true);
    if (tnd_srv_vocabulary_is_end(vocabulary, token.id)) {
        tnd_srv_end(engine, s, SRV_ENDED, NULL);
        return;
    }
    token.logprob = 0.0f;
    if (params->wants_logprobs) {
        tnd_srv_logprobs(logits, vocabulary->n, token.id, params->n_top, &token);
    }
    s->next = token.id;
    engine->work.generated_tokens++;
    add(engine, s, &token);
}

static void take_embedding(struct srv_engine *engine, struct srv_sequence *s, int32_t sequence)
{
    const int64_t n = tandem_session_embedding_size(engine->session);
    const float *values = tandem_session_embedding(engine->session, sequence);
    struct srv_job *job = s->job;
    if (job->embeddings == NULL) { /* nothing is read before the job ends */
        const size_t n_texts = job->texts.n_texts > 0 ? (size_t)job->texts.n_texts : 1;
        job->embeddings = calloc(n_texts, (size_t)n * sizeof(float));
        job->n_embedding = n;
    }
    if (values == NULL || job->embeddings == NULL) {
        tnd_srv_end(engine, s, SRV_FAILED, "no memory for the embedding");
        return;
    }
    float *copy = job->embeddings + n * job->text_index;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)values[i] * (double)values[i];
    }
    if (job->params.is_rerank) {
        sum = 1.0;
    }
    for (int64_t i = 0; i < n; i++) { /* unit vectors, as clients expect */
        copy[i] = sum > 0.0 ? (float)((double)values[i] / sqrt(sum)) : 0.0f;
    }
    if (tnd_srv_job_next_text(job)) {
        tnd_srv_begin_text(engine, s);
    } else {
        tnd_srv_end(engine, s, SRV_ENDED, NULL);
    }
}

/* ---- batches ---- */

/* The oldest prompt that is newer than the job `after`; -1: none. */
static int next_prompt(const struct srv_engine *engine, uint64_t after)
{
    int found = -1;
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        if (s->job != NULL && s->is_prompt && !s->is_in_flight && s->used > after &&
            (found < 0 || s->used < engine->sequences[found].used)) {
            found = i;
        }
    }
    return found;
}

/* Number of running texts: those being generated, or with prompts. */
static int count_running(const struct srv_engine *engine, bool has_prompts)
{
    int n = 0;
    for (int i = 0; i < engine->n_sequences; i++) {
        n += engine->sequences[i].job != NULL && (has_prompts || !engine->sequences[i].is_prompt);
    }
    return n;
}

/* Fills in the entries of one of `n_batches` batches: its share of the texts being generated, and
 * as many prompt tokens as there is time for: texts of other batches in flight wait for this one,
 * too. */
static void make_batch(struct srv_engine *engine, int n_batches, struct srv_batch *batch)
{
    const int n_others = count_running(engine, false);
    const int share = (n_others + n_batches - 1) / n_batches;
    struct tandem_batch_entry *entries = batch->entries;
    int64_t n = 0;
    for (int i = 0; i < engine->n_sequences && n < share; i++) {
        struct srv_sequence *s = &engine->sequences[i];
        if (s->job != NULL && !s->is_prompt && !s->is_in_flight) {
            entries[n++] = (struct tandem_batch_entry){&s->next, 1, i, true};
        }
    }
    const int64_t budget = tnd_srv_pace_chunk(tnd_srv_pace_session, engine->session,
                                              1e3 * engine->options.delay_ms, n_others);
    int64_t left = budget;
    for (int i = next_prompt(engine, 0); i >= 0 && left > 0;
         i = next_prompt(engine, engine->sequences[i].used)) {
        const struct srv_sequence *s = &engine->sequences[i];
        const int64_t rest = s->job->n_prompt - s->n;
        const bool is_whole = s->job->params.is_whole;
        const int64_t m = is_whole || rest < left ? rest : left;
        if (is_whole && m > left && left < budget) {
            break;
        }
        if (is_whole && s->job->texts.seconds != NULL) {
            tandem_session_set_second(engine->session, i,
                                      s->job->texts.seconds[s->job->text_index]);
        }
        entries[n++] = (struct tandem_batch_entry){s->tokens + s->n, m, i, m == rest};
        left -= m;
    }
    batch->n = n;
    batch->n_prompt = budget - left;
}

/* Handles a computed batch: each text advances. */
static void take_batch(struct srv_engine *engine, const struct srv_batch *batch)
{
    for (int64_t k = 0; k < batch->n; k++) {
        const struct tandem_batch_entry *entry = &batch->entries[k];
        struct srv_sequence *s = &engine->sequences[entry->sequence];
        if (!s->is_prompt) {
            s->tokens[s->n++] = s->next;
        } else {
            s->n += entry->n;
        }
        if (!entry->wants_logits) {
            continue;
        }
        if (s->is_prompt) {
            s->is_prompt = false;
            s->job->times.prompted = tnd_srv_seconds();
        }
        if (s->job->params.style == SRV_EMBEDDING) {
            take_embedding(engine, s, entry->sequence);
        } else {
            choose(engine, s, entry->sequence);
        }
    }
}

static void count_drafts(struct srv_engine *engine)
{
    struct tandem_draft_info info;
    if (tandem_session_draft_info(engine->session, &info)) {
        engine->work.drafted_tokens = info.drafted;
        engine->work.accepted_tokens = info.accepted;
    }
}

static void count(struct srv_engine *engine, int64_t n_prompt, double seconds)
{
    struct srv_counts *counts = &engine->work;
    counts->n_steps++;
    counts->prompt_tokens += n_prompt;
    counts->busy_seconds += seconds;
    *(n_prompt > 0 ? &counts->prompt_seconds : &counts->generate_seconds) += seconds;
}

/* Ends the jobs of a failed batch; nothing was appended. */
static void fail_batch(struct srv_engine *engine, const struct srv_batch *batch,
                       const struct tandem_error *error)
{
    const bool is_lost = error->status == TANDEM_E_RANK;
    for (int64_t k = 0; k < batch->n; k++) {
        tnd_srv_end(engine, &engine->sequences[batch->entries[k].sequence],
                    is_lost ? SRV_LOST : SRV_FAILED, error->text);
    }
    if (is_lost && !engine->is_lost) {
        engine->is_lost = true;
        (void)fprintf(stderr, "tandem-server: %s\n", error->text);
        (void)kill(getpid(), SIGTERM); /* stops the server as a request to end does */
    }
}

/* Begins one of `n_batches` batches that should be in flight. False: there is no text for it. */
static bool begin_batch(struct srv_engine *engine, int n_batches)
{
    struct tandem_error error = {0};
    struct srv_batch *batch = &engine->batches[engine->n_batches];
    make_batch(engine, n_batches, batch);
    if (batch->n == 0) {
        return false;
    }
    for (int64_t k = 0; k < batch->n; k++) {
        const struct srv_sequence *s = &engine->sequences[batch->entries[k].sequence];
        const bool has_choice = batch->entries[k].wants_logits &&
                                s->job->params.style != SRV_EMBEDDING &&
                                !needs_logits(&s->job->params);
        (void)tandem_session_sample_with(engine->session, batch->entries[k].sequence,
                                         has_choice ? s->sampler : NULL, NULL);
    }
    batch->began = tnd_srv_seconds();
    if (tandem_session_begin_batch(engine->session, batch->entries, batch->n, &error) !=
        TANDEM_OK) {
        fail_batch(engine, batch, &error);
        return true;
    }
    engine->n_batches++;
    for (int64_t k = 0; k < batch->n; k++) {
        engine->sequences[batch->entries[k].sequence].is_in_flight = true;
    }
    return true;
}

static void end_batch(struct srv_engine *engine)
{
    struct tandem_error error = {0};
    const struct srv_batch batch = engine->batches[0];
    const enum tandem_status status = tandem_session_end_batch(engine->session, &error);
    engine->n_batches--;
    memmove(engine->batches, engine->batches + 1,
            (size_t)engine->n_batches * sizeof(engine->batches[0]));
    engine->batches[engine->n_batches] = batch; /* its memory is reused */
    for (int64_t k = 0; k < batch.n; k++) {
        engine->sequences[batch.entries[k].sequence].is_in_flight = false;
    }
    if (status != TANDEM_OK) {
        fail_batch(engine, &batch, &error);
        return;
    }
    const double now = tnd_srv_seconds();
    count_drafts(engine);
    count(engine, batch.n_prompt, now - fmax(batch.began, engine->ended));
    engine->ended = now;
    take_batch(engine, &batch);
}

bool tnd_srv_run_batch(struct srv_engine *engine)
{
    const int n = tandem_session_batches_in_flight(engine->session, count_running(engine, true));
    bool has_any = true;
    while (engine->n_batches < n && has_any) {
        has_any = begin_batch(engine, n);
    }
    if (engine->n_batches == 0) {
        return has_any;
    }
    end_batch(engine);
    return true;
}
