/* SPDX-License-Identifier: MIT
 * The price of weights in flight. */
#include "tune/stream_cost.h"

#include <stdio.h>
#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"

bool tnd_profile_streams(const struct tnd_table_profile *profile)
{
    return tnd_task_is(profile->stage[TANDEM_STAGE_COMPUTE].task, TND_TASK_STREAMS_W);
}

int tnd_stream_twins(const struct tandem_table *table, struct tnd_candidate *candidates, int n)
{
    int n_all = n;
    for (int i = 0; i < n && n_all < TND_TABLE_MAX_PROFILES; i++) {
        const struct tnd_table_stage *compute = &candidates[i].profile.stage[TANDEM_STAGE_COMPUTE];
        struct tnd_table_profile profile;
        if (compute->task != TANDEM_TASK_NODE ||
            tnd_table_transfer(table, compute->backend, TND_UPLOAD) == NULL) {
            continue;
        }
        profile = candidates[i].profile;
        size_t name_n = strcspn(profile.name, "@"); /* suffix of a second device */
        snprintf(profile.name + name_n, sizeof(profile.name) - name_n, "+stream%s",
                 candidates[i].profile.name + name_n);
        profile.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE_STREAMED;
        candidates[n_all] = candidates[i];
        candidates[n_all++].profile = profile;
    }
    return n_all;
}

static bool fits_weight(const struct tnd_candidate *candidate, uint32_t refused, bool is_constant)
{
    uint32_t slots = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        slots |= UINT32_C(1) << candidate->node.stage[s].backend;
    }
    bool is_refused = (slots & refused) != 0;
    return tnd_profile_streams(&candidate->profile) ? is_constant && is_refused : !is_refused;
}

int tnd_stream_filter(struct tnd_candidate *candidates, int n, uint32_t refused, bool is_constant)
{
    int n_left = 0;
    TND_ASSERT((refused & 1) == 0); /* slot 0: no stage */
    for (int i = 0; i < n; i++) {
        if (fits_weight(&candidates[i], refused, is_constant)) {
            if (n_left < i) {
                candidates[n_left] = candidates[i];
            }
            n_left++;
        }
    }
    return n_left;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void tnd_stream_add(const struct tandem_table *table, const struct tnd_table_profile *profile,
                    enum tandem_type type, int64_t n, int64_t k, bool is_alone,
                    struct tnd_estimate *compute, struct tnd_estimate *total)
{
    if (!tnd_profile_streams(profile)) {
        return;
    }
    int64_t bytes = (int64_t)tandem_type_row_bytes(type, k) * n;
    const char *device = profile->stage[TANDEM_STAGE_COMPUTE].backend;
    const struct tnd_estimate weights = tnd_estimate_transfer(table, device, TND_UPLOAD, bytes);
    double factor = 1;
    (void)(!is_alone && tnd_table_slowdown(table, device, device, &factor));
    double us = is_alone ? compute->us + weights.us : factor * larger(compute->us, weights.us);
    double error_us = is_alone                    ? compute->error_us + weights.error_us
                      : weights.us >= compute->us ? weights.error_us
                                                  : compute->error_us;
    total->us += us - compute->us;
    total->error_us += larger(error_us - compute->error_us, 0);
    compute->us = us;
    compute->error_us = error_us;
}

/* Time of one product in a sequence of them, with operands where they are needed. */
static bool estimate(const struct tandem_table *table, const struct tnd_table_profile *profile,
                     enum tandem_type type, int64_t n, int64_t k, int threads, int64_t m,
                     double *out_us)
{
    struct tnd_estimate stages[TANDEM_STAGES];
    struct tnd_estimate total;
    if (!tnd_estimate_stages(table, profile, type, n, k, m, threads, false, stages, &total)) {
        return false;
    }
    tnd_stream_add(table, profile, type, n, k, false, &stages[TANDEM_STAGE_COMPUTE], &total);
    *out_us = total.us;
    return true;
}

int64_t tnd_stream_crossover(const struct tandem_table *table,
                             const struct tnd_table_profile *streaming,
                             const struct tnd_table_profile *host, enum tandem_type type, int64_t n,
                             int64_t k, int threads, int64_t most)
{
    int64_t below = 0; /* the host is faster up to this M */
    int64_t at = 1;
    double streamed_us = 0;
    double host_us = 0;
    const char *device = streaming->stage[TANDEM_STAGE_COMPUTE].backend;
    if (tnd_table_transfer(table, device, TND_UPLOAD) == NULL) {
        return 0;
    }
    for (;; at = at < most / 2 ? 2 * at : most) {
        if (!estimate(table, streaming, type, n, k, threads, at, &streamed_us) ||
            !estimate(table, host, type, n, k, threads, at, &host_us)) {
            return 0;
        }
        if (streamed_us < host_us) {
            break;
        }
        below = at;
        if (at >= most) {
            return 0;
        }
    }
    while (at - below > 1) { /* bisects between two powers of two */
        int64_t middle = below + (at - below) / 2;
        bool known = estimate(table, streaming, type, n, k, threads, middle, &streamed_us) &&
                     estimate(table, host, type, n, k, threads, middle, &host_us);
        if (known && streamed_us < host_us) {
            at = middle;
        } else {
            below = middle;
        }
    }
    return at;
}
