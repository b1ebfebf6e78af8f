/* SPDX-License-Identifier: MIT
 * What determines a model's placement and speed: bytes by layer, products, keys and values. Read
 * from any model file, also of architectures that Tandem cannot run. */
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
    char name[256]; /* as the user named it */
    char architecture[32];
    int64_t bytes, weights;        /* of all tensors */
    int64_t embedding_bytes;       /* only a few rows are read per token */
    int64_t output_bytes;          /* output matrix and everything outside the layers */
    int64_t experts, experts_used; /* 0: none */
    int64_t context;               /* context of its training; 0: unknown */
    int n_layers;
    struct tnd_advise_layer layers[TND_ADVISE_LAYERS];
    struct tnd_shapes dense;      /* products of each pass, with their counts */
    struct tnd_shapes experts_of; /* products of all experts, with their counts per expert */
};

/** Fills `out` from an open model. Errors: FORMAT (no layers named blk.N.), LIMIT. */
enum tandem_status tnd_advise_model_read(const tandem_source *source, const char *name,
                                         struct tnd_advise_model *out, struct tandem_error *error);

/** Bytes read per token: of experts, only those of the used ones. */
double tnd_advise_active_bytes(const struct tnd_advise_model *model);
/** Bytes of a layer's keys and values; `cache` is F16 or Q8_0. */
double tnd_advise_kv_bytes(const struct tnd_advise_layer *layer, int64_t context,
                           enum tandem_type cache);

#endif
