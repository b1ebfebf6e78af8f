/* SPDX-License-Identifier: MIT
 * Finding cells that deviate. Each stage of each different problem has a watch with the ratios of
 * measured to predicted time in the last graphs; what all watches share is the machine, not a cell.
 * What follows from a case is in drift_table.c. */
#include "tune/drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/drift_internal.h"
#include "tune/estimate.h"
#include "tune/policy.h"

enum { WATCHES = 1024 }; /* power of two; at most half of them are used */

/* What a prediction is about. A later prediction of the same cell has a watch of its own. */
struct identity {
    int64_t n, k, m;
    int32_t type, threads;
    float predicted_us;
    uint8_t stage, task, slot, parallel;
};

struct watch {
    struct identity id; /* threads 0: empty */
    bool is_reported;   /* a case came of it */
    uint64_t seen;      /* number of the graph */
    uint32_t count;     /* in that graph: stages, their time, the longest */
    float sum_us, longest_us;
    uint32_t n_ratios; /* ever */
    float ratios[TND_DRIFT_RING];
    float median;
};

struct tnd_drift {
    struct tnd_drift_cases cases;
    uint64_t n_graphs;
    int n_used;
    int touched[WATCHES / 2]; /* watches of the graph at hand */
    int n_touched;
    double machine[2]; /* factor of one thread and of teams in the graph at hand; < 0: not asked */
    struct watch watches[WATCHES];
};

struct tnd_drift *tnd_drift_new(void)
{
    return tnd_calloc(1, sizeof(struct tnd_drift));
}

void tnd_drift_free(struct tnd_drift *drift)
{
    tnd_free(drift);
}

static void forget_watches(struct tnd_drift *drift)
{
    memset(drift->watches, 0, sizeof(drift->watches));
    drift->n_used = 0;
    drift->n_touched = 0;
}

void tnd_drift_clear(struct tnd_drift *drift)
{
    forget_watches(drift);
    drift->cases.n = 0;
}

const struct tnd_drift_cases *tnd_drift_cases(const struct tnd_drift *drift)
{
    return &drift->cases;
}

int tnd_drift_count(const struct tnd_drift *drift)
{
    return drift->cases.n;
}

const struct tnd_drift_case *tnd_drift_at(const struct tnd_drift *drift, int i)
{
    return i >= 0 && i < drift->cases.n ? &drift->cases.list[i] : NULL;
}

/* ---- watching ---- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Of n > 0 values, which are sorted. */
static float median_of(float *values, int n)
{
    TND_ASSERT(n > 0);
    qsort(values, (size_t)n, sizeof(values[0]), compare_floats);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int filled(const struct watch *watch)
{
    return watch->n_ratios < TND_DRIFT_RING ? (int)watch->n_ratios : TND_DRIFT_RING;
}

/* NULL: there is no room, or the stage is none whose time says anything. */
static struct watch *find_watch(struct tnd_drift *drift, const tandem_tensor *node,
                                const struct tandem_plan_node *choice, int stage)
{
    const struct tandem_task_config *config = &choice->stage[stage];
    struct identity id;
    memset(&id, 0, sizeof(id));
    id.n = node->ne[0];
    id.m = node->ne[1];
    id.k = node->src[0]->ne[0];
    id.type = (int32_t)node->src[0]->type;
    id.threads = choice->n_threads;
    id.predicted_us = choice->predicted_us[stage];
    id.stage = (uint8_t)stage;
    id.task = config->task;
    id.slot = config->backend;
    id.parallel = config->parallel;
    size_t at = (size_t)tnd_hash_words(&id, sizeof(id)) & (WATCHES - 1);
    while (drift->watches[at].id.threads != 0 &&
           memcmp(&drift->watches[at].id, &id, sizeof(id)) != 0) {
        at = (at + 1) & (WATCHES - 1);
    }
    struct watch *watch = &drift->watches[at];
    if (watch->id.threads == 0) {
        if (2 * (drift->n_used + 1) > WATCHES) {
            return NULL;
        }
        drift->n_used++;
        watch->id = id;
    }
    return watch;
}

static void add_time(struct tnd_drift *drift, struct watch *watch, float us)
{
    TND_ASSERT(watch->id.threads > 0 && drift->n_touched <= WATCHES / 2);
    if (watch->seen != drift->n_graphs) {
        watch->seen = drift->n_graphs;
        watch->count = 0;
        watch->sum_us = 0;
        watch->longest_us = 0;
        drift->touched[drift->n_touched++] = (int)(watch - drift->watches);
    }
    watch->count++;
    watch->sum_us += us;
    watch->longest_us = us > watch->longest_us ? us : watch->longest_us;
}

/* The mean of a graph's stages; of several without the longest, which may have been interrupted. */
static void close_watch(struct watch *watch)
{
    TND_ASSERT(watch->count > 0 && watch->id.predicted_us > 0);
    float us = watch->count > 2 ? (watch->sum_us - watch->longest_us) / (float)(watch->count - 1)
                                : watch->sum_us / (float)watch->count;
    float sorted[TND_DRIFT_RING];
    watch->ratios[watch->n_ratios++ % TND_DRIFT_RING] = us / watch->id.predicted_us;
    memcpy(sorted, watch->ratios, sizeof(sorted));
    watch->median = median_of(sorted, filled(watch));
}

/* ---- judging ---- */

/* How many times as long as predicted everything takes now, as the watches of teams or those of one
 * thread tell: another program slows teams more. 0: too few to know. */
static double machine_factor(const struct tnd_drift *drift, bool is_parallel)
{
    float medians[WATCHES / 2];
    int n = 0;
    for (int i = 0; i < WATCHES; i++) {
        const struct watch *watch = &drift->watches[i];
        if (watch->n_ratios >= TND_DRIFT_CELLS &&
            watch->seen + TND_DRIFT_RECENT > drift->n_graphs &&
            (watch->id.threads > 1) == is_parallel && n < WATCHES / 2) {
            medians[n++] = watch->median;
        }
    }
    return n >= TND_DRIFT_CELLS ? (double)median_of(medians, n) : 0.0;
}

/* Deviation in the terms of "times as long": the smaller of what the clock says and what is left
 * when the machine's own factor is taken out. 1: none. */
static double deviation_of(const struct watch *watch, double machine)
{
    double raw = (double)watch->median;
    double rest = machine > 0 ? raw / machine : raw;
    double slow = fmin(raw, rest);
    double fast = fmax(raw, rest);
    return slow > 1.0 ? slow : fast < 1.0 ? fast : 1.0;
}

static double noise_of(const struct watch *watch)
{
    TND_ASSERT(watch->n_ratios > 0);
    float off[TND_DRIFT_RING];
    int n = filled(watch);
    for (int i = 0; i < n; i++) {
        off[i] = fabsf(watch->ratios[i] - watch->median);
    }
    return TND_MAD_TO_SIGMA * (double)median_of(off, n) / (double)watch->median;
}

/* The cell behind a watch. */
static void cell_of(const struct watch *watch, const struct tnd_registry *registry,
                    const struct tandem_table *table, const struct tandem_task_config *config,
                    bool is_warm, struct tnd_drift_case *out)
{
    struct tnd_curve_key *key = &out->key;
    memset(out, 0, sizeof(*out));
    strcpy(key->op, "mul_mat");
    key->type = (enum tandem_type)watch->id.type;
    key->n = watch->id.n;
    key->k = watch->id.k;
    strncpy(key->backend, tnd_registry_name(registry, watch->id.slot), sizeof(key->backend) - 1);
    key->stage = watch->id.stage;
    key->task = watch->id.task;
    key->parallel = config->parallel;
    key->own_threads = config->own_threads;
    key->threads = config->parallel || config->own_threads ? watch->id.threads : 1;
    key->warm = is_warm;
    key->warm = is_warm && tnd_table_find(table, key) != NULL;
    out->m = watch->id.m;
}

/* What the table itself does not know better, as a fraction. */
static double uncertainty_of(const struct tandem_table *table, const struct tnd_drift_case *one)
{
    struct tnd_estimate estimate;
    bool known = tnd_estimate_key(table, &one->key, one->m, &estimate) && estimate.us > 0;
    return known ? estimate.error_us / estimate.us : TND_DRIFT_SHARE;
}

static double machine_now(struct tnd_drift *drift, bool is_parallel)
{
    if (drift->machine[is_parallel] < 0) {
        drift->machine[is_parallel] = machine_factor(drift, is_parallel);
    }
    return drift->machine[is_parallel];
}

static void judge(struct tnd_drift *drift, struct watch *watch, const struct tandem_table *table,
                  const struct tnd_registry *registry, const struct tandem_task_config *config,
                  bool is_warm)
{
    if (watch->is_reported || watch->n_ratios < TND_DRIFT_RUNS ||
        drift->cases.n == TND_DRIFT_MAX_CASES) {
        return;
    }
    double plain = fabs((double)watch->median - 1.0);
    double predicted_us = (double)watch->id.predicted_us;
    if (plain < TND_DRIFT_SHARE / 2 || plain * predicted_us < TND_DRIFT_US) {
        return; /* the usual case */
    }
    double machine = machine_now(drift, watch->id.threads > 1);
    double factor = deviation_of(watch, machine);
    double times = fmax(factor, 1 / factor);
    double noise = noise_of(watch);
    double least =
        fmax(machine > 0 ? TND_DRIFT_SHARE : TND_DRIFT_SHARE_ALONE, TND_DRIFT_SIGMAS * noise);
    struct tnd_drift_case one;
    if (times < 1 + least) {
        return;
    }
    cell_of(watch, registry, table, config, is_warm, &one);
    if (times < 1 + TND_DRIFT_SIGMAS * uncertainty_of(table, &one)) {
        return;
    }
    one.predicted_us = predicted_us;
    one.measured_us = predicted_us * factor;
    one.noise = noise;
    watch->is_reported = true;
    drift->cases.list[drift->cases.n++] = one;
}

/* ---- a run ---- */

/* Plain products alone: other operations may run as one step with their neighbours. */
static bool is_compared(const struct tnd_registry *registry, const struct tnd_step_time *time,
                        const struct tandem_graph *graph, const struct tandem_plan *plan)
{
    if (time->kind != TND_STEP_WORK || time->stage >= TANDEM_STAGES ||
        graph->nodes[time->node]->op != TANDEM_OP_MUL_MAT ||
        plan->nodes[time->node].reason != TANDEM_REASON_TABLE || /* changed by hand, say */
        !(plan->nodes[time->node].predicted_us[time->stage] > 0) || time->end_ns < time->begin_ns) {
        return false;
    }
    /* works of a device end when somebody asks, not when they are done */
    return !tnd_backend_is_async(tnd_registry_backend(registry, time->backend));
}

int tnd_drift_observe(struct tnd_drift *drift, const struct tandem_table *table,
                      const struct tnd_registry *registry, const struct tandem_graph *graph,
                      const struct tandem_plan *plan, bool is_warm,
                      const struct tnd_step_time *times, int n_times)
{
    if (2 * (drift->n_used + 8) > WATCHES) {
        forget_watches(drift); /* many different problems: none of them lasts */
    }
    int before = drift->cases.n;
    int nodes[WATCHES / 2]; /* of the touched watches */
    drift->n_graphs++;
    drift->n_touched = 0;
    drift->machine[0] = drift->machine[1] = -1;
    for (int i = 0; i < n_times; i++) {
        const struct tnd_step_time *time = &times[i];
        if (!is_compared(registry, time, graph, plan)) {
            continue;
        }
        const struct tandem_plan_node *choice = &plan->nodes[time->node];
        struct watch *watch = find_watch(drift, graph->nodes[time->node], choice, (int)time->stage);
        if (watch != NULL) {
            int n = drift->n_touched;
            add_time(drift, watch, (float)(time->end_ns - time->begin_ns) / 1e3f);
            if (drift->n_touched > n) {
                nodes[n] = time->node;
            }
        }
    }
    for (int i = 0; i < drift->n_touched; i++) {
        close_watch(&drift->watches[drift->touched[i]]);
    }
    for (int i = 0; i < drift->n_touched; i++) {
        struct watch *watch = &drift->watches[drift->touched[i]];
        judge(drift, watch, table, registry, &plan->nodes[nodes[i]].stage[watch->id.stage],
              is_warm);
    }
    return drift->cases.n - before;
}
