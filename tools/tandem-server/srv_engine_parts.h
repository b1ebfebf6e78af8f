/* SPDX-License-Identifier: MIT
 * Internals of the engine: srv_engine.c (queue, thread), srv_admit.c (assigns cells to jobs),
 * srv_step.c (batches and tokens). */
#ifndef TANDEM_SERVER_SRV_ENGINE_PARTS_H
#define TANDEM_SERVER_SRV_ENGINE_PARTS_H

#include <pthread.h>

#include "tools/tandem-server/srv_engine.h"

/** A sequence of the session: the text of a job, or a cached one. */
struct srv_sequence {
    int32_t *tokens; /* {context}, of the text so far; the first `n` are in the KV cache */
    int64_t n;
    struct srv_job *job;     /* NULL: cached only */
    int64_t n_reserved;      /* cells that the job may need */
    uint64_t used;           /* time of its last use, counted in jobs */
    bool is_prompt;          /* the prompt is incomplete */
    bool wants_check;        /* check whether the reader is gone */
    bool is_in_flight;       /* in a batch in flight: must not be changed */
    int32_t next;            /* the token to append; unset while is_prompt */
    tandem_sampler *sampler; /* created with the first job */
    struct tandem_token_stream stream;
};

/** A batch in flight. */
struct srv_batch {
    struct tandem_batch_entry *entries; /* {n_sequences} */
    int64_t n, n_prompt;
    double began;
};

struct srv_engine {
    struct srv_engine_options options;
    tandem_session *session;
    int n_sequences;
    struct srv_sequence *sequences;
    struct srv_batch batches[TANDEM_BATCHES_IN_FLIGHT]; /* oldest first */
    int n_batches;
    double ended;           /* when the last batch ended */
    float *scratch;         /* {vocabulary}: modified logits */
    uint64_t clock;         /* counts jobs */
    double checked;         /* when readers were last checked */
    struct srv_counts work; /* counted by this thread */
    bool is_lost;           /* a rank has failed */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t wake;
    struct srv_job *first, *last; /* the queue */
    bool is_closing;
    double close_at;          /* when jobs are cancelled */
    struct srv_counts counts; /* as of the last step, plus the queue's */
    struct srv_slot *slots;   /* {n_sequences}, as of the last step */
};

/** Assigns sequences to jobs of the queue, in order, as long as there are free ones. */
void tnd_srv_admit(struct srv_engine *engine);
/** Begins the next text of a job in the sequence of its previous one. */
void tnd_srv_begin_text(struct srv_engine *engine, struct srv_sequence *sequence);
/** Ends a job; its text stays in the cache. */
void tnd_srv_end(struct srv_engine *engine, struct srv_sequence *sequence, enum srv_finish finish,
                 const char *fault);
/** Begins as many batches as should be in flight, ends the oldest one and handles its tokens.
 * False: no text is running. */
bool tnd_srv_run_batch(struct srv_engine *engine);

#endif
