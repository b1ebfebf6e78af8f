/* SPDX-License-Identifier: MIT
 * Jobs: allocation, output, stop strings. */
#include "tools/tandem-server/srv_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/tandem-server/srv_bias.h"

double tnd_srv_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void tnd_srv_params_free(struct srv_params *params)
{
    for (int i = 0; i < params->n_stops; i++) {
        free(params->stops[i]);
    }
    params->n_stops = 0;
    tnd_srv_bias_free(&params->bias);
    tandem_grammar_free(params->grammar);
    params->grammar = NULL;
    tnd_srv_tools_free(&params->tools);
}

void tnd_srv_ids_free(struct srv_ids *ids)
{
    free(ids->ids);
    free(ids->ends);
    free(ids->seconds);
    *ids = (struct srv_ids){0};
}

/* An id that does not repeat while the server runs. */
static void set_id(struct srv_job *job)
{
    static atomic_ulong last;
    static const char *const heads[] = {"chatcmpl", "cmpl", "cmpl", "embd"};
    snprintf(job->id, sizeof(job->id), "%s-%llx%06lx", heads[job->params.style],
             (unsigned long long)job->created, atomic_fetch_add(&last, 1));
}

static int64_t text_begin(const struct srv_job *job, int text)
{
    return text == 0 ? 0 : job->texts.ends[text - 1];
}

static int64_t text_length(const struct srv_job *job, int text)
{
    const struct srv_ids *texts = &job->texts;
    return (texts->ends != NULL ? texts->ends[text] : (int64_t)texts->n) - text_begin(job, text);
}

static void take_text(struct srv_job *job, int text)
{
    job->text_index = text;
    job->prompt = job->texts.ids + text_begin(job, text);
    job->n_prompt = text_length(job, text);
}

bool tnd_srv_job_next_text(struct srv_job *job)
{
    if (job->text_index + 1 >= job->texts.n_texts) {
        return false;
    }
    take_text(job, job->text_index + 1);
    return true;
}

struct srv_job *tnd_srv_job_new(const struct srv_params *params, const struct srv_ids *texts)
{
    struct srv_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&job->mutex, NULL) != 0) {
        free(job);
        return NULL;
    }
    job->params = *params;
    job->texts = *texts;
    take_text(job, 0);
    for (int i = 1; i < texts->n_texts; i++) { /* allocates for the longest */
        const int64_t more = text_length(job, i) - job->n_prompt;
        job->params.max_tokens = more > job->params.max_tokens ? more : job->params.max_tokens;
    }
    job->created = (int64_t)time(NULL);
    job->times.arrived = tnd_srv_seconds();
    atomic_init(&job->refs, 1);
    job->first = job;
    set_id(job);
    return job;
}

struct srv_job *tnd_srv_job_ref(struct srv_job *job)
{
    atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed);
    return job;
}

bool tnd_srv_job_is_done(struct srv_job *job)
{
    pthread_mutex_lock(&job->mutex);
    const bool is_done = job->finish != SRV_RUNNING;
    pthread_mutex_unlock(&job->mutex);
    return is_done;
}

void tnd_srv_job_cancel(struct srv_job *job)
{
    for (; job != NULL; job = job->sibling) {
        atomic_store_explicit(&job->is_cancelled, true, memory_order_release);
    }
}

void tnd_srv_job_unref(struct srv_job *job)
{
    /* acquire and release: the thread that frees has seen all writes of the others */
    if (job == NULL || atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    tnd_srv_job_unref(job->sibling); /* (recursion, at most SRV_MAX_CHOICES deep) */
    tnd_srv_params_free(&job->params);
    tnd_srv_text_free(&job->text);
    (void)pthread_mutex_destroy(&job->mutex);
    free(job->tokens);
    free(job->embeddings);
    tnd_srv_ids_free(&job->texts);
    free(job);
}

void tnd_srv_job_listen(struct srv_job *job, const struct srv_listener *listener)
{
    pthread_mutex_lock(&job->mutex);
    job->listener = listener != NULL ? *listener : (struct srv_listener){0};
    pthread_mutex_unlock(&job->mutex);
}

static bool add_token(struct srv_job *job, const struct srv_token *token, size_t begin)
{
    if (job->n_tokens == job->token_capacity) {
        const size_t capacity = 2 * job->token_capacity + 16;
        struct srv_token *tokens = realloc(job->tokens, capacity * sizeof(tokens[0]));
        if (tokens == NULL) {
            return false;
        }
        job->tokens = tokens;
        job->token_capacity = capacity;
    }
    struct srv_token *added = &job->tokens[job->n_tokens++];
    *added = *token;
    added->begin = begin;
    added->end = job->text.n;
    return true;
}

bool tnd_srv_job_add(struct srv_job *job, const struct srv_token *token, const char *bytes,
                     size_t n)
{
    pthread_mutex_lock(&job->mutex);
    const size_t begin = job->text.n;
    const bool is_kept = job->params.wants_logprobs || job->params.style == SRV_NATIVE;
    tnd_srv_add(&job->text, bytes, n);
    job->n_generated++;
    const bool is_good = (!is_kept || add_token(job, token, begin)) && !job->text.failed;
    pthread_mutex_unlock(&job->mutex);
    return is_good;
}

/* ---- stop strings ---- */

static const char *find(const char *text, size_t n, const char *word, size_t length)
{
    for (size_t i = 0; i + length <= n; i++) {
        if (text[i] == word[0] && memcmp(text + i, word, length) == 0) {
            return text + i;
        }
    }
    return NULL;
}

/* Number of bytes at the end of the text that may begin the word. */
static size_t held_back(const char *text, size_t n, const char *word, size_t length)
{
    for (size_t k = length - 1 < n ? length - 1 : n; k > 0; k--) {
        if (memcmp(text + n - k, word, k) == 0) {
            return k;
        }
    }
    return 0;
}

bool tnd_srv_job_stops(struct srv_job *job)
{
    const char *first = NULL;
    size_t held = 0;
    pthread_mutex_lock(&job->mutex);
    const size_t n = job->text.n - job->n_ready; /* earlier bytes belong to no match */
    const char *fresh = n > 0 ? job->text.bytes + job->n_ready : NULL;
    for (int i = 0; n > 0 && i < job->params.n_stops; i++) {
        const char *stop = job->params.stops[i];
        const size_t length = strlen(stop);
        const char *at = find(fresh, n, stop, length);
        const size_t back = held_back(fresh, n, stop, length);
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            job->stopped_by = stop;
        }
        held = back > held ? back : held;
    }
    if (first != NULL) {
        job->text.n = (size_t)(first - job->text.bytes);
        job->text.bytes[job->text.n] = '\0';
        while (job->n_tokens > 0 && job->tokens[job->n_tokens - 1].begin >= job->text.n) {
            job->n_tokens--;
        }
        held = 0;
    }
    job->n_ready = job->text.n - held;
    pthread_mutex_unlock(&job->mutex);
    return first != NULL;
}

/* ---- notifying the reader ---- */

void tnd_srv_job_finish(struct srv_job *job, enum srv_finish finish, const char *fault)
{
    pthread_mutex_lock(&job->mutex);
    if (job->finish == SRV_RUNNING) {
        job->finish = finish;
        job->n_ready = job->text.n;
        job->times.ended = tnd_srv_seconds();
        snprintf(job->fault, sizeof(job->fault), "%s", fault != NULL ? fault : "");
        if (job->listener.wake != NULL) {
            job->listener.wake(job->listener.user);
        }
    }
    pthread_mutex_unlock(&job->mutex);
}

void tnd_srv_job_tell(struct srv_job *job)
{
    pthread_mutex_lock(&job->mutex);
    if (job->params.is_stream && job->listener.wake != NULL) {
        job->listener.wake(job->listener.user);
    }
    pthread_mutex_unlock(&job->mutex);
}

bool tnd_srv_job_is_gone(struct srv_job *job, bool looks)
{
    if (!looks || atomic_load_explicit(&job->is_cancelled, memory_order_acquire)) {
        return atomic_load_explicit(&job->is_cancelled, memory_order_acquire);
    }
    pthread_mutex_lock(&job->mutex);
    const bool is_gone = job->listener.is_gone != NULL && job->listener.is_gone(job->listener.user);
    pthread_mutex_unlock(&job->mutex);
    return is_gone;
}
