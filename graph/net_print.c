/* SPDX-License-Identifier: MIT
 * Nets as text. */
#include "graph/net.h"

static const char *kind_name(const struct tnd_net_node *node)
{
    static const char *const unary[TND_N_UNARY] = {
        "neg",    "abs",    "sign",  "exp",       "log",   "sqrt",      "reciprocal", "sin",
        "cos",    "tan",    "asin",  "acos",      "atan",  "sinh",      "cosh",       "tanh",
        "asinh",  "acosh",  "atanh", "erf",       "floor", "ceil",      "round",      "not",
        "is_nan", "is_inf", "gelu",  "gelu_tanh", "silu",  "hard_swish"};
    static const char *const binary[TND_N_BINARY] = {
        "add", "sub", "mul", "div",        "pow",         "mod",   "fmod", "max",       "min",
        "and", "or",  "xor", "shift_left", "shift_right", "equal", "less", "less_equal"};
    static const char *const norm[] = {"layer_norm", "rms_norm"};
    static const char *const reduce[] = {"sum", "prod", "max", "min"};
    switch (node->op) {
    case TND_NET_UNARY:
        return unary[node->params.kind];
    case TND_NET_BINARY:
        return binary[node->params.kind];
    case TND_NET_REDUCE:
        return reduce[node->params.kind];
    case TND_NET_NORM:
        return norm[node->params.kind];
    default:
        return NULL;
    }
}

const char *tnd_net_node_name(const struct tnd_net_node *node)
{
    const char *kind = kind_name(node);
    return kind != NULL ? kind : tnd_net_op_name(node->op);
}

static void print_value(const struct tnd_net *net, int value, struct tnd_text *out)
{
    const struct tnd_net_value *v = tnd_net_value(net, value);
    char text[160];
    if (v->input >= 0) {
        tnd_text_printf(out, "%s", v->name);
    } else if (v->base != value) { /* a view */
        tnd_text_printf(out, "%%%d as %s", v->base, tnd_dims_text(&v->shape, text));
    } else {
        tnd_text_printf(out, v->node < 0 ? "constant %d" : "%%%d", value);
    }
}

void tnd_net_print(const struct tnd_net *net, struct tnd_text *out)
{
    char text[160];
    for (int i = 0; i < net->n_nodes; i++) {
        const struct tnd_net_node *node = &net->nodes[i];
        const struct tnd_net_value *v = tnd_net_value(net, node->output);
        const char *kind = kind_name(node);
        tnd_text_printf(out, "%%%d = %s(", node->output,
                        kind != NULL && node->op != TND_NET_REDUCE ? kind
                                                                   : tnd_net_op_name(node->op));
        for (int k = 0; k < node->n_inputs; k++) {
            tnd_text_add(out, k > 0 ? ", " : "");
            print_value(net, node->inputs[k], out);
        }
        tnd_text_printf(out, node->op == TND_NET_REDUCE ? ", %s) %s %s\n" : ")%s %s %s\n",
                        node->op == TND_NET_REDUCE ? kind : "", tandem_dtype_name(v->type),
                        tnd_dims_text(&v->shape, text));
    }
    for (int i = 0; i < net->n_outputs; i++) {
        tnd_text_printf(out, "output %d: ", i);
        print_value(net, net->outputs[i], out);
        tnd_text_add(out, "\n");
    }
}
