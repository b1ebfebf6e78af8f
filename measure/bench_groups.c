/* SPDX-License-Identifier: MIT
 * Operands of the measured weights, as many open at once as memory allows, and the full cost of a
 * trial of a cell, preparation included. */
#include <math.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "measure/bench_sweep.h"
#include "tune/policy.h"

static bool packs(const struct tnd_bench_line *line)
{
    return tnd_task_is(line->choice.stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_USES_PACKED);
}

bool tnd_sweep_is_warm(const struct tnd_sweep *sweep, int line, double expected_us)
{
    TND_ASSERT(line >= 0 && line < sweep->n_lines);
    const struct tnd_bench_line *of = &sweep->lines[line];
    int bit = line - of->first;
    return expected_us > TND_BENCH_LONG_US && bit < 64 &&
           (sweep->groups[of->group].warm >> bit & 1) != 0;
}

double tnd_sweep_cost_s(void *user, int line, int64_t m, double expected_us)
{
    TND_ASSERT(line >= 0 && line < ((const struct tnd_sweep *)user)->n_lines);
    const struct tnd_sweep *sweep = user;
    const struct tnd_bench_line *of = &sweep->lines[line];
    const struct tnd_bench_group *group = &sweep->groups[of->group];
    double likely_us = tnd_adapt_expect_us(sweep->adapt, line, m, false);
    int nodes = of->uses_device ? 1 : tnd_measure_nodes(likely_us);
    double run_s = 1e-6 * expected_us * nodes;
    double warm_up_s = tnd_sweep_is_warm(sweep, line, likely_us) ? 0 : run_s;
    double cost_s = fmax(warm_up_s + run_s, sweep->trial_s + run_s);
    if (group->measure == NULL) {
        cost_s += group->bytes / 2 * sweep->open_s_per_byte;
    }
    if (packs(of) && (group->measure == NULL || !group->is_packed)) {
        cost_s += group->weight_bytes * sweep->pack_s_per_byte;
    }
    return cost_s;
}

/* ---- operands ---- */

static void close_group(struct tnd_sweep *sweep, struct tnd_bench_group *group)
{
    if (group->measure != NULL) {
        tnd_measure_close(group->measure);
        group->measure = NULL;
        group->is_packed = false;
        group->warm = 0;
        sweep->open_bytes -= group->bytes;
    }
}

void tnd_sweep_close_all(struct tnd_sweep *sweep)
{
    for (int i = 0; i < sweep->n_groups; i++) {
        close_group(sweep, &sweep->groups[i]);
    }
}

static void make_room(struct tnd_sweep *sweep, double bytes)
{
    while (sweep->open_bytes > 0 && sweep->open_bytes + bytes > sweep->limit_bytes) {
        struct tnd_bench_group *oldest = NULL;
        for (int i = 0; i < sweep->n_groups; i++) {
            struct tnd_bench_group *group = &sweep->groups[i];
            if (group->measure != NULL &&
                (oldest == NULL || group->last_used < oldest->last_used)) {
                oldest = group;
            }
        }
        if (oldest == NULL) {
            return;
        }
        close_group(sweep, oldest);
        for (int i = 0; i < sweep->n_lines; i++) {
            if (&sweep->groups[sweep->lines[i].group] == oldest) {
                tnd_adapt_touch(sweep->adapt, i); /* its trials cost more, because operands must be
                                                   * made again */
                break;
            }
        }
    }
}

static void learn(double *rate, double seconds, double bytes)
{
    if (bytes > 0 && seconds > 0) {
        *rate = (*rate + seconds / bytes) / 2; /* running average over the last few groups */
    }
}

enum tandem_status tnd_sweep_open(struct tnd_sweep *sweep, int line, struct tandem_error *error)
{
    TND_ASSERT(line >= 0 && line < sweep->n_lines);
    const struct tnd_bench_line *of = &sweep->lines[line];
    struct tnd_bench_group *group = &sweep->groups[of->group];
    double begin_s = tnd_sweep_elapsed_s(sweep);
    group->last_used = ++sweep->n_trials;
    if (group->measure == NULL) {
        struct tnd_measure_options options = sweep->options->measure;
        options.rotate_bytes = group->stays_in_cache ? 1 : options.rotate_bytes;
        make_room(sweep, group->bytes);
        TND_TRY(tnd_measure_open(&options, group->type, group->shape.n, group->shape.k,
                                 sweep->most_m, &group->measure, error));
        sweep->open_bytes += group->bytes;
        learn(&sweep->open_s_per_byte, tnd_sweep_elapsed_s(sweep) - begin_s, group->bytes / 2);
    }
    if (packs(of) && !group->is_packed) {
        begin_s = tnd_sweep_elapsed_s(sweep);
        TND_TRY(tnd_measure_prepare(group->measure, &of->choice, error));
        group->is_packed = true;
        learn(&sweep->pack_s_per_byte, tnd_sweep_elapsed_s(sweep) - begin_s, group->weight_bytes);
    }
    return TANDEM_OK;
}
