/* SPDX-License-Identifier: MIT
 * Lower bounds of all placements. By paths: the least time of a node and everything after it, moves
 * of results included. By work: the sides end no sooner than their mean, with each node's least
 * time. Slow-downs are not counted. */
#include <math.h>
#include <stddef.h>

#include "tune/policy.h"
#include "tune/schedule_internal.h"

static const struct tnd_shares *shares_of(const struct tnd_bounds *b, int node)
{
    const struct tnd_schedule_problem *problem = b->problem;
    if (!b->may_split || problem->split_of == NULL || problem->split_of[node] < 0) {
        return NULL;
    }
    const struct tnd_shares *shares = &b->shares[problem->split_of[node]];
    return shares->is_useful ? shares : NULL;
}

static void price(struct tnd_bounds *b, int node)
{
    const struct tnd_schedule_problem *problem = b->problem;
    const struct tnd_shares *shares = shares_of(b, node);
    float *us = &b->us[node * b->n_options];
    float *fetch_us = &b->fetch_us[node * problem->n_sides];
    float *bring_us = &b->bring_us[node * problem->n_sides];
    for (int side = 0; side < problem->n_sides; side++) {
        const struct tnd_schedule_side *one = &problem->sides[side];
        double bytes = one->own_memory ? problem->bytes[node] : 0;
        float time = tnd_schedule_time(problem, node, side)->us;
        us[side] = time >= 0 ? time : INFINITY;
        fetch_us[side] = (float)tnd_schedule_link_us(&one->download, bytes);
        bring_us[side] = (float)tnd_schedule_link_us(&one->upload, bytes);
    }
    us[problem->n_sides] = shares != NULL ? 0 : INFINITY;
    for (int side = 0; side < problem->n_sides && shares != NULL; side++) {
        us[problem->n_sides] =
            (float)tnd_later((double)us[problem->n_sides], (double)shares->part_us[side]);
    }
}

/* Raises the tail of node `from`, which node `to` reads. */
static void extend(struct tnd_bounds *b, int from, int to)
{
    for (int a = 0; a < b->n_options; a++) {
        float least = INFINITY;
        int memory = tnd_schedule_option_memory(b, a);
        for (int c = 0; c < b->n_options; c++) {
            float us = tnd_schedule_bring_us(b, from, memory, tnd_schedule_option_memory(b, c)) +
                       b->tail_us[to * b->n_options + c];
            least = us < least ? us : least;
        }
        float *tail = &b->tail_us[from * b->n_options + a];
        *tail = *tail > least ? *tail : least;
    }
}

/* The least that a node adds to the mean time of the sides. */
static double work(const struct tnd_bounds *b, int node)
{
    const struct tnd_shares *shares = shares_of(b, node);
    double least = INFINITY;
    double parts = shares != NULL ? 0 : INFINITY;
    for (int side = 0; side < b->problem->n_sides; side++) {
        least = tnd_sooner(least, (double)b->us[node * b->n_options + side]);
        parts += shares != NULL ? (double)shares->part_us[side] : 0;
    }
    return tnd_sooner(least, parts) / b->problem->n_sides;
}

static double add_work(const struct tnd_bounds *b)
{
    double sum = 0;
    for (int i = 0; i < b->problem->n_nodes; i++) {
        sum += work(b, i);
    }
    return sum;
}

void tnd_schedule_bound(struct tnd_bounds *b)
{
    const struct tnd_schedule_problem *problem = b->problem;
    double longest = 0;
    b->n_options = problem->n_sides + 1;
    for (int i = 0; i < problem->n_nodes; i++) {
        price(b, i);
        for (int a = 0; a < b->n_options; a++) {
            b->tail_us[i * b->n_options + a] = 0;
        }
    }
    for (int i = problem->n_nodes - 1; i >= 0; i--) {
        float least = INFINITY;
        for (int a = 0; a < b->n_options; a++) {
            float *tail = &b->tail_us[i * b->n_options + a];
            *tail += b->us[i * b->n_options + a];
            least = *tail < least ? *tail : least;
        }
        longest = tnd_later(longest, (double)least);
        for (int32_t e = problem->first_edge[i]; e < problem->first_edge[i + 1]; e++) {
            if (!problem->edges[e].is_ordered) {
                extend(b, problem->edges[e].from, i);
            }
        }
    }
    b->least_us = tnd_later(longest, add_work(b));
}
