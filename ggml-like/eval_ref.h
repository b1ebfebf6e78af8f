/* SPDX-License-Identifier: MIT
 * Parts of the reference executor, one file a family of operations; see eval_ref.c. */
#ifndef TND_EVAL_REF_H
#define TND_EVAL_REF_H

#include "ggml-like/tnd_tensor.h"

/** Value at four indices as a double, whatever the type (not quantised) and the strides. */
double tnd_ref_value(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3);

/** Address of a value or, in a quantised type, of the block that begins at i0. */
char *tnd_ref_at(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2,
                 int64_t i3);

/* One function a family of operations; operands and node have data. Errors as tnd_eval_ref_node. */
enum tandem_status tnd_ref_get_rows(struct tandem_tensor *node, struct tandem_error *error);
enum tandem_status tnd_ref_mul_mat(struct tandem_tensor *node, struct tandem_error *error);
enum tandem_status tnd_ref_elementwise(struct tandem_tensor *node, struct tandem_error *error);
enum tandem_status tnd_ref_rows(struct tandem_tensor *node, struct tandem_error *error);
enum tandem_status tnd_ref_layout(struct tandem_tensor *node, struct tandem_error *error);
enum tandem_status tnd_ref_attention(struct tandem_tensor *node, struct tandem_error *error);

#endif
