/* SPDX-License-Identifier: MIT
 * From one trial to the samples of a table: each stage a curve, of several trials the faster
 * median, since what disturbs a machine only ever slows it down. */
#include <string.h>

#include "measure/bench_sweep.h"

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "measure/measure_moves.h"

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
        /* Also of a stage that several profiles share. */
        const struct tnd_sample *before = find_sample(tnd_table_find(sweep->table, &key), m);
        if (before != NULL) {
            uint32_t count = sample.count + before->count;
            sample = before->median_us < sample.median_us ? *before : sample;
            sample.count = count;
        }
        if (tnd_table_add(sweep->table, &key, &sample) == TANDEM_E_MEMORY) {
            return TANDEM_E_MEMORY; /* refused otherwise: not finite; then it stays unknown */
        }
    }
    return TANDEM_OK;
}
