/* SPDX-License-Identifier: MIT
 * The engine's queue and thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/tandem-server/srv_engine_parts.h"

static const double READERS_EVERY = 0.1; /* seconds between checks for closed connections */
enum { MOST_SEQUENCES = 127 };

/* ---- opening ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    if (error != NULL) {
        snprintf(error->text, sizeof(error->text), "server: no memory for texts");
    }
    return TANDEM_E_MEMORY;
}

static enum tandem_status make_parts(struct srv_engine *engine, struct tandem_error *error)
{
    const size_t n = (size_t)engine->n_sequences;
    engine->sequences = calloc(n, sizeof(engine->sequences[0]));
    engine->slots = calloc(n, sizeof(engine->slots[0]));
    engine->scratch = calloc((size_t)engine->options.vocabulary->n, sizeof(engine->scratch[0]));
    if (engine->scratch == NULL || engine->sequences == NULL || engine->slots == NULL) {
        return no_memory(error);
    }
    for (int i = 0; i < TANDEM_BATCHES_IN_FLIGHT; i++) {
        engine->batches[i].entries = calloc(n, sizeof(engine->batches[0].entries[0]));
        if (engine->batches[i].entries == NULL) {
            return no_memory(error);
        }
    }
    for (size_t i = 0; i < n; i++) {
        engine->sequences[i].tokens = calloc((size_t)engine->options.context, sizeof(int32_t));
        if (engine->sequences[i].tokens == NULL) {
            return no_memory(error);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status open_parts(struct srv_engine *engine, struct tandem_error *error)
{
    struct srv_engine_options *o = &engine->options;
    struct tandem_session_options options = o->session;
    options.size = sizeof(options);
    options.context = o->context;
    options.n_cells = o->n_cells;
    options.n_sequences = engine->n_sequences;
    options.has_embeddings = o->has_embeddings;
    const enum tandem_status status =
        o->open_session != NULL
            ? o->open_session(o->model, o->runtime, &options, &o->ranks, &engine->session, error)
            : tandem_session_new(o->model, o->runtime, &options, &engine->session, error);
    if (status != TANDEM_OK) {
        return status;
    }
    o->context = tandem_session_context(engine->session);
    engine->work.n_cells = o->n_cells;
    struct tandem_expected expected;
    (void)tandem_session_expect(engine->session, 1,
                                &expected); /* plans now, before requests wait for it */
    return make_parts(engine, error);
}

static bool init_locks(struct srv_engine *engine)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    const bool is_good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                         pthread_cond_init(&engine->wake, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    if (is_good && pthread_mutex_init(&engine->mutex, NULL) != 0) {
        (void)pthread_cond_destroy(&engine->wake);
        return false;
    }
    return is_good;
}

enum tandem_status tnd_srv_engine_new(const struct srv_engine_options *options,
                                      struct srv_engine **out_engine, struct tandem_error *error)
{
    struct srv_engine *engine = calloc(1, sizeof(*engine));
    if (engine == NULL || !init_locks(engine)) {
        free(engine);
        return no_memory(error);
    }
    engine->options = *options;
    engine->n_sequences =
        2 * options->n_parallel < MOST_SEQUENCES ? 2 * options->n_parallel : MOST_SEQUENCES;
    const enum tandem_status status = open_parts(engine, error);
    if (status != TANDEM_OK) {
        tnd_srv_engine_free(engine);
        return status;
    }
    *out_engine = engine;
    return TANDEM_OK;
}

void tnd_srv_engine_free(struct srv_engine *engine)
{
    if (engine == NULL) {
        return;
    }
    for (int i = 0; engine->sequences != NULL && i < engine->n_sequences; i++) {
        free(engine->sequences[i].tokens);
        tandem_sampler_free(engine->sequences[i].sampler);
    }
    tandem_session_free(engine->session);
    free(engine->sequences);
    for (int i = 0; i < TANDEM_BATCHES_IN_FLIGHT; i++) {
        free(engine->batches[i].entries);
    }
    free(engine->scratch);
    free(engine->slots);
    (void)pthread_cond_destroy(&engine->wake);
    (void)pthread_mutex_destroy(&engine->mutex);
    free(engine);
}

/* ---- jobs ---- */

enum srv_submit tnd_srv_engine_submit(struct srv_engine *engine, struct srv_job *job)
{
    enum srv_submit result = SRV_TAKEN;
    pthread_mutex_lock(&engine->mutex);
    if (engine->is_closing) {
        result = SRV_CLOSING;
    } else if (engine->counts.n_waiting >= engine->options.max_queue) {
        result = SRV_QUEUE_FULL;
    } else {
        *(engine->last != NULL ? &engine->last->next : &engine->first) = tnd_srv_job_ref(job);
        engine->last = job;
        engine->counts.n_waiting++;
        engine->counts.n_jobs++;
        pthread_cond_broadcast(&engine->wake);
    }
    engine->counts.n_refused += result != SRV_TAKEN;
    pthread_mutex_unlock(&engine->mutex);
    return result;
}

void tnd_srv_end(struct srv_engine *engine, struct srv_sequence *sequence, enum srv_finish finish,
                 const char *fault)
{
    struct srv_job *job = sequence->job;
    sequence->job = NULL;
    (void)tandem_sampler_set_grammar(sequence->sampler, NULL, NULL, NULL); /* owned by the job */
    sequence->is_prompt = false;
    sequence->used = ++engine->clock;
    engine->work.n_failed += finish == SRV_FAILED || finish == SRV_LOST;
    tnd_srv_job_finish(job, finish, fault);
    tnd_srv_job_unref(job);
}

int tnd_srv_engine_sequences(const struct srv_engine *engine)
{
    return engine->n_sequences;
}

bool tnd_srv_engine_is_lost(const struct srv_engine *engine)
{
    return engine->is_lost;
}

tandem_session *tnd_srv_engine_session(const struct srv_engine *engine)
{
    return engine->session;
}

/* Why a job must end early; SRV_RUNNING: it need not. */
static enum srv_finish verdict(struct srv_job *job, double now, bool looks, bool is_over)
{
    return is_over                           ? SRV_CANCELLED
           : now > job->deadline             ? SRV_TIMEOUT
           : tnd_srv_job_is_gone(job, looks) ? SRV_CANCELLED
                                             : SRV_RUNNING;
}

/* Removes jobs from the queue that must end early. */
static void sweep_queue(struct srv_engine *engine, double now, bool looks, bool is_over)
{
    struct srv_job *kept = NULL;
    pthread_mutex_lock(&engine->mutex);
    for (struct srv_job **at = &engine->first; *at != NULL;) {
        struct srv_job *job = *at;
        const enum srv_finish finish = verdict(job, now, looks, is_over);
        if (finish == SRV_RUNNING) {
            kept = job;
            at = &job->next;
        } else {
            *at = job->next;
            engine->counts.n_waiting--;
            tnd_srv_job_finish(job, finish, NULL);
            tnd_srv_job_unref(job);
        }
    }
    engine->last = kept;
    pthread_mutex_unlock(&engine->mutex);
}

static void sweep(struct srv_engine *engine)
{
    const double now = tnd_srv_seconds();
    const bool looks = now > engine->checked + READERS_EVERY;
    pthread_mutex_lock(&engine->mutex);
    const bool is_over = engine->is_closing && now >= engine->close_at;
    pthread_mutex_unlock(&engine->mutex);
    engine->checked = looks ? now : engine->checked;
    sweep_queue(engine, now, looks, is_over);
    for (int i = 0; i < engine->n_sequences; i++) {
        struct srv_sequence *s = &engine->sequences[i];
        const enum srv_finish finish =
            s->job != NULL && !s->is_in_flight ? verdict(s->job, now, looks, is_over) : SRV_RUNNING;
        if (finish != SRV_RUNNING) {
            tnd_srv_end(engine, s, finish, NULL);
        }
    }
}

/* Publishes the state for other threads. */
static void publish(struct srv_engine *engine)
{
    int64_t cells = 0;
    int n_running = 0;
    pthread_mutex_lock(&engine->mutex);
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        struct srv_slot *slot = &engine->slots[i];
        *slot = (struct srv_slot){.is_running = s->job != NULL, .n_tokens = s->n};
        if (s->job != NULL) {
            slot->n_prompt = s->job->n_prompt;
            slot->n_generated = s->job->n_generated;
            memcpy(slot->id, s->job->id, sizeof(slot->id));
        }
        n_running += slot->is_running;
        cells += s->n;
    }
    engine->work.n_running = n_running;
    engine->work.cells_used = cells;
    engine->work.n_waiting = engine->counts.n_waiting;
    engine->work.n_jobs = engine->counts.n_jobs;
    engine->work.n_refused = engine->counts.n_refused;
    engine->counts = engine->work;
    pthread_mutex_unlock(&engine->mutex);
}

bool tnd_srv_engine_step(struct srv_engine *engine)
{
    sweep(engine);
    tnd_srv_admit(engine);
    const bool ran = tnd_srv_run_batch(engine);
    publish(engine);
    return ran;
}

/* ---- the thread ---- */

/* Waits for a job. False: the engine is closed, and no job is left. */
static bool wait_for_work(struct srv_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    while (engine->first == NULL && !engine->is_closing) {
        struct timespec until; /* the predicate is checked again after any wake-up */
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        (void)pthread_cond_timedwait(&engine->wake, &engine->mutex, &until);
    }
    const bool more = engine->first != NULL || !engine->is_closing;
    pthread_mutex_unlock(&engine->mutex);
    return more;
}

static void *run(void *user)
{
    struct srv_engine *engine = user;
    do {
        while (tnd_srv_engine_step(engine)) {
        }
    } while (wait_for_work(engine));
    return NULL;
}

enum tandem_status tnd_srv_engine_start(struct srv_engine *engine, struct tandem_error *error)
{
    if (pthread_create(&engine->thread, NULL, run, engine) != 0) {
        if (error != NULL) {
            snprintf(error->text, sizeof(error->text), "server: no thread for the engine");
        }
        return TANDEM_E_THREAD;
    }
    engine->has_thread = true;
    return TANDEM_OK;
}

void tnd_srv_engine_stop(struct srv_engine *engine, double seconds)
{
    pthread_mutex_lock(&engine->mutex);
    engine->is_closing = true;
    engine->close_at = engine->has_thread ? tnd_srv_seconds() + seconds : 0.0;
    pthread_cond_broadcast(&engine->wake);
    pthread_mutex_unlock(&engine->mutex);
    if (engine->has_thread) {
        (void)pthread_join(engine->thread, NULL);
        engine->has_thread = false;
    } else {
        while (tnd_srv_engine_step(engine)) { /* cancels all jobs, after their batches in flight */
        }
    }
}

/* ---- state for other threads ---- */

bool tnd_srv_engine_is_open(struct srv_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    const bool is_open = !engine->is_closing;
    pthread_mutex_unlock(&engine->mutex);
    return is_open;
}

void tnd_srv_engine_count(struct srv_engine *engine, struct srv_counts *out_counts)
{
    pthread_mutex_lock(&engine->mutex);
    *out_counts = engine->counts;
    pthread_mutex_unlock(&engine->mutex);
}

int tnd_srv_engine_slots(struct srv_engine *engine, struct srv_slot *out_slots, int capacity)
{
    pthread_mutex_lock(&engine->mutex);
    for (int i = 0; i < engine->n_sequences && i < capacity; i++) {
        out_slots[i] = engine->slots[i];
    }
    pthread_mutex_unlock(&engine->mutex);
    return engine->n_sequences;
}

int64_t tnd_srv_engine_context(const struct srv_engine *engine)
{
    return engine->options.context;
}
