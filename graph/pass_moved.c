/* SPDX-License-Identifier: MIT
 * Constant values that are moved before use, like weights of transposed convolutions: applies the
 * views, copies and padding by 0 of one value to another. */
#include <string.h>

#include "ggml-like/net_kernels.h"
#include "graph/net_internal.h"
#include "graph/pass_internal.h"

/* A hostile file may move weights more often than a stack lets recursion follow, or to more values
 * than there is memory for. */
enum { MOVES_MOST = 64, VALUES_MOST = 1 << 22 /* or a few times the original's */ };

/* The operand of a copy or of padding by 0; TANDEM_NET_NONE: the base is computed otherwise. */
static int moved_operand(const struct tnd_net *net, int base)
{
    double number = 1;
    int64_t integer = 0;
    const struct tnd_net_node *node = tnd_net_maker(net, base, TND_NET_COPY, -1);
    if (node != NULL) {
        return node->inputs[0];
    }
    node = tnd_net_maker(net, base, TND_NET_PAD, TANDEM_PAD_CONSTANT);
    return node != NULL && tnd_match_uniform(net, node->inputs[1], &number, &integer) && number == 0
               ? node->inputs[0]
               : TANDEM_NET_NONE;
}

int tnd_moved_from(const struct tnd_net *net, int value)
{
    const int first = net->values[value].base;
    int base = first;
    int moves = 0;
    for (int read; (read = moved_operand(net, base)) != TANDEM_NET_NONE; moves++) {
        if (moves == MOVES_MOST) {
            return first;
        }
        base = net->values[read].base;
    }
    return base;
}

int tnd_moved_like(struct tnd_net *net, int value, int from, int other)
{
    const int base = net->values[value].base;
    if (other == TANDEM_NET_NONE) {
        return other;
    }
    if (base != from) {
        const struct tnd_net_node node = net->nodes[net->values[base].node];
        const struct tnd_dims shape = net->values[base].shape;
        const enum tandem_dtype type = net->values[other].type;
        const int part = tnd_moved_like(net, node.inputs[0], from, other);
        int in[] = {part, TANDEM_NET_NONE};
        if (node.op == TND_NET_PAD) {
            in[1] = tnd_net_scalar(net, type, 0);
        }
        if (part == TANDEM_NET_NONE || (node.op == TND_NET_PAD && in[1] == TANDEM_NET_NONE)) {
            return TANDEM_NET_NONE;
        }
        other = tnd_net_add(net, node.op, &node.params, in, node.n_inputs, type, &shape);
    }
    return base == value ? other : tnd_net_view_like(net, other, value);
}

/* Runs a copy or padding on a part of an array, which is freed. NULL: error. */
static struct tnd_array *move(const struct tnd_net *net, int part, enum tnd_net_op op,
                              const struct tnd_net_params *params, const struct tnd_dims *shape,
                              struct tnd_array *array)
{
    static const int32_t none = 0;
    const struct tnd_net_value *v = &net->values[part];
    struct tnd_view in[] = {{.type = TANDEM_DTYPE_I32, .shape = v->shape},
                            {.type = TANDEM_DTYPE_I32, .shape = {.n = 0}, .data = &none}};
    struct tnd_array *out = array == NULL ? NULL : tnd_array_new(TANDEM_DTYPE_I32, shape);
    struct tandem_error error;
    if (out != NULL) {
        in[0].data = (const int32_t *)array->data + v->offset;
        memcpy(in[0].strides, v->strides, sizeof(in[0].strides));
        const struct tnd_kernel_call call = {.params = params,
                                             .in = in,
                                             .n_in = op == TND_NET_PAD ? 2 : 1,
                                             .out = out,
                                             .error = &error};
        if (tnd_net_kernel(op)(&call) != TANDEM_OK) {
            tnd_array_free(out);
            out = NULL;
        }
    }
    tnd_array_free(array);
    return out;
}

static bool has_too_many(const struct tnd_net *net, int value, int from)
{
    const int64_t n = tnd_dims_values(&net->values[value].shape);
    return n >= INT32_MAX || (n > VALUES_MOST && n / 4 > tnd_dims_values(&net->values[from].shape));
}

/* The original indices of a whole base. */
static struct tnd_array *places_of(const struct tnd_net *net, int base, int from)
{
    const struct tnd_dims *shape = &net->values[base].shape;
    if (has_too_many(net, base, from)) {
        return NULL;
    }
    if (base != from) {
        const struct tnd_net_node *node = &net->nodes[net->values[base].node];
        const int part = node->inputs[0];
        return move(net, part, node->op, &node->params, shape,
                    places_of(net, net->values[part].base, from));
    }
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_I32, shape);
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        ((int32_t *)array->data)[i] = (int32_t)i + 1;
    }
    return array;
}

struct tnd_array *tnd_moved_places(const struct tnd_net *net, int value, int from)
{
    const struct tnd_net_params none = {0};
    const struct tnd_net_value *v = &net->values[value];
    return has_too_many(net, value, from)
               ? NULL
               : move(net, value, TND_NET_COPY, &none, &v->shape, places_of(net, v->base, from));
}
