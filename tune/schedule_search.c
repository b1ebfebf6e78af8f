/* SPDX-License-Identifier: MIT
 * Branch and bound over the sides and the order of small graphs: what is handed out next, and
 * where, depth first, what promises most first. A branch ends where its bound is not clearly below
 * the best placement so far, and where the same nodes have led to a state before that was no later
 * in anything. Whether a result is fetched is decided with its node, before its readers are placed.
 * Prices are those of schedule_quick.c. */
#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "tune/policy.h"
#include "tune/schedule_internal.h"

enum {
    NONE = -1,
    HOST = 0,
    MOST = TND_SCHEDULE_SMALL,
    BRANCHES = 2 * MOST * (TND_SCHEDULE_SIDES + 1),
    STATE = 2 * MOST * TND_SCHEDULE_SIDES + TND_SCHEDULE_LANES,
    SLOTS = 8,
    SETS = TND_SCHEDULE_SEEN / SLOTS
};

struct search {
    struct tnd_search *out;
    const struct tnd_bounds *bounds;
    const struct tnd_schedule_problem *problem;
    uint32_t before[MOST];  /* bits of the nodes that a node waits for */
    uint32_t readers[MOST]; /* of those that read its result */
    uint32_t ordered[MOST]; /* and of those that only share memory with it */
    int32_t order[MOST];
    uint8_t next_slot[SETS];
};

/* The begin of a placement. */
struct prefix {
    struct tnd_moment moment;
    double there[MOST * TND_SCHEDULE_SIDES];
    uint8_t side[MOST];
    uint32_t done;
    int n;
    double work_us; /* of the others, weighed */
};

struct branch {
    double bound_us;
    uint8_t node, option;
    bool fetches; /* its result may be read elsewhere */
};

static void copy(const struct search *s, struct prefix *to, const struct prefix *from)
{
    size_t n = (size_t)s->problem->n_nodes;
    to->moment = from->moment;
    to->moment.there = to->there;
    to->moment.side = to->side;
    memcpy(to->there, from->there, n * (size_t)s->problem->n_sides * sizeof(to->there[0]));
    memcpy(to->side, from->side, n);
    to->done = from->done;
    to->n = from->n;
    to->work_us = from->work_us;
}

static bool is_done(const struct prefix *prefix, int node)
{
    return (prefix->done >> node & 1) != 0;
}

static void step(struct search *s, struct prefix *prefix, const struct branch *branch)
{
    bool is_split = branch->option == s->problem->n_sides;
    prefix->moment.fetches = branch->fetches;
    tnd_schedule_step(&prefix->moment, branch->node,
                      is_split ? TND_SCHEDULE_SPLIT : branch->option);
    prefix->done |= UINT32_C(1) << branch->node;
    prefix->n++;
    prefix->work_us -= (double)s->bounds->work_us[branch->node];
    s->out->n_left--;
}

/* ---- bounds ---- */

/* When a result that was handed out can be in a memory: what was not fetched goes nowhere, and
 * uploads wait for the host and for those before them. */
static double brought_at(const struct search *s, const struct prefix *prefix, int node, int memory)
{
    const struct tnd_moment *m = &prefix->moment;
    const double *there = &prefix->there[node * s->problem->n_sides];
    if (there[memory] >= 0) {
        return there[memory];
    }
    if (there[HOST] < 0) {
        return INFINITY;
    }
    int queue = tnd_schedule_queue(s->problem, memory, TND_SCHEDULE_UPLOAD);
    return tnd_later(tnd_later(m->now_us, m->lanes[queue]), there[HOST]) +
           (double)tnd_schedule_bring_us(s->bounds, node, HOST, memory);
}

/* When a result can be in a memory; `ends`: of nodes that were not handed out, by option. */
static double there_at(const struct search *s, const struct prefix *prefix, const double *ends,
                       int node, int memory)
{
    const struct tnd_bounds *b = s->bounds;
    double first = INFINITY;
    if (is_done(prefix, node)) {
        return brought_at(s, prefix, node, memory);
    }
    for (int a = 0; a < b->n_options; a++) {
        first = tnd_sooner(first, ends[node * b->n_options + a] +
                                      (double)tnd_schedule_bring_us(
                                          b, node, tnd_schedule_option_memory(b, a), memory));
    }
    return first;
}

static double ready_at(const struct search *s, const struct prefix *prefix, const double *ends,
                       int node, int option)
{
    const struct tnd_schedule_problem *problem = s->problem;
    const struct tnd_moment *m = &prefix->moment;
    int memory = tnd_schedule_option_memory(s->bounds, option);
    bool is_device = option > HOST && option < problem->n_sides;
    double ready_us = is_device ? tnd_later(m->now_us, m->lanes[option]) : m->now_us;
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        const struct tnd_schedule_edge *edge = &problem->edges[e];
        if (!edge->is_ordered) {
            ready_us = tnd_later(ready_us, there_at(s, prefix, ends, edge->from, memory));
        }
    }
    return ready_us;
}

/* The earliest end of all, by the work and by the paths that are left. By work: a side begins what
 * is left when it is free and the host has come that far, so the end T is no earlier than each
 * side's begin plus its load, nor than any mean of these; the cheapest side of each node counts. By
 * paths: a node begins when its side is free and its operands can be there, alone in flight if
 * they are not there yet, and what is behind it takes its tail at least. */
static double bound(const struct search *s, const struct prefix *prefix)
{
    const struct tnd_bounds *b = s->bounds;
    const struct tnd_moment *m = &prefix->moment;
    double ends[MOST * (TND_SCHEDULE_SIDES + 1)];
    double sum = m->now_us; /* of the sides so far */
    for (int side = 1; side < s->problem->n_sides; side++) {
        sum += tnd_later(m->now_us, m->lanes[side]);
    }
    double mean = prefix->work_us + sum / s->problem->n_sides;
    double least = tnd_later(tnd_schedule_end(m), mean);
    for (int i = 0; i < s->problem->n_nodes; i++) {
        double first = INFINITY;
        for (int a = 0; a < b->n_options && !is_done(prefix, i); a++) {
            int at = i * b->n_options + a;
            double ready_us = ready_at(s, prefix, ends, i, a);
            ends[at] = ready_us + (double)b->us[at];
            first = tnd_sooner(first, ready_us + (double)b->tail_us[at]);
        }
        least = is_done(prefix, i) ? least : tnd_later(least, first);
    }
    return least;
}

static bool promises(const struct search *s, double bound_us)
{
    return bound_us < s->out->us * (1 - s->out->near);
}

/* ---- states ---- */

/* When all is free or there that the nodes which are left can meet. Who reads a result waits for
 * ever for what is not there, who is only ordered behind it does not wait at all. */
static int read_state(const struct search *s, const struct prefix *prefix, float *out)
{
    const struct tnd_schedule_problem *problem = s->problem;
    const struct tnd_moment *m = &prefix->moment;
    int n = 0;
    out[n++] = (float)m->now_us;
    for (int lane = 1; lane < tnd_schedule_lanes(problem->n_sides); lane++) {
        out[n++] = (float)tnd_later(m->now_us, m->lanes[lane]);
    }
    for (int i = 0; i < problem->n_nodes; i++) {
        const double *there = &prefix->there[i * problem->n_sides];
        bool is_read = is_done(prefix, i) && (s->readers[i] & ~prefix->done) != 0;
        bool is_ordered = is_done(prefix, i) && (s->ordered[i] & ~prefix->done) != 0;
        for (int side = 0; side < problem->n_sides && is_read; side++) {
            out[n++] = there[side] >= 0 ? (float)tnd_later(there[side], m->now_us) : INFINITY;
        }
        for (int side = 0; side < problem->n_sides && is_ordered; side++) {
            out[n++] = (float)tnd_later(there[side], m->now_us);
        }
    }
    return n;
}

/* Whether a state was seen from which all that is left can be handed out in the same way and ends
 * no later; else this one is noted. A step takes later ones of the times in a state and adds to
 * them, so from a state that is no later in anything it leads to one that is no later. Only wakes
 * break that: a host that is earlier may sleep where the other one does not. Each work of the host
 * pays one at most, a split node has two; so the state must be ahead by as much, or be the same. */
static bool was_better(struct search *s, const struct prefix *prefix)
{
    float state[STATE];
    const struct tnd_schedule_problem *problem = s->problem;
    int n = read_state(s, prefix, state);
    int n_most = 2 * problem->n_nodes * problem->n_sides + tnd_schedule_lanes(problem->n_sides);
    float lead = (float)(2 * (problem->n_nodes - prefix->n) * problem->wake_us);
    uint32_t what = prefix->done << 1 | prefix->moment.slept;
    int set = (int)((prefix->done * UINT32_C(0x9E3779B1) >> 8) % SETS);
    for (int slot = set * SLOTS; slot < (set + 1) * SLOTS; slot++) {
        const float *seen = &s->out->seen_us[slot * n_most];
        bool is_better = s->out->seen[slot] >> 1 == prefix->done;
        bool is_same = s->out->seen[slot] == what;
        for (int i = 0; i < n && (is_better || is_same); i++) {
            is_better = is_better && seen[i] + lead <= state[i];
            is_same = is_same && seen[i] <= state[i] && seen[i] >= state[i];
        }
        if (is_better || is_same) {
            return true;
        }
    }
    int slot = set * SLOTS + s->next_slot[set];
    s->next_slot[set] = (uint8_t)((s->next_slot[set] + 1) % SLOTS);
    s->out->seen[slot] = what;
    memcpy(&s->out->seen_us[slot * n_most], state, (size_t)n * sizeof(state[0]));
    return false;
}

/* ---- the search ---- */

static void finish(struct search *s, const struct prefix *prefix)
{
    struct tnd_search *out = s->out;
    double us = tnd_schedule_end(&prefix->moment);
    if (s->problem->slowdown != NULL && us < out->us) {
        out->run->side = prefix->side;
        out->run->order = s->order;
        us = tnd_schedule_run(out->run);
    }
    if (us < out->us) {
        out->us = us;
        memcpy(out->side, prefix->side, (size_t)s->problem->n_nodes);
        memcpy(out->order, s->order, (size_t)s->problem->n_nodes * sizeof(s->order[0]));
    }
}

/* Keeps a branch that promises something; the most promising ones come first. */
static int add_branch(struct search *s, const struct prefix *prefix, struct branch branch, int n,
                      struct branch *branches)
{
    struct prefix next;
    copy(s, &next, prefix);
    step(s, &next, &branch);
    if (!(next.moment.now_us < INFINITY)) {
        return n; /* it needs a result that was not fetched */
    }
    branch.bound_us = bound(s, &next);
    if (!promises(s, branch.bound_us)) {
        return n;
    }
    int at = n;
    for (; at > 0 && branches[at - 1].bound_us > branch.bound_us; at--) {
        branches[at] = branches[at - 1];
    }
    branches[at] = branch;
    return n + 1;
}

static bool can_be_next(const struct search *s, const struct prefix *prefix, int node)
{
    return !is_done(prefix, node) && (s->before[node] & ~prefix->done) == 0;
}

/* A node that only the host can have and that costs nothing, since its operands are there: to hand
 * it out at once delays nothing, so nothing else need be tried. NONE: there is none. */
static int free_node(const struct search *s, const struct prefix *prefix)
{
    const struct tnd_bounds *b = s->bounds;
    for (int i = 0; i < s->problem->n_nodes; i++) {
        bool is_free = can_be_next(s, prefix, i) && !(b->us[i * b->n_options] > 0);
        for (int a = 1; a < b->n_options && is_free; a++) {
            is_free = !(b->us[i * b->n_options + a] < INFINITY);
        }
        if (is_free && !(ready_at(s, prefix, NULL, i, HOST) > prefix->moment.now_us)) {
            return i;
        }
    }
    return NONE;
}

static int list_branches(struct search *s, const struct prefix *prefix, struct branch *out)
{
    const struct tnd_bounds *b = s->bounds;
    int only = free_node(s, prefix);
    int n = 0;
    for (int i = 0; i < s->problem->n_nodes; i++) {
        bool can = only == NONE ? can_be_next(s, prefix, i) : i == only;
        for (int a = 0; a < b->n_options && can; a++) {
            int both = tnd_schedule_option_memory(b, a) != HOST && s->readers[i] != 0;
            for (int f = 0; f <= both && b->us[i * b->n_options + a] < INFINITY; f++) {
                struct branch branch = {0, (uint8_t)i, (uint8_t)a, f > 0};
                n = add_branch(s, prefix, branch, n, out);
            }
        }
    }
    return n;
}

static void search_from(struct search *s, const struct prefix *prefix)
{
    struct branch branches[BRANCHES];
    if (prefix->n == s->problem->n_nodes) {
        finish(s, prefix);
        return;
    }
    if (prefix->n > 0 && was_better(s, prefix)) {
        return;
    }
    int n = list_branches(s, prefix, branches);
    for (int i = 0; i < n && s->out->n_left > 0 && promises(s, branches[i].bound_us); i++) {
        struct prefix next;
        copy(s, &next, prefix);
        s->order[prefix->n] = branches[i].node;
        step(s, &next, &branches[i]);
        search_from(s, &next);
    }
}

void tnd_schedule_search(struct tnd_search *out)
{
    const struct tnd_schedule_problem *problem = out->bounds->problem;
    struct search s = {.out = out, .bounds = out->bounds, .problem = problem};
    struct prefix begin = {.n = 0};
    TND_ASSERT(problem->n_nodes <= MOST);
    for (int i = 0; i < problem->n_nodes; i++) {
        begin.work_us += (double)out->bounds->work_us[i];
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            const struct tnd_schedule_edge *edge = &problem->edges[e];
            uint32_t *behind = edge->is_ordered ? s.ordered : s.readers;
            s.before[i] |= UINT32_C(1) << edge->from;
            behind[edge->from] |= UINT32_C(1) << i;
        }
    }
    begin.moment = (struct tnd_moment){.problem = problem,
                                       .shares = out->bounds->shares,
                                       .there = begin.there,
                                       .side = begin.side};
    tnd_schedule_begin(&begin.moment);
    memset(out->seen, 0, TND_SCHEDULE_SEEN * sizeof(out->seen[0]));
    search_from(&s, &begin);
}
