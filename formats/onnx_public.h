/* SPDX-License-Identifier: MIT
 * What stands behind the handle of a model (tandem/onnx_nets.h). */
#ifndef TND_ONNX_PUBLIC_H
#define TND_ONNX_PUBLIC_H

#include "base/vector.h"
#include "formats/onnx_build.h"
#include "graph/store.h"

/* Sets of extents, or parts, that were used longest ago go while all take more bytes than that, or
 * are more. */
enum { TND_ONNX_KEPT_BYTES = 256 << 20, TND_ONNX_MOST_KEPT = 1024 };

/** A set of extents, and what the model is with them. */
struct tnd_onnx_kept {
    struct tandem_onnx_dim *dims; /* with names of their own, in one block */
    int n_dims;
    uint64_t used; /* when it was asked for last */
    tandem_lowered *lowered;
};

/** A part of the model for some arrays: onnx_steps.c. */
struct tnd_onnx_step {
    struct tnd_onnx_step *next;
    struct tnd_onnx_step *origin; /* whose outputs it takes; NULL: it takes the caller's arrays */
    int n_origins;                /* parts that take the outputs of this one */
    bool for_device;              /* as it was lowered */
    const tandem_chooser *chooser;
    char *passes; /* NULL: all */
    struct tnd_onnx_part part;
    TND_VECTOR_OF(struct tnd_array *, answers);
    uint64_t used;
    tandem_lowered *lowered;
};

struct tandem_onnx {
    struct tnd_onnx_model *model;
    struct tnd_store *store; /* constants of all that is kept */
    TND_VECTOR_OF(struct tnd_onnx_kept, kept);
    struct tnd_onnx_step *steps;
    struct tnd_onnx_step *at; /* the one that is computed now, or was last; NULL: none */
    const struct tandem_net_array *inputs; /* of the caller, until the last part */
    int n_inputs;
    uint64_t clock;
    const tandem_chooser *chooser; /* of tandem_onnx_lower; NULL: by rule */
    bool keeps_nets;               /* parts keep all constants: tnd_lowered_net can be run */
};

/** Whether the part that tandem_onnx_begin or tandem_onnx_next gave is the last one. */
static inline bool tnd_onnx_is_last(const tandem_onnx *model)
{
    return model->at != NULL && model->at->part.is_last;
}

/** Frees all parts. */
void tnd_onnx_drop_parts(tandem_onnx *model);

#endif
