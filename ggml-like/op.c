/* SPDX-License-Identifier: MIT
 * Names and properties of operations, generated from op-list.h. */
#include "ggml-like/tnd_tensor.h"

struct op_row {
    const char *name;
    bool is_view;
};

static const struct op_row op_rows[TANDEM_OP_COUNT] = {
#define OP_ROW(name, text, operands, is_view) [TANDEM_OP_##name] = {text, is_view},
    TANDEM_OP_LIST(OP_ROW)
#undef OP_ROW
};

static bool op_is_known(enum tandem_op op)
{
    return (unsigned int)op < TANDEM_OP_COUNT;
}

const char *tandem_op_name(enum tandem_op op)
{
    return op_is_known(op) ? op_rows[op].name : "unknown";
}

enum tandem_op tandem_tensor_op(const tandem_tensor *tensor)
{
    return tensor == NULL ? TANDEM_OP_NONE : tensor->op;
}

const char *tandem_tensor_op_name(const tandem_tensor *tensor)
{
    return tandem_op_name(tandem_tensor_op(tensor));
}

bool tnd_op_is_view(enum tandem_op op)
{
    return op_is_known(op) && op_rows[op].is_view;
}

bool tnd_op_may_run_in_place(enum tandem_op op)
{
    return op >= TANDEM_OP_ADD && op <= TANDEM_OP_RELU; /* element by element, see op-list.h */
}
