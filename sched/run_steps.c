/* SPDX-License-Identifier: MIT
 * One step of a run: work on workers or on a device, or a transfer; its times and its failure.
 * run.c decides when it runs. */
#include <stdio.h>
#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "sched/fuse.h"
#include "sched/run.h"
#include "sched/stall.h"
#include "sched/stream.h"

enum { LOOPS_BITS = 16 }; /* of one step that takes chunks; backends have one or two */

static tandem_backend *backend_of(const struct tnd_run *run, const struct tnd_step *step)
{
    return tnd_registry_backend(run->registry, step->backend);
}

/* ---- cancelling ---- */

/* The device that got the last step. */
static int last_device(const struct tnd_run *run)
{
    int i = run->n_begun - 1;
    while (i >= 0 && !run->steps->steps[i].on_device) {
        i--;
    }
    return i;
}

void tnd_run_ask_late(struct tnd_run *run)
{
    int node;
    if (run->until_ns == 0 || run->status != TANDEM_OK ||
        run->clock->now_ns(run->clock) < run->until_ns) {
        return;
    }
    const int step = last_device(run);
    if (step < 0) {
        return;
    }
    run->until_ns = 0;         /* only one check */
    run->has_collected = true; /* true after the failure */
    bool can_repeat = tnd_run_can_repeat(run, &node);
    run->has_collected = false;
    if (can_repeat) {
        run->is_late = true;
        run->failed_step = step;
        run->status = tnd_error_set(&run->error, TANDEM_E_DEVICE_TIMEOUT, "exec", run->group_next,
                                    run->steps->n_groups, "not done after %.0f ms",
                                    (double)run->options->limit_ns / 1e6);
        atomic_store_explicit(&run->stop, true, memory_order_relaxed);
    }
}

void tnd_run_ask_cancel(struct tnd_run *run)
{
    const struct tnd_exec_run_options *options = run->options;
    if (options->cancel == NULL || run->status != TANDEM_OK) {
        return;
    }
    run->asked_ns = run->clock->now_ns(run->clock);
    if (options->cancel(options->user)) {
        run->status =
            tnd_error_set(&run->error, TANDEM_E_CANCELLED, "exec", run->group_next,
                          run->steps->n_groups, "cancelled by the caller, %d of %d groups begun",
                          run->group_next, run->steps->n_groups);
        atomic_store_explicit(&run->stop, true, memory_order_relaxed);
    }
}

/* Calls `cancel` during a long node, when the caller's thread takes a chunk. */
static void ask_again(struct tnd_run_worker *self)
{
    enum {
        ASK_NS = 10 * 1000 * 1000
    }; /* 10 ms: short enough for a user, and `cancel` may be
                                         * slow */
    struct tnd_run *run = self->run;
    if (run->options->cancel != NULL && self == &run->workers[0] &&
        run->clock->now_ns(run->clock) - run->asked_ns >= ASK_NS) {
        tnd_run_ask_cancel(run);
    }
}

/* ---- what backends see of a worker ---- */

bool tnd_run_worker_stopped(struct tandem_worker *worker)
{
    struct tnd_run_worker *self = (struct tnd_run_worker *)worker;
    ask_again(self);
    return tnd_run_is_stopped(self->run);
}

bool tnd_run_next_chunk(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                        int64_t *out_begin, int64_t *out_end)
{
    struct tnd_run_worker *self = (struct tnd_run_worker *)worker;
    TND_ASSERT(worker->index >= 0 && worker->index < worker->count && self->loop > 0);
    TND_ASSERT(~self->loop % ((uint64_t)1 << LOOPS_BITS) != 0);
    if (tnd_run_worker_stopped(worker) || n_items <= 0) {
        return false;
    }
    if (self->share.nodes != NULL) {
        return tnd_chunk_next_of_node(self->cursors, &self->share, worker->index, self->loop,
                                      n_items, chunk, out_begin, out_end);
    }
    return tnd_chunk_next(self->cursors, worker->index, worker->count, self->loop, n_items, chunk,
                          out_begin, out_end);
}

void tnd_run_stage_barrier(struct tandem_worker *worker)
{
    struct tnd_run_worker *self = (struct tnd_run_worker *)worker;
    if (worker->count > 1) {
        struct tnd_spin spin = tnd_pool_spin(self->run->pool, worker->count);
        tnd_barrier_wait(&self->run->stage, worker->count, &spin);
    }
    /* Steps of a recurrent layer take no chunks: there may be more of them than loop numbers. */
    self->loop += ~self->loop % ((uint64_t)1 << LOOPS_BITS) != 0 ? 1 : 0;
}

/* ---- failing ---- */

/* Prefixes the backend's reason with the node and stage. */
static void describe_failure(const struct tnd_run *run, const struct tnd_step *step,
                             enum tandem_status status, struct tandem_error *error)
{
    const struct tandem_tensor *node = tnd_run_item_of(run, step)->tensor;
    char reason[sizeof(error->text)];
    snprintf(reason, sizeof(reason), "%s",
             error->text[0] != '\0' ? error->text : tandem_status_text(status));
    tnd_error_set(error, status, error->where[0] != '\0' ? error->where : node->name, error->got,
                  error->limit, "node %d (%s) %s: %s", tnd_run_item_of(run, step)->node,
                  tandem_op_name(node->op), tandem_stage_name((enum tandem_stage)step->stage),
                  reason);
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

/* Failures of worker 0: devices, cancel. */
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

void tnd_run_note_begin(struct tnd_run *run, const struct tnd_step *step)
{
    int i = (int)(step - run->steps->steps);
    run->n_begun = run->n_begun > i ? run->n_begun : i + 1;
    if (i >= run->options->n_times || run->options->times == NULL) {
        return;
    }
    struct tnd_step_time *time = &run->options->times[i];
    const struct tnd_item *item = tnd_run_item_of(run, step);
    TND_ASSERT(step->stage < TANDEM_STAGES);
    time->node = item->node;
    time->stage = item->role == TND_ITEM_JOIN   ? TANDEM_STAGE_FINALIZE
                  : item->role == TND_ITEM_COPY ? TANDEM_STAGE_INIT
                                                : step->stage;
    time->role = item->role;
    time->part = item->part;
    time->backend = step->backend;
    time->kind = step->kind;
    time->bytes = step->kind == TND_STEP_WORK ? 0 : step->moved.bytes;
    time->begin_ns = run->clock->now_ns(run->clock);
    time->end_ns = time->begin_ns;
    time->lost_ns = 0;
    time->ticket = 0;
    run->n_times = i + 1;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

struct tnd_run_stay tnd_run_stay_begin(const struct tnd_run *run)
{
    struct tnd_run_stay stay = {0, 0};
    if (run->options->asks_lost) {
        stay.begin_ns = run->clock->now_ns(run->clock);
        stay.cpu_ns = run->clock->thread_ns(run->clock);
    }
    return stay;
}

uint64_t tnd_run_stay_lost(const struct tnd_run *run, const struct tnd_run_stay *stay)
{
    if (!run->options->asks_lost) {
        return 0;
    }
    uint64_t ran_ns = minus(run->clock->thread_ns(run->clock), stay->cpu_ns);
    return minus(run->clock->now_ns(run->clock), stay->begin_ns + ran_ns);
}

void tnd_run_note_lost(struct tnd_run *run, const struct tnd_group *group, int count,
                       uint64_t own_ns)
{
    int first = group->first_step;
    int end = first + group->n_steps < run->n_times ? first + group->n_steps : run->n_times;
    if (!run->options->asks_lost || first >= end) {
        return;
    }
    uint64_t lost_ns = own_ns;
    for (int w = 1; w < run->steps->steps[first].n_workers && w < count; w++) {
        const struct tnd_run_worker *worker = &run->workers[w];
        uint64_t late_ns = minus(worker->begin_ns, run->options->times[first].begin_ns);
        lost_ns = late_ns + worker->lost_ns > lost_ns ? late_ns + worker->lost_ns : lost_ns;
    }
    for (int i = first; i < end; i++) {
        run->options->times[i].lost_ns = lost_ns; /* who is late in one step delays the next ones */
    }
}

void tnd_run_note_end(struct tnd_run *run, const struct tnd_step *step)
{
    int i = (int)(step - run->steps->steps);
    if (i < run->options->n_times && run->options->times != NULL) {
        run->options->times[i].end_ns = run->clock->now_ns(run->clock);
    }
}

/* ---- steps ---- */

/* Adds the fused nodes to the description of the work. */
static void describe_fused(const struct tnd_run *run, const struct tnd_step *step,
                           const struct tandem_tensor **out_nodes, struct tandem_work *out)
{
    int fused[TANDEM_FUSED_NODES];
    int n = tnd_fused_items(&run->steps->items, step->item, fused);
    for (int i = 0; i < n; i++) {
        out_nodes[i] = run->steps->items.list[fused[i]].tensor;
        bool is_unread = i < n - 1 && tnd_is_read_once(out_nodes[i]);
        out->unread |= is_unread ? UINT32_C(1) << i : 0;
    }
    out->nodes = out_nodes;
    out->n_nodes = n;
}

static void describe_work(const struct tnd_run *run, const struct tnd_step *step,
                          struct tandem_work *out)
{
    out->node = tnd_run_item_of(run, step)->tensor;
    out->task = tnd_task_told(step->task);
    out->row_begin = step->row_begin;
    out->row_end = step->row_end;
    out->workspace =
        step->workspace_bytes == 0 ? NULL : run->workspace.base + step->workspace_offset;
    out->workspace_bytes = step->workspace_bytes;
    out->nodes = NULL;
    out->n_nodes = 0;
    out->unread = 0;
    out->places = NULL;
    out->prepared = tnd_task_is(step->task, TND_TASK_USES_PACKED) ? step->prepared : NULL;
}

/* With several NUMA nodes: assigns rows of the weight to nodes. */
static void share_by_nodes(const struct tnd_run *run, const struct tnd_step *step,
                           struct tnd_run_worker *worker)
{
    const struct tnd_chunk_nodes *nodes =
        worker->worker.count > 1 ? tnd_pool_nodes(run->pool) : NULL;
    worker->share.nodes = NULL;
    worker->worker.node = 0;
    if (nodes == NULL) {
        return;
    }
    const struct tandem_tensor *node = tnd_run_item_of(run, step)->tensor;
    tnd_chunk_share_begin(&worker->share, nodes, worker->worker.count);
    worker->worker.node = nodes->node[worker->worker.index];
    worker->share.rows = node->op == TANDEM_OP_MUL_MAT ? node->src[0]->ne[1] : 0;
    worker->share.row_begin = step->row_begin;
    worker->share.row_end = step->row_end;
}

/* Reads a byte of each 64 KiB of a worker's share of a weight that has not been read before: on a
 * page fault in a file, Linux maps that much around the page. All these faults come before the
 * product, since pages that have just been mapped are slow to read (Zen 5 in a virtual machine:
 * 0.25 us a page at once, 0.02 after 8 more faults), and since the hardware does not prefetch
 * unmapped pages. */
static void map_rows(const struct tandem_work *work, const struct tandem_worker *worker)
{
    enum { AROUND = 64 << 10 };
    const struct tandem_tensor *weight = work->node->src[0];
    const int64_t n = work->row_end - work->row_begin;
    const int64_t begin = n * worker->index / worker->count;
    const int64_t end = n * (worker->index + 1) / worker->count;
    const volatile char *rows =
        (const char *)weight->data + work->row_begin * (int64_t)weight->nb[1];
    for (int64_t i = begin * (int64_t)weight->nb[1]; i < end * (int64_t)weight->nb[1];
         i += AROUND) {
        (void)rows[i];
    }
}

bool tnd_run_on_worker(struct tnd_run *run, const struct tnd_step *step, int index, int count,
                       int group_count)
{
    struct tnd_run_worker *worker = &run->workers[index];
    const struct tnd_group *group = &run->steps->groups[step->group];
    int place = (int)(step - tnd_run_steps_of(run, group));
    const struct tandem_tensor *fused[TANDEM_FUSED_NODES];
    struct tandem_work work;
    int pool_size = tnd_pool_size(run->pool);
    TND_ASSERT(index >= 0 && index < count && count <= run->n_workers && count <= group_count);
    TND_ASSERT(place >= 0 && place < group->n_steps && step->row_begin <= step->row_end);
    TND_ASSERT(group->n_workers <= 1 || place < TND_CONCURRENT_NODES);
    worker->cursors = &run->cursors[group->n_workers > 1 ? place * run->n_workers : 0];
    worker->loop = (uint64_t)(step - run->steps->steps + 1) << LOOPS_BITS;
    worker->worker.index = index;
    worker->worker.count = count;
    share_by_nodes(run, step, worker);
    worker->worker.own_threads = step->own_threads < pool_size ? step->own_threads : pool_size;
    const struct tnd_item *item = tnd_run_item_of(run, step);
    if (tnd_item_is_move(item)) {
        tnd_item_move(item, &worker->worker);
        return true;
    }
    describe_work(run, step, &work);
    if (item->from >= 0) {
        describe_fused(run, step, fused, &work);
    }
    if (step->reads_rows_first && work.node->op == TANDEM_OP_MUL_MAT) {
        map_rows(&work, &worker->worker);
    }
    enum tandem_status status = tnd_backend_run(backend_of(run, step), &work, &worker->worker);
    if (status != TANDEM_OK) {
        fail_on_worker(worker, step, status);
        /* others may wait for this worker in the stage's barrier */
        tnd_barrier_leave(&run->stage, group_count);
    }
    return status == TANDEM_OK;
}

/* Records the ticket of work submitted to the device; only the last one is synced. */
static void note_device_work(struct tnd_run *run, const struct tnd_step *step, uint64_t ticket)
{
    struct tnd_run_device_work *given = &run->device_work[step->backend];
    TND_ASSERT(step->on_device && step->backend < TND_MAX_SLOTS);
    given->last = (int)(step - run->steps->steps);
    given->first = given->is_open ? given->first : given->last;
    given->is_open = true;
    given->ticket = ticket;
}

void tnd_run_submit(struct tnd_run *run, const struct tnd_step *step)
{
    struct tandem_work work;
    struct tandem_error error;
    uint64_t ticket = 0;
    memset(&error, 0, sizeof(error));
    describe_work(run, step, &work);
    struct tandem_places places;
    if (step->on_device) {
        tnd_run_places(run, step, &places);
        work.places = &places;
    }
    enum tandem_status status = tnd_backend_submit(backend_of(run, step), &work, &ticket, &error);
    if (status != TANDEM_OK) {
        fail_on_device(run, step, status, &error);
        return;
    }
    if (step->on_device) {
        note_device_work(run, step, ticket);
        const int i = (int)(step - run->steps->steps);
        if (i < run->n_times) {
            run->options->times[i].ticket = ticket;
        }
        (void)tnd_run_predict_end(run, step);
        return;
    }
    TND_ASSERT(run->n_flights < TND_MAX_IN_FLIGHT);
    run->flights[run->n_flights++] = (struct tnd_run_flight){
        ticket, (int)(step - run->steps->steps), tnd_run_predict_end(run, step)};
}

/* An early download is waited for later, and the device is synced only up to it. */
static void note_download(struct tnd_run *run, const struct tnd_step *step, uint64_t ticket)
{
    if (!step->is_early) {
        run->device_work[step->backend].has_download = true;
        run->has_download = true;
        return;
    }
    TND_ASSERT(run->n_flights < TND_MAX_IN_FLIGHT);
    run->flights[run->n_flights++] = (struct tnd_run_flight){
        ticket, (int)(step - run->steps->steps), run->expected_ns_of[step->backend]};
}

void tnd_run_move(struct tnd_run *run, const struct tnd_step *step)
{
    struct tandem_error error;
    uint64_t ticket = 0;
    tandem_backend *backend = backend_of(run, step);
    void *address = tnd_run_address(run, &step->moved);
    struct tandem_place place = step->kind == TND_STEP_STREAM
                                    ? tnd_stream_place(run, step)
                                    : tnd_run_place(run, step->backend, &step->moved);
    TND_ASSERT(address != NULL && step->kind != TND_STEP_WORK);
    memset(&error, 0, sizeof(error));
    bool is_download = step->kind == TND_STEP_DOWNLOAD;
    size_t bytes = step->moved.bytes;
    void *to = is_download ? tnd_stall_target(run, step, address, bytes) : NULL;
    enum tandem_status status =
        is_download ? tnd_backend_download(backend, place, to, bytes, &ticket, &error)
        : step->kind == TND_STEP_STREAM
            ? tnd_backend_stream(backend, place, address, bytes, &error)
            : tnd_backend_upload(backend, place, address, bytes, &error);
    if (status != TANDEM_OK) {
        tnd_stall_untarget(run, step);
        fail_on_device(run, step, status, &error);
    } else if (is_download) {
        note_device_work(run, step, ticket);
        note_download(run, step, ticket);
    } else {
        tnd_run_note_end(run, step);
    }
}

unsigned tnd_run_failures_of(const struct tnd_run *run, int slot)
{
    struct tnd_run_device *device = &run->devices[slot];
    pthread_mutex_lock(&device->lock);
    unsigned n_failures = device->n_failures;
    pthread_mutex_unlock(&device->lock);
    return n_failures;
}

static enum tandem_status sync_shared(const struct tnd_run *run, int slot, uint64_t ticket,
                                      struct tandem_error *error)
{
    struct tnd_run_device *device = &run->devices[slot];
    tandem_backend *backend = tnd_registry_backend(run->registry, slot);
    pthread_mutex_lock(&device->lock);
    enum tandem_status status = tnd_backend_sync(backend, ticket, error);
    bool others_failed = device->n_failures != run->device_work[slot].n_failures;
    device->n_failures += status != TANDEM_OK;
    pthread_mutex_unlock(&device->lock);
    if (status == TANDEM_OK && others_failed) {
        return tnd_error_set(error, TANDEM_E_DEVICE, backend->api->name, 0, 0,
                             "%s: has failed meanwhile in another computation", backend->api->name);
    }
    return status;
}

/* Where the device has measured its work itself, uses these times, one after the other from when
 * each was submitted; a download begins at the end of the work before it. Not with asks_lost (the
 * observer): there a computation's waiting counts, so host times are kept. */
static void take_device_times(struct tnd_run *run, int slot, int first, int last)
{
    tandem_backend *backend = tnd_registry_backend(run->registry, slot);
    uint64_t free_ns = 0;
    int64_t ns = 0;
    for (int i = first; i <= last && i < run->n_times && !run->options->asks_lost; i++) {
        const struct tnd_step *step = &run->steps->steps[i];
        struct tnd_step_time *time = &run->options->times[i];
        if (!step->on_device || step->backend != slot) {
            continue;
        }
        if (step->kind == TND_STEP_DOWNLOAD && free_ns > time->begin_ns) {
            time->begin_ns = free_ns < time->end_ns ? free_ns : time->end_ns;
        }
        if (step->kind == TND_STEP_WORK && tnd_backend_took(backend, time->ticket, &ns) &&
            ns >= 0) {
            time->begin_ns = time->begin_ns > free_ns ? time->begin_ns : free_ns;
            time->end_ns = time->begin_ns + (uint64_t)ns;
            free_ns = time->end_ns;
        }
    }
}

/* Waits for what was submitted to the device up to a step, unless that has ended. */
static void sync_until(struct tnd_run *run, int slot, const struct tnd_run_flight *until)
{
    struct tnd_run_device_work *given = &run->device_work[slot];
    const struct tnd_step *last = &run->steps->steps[until->step];
    struct tandem_error error;
    memset(&error, 0, sizeof(error));
    struct tnd_run_wait wait;
    if (!given->is_open || until->step < given->first) {
        return;
    }
    TND_ASSERT(until->step <= given->last);
    tnd_run_wait_begin(run, last, slot, until->expected_ns, &wait);
    if (!tnd_stall_await(run, slot, until->ticket, last)) {
        tnd_run_wait_end(run, &wait);
        return;
    }
    enum tandem_status status = sync_shared(run, slot, until->ticket, &error);
    tnd_run_wait_end(run, &wait);
    for (int i = given->first; i <= until->step && i < run->n_times; i++) {
        const struct tnd_step *step = &run->steps->steps[i];
        if (step->on_device && step->backend == slot && step->kind != TND_STEP_UPLOAD &&
            step->kind != TND_STEP_STREAM) {
            tnd_run_note_end(run, step);
        }
    }
    if (status == TANDEM_OK) {
        take_device_times(run, slot, given->first, until->step);
    }
    given->is_open = until->step < given->last;
    given->has_download = given->has_download && given->is_open;
    given->first = until->step + 1;
    tnd_stall_deliver(run, slot, until->step, status == TANDEM_OK);
    if (status != TANDEM_OK) {
        fail_on_device(run, last, status, &error);
    }
}

/* Waits for everything that was submitted to the device. */
static void sync_device(struct tnd_run *run, int slot)
{
    const struct tnd_run_device_work *given = &run->device_work[slot];
    const struct tnd_run_flight all = {given->ticket, given->last, run->expected_ns_of[slot]};
    TND_ASSERT(given->is_open && given->first <= given->last);
    sync_until(run, slot, &all);
}

void tnd_run_sync_all(struct tnd_run *run, bool downloads_only)
{
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        const struct tnd_run_device_work *given = &run->device_work[slot];
        if (given->is_open && (given->has_download || !downloads_only)) {
            sync_device(run, slot);
        }
    }
    run->has_download = false;
}

void tnd_run_sync_flights(struct tnd_run *run, int group)
{
    int n_kept = 0;
    for (int i = 0; i < run->n_flights; i++) {
        const struct tnd_step *step = &run->steps->steps[run->flights[i].step];
        if (step->until > group) {
            run->flights[n_kept++] = run->flights[i];
            continue;
        }
        if (step->is_early) {
            sync_until(run, step->backend, &run->flights[i]);
            continue;
        }
        struct tandem_error error;
        struct tnd_run_wait wait;
        memset(&error, 0, sizeof(error));
        tnd_run_wait_begin(run, step, step->backend, run->flights[i].expected_ns, &wait);
        enum tandem_status status =
            tnd_backend_sync(backend_of(run, step), run->flights[i].ticket, &error);
        tnd_run_wait_end(run, &wait);
        tnd_run_note_end(run, step);
        if (status != TANDEM_OK) {
            fail_on_device(run, step, status, &error);
        }
    }
    run->n_flights = n_kept;
}
