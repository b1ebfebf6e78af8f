/* SPDX-License-Identifier: MIT
 * ONNX models for the tools: computed part by part (tandem_onnx_begin), for given inputs or for
 * values that are made up. */
#ifndef TND_MODEL_PARTS_H
#define TND_MODEL_PARTS_H

#include "formats/onnx_public.h"
#include "tandem/runtime.h"

/** Values for all inputs of a model. */
struct tnd_model_inputs {
    int n;
    struct tandem_net_array *arrays; /* values and list are owned, names belong to the model */
};

/** Makes values up: floats of 32 bits from -1 to 1, everything else, which may be indices, 0. The
 *  caller owes tnd_model_inputs_fini, also after an error. Errors: those of tnd_onnx_input_shape,
 *  MEMORY. */
enum tandem_status tnd_model_inputs_make(const tandem_onnx *model,
                                         const struct tandem_onnx_dim *dims, int n_dims,
                                         struct tnd_model_inputs *out, struct tandem_error *error);
void tnd_model_inputs_fini(struct tnd_model_inputs *inputs);

/** Computes a part; where it is the last one, nobody needs its results. */
typedef enum tandem_status tnd_part_fn(void *user, tandem_lowered *part, bool is_last,
                                       struct tandem_error *error);

/** Has each part of a model computed; *out_last, which may be NULL, gets the last one, which lives
 *  until the model is asked for parts again or closed. Errors: those of tandem_onnx_begin and of
 *  `compute`. */
enum tandem_status tnd_model_parts(tandem_onnx *model, const struct tandem_net_array *inputs, int n,
                                   const struct tandem_lower_options *how, tnd_part_fn *compute,
                                   void *user, tandem_lowered **out_last,
                                   struct tandem_error *error);

#endif
