/* SPDX-License-Identifier: MIT
 * Hyper-parameters from a source's values (keys of the GGUF convention, which begin with the name
 * of the architecture). */
#include "llama/hparams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llama/llama_error.h"

/* What differs between the architectures. */
struct architecture {
    const char *name;
    enum tandem_rope_pairs pairs; /* as files of the GGUF convention have their rows */
    bool has_biases;
};

static const struct architecture architectures[] = {
    {"llama", TANDEM_ROPE_ADJACENT, false},
    {"mistral", TANDEM_ROPE_ADJACENT, false},
    {"qwen2", TANDEM_ROPE_HALVES, true},
};

/* A source and the architecture that begins its keys. */
struct reader {
    const tandem_source *source;
    const struct architecture *architecture;
    struct tnd_llama_rope rope; /* what has been read of it */
    char key[96];               /* the key read last */
};

static const char *key_of(struct reader *reader, const char *name)
{
    snprintf(reader->key, sizeof(reader->key), "%s.%s", reader->architecture->name, name);
    return reader->key;
}

static enum tandem_status check_count(const char *key, int64_t value, int64_t *out,
                                      struct tandem_error *error)
{
    if (value < 1 || value > INT32_MAX) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, key, value, INT32_MAX,
                              "llama: %s is %lld, expected 1 to 2147483647", key, (long long)value);
    }
    *out = value;
    return TANDEM_OK;
}

/* A whole number that must be there, 1 to 2^31 - 1. */
static enum tandem_status read_count(struct reader *reader, const char *name, int64_t *out,
                                     struct tandem_error *error)
{
    int64_t value;
    const char *key = key_of(reader, name);
    if (!tandem_source_integer(reader->source, key, &value)) {
        return tnd_llama_fail(error, TANDEM_E_NOT_FOUND, key, 0, 0, "llama: the model has no %s",
                              key);
    }
    return check_count(key, value, out, error);
}

/* The same with a value for files that do not say. */
static enum tandem_status read_count_or(struct reader *reader, const char *name, int64_t otherwise,
                                        int64_t *out, struct tandem_error *error)
{
    int64_t value = otherwise;
    const char *key = key_of(reader, name);
    (void)tandem_source_integer(reader->source, key, &value);
    return check_count(key, value, out, error);
}

static double read_number(struct reader *reader, const char *name, double otherwise)
{
    double value = otherwise;
    int64_t whole;
    const char *key = key_of(reader, name);
    if (!tandem_source_number(reader->source, key, &value) &&
        tandem_source_integer(reader->source, key, &whole)) {
        value = (double)whole;
    }
    return value;
}

static enum tandem_status find_architecture(struct reader *reader, struct tandem_error *error)
{
    const char *name = "none";
    if (tandem_source_text(reader->source, "general.architecture", &name)) {
        for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
            if (strcmp(name, architectures[i].name) == 0) {
                reader->architecture = &architectures[i];
                return TANDEM_OK;
            }
        }
    }
    return tnd_llama_fail(error, TANDEM_E_FORMAT, "general.architecture", 0, 0,
                          "llama: the model's architecture is %.60s, expected llama, mistral or "
                          "qwen2",
                          name);
}

/* Heads must share out evenly, and rope turns pairs. */
static enum tandem_status check_heads(const struct tandem_hparams *h, int64_t n_rot,
                                      struct tandem_error *error)
{
    if (h->heads % h->kv_heads == 0 && h->head_size % 2 == 0 && h->head_size <= 65536 &&
        n_rot % 2 == 0 && n_rot <= h->head_size) {
        return TANDEM_OK;
    }
    return tnd_llama_fail(error, TANDEM_E_FORMAT, "attention", h->heads, h->dim,
                          "llama: %lld values in %lld heads of %lld, %lld KV heads, %lld values "
                          "rotated do not fit together",
                          (long long)h->dim, (long long)h->heads, (long long)h->head_size,
                          (long long)h->kv_heads, (long long)n_rot);
}

static enum tandem_status read_heads(struct reader *reader, struct tandem_hparams *h,
                                     struct tandem_error *error)
{
    LLAMA_TRY(read_count(reader, "attention.head_count", &h->heads, error));
    LLAMA_TRY(read_count_or(reader, "attention.head_count_kv", h->heads, &h->kv_heads, error));
    if (h->dim % h->heads != 0) { /* files of other shapes say their head size */
        LLAMA_TRY(read_count(reader, "attention.key_length", &h->head_size, error));
    } else {
        LLAMA_TRY(
            read_count_or(reader, "attention.key_length", h->dim / h->heads, &h->head_size, error));
    }
    LLAMA_TRY(read_count_or(reader, "rope.dimension_count", h->head_size,
                            &reader->rope.options.n_rot, error));
    h->q_dim = h->head_size * h->heads;
    h->kv_dim = h->head_size * h->kv_heads;
    return check_heads(h, reader->rope.options.n_rot, error);
}

static enum tandem_status bad_scaling(const char *key, double value, struct tandem_error *error)
{
    return tnd_llama_fail(error, TANDEM_E_FORMAT, key, 0, 0,
                          "llama: %s is %g, which is no scaling of rope", key, value);
}

/* Numbers of llama 3's scaling (Llama 3.1 model card): frequencies whose waves are shorter than
 * original / high stay, those longer than original / low are divided by the factor. */
static enum tandem_status read_llama3(struct reader *reader, struct tandem_error *error)
{
    struct tnd_llama_rope *rope = &reader->rope;
    rope->low_freq_factor = read_number(reader, "rope.scaling.low_freq_factor", 1.0);
    rope->high_freq_factor = read_number(reader, "rope.scaling.high_freq_factor", 4.0);
    rope->original_context = read_number(reader, "rope.scaling.original_context_length", 8192.0);
    if (!(rope->low_freq_factor > 0.0) || !(rope->high_freq_factor > rope->low_freq_factor) ||
        !isfinite(rope->high_freq_factor)) {
        return bad_scaling(key_of(reader, "rope.scaling.high_freq_factor"), rope->high_freq_factor,
                           error);
    }
    if (!(rope->original_context >= 1.0) || !(rope->original_context <= 1e12)) {
        return bad_scaling(key_of(reader, "rope.scaling.original_context_length"),
                           rope->original_context, error);
    }
    return TANDEM_OK;
}

static enum tandem_status read_scaling(struct reader *reader, struct tandem_error *error)
{
    struct tnd_llama_rope *rope = &reader->rope;
    const char *type = NULL;
    (void)tandem_source_text(reader->source, key_of(reader, "rope.scaling.type"), &type);
    /* rope.scale_linear is the key of older files */
    const double older = read_number(reader, "rope.scale_linear", 1.0);
    rope->factor = read_number(reader, "rope.scaling.factor", older);
    if (type == NULL) {
        type = rope->factor != 1.0 ? "linear" : "none";
    }
    if (!(rope->factor >= 1e-3) || !(rope->factor <= 1e6)) {
        return bad_scaling(key_of(reader, "rope.scaling.factor"), rope->factor, error);
    }
    /* the base of "dynamic" grows for texts beyond the context only, and no session goes there */
    if (strcmp(type, "none") == 0 || strcmp(type, "default") == 0 || strcmp(type, "dynamic") == 0) {
        return TANDEM_OK;
    }
    if (strcmp(type, "linear") == 0) {
        rope->scaling = TND_ROPE_LINEAR;
        rope->options.freq_scale = (float)(1.0 / rope->factor);
        return TANDEM_OK;
    }
    if (strcmp(type, "ntk") == 0 && rope->options.n_rot > 2) {
        const double n_rot = (double)rope->options.n_rot;
        rope->scaling = TND_ROPE_NTK;
        rope->options.freq_base =
            (float)((double)rope->options.freq_base * pow(rope->factor, n_rot / (n_rot - 2.0)));
        return TANDEM_OK;
    }
    if (strcmp(type, "llama3") == 0) {
        rope->scaling = TND_ROPE_LLAMA3;
        return read_llama3(reader, error);
    }
    return tnd_llama_fail(error, TANDEM_E_UNSUPPORTED_BUILD, key_of(reader, "rope.scaling.type"), 0,
                          0,
                          "llama: scaling of rope by '%.40s' is not known; expected none, "
                          "linear, dynamic, ntk or llama3",
                          type);
}

static enum tandem_status read_rope(struct reader *reader, struct tandem_error *error)
{
    struct tnd_llama_rope *rope = &reader->rope;
    const char *pairs = NULL;
    rope->options.pairs = reader->architecture->pairs;
    if (tandem_source_text(reader->source, "tandem.rope.pairs", &pairs)) {
        rope->options.pairs =
            strcmp(pairs, "halves") == 0 ? TANDEM_ROPE_HALVES : TANDEM_ROPE_ADJACENT;
    }
    rope->options.freq_base = (float)read_number(reader, "rope.freq_base", 10000.0);
    if (!(rope->options.freq_base > 0.0f) || !isfinite(rope->options.freq_base)) {
        return bad_scaling(key_of(reader, "rope.freq_base"), (double)rope->options.freq_base,
                           error);
    }
    return read_scaling(reader, error);
}

/* Files of some converters do not say how many tokens there are: the embedding does. */
static int64_t embedding_rows(const tandem_source *source)
{
    struct tandem_source_tensor found;
    return tandem_source_find(source, "token_embd.weight", &found) ? found.ne[1] : 0;
}

static enum tandem_status read_all(struct reader *reader, struct tandem_hparams *h,
                                   struct tandem_error *error)
{
    int64_t window = 0;
    LLAMA_TRY(read_count(reader, "embedding_length", &h->dim, error));
    LLAMA_TRY(read_count(reader, "feed_forward_length", &h->hidden, error));
    LLAMA_TRY(read_count(reader, "block_count", &h->layers, error));
    LLAMA_TRY(read_heads(reader, h, error));
    LLAMA_TRY(read_count(reader, "context_length", &h->context, error));
    LLAMA_TRY(
        read_count_or(reader, "vocab_size", embedding_rows(reader->source), &h->vocabulary, error));
    (void)tandem_source_integer(reader->source, key_of(reader, "attention.sliding_window"),
                                &window);
    h->window = window > 0 && window < h->context ? window : 0;
    h->norm_eps = (float)read_number(reader, "attention.layer_norm_rms_epsilon", 1e-5);
    if (!(h->norm_eps >= 0.0f) || !isfinite(h->norm_eps)) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, reader->key, 0, 0,
                              "llama: %s is %g, expected a number of 0 or more", reader->key,
                              (double)h->norm_eps);
    }
    return read_rope(reader, error);
}

enum tandem_status tnd_llama_hparams_read(const tandem_source *source,
                                          struct tandem_hparams *out_hparams,
                                          struct tnd_llama_rope *out_rope,
                                          struct tandem_error *error)
{
    struct tandem_hparams h = {.size = sizeof(h)};
    struct reader reader = {.source = source, .rope = {.options = TANDEM_ROPE_OPTIONS_INIT}};
    LLAMA_TRY(find_architecture(&reader, error));
    h.architecture = reader.architecture->name;
    h.has_biases = reader.architecture->has_biases;
    LLAMA_TRY(read_all(&reader, &h, error));
    *out_hparams = h;
    *out_rope = reader.rope;
    return TANDEM_OK;
}

void tnd_llama_rope_factors(const struct tnd_llama_rope *rope, float *out_factors)
{
    const double pi = 3.14159265358979323846;
    const int64_t n_rot = rope->options.n_rot;
    LLAMA_ASSERT(rope->scaling == TND_ROPE_LLAMA3 && n_rot % 2 == 0);
    for (int64_t i = 0; i < n_rot / 2; i++) {
        const double frequency =
            pow((double)rope->options.freq_base, -2.0 * (double)i / (double)n_rot);
        /* waves of this pair in the original context */
        const double waves = rope->original_context * frequency / (2.0 * pi);
        double kept =
            (waves - rope->low_freq_factor) / (rope->high_freq_factor - rope->low_freq_factor);
        kept = kept < 0.0 ? 0.0 : kept > 1.0 ? 1.0 : kept;
        out_factors[i] = (float)(1.0 / ((1.0 - kept) / rope->factor + kept));
    }
}
