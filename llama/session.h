/* SPDX-License-Identifier: MIT
 * A conversation with a model: tokens go in, logits of the next token come out. Owns the KV cache.
 * One thread at a time; several sessions may share a model and a runtime. */
#ifndef TND_LLAMA_SESSION_H
#define TND_LLAMA_SESSION_H

#include "llama/model.h"
#include "tandem/runtime.h"

struct tnd_llama_session;

/** A session with room for `context` tokens (0, or more than the model was trained for: as many as
 *  that). Borrows model and runtime. Errors: MEMORY. */
enum tandem_status tnd_llama_session_new(const struct tnd_llama_model *model,
                                         tandem_runtime *runtime, int64_t context,
                                         struct tnd_llama_session **out_session,
                                         struct tandem_error *error);
/** NULL is allowed. */
void tnd_llama_session_free(struct tnd_llama_session *session);

/** Appends n tokens, `batch` at a time (0: all at once). Errors: LIMIT when the context is full,
 *  ARGUMENT for a token outside the vocabulary, those of tandem_runtime_compute; after an error the
 *  position is where the last good batch ended. Takes no memory beyond that of the largest batch so
 *  far. */
enum tandem_status tnd_llama_session_feed(struct tnd_llama_session *session, const int32_t *tokens,
                                          int64_t n, int64_t batch, struct tandem_error *error);

/** Logits after the last token, `vocabulary` floats, valid until the next feed; NULL before the
 *  first. */
const float *tnd_llama_session_logits(const struct tnd_llama_session *session);

/** Tokens fed so far, and room for tokens in all. */
int64_t tnd_llama_session_position(const struct tnd_llama_session *session);
int64_t tnd_llama_session_context(const struct tnd_llama_session *session);

/** Forgets the tokens from `position` on (0: all). */
void tnd_llama_session_rewind(struct tnd_llama_session *session, int64_t position);

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

/** Bytes of graphs and inputs, the KV cache not counted. */
size_t tnd_llama_session_graph_bytes(const struct tnd_llama_session *session);

#endif
