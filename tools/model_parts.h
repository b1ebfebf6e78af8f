/* SPDX-License-Identifier: MIT
 * ONNX models for the tools: computed part by part (tandem_onnx_begin), for given inputs or
 * generated ones. */
#ifndef TND_MODEL_PARTS_H
#define TND_MODEL_PARTS_H

#include "formats/onnx_public.h"
#include "tandem/runtime.h"

/** Values for all inputs of a model. */
struct tnd_model_inputs {
    int n;
    struct tandem_net_array *arrays; /* values and list are owned, names belong to the model */
};

/** Generates inputs: 32-bit floats from -1 to 1; all other types, which may be indices, are 0. The
 * caller must call tnd_model_inputs_fini, also after an error. Errors: those of
 * tnd_onnx_input_shape, MEMORY. */
enum tandem_status tnd_model_inputs_make(const tandem_onnx *model,
                                         const struct tandem_onnx_dim *dims, int n_dims,
                                         struct tnd_model_inputs *out, struct tandem_error *error);
void tnd_model_inputs_fini(struct tnd_model_inputs *inputs);

/** Computes one part. The results of the last one are not used. */
typedef enum tandem_status tnd_part_fn(void *user, tandem_lowered *part, bool is_last,
                                       struct tandem_error *error);

/** Calls `compute` for each part of a model; *out_last, which may be NULL, gets the last one, which
 * lives until the model is asked for parts again or closed. Errors: those of tandem_onnx_begin and
 * of `compute`. */
enum tandem_status tnd_model_parts(tandem_onnx *model, const struct tandem_net_array *inputs, int n,
                                   const struct tandem_lower_options *how, tnd_part_fn *compute,
                                   void *user, tandem_lowered **out_last,
                                   struct tandem_error *error);

#endif
