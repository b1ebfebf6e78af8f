/* SPDX-License-Identifier: MIT
 * Improves a placement by local search. A move puts a node on another side and at another position
 * in the order, or puts it on another side together with nodes that it reads. Moves are drawn at
 * random, with the same sequence each time, and kept if they are not slower. Pricing a move resumes
 * at the first changed position and stops as soon as a node handed out cannot meet the limit. When
 * moves gain nothing more, the search restarts from the best placement with some sides drawn at
 * random. It ends near the bound, after long without a gain, or when further steps would cost more
 * than they can save. */
#include <math.h>
#include <string.h>

#include "tune/policy.h"
#include "tune/schedule_internal.h"

enum { HOST = 0, NONE = -1, NEVER = INT32_MAX, MOST_GROUP = TND_SCHEDULE_REACH };

/* State of the moment before a position in the order. */
struct mark {
    double now_us;
    bool slept;
    double lanes[];
};

static struct mark *mark_of(const struct tnd_improving *m, int place)
{
    size_t lanes = (size_t)tnd_schedule_lanes(m->bounds->problem->n_sides);
    return (struct mark *)(void *)(m->marks + (size_t)place * (lanes + 2));
}

static void set_mark(struct tnd_improving *m, int place)
{
    struct mark *mark = mark_of(m, place);
    mark->now_us = m->moment->now_us;
    mark->slept = m->moment->slept;
    for (int lane = 0; lane < tnd_schedule_lanes(m->bounds->problem->n_sides); lane++) {
        mark->lanes[lane] = m->moment->lanes[lane];
    }
}

static void note_cells(struct tnd_improving *m, int node, int place)
{
    int n_sides = m->bounds->problem->n_sides;
    for (int side = 0; side < n_sides; side++) {
        int cell = node * n_sides + side;
        if (m->set_at[cell] == NEVER && m->moment->there[cell] >= 0) {
            m->set_at[cell] = place;
            m->there[cell] = m->moment->there[cell];
        }
    }
}

static void go_back_to(struct tnd_improving *m, int place)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    const struct mark *mark = mark_of(m, place);
    m->moment->now_us = mark->now_us;
    m->moment->slept = mark->slept;
    for (int lane = 0; lane < tnd_schedule_lanes(problem->n_sides); lane++) {
        m->moment->lanes[lane] = mark->lanes[lane];
    }
    for (int i = 0; i < problem->n_nodes * problem->n_sides; i++) {
        m->moment->there[i] = m->set_at[i] < place ? m->there[i] : -1;
    }
}

/* Prices the present placement, and keeps the state at each position. Nothing before position
 * `first` has changed since the last call. */
static void mark_from(struct tnd_improving *m, int first)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    if (first == 0) {
        tnd_schedule_begin(m->moment);
    } else {
        go_back_to(m, first);
    }
    for (int i = 0; i < problem->n_nodes * problem->n_sides; i++) {
        m->set_at[i] = first > 0 && m->set_at[i] < first ? m->set_at[i] : NEVER;
    }
    for (int place = first; place < problem->n_nodes; place++) {
        int32_t node = m->order[place];
        set_mark(m, place);
        tnd_schedule_step(m->moment, node, m->side[node]);
        note_cells(m, node, place);
        for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
            note_cells(m, problem->edges[e].from, place);
        }
    }
}

static bool waits_for(const struct tnd_schedule_problem *problem, int32_t node, int32_t from)
{
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        if (problem->edges[e].from == from) {
            return true;
        }
    }
    return false;
}

/* First position that changes with a node's side: its own, or that of the first operand on a
 * device, whose download depends on the node's memory. */
static int first_changed(const struct tnd_improving *m, int32_t node)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    int first = m->place[node];
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        int32_t from = problem->edges[e].from;
        first = m->side[from] != HOST && m->place[from] < first ? m->place[from] : first;
    }
    return first;
}

/* Time of everything handed out; with slow-downs only if it may be within the limit. */
static double end_within(struct tnd_improving *m, double limit_us)
{
    double us = tnd_schedule_end(m->moment);
    if (m->bounds->problem->slowdown != NULL && us <= limit_us) {
        m->run->side = m->side;
        m->run->order = m->order;
        us = tnd_schedule_run(m->run);
        m->n_steps += TND_SCHEDULE_RUN_STEPS * m->bounds->problem->n_nodes;
    }
    return us;
}

/* INFINITY if the time is above the limit. */
static double price_from(struct tnd_improving *m, int place, double limit_us)
{
    const struct tnd_bounds *b = m->bounds;
    const struct tnd_schedule_problem *problem = b->problem;
    go_back_to(m, place);
    for (; place < problem->n_nodes; place++) {
        int32_t node = m->order[place];
        int side = m->side[node];
        int option = side == TND_SCHEDULE_SPLIT ? problem->n_sides : side;
        tnd_schedule_step(m->moment, node, side);
        m->n_steps++;
        double end_us =
            m->moment->there[node * problem->n_sides + tnd_schedule_option_memory(b, option)];
        int cell = node * b->n_options + option;
        if (end_us + (double)(b->tail_us[cell] - b->us[cell]) > limit_us) {
            return INFINITY;
        }
    }
    return end_within(m, limit_us);
}

static uint32_t draw(struct tnd_improving *m, int below)
{
    m->chance = m->chance * UINT64_C(6364136223846793005) + 1442695040888963407; /* Knuth, MMIX */
    return (uint32_t)((m->chance >> 32) * (uint64_t)below >> 32);
}

/* Draws a position for a node: after all nodes that it waits for, before all that wait for it. */
static int draw_place(struct tnd_improving *m, int at)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    int32_t node = m->order[at];
    int first = at;
    int last = at;
    while (first > 0 && at - first < TND_SCHEDULE_REACH &&
           !waits_for(problem, node, m->order[first - 1])) {
        first--;
    }
    while (last + 1 < problem->n_nodes && last - at < TND_SCHEDULE_REACH &&
           !waits_for(problem, m->order[last + 1], node)) {
        last++;
    }
    return first + (int)draw(m, last - first + 1);
}

static int draw_option(struct tnd_improving *m, int32_t node)
{
    const float *us = &m->bounds->us[node * m->bounds->n_options];
    int n = 0;
    int drawn = HOST;
    for (int a = 0; a < m->bounds->n_options; a++) {
        if (us[a] < INFINITY && draw(m, ++n) == 0) {
            drawn = a;
        }
    }
    return drawn;
}

static void move(struct tnd_improving *m, int from, int to)
{
    int32_t node = m->order[from];
    for (int i = from; i != to; i += to > from ? 1 : -1) {
        m->order[i] = m->order[i + (to > from ? 1 : -1)];
        m->place[m->order[i]] = i;
    }
    m->order[to] = node;
    m->place[node] = to;
}

static bool is_in(const int32_t *nodes, int n, int32_t node)
{
    int i = 0;
    while (i < n && nodes[i] != node) {
        i++;
    }
    return i < n;
}

/* Draws a group: a node, some nodes that it reads, some that those read, and so on. */
static int draw_group(struct tnd_improving *m, int32_t node, int32_t *out)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    int most = 2 + (int)draw(m, MOST_GROUP - 1);
    int n = 1;
    out[0] = node;
    for (int i = 0; i < n; i++) {
        int32_t end = problem->first_edge[out[i] + 1];
        for (int32_t e = problem->first_edge[out[i]]; e < end && n < most; e++) {
            if (!problem->edges[e].is_ordered && !is_in(out, n, problem->edges[e].from)) {
                out[n++] = problem->edges[e].from;
            }
        }
    }
    return n;
}

static uint8_t side_of(const struct tnd_improving *m, int option)
{
    return option == m->bounds->problem->n_sides ? TND_SCHEDULE_SPLIT : (uint8_t)option;
}

/* Puts nodes on the side of an option, if they can run there. Returns the first position that this
 * changes, or `first` if that comes earlier. */
static int put(struct tnd_improving *m, const int32_t *nodes, int n, int option, int first)
{
    const struct tnd_bounds *b = m->bounds;
    uint8_t side = side_of(m, option);
    for (int i = 0; i < n; i++) {
        if (m->side[nodes[i]] != side && b->us[nodes[i] * b->n_options + option] < INFINITY) {
            int changed = first_changed(m, nodes[i]);
            first = changed < first ? changed : first;
            m->side[nodes[i]] = side;
        }
    }
    return first;
}

/* Tries one move. Returns whether the placement is faster than any since the last (re)start. */
static bool try_move(struct tnd_improving *m)
{
    const struct tnd_bounds *b = m->bounds;
    int32_t nodes[MOST_GROUP];
    uint8_t before[MOST_GROUP];
    int at = (int)draw(m, b->problem->n_nodes);
    int option = draw_option(m, m->order[at]);
    bool is_alone = draw(m, 2) == 0;
    int to = is_alone ? draw_place(m, at) : at;
    int n = is_alone ? 1 : draw_group(m, m->order[at], nodes);
    nodes[0] = m->order[at];
    for (int i = 0; i < n; i++) {
        before[i] = m->side[nodes[i]];
    }
    m->n_steps++;
    move(m, at, to);
    int first = put(m, nodes, n, option, to == at ? b->problem->n_nodes : at < to ? at : to);
    if (first == b->problem->n_nodes) {
        return false;
    }
    double limit_us = m->base_us * (1 + TND_SCHEDULE_SLACK);
    double us = price_from(m, first, limit_us);
    if (us > limit_us) {
        move(m, to, at);
        for (int i = 0; i < n; i++) {
            m->side[nodes[i]] = before[i];
        }
        return false;
    }
    bool is_faster = us < m->base_us * (1 - 1e-9);
    m->base_us = tnd_sooner(us, m->base_us);
    if (us <= m->us) {
        m->us = us;
        memcpy(m->best_side, m->side, (size_t)b->problem->n_nodes);
        memcpy(m->best_order, m->order, (size_t)b->problem->n_nodes * sizeof(m->order[0]));
    }
    mark_from(m, first);
    m->n_steps += b->problem->n_nodes - first;
    return is_faster;
}

/* Restarts from the best placement with a range of adjacent nodes placed at random, or with all
 * nodes in the graph's order: each on a random side, or all on the same one. Their order is drawn
 * too, since a side may pay off only if other work comes before or after it. */
static void begin_anew(struct tnd_improving *m)
{
    int n_nodes = m->bounds->problem->n_nodes;
    int n = 1 + (int)draw(m, 2 * n_nodes);
    int first = n < n_nodes ? (int)draw(m, n_nodes - n + 1) : 0;
    int one = draw(m, 2) == 0 ? (int)draw(m, m->bounds->problem->n_sides) : NONE;
    memcpy(m->side, m->best_side, (size_t)n_nodes);
    for (int i = 0; i < n_nodes; i++) {
        m->order[i] = n < n_nodes ? m->best_order[i] : i;
        m->place[m->order[i]] = i;
    }
    for (int i = first; i < n_nodes && i < first + n; i++) {
        int option = one == NONE ? draw_option(m, m->order[i]) : one;
        (void)put(m, &m->order[i], 1, option, 0);
    }
    for (int i = first; i < n_nodes && i < first + n; i++) {
        move(m, i, draw_place(m, i));
    }
    mark_from(m, 0);
    m->n_steps += n_nodes;
    m->base_us = end_within(m, INFINITY);
}

void tnd_schedule_move(struct tnd_improving *m)
{
    const int64_t n_nodes = m->bounds->problem->n_nodes;
    int64_t gained_at = 0; /* step of the last gain since the last (re)start */
    int64_t found_at = 0;
    int64_t most_idle = m->has_gained ? TND_SCHEDULE_IDLE_STEPS : TND_SCHEDULE_HOPE_STEPS;
    uint8_t *side = m->moment->side;
    m->moment->side = m->side;
    m->base_us = m->us;
    for (int i = 0; i < n_nodes; i++) {
        m->place[m->order[i]] = i;
    }
    mark_from(m, 0);
    while (m->bounds->least_us < m->us * (1 - TND_SCHEDULE_NEAR) && m->n_steps < m->most_steps &&
           m->n_steps - found_at < most_idle) {
        double before_us = m->us;
        gained_at = try_move(m) ? m->n_steps : gained_at;
        if (m->us < before_us * (1 - 1e-9)) {
            found_at = m->n_steps;
            most_idle = TND_SCHEDULE_IDLE_STEPS;
        }
        if (m->n_steps - gained_at > TND_SCHEDULE_VALLEY_STEPS * n_nodes * n_nodes) {
            begin_anew(m);
            gained_at = m->n_steps;
            most_idle = TND_SCHEDULE_IDLE_STEPS;
        }
    }
    m->moment->side = side;
}
