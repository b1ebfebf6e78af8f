/* SPDX-License-Identifier: MIT
 * Sums over a model's products by the table's times: on the CPU, and on a device to which the
 * weights are moved first. */
#include <math.h>
#include <string.h>

#include "tools/report/advise.h"
#include "tune/candidates.h"

enum where { ON_CPU, ON_DEVICE };

/* The device of a profile; NULL: the profile computes on the CPU. */
static const char *device_of(const struct tandem_table *table,
                             const struct tnd_table_profile *profile)
{
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const char *backend = profile->stage[s].backend;
        if (backend[0] != '\0' && tnd_table_transfer(table, backend, TND_UPLOAD) != NULL) {
            return backend;
        }
    }
    return NULL;
}

/* Time of one product; infinite without a time. */
static double product_us(const struct tandem_table *table, enum where where,
                         const struct tnd_problem *problem, int threads)
{
    struct tnd_candidate candidates[TND_TABLE_MAX_PROFILES];
    const int n = tnd_candidates_of_table(table, problem->type, 0, candidates);
    double best = INFINITY;
    for (int i = 0; i < n; i++) {
        struct tnd_prediction one;
        double upload = 0;
        const char *device = device_of(table, &candidates[i].profile);
        if (candidates[i].is_excluded || (device != NULL) != (where == ON_DEVICE) ||
            !tnd_predict(table, candidates, i, problem, threads, NULL, &one)) {
            continue;
        }
        const double bytes =
            (double)tandem_type_row_bytes(problem->type, problem->k) * (double)problem->n;
        if (device != NULL && !tnd_estimate_curve(tnd_table_transfer(table, device, TND_UPLOAD),
                                                  (int64_t)bytes, &upload)) {
            continue;
        }
        best = fmin(best, one.total.us + upload);
    }
    return best;
}

/* `repeats`: how many products of each shape, for experts. */
static double shapes_us(const struct tandem_table *table, enum where where,
                        const struct tnd_shapes *shapes, int64_t m, double repeats, int threads)
{
    double us = 0;
    for (int i = 0; i < shapes->count && isfinite(us); i++) {
        struct tnd_problem problem;
        memset(&problem, 0, sizeof(problem));
        problem.type = shapes->use[i].type;
        problem.n = shapes->shape[i].n;
        problem.k = shapes->shape[i].k;
        problem.m = m;
        us += shapes->use[i].calls * repeats * product_us(table, where, &problem, threads);
    }
    return us;
}

/* Infinite for a model without known products. Each used expert gets its share of the tokens, at
 * least one. */
static double pass_us(const struct tandem_table *table, enum where where,
                      const struct tnd_advise_model *model, int64_t m, int threads)
{
    const double used = (double)m * (double)model->experts_used;
    const double each = model->experts > 0 ? used / (double)model->experts : 0;
    const double busy = model->experts > 0 ? fmin(used, (double)model->experts) : 0;
    if (model->dense.count == 0) {
        return INFINITY;
    }
    return shapes_us(table, where, &model->dense, m, 1, threads) +
           shapes_us(table, where, &model->experts_of, each > 1 ? (int64_t)each : 1, busy, threads);
}

double tnd_advise_cpu_us(const struct tandem_table *table, const struct tnd_advise_model *model,
                         int64_t m, int threads)
{
    return pass_us(table, ON_CPU, model, m, threads);
}

int64_t tnd_advise_offload_m(const struct tandem_table *table, const struct tnd_advise_model *model,
                             int threads, int64_t m_limit)
{
    bool is_known = false;
    for (int64_t m = 1; m <= m_limit; m *= 2) {
        const double device = pass_us(table, ON_DEVICE, model, m, threads);
        const double cpu = pass_us(table, ON_CPU, model, m, threads);
        if (isfinite(device) && isfinite(cpu)) {
            is_known = true;
            if (device < cpu) {
                return m;
            }
        }
    }
    return is_known ? 0 : -1;
}
