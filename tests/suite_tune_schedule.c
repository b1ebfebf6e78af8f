/* SPDX-License-Identifier: MIT
 * Schedules of drawn machines and graphs, run by an executor of the test: a program for the host
 * and a list of jobs with what each waits for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/suite_tune_schedule.h"

/* ---- drawn problems ---- */

static double between(struct tnd_test_rng *rng, double low, double high)
{
    return low + (double)tnd_test_rng_int(rng, 0, 1000000) / 1e6 * (high - low);
}

/* From low to high, as many in each doubling. */
static double scaled(struct tnd_test_rng *rng, double low, double high)
{
    return low * exp(between(rng, 0, log(high / low)));
}

static bool happens(struct tnd_test_rng *rng, double chance)
{
    return between(rng, 0, 1) < chance;
}

static void add_edge(struct drawn *d, int node, int from, bool is_ordered)
{
    for (int e = d->first_edge[node]; e < d->n_edges; e++) {
        if (d->edges[e].from == from) {
            return;
        }
    }
    if (d->n_edges < MOST_EDGES) {
        d->edges[d->n_edges++] = (struct tnd_schedule_edge){from, is_ordered};
    }
}

static void draw_link(struct tnd_test_rng *rng, struct tnd_schedule_link *link)
{
    double latency = scaled(rng, 0.1, 30);
    double rate = scaled(rng, 300, 50000); /* bytes a microsecond */
    *link = (struct tnd_schedule_link){
        .n = 2, .bytes = {0, 1e6}, .us = {latency, latency + 1e6 / rate}};
}

static void draw_machine(struct tnd_test_rng *rng, struct drawn *d)
{
    int n = d->wanted_sides;
    for (int s = 0; s < n; s++) {
        d->sides[s] = (struct tnd_schedule_side){.own_memory = s > 0 && happens(rng, 0.9)};
        if (d->sides[s].own_memory && !d->is_equal) {
            d->sides[s].in_order = happens(rng, 0.5);
            draw_link(rng, &d->sides[s].upload);
            draw_link(rng, &d->sides[s].download);
        }
        for (int b = 0; b < n; b++) {
            bool slows = d->has_slowdown && b != s;
            d->slowdown[s * n + b] = (float)(slows ? between(rng, 1, 1.6) : 1);
        }
    }
}

static void draw_splits(struct tnd_test_rng *rng, struct drawn *d, const double *speed)
{
    d->problem.n_splits = d->has_splits ? MOST_KINDS : 0;
    for (int i = 0; i < d->problem.n_splits; i++) {
        struct tnd_schedule_split *split = &d->splits[i];
        double work = d->is_equal ? 10000 : scaled(rng, 5, 200);
        *split = (struct tnd_schedule_split){.rows = 64 * tnd_test_rng_int(rng, 1, 64), .step = 16};
        split->x_bytes = d->is_equal ? 0 : scaled(rng, 1000, 1e5);
        split->bytes_per_row = d->is_equal ? 0 : 4 * scaled(rng, 1, 64);
        split->join_us_per_row = split->bytes_per_row / 20000;
        for (int s = 0; s < d->wanted_sides; s++) {
            double fixed = d->is_equal ? 0 : scaled(rng, 0.1, 5);
            split->can[s] = true;
            split->error_frac[s] = d->is_equal ? 0.01F : 0.04F;
            for (int p = 0; p < TND_SCHEDULE_CURVE_POINTS; p++) {
                double part = (double)p / (TND_SCHEDULE_CURVE_POINTS - 1);
                split->us[s][p] = (float)(p > 0 ? fixed + work / speed[s] * part : 0);
            }
        }
    }
}

static void draw_edges(struct tnd_test_rng *rng, struct drawn *d, int i, int width)
{
    if (i == d->wanted_nodes - 1) { /* the host reads all results that nobody else does */
        bool is_read[MOST_NODES] = {false};
        for (int e = 0; e < d->n_edges; e++) {
            is_read[d->edges[e].from] = true;
        }
        for (int from = 0; from < i; from++) {
            if (!is_read[from]) {
                add_edge(d, i, from, false);
            }
        }
        return;
    }
    if (d->is_layered) {
        for (int from = i - i % 7 - (i % 7 == 0 ? 6 : 0); from >= 0 && from < i; from++) {
            add_edge(d, i, from, false);
            from = i % 7 > 0 ? i : from; /* the first of the layer alone */
        }
        return;
    }
    for (int k = 0; i > 0 && k < 2 && (k == 0 || happens(rng, 0.4)); k++) {
        int from = (int)tnd_test_rng_int(rng, i > width ? i - width : 0, i - 1);
        if (i > 1 && !(k == 0 && happens(rng, 0.1))) {
            add_edge(d, i, from, happens(rng, 0.05));
        }
    }
}

static void draw_times(struct tnd_test_rng *rng, struct drawn *d, int i, const double *speed)
{
    int n = d->wanted_sides;
    bool is_end = i == 0 || i == d->wanted_nodes - 1; /* given, or the reader of the results */
    bool is_split = d->has_splits && !is_end && happens(rng, 0.5);
    double work = d->is_equal ? between(rng, 500, 1000) : scaled(rng, 1, 100);
    d->split_of[i] = (int16_t)(is_split ? tnd_test_rng_int(rng, 0, MOST_KINDS - 1) : -1);
    for (int s = 0; s < n; s++) {
        struct tnd_schedule_time *time = &d->times[i * n + s];
        bool can = s == 0 || (!is_end && (is_split || d->is_equal || happens(rng, 0.9)));
        double kind = d->is_equal ? 1 : scaled(rng, 0.5, 2); /* what a side is good at */
        double us = is_end ? 0 : work / speed[s] * kind;
        us = is_split ? (double)d->splits[d->split_of[i]].us[s][TND_SCHEDULE_CURVE_POINTS - 1] : us;
        time->us = can ? (float)us : -1;
        time->error_us = (float)(us * (d->is_equal ? 0.01 : 0.04));
    }
    d->bytes[i] = d->is_equal ? 0 : scaled(rng, 1000, 1e6);
}

void tune_draw_schedule(struct tnd_test_rng *rng, struct drawn *d)
{
    double speed[MOST_SIDES] = {1};
    int width = (int)tnd_test_rng_int(rng, d->is_equal ? 4 : 1, d->is_equal ? 16 : 6);
    d->n_edges = 0;
    for (int s = 1; s < d->wanted_sides; s++) {
        speed[s] = d->is_equal ? 1 : scaled(rng, 0.1, 10);
    }
    draw_machine(rng, d);
    draw_splits(rng, d, speed);
    for (int i = 0; i < d->wanted_nodes; i++) {
        d->first_edge[i] = d->n_edges;
        draw_edges(rng, d, i, width);
        draw_times(rng, d, i, speed);
    }
    d->first_edge[d->wanted_nodes] = d->n_edges;
    d->problem = (struct tnd_schedule_problem){.n_nodes = d->wanted_nodes,
                                               .n_sides = d->wanted_sides,
                                               .n_splits = d->problem.n_splits,
                                               .sides = d->sides,
                                               .times = d->times,
                                               .bytes = d->bytes,
                                               .first_edge = d->first_edge,
                                               .edges = d->edges,
                                               .splits = d->splits,
                                               .split_of = d->has_splits ? d->split_of : NULL,
                                               .slowdown = d->has_slowdown ? d->slowdown : NULL};
}

/* ---- the executor ---- */

struct job {
    int lane, side;
    double left; /* of its time, alone */
    bool is_done;
    int waits_for[MOST_EDGES];
    int n_waits;
    bool was_given; /* to its lane */
};

enum deed { GIVE, AWAIT };

struct executor {
    const struct tnd_schedule_problem *problem;
    struct job jobs[MOST_JOBS];
    int n_jobs;
    struct {
        enum deed deed;
        int job;
    } program[2 * MOST_JOBS];
    int n_deeds;
    int where[MOST_NODES][MOST_SIDES]; /* job that brings a result into a memory; -1 */
    double true_factor[MOST_SIDES];    /* by which times on a side differ from the predicted ones */
};

static struct executor executor;

static int home(const struct executor *x, int side)
{
    return x->problem->sides[side].own_memory ? side : 0;
}

static int new_job(struct executor *x, int side, int transfer, double us)
{
    struct job *job = &x->jobs[x->n_jobs];
    int lane = side;
    if (transfer > 0 && !x->problem->sides[side].in_order) {
        lane = 100 * transfer + side;
    }
    *job = (struct job){.lane = lane, .side = side, .left = us};
    return x->n_jobs++;
}

static void tell(struct executor *x, enum deed deed, int job)
{
    x->program[x->n_deeds].deed = deed;
    x->program[x->n_deeds++].job = job;
}

static void wait_in_job(struct executor *x, int job, int for_job)
{
    x->jobs[job].waits_for[x->jobs[job].n_waits++] = for_job;
}

static void to_host(struct executor *x, int node, int side)
{
    if (x->where[node][0] < 0) {
        int job = new_job(
            x, side, 2,
            tnd_schedule_link_us(&x->problem->sides[side].download, x->problem->bytes[node]));
        wait_in_job(x, job, x->where[node][side]);
        tell(x, GIVE, job);
        x->where[node][0] = job;
    }
}

static bool has_part(const struct tnd_schedule *schedule, int node, int side)
{
    bool any = false;
    for (int p = 0; p < schedule->n_parts; p++) {
        any = any || (schedule->parts[p].node == node && schedule->parts[p].side == side);
    }
    return any;
}

/* Whether somebody wants the result of a node that runs on `side` in another memory. */
static bool leaves(const struct executor *x, const struct tnd_schedule *schedule, int node,
                   int side)
{
    const struct tnd_schedule_problem *problem = x->problem;
    bool any = false;
    for (int i = node + 1; i < problem->n_nodes; i++) {
        for (int e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            bool is_read = problem->edges[e].from == node && !problem->edges[e].is_ordered;
            for (int s = 0; s < problem->n_sides && is_read; s++) {
                bool is_there = schedule->side[i] == TND_SCHEDULE_SPLIT ? has_part(schedule, i, s)
                                                                        : schedule->side[i] == s;
                any = any || (is_there && home(x, s) != home(x, side));
            }
        }
    }
    return any;
}

static void prepare(struct executor *x, int node, int side)
{
    const struct tnd_schedule_problem *problem = x->problem;
    int memory = home(x, side);
    for (int e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        int from = problem->edges[e].from;
        if (problem->edges[e].is_ordered || x->where[from][memory] >= 0) {
            continue;
        }
        if (memory > 0) {
            tell(x, AWAIT, x->where[from][0]);
            int job =
                new_job(x, side, 1,
                        tnd_schedule_link_us(&problem->sides[side].upload, problem->bytes[from]));
            tell(x, GIVE, job);
            x->where[from][memory] = job;
        }
    }
}

static int work(struct executor *x, int node, int side, double us)
{
    const struct tnd_schedule_problem *problem = x->problem;
    int job = new_job(x, side, 0, us * x->true_factor[side]);
    for (int e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        int there = x->where[problem->edges[e].from][home(x, side)];
        if (there >= 0 && side == 0) {
            tell(x, AWAIT, there);
        } else if (there >= 0) {
            wait_in_job(x, job, there);
        }
    }
    tell(x, GIVE, job);
    if (side == 0) {
        tell(x, AWAIT, job);
    }
    return job;
}

static double curve(const struct tnd_schedule_split *split, int side, int64_t rows)
{
    double at = (double)rows / (double)split->rows * (TND_SCHEDULE_CURVE_POINTS - 1);
    int i = (int)floor(at);
    double a = (double)split->us[side][i];
    return i == TND_SCHEDULE_CURVE_POINTS - 1 ? a
                                              : a + (at - i) * ((double)split->us[side][i + 1] - a);
}

static void work_split(struct executor *x, const struct tnd_schedule *schedule, int node)
{
    const struct tnd_schedule_problem *problem = x->problem;
    const struct tnd_schedule_split *split = &problem->splits[problem->split_of[node]];
    int last[MOST_SIDES] = {-1, -1, -1, -1};
    int64_t rows[MOST_SIDES] = {0};
    int64_t covered = 0;
    for (int p = 0; p < schedule->n_parts; p++) {
        const struct tnd_schedule_part *part = &schedule->parts[p];
        if (part->node == node) {
            check_int(part->row_begin, covered);
            covered = part->row_end;
            rows[part->side] = part->row_end - part->row_begin;
        }
    }
    check_int(covered, split->rows);
    for (int s = 1; s < problem->n_sides; s++) {
        if (rows[s] > 0) {
            prepare(x, node, s);
            last[s] = work(x, node, s, curve(split, s, rows[s]));
        }
        if (rows[s] > 0 && problem->sides[s].own_memory) {
            int job = new_job(x, s, 2,
                              tnd_schedule_link_us(&problem->sides[s].download,
                                                   split->bytes_per_row * (double)rows[s]));
            wait_in_job(x, job, last[s]);
            tell(x, GIVE, job);
            last[s] = job;
        }
    }
    if (rows[0] > 0) {
        prepare(x, node, 0);
        (void)work(x, node, 0, curve(split, 0, rows[0]));
    }
    for (int s = 1; s < problem->n_sides; s++) {
        if (last[s] >= 0) {
            tell(x, AWAIT, last[s]);
        }
    }
    int join = new_job(x, 0, 0, split->join_us_per_row * (double)(split->rows - rows[0]));
    tell(x, GIVE, join);
    tell(x, AWAIT, join);
    x->where[node][0] = join;
}

static bool runs(const struct executor *x, int i)
{
    const struct job *job = &x->jobs[i];
    if (!job->was_given || job->is_done) {
        return false;
    }
    for (int w = 0; w < job->n_waits; w++) {
        if (!x->jobs[job->waits_for[w]].is_done) {
            return false;
        }
    }
    return true;
}

/* Jobs that run now: the first unfinished one of each lane, if it may. Jobs are numbered in the
 * order in which they are given. */
static int running(const struct executor *x, int *out)
{
    int lanes[64];
    int n_lanes = 0;
    int n = 0;
    for (int i = 0; i < x->n_jobs; i++) {
        bool is_first = x->jobs[i].was_given && !x->jobs[i].is_done;
        for (int k = 0; k < n_lanes; k++) {
            is_first = is_first && lanes[k] != x->jobs[i].lane;
        }
        if (is_first) {
            lanes[n_lanes++] = x->jobs[i].lane;
            if (runs(x, i)) {
                out[n++] = i;
            }
        }
    }
    return n;
}

/* The virtual clock. Returns the time at which all is done. */
static double play(struct executor *x)
{
    const struct tnd_schedule_problem *problem = x->problem;
    double now = 0;
    int at = 0;
    for (;;) {
        while (at < x->n_deeds &&
               (x->program[at].deed == GIVE || x->jobs[x->program[at].job].is_done)) {
            x->jobs[x->program[at].job].was_given = true;
            at++;
        }
        int active[64];
        double rate[64];
        int n = running(x, active);
        if (n == 0) {
            check_int(at, x->n_deeds);
            return now;
        }
        double step = INFINITY;
        for (int i = 0; i < n; i++) {
            double factor = 1;
            int side = x->jobs[active[i]].side;
            for (int k = 0; k < n && problem->slowdown != NULL; k++) {
                int beside = x->jobs[active[k]].side;
                if (beside != side) {
                    factor =
                        fmax(factor, (double)problem->slowdown[side * problem->n_sides + beside]);
                }
            }
            rate[i] = 1 / factor;
            step = fmin(step, x->jobs[active[i]].left / rate[i]);
        }
        now += step;
        for (int i = 0; i < n; i++) {
            struct job *job = &x->jobs[active[i]];
            job->left -= step * rate[i];
            job->is_done = job->left <= 1e-9;
        }
    }
}

static double execute(const struct tnd_schedule_problem *problem,
                      const struct tnd_schedule *schedule, const double *true_factor)
{
    struct executor *x = &executor;
    x->problem = problem;
    x->n_jobs = x->n_deeds = 0;
    memset(x->where, -1, sizeof(x->where));
    for (int s = 0; s < problem->n_sides; s++) {
        x->true_factor[s] = true_factor != NULL ? true_factor[s] : 1;
    }
    for (int i = 0; i < problem->n_nodes; i++) {
        int node = schedule->order[i];
        int side = schedule->side[node];
        if (side == TND_SCHEDULE_SPLIT) {
            work_split(x, schedule, node);
            continue;
        }
        prepare(x, node, side);
        x->where[node][home(x, side)] =
            work(x, node, side, (double)problem->times[node * problem->n_sides + side].us);
        if (home(x, side) > 0 && leaves(x, schedule, node, side)) {
            to_host(x, node, side);
        }
    }
    return play(x);
}

/* The best placement on one side, by the executor. */
static double best_single(const struct tnd_schedule_problem *problem, const double *true_factor)
{
    uint8_t side[MOST_NODES];
    int32_t order[MOST_NODES];
    struct tnd_schedule single = {.side = side, .order = order};
    double best = INFINITY;
    for (int s = 0; s < problem->n_sides; s++) {
        for (int i = 0; i < problem->n_nodes; i++) {
            order[i] = i;
            side[i] = (uint8_t)(problem->times[i * problem->n_sides + s].us >= 0 ? s : 0);
        }
        best = fmin(best, execute(problem, &single, true_factor));
    }
    return best;
}

static bool is_topological(const struct drawn *d, const struct tnd_schedule *schedule)
{
    bool is_out[MOST_NODES] = {false};
    for (int i = 0; i < d->problem.n_nodes; i++) {
        int node = schedule->order[i];
        if (node < 0 || node >= d->problem.n_nodes || is_out[node]) {
            return false;
        }
        for (int e = d->first_edge[node]; e < d->first_edge[node + 1]; e++) {
            if (!is_out[d->edges[e].from]) {
                return false;
            }
        }
        is_out[node] = true;
    }
    return true;
}

/* ---- tests ---- */

static void a_schedule_is_never_slower_than_the_best_single_placement(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(1501 + tnd_test_seed());
    static struct drawn d;
    double worst = 0;
    double worst_off = 0;
    double gains = 0;
    int n_taken = 0;
    enum { DRAWN = 1000 };
    for (int i = 0; i < DRAWN; i++) {
        struct tnd_schedule schedule;
        double factor[MOST_SIDES];
        d.wanted_nodes = (int)tnd_test_rng_int(&rng, 3, 40);
        d.wanted_sides = (int)tnd_test_rng_int(&rng, 2, MOST_SIDES);
        d.has_slowdown = happens(&rng, 0.5);
        d.has_splits = happens(&rng, 0.5);
        tune_draw_schedule(&rng, &d);
        check_ok(tnd_schedule_find(&d.problem, &schedule, NULL));
        CU_ASSERT_TRUE(is_topological(&d, &schedule));
        double took = execute(&d.problem, &schedule, NULL);
        double single = best_single(&d.problem, NULL);
        CU_ASSERT_DOUBLE_EQUAL(took, schedule.makespan_us, 1e-3 * took + 1e-3);
        worst = fmax(worst, took / single);
        gains += log(single / took);
        n_taken += schedule.is_taken;
        for (int s = 0; s < d.problem.n_sides; s++) {
            factor[s] = between(&rng, 0.96, 1.04); /* times are off by their error bars */
        }
        worst_off = fmax(worst_off,
                         execute(&d.problem, &schedule, factor) / best_single(&d.problem, factor));
        tnd_schedule_fini(&schedule);
    }
    printf(
        "  1000 schedules: at worst %.3f of the best single placement, %.3f when times are off by "
        "4 %%; faster by %.2f in the mean, %d taken\n",
        worst, worst_off, exp(gains / DRAWN), n_taken);
    CU_ASSERT_TRUE(worst <= 1.0001);
    CU_ASSERT_TRUE(worst_off <= 1.05);
}

/* Two lanes cannot be faster: by the work, by the longest path, and by the work that must lie in an
 * interval if that path is not to grow (Fernandez and Bussell, IEEE Trans. Comp. C-22(8), 1973). A
 * split node is two halves side by side. */
static double ideal_us(const struct drawn *d)
{
    int n = d->problem.n_nodes;
    double us[MOST_NODES], begin[MOST_NODES], tail[MOST_NODES] = {0}; /* of it and behind it */
    int copies[MOST_NODES];
    double total = 0;
    double longest = 0;
    for (int i = 0; i < n; i++) {
        copies[i] = d->has_splits && d->split_of[i] >= 0 ? 2 : 1;
        us[i] = (double)d->times[2 * i].us / copies[i];
        total += us[i] * copies[i];
        begin[i] = 0;
        for (int e = d->first_edge[i]; e < d->first_edge[i + 1]; e++) {
            int from = d->edges[e].from; /* what is only ordered need not be over */
            begin[i] = fmax(begin[i], d->edges[e].is_ordered ? 0 : begin[from] + us[from]);
        }
        longest = fmax(longest, begin[i] + us[i]);
    }
    for (int i = n; i-- > 0;) {
        tail[i] += us[i];
        for (int e = d->first_edge[i]; e < d->first_edge[i + 1]; e++) {
            int from = d->edges[e].from;
            tail[from] = fmax(tail[from], d->edges[e].is_ordered ? 0 : tail[i]);
        }
    }
    double excess = 0;
    for (int x = 0; x < n; x++) {
        for (int y = 0; y < n; y++) {
            double from = begin[x];
            double to = longest - (tail[y] - us[y]);
            double inside = 0;
            for (int i = 0; i < n && to > from; i++) {
                double early = begin[i] + us[i] - from;
                double late = to - (longest - tail[i]);
                double part = fmin(fmin(us[i], to - from), fmin(early, late));
                inside += fmax(0, part) * copies[i];
            }
            excess = fmax(excess, to > from ? inside / 2 - (to - from) : 0);
        }
    }
    return fmax(total / 2, longest + excess);
}

/* Layers follow one another: the first node of each, then the other six on both lanes. */
static double ideal_of_layers(const struct drawn *d)
{
    double sum = 0;
    for (int first = 0; first < d->problem.n_nodes; first += 7) {
        double total = 0;
        double longest = 0;
        for (int i = first; i < first + 7 && i < d->problem.n_nodes; i++) {
            bool is_split = d->has_splits && d->split_of[i] >= 0;
            double us = (double)d->times[2 * i].us;
            double least = is_split ? us / 2 : us;
            sum += i == first ? least : 0;
            total += i == first ? 0 : us;
            longest = i == first ? 0 : fmax(longest, least);
        }
        sum += fmax(total / 2, longest);
    }
    return sum;
}

/* Drawn graphs on two equal lanes: what part of the ideal speed-up is reached, at worst and in the
 * mean. */
static void run_equal(struct tnd_test_rng *rng, bool is_layered, double *out_worst,
                      double *out_mean, double *out_missed)
{
    static struct drawn d;
    int n = tnd_effort() > 2 ? 1000 : 150;
    double sum = 0;
    *out_worst = INFINITY;
    for (int i = 0; i < n; i++) {
        struct tnd_schedule schedule;
        d.is_equal = true;
        d.is_layered = is_layered;
        d.wanted_sides = 2;
        d.has_splits = i % 2 == 0;
        d.wanted_nodes = (int)tnd_test_rng_int(rng, 20, MOST_NODES);
        tune_draw_schedule(rng, &d);
        check_ok(tnd_schedule_find(&d.problem, &schedule, NULL));
        double ideal = is_layered ? ideal_of_layers(&d) : ideal_us(&d);
        double reached = ideal / execute(&d.problem, &schedule, NULL);
        *out_worst = fmin(*out_worst, reached);
        *out_missed += reached < 0.9 ? 1.0 / n : 0;
        sum += reached / n;
        tnd_schedule_fini(&schedule);
    }
    *out_mean = sum;
}

/* Nodes of 0.5 to 1 ms: what is looked for follows what it is worth. Of random graphs the bound
 * need not be within reach: one in a hundred may miss it. */
static void two_equal_lanes_reach_nine_tenths_of_the_ideal(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(1502 + tnd_test_seed());
    double worst[2], mean[2];
    double missed[2] = {0, 0};
    run_equal(&rng, true, &worst[0], &mean[0], &missed[0]);
    run_equal(&rng, false, &worst[1], &mean[1], &missed[1]);
    printf(
        "  two equal lanes, of the ideal speed-up: layers %.3f at worst, %.3f in the mean; random "
        "graphs %.3f and %.3f, %.1f %% below 0.9\n",
        worst[0], mean[0], worst[1], mean[1], 100 * missed[1]);
    CU_ASSERT_TRUE(worst[0] >= 0.9);
    CU_ASSERT_TRUE(worst[1] >= 0.8);
    CU_ASSERT_TRUE(missed[1] <= 0.01);
    CU_ASSERT_TRUE(mean[1] >= 0.96);
}

static CU_TestInfo schedule_tests[] = {
    {"a schedule is never slower than the best single placement",
     a_schedule_is_never_slower_than_the_best_single_placement},
    {"two equal lanes reach nine tenths of the ideal",
     two_equal_lanes_reach_nine_tenths_of_the_ideal},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_schedule[];
CU_SuiteInfo suites_tune_schedule[] = {
    {"schedules", NULL, NULL, NULL, NULL, schedule_tests},
    CU_SUITE_INFO_NULL,
};
