/* SPDX-License-Identifier: MIT
 * Inside of a session, for session.c and state.c. */
#ifndef TND_LLAMA_SESSION_H
#define TND_LLAMA_SESSION_H

#include "llama/model.h"

/** One text. */
struct tnd_llama_sequence {
    int64_t n_past;
    float *logits; /* {vocabulary}; a copy, since the context is reset */
    bool has_logits;
};

/** Memory of what describes a batch. */
struct tnd_llama_batch_memory {
    int64_t capacity;
    int32_t *tokens, *positions, *sequences, *outputs;
};

struct tandem_session {
    const tandem_model *model;
    tandem_runtime *runtime;
    tandem_context *context; /* of the graph in hand: reset for each batch */
    struct tnd_llama_kv_cache cache;
    int64_t n_positions; /* of a text */
    int64_t batch_max;   /* tokens that the cache takes at once */
    int n_sequences;
    struct tnd_llama_sequence *sequences;
    struct tnd_llama_batch_memory batch;
    int32_t *deltas; /* {cells}, of a shift */
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;
    bool (*cancel)(void *user);
    void *cancel_user;
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
    void *timed_user;
    tandem_write_fn print; /* NULL: plans are not printed */
    void *print_user;
};

#endif
