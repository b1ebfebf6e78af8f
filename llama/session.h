/* SPDX-License-Identifier: MIT
 * A conversation with a model: tokens go in, logits of the next token come out. Owns the KV cache.
 * One thread at a time; several sessions may share a model and a runtime. */
#ifndef TND_LLAMA_SESSION_H
#define TND_LLAMA_SESSION_H

#include "llama/model.h"
#include "tandem/runtime.h"

struct tnd_llama_session;

/** How a session keeps keys and values and computes attention. Zeros are the defaults. */
struct tnd_llama_session_options {
    int64_t context; /* positions of a text; 0, or more than the model was trained for: that many */
    int64_t n_cells; /* tokens that the cache holds, of all sequences; 0: as many as are needed */
    int n_sequences; /* texts at once; 0: 1 */
    enum tandem_type cache_type; /* F32, F16 or Q8_0 */
    bool is_unfused;             /* attention by two products and soft_max; for comparison */
    /* May change the plan of each graph before it is computed; NULL: plans serve as they are. */
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;
};

/** A session. Borrows model and runtime, which outlive it. Errors: ARGUMENT, MEMORY. */
enum tandem_status tnd_llama_session_open(const struct tnd_llama_model *model,
                                          tandem_runtime *runtime,
                                          const struct tnd_llama_session_options *options,
                                          struct tnd_llama_session **out_session,
                                          struct tandem_error *error);
/** The same with defaults but for the context. */
enum tandem_status tnd_llama_session_new(const struct tnd_llama_model *model,
                                         tandem_runtime *runtime, int64_t context,
                                         struct tnd_llama_session **out_session,
                                         struct tandem_error *error);
/** NULL is allowed. */
void tnd_llama_session_free(struct tnd_llama_session *session);

/** Appends n tokens to sequence 0, `batch` at a time (0: all at once, or what the cache of a model
 *  with a window takes). Errors: LIMIT when the context is full, ARGUMENT for a token outside the
 *  vocabulary, CANCELLED, those of tandem_runtime_compute; after an error the position is where the
 *  last good batch ended. Takes no memory beyond that of the largest batch so far. */
enum tandem_status tnd_llama_session_feed(struct tnd_llama_session *session, const int32_t *tokens,
                                          int64_t n, int64_t batch, struct tandem_error *error);

/** Tokens that are appended to one sequence. */
struct tnd_llama_piece {
    int32_t sequence; /* 0 .. n_sequences - 1 */
    const int32_t *tokens;
    int64_t n; /* 1 or more */
};
/** Appends pieces of different sequences as one batch. Errors: as tnd_llama_session_feed. */
enum tandem_status tnd_llama_session_feed_pieces(struct tnd_llama_session *session,
                                                 const struct tnd_llama_piece *pieces,
                                                 int64_t n_pieces, struct tandem_error *error);

/** Logits after the last token, `vocabulary` floats, valid until the next feed; NULL before the
 *  first. The second form is for any sequence. */
const float *tnd_llama_session_logits(const struct tnd_llama_session *session);
const float *tnd_llama_session_logits_of(const struct tnd_llama_session *session, int32_t sequence);

/** Tokens fed so far, and room for tokens in all. */
int64_t tnd_llama_session_position(const struct tnd_llama_session *session);
int64_t tnd_llama_session_position_of(const struct tnd_llama_session *session, int32_t sequence);
int64_t tnd_llama_session_context(const struct tnd_llama_session *session);

/** Forgets the tokens from `position` on (0: all). Returns the position reached: 0 where a sliding
 *  window has lost what the tokens before `position` would have to see. */
int64_t tnd_llama_session_rewind(struct tnd_llama_session *session, int64_t position);
int64_t tnd_llama_session_rewind_of(struct tnd_llama_session *session, int32_t sequence,
                                    int64_t position);

/** Context shift: forgets tokens `keep` .. `keep` + `n` - 1 of a sequence and moves those behind
 *  them forward, by turning their keys. Errors: ARGUMENT, those of tandem_runtime_compute. */
enum tandem_status tnd_llama_session_shift(struct tnd_llama_session *session, int32_t sequence,
                                           int64_t keep, int64_t n, struct tandem_error *error);

/** Asked between nodes of later feeds; true ends the feed with CANCELLED. NULL: nobody is asked. */
void tnd_llama_session_set_cancel(struct tnd_llama_session *session, bool (*cancel)(void *user),
                                  void *user);

/** Told what each stage of later feeds took, as tandem_compute_options.timed. NULL: nobody. */
void tnd_llama_session_set_timed(struct tnd_llama_session *session,
                                 void (*timed)(void *user, const tandem_tensor *node,
                                               enum tandem_stage stage, double us),
                                 void *user);

/** Runs later feeds on another runtime. */
void tnd_llama_session_set_runtime(struct tnd_llama_session *session, tandem_runtime *runtime);

/** Builds and plans, but does not run, the graph of m more tokens. The graph lives until the next
 *  feed or plan, the plan is the caller's. Errors: as tnd_llama_session_feed. */
enum tandem_status tnd_llama_session_plan(struct tnd_llama_session *session, int64_t m,
                                          tandem_graph **out_graph, tandem_plan **out_plan,
                                          struct tandem_error *error);

/** Prints the plan of every later batch; NULL: no more. */
void tnd_llama_session_print_plans(struct tnd_llama_session *session, tandem_write_fn write,
                                   void *user);

/** Bytes of graphs and inputs, the KV cache not counted; and of the KV cache. */
size_t tnd_llama_session_graph_bytes(const struct tnd_llama_session *session);
size_t tnd_llama_session_cache_bytes(const struct tnd_llama_session *session);

#endif
