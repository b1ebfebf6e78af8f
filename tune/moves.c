/* SPDX-License-Identifier: MIT
 * Costs of transfers and waking, from the table's curves of them. */
#include "tune/moves.h"
#include "tune/policy.h"

#include <string.h>

#include "table/product_moves.h"

struct tnd_estimate tnd_estimate_transfer(const struct tandem_table *table, const char *backend,
                                          enum tnd_direction direction, int64_t bytes)
{
    struct tnd_estimate estimate = {.measured_shape = true};
    if (table == NULL || bytes < 1) {
        return estimate;
    }
    const struct tnd_curve *curve = tnd_table_transfer(table, backend, direction);
    if (curve != NULL) {
        /* Transfers smaller than the smallest measured one have the same latency. */
        bytes = bytes > curve->samples[0].m ? bytes : curve->samples[0].m;
        (void)tnd_estimate_point(curve, bytes, &estimate.us, &estimate.error_us);
    }
    return estimate;
}

static struct tnd_estimate price(const struct tandem_table *table,
                                 const struct tnd_product_move *move)
{
    return move->backend != NULL
               ? tnd_estimate_transfer(table, move->backend, move->direction, move->bytes)
               : (struct tnd_estimate){0};
}

bool tnd_estimate_moves(const struct tandem_table *table, const struct tnd_table_profile *profile,
                        int64_t n, int64_t k, int64_t m, struct tnd_moves *out)
{
    struct tnd_product_moves moves;
    if (!tnd_product_moves(table, profile, n, k, m, &moves)) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < 2; i++) {
        struct tnd_estimate one = price(table, &moves.inside[i]);
        out->inside.us += one.us;
        out->inside.error_us += one.error_us;
    }
    if (moves.device != NULL) {
        memcpy(out->device, moves.device, sizeof(out->device));
    }
    out->x = price(table, &moves.x);
    out->y = price(table, &moves.y);
    return true;
}

static double wake_of(const struct tnd_handoff *handoff)
{
    return handoff->wake_us - handoff->spin_us;
}

static double spin_of(const struct tnd_handoff *handoff)
{
    return handoff->spin_us;
}

static double at_threads(const struct tandem_table *table, int threads,
                         double (*cost)(const struct tnd_handoff *handoff))
{
    if (table == NULL || threads < 2 || table->n_handoffs == 0) {
        return 0;
    }
    int at = 0;
    while (at + 1 < table->n_handoffs && table->handoffs[at].threads < threads) {
        at++;
    }
    const struct tnd_handoff *above = &table->handoffs[at];
    double us = cost(above);
    if (at > 0 && above->threads > threads) {
        const struct tnd_handoff *below = above - 1;
        double part = (double)(threads - below->threads) / (above->threads - below->threads);
        us = cost(below) + part * (us - cost(below));
    }
    return us > 0 ? us : 0;
}

double tnd_estimate_wake(const struct tandem_table *table, int threads)
{
    return at_threads(table, threads, wake_of);
}

double tnd_estimate_handoff(const struct tandem_table *table, int threads)
{
    return at_threads(table, threads, spin_of);
}

double tnd_estimate_sharing(const struct tandem_table *table, int threads)
{
    return threads > 1 ? TND_SHARED_LINES * tnd_estimate_handoff(table, threads) : 0;
}

bool tnd_profile_leaves_sleepers(const struct tnd_table_profile *profile)
{
    bool sleeps = false;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        const struct tnd_table_stage *stage = &profile->stage[s];
        if (stage->backend[0] != '\0' && stage->parallel) {
            return false;
        }
        sleeps = sleeps || (stage->backend[0] != '\0' && stage->wait);
    }
    return sleeps;
}
