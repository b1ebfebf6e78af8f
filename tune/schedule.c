/* SPDX-License-Identifier: MIT
 * The choice: everything on one side, or left to right by cost, against what list scheduling finds;
 * all of them run by the same virtual clock. Start at tnd_schedule_find. */
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
    double us; /* INFINITY: there is none */
    uint8_t *side;
    int32_t *order;
};

struct finding {
    const struct tnd_schedule_problem *problem;
    struct tnd_shares *shares;
    struct tnd_listing listing;
    struct tnd_schedule_run run;
    struct placement single, best; /* best: of those that may split and overlap */
    struct placement unsplit;      /* the best of those without a split */
    struct placement base;         /* that moves are made from */
    struct placement kept;         /* the best one while another one is improved */
    uint8_t *side;                 /* of the placement that is looked at */
    int32_t *order, *graph_order;
    uint64_t *keys;
    uint8_t *is_out; /* nodes that were handed out */
    int n_tried;
};

/* ---- one placement ---- */

/* Keeps a placement that is faster than `best`. */
static void try_order(struct finding *f, const int32_t *order, struct placement *best)
{
    f->run.side = f->side;
    f->run.order = order;
    double us = tnd_schedule_run(&f->run);
    f->n_tried++;
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

static bool is_edge(const struct tnd_schedule_problem *problem, int32_t from, int32_t to)
{
    for (int32_t e = problem->first_edge[to]; e < problem->first_edge[to + 1]; e++) {
        if (problem->edges[e].from == from) {
            return true;
        }
    }
    return false;
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

/* By begin, then by rank: an order that respects all edges. */
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

/* The host is busy while it computes: what devices can begin meanwhile is handed out before
 * (`is_eager`), or only what begins before the host's node does. */
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

static void try_list(struct finding *f, const uint8_t *fixed, bool may_split, bool counts_slowdown)
{
    f->listing.fixed = fixed;
    f->listing.may_split = may_split;
    f->listing.counts_slowdown = counts_slowdown;
    tnd_schedule_list(&f->listing);
    sort_by_begin(f);
    hand_out(f, true);
    try_order(f, f->order, &f->best);
    hand_out(f, false);
    try_order(f, f->order, &f->best);
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

/* What it costs to bring the operands of a node to a side; *out_all_there: nothing that the graph
 * has computed must be brought. `arrival_us` serves as a flag: finite where a result is. */
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

/* With the way back of the result, since nobody knows yet who wants it. A node that takes as long
 * on a device as here follows its operands. */
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

/* Of equals the first: nothing moves without a reason. */
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

/* ---- placements with them ---- */

static bool can_split(const struct finding *f, int node)
{
    const struct tnd_schedule_problem *problem = f->problem;
    return problem->split_of != NULL && problem->split_of[node] >= 0 &&
           f->shares[problem->split_of[node]].is_useful;
}

/* The best placement so far, with all nodes split that the host has and that gain by it. */
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

/* The places in the order to which a node may move: behind all that it waits for, before all
 * that wait for it. */
static void find_range(const struct finding *f, int at, int *out_first, int *out_last)
{
    const struct tnd_schedule_problem *problem = f->problem;
    const int32_t *order = f->base.order;
    int32_t node = order[at];
    int first = at;
    int last = at;
    while (first > 0 && !is_edge(problem, order[first - 1], node)) {
        first--;
    }
    while (last + 1 < problem->n_nodes && !is_edge(problem, node, order[last + 1])) {
        last++;
    }
    *out_first = first;
    *out_last = last;
}

static void try_move(struct finding *f, int from, int to, int side)
{
    int n = f->problem->n_nodes;
    int32_t node = f->base.order[from];
    memcpy(f->side, f->base.side, (size_t)n);
    memcpy(f->order, f->base.order, (size_t)n * sizeof(f->order[0]));
    f->side[node] = (uint8_t)side;
    for (int i = from; i != to; i += to > from ? 1 : -1) {
        f->order[i] = f->order[i + (to > from ? 1 : -1)];
    }
    f->order[to] = node;
    try_order(f, f->order, &f->best);
}

/* Moves one node to other sides and places in the order. */
static void move_node(struct finding *f, int at)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int32_t node = f->base.order[at];
    int first, last;
    find_range(f, at, &first, &last);
    for (int s = 0; s <= problem->n_sides; s++) {
        bool is_split = s == problem->n_sides;
        if (is_split ? !can_split(f, node) : tnd_schedule_time(problem, node, s)->us < 0) {
            continue;
        }
        int side = is_split ? TND_SCHEDULE_SPLIT : s;
        for (int to = first; to <= last; to++) {
            try_move(f, at, to, side);
        }
    }
}

/* Moves the nodes of a set, in the same order and in the one that list scheduling finds. */
static void move_set(struct finding *f, uint32_t set, int side)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int n = problem->n_nodes;
    uint8_t *fixed = f->is_out + n;
    bool changes = false;
    memcpy(fixed, f->base.side, (size_t)n);
    for (int i = 0; i < n; i++) {
        bool can = (set >> i & 1) != 0 &&
                   (side == TND_SCHEDULE_SPLIT ? can_split(f, i)
                                               : tnd_schedule_time(problem, i, side)->us >= 0);
        changes = changes || (can && fixed[i] != side);
        fixed[i] = can ? (uint8_t)side : fixed[i];
    }
    if (changes) {
        memcpy(f->side, fixed, (size_t)n);
        memcpy(f->order, f->base.order, (size_t)n * sizeof(f->order[0]));
        try_order(f, f->order, &f->best);
        try_list(f, fixed, true, false);
    }
}

static void move_set_anywhere(struct finding *f, uint32_t set)
{
    for (int side = 0; side < f->problem->n_sides; side++) {
        move_set(f, set, side);
    }
    move_set(f, set, TND_SCHEDULE_SPLIT);
}

/* Nodes that read a result of the set, or whose results it reads; with themselves. */
static uint32_t with_neighbours(const struct tnd_schedule_problem *problem, uint32_t set,
                                bool readers)
{
    uint32_t all = set;
    for (int i = 0; i < problem->n_nodes; i++) {
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            int32_t from = problem->edges[e].from;
            int32_t near = readers ? from : i;
            if (!problem->edges[e].is_ordered && (set >> near & 1) != 0) {
                all |= UINT32_C(1) << (readers ? i : from);
            }
        }
    }
    return all;
}

/* Sets that may pay together though none of their nodes does alone: neighbours in the order, nodes
 * with all that read them or that they read. */
static void move_sets(struct finding *f)
{
    const struct tnd_schedule_problem *problem = f->problem;
    for (int i = 0; i < problem->n_nodes; i++) {
        uint32_t set = 0;
        for (int last = i; last < problem->n_nodes; last++) {
            set |= UINT32_C(1) << f->base.order[last];
            move_set_anywhere(f, set);
        }
        for (int readers = 0; readers < 2; readers++) {
            set = UINT32_C(1) << i;
            for (uint32_t more = with_neighbours(problem, set, readers == 1); more != set;
                 more = with_neighbours(problem, set, readers == 1)) {
                set = more;
                move_set_anywhere(f, set);
            }
        }
    }
}

static void copy(const struct finding *f, struct placement *to, const struct placement *from)
{
    size_t n = (size_t)f->problem->n_nodes;
    to->us = from->us;
    memcpy(to->side, from->side, n);
    memcpy(to->order, from->order, n * sizeof(to->order[0]));
}

/* From the best placement to the best one that is a move away, as long as there is a better one. */
static void climb(struct finding *f)
{
    double before = INFINITY;
    for (int round = 0; round < TND_SCHEDULE_ROUNDS && f->best.us < before; round++) {
        copy(f, &f->base, &f->best);
        before = f->best.us;
        move_sets(f);
        for (int at = 0; at < f->problem->n_nodes; at++) {
            move_node(f, at);
        }
    }
}

/* Climbs from the best placement, then from others; the best of all stays. */
static void climb_from_many(struct finding *f)
{
    climb(f);
    for (int side = -1; side < f->problem->n_sides; side++) {
        copy(f, &f->kept, &f->best);
        f->best.us = INFINITY;
        if (side < 0) {
            copy(f, &f->best, &f->single);
        } else {
            put_all_on(f, side);
            try_order(f, f->graph_order, &f->best);
        }
        climb(f);
        if (f->kept.us < f->best.us) {
            copy(f, &f->best, &f->kept);
        }
    }
}

/* By rank, and by ranks that are a bit different: small graphs get more of those. */
static void try_lists(struct finding *f, bool may_split)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int n_repeats = TND_SCHEDULE_REPEATED / (problem->n_nodes + 1) / (may_split ? 2 : 1);
    n_repeats = n_repeats < TND_SCHEDULE_REPEATS ? n_repeats : TND_SCHEDULE_REPEATS;
    for (int variant = n_repeats; variant >= 0; variant--) {
        tnd_schedule_rank(problem, (uint32_t)variant, f->listing.begin_us, f->keys,
                          f->listing.by_rank);
        try_list(f, NULL, may_split, false);
    }
    if (problem->slowdown != NULL) {
        try_list(f, NULL, may_split, true);
    }
    try_order(f, f->graph_order, &f->best);
}

static void try_schedules(struct finding *f)
{
    const struct tnd_schedule_problem *problem = f->problem;
    bool any_split = false;
    for (int i = 0; i < problem->n_splits; i++) {
        tnd_schedule_divide(problem, &problem->splits[i], &f->shares[i]);
        any_split = any_split || f->shares[i].is_useful;
    }
    try_lists(f, false);
    copy(f, &f->unsplit, &f->best);
    if (any_split) {
        try_lists(f, true);
        try_split_of_single(f);
    }
    if (problem->n_nodes <= TND_SCHEDULE_SMALL) {
        climb_from_many(f);
    }
}

/* ---- the gain and its error bar ---- */

/* Adds the error bars of a node's times by side. */
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

/* Error bar of the difference of two placements. Errors on one side go together, since its times
 * come from few curves: what runs there in both does not count. Sides err independently. */
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

/* ---- what comes out ---- */

/* Back from the span that ended last, from cause to cause. */
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
                        fmax(TND_SCHEDULE_GAIN * error_us, TND_SCHEDULE_LEAST * f->single.us);
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

/* Room for `n` members at the end of *io_bytes; false when that does not fit into a size. */
static bool place(int64_t n, size_t bytes, size_t *io_bytes, size_t *out_at)
{
    size_t all;
    return tnd_align_up(*io_bytes, sizeof(double), out_at) &&
           tnd_mul_size((size_t)n, bytes, &all) && tnd_add_size(*out_at, all, io_bytes);
}

/* All arrays in one block. */
static enum tandem_status reserve(struct finding *f, struct tnd_schedule *out,
                                  struct tandem_error *error)
{
    const struct tnd_schedule_problem *problem = f->problem;
    int64_t n = problem->n_nodes;
    int64_t n_cells = n * problem->n_sides;
    int64_t n_jobs = tnd_schedule_most_jobs(problem);
    size_t bytes = 0;
    size_t spans, jobs, at, shares, parts, keys, floats, orders, sides;
    if (!place(n_jobs, sizeof(f->run.spans[0]), &bytes, &spans) ||
        !place(n_jobs, sizeof(f->run.jobs[0]), &bytes, &jobs) ||
        !place(n_cells, sizeof(int32_t), &bytes, &at) ||
        !place(problem->n_splits, sizeof(f->shares[0]), &bytes, &shares) ||
        !place(problem->split_of != NULL ? n_cells : 0, sizeof(out->parts[0]), &bytes, &parts) ||
        !place(n, sizeof(uint64_t), &bytes, &keys) ||
        !place(2 * n + n_cells, sizeof(float), &bytes, &floats) ||
        !place(8 * n, sizeof(int32_t), &bytes, &orders) || !place(8 * n, 1, &bytes, &sides)) {
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
    f->shares = (struct tnd_shares *)(void *)(base + shares);
    out->parts = (struct tnd_schedule_part *)(void *)(base + parts);
    f->keys = (uint64_t *)(void *)(base + keys);
    f->listing.begin_us = (float *)(void *)(base + floats);
    f->listing.end_us = f->listing.begin_us + n;
    f->listing.arrival_us = f->listing.end_us + n;
    f->graph_order = (int32_t *)(void *)(base + orders);
    f->listing.by_rank = f->graph_order + n;
    f->order = f->graph_order + 2 * n;
    f->single.order = f->graph_order + 3 * n;
    f->best.order = f->graph_order + 4 * n;
    f->base.order = f->graph_order + 5 * n;
    f->kept.order = f->graph_order + 6 * n;
    f->unsplit.order = f->graph_order + 7 * n;
    f->side = (uint8_t *)(void *)(base + sides);
    f->single.side = f->side + n;
    f->best.side = f->side + 2 * n;
    f->base.side = f->side + 3 * n;
    f->kept.side = f->side + 4 * n;
    f->unsplit.side = f->side + 5 * n;
    f->is_out = f->side + 6 * n; /* and room for as many sides behind it */
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
    f.run.problem = f.listing.problem = problem;
    f.run.shares = f.listing.shares = f.shares;
    f.listing.side = f.side;
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
