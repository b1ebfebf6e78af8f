/* SPDX-License-Identifier: MIT
 * Chooses a schedule: compares everything on one side, and a left-to-right choice by cost, with the
 * results of list scheduling and local search, all run by the same virtual clock. Start at
 * tnd_schedule_find. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "tune/policy.h"
#include "tune/schedule_internal.h"

enum { NONE = -1, HOST = 0 };

struct placement {
    double us; /* INFINITY: none found */
    uint8_t *side;
    int32_t *order;
};

struct finding {
    const struct tnd_schedule_problem *problem;
    struct tnd_shares *shares;
    struct tnd_listing listing;
    struct tnd_schedule_run run;
    struct tnd_moment moment;
    struct tnd_readers readers;
    struct tnd_bounds bounds;
    double *marks, *there; /* for tnd_improving */
    int32_t *set_at;
    struct placement single, best; /* `best`: among all, with splits and overlaps */
    struct placement unsplit;      /* the best one without splits */
    struct placement base;         /* the present placement of the local search */
    uint8_t *side;                 /* of the placement being priced */
    int32_t *order, *graph_order;
    uint64_t *keys;
    uint8_t *is_out; /* nodes already handed out */
    int n_tried;
};

/* ---- one placement ---- */

/* Keeps a placement that is faster than `best`. Runs it with slow-downs only if it is faster
 * without them. */
static void try_order(struct finding *f, const int32_t *order, struct placement *best)
{
    memcpy(f->moment.side, f->side, (size_t)f->problem->n_nodes);
    tnd_schedule_begin(&f->moment);
    for (int i = 0; i < f->problem->n_nodes; i++) {
        tnd_schedule_step(&f->moment, order[i], f->side[order[i]]);
    }
    double us = tnd_schedule_end(&f->moment);
    f->n_tried++;
    if (f->problem->slowdown != NULL && us < best->us) {
        f->run.side = f->side;
        f->run.order = order;
        double slow_us = tnd_schedule_run(&f->run);
        TND_ASSERT(slow_us >= us * (1 - 1e-6));
        us = slow_us;
    }
    if (us < best->us) {
        best->us = us;
        memcpy(best->side, f->side, (size_t)f->problem->n_nodes);
        memcpy(best->order, order, (size_t)f->problem->n_nodes * sizeof(order[0]));
    }
}

static bool is_here(const struct finding *f, int32_t node)
{
    return f->side[node] == HOST || f->side[node] == TND_SCHEDULE_SPLIT;
}

static bool can_go_out(const struct finding *f, int32_t node)
{
    const struct tnd_schedule_problem *problem = f->problem;
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        if (!f->is_out[problem->edges[e].from]) {
            return false;
        }
    }
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts by begin, then by rank, which respects all edges. */
static void sort_by_begin(struct finding *f)
{
    int n = f->problem->n_nodes;
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &f->listing.begin_us[f->listing.by_rank[i]], sizeof(bits));
        f->keys[i] = (uint64_t)bits << 32 | (uint32_t)i;
    }
    qsort(f->keys, (size_t)n, sizeof(f->keys[0]), compare_keys);
}

static int next_of(const struct finding *f, int at, bool is_here_wanted)
{
    int n = f->problem->n_nodes;
    while (at < n && is_here(f, f->listing.by_rank[(uint32_t)f->keys[at]]) != is_here_wanted) {
        at++;
    }
    return at;
}

/* Orders nodes for hand-out. The host cannot hand out work while it computes. So, before a node of
 * the host, it hands out everything that devices can begin before that node ends (`is_eager`), or
 * only what they begin before the node begins. */
static void hand_out(struct finding *f, bool is_eager)
{
    int n = f->problem->n_nodes;
    int here = next_of(f, 0, true);
    int there = next_of(f, 0, false);
    for (int i = 0; i < n; i++) {
        f->is_out[i] = 0;
    }
    for (int i = 0; i < n; i++) {
        int32_t mine = here < n ? f->listing.by_rank[(uint32_t)f->keys[here]] : NONE;
        int32_t theirs = there < n ? f->listing.by_rank[(uint32_t)f->keys[there]] : NONE;
        bool is_theirs = mine == NONE;
        if (mine != NONE && theirs != NONE) {
            float until = is_eager ? f->listing.end_us[mine] : f->listing.begin_us[mine];
            bool in_time = is_eager ? f->listing.begin_us[theirs] < until
                                    : f->listing.begin_us[theirs] <= until;
            is_theirs = (in_time && can_go_out(f, theirs)) || !can_go_out(f, mine);
        }
        int32_t next = is_theirs ? theirs : mine;
        TND_ASSERT(can_go_out(f, next));
        f->order[i] = next;
        f->is_out[next] = 1;
        here = is_theirs ? here : next_of(f, here + 1, true);
        there = is_theirs ? next_of(f, there + 1, false) : there;
    }
}

static void try_list(struct finding *f, bool may_split, bool counts_slowdown)
{
    f->listing.may_split = may_split;
    f->listing.counts_slowdown = counts_slowdown;
    tnd_schedule_list(&f->listing);
    sort_by_begin(f);
    size_t bytes = (size_t)f->problem->n_nodes * sizeof(f->order[0]);
    hand_out(f, true);
    try_order(f, f->order, &f->best);
    memcpy(f->base.order, f->order, bytes);
    hand_out(f, false);
    if (memcmp(f->base.order, f->order, bytes) != 0) {
        try_order(f, f->order, &f->best);
    }
}

/* ---- placements without splits and overlaps ---- */

static bool is_given(const struct tnd_schedule_problem *problem, int32_t node)
{
    return problem->first_edge[node] == problem->first_edge[node + 1] &&
           !(tnd_schedule_time(problem, node, HOST)->us > 0);
}

static void put_all_on(struct finding *f, int side)
{
    for (int i = 0; i < f->problem->n_nodes; i++) {
        bool can = tnd_schedule_time(f->problem, i, side)->us >= 0;
        f->side[i] = (uint8_t)(can ? side : HOST);
    }
}

/* Time of moving the operands of a node to a side; *out_all_there: no computed operand has to be
 * moved. `arrival_us` is used as a flag: finite where a result is present. */
static double moves_us(const struct finding *f, int node, int side, bool *out_all_there)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int memory = tnd_schedule_memory(problem, side);
    double us = 0;
    bool any = false;
    *out_all_there = true;
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        int32_t from = problem->edges[e].from;
        const float *there = &f->listing.arrival_us[from * problem->n_sides];
        if (problem->edges[e].is_ordered) {
            continue;
        }
        bool is_there = there[memory] < INFINITY;
        any = any || !is_given(problem, from);
        *out_all_there = *out_all_there && (is_there || is_given(problem, from));
        if (!is_there && !(there[HOST] < INFINITY)) {
            us +=
                tnd_schedule_link_us(&problem->sides[f->side[from]].download, problem->bytes[from]);
        }
        if (!is_there && memory != HOST) {
            us += tnd_schedule_link_us(&problem->sides[side].upload, problem->bytes[from]);
        }
    }
    *out_all_there = *out_all_there && any;
    return us;
}

/* Counts the download of the result, since its readers are not placed yet. A node that takes
 * exactly as long on a device as on the host follows its operands. */
static int cheapest_side(const struct finding *f, int node)
{
    const struct tnd_schedule_problem *problem = f->problem;
    float here_us = tnd_schedule_time(problem, node, HOST)->us;
    bool is_there;
    double best_us = (double)here_us + moves_us(f, node, HOST, &is_there);
    int best = HOST;
    for (int side = 1; side < problem->n_sides; side++) {
        float us = tnd_schedule_time(problem, node, side)->us;
        if (us < 0) {
            continue;
        }
        double all_us = (double)us + moves_us(f, node, side, &is_there);
        bool follows = !(us > here_us) && !(us < here_us);
        if (follows && is_there) {
            return side;
        }
        all_us += tnd_schedule_link_us(&problem->sides[side].download, problem->bytes[node]);
        if (!follows && all_us < best_us) {
            best_us = all_us;
            best = side;
        }
    }
    return best;
}

static void put_by_cost(struct finding *f)
{
    const struct tnd_schedule_problem *problem = f->problem;
    float *there = f->listing.arrival_us;
    for (int64_t i = 0; i < (int64_t)problem->n_nodes * problem->n_sides; i++) {
        there[i] = INFINITY;
    }
    for (int i = 0; i < problem->n_nodes; i++) {
        int side = cheapest_side(f, i);
        int memory = tnd_schedule_memory(problem, side);
        f->side[i] = (uint8_t)side;
        there[i * problem->n_sides + memory] = 0;
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            if (!problem->edges[e].is_ordered) {
                int32_t from = problem->edges[e].from;
                bool by_host = memory != HOST && !(there[from * problem->n_sides + memory] <= 0);
                there[from * problem->n_sides + memory] = 0;
                there[from * problem->n_sides] = by_host ? 0 : there[from * problem->n_sides];
            }
        }
    }
}

/* Of equal placements the first one is kept, so that nothing moves without a gain. */
static void try_singles(struct finding *f)
{
    for (int side = 0; side < f->problem->n_sides; side++) {
        put_all_on(f, side);
        try_order(f, f->graph_order, &f->single);
    }
    if (f->problem->n_sides > 1) {
        put_by_cost(f);
        try_order(f, f->graph_order, &f->single);
    }
}

/* ---- placements with splits and overlaps ---- */

static bool can_split(const struct finding *f, int node)
{
    const struct tnd_schedule_problem *problem = f->problem;
    return problem->split_of != NULL && problem->split_of[node] >= 0 &&
           f->shares[problem->split_of[node]].is_useful;
}

/* Tries the best single placement with those nodes of the host split that gain by it. */
static void try_split_of_single(struct finding *f)
{
    for (int i = 0; i < f->problem->n_nodes; i++) {
        f->side[i] = f->single.side[i];
        if (can_split(f, i) && f->side[i] == HOST &&
            f->shares[f->problem->split_of[i]].us <
                (double)tnd_schedule_time(f->problem, i, HOST)->us) {
            f->side[i] = TND_SCHEDULE_SPLIT;
        }
    }
    try_order(f, f->graph_order, &f->best);
}

static void copy(const struct finding *f, struct placement *to, const struct placement *from)
{
    size_t n = (size_t)f->problem->n_nodes;
    to->us = from->us;
    memcpy(to->side, from->side, n);
    memcpy(to->order, from->order, n * sizeof(to->order[0]));
}

/* Whether the best placement so far is far enough from the bound to look for a better one. */
static bool is_open(const struct finding *f)
{
    double best_us = fmin(f->best.us, f->single.us);
    return f->bounds.least_us < best_us * (1 - TND_SCHEDULE_NEAR);
}

/* Local search from the best placement so far. */
static void improve(struct finding *f)
{
    const struct placement *from = f->best.us <= f->single.us ? &f->best : &f->single;
    double from_us = from->us;
    double worth =
        fmax((from_us - f->bounds.least_us) * TND_SCHEDULE_STEPS, TND_SCHEDULE_IDLE_STEPS);
    struct tnd_improving moves = {.bounds = &f->bounds,
                                  .run = &f->run,
                                  .moment = &f->moment,
                                  .most_steps = (int64_t)fmin(worth, INT32_MAX),
                                  .has_gained = from_us < f->single.us,
                                  .us = from_us,
                                  .best_side = f->best.side,
                                  .best_order = f->best.order,
                                  .side = f->base.side,
                                  .order = f->base.order,
                                  .place = f->order,
                                  .marks = f->marks,
                                  .there = f->there,
                                  .set_at = f->set_at};
    copy(f, &f->base, from);
    if (from != &f->best) {
        copy(f, &f->best, from);
    }
    tnd_schedule_move(&moves);
    f->best.us = moves.us;
}

static void try_lists(struct finding *f, bool may_split)
{
    const struct tnd_schedule_problem *problem = f->problem;
    tnd_schedule_by_chain(problem, f->order, f->keys, f->listing.by_rank);
    try_list(f, may_split, false);
    tnd_schedule_rank(problem, f->listing.begin_us, f->keys, f->listing.by_rank);
    try_list(f, may_split, false);
    if (problem->slowdown != NULL) {
        try_list(f, may_split, true);
    }
}

/* Looks for a better placement, with splits or without. */
static void look(struct finding *f, bool may_split)
{
    f->bounds.may_split = may_split;
    tnd_schedule_bound(&f->bounds);
    if (is_open(f)) {
        try_lists(f, may_split);
    }
    if (may_split) {
        try_split_of_single(f);
    }
    if (is_open(f)) {
        improve(f);
    }
}

static void try_schedules(struct finding *f)
{
    const struct tnd_schedule_problem *problem = f->problem;
    bool any_split = false;
    for (int i = 0; i < problem->n_splits; i++) {
        tnd_schedule_divide(problem, &problem->splits[i], &f->shares[i]);
        any_split = any_split || f->shares[i].is_useful;
    }
    look(f, false);
    copy(f, &f->unsplit, &f->best);
    if (any_split) {
        look(f, true);
    }
}

/* ---- the gain and its error bar ---- */

/* Adds the error bars of a node's times to the sums of its sides. */
static void add_errors(const struct finding *f, const struct placement *placement, int node,
                       double *io_errors)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int side = placement->side[node];
    if (side != TND_SCHEDULE_SPLIT) {
        io_errors[side] += (double)tnd_schedule_time(problem, node, side)->error_us;
        return;
    }
    const struct tnd_schedule_split *split = &problem->splits[problem->split_of[node]];
    for (side = 0; side < problem->n_sides; side++) {
        io_errors[side] +=
            (double)split->error_frac[side] *
            tnd_schedule_share_us(split, side, f->shares[problem->split_of[node]].rows[side]);
    }
}

/* Error bar of the difference of two placements. Errors on one side are fully correlated, since its
 * times come from few curves, so nodes on the same side in both do not count. Sides err
 * independently. */
static double gain_error(const struct finding *f, const struct placement *placement)
{
    const struct tnd_schedule_problem *problem = f->problem;
    double errors[2][TND_SCHEDULE_SIDES] = {{0}};
    for (int i = 0; i < problem->n_nodes; i++) {
        if (f->single.side[i] != placement->side[i]) {
            add_errors(f, &f->single, i, errors[0]);
            add_errors(f, placement, i, errors[1]);
        }
    }
    double squares = 0;
    for (int side = 0; side < problem->n_sides; side++) {
        double error = errors[0][side] - errors[1][side];
        squares += error * error;
    }
    return sqrt(squares);
}

/* ---- the result ---- */

/* Follows causes back from the span that ended last. */
static void mark_critical(struct tnd_schedule *out)
{
    int32_t at = NONE;
    for (int32_t i = 0; i < out->n_spans; i++) {
        at = at == NONE || out->spans[i].end_us > out->spans[at].end_us ? i : at;
    }
    for (; at != NONE; at = out->spans[at].cause) {
        out->spans[at].is_critical = true;
    }
}

static void list_parts(const struct finding *f, struct tnd_schedule *out)
{
    for (int i = 0; i < f->problem->n_nodes; i++) {
        if (out->side[i] != TND_SCHEDULE_SPLIT) {
            continue;
        }
        int64_t row = 0;
        const struct tnd_schedule_split *split = &f->problem->splits[f->problem->split_of[i]];
        for (int side = 0; side < f->problem->n_sides; side++) {
            int64_t rows = f->shares[f->problem->split_of[i]].rows[side];
            if (rows > 0) {
                out->parts[out->n_parts++] = (struct tnd_schedule_part){
                    i, (uint8_t)side, row, row + rows, tnd_schedule_share_us(split, side, rows)};
                row += rows;
            }
        }
    }
}

static void choose(struct finding *f, struct tnd_schedule *out)
{
    const struct placement *tried[] = {&f->best, &f->unsplit};
    const struct placement *chosen = &f->single;
    out->single_us = f->single.us;
    out->best_us = fmin(f->best.us, f->single.us);
    for (int i = 0; i < 2 && !out->is_taken && tried[i]->us < f->single.us; i++) {
        double error_us = gain_error(f, tried[i]);
        out->gain_error_us = i == 0 ? error_us : out->gain_error_us;
        out->is_taken = f->single.us - tried[i]->us >
                        fmax(TND_SCHEDULE_GAIN * error_us, TND_RULE_LEAD * f->single.us);
        chosen = out->is_taken ? tried[i] : chosen;
    }
    out->side = chosen->side;
    out->order = chosen->order;
    f->run.side = chosen->side;
    f->run.order = chosen->order;
    out->makespan_us = tnd_schedule_run(&f->run);
    out->n_tried = f->n_tried;
    out->n_spans = f->run.n_jobs;
    mark_critical(out);
    list_parts(f, out);
}

/* ---- memory ---- */

/* Reserves room for `n` members at the end of *io_bytes; false if the size overflows. */
static bool place(int64_t n, size_t bytes, size_t *io_bytes, size_t *out_at)
{
    size_t all;
    return tnd_align_up(*io_bytes, sizeof(double), out_at) &&
           tnd_mul_size((size_t)n, bytes, &all) && tnd_add_size(*out_at, all, io_bytes);
}

/* Allocates all arrays in one block. */
static enum tandem_status reserve(struct finding *f, struct tnd_schedule *out,
                                  struct tandem_error *error)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int64_t n = problem->n_nodes;
    int64_t n_cells = n * problem->n_sides;
    int64_t n_jobs = tnd_schedule_most_jobs(problem);
    size_t bytes = 0;
    int64_t n_lanes = tnd_schedule_lanes(problem->n_sides);
    size_t spans, jobs, at, there, shares, parts, keys, floats, orders, sides;
    if (!place(n_jobs, sizeof(f->run.spans[0]), &bytes, &spans) ||
        !place(n_jobs, sizeof(f->run.jobs[0]), &bytes, &jobs) ||
        !place(n_cells, sizeof(int32_t), &bytes, &at) ||
        !place(2 * n_cells + n * (2 + n_lanes), sizeof(double), &bytes, &there) ||
        !place(problem->n_splits, sizeof(f->shares[0]), &bytes, &shares) ||
        !place(problem->split_of != NULL ? n_cells : 0, sizeof(out->parts[0]), &bytes, &parts) ||
        !place(n, sizeof(uint64_t), &bytes, &keys) ||
        !place(3 * n + 5 * n_cells + 2 * n, sizeof(float), &bytes, &floats) ||
        !place(8 * n + 1 + n_cells + problem->first_edge[n], sizeof(int32_t), &bytes, &orders) ||
        !place(7 * n, 1, &bytes, &sides)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "planner", n, 0,
                             "planner: a schedule of %lld nodes does not fit into memory",
                             (long long)n);
    }
    char *base = tnd_alloc(bytes + 1);
    if (base == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "planner", n, 0,
                             "planner: out of memory for the schedule of %lld nodes", (long long)n);
    }
    out->memory = base;
    out->spans = f->run.spans = (struct tnd_schedule_span *)(void *)(base + spans);
    f->run.jobs = (struct tnd_schedule_job *)(void *)(base + jobs);
    f->run.at = (int32_t *)(void *)(base + at);
    f->moment.there = (double *)(void *)(base + there);
    f->there = f->moment.there + n_cells;
    f->marks = f->there + n_cells;
    f->shares = (struct tnd_shares *)(void *)(base + shares);
    out->parts = (struct tnd_schedule_part *)(void *)(base + parts);
    f->keys = (uint64_t *)(void *)(base + keys);
    f->listing.begin_us = (float *)(void *)(base + floats);
    f->listing.end_us = f->listing.begin_us + n;
    f->listing.arrival_us = f->listing.end_us + n;
    f->bounds.us = f->listing.arrival_us + n_cells;
    f->bounds.tail_us = f->bounds.us + n_cells + n;
    f->bounds.fetch_us = f->bounds.tail_us + n_cells + n;
    f->bounds.bring_us = f->bounds.fetch_us + n_cells;
    f->graph_order = (int32_t *)(void *)(base + orders);
    f->set_at = f->graph_order + 7 * n;
    f->listing.by_rank = f->graph_order + n;
    f->order = f->graph_order + 2 * n;
    f->single.order = f->graph_order + 3 * n;
    f->best.order = f->graph_order + 4 * n;
    f->base.order = f->graph_order + 5 * n;
    f->unsplit.order = f->graph_order + 6 * n;
    f->readers.first = f->set_at + n_cells;
    f->readers.list = f->readers.first + n + 1;
    f->side = (uint8_t *)(void *)(base + sides);
    f->single.side = f->side + n;
    f->best.side = f->side + 2 * n;
    f->base.side = f->side + 3 * n;
    f->unsplit.side = f->side + 4 * n;
    f->moment.side = f->side + 5 * n;
    f->is_out = f->side + 6 * n;
    return TANDEM_OK;
}

enum tandem_status tnd_schedule_find(const struct tnd_schedule_problem *problem,
                                     struct tnd_schedule *out, struct tandem_error *error)
{
    TND_ASSERT(problem->n_sides >= 1 && problem->n_sides <= TND_SCHEDULE_SIDES);
    struct finding f = {
        .problem = problem, .single.us = INFINITY, .best.us = INFINITY, .unsplit.us = INFINITY};
    struct tnd_schedule found = {.n_nodes = problem->n_nodes};
    TND_TRY(reserve(&f, &found, error));
    memset(f.shares, 0, (size_t)problem->n_splits * sizeof(f.shares[0]));
    f.run.problem = f.listing.problem = f.moment.problem = f.bounds.problem = problem;
    f.run.shares = f.listing.shares = f.moment.shares = f.bounds.shares = f.shares;
    f.listing.side = f.side;
    f.run.readers = f.moment.readers = &f.readers;
    tnd_schedule_find_readers(problem, &f.readers);
    for (int i = 0; i < problem->n_nodes; i++) {
        f.graph_order[i] = i;
    }
    try_singles(&f);
    if (problem->n_sides > 1 && !problem->only_singles) {
        try_schedules(&f);
    }
    choose(&f, &found);
    *out = found;
    return TANDEM_OK;
}

void tnd_schedule_fini(struct tnd_schedule *schedule)
{
    tnd_free(schedule->memory);
    *schedule = (struct tnd_schedule){0};
}
