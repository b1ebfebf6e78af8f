/* SPDX-License-Identifier: MIT
 * Groups of steps: which step opens a group, which one joins it; transfers before and after work;
 * device work in flight and the workspace that it still uses. Knows nothing of stages of nodes. */
#include "sched/unfold.h"

#include "backends/task.h"
#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/conflict.h"

enum { FIRST_STEPS = 64 }; /* first capacity */

/* ---- devices in flight ---- */

static int last_group(const struct tnd_steps *out)
{
    return out->n_groups - 1;
}

/* Whether the item accesses, from another memory, a result that an early download brings to the
 * host. */
static bool reads_elsewhere(const struct tnd_item *item, const struct tnd_unfolding_flight *flight)
{
    const struct tandem_tensor *tensor = item->tensor;
    bool touches = tensor->root == flight->tensor->root;
    bool is_elsewhere = false;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        unsigned slot = item->choice->stage[s].backend;
        is_elsewhere = is_elsewhere || (slot != TANDEM_BACKEND_NONE && (int)slot != flight->slot);
    }
    for (int i = 0; i < tensor->n_src && is_elsewhere; i++) {
        touches =
            touches || (tensor->src[i] != NULL && tensor->src[i]->root == flight->tensor->root);
    }
    return touches && is_elsewhere;
}

void tnd_unfold_wait_for_devices(struct tnd_unfolding *unfolding, const struct tnd_item *item)
{
    int n_kept = 0;
    TND_ASSERT(unfolding->n_flights >= 0 && unfolding->n_flights <= TND_MAX_IN_FLIGHT);
    for (int i = 0; i < unfolding->n_flights; i++) {
        struct tnd_unfolding_flight *flight = &unfolding->flights[i];
        bool waits =
            item == NULL || (flight->slot > 0 ? reads_elsewhere(item, flight)
                                              : tnd_nodes_conflict(item->tensor, flight->tensor));
        if (waits) {
            TND_ASSERT(flight->step < unfolding->out->n_steps);
            unfolding->out->steps[flight->step].until = last_group(unfolding->out) + 1;
            unfolding->must_break = true;
        } else {
            unfolding->flights[n_kept++] = *flight;
        }
    }
    unfolding->n_flights = n_kept;
}

enum tandem_status tnd_unfold_place_workspace(struct tnd_unfolding *unfolding, size_t bytes,
                                              size_t *out_offset)
{
    size_t offset = 0;
    size_t end = bytes;
    for (int i = 0; i < unfolding->n_flights && bytes > 0; i++) {
        const struct tnd_unfolding_flight *flight = &unfolding->flights[i];
        if (offset < flight->workspace_end && flight->workspace_begin < end) {
            offset = flight->workspace_end;
            if (!tnd_add_size(offset, bytes, &end)) {
                return tnd_error_set(unfolding->error, TANDEM_E_OVERFLOW, "plan", 0, 0,
                                     "plan: the workspace does not fit into the address space");
            }
            i = -1; /* moved: check all of them again; the offset only grows, so this ends */
        }
    }
    TND_ASSERT(end - bytes == offset);
    if (end > unfolding->out->workspace_bytes) {
        unfolding->out->workspace_bytes = end;
    }
    *out_offset = offset;
    return TANDEM_OK;
}

/* Makes room for more steps and groups. */
static enum tandem_status grow(struct tnd_steps *out, struct tandem_error *error)
{
    const size_t before = (size_t)out->capacity;
    const size_t n = before + before / 2 + FIRST_STEPS;
    if (n > INT32_MAX - 1) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "plan", out->n_steps, INT32_MAX - 1,
                             "plan: too many steps");
    }
    struct tnd_step *steps = tnd_realloc(out->steps, before * sizeof(*steps), n * sizeof(*steps));
    out->steps = steps != NULL ? steps : out->steps;
    struct tnd_group *groups =
        steps == NULL ? NULL
                      : tnd_realloc(out->groups, before * sizeof(*groups), n * sizeof(*groups));
    if (groups == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", (int64_t)n, 0,
                             "plan: out of memory for %zu steps", n);
    }
    out->groups = groups;
    out->capacity = (int)n;
    return TANDEM_OK;
}

enum tandem_status tnd_unfold_open_group(struct tnd_unfolding *unfolding, int n_workers)
{
    struct tnd_steps *out = unfolding->out;
    TND_ASSERT(n_workers >= 0);
    if (out->n_groups == out->capacity) {
        TND_TRY(grow(out, unfolding->error));
    }
    struct tnd_group *group = &out->groups[out->n_groups++];
    group->first_step = out->n_steps;
    group->n_steps = 0;
    group->n_workers = n_workers > 1 ? n_workers : 1;
    group->wait_after = false;
    unfolding->must_break = false;
    return TANDEM_OK;
}

enum tandem_status tnd_unfold_add_step(struct tnd_unfolding *unfolding, struct tnd_step *step)
{
    struct tnd_steps *out = unfolding->out;
    if (out->n_steps == out->capacity) {
        TND_TRY(grow(out, unfolding->error));
    }
    TND_ASSERT(step->item >= 0 && step->item < unfolding->n_items);
    TND_ASSERT(!unfolding->is_concurrent || out->n_groups > 0);
    if (unfolding->has_download && step->kind != TND_STEP_DOWNLOAD) {
        unfolding->must_break = true;
        unfolding->has_download = false;
    }
    bool folds = out->n_groups > 0 && !unfolding->must_break && step->n_workers <= 1 &&
                 out->groups[last_group(out)].n_workers == 1;
    if (!folds && !unfolding->is_concurrent) {
        TND_TRY(tnd_unfold_open_group(unfolding, step->n_workers));
    }
    step->group = last_group(out);
    step->until = step->group + 1;
    out->groups[step->group].n_steps++;
    if (step->n_workers > out->n_workers) {
        out->n_workers = step->n_workers;
    }
    if (step->n_workers == 0 && (!step->on_device || step->is_early)) {
        TND_ASSERT(unfolding->n_flights < TND_MAX_IN_FLIGHT);
        struct tnd_unfolding_flight *flight = &unfolding->flights[unfolding->n_flights++];
        flight->step = out->n_steps;
        flight->tensor = unfolding->items[step->item].tensor;
        flight->slot = step->is_early ? step->backend : 0;
        flight->workspace_begin = step->is_early ? 0 : step->workspace_offset;
        flight->workspace_end = step->is_early ? 0 : step->workspace_offset + step->workspace_bytes;
    }
    out->steps[out->n_steps++] = *step;
    return TANDEM_OK;
}

bool tnd_unfold_fetches(const struct tnd_unfolding *unfolding, int i, int slot)
{
    TND_ASSERT(i >= 0 && i < unfolding->n_items && slot >= 0 && slot < TND_MAX_SLOTS);
    const struct tandem_task_config *config =
        &unfolding->items[i].choice->stage[TANDEM_STAGE_FINALIZE];
    return config->backend == slot && tnd_task_is(config->task, TND_TASK_FETCHES);
}

enum tandem_status tnd_unfold_add_move(struct tnd_unfolding *unfolding, const struct tnd_move *move,
                                       int i, int stage)
{
    int writer = move->writer >= 0 ? tnd_item_position(&unfolding->out->items, move->writer) : -1;
    bool is_result = move->is_download && writer >= 0 &&
                     move->extent.space != TND_SPACE_WORKSPACE &&
                     tnd_unfold_fetches(unfolding, writer, move->slot);
    struct tnd_step step = {
        .item = is_result ? writer : i,
        .kind = move->is_download ? TND_STEP_DOWNLOAD : TND_STEP_UPLOAD,
        .on_device = true,
        .stage = (uint8_t)(is_result ? TANDEM_STAGE_FINALIZE : stage),
        .backend = move->slot,
        .own_threads = 1,
        .is_early = unfolding->is_early,
        .moved = move->extent,
    };
    TND_ASSERT((unfolding->out->device_slots >> move->slot & 1) != 0 || move->is_download);
    TND_ASSERT(move->extent.bytes > 0);
    if (move->is_download) {
        step.wait = unfolding->device_waits;
        step.predicted_us = unfolding->device_us;
    }
    enum tandem_status status = tnd_unfold_add_step(unfolding, &step);
    unfolding->has_download = unfolding->has_download || (move->is_download && !step.is_early);
    return status;
}

void tnd_unfold_find_waits(struct tnd_steps *out)
{
    out->first_parallel = out->last_parallel = -1;
    bool wait = false;
    bool is_timed = false;
    for (int g = out->n_groups - 1; g >= 0; g--) {
        struct tnd_group *group = &out->groups[g];
        TND_ASSERT(group->first_step + group->n_steps <= out->n_steps);
        group->wait_after = wait && !is_timed;
        if (group->n_workers > 1) {
            wait = false;
            is_timed = false;
            out->first_parallel = g;
            out->last_parallel = out->last_parallel < 0 ? g : out->last_parallel;
            continue;
        }
        for (int i = 0; i < group->n_steps; i++) {
            const struct tnd_step *step = &out->steps[group->first_step + i];
            wait = wait || step->wait;
            is_timed = is_timed || tnd_step_is_timed(step);
        }
    }
}
