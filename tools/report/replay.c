/* SPDX-License-Identifier: MIT
 * The virtual clock: worker 0 walks over the groups as sched/run.c does and submits steps to
 * devices, which run them in order. Steps that run at the same time may slow each other down, so
 * the clock advances from the end of one event to the next. Start reading at tnd_replay, then
 * run_group. */
#include "tools/report/replay.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "sched/plan.h"
#include "tune/experts.h"
#include "tune/moves.h"

#define NONE (-1)

/* The pending events of a device, in the order of submission. */
struct queue {
    int32_t head, tail; /* NONE: idle */
    double rest_us;     /* remaining time of the head, without slow-down */
    bool has_download;  /* since the last sync */
    int32_t last;       /* the event submitted last */
};

struct replaying {
    const struct tnd_replay_options *options;
    struct tnd_replay *out;
    struct tandem_error *error;
    int32_t *next;      /* [n_events]: next one in the queue of its device */
    int32_t *event_of;  /* [n_steps] */
    double now_us;      /* the current time */
    int32_t host_cause; /* event that worker 0 waited for last */
    bool asleep;        /* the workers sleep */
    struct queue queues[TND_MAX_SLOTS];
    int32_t flights[TND_MAX_IN_FLIGHT]; /* steps of devices that work in host memory */
    int n_flights;
};

/* ---- durations ---- */

static bool is_transfer(const struct tnd_step *step)
{
    return step->kind != TND_STEP_WORK;
}

/* Whether the node is a product, plain or of experts. */
static bool is_product(const struct tandem_tensor *node)
{
    return node->op == TANDEM_OP_MUL_MAT_ID ||
           (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node));
}

/* Bytes that an operation reads and writes; of a gathered tensor, only the selected rows count. */
static double touched_bytes(const struct tandem_tensor *node)
{
    double bytes = (double)tandem_tensor_bytes(node);
    for (int s = 0; s < node->n_src; s++) {
        const struct tandem_tensor *src = node->src[s];
        bool is_picked = node->op == TANDEM_OP_GET_ROWS && s == 0;
        bytes += src == NULL ? 0 : (double)tandem_tensor_bytes(is_picked ? node : src);
    }
    return bytes;
}

/* Time of a step; false: unknown. */
static bool work_us(const struct replaying *r, const struct tnd_step *step, double *out_us)
{
    const struct tnd_replay_options *o = r->options;
    const struct tandem_plan_node *choice = o->steps->items.list[step->item].choice;
    const struct tandem_tensor *node = o->steps->items.list[step->item].tensor;
    if (choice->predicted_us[step->stage] > 0) {
        *out_us = (double)choice->predicted_us[step->stage];
        return true;
    }
    if (is_product(node)) {
        struct tnd_problem problem;
        struct tnd_table_stage stage = {.task = step->task,
                                        .parallel = choice->stage[step->stage].parallel,
                                        .own_threads = choice->stage[step->stage].own_threads};
        struct tnd_estimate estimate;
        snprintf(stage.backend, sizeof(stage.backend), "%s",
                 tnd_registry_name(o->registry, step->backend));
        if (node->op == TANDEM_OP_MUL_MAT_ID) {
            tnd_experts_problem(node, NULL, &problem);
        } else {
            tnd_problem_of_node(node, &problem);
        }
        if (tnd_estimate_stage(o->table, &stage, (enum tandem_stage)step->stage, problem.type,
                               problem.n, problem.k, problem.m, choice->n_threads, &estimate)) {
            *out_us = estimate.us;
            return true;
        }
    }
    *out_us = o->memory_gbps > 0 ? touched_bytes(node) / (o->memory_gbps * 1e3) : 0;
    return o->memory_gbps > 0;
}

static bool alone_us(const struct replaying *r, const struct tnd_step *step, double *out_us)
{
    if (!is_transfer(step)) {
        return work_us(r, step, out_us);
    }
    enum tnd_direction direction = step->kind == TND_STEP_DOWNLOAD ? TND_DOWNLOAD : TND_UPLOAD;
    const char *name = tnd_registry_name(r->options->registry, step->backend);
    *out_us =
        tnd_estimate_transfer(r->options->table, name, direction, (int64_t)step->moved.bytes).us;
    return tnd_table_transfer(r->options->table, name, direction) != NULL;
}

/* ---- lanes and events ---- */

static enum tandem_status find_lane(struct replaying *r, const char *name, bool is_host,
                                    int workers, int32_t *out_lane)
{
    struct tnd_replay *out = r->out;
    for (int i = 0; i < out->n_lanes; i++) {
        if (strcmp(out->lanes[i].name, name) == 0) {
            *out_lane = i;
            return TANDEM_OK;
        }
    }
    if (out->n_lanes == TND_REPLAY_LANES) {
        return tnd_error_set(r->error, TANDEM_E_LIMIT, "replay", out->n_lanes, TND_REPLAY_LANES,
                             "replay: more than %d lanes", TND_REPLAY_LANES);
    }
    struct tnd_replay_lane *lane = &out->lanes[out->n_lanes];
    snprintf(lane->name, sizeof(lane->name), "%s", name);
    lane->is_host = is_host;
    lane->workers = workers;
    *out_lane = out->n_lanes++;
    return TANDEM_OK;
}

static enum tandem_status lane_of(struct replaying *r, const struct tnd_step *step,
                                  int32_t *out_lane)
{
    static const char *const directions[] = {"", " upload", " download", " stream"};
    char name[TND_REPLAY_NAME];
    const char *backend = tnd_registry_name(r->options->registry, step->backend);
    if (step->n_workers == 0) {
        snprintf(name, sizeof(name), "%s%s", backend, directions[step->kind]);
        return find_lane(r, name, false, 0, out_lane);
    }
    int workers = step->n_workers > step->own_threads ? step->n_workers : step->own_threads;
    snprintf(name, sizeof(name), "%s, %d thread%s", backend, workers, workers == 1 ? "" : "s");
    return find_lane(r, name, true, workers, out_lane);
}

/* `step` -1: waking for a stage of the item. */
static int32_t add_event(struct replaying *r, int32_t step, int32_t item, int stage, int32_t lane,
                         double us, bool is_timed)
{
    int32_t i = r->out->n_events++;
    r->out->events[i] = (struct tnd_replay_event){.step = step,
                                                  .item = item,
                                                  .lane = lane,
                                                  .stage = (uint8_t)stage,
                                                  .cause = NONE,
                                                  .alone_us = us,
                                                  .is_timed = is_timed};
    r->next[i] = NONE;
    r->out->n_untimed += !is_timed;
    r->out->n_untimed_products +=
        !is_timed && is_product(r->options->steps->items.list[item].tensor);
    return i;
}

static void begin_event(struct replaying *r, int32_t event, int32_t cause)
{
    r->out->events[event].begin_us = r->now_us;
    r->out->events[event].cause = cause;
}

static void end_event(struct replaying *r, int32_t i)
{
    struct tnd_replay_event *event = &r->out->events[i];
    struct tnd_replay_lane *lane = &r->out->lanes[event->lane];
    double took_us = r->now_us - event->begin_us;
    event->end_us = r->now_us;
    lane->busy_us += took_us;
    lane->n_events++;
    if (lane->is_host) {
        r->out->host_busy_us += took_us;
        r->out->worker_us += took_us * lane->workers;
    }
    r->out->makespan_us = fmax(r->out->makespan_us, event->end_us);
}

/* ---- advancing the clock ---- */

/* Factor by which a step on `slot` is slower while others run; the table has factors of pairs, and
 * the worst one counts. `host_slot` 0: worker 0 waits. */
static double slowed(const struct replaying *r, int slot, int host_slot)
{
    const struct tnd_registry *registry = r->options->registry;
    double worst = 1;
    for (int beside = 1; beside < TND_MAX_SLOTS; beside++) {
        bool runs = beside == host_slot || r->queues[beside].head != NONE;
        double factor;
        if (runs && beside != slot &&
            tnd_table_slowdown(r->options->table, tnd_registry_name(registry, slot),
                               tnd_registry_name(registry, beside), &factor)) {
            worst = fmax(worst, factor);
        }
    }
    return worst;
}

static void end_head(struct replaying *r, int slot)
{
    struct queue *queue = &r->queues[slot];
    int32_t done = queue->head;
    end_event(r, done);
    queue->head = r->next[done];
    if (queue->head == NONE) {
        queue->tail = NONE;
        return;
    }
    begin_event(r, queue->head, done);
    queue->rest_us = r->out->events[queue->head].alone_us;
}

/* Advances the clock to the end of the first running event: worker 0's own step, of which
 * `host_rest_us` is left, or the head of a device. `host_slot` 0: worker 0 waits. Returns what is
 * left of the step. */
static double go_on(struct replaying *r, int host_slot, double host_rest_us)
{
    double factor[TND_MAX_SLOTS];
    double host_factor = host_slot > 0 ? slowed(r, host_slot, host_slot) : 1;
    double us = host_slot > 0 ? host_rest_us * host_factor : INFINITY;
    int first = 0; /* device whose head ends; ties: worker 0, then the lowest slot */
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        bool runs = r->queues[slot].head != NONE;
        factor[slot] = runs ? slowed(r, slot, host_slot) : 1;
        if (runs && r->queues[slot].rest_us * factor[slot] < us) {
            us = r->queues[slot].rest_us * factor[slot];
            first = slot;
        }
    }
    r->now_us += us;
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        struct queue *queue = &r->queues[slot];
        if (queue->head != NONE && slot != first) {
            queue->rest_us = fmax(0, queue->rest_us - us / factor[slot]);
        }
    }
    if (first > 0) {
        end_head(r, first);
        return host_slot > 0 ? fmax(0, host_rest_us - us / host_factor) : 0;
    }
    return -1; /* worker 0's step has ended */
}

/* Runs a step on worker 0. */
static void run_here(struct replaying *r, int32_t event, int slot)
{
    begin_event(r, event, r->host_cause);
    for (double rest = r->out->events[event].alone_us; rest >= 0;) {
        rest = go_on(r, slot, rest);
    }
    end_event(r, event);
    r->host_cause = event;
}

static bool is_over(const struct replaying *r, int slot, int32_t event)
{
    for (int32_t i = r->queues[slot].head; i != NONE; i = r->next[i]) {
        if (i == event) {
            return false;
        }
    }
    return true;
}

/* Lets worker 0 wait until a device has ended an event. */
static void wait_for(struct replaying *r, int slot, int32_t event)
{
    while (!is_over(r, slot, event)) {
        (void)go_on(r, 0, 0);
        if (is_over(r, slot, event)) {
            r->host_cause = event;
        }
    }
}

static void submit(struct replaying *r, int32_t event, int slot)
{
    struct queue *queue = &r->queues[slot];
    queue->last = event;
    if (queue->head != NONE) {
        r->next[queue->tail] = event;
        queue->tail = event;
        return;
    }
    queue->head = queue->tail = event;
    queue->rest_us = r->out->events[event].alone_us;
    begin_event(r, event, r->host_cause);
}

/* ---- groups, as in sched/run.c ---- */

/* Before a group: waits for device steps that must not overlap with it, and for all downloads. */
static void sync_before(struct replaying *r, int group)
{
    int n_kept = 0;
    for (int i = 0; i < r->n_flights; i++) {
        const struct tnd_step *step = &r->options->steps->steps[r->flights[i]];
        if (step->until > group) {
            r->flights[n_kept++] = r->flights[i];
        } else {
            wait_for(r, step->backend, r->event_of[r->flights[i]]);
        }
    }
    r->n_flights = n_kept;
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        if (r->queues[slot].has_download) {
            wait_for(r, slot, r->queues[slot].last);
            r->queues[slot].has_download = false;
        }
    }
}

/* Sleeping workers are woken by the next parallel step. If the profile itself lets them sleep in
 * another stage, its measured time includes the wake-up. */
static enum tandem_status wake(struct replaying *r, const struct tnd_step *step, int n_workers)
{
    const struct tandem_plan_node *choice = r->options->steps->items.list[step->item].choice;
    bool is_own_doing = false;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        is_own_doing = is_own_doing ||
                       (choice->stage[s].backend != TANDEM_BACKEND_NONE && choice->stage[s].wait);
    }
    double us = tnd_estimate_wake(r->options->table, n_workers);
    bool costs = r->asleep && !is_own_doing && us > 0;
    r->asleep = false;
    if (!costs) {
        return TANDEM_OK;
    }
    int32_t lane = 0;
    TND_TRY(find_lane(r, "waking", true, 1, &lane));
    run_here(r, add_event(r, NONE, step->item, step->stage, lane, us, true), TANDEM_BACKEND_CPU);
    return TANDEM_OK;
}

/* `factor` scales the step's own time. */
static enum tandem_status run_step(struct replaying *r, int s, double factor)
{
    const struct tnd_step *step = &r->options->steps->steps[s];
    int32_t lane = 0;
    double us = 0;
    TND_TRY(lane_of(r, step, &lane));
    bool is_timed = alone_us(r, step, &us);
    int32_t event = add_event(r, s, step->item, step->stage, lane, us * factor, is_timed);
    r->event_of[s] = event;
    if (step->n_workers > 0) {
        run_here(r, event, step->backend);
        return TANDEM_OK;
    }
    submit(r, event, step->backend);
    if (!step->on_device || step->is_early) {
        r->flights[r->n_flights++] = s; /* the unfolding limits their number */
    }
    if (step->kind == TND_STEP_DOWNLOAD && !step->is_early) {
        r->queues[step->backend].has_download = true;
    }
    return TANDEM_OK;
}

/* In a parallel group, steps for one worker and steps for all overlap, and no worker is idle before
 * the last step begins: the group takes its total work divided by the number of workers, but at
 * least what worker 0 needs for its own steps. On one worker, times are unchanged. */
static double stretch_of(const struct replaying *r, const struct tnd_group *group)
{
    double alone = 0;
    double shared = 0;
    for (int i = 0; i < group->n_steps && group->n_workers > 1; i++) {
        const struct tnd_step *step = &r->options->steps->steps[group->first_step + i];
        double us;
        (void)alone_us(r, step, &us);
        alone += step->n_workers == 1 ? us : 0;
        shared += us * step->n_workers / group->n_workers;
    }
    return alone > shared ? alone / shared : 1;
}

static enum tandem_status run_group(struct replaying *r, int g)
{
    const struct tnd_group *group = &r->options->steps->groups[g];
    const struct tnd_step *steps = &r->options->steps->steps[group->first_step];
    double stretch = stretch_of(r, group);
    sync_before(r, g);
    if (group->n_workers > 1) {
        TND_TRY(wake(r, &steps[0], group->n_workers));
    }
    for (int i = 0; i < group->n_steps; i++) {
        double part = group->n_workers > 1 ? (double)steps[i].n_workers / group->n_workers : 1;
        TND_TRY(run_step(r, group->first_step + i, stretch * part));
    }
    r->asleep = r->asleep || (group->n_workers > 1 && group->wait_after);
    return TANDEM_OK;
}

static enum tandem_status run_all(struct replaying *r)
{
    const struct tnd_steps *steps = r->options->steps;
    for (int g = 0; g < steps->n_groups; g++) {
        TND_TRY(run_group(r, g));
    }
    for (int slot = 1; slot < TND_MAX_SLOTS; slot++) {
        if (r->queues[slot].head != NONE) {
            wait_for(r, slot, r->queues[slot].last);
        }
    }
    return TANDEM_OK;
}

/* ---- the critical path ---- */

static void add_part(struct tnd_replay *out, const char *name, double us)
{
    int i = 0;
    while (i < out->n_parts && strcmp(out->parts[i].name, name) != 0) {
        i++;
    }
    if (i == TND_REPLAY_PARTS) {
        i = TND_REPLAY_PARTS - 1; /* the last entry takes the rest */
    }
    if (i == out->n_parts) {
        out->n_parts++;
        snprintf(out->parts[i].name, sizeof(out->parts[i].name), "%s", name);
    }
    out->parts[i].us += us;
    out->parts[i].n_events++;
}

static void sort_parts(struct tnd_replay *out)
{
    for (int i = 1; i < out->n_parts; i++) {
        struct tnd_replay_part part = out->parts[i];
        int at = i;
        for (; at > 0 && out->parts[at - 1].us < part.us; at--) {
            out->parts[at] = out->parts[at - 1];
        }
        out->parts[at] = part;
    }
}

/* Follows causes backwards from the event that ended last. */
static void find_path(struct replaying *r)
{
    struct tnd_replay *out = r->out;
    int32_t at = NONE;
    for (int32_t i = 0; i < out->n_events; i++) {
        at = at == NONE || out->events[i].end_us > out->events[at].end_us ? i : at;
    }
    for (; at != NONE; at = out->events[at].cause) {
        const struct tnd_replay_event *event = &out->events[at];
        bool is_work = event->step >= 0 && !is_transfer(&r->options->steps->steps[event->step]);
        if (event->end_us > event->begin_us) {
            add_part(out,
                     is_work ? r->options->steps->items.list[event->item].choice->profile
                             : out->lanes[event->lane].name,
                     event->end_us - event->begin_us);
        }
    }
    sort_parts(out);
}

/* ---- steps of a second run ---- */

/* Keeps states on the devices whose steps use them, as tnd_run_attach does. */
static enum tandem_status keep_states(struct tnd_mirrors *mirrors, struct tnd_residency *residency,
                                      struct tandem_error *error)
{
    for (int i = residency->n_nodes; i < residency->n_regions; i++) {
        struct tnd_region *region = &residency->regions[i];
        for (int side = 1; side < residency->n_sides; side++) {
            struct tnd_copy *copy = tnd_residency_copy(residency, region, side);
            if (region->kind == TND_REGION_STATE && (region->sides >> side & 1) != 0 &&
                copy->mirror == NULL) {
                TND_TRY(tnd_mirrors_hold(mirrors, residency->slot_of[side],
                                         (void *)region->extent.begin, region->extent.bytes,
                                         region->root, &copy->mirror, error));
            }
        }
    }
    return TANDEM_OK;
}

static enum tandem_status unfold_twice(const struct tandem_graph *graph,
                                       const struct tandem_plan *plan,
                                       const struct tnd_registry *registry, uint32_t execution,
                                       struct tnd_mirrors *mirrors, struct tnd_steps **io_steps,
                                       struct tandem_error *error)
{
    TND_TRY(tnd_steps_renew(graph, plan, registry, mirrors, execution, io_steps, error));
    struct tnd_residency *residency = (*io_steps)->residency;
    if (residency == NULL) {
        return TANDEM_OK;
    }
    enum tandem_status status = keep_states(mirrors, residency, error);
    tnd_residency_release(residency, status == TANDEM_OK);
    TND_TRY(status);
    TND_TRY(tnd_steps_renew(graph, plan, registry, mirrors, execution, io_steps, error));
    tnd_residency_release((*io_steps)->residency, true);
    return TANDEM_OK;
}

enum tandem_status tnd_replay_unfold(const struct tandem_graph *graph,
                                     const struct tandem_plan *plan,
                                     const struct tnd_registry *registry,
                                     struct tnd_steps **out_steps, struct tandem_error *error)
{
    struct tnd_steps *steps = NULL;
    struct tnd_mirrors *mirrors = NULL;
    uint32_t execution = tnd_plan_is_scheduled(plan) ? 0 : TANDEM_EXECUTE_DEFAULT;
    TND_TRY(tnd_mirrors_new(registry, &mirrors, error));
    enum tandem_status status =
        unfold_twice(graph, plan, registry, execution, mirrors, &steps, error);
    tnd_mirrors_free(mirrors);
    if (status != TANDEM_OK) {
        tnd_steps_free(steps);
        return status;
    }
    *out_steps = steps;
    return TANDEM_OK;
}

/* ---- all of it ---- */

enum tandem_status tnd_replay(const struct tnd_replay_options *options, struct tnd_replay *out,
                              struct tandem_error *error)
{
    struct tnd_replay replay;
    memset(&replay, 0, sizeof(replay));
    struct replaying r = {.options = options, .out = &replay, .error = error, .host_cause = NONE};
    for (int slot = 0; slot < TND_MAX_SLOTS; slot++) {
        r.queues[slot].head = r.queues[slot].tail = r.queues[slot].last = NONE;
    }
    size_t n_events = (size_t)options->steps->n_steps + (size_t)options->steps->n_groups;
    replay.events = tnd_calloc(n_events + 1, sizeof(replay.events[0]));
    r.next = tnd_calloc(n_events + 1, sizeof(r.next[0]));
    r.event_of = tnd_calloc((size_t)options->steps->n_steps + 1, sizeof(r.event_of[0]));
    enum tandem_status status;
    if (replay.events == NULL || r.next == NULL || r.event_of == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "replay", (int64_t)n_events, 0,
                               "replay: out of memory for %zu events", n_events);
    } else {
        status = run_all(&r);
    }
    if (status == TANDEM_OK) {
        find_path(&r);
        *out = replay;
    } else {
        tnd_replay_fini(&replay);
    }
    tnd_free(r.next);
    tnd_free(r.event_of);
    return status;
}

void tnd_replay_fini(struct tnd_replay *replay)
{
    tnd_free(replay->events);
    replay->events = NULL;
    replay->n_events = 0;
}
