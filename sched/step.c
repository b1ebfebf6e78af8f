/* SPDX-License-Identifier: MIT
 * Unfolds a plan into steps and groups. One walk over the nodes; devices in flight are kept in a
 * short list and compared with each later node by the memory that both touch. Runs for every
 * token: no allocation when the memory of last time is large enough. */
#include <stdio.h>
#include <string.h>

#include "backends/task.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/conflict.h"
#include "sched/plan.h"
#include "sched/concurrent.h"

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
    uint32_t execution;   /* bits of enum tandem_execution */
    uint32_t quarantined; /* bit a slot */
    bool must_break;      /* the next step opens a group, since devices are synced before it */
    bool has_download;    /* in the last group: what follows opens a group */
    bool is_concurrent;   /* steps join the last group, whatever it holds */
    bool device_waits;    /* workers sleep while a device works whose result is downloaded next */
    float device_us;      /* predicted time of those works */
    struct flight flights[TND_MAX_IN_FLIGHT];
    int n_flights;
};

/* ---- devices in flight ---- */

static int last_group(const struct tnd_steps *out)
{
    return out->n_groups - 1;
}

/* Before the next group begins, devices are synced that use memory of `node` (NULL: all of
 * them). */
static void wait_for_devices(struct unfolding *unfolding, const struct tandem_tensor *node)
{
    int n_kept = 0;
    for (int i = 0; i < unfolding->n_flights; i++) {
        struct flight *flight = &unfolding->flights[i];
        if (node == NULL || tnd_nodes_conflict(node, flight->node)) {
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

static void open_group(struct unfolding *unfolding, int n_workers)
{
    struct tnd_steps *out = unfolding->out;
    struct tnd_group *group = &out->groups[out->n_groups++];
    group->first_step = out->n_steps;
    group->n_steps = 0;
    group->n_workers = n_workers > 1 ? n_workers : 1;
    group->wait_after = false;
    unfolding->must_break = false;
}

static void add_step(struct unfolding *unfolding, struct tnd_step *step)
{
    struct tnd_steps *out = unfolding->out;
    if (unfolding->has_download && step->kind != TND_STEP_DOWNLOAD) {
        unfolding->must_break = true;
        unfolding->has_download = false;
    }
    bool folds = out->n_groups > 0 && !unfolding->must_break && step->n_workers <= 1 &&
                 out->groups[last_group(out)].n_workers == 1;
    if (!folds && !unfolding->is_concurrent) {
        open_group(unfolding, step->n_workers);
    }
    step->group = last_group(out);
    step->until = step->group + 1;
    out->groups[step->group].n_steps++;
    if (step->n_workers > out->n_workers) {
        out->n_workers = step->n_workers;
    }
    if (step->n_workers == 0 && !step->on_device) {
        struct flight *flight = &unfolding->flights[unfolding->n_flights++];
        flight->step = out->n_steps;
        flight->node = unfolding->graph->nodes[step->node];
        flight->workspace_begin = step->workspace_offset;
        flight->workspace_end = step->workspace_offset + step->workspace_bytes;
    }
    out->steps[out->n_steps++] = *step;
}

/* More room for steps; only transfers need more than was counted. */
static enum tandem_status reserve_steps(struct tnd_steps *out, int capacity,
                                        struct tandem_error *error)
{
    if (capacity <= out->capacity) {
        return TANDEM_OK;
    }
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

/* Whether FINALIZE of the node fetches its result from the device in `slot`. */
static bool fetches_from(const struct unfolding *unfolding, int i, int slot)
{
    const struct tandem_task_config *config =
        &unfolding->plan->nodes[i].stage[TANDEM_STAGE_FINALIZE];
    return config->backend == slot && tnd_task_is(config->task, TND_TASK_FETCHES) &&
           (unfolding->out->device_slots >> slot & 1) != 0;
}

/* A transfer on behalf of a stage of node i; or, when it fetches the result of a node whose
 * FINALIZE does that, on behalf of that FINALIZE. Fetching is put off until the result is needed in
 * host memory: the device and the workers go on meanwhile. */
static enum tandem_status add_move(struct unfolding *unfolding, const struct tnd_move *move, int i,
                                   int stage)
{
    bool is_result = move->is_download && move->writer >= 0 &&
                     move->extent.space != TND_SPACE_WORKSPACE &&
                     fetches_from(unfolding, move->writer, move->slot);
    struct tnd_step step = {
        .node = is_result ? move->writer : i,
        .kind = move->is_download ? TND_STEP_DOWNLOAD : TND_STEP_UPLOAD,
        .on_device = true,
        .stage = (uint8_t)(is_result ? TANDEM_STAGE_FINALIZE : stage),
        .backend = move->slot,
        .own_threads = 1,
        .moved = move->extent,
    };
    TND_TRY(reserve_steps(unfolding->out, unfolding->out->n_steps + 2, unfolding->error));
    if (move->is_download) {
        step.wait = unfolding->device_waits;
        step.predicted_us = unfolding->device_us;
    }
    add_step(unfolding, &step);
    if (move->is_download) {
        unfolding->has_download = true;
    }
    return TANDEM_OK;
}

/* Workers sleep in the gap behind a parallel group when a stage in the gap asks for it and the end
 * of none is predicted. */
static void find_waits(struct tnd_steps *out)
{
    bool wait = false;
    bool is_timed = false;
    for (int g = out->n_groups - 1; g >= 0; g--) {
        struct tnd_group *group = &out->groups[g];
        group->wait_after = wait && !is_timed;
        if (group->n_workers > 1) {
            wait = false;
            is_timed = false;
            continue;
        }
        for (int i = 0; i < group->n_steps; i++) {
            const struct tnd_step *step = &out->steps[group->first_step + i];
            wait = wait || step->wait;
            is_timed = is_timed || tnd_step_is_timed(step);
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
        if (s == TANDEM_STAGE_FINALIZE && fetches_from(unfolding, i, config->backend)) {
            continue; /* a download, of which the backend need not be asked */
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

/* Before a stage: what it needs is moved to where it runs. For COMPUTE that is part of INIT. */
static enum tandem_status move_operands(struct unfolding *unfolding, const struct tnd_step *step)
{
    struct tnd_move moves[TND_MAX_MOVES];
    int n = tnd_residency_work(unfolding->out->residency, unfolding->graph->nodes[step->node],
                               step->task, step->backend, step->workspace_offset,
                               step->workspace_bytes, moves);
    TND_ASSERT(n <= TND_MAX_MOVES);
    int stage = step->stage == TANDEM_STAGE_COMPUTE ? TANDEM_STAGE_INIT : step->stage;
    for (int i = 0; i < n; i++) {
        TND_TRY(add_move(unfolding, &moves[i], step->node, stage));
    }
    unfolding->device_waits = step->on_device && (step->wait || unfolding->device_waits);
    unfolding->device_us = step->on_device ? unfolding->device_us + step->predicted_us : 0;
    return reserve_steps(unfolding->out, unfolding->out->n_steps + 2, unfolding->error);
}

/* Workers of a stage that runs on workers; of fused nodes, the most that one of them wants. One
 * token is quantised by one worker: tokens are what is handed out. */
static int workers_of(const struct unfolding *unfolding, int last, int s)
{
    int n_workers = 1;
    for (int i = last; i >= 0; i = unfolding->out->fused[i].from) {
        const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
        const struct tandem_task_config *config = &choice->stage[s];
        bool is_one_item =
            tnd_task_is(config->task, TND_TASK_BY_TOKEN) && unfolding->graph->nodes[i]->ne[1] == 1;
        int wanted = config->parallel && !is_one_item ? choice->n_threads : 1;
        n_workers = wanted > n_workers ? wanted : n_workers;
    }
    return n_workers;
}

static enum tandem_status unfold_stage(struct unfolding *unfolding, int i, int s,
                                       size_t workspace_offset, size_t workspace_bytes)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
    const struct tandem_task_config *config = &choice->stage[s];
    const struct tandem_tensor *node = unfolding->graph->nodes[i];
    bool on_device = (unfolding->out->device_slots >> config->backend & 1) != 0;
    bool is_async = on_device || tnd_backend_is_async(
                                     tnd_registry_backend(unfolding->registry, config->backend));
    bool is_full = is_async && unfolding->n_flights == TND_MAX_IN_FLIGHT;
    wait_for_devices(unfolding,
                     is_full ? NULL : node); /* an earlier stage of the node may be in flight */
    struct tnd_step step = {
        .node = i,
        .kind = TND_STEP_WORK,
        .on_device = on_device,
        .stage = (uint8_t)s,
        .task = config->task,
        .backend = config->backend,
        .wait = config->wait,
        .predicted_us = choice->predicted_us[s],
        .n_workers = is_async ? 0 : workers_of(unfolding, i, s),
        .own_threads = config->own_threads ? choice->n_threads : 1,
        .row_begin = 0,
        .row_end = node->op == TANDEM_OP_MUL_MAT ? node->ne[0] : tnd_tensor_rows(node),
        .workspace_offset = workspace_offset,
        .workspace_bytes = workspace_bytes,
    };
    if (unfolding->out->residency != NULL) {
        TND_TRY(move_operands(unfolding, &step));
    }
    add_step(unfolding, &step);
    return TANDEM_OK;
}

static enum tandem_status unfold_node(struct unfolding *unfolding, int i)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
    size_t workspace_bytes = 0;
    size_t workspace_offset = 0;
    TND_TRY(check_node(unfolding, i, &workspace_bytes));
    if (unfolding->out->fused[i].into >= 0) {
        return TANDEM_OK; /* it runs with the last of its fused nodes */
    }
    for (int j = i; j >= 0; j = unfolding->out->fused[j].from) {
        wait_for_devices(unfolding, unfolding->graph->nodes[j]);
    }
    TND_TRY(place_workspace(unfolding, workspace_bytes, &workspace_offset));
    if (unfolding->out->residency != NULL) {
        tnd_residency_begin_node(unfolding->out->residency);
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        int slot = choice->stage[s].backend;
        if (slot != TANDEM_BACKEND_NONE &&
            !(s == TANDEM_STAGE_FINALIZE && fetches_from(unfolding, i, slot))) {
            TND_TRY(unfold_stage(unfolding, i, s, workspace_offset, workspace_bytes));
        }
    }
    return TANDEM_OK;
}

/* ---- concurrent nodes ---- */

/* One of several concurrent nodes. */
struct member {
    int node;
    bool has_init; /* else that of an earlier member serves it, in the same workspace */
    size_t workspace_offset, workspace_bytes;
};

/* The member whose INIT does what that of `member` would; NULL: none. */
static const struct member *find_init(const struct unfolding *unfolding,
                                      const struct member *members, int n,
                                      const struct member *member)
{
    for (int i = 0; i < n; i++) {
        if (members[i].has_init && members[i].workspace_bytes >= member->workspace_bytes &&
            tnd_concurrent_shares_init(unfolding->graph, unfolding->plan, unfolding->registry,
                                       members[i].node, member->node)) {
            return &members[i];
        }
    }
    return NULL;
}

static bool has_stage(const struct unfolding *unfolding, const struct member *member, int s)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[member->node];
    return choice->stage[s].backend != TANDEM_BACKEND_NONE &&
           (s != TANDEM_STAGE_INIT || member->has_init);
}

/* The concurrent nodes, as long as their workspace does not grow too much. */
static enum tandem_status gather(struct unfolding *unfolding, int first, int end,
                                 struct member *members, int *out_count)
{
    size_t total = 0;
    size_t base = 0;
    int n = 0;
    for (int i = first; i < end; i++) {
        struct member member = {.node = i};
        TND_TRY(check_node(unfolding, i, &member.workspace_bytes));
        if (unfolding->out->fused[i].into >= 0) {
            continue;
        }
        const struct member *source = find_init(unfolding, members, n, &member);
        member.has_init = source == NULL;
        member.workspace_offset = source == NULL ? total : source->workspace_offset;
        if (source == NULL && n > 0 &&
            member.workspace_bytes >
                members[0].workspace_bytes + TND_CONCURRENT_WORKSPACE - total) {
            break;
        }
        total += source == NULL ? member.workspace_bytes : 0;
        members[n++] = member;
    }
    for (int i = 0; i < n; i++) {
        wait_for_devices(unfolding, unfolding->graph->nodes[members[i].node]);
    }
    TND_TRY(place_workspace(unfolding, total, &base));
    for (int i = 0; i < n; i++) {
        members[i].workspace_offset += base;
    }
    *out_count = n;
    return TANDEM_OK;
}

/* One stage of all members: those for one worker first, which worker 0 does while the others begin
 * with the other steps. */
static enum tandem_status unfold_members(struct unfolding *unfolding, const struct member *members,
                                         int n, int s)
{
    int n_workers = 1;
    for (int i = 0; i < n; i++) {
        bool exists = has_stage(unfolding, &members[i], s);
        int wanted = exists ? workers_of(unfolding, members[i].node, s) : 1;
        n_workers = wanted > n_workers ? wanted : n_workers;
    }
    if (n_workers > 1) {
        open_group(unfolding, n_workers);
        unfolding->is_concurrent = true;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            bool is_alone = workers_of(unfolding, members[i].node, s) == 1;
            if (has_stage(unfolding, &members[i], s) && is_alone == (pass == 0)) {
                TND_TRY(unfold_stage(unfolding, members[i].node, s, members[i].workspace_offset,
                                     members[i].workspace_bytes));
            }
        }
    }
    unfolding->is_concurrent = false;
    return TANDEM_OK;
}

/* Nodes from `first` on; *out_end is the first one that is not among them. */
static enum tandem_status unfold_concurrent(struct unfolding *unfolding, int first, int *out_end)
{
    struct member members[TND_CONCURRENT_NODES];
    int n = 0;
    int end = first + 1;
    if ((unfolding->execution & TANDEM_EXECUTE_CONCURRENT) != 0) {
        end = tnd_concurrent_end(unfolding->graph, unfolding->plan, unfolding->registry,
                                 unfolding->out->fused, first);
    }
    *out_end = end;
    if (end == first + 1) {
        return unfold_node(unfolding, first);
    }
    TND_TRY(gather(unfolding, first, end, members, &n));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        TND_TRY(unfold_members(unfolding, members, n, s));
    }
    *out_end = members[n - 1].node + 1;
    return TANDEM_OK;
}

static void find_fused(struct unfolding *unfolding)
{
    struct tnd_fused *fused = unfolding->out->fused;
    if ((unfolding->execution & TANDEM_EXECUTE_FUSED) != 0) {
        tnd_fuse(unfolding->graph, unfolding->plan, unfolding->registry, fused);
        return;
    }
    for (int i = 0; i < unfolding->graph->n_nodes; i++) {
        fused[i] = (struct tnd_fused){-1, -1};
    }
}

/* At the end: what the program will look at comes to the host. */
static enum tandem_status fetch_outputs(struct unfolding *unfolding)
{
    struct tnd_move move;
    int cursor = 0;
    while (tnd_residency_next_output(unfolding->out->residency, &cursor, &move)) {
        TND_TRY(add_move(unfolding, &move, move.writer, TANDEM_STAGE_FINALIZE));
    }
    return TANDEM_OK;
}

static enum tandem_status unfold(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                 const struct tnd_registry *registry, uint32_t execution,
                                 struct tnd_steps *out, struct tandem_error *error)
{
    struct unfolding unfolding;
    unfolding.graph = graph;
    unfolding.plan = plan;
    unfolding.registry = registry;
    unfolding.error = error;
    unfolding.out = out;
    /* Devices with memory of their own want to know of every node by itself. */
    unfolding.execution = out->residency == NULL ? execution : 0;
    unfolding.quarantined = tnd_registry_quarantined(registry);
    unfolding.must_break = false;
    unfolding.has_download = false;
    unfolding.is_concurrent = false;
    unfolding.device_waits = false;
    unfolding.device_us = 0;
    unfolding.n_flights = 0;
    out->n_steps = 0;
    out->n_groups = 0;
    out->n_workers = 1;
    out->workspace_bytes = 0;
    out->scratch_bytes = 0;
    find_fused(&unfolding);
    for (int i = 0; i < graph->n_nodes;) {
        TND_TRY(unfold_concurrent(&unfolding, i, &i));
    }
    wait_for_devices(&unfolding, NULL);
    if (out->residency != NULL) {
        TND_TRY(fetch_outputs(&unfolding));
    }
    find_waits(out);
    return TANDEM_OK;
}

/* ---- memory ---- */

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

enum tandem_status tnd_steps_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_mirrors *mirrors,
                                   uint32_t execution, struct tnd_steps **io_steps,
                                   struct tandem_error *error)
{
    int count = 0;
    uint32_t slots = 0;
    TND_TRY(count_steps(graph, plan, &count, &slots, error));
    if (*io_steps == NULL) {
        *io_steps = tnd_calloc(1, sizeof(**io_steps));
        if (*io_steps == NULL) {
            return tnd_error_set(error, TANDEM_E_MEMORY, "plan", count, 0,
                                 "plan: out of memory for %d steps", count);
        }
    }
    struct tnd_steps *steps = *io_steps;
    steps->device_slots = slots & tnd_registry_own_slots(registry);
    TND_TRY(reserve_steps(steps, count, error));
    TND_TRY(reserve_fused(steps, graph->n_nodes, error));
    TND_TRY(renew_residency(graph, mirrors, steps, error));
    enum tandem_status status = unfold(graph, plan, registry, execution, steps, error);
    if (status != TANDEM_OK && steps->residency != NULL) {
        tnd_residency_release(steps->residency, false);
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
        tnd_free(steps);
    }
}
