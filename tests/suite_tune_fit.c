/* SPDX-License-Identifier: MIT
 * Which weights live where: the knapsack against every possible choice, and its edges. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support_tune.h"
#include "tune/fit_model.h"
#include "tune/policy.h"

enum { MOST = 12 };

struct made {
    struct tnd_fit_item items[MOST];
    struct tnd_fit_problem problem;
};

static void make(struct tnd_test_rng *rng, int n_items, int n_sides, struct made *out)
{
    memset(out, 0, sizeof(*out));
    int64_t all = 0;
    double move_us = (double)tnd_test_rng_int(rng, 0, 60);
    for (int i = 0; i < n_items; i++) {
        out->items[i].bytes = tnd_test_rng_int(rng, 1, 100);
        out->items[i].us[0] = (double)tnd_test_rng_int(rng, 1, 200);
        all += out->items[i].bytes;
        for (int side = 1; side < n_sides; side++) {
            out->items[i].us[side] =
                tnd_test_rng_int(rng, 0, 9) == 0
                    ? (double)INFINITY
                    : out->items[i].us[0] / (double)tnd_test_rng_int(rng, 1, 12);
        }
    }
    out->problem.n_sides = n_sides;
    out->problem.n_items = n_items;
    out->problem.items = out->items;
    for (int side = 1; side < n_sides; side++) {
        out->problem.capacity[side] = tnd_test_rng_int(rng, 0, all);
        out->problem.move_us[0][side] = move_us;
        out->problem.move_us[side][0] = move_us;
        for (int other = 1; other < n_sides; other++) {
            out->problem.move_us[side][other] = side == other ? 0 : 2 * move_us;
        }
    }
}

/* The best of all choices. */
static double brute_force(const struct tnd_fit_problem *problem)
{
    uint8_t sides[MOST] = {0};
    double best = INFINITY;
    for (bool more = true; more;) {
        double us = tnd_fit_us(problem, sides);
        if (us < best && tnd_fit_holds(problem, sides)) {
            best = us;
        }
        int i = 0;
        while (i < problem->n_items && ++sides[i] == problem->n_sides) {
            sides[i++] = 0;
        }
        more = i < problem->n_items;
    }
    return best;
}

static void the_choice_is_near_the_best_of_all_choices(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(15);
    int n_cases = 400;
    int n_exact = 0;
    double lost = 0;
    double best_all = 0;
    double worst = 0;
    for (int c = 0; c < n_cases; c++) {
        struct made made;
        uint8_t sides[MOST];
        int n_sides = 2 + c % 2;
        make(&rng, (int)tnd_test_rng_int(&rng, 1, n_sides == 2 ? 11 : 7), n_sides, &made);
        check_ok(tnd_fit_choose(&made.problem, sides, NULL));
        CU_ASSERT_TRUE(tnd_fit_holds(&made.problem, sides));
        double best = brute_force(&made.problem);
        double us = tnd_fit_us(&made.problem, sides);
        n_exact += us <= best * (1 + 1e-12);
        lost += us - best;
        best_all += best;
        worst = fmax(worst, us / best - 1);
    }
    if (!(n_exact >= n_cases * 8 / 10) || !(lost <= 0.02 * best_all) || !(worst <= 0.6)) {
        printf("%d of %d exact, %.2f %% lost, at worst %.1f %%\n", n_exact, n_cases,
               100 * lost / best_all, 100 * worst);
    }
    CU_ASSERT_TRUE(n_exact >= n_cases * 8 / 10);
    CU_ASSERT_TRUE(lost <= 0.02 * best_all);
    CU_ASSERT_TRUE(worst <= 0.6);
}

static void the_choice_is_never_slower_than_the_host_or_whole_layers(void)
{
    struct tnd_test_rng rng = tnd_test_rng_new(16);
    static const int32_t layers[MOST] = {-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5};
    for (int c = 0; c < 400; c++) {
        struct made made;
        uint8_t sides[MOST];
        uint8_t whole[MOST];
        const uint8_t host[MOST] = {0};
        make(&rng, MOST, 2, &made);
        made.items[0].us[1] = INFINITY;
        check_ok(tnd_fit_choose(&made.problem, sides, NULL));
        tnd_fit_whole_layers(&made.problem, layers, 5, whole);
        CU_ASSERT_TRUE(tnd_fit_holds(&made.problem, whole));
        double us = tnd_fit_us(&made.problem, sides);
        CU_ASSERT_TRUE(us <= tnd_fit_us(&made.problem, host));
        CU_ASSERT_TRUE(us <= tnd_fit_us(&made.problem, whole) * (1 + 1e-9));
    }
}

static void what_saves_most_per_byte_is_taken_first(void)
{
    struct tnd_fit_item items[] = {
        {100, {50, 10}}, /* 0.4 us a byte */
        {10, {50, 10}},  /* 4 */
        {100, {90, 10}}, /* 0.8 */
    };
    struct tnd_fit_problem problem = {
        .n_sides = 2, .capacity = {0, 110}, .n_items = 3, .items = items};
    uint8_t sides[3];
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(sides[0], 0);
    check_int(sides[1], 1);
    check_int(sides[2], 1);
}

static void neighbours_that_pay_together_move_together(void)
{
    struct tnd_fit_item items[4];
    for (int i = 0; i < 4; i++) {
        items[i] = (struct tnd_fit_item){10, {20, 10}};
    }
    struct tnd_fit_problem problem = {.n_sides = 2,
                                      .capacity = {0, 40},
                                      .n_items = 4,
                                      .items = items,
                                      .move_us = {{0, 15}, {15, 0}}};
    uint8_t sides[4];
    check_ok(tnd_fit_choose(&problem, sides, NULL)); /* 40 saved, 30 for moving */
    check_int(tnd_fit_bytes(&problem, sides, 1), 40);
    problem.capacity[1] = 29; /* two alone do not pay */
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(tnd_fit_bytes(&problem, sides, 1), 0);
}

static void without_memory_or_a_device_everything_stays_in_host_memory(void)
{
    struct tnd_fit_item items[] = {{10, {50, 1}}, {0, {5, 9}}};
    struct tnd_fit_problem problem = {
        .n_sides = 2, .capacity = {0, 0}, .n_items = 2, .items = items};
    uint8_t sides[2] = {7, 7};
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(sides[0] + sides[1], 0);
    problem.capacity[1] = INT64_MIN;
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(sides[0] + sides[1], 0);
    problem.n_sides = 1;
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(sides[0] + sides[1], 0);
    problem.n_items = 0;
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    CU_ASSERT_TRUE(tnd_fit_us(&problem, sides) == 0);
}

static void hostile_sizes_and_times_are_refused(void)
{
    struct tnd_fit_item items[] = {{INT64_MAX, {50, 1}}, {1, {5, 9}}};
    struct tnd_fit_problem problem = {
        .n_sides = 2, .capacity = {0, INT64_MAX}, .n_items = 2, .items = items};
    struct tandem_error error;
    uint8_t sides[2] = {7, 7};
    check_status(tnd_fit_choose(&problem, sides, &error), TANDEM_E_ARGUMENT, "fit", &error);
    check_int(sides[0], 7); /* untouched */
    items[0].bytes = -1;
    check_status(tnd_fit_choose(&problem, sides, &error), TANDEM_E_ARGUMENT, "fit", &error);
    items[0].bytes = 1;
    items[0].us[1] = NAN;
    check_status(tnd_fit_choose(&problem, sides, &error), TANDEM_E_ARGUMENT, "fit", &error);
    items[0].us[1] = 1;
    items[0].us[0] = INFINITY;
    check_status(tnd_fit_choose(&problem, sides, &error), TANDEM_E_ARGUMENT, "fit", &error);
    items[0].us[0] = 1;
    problem.move_us[0][1] = -1;
    check_status(tnd_fit_choose(&problem, sides, &error), TANDEM_E_ARGUMENT, "fit", &error);
    problem.move_us[0][1] = 0;
    problem.n_sides = TND_FIT_SIDES + 1;
    check_status(tnd_fit_choose(&problem, sides, &error), TANDEM_E_ARGUMENT, "fit", &error);
    problem.n_sides = 2;
    check_ok(tnd_fit_choose(&problem, sides, &error));
}

static void whole_layers_fill_the_devices_from_the_end(void)
{
    struct tnd_fit_item items[6];
    static const int32_t layers[] = {-1, 0, 0, 1, 2, 3};
    for (int i = 0; i < 6; i++) {
        items[i] = (struct tnd_fit_item){10, {20, 10, 10}};
    }
    items[0].us[1] = items[0].us[2] = INFINITY;
    struct tnd_fit_problem problem = {
        .n_sides = 3, .capacity = {0, 15, 10}, .n_items = 6, .items = items};
    uint8_t sides[6];
    tnd_fit_whole_layers(&problem, layers, 3, sides);
    static const uint8_t partly[] = {0, 0, 0, 2, 1, 0};
    CU_ASSERT_TRUE(memcmp(sides, partly, sizeof(partly)) == 0);
    problem.capacity[2] = 1000; /* all layers, and so what comes behind them */
    tnd_fit_whole_layers(&problem, layers, 3, sides);
    static const uint8_t all[] = {0, 2, 2, 2, 1, 2};
    CU_ASSERT_TRUE(memcmp(sides, all, sizeof(all)) == 0);
}

/* ---- models ---- */

enum { N = TUNE_DEVICE_N, K = TUNE_DEVICE_K, BYTES = N * K / 32 * 18 };

static tandem_table *table;

/* The CPU takes 101 us to quantise a token and 101 us for its product, the device 10.1 us. */
static void set_up(void)
{
    table = tune_new();
    tune_add_cost(table, "cpu", 100, 1);
    tune_add_cost(table, "opencl", 10, 0.1);
    tune_add_link(table, "opencl", 5, 100); /* too slow for weights that travel */
}

static void tear_down(void)
{
    tandem_table_free(table);
}

static const struct tnd_fit_weight layer_weights[] = {
    {"output.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"token_embd.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.0.attn_norm.weight", TANDEM_TYPE_F32, K, 1, 1, 4 * K},
    {"blk.0.attn_q.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.0.attn_k.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.0.attn_v.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.0.ffn_up.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.1.ffn_up_exps.weight", TANDEM_TYPE_Q4_0, K, N, 8, 8 * BYTES},
};
enum { N_WEIGHTS = sizeof(layer_weights) / sizeof(layer_weights[0]) };

static struct tnd_fit_options options_of(int64_t memory)
{
    struct tnd_fit_options options = {.table = table,
                                      .n_threads = 1,
                                      .n_devices = 1,
                                      .devices = {NULL, "opencl"},
                                      .memory = {0, memory},
                                      .n_used = 2,
                                      .prompt_tokens = 4,
                                      .context = 100,
                                      .cache_type = TANDEM_TYPE_F16};
    return options;
}

static void names_say_part_and_layer(void)
{
    static const struct {
        const char *name;
        enum tnd_fit_part part;
        int32_t layer;
    } cases[] = {{"token_embd.weight", TND_FIT_EMBEDDING, -1},
                 {"output.weight", TND_FIT_OUTPUT, -1},
                 {"output_norm.weight", TND_FIT_OUTPUT, -1},
                 {"blk.12.attn_q_norm.weight", TND_FIT_ATTENTION, 12},
                 {"blk.0.ffn_gate_inp.weight", TND_FIT_FFN, 0},
                 {"blk.7.ffn_gate_exps.weight", TND_FIT_EXPERTS, 7},
                 {"blk.7.ffn_up_shexp.weight", TND_FIT_FFN, 7},
                 {"blk.-7.attn_q.weight", TND_FIT_OTHER, -1},
                 {"blk.99999999.attn_q.weight", TND_FIT_OTHER, -1},
                 {"blk.", TND_FIT_OTHER, -1},
                 {"w", TND_FIT_OTHER, -1},
                 {NULL, TND_FIT_OTHER, -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int32_t layer = 5;
        check_int(tnd_fit_part_of(cases[i].name, &layer), cases[i].part);
        check_int(layer, cases[i].layer);
    }
}

static void weights_are_grouped_in_the_order_of_the_computation(void)
{
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    struct tnd_fit_model model;
    check_ok(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, NULL));
    static const enum tnd_fit_part parts[] = {TND_FIT_EMBEDDING, TND_FIT_ATTENTION, TND_FIT_FFN,
                                              TND_FIT_EXPERTS, TND_FIT_OUTPUT};
    check_int(model.n_groups, 5);
    check_int(model.n_layers, 2);
    for (int g = 0; g < model.n_groups && g < 5; g++) {
        check_int(model.groups[g].part, parts[g]);
    }
    check_int(model.groups[1].n_weights, 4);
    check_int(model.groups[1].bytes, 3 * BYTES + 4 * K);
    check_int(model.group_of[0], 4);
    /* Half of 100 tokens' keys and values is read at the rate of a product of attention. */
    double cache_us = 0.5 * 2 * 2 * N * 100 / BYTES * 202;
    double us = model.groups[1].us[TND_FIT_GENERATION][0];
    CU_ASSERT_TRUE(fabs(us - (3 * 202 + cache_us)) < 0.01 * us);
    CU_ASSERT_TRUE(model.groups[0].us[TND_FIT_GENERATION][0] == 0);
    CU_ASSERT_TRUE(isinf(model.groups[0].us[TND_FIT_GENERATION][1]));
    tnd_fit_model_fini(&model);
}

static void weights_in_host_memory_may_travel_where_that_pays(void)
{
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    struct tnd_fit_model model;
    double error_us;
    const uint8_t host[8] = {0};
    check_ok(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, NULL));
    double slow_us = tnd_fit_model_us(&model, host, TND_FIT_PROMPT, &error_us);
    CU_ASSERT_TRUE(slow_us == tnd_fit_model_cpu_us(&model, TND_FIT_PROMPT, &error_us));
    tnd_fit_model_fini(&model);
    tune_add_link(table, "opencl", 4, 100000);
    check_ok(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, NULL));
    CU_ASSERT_TRUE(tnd_fit_model_us(&model, host, TND_FIT_PROMPT, &error_us) < 0.6 * slow_us);
    CU_ASSERT_TRUE(slow_us == tnd_fit_model_cpu_us(&model, TND_FIT_PROMPT, &error_us));
    tnd_fit_model_fini(&model);
}

/* Two of eight experts: a token touches two of them; a prompt of four about five, of which each
 * gets two tokens. */
static void experts_are_priced_by_what_is_touched(void)
{
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    struct tnd_fit_model model;
    check_ok(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, NULL));
    const struct tnd_fit_group *experts = &model.groups[3];
    check_int(experts->bytes, 8 * BYTES);
    double one = experts->us[TND_FIT_GENERATION][0];
    double four = experts->us[TND_FIT_PROMPT][0];
    CU_ASSERT_TRUE(fabs(one - (101 + 2 * 101)) < 10);
    CU_ASSERT_TRUE(fabs(four - (102 + 5 * 102)) < 20);
    tnd_fit_model_fini(&model);
}

/* Keys and values of a matrix that makes queries, too, and of latent vectors. */
static void fused_and_latent_keys_take_memory(void)
{
    const struct tnd_fit_weight weights[] = {
        {"output.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
        {"token_embd.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
        {"blk.0.attn_qkv.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
        {"blk.0.attn_output.weight", TANDEM_TYPE_Q4_0, N / 2, K, 1, BYTES / 2},
        {"blk.1.attn_kv_a_mqa.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
        {"blk.1.attn_output.weight", TANDEM_TYPE_Q4_0, N / 2, K, 1, BYTES / 2},
        {"blk.2.attn_qkv.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    };
    const int64_t values[] = {N / 2, 2 * N, N}; /* of a token */
    struct tnd_fit_options options = options_of((int64_t)1 << 40);
    struct tnd_fit_model model;
    options.cache_type = TANDEM_TYPE_Q4_0;
    check_ok(tnd_fit_model_new(weights, 7, &options, &model, NULL));
    for (int g = 0; g < model.n_groups; g++) {
        const int layer = model.groups[g].layer;
        if (layer >= 0 && layer < 3) {
            check_int(model.groups[g].cache_bytes, values[layer] / 32 * 18 * 100);
        }
    }
    tnd_fit_model_fini(&model);
}

static void the_reserve_and_the_cache_are_taken_off_first(void)
{
    /* Results of four tokens, four times as wide as the widest, and a matrix in F32. */
    int64_t fixed = TND_FIT_RESERVE_BYTES + 4 * (4 * N * 4 + N * K);
    int64_t cache = 2 * 2 * N * 100;
    struct tnd_fit_options options = options_of(fixed + 3 * BYTES + 4 * K + cache);
    struct tnd_fit_model model;
    struct tnd_fit_item items[8];
    struct tnd_fit_problem problem;
    uint8_t sides[8];
    const double count[TND_FIT_PHASES] = {0, 1};
    check_ok(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, NULL));
    check_int(model.fixed_bytes, fixed);
    check_int(model.groups[1].cache_bytes, cache);
    model.groups[2].bytes = model.groups[3].bytes = model.groups[4].bytes = INT64_C(1) << 40;
    tnd_fit_model_problem(&model, count, items, &problem);
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(sides[1], 1);
    problem.capacity[1]--;
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    check_int(sides[1], 0);
    tnd_fit_model_fini(&model);
}

static void weights_without_a_time_are_priced_by_their_bytes(void)
{
    struct tnd_fit_weight weights[N_WEIGHTS + 1];
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    struct tnd_fit_model model;
    struct tandem_error error;
    memcpy(weights, layer_weights, sizeof(layer_weights));
    weights[N_WEIGHTS] =
        (struct tnd_fit_weight){"blk.0.ffn_gate_inp.weight", TANDEM_TYPE_F16, K, 8, 1, BYTES / 10};
    check_ok(tnd_fit_model_new(weights, N_WEIGHTS + 1, &options, &model, &error));
    double error_us = model.groups[2].error_us[TND_FIT_GENERATION][0];
    /* The rate is that of two experts: 303 us. */
    error_us -= TND_FIT_GUESS_ERROR * 15.15;
    CU_ASSERT_TRUE(error_us > 0 && error_us < 2.5); /* that of the weights with times */
    tnd_fit_model_fini(&model);
    weights[N_WEIGHTS].bytes = 10 * BYTES;
    check_status(tnd_fit_model_new(weights, N_WEIGHTS + 1, &options, &model, &error),
                 TANDEM_E_NOT_FOUND, "blk.0.ffn_gate_inp.weight", &error);
}

static void without_a_table_or_with_hostile_sizes_nothing_is_priced(void)
{
    struct tnd_fit_weight weights[N_WEIGHTS];
    struct tnd_fit_options options = options_of(-1);
    struct tnd_fit_model model;
    struct tandem_error error;
    options.table = NULL;
    check_status(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, &error),
                 TANDEM_E_NOT_FOUND, "no timing table", &error);
    options.table = table;
    options.context = INT64_MAX;
    check_status(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, &error),
                 TANDEM_E_ARGUMENT, "too large", &error);
    options.context = 0;
    memcpy(weights, layer_weights, sizeof(weights));
    weights[3].bytes = INT64_MAX;
    check_status(tnd_fit_model_new(weights, N_WEIGHTS, &options, &model, &error), TANDEM_E_ARGUMENT,
                 "blk.0.attn_q.weight", &error);
    weights[3].bytes = BYTES;
    weights[3].k = 0;
    check_status(tnd_fit_model_new(weights, N_WEIGHTS, &options, &model, &error), TANDEM_E_ARGUMENT,
                 "blk.0.attn_q.weight", &error);
    options.n_devices = TND_FIT_SIDES;
    check_status(tnd_fit_model_new(weights, N_WEIGHTS, &options, &model, &error), TANDEM_E_ARGUMENT,
                 "devices", &error);
    options.n_devices = 1; /* with less than no memory */
    check_ok(tnd_fit_model_new(layer_weights, N_WEIGHTS, &options, &model, &error));
    check_int(model.capacity[1], 0);
    tnd_fit_model_fini(&model);
    check_ok(tnd_fit_model_new(NULL, 0, &options, &model, &error));
    check_int(model.n_groups, 0);
    tnd_fit_model_fini(&model);
}

/* ---- experts by use ---- */

enum { EXPERTS = 16, MOE_LAYERS = 3 };

static const struct tnd_fit_weight moe_weights[] = {
    {"token_embd.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.0.attn_q.weight", TANDEM_TYPE_Q4_0, K, N, 1, BYTES},
    {"blk.0.ffn_up_exps.weight", TANDEM_TYPE_Q4_0, K, N, EXPERTS, EXPERTS *BYTES},
    {"blk.1.ffn_up_exps.weight", TANDEM_TYPE_Q4_0, K, N, EXPERTS, EXPERTS *BYTES},
    {"blk.2.ffn_up_exps.weight", TANDEM_TYPE_Q4_0, K, N, EXPERTS, EXPERTS *BYTES},
};
enum { N_MOE = sizeof(moe_weights) / sizeof(moe_weights[0]) };

/* A token uses two experts, nearly always `first` and `second`. */
static void use_two(double use[EXPERTS * MOE_LAYERS], int first, int second)
{
    for (int i = 0; i < EXPERTS * MOE_LAYERS; i++) {
        int e = i % EXPERTS;
        use[i] = e == first || e == second ? 0.93 : 0.01;
    }
}

static void the_most_used_experts_of_a_layer_go_to_the_device_first(void)
{
    double use[EXPERTS * MOE_LAYERS];
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    const double count[TND_FIT_PHASES] = {0, 1};
    struct tnd_fit_model model;
    struct tnd_fit_model apart;
    struct tnd_fit_item items[64];
    struct tnd_fit_problem problem;
    uint8_t sides[64];
    int32_t hot[EXPERTS];
    int side = 0;
    double error_us;
    use_two(use, 5, 11);
    tune_add_link(table, "opencl", 1, 100000);
    options.context = 0;
    check_ok(tnd_fit_model_new(moe_weights, N_MOE, &options, &model, NULL));
    options.expert_use = use;
    options.use_experts = EXPERTS;
    options.use_layers = MOE_LAYERS;
    check_ok(tnd_fit_model_new(moe_weights, N_MOE, &options, &apart, NULL));
    check_int(apart.n_groups, 2 + MOE_LAYERS * TND_FIT_SLICES);
    memset(sides, 0, sizeof(sides)); /* all in host memory: the same time in more groups */
    CU_ASSERT_DOUBLE_EQUAL(tnd_fit_model_us(&apart, sides, TND_FIT_GENERATION, &error_us),
                           tnd_fit_model_us(&model, sides, TND_FIT_GENERATION, &error_us), 1);
    int64_t bytes = 0;
    for (int g = 0; g < apart.n_groups; g++) {
        bytes += apart.groups[g].bytes;
    }
    check_int(bytes, 2 * BYTES + MOE_LAYERS * EXPERTS * BYTES);
    tnd_fit_model_problem(&apart, count, items, &problem);
    problem.capacity[1] = 2 * BYTES + MOE_LAYERS * 2 * BYTES; /* output, attention, 2 each */
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    for (int l = 0; l < MOE_LAYERS; l++) {
        CU_ASSERT_TRUE(tnd_fit_hot_experts(&apart, sides, l, hot, &side) >= 2);
        check_int(side, 1);
        check_int(hot[0], 5);
        check_int(hot[1], 11);
    }
    /* 93 % of what experts take is saved, less what the device takes. */
    double all_us = apart.groups[2].us[TND_FIT_GENERATION][0] * 2 / 1.86;
    double us = tnd_fit_model_us(&apart, sides, TND_FIT_GENERATION, &error_us);
    CU_ASSERT_TRUE(us < MOE_LAYERS * 0.3 * all_us + 2 * 202);
    memset(sides, 1, sizeof(sides));
    check_int(tnd_fit_hot_experts(&apart, sides, 0, hot, &side), 0); /* all: none is apart */
    check_int(side, 1);
    tnd_fit_model_fini(&model);
    tnd_fit_model_fini(&apart);
}

static void an_expert_that_is_hot_stays_until_another_one_is_clearly_used_more(void)
{
    double use[EXPERTS * MOE_LAYERS];
    uint8_t hot_now[EXPERTS * MOE_LAYERS] = {0};
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    struct tnd_fit_model model;
    use_two(use, 5, 11);
    use[11] = 0.4;
    hot_now[12] = 1;
    use[12] = 0.4 / TND_FIT_HOT_STAYS + 0.001;
    options.expert_use = use;
    options.hot_now = hot_now;
    options.use_experts = EXPERTS;
    options.use_layers = MOE_LAYERS;
    check_ok(tnd_fit_model_new(moe_weights, N_MOE, &options, &model, NULL));
    check_int(model.ranks[0], 5);
    check_int(model.ranks[1], 12);
    tnd_fit_model_fini(&model);
    use[12] = 0.4 / TND_FIT_HOT_STAYS - 0.001;
    check_ok(tnd_fit_model_new(moe_weights, N_MOE, &options, &model, NULL));
    check_int(model.ranks[1], 11);
    tnd_fit_model_fini(&model);
}

/* What is hot now is priced by the use of now, wherever these experts stand among the ranks. */
static void what_is_hot_now_is_priced_by_what_it_is_used(void)
{
    double use[EXPERTS * MOE_LAYERS];
    uint8_t hot_now[EXPERTS * MOE_LAYERS] = {0};
    struct tnd_fit_options options = options_of(INT64_C(1) << 40);
    struct tnd_fit_model model;
    uint8_t sides[64] = {0};
    double error_us;
    use_two(use, 5, 11);
    tune_add_link(table, "opencl", 1, 100000);
    options.expert_use = use;
    options.hot_now = hot_now;
    options.use_experts = EXPERTS;
    options.use_layers = MOE_LAYERS;
    for (int i = 0; i < EXPERTS * MOE_LAYERS; i++) {
        hot_now[i] = i % EXPERTS == 2 || i % EXPERTS == 3; /* hardly used */
    }
    check_ok(tnd_fit_model_new(moe_weights, N_MOE, &options, &model, NULL));
    double host_us = tnd_fit_model_us(&model, sides, TND_FIT_GENERATION, &error_us);
    memset(sides + 2, 1, MOE_LAYERS * TND_FIT_SLICES);
    double cold_us = tnd_fit_now_us(&model, &options, sides, TND_FIT_GENERATION);
    CU_ASSERT_TRUE(cold_us > 0.95 * host_us);
    tnd_fit_model_fini(&model);
    use_two(use, 2, 3);
    memset(sides, 0, sizeof(sides));
    memset(sides + 2, 1, MOE_LAYERS * TND_FIT_SLICES);
    check_ok(tnd_fit_model_new(moe_weights, N_MOE, &options, &model, NULL));
    double hot_us = tnd_fit_now_us(&model, &options, sides, TND_FIT_GENERATION);
    CU_ASSERT_TRUE(hot_us < 0.5 * host_us);
    use[0] = 1.01;
    struct tnd_fit_model none;
    struct tandem_error error;
    check_status(tnd_fit_model_new(moe_weights, N_MOE, &options, &none, &error), TANDEM_E_ARGUMENT,
                 "experts", &error);
    tnd_fit_model_fini(&model);
}

static CU_TestInfo model_tests[] = {
    {"names say part and layer", names_say_part_and_layer},
    {"weights are grouped in the order of the computation",
     weights_are_grouped_in_the_order_of_the_computation},
    {"weights in host memory may travel where that pays",
     weights_in_host_memory_may_travel_where_that_pays},
    {"experts are priced by what is touched", experts_are_priced_by_what_is_touched},
    {"the most used experts of a layer go to the device first",
     the_most_used_experts_of_a_layer_go_to_the_device_first},
    {"an expert that is hot stays until another one is clearly used more",
     an_expert_that_is_hot_stays_until_another_one_is_clearly_used_more},
    {"what is hot now is priced by what it is used", what_is_hot_now_is_priced_by_what_it_is_used},
    {"fused and latent keys take memory", fused_and_latent_keys_take_memory},
    {"the reserve and the cache are taken off first",
     the_reserve_and_the_cache_are_taken_off_first},
    {"weights without a time are priced by their bytes",
     weights_without_a_time_are_priced_by_their_bytes},
    {"without a table or with hostile sizes nothing is priced",
     without_a_table_or_with_hostile_sizes_nothing_is_priced},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo knapsack_tests[] = {
    {"the choice is near the best of all choices", the_choice_is_near_the_best_of_all_choices},
    {"the choice is never slower than the host or whole layers",
     the_choice_is_never_slower_than_the_host_or_whole_layers},
    {"what saves most per byte is taken first", what_saves_most_per_byte_is_taken_first},
    {"neighbours that pay together move together", neighbours_that_pay_together_move_together},
    {"without memory or a device everything stays in host memory",
     without_memory_or_a_device_everything_stays_in_host_memory},
    {"hostile sizes and times are refused", hostile_sizes_and_times_are_refused},
    {"whole layers fill the devices from the end", whole_layers_fill_the_devices_from_the_end},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_fit[];
CU_SuiteInfo suites_tune_fit[] = {
    {"fit", NULL, NULL, NULL, NULL, knapsack_tests},
    {"fit of models", NULL, NULL, set_up, tear_down, model_tests},
    CU_SUITE_INFO_NULL,
};
