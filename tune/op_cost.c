/* SPDX-License-Identifier: MIT
 * Estimates costs of operations other than plain products from the table. */
#include "tune/op_cost.h"

#include <math.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "ggml-like/work.h"
#include "tandem/sample.h"
#include "tune/candidates.h"
#include "table/table_cells.h"
#include "tune/moves.h"
#include "tune/policy.h"
#include "tune/rule.h"

/* Rounds to four binary digits: the number of keys grows by one with each token, which should not
 * cause a new choice. */
static int64_t rounded(int64_t k)
{
    int64_t step = 1;
    while (k / step >= 16) {
        step *= 2;
    }
    return (k + step / 2) / step * step;
}

int64_t tnd_op_sample_passes(int steps)
{
    return 1 + ((steps & TANDEM_SAMPLE_DRAWS) != 0 ? 1 : 0) +
           ((steps & TANDEM_SAMPLE_K) != 0 ? 3 : 0) + ((steps & TANDEM_SAMPLE_SHARE) != 0 ? 3 : 0);
}

bool tnd_op_work_of(const tandem_tensor *node, struct tnd_op_work *out)
{
    struct tnd_op_work work = {
        .op = tnd_op_traits(node->op)->representative, .n = node->ne[0], .k = 1};
    work.type = TANDEM_TYPE_F32;
    if (work.op == TANDEM_OP_NONE || node->ne[0] < 1 || tandem_tensor_elements(node) < 1) {
        return false;
    }
    double values = (double)tnd_node_values(node);
    work.m = tnd_node_values(node) / work.n;
    if (node->op == TANDEM_OP_SAMPLE) {
        work.n = node->src[0]->ne[0];
        work.k = tnd_op_sample_passes(node->params.sample_steps);
        work.m = node->ne[1];
    }
    if (work.op == TANDEM_OP_ATTENTION) {
        work.k = node->src[1]->ne[1] > 0 ? rounded(node->src[1]->ne[1]) : 1;
        values *= (double)work.k;
        work.type = node->src[1]->type;
    }
    work.shares = (int64_t)(values / TND_SHARE_VALUES);
    const struct tnd_work *of_net = tnd_work_of(node);
    const int64_t most = node->op == TANDEM_OP_SAMPLE           ? node->ne[1]
                         : of_net != NULL                       ? of_net->n_items
                         : !tnd_op_traits(work.op)->splits_rows ? work.m
                                                                : work.shares;
    work.shares = work.shares > most ? most : work.shares;
    work.m = work.m > 1 ? work.m : 1;
    *out = work;
    return true;
}

struct tnd_curve_key tnd_op_key(enum tandem_op op, int64_t n, int64_t k, int threads)
{
    struct tnd_curve_key key;
    memset(&key, 0, sizeof(key));
    strncpy(key.op, tandem_op_name(op), sizeof(key.op) - 1);
    key.type = TANDEM_TYPE_F32;
    key.n = n;
    key.k = k;
    strcpy(key.backend, "cpu");
    key.stage = TANDEM_STAGE_COMPUTE;
    key.task = TANDEM_TASK_NODE;
    key.parallel = true;
    key.threads = threads;
    return key;
}

struct tnd_curve_key tnd_op_device_key(enum tandem_op op, int64_t n, int64_t k, const char *backend)
{
    struct tnd_curve_key key = tnd_op_key(op, n, k, 1);
    memset(key.backend, 0, sizeof(key.backend));
    strncpy(key.backend, backend, sizeof(key.backend) - 1);
    key.parallel = false;
    return key;
}

/* Finds the measured shape of the operation on the backend, with operands of the type, that is
 * nearest by ratio; false: none. */
static bool nearest_of_type(const struct tandem_table *table, const struct tnd_op_work *work,
                            enum tandem_type type, const char *backend, struct tnd_curve_key *out)
{
    const char *name = tandem_op_name(work->op);
    double best = INFINITY;
    struct tnd_curve_key probe = {.type = type};
    for (int at = tnd_table_lower_bound(table, &probe);
         at < table->n_curves && table->curves[at].key.type == type; at++) {
        const struct tnd_curve_key *key = &table->curves[at].key;
        if (strcmp(key->op, name) != 0 || strcmp(key->backend, backend) != 0) {
            continue;
        }
        double distance = fabs(log((double)work->n / (double)key->n)) +
                          fabs(log((double)work->k / (double)key->k));
        if (distance < best) {
            best = distance;
            *out = strcmp(backend, "cpu") == 0
                       ? tnd_op_key(work->op, key->n, key->k, 1)
                       : tnd_op_device_key(work->op, key->n, key->k, backend);
            out->type = type;
        }
    }
    return isfinite(best);
}

static bool nearest_shape(const struct tandem_table *table, const struct tnd_op_work *work,
                          const char *backend, struct tnd_curve_key *out)
{
    return (work->type != TANDEM_TYPE_F32 &&
            nearest_of_type(table, work, work->type, backend, out)) ||
           nearest_of_type(table, work, TANDEM_TYPE_F32, backend, out);
}

/* Number of rows of the shape that make the same work. */
static int64_t rows_on(const struct tnd_curve_key *shape, const struct tnd_op_work *work)
{
    double rows =
        (double)work->m * (double)work->n * (double)work->k / ((double)shape->n * (double)shape->k);
    return rows > 1.0 ? (int64_t)(rows + 0.5) : 1;
}

static bool on_shape(const struct tandem_table *table, const struct tnd_curve_key *shape,
                     const struct tnd_op_work *work, int threads, struct tnd_estimate *out)
{
    struct tnd_curve_key key = *shape;
    key.threads = threads;
    return tnd_estimate_key(table, &key, rows_on(shape, work), out);
}

bool tnd_op_estimate(const struct tandem_table *table, const struct tnd_op_work *work, int threads,
                     struct tnd_estimate *out)
{
    struct tnd_curve_key shape;
    return table != NULL && nearest_shape(table, work, "cpu", &shape) &&
           on_shape(table, &shape, work, threads, out);
}

bool tnd_op_device_estimate(const struct tandem_table *table, const struct tnd_op_work *work,
                            const char *backend, struct tnd_estimate *out)
{
    struct tnd_curve_key shape;
    return table != NULL && nearest_shape(table, work, backend, &shape) &&
           on_shape(table, &shape, work, 1, out);
}

/* Estimates one operation on one thread count, to compare counts. The part of the error bar beside
 * the noise (beyond the measured rows, between them) affects all counts equally and is left out: a
 * prompt's attention is a hundred times larger than what was measured, and yet two threads take
 * half the time of one. */
static bool on_threads(const struct tandem_table *table, const struct tnd_curve_key *shape,
                       const struct tnd_op_work *work, int threads, struct tnd_estimate *out)
{
    if (!on_shape(table, shape, work, threads, out)) {
        return false;
    }
    out->us += tnd_estimate_sharing(table, threads);
    out->error_us = out->noise_us;
    return true;
}

/* Whether `a` is clearly faster: by three standard errors, and by the rule's lead. */
static bool leads(const struct tnd_estimate *a, const struct tnd_estimate *b)
{
    const double noise_us = TND_CLEAR_SIGMAS * hypot(a->error_us, b->error_us);
    return b->us - a->us > fmax(noise_us, TND_RULE_LEAD * b->us);
}

bool tnd_op_threads(const struct tandem_table *table, const tandem_tensor *node, int limit,
                    int incumbent, int *out_threads, double *out_us)
{
    struct tnd_op_work work;
    struct tnd_curve_key shape;
    struct tnd_estimate best;
    if (table == NULL || !tnd_op_work_of(node, &work) ||
        !nearest_shape(table, &work, "cpu", &shape)) {
        return false;
    }
    limit = work.shares < limit ? (int)work.shares : limit;
    limit = limit > 1 ? limit : 1;
    int threads = tnd_rule_threads(node, limit, tnd_estimate_handoff(table, limit));
    if (!on_threads(table, &shape, &work, threads, &best)) {
        return false;
    }
    for (int t = 1;; t = tnd_next_thread_count(table, t, limit)) {
        struct tnd_estimate one;
        if (t != threads && on_threads(table, &shape, &work, t, &one) && leads(&one, &best)) {
            best = one;
            threads = t;
        }
        if (t >= limit) {
            break;
        }
    }
    struct tnd_estimate kept;
    if (incumbent > 0 && incumbent != threads && incumbent <= limit &&
        on_threads(table, &shape, &work, incumbent, &kept) && !tnd_lead_is_clear(&best, &kept)) {
        best = kept;
        threads = incumbent;
    }
    *out_threads = threads;
    if (out_us != NULL) {
        *out_us = best.us - tnd_estimate_sharing(table, threads);
    }
    return true;
}
