/* SPDX-License-Identifier: MIT
 * Keys and values of all tokens seen so far, F32, one pair of tensors a layer. Values lie
 * transposed: a row of the product P * V runs over the tokens. */
#ifndef TND_LLAMA_KV_CACHE_H
#define TND_LLAMA_KV_CACHE_H

#include "llama/hparams.h"

struct tnd_llama_kv_cache {
    int64_t head_size;
    int64_t kv_heads;
    int64_t layers;
    int64_t context; /* tokens that there is room for */
    tandem_context *owner;
    tandem_tensor **keys;   /* of each layer {head_size, kv_heads, context} */
    tandem_tensor **values; /* of each layer {context, head_size, kv_heads} */
};

/** Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_llama_kv_cache_init(struct tnd_llama_kv_cache *cache,
                                           const struct tnd_llama_hparams *hparams, int64_t context,
                                           struct tandem_error *error);
/** A zeroed cache is allowed. */
void tnd_llama_kv_cache_fini(struct tnd_llama_kv_cache *cache);

/** Nodes that write m tokens from position n_past on. `k`: {head_size, kv_heads, m}; `v`: {kv_dim,
 *  m}. They must be added to the graph before what reads. */
tandem_tensor *tnd_llama_write_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                    int64_t layer, tandem_tensor *k, int64_t n_past, int64_t m);
tandem_tensor *tnd_llama_write_values(const struct tnd_llama_kv_cache *cache,
                                      tandem_context *context, int64_t layer, tandem_tensor *v,
                                      int64_t n_past, int64_t m);

/** Views of the first t tokens: keys {head_size, t, kv_heads}, values {t, head_size, kv_heads}. */
tandem_tensor *tnd_llama_read_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                   int64_t layer, int64_t t);
tandem_tensor *tnd_llama_read_values(const struct tnd_llama_kv_cache *cache,
                                     tandem_context *context, int64_t layer, int64_t t);

#endif
