/* SPDX-License-Identifier: MIT
 * Memory of steps: sized before a plan is unfolded, reused for the next one. Start at
 * tnd_steps_renew. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/unfold.h"

static enum tandem_status check(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                struct tandem_error *error)
{
    if (graph == NULL || plan == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", 0, 0, "plan or graph is NULL");
    }
    if (!graph->finished) {
        return tnd_error_set(error, TANDEM_E_STATE, "graph", 0, 0,
                             "graph: not finished; call tandem_graph_finish first");
    }
    if (plan->n_nodes != graph->n_nodes) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", plan->n_nodes, graph->n_nodes,
                             "plan: it has %d nodes, the graph has %d", plan->n_nodes,
                             graph->n_nodes);
    }
    return TANDEM_OK;
}

/* Bit mask of the slots that stages run on. */
static uint32_t slots_of(const struct tnd_items *items)
{
    uint32_t slots = 0;
    for (int i = 0; i < items->n; i++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            /* slots that do not exist are refused later */
            slots |= UINT32_C(1) << items->list[i].choice->stage[s].backend % 32;
        }
    }
    return slots;
}

/* Sets up the residency when a device with memory of its own takes part or holds a state. */
static enum tandem_status renew_residency(const struct tandem_graph *graph,
                                          struct tnd_mirrors *mirrors, struct tnd_steps *steps,
                                          struct tandem_error *error)
{
    uint32_t slots = mirrors != NULL ? tnd_mirrors_state_slots(mirrors) : 0;
    steps->residency = NULL;
    if ((steps->device_slots | slots) == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_residency_renew(graph, &steps->items, steps->device_slots, mirrors, &steps->spare,
                                error));
    steps->residency = steps->spare;
    return TANDEM_OK;
}

/* ---- steps that are reused ---- */

static struct tnd_steps_kept kept_now(const struct tandem_graph *graph,
                                      const struct tnd_registry *registry, uint32_t execution)
{
    return (struct tnd_steps_kept){
        .graph = graph->serial,
        .role_changes = tnd_role_changes(),
        .execution = execution,
        .quarantined = tnd_registry_quarantined(registry),
        .n_slots = tnd_registry_count(registry),
        .n_nodes = graph->n_nodes,
    };
}

/* Whether unfolding would produce the same steps. The whole plan is compared: programs may change
 * it in place. What devices hold is not compared: with devices, steps are unfolded each time. */
static bool is_kept(const struct tnd_steps *steps, const struct tandem_graph *graph,
                    const struct tandem_plan *plan, const struct tnd_registry *registry,
                    const struct tnd_mirrors *mirrors, uint32_t execution)
{
    if (steps == NULL || graph == NULL || plan == NULL || !steps->kept.is_whole ||
        tnd_plan_is_scheduled(plan) || (mirrors != NULL && tnd_mirrors_state_slots(mirrors) != 0)) {
        return false;
    }
    const struct tnd_steps_kept *kept = &steps->kept;
    const struct tnd_steps_kept now = kept_now(graph, registry, execution);
    return kept->graph == now.graph && kept->role_changes == now.role_changes &&
           kept->execution == now.execution && kept->quarantined == now.quarantined &&
           kept->n_slots == now.n_slots && kept->n_nodes == plan->n_nodes &&
           memcmp(steps->kept_nodes, plan->nodes, (size_t)plan->n_nodes * sizeof(plan->nodes[0])) ==
               0;
}

/* The plan is copied when its graph runs for the second time: most graphs of prompts run once. If
 * the copy cannot be allocated, the next run unfolds again. */
static void keep(struct tnd_steps *steps, const struct tnd_steps_kept *now,
                 const struct tandem_plan *plan, bool is_second)
{
    const size_t bytes = (size_t)plan->n_nodes * sizeof(plan->nodes[0]);
    steps->kept = *now;
    steps->kept.is_whole = is_second && tnd_reserve(&steps->kept_nodes, &steps->kept_bytes, bytes);
    if (steps->kept.is_whole) {
        memcpy(steps->kept_nodes, plan->nodes, bytes);
    }
}

enum tandem_status tnd_steps_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_mirrors *mirrors,
                                   uint32_t execution, struct tnd_steps **io_steps,
                                   struct tandem_error *error)
{
    if (is_kept(*io_steps, graph, plan, registry, mirrors, execution)) {
        return TANDEM_OK;
    }
    TND_TRY(check(graph, plan, error));
    if (*io_steps == NULL) {
        *io_steps = tnd_calloc(1, sizeof(**io_steps));
        if (*io_steps == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "plan", plan->n_nodes, 0,
                                 "plan: out of memory for the steps of %d nodes", plan->n_nodes);
        }
    }
    struct tnd_steps *steps = *io_steps;
    const struct tnd_steps_kept now = kept_now(graph, registry, execution);
    const bool is_second = steps->kept.graph == now.graph;
    steps->kept.graph = 0;
    steps->kept.is_whole = false;
    TND_TRY(tnd_items_renew(graph, plan, registry, mirrors, &steps->items, error));
    steps->device_slots = slots_of(&steps->items) & tnd_registry_own_slots(registry);
    TND_TRY(renew_residency(graph, mirrors, steps, error));
    enum tandem_status status = tnd_unfold(graph, registry, execution, steps, error);
    if (status != TANDEM_OK && steps->residency != NULL) {
        tnd_residency_release(steps->residency, false);
    }
    if (status == TANDEM_OK && steps->residency == NULL && !tnd_plan_is_scheduled(plan)) {
        keep(steps, &now, plan, is_second);
    }
    return status;
}

enum tandem_status tnd_steps_new(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                 const struct tnd_registry *registry, struct tnd_steps **out_steps,
                                 struct tandem_error *error)
{
    struct tnd_steps *steps = NULL;
    enum tandem_status status =
        tnd_steps_renew(graph, plan, registry, NULL, TANDEM_EXECUTE_DEFAULT, &steps, error);
    if (status != TANDEM_OK) {
        tnd_steps_free(steps);
        return status;
    }
    *out_steps = steps;
    return TANDEM_OK;
}

void tnd_steps_free(struct tnd_steps *steps)
{
    if (steps != NULL) {
        tnd_residency_free(steps->spare);
        tnd_free(steps->items.memory);
        tnd_free(steps->steps);
        tnd_free(steps->groups);
        tnd_free(steps->kept_nodes);
        tnd_free(steps);
    }
}
