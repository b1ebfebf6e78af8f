/* SPDX-License-Identifier: MIT
 * Searches for plans. Shares begin in proportion to the ranks' speeds, as far as memory allows;
 * then pairs of ranks trade shares as long as that saves time. Mixed plans have shares of rows and
 * of layers, which affect each other only by memory: they are improved alternately. Different
 * subsets of ranks are tried. */
#include <math.h>
#include <string.h>

#include "tune/cluster.h"
#include "tune/policy.h"

enum { STEPS = TND_CLUSTER_STEPS, ROUNDS = 32, TRIED = 8, TURNS = 6 /* of rows and layers */ };
#define NO_LAYER 1e15 /* excess bytes of a rank without layers; above any real one */

/* ---- shares ---- */

/* Bytes by which ranks exceed their memory; a rank without layers counts as a large excess. */
static double missing_bytes(const struct tnd_cluster *cluster, const struct tnd_cluster_plan *plan)
{
    double missing = 0;
    for (int i = 0; i < plan->n && !plan->fits; i++) {
        const int64_t memory = cluster->ranks[plan->ranks[i]].memory;
        const bool is_elsewhere = plan->n < 2 || plan->division == TND_CLUSTER_LAYERS;
        const int64_t bytes = plan->bytes[i] - (is_elsewhere ? plan->placed[i] : 0);
        missing += memory > 0 && bytes > memory ? (double)(bytes - memory) : 0;
        missing += tnd_cluster_is_idle(plan, i) ? NO_LAYER : 0;
    }
    return missing;
}

/* Plans with fewer missing bytes are better; of equal ones the faster. */
static bool is_better(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                      const struct tnd_cluster_plan *a, const struct tnd_cluster_plan *b)
{
    const double a_missing = missing_bytes(cluster, a), b_missing = missing_bytes(cluster, b);
    return a_missing != b_missing ? a_missing < b_missing
                                  : tnd_cluster_plan_us(a, count) < tnd_cluster_plan_us(b, count);
}

/* Time of the whole model on one rank. */
static double alone_us(const struct tnd_cluster_rank *rank, const double count[TND_FIT_PHASES])
{
    double us = 0;
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            us += count[phase] *
                  rank->prices[rank->has_device].curves[phase][part].us[TND_CLUSTER_POINTS - 1];
        }
    }
    return us;
}

/* Which shares are searched: the rows or the layers of a mixed plan, or those of its only division.
 */
struct shared {
    const struct tnd_cluster *cluster;
    const double *count; /* {TND_FIT_PHASES} */
    bool of_layers;      /* the layers of a mixed plan */
};

static int *shares_of(const struct shared *s, struct tnd_cluster_plan *plan)
{
    return s->of_layers ? plan->layers : plan->shares;
}

static int sum_of(const struct shared *s, const struct tnd_cluster_plan *plan)
{
    return s->of_layers ? (int)s->cluster->model.n_layers : tnd_cluster_shares(s->cluster, plan);
}

/* Initial shares in proportion to speed. */
static void first_shares(const struct shared *s, struct tnd_cluster_plan *plan)
{
    const struct tnd_cluster *cluster = s->cluster;
    const double *count = s->count;
    const int shares = sum_of(s, plan);
    double all = 0, before = 0;
    int given = 0;
    for (int i = 0; i < plan->n; i++) {
        all += 1 / fmax(alone_us(&cluster->ranks[plan->ranks[i]], count), 1e-9);
    }
    for (int i = 0; i < plan->n; i++) {
        before += 1 / fmax(alone_us(&cluster->ranks[plan->ranks[i]], count), 1e-9);
        const int end = i == plan->n - 1 ? shares : (int)(shares * before / all + 0.5);
        shares_of(s, plan)[i] = end - given;
        given = end;
    }
}

/* Makes the best trade between any two ranks. Returns false if none saves time. */
static bool trade(const struct shared *s, struct tnd_cluster_plan *plan)
{
    struct tnd_cluster_plan best = *plan;
    const int *shares = shares_of(s, plan);
    for (int from = 0; from < plan->n; from++) {
        for (int to = 0; to < plan->n; to++) {
            for (int steps = 1; from != to && steps <= shares[from]; steps++) {
                struct tnd_cluster_plan one = *plan;
                shares_of(s, &one)[from] -= steps;
                shares_of(s, &one)[to] += steps;
                tnd_cluster_time_again(s->cluster, &one);
                best = is_better(s->cluster, s->count, &one, &best) ? one : best;
            }
        }
    }
    const bool is_new = is_better(s->cluster, s->count, &best, plan);
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
    for (int i = 0; i <= (division == TND_CLUSTER_MIXED); i++) {
        const struct shared s = {cluster, count, i != 0};
        first_shares(&s, out);
    }
    tnd_cluster_time(cluster, out);
}

/* Tries all shares of ranks i and later that are multiples of `step`. */
static void try_grid(const struct shared *s, struct tnd_cluster_plan *plan, int i, int left,
                     int step, struct tnd_cluster_plan *io_best)
{
    if (i == plan->n - 1) {
        shares_of(s, plan)[i] = left;
        tnd_cluster_time_again(s->cluster, plan);
        *io_best = is_better(s->cluster, s->count, plan, io_best) ? *plan : *io_best;
        return;
    }
    for (int share = 0; share <= left; share += step) {
        shares_of(s, plan)[i] = share;
        try_grid(s, plan, i + 1, left - share, step, io_best);
    }
}

/* Tries the same shares with whole experts; keeps them if rows of experts are refused or if they
 * save time. */
static void try_whole_experts(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                              struct tnd_cluster_plan *plan)
{
    struct tnd_cluster_plan one = *plan;
    if (plan->n < 2 || plan->division == TND_CLUSTER_LAYERS || tnd_cluster_is_alone(plan) ||
        cluster->model.n_experts < 2 || cluster->model.n_used < 1 ||
        (cluster->refused & TND_CLUSTER_NO_WHOLE_EXPERTS) != 0) {
        return;
    }
    one.has_whole_experts = true;
    tnd_cluster_time_again(cluster, &one);
    const bool is_asked = (cluster->refused & TND_CLUSTER_NO_EXPERT_ROWS) != 0;
    *plan = is_asked || is_better(cluster, count, &one, plan) ? one : *plan;
}

/* (Since heads are indivisible, time jumps with shares, and trades can end in a local minimum. So a
 * grid is tried first for few ranks: all shares of up to four ranks, some thousand of more.) */
static void improve(const struct shared *s, struct tnd_cluster_plan *io_plan)
{
    static const int steps[TND_CLUSTER_TRY_ALL + 1] = {1, 1, 1, 1, 1, 4, 8};
    struct tnd_cluster_plan one = *io_plan;
    if (one.n <= TND_CLUSTER_TRY_ALL) {
        const int shares = sum_of(s, &one);
        const int coarser = one.n > 3 && one.division == TND_CLUSTER_MIXED ? 2 : 1;
        const int step = (coarser * steps[one.n] * shares + STEPS - 1) / STEPS;
        try_grid(s, &one, 0, shares, step, io_plan);
    }
    for (int round = 0; round < ROUNDS && trade(s, io_plan); round++) {
    }
}

/* Improves rows and layers alternately, beginning with layers if `of_layers`, until nothing is
 * saved. */
static void improve_both(const struct tnd_cluster *cluster, const double *count, bool of_layers,
                         struct tnd_cluster_plan *io_plan)
{
    bool is_new = true;
    for (int turn = 0; turn < TURNS && is_new; turn++) {
        const struct shared s = {cluster, count, (turn % 2 != 0) != of_layers};
        const struct tnd_cluster_plan old = *io_plan;
        improve(&s, io_plan);
        is_new = turn == 0 || is_better(cluster, count, io_plan, &old);
    }
}

/* If rows and layers together exceed memory, improving them alternately ends early: tries coarse
 * combinations of both. */
static void try_both(const struct tnd_cluster *cluster, const double *count,
                     struct tnd_cluster_plan *plan, int i, int left,
                     struct tnd_cluster_plan *io_best)
{
    const int pieces = plan->n == 2 ? STEPS : plan->n == 3 ? 8 : 4;
    const int layers = (int)cluster->model.n_layers;
    if (i == plan->n - 1) {
        const struct shared rows = {cluster, count, false};
        plan->layers[i] = left;
        try_grid(&rows, plan, 0, STEPS, STEPS / pieces, io_best);
        return;
    }
    for (int share = 0; share <= left; share += (layers + pieces - 1) / pieces) {
        plan->layers[i] = share;
        try_both(cluster, count, plan, i + 1, left - share, io_best);
    }
}

void tnd_cluster_share(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                       enum tnd_cluster_division division, const int *ranks, int n,
                       struct tnd_cluster_plan *out)
{
    const struct shared s = {cluster, count, false};
    start(cluster, count, division, ranks, n, out);
    if (division != TND_CLUSTER_MIXED) {
        improve(&s, out);
        try_whole_experts(cluster, count, out);
        return;
    }
    struct tnd_cluster_plan other = *out, both = *out, one = *out;
    improve_both(cluster, count, false, out);
    improve_both(cluster, count, true, &other);
    if (n <= TND_CLUSTER_TRY_ALL) {
        try_both(cluster, count, &one, 0, (int)cluster->model.n_layers, &both);
        improve_both(cluster, count, false, &both);
    }
    *out = is_better(cluster, count, &other, out) ? other : *out;
    *out = is_better(cluster, count, &both, out) ? both : *out;
    tnd_cluster_time(cluster, out);
    try_whole_experts(cluster, count, out);
}

/* ---- ranks ---- */

static bool may_take_part(const struct tnd_cluster *cluster, int rank)
{
    return !cluster->ranks[rank].is_left_out;
}

/* Finds the shares of ranks {n}. The first rank of a mixed plan may generate alone: if any rank may
 * lead, each one is tried as the first. */
static void share_among(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                        enum tnd_cluster_division division, int leader, int *ranks, int n,
                        struct tnd_cluster_plan *out)
{
    tnd_cluster_share(cluster, count, division, ranks, n, out);
    for (int i = 1; i < n && leader < 0 && division == TND_CLUSTER_MIXED; i++) {
        struct tnd_cluster_plan one;
        const int first = ranks[0];
        ranks[0] = ranks[i];
        ranks[i] = first;
        tnd_cluster_share(cluster, count, division, ranks, n, &one);
        *out = tnd_cluster_is_alone(&one) && is_better(cluster, count, &one, out) ? one : *out;
    }
}

/* Tries every subset of n ranks, the leader first. */
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
            share_among(cluster, count, division, leader, ranks, n, &one);
            *out = out->n == 0 || is_better(cluster, count, &one, out) ? one : *out;
        }
    }
}

/* Adds one rank after another, the best one with shares in proportion to speed. */
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

/* Chooses the best plan of n ranks; prefers plans that fit and generate tokens within the limit. */
static void choose_within(const struct tnd_cluster *cluster, const double count[TND_FIT_PHASES],
                          int leader, int n, double limit_us, struct tnd_cluster_plan *out)
{
    double others_us[TND_CLUSTER_DIVISIONS][TND_FIT_PHASES] = {{0}};
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
        if (one.fits) {
            memcpy(others_us[d], one.us, sizeof(others_us[d]));
        }
        *out = is_new ? one : *out;
    }
    memcpy(out->other_us, others_us, sizeof(out->other_us));
    memset(out->other_us[out->division], 0, sizeof(out->other_us[0]));
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
        if (i == 0 && plans[0].us[TND_FIT_GENERATION] >
                          limit_us) { /* the fastest for the mix, but slow to generate */
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
