/* SPDX-License-Identifier: MIT
 * Inside of the engine: srv_engine.c (queue, thread), srv_admit.c (which job gets which cells),
 * srv_step.c (batches and tokens). */
#ifndef TANDEM_SERVER_SRV_ENGINE_PARTS_H
#define TANDEM_SERVER_SRV_ENGINE_PARTS_H

#include <pthread.h>

#include "tools/tandem-server/srv_engine.h"

/** A sequence of the session: the text of a job, or what one has left behind. */
struct srv_sequence {
    int32_t *tokens; /* {context}, of the text so far; the first `n` are in the KV cache */
    int64_t n;
    struct srv_job *job;     /* NULL: nobody's */
    int64_t n_reserved;      /* cells that the job may come to need */
    uint64_t used;           /* when it was last used, in jobs */
    bool is_prompt;          /* the prompt is not done */
    bool wants_check;        /* whether the reader is gone */
    bool is_in_flight;       /* in a batch that was begun: nothing else happens to it */
    int32_t next;            /* the token to be appended; not while is_prompt */
    tandem_sampler *sampler; /* made with the first job */
    struct tandem_token_stream stream;
};

/** A batch that was begun. */
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
    struct srv_batch batches[TANDEM_BATCHES_IN_FLIGHT]; /* the first one is the oldest */
    int n_batches;
    double ended;           /* when the last one did */
    float *scratch;         /* {vocabulary}: logits with what a request adds to them */
    uint64_t clock;         /* counts jobs */
    double checked;         /* when readers were last asked for */
    struct srv_counts work; /* what this thread counts */
    bool is_lost;           /* a rank has failed */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t wake;
    struct srv_job *first, *last; /* the queue */
    bool is_closing;
    double close_at;          /* when jobs are cancelled */
    struct srv_counts counts; /* as of the last step, and the queue's */
    struct srv_slot *slots;   /* {n_sequences}, as of the last step */
};

/** Gives the first jobs of the queue a sequence as long as there are any. */
void tnd_srv_admit(struct srv_engine *engine);
/** Begins the next text of a job in the place of the one before. */
void tnd_srv_begin_text(struct srv_engine *engine, struct srv_sequence *sequence);
/** Ends a job; what it computed stays in the cache. */
void tnd_srv_end(struct srv_engine *engine, struct srv_sequence *sequence, enum srv_finish finish,
                 const char *fault);
/** Begins as many batches as should be in flight, ends the oldest one and hands out its tokens.
 *  False: no text is running. */
bool tnd_srv_run_batch(struct srv_engine *engine);

#endif
