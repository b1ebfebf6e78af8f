/* SPDX-License-Identifier: MIT
 * Operators of ONNX: quantised operators. A value stands for (value - zero point) * scale. */
#include <math.h>
#include <string.h>

#include "formats/onnx_build.h"
#include "formats/onnx_op.h"

static bool is_small_integer(enum tandem_dtype type)
{
    const enum tnd_dtype_kind kind = tnd_dtype_kind(type);
    return (kind == TND_KIND_SIGNED || kind == TND_KIND_UNSIGNED) && tandem_dtype_bytes(type) <= 2;
}

/* float32 as integers of a type: to the nearest, out of range to the nearest that there is. */
static int saturate_bits(struct tnd_onnx_call *call, int x, int zero, enum tandem_dtype type,
                         int bits)
{
    const bool is_signed = tnd_dtype_kind(type) == TND_KIND_SIGNED;
    const double low = is_signed ? -ldexp(1.0, bits - 1) : 0.0;
    const double high = ldexp(1.0, is_signed ? bits - 1 : bits) - 1.0;
    x = tnd_net_formula(call->net,
                        "x, zero?, low, high: min(max(round(x) + float32(zero), low), high)", x,
                        zero, low, high);
    return tnd_net_cast(call->net, x, type);
}

static int saturate(struct tnd_onnx_call *call, int x, int zero, enum tandem_dtype type)
{
    return saturate_bits(call, x, zero, type, 8 * (int)tandem_dtype_bytes(type));
}

/* ---- to integers and back ---- */

/* One value a block along an axis: each repeated as often as its block has values. */
static int spread_blocks(struct tnd_onnx_call *call, int list, const struct tnd_dims *shape,
                         int axis, int64_t block)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, list);
    if (block < 1 || block > INT32_MAX || from.n != shape->n || shape->n >= TANDEM_NET_MAX_DIMS ||
        from.dims[axis] != (shape->dims[axis] + block - 1) / block) {
        return tnd_onnx_refuse(call, "blocks of %lld values that do not fit the shape",
                               (long long)block);
    }
    struct tnd_dims split = {.n = from.n + 1};
    for (int i = 0; i < split.n; i++) {
        split.dims[i] = i <= axis ? from.dims[i] : i == axis + 1 ? 1 : from.dims[i - 1];
    }
    struct tnd_dims wide = split;
    struct tnd_dims joined = from;
    wide.dims[axis + 1] = block;
    joined.dims[axis] *= block;
    int value = tnd_net_expand(call->net, tnd_net_reshape(call->net, list, &split), &wide);
    value = tnd_net_reshape(call->net, value, &joined);
    return tnd_net_slice(call->net, value, axis, 0, shape->dims[axis], 1);
}

/* A scale or zero point in the form that broadcasts with the operand. */
static int spread(struct tnd_onnx_call *call, int list, const struct tnd_dims *shape, int64_t axis,
                  int64_t block)
{
    const struct tnd_dims *from = tnd_onnx_shape_of(call, list);
    const struct tnd_dims scalar = {0};
    struct tnd_dims to = {.n = shape->n};
    int at;
    if (list == TANDEM_NET_NONE) {
        return list;
    }
    if (tnd_dims_values(from) == 1 && block == 0) {
        return tnd_net_reshape(call->net, list, &scalar);
    }
    if (!tnd_onnx_axis(call, axis, shape->n, &at)) {
        return TANDEM_NET_NONE;
    }
    if (block != 0) {
        return spread_blocks(call, list, shape, at, block);
    }
    for (int i = 0; i < to.n; i++) {
        to.dims[i] = i == at ? shape->dims[i] : 1;
    }
    return tnd_net_reshape(call->net, list, &to);
}

/* What both directions read: attributes, scale and zero point spread. */
struct scaling {
    int scale; /* float32 */
    int zero;
};

static bool read_scaling(struct tnd_onnx_call *call, struct scaling *out)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const int64_t axis = tnd_onnx_int(call, "axis", 1);
    const int64_t block = tnd_onnx_int(call, "block_size", 0);
    const int scale = spread(call, tnd_onnx_in(call, 1), &shape, axis, block);
    out->scale = tnd_net_cast(call->net, scale, TANDEM_DTYPE_F32);
    out->zero = spread(call, tnd_onnx_in(call, 2), &shape, axis, block);
    return call->net->status == TANDEM_OK && out->scale != TANDEM_NET_NONE;
}

int tnd_onnx_dequantised_along(struct tnd_onnx_call *call, int x, int scale, int zero, int axis)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    /* float32 holds differences of 16 bits */
    const enum tandem_dtype wide =
        is_small_integer(tnd_onnx_type_of(call, x)) ? TANDEM_DTYPE_F32 : TANDEM_DTYPE_I32;
    x = tnd_net_cast(call->net, x, wide);
    zero = tnd_net_cast(call->net, spread(call, zero, &shape, axis, 0), wide);
    scale = spread(call, scale, &shape, axis, 0);
    return tnd_net_formula(call->net, "x, zero?, scale: float32(x - zero) * float32(scale)", x,
                           zero, scale);
}

int tnd_onnx_dequantised(struct tnd_onnx_call *call, int x, int scale, int zero)
{
    return tnd_onnx_dequantised_along(call, x, scale, zero, 0);
}

int tnd_onnx_quantised(struct tnd_onnx_call *call, int x, int scale, int zero,
                       enum tandem_dtype type)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    if (!is_small_integer(type)) {
        return tnd_onnx_refuse(call, "a result of %s, expected integers of 8 or 16 bits",
                               tandem_dtype_name(type));
    }
    zero = zero == TANDEM_NET_NONE ? zero : spread(call, zero, &shape, 0, 0);
    return saturate(call,
                    tnd_onnx_binary(call, TANDEM_BINARY_DIV, x, spread(call, scale, &shape, 0, 0)),
                    zero, type);
}

/* The type that an attribute asks for; false: refused. 0: `otherwise`. *narrow is set where it is
 * of fewer than 8 bits. */
static bool wanted_type(struct tnd_onnx_call *call, enum tandem_dtype otherwise,
                        enum tandem_dtype *out, enum tnd_onnx_type *narrow)
{
    const int64_t type = tnd_onnx_int(call, "output_dtype", 0);
    *out = otherwise;
    if (type == 0) {
        return true;
    }
    if (type < 0 || type > 1000 || !tnd_onnx_dtype((enum tnd_onnx_type)type, out)) {
        (void)tnd_onnx_refuse(call, "output_dtype %lld", (long long)type);
        return false;
    }
    *narrow = tnd_onnx_narrow_bits((enum tnd_onnx_type)type) != 0 ? (enum tnd_onnx_type)type
                                                                  : TND_ONNX_UNDEFINED;
    return true;
}

static void build_quantise(struct tnd_onnx_call *call)
{
    const int zero = tnd_onnx_in(call, 2);
    const int64_t precision = tnd_onnx_int(call, "precision", 0);
    struct scaling scaling;
    enum tandem_dtype type;
    enum tnd_onnx_type narrow = tnd_onnx_narrow_of(call, zero);
    const bool saturates = tnd_onnx_int(call, "saturate", 1) != 0; /* (of 8-bit floats alone) */
    if (!wanted_type(call, zero == TANDEM_NET_NONE ? TANDEM_DTYPE_U8 : tnd_onnx_type_of(call, zero),
                     &type, &narrow) ||
        !read_scaling(call, &scaling)) {
        return;
    }
    const bool is_float = tnd_dtype_small(type) != NULL && type != TANDEM_DTYPE_F8E8M0;
    if ((!is_small_integer(type) && !is_float) || (precision != 0 && precision != 1) ||
        (zero != TANDEM_NET_NONE && tnd_onnx_type_of(call, zero) != type)) {
        (void)tnd_onnx_refuse(call, "to %s with precision %lld, expected 16 bits at most",
                              tandem_dtype_name(type), (long long)precision);
        return;
    }
    const int x = tnd_net_cast(call->net, tnd_onnx_in(call, 0), TANDEM_DTYPE_F32);
    const int bits = tnd_onnx_narrow_bits(narrow);
    if (is_float) {
        const int sum = tnd_net_formula(call->net, "x, scale, zero?: x / scale + float32(zero)", x,
                                        scaling.scale, scaling.zero);
        call->out[0] = tnd_onnx_small_float(call, sum, type, saturates);
        return;
    }
    const int y =
        saturate_bits(call, tnd_onnx_binary(call, TANDEM_BINARY_DIV, x, scaling.scale),
                      scaling.zero, type, bits != 0 ? bits : 8 * (int)tandem_dtype_bytes(type));
    call->out[0] = tnd_onnx_set_narrow(call, y, narrow);
}

static void build_dequantise(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    struct scaling scaling;
    enum tandem_dtype type;
    enum tnd_onnx_type narrow = TND_ONNX_UNDEFINED;
    if (!wanted_type(call, tnd_onnx_type_of(call, tnd_onnx_in(call, 1)), &type, &narrow) ||
        !read_scaling(call, &scaling)) {
        return;
    }
    /* float32 holds differences of 16 bits */
    const enum tandem_dtype wide =
        tnd_onnx_type_of(call, from) == TANDEM_DTYPE_I32 ? TANDEM_DTYPE_I32 : TANDEM_DTYPE_F32;
    const int x = tnd_net_cast(call->net, from, wide);
    const int zero = tnd_net_cast(call->net, scaling.zero, wide);
    const int y = tnd_net_formula(call->net, "x, zero?, scale: float32(x - zero) * scale", x, zero,
                                  scaling.scale);
    call->out[0] = tnd_net_cast(call->net, y, type);
}

/* Scale and zero point of uint8 from the range of the values, which holds 0. */
static void build_dynamic(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims scalar = {0};
    const unsigned all = (1U << tnd_onnx_shape_of(call, x)->n) - 1;
    const int low =
        tnd_onnx_with(call, TANDEM_BINARY_MIN, tnd_net_reduce(net, TANDEM_REDUCE_MIN, x, all), 0.0);
    const int high =
        tnd_onnx_with(call, TANDEM_BINARY_MAX, tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, all), 0.0);
    int scale = tnd_net_formula(net, "high, low: (high - low) / 255", high, low);
    int zero = tnd_net_formula(net, "low, scale: -low / scale", low, scale);
    scale = tnd_net_reshape(net, scale, &scalar);
    zero = tnd_net_reshape(net, saturate(call, zero, TANDEM_NET_NONE, TANDEM_DTYPE_U8), &scalar);
    call->out[0] =
        saturate(call, tnd_onnx_binary(call, TANDEM_BINARY_DIV, x, scale), zero, TANDEM_DTYPE_U8);
    if (call->n_out > 1) {
        call->out[1] = scale;
    }
    if (call->n_out > 2) {
        call->out[2] = zero;
    }
}

/* ---- products ---- */

/* One value, one a row or one a column of a matrix; a list of rows stands upright. */
static int beside_matrix(struct tnd_onnx_call *call, int list, bool is_by_row)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, list);
    const struct tnd_dims scalar = {0};
    const struct tnd_dims column = {2, {from.n == 1 ? from.dims[0] : 1, 1}};
    if (list != TANDEM_NET_NONE && tnd_dims_values(&from) == 1) {
        return tnd_net_reshape(call->net, list, &scalar);
    }
    return is_by_row && from.n == 1 ? tnd_net_reshape(call->net, list, &column) : list;
}

/* An operand as int32, less its zero point. */
static int centred(struct tnd_onnx_call *call, int x, int zero)
{
    return tnd_net_formula(call->net, "x, zero?: int32(x) - int32(zero)", x, zero);
}

static void build_matmul_integer(struct tnd_onnx_call *call)
{
    const int a =
        centred(call, tnd_onnx_in(call, 0), beside_matrix(call, tnd_onnx_in(call, 2), true));
    const int b =
        centred(call, tnd_onnx_in(call, 1), beside_matrix(call, tnd_onnx_in(call, 3), false));
    call->out[0] = tnd_net_matmul(call->net, a, b);
}

/* A scale of an operand, as float32. */
static int scale_of(struct tnd_onnx_call *call, int at, bool is_by_row)
{
    return tnd_net_cast(call->net, beside_matrix(call, tnd_onnx_in(call, at), is_by_row),
                        TANDEM_DTYPE_F32);
}

/* Sums of products of integers, by the scales of both and of the result. */
#define SCALED "sum, a, b, y: float32(sum) * (a * b / y)"

static void build_qlinear_matmul(struct tnd_onnx_call *call)
{
    const int a =
        centred(call, tnd_onnx_in(call, 0), beside_matrix(call, tnd_onnx_in(call, 2), true));
    const int b =
        centred(call, tnd_onnx_in(call, 3), beside_matrix(call, tnd_onnx_in(call, 5), false));
    const int zero = tnd_onnx_in(call, 7);
    const int sums = tnd_net_matmul(call->net, a, b);
    const int y = tnd_net_formula(call->net, SCALED, sums, scale_of(call, 1, true),
                                  scale_of(call, 4, false), scale_of(call, 6, true));
    if (zero == TANDEM_NET_NONE || !is_small_integer(tnd_onnx_type_of(call, zero))) {
        (void)tnd_onnx_refuse(call, "a result that is no integer of 8 or 16 bits");
        return;
    }
    call->out[0] = saturate(call, y, beside_matrix(call, zero, true), tnd_onnx_type_of(call, zero));
}

/* ---- convolution ---- */

/* One value, or one an output channel, as it broadcasts with {M, C, spatial} (`behind` dimensions
 * after the channel). */
static int by_channel(struct tnd_onnx_call *call, int list, int behind)
{
    struct tnd_dims to = {.n = behind + 1};
    const struct tnd_dims scalar = {0};
    if (list == TANDEM_NET_NONE || tnd_dims_values(tnd_onnx_shape_of(call, list)) == 1) {
        return tnd_net_reshape(call->net, list, &scalar);
    }
    for (int i = 0; i < to.n; i++) {
        to.dims[i] = i == 0 ? tnd_dims_values(tnd_onnx_shape_of(call, list)) : 1;
    }
    return tnd_net_reshape(call->net, list, &to);
}

/* Padding stands for the zero point, which is 0 after centring. `at`: x's zero point, w's. */
static int integer_conv(struct tnd_onnx_call *call, int x, int w, int zero_x, int zero_w)
{
    const int rank = tnd_onnx_shape_of(call, w)->n;
    if (rank < 3 || rank > TANDEM_NET_MAX_WINDOW + 2) {
        return tnd_onnx_refuse(call, "weights of %d dimensions", rank);
    }
    const int a = centred(call, x, by_channel(call, zero_x, 0));
    const int b = centred(call, w, by_channel(call, zero_w, rank - 1));
    return tnd_onnx_conv(call, a, b);
}

static void build_conv_integer(struct tnd_onnx_call *call)
{
    call->out[0] = integer_conv(call, tnd_onnx_in(call, 0), tnd_onnx_in(call, 1),
                                tnd_onnx_in(call, 2), tnd_onnx_in(call, 3));
}

static void build_qlinear_conv(struct tnd_onnx_call *call)
{
    const int w = tnd_onnx_in(call, 3);
    const int zero = tnd_onnx_in(call, 7);
    const int bias = tnd_onnx_in(call, 8);
    const int behind = tnd_onnx_shape_of(call, w)->n - 2;
    int y = integer_conv(call, tnd_onnx_in(call, 0), w, tnd_onnx_in(call, 2), tnd_onnx_in(call, 5));
    if (y == TANDEM_NET_NONE || zero == TANDEM_NET_NONE ||
        !is_small_integer(tnd_onnx_type_of(call, zero))) {
        (void)tnd_onnx_refuse(call, "a result that is no integer of 8 or 16 bits");
        return;
    }
    const int of_w =
        tnd_net_cast(call->net, by_channel(call, tnd_onnx_in(call, 4), behind), TANDEM_DTYPE_F32);
    y = tnd_net_formula(call->net, "y, bias?: y + bias", y, by_channel(call, bias, behind));
    y = tnd_net_formula(call->net, SCALED, y, scale_of(call, 1, false), of_w,
                        scale_of(call, 6, false));
    call->out[0] = saturate(call, y, by_channel(call, zero, 0), tnd_onnx_type_of(call, zero));
}

const struct tnd_onnx_op tnd_onnx_quant[] = {
    {"QuantizeLinear", build_quantise, 0, "2-3"},
    {"DequantizeLinear", build_dequantise, 0, "2-3"},
    {"DynamicQuantizeLinear", build_dynamic, 0, "1>3"},
    {"MatMulInteger", build_matmul_integer, 0, "2-4"},
    {"QLinearMatMul", build_qlinear_matmul, 0, "8"},
    {"ConvInteger", build_conv_integer, 0, "2-4"},
    {"QLinearConv", build_qlinear_conv, 0, "8-9"},
    {NULL, NULL, 0, NULL},
};
