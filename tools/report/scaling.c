/* SPDX-License-Identifier: MIT
 * Speed-up of stages by threads, and shares of stages in the time. */
#include "tools/report/scaling.h"

#include "tune/policy.h"

#include <string.h>

#include "tune/estimate.h"

bool tnd_scaling_time(const struct tnd_analysis *a, const struct tnd_stage_scaling *line, int64_t m,
                      int threads, double *out_us)
{
    struct tnd_estimate estimate;
    bool found = tnd_estimate_stage(a->table, &line->profile->stage[line->stage], line->stage,
                                    a->type, a->n, a->k, m, threads, &estimate);
    *out_us = found ? estimate.us : 0.0;
    return found && estimate.us > 0.0;
}

/* Thread counts that were measured for the stage, ascending as in the table. */
static void read_line(const struct tnd_analysis *a, int64_t m, struct tnd_stage_scaling *line)
{
    const struct tnd_table_stage *stage = &line->profile->stage[line->stage];
    for (int i = 0; i < a->table->n_curves; i++) {
        const struct tnd_curve_key *key = &a->table->curves[i].key;
        bool fits = key->type == a->type && key->n == a->n && key->k == a->k &&
                    key->stage == line->stage && key->task == stage->task &&
                    key->parallel == stage->parallel && key->own_threads == stage->own_threads &&
                    !key->warm && strcmp(key->op, "mul_mat") == 0 &&
                    strcmp(key->backend, stage->backend) == 0;
        bool ascends = line->n == 0 || line->counts[line->n - 1] < key->threads;
        double us;
        if (fits && ascends && line->n < TND_REPORT_COUNTS &&
            tnd_scaling_time(a, line, m, key->threads, &us)) {
            line->counts[line->n] = key->threads;
            line->us[line->n++] = us;
        }
    }
    if (line->n > 0) {
        line->enough = tnd_report_enough(line->us, line->n);
    }
}

int tnd_scalings(const struct tnd_analysis *a, int64_t m,
                 struct tnd_stage_scaling out[TND_SCALING_MAX])
{
    int n = 0;
    for (int p = 0; p < a->n_profiles; p++) {
        for (int s = 0; s < TANDEM_STAGES; s++) {
            const struct tnd_table_stage *stage = &a->profiles[p]->stage[s];
            bool known = n == TND_SCALING_MAX || stage->backend[0] == '\0' ||
                         (!stage->parallel && !stage->own_threads);
            for (int i = 0; i < n && !known; i++) {
                const struct tnd_table_stage *other = &out[i].profile->stage[s];
                known = out[i].stage == (enum tandem_stage)s && other->task == stage->task &&
                        other->parallel == stage->parallel &&
                        other->own_threads == stage->own_threads &&
                        strcmp(other->backend, stage->backend) == 0;
            }
            if (!known) {
                out[n] = (struct tnd_stage_scaling){.profile = a->profiles[p],
                                                    .stage = (enum tandem_stage)s};
                read_line(a, m, &out[n]);
                n += out[n].n >= 2;
            }
        }
    }
    return n;
}

double tnd_scaling_gain(const struct tnd_stage_scaling *line, bool efficiency, double threads,
                        double us)
{
    double speed_up = line->us[0] / us;
    return efficiency ? speed_up * line->counts[0] / threads : speed_up;
}

bool tnd_scaling_is_above_ideal(const struct tnd_stage_scaling *line)
{
    for (int i = 1; i < line->n; i++) {
        if (tnd_scaling_gain(line, true, line->counts[i], line->us[i]) > 1 + TND_RULE_LEAD) {
            return true;
        }
    }
    return false;
}

/* ---- shares ---- */

const char *const tnd_share_names[TND_SHARES] = {"INIT", "COMPUTE", "FINALIZE", "transfers"};

int tnd_share_points(const struct tnd_analysis *a, int out[TND_SHARE_POINTS])
{
    int n = a->n_points < TND_SHARE_POINTS ? a->n_points : TND_SHARE_POINTS;
    out[0] = 0;
    out[1] = a->n_points / 2;
    out[n - 1] = a->n_points - 1;
    return n;
}

double tnd_shares(const struct tnd_analysis *a, int profile, int point, double out_us[TND_SHARES])
{
    const int at = profile * a->n_points + point;
    double rest = a->times[at];
    for (int s = 0; s < TANDEM_STAGES; s++) {
        out_us[s] = a->stages[at][s];
        rest -= out_us[s];
    }
    out_us[TANDEM_STAGES] = rest > 1e-6 * a->times[at] ? rest : 0; /* else only rounding */
    return a->times[at];
}
