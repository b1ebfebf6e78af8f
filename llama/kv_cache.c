/* SPDX-License-Identifier: MIT
 * The KV cache: tensors of its own context, written by cpy into views, read through views. */
#include "llama/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"

static enum tandem_status make_tensors(struct tnd_llama_kv_cache *cache, struct tandem_error *error)
{
    const int64_t keys_ne[] = {cache->head_size, cache->kv_heads, cache->context};
    const int64_t values_ne[] = {cache->context, cache->head_size, cache->kv_heads};
    LLAMA_TRY(tandem_context_new(NULL, &cache->owner, error));
    cache->keys = calloc((size_t)cache->layers, sizeof(cache->keys[0]));
    cache->values = calloc((size_t)cache->layers, sizeof(cache->values[0]));
    if (cache->keys == NULL || cache->values == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "KV cache", cache->layers, 0,
                              "KV cache: no memory for %lld layers", (long long)cache->layers);
    }
    for (int64_t l = 0; l < cache->layers; l++) {
        cache->keys[l] = tandem_tensor_new(cache->owner, TANDEM_TYPE_F32, 3, keys_ne);
        cache->values[l] = tandem_tensor_new(cache->owner, TANDEM_TYPE_F32, 3, values_ne);
        tandem_tensor_set_name(cache->keys[l], "keys");
        tandem_tensor_set_name(cache->values[l], "values");
    }
    return tandem_context_status(cache->owner, error);
}

enum tandem_status tnd_llama_kv_cache_init(struct tnd_llama_kv_cache *cache,
                                           const struct tnd_llama_hparams *hparams, int64_t context,
                                           struct tandem_error *error)
{
    *cache = (struct tnd_llama_kv_cache){.head_size = hparams->head_size,
                                         .kv_heads = hparams->kv_heads,
                                         .layers = hparams->layers,
                                         .context = context};
    const enum tandem_status status = make_tensors(cache, error);
    if (status != TANDEM_OK) {
        tnd_llama_kv_cache_fini(cache);
    }
    return status;
}

void tnd_llama_kv_cache_fini(struct tnd_llama_kv_cache *cache)
{
    tandem_context_free(cache->owner);
    free(cache->keys);
    free(cache->values);
    memset(cache, 0, sizeof(*cache));
}

tandem_tensor *tnd_llama_write_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                    int64_t layer, tandem_tensor *k, int64_t n_past, int64_t m)
{
    const int64_t ne[] = {cache->head_size, cache->kv_heads, m};
    const size_t offset = (size_t)(n_past * cache->head_size * cache->kv_heads) * sizeof(float);
    tandem_tensor *place = tandem_view(context, cache->keys[layer], 3, ne, NULL, offset);
    return tandem_cpy(context, k, place);
}

tandem_tensor *tnd_llama_write_values(const struct tnd_llama_kv_cache *cache,
                                      tandem_context *context, int64_t layer, tandem_tensor *v,
                                      int64_t n_past, int64_t m)
{
    const int64_t ne[] = {m, cache->head_size * cache->kv_heads};
    const size_t nb[] = {(size_t)cache->context * sizeof(float)};
    tandem_tensor *place = tandem_view(context, cache->values[layer], 2, ne, nb,
                                       (size_t)n_past * sizeof(float)); /* {m, kv_dim} */
    return tandem_cpy(context, tandem_transpose(context, v), place);
}

tandem_tensor *tnd_llama_read_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                   int64_t layer, int64_t t)
{
    const int64_t ne[] = {cache->head_size, cache->kv_heads, t};
    tandem_tensor *keys = tandem_view(context, cache->keys[layer], 3, ne, NULL, 0);
    return tandem_permute(context, keys, 0, 2, 1, 3);
}

tandem_tensor *tnd_llama_read_values(const struct tnd_llama_kv_cache *cache,
                                     tandem_context *context, int64_t layer, int64_t t)
{
    const int64_t ne[] = {t, cache->head_size, cache->kv_heads};
    const size_t nb[] = {(size_t)cache->context * sizeof(float),
                         (size_t)(cache->context * cache->head_size) * sizeof(float)};
    return tandem_view(context, cache->values[layer], 3, ne, nb, 0);
}
