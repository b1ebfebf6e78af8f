/* SPDX-License-Identifier: MIT
 * Hyperparameters from a source's values (keys of the GGUF convention). */
#include "llama/hparams.h"

#include <string.h>

#include "llama/llama_error.h"

/* A whole number that must be there, 1 to 2^31 - 1. */
static enum tandem_status read_count(const tandem_source *source, const char *key, int64_t *out,
                                     struct tandem_error *error)
{
    int64_t value;
    if (!tandem_source_integer(source, key, &value)) {
        return tnd_llama_fail(error, TANDEM_E_NOT_FOUND, key, 0, 0, "llama: the model has no %s",
                              key);
    }
    if (value < 1 || value > INT32_MAX) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, key, value, INT32_MAX,
                              "llama: %s is %lld, expected 1 to 2147483647", key, (long long)value);
    }
    *out = value;
    return TANDEM_OK;
}

static float read_number(const tandem_source *source, const char *key, double otherwise)
{
    double value = otherwise;
    (void)tandem_source_number(source, key, &value);
    return (float)value;
}

static enum tandem_status check_architecture(const tandem_source *source,
                                             struct tandem_error *error)
{
    const char *architecture = "none";
    if (tandem_source_text(source, "general.architecture", &architecture) &&
        strcmp(architecture, "llama") == 0) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_FORMAT, "general.architecture", 0, 0,
                          "llama: the model's architecture is %s, expected llama", architecture);
}

/* Heads must share out evenly, and rope turns pairs. */
static enum tandem_status check_heads(const struct tnd_llama_hparams *h, struct tandem_error *error)
{
    if (h->dim % h->heads == 0 && h->heads % h->kv_heads == 0 && h->head_size % 2 == 0 &&
        h->rope.n_rot % 2 == 0 && h->rope.n_rot <= h->head_size) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_FORMAT, "llama.attention", h->heads, h->dim,
                          "llama: %lld values in %lld heads, %lld KV heads, %lld values rotated do "
                          "not fit together",
                          (long long)h->dim, (long long)h->heads, (long long)h->kv_heads,
                          (long long)h->rope.n_rot);
}

enum tandem_status tnd_llama_hparams_read(const tandem_source *source,
                                          struct tnd_llama_hparams *out_hparams,
                                          struct tandem_error *error)
{
    struct tnd_llama_hparams h = {.rope = TANDEM_ROPE_OPTIONS_INIT};
    LLAMA_TRY(check_architecture(source, error));
    LLAMA_TRY(read_count(source, "llama.embedding_length", &h.dim, error));
    LLAMA_TRY(read_count(source, "llama.feed_forward_length", &h.hidden, error));
    LLAMA_TRY(read_count(source, "llama.block_count", &h.layers, error));
    LLAMA_TRY(read_count(source, "llama.attention.head_count", &h.heads, error));
    LLAMA_TRY(read_count(source, "llama.attention.head_count_kv", &h.kv_heads, error));
    LLAMA_TRY(read_count(source, "llama.rope.dimension_count", &h.rope.n_rot, error));
    LLAMA_TRY(read_count(source, "llama.context_length", &h.context, error));
    LLAMA_TRY(read_count(source, "llama.vocab_size", &h.vocabulary, error));
    h.norm_eps = read_number(source, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    h.rope.freq_base = read_number(source, "llama.rope.freq_base", 10000.0);
    h.rope.pairs = TANDEM_ROPE_ADJACENT;
    h.head_size = h.dim / h.heads;
    h.kv_dim = h.head_size * h.kv_heads;
    LLAMA_TRY(check_heads(&h, error));
    *out_hparams = h;
    return TANDEM_OK;
}
