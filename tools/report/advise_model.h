/* SPDX-License-Identifier: MIT
 * What of a model decides about its placement and speed: bytes by layer, products, keys and values.
 * Read from any model file, of architectures too that Tandem does not compute. */
#ifndef TND_ADVISE_MODEL_H
#define TND_ADVISE_MODEL_H

#include "measure/models.h"
#include "tandem/formats.h"

enum { TND_ADVISE_LAYERS = 1024 };

struct tnd_advise_layer {
    int64_t dense_bytes, expert_bytes;
    int64_t kv_values; /* keys and values of one token */
};

struct tnd_advise_model {
    char name[256]; /* as it was given */
    char architecture[32];
    int64_t bytes, weights;        /* of all tensors */
    int64_t embedding_bytes;       /* of which a few rows are read */
    int64_t output_bytes;          /* logits, and what belongs to no layer */
    int64_t experts, experts_used; /* 0: none */
    int64_t context;               /* that it was trained for; 0: unknown */
    int n_layers;
    struct tnd_advise_layer layers[TND_ADVISE_LAYERS];
    struct tnd_shapes dense;      /* products of each pass, with how often */
    struct tnd_shapes experts_of; /* products by all experts, with how often one expert does it */
};

/** Fills `out` from an open model. Errors: FORMAT (no layers named blk.N.), LIMIT. */
enum tandem_status tnd_advise_model_read(const tandem_source *source, const char *name,
                                         struct tnd_advise_model *out, struct tandem_error *error);

/** Bytes that are read for one token: of experts only those that it uses. */
double tnd_advise_active_bytes(const struct tnd_advise_model *model);
/** Bytes of keys and values of a layer; `cache` F16 or Q8_0. */
double tnd_advise_kv_bytes(const struct tnd_advise_layer *layer, int64_t context,
                           enum tandem_type cache);

#endif
