/* SPDX-License-Identifier: MIT
 * A llama's weights, and its forward pass as a graph. Read tnd_llama_forward in forward.c first. */
#ifndef TND_LLAMA_MODEL_H
#define TND_LLAMA_MODEL_H

#include <stdatomic.h>

#include "llama/kv_cache.h"
#include "tandem/graph.h"
#include "tandem/llama.h"

#define TND_LLAMA_MAX_ENDS   64
#define TND_LLAMA_FAR        1e30f /* above any score: masks experts of other groups */
#define TND_LLAMA_CLAMPED_AT 7.0f  /* TANDEM_ACTIVATION_CLAMPED */

/** Weights of one layer. W is N x K: ne = {K, N}. Only pointers (place_session.c iterates over
 * them); NULL: the model has none. */
struct tnd_llama_layer {
    tandem_tensor *attn_norm;   /* {dim}; NULL: attention reads x as it is */
    tandem_tensor *attn_norm_b; /* {dim} */
    tandem_tensor *attn_norm_2; /* {dim}, of attention, if attn_norm is of the other block */
    tandem_tensor *attn_norm_2_b;
    tandem_tensor *wqkv;           /* {dim, q_dim + 2 kv_dim}, in place of wq, wk and wv */
    tandem_tensor *bqkv;           /* {q_dim + 2 kv_dim} */
    tandem_tensor *wq;             /* {dim, q_dim} */
    tandem_tensor *wk;             /* {dim, kv_dim} */
    tandem_tensor *wv;             /* {dim, kv_dim} */
    tandem_tensor *wo;             /* {q_dim, dim} */
    tandem_tensor *bq;             /* {q_dim}; NULL: none */
    tandem_tensor *bk;             /* {kv_dim} */
    tandem_tensor *bv;             /* {kv_dim} */
    tandem_tensor *bo;             /* {dim} */
    tandem_tensor *q_a;            /* {dim, q_latent}, with latent attention in place of wq */
    tandem_tensor *q_a_norm;       /* {q_latent} */
    tandem_tensor *q_b;            /* {q_latent, heads * own key}; NULL: wq has as many rows */
    tandem_tensor *kv_a;           /* {dim, kv_latent + n_rot}; NULL: attention is not latent */
    tandem_tensor *kv_a_norm;      /* {kv_latent} */
    tandem_tensor *k_b;            /* {own key - n_rot, kv_latent, heads} */
    tandem_tensor *v_b;            /* {kv_latent, value_size, heads} */
    tandem_tensor *sinks;          /* {heads} */
    tandem_tensor *attn_post_norm; /* {dim}, of attention's result; of x if ffn_norm is NULL */
    tandem_tensor *attn_sum_norm;  /* {dim}, of x plus attention's result */
    tandem_tensor *attn_sum_norm_b;
    tandem_tensor *ffn_norm;       /* {dim} */
    tandem_tensor *ffn_norm_b;     /* {dim} */
    tandem_tensor *ffn_post_norm;  /* {dim} */
    tandem_tensor *layer_sum_norm; /* {dim}, of the layer's result */
    tandem_tensor *layer_sum_norm_b;
    tandem_tensor *w1;          /* {dim, hidden}, the gate; NULL: it is in w3, or there is none */
    tandem_tensor *w2;          /* {hidden, dim}, down */
    tandem_tensor *w3;          /* {dim, hidden}, up; {dim, 2 hidden}: the gate, then up */
    tandem_tensor *b1;          /* {hidden}; NULL: none */
    tandem_tensor *b2;          /* {dim} */
    tandem_tensor *b3;          /* {hidden} */
    tandem_tensor *attn_q_norm; /* {head_size}, {head_size, heads} or {q_dim} */
    tandem_tensor *attn_k_norm; /* {head_size} */
    tandem_tensor *router;      /* {dim, experts}; NULL: w1 to w3 instead of experts */
    tandem_tensor *router_b;    /* {experts} */
    tandem_tensor *choice_b;    /* {experts}, added to scores only for choosing */
    tandem_tensor *b1_exps;     /* {expert_hidden, experts} */
    tandem_tensor *b2_exps;     /* {dim, experts} */
    tandem_tensor *b3_exps;     /* {expert_hidden, experts} */
    tandem_tensor *gate_exps;   /* {dim, expert_hidden, experts} */
    tandem_tensor *down_exps;   /* {expert_hidden, dim, experts} */
    tandem_tensor *up_exps;     /* {dim, expert_hidden, experts} */
    tandem_tensor *shared_gate; /* {dim}: gate of the shared expert; NULL */
    tandem_tensor *gate_shexp;  /* {dim, shared_hidden} */
    tandem_tensor *down_shexp;  /* {shared_hidden, dim} */
    tandem_tensor *up_shexp;    /* {dim, shared_hidden} */
};

struct tandem_model {
    struct tandem_hparams hparams;
    const tandem_source *source;    /* of the weights */
    tandem_source *own_source;      /* `source` if the model has opened it itself, else NULL */
    tandem_context *context;        /* owns the tensors, not their data */
    tandem_tensor *token_embedding; /* {dim, vocabulary} */
    tandem_tensor *positions;       /* {dim, context}, learned ones; NULL: rope */
    tandem_tensor *token_types;     /* {dim, token_types}, of encoders; NULL */
    tandem_tensor *embedding_norm;  /* {dim}, before the first layer; NULL: none */
    tandem_tensor *embedding_norm_b;
    tandem_tensor *output_norm;   /* {dim}; NULL: none */
    tandem_tensor *output_norm_b; /* {dim}; NULL: none */
    tandem_tensor *output_b;      /* {vocabulary}; NULL: none */
    tandem_tensor *numbers;       /* {TND_LLAMA_NUMBERS}: scalar constants; NULL: none needed */
    tandem_tensor *output;        /* {dim, vocabulary}; may be the token embedding itself */
    tandem_tensor *rank;          /* {dim, dim}, of a reranker; NULL */
    tandem_tensor *rank_b;        /* {dim} */
    tandem_tensor *rank_norm;     /* {dim}, after gelu; NULL: tanh and no norm */
    tandem_tensor *rank_output;   /* {dim, labels} */
    tandem_tensor *rank_output_b; /* {labels} */
    tandem_tensor *rope_factors;  /* {n_rot / 2}, divisors of rope's angles; NULL: none */
    tandem_tensor *rope_long;     /* {n_rot / 2}, those of long sessions (LongRoPE); NULL: none */
    tandem_tensor *rope_gain;     /* {head_size}: factors of a partly rotated query; NULL */
    tandem_tensor *ones;          /* {experts_used}, to sum weights by; NULL */
    tandem_tensor *group_ones;    /* {2 or the groups used}, likewise for groups; NULL */
    tandem_tensor *group_rows;    /* {groups, groups}, TND_LLAMA_FAR on the diagonal */
    struct tnd_llama_layer *layers;
    /* Input weights of a layer that predicts ahead (draft_heads.h): {2 dim, dim}, {dim}, {dim};
     * NULL: x is the embedding alone. */
    tandem_tensor *eh_proj, *embedding_head_norm, *hidden_head_norm;
    struct tandem_model *nextn; /* the first such layer as a model of its own, which borrows this
                                   one's tensors; NULL: there is none */
    int32_t ends[TND_LLAMA_MAX_ENDS]; /* tokens that end a text, as the source says */
    int n_ends;
    tandem_tensor *own_experts; /* I32 {1, experts}: index of each expert on this rank, or -1; NULL:
                                 * indices are the same */
    struct tnd_llama_shard
        *shard; /* the part of the model that this rank has (shard.h); `hparams` has its numbers of
                 * heads and rows; NULL: all of it */
    atomic_uint_least64_t *identity; /* tandem_source_identity; 0: not computed yet */
};

/** Indices into `numbers`. */
enum tnd_llama_number {
    TND_LLAMA_ONE,
    TND_LLAMA_FAR_OFF, /* TND_LLAMA_FAR */
    TND_LLAMA_NUMBERS
};

/** Whether a layer has a sliding window; whether it applies rope. */
bool tnd_llama_has_window(const struct tandem_hparams *h, int64_t layer);
bool tnd_llama_has_rope(const struct tandem_hparams *h, int64_t layer);

/** Experts of a layer that a device keeps separately (hot_experts.c). */
struct tnd_llama_hot_layer {
    tandem_context *context;  /* owns the tensors; NULL: the layer has none */
    tandem_tensor *gate_exps; /* {dim, expert_hidden, n} */
    tandem_tensor *up_exps;   /* {dim, expert_hidden, n} */
    tandem_tensor *down_exps; /* {expert_hidden, dim, n} */
    tandem_tensor *to_hot;    /* I32 {1, experts}: an expert's index among the n; -1: it is cold */
    tandem_tensor *to_cold;   /* I32 {1, experts}: an expert's index; -1: it is hot */
    int64_t n, bytes;
    uint8_t backend;
};

enum { TND_LLAMA_MICRO_BATCHES = 8 /* at most */ };

/** How a batch is cut into micro-batches, which pass through the places of the layers in a
 * pipeline: while one is in a place, the next one is in the place before. */
struct tnd_llama_split {
    int n;                                      /* micro-batches; 1: the batch is whole */
    int64_t begin[TND_LLAMA_MICRO_BATCHES + 1]; /* first token of each, and the batch's end */
    const int32_t *stages;                      /* {layers}: ascending from 0 */
    int n_stages;
};

/** Layers by place: adjacent layers in one place form a stage; so does a layer that lies in two. */
struct tnd_llama_stages {
    int32_t *of_layer; /* {layers}, the caller's */
    int n_stages;
    int n_places; /* 0: the layers were not placed */
};

/** Tokens that run together. Cells must have been taken (tnd_llama_kv_cache_take). */
struct tnd_llama_batch {
    int64_t m;
    const int32_t *tokens;    /* {m} */
    const int32_t *positions; /* {m}, of each token in its sequence */
    const int32_t *sequences; /* {m} */
    const int32_t *types;     /* {m}: 1 in the second of two texts; NULL: all 0 */
    const int32_t *outputs;   /* {n_outputs}: indices of the tokens whose logits are wanted */
    int64_t n_outputs;
    tandem_tensor **expert_ids; /* {layers, micro-batches}, output: I32 {used, m} of each layer with
                                 * experts; NULL: not wanted */
    bool wants_embeddings;
    bool wants_hidden;   /* wants the last states of all tokens, normed */
    const float *hidden; /* {dim, m}: such states as input of a layer that predicts ahead; NULL:
                          * zeros */
    enum tandem_pooling pooling;                   /* of encoders */
    bool is_on_cpu;                                /* no devices take part */
    const struct tnd_llama_hot_layer *hot;         /* {layers}; NULL: none are separate */
    const struct tnd_llama_split *split;           /* NULL: the batch is whole */
    const struct tandem_sample_settings *settings; /* {n_outputs}: for choices; NULL: logits */
    tandem_tensor *sample_mask;                    /* of tandem_sample */
    int sample_steps;
    struct tnd_llama_best *best; /* choices among ranks; NULL: wants logits */
    bool is_begun;               /* by layers on rank 0: to be followed by tnd_llama_forward_end */
};

/** A forward pass with its inputs filled in. Each micro-batch has its own results. */
struct tnd_llama_forward {
    tandem_graph *graph;
    int n_parts; /* micro-batches; 1: the batch is whole */
    int64_t n_outputs[TND_LLAMA_MICRO_BATCHES];
    tandem_tensor *logits[TND_LLAMA_MICRO_BATCHES];     /* {vocabulary, outputs}; NULL: none */
    tandem_tensor *embeddings[TND_LLAMA_MICRO_BATCHES]; /* {dim or labels, outputs}; NULL: none */
    tandem_tensor *choices; /* I32 {4, outputs}, of tandem_sample; NULL: see logits */
    tandem_tensor *hidden[TND_LLAMA_MICRO_BATCHES]; /* {dim, m}; NULL: none */
};

/** Whether a token ends a text: by the source, or else by the tokenizer's end token, which may be
 * a guess by name. */
bool tnd_llama_is_end(const tandem_model *model, const tandem_tokenizer *tokenizer, int32_t token);

/** tandem_source_identity of the model's source, computed once. Any thread. Errors: those of
 * tandem_source_identity. */
enum tandem_status tnd_llama_identity(const tandem_model *model, uint64_t *out_identity,
                                      struct tandem_error *error);

/** Builds the graph that runs a batch through the model and writes its keys and values into the
 * cache. Without outputs it computes only what the cache needs. Errors: those of the builders and
 * of tandem_graph_finish. */
enum tandem_status tnd_llama_forward(const tandem_model *model,
                                     const struct tnd_llama_kv_cache *cache,
                                     const struct tnd_llama_batch *batch, tandem_context *context,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error);

/** By layers on rank 0: builds the second graph of a batch that `is_begun`, which receives the
 * states of the last layer from their rank and classifies them. `io_forward`: of the first graph;
 * n_parts and n_outputs are read. Errors: as tnd_llama_forward. */
enum tandem_status tnd_llama_forward_end(const tandem_model *model, bool wants_embeddings,
                                         tandem_context *context,
                                         struct tnd_llama_forward *io_forward,
                                         struct tandem_error *error);

/** Builds the graph that rotates the keys of cells by deltas[cell] positions, unless that is 0.
 * `out_graph` is NULL if there are no such cells. Errors: as tnd_llama_forward. */
enum tandem_status tnd_llama_shift(const tandem_model *model,
                                   const struct tnd_llama_kv_cache *cache, const int32_t *deltas,
                                   tandem_context *context, tandem_graph **out_graph,
                                   struct tandem_error *error);

/** Fills in stages and places. Returns a hash of them; 0: all layers are in one place, or they
 * were not placed. `place_of` returns the name of the place of a weight; NULL: it has none. */
uint64_t tnd_llama_find_stages(const tandem_model *model,
                               const char *(*place_of)(void *user, const void *data), void *user,
                               struct tnd_llama_stages *out);
/** Cuts a batch into at most n micro-batches, between two texts if that is near. */
void tnd_llama_cut(const struct tnd_llama_batch *batch, const struct tnd_llama_stages *stages,
                   int n, struct tnd_llama_split *out);
/** Callback that predicts a batch in n micro-batches. */
typedef enum tandem_status (*tnd_llama_predict_fn)(void *user, int n, struct tandem_prediction *out,
                                                   struct tandem_error *error);
/** The number of micro-batches with the least predicted time for m tokens, if its gain over the
 * whole batch is significant; else 1. Errors: those of `predict`. */
enum tandem_status tnd_llama_choose_cut(int64_t m, tnd_llama_predict_fn predict, void *user,
                                        int *out_n, struct tandem_error *error);
/** Adds a number to a hash. */
uint64_t tnd_llama_mix(uint64_t hash, uint64_t value);

#endif
