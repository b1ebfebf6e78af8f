/* SPDX-License-Identifier: MIT
 * Estimates energy from measured power. Power varies little where times vary much, so the nearest
 * cell is used. */
#include "tune/objective.h"

#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "tune/policy.h"

static const char *const names[] = {"time", "energy", "edp"};

bool tnd_objective_parse(const char *name, enum tandem_objective *out)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum tandem_objective)i;
            return true;
        }
    }
    return false;
}

const char *tnd_objective_name(enum tandem_objective objective)
{
    TND_ASSERT((size_t)objective < sizeof(names) / sizeof(names[0]));
    return names[objective];
}

/* Mean power during a sample in W; 0: unknown. */
static double watts_of(const struct tnd_sample *sample)
{
    double watts = sample->median_us > 0 ? sample->joules / sample->median_us * 1e6 : 0;
    return watts <= TND_ENERGY_MOST_W ? watts : 0; /* higher values are errors in a file */
}

enum tandem_status tnd_objective_set(tandem_table *table, enum tandem_objective objective,
                                     struct tandem_error *error)
{
    double joules = 0;
    double us = 0;
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve *curve = &table->curves[i];
        for (int s = 0; s < curve->n_samples; s++) {
            bool is_known = watts_of(&curve->samples[s]) > 0;
            joules += is_known ? curve->samples[s].joules : 0;
            us += is_known ? curve->samples[s].median_us : 0;
        }
    }
    if (objective != TANDEM_OBJECTIVE_TIME && !(joules > 0 && us > 0)) {
        return tnd_error_set(error, TANDEM_E_TABLE, "joules", objective, 0,
                             "objective %s: the table has no joules; measure them with "
                             "'sudo mulmat-tune bench' on a machine that shows its energy",
                             tnd_objective_name(objective));
    }
    table->objective = (uint8_t)objective;
    table->mean_watts = us > 0 ? joules / us * 1e6 : 0;
    return TANDEM_OK;
}

/* ---- power ---- */

/* Power at m, interpolated over log M between the nearest M with joules on both sides. 0: the curve
 * has none. */
static double watts_at(const struct tnd_curve *curve, int64_t m)
{
    const struct tnd_sample *below = NULL;
    const struct tnd_sample *above = NULL;
    for (int s = 0; s < curve->n_samples; s++) {
        const struct tnd_sample *sample = &curve->samples[s];
        if (!(watts_of(sample) > 0)) {
            continue;
        }
        below = sample->m <= m ? sample : below;
        above = above == NULL && sample->m >= m ? sample : above;
    }
    if (below == NULL || above == NULL || below == above) {
        return below != NULL ? watts_of(below) : above != NULL ? watts_of(above) : 0;
    }
    double part = log((double)m / (double)below->m) / log((double)above->m / (double)below->m);
    return watts_of(below) + part * (watts_of(above) - watts_of(below));
}

/* Distance of a curve in doublings; another number of threads is farther than any shape. */
static double distance_of(const struct tnd_curve_key *key, int64_t n, int64_t k, int threads)
{
    return TND_ENERGY_THREADS_LOG2 * fabs(log2((double)key->threads / threads)) +
           fabs(log2((double)key->n / (double)n)) + fabs(log2((double)key->k / (double)k));
}

double tnd_estimate_watts(const struct tandem_table *table, const struct tnd_table_stage *stage,
                          enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                          int64_t m, int threads)
{
    double best = INFINITY;
    double watts = 0;
    threads = stage->parallel || stage->own_threads ? threads : 1;
    for (int i = 0; i < table->n_curves; i++) {
        const struct tnd_curve *curve = &table->curves[i];
        const struct tnd_curve_key *key = &curve->key;
        if (key->type != type || key->stage != which || key->task != stage->task ||
            strcmp(key->backend, stage->backend) != 0 || strcmp(key->op, "mul_mat") != 0) {
            continue;
        }
        double distance = distance_of(key, n, k, threads);
        double here = distance < best ? watts_at(curve, m) : 0;
        if (here > 0) {
            best = distance;
            watts = here;
        }
    }
    return watts;
}

double tnd_estimate_joules(const struct tandem_table *table,
                           const struct tnd_table_profile *profile, enum tandem_type type,
                           int64_t n, int64_t k, int64_t m, int threads, const double *stage_us,
                           double rest_us)
{
    double joules = 0;
    double known_us = 0;
    double unknown_us = rest_us;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (profile->stage[s].backend[0] == '\0' || !(stage_us[s] > 0)) {
            continue;
        }
        double watts = tnd_estimate_watts(table, &profile->stage[s], (enum tandem_stage)s, type, n,
                                          k, m, threads);
        joules += watts * stage_us[s] * 1e-6;
        known_us += watts > 0 ? stage_us[s] : 0;
        unknown_us += watts > 0 ? 0 : stage_us[s];
    }
    return known_us > 0 ? joules * (1 + unknown_us / known_us) : 0; /* at the same power */
}

double tnd_objective_weight(const struct tandem_table *table, double joules, double us)
{
    if (table->objective == TANDEM_OBJECTIVE_TIME || !(joules > 0) || !(us > 0)) {
        return 1;
    }
    double power = joules / us * 1e6 / table->mean_watts;
    return table->objective == TANDEM_OBJECTIVE_ENERGY ? power : sqrt(power);
}
