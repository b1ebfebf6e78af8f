/* SPDX-License-Identifier: MIT
 * Finds cells that deviate. Each stage of each distinct problem has a watch with the ratios of
 * measured to predicted time in the last undisturbed graphs; a deviation shared by all watches or
 * by the probe is one of the machine, not of a cell. Cases are followed as long as they exist;
 * observer_table.c applies them. */
#include "runtime/observer_drift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/task.h"
#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "ggml-like/tnd_tensor.h"
#include "measure/probe.h"
#include "tune/estimate.h"
#include "tune/moves.h"
#include "tune/policy.h"

enum {
    WATCHES = 1024, /* power of two; at most half full */
    MOST_EVENTS = 8 /* per graph; further cases wait for the next graph */
};

/* Subject of a prediction. A later prediction of the same cell has its own watch. */
struct identity {
    int64_t n, k, m;
    int32_t type, threads;
    float predicted_us;
    uint8_t stage, task, slot, parallel;
};

struct watch {
    struct identity id; /* threads 0: empty */
    bool is_reported;   /* has become a case */
    bool is_device;     /* a device with its own memory, which the machine's load does not slow */
    uint8_t strikes;    /* consecutive graphs that found it wrong */
    uint8_t returns;    /* times that its case was withdrawn */
    uint64_t seen;      /* number of the last graph with it */
    uint32_t count;     /* in that graph: number, sum and maximum of stages' times */
    float sum_us, longest_us;
    uint32_t n_ratios; /* in total */
    float ratios[TND_DRIFT_RING];
    float median;
};

struct tnd_drift {
    struct tnd_drift_cases cases;
    uint64_t n_graphs;
    int n_used;
    int touched[WATCHES / 2]; /* watches of the current graph */
    int n_touched;
    struct tnd_drift_event events[MOST_EVENTS]; /* of the graph at hand */
    int n_events;
    double clock;      /* of the current graph, as in struct tnd_drift_moment */
    double machine[2]; /* factors of one thread and of teams in this graph; < 0: not computed */
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

const struct tnd_drift_event *tnd_drift_event(const struct tnd_drift *drift, int i)
{
    return i >= 0 && i < drift->n_events ? &drift->events[i] : NULL;
}

static void tell(struct tnd_drift *drift, enum tnd_drift_news news, const struct tnd_drift_case *of)
{
    TND_ASSERT(drift->n_events < MOST_EVENTS);
    drift->events[drift->n_events++] = (struct tnd_drift_event){news, *of};
}

/* ---- watching ---- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a;
    float y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Median of n > 0 values, which it sorts. */
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

/* Finds or adds a watch; NULL: full. */
static struct watch *find_identity(struct tnd_drift *drift, const struct identity *id)
{
    size_t at = (size_t)tnd_hash_words(id, sizeof(*id)) & (WATCHES - 1);
    while (drift->watches[at].id.threads != 0 &&
           memcmp(&drift->watches[at].id, id, sizeof(*id)) != 0) {
        at = (at + 1) & (WATCHES - 1);
    }
    struct watch *watch = &drift->watches[at];
    if (watch->id.threads == 0) {
        if (2 * (drift->n_used + 1) > WATCHES) {
            return NULL;
        }
        drift->n_used++;
        watch->id = *id;
    }
    return watch;
}

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
    id.threads = config->parallel || config->own_threads ? choice->n_threads : 1;
    id.predicted_us = choice->predicted_us[stage];
    id.stage = (uint8_t)stage;
    id.task = config->task;
    id.slot = config->backend;
    id.parallel = config->parallel;
    return find_identity(drift, &id);
}

/* Watch of a transfer to or from a device. */
static struct watch *find_move(struct tnd_drift *drift, const struct tandem_table *table,
                               const struct tnd_registry *registry, int slot,
                               enum tnd_direction direction, size_t bytes)
{
    const char *name = tnd_registry_name(registry, slot);
    struct identity id;
    memset(&id, 0, sizeof(id));
    id.m = (int64_t)bytes;
    id.threads = 1;
    id.stage = (uint8_t)(TANDEM_STAGES + (int)direction);
    id.slot = (uint8_t)slot;
    id.predicted_us = (float)tnd_estimate_transfer(table, name, direction, id.m).us;
    return id.predicted_us > 0 ? find_identity(drift, &id) : NULL;
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

/* Adds the mean of a graph's stages; of several without the longest, which may have been
 * interrupted. */
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

/* Factor by which everything is slower than predicted now, by the watches of teams or of single
 * threads: another program slows teams more. 0: too few watches. */
static double machine_factor(const struct tnd_drift *drift, bool is_parallel)
{
    float medians[WATCHES / 2];
    int n = 0;
    for (int i = 0; i < WATCHES; i++) {
        const struct watch *watch = &drift->watches[i];
        if (watch->n_ratios >= TND_DRIFT_CELLS &&
            watch->seen + TND_DRIFT_RECENT > drift->n_graphs &&
            (watch->id.threads > 1) == is_parallel && !watch->is_device && n < WATCHES / 2) {
            medians[n++] = watch->median;
        }
    }
    return n >= TND_DRIFT_CELLS ? (double)median_of(medians, n) : 0.0;
}

/* Deviation of a median as a factor: the smallest of the raw one and those corrected for the
 * machine's factor and for the CPU's clock rate. 1: none. */
static double deviation_of(double raw, double machine, double clock)
{
    double by_machine = machine > 0 ? raw / machine : raw;
    double by_clock = clock > 0 ? raw / clock : raw;
    double slow = fmin(raw, fmin(by_machine, by_clock));
    double fast = fmax(raw, fmax(by_machine, by_clock));
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

/* Fills in the cell of a watch. */
static void cell_of(const struct watch *watch, const struct tnd_registry *registry,
                    const struct tandem_table *table, const struct tandem_task_config *config,
                    bool is_warm, struct tnd_drift_case *out)
{
    struct tnd_curve_key *key = &out->key;
    memset(out, 0, sizeof(*out));
    strncpy(key->backend, tnd_registry_name(registry, watch->id.slot), sizeof(key->backend) - 1);
    out->m = watch->id.m;
    key->stage = watch->id.stage;
    if (watch->id.stage >= TANDEM_STAGES) {
        strcpy(key->op, TND_DRIFT_MOVE);
        key->threads = 1;
        return;
    }
    strcpy(key->op, "mul_mat");
    key->type = (enum tandem_type)watch->id.type;
    key->n = watch->id.n;
    key->k = watch->id.k;
    key->task = watch->id.task;
    key->parallel = config->parallel;
    key->own_threads = config->own_threads;
    key->threads = config->parallel || config->own_threads ? watch->id.threads : 1;
    key->warm = is_warm;
    key->warm = is_warm && tnd_table_find(table, key) != NULL;
}

/* Relative uncertainty of the table's own time. */
static double uncertainty_of(const struct tandem_table *table, const struct tnd_drift_case *one)
{
    struct tnd_estimate estimate;
    bool known = tnd_estimate_key(table, &one->key, one->m, &estimate) && estimate.us > 0;
    return known ? estimate.error_us / estimate.us : TND_DRIFT_SHARE;
}

/* Cached machine_factor of the current graph. */
static double machine_now(struct tnd_drift *drift, bool is_parallel)
{
    if (drift->machine[is_parallel] < 0) {
        drift->machine[is_parallel] = machine_factor(drift, is_parallel);
    }
    return drift->machine[is_parallel];
}

/* Whether the watch deviates; if so, fills in its case. */
static bool deviates(struct tnd_drift *drift, const struct watch *watch,
                     const struct tandem_table *table, struct tnd_drift_case *io_case)
{
    double plain = fabs((double)watch->median - 1.0);
    double predicted_us = (double)watch->id.predicted_us;
    if (watch->n_ratios < TND_DRIFT_RUNS || plain < TND_DRIFT_SHARE / 2 ||
        plain * predicted_us < TND_RULE_US) {
        return false; /* the usual case */
    }
    const bool is_device = watch->is_device;
    double machine = is_device ? 1 : machine_now(drift, watch->id.threads > 1);
    double factor = deviation_of((double)watch->median, machine, is_device ? 0 : drift->clock);
    double times = fmax(factor, 1 / factor);
    double noise = noise_of(watch);
    double least =
        fmax(machine > 0 ? TND_DRIFT_SHARE : TND_DRIFT_SHARE_ALONE, TND_CLEAR_SIGMAS * noise);
    if (times < 1 + least || times < 1 + TND_CLEAR_SIGMAS * uncertainty_of(table, io_case)) {
        return false;
    }
    io_case->predicted_us = predicted_us;
    io_case->measured_us = predicted_us * factor;
    io_case->noise = noise;
    return true;
}

/* Finds the case of a cell, or NULL. */
static struct tnd_drift_case *find_case(struct tnd_drift *drift, const struct tnd_drift_case *cell)
{
    for (int i = 0; i < drift->cases.n; i++) {
        struct tnd_drift_case *one = &drift->cases.list[i];
        if (one->m == cell->m && tnd_curve_key_compare(&one->key, &cell->key) == 0) {
            return one;
        }
    }
    return NULL;
}

/* Clears the watches of the case's cell: only new times count from now on. */
static void begin_anew(struct tnd_drift *drift, const struct tnd_drift_case *one, int returns)
{
    for (int i = 0; i < WATCHES; i++) {
        struct watch *watch = &drift->watches[i];
        const struct identity *id = &watch->id;
        if (id->threads == one->key.threads && id->n == one->key.n && id->k == one->key.k &&
            id->m == one->m && id->type == (int32_t)one->key.type && id->stage == one->key.stage &&
            id->task == one->key.task) {
            watch->n_ratios = 0;
            watch->strikes = 0;
            watch->is_reported = false;
            watch->returns =
                (uint8_t)(watch->returns + returns < TND_DRIFT_DOUBLINGS ? watch->returns + returns
                                                                         : TND_DRIFT_DOUBLINGS);
        }
    }
}

static void give_back(struct tnd_drift *drift, struct tnd_drift_case *one)
{
    struct tnd_drift_cases *cases = &drift->cases;
    tell(drift, TND_DRIFT_GIVEN_BACK, one);
    begin_anew(drift, one, 1);
    cases->n--;
    memmove(one, one + 1, (size_t)(&cases->list[cases->n] - one) * sizeof(*one));
}

static void set_trial(struct tnd_drift *drift, struct tnd_drift_case *one, bool is_on_trial)
{
    one->is_on_trial = is_on_trial;
    one->good = 0;
    if (is_on_trial) {
        one->trial_end = drift->n_graphs + TND_DRIFT_TRIAL_GRAPHS;
        begin_anew(drift, one, 0);
    } else {
        one->next_trial = drift->n_graphs + one->trial_runs;
        one->trial_runs = one->trial_runs < UINT32_MAX / TND_DRIFT_TRIAL_GROWS
                              ? one->trial_runs * TND_DRIFT_TRIAL_GROWS
                              : UINT32_MAX;
    }
    tell(drift, TND_DRIFT_TRIED, one);
}

/* A cell with a case has run, in an older or newer plan or in a trial. Returns whether it took its
 * original predicted time. */
static bool is_good(struct tnd_drift *drift, const struct watch *watch,
                    const struct tnd_drift_case *one)
{
    double raw = (double)watch->median * (double)watch->id.predicted_us / one->predicted_us;
    double factor = watch->is_device ? raw
                                     : deviation_of(raw, machine_now(drift, watch->id.threads > 1),
                                                    drift->clock);
    return watch->n_ratios >= TND_DRIFT_RUNS && fabs(factor - 1) < TND_DRIFT_SHARE / 2;
}

static bool counts_enough(uint8_t *io_count, bool is_so, int least)
{
    *io_count = is_so ? (uint8_t)(*io_count + (*io_count < UINT8_MAX)) : 0;
    return *io_count >= least;
}

static void add_case(struct tnd_drift *drift, struct watch *watch, struct tnd_drift_case *one)
{
    one->trial_runs = TND_DRIFT_TRIAL_RUNS;
    one->next_trial = drift->n_graphs + TND_DRIFT_TRIAL_RUNS;
    drift->cases.list[drift->cases.n++] = *one;
    tell(drift, TND_DRIFT_FOUND, one);
    begin_anew(drift, one, 0);
    watch->is_reported = true;
}

/* Follows the case of the watch's cell; `found` is the case by its current times. */
static void follow_case(struct tnd_drift *drift, struct watch *watch, struct tnd_drift_case *one,
                        const struct tnd_drift_case *found, bool is_wrong)
{
    if (counts_enough(&one->good, is_good(drift, watch, one), TND_DRIFT_STRIKES)) {
        give_back(drift, one);
    } else if (is_wrong && one->is_on_trial) {
        set_trial(drift, one, false);
        watch->is_reported = true;
    } else if (is_wrong) { /* neither as predicted at first nor as corrected */
        one->measured_us = found->measured_us;
        one->noise = found->noise;
        tell(drift, TND_DRIFT_FOUND, one);
        watch->is_reported = true;
    }
}

static void judge(struct tnd_drift *drift, struct watch *watch, const struct tandem_table *table,
                  const struct tnd_registry *registry, const struct tandem_plan_node *choice,
                  bool is_warm)
{
    struct tnd_drift_case found;
    if (drift->n_events >= MOST_EVENTS - 1 ||
        (drift->cases.n == 0 && fabs((double)watch->median - 1) < TND_DRIFT_SHARE / 2)) {
        watch->strikes = 0;
        return;
    }
    cell_of(watch, registry, table, &choice->stage[watch->id.stage % TANDEM_STAGES], is_warm,
            &found);
    struct tnd_drift_case *one = find_case(drift, &found);
    bool is_wrong =
        !watch->is_reported && counts_enough(&watch->strikes, deviates(drift, watch, table, &found),
                                             TND_DRIFT_STRIKES << watch->returns);
    if (one != NULL) {
        follow_case(drift, watch, one, &found, is_wrong);
    } else if (is_wrong && drift->cases.n < TND_DRIFT_MAX_CASES) {
        add_case(drift, watch, &found);
    }
}

/* Starts and ends trials. One case at a time is planned with its original time: it may have been
 * found on a bad day. */
static void hold_trials(struct tnd_drift *drift)
{
    struct tnd_drift_case *due = NULL;
    for (int i = 0; i < drift->cases.n; i++) {
        struct tnd_drift_case *one = &drift->cases.list[i];
        if (one->is_on_trial && drift->n_graphs < one->trial_end) {
            return;
        }
        if (one->is_on_trial) { /* the trial was not run */
            set_trial(drift, one, false);
            return;
        }
        due = due == NULL && drift->n_graphs >= one->next_trial ? one : due;
    }
    if (due != NULL) {
        set_trial(drift, due, true);
    }
}

/* ---- a run ---- */

/* Compares only plain products: other operations may run in one step with their neighbours. */
static bool is_compared(const struct tnd_step_time *time, const struct tandem_graph *graph,
                        const struct tandem_plan *plan)
{
    return time->kind == TND_STEP_WORK && time->stage < TANDEM_STAGES &&
           time->role == TND_ITEM_WHOLE && /* no part of a product: the table has whole ones */
           graph->nodes[time->node]->op == TANDEM_OP_MUL_MAT &&
           plan->nodes[time->node].reason == TANDEM_REASON_TABLE && /* not changed by the program */
           plan->nodes[time->node].predicted_us[time->stage] > 0;
}

/* Whether the machine was quiet while a stage ran; if so, `out_slowed` is the factor of the probe,
 * at least 1. */
static bool is_quiet(const struct tnd_drift_moment *moment, const struct tnd_step_time *time,
                     bool is_team, double *out_slowed)
{
    double slowed = is_team ? moment->team : moment->caller;
    *out_slowed = fmax(slowed, 1.0);
    return slowed > 0 && slowed < 1 + TND_DRIFT_SHARE / 2 && tnd_time_is_quiet(time);
}

/* Adds the times that count to their watches; `out_nodes` gets a node of each touched watch. */
static void watch_times(struct tnd_drift *drift, const struct tandem_table *table,
                        const struct tnd_registry *registry, const struct tandem_graph *graph,
                        const struct tandem_plan *plan, const struct tnd_drift_moment *moment,
                        const struct tnd_step_time *times, int n_times, int *out_nodes)
{
    const uint32_t own = tnd_registry_own_slots(registry);
    for (int i = 0; i < n_times; i++) {
        const struct tnd_step_time *time = &times[i];
        const struct tandem_plan_node *choice = &plan->nodes[time->node];
        const bool is_device = (own >> time->backend & 1) != 0;
        struct watch *watch = NULL;
        double slowed = 1;
        if (time->end_ns < time->begin_ns) {
            continue;
        }
        if (is_compared(time, graph, plan) &&
            tnd_task_is(choice->stage[time->stage].task, TND_TASK_STREAMS_W)) {
            watch = find_move(drift, table, registry, time->backend, TND_UPLOAD,
                              tandem_tensor_bytes(graph->nodes[time->node]->src[0]));
        } else if (is_compared(time, graph, plan)) {
            const struct tandem_task_config *config = &choice->stage[time->stage];
            bool is_team = choice->n_threads > 1 && (config->parallel || config->own_threads);
            if (is_device || is_quiet(moment, time, is_team, &slowed)) {
                watch = find_watch(drift, graph->nodes[time->node], choice, (int)time->stage);
            }
        } else if (time->kind == TND_STEP_UPLOAD || time->kind == TND_STEP_DOWNLOAD) {
            watch =
                find_move(drift, table, registry, time->backend,
                          time->kind == TND_STEP_UPLOAD ? TND_UPLOAD : TND_DOWNLOAD, time->bytes);
        }
        if (watch != NULL) {
            int n = drift->n_touched;
            watch->is_device = is_device;
            add_time(drift, watch, (float)((double)(time->end_ns - time->begin_ns) / 1e3 / slowed));
            if (drift->n_touched > n) {
                out_nodes[n] = time->node;
            }
        }
    }
}

int tnd_drift_observe(struct tnd_drift *drift, const struct tandem_table *table,
                      const struct tnd_registry *registry, const struct tandem_graph *graph,
                      const struct tandem_plan *plan, bool is_warm,
                      const struct tnd_drift_moment *moment, const struct tnd_step_time *times,
                      int n_times)
{
    if (2 * (drift->n_used + 8) > WATCHES) {
        forget_watches(drift); /* too many distinct problems: starts over */
    }
    int nodes[WATCHES / 2]; /* of the touched watches */
    drift->n_graphs++;
    drift->n_touched = 0;
    drift->n_events = 0;
    drift->clock = moment->clock;
    drift->machine[0] = drift->machine[1] = -1;
    watch_times(drift, table, registry, graph, plan, moment, times, n_times, nodes);
    for (int i = 0; i < drift->n_touched; i++) {
        close_watch(&drift->watches[drift->touched[i]]);
    }
    int n_touched = drift->n_touched; /* find_watch adds none below: all exist */
    for (int i = 0; i < n_touched; i++) {
        struct watch *watch = &drift->watches[drift->touched[i]];
        const struct tandem_plan_node *choice = &plan->nodes[nodes[i]];
        judge(drift, watch, table, registry, choice, is_warm);
    }
    if (drift->n_events < MOST_EVENTS) {
        hold_trials(drift);
    }
    return drift->n_events;
}
