/* SPDX-License-Identifier: MIT
 * A job: a text to be continued, its parameters, and its output so far. A connection creates it and
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
    SRV_MAX_REPEAT = 4096, /* tokens that the repeat penalty covers */
    SRV_MAX_BIAS = 1024    /* entries of logit_bias */
};

/* Jobs have one of the first four; SRV_RERANK is an embedding whose values are scores. */
enum srv_style { SRV_CHAT, SRV_COMPLETION, SRV_NATIVE, SRV_EMBEDDING, SRV_RERANK };

enum srv_finish {
    SRV_RUNNING,
    SRV_ENDED,     /* the model ended the text */
    SRV_STOPPED,   /* at a stop string */
    SRV_LENGTH,    /* reached the requested number of tokens, or the context's limit */
    SRV_TIMEOUT,   /* the time limit is exceeded */
    SRV_CANCELLED, /* the reader has disconnected, or the server is stopping */
    SRV_FAILED,    /* `fault` has the reason */
    SRV_LOST       /* a rank has failed and the server is stopping; `fault` has details */
};

struct srv_bias_row {
    int32_t id;
    float value; /* -infinity: never */
};

/** Additions to logits, see srv_bias.h. All zero: none. */
struct srv_bias {
    float presence, frequency; /* penalties of generated tokens */
    bool ignores_ends;         /* no token ends the text */
    int n;
    struct srv_bias_row *rows; /* {n}, malloc'ed */
};

/** Parameters of the request; constant once the job is submitted to the engine. */
struct srv_params {
    enum srv_style style;
    bool is_stream;
    bool wants_usage; /* a last chunk with token counts */
    bool is_base64;   /* embeddings as base64 text */
    bool is_whole;    /* for an encoder: a text is one batch, and nothing of it is cached */
    bool is_rerank;   /* values are scores */
    int64_t n_best;   /* number of documents returned, best first */
    bool wants_logprobs;
    bool is_response;              /* a chat in the format of /v1/responses */
    bool takes_reasoning;          /* reasoning is returned apart from the answer */
    const struct srv_marks *frame; /* marks of the template around answers; NULL: none */
    int n_top;                     /* most likely tokens returned with each token */
    int64_t max_tokens;
    struct tandem_sampler_options sampler;
    struct srv_bias bias;
    tandem_grammar *grammar; /* restricts the text; NULL: none. Owned */
    char *stops[SRV_MAX_STOPS];
    int n_stops;
    struct srv_tools tools; /* for chats */
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
    struct srv_top top[SRV_MAX_LOGPROBS]; /* {n_top}, most likely first; else unset */
};

struct srv_times {
    double arrived, began, prompted, ended; /* seconds of the monotonic clock; 0: not yet */
    int64_t n_cached;                       /* tokens of the prompt that were cached */
};

/** Notified by the engine; called with the job's mutex held. */
struct srv_listener {
    void (*wake)(void *user);    /* there is more output, or the end */
    bool (*is_gone)(void *user); /* the reader has disconnected */
    void *user;
};

enum {
    SRV_MAX_TEXTS = 256, /* in a request for embeddings */
    SRV_MAX_CHOICES = 64 /* in a request for texts: prompts times `n` */
};

/** Tokens of a prompt; for embeddings, of several texts concatenated. */
struct srv_ids {
    int32_t *ids; /* malloc'ed */
    size_t n;
    int64_t *ends;    /* {n_texts}, malloc'ed; NULL: one text */
    int64_t *seconds; /* {n_texts}, malloc'ed: where the second text of a pair begins; NULL */
    int n_texts;
    const struct srv_marks *thinking; /* marks within which the prompt ends; NULL: none */
};

void tnd_srv_ids_free(struct srv_ids *ids);

struct srv_job {
    struct srv_params params;
    struct srv_ids texts;  /* several for embeddings only */
    const int32_t *prompt; /* {n_prompt}, the current text */
    int64_t n_prompt;
    int text_index;
    char id[40];
    int64_t created; /* seconds since 1970 */
    double deadline; /* monotonic clock */
    atomic_int refs;
    atomic_bool is_cancelled; /* set by the reader */
    struct srv_job *next;     /* in the engine's queue */
    /* For a request with several choices; constant once the first job is submitted to the
     * engine: */
    int index;               /* number of the choice */
    bool repeats_prompt;     /* has the same prompt as the previous choice */
    struct srv_job *first;   /* first job of the request; not owned */
    struct srv_job *sibling; /* the next choice; this job holds a reference to it; NULL: none */

    pthread_mutex_t mutex; /* guards what follows */
    struct srv_listener listener;
    struct srv_text text;     /* the model's output */
    size_t n_ready;           /* bytes of it that no stop string can remove */
    struct srv_token *tokens; /* {n_tokens}; only if log-probabilities or ids are wanted */
    size_t n_tokens, token_capacity;
    int64_t n_generated;
    float *embeddings; /* {n_embedding, texts} */
    int64_t n_embedding;
    enum srv_finish finish;
    const char *stopped_by; /* one of params.stops */
    char fault[200];
    struct srv_times times;
};

/** Creates a job with one reference that takes ownership of `params` and `texts`; NULL when out of
 * memory: then the caller keeps them. */
struct srv_job *tnd_srv_job_new(const struct srv_params *params, const struct srv_ids *texts);
struct srv_job *tnd_srv_job_ref(struct srv_job *job);
/** NULL is allowed. */
void tnd_srv_job_unref(struct srv_job *job);
void tnd_srv_params_free(struct srv_params *params);

/** Sets the listener; NULL: none. */
void tnd_srv_job_listen(struct srv_job *job, const struct srv_listener *listener);

/** Whether the job has ended. */
bool tnd_srv_job_is_done(struct srv_job *job);
/** Cancels a job and its later choices. NULL is allowed. */
void tnd_srv_job_cancel(struct srv_job *job);

/** For the engine: appends text with the token that produced it. False: out of memory, the job has
 * failed. */
bool tnd_srv_job_add(struct srv_job *job, const struct srv_token *token, const char *bytes,
                     size_t n);
/** For the engine: searches the text added last for stop strings. True: found; the text then ends
 * before it. */
bool tnd_srv_job_stops(struct srv_job *job);
/** For the engine: moves to the next text. False: there is none. */
bool tnd_srv_job_next_text(struct srv_job *job);
/** For the engine: ends the job, once. `fault` may be NULL. */
void tnd_srv_job_finish(struct srv_job *job, enum srv_finish finish, const char *fault);
/** For the engine: wakes the reader. */
void tnd_srv_job_tell(struct srv_job *job);
/** Whether the reader has disconnected; `looks`: also asks the listener. */
bool tnd_srv_job_is_gone(struct srv_job *job, bool looks);

/** Seconds of the monotonic clock. */
double tnd_srv_seconds(void);

#endif
