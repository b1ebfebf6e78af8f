/* SPDX-License-Identifier: MIT
 * Names and properties of operations, generated from op-list.h. */
#include "base/tnd_assert.h"
#include "ggml-like/tnd_tensor.h"

static const struct tnd_op_traits op_rows[TANDEM_OP_COUNT] = {
#define OP_ROW(NAME, text, operands, family, cost, representative, splits_rows)                    \
    [TANDEM_OP_##                                                                                  \
        NAME] = {text, TND_OP_##family, TND_COST_##cost, TANDEM_OP_##representative, splits_rows},
    TANDEM_OP_LIST(OP_ROW)
#undef OP_ROW
};

static bool op_is_known(enum tandem_op op)
{
    return (unsigned int)op < TANDEM_OP_COUNT;
}

const struct tnd_op_traits *tnd_op_traits(enum tandem_op op)
{
    TND_ASSERT(op_is_known(op));
    return &op_rows[op];
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
    return op != TANDEM_OP_NONE && op_is_known(op) && op_rows[op].family == TND_OP_nothing;
}

bool tnd_op_may_run_in_place(enum tandem_op op)
{
    const enum tnd_op_family family = tnd_op_traits(op)->family;
    return family == TND_OP_unary || family == TND_OP_binary;
}

bool tnd_op_is_row_wise(enum tandem_op op)
{
    const enum tnd_op_family family = tnd_op_traits(op)->family;
    return family == TND_OP_unary || family == TND_OP_binary || family == TND_OP_norm;
}

int64_t tnd_node_values(const struct tandem_tensor *node)
{
    return tandem_tensor_elements(node->op == TANDEM_OP_SCATTER ? node->src[0] : node);
}
