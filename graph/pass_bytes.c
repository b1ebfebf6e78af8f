/* SPDX-License-Identifier: MIT
 * Part of pass "strength": values that are quantised to bytes.
 *
 * A cast to 8 bits ends a chain of operations with one operand each (others are one number),
 * through which values also are read in other shapes or with their axes in another order: quantised
 * nets have a quantisation behind each reshape and transposition.
 * - Where the chain begins at bytes and gives each of the 256 back, as a dequantisation and a
 *   quantisation by the same scale do, its result is a view of them. All of them are computed to
 *   know that, so that the bits are the same.
 * - Else the chain is computed on the values as they lie, and bytes are read in the other order:
 *   each value goes through the same operations. Products then make bytes themselves, what depends
 *   on a byte alone becomes a table, and fewer bytes are moved.
 * - Where floats of bytes are joined at its beginning, bytes are joined, and each operand goes
 *   through the chain by itself.
 *
 * A product of floats that were bytes in another order reads the floats in that order instead: its
 * kernels know transposed operands. */
#include <string.h>

#include "ggml-like/net_kernels.h"
#include "graph/net_internal.h"
#include "graph/pass_internal.h"

enum { MAX_STEPS = 16, BYTES = 256, MOST_OPERANDS = 32 /* of a concatenation */ };

/* A chain, from the cast back to its origin. */
struct chain {
    int n;
    int nodes[MAX_STEPS]; /* of the net being built */
    int reads[MAX_STEPS]; /* the value by which the next step, or the cast, reads the result */
    int sides[MAX_STEPS]; /* which operand belongs to the chain */
    int origin;           /* what the last step reads */
};

/* ---- views ---- */

/* Sorts axes with extents above 1 by falling strides. */
static int sort_axes(const struct tnd_net_value *v, int *axes)
{
    int n = 0;
    for (int d = 0; d < v->shape.n; d++) {
        int at = n;
        if (v->shape.dims[d] == 1) {
            continue;
        }
        for (; at > 0 && v->strides[axes[at - 1]] < v->strides[d]; at--) {
            axes[at] = axes[at - 1];
        }
        axes[at] = d;
        n++;
    }
    return n;
}

/* Whether a value has each element of its base once: reshaped or permuted. */
static bool is_all_once(const struct tnd_net *net, int value)
{
    const struct tnd_net_value *v = &net->values[value];
    int axes[TANDEM_NET_MAX_DIMS];
    const int n = sort_axes(v, axes);
    int64_t behind = 1;
    for (int i = n - 1; i >= 0; i--) {
        if (v->strides[axes[i]] != behind) {
            return false;
        }
        behind *= v->shape.dims[axes[i]];
    }
    return v->offset == 0 && behind > 0 && behind == tnd_dims_values(&net->values[v->base].shape);
}

/* Applies the view `like` of its base to another value of that shape. TANDEM_NET_NONE: `like` is a
 * part, and of a view. */
static int follow_view(struct tnd_net *net, int value, int like)
{
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    const struct tnd_net_value view = net->values[like];
    struct tnd_dims sorted = {.n = 0};
    int order[TANDEM_NET_MAX_DIMS];
    int axes[TANDEM_NET_MAX_DIMS]; /* of the sorted ones, in the order of the view */
    if (view.base == like) {
        return value;
    }
    if (!is_all_once(net, like)) {
        return net->values[value].base == value ? tnd_net_view_like(net, value, like)
                                                : TANDEM_NET_NONE;
    }
    sorted.n = sort_axes(&view, order);
    for (int i = 0; i < sorted.n; i++) {
        sorted.dims[i] = view.shape.dims[order[i]];
    }
    for (int d = 0, n = 0; d < view.shape.n; d++) {
        for (int i = 0; i < sorted.n; i++) {
            if (order[i] == d) {
                axes[n++] = i;
            }
        }
    }
    value = tnd_net_permute(net, tnd_net_reshape(net, value, &sorted), axes);
    return tnd_net_reshape(net, value, &view.shape);
}

/* Applies all views of the chain; returns the value itself if they end in its order in memory. */
static int follow_views(struct tnd_net *net, int value, const struct chain *chain)
{
    for (int i = chain->n - 1; i >= 0; i--) {
        value = follow_view(net, value, chain->reads[i]);
    }
    if (value == TANDEM_NET_NONE) {
        return value;
    }
    const int base = net->values[value].base;
    return tnd_match_whole(net, value) &&
                   tnd_dims_is_equal(&net->values[value].shape, &net->values[base].shape)
               ? base
               : value;
}

/* ---- the chain ---- */

/* The operand through which a chain continues; -1: the node is not a step. */
static int side_of(const struct tnd_net *net, const struct tnd_net_node *node)
{
    const enum tandem_dtype type = net->values[node->inputs[0]].type;
    double number;
    int64_t integer;
    if (net->values[node->output].type != TANDEM_DTYPE_F32) {
        return -1;
    }
    if (node->op == TND_NET_CAST) {
        return tnd_is_byte(type) ? 0 : -1;
    }
    if (node->op == TND_NET_UNARY) {
        return 0;
    }
    for (int i = 1; node->op == TND_NET_BINARY && i >= 0; i--) {
        if (tnd_match_uniform(net, node->inputs[i], &number, &integer)) {
            return 1 - i;
        }
    }
    return -1;
}

/* Finds a chain. With `has_parts` values may also be sliced or repeated. */
static void find_chain(const struct tnd_net *net, int value, bool has_parts, struct chain *out)
{
    out->n = 0;
    out->origin = value;
    while (out->n < MAX_STEPS && (has_parts || is_all_once(net, out->origin))) {
        const int made = net->values[net->values[out->origin].base].node;
        const int side = made < 0 ? -1 : side_of(net, &net->nodes[made]);
        if (side < 0) {
            return;
        }
        out->nodes[out->n] = made;
        out->sides[out->n] = side;
        out->reads[out->n++] = out->origin;
        out->origin = net->nodes[made].inputs[side];
        if (tnd_is_byte(net->values[out->origin].type)) {
            return;
        }
    }
}

/* ---- bytes that stay what they are ---- */

/* The results of a step for 256 values, which are freed. NULL: error. */
static struct tnd_array *run_step(const struct tnd_net *net, const struct tnd_net_node *node,
                                  int side, struct tnd_array *values)
{
    const struct tnd_dims shape = {1, {BYTES}};
    struct tnd_array *out = tnd_array_new(net->values[node->output].type, &shape);
    struct tnd_view in[2];
    struct tandem_error error;
    for (int i = 0; i < node->n_inputs; i++) {
        const struct tnd_net_value *v = &net->values[node->inputs[i]];
        in[i] = (struct tnd_view){.type = v->type, .shape = shape, .strides = {i == side}};
        in[i].data = i == side ? values->data
                               : (const char *)net->values[v->base].known->data +
                                     (size_t)v->offset * tandem_dtype_bytes(v->type);
    }
    const struct tnd_kernel_call call = {
        .params = &node->params, .in = in, .n_in = node->n_inputs, .out = out, .error = &error};
    if (out != NULL && tnd_net_kernel(node->op)(&call) != TANDEM_OK) {
        tnd_array_free(out);
        out = NULL;
    }
    tnd_array_free(values);
    return out;
}

/* Whether a chain that starts at bytes returns the same bytes when `cast` reads it. */
static bool is_identity(const struct tnd_net *net, const struct tnd_net_node *cast,
                        enum tandem_dtype type, const struct chain *chain)
{
    const struct tnd_dims shape = {1, {BYTES}};
    if (chain->n == 0 || net->values[chain->origin].type != type) {
        return false;
    }
    struct tnd_array *values = tnd_array_new(type, &shape);
    for (int i = 0; values != NULL && i < BYTES; i++) {
        ((uint8_t *)values->data)[i] = (uint8_t)i;
    }
    for (int i = chain->n - 1; i >= 0 && values != NULL; i--) {
        values = run_step(net, &net->nodes[chain->nodes[i]], chain->sides[i], values);
    }
    struct tnd_array *out = values == NULL ? NULL : tnd_array_new(type, &shape);
    bool is = out != NULL;
    if (out != NULL) {
        const struct tnd_view in = {
            .type = values->type, .shape = shape, .strides = {1}, .data = values->data};
        struct tandem_error error;
        const struct tnd_kernel_call call = {
            .params = &cast->params, .in = &in, .n_in = 1, .out = out, .error = &error};
        is = tnd_net_kernel(TND_NET_CAST)(&call) == TANDEM_OK;
    }
    for (int i = 0; is && i < BYTES; i++) {
        is = ((const uint8_t *)out->data)[i] == i;
    }
    tnd_array_free(values);
    tnd_array_free(out);
    return is;
}

/* ---- bytes in another order ---- */

/* Keeps only the steps whose results nothing else reads. */
static void keep_private(const struct tnd_rewrite *rewrite, struct chain *chain)
{
    for (int i = 0; i < chain->n; i++) {
        if (!tnd_rewrite_is_private(rewrite, chain->reads[i])) {
            chain->origin = chain->reads[i];
            chain->n = i;
        }
    }
}

static bool has_views(const struct tnd_net *net, const struct chain *chain)
{
    bool has = net->values[chain->origin].base != chain->origin && is_all_once(net, chain->origin);
    for (int i = 0; i < chain->n && !has; i++) {
        has = net->values[chain->reads[i]].base != chain->reads[i];
    }
    return has;
}

/* Builds the chain on a value that replaces its origin, followed by the cast (NULL: none). */
static int build_steps(struct tnd_net *to, const struct tnd_net_node *cast, enum tandem_dtype type,
                       const struct chain *chain, int x)
{
    const struct tnd_dims shape = to->values[x].shape;
    for (int i = chain->n - 1; i >= 0; i--) {
        const struct tnd_net_node node = to->nodes[chain->nodes[i]];
        const int side = chain->sides[i];
        int in[2] = {x, x};
        if (node.n_inputs == 2) {
            const int other = node.inputs[1 - side];
            double number = 0;
            int64_t integer = 0;
            (void)tnd_match_uniform(to, other, &number, &integer);
            in[1 - side] = tnd_pass_number(to, to->values[other].type, number, &shape);
        }
        if (in[0] == TANDEM_NET_NONE || in[1] == TANDEM_NET_NONE) {
            return TANDEM_NET_NONE;
        }
        x = tnd_net_add(to, node.op, &node.params, in, node.n_inputs, to->values[node.output].type,
                        &shape);
        if (x == TANDEM_NET_NONE) {
            return x;
        }
    }
    return cast == NULL ? x : tnd_net_add(to, TND_NET_CAST, &cast->params, &x, 1, type, &shape);
}

/* As build_steps on the origin in its order in memory; the views are applied to the result. */
static int build_before_views(struct tnd_net *to, const struct tnd_net_node *cast,
                              enum tandem_dtype type, const struct chain *chain)
{
    const bool crosses = is_all_once(to, chain->origin);
    int x = build_steps(to, cast, type, chain,
                        crosses ? to->values[chain->origin].base : chain->origin);
    x = crosses && x != TANDEM_NET_NONE ? follow_view(to, x, chain->origin) : x;
    return x == TANDEM_NET_NONE ? x : follow_views(to, x, chain);
}

/* ---- bytes that are joined ---- */

/* If the chain's origin is a concatenation of floats that all were bytes: concatenates bytes, each
 * operand taken through the chain separately. */
static int build_before_concat(struct tnd_rewrite *rewrite, const struct tnd_net_node *cast,
                               enum tandem_dtype type, const struct chain *chain)
{
    struct tnd_net *to = rewrite->to;
    const int made = to->values[chain->origin].node;
    const struct tnd_dims shape = to->values[chain->origin].shape;
    int operands[MOST_OPERANDS];
    if (chain->n == 0 || made < 0 || to->nodes[made].op != TND_NET_CONCAT ||
        to->nodes[made].n_inputs > MOST_OPERANDS ||
        to->values[chain->origin].base != chain->origin ||
        !tnd_rewrite_is_private(rewrite, chain->origin)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_net_node concat = to->nodes[made];
    for (int i = 0; i < chain->n; i++) {
        if (to->values[chain->reads[i]].base != chain->reads[i] ||
            !tnd_dims_is_equal(&to->values[chain->reads[i]].shape, &shape)) {
            return TANDEM_NET_NONE;
        }
    }
    for (int i = 0; i < concat.n_inputs; i++) {
        struct chain of_operand;
        operands[i] = concat.inputs[i];
        find_chain(to, operands[i], true, &of_operand);
        if (of_operand.n == 0 || !tnd_is_byte(to->values[of_operand.origin].type)) {
            return TANDEM_NET_NONE;
        }
    }
    for (int i = 0; i < concat.n_inputs; i++) {
        operands[i] = build_steps(to, cast, type, chain, operands[i]);
        if (operands[i] == TANDEM_NET_NONE) {
            return TANDEM_NET_NONE;
        }
    }
    return tnd_net_add(to, TND_NET_CONCAT, &concat.params, operands, concat.n_inputs, type, &shape);
}

int tnd_rule_to_byte(struct tnd_rewrite *rewrite, const struct tnd_net_node *cast, const int *in)
{
    struct tnd_net *to = rewrite->to;
    const enum tandem_dtype type = rewrite->from->values[cast->output].type;
    struct chain chain;
    if (!tnd_is_byte(type) || to->values[in[0]].type != TANDEM_DTYPE_F32) {
        return TANDEM_NET_NONE;
    }
    find_chain(to, in[0], true, &chain);
    const int same = is_identity(to, cast, type, &chain) ? follow_views(to, chain.origin, &chain)
                                                         : TANDEM_NET_NONE;
    if (same != TANDEM_NET_NONE) {
        return same;
    }
    find_chain(to, in[0], false, &chain);
    if (chain.n == 0 || !has_views(to, &chain)) { /* (of values in order) */
        keep_private(rewrite, &chain);
        return build_before_concat(rewrite, cast, type, &chain);
    }
    keep_private(rewrite, &chain);
    return chain.n == 0 || !has_views(to, &chain) ? TANDEM_NET_NONE
                                                  : build_before_views(to, cast, type, &chain);
}

int tnd_rule_of_bytes(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = rewrite->to;
    const struct tnd_dims shape = rewrite->from->values[node->output].shape;
    const enum tandem_dtype type = rewrite->from->values[node->output].type;
    int operands[3];
    bool changes = false;
    for (int i = 0; i < node->n_inputs; i++) {
        struct chain chain = {.n = 0};
        operands[i] = in[i];
        if (to->values[in[i]].type != TANDEM_DTYPE_F32) {
            continue;
        }
        find_chain(to, in[i], false, &chain);
        if (chain.n == 0 || !tnd_is_byte(to->values[chain.origin].type) ||
            !is_all_once(to, chain.origin) || tnd_match_whole(to, chain.origin)) {
            continue;
        }
        keep_private(rewrite, &chain);
        if (tnd_is_byte(to->values[chain.origin].type)) {
            operands[i] = build_before_views(to, NULL, type, &chain);
            changes = true;
        }
    }
    return changes
               ? tnd_net_add(to, node->op, &node->params, operands, node->n_inputs, type, &shape)
               : TANDEM_NET_NONE;
}
