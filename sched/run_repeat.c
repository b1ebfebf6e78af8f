/* SPDX-License-Identifier: MIT
 * Whether a graph may be run again after its run failed half-way. Only used after failures. */
#include "sched/run.h"

/* Bytes of a leaf that the node writes. */
static bool leaf_bytes(const struct tnd_run *run, const struct tandem_tensor *tensor,
                       uintptr_t *out_begin, uintptr_t *out_end)
{
    const struct tandem_tensor *root = tensor->root;
    if (root->plan_offset >= 0 || tnd_graph_computes(run->graph, root)) {
        return false;
    }
    *out_begin = (uintptr_t)root->data + tensor->root_offset;
    *out_end = *out_begin + tandem_tensor_bytes(tensor);
    return true;
}

/* Whether an item up to `last` reads any of the bytes. */
static bool is_read(const struct tnd_run *run, int last, uintptr_t begin, uintptr_t end)
{
    for (int i = 0; i <= last; i++) {
        const struct tandem_tensor *node = run->steps->items.list[i].tensor;
        int n_read = node->op == TANDEM_OP_CPY ? 1 : node->n_src;
        for (int j = 0; j < n_read; j++) {
            uintptr_t from = 0;
            uintptr_t to = 0;
            if (node->src[j] != NULL && leaf_bytes(run, node->src[j], &from, &to) && from < end &&
                begin < to) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the step may have changed host memory of a leaf. */
static bool overwrites(const struct tnd_step *step)
{
    if (step->kind == TND_STEP_DOWNLOAD) {
        return step->moved.space == TND_SPACE_MEMORY;
    }
    return step->kind == TND_STEP_WORK && !step->on_device;
}

bool tnd_run_can_repeat(const struct tnd_run *run, int *out_node)
{
    const struct tnd_steps *steps = run->steps;
    bool downloads_leaf = run->has_collected;
    for (int i = 0; i < run->n_begun; i++) {
        downloads_leaf = downloads_leaf || (steps->steps[i].kind == TND_STEP_DOWNLOAD &&
                                            overwrites(&steps->steps[i]));
    }
    for (int i = 0; i < steps->n_steps; i++) {
        const struct tnd_step *step = &steps->steps[i];
        bool may_have = step->on_device ? downloads_leaf : i < run->n_begun && overwrites(step);
        const struct tandem_tensor *node = tnd_run_item_of(run, step)->tensor;
        uintptr_t begin = 0;
        uintptr_t end = 0;
        const bool is_function =
            run->graph->runs_once && node->op == TANDEM_OP_CUSTOM && i < run->n_begun;
        if (step->kind == TND_STEP_WORK && is_function) {
            *out_node = tnd_run_item_of(run, step)->node;
            return false;
        }
        if (step->kind == TND_STEP_WORK && may_have && leaf_bytes(run, node, &begin, &end) &&
            is_read(run, step->item, begin, end)) {
            *out_node = tnd_run_item_of(run, step)->node;
            return false;
        }
    }
    return true;
}
