/* SPDX-License-Identifier: MIT
 * Sums and products of bytes that stand for real numbers, quantised to bytes again. A net has them
 * of floats, a dozen operations from byte to byte; one node computes them
 * (ggml-like/binary_int8.h). Residual additions and gates of quantised nets are of this kind. */
#include <math.h>

#include "graph/lower_internal.h"
#include "graph/net_internal.h"
#include "graph/pass_internal.h"

/* ---- finding ---- */

static const struct tnd_net_node *maker(const struct tnd_lowering *l, int value, enum tnd_net_op op,
                                        int kind)
{
    return tnd_net_value(l->net, value)->type == TANDEM_DTYPE_F32
               ? tnd_net_maker(l->net, value, op, kind)
               : NULL;
}

/* A constant of one number, of any shape. */
static bool read_number(const struct tnd_lowering *l, int value, float *out)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const struct tnd_array *known = tnd_lower_value(l, value)->known;
    if (known == NULL || v->type != TANDEM_DTYPE_F32 || tnd_dims_values(&v->shape) == 0) {
        return false;
    }
    for (int d = 0; d < v->shape.n; d++) {
        if (v->shape.dims[d] > 1 && v->strides[d] != 0) {
            return false;
        }
    }
    *out = tnd_array_fill(known) ? ((const float *)known->data)[v->offset] : NAN;
    return isfinite(*out);
}

/* The number and the other operand of a node, in any order if it `swaps`. */
static bool with_number(const struct tnd_lowering *l, const struct tnd_net_node *node, bool swaps,
                        int *other, float *number)
{
    for (int i = 1; node != NULL && i >= (swaps ? 0 : 1); i--) {
        if (read_number(l, node->inputs[i], number)) {
            *other = node->inputs[1 - i];
            return true;
        }
    }
    return false;
}

static bool read_zero(float number, int32_t *zero)
{
    const bool is_integer = fabsf(number) <= 255 && number == floorf(number);
    *zero = is_integer ? (int32_t)number : 0;
    return is_integer;
}

/* Matches (byte - zero) * scale, either part optional. Sets is_reshaped if the bytes are read in
 * another shape. */
static bool read_operand(const struct tnd_lowering *l, int value, int *byte, bool *is_signed,
                         int32_t *zero, float *scale, bool *is_reshaped)
{
    float number;
    *zero = 0;
    *scale = 1;
    (void)with_number(l, maker(l, value, TND_NET_BINARY, TANDEM_BINARY_MUL), true, &value, scale);
    if (with_number(l, maker(l, value, TND_NET_BINARY, TANDEM_BINARY_SUB), false, &value,
                    &number) &&
        !read_zero(number, zero)) {
        return false;
    }
    const struct tnd_net_node *cast = maker(l, value, TND_NET_CAST, -1);
    const int read = cast == NULL ? value : cast->inputs[0];
    const struct tnd_net_value *v = tnd_net_value(l->net, read);
    *byte = v->base;
    *is_reshaped = *is_reshaped || v->base != read;
    *is_signed = v->type == TANDEM_DTYPE_I8;
    return cast != NULL && tnd_match_whole(l->net, read) &&
           (*is_signed || v->type == TANDEM_DTYPE_U8) && tnd_lower_value(l, read)->known == NULL;
}

/* Walks back from the byte to the rounded number, over bounds and the zero point. */
static const struct tnd_net_node *read_end(const struct tnd_lowering *l, int value,
                                           struct tnd_binary_int8 *op)
{
    int32_t zero = 0;
    float number;
    op->low = -INFINITY;
    op->high = INFINITY;
    for (;;) {
        const struct tnd_net_node *node = maker(l, value, TND_NET_BINARY, -1);
        if (!with_number(l, node, true, &value, &number)) {
            break;
        }
        if (node->params.kind == TANDEM_BINARY_ADD && op->zero_y == 0 && read_zero(number, &zero)) {
            op->zero_y = zero;
            op->low -= number;
            op->high -= number;
        } else if (node->params.kind == TANDEM_BINARY_MAX && number <= op->high) {
            op->low = fmaxf(op->low, number);
        } else if (node->params.kind == TANDEM_BINARY_MIN && number >= op->low) {
            op->high = fminf(op->high, number);
        } else {
            return NULL;
        }
    }
    return maker(l, value, TND_NET_UNARY, TANDEM_UNARY_ROUND);
}

/* Walks back to the sum or product, over the scale of the result and a lower bound of 0. */
static const struct tnd_net_node *read_scale(const struct tnd_lowering *l, int value,
                                             struct tnd_binary_int8 *op)
{
    float zero;
    op->divides = with_number(l, maker(l, value, TND_NET_BINARY, TANDEM_BINARY_DIV), false, &value,
                              &op->scale_y);
    if (!op->divides && !with_number(l, maker(l, value, TND_NET_BINARY, TANDEM_BINARY_MUL), true,
                                     &value, &op->scale_y)) {
        op->scale_y = 1;
    }
    if (with_number(l, maker(l, value, TND_NET_BINARY, TANDEM_BINARY_MAX), true, &value, &zero)) {
        if (zero != 0 || op->high < 0) {
            return NULL;
        }
        op->low = fmaxf(op->low, 0);
    }
    return maker(l, value, TND_NET_BINARY, -1);
}

/* How many rows of a use one row of b, if b is repeated along all dimensions after axis 1. False:
 * repeated otherwise. */
static bool read_rows(const struct tnd_lowering *l, int value, const struct tnd_dims *shape,
                      struct tnd_binary_int8 *op)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    int64_t images = 1;
    op->n = op->row = tnd_dims_values(shape);
    op->every = 1;
    if (op->n == 0 || v->offset != 0 || !tnd_dims_is_equal(&v->shape, shape)) {
        return false;
    }
    if (tnd_match_whole(l->net, value)) {
        return true;
    }
    if (shape->n < 3 || (shape->dims[1] > 1 && v->strides[1] != 1) ||
        (shape->dims[0] > 1 && v->strides[0] != shape->dims[1])) {
        return false;
    }
    images = shape->dims[0];
    op->row = shape->dims[1];
    op->every = op->n / op->row / images;
    for (int d = 2; d < shape->n; d++) {
        if (shape->dims[d] > 1 && v->strides[d] != 0) {
            return false;
        }
    }
    return tnd_dims_values(&tnd_net_value(l->net, v->base)->shape) == images * op->row;
}

static bool find_pair(const struct tnd_lowering *l, const struct tnd_net_node *node,
                      struct tnd_lower_pair *out)
{
    const struct tnd_net_value *y = tnd_net_value(l->net, node->output);
    struct tnd_binary_int8 *op = &out->op;
    *out = (struct tnd_lower_pair){.a = TANDEM_NET_NONE};
    op->y_is_signed = y->type == TANDEM_DTYPE_I8;
    if (node->op != TND_NET_CAST || (y->type != TANDEM_DTYPE_U8 && !op->y_is_signed)) {
        return false;
    }
    const struct tnd_net_node *rounded = read_end(l, node->inputs[0], op);
    const struct tnd_net_node *both =
        rounded == NULL ? NULL : read_scale(l, rounded->inputs[0], op);
    if (both == NULL ||
        (both->params.kind != TANDEM_BINARY_ADD && both->params.kind != TANDEM_BINARY_MUL)) {
        return false;
    }
    op->is_product = both->params.kind == TANDEM_BINARY_MUL;
    const int first = tnd_match_whole(l->net, both->inputs[0]) ? 0 : 1;
    const int a = both->inputs[first];
    const int b = both->inputs[1 - first];
    const int a_base = tnd_net_value(l->net, a)->base;
    const int b_base = tnd_net_value(l->net, b)->base;
    const bool b_is_whole = tnd_match_whole(l->net, b);
    out->is_reshaped = a_base != a || (b_is_whole && b_base != b);
    return tnd_match_whole(l->net, a) && read_rows(l, b, &y->shape, op) &&
           read_operand(l, a_base, &out->a, &op->a_is_signed, &op->zero_a, &op->scale_a,
                        &out->is_reshaped) &&
           read_operand(l, b_base, &out->b, &op->b_is_signed, &op->zero_b, &op->scale_b,
                        &out->is_reshaped) &&
           (b_is_whole || !out->is_reshaped) && tnd_binary_int8_is_valid(op);
}

void tnd_lower_find_pairs(struct tnd_lowering *l)
{
    for (int i = 0; i < l->net->n_nodes; i++) {
        struct tnd_lower_pair *pair = &l->pairs[i];
        const struct tnd_net_node *node = &l->net->nodes[i];
        pair->is_found = l->tables[i].values == NULL && l->values[node->output].known == NULL &&
                         find_pair(l, node, pair);
        if (pair->is_found) {
            tnd_binary_int8_avoid_division(&pair->op);
        }
    }
}

/* ---- lowering ---- */

/* The layout of an operand read in row-major order: its own, if the order is the same. */
static enum tnd_net_layout row_layout(const struct tnd_lowering *l, int value)
{
    const struct tnd_dims *shape = &tnd_net_value(l->net, value)->shape;
    int64_t behind = 1;
    for (int d = 2; d < shape->n; d++) {
        behind *= shape->dims[d];
    }
    return behind == 1 && l->values[value].tensors[TND_LAYOUT_LAST] != NULL ? TND_LAYOUT_LAST
                                                                            : TND_LAYOUT_PLAIN;
}

enum tandem_status tnd_lower_pair(struct tnd_lowering *l, const struct tnd_net_node *node)
{
    const struct tnd_lower_pair *pair = &l->pairs[node - l->net->nodes];
    const struct tnd_lower_value *a = &l->values[pair->a];
    const bool is_repeated = pair->op.row < pair->op.n;
    const enum tnd_net_layout layout =
        is_repeated || (!pair->is_reshaped && a->tensors[TND_LAYOUT_LAST] != NULL &&
                        a->tensors[TND_LAYOUT_PLAIN] == NULL)
            ? TND_LAYOUT_LAST
            : TND_LAYOUT_PLAIN;
    tandem_tensor *tensors[2];
    TND_TRY(tnd_lower_tensor(l, pair->a, layout, &tensors[0]));
    TND_TRY(
        tnd_lower_tensor(l, pair->b, is_repeated ? row_layout(l, pair->b) : layout, &tensors[1]));
    l->values[node->output].tensors[layout] =
        tnd_build_binary_int8(l->out->context, &pair->op, tensors[0], tensors[1]);
    return tandem_context_status(l->out->context, l->error);
}
