/* SPDX-License-Identifier: MIT
 * A small net that bytes describe: any bytes do. The same bytes give the same net, so that it can
 * be built once for each way to optimise it. */
#ifndef TND_TESTS_RANDOM_NET_H
#define TND_TESTS_RANDOM_NET_H

#include <math.h>
#include <string.h>

#include "graph/net.h"

#define RANDOM_NET_MOST   24  /* values that are chosen from */
#define RANDOM_NET_VALUES 512 /* numbers in a value */

struct random_net {
    const uint8_t *bytes;
    size_t n, at;
    bool is_smooth; /* one type and functions without steps alone: roundings stay small */
    bool is_narrow; /* then: float32, else float64 */
    struct tnd_net *net;
    int values[RANDOM_NET_MOST];
    int n_values;
};

/* 0 to n - 1. */
static inline int random_net_pick(struct random_net *from, int n)
{
    return from->at < from->n ? from->bytes[from->at++] % n : 0;
}

static inline int random_net_any(struct random_net *from)
{
    return from->values[random_net_pick(from, from->n_values)];
}

/* One more value to choose from, where it is small enough. */
static inline void random_net_keep(struct random_net *from, int value)
{
    if (value != TANDEM_NET_NONE && from->n_values < RANDOM_NET_MOST &&
        tnd_dims_values(&tnd_net_value(from->net, value)->shape) <= RANDOM_NET_VALUES) {
        from->values[from->n_values++] = value;
    }
}

static inline double random_net_number(struct random_net *from)
{
    static const double special[] = {0, -0.0, 1, -1, 2, 0.5, 3, 4, -0.25, 6};
    static const double wild[] = {(double)INFINITY, (double)NAN, 1e30, 127};
    const int i = random_net_pick(from, 16);
    return i < 10 ? special[i] : from->is_smooth || i >= 14 ? 0.125 * i : wild[i - 10];
}

static inline void random_net_fill(struct random_net *from, struct tnd_array *array)
{
    for (int64_t i = 0; i < array->n; i++) {
        union tnd_values one = {.f64 = {from->is_smooth
                                            ? 0.05 * (random_net_pick(from, 64) - 31)
                                            : random_net_number(from) - random_net_pick(from, 2)}};
        tnd_values_store(array->type, TND_LANE_F64, &one, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(array->type));
    }
}

static inline struct tnd_dims random_net_dims(struct random_net *from)
{
    struct tnd_dims shape = {.n = random_net_pick(from, 4)};
    for (int i = 0; i < shape.n; i++) {
        shape.dims[i] = 1 + random_net_pick(from, 4);
    }
    return shape;
}

static inline int random_net_constant(struct random_net *from, enum tandem_dtype type,
                                      const struct tnd_dims *shape)
{
    struct tnd_array *array = tnd_array_new(type, shape);
    if (array != NULL) {
        random_net_fill(from, array);
    }
    return tnd_net_constant(from->net, array);
}

static inline enum tandem_dtype random_net_type(struct random_net *from)
{
    static const enum tandem_dtype types[] = {TANDEM_DTYPE_F32, TANDEM_DTYPE_F32,  TANDEM_DTYPE_F64,
                                              TANDEM_DTYPE_F16, TANDEM_DTYPE_BF16, TANDEM_DTYPE_I8,
                                              TANDEM_DTYPE_I32, TANDEM_DTYPE_I64,  TANDEM_DTYPE_U8,
                                              TANDEM_DTYPE_U64, TANDEM_DTYPE_BOOL};
    return !from->is_smooth  ? types[random_net_pick(from, 11)]
           : from->is_narrow ? TANDEM_DTYPE_F32
                             : TANDEM_DTYPE_F64;
}

/* A function of one value. */
static inline int random_net_unary(struct random_net *from, int x)
{
    static const enum tandem_unary kinds[] = {
        TANDEM_UNARY_NEG,   TANDEM_UNARY_ABS,  TANDEM_UNARY_NOT,  TANDEM_UNARY_SIGN,
        TANDEM_UNARY_FLOOR, TANDEM_UNARY_CEIL, TANDEM_UNARY_SQRT, TANDEM_UNARY_RECIPROCAL,
        TANDEM_UNARY_EXP,   TANDEM_UNARY_TANH};
    static const enum tandem_unary smooth[] = {TANDEM_UNARY_NEG, TANDEM_UNARY_ABS,
                                               TANDEM_UNARY_TANH};
    const bool is_float = tnd_dtype_kind(tnd_net_value(from->net, x)->type) == TND_KIND_FLOAT;
    return tnd_net_unary(from->net,
                         from->is_smooth ? smooth[random_net_pick(from, 3)]
                                         : kinds[random_net_pick(from, is_float ? 10 : 4)],
                         x);
}

/* With a number, or with another value where the two fit. */
static inline int random_net_binary(struct random_net *from, int x)
{
    static const enum tandem_binary kinds[] = {
        TANDEM_BINARY_ADD, TANDEM_BINARY_SUB, TANDEM_BINARY_MUL, TANDEM_BINARY_MAX,
        TANDEM_BINARY_MIN, TANDEM_BINARY_DIV, TANDEM_BINARY_POW, TANDEM_BINARY_LESS};
    const enum tandem_binary kind = kinds[random_net_pick(from, from->is_smooth ? 5 : 8)];
    const int other = random_net_any(from);
    const struct tnd_net_value *a = tnd_net_value(from->net, x);
    const struct tnd_net_value *b = tnd_net_value(from->net, other);
    const bool fits = a->type == b->type && tnd_dims_is_equal(&a->shape, &b->shape);
    const enum tandem_dtype type = a->type;
    const int how = random_net_pick(from, 4);
    if (fits && how == 0) {
        return tnd_net_binary(from->net, kind, x, other);
    }
    const int c = tnd_net_scalar(from->net, type, random_net_number(from));
    return how == 1 ? tnd_net_binary(from->net, kind, c, x) : tnd_net_binary(from->net, kind, x, c);
}

static inline int random_net_view(struct random_net *from, int x)
{
    const struct tnd_dims shape = tnd_net_value(from->net, x)->shape;
    int axes[TANDEM_NET_MAX_DIMS];
    if (shape.n == 0) {
        const struct tnd_dims to = {2, {1 + random_net_pick(from, 3), 2}};
        return tnd_net_expand(from->net, x, &to);
    }
    const int axis = random_net_pick(from, shape.n);
    switch (random_net_pick(from, 4)) {
    case 0:
        for (int i = 0; i < shape.n; i++) {
            axes[i] = (i + axis) % shape.n;
        }
        return tnd_net_permute(from->net, x, axes);
    case 1: {
        const int64_t start = random_net_pick(from, (int)shape.dims[axis]);
        return random_net_pick(from, 2) ? tnd_net_slice(from->net, x, axis, start, start + 1, -1)
                                        : tnd_net_slice(from->net, x, axis, start,
                                                        (shape.dims[axis] - start + 1) / 2, 2);
    }
    case 2: {
        const struct tnd_dims flat = {1, {tnd_dims_values(&shape)}};
        return tnd_net_reshape(from->net, x, &flat);
    }
    default: {
        struct tnd_dims wide = {.n = shape.n + 1, .dims = {2}};
        memcpy(wide.dims + 1, shape.dims, (size_t)shape.n * sizeof(int64_t));
        return wide.n <= 5 ? tnd_net_expand(from->net, x, &wide) : x;
    }
    }
}

/* Along an axis. */
static inline int random_net_along(struct random_net *from, int x)
{
    const struct tnd_dims shape = tnd_net_value(from->net, x)->shape;
    int64_t ends[TANDEM_NET_MAX_DIMS] = {0};
    if (shape.n == 0) {
        return tnd_net_copy(from->net, x);
    }
    const int axis = random_net_pick(from, shape.n);
    const int both[2] = {x, x};
    switch (random_net_pick(from, 5)) {
    case 0:
        return tnd_net_reduce(from->net,
                              (enum tandem_reduce)(from->is_smooth ? 0 : random_net_pick(from, 4)),
                              x, 1U << axis);
    case 1:
        return tnd_net_concat(from->net, both, 1 + random_net_pick(from, 2), axis);
    case 2:
        ends[axis] = random_net_pick(from, 2);
        return tnd_net_pad(from->net, TANDEM_PAD_CONSTANT, x, ends, ends,
                           tnd_net_scalar(from->net, tnd_net_value(from->net, x)->type, 1));
    case 3: {
        int64_t list[3];
        for (int i = 0; i < 3; i++) {
            list[i] = random_net_pick(from, (int)shape.dims[axis]) - (i == 2 ? 1 : 0);
        }
        return tnd_net_gather(
            from->net, x, tnd_net_integers(from->net, list, 1 + random_net_pick(from, 3)), axis);
    }
    default:
        return tnd_net_scan(from->net, x, axis, random_net_pick(from, 2), random_net_pick(from, 2));
    }
}

/* A product with constant weights, its rows scaled and shifted. */
static inline int random_net_product(struct random_net *from, int x)
{
    const struct tnd_dims shape = tnd_net_value(from->net, x)->shape;
    const enum tandem_dtype type = tnd_net_value(from->net, x)->type;
    if (shape.n < 2 || tnd_dtype_kind(type) == TND_KIND_LOGICAL) {
        return x;
    }
    const int columns = 1 + random_net_pick(from, 3);
    const struct tnd_dims w = {2, {shape.dims[shape.n - 1], columns}};
    const struct tnd_dims row = {1, {columns}};
    const struct tnd_dims filter = {3, {columns, shape.n == 3 ? shape.dims[1] : 1, 1}};
    const struct tnd_dims channel = {2, {columns, 1}};
    const struct tnd_window window = {
        .n = 1, .extent = {1}, .stride = {1}, .dilation = {1}, .begin = {1}, .groups = 1};
    const bool is_conv = shape.n == 3 && random_net_pick(from, 2);
    int y = is_conv ? tnd_net_conv(from->net, x, random_net_constant(from, type, &filter), &window)
                    : tnd_net_matmul(from->net, x, random_net_constant(from, type, &w));
    for (int i = random_net_pick(from, 4); i > 0; i--) {
        static const enum tandem_binary kinds[] = {TANDEM_BINARY_MUL, TANDEM_BINARY_ADD,
                                                   TANDEM_BINARY_SUB};
        y = tnd_net_binary(from->net, kinds[random_net_pick(from, 3)], y,
                           random_net_constant(from, type, is_conv ? &channel : &row));
    }
    return y;
}

static inline int random_net_mean(struct tnd_net *net, int x, int axis)
{
    const double n = (double)tnd_net_value(net, x)->shape.dims[axis];
    return tnd_net_binary(net, TANDEM_BINARY_DIV,
                          tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, 1U << axis),
                          tnd_net_scalar(net, tnd_net_value(net, x)->type, n));
}

/* Softmax, norms, attention and silu as exporters write them. */
static inline int random_net_composition(struct random_net *from, int x)
{
    struct tnd_net *net = from->net;
    const enum tandem_dtype type = tnd_net_value(net, x)->type;
    const int n = tnd_net_value(net, x)->shape.n;
    if (tnd_dtype_kind(type) != TND_KIND_FLOAT || n == 0) {
        return tnd_net_copy(net, x);
    }
    const int axis = random_net_pick(from, n);
    const int one = tnd_net_scalar(net, type, 1);
    switch (random_net_pick(from, n == 3 ? 4 : 3)) {
    case 0: {
        const int top = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 1U << axis);
        const int e =
            tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_binary(net, TANDEM_BINARY_SUB, x, top));
        return tnd_net_binary(net, TANDEM_BINARY_DIV, e,
                              tnd_net_reduce(net, TANDEM_REDUCE_SUM, e, 1U << axis));
    }
    case 1: {
        const int d = random_net_pick(from, 2)
                          ? tnd_net_binary(net, TANDEM_BINARY_SUB, x, random_net_mean(net, x, axis))
                          : x;
        const int variance =
            random_net_mean(net, tnd_net_binary(net, TANDEM_BINARY_MUL, d, d), axis);
        const int root = tnd_net_unary(
            net, TANDEM_UNARY_SQRT,
            tnd_net_binary(net, TANDEM_BINARY_ADD, variance, tnd_net_scalar(net, type, 0.0625)));
        return random_net_pick(from, 2)
                   ? tnd_net_binary(net, TANDEM_BINARY_DIV, d, root)
                   : tnd_net_binary(net, TANDEM_BINARY_MUL, d,
                                    tnd_net_unary(net, TANDEM_UNARY_RECIPROCAL, root));
    }
    case 3: {
        const struct tnd_dims shape = tnd_net_value(net, x)->shape;
        const struct tnd_dims mask = {2, {shape.dims[1], shape.dims[1]}};
        const struct tnd_dims all = {3, {shape.dims[0], shape.dims[1], shape.dims[1]}};
        const int added = random_net_pick(from, 2)
                              ? tnd_net_expand(net, random_net_constant(from, type, &mask), &all)
                              : TANDEM_NET_NONE;
        return tnd_net_attention(net, x, x, x, added, 0.5);
    }
    default: {
        const int e = tnd_net_unary(net, TANDEM_UNARY_EXP, tnd_net_unary(net, TANDEM_UNARY_NEG, x));
        return tnd_net_binary(net, TANDEM_BINARY_MUL, x,
                              tnd_net_unary(net, TANDEM_UNARY_RECIPROCAL,
                                            tnd_net_binary(net, TANDEM_BINARY_ADD, e, one)));
    }
    }
}

static inline struct tnd_recurrent random_net_layer(struct random_net *from)
{
    struct tnd_recurrent layer;
    memset(&layer, 0, sizeof(layer));
    layer.cell = random_net_pick(from, 3);
    layer.directions = 1 + random_net_pick(from, 2);
    layer.reverse = (unsigned)random_net_pick(from, 4);
    layer.is_linear = layer.cell == TND_CELL_GRU && random_net_pick(from, 2) != 0;
    layer.is_coupled = layer.cell == TND_CELL_LSTM && random_net_pick(from, 2) != 0;
    layer.is_8_bit =
        layer.cell == TND_CELL_LSTM && !from->is_smooth && random_net_pick(from, 4) == 3;
    layer.clip = random_net_pick(from, 4) == 3 ? 0.5F : 0.0F;
    for (int i = 0; i < 6; i++) { /* (the last one has a step) */
        const int kind = random_net_pick(from, TND_ACTIVATION_THRESHOLDED_RELU + !from->is_smooth);
        layer.activations[i / 3][i % 3] = (struct tnd_activation){kind, 0.25F, 0.5F};
    }
    return layer;
}

/* A constant, or it and a value that is computed, of one number. */
static inline int random_net_operand(struct random_net *from, enum tandem_dtype type,
                                     const struct tnd_dims *shape, int one)
{
    const int constant = random_net_constant(from, type, shape);
    const struct tnd_dims ones = {shape->n, {1, 1, 1, 1}};
    const int added = tnd_net_cast(from->net, tnd_net_reshape(from->net, one, &ones), type);
    return random_net_pick(from, 2) == 0
               ? constant
               : tnd_net_binary(from->net, TANDEM_BINARY_ADD, constant, added);
}

/* All steps of a layer; a value of other dimensions than three is reshaped. */
static inline int random_net_recurrent(struct random_net *from, int x)
{
    struct tnd_net *net = from->net;
    const struct tnd_recurrent layer = random_net_layer(from);
    const struct tnd_dims shape = tnd_net_value(net, x)->shape;
    struct tnd_dims flat = {3, {1, 1, 1}};
    for (int i = 0; i < shape.n; i++) {
        flat.dims[i < shape.n - 2 ? 0 : i + 3 - shape.n] *= shape.dims[i];
    }
    if (!tnd_net_is_row_type(tnd_net_value(net, x)->type)) {
        x = tnd_net_cast(net, x, TANDEM_DTYPE_F32);
    }
    x = shape.n == 3 ? x : tnd_net_reshape(net, x, &flat);
    const enum tandem_dtype type = tnd_net_value(net, x)->type;
    const int64_t d = layer.directions;
    const int64_t rows = d * tnd_cell_gates(layer.cell);
    const bool fits = flat.dims[2] % rows == 0;
    const int64_t hidden = fits ? flat.dims[2] / rows : 1 + random_net_pick(from, 4);
    const int64_t batch = flat.dims[1];
    const int one = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 7);
    if (!fits) {
        const struct tnd_dims w = {2, {flat.dims[2], rows * hidden}};
        x = tnd_net_matmul(net, x, random_net_constant(from, type, &w));
    }
    const struct tnd_dims r = {3, {d, rows / d * hidden, hidden}};
    const int64_t extras = random_net_pick(from, 2) * (layer.cell == TND_CELL_LSTM ? 3 : 1);
    const int64_t scales = layer.is_8_bit ? rows / d : 0;
    const struct tnd_dims extra = {2, {d, (extras + scales) * hidden}};
    const struct tnd_dims state = {4, {tnd_cell_states(layer.cell), d, batch, hidden}};
    const struct tnd_dims texts = {1, {batch}};
    const int of_r = layer.is_8_bit
                         ? tnd_net_cast(net, random_net_operand(from, TANDEM_DTYPE_I8, &r, one),
                                        TANDEM_DTYPE_I32)
                         : random_net_operand(from, type, &r, one);
    const int of_extra = random_net_operand(from, type, &extra, one);
    const int of_state = random_net_operand(from, type, &state, one);
    const int lengths = from->is_smooth || random_net_pick(from, 2) == 0
                            ? TANDEM_NET_NONE
                            : random_net_operand(from, TANDEM_DTYPE_I64, &texts, one);
    return tnd_net_recurrent(net, &layer, x, of_r, of_extra, of_state, lengths);
}

static inline int random_net_step(struct random_net *from)
{
    const int x = random_net_any(from);
    const struct tnd_dims shape = tnd_net_value(from->net, x)->shape;
    switch (random_net_pick(from, 13)) {
    case 0:
    case 1:
        return random_net_unary(from, x);
    case 2:
    case 3:
    case 4:
        return random_net_binary(from, x);
    case 5:
    case 6:
        return random_net_view(from, x);
    case 7:
        return random_net_along(from, x);
    case 8:
        return random_net_product(from, x);
    case 9:
        return random_net_composition(from, x);
    case 10: {
        if (from->is_smooth) {
            return tnd_net_copy(from->net, x);
        }
        const int y = random_net_any(from);
        const struct tnd_net_value *b = tnd_net_value(from->net, y);
        const bool fits =
            b->type == tnd_net_value(from->net, x)->type && tnd_dims_is_equal(&b->shape, &shape);
        const int condition =
            tnd_net_scalar(from->net, TANDEM_DTYPE_BOOL, random_net_pick(from, 2));
        return fits ? tnd_net_select(from->net, condition, x, y)
                    : tnd_net_cast(from->net, x, random_net_type(from));
    }
    case 11:
        return random_net_recurrent(from, x);
    default:
        return random_net_pick(from, 2) ? tnd_net_copy(from->net, x)
                                        : random_net_constant(from, random_net_type(from), &shape);
    }
}

/* The caller owns the net; NULL without memory. */
static inline struct tnd_net *random_net_build(const uint8_t *bytes, size_t n, bool is_smooth,
                                               bool is_narrow)
{
    struct random_net from = {.bytes = bytes,
                              .n = n,
                              .is_smooth = is_smooth,
                              .is_narrow = is_narrow,
                              .net = tnd_net_new()};
    if (from.net == NULL) {
        return NULL;
    }
    for (int i = 1 + random_net_pick(&from, 2); i > 0; i--) {
        const struct tnd_dims shape = random_net_dims(&from);
        random_net_keep(&from, tnd_net_input(from.net, random_net_type(&from), &shape, "x", NULL));
    }
    for (int i = 3 + random_net_pick(&from, 14); i > 0; i--) {
        random_net_keep(&from, random_net_step(&from));
    }
    for (int i = 1 + random_net_pick(&from, 3); i > 0; i--) {
        (void)tnd_net_output(from.net,
                             i == 1 ? from.values[from.n_values - 1] : random_net_any(&from));
    }
    return from.net;
}

#endif
