/* SPDX-License-Identifier: MIT
 * A simpler virtual clock than schedule_run.c, without slow-downs: begin and end of a job are known
 * at hand-out, so a placement is priced node by node, without events. If there are slow-downs, its
 * price is a lower bound. */
#include <string.h>

#include "tune/schedule_internal.h"

enum { HOST = 0 };

static void fetch(struct tnd_moment *m, int32_t from)
{
    const struct tnd_schedule_problem *problem = m->problem;
    double *there = &m->there[from * problem->n_sides];
    if (there[HOST] < 0) {
        int side = m->side[from];
        double *lane = &m->lanes[tnd_schedule_queue(problem, side, TND_SCHEDULE_DOWNLOAD)];
        *lane = tnd_later(tnd_later(*lane, m->now_us), there[side]) +
                tnd_schedule_link_us(&problem->sides[side].download, problem->bytes[from]);
        there[HOST] = *lane;
    }
}

static void wait_until(struct tnd_moment *m, double us)
{
    m->slept = m->slept || us > m->now_us;
    m->now_us = tnd_later(m->now_us, us);
}

/* Moves a node's operands to the memory of `side`; returns when they arrive, as far as that is
 * known. */
static double bring_operands(struct tnd_moment *m, int32_t node, int side)
{
    const struct tnd_schedule_problem *problem = m->problem;
    int memory = tnd_schedule_memory(problem, side);
    double ready_us = 0;
    for (int32_t e = problem->first_edge[node]; e < problem->first_edge[node + 1]; e++) {
        const struct tnd_schedule_edge *edge = &problem->edges[e];
        double *there = &m->there[edge->from * problem->n_sides];
        if (!edge->is_ordered && there[memory] < 0) {
            double here_us = there[HOST];
            ready_us = tnd_later(ready_us, here_us);
            if (memory != HOST) {
                wait_until(m, here_us);
                double *lane = &m->lanes[tnd_schedule_queue(problem, side, TND_SCHEDULE_UPLOAD)];
                *lane =
                    tnd_later(*lane, m->now_us) +
                    tnd_schedule_link_us(&problem->sides[side].upload, problem->bytes[edge->from]);
                there[memory] = *lane;
            }
        }
        ready_us = tnd_later(ready_us, there[memory]);
    }
    if (side == HOST) {
        wait_until(m, ready_us);
    }
    return ready_us;
}

static void work_here(struct tnd_moment *m, double us)
{
    if (m->slept && us > m->problem->wake_us) {
        us += m->problem->wake_us;
        m->slept = false;
    }
    m->now_us += us;
}

static double work_on(struct tnd_moment *m, int side, double ready_us, double us)
{
    m->lanes[side] = tnd_later(tnd_later(m->lanes[side], m->now_us), ready_us) + us;
    return m->lanes[side];
}

/* Packs a side's share of X on the host and uploads it; returns when it arrives. */
static double bring_share(struct tnd_moment *m, int32_t node, int side,
                          const struct tnd_schedule_split *split, int64_t rows)
{
    const struct tnd_schedule_side *one = &m->problem->sides[side];
    double bytes = tnd_schedule_x_bytes(split, rows);
    (void)bring_operands(m, node, HOST);
    work_here(m, (double)rows * split->copy_us_per_row);
    if (!one->own_memory) {
        return m->now_us;
    }
    double *lane = &m->lanes[tnd_schedule_queue(m->problem, side, TND_SCHEDULE_UPLOAD)];
    *lane = tnd_later(*lane, m->now_us) + tnd_schedule_link_us(&one->upload, bytes);
    return *lane;
}

static void step_split(struct tnd_moment *m, int32_t node)
{
    const struct tnd_schedule_problem *problem = m->problem;
    const struct tnd_schedule_split *split = &problem->splits[problem->split_of[node]];
    const struct tnd_shares *shares = &m->shares[problem->split_of[node]];
    double parts[TND_SCHEDULE_SIDES];
    double until_us = 0;
    for (int side = 1; side < problem->n_sides; side++) {
        if (shares->rows[side] > 0) {
            double ready_us = split->is_sum ? bring_share(m, node, side, split, shares->rows[side])
                                            : bring_operands(m, node, side);
            parts[side] = work_on(m, side, ready_us, (double)shares->part_us[side]);
        }
        if (shares->rows[side] > 0 && problem->sides[side].own_memory) {
            double *lane = &m->lanes[tnd_schedule_queue(problem, side, TND_SCHEDULE_DOWNLOAD)];
            *lane = tnd_later(tnd_later(*lane, m->now_us), parts[side]) +
                    tnd_schedule_link_us(&problem->sides[side].download,
                                         tnd_schedule_y_bytes(split, shares->rows[side]));
            parts[side] = *lane;
        }
    }
    if (shares->rows[HOST] > 0) {
        (void)bring_operands(m, node, HOST);
        work_here(m, (double)shares->part_us[HOST] +
                         (double)shares->rows[HOST] * split->copy_us_per_row);
    }
    for (int side = 1; side < problem->n_sides; side++) {
        until_us = shares->rows[side] > 0 ? tnd_later(until_us, parts[side]) : until_us;
    }
    wait_until(m, until_us);
    work_here(m, tnd_schedule_join_us(split, problem->n_sides, shares->rows));
    m->there[node * problem->n_sides] = m->now_us;
}

void tnd_schedule_step(struct tnd_moment *m, int32_t node, int side)
{
    const struct tnd_schedule_problem *problem = m->problem;
    m->side[node] = (uint8_t)side;
    if (side == TND_SCHEDULE_SPLIT) {
        step_split(m, node);
        return;
    }
    double us = (double)tnd_schedule_time(problem, node, side)->us;
    double ready_us = bring_operands(m, node, side);
    if (side == HOST) {
        work_here(m, us);
    } else {
        ready_us = work_on(m, side, ready_us, us);
    }
    m->there[node * problem->n_sides + tnd_schedule_memory(problem, side)] =
        side == HOST ? m->now_us : ready_us;
    if (tnd_schedule_is_fetched(problem, m->readers, m->shares, m->side, node)) {
        fetch(m, node);
    }
}

void tnd_schedule_begin(struct tnd_moment *m)
{
    m->now_us = 0;
    m->slept = false;
    memset(m->lanes, 0, sizeof(m->lanes));
    for (int i = 0; i < m->problem->n_nodes * m->problem->n_sides; i++) {
        m->there[i] = -1;
    }
}

double tnd_schedule_end(const struct tnd_moment *m)
{
    double us = m->now_us;
    for (int lane = 1; lane < tnd_schedule_lanes(m->problem->n_sides); lane++) {
        us = tnd_later(us, m->lanes[lane]);
    }
    return us;
}
