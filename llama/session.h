/* SPDX-License-Identifier: MIT
 * Inside of a session, for session.c and state.c. */
#ifndef TND_LLAMA_SESSION_H
#define TND_LLAMA_SESSION_H

#include "llama/model.h"

/** One text. */
struct tnd_llama_sequence {
    int64_t n_past;
    float *logits;    /* {vocabulary}; a copy, since the context is reset */
    float *embedding; /* {dim}; NULL: the session keeps none */
    bool has_logits;  /* and an embedding */
};

/** Memory of what describes a batch. */
struct tnd_llama_batch_memory {
    int64_t capacity;
    int32_t *tokens, *positions, *sequences, *outputs;
};

/** What experts are used, llama/expert_use.c; all NULL for models without any. */
struct tnd_llama_expert_counts {
    tandem_tensor **ids;   /* {layers}, of the graph in hand */
    int64_t *hits;         /* {experts, layers} */
    int64_t *expert_bytes; /* {layers}: the weights of one expert */
    uint8_t *is_used;      /* {experts}, while a batch is counted */
    int64_t batches, tokens, bytes_all, bytes_last, bytes_sum;
    int64_t cold_bytes_last, cold_bytes_sum; /* of experts that no device keeps */
};

/** Which experts devices keep, llama/hot_experts.c; all NULL for models without any. */
struct tnd_llama_hot {
    struct tnd_llama_hot_layer *layers; /* {layers} */
    struct tnd_llama_hot_layer *next;   /* {layers}, while they are placed anew */
    uint8_t *now;              /* {experts, layers}: backend that keeps it apart; 0: none */
    bool *whole;               /* {layers}: a device keeps all experts */
    double *recent;            /* {experts, layers}: tokens, older ones count less */
    double *use;               /* {experts, layers}: shares, for placing */
    double recent_tokens;      /* in the unit of `recent` */
    int64_t tokens_since;      /* the last look */
    int64_t period, next_look; /* tokens; period 0: nobody looks */
    bool is_placed;
    struct tandem_place_options options; /* of the last tandem_session_place */
    int64_t device_memory[16];           /* of those */
    int64_t n, bytes;                    /* of all layers */
    int64_t n_looks, n_moves;
};

struct tandem_session {
    const tandem_model *model;
    tandem_runtime *runtime;
    tandem_context *context; /* of the graph in hand: reset for each batch */
    struct tnd_llama_kv_cache cache;
    int64_t n_positions; /* of a text */
    int64_t batch_max;   /* tokens that the cache takes at once */
    int n_sequences;
    bool has_embeddings;
    struct tnd_llama_sequence *sequences;
    struct tnd_llama_batch_memory batch;
    int32_t *deltas;   /* {cells}, of a shift */
    int64_t n_batches; /* computed so far; the cache knows them by their numbers */
    int64_t n_on_host; /* of these, keys and values reached host memory for sure */
    bool must_recover; /* keys and values of the others are lost with a device */
    struct tnd_llama_expert_counts experts;
    struct tnd_llama_hot hot;
    void (*adjust)(void *user, const tandem_graph *graph, tandem_plan *plan);
    void *adjust_user;
    bool (*cancel)(void *user);
    void *cancel_user;
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
    void *timed_user;
    tandem_write_fn print; /* NULL: plans are not printed */
    void *print_user;
};

/** For a model without experts nothing is made. Errors: MEMORY. */
enum tandem_status tnd_llama_experts_init(struct tnd_llama_expert_counts *counts,
                                          const tandem_model *model, struct tandem_error *error);
void tnd_llama_experts_fini(struct tnd_llama_expert_counts *counts);
/** Counts a batch of m tokens that was computed. */
void tnd_llama_experts_count(tandem_session *session, int64_t m);

/** For a model without experts nothing is made. Errors: MEMORY. */
enum tandem_status tnd_llama_hot_init(struct tnd_llama_hot *hot, const tandem_model *model,
                                      struct tandem_error *error);
/** After tnd_llama_hot_drop. */
void tnd_llama_hot_fini(struct tnd_llama_hot *hot);
/** No device keeps experts apart any more. */
void tnd_llama_hot_drop(tandem_session *session);
/** tandem_place_options.gather: fills `next`. `user` is the session. */
const void *tnd_llama_hot_gather(void *user, int weight, const int32_t *experts, int64_t n,
                                 int backend);
/** What was gathered counts, or does not. */
void tnd_llama_hot_take_next(tandem_session *session);
void tnd_llama_hot_drop_next(tandem_session *session);
/** {experts, layers}: share of recent tokens that used each expert; NULL: too few were counted. */
const double *tnd_llama_hot_use(tandem_session *session);
/** Notes that m tokens were counted. */
void tnd_llama_hot_count(struct tnd_llama_hot *hot, int64_t m);
/** Between two batches: places experts anew where it is time and where that pays. */
void tnd_llama_hot_look(tandem_session *session);
/** As tandem_session_place, with options of this library's size; nothing is kept of them. */
enum tandem_status tnd_llama_place(tandem_session *session,
                                   const struct tandem_place_options *wanted,
                                   struct tandem_error *error);

#endif
