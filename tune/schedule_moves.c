/* SPDX-License-Identifier: MIT
 * A placement is improved by moves: one node to another side and another place in the order, drawn
 * by chance but the same each time; what is not slower stays. A move is given up as soon as what it
 * has handed out cannot be in time, and what is handed out before it is not priced again. Where
 * moves gain nothing more, they begin anew with sides drawn by chance. Ends near the bound, when
 * nothing better was found for long, or when more would cost more than it can save. */
#include <math.h>
#include <string.h>

#include "tune/policy.h"
#include "tune/schedule_internal.h"

enum { HOST = 0, NONE = -1 };

/* As of the moment before a place in the order. */
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
        if (m->set_at[cell] == NONE && m->moment->there[cell] >= 0) {
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
        bool was_there = m->set_at[i] != NONE && m->set_at[i] < place;
        m->moment->there[i] = was_there ? m->there[i] : -1;
    }
}

/* Prices the placement that moves are made from, and keeps what was known at each place. Before
 * place `first` nothing has changed since the last time. */
static void mark_from(struct tnd_improving *m, int first)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    if (first == 0) {
        tnd_schedule_begin(m->moment);
    } else {
        go_back_to(m, first);
    }
    for (int i = 0; i < problem->n_nodes * problem->n_sides; i++) {
        m->set_at[i] = first > 0 && m->set_at[i] < first ? m->set_at[i] : NONE;
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

/* Where a node's operands are fetched changes with its memory: the place of the first of them. */
static int first_changed(const struct tnd_improving *m, int32_t node, int place)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    int first = place;
    int n_left = 0;
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        n_left += m->side[problem->edges[e].from] != HOST;
    }
    for (int at = place - 1; at >= 0 && n_left > 0; at--) {
        if (m->side[m->order[at]] != HOST && waits_for(problem, node, m->order[at])) {
            first = at;
            n_left--;
        }
    }
    return first;
}

/* INFINITY when it is slower than the placement is now. */
static double price_from(struct tnd_improving *m, int place)
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
        const float *us = &b->us[node * b->n_options];
        const float *tail_us = &b->tail_us[node * b->n_options];
        if (end_us + (double)(tail_us[option] - us[option]) >
            m->base_us * (1 + TND_SCHEDULE_SLACK)) {
            return INFINITY;
        }
    }
    double us = tnd_schedule_end(m->moment);
    if (problem->slowdown != NULL && us <= m->base_us * (1 + TND_SCHEDULE_SLACK)) {
        m->run->side = m->side;
        m->run->order = m->order;
        us = tnd_schedule_run(m->run);
        m->n_steps += problem->n_nodes;
    }
    return us;
}

static uint32_t draw(struct tnd_improving *m, int below)
{
    m->chance = m->chance * UINT64_C(6364136223846793005) + 1442695040888963407; /* Knuth, MMIX */
    return (uint32_t)((m->chance >> 32) * (uint64_t)below >> 32);
}

/* A place to which a node may move: behind all that it waits for, before all that wait for it. */
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
    }
    m->order[to] = node;
}

/* Whether it is faster now than since moves began. */
static bool try_move(struct tnd_improving *m)
{
    const struct tnd_bounds *b = m->bounds;
    int at = (int)draw(m, b->problem->n_nodes);
    int32_t node = m->order[at];
    int to = draw_place(m, at);
    int option = draw_option(m, node);
    uint8_t before = m->side[node];
    uint8_t side = option == b->problem->n_sides ? TND_SCHEDULE_SPLIT : (uint8_t)option;
    m->n_steps++;
    if (to == at && side == before) {
        return false;
    }
    move(m, at, to);
    m->side[node] = side;
    int first = at < to ? at : to;
    first = side != before ? first_changed(m, node, first) : first;
    double us = price_from(m, first);
    if (us > m->base_us * (1 + TND_SCHEDULE_SLACK)) {
        move(m, to, at);
        m->side[node] = before;
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

/* Each node on a side drawn by chance, in the order of the graph. */
static void begin_anew(struct tnd_improving *m)
{
    const struct tnd_schedule_problem *problem = m->bounds->problem;
    for (int i = 0; i < problem->n_nodes; i++) {
        int option = draw_option(m, i);
        m->side[i] = option == problem->n_sides ? TND_SCHEDULE_SPLIT : (uint8_t)option;
        m->order[i] = i;
    }
    mark_from(m, 0);
    m->n_steps += problem->n_nodes;
    m->base_us = INFINITY;
    m->base_us = price_from(m, 0);
}

void tnd_schedule_move(struct tnd_improving *m)
{
    const int64_t n_nodes = m->bounds->problem->n_nodes;
    int64_t gained_at = 0; /* since moves began, or began anew */
    int64_t found_at = 0;
    uint8_t *side = m->moment->side;
    m->moment->side = m->side;
    m->base_us = m->us;
    mark_from(m, 0);
    while (m->bounds->least_us < m->us * (1 - TND_SCHEDULE_NEAR) && m->n_steps < m->most_steps &&
           m->n_steps - found_at < TND_SCHEDULE_IDLE_STEPS) {
        double before_us = m->us;
        gained_at = try_move(m) ? m->n_steps : gained_at;
        found_at = m->us < before_us * (1 - 1e-9) ? m->n_steps : found_at;
        if (m->n_steps - gained_at > TND_SCHEDULE_VALLEY_STEPS * n_nodes * n_nodes) {
            begin_anew(m);
            gained_at = m->n_steps;
        }
    }
    m->moment->side = side;
}
