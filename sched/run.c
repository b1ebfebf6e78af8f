/* SPDX-License-Identifier: MIT
 * The loop over groups. Worker 0 is the caller: it alone asks for cancel, submits, moves and
 * syncs, and runs groups without a parallel step. The pool is used from the first to the last
 * parallel group; in between, the other workers wait in the barrier. Start at tnd_run_execute. */
#include "sched/run.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/tnd_status.h"

enum { LOOPS_BITS = 16 }; /* of one step; backends have one or two */

static const struct tnd_step *steps_of(const struct tnd_run *run, const struct tnd_group *group)
{
    return &run->steps->steps[group->first_step];
}

static tandem_backend *backend_of(const struct tnd_run *run, const struct tnd_step *step)
{
    return tnd_registry_backend(run->registry, step->backend);
}

static bool is_stopped(const struct tnd_run *run)
{
    return atomic_load_explicit(&run->stop, memory_order_relaxed);
}

/* ---- what backends see of a worker ---- */

static bool next_chunk(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                       int64_t *out_begin, int64_t *out_end)
{
    struct tnd_run_worker *self = (struct tnd_run_worker *)worker;
    if (n_items <= 0 || is_stopped(self->run)) {
        return false;
    }
    return tnd_chunk_next(self->cursors, worker->index, worker->count, self->loop, n_items, chunk,
                          out_begin, out_end);
}

/* After the barrier a backend may hand out a second loop. */
static void stage_barrier(struct tandem_worker *worker)
{
    struct tnd_run_worker *self = (struct tnd_run_worker *)worker;
    if (worker->count > 1) {
        struct tnd_spin spin = tnd_pool_spin(self->run->pool, worker->count);
        tnd_barrier_wait(&self->run->stage, worker->count, &spin, NULL, NULL);
    }
    self->loop++;
}

/* ---- failing ---- */

/* Puts the place in front of the backend's reason. */
static void describe_failure(const struct tnd_run *run, const struct tnd_step *step,
                             enum tandem_status status, struct tandem_error *error)
{
    const struct tandem_tensor *node = run->graph->nodes[step->node];
    char reason[sizeof(error->text)];
    snprintf(reason, sizeof(reason), "%s",
             error->text[0] != '\0' ? error->text : tandem_status_text(status));
    tnd_error_set(error, status, error->where[0] != '\0' ? error->where : node->name, error->got,
                  error->limit, "node %d (%s) %s: %s", (int)step->node, tandem_op_name(node->op),
                  tandem_stage_name((enum tandem_stage)step->stage), reason);
}

/* The first failing worker wins; its error is read when all have arrived. */
static void fail_on_worker(struct tnd_run_worker *worker, const struct tnd_step *step,
                           enum tandem_status status)
{
    struct tnd_run *run = worker->run;
    int none = -1;
    worker->status = status;
    worker->failed_step = (int)(step - run->steps->steps);
    describe_failure(run, step, status, &worker->error);
    (void)atomic_compare_exchange_strong(&run->failed_worker, &none, worker->worker.index);
    atomic_store_explicit(&run->stop, true, memory_order_relaxed);
}

/* Worker 0's own failures. */
static void fail_on_device(struct tnd_run *run, const struct tnd_step *step,
                           enum tandem_status status, struct tandem_error *error)
{
    describe_failure(run, step, status, error);
    if (run->status == TANDEM_OK) {
        run->status = status;
        run->error = *error;
        run->failed_step = (int)(step - run->steps->steps);
    }
    atomic_store_explicit(&run->stop, true, memory_order_relaxed);
}

/* ---- times ---- */

static void note_begin(struct tnd_run *run, const struct tnd_step *step)
{
    int i = (int)(step - run->steps->steps);
    run->n_begun = run->n_begun > i ? run->n_begun : i + 1;
    if (i >= run->options->n_times || run->options->times == NULL) {
        return;
    }
    struct tnd_step_time *time = &run->options->times[i];
    time->node = step->node;
    time->stage = step->stage;
    time->backend = step->backend;
    time->kind = step->kind;
    time->bytes = step->kind == TND_STEP_WORK ? 0 : step->moved.bytes;
    time->begin_ns = run->clock->now_ns(run->clock);
    time->end_ns = time->begin_ns;
    run->n_times = i + 1;
}

static void note_end(struct tnd_run *run, const struct tnd_step *step)
{
    int i = (int)(step - run->steps->steps);
    if (i < run->options->n_times && run->options->times != NULL) {
        run->options->times[i].end_ns = run->clock->now_ns(run->clock);
    }
}

/* ---- steps ---- */

/* The fused nodes, for a work that is described. */
static void describe_fused(const struct tnd_run *run, const struct tnd_step *step,
                           const struct tandem_tensor **out_nodes, struct tandem_work *out)
{
    int fused[TANDEM_FUSED_NODES];
    int n = tnd_fused_nodes(run->steps->fused, step->node, fused);
    for (int i = 0; i < n; i++) {
        out_nodes[i] = run->graph->nodes[fused[i]];
        bool is_unread = i < n - 1 && tnd_is_read_once(out_nodes[i]);
        out->unread |= is_unread ? UINT32_C(1) << i : 0;
    }
    out->nodes = out_nodes;
    out->n_nodes = n;
}

static void describe_work(const struct tnd_run *run, const struct tnd_step *step,
                          struct tandem_work *out)
{
    out->node = run->graph->nodes[step->node];
    out->task = step->task;
    out->row_begin = step->row_begin;
    out->row_end = step->row_end;
    out->workspace =
        step->workspace_bytes == 0 ? NULL : run->workspace.base + step->workspace_offset;
    out->workspace_bytes = step->workspace_bytes;
    out->nodes = NULL;
    out->n_nodes = 0;
    out->unread = 0;
}

/* `count` workers run the step, among those of its group. False after a failure. */
static bool run_on_worker(struct tnd_run *run, const struct tnd_step *step, int index, int count,
                          int group_count)
{
    struct tnd_run_worker *worker = &run->workers[index];
    const struct tnd_group *group = &run->steps->groups[step->group];
    int place = (int)(step - steps_of(run, group));
    const struct tandem_tensor *fused[TANDEM_FUSED_NODES];
    struct tandem_work work;
    int pool_size = tnd_pool_size(run->pool);
    describe_work(run, step, &work);
    if (run->steps->fused[step->node].from >= 0) {
        describe_fused(run, step, fused, &work);
    }
    worker->cursors = &run->cursors[group->n_workers > 1 ? place * run->n_workers : 0];
    worker->loop = (uint64_t)(step - run->steps->steps + 1) << LOOPS_BITS;
    worker->worker.index = index;
    worker->worker.count = count;
    worker->worker.own_threads = step->own_threads < pool_size ? step->own_threads : pool_size;
    enum tandem_status status = tnd_backend_run(backend_of(run, step), &work, &worker->worker);
    if (status != TANDEM_OK) {
        fail_on_worker(worker, step, status);
        /* others may wait for it in there */
        tnd_barrier_leave(&run->stage, group_count, NULL, NULL);
    }
    return status == TANDEM_OK;
}

/* The device has a ticket more; only the last one is synced. */
static void note_device_work(struct tnd_run *run, const struct tnd_step *step, uint64_t ticket)
{
    struct tnd_run_device_work *given = &run->device_work[step->backend];
    given->last = (int)(step - run->steps->steps);
    given->first = given->is_open ? given->first : given->last;
    given->is_open = true;
    given->ticket = ticket;
}

static void submit(struct tnd_run *run, const struct tnd_step *step)
{
    struct tandem_work work;
    struct tandem_error error;
    uint64_t ticket = 0;
    memset(&error, 0, sizeof(error));
    describe_work(run, step, &work);
    enum tandem_status status = tnd_backend_submit(backend_of(run, step), &work, &ticket, &error);
    if (status != TANDEM_OK) {
        fail_on_device(run, step, status, &error);
        return;
    }
    if (step->on_device) {
        note_device_work(run, step, ticket);
        (void)tnd_run_predict_end(run, step);
        return;
    }
    run->flights[run->n_flights++] = (struct tnd_run_flight){
        ticket, (int)(step - run->steps->steps), tnd_run_predict_end(run, step)};
}

static void move(struct tnd_run *run, const struct tnd_step *step)
{
    struct tandem_error error;
    uint64_t ticket = 0;
    void *address = tnd_run_address(run, &step->moved);
    memset(&error, 0, sizeof(error));
    bool is_download = step->kind == TND_STEP_DOWNLOAD;
    enum tandem_status status =
        is_download ? tnd_backend_download(backend_of(run, step), address, step->moved.bytes,
                                           &ticket, &error)
                    : tnd_backend_upload(backend_of(run, step), address, step->moved.bytes, &error);
    if (status != TANDEM_OK) {
        fail_on_device(run, step, status, &error);
    } else if (is_download) {
        note_device_work(run, step, ticket);
        run->device_work[step->backend].has_download = true;
        run->has_download = true;
    } else {
        note_end(run, step);
    }
}

static unsigned failures_of(const struct tnd_run *run, int slot)
{
    struct tnd_run_device *device = &run->devices[slot];
    pthread_mutex_lock(&device->lock);
    unsigned n_failures = device->n_failures;
    pthread_mutex_unlock(&device->lock);
    return n_failures;
}

static enum tandem_status sync_shared(const struct tnd_run *run, int slot,
                                      struct tandem_error *error)
{
    struct tnd_run_device *device = &run->devices[slot];
    tandem_backend *backend = tnd_registry_backend(run->registry, slot);
    pthread_mutex_lock(&device->lock);
    enum tandem_status status = tnd_backend_sync(backend, run->device_work[slot].ticket, error);
    bool others_failed = device->n_failures != run->device_work[slot].n_failures;
    device->n_failures += status != TANDEM_OK;
    pthread_mutex_unlock(&device->lock);
    if (status == TANDEM_OK && others_failed) {
        return tnd_error_set(error, TANDEM_E_DEVICE, backend->api->name, 0, 0,
                             "%s: has failed meanwhile in another computation", backend->api->name);
    }
    return status;
}

/* Waits for all that the device was given. */
static void sync_device(struct tnd_run *run, int slot)
{
    struct tnd_run_device_work *given = &run->device_work[slot];
    const struct tnd_step *last = &run->steps->steps[given->last];
    struct tandem_error error;
    memset(&error, 0, sizeof(error));
    struct tnd_run_wait wait;
    tnd_run_wait_begin(run, last, slot, run->expected_ns_of[slot], &wait);
    enum tandem_status status = sync_shared(run, slot, &error);
    tnd_run_wait_end(run, &wait);
    for (int i = given->first; i <= given->last && i < run->n_times; i++) {
        const struct tnd_step *step = &run->steps->steps[i];
        if (step->on_device && step->backend == slot && step->kind != TND_STEP_UPLOAD) {
            note_end(run, step);
        }
    }
    given->is_open = false;
    given->has_download = false;
    if (status != TANDEM_OK) {
        fail_on_device(run, last, status, &error);
    }
}

/* Downloads are awaited, or everything. */
static void sync_devices_all(struct tnd_run *run, bool downloads_only)
{
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        const struct tnd_run_device_work *given = &run->device_work[slot];
        if (given->is_open && (given->has_download || !downloads_only)) {
            sync_device(run, slot);
        }
    }
    run->has_download = false;
}

/* Syncs what must be over before `group` begins, in the order of submission. */
static void sync_devices(struct tnd_run *run, int group)
{
    int n_kept = 0;
    for (int i = 0; i < run->n_flights; i++) {
        const struct tnd_step *step = &run->steps->steps[run->flights[i].step];
        if (step->until > group) {
            run->flights[n_kept++] = run->flights[i];
            continue;
        }
        struct tandem_error error;
        struct tnd_run_wait wait;
        memset(&error, 0, sizeof(error));
        tnd_run_wait_begin(run, step, step->backend, run->flights[i].expected_ns, &wait);
        enum tandem_status status =
            tnd_backend_sync(backend_of(run, step), run->flights[i].ticket, &error);
        tnd_run_wait_end(run, &wait);
        note_end(run, step);
        if (status != TANDEM_OK) {
            fail_on_device(run, step, status, &error);
        }
    }
    run->n_flights = n_kept;
}

/* ---- groups ---- */

static void run_alone(struct tnd_run *run, const struct tnd_group *group)
{
    const struct tnd_step *steps = steps_of(run, group);
    for (int i = 0; i < group->n_steps && !is_stopped(run); i++) {
        note_begin(run, &steps[i]);
        if (steps[i].n_workers == 0) {
            if (steps[i].kind == TND_STEP_WORK) {
                submit(run, &steps[i]); /* its end is noted when it is synced */
            } else {
                move(run, &steps[i]);
            }
            if (run->options->sync_each) {
                sync_devices_all(run, false);
            }
            continue;
        }
        struct tnd_run_wait wait;
        tnd_run_wait_begin(run, &steps[i], 0, 0, &wait);
        (void)run_on_worker(run, &steps[i], 0, 1, 1);
        tnd_run_wait_end(run, &wait);
        note_end(run, &steps[i]);
    }
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* A worker's part in the steps of a parallel group; whoever is done with one goes on to the next.
 * Worker 0 keeps the times. */
static void run_shares(struct tnd_run *run, const struct tnd_group *group, int index, int count)
{
    const struct tnd_step *steps = steps_of(run, group);
    int group_count = smaller(group->n_workers, count);
    for (int i = 0; i < group->n_steps; i++) {
        int step_count = smaller(steps[i].n_workers, count);
        if (index >= step_count) {
            continue;
        }
        if (index == 0) {
            note_begin(run, &steps[i]);
        }
        if (!run_on_worker(run, &steps[i], index, step_count, group_count)) {
            break;
        }
        if (index == 0 && i + 1 < group->n_steps) {
            note_end(run, &steps[i]);
        }
    }
}

static void run_together(struct tnd_run *run, int g, int count)
{
    const struct tnd_group *group = &run->steps->groups[g];
    const struct tnd_step *step = steps_of(run, group);
    bool hints = group->n_workers < count && tnd_step_is_timed(step);
    struct tnd_run_wait wait;
    run->n_begun = group->first_step + group->n_steps;
    run->group_now = g;
    if (hints) {
        tnd_run_wait_begin(run, step, 0, 0, &wait);
    }
    tnd_barrier_release(&run->groups);
    run_shares(run, group, 0, count);
    tnd_barrier_gather(&run->groups, count, &run->spin);
    if (hints) {
        tnd_run_wait_end(run, &wait);
    }
    note_end(run, step + group->n_steps - 1);
}

/* What worker 0 does before a group; false ends the run. */
static bool begin_group(struct tnd_run *run, int g)
{
    const struct tnd_exec_run_options *options = run->options;
    if (options->cancel != NULL && run->status == TANDEM_OK && options->cancel(options->user)) {
        run->status =
            tnd_error_set(&run->error, TANDEM_E_CANCELLED, "exec", g, run->steps->n_groups,
                          "cancelled by the caller before group %d of %d", g, run->steps->n_groups);
        atomic_store_explicit(&run->stop, true, memory_order_relaxed);
    }
    if (!is_stopped(run) && run->n_flights > 0) {
        sync_devices(run, g);
    }
    if (!is_stopped(run) && run->has_download) {
        sync_devices_all(run, true);
    }
    return !is_stopped(run);
}

static void report_progress(const struct tnd_run *run, int g)
{
    const struct tnd_steps *steps = run->steps;
    if (run->options->progress == NULL) {
        return;
    }
    int next = g + 1 < steps->n_groups ? steps->groups[g + 1].first_step : steps->n_steps;
    while (next < steps->n_steps && steps->steps[next].kind == TND_STEP_DOWNLOAD) {
        next++; /* results of nodes that are done already */
    }
    int n_done = next < steps->n_steps ? steps->steps[next].node : run->graph->n_nodes;
    run->options->progress(run->options->user, n_done, run->graph->n_nodes);
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
        if (!is_stopped(run)) {
            report_progress(run, g);
        }
    }
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
        const struct tnd_group *group = &run->steps->groups[g];
        sleeps = group->wait_after;
        if (index < smaller(group->n_workers, count)) {
            run_shares(run, group, index, count);
        } else {
            const struct tnd_step *step = steps_of(run, group);
            sleeps = sleeps || (step->wait && !tnd_step_is_timed(step));
        }
        tnd_barrier_arrive(&run->groups, count);
    } while (g != run->last_parallel);
}

static void take_part(void *user, int index, int count)
{
    struct tnd_run *run = user;
    if (index > 0) {
        follow(run, index, count);
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
        run->device_work[slot].n_failures = failures_of(run, slot);
    }
    run->has_download = false;
    run->n_begun = 0;
    run->n_times = 0;
    run->status = TANDEM_OK;
    run->failed_step = -1;
    for (int i = 0; i < n_workers; i++) {
        struct tnd_run_worker *worker = &run->workers[i];
        worker->run = run;
        worker->status = TANDEM_OK;
        memset(&worker->error, 0, offsetof(struct tandem_error, text) + 1);
        worker->worker.error = &worker->error;
        worker->worker.next = next_chunk;
        worker->worker.barrier = stage_barrier;
    }
    /* loops are numbered from step 0 on in each run */
    for (int i = 0; i < TND_CONCURRENT_NODES * run->n_workers; i++) {
        atomic_store_explicit(&run->cursors[i].at, 0, memory_order_relaxed);
    }
}

/* First and last parallel group; -1 when there is none. */
static void find_parallel(const struct tnd_steps *steps, int *out_first, int *out_last)
{
    *out_first = -1;
    *out_last = -1;
    for (int g = 0; g < steps->n_groups; g++) {
        if (steps->groups[g].n_workers > 1) {
            *out_first = *out_first < 0 ? g : *out_first;
            *out_last = g;
        }
    }
}

/* Which backend it was, for those who plan again. */
static void blame(const struct tnd_run *run, int step, enum tandem_status status,
                  struct tnd_exec_failure *out)
{
    int slot = step >= 0 ? run->steps->steps[step].backend : 0;
    bool is_device = status >= TANDEM_E_DEVICE && status <= TANDEM_E_DEVICE_TIMEOUT;
    out->kind = is_device && slot > TANDEM_BACKEND_CPU ? TND_FAILURE_FAULT : TND_FAILURE_NONE;
    out->slot = slot;
}

enum tandem_status tnd_run_execute(struct tnd_run *run, int n_workers,
                                   struct tnd_exec_failure *out_failure, struct tandem_error *error)
{
    int first_parallel;
    reset(run, n_workers);
    find_parallel(run->steps, &first_parallel, &run->last_parallel);
    run->uses_pool = n_workers > 1 && first_parallel >= 0;
    if (run->uses_pool) {
        run_groups(run, first_parallel, 1);
        if (!is_stopped(run)) {
            (void)tnd_pool_run(run->pool, n_workers, take_part, run);
        }
    }
    run_groups(run, run->steps->n_groups, 1);
    sync_devices(run, run->steps->n_groups); /* whatever happened, nothing stays in flight */
    if (run->steps->residency != NULL) {
        sync_devices_all(run, false);
    }
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
