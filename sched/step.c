/* SPDX-License-Identifier: MIT
 * Memory of steps: counted before a plan is unfolded, kept for the next one. Start at
 * tnd_steps_renew. */
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/unfold.h"

enum tandem_status tnd_steps_reserve(struct tnd_steps *out, int capacity,
                                     struct tandem_error *error)
{
    if (capacity <= out->capacity) {
        return TANDEM_OK;
    }
    TND_ASSERT(out->n_steps <= out->capacity && out->n_groups <= out->capacity);
    size_t before = (size_t)out->capacity;
    size_t n = (size_t)capacity + (size_t)capacity / 2;
    if (n > INT32_MAX - 1) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "plan", capacity, INT32_MAX - 1,
                             "plan: too many steps");
    }
    struct tnd_step *steps = tnd_realloc(out->steps, before * sizeof(*steps), n * sizeof(*steps));
    out->steps = steps != NULL ? steps : out->steps;
    struct tnd_group *groups =
        steps == NULL ? NULL
                      : tnd_realloc(out->groups, before * sizeof(*groups), n * sizeof(*groups));
    if (groups == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", capacity, 0,
                             "plan: out of memory for %d steps", capacity);
    }
    out->groups = groups;
    out->capacity = (int)n;
    return TANDEM_OK;
}

static enum tandem_status count_steps(const struct tandem_graph *graph,
                                      const struct tandem_plan *plan, int *out_count,
                                      uint32_t *out_slots, struct tandem_error *error)
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
    int64_t count = 0;
    uint32_t slots = 0;
    for (int i = 0; i < plan->n_nodes; i++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            unsigned slot = plan->nodes[i].stage[s].backend;
            count += slot != TANDEM_BACKEND_NONE;
            slots |= UINT32_C(1) << slot % 32; /* slots that do not exist are refused later */
        }
    }
    if (count > INT32_MAX - 1) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "plan", count, INT32_MAX - 1,
                             "plan: too many steps");
    }
    *out_count = (int)count;
    *out_slots = slots;
    return TANDEM_OK;
}

static enum tandem_status reserve_fused(struct tnd_steps *steps, int n_nodes,
                                        struct tandem_error *error)
{
    if (n_nodes <= steps->fused_capacity) {
        return TANDEM_OK;
    }
    size_t n = (size_t)n_nodes + (size_t)n_nodes / 2;
    TND_ASSERT(steps->fused_capacity >= 0);
    size_t before = (size_t)steps->fused_capacity;
    struct tnd_fused *fused =
        tnd_realloc(steps->fused, before * sizeof(*fused), n * sizeof(*fused));
    if (fused == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", n_nodes, 0,
                             "plan: out of memory for %d nodes", n_nodes);
    }
    steps->fused = fused;
    steps->fused_capacity = (int)n;
    return TANDEM_OK;
}

/* Takes the residency up when a device with memory of its own takes part, or holds a state. */
static enum tandem_status renew_residency(const struct tandem_graph *graph,
                                          struct tnd_mirrors *mirrors, struct tnd_steps *steps,
                                          struct tandem_error *error)
{
    uint32_t slots = mirrors != NULL ? tnd_mirrors_state_slots(mirrors) : 0;
    steps->residency = NULL;
    if ((steps->device_slots | slots) == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tnd_residency_renew(graph, steps->device_slots, mirrors, &steps->spare, error));
    steps->residency = steps->spare;
    return TANDEM_OK;
}

/* ---- steps that are kept ---- */

static struct tnd_steps_kept kept_now(const struct tandem_graph *graph,
                                      const struct tnd_registry *registry, uint32_t execution)
{
    return (struct tnd_steps_kept){
        .graph = graph->serial,
        .role_changes = tnd_role_changes(),
        .execution = execution,
        .quarantined = tnd_registry_quarantined(registry),
        .n_slots = tnd_registry_count(registry),
    };
}

/* Whether steps are what unfolding would give again. The plan is compared as a whole: programs may
 * change it in place. What devices hold is not compared: with them steps are unfolded each time. */
static bool is_kept(const struct tnd_steps *steps, const struct tandem_graph *graph,
                    const struct tandem_plan *plan, const struct tnd_registry *registry,
                    const struct tnd_mirrors *mirrors, uint32_t execution)
{
    if (steps == NULL || graph == NULL || plan == NULL || !steps->kept.is_whole ||
        plan->items != NULL || (mirrors != NULL && tnd_mirrors_state_slots(mirrors) != 0)) {
        return false;
    }
    const struct tnd_steps_kept *kept = &steps->kept;
    const struct tnd_steps_kept now = kept_now(graph, registry, execution);
    return kept->graph == now.graph && kept->role_changes == now.role_changes &&
           kept->execution == now.execution && kept->quarantined == now.quarantined &&
           kept->n_slots == now.n_slots && kept->n_nodes == plan->n_nodes &&
           memcmp(kept->nodes, plan->nodes, (size_t)plan->n_nodes * sizeof(plan->nodes[0])) == 0;
}

/* A plan is copied when its graph runs for the second time: most graphs of texts run once. Without
 * memory for the copy the next run unfolds again. */
static void keep(struct tnd_steps *steps, const struct tnd_steps_kept *now,
                 const struct tandem_plan *plan, bool is_second)
{
    struct tnd_steps_kept *kept = &steps->kept;
    struct tandem_plan_node *nodes = kept->nodes;
    int capacity = kept->capacity;
    *kept = *now;
    kept->nodes = nodes;
    kept->capacity = capacity;
    if (!is_second) {
        return;
    }
    if (capacity < plan->n_nodes) {
        size_t bytes = (size_t)plan->n_nodes * sizeof(nodes[0]);
        nodes = tnd_realloc(nodes, (size_t)capacity * sizeof(nodes[0]), bytes);
        if (nodes == NULL) {
            return;
        }
        kept->nodes = nodes;
        kept->capacity = plan->n_nodes;
    }
    memcpy(nodes, plan->nodes, (size_t)plan->n_nodes * sizeof(nodes[0]));
    kept->n_nodes = plan->n_nodes;
    kept->is_whole = true;
}

enum tandem_status tnd_steps_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_mirrors *mirrors,
                                   uint32_t execution, struct tnd_steps **io_steps,
                                   struct tandem_error *error)
{
    int count = 0;
    uint32_t slots = 0;
    if (is_kept(*io_steps, graph, plan, registry, mirrors, execution)) {
        return TANDEM_OK;
    }
    TND_TRY(count_steps(graph, plan, &count, &slots, error));
    if (*io_steps == NULL) {
        *io_steps = tnd_calloc(1, sizeof(**io_steps));
        if (*io_steps == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "plan", count, 0,
                                 "plan: out of memory for %d steps", count);
        }
    }
    struct tnd_steps *steps = *io_steps;
    const struct tnd_steps_kept now = kept_now(graph, registry, execution);
    const bool is_second = steps->kept.graph == now.graph;
    steps->kept.graph = 0;
    steps->kept.is_whole = false;
    steps->device_slots = slots & tnd_registry_own_slots(registry);
    TND_TRY(tnd_steps_reserve(steps, count, error));
    TND_TRY(reserve_fused(steps, graph->n_nodes, error));
    TND_TRY(renew_residency(graph, mirrors, steps, error));
    enum tandem_status status = tnd_unfold(graph, plan, registry, execution, steps, error);
    if (status != TANDEM_OK && steps->residency != NULL) {
        tnd_residency_release(steps->residency, false);
    }
    if (status == TANDEM_OK && steps->residency == NULL && plan->items == NULL) {
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
        tnd_free(steps->fused);
        tnd_free(steps->steps);
        tnd_free(steps->groups);
        tnd_free(steps->kept.nodes);
        tnd_free(steps);
    }
}
