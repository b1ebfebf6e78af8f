/* SPDX-License-Identifier: MIT
 * Unfolds a plan into steps and groups. One walk over the nodes; devices in flight are kept in a
 * short list and compared with each later node by the memory that both touch. Runs for every
 * token: no allocation when the memory of last time is large enough. */
#include "sched/unfold.h"

#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/concurrent.h"
#include "sched/stream.h"

/* Most plans have no device in flight: asked for every stage of every node. */
static inline void wait_for_devices(struct tnd_unfolding *unfolding,
                                    const struct tandem_tensor *node)
{
    if (unfolding->n_flights > 0) {
        tnd_unfold_wait_for_devices(unfolding, node);
    }
}

/* Before stage s of node i: what it needs is moved to where it runs. For COMPUTE that is part of
 * INIT. */
static enum tandem_status move_operands(struct tnd_unfolding *unfolding, int i, int s,
                                        size_t workspace_offset, size_t workspace_bytes)
{
    const struct tandem_task_config *config = &unfolding->plan->nodes[i].stage[s];
    struct tnd_move moves[TND_MAX_MOVES];
    int n = tnd_residency_work(unfolding->out->residency, unfolding->graph->nodes[i], config->task,
                               config->backend, workspace_offset, workspace_bytes, moves);
    TND_ASSERT(n <= TND_MAX_MOVES);
    for (int m = 0; m < n; m++) {
        TND_TRY(tnd_unfold_add_move(unfolding, &moves[m], i,
                                    s == TANDEM_STAGE_COMPUTE ? TANDEM_STAGE_INIT : s));
    }
    return TANDEM_OK;
}

/* The same for a step, which may stand for fused nodes. */
static enum tandem_status move_for_step(struct tnd_unfolding *unfolding,
                                        const struct tnd_step *step)
{
    int nodes[TANDEM_FUSED_NODES];
    int n = unfolding->is_moved ? 0 : tnd_fused_nodes(unfolding->out->fused, step->node, nodes);
    for (int i = 0; i < n; i++) {
        TND_TRY(move_operands(unfolding, nodes[i], step->stage, step->workspace_offset,
                              step->workspace_bytes));
    }
    unfolding->device_waits = step->on_device && (step->wait || unfolding->device_waits);
    unfolding->device_us = step->on_device ? unfolding->device_us + step->predicted_us : 0;
    return tnd_steps_reserve(unfolding->out, unfolding->out->n_steps + 2, unfolding->error);
}

/* Workers of a stage that runs on workers; of fused nodes, the most that one of them wants. One
 * token is quantised by one worker: tokens are what is handed out. */
static int workers_of(const struct tnd_unfolding *unfolding, int last, int s)
{
    int n_workers = 1;
    for (int i = last; i >= 0; i = unfolding->out->fused[i].from) {
        const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
        const struct tandem_task_config *config = &choice->stage[s];
        bool is_one_item = tnd_task_is(config->task, TND_TASK_BY_TOKEN) &&
                           tnd_tensor_rows(unfolding->graph->nodes[i]) == 1;
        int wanted = config->parallel && !is_one_item ? choice->n_threads : 1;
        n_workers = wanted > n_workers ? wanted : n_workers;
    }
    return n_workers;
}

static enum tandem_status unfold_stage(struct tnd_unfolding *unfolding, int i, int s,
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
    if (unfolding->plan->items != NULL) {
        step.row_begin = unfolding->plan->items[i].row_begin;
        step.row_end = unfolding->plan->items[i].row_end;
    }
    bool is_streamed = on_device && s == TANDEM_STAGE_COMPUTE && tnd_stream_has(unfolding, i);
    if (unfolding->out->residency != NULL) {
        TND_TRY(move_for_step(unfolding, &step));
    }
    if (is_streamed) {
        TND_TRY(tnd_stream_begin(unfolding, &step));
    }
    TND_ASSERT(step.row_begin <= step.row_end);
    TND_ASSERT(step.backend > 0 && step.stage < TANDEM_STAGES);
    unfolding->out->uses_prepared |= tnd_task_is(config->task, TND_TASK_USES_PACKED);
    tnd_unfold_add_step(unfolding, &step);
    return is_streamed ? tnd_stream_ahead(unfolding, i, step.backend) : TANDEM_OK;
}

static enum tandem_status unfold_node(struct tnd_unfolding *unfolding, int i)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[i];
    size_t workspace_bytes = 0;
    size_t workspace_offset = 0;
    TND_TRY(tnd_unfold_check_node(unfolding, i, &workspace_bytes));
    if (unfolding->out->fused[i].into >= 0) {
        return TANDEM_OK; /* it runs with the last of its fused nodes */
    }
    for (int j = i; j >= 0; j = unfolding->out->fused[j].from) {
        wait_for_devices(unfolding, unfolding->graph->nodes[j]);
    }
    TND_TRY(tnd_unfold_place_workspace(unfolding, workspace_bytes, &workspace_offset));
    if (unfolding->out->residency != NULL) {
        tnd_residency_begin_node(unfolding->out->residency);
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        int slot = choice->stage[s].backend;
        if (slot != TANDEM_BACKEND_NONE &&
            !(s == TANDEM_STAGE_FINALIZE && tnd_unfold_fetches(unfolding, i, slot))) {
            TND_TRY(unfold_stage(unfolding, i, s, workspace_offset, workspace_bytes));
        }
    }
    bool is_fetched = unfolding->plan->items != NULL && unfolding->plan->items[i].is_fetched;
    return is_fetched && unfolding->out->residency != NULL ? tnd_unfold_fetch_early(unfolding, i)
                                                           : TANDEM_OK;
}

/* ---- concurrent nodes ---- */

/* One of several concurrent nodes. */
struct member {
    int node;
    bool has_init; /* else that of an earlier member serves it, in the same workspace */
    size_t workspace_offset, workspace_bytes;
};

/* The member whose INIT does what that of `member` would; NULL: none. */
static const struct member *find_init(const struct tnd_unfolding *unfolding,
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

static bool has_stage(const struct tnd_unfolding *unfolding, const struct member *member, int s)
{
    const struct tandem_plan_node *choice = &unfolding->plan->nodes[member->node];
    return choice->stage[s].backend != TANDEM_BACKEND_NONE &&
           (s != TANDEM_STAGE_INIT || member->has_init);
}

/* The concurrent nodes, as long as their workspace does not grow too much. */
static enum tandem_status gather(struct tnd_unfolding *unfolding, int first, int end,
                                 struct member *members, int *out_count)
{
    size_t total = 0;
    size_t base = 0;
    int n = 0;
    for (int i = first; i < end; i++) {
        struct member member = {.node = i};
        TND_TRY(tnd_unfold_check_node(unfolding, i, &member.workspace_bytes));
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
    TND_ASSERT(n > 0 && n <= TND_CONCURRENT_NODES);
    for (int i = 0; i < n; i++) {
        wait_for_devices(unfolding, unfolding->graph->nodes[members[i].node]);
    }
    TND_TRY(tnd_unfold_place_workspace(unfolding, total, &base));
    for (int i = 0; i < n; i++) {
        members[i].workspace_offset += base;
    }
    *out_count = n;
    return TANDEM_OK;
}

/* What the members need comes to the host before the first group of theirs begins; they do not
 * need one another. */
static enum tandem_status move_for_members(struct tnd_unfolding *unfolding,
                                           const struct member *members, int n)
{
    for (int m = 0; m < n; m++) {
        int nodes[TANDEM_FUSED_NODES];
        int n_nodes = tnd_fused_nodes(unfolding->out->fused, members[m].node, nodes);
        tnd_residency_begin_node(unfolding->out->residency);
        for (int i = 0; i < n_nodes; i++) {
            for (int s = 0; s < TANDEM_STAGES; s++) {
                if (unfolding->plan->nodes[nodes[i]].stage[s].backend != TANDEM_BACKEND_NONE) {
                    TND_TRY(move_operands(unfolding, nodes[i], s, members[m].workspace_offset,
                                          members[m].workspace_bytes));
                }
            }
        }
    }
    return TANDEM_OK;
}

/* One stage of all members: those for one worker first, which worker 0 does while the others begin
 * with the other steps. */
static enum tandem_status unfold_members(struct tnd_unfolding *unfolding,
                                         const struct member *members, int n, int s)
{
    int n_workers = 1;
    for (int i = 0; i < n; i++) {
        bool exists = has_stage(unfolding, &members[i], s);
        int wanted = exists ? workers_of(unfolding, members[i].node, s) : 1;
        n_workers = wanted > n_workers ? wanted : n_workers;
    }
    if (n_workers > 1) {
        tnd_unfold_open_group(unfolding, n_workers);
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
static enum tandem_status unfold_concurrent(struct tnd_unfolding *unfolding, int first,
                                            int *out_end)
{
    struct member members[TND_CONCURRENT_NODES];
    int n = 0;
    int end = first + 1;
    if ((unfolding->execution & TANDEM_EXECUTE_CONCURRENT) != 0) {
        end = tnd_concurrent_end(unfolding->graph, unfolding->plan, unfolding->registry,
                                 unfolding->out->fused, first);
    }
    TND_ASSERT(end > first && end <= unfolding->graph->n_nodes);
    *out_end = end;
    if (end == first + 1) {
        return unfold_node(unfolding, first);
    }
    TND_TRY(gather(unfolding, first, end, members, &n));
    for (int i = 0; i < n; i++) {
        for (int j = members[i].node; j >= 0; j = unfolding->out->fused[j].from) {
            wait_for_devices(unfolding, unfolding->graph->nodes[j]);
        }
    }
    if (unfolding->out->residency != NULL) {
        TND_TRY(move_for_members(unfolding, members, n));
    }
    unfolding->is_moved = true;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        TND_TRY(unfold_members(unfolding, members, n, s));
    }
    unfolding->is_moved = false;
    *out_end = members[n - 1].node + 1;
    return TANDEM_OK;
}

static void find_fused(struct tnd_unfolding *unfolding)
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
static enum tandem_status fetch_outputs(struct tnd_unfolding *unfolding)
{
    struct tnd_move move;
    int cursor = 0;
    while (tnd_residency_next_output(unfolding->out->residency, &cursor, &move)) {
        int writer = move.writer < 0 ? unfolding->graph->n_nodes - 1 /* an earlier run's */
                                     : tnd_graph_position(unfolding->graph, move.writer);
        TND_TRY(tnd_unfold_add_move(unfolding, &move, writer, TANDEM_STAGE_FINALIZE));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_unfold(const struct tandem_graph *graph, const struct tandem_plan *plan,
                              const struct tnd_registry *registry, uint32_t execution,
                              struct tnd_steps *out, struct tandem_error *error)
{
    struct tnd_unfolding unfolding;
    unfolding.graph = graph;
    unfolding.plan = plan;
    unfolding.registry = registry;
    unfolding.error = error;
    unfolding.out = out;
    unfolding.execution = execution;
    unfolding.quarantined = tnd_registry_quarantined(registry);
    unfolding.must_break = false;
    unfolding.has_download = false;
    unfolding.is_concurrent = false;
    unfolding.is_early = false;
    unfolding.is_moved = false;
    unfolding.device_waits = false;
    unfolding.device_us = 0;
    unfolding.n_flights = 0;
    memset(out->streams, 0, sizeof(out->streams));
    out->n_steps = 0;
    out->n_groups = 0;
    out->n_workers = 1;
    out->workspace_bytes = 0;
    out->scratch_bytes = 0;
    out->uses_prepared = false;
    find_fused(&unfolding);
    for (int i = 0; i < graph->n_nodes;) {
        TND_TRY(unfold_concurrent(&unfolding, i, &i));
    }
    wait_for_devices(&unfolding, NULL);
    if (out->residency != NULL) {
        TND_TRY(fetch_outputs(&unfolding));
    }
    TND_ASSERT(out->n_groups <= out->n_steps && out->n_steps <= out->capacity);
    tnd_unfold_find_waits(out);
    return TANDEM_OK;
}
