/* SPDX-License-Identifier: MIT
 * Names and properties of operations, generated from op-list.h. */
#include "base/tnd_assert.h"
#include "ggml-like/conv_int8.h"
#include "ggml-like/tnd_tensor.h"
#include "ggml-like/work.h"

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
    const struct tnd_work *work = tnd_work_of(node);
    if (work != NULL) {
        return work->amount < (double)INT64_MAX ? (int64_t)work->amount : INT64_MAX;
    }
    const bool reads_more = node->op == TANDEM_OP_SCATTER || node->op == TANDEM_OP_SAMPLE;
    return tandem_tensor_elements(reads_more ? node->src[0] : node);
}

double tnd_node_work(const struct tandem_tensor *node)
{
    const double values = (double)tnd_node_values(node);
    if (node->op == TANDEM_OP_CONV_INT8 || node->op == TANDEM_OP_PRODUCT_INT8) {
        const struct tnd_conv_int8 *conv = node->params.conv_int8;
        return (double)tnd_int8_places(conv) * (double)conv->filters * (double)tnd_int8_k(conv);
    }
    switch (tnd_op_traits(node->op)->cost) {
    case TND_COST_PRODUCT:
        return values * (double)node->src[0]->ne[0];
    case TND_COST_ATTENTION: /* two products with T keys */
        return values * 2.0 * (double)node->src[1]->ne[1];
    default:
        return values;
    }
}
