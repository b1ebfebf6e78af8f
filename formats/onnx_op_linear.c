/* SPDX-License-Identifier: MIT
 * ONNX operators: matrix products. */
#include <string.h>

#include "formats/onnx_op.h"

static void build_matmul(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_net_matmul(call->net, tnd_onnx_in(call, 0), tnd_onnx_in(call, 1));
}

static void build_gemm(struct tnd_onnx_call *call)
{
    static const int swapped[] = {1, 0};
    int a = tnd_onnx_in(call, 0);
    int b = tnd_onnx_in(call, 1);
    const int c = tnd_onnx_in(call, 2);
    if (tnd_onnx_shape_of(call, a)->n != 2 || tnd_onnx_shape_of(call, b)->n != 2) {
        (void)tnd_onnx_refuse(call, "operands of %d and %d dimensions, expected 2",
                              tnd_onnx_shape_of(call, a)->n, tnd_onnx_shape_of(call, b)->n);
        return;
    }
    a = tnd_onnx_int(call, "transA", 0) != 0 ? tnd_net_permute(call->net, a, swapped) : a;
    b = tnd_onnx_int(call, "transB", 0) != 0 ? tnd_net_permute(call->net, b, swapped) : b;
    if (call->opset < 7) {
        (void)tnd_onnx_int(call, "broadcast", 0); /* C is always broadcast */
    }
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0f);
    const double beta = (double)tnd_onnx_float(call, "beta", 1.0f);
    const int product = tnd_net_matmul(call->net, a, b);
    call->out[0] = tnd_net_formula(call->net, "ab, c?, alpha, beta: ab * alpha + c * beta", product,
                                   c, alpha, beta);
}

/* ---- determinants ---- */

#define MAX_ORDER 32

/* One step of Gaussian elimination of {batch, n, n}: swaps the row with the largest first value
 * (the pivot) with the first row. Returns the remaining {batch, n - 1, n - 1}, and multiplies *det,
 * {batch}, by the pivot. */
static int eliminated(struct tnd_onnx_call *call, int a, int *det)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims from = *tnd_onnx_shape_of(call, a);
    const int64_t n = from.dims[1];
    const struct tnd_dims one = {3, {from.dims[0], 1, 1}};
    const struct tnd_dims row = {3, {from.dims[0], 1, n}};
    const struct tnd_dims list = {1, {from.dims[0]}};
    const int first = tnd_net_slice(net, a, 2, 0, 1, 1);
    const int size = tnd_net_unary(net, TANDEM_UNARY_ABS, first);
    const int at = tnd_net_reshape(net, tnd_net_arg_reduce(net, true, size, 1, false), &one);
    const int pivot = tnd_net_gather_elements(net, a, tnd_net_expand(net, at, &row), 1);
    const int head = tnd_net_slice(net, pivot, 2, 0, 1, 1);
    const int factor = tnd_net_formula(net, "at, head: at > 0 ? -head : head", at, head);
    *det = tnd_net_binary(net, TANDEM_BINARY_MUL, *det, tnd_net_reshape(net, factor, &list));
    if (n == 1 || net->status != TANDEM_OK) {
        return TANDEM_NET_NONE;
    }
    /* the first row moves to the pivot's index */
    const int rows = tnd_net_reshape(net, tnd_onnx_counting(call, n), &TND_DIMS(1, n, 1));
    const int is_pivot = tnd_net_binary(net, TANDEM_BINARY_EQUAL, rows, at);
    a = tnd_net_select(net, is_pivot, tnd_net_slice(net, a, 1, 0, 1, 1), a);
    const int rest = tnd_net_slice(net, a, 1, 1, n - 1, 1);
    const int by = tnd_onnx_divided(call, tnd_net_slice(net, rest, 2, 0, 1, 1), head);
    const int of = tnd_net_slice(net, rest, 2, 1, n - 1, 1);
    const int less = tnd_net_slice(net, pivot, 2, 1, n - 1, 1);
    return tnd_net_formula(net, "of, by, less: of - by * less", of, by, less);
}

static void build_det(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    if (shape.n < 2 || shape.dims[shape.n - 1] != shape.dims[shape.n - 2] ||
        shape.dims[shape.n - 1] < 1 || shape.dims[shape.n - 1] > MAX_ORDER ||
        tnd_dtype_kind(type) != TND_KIND_FLOAT) {
        (void)tnd_onnx_refuse(call, "expected squares of floats, of at most %d rows", MAX_ORDER);
        return;
    }
    const int64_t n = shape.dims[shape.n - 1];
    shape.n -= 2;
    const struct tnd_dims list = {1, {tnd_dims_values(&shape)}};
    int a = tnd_net_reshape(net, tnd_onnx_wide(call, x), &TND_DIMS(list.dims[0], n, n));
    int det = tnd_net_expand(net, tnd_onnx_scalar(call, a, 1.0), &list);
    for (int64_t i = 0; i < n && net->status == TANDEM_OK; i++) {
        a = eliminated(call, a, &det);
    }
    call->out[0] = tnd_net_cast(net, tnd_net_reshape(net, det, &shape), type);
}

const struct tnd_onnx_op tnd_onnx_linear[] = {
    {"Det", build_det, 0, "1"},
    {"Gemm", build_gemm, 0, "3 11:2-3"},
    {"MatMul", build_matmul, 0, "2"},
    {NULL, NULL, 0, NULL},
};
