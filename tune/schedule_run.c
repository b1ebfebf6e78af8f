/* SPDX-License-Identifier: MIT
 * Runs a placement by a virtual clock. The host walks over the nodes in their order: it computes
 * its own nodes, hands work and uploads to devices without waiting for them, and waits for what it
 * must read. A lane runs its jobs one after the other. Lanes that work at the same time may slow
 * each other down, so time advances from one end of a job to the next. Start at tnd_schedule_run.
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "tune/schedule_internal.h"

enum { NONE = -1, HOST = 0 };

double tnd_schedule_link_us(const struct tnd_schedule_link *link, double bytes)
{
    if (link->n == 0 || bytes <= 0) {
        return 0;
    }
    int i = 0;
    while (i + 2 < link->n && bytes > link->bytes[i + 1]) {
        i++;
    }
    if (link->n == 1 || bytes <= link->bytes[0]) {
        return link->us[0];
    }
    double part = (bytes - link->bytes[i]) / (link->bytes[i + 1] - link->bytes[i]);
    return fmax(0, link->us[i] + part * (link->us[i + 1] - link->us[i]));
}

/* ---- advancing time ---- */

static bool is_over(const struct tnd_schedule_run *run, int32_t job)
{
    return job == NONE || run->spans[job].end_us >= 0;
}

/* Whether a job's operands have arrived, for work on devices; the host waits for its own in
 * bring_operands. */
static bool is_ready(const struct tnd_schedule_run *run, int32_t job)
{
    const struct tnd_schedule_problem *problem = run->problem;
    const struct tnd_schedule_span *span = &run->spans[job];
    int32_t node = span->node;
    bool is_own = is_over(run, run->jobs[job].after);
    if (span->kind != TND_SCHEDULE_RUN || span->side == HOST || !is_own) {
        return is_own;
    }
    int memory = tnd_schedule_memory(problem, span->side);
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        int32_t before = run->at[problem->edges[e].from * problem->n_sides + memory];
        if (before < job && !is_over(run, before)) { /* later jobs are for other readers */
            return false;
        }
    }
    return true;
}

static void begin_heads(struct tnd_schedule_run *run, int32_t cause)
{
    for (int lane = 0; lane < run->n_lanes; lane++) {
        int32_t head = run->lanes[lane].head;
        if (head != NONE && run->spans[head].begin_us < 0 && is_ready(run, head)) {
            run->spans[head].begin_us = run->now_us;
            run->spans[head].cause = cause;
            run->lanes[lane].rest_us = (double)run->jobs[head].alone_us;
        }
    }
}

/* Factor on the time of a lane's job. The table knows only pairs, so of several neighbours the
 * worst counts. */
static double slowed(const struct tnd_schedule_run *run, int lane)
{
    const struct tnd_schedule_problem *problem = run->problem;
    double worst = 1;
    for (int beside = 0; beside < run->n_lanes && problem->slowdown != NULL; beside++) {
        int32_t head = run->lanes[beside].head;
        if (head != NONE && run->spans[head].begin_us >= 0) {
            int a = run->spans[run->lanes[lane].head].side;
            int b = run->spans[head].side;
            double factor = (double)problem->slowdown[a * problem->n_sides + b];
            worst = a != b && factor > worst ? factor : worst;
        }
    }
    return worst;
}

/* Advances time to the end of the first running job to end. */
static void go_on(struct tnd_schedule_run *run)
{
    double factor[TND_SCHEDULE_LANES];
    double us = INFINITY;
    int first = NONE; /* ties: the lowest lane */
    for (int lane = 0; lane < run->n_lanes; lane++) {
        int32_t head = run->lanes[lane].head;
        factor[lane] = 0; /* idle */
        if (head != NONE && run->spans[head].begin_us >= 0) {
            factor[lane] = slowed(run, lane);
            if (run->lanes[lane].rest_us * factor[lane] < us) {
                us = run->lanes[lane].rest_us * factor[lane];
                first = lane;
            }
        }
    }
    TND_ASSERT(first != NONE); /* the order respects all edges, so something runs */
    run->now_us += us;
    for (int lane = 0; lane < run->n_lanes; lane++) {
        if (factor[lane] > 0 && lane != first) {
            run->lanes[lane].rest_us = fmax(0, run->lanes[lane].rest_us - us / factor[lane]);
        }
    }
    int32_t done = run->lanes[first].head;
    run->spans[done].end_us = run->now_us;
    run->lanes[first].head = run->jobs[done].next;
    begin_heads(run, done);
}

static void wait_for(struct tnd_schedule_run *run, int32_t job)
{
    bool waits = !is_over(run, job);
    double begin_us = run->now_us;
    while (!is_over(run, job)) {
        go_on(run);
    }
    run->slept = run->slept || (waits && run->spans[job].side != HOST && run->now_us > begin_us);
    run->cause = waits ? job : run->cause;
}

/* ---- work and transfers ---- */

static int32_t add_job(struct tnd_schedule_run *run, int32_t node, enum tnd_schedule_kind kind,
                       int side, double us, int32_t after)
{
    int lane = tnd_schedule_lane(run->problem->n_sides, side, kind);
    int queue = tnd_schedule_queue(run->problem, side, kind);
    int32_t i = run->n_jobs++;
    run->jobs[i] = (struct tnd_schedule_job){(float)us, after, NONE};
    run->spans[i] = (struct tnd_schedule_span){.node = node,
                                               .kind = (uint8_t)kind,
                                               .side = (uint8_t)side,
                                               .lane = (uint8_t)lane,
                                               .reader = node,
                                               .cause = run->cause,
                                               .begin_us = -1,
                                               .end_us = -1};
    if (side == HOST && us <= 0) {
        run->spans[i].begin_us = run->spans[i].end_us = run->now_us;
        return i;
    }
    if (run->lanes[queue].head == NONE) {
        run->lanes[queue].head = i;
        begin_heads(run, run->cause);
    } else {
        run->jobs[run->lanes[queue].tail].next = i;
    }
    run->lanes[queue].tail = i;
    return i;
}

/* Runs work on the host. Work for several threads wakes workers that slept while the host waited
 * for a device. */
static int32_t work_here(struct tnd_schedule_run *run, int32_t node, enum tnd_schedule_kind kind,
                         double us)
{
    if (run->slept && us > run->problem->wake_us) {
        us += run->problem->wake_us;
        run->slept = false;
    }
    int32_t job = add_job(run, node, kind, HOST, us, NONE);
    wait_for(run, job);
    run->cause = us > 0 ? job : run->cause;
    return job;
}

static void fetch(struct tnd_schedule_run *run, int32_t node)
{
    const struct tnd_schedule_problem *problem = run->problem;
    int32_t *at = &run->at[node * problem->n_sides];
    if (at[HOST] == NONE) {
        int side = run->side[node];
        at[HOST] = add_job(
            run, node, TND_SCHEDULE_DOWNLOAD, side,
            tnd_schedule_link_us(&problem->sides[side].download, problem->bytes[node]), at[side]);
    }
}

/* Moves a node's operands to the memory of `side`; the host waits for what it reads or uploads. */
static void bring_operands(struct tnd_schedule_run *run, int32_t node, int side)
{
    const struct tnd_schedule_problem *problem = run->problem;
    int memory = tnd_schedule_memory(problem, side);
    int32_t end = problem->first_edge[node + 1];
    for (int32_t e = problem->first_edge[node]; e < end; e++) {
        const struct tnd_schedule_edge *edge = &problem->edges[e];
        int32_t *at = &run->at[edge->from * problem->n_sides];
        if (edge->is_ordered || at[memory] != NONE) {
            continue;
        }
        TND_ASSERT(at[HOST] != NONE); /* its download was queued at hand-out */
        if (memory != HOST) {
            wait_for(run, at[HOST]);
            at[memory] = add_job(
                run, edge->from, TND_SCHEDULE_UPLOAD, side,
                tnd_schedule_link_us(&problem->sides[side].upload, problem->bytes[edge->from]),
                at[HOST]);
            run->spans[at[memory]].reader = node;
            run->spans[at[memory]].is_part = run->side[node] == TND_SCHEDULE_SPLIT;
        }
    }
    for (int32_t e = problem->first_edge[node]; e < end && side == HOST; e++) {
        wait_for(run, run->at[problem->edges[e].from * problem->n_sides]);
    }
}

void tnd_schedule_find_readers(const struct tnd_schedule_problem *problem, struct tnd_readers *out)
{
    int n = problem->n_nodes;
    memset(out->first, 0, ((size_t)n + 1) * sizeof(out->first[0]));
    for (int32_t e = 0; e < problem->first_edge[n]; e++) {
        out->first[problem->edges[e].from] += problem->edges[e].is_ordered == 0;
    }
    int32_t end = 0;
    for (int i = 0; i <= n; i++) {
        end += out->first[i];
        out->first[i] = end; /* filled from the end on */
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            if (!problem->edges[e].is_ordered) {
                out->list[--out->first[problem->edges[e].from]] = i;
            }
        }
    }
}

bool tnd_schedule_is_fetched(const struct tnd_schedule_problem *problem,
                             const struct tnd_readers *readers, const struct tnd_shares *shares,
                             const uint8_t *side, int32_t node)
{
    int memory = tnd_schedule_memory(problem, side[node]);
    bool is_fetched = false;
    for (int32_t r = readers->first[node]; r < readers->first[node + 1] && memory != HOST; r++) {
        int32_t reader = readers->list[r];
        if (side[reader] != TND_SCHEDULE_SPLIT) {
            is_fetched = is_fetched || tnd_schedule_memory(problem, side[reader]) != memory;
            continue;
        }
        const int64_t *rows = shares[problem->split_of[reader]].rows;
        for (int part = 0; part < problem->n_sides; part++) {
            is_fetched =
                is_fetched || (rows[part] > 0 && tnd_schedule_memory(problem, part) != memory);
        }
    }
    return is_fetched;
}

/* Packs a side's share of X on the host and uploads it. Returns the upload, or NONE. */
static int32_t bring_share(struct tnd_schedule_run *run, int32_t node, int side,
                           const struct tnd_schedule_split *split, int64_t rows)
{
    const struct tnd_schedule_side *one = &run->problem->sides[side];
    double bytes = tnd_schedule_x_bytes(split, rows);
    bring_operands(run, node, HOST);
    int32_t copy = work_here(run, node, TND_SCHEDULE_COPY, (double)rows * split->copy_us_per_row);
    run->spans[copy].is_part = true;
    /* for the report: the job has ended in the host's lane */
    run->spans[copy].side = (uint8_t)side;
    if (!one->own_memory) {
        return NONE;
    }
    int32_t job = add_job(run, node, TND_SCHEDULE_UPLOAD, side,
                          tnd_schedule_link_us(&one->upload, bytes), NONE);
    run->spans[job].is_part = true;
    return job;
}

/* Runs a split node: first hands out the devices' parts, each followed by its download, then
 * computes the host's part, then joins them. */
static void run_split(struct tnd_schedule_run *run, int32_t node)
{
    const struct tnd_schedule_problem *problem = run->problem;
    const struct tnd_schedule_split *split = &problem->splits[problem->split_of[node]];
    const int64_t *rows = run->shares[problem->split_of[node]].rows;
    int32_t parts[TND_SCHEDULE_SIDES];
    for (int side = 1; side < problem->n_sides; side++) {
        parts[side] = NONE;
        if (rows[side] > 0) {
            int32_t brought = NONE;
            if (split->is_sum) {
                brought = bring_share(run, node, side, split, rows[side]);
            } else {
                bring_operands(run, node, side);
            }
            parts[side] = add_job(run, node, TND_SCHEDULE_RUN, side,
                                  tnd_schedule_share_us(split, side, rows[side]), brought);
            run->spans[parts[side]].is_part = true;
        }
        if (rows[side] > 0 && problem->sides[side].own_memory) {
            parts[side] = add_job(run, node, TND_SCHEDULE_DOWNLOAD, side,
                                  tnd_schedule_link_us(&problem->sides[side].download,
                                                       tnd_schedule_y_bytes(split, rows[side])),
                                  parts[side]);
            run->spans[parts[side]].is_part = true;
        }
    }
    if (rows[HOST] > 0) {
        bring_operands(run, node, HOST);
        int32_t own = work_here(run, node, TND_SCHEDULE_RUN,
                                tnd_schedule_share_us(split, HOST, rows[HOST]) +
                                    (double)rows[HOST] * split->copy_us_per_row);
        run->spans[own].is_part = true;
    }
    for (int side = 1; side < problem->n_sides; side++) {
        wait_for(run, parts[side]);
    }
    run->at[node * problem->n_sides] = work_here(
        run, node, TND_SCHEDULE_JOIN, tnd_schedule_join_us(split, problem->n_sides, rows));
}

static void run_node(struct tnd_schedule_run *run, int32_t node)
{
    const struct tnd_schedule_problem *problem = run->problem;
    int side = run->side[node];
    if (side == TND_SCHEDULE_SPLIT) {
        run_split(run, node);
        return;
    }
    double us = (double)tnd_schedule_time(problem, node, side)->us;
    bring_operands(run, node, side);
    int32_t job = side == HOST ? work_here(run, node, TND_SCHEDULE_RUN, us)
                               : add_job(run, node, TND_SCHEDULE_RUN, side, us, NONE);
    run->at[node * problem->n_sides + tnd_schedule_memory(problem, side)] = job;
    if (tnd_schedule_is_fetched(problem, run->readers, run->shares, run->side, node)) {
        fetch(run, node);
    }
}

int64_t tnd_schedule_most_jobs(const struct tnd_schedule_problem *problem)
{
    int64_t n = problem->n_nodes;
    int64_t n_sides = problem->n_sides;
    int64_t n_split = 0;
    for (int i = 0; i < problem->n_nodes && problem->split_of != NULL; i++) {
        n_split += problem->split_of[i] >= 0;
    }
    /* Each result: computed, downloaded, uploaded to each device. Parts: X packed and uploaded,
     * computed, downloaded, joined. */
    return n * (1 + n_sides) + n_split * 4 * n_sides;
}

double tnd_schedule_run(struct tnd_schedule_run *run)
{
    const struct tnd_schedule_problem *problem = run->problem;
    run->n_jobs = 0;
    run->cause = NONE;
    run->now_us = 0;
    run->slept = false;
    run->n_lanes = tnd_schedule_lanes(problem->n_sides);
    for (int lane = 0; lane < run->n_lanes; lane++) {
        run->lanes[lane].head = NONE;
    }
    for (int64_t i = 0; i < (int64_t)problem->n_nodes * problem->n_sides; i++) {
        run->at[i] = NONE;
    }
    for (int i = 0; i < problem->n_nodes; i++) {
        run_node(run, run->order[i]);
    }
    for (int lane = 0; lane < run->n_lanes; lane++) {
        if (run->lanes[lane].head != NONE) {
            wait_for(run, run->lanes[lane].tail);
        }
    }
    return run->now_us;
}
