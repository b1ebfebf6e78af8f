/* SPDX-License-Identifier: MIT
 * Shares begin in proportion to speed, as far as memory allows; then any two ranks trade any part
 * of theirs as long as that saves time. Which ranks take part is tried out. */
#include <math.h>
#include <string.h>

#include "tune/cluster.h"
#include "tune/policy.h"

enum { STEPS = TND_CLUSTER_STEPS, ROUNDS = 32, TRIED = 8 };
#define NO_LAYER 1e15 /* counts as so many bytes without memory: more than there are */

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

/* ---- layers in sequence ---- */

/* Bytes of all layers. */
static double layer_bytes(const struct tnd_cluster_model *model)
{
    double bytes = 0;
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        bytes += part != TND_FIT_OUTPUT ? (double)model->bytes[part] : 0;
    }
    return bytes;
}

/* Adds what a rank computes but for its layers. */
static void add_part(const struct tnd_cluster *cluster, int rank, enum tnd_fit_part part,
                     struct tnd_cluster_plan *plan)
{
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        const struct tnd_cluster_curve *curve = &cluster->ranks[rank].curves[phase][part];
        plan->us[phase] += curve->us[TND_CLUSTER_POINTS - 1];
        plan->error_us[phase] += curve->error_us[TND_CLUSTER_POINTS - 1];
    }
}

/* The next rank behind i that has layers; n: none. */
static int next_stage(const struct tnd_cluster_plan *plan, int i)
{
    do {
        i++;
    } while (i < plan->n && plan->shares[i] == 0);
    return i;
}

static double hop_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                     int from, int to, double bytes)
{
    return from == to
               ? 0
               : tnd_cluster_link_us(
                     &cluster->links[plan->ranks[from] * cluster->n + plan->ranks[to]], bytes);
}

/* Behind the last rank a state goes to rank 0, which has the classifier, or logits do
 * (llama/shard_layers.c). It tells all the tokens and goes on: that is waited for where it has no
 * layers itself. */
static double ends_us(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan,
                      int first, int last, double tokens)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const int64_t back = plan->shares[0] > 0 ? model->dim : model->vocabulary;
    return hop_us(cluster, plan, 0, first, 4 * tokens) +
           hop_us(cluster, plan, last, 0, 4 * (double)back);
}

/* A token goes through all ranks. Of a prompt's micro-batches the first one does, and each other
 * one leaves one turn of the slowest rank later, which computes, takes a state and sends one. */
static void time_phase(const struct tnd_cluster *cluster, enum tnd_fit_phase phase,
                       struct tnd_cluster_plan *plan, int *out_first, int *out_last)
{
    const struct tnd_cluster_model *model = &cluster->model;
    const double n = phase == TND_FIT_PROMPT ? (double)model->n_micro : 1;
    const double tokens = phase == TND_FIT_PROMPT ? (double)model->prompt_tokens : 1;
    const double bytes = 4 * (double)model->dim * tokens / n;
    double us = 0, error_us = 0, turn_us = 0, before_us = 0, all_us = 0;
    *out_first = *out_last = next_stage(plan, -1);
    for (int i = *out_first; i < plan->n; i = next_stage(plan, i)) {
        const struct tnd_cluster_rank *rank = &cluster->ranks[plan->ranks[i]];
        const double share = (double)plan->shares[i] / (double)model->n_layers;
        const int next = next_stage(plan, i);
        const double behind_us = next < plan->n ? hop_us(cluster, plan, i, next, bytes) : 0;
        const double own_us = share * rank->layers_us[phase] / n;
        us += own_us;
        all_us += behind_us;
        turn_us = fmax(turn_us, before_us + own_us + behind_us);
        error_us += share * rank->layers_error_us[phase];
        before_us = behind_us;
        *out_last = i;
    }
    turn_us = cluster->is_medium ? fmax(turn_us, all_us) : turn_us; /* messages follow each other */
    plan->link_us[phase] = all_us + ends_us(cluster, plan, *out_first, *out_last, tokens);
    plan->us[phase] = us + (n - 1) * turn_us + plan->link_us[phase];
    plan->error_us[phase] = error_us + TND_CLUSTER_LINK_ERROR * plan->link_us[phase];
}

static void time_layers(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    const struct tnd_cluster_model *model = &cluster->model;
    int first = 0, last = 0;
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        time_phase(cluster, (enum tnd_fit_phase)phase, plan, &first, &last);
    }
    const int head = plan->shares[0] > 0 ? 0 : last;
    add_part(cluster, plan->ranks[first], TND_FIT_EMBEDDING, plan);
    add_part(cluster, plan->ranks[head], TND_FIT_OUTPUT, plan);
    plan->fits = true;
    for (int i = 0; i < plan->n; i++) {
        const int64_t memory = cluster->ranks[plan->ranks[i]].memory;
        const double share = (double)plan->shares[i] / (double)model->n_layers;
        plan->bytes[i] =
            (int64_t)(share * layer_bytes(model)) + (i == head ? model->bytes[TND_FIT_OUTPUT] : 0);
        plan->fits = plan->fits && plan->shares[i] > 0 && (memory == 0 || plan->bytes[i] <= memory);
    }
}

bool tnd_cluster_may_divide(const struct tnd_cluster *cluster, enum tnd_cluster_division division,
                            int n)
{
    const struct tnd_cluster_model *model = &cluster->model;
    if (n < 2) {
        return division == TND_CLUSTER_ROWS;
    }
    return (cluster->refused >> division & 1) == 0 && !model->is_whole &&
           (division == TND_CLUSTER_ROWS ? model->undivided == NULL
                                         : model->n_micro > 0 && model->n_layers >= n);
}

int tnd_cluster_shares(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan)
{
    return plan->division == TND_CLUSTER_LAYERS ? (int)cluster->model.n_layers : STEPS;
}

/* Of other shares of the same ranks: what messages of rows take stays. */
static void time_again(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan)
{
    if (plan->division == TND_CLUSTER_LAYERS) {
        time_layers(cluster, plan);
    } else {
        time_shares(cluster, plan);
    }
}

void tnd_cluster_time(const struct tnd_cluster *cluster, struct tnd_cluster_plan *io_plan)
{
    for (int phase = 0; phase < TND_FIT_PHASES && io_plan->division == TND_CLUSTER_ROWS; phase++) {
        io_plan->link_us[phase] = messages_us(cluster, io_plan, (enum tnd_fit_phase)phase);
    }
    time_again(cluster, io_plan);
}

double tnd_cluster_plan_us(const struct tnd_cluster_plan *plan, const double count[TND_FIT_PHASES])
{
    return count[TND_FIT_PROMPT] * plan->us[TND_FIT_PROMPT] +
           count[TND_FIT_GENERATION] * plan->us[TND_FIT_GENERATION];
}

/* ---- shares ---- */

/* Bytes for which ranks have no memory; a rank that takes part has a layer. */
static double missing_bytes(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan)
{
    double missing = 0;
    for (int i = 0; i < plan->n && !plan->fits; i++) {
        const int64_t memory = cluster->ranks[plan->ranks[i]].memory;
        const bool is_idle = plan->division == TND_CLUSTER_LAYERS && plan->shares[i] == 0;
        missing += memory > 0 && plan->bytes[i] > memory ? (double)(plan->bytes[i] - memory) : 0;
        missing += is_idle ? NO_LAYER : 0;
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
    const int shares = tnd_cluster_shares(cluster, plan);
    double all = 0, before = 0;
    int given = 0;
    for (int i = 0; i < plan->n; i++) {
        all += 1 / fmax(alone_us(&cluster->ranks[plan->ranks[i]], count), 1e-9);
    }
    for (int i = 0; i < plan->n; i++) {
        before += 1 / fmax(alone_us(&cluster->ranks[plan->ranks[i]], count), 1e-9);
        const int end = i == plan->n - 1 ? shares : (int)(shares * before / all + 0.5);
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
                time_again(cluster, &one);
                best = is_better(cluster, count, &one, &best) ? one : best;
            }
        }
    }
    const bool is_new = is_better(cluster, count, &best, plan);
    *plan = best;
    return is_new;
}

static void start(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                  enum tnd_cluster_division division, const int *ranks, int n,
                  struct tnd_cluster_plan *out)
{
    memset(out, 0, sizeof(*out));
    out->n = n;
    out->division = division;
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
        time_again(cluster, plan);
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
                       enum tnd_cluster_division division, const int *ranks, int n,
                       struct tnd_cluster_plan *out)
{
    static const int steps[TND_CLUSTER_TRY_ALL + 1] = {1, 1, 1, 1, 1, 4, 8};
    start(cluster, count, division, ranks, n, out);
    struct tnd_cluster_plan one = *out;
    if (n <= TND_CLUSTER_TRY_ALL) {
        const int shares = tnd_cluster_shares(cluster, out);
        const int step = (steps[n] * shares + STEPS - 1) / STEPS;
        try_grid(cluster, count, &one, 0, shares, step, out);
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
                    enum tnd_cluster_division division, int leader, int n,
                    struct tnd_cluster_plan *out)
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
            tnd_cluster_share(cluster, count, division, ranks, n, &one);
            *out = out->n == 0 || is_better(cluster, count, &one, out) ? one : *out;
        }
    }
}

/* One rank after another, by shares in proportion. */
static void grow(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                 enum tnd_cluster_division division, int leader, int n,
                 struct tnd_cluster_plan *out)
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
            start(cluster, count, division, ranks, k + 1, &one);
            best = best.n == 0 || is_better(cluster, count, &one, &best) ? one : best;
        }
        if (best.n == 0) {
            return;
        }
        ranks[k] = best.ranks[k];
        is_in[ranks[k]] = true;
    }
    tnd_cluster_share(cluster, count, division, ranks, n, out);
}

/* A plan of n ranks that fits and generates tokens within the limit comes first. */
static void choose_within(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                          int leader, int n, double limit_us, struct tnd_cluster_plan *out)
{
    memset(out, 0, sizeof(*out));
    for (int d = 0; n >= 1 && n <= cluster->n && d < TND_CLUSTER_DIVISIONS; d++) {
        const enum tnd_cluster_division division = (enum tnd_cluster_division)d;
        struct tnd_cluster_plan one = {.n = 0};
        if (tnd_cluster_may_divide(cluster, division, n) && cluster->n <= TND_CLUSTER_TRY_ALL) {
            try_all(cluster, count, division, leader, n, &one);
        } else if (tnd_cluster_may_divide(cluster, division, n)) {
            grow(cluster, count, division, leader, n, &one);
        }
        if (one.n == 0) {
            continue;
        }
        const bool is_within = one.fits && one.us[TND_FIT_GENERATION] <= limit_us;
        const bool was_within = out->n > 0 && out->fits && out->us[TND_FIT_GENERATION] <= limit_us;
        const bool is_new =
            out->n == 0 ||
            (is_within != was_within ? is_within : is_better(cluster, count, &one, out));
        const struct tnd_cluster_plan *other = is_new ? out : &one;
        struct tnd_cluster_plan *chosen = is_new ? &one : out;
        if (other->n > 0 && other->fits) {
            memcpy(chosen->other_us, other->us, sizeof(chosen->other_us));
        }
        *out = *chosen;
    }
}

void tnd_cluster_choose(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                        int leader, int n, struct tnd_cluster_plan *out)
{
    choose_within(cluster, count, leader, n, (double)INFINITY, out);
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
        choose_within(cluster, count, leader, is_tried ? i + 1 : 0, limit_us, &plans[i]);
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
