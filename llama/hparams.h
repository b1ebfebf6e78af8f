/* SPDX-License-Identifier: MIT
 * The numbers that describe a llama: what the paper calls its hyperparameters. */
#ifndef TND_LLAMA_HPARAMS_H
#define TND_LLAMA_HPARAMS_H

#include "tandem/formats.h"
#include "tandem/ops.h"

struct tnd_llama_hparams {
    int64_t dim;    /* length of a token's vector x */
    int64_t hidden; /* inside the feed-forward network */
    int64_t layers;
    int64_t heads;     /* of the queries */
    int64_t kv_heads;  /* of keys and values: each serves heads / kv_heads queries */
    int64_t head_size; /* dim / heads */
    int64_t kv_dim;    /* kv_heads * head_size */
    int64_t vocabulary;
    int64_t context; /* positions that the model was trained for */
    float norm_eps;
    struct tandem_rope_options rope;
};

/** Reads and checks them. Errors: FORMAT (not a llama, or numbers that do not fit together),
 *  NOT_FOUND. */
enum tandem_status tnd_llama_hparams_read(const tandem_source *source,
                                          struct tnd_llama_hparams *out_hparams,
                                          struct tandem_error *error);

#endif
