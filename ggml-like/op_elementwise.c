/* SPDX-License-Identifier: MIT
 * Builders of operations that go element by element: value i of the result needs value i of `a`
 * and, for two operands, one value of `b`. */
#include "ggml-like/tensor_internal.h"

static tandem_tensor *binary(tandem_context *context, enum tandem_op op, tandem_tensor *a,
                             tandem_tensor *b)
{
    if (!tnd_build_ready_f32(context, op, "a", a) || !tnd_build_ready_f32(context, op, "b", b)) {
        return NULL;
    }
    for (int i = 0; i < TANDEM_MAX_DIMS; i++) {
        const bool fits = a->ne[i] == b->ne[i] || (b->ne[i] > 0 && a->ne[i] % b->ne[i] == 0);
        if (!fits) {
            char a_shape[TND_SHAPE_TEXT_BYTES];
            char b_shape[TND_SHAPE_TEXT_BYTES];
            const char *name = tandem_op_name(op);
            return tnd_build_fail(context, TANDEM_E_SHAPE, name, b->ne[i], a->ne[i],
                                  "%s: b %s cannot be repeated to the shape of a %s (ne[%d])", name,
                                  tnd_shape_text(b->ne, b_shape), tnd_shape_text(a->ne, a_shape),
                                  i);
        }
    }
    return tnd_build_node(context, op, TANDEM_TYPE_F32, a->ne, a, b);
}

static tandem_tensor *unary(tandem_context *context, enum tandem_op op, tandem_tensor *a)
{
    if (!tnd_build_ready_f32(context, op, "a", a)) {
        return NULL;
    }
    return tnd_build_node(context, op, TANDEM_TYPE_F32, a->ne, a, NULL);
}

tandem_tensor *tandem_add(tandem_context *context, tandem_tensor *a, tandem_tensor *b)
{
    return binary(context, TANDEM_OP_ADD, a, b);
}

tandem_tensor *tandem_sub(tandem_context *context, tandem_tensor *a, tandem_tensor *b)
{
    return binary(context, TANDEM_OP_SUB, a, b);
}

tandem_tensor *tandem_mul(tandem_context *context, tandem_tensor *a, tandem_tensor *b)
{
    return binary(context, TANDEM_OP_MUL, a, b);
}

tandem_tensor *tandem_div(tandem_context *context, tandem_tensor *a, tandem_tensor *b)
{
    return binary(context, TANDEM_OP_DIV, a, b);
}

tandem_tensor *tandem_scale(tandem_context *context, tandem_tensor *a, float factor)
{
    tandem_tensor *node = unary(context, TANDEM_OP_SCALE, a);
    if (node != NULL) {
        node->params.factor = factor;
    }
    return node;
}

tandem_tensor *tandem_sqr(tandem_context *context, tandem_tensor *a)
{
    return unary(context, TANDEM_OP_SQR, a);
}

tandem_tensor *tandem_sqrt(tandem_context *context, tandem_tensor *a)
{
    return unary(context, TANDEM_OP_SQRT, a);
}

tandem_tensor *tandem_silu(tandem_context *context, tandem_tensor *a)
{
    return unary(context, TANDEM_OP_SILU, a);
}

tandem_tensor *tandem_gelu(tandem_context *context, tandem_tensor *a)
{
    return unary(context, TANDEM_OP_GELU, a);
}

tandem_tensor *tandem_relu(tandem_context *context, tandem_tensor *a)
{
    return unary(context, TANDEM_OP_RELU, a);
}
