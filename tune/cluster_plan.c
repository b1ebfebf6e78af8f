/* SPDX-License-Identifier: MIT
 * Shares begin in proportion to speed, as far as memory allows; then any two ranks trade any part
 * of theirs as long as that saves time. Which ranks take part is tried out. */
#include <math.h>
#include <string.h>

#include "tune/cluster.h"
#include "tune/policy.h"

enum { STEPS = TND_CLUSTER_STEPS, ROUNDS = 32, TRIED = 8 };

/* ---- what a plan takes ---- */

static double at_share(const double *values, double share)
{
    const double at = share * (TND_CLUSTER_POINTS - 1);
    int i = (int)at;
    i = i < TND_CLUSTER_POINTS - 2 ? i : TND_CLUSTER_POINTS - 2;
    return values[i] + (at - i) * (values[i + 1] - values[i]);
}

/* Where a rank begins among units, as llama/shard.c divides them. */
static double begin_of(int64_t units, int before)
{
    return floor((double)units * before / STEPS + 0.5);
}

/* What the i-th rank of a plan has of each part, 0 to 1. */
static void find_parts(const struct tnd_cluster_model *model, const struct tnd_cluster_plan *plan,
                       int i, double out[TND_FIT_PARTS])
{
    int before = 0;
    for (int r = 0; r < i; r++) {
        before += plan->shares[r];
    }
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        const int64_t units = model->units[part];
        out[part] = units > 0
                        ? (begin_of(units, before + plan->shares[i]) - begin_of(units, before)) /
                              (double)units
                        : 1;
    }
}

/* Parts between two sums are computed together: ranks wait for the slowest one behind them. */
static const int stretch_of[TND_FIT_PARTS] = {
    [TND_FIT_EMBEDDING] = 0, [TND_FIT_ATTENTION] = 1, [TND_FIT_FFN] = 2,
    [TND_FIT_EXPERTS] = 2,   [TND_FIT_OUTPUT] = 3,    [TND_FIT_OTHER] = 0};
enum { STRETCHES = 4 };

static double messages_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                          enum tnd_fit_phase phase)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double tokens = phase == TND_FIT_PROMPT ? (double)model->prompt_tokens : 1;
    const double sums = 2 * (double)model->n_layers;
    return plan->n < 2
               ? 0
               : sums * tnd_cluster_sum_us(cluster, plan->ranks, plan->n,
                                           4 * (double)model->dim * tokens) +
                     tnd_cluster_gather_us(cluster, plan->ranks, plan->n,
                                           4 * (double)model->vocabulary) +
                     tnd_cluster_gather_us(cluster, plan->ranks, plan->n, 4 * tokens); /* told */
}

/* `plan->link_us` is there. */
static void time_shares(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    double us[TND_FIT_PHASES][STRETCHES] = {{0}};
    double error_us[TND_FIT_PHASES][STRETCHES] = {{0}};
    plan->fits = true;
    for (int i = 0; i < plan->n; i++) {
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        double own_us[TND_FIT_PHASES][STRETCHES] = {{0}};
        double own_error_us[TND_FIT_PHASES][STRETCHES] = {{0}};
        double parts[TND_FIT_PARTS], bytes = 0;
        find_parts(&cluster->model, plan, i, parts);
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            bytes += parts[part] * (double)cluster->model.bytes[part];
            for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
                const struct tnd_cluster_curve *curve = &rank->curves[phase][part];
                own_us[phase][stretch_of[part]] += at_share(curve->us, parts[part]);
                own_error_us[phase][stretch_of[part]] += at_share(curve->error_us, parts[part]);
            }
        }
        plan->bytes[i] = (int64_t)bytes;
        plan->fits = plan->fits && (rank->memory == 0 || plan->bytes[i] <= rank->memory);
        for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
            for (int s = 0; s < STRETCHES; s++) {
                if (own_us[phase][s] > us[phase][s]) {
                    us[phase][s] = own_us[phase][s];
                    error_us[phase][s] = own_error_us[phase][s];
                }
            }
        }
    }
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        plan->us[phase] = plan->link_us[phase];
        plan->error_us[phase] = TND_CLUSTER_LINK_ERROR * plan->link_us[phase];
        for (int s = 0; s < STRETCHES; s++) {
            plan->us[phase] += us[phase][s];
            plan->error_us[phase] += error_us[phase][s];
        }
    }
}

void tnd_cluster_time(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan)
{
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        io_plan->link_us[phase] = messages_us(cluster, io_plan, (enum tnd_fit_phase)phase);
    }
    time_shares(cluster, io_plan);
}

double tnd_cluster_plan_us(const struct tnd_cluster_plan *plan, const double count[TND_FIT_PHASES])
{
    return count[TND_FIT_PROMPT] * plan->us[TND_FIT_PROMPT] +
           count[TND_FIT_GENERATION] * plan->us[TND_FIT_GENERATION];
}

/* ---- shares ---- */

/* Bytes for which ranks have no memory. */
static double missing_bytes(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan)
{
    double missing = 0;
    for (int i = 0; i < plan->n && !plan->fits; i++) {
        const int64_t memory = cluster->ranks[plan->ranks[i]].memory;
        missing += memory > 0 && plan->bytes[i] > memory ? (double)(plan->bytes[i] - memory) : 0;
    }
    return missing;
}

/* What fits comes first. */
static bool is_better(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                      const struct tnd_cluster_plan *a, const struct tnd_cluster_plan *b)
{
    const double a_missing = missing_bytes(cluster, a), b_missing = missing_bytes(cluster, b);
    return a_missing != b_missing ? a_missing < b_missing
                                  : tnd_cluster_plan_us(a, count) < tnd_cluster_plan_us(b, count);
}

/* What a rank would take for all of the model. */
static double alone_us(const struct tnd_cluster_rank *rank, const double count[TND_FIT_PHASES])
{
    double us = 0;
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            us += count[phase] * rank->curves[phase][part].us[TND_CLUSTER_POINTS - 1];
        }
    }
    return us;
}

/* In proportion to speed. */
static void first_shares(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                         struct tnd_cluster_plan *plan)
{
    double all = 0, before = 0;
    int given = 0;
    for (int i = 0; i < plan->n; i++) {
        all += 1 / fmax(alone_us(&cluster->ranks[plan->ranks[i]], count), 1e-9);
    }
    for (int i = 0; i < plan->n; i++) {
        before += 1 / fmax(alone_us(&cluster->ranks[plan->ranks[i]], count), 1e-9);
        const int end = i == plan->n - 1 ? STEPS : (int)(STEPS * before / all + 0.5);
        plan->shares[i] = end - given;
        given = end;
    }
}

/* The best trade of all; false: none saves time. */
static bool trade(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                  struct tnd_cluster_plan *plan)
{
    struct tnd_cluster_plan best = *plan;
    for (int from = 0; from < plan->n; from++) {
        for (int to = 0; to < plan->n; to++) {
            for (int steps = 1; from != to && steps <= plan->shares[from]; steps++) {
                struct tnd_cluster_plan one = *plan;
                one.shares[from] -= steps;
                one.shares[to] += steps;
                time_shares(cluster, &one);
                best = is_better(cluster, count, &one, &best) ? one : best;
            }
        }
    }
    const bool is_new = is_better(cluster, count, &best, plan);
    *plan = best;
    return is_new;
}

static void start(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                  const int *ranks, int n, struct tnd_cluster_plan *out)
{
    memset(out, 0, sizeof(*out));
    out->n = n;
    memcpy(out->ranks, ranks, (size_t)n * sizeof(ranks[0]));
    first_shares(cluster, count, out);
    tnd_cluster_time(cluster, out);
}

/* The best of all shares that are multiples of `step`, from rank i on. */
static void try_grid(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                     struct tnd_cluster_plan *plan, int i, int left, int step,
                     struct tnd_cluster_plan *io_best)
{
    if (i == plan->n - 1) {
        plan->shares[i] = left;
        time_shares(cluster, plan);
        *io_best = is_better(cluster, count, plan, io_best) ? *plan : *io_best;
        return;
    }
    for (int share = 0; share <= left; share += step) {
        plan->shares[i] = share;
        try_grid(cluster, count, plan, i + 1, left - share, step, io_best);
    }
}

/* (Whole heads make shares jump, and trades end where no pair gains: of few ranks a grid is tried
 * first, all of four ranks, some thousand shares of more.) */
void tnd_cluster_share(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                       const int *ranks, int n, struct tnd_cluster_plan *out)
{
    static const int steps[TND_CLUSTER_TRY_ALL + 1] = {1, 1, 1, 1, 1, 4, 8};
    start(cluster, count, ranks, n, out);
    struct tnd_cluster_plan one = *out;
    if (n <= TND_CLUSTER_TRY_ALL) {
        try_grid(cluster, count, &one, 0, STEPS, steps[n], out);
    }
    for (int round = 0; round < ROUNDS && trade(cluster, count, out); round++) {
    }
}

/* ---- ranks ---- */

static bool may_take_part(const struct tnd_cluster *cluster, int rank)
{
    return !cluster->ranks[rank].is_left_out;
}

/* Every choice of n ranks; the leader comes first. */
static void try_all(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                    int leader, int n, struct tnd_cluster_plan *out)
{
    for (unsigned choice = 1; choice < 1U << cluster->n; choice++) {
        int ranks[TND_CLUSTER_TRY_ALL], k = 0;
        bool may = leader < 0 || (choice >> leader & 1) != 0;
        if (leader >= 0) {
            ranks[k++] = leader;
        }
        for (int r = 0; r < cluster->n; r++) {
            const bool is_chosen = (choice >> r & 1) != 0;
            may = may && (!is_chosen || may_take_part(cluster, r));
            if (is_chosen && r != leader && k < TND_CLUSTER_TRY_ALL) {
                ranks[k++] = r;
            }
        }
        struct tnd_cluster_plan one;
        if (may && k == n) {
            tnd_cluster_share(cluster, count, ranks, n, &one);
            *out = out->n == 0 || is_better(cluster, count, &one, out) ? one : *out;
        }
    }
}

/* One rank after another, by shares in proportion. */
static void grow(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES], int leader,
                 int n, struct tnd_cluster_plan *out)
{
    int ranks[TND_CLUSTER_MOST];
    bool is_in[TND_CLUSTER_MOST] = {false};
    for (int k = 0; k < n; k++) {
        struct tnd_cluster_plan best = {.n = 0};
        for (int r = 0; r < cluster->n; r++) {
            struct tnd_cluster_plan one;
            if (is_in[r] || !may_take_part(cluster, r) || (k == 0 && leader >= 0 && r != leader)) {
                continue;
            }
            ranks[k] = r;
            start(cluster, count, ranks, k + 1, &one);
            best = best.n == 0 || is_better(cluster, count, &one, &best) ? one : best;
        }
        if (best.n == 0) {
            return;
        }
        ranks[k] = best.ranks[k];
        is_in[ranks[k]] = true;
    }
    tnd_cluster_share(cluster, count, ranks, n, out);
}

void tnd_cluster_choose(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                        int leader, int n, struct tnd_cluster_plan *out)
{
    memset(out, 0, sizeof(*out));
    if (n < 1 || n > cluster->n || (n > 1 && cluster->model.undivided != NULL)) {
        return;
    }
    if (cluster->n <= TND_CLUSTER_TRY_ALL) {
        try_all(cluster, count, leader, n, out);
    } else {
        grow(cluster, count, leader, n, out);
    }
}

int tnd_cluster_best(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                     int leader, struct tnd_cluster_plan *plans)
{
    static const double generation[TND_FIT_PHASES] = {[TND_FIT_GENERATION] = 1};
    struct tnd_cluster_plan single;
    int best = -1;
    tnd_cluster_choose(cluster, generation, leader, 1, &single);
    const double limit_us = single.n == 1 && single.fits && count[TND_FIT_GENERATION] > 0
                                ? single.us[TND_FIT_GENERATION]
                                : (double)INFINITY;
    for (int i = 0; i < cluster->n; i++) {
        const bool is_tried = i < TRIED || i + 1 == cluster->n || (i & (i + 1)) == 0;
        tnd_cluster_choose(cluster, count, leader, is_tried ? i + 1 : 0, &plans[i]);
        if (i == 0 && plans[0].us[TND_FIT_GENERATION] > limit_us) { /* fastest for the mix alone */
            plans[0] = single;
        }
        if (plans[i].n == 0 || !plans[i].fits || plans[i].us[TND_FIT_GENERATION] > limit_us) {
            continue;
        }
        if (best < 0 ||
            tnd_cluster_plan_us(&plans[i], count) < tnd_cluster_plan_us(&plans[best], count)) {
            best = i;
        }
    }
    return best;
}
