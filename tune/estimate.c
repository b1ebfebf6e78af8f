/* SPDX-License-Identifier: MIT
 * Estimates times at any M, thread count and shape from measured curves. Runs while a graph is
 * planned: no allocation, a few binary searches per stage. Rules: docs/planning.md, "How a time is
 * predicted". */
#include "tune/estimate.h"

#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "backends/task.h"
#include "tune/moves.h"
#include "table/curve_line.h"
#include "table/judge.h"
#include "table/table_cells.h"
#include "tune/policy.h"
#include "tune/roof.h"
#include "tune/thread_model.h"

#define MAX_COUNTS 32 /* most thread counts of one stage that are used */

/* ---- one curve over M ---- */

struct point {
    double us;
    double error_us;
    double noise_us;
    double spread_us;
    bool stale;
};

/* Possible error of the line between samples low and low + 1 at m, from the lines of the segments
 * on both sides: if a library changes its kernel at some M, the curve has a step anywhere between
 * two samples. */
static double bend(const struct tnd_curve *curve, int low, int64_t m, double us)
{
    TND_ASSERT(low >= 0 && low + 1 < curve->n_samples);
    const struct tnd_sample *p = curve->samples;
    double uncertainty = 0.0;
    if (low > 0) {
        uncertainty = fabs(tnd_sample_line(&p[low - 1], &p[low], m) - us);
    }
    if (low + 2 < curve->n_samples) {
        uncertainty = fmax(uncertainty, fabs(tnd_sample_line(&p[low + 1], &p[low + 2], m) - us));
    }
    return TND_ERROR_BEND * uncertainty;
}

/* Doublings of M outside of the measured range; 0 inside. A task that only prepares the weights
 * takes the same time for any M. */
static double outside(const struct tnd_curve *curve, int64_t m)
{
    int64_t first = curve->samples[0].m;
    int64_t last = curve->samples[curve->n_samples - 1].m;
    if (tnd_task_is(curve->key.task, TND_TASK_LEAVES_W)) {
        return 0.0;
    }
    return m > last    ? log2((double)m / (double)last)
           : m < first ? log2((double)first / (double)m)
                       : 0.0;
}

/* The point of a curve with at least one sample. `table` (may be NULL) holds the machine's peaks.
 */
static struct point on_curve(const struct tandem_table *table, const struct tnd_curve *curve,
                             int64_t m)
{
    TND_ASSERT(curve->n_samples > 0 && m > 0);
    double far = outside(curve, m);
    struct tnd_curve_bounds bounds = {0};
    if (far > 0) {
        bounds = tnd_roof_of(table, &curve->key, curve->key.threads);
    }
    bounds.step = tnd_step_of(&curve->key);
    struct tnd_curve_point at = tnd_curve_at(curve, m, &bounds);
    const struct tnd_sample *a = &curve->samples[at.low];
    const struct tnd_sample *b = &curve->samples[at.high];
    double spread = fmax(a->spread_us, b->spread_us);
    double noise = fmax(tnd_sample_error(a), tnd_sample_error(b));
    if (far > 0) { /* noise is a share of the time, which differs outside of the samples */
        noise *= at.us / fmax(tnd_sample_us(a), 1e-9);
    }
    double error = noise;
    if (far > 0) {
        double doubling = m > a->m ? TND_ERROR_BEYOND : TND_ERROR_BELOW;
        error += at.us * (doubling * far + at.residual * fmin(far, 1.0));
    } else if (at.is_stair) {
        error += at.us * (TND_ERROR_STAIR + at.residual);
    } else if (at.low < at.high) {
        error += at.us * TND_ERROR_LINE + bend(curve, at.low, m, at.us);
    }
    return (struct point){at.us, error, noise, spread,
                          tnd_sample_is_stale(a) || tnd_sample_is_stale(b)};
}

bool tnd_estimate_curve(const struct tnd_curve *curve, int64_t m, double *out_us)
{
    if (curve == NULL || curve->n_samples < 1 || m < 1) {
        return false;
    }
    *out_us = on_curve(NULL, curve, m).us;
    return true;
}

bool tnd_estimate_point(const struct tnd_curve *curve, int64_t m, double *out_us,
                        double *out_error_us)
{
    if (curve == NULL || curve->n_samples < 1 || m < 1) {
        return false;
    }
    struct point point = on_curve(NULL, curve, m);
    *out_us = point.us;
    *out_error_us = point.error_us;
    return true;
}

/* ---- one stage over threads ---- */

static bool same_but_threads(const struct tnd_curve_key *a, const struct tnd_curve_key *b)
{
    return a->n == b->n && a->k == b->k && a->type == b->type && a->stage == b->stage &&
           a->task == b->task && a->parallel == b->parallel && a->own_threads == b->own_threads &&
           a->warm == b->warm && strcmp(a->backend, b->backend) == 0 && strcmp(a->op, b->op) == 0;
}

/* log2 of the ratio of m and the nearest sample's. */
static double distance_to(const struct tnd_curve *curve, int64_t m)
{
    TND_ASSERT(m > 0);
    int above = 0;
    while (above < curve->n_samples && curve->samples[above].m < m) {
        above++;
    }
    double nearest = INFINITY;
    for (int i = above > 0 ? above - 1 : 0; i <= above && i < curve->n_samples; i++) {
        nearest = fmin(nearest, fabs(log2((double)curve->samples[i].m / (double)m)));
    }
    return nearest;
}

/* Ratio of a sample to the guide's time at its M. */
static double ratio_at(const struct tandem_table *table, const struct tnd_sample *sample,
                       const struct tnd_curve *guide)
{
    double us = on_curve(table, guide, sample->m).us;
    return us > 0 ? tnd_sample_us(sample) / us : 0;
}

/* The point of a curve with the shape of a guide, the curve of another thread count that was
 * measured nearer to m, scaled by the ratio at the curve's own samples around m: steps and bends
 * over M come from the kernels, which are the same. */
static struct point along_guide(const struct tandem_table *table, const struct tnd_curve *own,
                                const struct tnd_curve *guide, int64_t m)
{
    TND_ASSERT(own->n_samples > 0 && guide->n_samples > 0);
    const struct tnd_sample *below = NULL;
    const struct tnd_sample *above = NULL;
    for (int i = 0; i < own->n_samples; i++) {
        const struct tnd_sample *sample = &own->samples[i];
        below = sample->m < m ? sample : below;
        above = sample->m > m && above == NULL ? sample : above;
    }
    const struct tnd_sample *a = below != NULL ? below : above;
    const struct tnd_sample *b = above != NULL ? above : below;
    double ratio_a = ratio_at(table, a, guide);
    double ratio_b = ratio_at(table, b, guide);
    double part = a == b ? 0 : log2((double)m / (double)a->m) / log2((double)b->m / (double)a->m);
    double ratio = ratio_a + part * (ratio_b - ratio_a);
    struct point there = on_curve(table, guide, m);
    double us = ratio * there.us;
    double spread = fmax(a->spread_us, b->spread_us);
    double noise = fmax(tnd_sample_error(a), tnd_sample_error(b));
    double uncertainty = TND_ERROR_LINE * us;
    if (a == b) {
        uncertainty += us * TND_ERROR_BEYOND / 2 * fabs(log2((double)m / (double)a->m));
    }
    return (struct point){us, noise + ratio * there.error_us + uncertainty, noise, spread,
                          tnd_sample_is_stale(a) || tnd_sample_is_stale(b)};
}

/* The point at m of the wanted thread count's curve, guided by another thread count of the stage if
 * that has nearer samples. */
static struct point on_guided_curve(const struct tandem_table *table, int at, int end, int wanted,
                                    int64_t m)
{
    TND_ASSERT(at <= wanted && wanted < end && end <= table->n_curves);
    const struct tnd_curve *own = &table->curves[wanted];
    const struct tnd_curve *guide = NULL;
    double own_distance = distance_to(own, m);
    double nearest = own_distance * TND_GUIDE_NEARER; /* a guide has to be much nearer */
    for (int i = at; i < end && own_distance > TND_GUIDE_GAP_LOG2; i++) {
        double far = distance_to(&table->curves[i], m);
        if (i != wanted && far < nearest) {
            nearest = far;
            guide = &table->curves[i];
        }
    }
    struct point point = on_curve(table, own, m);
    if (guide != NULL) {
        struct point led = along_guide(table, own, guide, m);
        point = led.us > 0 && isfinite(led.us) ? led : point;
    }
    return point;
}

/* Adds the range of a thread count that was not measured, limited by the machine's roof. If
 * measured times already reach the memory's bandwidth, more threads may gain nothing. */
static void add_range(const struct tandem_table *table, const struct tnd_curve_key *key, int64_t m,
                      int threads, int known, double known_us, struct tnd_thread_time time,
                      struct tnd_estimate *out)
{
    if (threads > known) {
        struct tnd_curve_bounds here = tnd_roof_of(table, key, threads);
        struct tnd_curve_bounds there = tnd_roof_of(table, key, known);
        double saturated = fmin(there.floor_us, known_us);
        double least = fmax(here.floor_us, here.least_per_m * (double)m);
        least = fmin(least, known_us);
        time.low_us = fmax(time.low_us, least);
        time.us = fmax(time.us, least);
        time.high_us = fmax(fmax(time.high_us, time.us), saturated);
    }
    out->us = time.us;
    out->below_us = time.us - time.low_us;
    out->above_us = time.high_us - time.us;
    out->error_us += fmax(time.us * TND_ERROR_BEYOND, fmax(out->below_us, out->above_us));
}

static void take(const struct point *point, struct tnd_estimate *out)
{
    out->us = point->us;
    out->error_us = point->error_us;
    out->noise_us = point->noise_us;
    out->spread_us = point->spread_us;
    out->stale = out->stale || point->stale;
}

/* Time of one stage of one shape that has curves starting at index `at`. */
static struct tnd_estimate over_threads(const struct tandem_table *table,
                                        const struct tnd_curve_key *key, int at, int64_t m,
                                        int threads)
{
    TND_ASSERT(at >= 0 && at < table->n_curves && threads >= 1);
    double counts[MAX_COUNTS];
    double times[MAX_COUNTS];
    struct tnd_estimate out = {.outside = INFINITY};
    struct point last = {0};
    int end = at;
    int wanted = -1;
    while (end < table->n_curves && end - at < MAX_COUNTS &&
           same_but_threads(key, &table->curves[end].key)) {
        wanted = table->curves[end].key.threads == threads ? end : wanted;
        out.outside = fmin(out.outside, outside(&table->curves[end], m));
        end++;
    }
    if (wanted >= 0) {
        last = on_guided_curve(table, at, end, wanted, m);
        take(&last, &out);
        return out;
    }
    for (int i = at; i < end; i++) {
        last = on_guided_curve(table, at, end, i, m);
        take(&last, &out);
        counts[i - at] = table->curves[i].key.threads;
        times[i - at] = last.us;
    }
    if (table->version == 1 && key->parallel && end - at == 1 && counts[0] == 1.0) {
        out.us /= threads;
        out.noise_us /= threads;
        out.error_us += out.us * TND_ERROR_BEYOND;
        return out;
    }
    add_range(table, key, m, threads, table->curves[end - 1].key.threads, last.us,
              tnd_thread_model(counts, times, end - at, threads), &out);
    return out;
}

/* Whether `index` starts curves of the stage of `key`, whatever their thread counts. */
static bool starts_stage(const struct tandem_table *table, const struct tnd_curve_key *key,
                         int index)
{
    return index < table->n_curves && same_but_threads(key, &table->curves[index].key);
}

/* First curve of the stage, or -1. A stage on one thread takes the same time whether it is marked
 * parallel or not, so either curve is used if the other was not measured. A parallel stage on more
 * threads cannot be estimated from a one-threaded curve, except in version 1, which has nothing
 * else. */
static int find_stage(const struct tandem_table *table, struct tnd_curve_key *key, int *threads)
{
    int at = tnd_table_lower_bound(table, key);
    if (starts_stage(table, key, at)) {
        return at;
    }
    bool wanted_parallel = key->parallel;
    if (wanted_parallel && *threads > 1 && table->version != 1) {
        return -1;
    }
    struct tnd_curve_key twin = *key;
    twin.parallel = !wanted_parallel;
    at = tnd_table_lower_bound(table, &twin);
    if (!starts_stage(table, &twin, at)) {
        return -1;
    }
    if (!wanted_parallel) {
        *threads = 1;
    }
    *key = twin;
    return at;
}

static bool on_shape(const struct tandem_table *table, const struct tnd_curve_key *wanted,
                     int64_t m, int threads, struct tnd_estimate *out)
{
    struct tnd_curve_key key = *wanted;
    int at = find_stage(table, &key, &threads);
    if (at < 0) {
        return false;
    }
    /* version 1 only: the table's stage ran on one thread, ours uses all */
    bool divide = wanted->parallel && !key.parallel;
    *out = over_threads(table, &key, at, m, divide ? 1 : threads);
    out->us = divide ? out->us / threads : out->us;
    out->measured_shape = true;
    return true;
}

bool tnd_estimate_key(const struct tandem_table *table, const struct tnd_curve_key *key, int64_t m,
                      struct tnd_estimate *out)
{
    struct tnd_estimate estimate = {0};
    if (table == NULL || m < 1 || key->threads < 1 ||
        !on_shape(table, key, m, key->threads, &estimate)) {
        return false;
    }
    estimate.noisy = estimate.spread_us > TND_NOISY_FRAC * estimate.us;
    *out = estimate;
    return true;
}

/* ---- one stage over shapes ---- */

/* How the work of a task grows from one shape to another. */
static double work_ratio(enum tandem_task task, double n_ratio, double k_ratio)
{
    if (tnd_task_is(task, TND_TASK_READS_W | TND_TASK_USES_LEFT_W)) {
        return n_ratio * k_ratio; /* N * K weights, or N * K * M products */
    }
    return tnd_task_is(task, TND_TASK_READS_X) ? k_ratio : n_ratio; /* M * K or M * N values */
}

/* Distance of two shapes: the product of both ratios, each inverted if below 1, because costs scale
 * with ratios. */
static double shape_distance(double n_ratio, double k_ratio)
{
    TND_ASSERT(n_ratio > 0 && k_ratio > 0);
    return fmax(n_ratio, 1.0 / n_ratio) * fmax(k_ratio, 1.0 / k_ratio);
}

enum { SMALLER, LARGER, SIDES };

/* A measured shape that has the wanted stage. */
struct neighbour {
    bool found;
    double work; /* its task's work relative to the wanted shape's */
    struct tnd_estimate estimate;
};

/* Finds the first curves of the next nearest shapes of the type on both sides of the wanted one
 * (SMALLER: its task has at most as much work, LARGER: at least) that are farther than io_distance,
 * which is set to their distance; -1: none. The table keeps the shapes of a type together. */
static void next_nearest(const struct tandem_table *table, const struct tnd_curve_key *wanted,
                         double io_distance[SIDES], int out_at[SIDES])
{
    double nearest[SIDES] = {INFINITY, INFINITY};
    struct tnd_curve_key probe = {0};
    probe.type = wanted->type;
    out_at[SMALLER] = out_at[LARGER] = -1;
    for (int at = tnd_table_lower_bound(table, &probe);
         at < table->n_curves && table->curves[at].key.type == wanted->type;
         at = tnd_table_next_shape(table, at)) {
        const struct tnd_curve_key *shape = &table->curves[at].key;
        double n_ratio = (double)wanted->n / (double)shape->n;
        double k_ratio = (double)wanted->k / (double)shape->k;
        double size = n_ratio * k_ratio;
        if (!(size <= TND_SHAPE_RATIO && size >= 1.0 / TND_SHAPE_RATIO) ||
            strcmp(shape->op, wanted->op) != 0) {
            continue;
        }
        double ratio = work_ratio((enum tandem_task)wanted->task, n_ratio, k_ratio);
        double distance = shape_distance(n_ratio, k_ratio);
        for (int s = 0; s < SIDES; s++) {
            if ((s == LARGER ? ratio <= 1.0 : ratio >= 1.0) && distance > io_distance[s] &&
                distance < nearest[s]) {
                nearest[s] = distance;
                out_at[s] = at;
            }
        }
    }
    io_distance[SMALLER] = nearest[SMALLER];
    io_distance[LARGER] = nearest[LARGER];
}

static void find_neighbours(const struct tandem_table *table, const struct tnd_curve_key *wanted,
                            int64_t m, int threads, struct neighbour out[SIDES])
{
    double distance[SIDES] = {0, 0};
    bool is_over[SIDES] = {false, false};
    for (int tries = 0; tries < TND_SHAPES_TRIED && !(is_over[SMALLER] && is_over[LARGER]);
         tries++) {
        int at[SIDES];
        next_nearest(table, wanted, distance, at);
        for (int s = 0; s < SIDES; s++) {
            is_over[s] = is_over[s] || at[s] < 0;
            if (is_over[s]) {
                continue;
            }
            struct tnd_curve_key key = *wanted;
            key.n = table->curves[at[s]].key.n;
            key.k = table->curves[at[s]].key.k;
            out[s].found = is_over[s] = on_shape(table, &key, m, threads, &out[s].estimate);
            out[s].work =
                1.0 / work_ratio((enum tandem_task)wanted->task, (double)wanted->n / (double)key.n,
                                 (double)wanted->k / (double)key.k);
        }
    }
}

/* Interpolates on the line through the nearest smaller and the nearest larger measured shape: a
 * stage has a fixed cost (a hand-off, a call), which scaling only one of them would scale too. With
 * a neighbour on one side only, its time is scaled. */
static bool between_shapes(const struct tandem_table *table, const struct tnd_curve_key *wanted,
                           int64_t m, int threads, struct tnd_estimate *out)
{
    struct neighbour found[SIDES] = {{0}};
    find_neighbours(table, wanted, m, threads, found);
    const struct neighbour smaller = found[SMALLER];
    const struct neighbour larger = found[LARGER];
    if (!smaller.found && !larger.found) {
        return false;
    }
    if (smaller.found && larger.found && smaller.work < larger.work) {
        double part = (1.0 - smaller.work) / (larger.work - smaller.work);
        const struct tnd_estimate *a = &smaller.estimate;
        const struct tnd_estimate *b = &larger.estimate;
        out->us = a->us + part * (b->us - a->us);
        out->error_us = a->error_us + part * (b->error_us - a->error_us);
        out->noise_us = a->noise_us + part * (b->noise_us - a->noise_us);
        out->spread_us = a->spread_us + part * (b->spread_us - a->spread_us);
        out->below_us = a->below_us + part * (b->below_us - a->below_us);
        out->above_us = a->above_us + part * (b->above_us - a->above_us);
    } else {
        const struct neighbour *only = smaller.found ? &smaller : &larger;
        out->us = only->estimate.us / only->work;
        out->error_us = only->estimate.error_us / only->work;
        out->noise_us = only->estimate.noise_us / only->work;
        out->spread_us = only->estimate.spread_us / only->work;
        out->below_us = only->estimate.below_us / only->work;
        out->above_us = only->estimate.above_us / only->work;
    }
    out->stale =
        (smaller.found && smaller.estimate.stale) || (larger.found && larger.estimate.stale);
    out->outside = fmax(smaller.estimate.outside, larger.estimate.outside);
    out->error_us += out->us * TND_ERROR_SHAPE;
    out->measured_shape = false;
    return true;
}

static bool estimate_stage(const struct tandem_table *table, const struct tnd_table_stage *stage,
                           enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                           int64_t m, int threads, bool is_warm, struct tnd_estimate *out)
{
    if (table == NULL || stage->backend[0] == '\0' || n < 1 || k < 1 || m < 1 || threads < 1) {
        return false;
    }
    struct tnd_curve_key key;
    tnd_stage_key(stage, (int)which, type, n, k, threads, &key);
    threads = key.threads;
    key.threads = 0; /* any */
    struct tnd_estimate estimate = {0};
    key.warm = is_warm;
    bool found = is_warm && on_shape(table, &key, m, threads, &estimate);
    key.warm = false;
    bool is_moved = tnd_task_is(stage->task, TND_TASK_FETCHES) && table->version != 1;
    if (!found && !on_shape(table, &key, m, threads, &estimate) &&
        (is_moved || !between_shapes(table, &key, m, threads, &estimate))) {
        return false;
    }
    estimate.noisy = estimate.spread_us > TND_NOISY_FRAC * estimate.us;
    *out = estimate;
    return true;
}

bool tnd_estimate_stage(const struct tandem_table *table, const struct tnd_table_stage *stage,
                        enum tandem_stage which, enum tandem_type type, int64_t n, int64_t k,
                        int64_t m, int threads, struct tnd_estimate *out)
{
    return estimate_stage(table, stage, which, type, n, k, m, threads, false, out);
}

/* Times of a table may be so large that computing with them gives NaN: then the error is unknown.
 */
static double as_error(double us)
{
    return us >= 0 ? us : INFINITY;
}

bool tnd_estimate_stages(const struct tandem_table *table, const struct tnd_table_profile *profile,
                         enum tandem_type type, int64_t n, int64_t k, int64_t m, int threads,
                         bool is_warm, struct tnd_estimate *out_stages, struct tnd_estimate *out)
{
    struct tnd_estimate sum = {.measured_shape = true};
    struct tnd_estimate stages[TANDEM_STAGES] = {{0}};
    int n_stages = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (profile->stage[s].backend[0] == '\0') {
            continue;
        }
        if (!estimate_stage(table, &profile->stage[s], (enum tandem_stage)s, type, n, k, m, threads,
                            is_warm, &stages[s])) {
            if (tnd_task_is(profile->stage[s].task, TND_TASK_FETCHES)) {
                continue; /* a transfer, see moves.h */
            }
            return false;
        }
        stages[s].error_us = as_error(stages[s].error_us);
        stages[s].noise_us = as_error(stages[s].noise_us);
        stages[s].spread_us = as_error(stages[s].spread_us);
        sum.us += stages[s].us;
        sum.error_us += stages[s].error_us;
        sum.noise_us += stages[s].noise_us;
        sum.spread_us += stages[s].spread_us;
        sum.below_us += stages[s].below_us;
        sum.above_us += stages[s].above_us;
        sum.outside = fmax(sum.outside, stages[s].outside);
        sum.stale = sum.stale || stages[s].stale;
        sum.measured_shape = sum.measured_shape && stages[s].measured_shape;
        n_stages++;
    }
    if (n_stages == 0) {
        return false;
    }
    sum.noisy = sum.spread_us > TND_NOISY_FRAC * sum.us;
    *out = sum;
    memcpy(out_stages, stages, sizeof(stages));
    return true;
}

bool tnd_estimate_profile(const struct tandem_table *table, const struct tnd_table_profile *profile,
                          enum tandem_type type, int64_t n, int64_t k, int64_t m, int threads,
                          struct tnd_estimate *out, double *out_stage_us)
{
    struct tnd_estimate stages[TANDEM_STAGES];
    struct tnd_moves moves;
    struct tnd_estimate sum;
    if (!tnd_estimate_stages(table, profile, type, n, k, m, threads, false, stages, &sum) ||
        !tnd_estimate_moves(table, profile, n, k, m, &moves)) {
        return false;
    }
    *out = sum;
    out->us += moves.inside.us + moves.x.us + moves.y.us;
    out->error_us += moves.inside.error_us + moves.x.error_us + moves.y.error_us;
    for (int s = 0; s < TANDEM_STAGES && out_stage_us != NULL; s++) {
        out_stage_us[s] = stages[s].us + (s == TANDEM_STAGE_FINALIZE ? moves.y.us : 0);
    }
    return true;
}
