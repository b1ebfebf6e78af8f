/* SPDX-License-Identifier: MIT
 * bench-graph: times in ms of networks as lowered nets: an MLP, a ResNet-18, a BERT-class encoder,
 * a block of a U-Net. Weights are random. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "bench/arguments.h"
#include "graph/lower.h"
#include "tandem/runtime.h"

static const char usage[] =
    "usage: bench-graph [--threads N]\n"
    "Prints the median time of a run of each network: an MLP, a ResNet-18, an encoder like BERT,\n"
    "a block of a U-Net, with random weights.\n\n"
    "  --threads N  threads (default: 1, then 2)\n";
static struct tnd_rng rng;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

#define DIMS(...)                                                                                  \
    (&(struct tnd_dims){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})

static int input(struct tnd_net *net, const struct tnd_dims *shape)
{
    return tnd_net_input(net, TANDEM_DTYPE_F32, shape, "x", NULL);
}

static int weights(struct tnd_net *net, const struct tnd_dims *shape, double scale)
{
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, shape);
    float *values = array == NULL ? NULL : array->data;
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        values[i] = (float)scale * tnd_rng_normal(&rng);
    }
    return tnd_net_constant(net, array);
}

static int number(struct tnd_net *net, double value)
{
    return tnd_net_scalar(net, TANDEM_DTYPE_F32, value);
}

static int linear(struct tnd_net *net, int x, int64_t k, int64_t n)
{
    const int product = tnd_net_matmul(net, x, weights(net, DIMS(k, n), 1 / sqrt((double)k)));
    return tnd_net_binary(net, TANDEM_BINARY_ADD, product, weights(net, DIMS(n), 0.1));
}

static int relu(struct tnd_net *net, int x)
{
    return tnd_net_binary(net, TANDEM_BINARY_MAX, x, number(net, 0));
}

static void build_mlp(struct tnd_net *net)
{
    int x = input(net, DIMS(64, 784));
    x = relu(net, linear(net, x, 784, 512));
    x = relu(net, linear(net, x, 512, 512));
    (void)tnd_net_output(net, linear(net, x, 512, 10));
}

static int conv(struct tnd_net *net, int x, int64_t c, int64_t m, int64_t k, int64_t stride)
{
    const struct tnd_window window = {.n = 2,
                                      .extent = {k, k},
                                      .stride = {stride, stride},
                                      .dilation = {1, 1},
                                      .begin = {k / 2, k / 2},
                                      .end = {k / 2, k / 2},
                                      .groups = 1};
    const int y = tnd_net_conv(
        net, x, weights(net, DIMS(m, c, k, k), sqrt(2.0 / (double)(c * k * k))), &window);
    return tnd_net_binary(net, TANDEM_BINARY_ADD, y, weights(net, DIMS(1, m, 1, 1), 0.1));
}

static int residual(struct tnd_net *net, int x, int64_t c, int64_t m, int64_t stride)
{
    int y = relu(net, conv(net, x, c, m, 3, stride));
    y = conv(net, y, m, m, 3, 1);
    const int same = c == m && stride == 1 ? x : conv(net, x, c, m, 1, stride);
    return relu(net, tnd_net_binary(net, TANDEM_BINARY_ADD, y, same));
}

static void build_resnet(struct tnd_net *net)
{
    const struct tnd_window pool = {.n = 2,
                                    .extent = {3, 3},
                                    .stride = {2, 2},
                                    .dilation = {1, 1},
                                    .begin = {1, 1},
                                    .end = {1, 1},
                                    .groups = 1};
    int x = relu(net, conv(net, input(net, DIMS(1, 3, 224, 224)), 3, 64, 7, 2));
    x = tnd_net_pool(net, TANDEM_POOL_MAX, x, &pool);
    int64_t c = 64;
    for (int64_t m = 64; m <= 512; m *= 2) {
        x = residual(net, x, c, m, m == 64 ? 1 : 2);
        x = residual(net, x, m, m, 1);
        c = m;
    }
    x = tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 12u);
    x = tnd_net_binary(net, TANDEM_BINARY_MUL, x, number(net, 1.0 / 49));
    (void)tnd_net_output(net, linear(net, tnd_net_reshape(net, x, DIMS(1, 512)), 512, 1000));
}

static int mean(struct tnd_net *net, int x, int64_t n)
{
    const int sum = tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 2u);
    return tnd_net_binary(net, TANDEM_BINARY_MUL, sum, number(net, 1.0 / (double)n));
}

static int layer_norm(struct tnd_net *net, int x, int64_t n)
{
    x = tnd_net_binary(net, TANDEM_BINARY_SUB, x, mean(net, x, n));
    const int square = mean(net, tnd_net_binary(net, TANDEM_BINARY_MUL, x, x), n);
    const int root = tnd_net_unary(
        net, TANDEM_UNARY_SQRT, tnd_net_binary(net, TANDEM_BINARY_ADD, square, number(net, 1e-5)));
    x = tnd_net_binary(net, TANDEM_BINARY_DIV, x, root);
    x = tnd_net_binary(net, TANDEM_BINARY_MUL, x, weights(net, DIMS(n), 1));
    return tnd_net_binary(net, TANDEM_BINARY_ADD, x, weights(net, DIMS(n), 0.1));
}

static int gelu(struct tnd_net *net, int x)
{
    int y = tnd_net_binary(net, TANDEM_BINARY_MUL, x, number(net, sqrt(0.5)));
    y = tnd_net_binary(net, TANDEM_BINARY_ADD, tnd_net_unary(net, TANDEM_UNARY_ERF, y),
                       number(net, 1));
    y = tnd_net_binary(net, TANDEM_BINARY_MUL, x, y);
    return tnd_net_binary(net, TANDEM_BINARY_MUL, y, number(net, 0.5));
}

static int softmax(struct tnd_net *net, int x)
{
    x = tnd_net_binary(net, TANDEM_BINARY_SUB, x, tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 4u));
    x = tnd_net_unary(net, TANDEM_UNARY_EXP, x);
    return tnd_net_binary(net, TANDEM_BINARY_DIV, x, tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 4u));
}

enum { TOKENS = 128, HIDDEN = 384, HEADS = 12, HEAD = HIDDEN / HEADS };

static int heads(struct tnd_net *net, int x, bool is_keys)
{
    static const int forward[] = {1, 0, 2};
    static const int turned[] = {1, 2, 0};
    x = tnd_net_reshape(net, linear(net, x, HIDDEN, HIDDEN), DIMS(TOKENS, HEADS, HEAD));
    return tnd_net_permute(net, x, is_keys ? turned : forward);
}

static void build_bert(struct tnd_net *net)
{
    static const int back[] = {1, 0, 2};
    int x = input(net, DIMS(TOKENS, HIDDEN));
    for (int i = 0; i < 6; i++) {
        const int q = heads(net, x, false);
        const int k = heads(net, x, true);
        const int v = heads(net, x, false);
        int y = tnd_net_binary(net, TANDEM_BINARY_MUL, tnd_net_matmul(net, q, k),
                               number(net, 1 / sqrt((double)HEAD)));
        y = tnd_net_permute(net, tnd_net_matmul(net, softmax(net, y), v), back);
        y = linear(net, tnd_net_reshape(net, y, DIMS(TOKENS, HIDDEN)), HIDDEN, HIDDEN);
        x = layer_norm(net, tnd_net_binary(net, TANDEM_BINARY_ADD, x, y), HIDDEN);
        y = linear(net, gelu(net, linear(net, x, HIDDEN, 4 * HIDDEN)), 4 * HIDDEN, HIDDEN);
        x = layer_norm(net, tnd_net_binary(net, TANDEM_BINARY_ADD, x, y), HIDDEN);
    }
    (void)tnd_net_output(net, x);
}

static int silu(struct tnd_net *net, int x)
{
    int y = tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_unary(net, TANDEM_UNARY_NEG, x));
    y = tnd_net_binary(net, TANDEM_BINARY_ADD, y, number(net, 1));
    return tnd_net_binary(net, TANDEM_BINARY_DIV, x, y);
}

/* Downsamples, upsamples by doubling positions, and concatenates with the earlier values. */
static void build_unet(struct tnd_net *net)
{
    const int top = silu(net, conv(net, input(net, DIMS(1, 4, 64, 64)), 4, 64, 3, 1));
    int x = silu(net, conv(net, top, 64, 128, 3, 2));
    x = silu(net, conv(net, x, 128, 128, 3, 1));
    x = tnd_net_expand(net, tnd_net_reshape(net, x, DIMS(1, 128, 32, 1, 32, 1)),
                       DIMS(1, 128, 32, 2, 32, 2));
    const int both[] = {tnd_net_reshape(net, x, DIMS(1, 128, 64, 64)), top};
    x = silu(net, conv(net, tnd_net_concat(net, both, 2, 1), 192, 64, 3, 1));
    (void)tnd_net_output(net, conv(net, x, 64, 4, 3, 1));
}

/* ---- measuring ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { RUNS = 200 };

/* Median time; 0 on failure. */
static double measure(tandem_runtime *runtime, tandem_graph *graph, double budget_ms,
                      struct tandem_error *error)
{
    double times[RUNS];
    int n = 0;
    tandem_plan *plan = NULL;
    if (tandem_runtime_plan(runtime, graph, &plan, error) != TANDEM_OK) {
        return 0;
    }
    const double begin = now_ms();
    for (int i = -3; n < RUNS && (n < 5 || now_ms() - begin < budget_ms); i++) {
        const double t = now_ms();
        if (tandem_runtime_compute(runtime, graph, plan, NULL, error) != TANDEM_OK) {
            break;
        }
        times[n] = now_ms() - t;
        n += i >= 0;
    }
    tandem_plan_free(plan);
    qsort(times, (size_t)n, sizeof(times[0]), by_size);
    return n > 0 ? times[n / 2] : 0;
}

static void report(const char *name, void (*build)(struct tnd_net *net), int threads)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    struct tnd_lowered *lowered = NULL;
    tandem_runtime *runtime = NULL;
    struct tnd_net *net = tnd_net_new();
    double ms = 0;
    options.n_threads = threads;
    tnd_rng_init(&rng, 1);
    build(net);
    if (tnd_net_lower(net, &lowered, &error) == TANDEM_OK &&
        tandem_runtime_open(&options, &runtime, &error) == TANDEM_OK) {
        float *x = tnd_lowered_input(lowered, 0);
        const int64_t n = tnd_dims_values(&tnd_net_value(net, net->inputs[0])->shape);
        for (int64_t i = 0; i < n; i++) {
            x[i] = tnd_rng_normal(&rng);
        }
        ms = measure(runtime, tnd_lowered_graph(lowered), 3000, &error);
    }
    if (ms > 0) {
        printf("%-8s %d threads %9.3f ms, %4d nodes\n", name, threads, ms,
               tandem_graph_node_count(tnd_lowered_graph(lowered)));
    } else {
        printf("%-8s failed: %s\n", name, error.text);
    }
    tandem_runtime_close(runtime);
    tnd_lowered_free(lowered);
    tnd_net_free(net);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*build)(struct tnd_net *net);
    } nets[] = {
        {"mlp", build_mlp}, {"resnet18", build_resnet}, {"bert", build_bert}, {"unet", build_unet}};
    struct tnd_bench_number numbers[] = {{"--threads", 1, 64, 0}};
    tnd_bench_arguments(argc, argv, usage, numbers, 1);
    const int wanted = (int)numbers[0].value;
    for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
        for (int threads = wanted == 0 ? 1 : wanted; threads <= (wanted == 0 ? 2 : wanted);
             threads++) {
            report(nets[i].name, nets[i].build, threads);
        }
    }
    return 0;
}
