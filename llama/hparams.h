/* SPDX-License-Identifier: MIT
 * Hyper-parameters of a model of the llama family, and how it rotates queries and keys. */
#ifndef TND_LLAMA_HPARAMS_H
#define TND_LLAMA_HPARAMS_H

#include "tandem/llama.h"
#include "tandem/ops.h"

/** How positions beyond those of the training are squeezed into its range. */
enum tnd_llama_rope_scaling {
    TND_ROPE_UNSCALED,
    TND_ROPE_LINEAR, /* all angles are divided by the factor (Chen et al. 2023) */
    TND_ROPE_NTK,    /* the base grows, so that the last pair is slowed by the factor */
    TND_ROPE_LLAMA3  /* slow pairs are divided, fast ones kept, those between blended */
};

struct tnd_llama_rope {
    struct tandem_rope_options options; /* linear and NTK scaling are in it */
    enum tnd_llama_rope_scaling scaling;
    double factor;
    double low_freq_factor, high_freq_factor; /* llama 3 */
    double original_context;                  /* llama 3 */
};

/** Reads and checks them, but for weight_type. Errors: FORMAT (another architecture, or numbers
 *  that do not fit together), NOT_FOUND, UNSUPPORTED_BUILD (a scaling of rope that is not known).
 *  */
enum tandem_status tnd_llama_hparams_read(const tandem_source *source,
                                          struct tandem_hparams *out_hparams,
                                          struct tnd_llama_rope *out_rope,
                                          struct tandem_error *error);

/** Divisor of the angle of each pair, n_rot / 2 values, for TND_ROPE_LLAMA3. */
void tnd_llama_rope_factors(const struct tnd_llama_rope *rope, float *out_factors);

#endif
