/* SPDX-License-Identifier: MIT
 * Operations of nets: builder and reference. */
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"
#include "ggml-like/work.h"

tandem_tensor *tnd_build_work(tandem_context *context, enum tandem_op op, int64_t n_values,
                              tandem_tensor *const *src, int n_src, struct tnd_work *work)
{
    int64_t extents[TANDEM_MAX_DIMS];
    TND_ASSERT(tnd_op_traits(op)->family == TND_OP_work && n_src >= 1 && n_src <= TANDEM_MAX_SRC);
    if (context == NULL || context->error.status != TANDEM_OK) {
        return NULL;
    }
    for (int i = 0; i < n_src; i++) {
        if (!tnd_build_ready(context, op, "an operand", src[i])) {
            return NULL;
        }
    }
    if (!tnd_build_extents(context, tandem_op_name(op), TANDEM_TYPE_F32, 1, &n_values, extents)) {
        return NULL;
    }
    tandem_tensor *node = tnd_build_node(context, op, TANDEM_TYPE_F32, extents, src[0], NULL);
    if (node != NULL) {
        for (int i = 0; i < n_src; i++) {
            node->src[i] = src[i];
        }
        node->n_src = n_src;
        node->params.work = work;
    }
    return node;
}

struct tnd_reference_work tnd_graph_reference_work(const struct tandem_graph *graph)
{
    struct tnd_reference_work found = {.n = 0};
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        const struct tnd_work *work = tnd_work_of(node);
        const double values = work != NULL ? work->reference_values : 0;
        if (values > 0) {
            found.n++;
            found.n_hot += values >= TND_REFERENCE_HOT;
            if (found.most == NULL || values > found.most->params.work->reference_values) {
                found.most = node;
            }
        }
    }
    return found;
}

enum tandem_status tnd_ref_work(struct tandem_tensor *node, struct tandem_error *error)
{
    const struct tnd_work *work = node->params.work;
    const enum tandem_status status = work->run(work, node, 0, work->n_items);
    if (status != TANDEM_OK) {
        return tnd_error_set(error, status, node->name, 0, 0, "%s: %s", tandem_op_name(node->op),
                             tandem_status_name(status));
    }
    return TANDEM_OK;
}
