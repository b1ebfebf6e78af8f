/* SPDX-License-Identifier: MIT
 * A llama's weights, and its forward pass as a graph. Read tnd_llama_forward in forward.c first. */
#ifndef TND_LLAMA_MODEL_H
#define TND_LLAMA_MODEL_H

#include "llama/kv_cache.h"
#include "tandem/graph.h"
#include "tandem/llama.h"

#define TND_LLAMA_MAX_ENDS 64

/** Weights of one layer. W is N x K: ne = {K, N}. */
struct tnd_llama_layer {
    tandem_tensor *attn_norm;   /* {dim} */
    tandem_tensor *wq;          /* {dim, q_dim} */
    tandem_tensor *wk;          /* {dim, kv_dim} */
    tandem_tensor *wv;          /* {dim, kv_dim} */
    tandem_tensor *wo;          /* {q_dim, dim} */
    tandem_tensor *bq;          /* {q_dim}; NULL: none */
    tandem_tensor *bk;          /* {kv_dim} */
    tandem_tensor *bv;          /* {kv_dim} */
    tandem_tensor *bo;          /* {dim} */
    tandem_tensor *ffn_norm;    /* {dim} */
    tandem_tensor *w1;          /* {dim, hidden}, the gate */
    tandem_tensor *w2;          /* {hidden, dim}, down */
    tandem_tensor *w3;          /* {dim, hidden}, up */
    tandem_tensor *b1;          /* {hidden}; NULL: none */
    tandem_tensor *b2;          /* {dim} */
    tandem_tensor *b3;          /* {hidden} */
    tandem_tensor *attn_q_norm; /* {head_size}; NULL: none */
    tandem_tensor *attn_k_norm; /* {head_size} */
    tandem_tensor *router;      /* {dim, experts}; NULL: no mixture of experts, and w1 to w3 are */
    tandem_tensor *gate_exps;   /* {dim, expert_hidden, experts} */
    tandem_tensor *down_exps;   /* {expert_hidden, dim, experts} */
    tandem_tensor *up_exps;     /* {dim, expert_hidden, experts} */
    tandem_tensor *shared_gate; /* {dim}: how much the expert counts that every token uses; NULL */
    tandem_tensor *gate_shexp;  /* {dim, shared_hidden} */
    tandem_tensor *down_shexp;  /* {shared_hidden, dim} */
    tandem_tensor *up_shexp;    /* {dim, shared_hidden} */
};

struct tandem_model {
    struct tandem_hparams hparams;
    const tandem_source *source;    /* of the weights */
    tandem_source *own_source;      /* the same where the model has opened it, else NULL */
    tandem_context *context;        /* owns the tensors, not their data */
    tandem_tensor *token_embedding; /* {dim, vocabulary} */
    tandem_tensor *output_norm;     /* {dim} */
    tandem_tensor *output;          /* {dim, vocabulary}; may be the token embedding itself */
    tandem_tensor *rope_factors;    /* {n_rot / 2}, divisors of rope's angles; NULL: none */
    struct tnd_llama_layer *layers;
    int32_t ends[TND_LLAMA_MAX_ENDS]; /* tokens that end a text, as the source says */
    int n_ends;
};

/** Experts of a layer that a device keeps apart from the others (hot_experts.c). */
struct tnd_llama_hot_layer {
    tandem_context *context;  /* owns the tensors; NULL: the layer has none */
    tandem_tensor *gate_exps; /* {dim, expert_hidden, n} */
    tandem_tensor *up_exps;   /* {dim, expert_hidden, n} */
    tandem_tensor *down_exps; /* {expert_hidden, dim, n} */
    tandem_tensor *to_hot;    /* I32 {1, experts}: an expert's number among the n; -1: it is cold */
    tandem_tensor *to_cold;   /* I32 {1, experts}: an expert's number; -1: it is hot */
    int64_t n, bytes;
    uint8_t backend;
};

/** Tokens that run together. Cells for them have been taken (tnd_llama_kv_cache_take). */
struct tnd_llama_batch {
    int64_t m;
    const int32_t *tokens;    /* {m} */
    const int32_t *positions; /* {m}, of each token in its sequence */
    const int32_t *sequences; /* {m} */
    const int32_t *outputs;   /* {n_outputs}: indices of the tokens whose logits are wanted */
    int64_t n_outputs;
    tandem_tensor **expert_ids; /* {layers}, filled: I32 {used, m} of each layer with experts; NULL:
                                   nobody counts them */
    bool wants_embeddings;
    const struct tnd_llama_hot_layer *hot; /* {layers}; NULL: no experts are apart */
};

/** One forward pass, its inputs filled in. */
struct tnd_llama_forward {
    tandem_graph *graph;
    tandem_tensor *logits;     /* {vocabulary, n_outputs}; NULL when none are wanted */
    tandem_tensor *embeddings; /* {dim, n_outputs}; NULL when none are wanted */
};

/** Whether a token ends a text: what the source says counts, else the tokenizer's end token, which
 *  may be a guess by name. */
bool tnd_llama_is_end(const tandem_model *model, const tandem_tokenizer *tokenizer, int32_t token);

/** Builds the graph that runs a batch through the model and writes its keys and values into the
 *  cache. Without outputs only what the cache needs is computed. Errors: those of the builders and
 *  of tandem_graph_finish. */
enum tandem_status tnd_llama_forward(const tandem_model *model,
                                     const struct tnd_llama_kv_cache *cache,
                                     const struct tnd_llama_batch *batch, tandem_context *context,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error);

/** Builds the graph that rotates the keys of cells by deltas[cell] positions where that is not 0.
 *  `out_graph` is NULL when there are none. Errors: as tnd_llama_forward. */
enum tandem_status tnd_llama_shift(const tandem_model *model,
                                   const struct tnd_llama_kv_cache *cache, const int32_t *deltas,
                                   tandem_context *context, tandem_graph **out_graph,
                                   struct tandem_error *error);

#endif
