/* SPDX-License-Identifier: MIT
 * The engine: one thread owns the session. Jobs wait in a queue and join between steps; a step is
 * one batch with the next token of every text and a chunk of the unfinished prompts. Finished texts
 * stay in the KV cache as long as there is room, so that prompts with a common prefix can reuse
 * them. */
#ifndef TANDEM_SERVER_SRV_ENGINE_H
#define TANDEM_SERVER_SRV_ENGINE_H

#include "tools/report/ranks_cli.h"
#include "tools/tandem-server/srv_job.h"
#include "tools/tandem-server/srv_pace.h"
#include "tools/tandem-server/srv_vocabulary.h"

enum {
    SRV_MAX_PARALLEL = 64,
    SRV_BLOCK = 64 /* cells are assigned to a text in blocks of this size */
};

struct srv_engine_options {
    const tandem_model *model;
    tandem_runtime *runtime;
    const tandem_tokenizer *tokenizer;
    const struct srv_vocabulary *vocabulary;
    int64_t context;                       /* maximum tokens of a text */
    int64_t n_cells;                       /* of all texts */
    int n_parallel;                        /* texts running at once */
    int max_queue;                         /* maximum waiting jobs */
    double delay_ms;                       /* how long prompts may delay running texts */
    struct tandem_session_options session; /* cache and pooling; the engine sets the rest */
    bool has_embeddings;
    /* Opens the session of several ranks; NULL: tandem_session_new */
    enum tandem_status (*open_session)(const tandem_model *model, tandem_runtime *runtime,
                                       struct tandem_session_options *options,
                                       const struct tnd_ranks_options *ranks,
                                       tandem_session **out_session, struct tandem_error *error);
    struct tnd_ranks_options ranks;
};

enum srv_submit { SRV_TAKEN, SRV_QUEUE_FULL, SRV_CLOSING };

/** Counters since the start, and the current state. */
struct srv_counts {
    int64_t prompt_tokens, cached_tokens, generated_tokens;
    int64_t drafted_tokens, accepted_tokens; /* accepted: drafted ones that were correct */
    int64_t n_steps, n_jobs, n_refused, n_failed;
    double prompt_seconds, generate_seconds; /* in steps with and without prompts */
    double busy_seconds;
    int n_running, n_waiting;
    int64_t cells_used, n_cells;
};

/** A text in the KV cache, for /slots. */
struct srv_slot {
    bool is_running;
    int64_t n_tokens;    /* in the cache */
    int64_t n_prompt;    /* of the job */
    int64_t n_generated; /* by the job */
    char id[40];         /* of the job; "" */
};

struct srv_engine;

/** Errors: MEMORY, those of tandem_session_new. */
enum tandem_status tnd_srv_engine_new(const struct srv_engine_options *options,
                                      struct srv_engine **out_engine, struct tandem_error *error);
/** Whether a rank has failed, so that nothing can be computed any more. The thread must have
 * ended. */
bool tnd_srv_engine_is_lost(const struct srv_engine *engine);
/** The thread must have ended. NULL is allowed. */
void tnd_srv_engine_free(struct srv_engine *engine);
/** The engine's session, for use before the thread starts. */
tandem_session *tnd_srv_engine_session(const struct srv_engine *engine);
/** Number of sequences: texts running at once, and cached ones. */
int tnd_srv_engine_sequences(const struct srv_engine *engine);
/** Starts the thread. Errors: THREAD. */
enum tandem_status tnd_srv_engine_start(struct srv_engine *engine, struct tandem_error *error);
/** Refuses new jobs, finishes running ones within `seconds`, cancels the rest, and joins the
 * thread. Without a thread: cancels all. */
void tnd_srv_engine_stop(struct srv_engine *engine, double seconds);

/** Submits a job; the engine takes its own reference. Any thread. */
enum srv_submit tnd_srv_engine_submit(struct srv_engine *engine, struct srv_job *job);
/** Whether jobs are still accepted. Any thread. */
bool tnd_srv_engine_is_open(struct srv_engine *engine);
/** Reads the counters. Any thread. */
void tnd_srv_engine_count(struct srv_engine *engine, struct srv_counts *out_counts);
/** Writes at most `capacity` slots; returns how many there are. Any thread. */
int tnd_srv_engine_slots(struct srv_engine *engine, struct srv_slot *out_slots, int capacity);
int64_t tnd_srv_engine_context(const struct srv_engine *engine);

/** Runs one step on the calling thread, if no thread was started. False: there was nothing to
 * do. */
bool tnd_srv_engine_step(struct srv_engine *engine);

#endif
