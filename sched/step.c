/* SPDX-License-Identifier: MIT
 * Unfolds a plan into steps and groups. One walk over the nodes; devices in flight are kept in a
 * short list and compared with each later node by the memory that both touch. Runs for every
 * token: no allocation when the memory of last time is large enough. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "sched/plan.h"

/* Bytes that a tensor's root occupies: either in the graph's shared buffer or somewhere in
 * memory. */
struct range {
    bool is_planned;
    uintptr_t begin, end;
};

/* A device step that has not been synced yet. */
struct flight {
    int step;
    const struct tandem_tensor *node;
    size_t workspace_begin, workspace_end;
};

struct unfolding {
    const struct tandem_graph *graph;
    const struct tandem_plan *plan;
    const struct tnd_registry *registry;
    struct tandem_error *error;
    struct tnd_steps *out;
    bool must_break; /* the next step opens a group, since devices are synced before it */
    struct flight flights[TND_MAX_IN_FLIGHT];
    int n_flights;
};

/* ---- memory that nodes touch ---- */

static struct range range_of(const struct tandem_tensor *tensor)
{
    const struct tandem_tensor *root = tensor->root;
    struct range range;
    range.is_planned = root->plan_offset >= 0;
    range.begin = range.is_planned ? (uintptr_t)root->plan_offset : (uintptr_t)root->data;
    range.end = range.begin + tandem_tensor_bytes(root);
    return range;
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->is_planned == b->is_planned && a->begin < b->end && b->begin < a->end;
}

static bool touches(const struct tandem_tensor *reader, const struct range *written)
{
    for (int i = 0; i < reader->n_src; i++) {
        struct range read = range_of(reader->src[i]);
        if (overlap(&read, written)) {
            return true;
        }
    }
    return false;
}

/* Whether the nodes must not run at the same time. A node always conflicts with itself. */
static bool conflict(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    if (a == b) {
        return true;
    }
    struct range written_a = range_of(a);
    struct range written_b = range_of(b);
    return overlap(&written_a, &written_b) || touches(a, &written_b) || touches(b, &written_a);
}

/* ---- devices in flight ---- */

static int last_group(const struct tnd_steps *out)
{
    return out->n_groups - 1;
}

/* Devices that stand in the way of `node` (NULL: all of them) are synced before the next group. */
static void settle(struct unfolding *unfolding, const struct tandem_tensor *node)
{
    int n_kept = 0;
    for (int i = 0; i < unfolding->n_flights; i++) {
        struct flight *flight = &unfolding->flights[i];
        if (node == NULL || conflict(node, flight->node)) {
            unfolding->out->steps[flight->step].until = last_group(unfolding->out) + 1;
            unfolding->must_break = true;
        } else {
            unfolding->flights[n_kept++] = *flight;
        }
    }
    unfolding->n_flights = n_kept;
}

/* First offset at which `bytes` of workspace touch no region that a device still uses. */
static enum tandem_status place_workspace(struct unfolding *unfolding, size_t bytes,
                                          size_t *out_offset)
{
    size_t offset = 0;
    size_t end = bytes;
    for (int i = 0; i < unfolding->n_flights && bytes > 0; i++) {
        const struct flight *flight = &unfolding->flights[i];
        if (offset < flight->workspace_end && flight->workspace_begin < end) {
            offset = flight->workspace_end;
            if (!tnd_add_size(offset, bytes, &end)) {
                return tnd_error_set(unfolding->error, TANDEM_E_OVERFLOW, "plan", 0, 0,
                                     "plan: the workspace does not fit into the address space");
            }
            i = -1; /* moved: look at all of them again; offset only grows, so this ends */
        }
    }
    if (end > unfolding->out->workspace_bytes) {
        unfolding->out->workspace_bytes = end;
    }
    *out_offset = offset;
    return TANDEM_OK;
}

/* ---- groups ---- */

static void open_group(struct tnd_steps *out, int n_workers)
{
    struct tnd_group *group = &out->groups[out->n_groups++];
    group->first_step = out->n_steps;
    group->n_steps = 0;
    group->n_workers = n_workers > 1 ? n_workers : 1;
    group->wait_after = false;
}

static void add_step(struct unfolding *unfolding, struct tnd_step *step)
{
    struct tnd_steps *out = unfolding->out;
    bool folds = out->n_groups > 0 && !unfolding->must_break && step->n_workers <= 1 &&
                 out->groups[last_group(out)].n_workers == 1;
    if (!folds) {
        open_group(out, step->n_workers);
        unfolding->must_break = false;
    }
    step->group = last_group(out);
    step->until = step->group + 1;
    out->groups[step->group].n_steps++;
    if (step->n_workers > out->n_workers) {
        out->n_workers = step->n_workers;
    }
    if (step->n_workers == 0) {
        struct flight *flight = &unfolding->flights[unfolding->n_flights++];
        flight->step = out->n_steps;
        flight->node = unfolding->graph->nodes[step->node];
        flight->workspace_begin = step->workspace_offset;
        flight->workspace_end = step->workspace_offset + step->workspace_bytes;
    }
    out->steps[out->n_steps++] = *step;
}

/* Workers sleep in the gap behind a parallel group when a stage in the gap asks for it. */
static void find_waits(struct tnd_steps *out)
{
    bool wait = false;
    for (int g = out->n_groups - 1; g >= 0; g--) {
        struct tnd_group *group = &out->groups[g];
        group->wait_after = wait;
        if (group->n_workers > 1) {
            wait = false;
            continue;
        }
        for (int i = 0; i < group->n_steps; i++) {
            wait = wait || out->steps[group->first_step + i].wait;
        }
    }
}

/* ---- nodes ---- */

static enum tandem_status refuse(const struct unfolding *unfolding, int i, int stage,
                                 enum tandem_status status, const char *what)
{
    const struct tandem_tensor *node = unfolding->graph->nodes[i];
    char reason[160];
    snprintf(reason, sizeof(reason), "%s", what);
    return tnd_error_set(unfolding->error, status, node->name, i, unfolding->graph->n_nodes,
                         "plan: node %d (%s) stage %s: %s", i, tandem_op_name(node->op),
                         tandem_stage_name((enum tandem_stage)stage), reason);
}

static enum tandem_status refuse_by_backend(const struct unfolding *unfolding, int i, int stage,
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

/* Asks the backends of one node; bytes of workspace that its stages share. */
static enum tandem_status check_node(struct unfolding *unfolding, int i, size_t *out_workspace)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
    const struct tandem_tensor *node = unfolding->graph->nodes[i];
    struct tnd_steps *out = unfolding->out;
    size_t workspace = 0;
    struct tandem_error
        why; /* not initialised as a whole: this runs for every node of every token */
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
        enum tandem_task task = (enum tandem_task)config->task;
        enum tandem_status status = tnd_backend_supports(backend, node, task, &why);
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

static enum tandem_status unfold_node(struct unfolding *unfolding, int i)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
    const struct tandem_tensor *node = unfolding->graph->nodes[i];
    size_t workspace_bytes = 0;
    size_t workspace_offset = 0;
    TND_TRY(check_node(unfolding, i, &workspace_bytes));
    settle(unfolding, node);
    TND_TRY(place_workspace(unfolding, workspace_bytes, &workspace_offset));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tandem_task_config *config = &choice->stage[s];
        if (config->backend == TANDEM_BACKEND_NONE) {
            continue;
        }
        bool is_async =
            tnd_backend_is_async(tnd_registry_backend(unfolding->registry, config->backend));
        bool is_full = is_async && unfolding->n_flights == TND_MAX_IN_FLIGHT;
        settle(unfolding,
               is_full ? NULL : node); /* an earlier stage of the node may be in flight */
        struct tnd_step step = {
            .node = i,
            .stage = (uint8_t)s,
            .task = config->task,
            .backend = config->backend,
            .wait = config->wait,
            .n_workers = is_async           ? 0
                         : config->parallel ? choice->n_threads
                                            : 1,
            .own_threads = config->own_threads ? choice->n_threads : 1,
            .row_begin = 0,
            .row_end = node->op == TANDEM_OP_MUL_MAT ? node->ne[0] : tnd_tensor_rows(node),
            .workspace_offset = workspace_offset,
            .workspace_bytes = workspace_bytes,
        };
        add_step(unfolding, &step);
    }
    return TANDEM_OK;
}

static enum tandem_status unfold(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                 const struct tnd_registry *registry, struct tnd_steps *out,
                                 struct tandem_error *error)
{
    struct unfolding unfolding;
    unfolding.graph = graph;
    unfolding.plan = plan;
    unfolding.registry = registry;
    unfolding.error = error;
    unfolding.out = out;
    unfolding.must_break = false;
    unfolding.n_flights = 0;
    out->n_steps = 0;
    out->n_groups = 0;
    out->n_workers = 1;
    out->workspace_bytes = 0;
    out->scratch_bytes = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        TND_TRY(unfold_node(&unfolding, i));
    }
    settle(&unfolding, NULL);
    find_waits(out);
    return TANDEM_OK;
}

/* ---- memory ---- */

static enum tandem_status count_steps(const struct tandem_graph *graph,
                                      const struct tandem_plan *plan, int *out_count,
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
    int64_t count = 0;
    for (int i = 0; i < plan->n_nodes; i++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            count += plan->nodes[i].stage[s].backend != TANDEM_BACKEND_NONE;
        }
    }
    if (count > INT32_MAX - 1) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "plan", count, INT32_MAX - 1,
                             "plan: too many steps");
    }
    *out_count = (int)count;
    return TANDEM_OK;
}

/* Struct, steps and groups in one piece. */
static struct tnd_steps *alloc_steps(int capacity)
{
    size_t n = (size_t)capacity;
    struct tnd_steps *steps =
        tnd_alloc(sizeof(*steps) + n * (sizeof(struct tnd_step) + sizeof(struct tnd_group)));
    if (steps != NULL) {
        memset(steps, 0, sizeof(*steps));
        steps->steps = (struct tnd_step *)(steps + 1);
        steps->groups = (struct tnd_group *)(steps->steps + n);
        steps->capacity = capacity;
    }
    return steps;
}

enum tandem_status tnd_steps_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_steps **io_steps,
                                   struct tandem_error *error)
{
    int count = 0;
    TND_TRY(count_steps(graph, plan, &count, error));
    if (*io_steps == NULL || (*io_steps)->capacity < count) {
        struct tnd_steps *steps = alloc_steps(count);
        if (steps == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "plan", count, 0,
                                 "plan: out of memory for %d steps", count);
        }
        tnd_free(*io_steps);
        *io_steps = steps;
    }
    return unfold(graph, plan, registry, *io_steps, error);
}

enum tandem_status tnd_steps_new(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                 const struct tnd_registry *registry, struct tnd_steps **out_steps,
                                 struct tandem_error *error)
{
    struct tnd_steps *steps = NULL;
    enum tandem_status status = tnd_steps_renew(graph, plan, registry, &steps, error);
    if (status != TANDEM_OK) {
        tnd_free(steps);
        return status;
    }
    *out_steps = steps;
    return TANDEM_OK;
}

void tnd_steps_free(struct tnd_steps *steps)
{
    tnd_free(steps);
}
