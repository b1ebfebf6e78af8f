/* SPDX-License-Identifier: MIT
 * The numbers that describe a model of the llama family: what the papers call hyperparameters. */
#ifndef TND_LLAMA_HPARAMS_H
#define TND_LLAMA_HPARAMS_H

#include "tandem/formats.h"
#include "tandem/ops.h"

/** How positions beyond those of the training are squeezed into its range. */
enum tnd_llama_rope_scaling {
    TND_ROPE_UNSCALED,
    TND_ROPE_LINEAR, /* all angles are divided by the factor (Chen et al. 2023) */
    TND_ROPE_NTK,    /* the base grows, so that the last pair is slowed by the factor */
    TND_ROPE_LLAMA3  /* slow pairs are divided, fast ones kept, those between blended */
};

struct tnd_llama_hparams {
    const char *architecture; /* "llama", "mistral" or "qwen2" */
    int64_t dim;              /* length of a token's vector x */
    int64_t hidden;           /* inside the feed-forward network */
    int64_t layers;
    int64_t heads;     /* of the queries */
    int64_t kv_heads;  /* of keys and values: each serves heads / kv_heads queries */
    int64_t head_size; /* dim / heads unless the model says otherwise */
    int64_t q_dim;     /* heads * head_size */
    int64_t kv_dim;    /* kv_heads * head_size */
    int64_t vocabulary;
    int64_t context; /* positions that the model was trained for */
    int64_t window;  /* a token sees this many tokens, itself among them; 0: all before it */
    bool has_biases; /* of q, k and v: the architecture promises them */
    float norm_eps;
    struct tandem_rope_options rope; /* linear and NTK scaling are in it */
    enum tnd_llama_rope_scaling scaling;
    double scaling_factor;
    double low_freq_factor, high_freq_factor; /* llama 3 */
    double original_context;                  /* llama 3 */
};

/** Reads and checks them. Errors: FORMAT (another architecture, or numbers that do not fit
 *  together), NOT_FOUND, UNSUPPORTED_BUILD (a scaling of rope that is not known). */
enum tandem_status tnd_llama_hparams_read(const tandem_source *source,
                                          struct tnd_llama_hparams *out_hparams,
                                          struct tandem_error *error);

/** Divisor of the angle of each pair, n_rot / 2 values, for TND_ROPE_LLAMA3. */
void tnd_llama_rope_factors(const struct tnd_llama_hparams *hparams, float *out_factors);

#endif
