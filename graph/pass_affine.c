/* SPDX-License-Identifier: MIT
 * Pass "affine": chains of x * c, x / c, x + c, x - c and c - x with constants become one scale and
 * one shift. The scale goes into the constant weights of a convolution or product in front of it.
 *
 * The constants of a chain vary along one run of dimensions, its channels, or not at all. With
 * numbers s, b for each channel, in exact arithmetic:
 * - (x * s + b) * t + d = x * (s t) + (b t + d), and every step above is one x * s + b.
 * - (sum over k of w[k] x[k]) * s = sum over k of (w[k] s) x[k], as long as s does not depend on k.
 *   Channels are thus the filters of a convolution (of all groups), or the rows or columns of the
 *   constant matrix. Padding adds products with 0 to the sum, which stay 0.
 *
 * Roundings differ. Let S be what the chain gives when all of its numbers are replaced by their
 * absolute values and all differences by sums, K the number of products in a sum (0: no product),
 * t the number of steps, u half the distance from 1 to the next number. Each term of a result went
 * through at most K + 2 t roundings before, and K + 2 t + 3 after (the steps' constants; one of the
 * weight or scale, one of the shift, one of adding it). Both thus differ from the exact result by
 * at most n u / (1 - n u) S with n = K + 2 t + 3, from each other by at most twice that (Higham,
 * Accuracy and Stability of Numerical Algorithms, lemma 3.1), as long as nothing overflows or
 * underflows.
 *
 * What would overflow or lose digits is left alone: constants that are infinite or NaN, scales and
 * weights that become subnormal. So are values and weights that others read too: they would be
 * there twice. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "graph/pass_internal.h"

#define MAX_CHANNELS (1 << 16)

/* Element i of a dense value belongs to channel i / inner % n. */
struct channels {
    int64_t inner, n;
};

/* x * scale + shift. */
struct affine {
    struct channels by;
    double *scale, *shift; /* by.n each */
    bool has_scale, has_shift;
};

/* State of a running rule; its numbers live until it ends. */
struct matcher {
    struct tnd_rewrite *rewrite;
    enum tandem_dtype type;
    struct tnd_arena arena;
};

/* A product or convolution with constant weights; one of their axes is the channels. */
struct product {
    struct tnd_net_node node;
    int operand, axis;
    struct channels by;
};

/* ---- numbers ---- */

/* Whether a type stores a number without losing precision. */
static bool is_exact_enough(enum tandem_dtype type, double number)
{
    const double least = type == TANDEM_DTYPE_F32 ? (double)FLT_MIN : DBL_MIN;
    const double most = type == TANDEM_DTYPE_F32 ? (double)FLT_MAX : DBL_MAX;
    return number == 0 || (fabs(number) >= least && fabs(number) <= most);
}

static double number_at(enum tandem_dtype type, const void *data, int64_t i)
{
    return type == TANDEM_DTYPE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void put_number(enum tandem_dtype type, void *data, int64_t i, double number)
{
    if (type == TANDEM_DTYPE_F32) {
        ((float *)data)[i] = (float)number;
    } else {
        ((double *)data)[i] = number;
    }
}

static bool affine_new(struct matcher *m, struct channels by, struct affine *out)
{
    double *numbers =
        tnd_arena_alloc(&m->arena, 2 * (size_t)by.n * sizeof(double), _Alignof(double));
    *out = (struct affine){
        .by = by, .scale = numbers, .shift = numbers == NULL ? NULL : numbers + by.n};
    return numbers != NULL;
}

/* Checks all numbers; false: one cannot be stored. */
static bool affine_check(const struct matcher *m, struct affine *affine)
{
    const double most = m->type == TANDEM_DTYPE_F32 ? (double)FLT_MAX : DBL_MAX;
    for (int64_t i = 0; i < affine->by.n; i++) {
        if (!is_exact_enough(m->type, affine->scale[i]) || !(fabs(affine->shift[i]) <= most)) {
            return false;
        }
        affine->has_scale |= affine->scale[i] != 1;
        affine->has_shift |= affine->shift[i] != 0;
    }
    return true;
}

/* ---- channels ---- */

/* The dimensions along which a view varies: one run, `first` to `last`. */
static bool find_channels(const struct tnd_net_value *view, struct channels *out, int *first,
                          int *last)
{
    *out = (struct channels){1, 1};
    *first = view->shape.n;
    *last = -1;
    for (int d = 0; d < view->shape.n; d++) {
        if (view->shape.dims[d] > 1 && view->strides[d] != 0) {
            *first = d < *first ? d : *first;
            *last = d;
        }
    }
    for (int d = 0; d < view->shape.n; d++) {
        const int64_t extent = view->shape.dims[d];
        if (d >= *first && d <= *last) {
            out->n *= extent;
            if (extent > 1 && view->strides[d] == 0) {
                return false;
            }
        }
        out->inner *= d > *last && *last >= 0 ? extent : 1;
    }
    return out->n > 0 && out->n <= MAX_CHANNELS && tnd_dims_values(&view->shape) > 0;
}

/* Whether each channel of `fine` lies in one of `coarse`. */
static bool is_coarser(struct channels coarse, struct channels fine)
{
    return coarse.n == 1 ||
           (coarse.inner % fine.inner == 0 && fine.n % (coarse.inner / fine.inner * coarse.n) == 0);
}

/* The channel of `coarse` that channel `i` of `fine` lies in. */
static int64_t channel_of(struct channels coarse, struct channels fine, int64_t i)
{
    return coarse.n == 1 ? 0 : coarse.n == fine.n ? i : i / (coarse.inner / fine.inner) % coarse.n;
}

/* Whether a shape has dimensions that are the channels; sets their extents, 1 elsewhere. */
static bool find_extents(struct channels by, const struct tnd_dims *shape, struct tnd_dims *out)
{
    int64_t behind = 1;
    int64_t n = 1;
    *out = *shape;
    for (int d = shape->n - 1; d >= 0; d--) {
        const int64_t next = behind * shape->dims[d];
        const bool is_inside = by.n > 1 && behind >= by.inner && next <= by.inner * by.n;
        out->dims[d] = is_inside ? shape->dims[d] : 1;
        n *= out->dims[d];
        behind = next;
    }
    return n == by.n;
}

/* ---- steps ---- */

static inline void put_step(int kind, bool is_left, double number, double *scale, double *shift)
{
    const bool is_shift = kind == TANDEM_BINARY_ADD || kind == TANDEM_BINARY_SUB;
    *scale = kind == TANDEM_BINARY_MUL              ? number
             : kind == TANDEM_BINARY_DIV            ? 1 / number
             : kind == TANDEM_BINARY_SUB && is_left ? -1
                                                    : 1;
    *shift = is_shift ? (kind == TANDEM_BINARY_SUB && !is_left ? -number : number) : 0;
}

/* Reads an operation between a constant and another operand. */
static bool read_step(struct matcher *m, const struct tnd_net *net, const struct tnd_net_node *node,
                      const int *in, struct affine *out, int *operand)
{
    const int kind = node->params.kind;
    if (node->op != TND_NET_BINARY || kind > TANDEM_BINARY_DIV ||
        net->values[in[0]].type != m->type) {
        return false;
    }
    const bool is_left = tnd_match_constant(net, in[0]);
    if (is_left == tnd_match_constant(net, in[1]) || (is_left && kind == TANDEM_BINARY_DIV)) {
        return false;
    }
    const struct tnd_net_value *c = tnd_net_value(net, in[is_left ? 0 : 1]);
    const struct tnd_array *array = net->values[c->base].known;
    struct channels by;
    int first;
    int last;
    *operand = in[is_left ? 1 : 0];
    if (!find_channels(c, &by, &first, &last) || !tnd_array_fill(array) ||
        !affine_new(m, by, out)) {
        return false;
    }
    const int64_t run = last < 0 ? 1 : c->shape.dims[last];
    const int64_t stride = last < 0 ? 0 : c->strides[last];
    for (int64_t i = 0; i < by.n; i += run) {
        int64_t at = c->offset;
        int64_t rest = i / run;
        for (int d = last - 1; d >= first; d--) {
            at += rest % c->shape.dims[d] * c->strides[d];
            rest /= c->shape.dims[d];
        }
        for (int64_t k = 0; k < run; k++) {
            put_step(kind, is_left, number_at(m->type, array->data, at + k * stride),
                     &out->scale[i + k], &out->shift[i + k]);
        }
    }
    return affine_check(m, out);
}

/* Composes `a`, then `b`. False: their channels do not nest, or numbers get too large. */
static bool compose(struct matcher *m, const struct affine *a, const struct affine *b,
                    struct affine *out)
{
    const bool b_is_finer = is_coarser(a->by, b->by);
    if ((!b_is_finer && !is_coarser(b->by, a->by)) ||
        !affine_new(m, b_is_finer ? b->by : a->by, out)) {
        return false;
    }
    for (int64_t i = 0; i < out->by.n; i++) {
        const int64_t k = channel_of(a->by, out->by, i);
        const int64_t l = channel_of(b->by, out->by, i);
        out->scale[i] = a->scale[k] * b->scale[l];
        out->shift[i] = a->shift[k] * b->scale[l] + b->shift[l];
    }
    return affine_check(m, out);
}

/* Whether the only reader of a node is a step that includes this one: then the rule applies
 * there. */
static bool is_inside(struct matcher *m, const struct tnd_net_node *node, const struct affine *step)
{
    const struct tnd_net *net = m->rewrite->from;
    for (int i = net->values[node->output].node + 1;
         m->rewrite->readers[node->output] == 1 && i < net->n_nodes; i++) {
        const struct tnd_net_node *reader = &net->nodes[i];
        for (int k = 0; k < reader->n_inputs; k++) {
            struct affine next;
            struct affine both;
            int operand;
            if (net->values[reader->inputs[k]].base == node->output) {
                return tnd_match(net, reader->inputs[k], TND_NET_BINARY, -1) != NULL &&
                       read_step(m, net, reader, reader->inputs, &next, &operand) &&
                       compose(m, step, &next, &both);
            }
        }
    }
    return false;
}

/* ---- products ---- */

static bool find_product(const struct matcher *m, int value, struct product *out)
{
    const struct tnd_net *net = m->rewrite->to;
    const struct tnd_net_node *conv = tnd_match(net, value, TND_NET_CONV, -1);
    const struct tnd_net_node *node =
        conv != NULL ? conv : tnd_match(net, value, TND_NET_CONTRACT, -1);
    if (node == NULL) {
        return false;
    }
    const struct tnd_dims *shape = &tnd_net_value(net, node->output)->shape;
    const int operand = conv != NULL || tnd_match_constant(net, node->inputs[1]) ? 1 : 0;
    *out = (struct product){.node = *node, .operand = operand};
    if (conv != NULL) {
        out->by = (struct channels){1, shape->dims[1]};
        for (int d = 2; d < shape->n; d++) {
            out->by.inner *= shape->dims[d];
        }
    } else {
        out->axis = operand == 1 ? 2 : 1;
        out->by = (struct channels){operand == 1 ? 1 : shape->dims[2], shape->dims[out->axis]};
    }
    return tnd_match_constant(net, node->inputs[operand]) &&
           tnd_rewrite_is_private(m->rewrite, value) &&
           tnd_rewrite_is_private(m->rewrite, node->inputs[operand]);
}

/* Scales weights per channel: `how` has the axis of the channels, then a scale for each. Fails if
 * precision would be lost. */
static enum tandem_status scale_weights(const void *how, const struct tnd_view *view, int n,
                                        struct tnd_array *out, struct tandem_error *error)
{
    const double *numbers = how;
    const int axis = (int)numbers[0];
    const int last = view->shape.n - 1;
    int64_t at = 0;
    struct tnd_walk walk;
    (void)n;
    for (tnd_walk_begin(&walk, &view->shape); !walk.is_done; tnd_walk_next(&walk)) {
        const void *row = tnd_walk_place(&walk, view);
        for (int64_t i = 0; i < tnd_walk_row(&walk); i++) {
            const double scale = numbers[1 + (axis == last ? i : walk.at[axis])];
            const double old = number_at(view->type, row, i * view->strides[last]);
            const double new = old *scale;
            if (!is_exact_enough(view->type, new) || (new == 0 && old != 0 && scale != 0)) {
                return tnd_error_set(error, TANDEM_E_ARGUMENT, NULL, at, 0, "digits are lost");
            }
            put_number(view->type, out->data, at++, new);
        }
    }
    return TANDEM_OK;
}

/* The scaled weights of a product. NULL: out of memory, or precision would be lost. */
static struct tnd_array *scaled_weights(const struct matcher *m, const struct product *product,
                                        const double *numbers, size_t n)
{
    const struct tnd_net *net = m->rewrite->to;
    const struct tnd_net_value *w = tnd_net_value(net, product->node.inputs[product->operand]);
    struct tnd_array *known = (struct tnd_array *)(uintptr_t)net->values[w->base].known;
    struct tnd_store_operand in = {
        .array = known, .view = {.type = w->type, .shape = w->shape}, .offset = w->offset};
    struct tandem_error ignored;
    memcpy(in.view.strides, w->strides, sizeof(in.view.strides));
    for (int d = 0; d < in.view.shape.n; d++) {
        in.view.shape.dims[d] =
            in.view.strides[d] == 0 && d != product->axis ? 1 : in.view.shape.dims[d];
    }
    if (tnd_store_has(net->store, known)) {
        const struct tnd_store_recipe recipe = {.make = scale_weights,
                                                .how = numbers,
                                                .n_how = n * sizeof(numbers[0]),
                                                .in = &in,
                                                .n_in = 1,
                                                .type = w->type,
                                                .shape = in.view.shape};
        struct tnd_array *kept = NULL;
        return tnd_store_derive(net->store, &recipe, &kept, &ignored) == TANDEM_OK ? kept : NULL;
    }
    struct tnd_array *out = tnd_array_new(w->type, &in.view.shape);
    in.view.data = (const char *)known->data + w->offset * (int64_t)tandem_dtype_bytes(w->type);
    if (out != NULL && scale_weights(numbers, &in.view, 1, out, &ignored) != TANDEM_OK) {
        tnd_array_free(out);
        out = NULL;
    }
    return out;
}

static int in_shape(struct tnd_net *net, int value, const struct tnd_dims *shape)
{
    return value == TANDEM_NET_NONE || tnd_dims_is_equal(&tnd_net_value(net, value)->shape, shape)
               ? value
               : tnd_net_reshape(net, value, shape);
}

/* The product with other weights, in the shape in which it is read; TANDEM_NET_NONE: unchanged. */
static int with_weights(struct matcher *m, const struct product *product,
                        const struct affine *affine, const struct tnd_dims *read)
{
    struct tnd_net *to = m->rewrite->to;
    const size_t n = (size_t)product->by.n + 1;
    double *numbers = is_coarser(affine->by, product->by)
                          ? tnd_arena_alloc(&m->arena, n * sizeof(double), _Alignof(double))
                          : NULL;
    if (numbers != NULL) {
        numbers[0] = product->axis;
    }
    for (int64_t i = 0; numbers != NULL && i < product->by.n; i++) {
        numbers[i + 1] = affine->scale[channel_of(affine->by, product->by, i)];
    }
    struct tnd_array *weights = numbers == NULL ? NULL : scaled_weights(m, product, numbers, n);
    if (weights == NULL) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims shape = tnd_net_value(to, product->node.output)->shape;
    const struct tnd_dims extents =
        tnd_net_value(to, product->node.inputs[product->operand])->shape;
    int in[2] = {product->node.inputs[0], product->node.inputs[1]};
    in[product->operand] = tnd_net_expand(to, tnd_net_constant(to, weights), &extents);
    return in_shape(
        to, tnd_net_add(to, product->node.op, &product->node.params, in, 2, m->type, &shape), read);
}

/* ---- the rule ---- */

static int with_numbers(struct matcher *m, enum tandem_binary kind, int x, struct channels by,
                        const double *numbers)
{
    struct tnd_net *to = m->rewrite->to;
    const struct tnd_dims shape = tnd_net_value(to, x)->shape;
    struct tnd_dims extents;
    (void)find_extents(by, &shape, &extents);
    struct tnd_array *array = tnd_array_new(m->type, &extents);
    for (int64_t i = 0; array != NULL && i < by.n; i++) {
        put_number(m->type, array->data, i, numbers[i]);
    }
    return tnd_net_binary(to, kind, x, tnd_net_expand(to, tnd_net_constant(to, array), &shape));
}

static int apply(struct matcher *m, const struct affine *affine, int x)
{
    if (x != TANDEM_NET_NONE && affine->has_scale) {
        x = with_numbers(m, TANDEM_BINARY_MUL, x, affine->by, affine->scale);
    }
    if (x != TANDEM_NET_NONE && affine->has_shift) {
        x = with_numbers(m, TANDEM_BINARY_ADD, x, affine->by, affine->shift);
    }
    return x;
}

/* Includes the steps below `x`; returns their number. */
static int walk_down(struct matcher *m, struct affine *all, int *x)
{
    struct tnd_net *to = m->rewrite->to;
    for (int steps = 0;; steps++) {
        const struct tnd_net_node *node = tnd_match(to, *x, TND_NET_BINARY, -1);
        struct affine first;
        struct affine both;
        int below;
        if (node == NULL || !tnd_rewrite_is_private(m->rewrite, *x) ||
            !read_step(m, to, node, node->inputs, &first, &below) ||
            !compose(m, &first, all, &both)) {
            return steps;
        }
        *all = both;
        *x = below;
    }
}

static int fuse(struct matcher *m, const struct tnd_net_node *node, const int *in)
{
    struct tnd_net *to = m->rewrite->to;
    struct affine all;
    struct product product;
    struct tnd_dims extents;
    int x;
    if (!read_step(m, to, node, in, &all, &x) || is_inside(m, node, &all)) {
        return TANDEM_NET_NONE;
    }
    const struct tnd_dims shape = tnd_net_value(to, x)->shape;
    int steps = 1 + walk_down(m, &all, &x);
    if (!find_extents(all.by, &tnd_net_value(to, x)->shape, &extents)) {
        /* in the shape at the top, where that costs no copy */
        if (tnd_net_value(to, x)->base != x || !find_extents(all.by, &shape, &extents)) {
            return TANDEM_NET_NONE;
        }
        x = in_shape(to, x, &shape);
        if (x == TANDEM_NET_NONE) {
            return x;
        }
    }
    const struct tnd_dims read = tnd_net_value(to, x)->shape;
    if (all.has_scale && find_product(m, x, &product)) {
        const int scaled = with_weights(m, &product, &all, &read);
        x = scaled != TANDEM_NET_NONE ? scaled : x;
        steps += scaled != TANDEM_NET_NONE;
        all.has_scale &= scaled == TANDEM_NET_NONE;
    }
    if (steps <= all.has_scale + all.has_shift) {
        return TANDEM_NET_NONE;
    }
    return in_shape(to, apply(m, &all, x), &shape);
}

int tnd_pass_affine(struct tnd_rewrite *rewrite, const struct tnd_net_node *node, const int *in)
{
    if (node->op != TND_NET_BINARY) {
        return TANDEM_NET_NONE;
    }
    struct matcher m = {.rewrite = rewrite, .type = rewrite->to->values[in[0]].type};
    if (m.type != TANDEM_DTYPE_F32 && m.type != TANDEM_DTYPE_F64) {
        return TANDEM_NET_NONE;
    }
    tnd_arena_init(&m.arena, 1 << 14, 0);
    const int out = fuse(&m, node, in);
    tnd_arena_fini(&m.arena);
    return out;
}
