/* SPDX-License-Identifier: MIT
 * What shares of a model cost on a rank, by its CPU and with a device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support_tune.h"
#include "tune/cluster.h"
#include "tune/policy.h"

/* What is divided takes half of the time on half of the rows or columns; the norm and the router
 * are whole on every rank. */
static void halves_of_a_model_take_half_of_the_time(void)
{
    static const struct tnd_fit_weight weights[] = {
        {"token_embd.weight", TANDEM_TYPE_Q4_0, 512, 1024, 1, 300000},
        {"blk.0.attn_norm.weight", TANDEM_TYPE_F32, 512, 1, 1, 2048},
        {"blk.0.attn_q.weight", TANDEM_TYPE_Q4_0, 512, 512, 1, 147456},
        {"blk.0.attn_k.weight", TANDEM_TYPE_Q4_0, 512, 512, 1, 147456},
        {"blk.0.attn_v.weight", TANDEM_TYPE_Q4_0, 512, 512, 1, 147456},
        {"blk.0.attn_output.weight", TANDEM_TYPE_Q4_0, 512, 512, 1, 147456},
        {"blk.0.ffn_gate.weight", TANDEM_TYPE_Q4_0, 512, 1024, 1, 294912},
        {"blk.0.ffn_up.weight", TANDEM_TYPE_Q4_0, 512, 1024, 1, 294912},
        {"blk.0.ffn_down.weight", TANDEM_TYPE_Q4_0, 1024, 512, 1, 294912},
    };
    const struct tnd_cluster_shape shape = {.dim = 512,
                                            .kv_heads = 4,
                                            .q_dim = 512,
                                            .vocabulary = 1024,
                                            .hidden = 1024,
                                            .micro_tokens = 2,
                                            .n_micro = 8};
    tandem_table *table = tune_new();
    struct tnd_cluster_rank *rank = calloc(2, sizeof(rank[0]));
    struct tnd_cluster_model model;
    const int n = (int)(sizeof(weights) / sizeof(weights[0]));
    tune_add_cost_of(table, "cpu", 512, 512, 0, 26);
    tune_add_cost_of(table, "cpu", 1024, 512, 0, 52);
    tune_add_cost_of(table, "cpu", 512, 1024, 0, 52);
    const struct tnd_fit_options options = {.table = table,
                                            .n_threads = 1,
                                            .prompt_tokens = 4,
                                            .context = 64,
                                            .cache_type = TANDEM_TYPE_F16};
    check_ok(tnd_cluster_price(weights, n, &shape, &options, 1, 1, rank, &model, NULL));
    check_int(model.n_layers, 1);
    check_int(model.units[TND_FIT_ATTENTION], 4);
    check_int(model.units[TND_FIT_FFN], 32);
    check_int(model.units[TND_FIT_OUTPUT], 16);
    check_int(model.bytes[TND_FIT_FFN], 3 * 294912);
    check_int(model.n_micro, 2);
    const struct tnd_cluster_prices *prices = &rank->prices[0];
    CU_ASSERT_DOUBLE_EQUAL(prices->layers[TND_FIT_GENERATION].us[16],
                           prices->curves[TND_FIT_GENERATION][TND_FIT_ATTENTION].us[16] +
                               prices->curves[TND_FIT_GENERATION][TND_FIT_FFN].us[16] +
                               prices->curves[TND_FIT_GENERATION][TND_FIT_OTHER].us[16],
                           1e-6);
    CU_ASSERT_TRUE(prices->layers[TND_FIT_PROMPT].us[16] > 0); /* two halves, of 2 tokens each */
    for (int phase = 0; phase < TND_FIT_PHASES; phase++) {
        for (int part = TND_FIT_ATTENTION; part <= TND_FIT_OUTPUT; part++) {
            const double *us = prices->curves[phase][part].us;
            CU_ASSERT_EQUAL(us[0], 0);
            CU_ASSERT_TRUE(us[16] > 0 || part == TND_FIT_EXPERTS);
            CU_ASSERT_TRUE(us[8] >= 0.4 * us[16] && us[8] <= 0.75 * us[16]); /* X is whole */
        }
    }
    /* Two ranks of one machine, whose cores they share: neither is faster than both together. */
    check_ok(tnd_cluster_price(weights, n, &shape, &options, 2, 1, rank + 1, &model, NULL));
    CU_ASSERT_DOUBLE_EQUAL(rank[1].prices[0].curves[TND_FIT_GENERATION][TND_FIT_FFN].us[8],
                           rank[0].prices[0].curves[TND_FIT_GENERATION][TND_FIT_FFN].us[16], 1e-6);
    check_int(model.bytes[TND_FIT_FFN], 3 * 294912);
    free(rank);
    tandem_table_free(table);
}

/* A device of ten times the speed, with room for two of four layers and the classifier. */
static void a_device_takes_what_it_has_room_for(void)
{
    enum { LAYERS = 4, EACH = 3 };
    static const char *const names[EACH] = {"blk.%d.attn_q.weight", "blk.%d.ffn_gate.weight",
                                            "blk.%d.ffn_down.weight"};
    struct tnd_fit_weight weights[LAYERS * EACH + 1];
    char texts[LAYERS * EACH][TANDEM_MAX_NAME];
    const struct tnd_cluster_shape shape = {
        .dim = 512, .kv_heads = 4, .q_dim = 512, .vocabulary = 1024, .hidden = 512};
    tandem_table *table = tune_new();
    struct tnd_cluster_rank *rank = calloc(1, sizeof(rank[0]));
    struct tnd_cluster_model model;
    const int64_t bytes = 147456, ffn = 2 * bytes;
    weights[0] =
        (struct tnd_fit_weight){"token_embd.weight", TANDEM_TYPE_Q4_0, 512, 1024, 1, 2 * bytes};
    for (int i = 0; i < LAYERS * EACH; i++) {
        snprintf(texts[i], sizeof(texts[i]), names[i % EACH], i / EACH);
        weights[i + 1] = (struct tnd_fit_weight){texts[i], TANDEM_TYPE_Q4_0, 512, 512, 1, bytes};
    }
    const int64_t rows[] = {128, 256, 512, 1024};
    for (int n = 0; n < 4; n++) {
        for (int k = 0; k < 3; k++) {
            const double us = (double)(rows[n] * rows[k]) / 100;
            tune_add_cost_of(table, "cpu", rows[n], rows[k], us, 0);
            tune_add_cost_of(table, "opencl", rows[n], rows[k], us / 10, 0);
        }
    }
    tune_add_link(table, "opencl", 1, 20); /* too slow for weights */
    struct tnd_fit_options options = {.table = table,
                                      .n_threads = 1,
                                      .n_devices = 1,
                                      .devices = {NULL, "opencl"},
                                      .memory = {0, INT64_C(1) << 40},
                                      .budget = {0, 2 * (bytes + ffn) + 2 * bytes + bytes / 2},
                                      .prompt_tokens = 4,
                                      .cache_type = TANDEM_TYPE_F16};
    check_ok(
        tnd_cluster_price(weights, LAYERS * EACH + 1, &shape, &options, 1, 1, rank, &model, NULL));
    const struct tnd_cluster_prices *cpu = &rank->prices[0], *both = &rank->prices[1];
    const double *us = both->layers[TND_FIT_GENERATION].us;
    const double *of_cpu = cpu->layers[TND_FIT_GENERATION].us;
    CU_ASSERT_TRUE(rank->has_device);
    check_string(rank->device, "opencl");
    check_int(rank->device_memory, options.budget[1]);
    CU_ASSERT_TRUE(us[4] < 0.2 * of_cpu[4] && us[8] < 0.2 * of_cpu[8]); /* one layer, two */
    /* the others, or one of them and the classifier, by the CPU */
    CU_ASSERT_TRUE(us[16] > us[8] + 0.6 * of_cpu[8] && us[16] < us[8] + 1.1 * of_cpu[8]);
    CU_ASSERT_DOUBLE_EQUAL(both->layers_placed[4], bytes + ffn, bytes);
    CU_ASSERT_TRUE(both->layers_placed[16] <= (double)options.budget[1]);
    /* half of the rows of all layers have room, and nearly all of them are there */
    const double *rows_us = both->curves[TND_FIT_GENERATION][TND_FIT_FFN].us;
    CU_ASSERT_TRUE(rows_us[8] < 0.5 * cpu->curves[TND_FIT_GENERATION][TND_FIT_FFN].us[8]);
    CU_ASSERT_TRUE(both->rows_placed[8] > LAYERS * 0.4 * (double)ffn);
    /* a single rank: the whole is what `fit` says of one machine */
    struct tnd_fit_model alone;
    struct tnd_fit_item items[LAYERS * EACH + 1];
    uint8_t sides[LAYERS * EACH + 1];
    struct tnd_fit_problem problem;
    const double count[TND_FIT_PHASES] = {1, TND_FIT_ANSWER_TOKENS};
    double error_us, whole_us = 0;
    check_ok(tnd_fit_model_new(weights, LAYERS * EACH + 1, &options, &alone, NULL));
    tnd_fit_model_problem(&alone, count, items, &problem);
    check_ok(tnd_fit_choose(&problem, sides, NULL));
    for (int part = 0; part < TND_FIT_PARTS; part++) {
        whole_us += both->curves[TND_FIT_GENERATION][part].us[TND_CLUSTER_POINTS - 1];
    }
    CU_ASSERT_DOUBLE_EQUAL(whole_us, tnd_fit_model_us(&alone, sides, TND_FIT_GENERATION, &error_us),
                           1e-6 * whole_us);
    tnd_fit_model_fini(&alone);
    free(rank);
    tandem_table_free(table);
}

static CU_TestInfo tests[] = {
    {"halves of a model take half of the time", halves_of_a_model_take_half_of_the_time},
    {"a device takes what it has room for", a_device_takes_what_it_has_room_for},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_tune_cluster_prices[];
CU_SuiteInfo suites_tune_cluster_prices[] = {
    {"prices of shares", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
