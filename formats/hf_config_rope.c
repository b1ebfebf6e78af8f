/* SPDX-License-Identifier: MIT
 * RoPE scalings in a config.json, after modeling_rope_utils.py of huggingface/transformers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"
#include "formats/hf_config.h"
#include "formats/llama_tensors.h"

int64_t tnd_hf_head_size(const struct tnd_hf_config *c)
{
    return c->head_dim != TND_NOT_SAID  ? c->head_dim
           : c->num_attention_heads > 0 ? c->hidden_size / c->num_attention_heads
                                        : 0;
}

static void forget_scaling(struct tnd_hf_config *c)
{
    c->scaling[0] = '\0';
    c->factor = NAN;
    c->low_freq_factor = NAN;
    c->high_freq_factor = NAN;
    c->original_max_position_embeddings = NAN;
    c->beta_fast = NAN;
    c->beta_slow = NAN;
}

void tnd_hf_resolve_rope(struct tnd_hf_config *c, double theta)
{
    c->rope_theta = !isnan(c->rope_theta_inside) ? c->rope_theta_inside
                    : !isnan(c->rope_theta)      ? c->rope_theta
                                                 : theta;
    if (isnan(c->original_max_position_embeddings)) { /* outside of rope_parameters wins */
        c->original_max_position_embeddings =
            isnan(c->original_inside) ? (double)c->max_position_embeddings : c->original_inside;
    }
    if (c->scaling[0] == '\0') { /* "type" is the older name */
        memcpy(c->scaling, c->older_scaling, sizeof(c->scaling));
    }
    if (c->scaling[0] == '\0' || strcmp(c->scaling, "default") == 0) {
        forget_scaling(c);
    }
}

/* The factor of rotated queries and keys in transformers: YaRN's default, or from mscale;
 * attention_factor, or mscale with mscale_all_dim, overrides it. */
static double yarn_magnitude(double factor, double mscale)
{
    return factor > 1.0 ? 0.1 * (isnan(mscale) ? 1.0 : mscale) * log(factor) + 1.0 : 1.0;
}

/* The convention's attn_factor multiplies YaRN's default. */
static void convert_yarn(struct tnd_hf_config *c)
{
    const bool is_latent = c->kv_lora_rank != TND_NOT_SAID; /* there the default magnitude is 1 */
    const double usual = yarn_magnitude(c->factor, NAN);
    const bool has_both = !isnan(c->mscale) && c->mscale != 0.0 && !isnan(c->mscale_all_dim) &&
                          c->mscale_all_dim != 0.0;
    const double magnitude = !isnan(c->attention_factor) ? c->attention_factor
                             : has_both                  ? yarn_magnitude(c->factor, c->mscale) /
                                              yarn_magnitude(c->factor, c->mscale_all_dim)
                                        : usual;
    const double own = is_latent ? 1.0 : usual;
    c->attn_factor = magnitude == own ? NAN : magnitude / own;
    c->beta_fast = c->beta_fast == 0.0 ? NAN : c->beta_fast; /* 0: the default */
    c->beta_slow = c->beta_slow == 0.0 ? NAN : c->beta_slow;
}

static enum tandem_status convert_longrope(tandem_source *source, struct tnd_hf_config *c,
                                           struct tandem_error *error)
{
    const int64_t n = c->n_rot / 2;
    const double original = c->original_max_position_embeddings;
    const double factor =
        !isnan(c->factor) ? c->factor : (double)c->max_position_embeddings / original;
    if (c->n_short != n || c->n_long != n) {
        return tnd_error_set(error, TANDEM_E_FORMAT, "short_factor", c->n_short, n,
                             "scaling of rope by 'longrope': short_factor has %lld and long_factor "
                             "%lld numbers, expected %lld, half of what is rotated of a head",
                             (long long)c->n_short, (long long)c->n_long, (long long)n);
    }
    c->attn_factor = !isnan(c->attention_factor) ? c->attention_factor
                     : factor > 1.0              ? sqrt(1.0 + log(factor) / log(original))
                                                 : 1.0;
    c->factor = NAN; /* the convention would divide the angles by it */
    c->beta_fast = c->beta_slow = NAN;
    return tnd_llama_add_longrope(source, c->short_factor, c->long_factor, n, error);
}

/* In transformers, models of these families rotate whole heads: without scaling
 * partial_rotary_factor is ignored, and with one they fail. */
static enum tandem_status check_partial(const struct tnd_hf_config *c, struct tandem_error *error)
{
    const double n = (double)tnd_hf_head_size(c);
    return c->is_partial || isnan(c->partial_rotary_factor) || c->scaling[0] == '\0' ||
                   floor(n * c->partial_rotary_factor) == n
               ? TANDEM_OK
               : tnd_error_set(
                     error, TANDEM_E_UNSUPPORTED_BUILD, "partial_rotary_factor", 0, 0,
                     "scaling of rope by '%.40s' with \"partial_rotary_factor\" %g: models "
                     "of this model_type rotate whole heads",
                     c->scaling, c->partial_rotary_factor);
}

enum tandem_status tnd_hf_convert_scaling(tandem_source *source, struct tnd_hf_config *c,
                                          struct tandem_error *error)
{
    const int64_t head_size = c->n_rot;
    const double n = (double)head_size;
    const struct tnd_llama3_rope rope = {.head_size = head_size,
                                         .base = c->rope_theta,
                                         .factor = c->factor,
                                         .low = c->low_freq_factor,
                                         .high = c->high_freq_factor,
                                         .original = c->original_max_position_embeddings};
    const bool is_longrope = strcmp(c->scaling, "longrope") == 0;
    const bool is_yarn = strcmp(c->scaling, "yarn") == 0;
    TND_TRY(check_partial(c, error));
    if (isnan(c->factor) && c->scaling[0] != '\0' && !is_longrope) {
        return tnd_error_set(error, TANDEM_E_FORMAT, "factor", 0, 0,
                             "scaling of rope by '%.40s': the member factor is missing",
                             c->scaling);
    }
    if (strcmp(c->scaling, "dynamic") == 0) {
        c->rope_theta *= !isnan(c->alpha) && c->alpha != 0.0 ? pow(c->alpha, n / (n - 2.0)) : 1.0;
        forget_scaling(c);
    } else if (strcmp(c->scaling, "ntk") == 0 && c->factor >= 1e-3 && c->factor <= 1e6 &&
               head_size > 2 && head_size <= 65536) {
        c->rope_theta *= pow(c->factor, n / (n - 2.0));
        forget_scaling(c);
    } else if (strcmp(c->scaling, "llama3") == 0) {
        TND_TRY(tnd_llama_add_divisors(source, &rope, error));
        forget_scaling(c);
    } else if (is_yarn) {
        convert_yarn(c);
    } else if (is_longrope) {
        TND_TRY(convert_longrope(source, c, error));
    } else {
        c->beta_fast = c->beta_slow = NAN;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_hf_add_scaling(tandem_source *source, const char *architecture,
                                      const struct tnd_hf_config *config,
                                      struct tandem_error *error)
{
    const double original = config->original_max_position_embeddings;
    char key[128];
    if (config->scaling[0] == '\0') {
        return TANDEM_OK;
    }
    snprintf(key, sizeof(key), "%s.rope.scaling.type", architecture);
    TND_TRY(tnd_source_set_text(source, key, config->scaling, error));
    if (strcmp(config->scaling, "yarn") != 0 && strcmp(config->scaling, "longrope") != 0) {
        return TANDEM_OK;
    }
    snprintf(key, sizeof(key), "%s.rope.scaling.original_context_length", architecture);
    TND_TRY(original >= 1.0 && original <= 1e12 && original == floor(original)
                ? tnd_source_set_integer(source, key, (int64_t)original, error)
                : tnd_source_set_number(source, key, original, error));
    if (!isnan(config->attn_factor)) {
        snprintf(key, sizeof(key), "%s.rope.scaling.attn_factor", architecture);
        TND_TRY(tnd_source_set_number(source, key, config->attn_factor, error));
    }
    return config->keeps_fractions
               ? tnd_source_set_integer(source, "tandem.rope.truncate", 0, error)
               : TANDEM_OK;
}
