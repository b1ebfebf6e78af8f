/* SPDX-License-Identifier: MIT
 * Reference kernels along the rows of matrices, in double: softmax, norms, attention. */
#include <math.h>

#include "ggml-like/net_kernels.h"

static double at(const struct tnd_view *view, int64_t i, int64_t j, int64_t k)
{
    const int64_t place = i * view->strides[0] + j * view->strides[1] + k * view->strides[2];
    return view->type == TANDEM_DTYPE_F32 ? (double)((const float *)view->data)[place]
                                          : ((const double *)view->data)[place];
}

/* Rounds to the type, so that values overflow here where separate operations would. */
static double as_type(enum tandem_dtype type, double value)
{
    return type == TANDEM_DTYPE_F32 ? (double)(float)value : value;
}

static void put(struct tnd_array *out, int64_t place, double value)
{
    if (out->type == TANDEM_DTYPE_F32) {
        ((float *)out->data)[place] = (float)value;
    } else {
        ((double *)out->data)[place] = value;
    }
}

/* exp(x - largest) of a row in place; returns the sum. A row of only -infinity becomes zeros. */
static double exponentials(double *row, int64_t n)
{
    double largest = -(double)INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        largest = row[i] > largest || row[i] != row[i] ? row[i] : largest;
    }
    const bool is_nothing = largest < 0 && isinf(largest);
    for (int64_t i = 0; i < n; i++) {
        row[i] = is_nothing ? 0 : exp(row[i] - largest);
        sum += row[i];
    }
    return sum;
}

/* Loads row `i` of all matrices. */
static void load(const struct tnd_view *x, int64_t i, double *row)
{
    for (int64_t k = 0; k < x->shape.dims[2]; k++) {
        row[k] = at(x, i / x->shape.dims[1], i % x->shape.dims[1], k);
    }
}

static void store(const double *row, double by, int64_t i, int64_t n, struct tnd_array *out)
{
    for (int64_t k = 0; k < n; k++) {
        put(out, i * n + k, row[k] * by);
    }
}

enum tandem_status tnd_kernel_softmax(const struct tnd_kernel_call *call)
{
    const struct tnd_view *x = &call->in[0];
    const int64_t n = x->shape.dims[2];
    double *row = call->scratch;
    for (int64_t i = 0; i < x->shape.dims[0] * x->shape.dims[1] && n > 0; i++) {
        load(x, i, row);
        const double sum = exponentials(row, n);
        store(row, sum == 0 ? 0 : 1 / sum, i, n, call->out);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_kernel_norm(const struct tnd_kernel_call *call)
{
    const struct tnd_view *x = &call->in[0];
    const int64_t n = x->shape.dims[2];
    double *row = call->scratch;
    for (int64_t i = 0; i < x->shape.dims[0] * x->shape.dims[1] && n > 0; i++) {
        double mean = 0;
        double squares = 0;
        load(x, i, row);
        for (int64_t k = 0; k < n && call->params->kind == TANDEM_NORM_LAYER; k++) {
            mean += row[k];
        }
        mean = as_type(x->type, mean) / (double)n;
        for (int64_t k = 0; k < n; k++) {
            row[k] -= mean;
            squares += as_type(x->type, row[k] * row[k]);
        }
        squares = as_type(x->type, squares) / (double)n;
        store(row, 1 / sqrt(squares + call->params->number), i, n, call->out);
    }
    return TANDEM_OK;
}

/* Attention weights of query `m` of matrix `b`, before division by their sum, which is returned. */
static double weights(const struct tnd_kernel_call *call, int64_t b, int64_t m, double *row)
{
    const struct tnd_view *q = &call->in[0];
    const struct tnd_view *k = &call->in[1];
    for (int64_t i = 0; i < k->shape.dims[1]; i++) {
        row[i] = 0;
        for (int64_t d = 0; d < q->shape.dims[2]; d++) {
            row[i] += at(q, b, m, d) * at(k, b, i, d);
        }
        row[i] = as_type(q->type, as_type(q->type, row[i]) * call->params->number);
        row[i] += call->n_in > 3 ? at(&call->in[3], 0, m, i) : 0;
    }
    return exponentials(row, k->shape.dims[1]);
}

enum tandem_status tnd_kernel_attention(const struct tnd_kernel_call *call)
{
    const struct tnd_view *v = &call->in[2];
    const struct tnd_dims *shape = &call->out->shape; /* {M, B, E} */
    const double *row = call->scratch;
    for (int64_t i = 0; i < shape->dims[0] * shape->dims[1]; i++) {
        const int64_t b = i % shape->dims[1];
        const double sum = weights(call, b, i / shape->dims[1], call->scratch);
        for (int64_t e = 0; e < shape->dims[2]; e++) {
            double value = 0;
            for (int64_t k = 0; k < v->shape.dims[1]; k++) {
                value += row[k] * at(v, b, k, e);
            }
            put(call->out, i * shape->dims[2] + e, sum == 0 ? 0 : value / sum);
        }
    }
    return TANDEM_OK;
}
