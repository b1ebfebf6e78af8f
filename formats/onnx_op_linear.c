/* SPDX-License-Identifier: MIT
 * Operators of ONNX: products of matrices. */
#include <string.h>

#include "formats/onnx_op.h"

static void build_matmul(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_net_matmul(call->net, tnd_onnx_in(call, 0), tnd_onnx_in(call, 1));
}

/* `value` times a factor; the value itself for 1. */
static int scaled(struct tnd_onnx_call *call, int value, double factor)
{
    return factor == 1.0 ? value : tnd_onnx_with(call, TND_BINARY_MUL, value, factor);
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
        (void)tnd_onnx_int(call, "broadcast", 0); /* (of C, which broadcasts anyway) */
    }
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0f);
    const double beta = (double)tnd_onnx_float(call, "beta", 1.0f);
    const int product = scaled(call, tnd_net_matmul(call->net, a, b), alpha);
    call->out[0] = c == TND_NET_NONE || product == TND_NET_NONE
                       ? product
                       : tnd_net_binary(call->net, TND_BINARY_ADD, product, scaled(call, c, beta));
}

const struct tnd_onnx_op tnd_onnx_linear[] = {
    {"Gemm", build_gemm, 0, "3 11:2-3"},
    {"MatMul", build_matmul, 0, "2"},
    {NULL, NULL, 0, NULL},
};
