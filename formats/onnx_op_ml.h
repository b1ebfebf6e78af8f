/* SPDX-License-Identifier: MIT
 * Shared by the operators of the domain ai.onnx.ml. */
#ifndef TND_ONNX_OP_ML_H
#define TND_ONNX_OP_ML_H

#include "formats/onnx_op.h"

/** A float32 constant. */
int tnd_onnx_ml_floats(struct tnd_onnx_call *call, const float *values,
                       const struct tnd_dims *shape);
/** The first operand as {N, features} of a type; a 1-dimensional one is one row. */
int tnd_onnx_ml_rows(struct tnd_onnx_call *call, enum tandem_dtype type);
/** Applies a post_transform to scores {N, classes}: NONE, LOGISTIC or SOFTMAX. */
int tnd_onnx_ml_transformed(struct tnd_onnx_call *call, int scores, const char *how);
/** A constant of the integer labels in attribute `ints`; text labels (`texts`) are refused. */
int tnd_onnx_ml_labels(struct tnd_onnx_call *call, const char *ints, const char *texts, int *n);
/** {N}: the label of each row's highest score, the first of equal ones. */
int tnd_onnx_ml_label_of(struct tnd_onnx_call *call, int labels, int scores);

#endif
