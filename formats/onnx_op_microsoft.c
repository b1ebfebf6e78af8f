/* SPDX-License-Identifier: MIT
 * Operators of the domain com.microsoft that ONNX Runtime's optimiser writes: products and
 * convolutions with what follows them, and norms. Those of its quantiser stand in
 * onnx_op_microsoft_quant.c, attention in onnx_op_microsoft_attention.c. Source of what they mean:
 * https://github.com/microsoft/onnxruntime/blob/v1.22.0/docs/ContribOperators.md */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

/* ---- activations ---- */

/* `name` of a value, with the numbers that the node lists for it: alpha and beta. */
static int activated(struct tnd_onnx_call *call, int value, const char *name)
{
    static const char *const known[] = {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"};
    int n = 0;
    const float *numbers = tnd_onnx_floats(call, "activation_params", &n);
    const float alpha = n > 0 ? numbers[0] : 0;
    const float beta = n > 1 ? numbers[1] : 0;
    const struct tnd_onnx_attribute given[] = {
        {.name = "alpha", .type = TND_ONNX_ATTRIBUTE_F32, .reference = "", .f = alpha},
        {.name = "beta", .type = TND_ONNX_ATTRIBUTE_F32, .reference = "", .f = beta}};
    if (name[0] == '\0') {
        return value;
    }
    if (strcmp(name, "Clip") == 0 && n == 2) {
        return tnd_net_formula(call->net, "x, low, high: min(max(x, low), high)", value,
                               (double)alpha, (double)beta);
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i]) == 0 && n <= 2) {
            return tnd_onnx_apply(call, name, given, n, value);
        }
    }
    return tnd_onnx_refuse(call, "activation '%.40s' with %d numbers", name, n);
}

/* A value and a bias (or none), as float32. */
static int biased(struct tnd_onnx_call *call)
{
    return tnd_net_formula(call->net, "x, bias?: x + bias",
                           tnd_onnx_wide(call, tnd_onnx_in(call, 0)),
                           tnd_onnx_wide(call, tnd_onnx_in(call, 1)));
}

static void give(struct tnd_onnx_call *call, int value)
{
    call->out[0] = tnd_onnx_narrow(call, value, tnd_onnx_in(call, 0));
}

static void build_gelu(struct tnd_onnx_call *call) /* and BiasGelu, FastGelu */
{
    give(call, tnd_net_unary(call->net, (enum tandem_unary)call->kind, biased(call)));
}

static void build_quick_gelu(struct tnd_onnx_call *call)
{
    tnd_onnx_formula(call, "x, alpha = 1.702: x * reciprocal(exp(-(x * alpha)) + 1)");
}

/* ---- products ---- */

/* An operand with its first axis in front of the last one (`batch`), then the last two swapped. */
static int turned(struct tnd_onnx_call *call, int value, const char *batch, const char *matrix)
{
    int axes[TANDEM_NET_MAX_DIMS];
    const int n = tnd_onnx_shape_of(call, value)->n;
    const bool turns_batch = tnd_onnx_int(call, batch, 0) != 0;
    const bool turns_matrix = tnd_onnx_int(call, matrix, 0) != 0;
    if (n < 2 || (!turns_batch && !turns_matrix)) {
        return value;
    }
    for (int i = 0; i < n; i++) {
        axes[i] = !turns_batch || i == n - 1 ? i : (i + 1) % (n - 1);
    }
    if (turns_matrix) {
        const int last = axes[n - 1];
        axes[n - 1] = axes[n - 2];
        axes[n - 2] = last;
    }
    return tnd_net_permute(call->net, value, axes);
}

static void build_fused_matmul(struct tnd_onnx_call *call)
{
    const double alpha = (double)tnd_onnx_float(call, "alpha", 1.0F);
    const int a = turned(call, tnd_onnx_in(call, 0), "transBatchA", "transA");
    const int b = turned(call, tnd_onnx_in(call, 1), "transBatchB", "transB");
    const int product = tnd_net_matmul(call->net, a, b);
    call->out[0] = alpha == 1.0 ? product : tnd_onnx_with(call, TANDEM_BINARY_MUL, product, alpha);
}

/* The node as another operator, with its own attributes and these operands. */
static int as_other(struct tnd_onnx_call *call, const char *op, const int *in, int n_in)
{
    int out = TANDEM_NET_NONE;
    tnd_onnx_build_as(call, op, NULL, -1, in, n_in, &out, 1);
    return out;
}

static void build_fused_gemm(struct tnd_onnx_call *call)
{
    const char *name = tnd_onnx_word(call, "activation", "");
    const float alpha = tnd_onnx_float(call, "activation_alpha", 0);
    const struct tnd_onnx_attribute given[] = {
        {.name = "alpha", .type = TND_ONNX_ATTRIBUTE_F32, .reference = "", .f = alpha}};
    const int value = as_other(call, "Gemm", call->in, call->n_in);
    if (strcmp(name, "LeakyRelu") == 0) {
        call->out[0] = tnd_onnx_apply(call, name, given, 1, value);
    } else {
        call->out[0] = activated(call, value, name);
    }
}

/* conv(x, w) + bias + z, and an activation. */
static void build_fused_conv(struct tnd_onnx_call *call)
{
    const char *name = tnd_onnx_word(call, "activation", "");
    const int z = tnd_onnx_in(call, 3);
    int value = as_other(call, "Conv", call->in, call->n_in < 3 ? call->n_in : 3);
    value = z == TANDEM_NET_NONE ? value : tnd_onnx_binary(call, TANDEM_BINARY_ADD, value, z);
    call->out[0] = activated(call, value, name);
}

/* ---- norms ---- */

/* The last axis of x, scaled and shifted. `is_simple`: by its mean square alone. */
static int normalised(struct tnd_onnx_call *call, int x, int gamma, int beta, bool is_simple)
{
    const double epsilon = (double)tnd_onnx_float(call, "epsilon", 1e-12F);
    const int rank = tnd_onnx_shape_of(call, x)->n;
    if (x == TANDEM_NET_NONE || rank < 1) {
        return tnd_onnx_refuse(call, "a scalar has no axis");
    }
    const unsigned axes = 1U << (rank - 1);
    int y =
        tnd_net_norm(call->net, is_simple ? TANDEM_NORM_RMS : TANDEM_NORM_LAYER, x, axes, epsilon);
    return tnd_net_formula(call->net, "y, gamma, beta?: y * gamma + beta", y,
                           tnd_onnx_wide(call, gamma), tnd_onnx_wide(call, beta));
}

/* input, skip, gamma, beta (not of the simplified one), bias. Outputs: norm, (mean, inverse of the
 * deviation,) sum. */
static void build_skip_norm(struct tnd_onnx_call *call)
{
    const bool is_simple = call->kind == TANDEM_NORM_RMS;
    const int beta = is_simple ? TANDEM_NET_NONE : tnd_onnx_in(call, 3);
    const int bias = tnd_onnx_in(call, is_simple ? 3 : 4);
    const enum tandem_dtype type = tnd_onnx_type_of(call, tnd_onnx_in(call, 0));
    const int sum = tnd_net_formula(
        call->net, "x, skip, bias?: x + skip + bias", tnd_onnx_wide(call, tnd_onnx_in(call, 0)),
        tnd_onnx_wide(call, tnd_onnx_in(call, 1)), tnd_onnx_wide(call, bias));
    for (int i = 1; i < 3 && i < call->n_out; i++) {
        if (call->node->outputs[i][0] != '\0') {
            (void)tnd_onnx_refuse(call, "mean and deviation as results, which are of training");
            return;
        }
    }
    give(call, normalised(call, sum, tnd_onnx_in(call, 2), beta, is_simple));
    if (call->n_out > 3) {
        call->out[3] = tnd_net_cast(call->net, sum, type);
    }
}

static void build_simple_norm(struct tnd_onnx_call *call)
{
    const int rank = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0))->n;
    const int64_t axis = tnd_onnx_int(call, "axis", -1);
    (void)tnd_onnx_int(call, "stash_type", 1);
    if (axis != -1 && axis != rank - 1) {
        (void)tnd_onnx_refuse(call, "axis %lld, expected the last one", (long long)axis);
        return;
    }
    give(call, normalised(call, tnd_onnx_wide(call, tnd_onnx_in(call, 0)), tnd_onnx_in(call, 1),
                          TANDEM_NET_NONE, true));
}

/* ids, segments, tables of words, positions and segments, gamma, beta, mask, positions. Outputs:
 * norm, number of tokens that the mask keeps, sum. */
static void build_embed_norm(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int ids = tnd_onnx_in(call, 0);
    const int segments = tnd_onnx_in(call, 1);
    const int table = tnd_onnx_in(call, 4);
    const int mask = tnd_onnx_in(call, 7);
    const int positions = tnd_onnx_in(call, 8);
    int at = positions == TANDEM_NET_NONE ? tnd_onnx_in(call, 3)
                                          : tnd_net_gather(net, tnd_onnx_in(call, 3), positions, 0);
    if (tnd_onnx_shape_of(call, ids)->n != 2 ||
        (segments == TANDEM_NET_NONE) != (table == TANDEM_NET_NONE)) {
        (void)tnd_onnx_refuse(call, "operands that are not {batch, tokens}, or segments without a "
                                    "table");
        return;
    }
    const int64_t tokens = tnd_onnx_shape_of(call, ids)->dims[1];
    if (positions == TANDEM_NET_NONE && tnd_onnx_shape_of(call, at)->dims[0] < tokens) {
        (void)tnd_onnx_refuse(call, "fewer positions than tokens");
        return;
    }
    at = positions == TANDEM_NET_NONE ? tnd_net_slice(net, at, 0, 0, tokens, 1) : at;
    int sum = tnd_onnx_binary(call, TANDEM_BINARY_ADD,
                              tnd_net_gather(net, tnd_onnx_in(call, 2), ids, 0), at);
    if (segments != TANDEM_NET_NONE) {
        sum =
            tnd_onnx_binary(call, TANDEM_BINARY_ADD, sum, tnd_net_gather(net, table, segments, 0));
    }
    const enum tandem_dtype type = tnd_onnx_type_of(call, sum);
    const int y = normalised(call, tnd_onnx_wide(call, sum), tnd_onnx_in(call, 5),
                             tnd_onnx_in(call, 6), false);
    call->out[0] = tnd_net_cast(net, y, type);
    if (call->n_out > 1) {
        const struct tnd_dims batch = {1, {tnd_onnx_shape_of(call, ids)->dims[0]}};
        const int kept =
            mask == TANDEM_NET_NONE ? tnd_net_binary(net, TANDEM_BINARY_SUB, ids, ids) : mask;
        call->out[1] = tnd_net_cast(
            net, tnd_net_reshape(net, tnd_net_reduce(net, TANDEM_REDUCE_SUM, kept, 2U), &batch),
            TANDEM_DTYPE_I32);
    }
    if (call->n_out > 2) {
        call->out[2] = sum;
    }
}

const struct tnd_onnx_op tnd_onnx_microsoft[] = {
    {"Gelu", build_gelu, TANDEM_UNARY_GELU, "1"},
    {"BiasGelu", build_gelu, TANDEM_UNARY_GELU, "2"},
    {"FastGelu", build_gelu, TANDEM_UNARY_GELU_TANH, "1-2"},
    {"QuickGelu", build_quick_gelu, 0, "1"},
    {"FusedMatMul", build_fused_matmul, 0, "2"},
    {"FusedGemm", build_fused_gemm, 0, "2-3"},
    {"FusedConv", build_fused_conv, 0, "2-4"},
    {"SkipLayerNormalization", build_skip_norm, TANDEM_NORM_LAYER, "3-5>1-4"},
    {"SkipSimplifiedLayerNormalization", build_skip_norm, TANDEM_NORM_RMS, "3-4>1-4"},
    {"SimplifiedLayerNormalization", build_simple_norm, 0, "2"},
    {"EmbedLayerNormalization", build_embed_norm, 0, "7-9>1-3"},
    {NULL, NULL, 0, NULL},
};
