/* SPDX-License-Identifier: MIT
 * Chains of row-wise nodes: every row passes through all of them while it is in the L1 cache, with
 * the same kernels as separate nodes. Results that nothing else reads are never stored: the memory
 * of the last result serves as a buffer for them. */
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"

/* Whether a node is element-wise, without row operations: long rows can be cut. */
static bool is_cuttable(const struct tandem_tensor *node)
{
    if (node->op == TANDEM_OP_RMS_NORM || node->op == TANDEM_OP_NORM ||
        !tandem_tensor_is_contiguous(node)) {
        return false;
    }
    for (int i = 0; i < node->n_src; i++) {
        if (!tandem_tensor_is_contiguous(node->src[i]) ||
            tandem_tensor_elements(node->src[i]) != tandem_tensor_elements(node)) {
            return false;
        }
    }
    return true;
}

bool tnd_cpu_fuses(const struct tandem_tensor *const *nodes, int n_nodes)
{
    for (int i = 0; i < n_nodes; i++) {
        if (!tnd_op_is_row_wise(nodes[i]->op)) {
            return false;
        }
        for (int d = 0; d < TANDEM_MAX_DIMS; d++) {
            if (nodes[i]->ne[d] != nodes[0]->ne[d]) {
                return false;
            }
        }
    }
    return nodes[0]->ne[0] > 0;
}

/* A work item: a row, or a span of all values. */
struct unit {
    bool is_span;
    int64_t index; /* of the row or span */
    int64_t n;     /* values */
};

/* The unit's part of an operand, which may be repeated along all dimensions but the first. */
static float *part_of(const struct tandem_tensor *tensor, const struct tandem_tensor *node,
                      const struct unit *unit)
{
    if (unit->is_span) {
        return (float *)tensor->data + unit->index * TND_CPU_SPAN;
    }
    struct tnd_row row = tnd_row_of(node, unit->index);
    return tnd_row_f32(tensor, (struct tnd_row){row.i1 % tensor->ne[1], row.i2 % tensor->ne[2],
                                                row.i3 % tensor->ne[3]});
}

static void run_unit(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                     const struct unit *unit)
{
    float *last = part_of(work->node, work->node, unit);
    const float *before = NULL; /* result of the previous node */
    for (int i = 0; i < work->n_nodes; i++) {
        const struct tandem_tensor *node = work->nodes[i];
        const struct tandem_tensor *linked = i > 0 ? work->nodes[i - 1] : NULL;
        const float *src[2] = {NULL, NULL};
        for (int s = 0; s < node->n_src; s++) {
            src[s] = node->src[s] == linked ? before : part_of(node->src[s], node, unit);
        }
        float *y = (work->unread >> i & 1) != 0 ? last : part_of(node, node, unit);
        TND_ASSERT(src[0] != NULL && (node->n_src < 2 || src[1] != NULL));
        if (tnd_op_traits(node->op)->family == TND_OP_norm) {
            tnd_cpu_norm_row(kernels, node, src[0], y, unit->n);
        } else if (node->n_src == 2) {
            int64_t b_values = unit->is_span ? unit->n : node->src[1]->ne[0];
            tnd_cpu_binary_row(kernels, node->op, src[0], src[1], b_values, y, unit->n);
        } else {
            tnd_cpu_unary_row(kernels, node, src[0], y, unit->n);
        }
        before = y;
    }
}

void tnd_cpu_fused(const struct tnd_cpu_kernels *kernels, const struct tandem_work *work,
                   struct tandem_worker *worker)
{
    const struct tandem_tensor *node = work->node;
    /* a short row is one unit either way, so tiny nodes skip the checks, which would take longer
     * than the node */
    struct unit unit = {.is_span = tnd_tensor_rows(node) > 1 || node->ne[0] > TND_CPU_SPAN};
    TND_ASSERT(work->n_nodes > 0 && work->nodes[work->n_nodes - 1] == node);
    for (int i = 0; i < work->n_nodes && unit.is_span; i++) {
        unit.is_span = unit.is_span && is_cuttable(work->nodes[i]);
    }
    int64_t n_values = tandem_tensor_elements(node);
    int64_t width = unit.is_span ? TND_CPU_SPAN : node->ne[0];
    int64_t n_units = (n_values + width - 1) / width;
    int64_t chunk = tnd_rows_chunk(n_units, width, worker->count);
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_units, chunk, &begin, &end)) {
        for (unit.index = begin; unit.index < end; unit.index++) {
            int64_t left = n_values - unit.index * width;
            unit.n = left < width ? left : width;
            run_unit(kernels, work, &unit);
        }
    }
}
