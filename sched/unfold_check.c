/* SPDX-License-Identifier: MIT
 * Checks of a plan against the backends: for each stage of a node, whether the backend accepts its
 * task, and which workspace and scratch it needs. Runs for every node of every token. */
#include <stdio.h>

#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/unfold.h"

static enum tandem_status refuse(const struct tnd_unfolding *unfolding, int i, int stage,
                                 enum tandem_status status, const char *what)
{
    const struct tandem_tensor *node = unfolding->items[i].tensor;
    char reason[160];
    snprintf(reason, sizeof(reason), "%s", what);
    i = unfolding->items[i].node;
    return tnd_error_set(unfolding->error, status, node->name, i, unfolding->n_items,
                         "plan: node %d (%s) stage %s: %s", i, tandem_op_name(node->op),
                         tandem_stage_name((enum tandem_stage)stage), reason);
}

static enum tandem_status refuse_by_backend(const struct tnd_unfolding *unfolding, int i, int stage,
                                            const char *backend, enum tandem_status status,
                                            const struct tandem_error *why)
{
    char text[sizeof(why->text) + 32];
    snprintf(text, sizeof(text), "%s: %s", backend,
             why->text[0] != '\0' ? why->text : tandem_status_text(status));
    return refuse(unfolding, i, stage, status, text);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

enum tandem_status tnd_unfold_check_node(struct tnd_unfolding *unfolding, int i,
                                         size_t *out_workspace)
{
    const struct tandem_plan_node *choice = unfolding->items[i].choice;
    const struct tandem_tensor *node = unfolding->items[i].tensor;
    struct tnd_steps *out = unfolding->out;
    size_t workspace = 0;
    TND_ASSERT(i >= 0 && i < unfolding->n_items);
    if (tnd_item_is_move(&unfolding->items[i])) {
        *out_workspace = 0;
        return TANDEM_OK;
    }
    struct tandem_error why; /* only partly initialised: this runs for every node of every token */
    why.text[0] = '\0';
    if (choice->n_threads < 1) {
        return refuse(unfolding, i, TANDEM_STAGE_COMPUTE, TANDEM_E_ARGUMENT,
                      "the thread count is below 1");
    }
    if (choice->stage[TANDEM_STAGE_COMPUTE].backend == TANDEM_BACKEND_NONE) {
        return refuse(unfolding, i, TANDEM_STAGE_COMPUTE, TANDEM_E_ARGUMENT,
                      "there is no backend; every node needs one here");
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tandem_task_config *config = &choice->stage[s];
        if (config->backend == TANDEM_BACKEND_NONE) {
            continue;
        }
        tandem_backend *backend = tnd_registry_backend(unfolding->registry, config->backend);
        if (backend == NULL || config->task == TANDEM_TASK_NONE ||
            config->task >= TANDEM_TASK_COUNT) {
            return refuse(unfolding, i, s, TANDEM_E_ARGUMENT,
                          backend == NULL ? "there is no backend in this slot"
                                          : "the task does not exist");
        }
        if (s == TANDEM_STAGE_FINALIZE && tnd_unfold_fetches(unfolding, i, config->backend)) {
            continue; /* a download, which needs no check by the backend */
        }
        enum tandem_task task = (enum tandem_task)config->task;
        enum tandem_status status =
            (unfolding->quarantined >> config->backend & 1) == 0
                ? tnd_backend_supports(backend, node, task, &why)
                : tnd_registry_supports(unfolding->registry, config->backend, node, task, &why);
        if (status != TANDEM_OK) {
            return refuse_by_backend(unfolding, i, s, backend->api->name, status, &why);
        }
        workspace = larger(workspace, tnd_backend_workspace(backend, node, task));
        out->scratch_bytes = larger(out->scratch_bytes, tnd_backend_scratch(backend, node, task));
    }
    if (!tnd_align_up(workspace, TND_ALIGNMENT, out_workspace)) {
        return refuse(unfolding, i, TANDEM_STAGE_COMPUTE, TANDEM_E_OVERFLOW,
                      "the workspace does not fit into the address space");
    }
    return TANDEM_OK;
}
