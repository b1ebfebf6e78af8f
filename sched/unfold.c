/* SPDX-License-Identifier: MIT
 * Unfolds items into steps and groups. One walk over the items; device work in flight is kept in a
 * short list and compared with each later item by the memory that both access. Runs for every
 * token: no allocation when the memory of the last call is large enough. */
#include "sched/unfold.h"

#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/concurrent.h"
#include "sched/fuse.h"
#include "sched/stream.h"

/* Called for every stage of every node; most plans have no device in flight. */
static inline void wait_for_devices(struct tnd_unfolding *unfolding, const struct tnd_item *item)
{
    if (unfolding->n_flights > 0) {
        tnd_unfold_wait_for_devices(unfolding, item);
    }
}

/* wait_for_devices for item `last` and those fused into it. */
static void wait_for_all(struct tnd_unfolding *unfolding, int last)
{
    for (int i = last; i >= 0; i = unfolding->items[i].from) {
        wait_for_devices(unfolding, &unfolding->items[i]);
    }
}

/* Before stage s of item i: transfers its operands to where it runs. Those of COMPUTE are part of
 * INIT. */
static enum tandem_status move_operands(struct tnd_unfolding *unfolding, int i, int s,
                                        size_t workspace_offset, size_t workspace_bytes)
{
    const struct tandem_task_config *config = &unfolding->items[i].choice->stage[s];
    struct tnd_move moves[TND_MAX_MOVES];
    int n = tnd_residency_work(unfolding->out->residency, unfolding->items[i].tensor, config->task,
                               config->backend, workspace_offset, workspace_bytes, moves);
    TND_ASSERT(n <= TND_MAX_MOVES);
    for (int m = 0; m < n; m++) {
        TND_TRY(tnd_unfold_add_move(unfolding, &moves[m], i,
                                    s == TANDEM_STAGE_COMPUTE ? TANDEM_STAGE_INIT : s));
    }
    return TANDEM_OK;
}

/* move_operands for a step, which may contain fused nodes. */
static enum tandem_status move_for_step(struct tnd_unfolding *unfolding,
                                        const struct tnd_step *step)
{
    int items[TANDEM_FUSED_NODES];
    int n = unfolding->is_moved ? 0 : tnd_fused_items(&unfolding->out->items, step->item, items);
    for (int i = 0; i < n; i++) {
        TND_TRY(move_operands(unfolding, items[i], step->stage, step->workspace_offset,
                              step->workspace_bytes));
    }
    unfolding->device_waits = step->on_device && (step->wait || unfolding->device_waits);
    unfolding->device_us = step->on_device ? unfolding->device_us + step->predicted_us : 0;
    return TANDEM_OK;
}

/* Workers of a stage that runs on workers; for fused nodes the maximum over them. Quantising is
 * divided by tokens, so a single token is quantised by one worker. */
static int workers_of(const struct tnd_unfolding *unfolding, int last, int s)
{
    int n_workers = 1;
    for (int i = last; i >= 0; i = unfolding->items[i].from) {
        const struct tandem_plan_node *choice = unfolding->items[i].choice;
        const struct tandem_task_config *config = &choice->stage[s];
        bool is_one_item = tnd_task_is(config->task, TND_TASK_BY_TOKEN) &&
                           tnd_tensor_rows(unfolding->items[i].tensor) == 1;
        int wanted = config->parallel && !is_one_item ? choice->n_threads : 1;
        n_workers = wanted > n_workers ? wanted : n_workers;
    }
    return n_workers;
}

static enum tandem_status unfold_stage(struct tnd_unfolding *unfolding, int i, int s,
                                       size_t workspace_offset, size_t workspace_bytes)
{
    const struct tnd_item *item = &unfolding->items[i];
    const struct tandem_plan_node *choice = item->choice;
    const struct tandem_task_config *config = &choice->stage[s];
    bool on_device = (unfolding->out->device_slots >> config->backend & 1) != 0;
    bool is_async = on_device || tnd_backend_is_async(
                                     tnd_registry_backend(unfolding->registry, config->backend));
    bool is_full = is_async && unfolding->n_flights == TND_MAX_IN_FLIGHT;
    wait_for_devices(unfolding,
                     is_full ? NULL : item); /* an earlier stage of the node may be in flight */
    struct tnd_step step = {
        .item = i,
        .kind = TND_STEP_WORK,
        .on_device = on_device,
        .stage = (uint8_t)s,
        .task = config->task,
        .backend = config->backend,
        .wait = config->wait,
        .predicted_us = choice->predicted_us[s],
        .n_workers = is_async ? 0 : workers_of(unfolding, i, s),
        .own_threads = config->own_threads ? choice->n_threads : 1,
        .row_begin = item->row_begin,
        .row_end = item->row_end,
        .workspace_offset = workspace_offset,
        .workspace_bytes = workspace_bytes,
    };
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
    TND_TRY(tnd_unfold_add_step(unfolding, &step));
    return is_streamed ? tnd_stream_ahead(unfolding, i, step.backend) : TANDEM_OK;
}

/* Downloads a result on a device at once if items in another memory read it: a device works in the
 * order of submission, so a later download would wait for all work submitted meanwhile. It is
 * waited for only when a reader elsewhere begins. Only for plans with a schedule: its predicted
 * times assume the same. */
static enum tandem_status fetch_early(struct tnd_unfolding *unfolding, int i)
{
    struct tnd_move move;
    if (!tnd_residency_fetch_result(unfolding->out->residency, unfolding->items[i].tensor, &move)) {
        return TANDEM_OK;
    }
    if (unfolding->n_flights == TND_MAX_IN_FLIGHT) {
        tnd_unfold_wait_for_devices(unfolding, NULL);
    }
    unfolding->is_early = true;
    enum tandem_status status = tnd_unfold_add_move(unfolding, &move, i, TANDEM_STAGE_FINALIZE);
    unfolding->is_early = false;
    return status;
}

static enum tandem_status unfold_item(struct tnd_unfolding *unfolding, int i)
{
    const struct tnd_item *item = &unfolding->items[i];
    size_t workspace_bytes = 0;
    size_t workspace_offset = 0;
    TND_TRY(tnd_unfold_check_node(unfolding, i, &workspace_bytes));
    if (item->into >= 0) {
        return TANDEM_OK; /* runs with the last of its fused nodes */
    }
    wait_for_all(unfolding, i);
    TND_TRY(tnd_unfold_place_workspace(unfolding, workspace_bytes, &workspace_offset));
    if (unfolding->out->residency != NULL) {
        tnd_residency_begin_node(unfolding->out->residency);
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        int slot = item->choice->stage[s].backend;
        if (slot != TANDEM_BACKEND_NONE &&
            !(s == TANDEM_STAGE_FINALIZE && tnd_unfold_fetches(unfolding, i, slot))) {
            TND_TRY(unfold_stage(unfolding, i, s, workspace_offset, workspace_bytes));
        }
    }
    return item->is_fetched && unfolding->out->residency != NULL ? fetch_early(unfolding, i)
                                                                 : TANDEM_OK;
}

/* ---- concurrent nodes ---- */

/* One of several concurrent nodes. */
struct member {
    int item;
    bool has_init; /* else INIT of an earlier member fills the workspace that this one shares */
    size_t workspace_offset, workspace_bytes;
};

/* The member whose INIT would give the same result as that of `member`; NULL: none. */
static const struct member *find_init(const struct tnd_unfolding *unfolding,
                                      const struct member *members, int n,
                                      const struct member *member)
{
    for (int i = 0; i < n; i++) {
        if (members[i].has_init && members[i].workspace_bytes >= member->workspace_bytes &&
            tnd_concurrent_shares_init(unfolding->registry, &unfolding->items[members[i].item],
                                       &unfolding->items[member->item])) {
            return &members[i];
        }
    }
    return NULL;
}

static bool has_stage(const struct tnd_unfolding *unfolding, const struct member *member, int s)
{
    const struct tandem_plan_node *choice = unfolding->items[member->item].choice;
    return choice->stage[s].backend != TANDEM_BACKEND_NONE &&
           (s != TANDEM_STAGE_INIT || member->has_init);
}

/* Collects the concurrent nodes, as long as their workspace stays below the limit. */
static enum tandem_status gather(struct tnd_unfolding *unfolding, int first, int end,
                                 struct member *members, int *out_count)
{
    size_t total = 0;
    size_t base = 0;
    int n = 0;
    for (int i = first; i < end; i++) {
        struct member member = {.item = i};
        TND_TRY(tnd_unfold_check_node(unfolding, i, &member.workspace_bytes));
        if (unfolding->items[i].into >= 0) {
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
        wait_for_devices(unfolding, &unfolding->items[members[i].item]);
    }
    TND_TRY(tnd_unfold_place_workspace(unfolding, total, &base));
    for (int i = 0; i < n; i++) {
        members[i].workspace_offset += base;
    }
    *out_count = n;
    return TANDEM_OK;
}

/* Transfers the operands of all members to the host before the first group of theirs begins;
 * members do not depend on one another. */
static enum tandem_status move_for_members(struct tnd_unfolding *unfolding,
                                           const struct member *members, int n)
{
    for (int m = 0; m < n; m++) {
        int items[TANDEM_FUSED_NODES];
        int n_items = tnd_fused_items(&unfolding->out->items, members[m].item, items);
        tnd_residency_begin_node(unfolding->out->residency);
        for (int i = 0; i < n_items; i++) {
            for (int s = 0; s < TANDEM_STAGES; s++) {
                if (unfolding->items[items[i]].choice->stage[s].backend != TANDEM_BACKEND_NONE) {
                    TND_TRY(move_operands(unfolding, items[i], s, members[m].workspace_offset,
                                          members[m].workspace_bytes));
                }
            }
        }
    }
    return TANDEM_OK;
}

/* One stage of all members: those for one worker come first, so that worker 0 does them while the
 * others begin with the other steps. */
static enum tandem_status unfold_members(struct tnd_unfolding *unfolding,
                                         const struct member *members, int n, int s)
{
    int n_workers = 1;
    for (int i = 0; i < n; i++) {
        bool exists = has_stage(unfolding, &members[i], s);
        int wanted = exists ? workers_of(unfolding, members[i].item, s) : 1;
        n_workers = wanted > n_workers ? wanted : n_workers;
    }
    if (n_workers > 1) {
        TND_TRY(tnd_unfold_open_group(unfolding, n_workers));
        unfolding->is_concurrent = true;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < n; i++) {
            bool is_alone = workers_of(unfolding, members[i].item, s) == 1;
            if (has_stage(unfolding, &members[i], s) && is_alone == (pass == 0)) {
                TND_TRY(unfold_stage(unfolding, members[i].item, s, members[i].workspace_offset,
                                     members[i].workspace_bytes));
            }
        }
    }
    unfolding->is_concurrent = false;
    return TANDEM_OK;
}

/* Unfolds concurrent items from `first` on; *out_end is the first item after them. */
static enum tandem_status unfold_concurrent(struct tnd_unfolding *unfolding, int first,
                                            int *out_end)
{
    struct member members[TND_CONCURRENT_NODES];
    int n = 0;
    int end = first + 1;
    if ((unfolding->execution & TANDEM_EXECUTE_CONCURRENT) != 0) {
        end = tnd_concurrent_end(&unfolding->out->items, unfolding->registry, first);
    }
    TND_ASSERT(end > first && end <= unfolding->n_items);
    *out_end = end;
    if (end == first + 1) {
        return unfold_item(unfolding, first);
    }
    TND_TRY(gather(unfolding, first, end, members, &n));
    for (int i = 0; i < n; i++) {
        wait_for_all(unfolding, members[i].item);
    }
    if (unfolding->out->residency != NULL) {
        TND_TRY(move_for_members(unfolding, members, n));
    }
    unfolding->is_moved = true;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        TND_TRY(unfold_members(unfolding, members, n, s));
    }
    unfolding->is_moved = false;
    *out_end = members[n - 1].item + 1;
    return TANDEM_OK;
}

/* At the end: downloads everything that the program may read. */
static enum tandem_status fetch_outputs(struct tnd_unfolding *unfolding)
{
    struct tnd_move move;
    int cursor = 0;
    while (tnd_residency_next_output(unfolding->out->residency, &cursor, &move)) {
        int writer = move.writer < 0 ? unfolding->n_items - 1 /* an earlier run's */
                                     : tnd_item_position(&unfolding->out->items, move.writer);
        TND_TRY(tnd_unfold_add_move(unfolding, &move, writer, TANDEM_STAGE_FINALIZE));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_unfold(const struct tandem_graph *graph, const struct tnd_registry *registry,
                              uint32_t execution, struct tnd_steps *out, struct tandem_error *error)
{
    struct tnd_unfolding unfolding;
    unfolding.registry = registry;
    unfolding.error = error;
    unfolding.out = out;
    unfolding.items = out->items.list;
    unfolding.n_items = out->items.n;
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
    if ((execution & TANDEM_EXECUTE_FUSED) != 0) {
        tnd_fuse(graph, registry, &out->items);
    }
    for (int i = 0; i < unfolding.n_items;) {
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
