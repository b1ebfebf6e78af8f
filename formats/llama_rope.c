/* SPDX-License-Identifier: MIT
 * Reads the RoPE scaling from keys of the GGUF convention (docs/gguf.md of ggml-org/ggml), and
 * computes the divisors of its angles. Formulas: Llama 3.1's model card; YaRN, Peng et al. 2023
 * (arXiv:2309.00071); LongRoPE, Ding et al. 2024 (arXiv:2402.13753); details and defaults as in
 * modeling_rope_utils.py of huggingface/transformers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "formats/llama_tensors.h"
#include "formats/source.h"

#define PI 3.14159265358979323846

/* A source and the architecture with which its keys start. */
struct reader {
    const tandem_source *source;
    const char *architecture;
    char key[96]; /* the key read last */
};

static const char *key_of(struct reader *reader, const char *name)
{
    snprintf(reader->key, sizeof(reader->key), "%s.%s", reader->architecture, name);
    return reader->key;
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

static enum tandem_status bad_scaling(const char *key, double value, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, key, 0, 0,
                         "llama: %s is %g, which is no scaling of rope", key, value);
}

static enum tandem_status read_original(struct reader *reader, double otherwise,
                                        struct tandem_hparams *h, struct tandem_error *error)
{
    h->rope_original = read_number(reader, "rope.scaling.original_context_length", otherwise);
    return h->rope_original >= 1.0 && h->rope_original <= 1e12
               ? TANDEM_OK
               : bad_scaling(reader->key, h->rope_original, error);
}

/* Reads Llama 3's scaling: frequencies of wavelengths below original / high are kept, those above
 * original / low are divided by the factor, those between in part. */
static enum tandem_status read_llama3(struct reader *reader, struct tandem_hparams *h,
                                      struct tandem_error *error)
{
    h->rope_scaling = TANDEM_ROPE_LLAMA3;
    h->rope_low = read_number(reader, "rope.scaling.low_freq_factor", 1.0);
    h->rope_high = read_number(reader, "rope.scaling.high_freq_factor", 4.0);
    if (!(h->rope_low > 0.0) || !(h->rope_high > h->rope_low) || !isfinite(h->rope_high)) {
        return bad_scaling(key_of(reader, "rope.scaling.high_freq_factor"), h->rope_high, error);
    }
    return read_original(reader, 8192.0, h, error);
}

/* The (fractional) index of the pair that makes `turns` turns in the original context. */
static double pair_of(const struct tandem_hparams *h, double turns)
{
    return (double)h->n_rot * log(h->rope_original / (turns * 2.0 * PI)) /
           (2.0 * log((double)h->freq_base));
}

/* Reads YaRN: pairs that make more than beta_fast turns in the original context are kept, those
 * that make less than beta_slow turns are slowed down, those between in part. Queries and keys are
 * scaled by 0.1 ln(factor) + 1, times rope.scaling.attn_factor. */
static enum tandem_status read_yarn(struct reader *reader, struct tandem_hparams *h,
                                    struct tandem_error *error)
{
    int64_t truncates = 1;
    h->rope_scaling = TANDEM_ROPE_YARN;
    TND_TRY(read_original(reader, (double)h->context, h, error));
    const double fast = read_number(reader, "rope.scaling.yarn_beta_fast", 32.0);
    if (!(fast > 0.0) || !(fast <= 1e9)) {
        return bad_scaling(reader->key, fast, error);
    }
    const double slow = read_number(reader, "rope.scaling.yarn_beta_slow", 1.0);
    if (!(slow > 0.0) || !(slow <= 1e9)) {
        return bad_scaling(reader->key, slow, error);
    }
    const double amount = read_number(reader, "rope.scaling.yarn_ext_factor", 1.0);
    if (amount != 1.0) { /* 0 would be linear scaling */
        return bad_scaling(reader->key, amount, error);
    }
    if (!(h->freq_base > 1.0f)) {
        return bad_scaling(key_of(reader, "rope.freq_base"), (double)h->freq_base, error);
    }
    (void)tandem_source_integer(reader->source, "tandem.rope.truncate", &truncates);
    const double low = pair_of(h, fast);
    const double high = pair_of(h, slow);
    h->rope_low = fmax(truncates != 0 ? floor(low) : low, 0.0);
    h->rope_high = fmin(truncates != 0 ? ceil(high) : high, (double)h->n_rot - 1.0);
    h->rope_high += h->rope_high == h->rope_low ? 0.001 : 0.0;
    /* with latent attention scores are scaled instead, by yarn_log_multiplier */
    h->rope_magnitude =
        h->rope_factor > 1.0 && h->kv_latent == 0 ? (float)(0.1 * log(h->rope_factor) + 1.0) : 1.0f;
    return TANDEM_OK;
}

static enum tandem_status read_kind(struct reader *reader, const char *type, double factor,
                                    struct tandem_hparams *h, struct tandem_error *error)
{
    /* the base of "dynamic" grows only beyond the context, where no session decodes */
    if (strcmp(type, "none") == 0 || strcmp(type, "default") == 0 || strcmp(type, "dynamic") == 0) {
        return TANDEM_OK;
    }
    if (strcmp(type, "linear") == 0) {
        h->freq_scale = (float)(1.0 / factor);
        return TANDEM_OK;
    }
    if (strcmp(type, "ntk") == 0 && h->n_rot > 2) {
        const double n_rot = (double)h->n_rot;
        h->freq_base = (float)((double)h->freq_base * pow(factor, n_rot / (n_rot - 2.0)));
        return TANDEM_OK;
    }
    h->rope_factor = factor;
    if (strcmp(type, "llama3") == 0) {
        return read_llama3(reader, h, error);
    }
    if (strcmp(type, "yarn") == 0) {
        return read_yarn(reader, h, error);
    }
    if (strcmp(type, "longrope") == 0) { /* the divisors are tensors */
        h->rope_scaling = TANDEM_ROPE_LONGROPE;
        h->freq_scale = (float)(1.0 / factor);
        return read_original(reader, (double)h->context, h, error);
    }
    return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, key_of(reader, "rope.scaling.type"), 0,
                         0,
                         "llama: scaling of rope by '%.40s' is not known; expected none, "
                         "linear, dynamic, ntk, llama3, yarn or longrope",
                         type);
}

enum tandem_status tnd_llama_read_rope(const tandem_source *source, struct tandem_hparams *h,
                                       struct tandem_error *error)
{
    struct reader reader = {.source = source, .architecture = h->architecture};
    struct tandem_source_tensor divisors;
    const char *pairs = NULL;
    const char *type = NULL;
    if (tandem_source_text(source, "tandem.rope.pairs", &pairs)) {
        h->rope_pairs = strcmp(pairs, "halves") == 0 ? TANDEM_ROPE_HALVES : TANDEM_ROPE_ADJACENT;
    }
    h->freq_scale = 1.0f;
    h->rope_magnitude = 1.0f;
    h->freq_base = (float)read_number(&reader, "rope.freq_base", 10000.0);
    if (!(h->freq_base > 0.0f) || !isfinite(h->freq_base)) {
        return bad_scaling(reader.key, (double)h->freq_base, error);
    }
    (void)tandem_source_text(source, key_of(&reader, "rope.scaling.type"), &type);
    /* rope.scale_linear is the key of older files */
    const double older = read_number(&reader, "rope.scale_linear", 1.0);
    const double factor = read_number(&reader, "rope.scaling.factor", older);
    if (!(factor >= 1e-3) || !(factor <= 1e6)) {
        return bad_scaling(reader.key, factor, error);
    }
    const struct tnd_llama_architecture *a = tnd_llama_architecture_of(h->architecture);
    if (a != NULL && a->has_plain_windows && h->window > 0 && h->window_freq_base == 0.0f) {
        h->window_freq_base = h->freq_base;
    }
    const bool has_divisors = a != NULL && a->may_have_divisors &&
                              tandem_source_find(source, "rope_factors_long.weight", &divisors);
    type = type != NULL ? type : has_divisors ? "longrope" : factor != 1.0 ? "linear" : "none";
    TND_TRY(read_kind(&reader, type, factor, h, error));
    const double grown = read_number(&reader, "rope.scaling.attn_factor", 1.0) *
                         read_number(&reader, "rope.scaling.yarn_attn_factor", 1.0);
    if (!(grown >= 1e-3) || !(grown <= 1e3)) {
        return bad_scaling(reader.key, grown, error);
    }
    h->rope_magnitude *= (float)grown;
    return TANDEM_OK;
}

/* How much pair i is slowed down, 0 to 1. */
static double slowed(const struct tandem_hparams *h, int64_t i)
{
    double share;
    if (h->rope_scaling == TANDEM_ROPE_LLAMA3) {
        const double frequency = pow((double)h->freq_base, -2.0 * (double)i / (double)h->n_rot);
        /* turns of this pair in the original context */
        const double waves = h->rope_original * frequency / (2.0 * PI);
        share = 1.0 - (waves - h->rope_low) / (h->rope_high - h->rope_low);
    } else {
        share = ((double)i - h->rope_low) / (h->rope_high - h->rope_low);
    }
    return share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
}

void tandem_hparams_divisors(const struct tandem_hparams *h, float *out)
{
    for (int64_t i = 0; h != NULL && out != NULL && i < h->n_rot / 2; i++) {
        const bool is_scaled = h->rope_factor > 0.0 && (h->rope_scaling == TANDEM_ROPE_LLAMA3 ||
                                                        h->rope_scaling == TANDEM_ROPE_YARN);
        const double share = is_scaled ? slowed(h, i) : 0.0;
        out[i] = is_scaled ? (float)(1.0 / (share / h->rope_factor + (1.0 - share))) : 1.0f;
    }
}
