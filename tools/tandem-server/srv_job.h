/* SPDX-License-Identifier: MIT
 * A job: a text to be continued, how, and what has come of it so far. A connection makes it and
 * reads its output; the engine's thread computes it. Both hold a reference. */
#ifndef TANDEM_SERVER_SRV_JOB_H
#define TANDEM_SERVER_SRV_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "tandem/llama.h"
#include "tools/tandem-server/srv_text.h"
#include "tools/tandem-server/srv_tools.h"

enum {
    SRV_MAX_STOPS = 16,
    SRV_MAX_STOP_BYTES = 256,
    SRV_MAX_LOGPROBS = 20,
    SRV_MAX_REPEAT = 4096, /* tokens that the penalty concerns */
    SRV_MAX_BIAS = 1024    /* tokens of logit_bias */
};

/* A job is of one of the first four; SRV_RERANK is an embedding whose numbers are scores. */
enum srv_style { SRV_CHAT, SRV_COMPLETION, SRV_NATIVE, SRV_EMBEDDING, SRV_RERANK };

enum srv_finish {
    SRV_RUNNING,
    SRV_ENDED,     /* the model has ended the text */
    SRV_STOPPED,   /* by a stop string */
    SRV_LENGTH,    /* as many tokens as were asked for, or as fit */
    SRV_TIMEOUT,   /* the job took longer than it may */
    SRV_CANCELLED, /* the reader is gone, or the server ends */
    SRV_FAILED,    /* `fault` says why */
    SRV_LOST       /* a rank has failed, and the server ends; `fault` says which */
};

struct srv_bias_row {
    int32_t id;
    float value; /* -infinity: never */
};

/** What is added to logits, srv_bias.h. All zero: nothing. */
struct srv_bias {
    float presence, frequency; /* penalties of tokens that the model has written */
    bool ignores_ends;         /* no token ends the text */
    int n;
    struct srv_bias_row *rows; /* {n}, malloc'ed */
};

/** What the client asked for; fixed before the job is handed to the engine. */
struct srv_params {
    enum srv_style style;
    bool is_stream;
    bool wants_usage; /* a last chunk with the numbers of tokens */
    bool is_base64;   /* embeddings as text */
    bool is_whole;    /* for an encoder: a text is one batch, and shares nothing with others */
    bool is_rerank;   /* numbers are scores */
    int64_t n_best;   /* documents that are told, the best first */
    bool wants_logprobs;
    bool is_response;              /* a chat that is told as /v1/responses does */
    bool takes_reasoning;          /* reasoning is told apart from the answer */
    const struct srv_marks *frame; /* around answers, by the template; NULL: none */
    int n_top;                     /* likeliest tokens told with each token */
    int64_t max_tokens;
    struct tandem_sampler_options sampler;
    struct srv_bias bias;
    tandem_grammar *grammar; /* what the text may be; NULL: anything. Owned */
    char *stops[SRV_MAX_STOPS];
    int n_stops;
    struct srv_tools tools; /* of chats */
};

struct srv_top {
    int32_t id;
    float logprob;
};

/** A token of the output. */
struct srv_token {
    int32_t id;
    float logprob;
    size_t begin, end;                    /* its bytes in the text */
    struct srv_top top[SRV_MAX_LOGPROBS]; /* {n_top}, the likeliest first; unset without */
};

struct srv_times {
    double arrived, began, prompted, ended; /* seconds of the monotonic clock; 0: not yet */
    int64_t n_cached;                       /* tokens of the prompt that were there already */
};

/** Whom the engine tells; called with the job's mutex held. */
struct srv_listener {
    void (*wake)(void *user);    /* there is more output, or an end */
    bool (*is_gone)(void *user); /* nobody reads any more */
    void *user;
};

enum {
    SRV_MAX_TEXTS = 256, /* of a request for embeddings */
    SRV_MAX_CHOICES = 64 /* of a request for texts: prompts times `n` */
};

/** Tokens of a prompt; of embeddings those of some texts, one behind the other. */
struct srv_ids {
    int32_t *ids; /* malloc'ed */
    size_t n;
    int64_t *ends;    /* {n_texts}, malloc'ed; NULL: one text */
    int64_t *seconds; /* {n_texts}, malloc'ed: where the second text of a pair begins; NULL */
    int n_texts;
    const struct srv_marks *thinking; /* within which the prompt ends; NULL: within none */
};

void tnd_srv_ids_free(struct srv_ids *ids);

struct srv_job {
    struct srv_params params;
    struct srv_ids texts;  /* several only of embeddings */
    const int32_t *prompt; /* {n_prompt}, the text in hand */
    int64_t n_prompt;
    int text_index;
    char id[40];
    int64_t created; /* seconds since 1970 */
    double deadline; /* of the monotonic clock */
    atomic_int refs;
    atomic_bool is_cancelled; /* by the reader */
    struct srv_job *next;     /* in the engine's queue */
    /* Of a request with several choices, fixed before the first job is handed to the engine: */
    int index;               /* of the choice */
    bool repeats_prompt;     /* the prompt is that of the choice before */
    struct srv_job *first;   /* of the request; not owned */
    struct srv_job *sibling; /* the next choice, one reference of which is this job's; NULL: none */

    pthread_mutex_t mutex; /* guards what follows */
    struct srv_listener listener;
    struct srv_text text;     /* what the model has written */
    size_t n_ready;           /* bytes of it that no stop string can take back */
    struct srv_token *tokens; /* {n_tokens}; only with log-probabilities or ids wanted */
    size_t n_tokens, token_capacity;
    int64_t n_generated;
    float *embeddings; /* {n_embedding, texts} */
    int64_t n_embedding;
    enum srv_finish finish;
    const char *stopped_by; /* of params.stops */
    char fault[200];
    struct srv_times times;
};

/** A job with one reference, `params` and `texts` taken over; NULL: no memory, they stay the
 *  caller's. */
struct srv_job *tnd_srv_job_new(const struct srv_params *params, const struct srv_ids *texts);
struct srv_job *tnd_srv_job_ref(struct srv_job *job);
/** NULL is allowed. */
void tnd_srv_job_unref(struct srv_job *job);
void tnd_srv_params_free(struct srv_params *params);

/** Sets whom to tell; NULL: nobody from now on. */
void tnd_srv_job_listen(struct srv_job *job, const struct srv_listener *listener);

/** Whether it has ended. */
bool tnd_srv_job_is_done(struct srv_job *job);
/** Cancels a job and the choices behind it. NULL is allowed. */
void tnd_srv_job_cancel(struct srv_job *job);

/** For the engine: more bytes of the text with the token that brought them. False: there was no
 *  memory, and the job has failed. */
bool tnd_srv_job_add(struct srv_job *job, const struct srv_token *token, const char *bytes,
                     size_t n);
/** For the engine: looks for stop strings in what was added last. True: one was found; the text
 *  ends in front of it. */
bool tnd_srv_job_stops(struct srv_job *job);
/** For the engine: goes on to the next text. False: there is none. */
bool tnd_srv_job_next_text(struct srv_job *job);
/** For the engine: tells an end, once. `fault` may be NULL. */
void tnd_srv_job_finish(struct srv_job *job, enum srv_finish finish, const char *fault);
/** For the engine: wakes the reader. */
void tnd_srv_job_tell(struct srv_job *job);
/** Whether nobody reads any more; `looks`: also by asking the listener. */
bool tnd_srv_job_is_gone(struct srv_job *job, bool looks);

/** Seconds of the monotonic clock. */
double tnd_srv_seconds(void);

#endif
