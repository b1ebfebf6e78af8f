/* SPDX-License-Identifier: MIT
 * Helpers that the formulas of the reference executor share; see eval_ref.c. */
#ifndef TND_EVAL_REF_H
#define TND_EVAL_REF_H

#include "ggml-like/tnd_tensor.h"

/** Value at four indices as a double, for any strides and any type that is not quantised. */
double tnd_ref_value(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3);

/** Address of a value or, if the type is quantised, of the block that begins at i0. */
char *tnd_ref_at(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2,
                 int64_t i3);

/* One function per family of operations, next to its builders in op_*.c; operands and node have
 * data. Errors: as tnd_eval_ref_node. */
#define TND_REF_FUNCTION(family)                                                                   \
    enum tandem_status tnd_ref_##family(struct tandem_tensor *node, struct tandem_error *error);
TANDEM_OP_FAMILIES(TND_REF_FUNCTION)
#undef TND_REF_FUNCTION

#endif
