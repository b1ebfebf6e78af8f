/* SPDX-License-Identifier: MIT
 * Products and convolutions of 8-bit integers. A net has them of int32: x less its zero point, by
 * weights less theirs. Where x was cast from 8 bits, the sums are made of these bytes: by
 * ggml-like/conv_int8.h with constant weights, by ggml-like/product_int8.h of two computed
 * operands. A scale, bias, bounds and the rounding to 8 bits that follow belong to the same node.
 */
#include <math.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "graph/lower_internal.h"
#include "graph/net_internal.h"
#include "graph/pass_internal.h"

/* ---- finding them ---- */

static bool is_byte(const struct tnd_net *net, int value)
{
    return tnd_is_byte(tnd_net_value(net, value)->type);
}

/* Whether all values of a view are the same element. */
static bool is_one_value(const struct tnd_net_value *v)
{
    for (int i = 0; i < v->shape.n; i++) {
        if (v->shape.dims[i] > 1 && v->strides[i] != 0) {
            return false;
        }
    }
    return tnd_dims_values(&v->shape) > 0;
}

/* The zero point of bytes of a type: known, or one byte that was cast. */
static bool find_zero(const struct tnd_lowering *l, int value, enum tandem_dtype type,
                      struct tnd_lower_int8 *out)
{
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    if (!is_one_value(v)) {
        return false;
    }
    if (tnd_lower_value(l, value)->known != NULL) {
        if (tnd_lower_fill(l, value) != TANDEM_OK) {
            return false;
        }
        const int32_t least = type == TANDEM_DTYPE_I8 ? -128 : 0;
        out->conv.zero_x = *(const int32_t *)tnd_lower_known(l, value).data;
        return out->conv.zero_x >= least && out->conv.zero_x <= least + 255;
    }
    const struct tnd_net_node *cast = tnd_net_maker(l->net, v->base, TND_NET_CAST, -1);
    out->zero = cast != NULL ? tnd_net_value(l->net, cast->inputs[0])->base : TANDEM_NET_NONE;
    return cast != NULL && is_byte(l->net, out->zero) &&
           tnd_net_value(l->net, out->zero)->type == type &&
           tnd_dims_values(&tnd_net_value(l->net, out->zero)->shape) == 1;
}

/* Whether a value is a whole tensor of bytes cast to int32, minus a zero point. */
static bool find_bytes(const struct tnd_lowering *l, int value, struct tnd_lower_int8 *out)
{
    const struct tnd_net *net = l->net;
    const struct tnd_net_node *less = tnd_net_maker(net, value, TND_NET_BINARY, -1);
    if (less != NULL && less->params.kind != TANDEM_BINARY_SUB) {
        return false;
    }
    const int wide = less != NULL ? less->inputs[0] : value;
    const struct tnd_net_node *cast = tnd_net_maker(net, wide, TND_NET_CAST, -1);
    if (cast == NULL || !is_byte(net, cast->inputs[0]) ||
        tnd_lower_value(l, cast->inputs[0])->known != NULL) {
        return false;
    }
    *out = (struct tnd_lower_int8){.x = cast->inputs[0],
                                   .zero = TANDEM_NET_NONE,
                                   .right = TANDEM_NET_NONE,
                                   .right_zero = TANDEM_NET_NONE};
    return less == NULL || find_zero(l, less->inputs[1], tnd_net_value(net, out->x)->type, out);
}

/* The constant of a node's weights: the bytes before a cast to int32, if only a cast lies
 * between. */
static int weights_value(const struct tnd_lowering *l, const struct tnd_net_node *node)
{
    const int value = node->inputs[1];
    const struct tnd_net_value *v = tnd_net_value(l->net, value);
    const struct tnd_net_node *cast = tnd_net_maker(l->net, v->base, TND_NET_CAST, -1);
    return cast != NULL && v->offset == 0 && is_byte(l->net, cast->inputs[0]) &&
                   tnd_match_whole(l->net, cast->inputs[0]) &&
                   tnd_lower_value(l, cast->inputs[0])->known != NULL
               ? cast->inputs[0]
               : value;
}

/* A view of weights as {filters, K..}, the filter first. */
static struct tnd_view weights_of(const struct tnd_lowering *l, const struct tnd_net_node *node)
{
    const struct tnd_net_value *as = tnd_net_value(l->net, node->inputs[1]);
    struct tnd_view w = tnd_lower_known(l, weights_value(l, node));
    w.shape = as->shape;
    memcpy(w.strides, as->strides, sizeof(w.strides));
    if (node->op == TND_NET_CONTRACT) { /* {B, K, N}, equal for all B */
        w.shape = (struct tnd_dims){2, {as->shape.dims[2], as->shape.dims[1]}};
        w.strides[0] = as->strides[2];
        w.strides[1] = as->strides[1];
    }
    return w;
}

/* Packs weights; those of convolutions with gaps are copied first. False: they do not fit in 8
 * bits, or out of memory. */
static bool pack_weights(const struct tnd_lowering *l, const struct tnd_net_node *node,
                         struct tnd_conv_int8 *conv, void *out, struct tnd_int8_filter *filters)
{
    struct tnd_view w = weights_of(l, node);
    struct tnd_array *copy = NULL;
    if (node->op == TND_NET_CONV && !tnd_view_has_no_gaps(&w)) {
        copy = tnd_array_new(w.type, &w.shape);
        const struct tnd_kernel_call call = {.in = &w, .n_in = 1, .out = copy, .error = l->error};
        if (copy == NULL) {
            return false;
        }
        (void)tnd_kernel_copy(&call); /* cannot fail */
        w.data = copy->data;
    }
    if (node->op == TND_NET_CONV) {
        w.strides[0] = tnd_int8_k(conv);
        w.strides[1] = 1;
    }
    const bool fits = tnd_int8_pack(conv, &w, out, filters);
    tnd_array_free(copy);
    return fits;
}

/* Whether types, shapes and constants are those of sums of integers. */
static bool may_be_sums(const struct tnd_lowering *l, const struct tnd_net_node *node)
{
    const struct tnd_net_value *out = tnd_net_value(l->net, node->output);
    const struct tnd_net_value *x = tnd_net_value(l->net, node->inputs[0]);
    const struct tnd_net_value *w = tnd_net_value(l->net, node->inputs[1]);
    if (out->type != TANDEM_DTYPE_I32 || tnd_dims_values(&out->shape) == 0 ||
        tnd_dims_values(&w->shape) == 0 || tnd_dims_values(&x->shape) == 0) {
        return false;
    }
    if (node->op == TND_NET_CONTRACT) {
        return tnd_lower_value(l, node->inputs[1])->known == NULL || w->shape.dims[0] == 1 ||
               w->strides[0] == 0;
    }
    return node->op == TND_NET_CONV && x->base == node->inputs[0] &&
           tnd_lower_value(l, node->inputs[1])->known != NULL;
}

static void describe(const struct tnd_lowering *l, const struct tnd_net_node *node,
                     struct tnd_lower_int8 *found)
{
    const struct tnd_dims *x = &tnd_net_value(l->net, node->inputs[0])->shape;
    const struct tnd_dims *y = &tnd_net_value(l->net, node->output)->shape;
    const struct tnd_window *window = &node->params.window;
    const bool is_conv = node->op == TND_NET_CONV;
    struct tnd_conv_int8 *out = &found->conv;
    *out = (struct tnd_conv_int8){.n = is_conv ? window->n : 0,
                                  .images = is_conv ? x->dims[0] : y->dims[0] * y->dims[1],
                                  .channels = is_conv ? x->dims[1] : x->dims[2],
                                  .filters = is_conv ? y->dims[1] : y->dims[2],
                                  .groups = is_conv ? window->groups : 1,
                                  .x_is_signed =
                                      tnd_net_value(l->net, found->x)->type == TANDEM_DTYPE_I8,
                                  .zero_x = out->zero_x,
                                  .low = -INFINITY,
                                  .high = INFINITY};
    for (int i = 0; i < out->n; i++) {
        out->in[i] = x->dims[2 + i];
        out->out[i] = y->dims[2 + i];
        out->taps[i] = window->extent[i];
        out->stride[i] = window->stride[i];
        out->dilation[i] = window->dilation[i];
        out->begin[i] = window->begin[i];
    }
}

/* Packs the weights. False: they do not fit in 8 bits, or out of memory. */
static bool pack(struct tnd_lowering *l, const struct tnd_net_node *node,
                 struct tnd_lower_int8 *found)
{
    const int64_t n = tnd_int8_padded_filters(&found->conv);
    const struct tnd_dims bytes = {1, {tnd_int8_weight_bytes(&found->conv)}};
    const struct tnd_dims words = {1, {n * (int64_t)sizeof(struct tnd_int8_filter) / 4}};
    const struct tnd_view view = weights_of(l, node);
    const int value = weights_value(l, node);
    struct tnd_conv_int8 *conv = &found->conv;
    const struct tnd_dims noted = {1, {words.dims[0] + 2}}; /* and what is written to `conv` */
    const int64_t how[] = {conv->n,      conv->channels,    conv->filters,
                           conv->groups, conv->x_is_signed, conv->zero_x};
    bool is_new[2];
    struct tnd_array *first =
        tnd_lower_shared(l, value, &view, TANDEM_DTYPE_I32, &noted, how, sizeof(how), &is_new[0]);
    struct tnd_array *list = tnd_lower_array(l, TANDEM_DTYPE_I32, &words);
    found->w =
        tnd_lower_shared(l, value, &view, TANDEM_DTYPE_U8, &bytes, how, sizeof(how), &is_new[1]);
    found->list = list;
    if (found->w == NULL || list == NULL || first == NULL) {
        return false;
    }
    found->filters = list->data;
    if (is_new[0] || is_new[1]) {
        struct tnd_int8_filter *filters = first->data;
        for (int64_t f = 0; f < n; f++) {
            filters[f].scale = 1;
        }
        if (!pack_weights(l, node, conv, found->w->data, filters)) {
            return false;
        }
        ((int32_t *)first->data)[words.dims[0]] = conv->has_zero_w;
        ((int32_t *)first->data)[words.dims[0] + 1] = conv->has_bytes;
        tnd_lower_packed(first);
        tnd_lower_packed(found->w);
    }
    conv->has_zero_w = ((const int32_t *)first->data)[words.dims[0]] != 0;
    conv->has_bytes = ((const int32_t *)first->data)[words.dims[0] + 1] != 0;
    memcpy(list->data, first->data, (size_t)list->n * sizeof(int32_t));
    return true;
}

/* Describes the right operand if it is computed of bytes, too. False: it is not, or out of
 * memory. */
static bool find_right(struct tnd_lowering *l, const struct tnd_net_node *node,
                       struct tnd_lower_int8 *found)
{
    const int64_t n = tnd_int8_padded_filters(&found->conv);
    const struct tnd_dims words = {1, {n * (int64_t)sizeof(struct tnd_int8_filter) / 4}};
    struct tnd_lower_int8 right;
    if (node->op != TND_NET_CONTRACT ||
        !find_bytes(l, tnd_net_value(l->net, node->inputs[1])->base, &right)) {
        return false;
    }
    struct tnd_array *list = tnd_lower_array(l, TANDEM_DTYPE_I32, &words);
    if (list == NULL) {
        return false;
    }
    found->right = right.x;
    found->right_zero = right.zero;
    found->zero_w = right.conv.zero_x;
    found->list = list;
    found->filters = list->data;
    for (int64_t f = 0; f < n; f++) {
        found->filters[f] = (struct tnd_int8_filter){.scale = 1};
    }
    return true;
}

void tnd_lower_find_int8(struct tnd_lowering *l)
{
    for (int i = 0; i < l->net->n_nodes; i++) {
        const struct tnd_net_node *node = &l->net->nodes[i];
        struct tnd_lower_int8 *found = &l->int8[i];
        if ((node->op == TND_NET_CONV || node->op == TND_NET_CONTRACT) && may_be_sums(l, node) &&
            find_bytes(l, tnd_net_value(l->net, node->inputs[0])->base, found)) {
            describe(l, node, found);
            found->is_found = tnd_lower_value(l, node->inputs[1])->known != NULL
                                  ? pack(l, node, found)
                                  : find_right(l, node, found);
        }
    }
}

int tnd_lower_reads(const struct tnd_lowering *l, int i, int reads[TND_LOWER_READS],
                    const int **out)
{
    const struct tnd_net_node *node = &l->net->nodes[i];
    if (l->tables[i].values != NULL) {
        *out = &l->tables[i].x;
        return 1;
    }
    if (l->pairs[i].is_found) {
        reads[0] = l->pairs[i].a;
        reads[1] = l->pairs[i].b;
        *out = reads;
        return 2;
    }
    if (!l->int8[i].is_found) {
        *out = node->inputs;
        return node->n_inputs;
    }
    const struct tnd_lower_int8 *found = &l->int8[i];
    const int values[TND_LOWER_READS] = {found->x, found->right, found->zero, found->right_zero};
    int n = 0;
    for (int k = 0; k < TND_LOWER_READS; k++) {
        if (values[k] != TANDEM_NET_NONE) {
            reads[n++] = values[k];
        }
    }
    *out = reads;
    return n;
}

/* ---- what follows the sums ---- */

/* A program matched step by step: y = clamp(sum * scale + offset), optionally rounded to bytes. All
 * constants are per filter. */
struct ending {
    struct tnd_conv_int8 *conv;
    struct tnd_int8_filter *filters;
    int64_t n_filters, of_group, padded; /* per group, and including panel padding */
    int axis;                            /* of filters in the shape of the program */
    bool is_float, is_rounded, is_done;
};

static struct tnd_int8_filter *filter_at(const struct ending *e, int64_t f)
{
    return &e->filters[f / e->of_group * e->padded + f % e->of_group];
}

/* Whether an operand is constant, and one value for each filter. */
static bool is_by_filter(const struct ending *e, const struct tnd_operand *in)
{
    const struct tnd_view *v = &in->view;
    for (int d = 0; d < v->shape.n; d++) {
        if (d != e->axis && v->shape.dims[d] > 1 && v->strides[d] != 0) {
            return false;
        }
    }
    return in->src < 0 && (v->type == TANDEM_DTYPE_F32 || v->type == TANDEM_DTYPE_I32) &&
           v->shape.dims[e->axis] == e->n_filters;
}

static double value_at(const struct ending *e, const struct tnd_operand *in, int64_t f)
{
    const int64_t at = f * in->view.strides[e->axis];
    return in->view.type == TANDEM_DTYPE_I32 ? (double)((const int32_t *)in->view.data)[at]
                                             : (double)((const float *)in->view.data)[at];
}

static bool is_same_for_all(const struct ending *e, const struct tnd_operand *in)
{
    return e->n_filters == 1 || in->view.strides[e->axis] == 0;
}

/* y * c, or y / c; bounds are scaled if c is one positive number. Numbers that are not finite stay
 * in the program: bounds would hide the NaN that they produce. */
static bool follow_scale(struct ending *e, const struct tnd_operand *in, bool divides)
{
    const bool has_bounds = isfinite(e->conv->low) || isfinite(e->conv->high);
    if (has_bounds && (!is_same_for_all(e, in) || !(value_at(e, in, 0) > 0))) {
        return false;
    }
    for (int64_t f = 0; f < e->n_filters; f++) {
        struct tnd_int8_filter *filter = filter_at(e, f);
        const double c = divides ? 1.0 / value_at(e, in, f) : value_at(e, in, f);
        filter->scale = (float)((double)filter->scale * c);
        filter->offset = (float)((double)filter->offset * c);
        if (!isfinite(filter->scale) || !isfinite(filter->offset)) {
            return false;
        }
    }
    const double c = divides ? 1.0 / value_at(e, in, 0) : value_at(e, in, 0);
    e->conv->low = isfinite(e->conv->low) ? (float)((double)e->conv->low * c) : e->conv->low;
    e->conv->high = isfinite(e->conv->high) ? (float)((double)e->conv->high * c) : e->conv->high;
    return true;
}

static bool follow_sum(struct ending *e, const struct tnd_operand *in, double sign)
{
    if (isfinite(e->conv->low) || isfinite(e->conv->high)) {
        return false;
    }
    for (int64_t f = 0; f < e->n_filters; f++) {
        struct tnd_int8_filter *filter = filter_at(e, f);
        const double c = sign * value_at(e, in, f);
        if (e->is_float) {
            filter->offset = (float)((double)filter->offset + c);
            if (!isfinite(filter->offset)) {
                return false;
            }
        } else {
            filter->bias = (int32_t)((uint32_t)filter->bias + (uint32_t)(int32_t)c);
        }
    }
    return true;
}

static bool follow_bound(struct ending *e, const struct tnd_operand *in, bool is_low)
{
    const float c = (float)value_at(e, in, 0) - (e->is_rounded ? (float)e->conv->zero_y : 0);
    if (!is_same_for_all(e, in) || !isfinite(c) || (e->is_rounded && c != floorf(c))) {
        return false; /* the node clamps before rounding: the same only for integers */
    }
    if (is_low) {
        e->conv->low = c > e->conv->low ? c : e->conv->low;
        e->conv->high = c > e->conv->high ? c : e->conv->high;
    } else {
        e->conv->high = c < e->conv->high ? c : e->conv->high;
        e->conv->low = c < e->conv->low ? c : e->conv->low;
    }
    return true;
}

/* Matches the addition of the result's zero point. */
static bool follow_zero(struct ending *e, const struct tnd_operand *in)
{
    const double zero = value_at(e, in, 0);
    if (!is_same_for_all(e, in) || e->conv->zero_y != 0 || !(fabs(zero) <= 255) ||
        zero != floor(zero)) {
        return false;
    }
    e->conv->zero_y = (int32_t)zero;
    return true;
}

static bool follow_binary(struct ending *e, const struct tnd_fuse_step *step, bool is_right,
                          const struct tnd_operand *in)
{
    if (!is_by_filter(e, in)) {
        return false;
    }
    if (!e->is_float) {
        return step->kind == TANDEM_BINARY_ADD && follow_sum(e, in, 1);
    }
    switch (step->kind) {
    case TANDEM_BINARY_ADD:
        return e->is_rounded ? follow_zero(e, in) : follow_sum(e, in, 1);
    case TANDEM_BINARY_SUB:
        return !is_right && !e->is_rounded && follow_sum(e, in, -1);
    case TANDEM_BINARY_MUL:
        return !e->is_rounded && follow_scale(e, in, false);
    case TANDEM_BINARY_DIV:
        return !is_right && !e->is_rounded && follow_scale(e, in, true);
    case TANDEM_BINARY_MAX:
    case TANDEM_BINARY_MIN:
        return follow_bound(e, in, step->kind == TANDEM_BINARY_MAX);
    default:
        return false;
    }
}

/* Matches the cast to bytes: bounds must already limit all values to the type's range. */
static bool follow_bytes(struct ending *e, enum tandem_dtype type)
{
    const float least = type == TANDEM_DTYPE_I8 ? -128.0f : 0.0f;
    const float zero = (float)e->conv->zero_y;
    e->is_done = true;
    e->conv->result = type == TANDEM_DTYPE_I8 ? TND_INT8_S8 : TND_INT8_U8;
    return e->is_rounded && (type == TANDEM_DTYPE_I8 || type == TANDEM_DTYPE_U8) &&
           e->conv->low + zero >= least && e->conv->high + zero <= least + 255;
}

static bool follow(struct ending *e, const struct tnd_epilogue *epilogue, int s)
{
    const struct tnd_fuse *fuse = &epilogue->fuse;
    const struct tnd_fuse_step *step = &fuse->steps[s];
    const int before = s == 0 ? epilogue->matrix.self : fuse->n_inputs + s - 1;
    const bool is_right = step->n_in == 2 && step->in[1] == before;
    if (e->is_done || step->in[is_right] != before || step->n_in > 2) {
        return false;
    }
    if (step->op == TND_NET_CAST && !e->is_float) {
        e->is_float = step->type == TANDEM_DTYPE_F32;
        return e->is_float;
    }
    if (step->op == TND_NET_CAST) {
        return follow_bytes(e, step->type);
    }
    if (step->op == TND_NET_UNARY && step->kind == TANDEM_UNARY_ROUND && e->is_float) {
        const bool is_first = !e->is_rounded;
        e->is_rounded = true;
        return is_first;
    }
    const int other = step->in[!is_right];
    return step->op == TND_NET_BINARY && other != before && other < fuse->n_inputs &&
           follow_binary(e, step, is_right, &epilogue->in[other]);
}

/* Whether the whole program can be part of the node, as `e` then describes. */
static bool follow_program(struct ending *e, const struct tnd_epilogue *epilogue)
{
    for (int s = 0; s < epilogue->fuse.n_steps; s++) {
        if (!follow(e, epilogue, s)) {
            return false;
        }
    }
    e->conv->result = e->is_done ? e->conv->result : TND_INT8_F32;
    return e->is_float && (e->is_done || !e->is_rounded);
}

/* ---- lowering ---- */

/* A whole value as bytes in the order of its dimensions. */
static enum tandem_status lower_whole(struct tnd_lowering *l, int value, tandem_tensor **out)
{
    struct tnd_operand from;
    int n = 0;
    if (tnd_net_value(l->net, value)->base == value) {
        return tnd_lower_tensor(l, value, TND_LAYOUT_PLAIN, out);
    }
    TND_TRY(tnd_lower_operand(l, value, false, &from, out, &n));
    return tnd_lower_copy(l, &from, *out, TND_LAYOUT_PLAIN, out);
}

/* x as bytes without gaps, channels last. */
static enum tandem_status lower_x(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  tandem_tensor **out)
{
    const int x = l->int8[node - l->net->nodes].x;
    if (node->op == TND_NET_CONV) {
        return tnd_lower_last(l, x, out);
    }
    const struct tnd_net_value *view = tnd_net_value(l->net, node->inputs[0]);
    struct tnd_operand operand = {
        .view = {.type = tnd_net_value(l->net, x)->type, .shape = view->shape},
        .offset = view->offset};
    memcpy(operand.view.strides, view->strides, sizeof(operand.view.strides));
    TND_TRY(lower_whole(l, x, out));
    return view->offset == 0 && tnd_view_has_no_gaps(&operand.view)
               ? TANDEM_OK
               : tnd_lower_copy(l, &operand, *out, TND_LAYOUT_PLAIN, out);
}

static tandem_tensor *over(struct tnd_lowering *l, const struct tnd_array *array)
{
    const int64_t n = array->n * (int64_t)tandem_dtype_bytes(array->type) / 4;
    return tandem_tensor_borrow_const(l->out->context, TANDEM_TYPE_F32, 1, &n, array->data,
                                      (size_t)n * 4);
}

/* Takes the waiting epilogue, if all of it can be part of the node. */
static void take_ending(struct tnd_lower_epilogue *waiting, struct tnd_lower_int8 *found,
                        bool is_conv)
{
    struct tnd_conv_int8 *conv = &found->conv;
    const struct tnd_conv_int8 before = *conv;
    const int64_t n = tnd_int8_padded_filters(conv);
    const int64_t groups = tnd_int8_is_depthwise(conv) ? 1 : conv->groups;
    struct ending e = {.conv = conv,
                       .filters = found->filters,
                       .n_filters = conv->filters,
                       .of_group = conv->filters / groups,
                       .padded = n / groups,
                       .axis = is_conv ? 1 : waiting->n_dims - 1};
    waiting->is_taken = follow_program(&e, waiting->of);
    if (!waiting->is_taken) {
        *conv = before;
        for (int64_t f = 0; f < n; f++) {
            found->filters[f].bias = 0;
            found->filters[f].scale = 1;
            found->filters[f].offset = 0;
        }
    }
}

/* Whether all strides of a view are positive and, with `has_rows`, its columns contiguous. */
static bool is_matrix(const struct tnd_net_value *view, bool has_rows)
{
    for (int i = 0; i < view->shape.n; i++) {
        if (view->shape.dims[i] > 1 && view->strides[i] < 0) {
            return false;
        }
    }
    return !has_rows || view->shape.dims[2] == 1 || view->strides[2] == 1;
}

/* The bytes of an operand {B, rows, columns} of a product; copied if needed. */
static enum tandem_status lower_matrix(struct tnd_lowering *l, int operand, int bytes,
                                       bool has_rows, tandem_tensor **out,
                                       struct tnd_int8_matrix *matrix)
{
    const struct tnd_net_value *view = tnd_net_value(l->net, operand);
    struct tnd_operand from = {
        .view = {.type = tnd_net_value(l->net, bytes)->type, .shape = view->shape},
        .offset = view->offset};
    int64_t *strides = from.view.strides;
    memcpy(strides, view->strides, sizeof(view->strides));
    TND_TRY(lower_whole(l, bytes, out));
    if (!is_matrix(view, has_rows)) {
        TND_TRY(tnd_lower_copy(l, &from, *out, TND_LAYOUT_PLAIN, out));
        tnd_dims_strides(&view->shape, strides);
        from.offset = 0;
    }
    *matrix = (struct tnd_int8_matrix){.offset = from.offset,
                                       .product = view->shape.dims[0] > 1 ? strides[0] : 0,
                                       .row = view->shape.dims[1] > 1 ? strides[1] : 0,
                                       .column = view->shape.dims[2] > 1 ? strides[2] : 1};
    return TANDEM_OK;
}

/* The tensor of a computed zero point, or NULL. */
static enum tandem_status lower_zero(struct tnd_lowering *l, int zero, tandem_tensor **out)
{
    *out = NULL;
    return zero != TANDEM_NET_NONE ? tnd_lower_tensor(l, zero, TND_LAYOUT_PLAIN, out) : TANDEM_OK;
}

static enum tandem_status lower_product(struct tnd_lowering *l, const struct tnd_net_node *node,
                                        const struct tnd_lower_int8 *found, tandem_tensor *zero_x,
                                        tandem_tensor **out)
{
    struct tnd_product_int8 product = {.sums = found->conv,
                                       .n = tnd_net_value(l->net, node->output)->shape.dims[0],
                                       .w_is_signed = tnd_net_value(l->net, found->right)->type ==
                                                      TANDEM_DTYPE_I8,
                                       .zero_w = found->zero_w};
    tandem_tensor *x = NULL;
    tandem_tensor *w = NULL;
    tandem_tensor *zero_w = NULL;
    TND_TRY(lower_zero(l, found->right_zero, &zero_w));
    TND_TRY(lower_matrix(l, node->inputs[0], found->x, true, &x, &product.x));
    TND_TRY(lower_matrix(l, node->inputs[1], found->right, false, &w, &product.w));
    *out = tnd_build_product_int8(l->out->context, &product, x, w, over(l, found->list), zero_x,
                                  zero_w);
    return TANDEM_OK;
}

enum tandem_status tnd_lower_sums(struct tnd_lowering *l, const struct tnd_net_node *node)
{
    struct tnd_lower_int8 *found = &l->int8[node - l->net->nodes];
    const bool is_conv = node->op == TND_NET_CONV;
    tandem_tensor **out =
        &l->values[node->output].tensors[is_conv ? TND_LAYOUT_LAST : TND_LAYOUT_PLAIN];
    tandem_tensor *x = NULL;
    tandem_tensor *zero_x = NULL;
    TND_TRY(lower_zero(l, found->zero, &zero_x));
    if (l->epilogue != NULL) {
        take_ending(l->epilogue, found, is_conv);
    }
    if (found->right != TANDEM_NET_NONE) {
        TND_TRY(lower_product(l, node, found, zero_x, out));
    } else {
        TND_TRY(lower_x(l, node, &x));
        *out = tnd_build_conv_int8(l->out->context, &found->conv, x, over(l, found->w),
                                   over(l, found->list), zero_x);
    }
    return tandem_context_status(l->out->context, l->error);
}
