/* SPDX-License-Identifier: MIT
 * The structures behind the public handle of a model (tandem/onnx_nets.h). */
#ifndef TND_ONNX_PUBLIC_H
#define TND_ONNX_PUBLIC_H

#include "base/vector.h"
#include "formats/onnx_build.h"
#include "graph/store.h"

/* The least recently used sets of extents, or parts, are freed while all together take more bytes
 * than this, or are more than this. */
enum { TND_ONNX_KEPT_BYTES = 256 << 20, TND_ONNX_MOST_KEPT = 1024 };

/** A set of extents, and the model lowered for it. */
struct tnd_onnx_kept {
    struct tandem_onnx_dim *dims; /* owned, names included, in one block */
    int n_dims;
    uint64_t used; /* time of its last use */
    tandem_lowered *lowered;
};

/** A part of the model built for some arrays: onnx_steps.c. */
struct tnd_onnx_step {
    struct tnd_onnx_step *next;
    struct tnd_onnx_step *origin; /* part whose outputs it reads; NULL: reads the caller's arrays */
    int n_origins;                /* parts whose inputs are the outputs of this one */
    bool for_device;              /* as lowered */
    const tandem_chooser *chooser;
    char *passes; /* NULL: all */
    struct tnd_onnx_part part;
    TND_VECTOR_OF(struct tnd_array *, answers);
    uint64_t used;
    tandem_lowered *lowered;
};

struct tandem_onnx {
    struct tnd_onnx_model *model;
    struct tnd_store *store; /* constants of all sets and parts */
    TND_VECTOR_OF(struct tnd_onnx_kept, kept);
    struct tnd_onnx_step *steps;
    struct tnd_onnx_step *at;              /* the current part, or the last one run; NULL: none */
    const struct tandem_net_array *inputs; /* the caller's, borrowed until the last part */
    int n_inputs;
    uint64_t clock;
    const tandem_chooser *chooser; /* from tandem_onnx_lower; NULL: by rule */
    bool keeps_nets;               /* parts keep all constants, to run tnd_lowered_net */
};

/** Whether the part returned by tandem_onnx_begin or tandem_onnx_next is the last one. */
static inline bool tnd_onnx_is_last(const tandem_onnx *model)
{
    return model->at != NULL && model->at->part.is_last;
}

/** Frees all parts. */
void tnd_onnx_drop_parts(tandem_onnx *model);

#endif
