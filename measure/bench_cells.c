/* SPDX-License-Identifier: MIT
 * From one trial to the samples of a table: each stage is a curve; of several trials the faster
 * median is kept, since disturbances only slow a machine down. */
#include <string.h>

#include "measure/bench_sweep.h"

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "measure/measure_moves.h"
#include "tune/policy.h"

static const struct tnd_sample *find_sample(const struct tnd_curve *curve, int64_t m)
{
    for (int i = 0; curve != NULL && i < curve->n_samples; i++) {
        if (curve->samples[i].m == m) {
            return &curve->samples[i];
        }
    }
    return NULL;
}

static void make_key(const struct tnd_bench_group *group, const struct tnd_table_stage *stage,
                     int which, int threads, struct tnd_curve_key *out)
{
    tnd_stage_key(stage, which, group->type, group->shape.n, group->shape.k, threads, out);
    out->warm = group->stays_in_cache;
}

enum tandem_status tnd_sweep_keep(struct tnd_sweep *sweep, int line, int64_t m,
                                  const struct tnd_measure_result *result)
{
    TND_ASSERT(line >= 0 && line < sweep->n_lines && m >= 1);
    const struct tnd_bench_line *of = &sweep->lines[line];
    TND_TRY(tnd_table_add_profile(sweep->table, &of->described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &of->described.stage[s];
        const struct tnd_stage_time *time = &result->stage[s];
        if (stage->backend[0] == '\0' || time->count == 0) {
            continue;
        }
        struct tnd_curve_key key;
        make_key(&sweep->groups[of->group], stage, s, of->threads, &key);
        double us = tnd_without_round_trip(time->median_us,
                                           sweep->round_trip_us[of->choice.stage[s].backend]);
        struct tnd_sample sample = {.m = m,
                                    .median_us = us,
                                    .spread_us = time->spread_us,
                                    .count = time->count,
                                    .when = sweep->when,
                                    .joules = result->watts * us * 1e-6};
        /* The sample may come from another profile with the same stage. */
        const struct tnd_sample *before = find_sample(tnd_table_find(sweep->table, &key), m);
        if (before != NULL) {
            uint32_t count = sample.count + before->count;
            sample = before->median_us < sample.median_us ? *before : sample;
            sample.count = count;
        }
        if (tnd_table_add(sweep->table, &key, &sample) == TANDEM_E_MEMORY) {
            return TANDEM_E_MEMORY; /* other refusals (not finite) leave it unknown */
        }
    }
    return TANDEM_OK;
}

/* ---- resuming a run ---- */

/* The sum of all stages of a line at m, from a recent run. False if the known table lacks a stage
 * or it is old or stale. */
static bool take_stages(struct tnd_sweep *sweep, const struct tnd_bench_line *line, int64_t m,
                        struct tnd_stage_time *out)
{
    const struct tandem_table *known = sweep->options->known;
    struct tnd_stage_time sum = {.count = UINT32_MAX};
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &line->described.stage[s];
        struct tnd_curve_key key;
        if (stage->backend[0] == '\0') {
            continue;
        }
        make_key(&sweep->groups[line->group], stage, s, line->threads, &key);
        const struct tnd_sample *sample = find_sample(tnd_table_find(known, &key), m);
        if (sample == NULL && s != TANDEM_STAGE_COMPUTE) {
            continue; /* the stage was empty when it was measured, too */
        }
        if (sample == NULL || sample->when + TND_BENCH_RESUME_S < sweep->when ||
            sample->when > sweep->when || tnd_sample_is_stale(sample)) {
            return false;
        }
        sum.median_us += sample->median_us;
        sum.spread_us += sample->spread_us;
        sum.count = sample->count < sum.count ? sample->count : sum.count;
    }
    *out = sum;
    return true;
}

static enum tandem_status keep_stages(struct tnd_sweep *sweep, const struct tnd_bench_line *line,
                                      int64_t m)
{
    TND_TRY(tnd_table_add_profile(sweep->table, &line->described));
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &line->described.stage[s];
        struct tnd_curve_key key;
        make_key(&sweep->groups[line->group], stage, s, line->threads, &key);
        const struct tnd_curve *curve =
            stage->backend[0] != '\0' ? tnd_table_find(sweep->options->known, &key) : NULL;
        const struct tnd_sample *sample = find_sample(curve, m);
        if (sample != NULL) {
            TND_TRY(tnd_table_add(sweep->table, &key, sample));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status take_up_line(struct tnd_sweep *sweep, int line)
{
    const struct tnd_bench_line *of = &sweep->lines[line];
    const struct tnd_table_stage *stage = &of->described.stage[TANDEM_STAGE_COMPUTE];
    struct tnd_curve_key key;
    make_key(&sweep->groups[of->group], stage, TANDEM_STAGE_COMPUTE, of->threads, &key);
    const struct tnd_curve *curve = tnd_table_find(sweep->options->known, &key);
    for (int i = 0; curve != NULL && i < curve->n_samples && curve->samples[i].m <= sweep->most_m;
         i++) {
        const struct tnd_adapt_cell cell = {.line = line, .m = curve->samples[i].m};
        struct tnd_stage_time total;
        if (take_stages(sweep, of, cell.m, &total)) {
            TND_TRY(keep_stages(sweep, of, cell.m));
            TND_TRY(tnd_adapt_done(sweep->adapt, &cell, &total));
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_sweep_take_up(struct tnd_sweep *sweep)
{
    for (int line = 0; line < sweep->n_lines && sweep->options->known != NULL; line++) {
        TND_TRY(take_up_line(sweep, line));
    }
    return TANDEM_OK;
}
