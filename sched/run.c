/* SPDX-License-Identifier: MIT
 * The loop over groups. Worker 0 is the caller: it alone calls `cancel`, submits, transfers and
 * syncs, and runs groups without a parallel step. The pool is used from the first to the last
 * parallel group; in between, the other workers wait in the barrier. Start at tnd_run_execute. */
#include "sched/run.h"

#include <stddef.h>
#include <string.h>

#include "base/float_mode.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

/* ---- groups ---- */

static void run_alone(struct tnd_run *run, const struct tnd_group *group)
{
    const struct tnd_step *steps = tnd_run_steps_of(run, group);
    for (int i = 0; i < group->n_steps && !tnd_run_is_stopped(run); i++) {
        tnd_run_note_begin(run, &steps[i]);
        if (steps[i].n_workers == 0) {
            if (steps[i].kind == TND_STEP_WORK) {
                tnd_run_submit(run, &steps[i]); /* its end is recorded when it is synced */
            } else {
                tnd_run_move(run, &steps[i]);
            }
            if (run->options->sync_each) {
                tnd_run_sync_all(run, false);
            }
            continue;
        }
        struct tnd_run_wait wait;
        struct tnd_run_stay stay = tnd_run_stay_begin(run);
        tnd_run_wait_begin(run, &steps[i], 0, 0, &wait);
        (void)tnd_run_on_worker(run, &steps[i], 0, 1, 1);
        tnd_run_wait_end(run, &wait);
        tnd_run_note_end(run, &steps[i]);
        const struct tnd_group alone = {.first_step = group->first_step + i, .n_steps = 1};
        tnd_run_note_lost(run, &alone, 1, tnd_run_stay_lost(run, &stay));
    }
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* A worker's share of the steps of a parallel group; a worker that is done with one step goes on to
 * the next. Worker 0 records the times. */
static void run_shares(struct tnd_run *run, const struct tnd_group *group, int index, int count)
{
    const struct tnd_step *steps = tnd_run_steps_of(run, group);
    int group_count = smaller(group->n_workers, count);
    struct tnd_run_stay stay = tnd_run_stay_begin(run);
    TND_ASSERT(index < group_count);
    for (int i = 0; i < group->n_steps; i++) {
        int step_count = smaller(steps[i].n_workers, count);
        if (index >= step_count) {
            continue;
        }
        if (index == 0) {
            tnd_run_note_begin(run, &steps[i]);
        }
        if (!tnd_run_on_worker(run, &steps[i], index, step_count, group_count)) {
            break;
        }
        if (index == 0 && i + 1 < group->n_steps) {
            tnd_run_note_end(run, &steps[i]);
        }
    }
    run->workers[index].begin_ns = stay.begin_ns;
    run->workers[index].lost_ns = tnd_run_stay_lost(run, &stay);
}

static void run_together(struct tnd_run *run, int g, int count)
{
    const struct tnd_group *group = &run->steps->groups[g];
    const struct tnd_step *step = tnd_run_steps_of(run, group);
    bool hints = group->n_workers < count && tnd_step_is_timed(step);
    struct tnd_run_wait wait;
    run->n_begun = group->first_step + group->n_steps;
    TND_ASSERT(group->n_steps > 0 && count > 1);
    run->group_now = g;
    if (hints) {
        tnd_run_wait_begin(run, step, 0, 0, &wait);
    }
    struct tnd_run_stay stay = tnd_run_stay_begin(run);
    tnd_barrier_release(&run->groups);
    run_shares(run, group, 0, count);
    tnd_barrier_gather(&run->groups, count, &run->spin);
    uint64_t lost_ns = tnd_run_stay_lost(run, &stay);
    if (hints) {
        tnd_run_wait_end(run, &wait);
    }
    tnd_run_note_end(run, step + group->n_steps - 1);
    tnd_run_note_lost(run, group, count, lost_ns);
}

/* Worker 0's work before a group; false ends the run. */
static bool begin_group(struct tnd_run *run, int g)
{
    tnd_run_ask_cancel(run);
    tnd_run_ask_late(run);
    if (!tnd_run_is_stopped(run) && run->n_flights > 0) {
        tnd_run_sync_flights(run, g);
    }
    if (!tnd_run_is_stopped(run) && run->has_download) {
        tnd_run_sync_all(run, true);
    }
    return !tnd_run_is_stopped(run);
}

static void report_progress(const struct tnd_run *run, int g)
{
    const struct tnd_steps *steps = run->steps;
    if (run->options->progress == NULL) {
        return;
    }
    int next = g + 1 < steps->n_groups ? steps->groups[g + 1].first_step : steps->n_steps;
    while (next < steps->n_steps && (steps->steps[next].kind == TND_STEP_DOWNLOAD ||
                                     steps->steps[next].kind == TND_STEP_STREAM)) {
        next++; /* results of nodes that are complete, weights of nodes that come later */
    }
    int n = run->graph->n_nodes;
    int n_done = next < steps->n_steps ? tnd_run_item_of(run, &steps->steps[next])->n_done : n;
    run->options->progress(run->options->user, n_done, n);
}

/* Groups group_next .. end-1; stops at the first error. */
static void run_groups(struct tnd_run *run, int end, int count)
{
    while (run->group_next < end && begin_group(run, run->group_next)) {
        int g = run->group_next++;
        const struct tnd_group *group = &run->steps->groups[g];
        if (group->n_workers > 1 && count > 1) {
            run_together(run, g, count);
        } else {
            run_alone(run, group);
        }
        if (!tnd_run_is_stopped(run)) {
            report_progress(run, g);
        }
    }
}

/* Returns the argument for tnd_float_mode_restore. */
static uint64_t enter_float_mode(const struct tnd_run *run)
{
    return run->keeps_subnormals ? tnd_float_mode_read() : tnd_float_mode_flush();
}

/* Workers 1.. : one parallel group after the other. */
static void follow(struct tnd_run *run, int index, int count)
{
    struct tnd_spin spin = tnd_pool_spin(run->pool, count);
    const struct tnd_spin asleep = {.polls = 0};
    unsigned ticket = run->ticket;
    bool sleeps = false;
    int g;
    spin.expected_ns = &run->expected_ns;
    do {
        tnd_barrier_pass(&run->groups, &ticket, sleeps ? &asleep : &spin);
        g = run->group_now;
        if (g < 0) {
            break; /* an error or cancel */
        }
        TND_ASSERT(g <= run->last_parallel && run->steps->groups[g].n_workers > 1);
        const struct tnd_group *group = &run->steps->groups[g];
        sleeps = group->wait_after;
        if (index < smaller(group->n_workers, count)) {
            run_shares(run, group, index, count);
        } else {
            const struct tnd_step *step = tnd_run_steps_of(run, group);
            sleeps = sleeps || (step->wait && !tnd_step_is_timed(step));
        }
        tnd_barrier_arrive(&run->groups, count);
    } while (g != run->last_parallel);
}

static void take_part(void *user, int index, int count)
{
    struct tnd_run *run = user;
    if (index > 0) {
        uint64_t mode = enter_float_mode(run);
        follow(run, index, count);
        tnd_float_mode_restore(mode);
        return;
    }
    run->spin = tnd_pool_spin(run->pool, count);
    run_groups(run, run->last_parallel + 1, count);
    if (count > 1 && run->group_now != run->last_parallel) {
        run->group_now = -1; /* ended early: the others still wait for a group */
        tnd_barrier_release(&run->groups);
    }
}

static void reset(struct tnd_run *run, int n_workers)
{
    atomic_store_explicit(&run->stop, false, memory_order_relaxed);
    atomic_store_explicit(&run->failed_worker, -1, memory_order_relaxed);
    tnd_barrier_reset(&run->stage); /* a failed worker of the last run has left it */
    run->ticket = tnd_barrier_ticket(&run->groups);
    run->group_now = -1;
    run->group_next = 0;
    run->n_flights = 0;
    memset(run->device_work, 0, sizeof(run->device_work));
    memset(run->expected_ns_of, 0, sizeof(run->expected_ns_of));
    atomic_store_explicit(&run->expected_ns, 0, memory_order_relaxed);
    for (int slot = 1; slot < TND_MAX_SLOTS && run->steps->device_slots >> slot != 0; slot++) {
        run->device_work[slot].n_failures = tnd_run_failures_of(run, slot);
    }
    run->has_download = false;
    run->n_begun = 0;
    run->n_times = 0;
    run->status = TANDEM_OK;
    run->failed_step = -1;
    run->is_late = false;
    run->until_ns =
        run->options->limit_ns > 0 ? run->clock->now_ns(run->clock) + run->options->limit_ns : 0;
    run->give_up_ns = run->until_ns;
    run->direct = 0;
    TND_ASSERT(run->bounces == NULL);
    TND_ASSERT(n_workers >= 1 && n_workers <= run->n_workers);
    for (int i = 0; i < n_workers; i++) {
        struct tnd_run_worker *worker = &run->workers[i];
        worker->run = run;
        worker->status = TANDEM_OK;
        memset(&worker->error, 0, offsetof(struct tandem_error, text) + 1);
        worker->worker.error = &worker->error;
        worker->worker.next = tnd_run_next_chunk;
        worker->worker.barrier = tnd_run_stage_barrier;
        worker->worker.stopped = tnd_run_worker_stopped;
    }
    /* loops are numbered from step 0 on in each run */
    for (int i = 0; i < TND_CONCURRENT_NODES * run->n_workers; i++) {
        atomic_store_explicit(&run->cursors[i].at, 0, memory_order_relaxed);
    }
}

/* Records which backend failed, so that the planner can avoid it. */
static void blame(const struct tnd_run *run, int step, enum tandem_status status,
                  struct tnd_exec_failure *out)
{
    int slot = step >= 0 ? run->steps->steps[step].backend : 0;
    bool is_device = status >= TANDEM_E_DEVICE && status <= TANDEM_E_DEVICE_TIMEOUT;
    out->kind = run->is_late                             ? TND_FAILURE_LATE
                : is_device && slot > TANDEM_BACKEND_CPU ? TND_FAILURE_FAULT
                                                         : TND_FAILURE_NONE;
    out->slot = slot;
}

enum tandem_status tnd_run_execute(struct tnd_run *run, int n_workers,
                                   struct tnd_exec_failure *out_failure, struct tandem_error *error)
{
    int first_parallel = run->steps->first_parallel;
    uint64_t mode = enter_float_mode(run); /* for the caller, who is worker 0 */
    reset(run, n_workers);
    run->last_parallel = run->steps->last_parallel;
    run->uses_pool = n_workers > 1 && first_parallel >= 0;
    if (run->uses_pool) {
        run_groups(run, first_parallel, 1);
        if (!tnd_run_is_stopped(run)) {
            (void)tnd_pool_run(run->pool, n_workers, take_part, run);
        }
    }
    run_groups(run, run->steps->n_groups, 1);
    tnd_run_sync_flights(run,
                         run->steps->n_groups); /* even after a failure nothing stays in flight */
    if (run->steps->residency != NULL) {
        tnd_run_sync_all(run, false);
    }
    TND_ASSERT(run->n_flights == 0);
    tnd_float_mode_restore(mode);
    if (run->options->out_n_times != NULL) {
        *run->options->out_n_times = run->n_times;
    }
    enum tandem_status status = run->status;
    const struct tandem_error *why = &run->error;
    int failed_step = run->failed_step;
    int failed_worker = atomic_load(&run->failed_worker);
    if (failed_worker >= 0) {
        why = &run->workers[failed_worker].error;
        status = run->workers[failed_worker].status;
        failed_step = run->workers[failed_worker].failed_step;
    }
    if (status != TANDEM_OK) {
        blame(run, failed_step, status, out_failure);
    }
    if (status != TANDEM_OK && error != NULL) {
        *error = *why;
    }
    return status;
}
