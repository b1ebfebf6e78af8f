/* SPDX-License-Identifier: MIT
 * What tests of the bridge in the small host share: tensors, sums in double precision, counting. */
#include "tests/bridge/bridge_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tandem/tensor.h"

const int bridge_types[TYPES] = {
    TANDEM_TYPE_F32,  TANDEM_TYPE_F16,  TANDEM_TYPE_BF16, TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q4_1,
    TANDEM_TYPE_Q5_0, TANDEM_TYPE_Q5_1, TANDEM_TYPE_Q8_0, TANDEM_TYPE_Q2_K, TANDEM_TYPE_Q3_K,
    TANDEM_TYPE_Q4_K, TANDEM_TYPE_Q5_K, TANDEM_TYPE_Q6_K};

int n_passed;
int n_failed;
struct device *device;
struct backend *backend;
struct buffer *activations;

bool check(bool is_good, int line, const char *text, const char *format, ...)
{
    if (is_good) {
        n_passed++;
        return true;
    }
    n_failed++;
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED: line %d: %s: ", line, text);
    (void)vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    return false;
}

static uint32_t random_state = 1;

static float next_random(void)
{
    random_state = random_state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (float)(random_state >> 8) / (float)(1 << 24) - 0.5f;
}

void fill(void *out, int64_t n)
{
    float *values = out;
    for (int64_t i = 0; i < n; i++) {
        values[i] = next_random();
    }
}

void fill_weights(const struct tensor *w)
{
    static float values[K];
    for (int64_t row = 0; row < w->ne[1]; row++) {
        fill(values, w->ne[0]);
        (void)tandem_quantize((enum tandem_type)w->type, values,
                              (char *)w->data + (size_t)row * w->nb[1], w->ne[0]);
    }
}

struct tensor matrix(int type, int64_t ne0, int64_t ne1, struct buffer *buffer, size_t at)
{
    return small_host_tensor(type, (const int64_t[]){ne0, ne1, 1, 1}, buffer, at);
}

struct tensor product(struct tensor *w, struct tensor *x, struct buffer *buffer, size_t at)
{
    struct tensor y = matrix(TANDEM_TYPE_F32, w->ne[1], x->ne[1], buffer, at);
    y.op = OP_MUL_MAT;
    y.src[0] = w;
    y.src[1] = x;
    return y;
}

/* The sum of squared errors over the sum of squares. */
double error_of(const struct tensor *y)
{
    static float row[K];
    const struct tensor *w = y->src[0];
    const struct tensor *x = y->src[1];
    double wrong = 0;
    double all = 0;
    for (int64_t n = 0; n < w->ne[1]; n++) {
        (void)tandem_dequantize((enum tandem_type)w->type,
                                (const char *)w->data + (size_t)n * w->nb[1], row, w->ne[0]);
        for (int64_t m = 0; m < x->ne[1]; m++) {
            const float *values = (const float *)x->data + m * x->ne[0];
            double sum = 0;
            for (int64_t k = 0; k < w->ne[0]; k++) {
                sum += (double)row[k] * (double)values[k];
            }
            double got = (double)((const float *)y->data)[m * w->ne[1] + n];
            wrong += (got - sum) * (got - sum);
            all += sum * sum;
        }
    }
    return wrong / all;
}

int compute(struct tensor **nodes, int n)
{
    struct ggml_cgraph graph = {.n_nodes = n};
    memcpy(graph.nodes, nodes, (size_t)n * sizeof(nodes[0]));
    return backend->graph_compute(backend, &graph);
}
