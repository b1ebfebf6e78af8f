/* SPDX-License-Identifier: MIT
 * A llama's weights, and its forward pass as a graph. Read forward() in forward.c first. */
#ifndef TND_LLAMA_MODEL_H
#define TND_LLAMA_MODEL_H

#include "llama/hparams.h"
#include "llama/kv_cache.h"
#include "tandem/graph.h"

/** Weights of one layer. W is N x K: ne = {K, N}. */
struct tnd_llama_layer {
    tandem_tensor *attn_norm; /* {dim} */
    tandem_tensor *wq;        /* {dim, dim} */
    tandem_tensor *wk;        /* {dim, kv_dim} */
    tandem_tensor *wv;        /* {dim, kv_dim} */
    tandem_tensor *wo;        /* {dim, dim} */
    tandem_tensor *ffn_norm;  /* {dim} */
    tandem_tensor *w1;        /* {dim, hidden}, the gate */
    tandem_tensor *w2;        /* {hidden, dim}, down */
    tandem_tensor *w3;        /* {dim, hidden}, up */
};

struct tnd_llama_model {
    struct tnd_llama_hparams hparams;
    tandem_context *context;        /* owns the tensors, not their data */
    tandem_tensor *token_embedding; /* {dim, vocabulary} */
    tandem_tensor *output_norm;     /* {dim} */
    tandem_tensor *output;          /* {dim, vocabulary}; may be the token embedding itself */
    struct tnd_llama_layer *layers;
};

/** Finds all weights and checks their extents. The model borrows them: the source must outlive it.
 *  Errors: those of tnd_llama_hparams_read, NOT_FOUND, SHAPE, MEMORY. */
enum tandem_status tnd_llama_model_new(const tandem_source *source,
                                       struct tnd_llama_model **out_model,
                                       struct tandem_error *error);
/** NULL is allowed. */
void tnd_llama_model_free(struct tnd_llama_model *model);

/** Inputs and result of one forward pass. */
struct tnd_llama_forward {
    tandem_graph *graph;
    tandem_tensor *tokens;    /* I32 {M}, filled by the caller */
    tandem_tensor *positions; /* I32 {M} */
    tandem_tensor *logits;    /* {vocabulary, 1} of the last token; NULL when not wanted */
};

/** Builds the graph that runs M tokens at positions n_past .. n_past + M - 1 through the model and
 *  writes their keys and values into the cache. Without logits only what the cache needs is
 *  computed. Errors: those of the builders and of tandem_graph_finish. */
enum tandem_status tnd_llama_forward(const struct tnd_llama_model *model,
                                     const struct tnd_llama_kv_cache *cache, int64_t n_past,
                                     int64_t m, bool with_logits, tandem_context *context,
                                     struct tnd_llama_forward *out_forward,
                                     struct tandem_error *error);

#endif
