/* SPDX-License-Identifier: MIT
 * Plans of several ranks against every possible plan, what sums take, and what shares of a model
 * cost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_tune.h"
#include "tune/cluster.h"
#include "tune/policy.h"

enum { MOST = 8 };

struct drawn {
    struct tnd_cluster cluster;
    struct tnd_cluster_rank ranks[MOST];
    struct tnd_cluster_link links[MOST * MOST];
};

static const double mixed[TND_FIT_PHASES] = {1, TND_FIT_ANSWER_TOKENS};

/* Adds to a curve: at no share, and what all of it takes beyond that. */
static void draw_line(struct tnd_cluster_curve *io_curve, double at_none, double all)
{
    for (int p = 0; p < TND_CLUSTER_POINTS; p++) {
        io_curve->us[p] += at_none + all * p / (TND_CLUSTER_POINTS - 1);
    }
}

/* Parts of a rank of so many times the speed of another one, and a fixed cost. */
static void draw_rank(struct tnd_test_rng *rng, const struct tnd_cluster_model *model,
                      struct tnd_cluster_rank *out)
{
    const double speed = (double)tnd_test_rng_int(rng, 10, 160) / 40;
    const double fixed_us = (double)tnd_test_rng_int(rng, 0, 300);
    struct tnd_cluster_prices *cpu = &out->prices[0];
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = 0; part < TND_FIT_PARTS; part++) {
            const double whole_us = model->units[part] == 0 ? 0
                                    : phase == TND_FIT_PROMPT
                                        ? (double)tnd_test_rng_int(rng, 500000, 3000000)
                                        : (double)tnd_test_rng_int(rng, 3000, 30000);
            for (int p = 0; p < TND_CLUSTER_POINTS; p++) {
                const double share = (double)p / (TND_CLUSTER_POINTS - 1);
                cpu->curves[phase][part].us[p] = (whole_us * share + fixed_us) / speed;
                cpu->curves[phase][part].error_us[p] = 0.1 * cpu->curves[phase][part].us[p];
            }
            const double us = cpu->curves[phase][part].us[TND_CLUSTER_POINTS - 1];
            const double more = phase == TND_FIT_PROMPT ? 1.1 : 1;
            if (part != TND_FIT_EMBEDDING) {
                draw_line(part == TND_FIT_OUTPUT ? &cpu->head[phase] : &cpu->layers[phase],
                          part == TND_FIT_OUTPUT ? us : 0, part == TND_FIT_OUTPUT ? 0 : more * us);
            }
        }
    }
}

/* Shares of a curve up to `held` take so much less. */
static void speed_up(struct tnd_cluster_curve *io_curve, double held, double faster,
                     double moved_us)
{
    for (int p = 1; p < TND_CLUSTER_POINTS; p++) {
        const double share = (double)p / (TND_CLUSTER_POINTS - 1);
        const double on = fmin(held, share) / share;
        const double us = io_curve->us[p] * (1 - on + on / faster) + moved_us;
        io_curve->us[p] = fmin(us, io_curve->us[p]);
    }
}

/* A device that has room for a tenth to one and a half of all, and is up to 20 times as fast. */
static void draw_device(struct tnd_test_rng *rng, const struct tnd_cluster_model *model, double all,
                        struct tnd_cluster_rank *out)
{
    const double held = (double)tnd_test_rng_int(rng, 10, 150) / 100;
    const double faster = (double)tnd_test_rng_int(rng, 15, 200) / 10;
    const double moved_us = (double)tnd_test_rng_int(rng, 0, 500);
    struct tnd_cluster_prices *prices = &out->prices[1];
    *prices = out->prices[0];
    out->has_device = true;
    out->device_memory = (int64_t)(held * all);
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = TND_FIT_ATTENTION; part <= TND_FIT_OUTPUT; part++) {
            speed_up(&prices->curves[phase][part], held, faster, moved_us);
        }
        speed_up(&prices->layers[phase], held, faster, moved_us);
    }
    for (int p = 0; p < TND_CLUSTER_POINTS; p++) {
        const double share = fmin(held, (double)p / (TND_CLUSTER_POINTS - 1));
        prices->rows_placed[p] = share * all;
        prices->layers_placed[p] = share * (all - (double)model->bytes[TND_FIT_OUTPUT]);
    }
}

static void draw(struct tnd_test_rng *rng, int n, struct drawn *out)
{
    static const int64_t heads[] = {1, 2, 3, 4, 8, 32};
    struct tnd_cluster_model *model = &out->cluster.model;
    double all = 0;
    memset(out, 0, sizeof(*out));
    out->cluster.n = n;
    out->cluster.ranks = out->ranks;
    out->cluster.links = out->links;
    out->cluster.is_medium = tnd_test_rng_int(rng, 0, 3) == 0;
    *model = (struct tnd_cluster_model){.n_layers = tnd_test_rng_int(rng, 1, n < 4 ? 32 : 8),
                                        .n_micro = tnd_test_rng_int(rng, 1, 8),
                                        .dim = 2048,
                                        .vocabulary = 32000,
                                        .prompt_tokens = 128};
    model->units[TND_FIT_ATTENTION] = heads[tnd_test_rng_int(rng, 0, 5)];
    model->units[TND_FIT_FFN] = tnd_test_rng_int(rng, 8, 344);
    model->units[TND_FIT_OUTPUT] = 500;
    model->cache_bytes = tnd_test_rng_int(rng, 0, 1000);
    model->kv_bytes = (double)tnd_test_rng_int(rng, 100, 20000);
    for (int part = TND_FIT_ATTENTION; part <= TND_FIT_OUTPUT; part++) {
        model->bytes[part] = model->units[part] > 0 ? tnd_test_rng_int(rng, 1000, 100000) : 0;
        all += (double)model->bytes[part];
    }
    for (int i = 0; i < n; i++) {
        draw_rank(rng, model, &out->ranks[i]);
        out->ranks[i].memory = tnd_test_rng_int(rng, 0, 2) == 0
                                   ? 0
                                   : (int64_t)(all * (double)tnd_test_rng_int(rng, 20, 150) / 100);
        for (int j = 0; j < i; j++) {
            const struct tnd_cluster_link link = tnd_cluster_link_of(
                (double)tnd_test_rng_int(rng, 1, 300), (double)tnd_test_rng_int(rng, 10, 3000));
            out->links[i * n + j] = out->links[j * n + i] = link;
        }
    }
}

/* The best of all shares of ranks {n}, from the i-th on. */
static void try_shares(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan, int i,
                       int left, double *io_best_us)
{
    if (i == plan->n - 1) {
        plan->shares[i] = left;
        tnd_cluster_time(cluster, plan);
        if (plan->fits) {
            *io_best_us = fmin(*io_best_us, tnd_cluster_plan_us(plan, mixed));
        }
        return;
    }
    for (int share = 0; share <= left; share++) {
        plan->shares[i] = share;
        try_shares(cluster, plan, i + 1, left - share, io_best_us);
    }
}

static double best_of_all(const struct tnd_cluster *cluster, int n,
                          enum tnd_cluster_division division)
{
    double best_us = INFINITY;
    for (int choice = 1; choice < 1 << cluster->n; choice++) {
        struct tnd_cluster_plan plan = {.division = division};
        for (int r = 0; r < cluster->n; r++) {
            if ((choice >> r & 1) != 0) {
                plan.ranks[plan.n++] = r;
            }
        }
        if (plan.n == n) {
            try_shares(cluster, &plan, 0, tnd_cluster_shares(cluster, &plan), &best_us);
        }
    }
    return best_us;
}

/* Shares of one kind of a mixed plan, and what they take: time of their phase, and memory. */
struct half {
    int shares[MOST];
    double us;
};
struct halves {
    struct half *list;
    int n;
};

static int compare_halves(const void *a, const void *b)
{
    const double x = ((const struct half *)a)->us, y = ((const struct half *)b)->us;
    return x < y ? -1 : x > y;
}

static void list_halves(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan, int i,
                        int left, int step, struct halves *out)
{
    if (i == plan->n - 1) {
        plan->shares[i] = left;
        tnd_cluster_time(cluster, plan);
        const int phase =
            plan->division == TND_CLUSTER_LAYERS ? TND_FIT_PROMPT : TND_FIT_GENERATION;
        struct half *half = &out->list[out->n++];
        memcpy(half->shares, plan->shares, sizeof(half->shares));
        half->us = mixed[phase] * plan->us[phase];
        return;
    }
    for (int share = 0; share <= left; share += step) {
        plan->shares[i] = share;
        list_halves(cluster, plan, i + 1, left - share, step, out);
    }
}

/* The best pair of shares: the fastest ones first, until none can be better. What keys and values
 * take on their way only adds to that. */
static void try_pairs(const struct tnd_cluster *cluster, struct tnd_cluster_plan *plan,
                      const struct halves *rows, const struct halves *layers, double *io_best_us)
{
    for (int i = 0; i < layers->n; i++) {
        for (int j = 0; j < rows->n && layers->list[i].us + rows->list[j].us < *io_best_us; j++) {
            memcpy(plan->layers, layers->list[i].shares, sizeof(layers->list[i].shares));
            memcpy(plan->shares, rows->list[j].shares, sizeof(rows->list[j].shares));
            tnd_cluster_time(cluster, plan);
            *io_best_us =
                plan->fits ? fmin(*io_best_us, tnd_cluster_plan_us(plan, mixed)) : *io_best_us;
        }
    }
}

static double best_of_both(const struct tnd_cluster *cluster, int n)
{
    enum { HALVES = 3000 };
    static const int steps[] = {1, 1, 1, 2, 4}; /* of rows: on 4 ranks 969 shares, not 47,905 */
    struct halves rows = {calloc(HALVES, sizeof(struct half)), 0};
    struct halves layers = {calloc(HALVES, sizeof(struct half)), 0};
    double best_us = INFINITY;
    CU_ASSERT_FATAL(rows.list != NULL && layers.list != NULL);
    for (int choice = 1; choice < 1 << cluster->n; choice++) {
        struct tnd_cluster_plan plan = {.division = TND_CLUSTER_ROWS};
        for (int r = 0; r < cluster->n; r++) {
            if ((choice >> r & 1) != 0) {
                plan.ranks[plan.n++] = r;
            }
        }
        if (plan.n != n) {
            continue;
        }
        rows.n = layers.n = 0;
        list_halves(cluster, &plan, 0, TND_CLUSTER_STEPS, steps[n], &rows);
        plan.division = TND_CLUSTER_LAYERS;
        list_halves(cluster, &plan, 0, (int)cluster->model.n_layers, 1, &layers);
        qsort(rows.list, (size_t)rows.n, sizeof(rows.list[0]), compare_halves);
        qsort(layers.list, (size_t)layers.n, sizeof(layers.list[0]), compare_halves);
        plan.division = TND_CLUSTER_MIXED;
        try_pairs(cluster, &plan, &rows, &layers, &best_us);
    }
    free(rows.list);
    free(layers.list);
    return best_us;
}

/* Some ranks get a device. Returns how many. */
static int draw_devices(struct tnd_test_rng *rng, struct drawn *drawn)
{
    double all = 0;
    int n = 0;
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        all += (double)drawn->cluster.model.bytes[part];
    }
    for (int i = 0; i < drawn->cluster.n; i++) {
        if (tnd_test_rng_int(rng, 0, 1) == 0) {
            draw_device(rng, &drawn->cluster.model, all, &drawn->ranks[i]);
            n++;
        }
    }
    return n;
}

static void check_near_the_best(bool has_devices)
{
    struct tnd_test_rng rng = tnd_test_rng_new(34);
    struct tnd_test_rng of_devices = tnd_test_rng_new(43);
    const int n_cases = tnd_effort() == 1 ? 16 : 500;
    int n_rows = 0, n_layers = 0, n_mixed = 0, n_devices = 0, n_held = 0;
    for (int c = 0; c < n_cases; c++) {
        struct drawn drawn;
        const int n = c % 8 == 0 ? 4 : 2 + c % 2;
        draw(&rng, n, &drawn);
        n_devices += has_devices ? draw_devices(&of_devices, &drawn) : 0;
        for (int k = 1; k <= n; k++) {
            struct tnd_cluster_plan plan, forced;
            tnd_cluster_choose(&drawn.cluster, mixed, -1, k, &plan);
            if (k > 1 && plan.fits) {
                drawn.cluster.refused = (1U << TND_CLUSTER_DIVISIONS) - 1 - (1U << plan.division);
                tnd_cluster_choose(&drawn.cluster, mixed, -1, k, &forced);
                drawn.cluster.refused = 0;
                CU_ASSERT_EQUAL(forced.division, plan.division);
                CU_ASSERT_EQUAL(tnd_cluster_plan_us(&forced, mixed),
                                tnd_cluster_plan_us(&plan, mixed));
            }
            const double by_rows_us = best_of_all(&drawn.cluster, k, TND_CLUSTER_ROWS);
            const double by_layers_us = k > 1 && k <= drawn.cluster.model.n_layers
                                            ? best_of_all(&drawn.cluster, k, TND_CLUSTER_LAYERS)
                                            : (double)INFINITY;
            const double mixed_us = k > 1 && k <= drawn.cluster.model.n_layers
                                        ? best_of_both(&drawn.cluster, k)
                                        : (double)INFINITY;
            const double best_us = fmin(fmin(by_rows_us, by_layers_us), mixed_us);
            n_mixed += plan.division == TND_CLUSTER_MIXED;
            n_layers += plan.division == TND_CLUSTER_LAYERS;
            n_rows += k > 1 && plan.division == TND_CLUSTER_ROWS;
            n_held += k > 1 && plan.placed[0] > 0;
            CU_ASSERT_EQUAL(plan.n, k);
            for (int r = 0; plan.fits && plan.division == TND_CLUSTER_LAYERS && r < k; r++) {
                CU_ASSERT_TRUE(plan.shares[r] > 0);
            }
            CU_ASSERT_EQUAL(plan.fits, isfinite(best_us));
            if (plan.fits && tnd_cluster_plan_us(&plan, mixed) > 1.05 * best_us) {
                printf("case %d, %d of %d ranks: %g us, the best takes %g\n", c, k, n,
                       tnd_cluster_plan_us(&plan, mixed), best_us);
                CU_FAIL("a plan that is far from the best");
            }
        }
    }
    CU_ASSERT_TRUE(n_rows > 0 && n_layers > 0 && (n_mixed > 0 || has_devices));
    CU_ASSERT_TRUE(!has_devices || (n_devices > 0 && n_held > 0));
}

static void a_plan_is_near_the_best_of_all_plans(void)
{
    check_near_the_best(false);
}

static void so_is_a_plan_with_devices(void)
{
    check_near_the_best(true);
}

/* Two ranks, of which the second takes twice as long for each layer. */
static void times_of_layers_follow_from_the_slowest_rank(void)
{
    static struct tnd_cluster_rank ranks[2];
    struct tnd_cluster_link links[4];
    struct tnd_cluster cluster = {.n = 2, .ranks = ranks, .links = links};
    struct tnd_cluster_plan plan = {
        .n = 2, .division = TND_CLUSTER_LAYERS, .ranks = {0, 1}, .shares = {4, 6}};
    cluster.model = (struct tnd_cluster_model){
        .n_layers = 10, .dim = 1000, .vocabulary = 5000, .prompt_tokens = 100, .n_micro = 4};
    cluster.model.bytes[TND_FIT_FFN] = 1000;
    cluster.model.bytes[TND_FIT_OUTPUT] = 50;
    for (int r = 0; r < 2; r++) {
        struct tnd_cluster_prices *prices = &ranks[r].prices[0];
        draw_line(&prices->layers[TND_FIT_PROMPT], 0, 40000.0 * (r + 1));
        draw_line(&prices->layers[TND_FIT_GENERATION], 0, 1000.0 * (r + 1));
        draw_line(&prices->head[TND_FIT_GENERATION], 70, 0);
        ranks[r].memory = 600;
    }
    for (int i = 0; i < 4; i++) {
        links[i] = tnd_cluster_link_of(100, 1000); /* 1 us a KB */
    }
    const double told_us = tnd_cluster_link_us(&links[1], 4);
    tnd_cluster_time(&cluster, &plan);
    /* there and back, and the classifier on the first rank, which tells the token and computes */
    CU_ASSERT_DOUBLE_EQUAL(plan.link_us[TND_FIT_GENERATION], 2 * 104, 1);
    CU_ASSERT_DOUBLE_EQUAL(plan.us[TND_FIT_GENERATION],
                           400 + 1200 + 70 + plan.link_us[TND_FIT_GENERATION], 1e-6);
    /* micro-batches of 25 tokens, 100 KB: 3 turns of the second rank behind the first one's turn */
    CU_ASSERT_DOUBLE_EQUAL(plan.us[TND_FIT_PROMPT], 4000 + 12000 + 200 + 3 * (12000 + 200) + 104,
                           2);
    check_int(plan.bytes[0], 450);
    check_int(plan.bytes[1], 600);
    CU_ASSERT_TRUE(plan.fits);
    ranks[1].beside = 1.5; /* its turns are longer by half of the time of what it receives */
    tnd_cluster_time(&cluster, &plan);
    CU_ASSERT_DOUBLE_EQUAL(plan.us[TND_FIT_PROMPT],
                           4000 + 12000 + 200 + 3 * (12000 + 100 + 200) + 104, 2);
    plan.shares[0] = 0; /* samples alone; the other one is told, and sends logits. No plan */
    plan.shares[1] = 10;
    tnd_cluster_time(&cluster, &plan);
    CU_ASSERT_DOUBLE_EQUAL(plan.link_us[TND_FIT_GENERATION], 120 + told_us, 1);
    CU_ASSERT_DOUBLE_EQUAL(plan.us[TND_FIT_GENERATION],
                           2000 + 70 + plan.link_us[TND_FIT_GENERATION], 1e-6);
    check_int(plan.bytes[1], 1050);
    CU_ASSERT_FALSE(plan.fits);
}

/* ---- texts in several batches ---- */

/* Ranks whose batches of half as many texts take 50 to 100 % of the time. */
static void draw_batches(struct tnd_test_rng *rng, struct drawn *drawn)
{
    struct tnd_cluster_model *model = &drawn->cluster.model;
    model->n_texts = tnd_test_rng_int(rng, 2, 16);
    drawn->cluster.is_medium = false;
    for (int r = 0; r < drawn->cluster.n; r++) {
        struct tnd_cluster_prices *prices = &drawn->ranks[r].prices[0];
        const int last = TND_CLUSTER_POINTS - 1;
        const double fixed = (double)tnd_test_rng_int(rng, 0, 100) / 100;
        for (int g = 0; g < TND_CLUSTER_BATCHES; g++) {
            const double tokens = ceil((double)model->n_texts / (g + 1));
            const double part = fixed + (1 - fixed) * tokens / (double)model->n_texts;
            draw_line(&prices->batch[g], 0, part * prices->layers[TND_FIT_GENERATION].us[last]);
            draw_line(&prices->batch_head[g], part * prices->head[TND_FIT_GENERATION].us[last], 0);
        }
    }
}

/* What a step of all texts takes, by the events of many steps: rank 0 takes the batches in turns,
 * classifies, begins the next step of that batch and goes on; the others compute what has come. */
static double simulate_batches(const struct tnd_cluster *cluster,
                               const struct tnd_cluster_plan *plan, int n)
{
    enum { STEPS = 200 };
    const struct tnd_cluster_model *model = &cluster->model;
    const double tokens = ceil((double)model->n_texts / n), bytes = 4 * (double)model->dim * tokens;
    double free_us[MOST] = {0}, link_us[MOST] = {0}, back_us[TND_CLUSTER_BATCHES] = {0};
    double began_us = 0;
    const int last = TND_CLUSTER_POINTS - 1;
    const struct tnd_cluster_prices *first = &cluster->ranks[plan->ranks[0]].prices[0];
    for (int k = 0; k < STEPS * n; k++) {
        double at = fmax(free_us[0], back_us[k % n]);
        at += k >= n ? first->batch_head[n - 1].us[last] : 0;
        began_us = k == STEPS / 2 * n ? at : began_us;
        for (int i = 0; i < plan->n; i++) {
            const struct tnd_cluster_link *link =
                &cluster->links[plan->ranks[i] * cluster->n + plan->ranks[(i + 1) % plan->n]];
            at = i > 0 ? fmax(at, free_us[i]) : at;
            at += cluster->ranks[plan->ranks[i]].prices[0].batch[n - 1].us[last] * plan->shares[i] /
                  (double)model->n_layers;
            free_us[i] = at;
            const double busy_us = tnd_cluster_link_us(link, bytes) - tnd_cluster_link_us(link, 1);
            link_us[i] = fmax(at, link_us[i]) + busy_us;
            at = link_us[i] + tnd_cluster_link_us(link, 1);
        }
        back_us[k % n] = at;
    }
    return (fmax(free_us[0], back_us[0]) + first->batch_head[n - 1].us[last] - began_us) /
           (STEPS - STEPS / 2);
}

static void texts_in_batches_take_what_their_events_take(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() + 7);
    int n_cut = 0;
    for (int i = 0; i < 300; i++) {
        static struct drawn drawn;
        const int n = (int)tnd_test_rng_int(&rng, 2, 4);
        draw(&rng, n, &drawn);
        draw_batches(&rng, &drawn);
        struct tnd_cluster_plan plan = {.n = n, .division = TND_CLUSTER_LAYERS};
        drawn.cluster.model.n_layers = 4 * n;
        for (int r = 0; r < n; r++) {
            plan.ranks[r] = r;
            plan.shares[r] = 4;
        }
        tnd_cluster_time(&drawn.cluster, &plan);
        double best_us = INFINITY, chosen_us = 0;
        for (int g = 1; g <= TND_CLUSTER_BATCHES && g <= drawn.cluster.model.n_texts; g++) {
            const double us = simulate_batches(&drawn.cluster, &plan, g);
            best_us = fmin(best_us, us);
            chosen_us = g == plan.in_flight ? us : chosen_us;
        }
        n_cut += plan.in_flight > 1;
        CU_ASSERT_TRUE(chosen_us <= 1.05 * best_us);
        CU_ASSERT_DOUBLE_EQUAL(plan.us[TND_FIT_GENERATION], chosen_us, 0.05 * chosen_us);
        if (chosen_us > 1.05 * best_us ||
            fabs(plan.us[TND_FIT_GENERATION] - chosen_us) > 0.05 * chosen_us) {
            printf("  %d: %d ranks, %d texts: %d batches, %.1f us; they take %.1f, the best %.1f\n",
                   i, n, (int)drawn.cluster.model.n_texts, plan.in_flight,
                   plan.us[TND_FIT_GENERATION], chosen_us, best_us);
        }
    }
    CU_ASSERT_TRUE(n_cut > 100);
}

static void link_all(struct drawn *drawn, double latency_us, double bytes_per_us)
{
    for (int i = 0; i < drawn->cluster.n * drawn->cluster.n; i++) {
        drawn->links[i] = tnd_cluster_link_of(latency_us, bytes_per_us);
    }
}

/* Three ranks with 16, 10 and 6 of 32 heads, and 3, 3 and 2 of 8 layers. */
static void mixed_plans_take_prompts_of_layers_and_tokens_of_rows(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(39);
    struct tnd_cluster_plan rows = {.n = 3, .ranks = {0, 1, 2}, .shares = {32, 20, 12}};
    struct tnd_cluster_plan layers = {
        .n = 3, .division = TND_CLUSTER_LAYERS, .ranks = {0, 1, 2}, .shares = {3, 3, 2}};
    struct tnd_cluster_plan plan = rows;
    struct drawn drawn;
    draw(&rng, 3, &drawn);
    struct tnd_cluster_model *model = &drawn.cluster.model;
    model->n_layers = 8;
    model->n_micro = 1;
    model->units[TND_FIT_ATTENTION] = 32;
    model->units[TND_FIT_FFN] = 64;
    memset(model->bytes, 0, sizeof(model->bytes));
    model->bytes[TND_FIT_ATTENTION] = 800;
    model->bytes[TND_FIT_FFN] = 1000;
    model->cache_bytes = 400;
    model->kv_bytes = 1000; /* 128,000 of a prompt */
    drawn.cluster.is_medium = false;
    for (int r = 0; r < 3; r++) {
        drawn.ranks[r].memory = 0;
    }
    link_all(&drawn, 100, 1000);
    plan.division = TND_CLUSTER_MIXED;
    memcpy(plan.layers, layers.shares, sizeof(plan.layers));
    tnd_cluster_time(&drawn.cluster, &rows);
    tnd_cluster_time(&drawn.cluster, &layers);
    tnd_cluster_time(&drawn.cluster, &plan);
    CU_ASSERT_EQUAL(plan.us[TND_FIT_GENERATION], rows.us[TND_FIT_GENERATION]);
    CU_ASSERT_EQUAL(plan.link_us[TND_FIT_GENERATION], rows.link_us[TND_FIT_GENERATION]);
    CU_ASSERT_DOUBLE_EQUAL(plan.us[TND_FIT_PROMPT], layers.us[TND_FIT_PROMPT] + plan.move_us, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(plan.move_us, 124 + 116, 1); /* to rank 0, which has most heads */
    /* 3 of 8 layers and 20 of 64 rows, but keys and values once */
    CU_ASSERT_DOUBLE_EQUAL((double)plan.bytes[1], 0.6875 * 1800 - 0.375 * 0.3125 * 400, 1);
    drawn.cluster.is_medium = true;
    tnd_cluster_time(&drawn.cluster, &plan);
    CU_ASSERT_DOUBLE_EQUAL(plan.move_us, 115 + 109 + 124 + 109 + 116 + 110, 1);
    CU_ASSERT_TRUE(plan.fits);
    memset(plan.shares, 0, sizeof(plan.shares)); /* rank 0 generates alone; rank 2 does nothing */
    plan.shares[0] = TND_CLUSTER_STEPS;
    plan.layers[1] += plan.layers[2];
    plan.layers[2] = 0;
    tnd_cluster_time(&drawn.cluster, &plan);
    struct tnd_cluster_plan one = {.n = 1, .ranks = {0}, .shares = {TND_CLUSTER_STEPS}};
    tnd_cluster_time(&drawn.cluster, &one);
    CU_ASSERT_EQUAL(plan.us[TND_FIT_GENERATION], one.us[TND_FIT_GENERATION]);
    CU_ASSERT_EQUAL(plan.link_us[TND_FIT_GENERATION], 0);
    CU_ASSERT_FALSE(plan.fits);
    memcpy(plan.layers, layers.shares, sizeof(plan.layers));
    memcpy(plan.shares, rows.shares, sizeof(plan.shares));
    link_all(&drawn, 50000, 1);
    CU_ASSERT_EQUAL(tnd_cluster_prompt_batch(&drawn.cluster, &plan), 2);
    link_all(&drawn, 1e-3, 1e9);
    for (int r = 1; r < 3; r++) {
        drawn.ranks[r] = drawn.ranks[0];
    }
    CU_ASSERT_EQUAL(tnd_cluster_prompt_batch(&drawn.cluster, &plan), 128);
}

static void a_model_without_rows_for_ranks_goes_by_layers(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(38);
    struct tnd_cluster_plan plan;
    struct drawn drawn;
    draw(&rng, 3, &drawn);
    drawn.cluster.model.undivided = "has latent attention";
    for (int r = 0; r < 3; r++) {
        drawn.ranks[r].memory = 0;
    }
    tnd_cluster_choose(&drawn.cluster, mixed, -1, 2, &plan);
    check_int(plan.n, 2);
    check_int(plan.division, TND_CLUSTER_LAYERS);
    check_int(plan.shares[0] + plan.shares[1], (int)drawn.cluster.model.n_layers);
    CU_ASSERT_EQUAL(plan.other_us[TND_CLUSTER_ROWS][TND_FIT_PROMPT], 0);
    CU_ASSERT_EQUAL(plan.other_us[TND_CLUSTER_MIXED][TND_FIT_PROMPT], 0);
    drawn.cluster.model.is_whole = true; /* an encoder */
    tnd_cluster_choose(&drawn.cluster, mixed, -1, 2, &plan);
    check_int(plan.n, 0);
}

static void no_plan_generates_more_slowly_than_the_best_rank_alone(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(35);
    for (int c = 0; c < 40 * tnd_effort(); c++) {
        struct tnd_cluster_plan plans[MOST];
        struct drawn drawn;
        const int leader = c % 3 == 0 ? 1 : -1;
        draw(&rng, 2 + c % 7, &drawn);
        double single_us = INFINITY;
        for (int r = 0; r < drawn.cluster.n; r++) {
            struct tnd_cluster_plan one = {.n = 1, .ranks = {r}, .shares = {TND_CLUSTER_STEPS}};
            tnd_cluster_time(&drawn.cluster, &one);
            if (one.fits && (leader < 0 || r == leader)) {
                single_us = fmin(single_us, one.us[TND_FIT_GENERATION]);
            }
        }
        const int best = tnd_cluster_best(&drawn.cluster, mixed, leader, plans);
        CU_ASSERT_TRUE(best >= 0 || !isfinite(single_us));
        if (best >= 0) {
            CU_ASSERT_TRUE(plans[best].fits);
            CU_ASSERT_TRUE(plans[best].us[TND_FIT_GENERATION] <= single_us);
            CU_ASSERT_TRUE(leader < 0 || plans[best].ranks[0] == leader);
        }
    }
}

static void slow_links_leave_one_rank_and_fast_ones_use_all(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(36);
    struct tnd_cluster_plan plans[MOST];
    struct drawn drawn;
    draw(&rng, 4, &drawn);
    drawn.cluster.model.units[TND_FIT_ATTENTION] = 32;
    for (int i = 0; i < 4; i++) {
        drawn.ranks[i] = drawn.ranks[0];
        drawn.ranks[i].memory = 0;
    }
    for (int slow = 0; slow < 2; slow++) {
        for (int i = 0; i < 16; i++) {
            drawn.links[i] =
                slow != 0 ? tnd_cluster_link_of(50000, 1) : tnd_cluster_link_of(1, 1e5);
        }
        const int best = tnd_cluster_best(&drawn.cluster, mixed, -1, plans);
        check_int(best, slow != 0 ? 0 : 3);
    }
    drawn.cluster.model.undivided = "cannot be divided";
    drawn.cluster.model.is_whole = true;
    check_int(tnd_cluster_best(&drawn.cluster, mixed, -1, plans), 0);
    check_int(plans[1].n, 0);
    drawn.cluster.model.undivided = NULL;
    drawn.cluster.model.is_whole = false;
    drawn.ranks[2].is_left_out = true;
    tnd_cluster_choose(&drawn.cluster, mixed, -1, 4, &plans[0]);
    check_int(plans[0].n, 0);
}

static void memory_limits_shares(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(37);
    static const int ranks[] = {0, 1};
    struct tnd_cluster_plan plan;
    struct drawn drawn;
    draw(&rng, 2, &drawn);
    memset(drawn.cluster.model.bytes, 0, sizeof(drawn.cluster.model.bytes));
    drawn.cluster.model.units[TND_FIT_FFN] = 344;
    drawn.cluster.model.bytes[TND_FIT_FFN] = 1000;
    drawn.ranks[0].memory = 250;
    drawn.ranks[1].memory = 0;
    tnd_cluster_share(&drawn.cluster, mixed, TND_CLUSTER_ROWS, ranks, 2, &plan);
    CU_ASSERT_TRUE(plan.fits);
    CU_ASSERT_TRUE(plan.shares[0] <= 16);
    drawn.ranks[1].memory = 700;
    tnd_cluster_share(&drawn.cluster, mixed, TND_CLUSTER_ROWS, ranks, 2, &plan);
    CU_ASSERT_FALSE(plan.fits);
    check_int(tnd_cluster_best(&drawn.cluster, mixed, -1, (struct tnd_cluster_plan[2]){{0}}), -1);
}

/* ---- links ---- */

/* 100 us, and 1 us for each 1,000 bytes. */
static void add_link(tandem_table *table, const char *kind, const char *to, int ranks,
                     double slower)
{
    struct tnd_link link = {.ranks = ranks, .transport = "strings"};
    strcpy(link.kind, kind);
    strcpy(link.from, "one");
    strcpy(link.to, to);
    for (int64_t bytes = 8; bytes <= 16777216; bytes *= 8) {
        const struct tnd_sample sample = {
            .m = bytes, .median_us = slower * (100 + (double)bytes / 1000), .count = 5};
        check_ok(tnd_cell_add(table, TND_RECORD_LINKS, &link, &sample));
    }
}

static void sums_follow_from_the_slowest_link(void)
{
    static const char *const ends[] = {"one", "two", "three"};
    static const int all[] = {0, 1, 2};
    const double adding_us = 30000 / TND_CLUSTER_ADD_RATE;
    struct tnd_cluster_link links[9], sum;
    struct tnd_cluster cluster = {.n = 3, .links = links};
    tandem_table *table = tune_new();
    CU_ASSERT_FALSE(tnd_cluster_links_of(table, "strings", ends, 3, links));
    add_link(table, "message", "two", 2, 1);
    add_link(table, "message", "three", 2, 2);
    CU_ASSERT_FALSE(tnd_cluster_links_of(table, "pigeons", ends, 3, links));
    CU_ASSERT_TRUE(tnd_cluster_links_of(table, "strings", ends, 3, links));
    /* "two" to "three" was not measured: as slow as the slowest */
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_reduce_us(&cluster, all, 3, 30000, false),
                           2 * (100 + 60) + 3 * adding_us, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_reduce_us(&cluster, all, 3, 30000, true),
                           2 * 2 * (100 + 20) + adding_us, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_sum_us(&cluster, all, 3, 30000),
                           2 * 2 * (100 + 20) + adding_us, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_sum_us(&cluster, all, 2, 30000), 130 + 2 * adding_us, 0.1);
    CU_ASSERT_EQUAL(tnd_cluster_sum_us(&cluster, all, 1, 30000), 0);
    cluster.is_medium = true; /* each of two messages waits for the other one */
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_sum_us(&cluster, all, 2, 30000), 160 + 2 * adding_us, 0.1);
    cluster.is_medium = false;
    add_link(table, "both directions", "two", 2, 3); /* the way back takes from the way there */
    CU_ASSERT_TRUE(tnd_cluster_links_of(table, "strings", ends, 3, links));
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_link_us(&links[1], 30000), 130, 0.1);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_sum_us(&cluster, all, 2, 30000), 3 * 130 + 2 * adding_us,
                           0.1);
    CU_ASSERT_EQUAL(tnd_cluster_beside_of(table), 1);
    const struct tnd_slowdown beside = {.backend = "cpu", .beside = "links", .factor = 1.25};
    check_ok(tnd_table_add_slowdown(table, &beside));
    CU_ASSERT_EQUAL(tnd_cluster_beside_of(table), 1.25);
    CU_ASSERT_FALSE(tnd_cluster_sum_of(table, "strings", "one", 3, &sum));
    add_link(table, "all-reduce", "all", 3, 9);
    cluster.has_sum = tnd_cluster_sum_of(table, "strings", "one", 3, &cluster.sum);
    CU_ASSERT_TRUE(cluster.has_sum);
    CU_ASSERT_DOUBLE_EQUAL(tnd_cluster_sum_us(&cluster, all, 3, 30000), 9 * 130, 0.1);
    tandem_table_free(table);
}

/* ---- whole experts ---- */

/* The mean over all choices of k of n experts, of which rank r has duties[r].n. */
static double mean_slowest_us(const struct tnd_cluster_duty *duties, int n_ranks, int n, int k)
{
    double sum = 0;
    int n_choices = 0;
    for (unsigned choice = 0; choice < 1U << n; choice++) {
        double slowest = 0;
        int from = 0, n_chosen = 0;
        for (int r = 0; r < n_ranks; r++) {
            int own = 0;
            for (int64_t e = 0; e < duties[r].n; e++) {
                own += (int)(choice >> from++ & 1);
            }
            n_chosen += own;
            slowest = fmax(slowest, duties[r].beside_us + own * duties[r].all_us / k);
        }
        sum += n_chosen == k ? slowest : 0;
        n_choices += n_chosen == k;
    }
    return sum / n_choices;
}

static void ranks_with_whole_experts_wait_for_the_one_that_is_chosen_most(void)
{
    static const struct {
        int n, k, n_ranks;
        struct tnd_cluster_duty duties[4];
    } cases[] = {{8, 2, 2, {{4, 100, 0}, {4, 100, 0}}},
                 {12, 4, 3, {{4, 100, 10}, {6, 70, 5}, {2, 200, 30}}},
                 {8, 8, 2, {{5, 80, 0}, {3, 80, 1}}},
                 {10, 1, 4, {{3, 50, 0}, {3, 60, 0}, {4, 70, 0}, {0, 90, 65}}}};
    for (int i = 0; i < 4; i++) {
        const double want =
            mean_slowest_us(cases[i].duties, cases[i].n_ranks, cases[i].n, cases[i].k);
        const double got =
            tnd_cluster_slowest_us(cases[i].duties, cases[i].n_ranks, cases[i].n, cases[i].k, 1);
        CU_ASSERT_DOUBLE_EQUAL(got, want, 0.01 * want);
    }
    /* many tokens are nearly even */
    const double many_us = tnd_cluster_slowest_us(cases[0].duties, 2, 8, 2, 10000);
    CU_ASSERT_TRUE(many_us > 50 && many_us < 51);
}

static void experts_are_whole_where_that_is_faster_or_wanted(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    struct drawn w;
    struct tnd_cluster_plan rows, whole, either;
    const int ranks[] = {0, 1};
    draw(&rng, 2, &w);
    w.cluster.model.units[TND_FIT_EXPERTS] = 16;
    w.cluster.model.n_experts = 64;
    w.cluster.model.n_used = 4;
    for (int i = 0; i < 2; i++) {
        const enum tnd_cluster_division division = i == 0 ? TND_CLUSTER_ROWS : TND_CLUSTER_MIXED;
        w.cluster.refused = TND_CLUSTER_NO_WHOLE_EXPERTS;
        tnd_cluster_share(&w.cluster, mixed, division, ranks, 2, &rows);
        CU_ASSERT_FALSE(rows.has_whole_experts);
        w.cluster.refused = TND_CLUSTER_NO_EXPERT_ROWS;
        tnd_cluster_share(&w.cluster, mixed, division, ranks, 2, &whole);
        CU_ASSERT_TRUE(whole.has_whole_experts || tnd_cluster_is_alone(&whole));
        w.cluster.refused = 0;
        tnd_cluster_share(&w.cluster, mixed, division, ranks, 2, &either);
        const double rows_us = tnd_cluster_plan_us(&rows, mixed);
        const double whole_us = tnd_cluster_plan_us(&whole, mixed);
        CU_ASSERT_TRUE(!rows.fits || !whole.fits ||
                       tnd_cluster_plan_us(&either, mixed) == fmin(rows_us, whole_us));
    }
}

static CU_TestInfo tests[] = {
    {"ranks with whole experts wait for the one that is chosen most",
     ranks_with_whole_experts_wait_for_the_one_that_is_chosen_most},
    {"experts are whole where that is faster or wanted",
     experts_are_whole_where_that_is_faster_or_wanted},
    {"a plan is near the best of all plans", a_plan_is_near_the_best_of_all_plans},
    {"so is a plan with devices", so_is_a_plan_with_devices},
    {"no plan generates more slowly than the best rank alone",
     no_plan_generates_more_slowly_than_the_best_rank_alone},
    {"slow links leave one rank, and fast ones use all",
     slow_links_leave_one_rank_and_fast_ones_use_all},
    {"times of layers follow from the slowest rank", times_of_layers_follow_from_the_slowest_rank},
    {"texts in batches take what their events take", texts_in_batches_take_what_their_events_take},
    {"mixed plans take prompts of layers and tokens of rows",
     mixed_plans_take_prompts_of_layers_and_tokens_of_rows},
    {"a model without rows for ranks goes by layers",
     a_model_without_rows_for_ranks_goes_by_layers},
    {"memory limits shares", memory_limits_shares},
    {"sums follow from the slowest link", sums_follow_from_the_slowest_link},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_cluster[];
CU_SuiteInfo suites_tune_cluster[] = {
    {"cluster", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
