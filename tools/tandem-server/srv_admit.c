/* SPDX-License-Identifier: MIT
 * Assigns sequences and cells to jobs. A job gets all cells that it may ever need, so that no
 * running job has to be stopped; cached texts of finished jobs are evicted, the least recently used
 * first. The common prefix of a prompt and a cached text is copied, or taken over if the text
 * belongs to no job and is a prefix of the prompt. */
#include <stdlib.h>
#include <string.h>

#include "tools/tandem-server/srv_engine_parts.h"

/* Common tokens that are worth waiting for while another prompt computes them. */
enum { WORTH_WAITING = 64 };

static int64_t cells_of(int64_t n)
{
    return (n + SRV_BLOCK - 1) / SRV_BLOCK * SRV_BLOCK;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t in_common(const int32_t *a, int64_t n_a, const struct srv_job *job)
{
    const int64_t most = job->params.is_whole ? 0 : job->n_prompt - 1; /* for its logits */
    const int64_t n = smaller(n_a, most);
    int64_t i = 0;
    while (i < n && a[i] == job->prompt[i]) {
        i++;
    }
    return i;
}

static int find_best(const struct srv_engine *engine, const struct srv_job *job, int64_t *out_n)
{
    int best = -1;
    *out_n = 0;
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        const int64_t n = in_common(s->tokens, s->n, job);
        if (n > *out_n || (n == *out_n && n > 0 && s->job == NULL && s->n == n)) {
            best = i;
            *out_n = n;
        }
    }
    return best;
}

/* Whether a running prompt will soon share more tokens with this one than `n`. */
static bool is_worth_waiting(const struct srv_engine *engine, const struct srv_job *job, int64_t n)
{
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        if (s->job != NULL && s->is_prompt) {
            const int64_t all = in_common(s->tokens, s->job->n_prompt, job);
            if (all >= n + WORTH_WAITING && all > s->n) {
                return true;
            }
        }
    }
    return false;
}

/* An empty sequence, or the least recently used one without a job; -1: none. */
static int find_idle(const struct srv_engine *engine, int except)
{
    int found = -1;
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        if (s->job == NULL && i != except &&
            (found < 0 || (s->n == 0) > (engine->sequences[found].n == 0) ||
             ((s->n == 0) == (engine->sequences[found].n == 0) &&
              s->used < engine->sequences[found].used))) {
            found = i;
        }
    }
    return found;
}

static void evict(struct srv_engine *engine, int i)
{
    (void)tandem_session_rollback(engine->session, i, 0);
    engine->sequences[i].n = 0;
}

/* Evicts texts until `needed` cells are free for `target`; never evicts `keep`. False, without
 * evicting any, if that is impossible. */
static bool make_room(struct srv_engine *engine, int64_t needed, int target, int keep)
{
    int64_t taken = 0;
    int64_t idle = 0;
    for (int i = 0; i < engine->n_sequences; i++) {
        const struct srv_sequence *s = &engine->sequences[i];
        taken += i == target ? 0 : cells_of(s->job != NULL ? s->n_reserved : s->n);
        idle += i == target || i == keep || s->job != NULL ? 0 : cells_of(s->n);
    }
    if (taken - idle + needed > engine->options.n_cells) {
        return false;
    }
    while (taken + needed > engine->options.n_cells) {
        int oldest = -1;
        for (int i = 0; i < engine->n_sequences; i++) {
            const struct srv_sequence *s = &engine->sequences[i];
            if (i != target && i != keep && s->job == NULL && s->n > 0 &&
                (oldest < 0 || s->used < engine->sequences[oldest].used)) {
                oldest = i;
            }
        }
        taken -= cells_of(engine->sequences[oldest].n);
        evict(engine, oldest);
    }
    return true;
}

static bool has_sampler(struct srv_engine *engine, struct srv_sequence *s,
                        const struct srv_job *job)
{
    if (s->sampler == NULL &&
        (tandem_sampler_new(&job->params.sampler, &s->sampler, NULL) != TANDEM_OK ||
         tandem_sampler_keep_utf8(s->sampler, engine->options.tokenizer, NULL) != TANDEM_OK)) {
        return false;
    }
    return tandem_sampler_renew(s->sampler, &job->params.sampler, NULL) == TANDEM_OK &&
           tandem_sampler_set_grammar(s->sampler, job->params.grammar,
                                      engine->options.vocabulary->trie, NULL) == TANDEM_OK;
}

/* Makes sequence `target` begin with n tokens of `best`. Returns how many it begins with. */
static int64_t begin_with(struct srv_engine *engine, int target, int best, int64_t n)
{
    if (target == best) {
        return n == 0 ? (evict(engine, target), 0)
                      : tandem_session_rollback(engine->session, target, n);
    }
    evict(engine, target);
    if (n > 0 && engine->sequences[best].job == NULL) {
        engine->sequences[best].used = ++engine->clock;
    }
    return n > 0 && tandem_session_copy(engine->session, best, target, n, NULL) == TANDEM_OK ? n
                                                                                             : 0;
}

static void take_prompt(struct srv_sequence *s, int64_t n_cached)
{
    memcpy(s->tokens, s->job->prompt, (size_t)s->job->n_prompt * sizeof(s->tokens[0]));
    s->n = n_cached;
    s->is_prompt = true;
}

void tnd_srv_begin_text(struct srv_engine *engine, struct srv_sequence *sequence)
{
    const int i = (int)(sequence - engine->sequences);
    const int64_t n = in_common(sequence->tokens, sequence->n, sequence->job);
    take_prompt(sequence, begin_with(engine, i, i, n));
}

static void begin_job(struct srv_engine *engine, struct srv_sequence *s, struct srv_job *job,
                      int64_t n_cached)
{
    const int64_t recent = smaller(job->n_prompt, job->params.sampler.repeat_last);
    s->job = job;
    s->used = ++engine->clock;
    take_prompt(s, n_cached);
    s->stream = tandem_token_stream_begin(engine->options.tokenizer, job->params.style == SRV_CHAT);
    for (int64_t i = job->n_prompt - recent; i < job->n_prompt; i++) {
        tandem_sampler_accept(s->sampler, job->prompt[i], false);
    }
    job->times.began = tnd_srv_seconds();
    job->times.n_cached = n_cached;
    engine->work.cached_tokens += n_cached;
}

/* Whether a cached text may be overwritten after its first n tokens: little is lost. */
static bool loses_little(const struct srv_sequence *s, int64_t n)
{
    return s->n - n < SRV_BLOCK && s->n - n <= n;
}

/* Assigns a sequence to a job. False: the job has to wait. */
static bool place(struct srv_engine *engine, struct srv_job *job)
{
    int64_t n;
    const int64_t reserved =
        smaller(job->n_prompt + job->params.max_tokens, engine->options.context);
    const int best = find_best(engine, job, &n);
    const bool is_nobodys = best >= 0 && engine->sequences[best].job == NULL;
    if (is_worth_waiting(engine, job, n)) {
        return false;
    }
    int target =
        is_nobodys && loses_little(&engine->sequences[best], n) ? best : find_idle(engine, best);
    target = target < 0 && is_nobodys ? best : target;
    if (target < 0 || !make_room(engine, cells_of(reserved), target, best)) {
        if (!is_nobodys || !make_room(engine, cells_of(reserved), best, best)) {
            return false;
        }
        target = best;
    }
    struct srv_sequence *s = &engine->sequences[target];
    if (!has_sampler(engine, s, job)) {
        return false;
    }
    s->n_reserved = reserved;
    begin_job(engine, s, job, begin_with(engine, target, best, n));
    return true;
}

static int count_running(const struct srv_engine *engine)
{
    int n = 0;
    for (int i = 0; i < engine->n_sequences; i++) {
        n += engine->sequences[i].job != NULL;
    }
    return n;
}

/* The first job of the queue, removed if `take`. Only this thread removes jobs, others append: the
 * first one stays the first. */
static struct srv_job *first_of(struct srv_engine *engine, bool take)
{
    pthread_mutex_lock(&engine->mutex);
    struct srv_job *job = engine->first;
    if (job != NULL && take) {
        engine->first = job->next;
        engine->last = engine->first != NULL ? engine->last : NULL;
        engine->counts.n_waiting--;
        job->next = NULL;
    }
    pthread_mutex_unlock(&engine->mutex);
    return job;
}

void tnd_srv_admit(struct srv_engine *engine)
{
    int n_running = count_running(engine);
    for (;;) {
        struct srv_job *job = first_of(engine, false);
        if (job == NULL || n_running >= engine->options.n_parallel) {
            return;
        }
        if (place(engine, job)) {
            (void)first_of(engine, true);
            n_running++;
        } else if (n_running > 0) {
            return; /* until a running job ends */
        } else {
            (void)first_of(engine, true);
            tnd_srv_job_finish(job, SRV_FAILED, "no memory for the job");
            tnd_srv_job_unref(job);
        }
    }
}
