/* SPDX-License-Identifier: MIT
 * Reference executor: every operation in double precision on one thread, written to be read, not to
 * be fast. All kernels are compared with it, so it follows the formulas of tandem/ops.h and nothing
 * else. */
#include "ggml-like/eval_ref.h"

#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_type.h"

char *tnd_ref_at(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    TND_ASSERT(0 <= i0 && i0 <= tensor->ne[0] && 0 <= i1 && i1 < tensor->ne[1] && 0 <= i2 &&
               i2 < tensor->ne[2] && 0 <= i3 && i3 < tensor->ne[3]);
    return (char *)tensor->data +
           (size_t)(i0 / tandem_type_block_values(tensor->type)) * tensor->nb[0] +
           (size_t)i1 * tensor->nb[1] + (size_t)i2 * tensor->nb[2] + (size_t)i3 * tensor->nb[3];
}

double tnd_ref_value(const struct tandem_tensor *tensor, int64_t i0, int64_t i1, int64_t i2,
                     int64_t i3)
{
    const char *at = tnd_ref_at(tensor, i0, i1, i2, i3);
    float value;
    if (tensor->type == TANDEM_TYPE_F32) {
        memcpy(&value, at, sizeof(value));
        return value;
    }
    if (tensor->type == TANDEM_TYPE_I32) {
        int32_t integer;
        memcpy(&integer, at, sizeof(integer));
        return integer;
    }
    TND_ASSERT(tandem_type_block_values(tensor->type) == 1);
    tnd_type_traits(tensor->type)->dequantize(at, &value, 1);
    return value;
}

/* ---- nodes and graphs ---- */

static enum tandem_status operands_check(const struct tandem_tensor *node,
                                         struct tandem_error *error)
{
    bool is_complete = node->data != NULL;
    for (int i = 0; i < node->n_src; i++) {
        is_complete = is_complete && node->src[i]->data != NULL;
    }
    if (!is_complete) {
        return tnd_error_set(error, TANDEM_E_STATE, node->name, 0, 0,
                             "%s: the node or one of its operands has no memory",
                             tandem_op_name(node->op));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_ref_nothing(struct tandem_tensor *node, struct tandem_error *error)
{
    (void)node;
    (void)error;
    return TANDEM_OK;
}

enum tandem_status tnd_eval_ref_node(struct tandem_tensor *node, struct tandem_error *error)
{
#define FAMILY(family) [TND_OP_##family] = tnd_ref_##family,
    static enum tandem_status (*const families[])(struct tandem_tensor *, struct tandem_error *) = {
        TANDEM_OP_FAMILIES(FAMILY)};
#undef FAMILY
    const enum tnd_op_family family = tnd_op_traits(node->op)->family;
    if (family != TND_OP_nothing) {
        TND_TRY(operands_check(node, error));
    }
    return families[family](node, error);
}

enum tandem_status tnd_eval_ref_graph(struct tandem_graph *graph, struct tandem_error *error)
{
    if (!graph->finished) {
        return tnd_error_set(error, TANDEM_E_STATE, "graph", 0, 0, "graph: it is not finished");
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        TND_TRY(tnd_eval_ref_node(graph->nodes[i], error));
    }
    return TANDEM_OK;
}
