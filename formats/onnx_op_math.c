/* SPDX-License-Identifier: MIT
 * ONNX operators: element-wise. */
#include <math.h>
#include <string.h>

#include "formats/onnx_build.h"
#include "formats/onnx_op.h"

static void build_identity(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_onnx_in(call, 0);
}

static void build_unary(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_net_unary(call->net, (enum tandem_unary)call->kind, tnd_onnx_in(call, 0));
}

static void build_binary(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_net_binary(call->net, (enum tandem_binary)call->kind, tnd_onnx_in(call, 0),
                                  tnd_onnx_second(call));
}

/* Comparisons expressed by others with swapped operands. */
static void build_turned(struct tnd_onnx_call *call)
{
    call->out[0] = tnd_net_binary(call->net, (enum tandem_binary)call->kind, tnd_onnx_second(call),
                                  tnd_onnx_in(call, 0));
}

static void build_logical(struct tnd_onnx_call *call)
{
    for (int i = 0; i < call->n_in; i++) {
        if (tnd_onnx_type_of(call, tnd_onnx_in(call, i)) != TANDEM_DTYPE_BOOL) {
            (void)tnd_onnx_refuse(call, "operand %d is of type %s, expected bool", i,
                                  tandem_dtype_name(tnd_onnx_type_of(call, tnd_onnx_in(call, i))));
            return;
        }
    }
    build_binary(call);
}

static void build_not(struct tnd_onnx_call *call)
{
    const enum tandem_dtype type = tnd_onnx_type_of(call, tnd_onnx_in(call, 0));
    const bool is_logical = call->kind != 0;
    if (is_logical ? type != TANDEM_DTYPE_BOOL : tnd_dtype_kind(type) == TND_KIND_FLOAT) {
        (void)tnd_onnx_refuse(call, "an operand of type %s", tandem_dtype_name(type));
        return;
    }
    call->out[0] = tnd_net_unary(call->net, TANDEM_UNARY_NOT, tnd_onnx_in(call, 0));
}

/* Max, Min, Sum, Mean of one or more operands. */
static void build_variadic(struct tnd_onnx_call *call)
{
    int value = tnd_onnx_in(call, 0);
    for (int i = 1; i < call->n_in; i++) {
        value =
            tnd_net_binary(call->net, (enum tandem_binary)call->kind, value, tnd_onnx_in(call, i));
    }
    call->out[0] = value;
}

static void build_mean(struct tnd_onnx_call *call)
{
    call->kind = TANDEM_BINARY_ADD;
    build_variadic(call);
    call->out[0] = tnd_onnx_with(call, TANDEM_BINARY_DIV, call->out[0], (double)call->n_in);
}

/* The operands may have different types: integers are raised as integers, all others as doubles. */
static void build_pow(struct tnd_onnx_call *call)
{
    int base = tnd_onnx_in(call, 0);
    int exponent = tnd_onnx_second(call);
    const enum tandem_dtype type = tnd_onnx_type_of(call, base);
    const enum tandem_dtype other = tnd_onnx_type_of(call, exponent);
    if (type != other) {
        const bool is_float =
            tnd_dtype_kind(type) == TND_KIND_FLOAT || tnd_dtype_kind(other) == TND_KIND_FLOAT;
        const enum tandem_dtype common = is_float ? TANDEM_DTYPE_F64 : TANDEM_DTYPE_I64;
        base = tnd_net_cast(call->net, base, common);
        exponent = tnd_net_cast(call->net, exponent, common);
    }
    call->out[0] =
        tnd_net_cast(call->net, tnd_net_binary(call->net, TANDEM_BINARY_POW, base, exponent), type);
}

static void build_mod(struct tnd_onnx_call *call)
{
    const int64_t fmod_wanted = tnd_onnx_int(call, "fmod", 0);
    call->kind = fmod_wanted != 0 ? TANDEM_BINARY_FMOD : TANDEM_BINARY_MOD;
    build_binary(call);
}

static void build_shift(struct tnd_onnx_call *call)
{
    const char *direction = tnd_onnx_word(call, "direction", "");
    const bool is_left = strcmp(direction, "LEFT") == 0;
    if (!is_left && strcmp(direction, "RIGHT") != 0) {
        (void)tnd_onnx_refuse(call, "direction '%.20s', expected LEFT or RIGHT", direction);
        return;
    }
    call->kind = is_left ? TANDEM_BINARY_SHIFT_LEFT : TANDEM_BINARY_SHIFT_RIGHT;
    build_binary(call);
}

static void build_where(struct tnd_onnx_call *call)
{
    call->out[0] =
        tnd_net_select(call->net, tnd_onnx_in(call, 0), tnd_onnx_in(call, 1), tnd_onnx_in(call, 2));
}

/* The bounds are attributes before opset 11, operands from there on. */
static void build_clip(struct tnd_onnx_call *call)
{
    int value = tnd_onnx_in(call, 0);
    int low = tnd_onnx_in(call, 1);
    int high = tnd_onnx_in(call, 2);
    if (call->opset < 11) {
        const float least = tnd_onnx_float(call, "min", -INFINITY);
        const float most = tnd_onnx_float(call, "max", INFINITY);
        low = least > -INFINITY ? tnd_onnx_scalar(call, value, (double)least) : TANDEM_NET_NONE;
        high = most < INFINITY ? tnd_onnx_scalar(call, value, (double)most) : TANDEM_NET_NONE;
    }
    const int bounds[] = {low, high};
    for (int i = 0; i < 2; i++) {
        if (bounds[i] == TANDEM_NET_NONE) {
            continue;
        }
        if (tnd_dims_values(tnd_onnx_shape_of(call, bounds[i])) != 1) {
            (void)tnd_onnx_refuse(call, "a bound of more than one value");
            return;
        }
        const struct tnd_dims scalar = {0};
        value = tnd_net_binary(call->net, i == 0 ? TANDEM_BINARY_MAX : TANDEM_BINARY_MIN, value,
                               tnd_net_reshape(call->net, bounds[i], &scalar));
    }
    call->out[0] = value;
}

/* Casts to a type; narrow integers keep the low bits. Attributes control rounding to 8-bit
 * floats. */
static int cast_to(struct tnd_onnx_call *call, int x, enum tandem_dtype type,
                   enum tnd_onnx_type narrow)
{
    const bool saturates = tnd_onnx_int(call, "saturate", 1) != 0;
    const char *round = tnd_onnx_word(call, "round_mode", "up");
    if (tnd_onnx_narrow_bits(narrow) != 0) {
        return tnd_onnx_narrowed(call, x, narrow);
    }
    if (type == TANDEM_DTYPE_F8E8M0 && strcmp(round, "up") != 0) {
        return tnd_onnx_refuse(call, "to %s with round_mode '%.20s', expected up",
                               tandem_dtype_name(type), round);
    }
    if (tnd_dtype_small(type) != NULL) {
        return tnd_onnx_small_float(call, x, type, saturates);
    }
    /* a new value: a narrow type belongs to the value */
    return tnd_onnx_narrow_of(call, x) != TND_ONNX_UNDEFINED && tnd_onnx_type_of(call, x) == type
               ? tnd_net_copy(call->net, x)
               : tnd_net_cast(call->net, x, type);
}

static void build_cast(struct tnd_onnx_call *call)
{
    const int64_t to = tnd_onnx_int(call, "to", 0);
    enum tandem_dtype type;
    if (to < 0 || to > 1000 || !tnd_onnx_dtype((enum tnd_onnx_type)to, &type)) {
        const char *name = to < 0 || to > 1000 ? NULL : tnd_onnx_type_name((int32_t)to);
        (void)tnd_onnx_refuse(call, "to type %lld (%s), expected real numbers", (long long)to,
                              name != NULL ? name : "none");
        return;
    }
    call->out[0] = cast_to(call, tnd_onnx_in(call, 0), type, (enum tnd_onnx_type)to);
}

/* Whether a type has fewer than 8 bits. */
static bool is_packed(enum tandem_dtype type)
{
    return type == TANDEM_DTYPE_F4E2M1 || type == TANDEM_DTYPE_F6E2M3 ||
           type == TANDEM_DTYPE_F6E3M2;
}

/* Reinterprets the bits of a value as a type of the same width. Integers wrap, which keeps their
 * bits; floats must be known while the net is built. */
static void build_bit_cast(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const int64_t to = tnd_onnx_int(call, "to", 0);
    const enum tandem_dtype from = tnd_onnx_type_of(call, x);
    enum tandem_dtype type;
    if (to < 0 || to > 1000 || !tnd_onnx_dtype((enum tnd_onnx_type)to, &type) ||
        tandem_dtype_bytes(type) != tandem_dtype_bytes(from) || type == TANDEM_DTYPE_BOOL ||
        tnd_onnx_narrow_bits((enum tnd_onnx_type)to) != 0 || is_packed(type) || is_packed(from)) {
        (void)tnd_onnx_refuse(call, "to type %lld", (long long)to);
        return;
    }
    if (type == from ||
        (tnd_dtype_kind(type) != TND_KIND_FLOAT && tnd_dtype_kind(from) != TND_KIND_FLOAT)) {
        call->out[0] = tnd_net_cast(call->net, x, type);
        return;
    }
    const struct tnd_array *known = tnd_onnx_ask(call, x);
    struct tnd_array *bits = known == NULL ? NULL : tnd_array_new(type, &known->shape);
    if (known == NULL) {
        (void)tnd_onnx_refuse(call, "bits of floats that are computed while the net runs");
        return;
    }
    if (bits != NULL) {
        memcpy(bits->data, known->data, (size_t)known->n * tandem_dtype_bytes(type));
    }
    call->out[0] = tnd_net_constant(call->net, bits);
}

static void build_cast_like(struct tnd_onnx_call *call)
{
    if (tnd_onnx_in(call, 1) == TANDEM_NET_NONE) {
        (void)tnd_onnx_refuse(call, "no operand whose type is taken");
        return;
    }
    const int like = tnd_onnx_in(call, 1);
    call->out[0] = cast_to(call, tnd_onnx_in(call, 0), tnd_onnx_type_of(call, like),
                           tnd_onnx_narrow_of(call, like));
}

static void build_is_inf(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const bool finds_negative = tnd_onnx_int(call, "detect_negative", 1) != 0;
    const bool finds_positive = tnd_onnx_int(call, "detect_positive", 1) != 0;
    if (finds_negative && finds_positive) {
        call->out[0] = tnd_net_unary(call->net, TANDEM_UNARY_IS_INF, x);
        return;
    }
    const int bound = tnd_onnx_scalar(call, x, (double)(finds_negative ? -INFINITY : INFINITY));
    /* NaN equals nothing */
    const int nothing = tnd_onnx_scalar(call, x, (double)NAN);
    call->out[0] = tnd_net_binary(call->net, TANDEM_BINARY_EQUAL, x,
                                  finds_negative || finds_positive ? bound : nothing);
}

const struct tnd_onnx_op tnd_onnx_math[] = {
    {"Identity", build_identity, 0, "1"},
    {"Abs", build_unary, TANDEM_UNARY_ABS, "1"},
    {"Acos", build_unary, TANDEM_UNARY_ACOS, "1"},
    {"Acosh", build_unary, TANDEM_UNARY_ACOSH, "1"},
    {"Asin", build_unary, TANDEM_UNARY_ASIN, "1"},
    {"Asinh", build_unary, TANDEM_UNARY_ASINH, "1"},
    {"Atan", build_unary, TANDEM_UNARY_ATAN, "1"},
    {"Atanh", build_unary, TANDEM_UNARY_ATANH, "1"},
    {"Ceil", build_unary, TANDEM_UNARY_CEIL, "1"},
    {"Cos", build_unary, TANDEM_UNARY_COS, "1"},
    {"Cosh", build_unary, TANDEM_UNARY_COSH, "1"},
    {"Erf", build_unary, TANDEM_UNARY_ERF, "1"},
    {"Exp", build_unary, TANDEM_UNARY_EXP, "1"},
    {"Floor", build_unary, TANDEM_UNARY_FLOOR, "1"},
    {"IsNaN", build_unary, TANDEM_UNARY_IS_NAN, "1"},
    {"Log", build_unary, TANDEM_UNARY_LOG, "1"},
    {"Neg", build_unary, TANDEM_UNARY_NEG, "1"},
    {"Reciprocal", build_unary, TANDEM_UNARY_RECIPROCAL, "1"},
    {"Round", build_unary, TANDEM_UNARY_ROUND, "1"},
    {"Sign", build_unary, TANDEM_UNARY_SIGN, "1"},
    {"Sin", build_unary, TANDEM_UNARY_SIN, "1"},
    {"Sinh", build_unary, TANDEM_UNARY_SINH, "1"},
    {"Sqrt", build_unary, TANDEM_UNARY_SQRT, "1"},
    {"Tan", build_unary, TANDEM_UNARY_TAN, "1"},
    {"Tanh", build_unary, TANDEM_UNARY_TANH, "1"},
    {"Not", build_not, 1, "1"},
    {"BitwiseNot", build_not, 0, "1"},
    {"Add", build_binary, TANDEM_BINARY_ADD, "2"},
    {"Sub", build_binary, TANDEM_BINARY_SUB, "2"},
    {"Mul", build_binary, TANDEM_BINARY_MUL, "2"},
    {"Div", build_binary, TANDEM_BINARY_DIV, "2"},
    {"Pow", build_pow, 0, "2"},
    {"Mod", build_mod, 0, "2"},
    {"BitShift", build_shift, 0, "2"},
    {"BitwiseAnd", build_binary, TANDEM_BINARY_AND, "2"},
    {"BitwiseOr", build_binary, TANDEM_BINARY_OR, "2"},
    {"BitwiseXor", build_binary, TANDEM_BINARY_XOR, "2"},
    {"And", build_logical, TANDEM_BINARY_AND, "2"},
    {"Or", build_logical, TANDEM_BINARY_OR, "2"},
    {"Xor", build_logical, TANDEM_BINARY_XOR, "2"},
    {"Equal", build_binary, TANDEM_BINARY_EQUAL, "2"},
    {"Less", build_binary, TANDEM_BINARY_LESS, "2"},
    {"LessOrEqual", build_binary, TANDEM_BINARY_LESS_EQUAL, "2"},
    {"Greater", build_turned, TANDEM_BINARY_LESS, "2"},
    {"GreaterOrEqual", build_turned, TANDEM_BINARY_LESS_EQUAL, "2"},
    {"Max", build_variadic, TANDEM_BINARY_MAX, "1-*"},
    {"Min", build_variadic, TANDEM_BINARY_MIN, "1-*"},
    {"Sum", build_variadic, TANDEM_BINARY_ADD, "1-*"},
    {"Mean", build_mean, 0, "1-*"},
    {"Where", build_where, 0, "3"},
    {"Clip", build_clip, 0, "1 11:1-3"},
    {"Cast", build_cast, 0, "1"},
    {"BitCast", build_bit_cast, 0, "1"},
    {"CastLike", build_cast_like, 0, "2"},
    {"IsInf", build_is_inf, 0, "1"},
    {NULL, NULL, 0, NULL},
};
