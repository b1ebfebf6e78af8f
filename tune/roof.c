/* SPDX-License-Identifier: MIT
 * Lower bounds of the time of matrix products. They must never be too high, so they use the highest
 * peak that a kernel could reach, and read weights once. */
#include "tune/roof.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/cpu_profiles.h"
#include "backends/task.h"
#include "tandem/tensor.h"

/* Peak in operations per microsecond; a multiply-add counts as two. */
static double rate(const struct tandem_table *table, enum tandem_type type, int threads)
{
    double gops =
        fmax(tnd_table_peak(table, "fma", threads), tnd_table_peak(table, "bf16", threads));
    if (tandem_type_is_quantized(type)) {
        gops = fmax(gops, tnd_table_peak(table, "int8", threads));
    }
    return gops * 1e3;
}

struct tnd_curve_bounds tnd_roof_of(const struct tandem_table *table,
                                    const struct tnd_curve_key *key, int threads)
{
    struct tnd_curve_bounds bounds = {0};
    if (table == NULL || strcmp(key->op, "mul_mat") != 0 || strcmp(key->backend, "cpu") != 0) {
        return bounds;
    }
    bool computes = tnd_task_is(key->task, TND_TASK_WRITES_RESULT);
    double operations = 2.0 * (double)key->n * (double)key->k;
    double per_us = rate(table, key->type, threads);
    if (computes && per_us > 0) {
        bounds.least_per_m = operations / per_us;
    }
    double bytes = (double)key->n * (double)tandem_type_row_bytes(key->type, key->k);
    double bytes_per_us = tnd_table_peak(table, "read", threads) * 1e3;
    bool reads = tnd_task_is(key->task, TND_TASK_READS_W | TND_TASK_USES_PACKED);
    if (reads && !key->warm && bytes_per_us > 0) {
        bounds.floor_us = bytes / bytes_per_us;
    }
    return bounds;
}

int64_t tnd_step_of(const struct tnd_curve_key *key)
{
    bool is_product = strcmp(key->op, "mul_mat") == 0 && strcmp(key->backend, "cpu") == 0;
    return is_product ? tnd_cpu_token_step((enum tandem_task)key->task) : 0;
}
