/* SPDX-License-Identifier: MIT
 * Operators of the domain com.microsoft that ONNX Runtime's quantiser writes. A value stands for
 * (value - zero point) * scale; they are built so that pass "quantise" finds the integers. Source:
 * https://github.com/microsoft/onnxruntime/blob/v1.22.0/docs/ContribOperators.md */
#include <string.h>

#include "base/alloc.h"
#include "formats/onnx_op.h"

/* Operand `i`, its scale and zero point behind it, as float32. */
static int floats_of(struct tnd_onnx_call *call, int i)
{
    return tnd_onnx_dequantised(call, tnd_onnx_in(call, i), tnd_onnx_in(call, i + 1),
                                tnd_onnx_in(call, i + 2));
}

/* Integers of the result: its scale is operand `i`, the zero point the next one. */
static void give(struct tnd_onnx_call *call, int value, int i)
{
    call->out[0] = tnd_onnx_quantised(call, value, tnd_onnx_in(call, i), tnd_onnx_in(call, i + 1),
                                      tnd_onnx_type_of(call, tnd_onnx_in(call, 0)));
}

static void build_binary(struct tnd_onnx_call *call)
{
    give(call,
         tnd_onnx_binary(call, (enum tandem_binary)call->kind, floats_of(call, 0),
                         floats_of(call, 3)),
         6);
}

static void build_global_pool(struct tnd_onnx_call *call)
{
    if (tnd_onnx_int(call, "channels_last", 0) != 0) {
        (void)tnd_onnx_refuse(call, "channels that stand last");
        return;
    }
    give(call, tnd_onnx_apply(call, "GlobalAveragePool", NULL, 0, floats_of(call, 0)), 3);
}

static void build_pool(struct tnd_onnx_call *call)
{
    const int x = floats_of(call, 0);
    int out = TANDEM_NET_NONE;
    if (tnd_onnx_int(call, "channels_last", 0) != 0) {
        (void)tnd_onnx_refuse(call, "channels that stand last");
        return;
    }
    tnd_onnx_build_as(call, "AveragePool", NULL, -1, &x, 1, &out, 1);
    give(call, out, 3);
}

/* LeakyRelu and Sigmoid, with the node's own attributes. */
static void build_function(struct tnd_onnx_call *call)
{
    static const char *const names[] = {"LeakyRelu", "Sigmoid"};
    const int x = floats_of(call, 0);
    int out = TANDEM_NET_NONE;
    tnd_onnx_build_as(call, names[call->kind], NULL, -1, &x, 1, &out, 1);
    give(call, out, 3);
}

/* Softmax of the stated opset: before 13 over all axes from `axis` on. */
static void build_softmax(struct tnd_onnx_call *call)
{
    const int x = floats_of(call, 0);
    int out = TANDEM_NET_NONE;
    struct tnd_onnx_call inner = *call;
    inner.opset = tnd_onnx_int(call, "opset", 13);
    inner.were_read = call->were_read;
    tnd_onnx_build_as(&inner, "Softmax", NULL, -1, &x, 1, &out, 1);
    call->were_read |= inner.were_read;
    give(call, out, 3);
}

/* Scale and zero point of the result, then three operands for each part. */
static void build_concat(struct tnd_onnx_call *call)
{
    const int n = (call->n_in - 2) / 3;
    int *parts = tnd_calloc((size_t)n + 1, sizeof(parts[0]));
    int out = TANDEM_NET_NONE;
    for (int i = 0; parts != NULL && i < n; i++) {
        parts[i] = floats_of(call, 2 + 3 * i);
    }
    if (parts == NULL || n < 1 || (call->n_in - 2) % 3 != 0) {
        (void)tnd_onnx_refuse(call, "%d operands, expected two and three for each part",
                              call->n_in);
    } else {
        tnd_onnx_build_as(call, "Concat", NULL, -1, parts, n, &out, 1);
        call->out[0] = tnd_onnx_quantised(call, out, tnd_onnx_in(call, 0), tnd_onnx_in(call, 1),
                                          tnd_onnx_type_of(call, tnd_onnx_in(call, 2)));
    }
    tnd_free(parts);
}

/* A and B with scales and zero points, C of int32, scale and zero point of the result, or none:
 * float32. */
static void build_gemm(struct tnd_onnx_call *call)
{
    static const int swapped[] = {1, 0};
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    const bool turns_a = tnd_onnx_int(call, "transA", 0) != 0;
    const bool turns_b = tnd_onnx_int(call, "transB", 0) != 0;
    const int c = tnd_onnx_in(call, 6);
    int a = floats_of(call, 0);
    int b = tnd_onnx_dequantised_along(call, tnd_onnx_in(call, 3), tnd_onnx_in(call, 4),
                                       tnd_onnx_in(call, 5), turns_b ? 0 : 1);
    if (tnd_onnx_shape_of(call, a)->n != 2 || tnd_onnx_shape_of(call, b)->n != 2) {
        (void)tnd_onnx_refuse(call, "operands that are no matrices");
        return;
    }
    a = turns_a ? tnd_net_permute(call->net, a, swapped) : a;
    b = turns_b ? tnd_net_permute(call->net, b, swapped) : b;
    const int bias = tnd_net_formula(call->net, "c?, a, b: float32(c) * (a * b)", c,
                                     tnd_onnx_in(call, 1), tnd_onnx_in(call, 4));
    const int y = tnd_net_formula(call->net, "ab, bias?, alpha: ab * alpha + bias * alpha",
                                  tnd_net_matmul(call->net, a, b), bias, alpha);
    if (tnd_onnx_in(call, 7) == TANDEM_NET_NONE) {
        call->out[0] = y;
    } else {
        give(call, y, 7);
    }
}

/* Sums of integers times both scales, and a bias. */
static void give_scaled(struct tnd_onnx_call *call, const int sums[4], int a_scale, int b_scale,
                        int bias)
{
    int y = TANDEM_NET_NONE;
    tnd_onnx_build_as(call, "MatMulInteger", NULL, 0, sums, 4, &y, 1);
    call->out[0] = tnd_net_formula(call->net, "sum, a, b, bias?: float32(sum) * (a * b) + bias", y,
                                   a_scale, b_scale, bias);
}

/* A, B, scales of both, zero points of both, bias. */
static void build_integer_to_float(struct tnd_onnx_call *call)
{
    const int sums[] = {tnd_onnx_in(call, 0), tnd_onnx_in(call, 1), tnd_onnx_in(call, 4),
                        tnd_onnx_in(call, 5)};
    give_scaled(call, sums, tnd_onnx_in(call, 2), tnd_onnx_in(call, 3), tnd_onnx_in(call, 6));
}

/* A of float32, which is quantised here; B with scale and zero point, bias. */
static void build_dynamic_matmul(struct tnd_onnx_call *call)
{
    const int a = tnd_onnx_in(call, 0);
    int q[3] = {TANDEM_NET_NONE, TANDEM_NET_NONE, TANDEM_NET_NONE};
    tnd_onnx_build_as(call, "DynamicQuantizeLinear", NULL, 0, &a, 1, q, 3);
    const int sums[] = {q[0], tnd_onnx_in(call, 1), q[2], tnd_onnx_in(call, 3)};
    give_scaled(call, sums, q[1], tnd_onnx_in(call, 2), tnd_onnx_in(call, 4));
}

/* ---- weights of few bits ---- */

/* Weights {N, blocks, bytes} of `bits` bits, the first of a byte in its low bits. */
struct few_bits {
    int64_t n, k, bits, block, blocks;
    const uint8_t *values, *zeros; /* zeros NULL: the middle of the range */
    const struct tnd_array *scales;
};

static int value_of(const uint8_t *row, int64_t i, int64_t bits)
{
    const int64_t of_byte = 8 / bits;
    return row[i / of_byte] >> (int)(i % of_byte * bits) & ((1 << (int)bits) - 1);
}

static void unpack(const struct few_bits *w, float *out)
{
    const int64_t block_bytes = w->block * w->bits / 8;
    const int64_t zero_bytes = (w->blocks * w->bits + 7) / 8;
    for (int64_t n = 0; n < w->n; n++) {
        for (int64_t k = 0; k < w->k; k++) {
            const int64_t block = k / w->block;
            const uint8_t *row = w->values + (n * w->blocks + block) * block_bytes;
            const int zero = w->zeros == NULL ? 1 << (int)(w->bits - 1)
                                              : value_of(w->zeros + n * zero_bytes, block, w->bits);
            const double scale = tnd_array_number(w->scales, n * w->blocks + block);
            out[n * w->k + k] = (float)((value_of(row, k % w->block, w->bits) - zero) * scale);
        }
    }
}

/* Whether the operands have as many values as the attributes say. */
static bool read_few_bits(struct tnd_onnx_call *call, struct few_bits *w)
{
    *w = (struct few_bits){.n = tnd_onnx_int(call, "N", 0),
                           .k = tnd_onnx_int(call, "K", 0),
                           .bits = tnd_onnx_int(call, "bits", 4),
                           .block = tnd_onnx_int(call, "block_size", 0)};
    const struct tnd_array *values = tnd_net_known(call->net, tnd_onnx_in(call, 1));
    const int zeros = tnd_onnx_in(call, 3);
    const struct tnd_array *points =
        zeros == TANDEM_NET_NONE ? NULL : tnd_net_known(call->net, zeros);
    (void)tnd_onnx_int(call, "accuracy_level", 0);
    w->scales = tnd_net_known(call->net, tnd_onnx_in(call, 2));
    if (w->n < 1 || w->k < 1 || w->n > 1 << 24 || w->k > 1 << 24 ||
        w->n * w->k > INT64_C(1) << 36 || (w->bits != 2 && w->bits != 4 && w->bits != 8) ||
        w->block < 16 || w->block > 1 << 16 || (w->block & (w->block - 1)) != 0 ||
        tnd_onnx_in(call, 4) != TANDEM_NET_NONE) {
        (void)tnd_onnx_refuse(call, "%lld x %lld weights of %lld bits in blocks of %lld",
                              (long long)w->n, (long long)w->k, (long long)w->bits,
                              (long long)w->block);
        return false;
    }
    w->blocks = (w->k + w->block - 1) / w->block;
    const int64_t point_bytes = w->n * ((w->blocks * w->bits + 7) / 8);
    if (values == NULL || w->scales == NULL || values->type != TANDEM_DTYPE_U8 ||
        values->n != w->n * w->blocks * (w->block * w->bits / 8) ||
        w->scales->n != w->n * w->blocks ||
        (zeros != TANDEM_NET_NONE &&
         (points == NULL || points->type != TANDEM_DTYPE_U8 || points->n != point_bytes))) {
        (void)tnd_onnx_refuse(call, "weights, scales or zero points that are no constants of the "
                                    "shape that the attributes say");
        return false;
    }
    w->values = values->data;
    w->zeros = points != NULL ? points->data : NULL;
    return true;
}

/* A, and weights, scales, zero points as above; no order of groups; bias. */
static void build_matmul_few_bits(struct tnd_onnx_call *call)
{
    static const int swapped[] = {1, 0};
    struct few_bits w;
    if (!read_few_bits(call, &w)) {
        return;
    }
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &TND_DIMS(w.n, w.k));
    const int bias = tnd_onnx_in(call, 5);
    const int a = tnd_onnx_wide(call, tnd_onnx_in(call, 0));
    if (array == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for %lld x %lld weights",
                           (long long)w.n, (long long)w.k);
        return;
    }
    unpack(&w, array->data);
    int y = tnd_net_matmul(call->net, a,
                           tnd_net_permute(call->net, tnd_net_constant(call->net, array), swapped));
    y = tnd_net_formula(call->net, "y, bias?: y + bias", y, tnd_onnx_wide(call, bias));
    call->out[0] = tnd_onnx_narrow(call, y, tnd_onnx_in(call, 0));
}

const struct tnd_onnx_op tnd_onnx_microsoft_quant[] = {
    {"QLinearAdd", build_binary, TANDEM_BINARY_ADD, "7-8"},
    {"QLinearMul", build_binary, TANDEM_BINARY_MUL, "7-8"},
    {"QLinearGlobalAveragePool", build_global_pool, 0, "5"},
    {"QLinearAveragePool", build_pool, 0, "4-5"},
    {"QLinearLeakyRelu", build_function, 0, "4-5"},
    {"QLinearSigmoid", build_function, 1, "4-5"},
    {"QLinearSoftmax", build_softmax, 0, "4-5"},
    {"QLinearConcat", build_concat, 0, "5-*"},
    {"QGemm", build_gemm, 0, "6-9"},
    {"MatMulIntegerToFloat", build_integer_to_float, 0, "4-7"},
    {"DynamicQuantizeMatMul", build_dynamic_matmul, 0, "3-5"},
    {"MatMulNBits", build_matmul_few_bits, 0, "3-6"},
    {NULL, NULL, 0, NULL},
};
