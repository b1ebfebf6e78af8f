/* SPDX-License-Identifier: MIT
 * List scheduling after HEFT: takes nodes by upward rank and puts each on the side where it ends
 * first. Ignores slow-downs between lanes unless `counts_slowdown` is set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "tune/schedule_internal.h"

enum { HOST = 0, GAPS = 8 };

/* ---- rank ---- */

static double mean_us(const struct tnd_schedule_problem *problem, int node)
{
    double sum = 0;
    int n = 0;
    for (int side = 0; side < problem->n_sides; side++) {
        double us = (double)tnd_schedule_time(problem, node, side)->us;
        sum += us >= 0 ? us : 0;
        n += us >= 0;
    }
    return n > 0 ? sum / n : 0;
}

static double mean_move_us(const struct tnd_schedule_problem *problem, int node)
{
    double sum = 0;
    for (int side = 1; side < problem->n_sides; side++) {
        sum += tnd_schedule_link_us(&problem->sides[side].upload, problem->bytes[node]) +
               tnd_schedule_link_us(&problem->sides[side].download, problem->bytes[node]);
    }
    return problem->n_sides > 1 ? sum / (2 * (problem->n_sides - 1)) : 0;
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void tnd_schedule_by_chain(const struct tnd_schedule_problem *problem, int32_t *chain,
                           uint64_t *keys, int32_t *out_order)
{
    int n = problem->n_nodes;
    for (int i = 0; i < n; i++) {
        chain[i] = i;
    }
    for (int i = n - 1; i >= 0;
         i--) { /* readers come later in the graph, so their chains are known */
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            int32_t from = problem->edges[e].from;
            bool is_first = chain[from] == from || chain[i] < chain[from];
            chain[from] = is_first ? chain[i] : chain[from];
        }
        keys[i] = (uint64_t)(uint32_t)chain[i] << 32 | (uint32_t)i;
    }
    qsort(keys, (size_t)n, sizeof(keys[0]), compare_keys);
    for (int i = 0; i < n; i++) {
        out_order[i] = (int32_t)(uint32_t)keys[i];
    }
}

void tnd_schedule_rank(const struct tnd_schedule_problem *problem, float *rank, uint64_t *keys,
                       int32_t *out_by_rank)
{
    memset(rank, 0, (size_t)problem->n_nodes * sizeof(rank[0]));
    for (int i = problem->n_nodes - 1; i >= 0; i--) {
        if (rank[i] > 0) { /* it has readers */
            rank[i] += (float)mean_move_us(problem, i);
        }
        rank[i] += (float)mean_us(problem, i);
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            int32_t from = problem->edges[e].from;
            TND_ASSERT(from >= 0 && from < i);
            rank[from] = rank[from] > rank[i] ? rank[from] : rank[i];
        }
        uint32_t bits; /* of a number >= 0, whose bits sort as it does */
        memcpy(&bits, &rank[i], sizeof(bits));
        keys[i] = (uint64_t)~bits << 32 | (uint32_t)i;
    }
    qsort(keys, (size_t)problem->n_nodes, sizeof(keys[0]), compare_keys);
    for (int i = 0; i < problem->n_nodes; i++) {
        out_by_rank[i] = (int32_t)(uint32_t)keys[i];
    }
}

/* ---- lanes ---- */

struct lanes {
    double free_us[TND_SCHEDULE_LANES]; /* time from which on nothing is planned */
    struct {
        double begin_us, end_us;
    } gaps[TND_SCHEDULE_SIDES][GAPS]; /* idle intervals before free_us; the newest ones */
    int next_gap[TND_SCHEDULE_SIDES];
};

/* Time at which the result of a node is in the memory of `side`; `is_noted`: plans the transfers.
 */
static double bring(const struct tnd_listing *listing, struct lanes *lanes, int32_t from, int side,
                    bool is_noted)
{
    const struct tnd_schedule_problem *problem = listing->problem;
    float *arrival = &listing->arrival_us[from * problem->n_sides];
    int memory = tnd_schedule_memory(problem, side);
    double at = (double)arrival[memory];
    if (at < (double)INFINITY) {
        return at;
    }
    at = (double)arrival[HOST];
    if (!(at < (double)INFINITY)) {
        int there = listing->side[from];
        double *free_us =
            &lanes->free_us[tnd_schedule_queue(problem, there, TND_SCHEDULE_DOWNLOAD)];
        double us = tnd_schedule_link_us(&problem->sides[there].download, problem->bytes[from]);
        at = (double)listing->end_us[from] + us; /* right after the work; later work is delayed */
        *free_us = is_noted ? fmax(*free_us, (double)listing->end_us[from]) + us : *free_us;
        arrival[HOST] = is_noted ? (float)at : arrival[HOST];
    }
    if (memory != HOST) {
        double *free_us = &lanes->free_us[tnd_schedule_queue(problem, side, TND_SCHEDULE_UPLOAD)];
        at = fmax(at, *free_us) +
             tnd_schedule_link_us(&problem->sides[side].upload, problem->bytes[from]);
        *free_us = is_noted ? at : *free_us;
        arrival[memory] = is_noted ? (float)at : arrival[memory];
    }
    return at;
}

/* Time at which the host can continue with the next node. */
static double handed_out_at(const struct tnd_listing *listing, int32_t node)
{
    bool is_there = listing->side[node] != HOST && listing->side[node] != TND_SCHEDULE_SPLIT;
    return (double)(is_there ? listing->begin_us[node] : listing->end_us[node]);
}

static double operands_at(const struct tnd_listing *listing, struct lanes *lanes, int32_t node,
                          int side, bool is_noted)
{
    const struct tnd_schedule_problem *problem = listing->problem;
    double at = 0;
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        const struct tnd_schedule_edge *edge = &problem->edges[e];
        at = fmax(at, edge->is_ordered ? handed_out_at(listing, edge->from)
                                       : bring(listing, lanes, edge->from, side, is_noted));
    }
    return at;
}

/* The earliest begin from `ready_us` on; *out_gap: index of its gap, -1: after everything planned.
 */
static double find_begin(const struct lanes *lanes, int side, double ready_us, double us,
                         int *out_gap)
{
    double begin_us = fmax(ready_us, lanes->free_us[side]);
    *out_gap = -1;
    for (int i = 0; i < GAPS; i++) {
        double in_gap = fmax(ready_us, lanes->gaps[side][i].begin_us);
        if (in_gap + us <= lanes->gaps[side][i].end_us && in_gap < begin_us) {
            begin_us = in_gap;
            *out_gap = i;
        }
    }
    return begin_us;
}

static void add_gap(struct lanes *lanes, int side, double begin_us, double end_us)
{
    if (end_us > begin_us) {
        int *next = &lanes->next_gap[side];
        lanes->gaps[side][*next].begin_us = begin_us;
        lanes->gaps[side][*next].end_us = end_us;
        *next = (*next + 1) % GAPS;
    }
}

static void occupy(struct lanes *lanes, int side, double begin_us, double end_us, int gap)
{
    if (gap >= 0) {
        double rest_us = lanes->gaps[side][gap].end_us;
        lanes->gaps[side][gap].end_us = begin_us;
        add_gap(lanes, side, end_us, rest_us);
        return;
    }
    add_gap(lanes, side, lanes->free_us[side], begin_us);
    lanes->free_us[side] = end_us;
}

/* ---- nodes ---- */

static double time_of(const struct tnd_listing *listing, int node, int side)
{
    const struct tnd_schedule_problem *problem = listing->problem;
    double us = (double)tnd_schedule_time(problem, node, side)->us;
    double worst = 1;
    for (int b = 0; b < problem->n_sides && listing->counts_slowdown; b++) {
        if (b != side) {
            worst = fmax(worst, (double)problem->slowdown[side * problem->n_sides + b]);
        }
    }
    return us * worst;
}

static const struct tnd_shares *shares_of(const struct tnd_listing *listing, int node)
{
    const struct tnd_schedule_problem *problem = listing->problem;
    if (!listing->may_split || problem->split_of == NULL || problem->split_of[node] < 0) {
        return NULL;
    }
    const struct tnd_shares *shares = &listing->shares[problem->split_of[node]];
    return shares->is_useful ? shares : NULL;
}

/* A split node begins on all of its sides at once, when all of them are free. */
static double begin_of_split(const struct tnd_listing *listing, struct lanes *lanes, int node,
                             const struct tnd_shares *shares)
{
    double begin_us = operands_at(listing, lanes, node, HOST, false);
    for (int side = 0; side < listing->problem->n_sides; side++) {
        if (shares->rows[side] > 0) {
            begin_us = fmax(begin_us, lanes->free_us[side]);
        }
    }
    return begin_us;
}

static void place_split(const struct tnd_listing *listing, struct lanes *lanes, int node,
                        const struct tnd_shares *shares)
{
    double begin_us = begin_of_split(listing, lanes, node, shares);
    double end_us = begin_us + shares->us;
    (void)operands_at(listing, lanes, node, HOST, true);
    for (int side = 0; side < listing->problem->n_sides; side++) {
        if (shares->rows[side] > 0) {
            occupy(lanes, side, begin_us, end_us, -1);
        }
    }
    listing->side[node] = TND_SCHEDULE_SPLIT;
    listing->begin_us[node] = (float)begin_us;
    listing->end_us[node] = (float)end_us;
    listing->arrival_us[node * listing->problem->n_sides] = (float)end_us;
}

static void place_on(const struct tnd_listing *listing, struct lanes *lanes, int node, int side)
{
    int gap;
    double us = time_of(listing, node, side);
    double ready_us = operands_at(listing, lanes, node, side, true);
    double begin_us = find_begin(lanes, side, ready_us, us, &gap);
    occupy(lanes, side, begin_us, begin_us + us, gap);
    listing->side[node] = (uint8_t)side;
    listing->begin_us[node] = (float)begin_us;
    listing->end_us[node] = (float)(begin_us + us);
    listing->arrival_us[node * listing->problem->n_sides +
                        tnd_schedule_memory(listing->problem, side)] = (float)(begin_us + us);
}

static int best_side(const struct tnd_listing *listing, struct lanes *lanes, int node)
{
    const struct tnd_schedule_problem *problem = listing->problem;
    const struct tnd_shares *shares = shares_of(listing, node);
    double best_us = INFINITY;
    int best = HOST;
    for (int side = 0; side < problem->n_sides; side++) {
        int gap;
        double us = time_of(listing, node, side);
        if (us < 0) {
            continue;
        }
        double ready_us = operands_at(listing, lanes, node, side, false);
        double end_us = find_begin(lanes, side, ready_us, us, &gap) + us;
        if (end_us < best_us) {
            best_us = end_us;
            best = side;
        }
    }
    if (shares != NULL && begin_of_split(listing, lanes, node, shares) + shares->us < best_us) {
        return TND_SCHEDULE_SPLIT;
    }
    return best;
}

void tnd_schedule_list(struct tnd_listing *listing)
{
    const struct tnd_schedule_problem *problem = listing->problem;
    struct lanes lanes;
    memset(&lanes, 0, sizeof(lanes));
    for (int64_t i = 0; i < (int64_t)problem->n_nodes * problem->n_sides; i++) {
        listing->arrival_us[i] = INFINITY;
    }
    for (int i = 0; i < problem->n_nodes; i++) {
        int node = listing->by_rank[i];
        int side = best_side(listing, &lanes, node);
        if (side == TND_SCHEDULE_SPLIT) {
            place_split(listing, &lanes, node, &listing->shares[problem->split_of[node]]);
        } else {
            place_on(listing, &lanes, node, side);
        }
    }
}
