/* SPDX-License-Identifier: MIT
 * bench-experts: products of experts beside plain products of the same multiply-adds: one of all
 * tokens with a single matrix, and one of an expert's tokens. They run through a runtime without a
 * table, in turns; the experts of tokens are random. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "bench/arguments.h"
#include "tandem/tandem.h"

enum { ROUNDS_MAX = 101, PRODUCTS = 3 };

struct shape {
    const char *name;
    int64_t n, k, experts, used;
};

/* Gate matrices of Mixtral 8x7B at a quarter of its width, and of Qwen3-30B-A3B with a quarter of
 * its experts and complete. */
static const struct shape shapes[] = {
    {"mixtral / 4", 3584, 4096, 8, 2},
    {"qwen3-30b-a3b / 4", 768, 2048, 32, 8},
    {"qwen3-30b-a3b", 768, 2048, 128, 8},
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill(tandem_tensor *tensor, struct tnd_rng *rng)
{
    enum { ROW_VALUES = 65536 };
    static float values[ROW_VALUES];
    const enum tandem_type type = tandem_tensor_type(tensor);
    const size_t bytes = tandem_tensor_bytes(tensor);
    const size_t pool = tandem_type_row_bytes(type, ROW_VALUES);
    char *blocks = malloc(pool);
    for (int i = 0; i < ROW_VALUES; i++) {
        values[i] = tnd_rng_float(rng) - 0.5f;
    }
    if (blocks != NULL && tandem_quantize(type, values, blocks, ROW_VALUES) == TANDEM_OK) {
        for (size_t at = 0; at < bytes; at += pool) {
            memcpy((char *)tandem_tensor_data(tensor) + at, blocks,
                   bytes - at < pool ? bytes - at : pool);
        }
    }
    free(blocks);
}

/* The products that are compared, each a graph of one node. */
struct product {
    tandem_graph *graph;
    double factor; /* number of runs with the work of the first product */
    double us[ROUNDS_MAX];
};

static tandem_tensor *leaf(tandem_context *context, enum tandem_type type, int64_t ne0, int64_t ne1,
                           int64_t ne2, struct tnd_rng *rng)
{
    const int64_t ne[] = {ne0, ne1, ne2};
    tandem_tensor *tensor = tandem_tensor_new(context, type, 3, ne);
    if (tensor != NULL && type != TANDEM_TYPE_I32) {
        fill(tensor, rng);
    }
    return tandem_tensor_set_role(tensor, TANDEM_ROLE_CONSTANT);
}

static bool make_products(tandem_context *context, const struct shape *s, enum tandem_type type,
                          int64_t m, struct product *products)
{
    struct tnd_rng rng;
    tnd_rng_init(&rng, 1);
    const int64_t pairs = m * s->used;
    const int64_t each = pairs / s->experts > 0 ? pairs / s->experts : 1;
    const int64_t ids_ne[] = {s->used, m};
    tandem_tensor *w = leaf(context, type, s->k, s->n, s->experts, &rng);
    tandem_tensor *one = leaf(context, type, s->k, s->n, 1, &rng);
    tandem_tensor *x = leaf(context, TANDEM_TYPE_F32, s->k, 1, m, &rng);
    tandem_tensor *rows = leaf(context, TANDEM_TYPE_F32, s->k, pairs, 1, &rng);
    tandem_tensor *few = leaf(context, TANDEM_TYPE_F32, s->k, each, 1, &rng);
    tandem_tensor *ids = tandem_tensor_new(context, TANDEM_TYPE_I32, 2, ids_ne);
    int32_t *id = tandem_tensor_data(ids);
    for (int64_t i = 0; id != NULL && i < pairs; i++) { /* a token's experts differ */
        const bool is_first = i % s->used == 0;
        const int64_t step = 1 + (int64_t)tnd_rng_below(&rng, 3);
        const int64_t last = is_first ? (int64_t)tnd_rng_below(&rng, (uint64_t)s->experts)
                                      : id[i - 1] + (s->experts >= 3 * s->used ? step : 1);
        id[i] = (int32_t)(last % s->experts);
    }
    tandem_tensor *results[PRODUCTS] = {tandem_mul_mat_id(context, w, x, ids),
                                        tandem_mul_mat(context, one, rows),
                                        tandem_mul_mat(context, one, few)};
    for (int i = 0; i < PRODUCTS; i++) {
        products[i].graph = tandem_graph_new(context);
        products[i].factor = i == 2 ? (double)pairs / (double)each : 1.0;
        tandem_graph_add(products[i].graph, results[i]);
        if (tandem_graph_finish(products[i].graph, NULL) != TANDEM_OK) {
            return false;
        }
    }
    return true;
}

static bool measure(tandem_runtime *runtime, struct product *products, int rounds)
{
    for (int round = -2; round < rounds;
         round++) { /* two to warm up: the first one packs and compiles */
        for (int i = 0; i < PRODUCTS; i++) {
            const double begin = now_us();
            if (tandem_runtime_compute(runtime, products[i].graph, NULL, NULL, NULL) != TANDEM_OK) {
                return false;
            }
            products[i].us[round < 0 ? 0 : round] = (now_us() - begin) * products[i].factor;
        }
    }
    for (int i = 0; i < PRODUCTS; i++) {
        qsort(products[i].us, (size_t)rounds, sizeof(products[i].us[0]), by_value);
    }
    return true;
}

static bool print_cell(tandem_runtime *runtime, const struct shape *s, enum tandem_type type,
                       int64_t m, int rounds)
{
    static struct product products[PRODUCTS];
    tandem_context *context = NULL;
    bool good = tandem_context_new(NULL, &context, NULL) == TANDEM_OK &&
                make_products(context, s, type, m, products) && measure(runtime, products, rounds);
    if (good) {
        const double us = products[0].us[rounds / 2];
        const double work = 2e-3 * (double)s->n * (double)s->k * (double)(m * s->used);
        printf("| %s | %s | %lld of %lld | %lld | %.0f | %.1f | %.1f | %.0f %% | %.0f %% |\n",
               s->name, tandem_type_name(type), (long long)s->used, (long long)s->experts,
               (long long)m, us, work / us, work / products[1].us[rounds / 2],
               100.0 * products[1].us[rounds / 2] / us, 100.0 * products[2].us[rounds / 2] / us);
        fflush(stdout);
    }
    tandem_context_free(context);
    return good;
}

static const char usage[] =
    "Products of experts beside plain products of as many multiply-adds, in turns.\n"
    "bench-experts [--rounds N] [--threads N] [--device N]\n"
    "--device: all of it on this OpenCL device, as mulmat-tune devices counts them.\n"
    "The last columns: the speed of a plain product of all rows, and that of plain products of as\n"
    "many tokens as an expert gets, over that of the experts.\n";

int main(int argc, char **argv)
{
    static const enum tandem_type types[] = {TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q4_K};
    static const int64_t tokens[] = {1, 32, 512};
    struct tnd_bench_number numbers[] = {
        {"--rounds", 1, ROUNDS_MAX, 7}, {"--threads", 1, 64, 0}, {"--device", 0, 64, -1}};
    char settings[32];
    tnd_bench_arguments(argc, argv, usage, numbers, 3);
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.table_path = "";
    options.n_threads = (int)numbers[1].value;
    if (numbers[2].value >= 0) {
        snprintf(settings, sizeof(settings), "opencl:device=%d", (int)numbers[2].value);
        options.backends = "cpu,opencl";
        options.settings = settings;
        options.profile = "opencl";
    }
    if (tandem_runtime_open(&options, &runtime, NULL) != TANDEM_OK) {
        fprintf(stderr, "bench-experts: no runtime\n");
        return 1;
    }
    bool good = true;
    printf("%s, %d threads\n\n| shape | type | experts | M | median us | GFLOP/s | plain | of all "
           "rows | of each expert |\n|---|---|---|---|---|---|---|---|---|\n",
           tnd_cpu_model(), tandem_runtime_threads(runtime));
    for (size_t i = 0; i < 18 && good; i++) {
        good = print_cell(runtime, &shapes[i / 6], types[i / 3 % 2], tokens[i % 3],
                          (int)numbers[0].value);
    }
    tandem_runtime_close(runtime);
    if (!good) {
        fprintf(stderr, "bench-experts: no memory\n");
    }
    return !good;
}
