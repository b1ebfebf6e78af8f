/* SPDX-License-Identifier: MIT
 * Operators of ONNX: constants, shapes and re-indexing. All but the constants are views. */
#include <string.h>

#include "formats/onnx_op.h"

/* ---- constants ---- */

static int constant_of(struct tnd_onnx_call *call, const struct tnd_onnx_tensor *tensor)
{
    struct tnd_array *array = NULL;
    const enum tandem_status status = tnd_onnx_array(tensor, &array, &call->net->error);
    if (status != TANDEM_OK) {
        call->net->status = call->net->status == TANDEM_OK ? status : call->net->status;
        return TANDEM_NET_NONE;
    }
    return tnd_onnx_set_narrow(call, tnd_net_constant(call->net, array), tensor->type);
}

static int floats_constant(struct tnd_onnx_call *call, const float *values, int n, bool is_list)
{
    const struct tnd_dims shape = {is_list, {n}};
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &shape);
    if (array != NULL && n > 0) {
        memcpy(array->data, values, (size_t)n * sizeof(values[0]));
    }
    return tnd_net_constant(call->net, array);
}

static int integer_constant(struct tnd_onnx_call *call, int64_t value)
{
    static const struct tnd_dims scalar;
    struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_I64, &scalar);
    if (array != NULL) {
        memcpy(array->data, &value, sizeof(value));
    }
    return tnd_net_constant(call->net, array);
}

static void build_constant(struct tnd_onnx_call *call)
{
    int n = 0;
    if (tnd_onnx_has(call, "value")) {
        const struct tnd_onnx_tensor *tensor = tnd_onnx_tensor_of(call, "value");
        call->out[0] = tensor != NULL ? constant_of(call, tensor) : TANDEM_NET_NONE;
    } else if (tnd_onnx_has(call, "value_int")) {
        call->out[0] = integer_constant(call, tnd_onnx_int(call, "value_int", 0));
    } else if (tnd_onnx_has(call, "value_ints")) {
        const int64_t *values = tnd_onnx_ints(call, "value_ints", &n);
        call->out[0] = tnd_net_integers(call->net, values, n);
    } else if (tnd_onnx_has(call, "value_float")) {
        const float value = tnd_onnx_float(call, "value_float", 0.0f);
        call->out[0] = floats_constant(call, &value, 1, false);
    } else if (tnd_onnx_has(call, "value_floats")) {
        const float *values = tnd_onnx_floats(call, "value_floats", &n);
        call->out[0] = floats_constant(call, values, n, true);
    } else {
        (void)tnd_onnx_refuse(call, "it is neither dense numbers nor a list of them");
    }
}

/* A shape that an operand tells; false when it is refused. */
static bool known_shape(struct tnd_onnx_call *call, int value, struct tnd_dims *out)
{
    memset(out, 0, sizeof(*out));
    tnd_onnx_known(call, value, "the shape", out->dims, TANDEM_NET_MAX_DIMS, &out->n);
    for (int i = 0; i < out->n; i++) {
        if (out->dims[i] < 0) {
            (void)tnd_onnx_refuse(call, "a dimension of %lld", (long long)out->dims[i]);
            return false;
        }
    }
    return out->n >= 0;
}

static void build_constant_of_shape(struct tnd_onnx_call *call)
{
    const struct tnd_onnx_tensor *tensor =
        tnd_onnx_has(call, "value") ? tnd_onnx_tensor_of(call, "value") : NULL;
    const int value = tensor != NULL ? constant_of(call, tensor)
                                     : tnd_net_scalar(call->net, TANDEM_DTYPE_F32, 0.0);
    struct tnd_dims shape;
    static const struct tnd_dims scalar;
    if (tensor != NULL && tensor->n_values != 1) {
        (void)tnd_onnx_refuse(call, "value has %lld values, expected 1",
                              (long long)tensor->n_values);
    } else if (known_shape(call, tnd_onnx_in(call, 0), &shape)) {
        call->out[0] =
            tnd_net_expand(call->net, tnd_net_reshape(call->net, value, &scalar), &shape);
    }
}

/* (as numpy.arange: the count from the difference in the type's own numbers) */
static void build_range(struct tnd_onnx_call *call)
{
    const struct tnd_array *known[3];
    const enum tandem_dtype type = tnd_onnx_type_of(call, tnd_onnx_in(call, 0));
    for (int i = 0; i < 3; i++) {
        const int operand = tnd_onnx_in(call, i);
        known[i] = operand == TANDEM_NET_NONE ? NULL : tnd_onnx_ask(call, operand);
        if (known[i] == NULL || known[i]->n != 1 || known[i]->type != type) {
            (void)tnd_onnx_refuse(call, "operand %d is no known number of type %s", i,
                                  tandem_dtype_name(type));
            return;
        }
    }
    const double start = tnd_array_number(known[0], 0);
    const double step = tnd_array_number(known[2], 0);
    const double span = (tnd_array_number(known[1], 0) - start) / step;
    if (step == 0.0 || !(span < 0x1p31)) {
        (void)tnd_onnx_refuse(call, "a range of %.3g values", span);
        return;
    }
    const int64_t whole = span > 0.0 ? (int64_t)span : 0;
    struct tnd_array *array = tnd_array_new(type, &TND_DIMS(whole + (span > (double)whole)));
    for (int64_t i = 0; array != NULL && i < array->n; i++) {
        union tnd_values lanes;
        lanes.f64[0] = start + (double)i * step;
        tnd_values_store(type, TND_LANE_F64, &lanes, 1,
                         (char *)array->data + (size_t)i * tandem_dtype_bytes(type));
    }
    call->out[0] = tnd_net_constant(call->net, array);
}

/* ---- what shapes are ---- */

static void build_shape(struct tnd_onnx_call *call)
{
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    int64_t start = tnd_onnx_int(call, "start", 0);
    int64_t end = tnd_onnx_int(call, "end", shape->n);
    start = start < 0 ? start + shape->n : start;
    end = end < 0 ? end + shape->n : end;
    start = start < 0 ? 0 : start;
    end = end > shape->n ? shape->n : end;
    call->out[0] = tnd_net_integers(call->net, shape->dims + (start < end ? start : 0),
                                    start < end ? end - start : 0);
}

static void build_size(struct tnd_onnx_call *call)
{
    const struct tnd_dims *shape = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    call->out[0] = integer_constant(call, tnd_dims_values(shape));
}

/* ---- other shapes ---- */

/* Fills in 0 (as before) and -1 (what is left). */
static bool complete_shape(struct tnd_onnx_call *call, const struct tnd_dims *from, bool keeps_zero,
                           struct tnd_dims *to)
{
    int open = -1;
    int64_t n = 1;
    for (int i = 0; i < to->n; i++) {
        if (to->dims[i] == 0 && !keeps_zero && i < from->n) {
            to->dims[i] = from->dims[i];
        }
        const bool is_open = to->dims[i] == -1;
        if (to->dims[i] < -1 || (is_open && open >= 0)) {
            (void)tnd_onnx_refuse(call, "dimension %d of the new shape is %lld", i,
                                  (long long)to->dims[i]);
            return false;
        }
        open = is_open ? i : open;
        if (!is_open && to->dims[i] > (INT64_MAX >> 16) / n) {
            (void)tnd_onnx_refuse(call, "the new shape is too large");
            return false;
        }
        n *= is_open || to->dims[i] == 0 ? 1 : to->dims[i];
    }
    const int64_t values = tnd_dims_values(from);
    if (open >= 0) {
        bool has_zero = false;
        for (int i = 0; i < to->n; i++) {
            has_zero = has_zero || to->dims[i] == 0;
        }
        to->dims[open] = has_zero ? 0 : values / n;
    }
    return true;
}

static void build_reshape(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    const bool keeps_zero = tnd_onnx_int(call, "allowzero", 0) != 0;
    struct tnd_dims to = {0};
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "the new shape", to.dims, TANDEM_NET_MAX_DIMS,
                   &to.n);
    if (to.n >= 0 && complete_shape(call, &from, keeps_zero, &to)) {
        call->out[0] = tnd_net_reshape(call->net, x, &to);
    }
}

static void build_flatten(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    const int64_t stated = tnd_onnx_int(call, "axis", 1);
    int axis = from.n;
    if (stated != from.n && !tnd_onnx_axis(call, stated, from.n, &axis)) {
        return;
    }
    struct tnd_dims to = {2, {1, 1}};
    for (int i = 0; i < from.n; i++) {
        to.dims[i >= axis] *= from.dims[i];
    }
    call->out[0] = tnd_net_reshape(call->net, x, &to);
}

/* Bit i: axis i of `rank` is named. False when one is out of range or named twice. */
static bool axes_set(struct tnd_onnx_call *call, const int64_t *axes, int n, int rank,
                     unsigned *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        int axis;
        if (!tnd_onnx_axis(call, axes[i], rank, &axis)) {
            return false;
        }
        if (*out >> axis & 1) {
            (void)tnd_onnx_refuse(call, "axis %d twice", axis);
            return false;
        }
        *out |= 1u << axis;
    }
    return true;
}

static void build_squeeze(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    int64_t axes[TANDEM_NET_MAX_DIMS];
    int n;
    unsigned dropped = 0;
    tnd_onnx_list(call, "axes", 1, axes, &n);
    if (call->net->status != TANDEM_OK || !axes_set(call, axes, n, from.n, &dropped)) {
        return;
    }
    struct tnd_dims to = {0};
    for (int i = 0; i < from.n; i++) {
        const bool goes = n < 0 ? from.dims[i] == 1 : (dropped >> i & 1) != 0;
        if (goes && from.dims[i] != 1) {
            (void)tnd_onnx_refuse(call, "axis %d has %lld values, expected 1", i,
                                  (long long)from.dims[i]);
            return;
        }
        if (!goes) {
            to.dims[to.n++] = from.dims[i];
        }
    }
    call->out[0] = tnd_net_reshape(call->net, x, &to);
}

static void build_unsqueeze(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    int64_t axes[TANDEM_NET_MAX_DIMS];
    int n;
    unsigned added = 0;
    tnd_onnx_list(call, "axes", 1, axes, &n);
    if (n < 0 || from.n + n > TANDEM_NET_MAX_DIMS) {
        (void)tnd_onnx_refuse(call, n < 0 ? "axes are missing" : "more than 8 dimensions");
        return;
    }
    if (!axes_set(call, axes, n, from.n + n, &added)) {
        return;
    }
    struct tnd_dims to = {.n = from.n + n};
    for (int i = 0, k = 0; i < to.n; i++) {
        to.dims[i] = added >> i & 1 ? 1 : from.dims[k++];
    }
    call->out[0] = tnd_net_reshape(call->net, x, &to);
}

static void build_transpose(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const int rank = tnd_onnx_shape_of(call, x)->n;
    int n;
    const int64_t *perm = tnd_onnx_ints(call, "perm", &n);
    int axes[TANDEM_NET_MAX_DIMS];
    unsigned seen = 0;
    if (tnd_onnx_has(call, "perm") && (n != rank || !axes_set(call, perm, n, rank, &seen))) {
        (void)tnd_onnx_refuse(call, "perm has %d axes, expected %d", n, rank);
        return;
    }
    for (int i = 0; i < rank; i++) {
        axes[i] = n == rank && perm != NULL ? (int)(perm[i] < 0 ? perm[i] + rank : perm[i])
                                            : rank - 1 - i;
    }
    call->out[0] = tnd_net_permute(call->net, x, axes);
}

static void build_expand(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    struct tnd_dims to;
    if (!known_shape(call, tnd_onnx_in(call, 1), &to)) {
        return;
    }
    struct tnd_dims both = {.n =
                                from.n > to.n ? from.n : to.n}; /* an extent of 1 keeps the other */
    for (int i = 1; i <= both.n; i++) {
        const int64_t a = i <= from.n ? from.dims[from.n - i] : 1;
        const int64_t b = i <= to.n ? to.dims[to.n - i] : 1;
        both.dims[both.n - i] = b == 1 ? a : b;
    }
    call->out[0] = tnd_net_expand(call->net, x, &both);
}

/* A dimension of its own for each repetition, then read as one. */
static void build_tile(struct tnd_onnx_call *call)
{
    int x = tnd_onnx_in(call, 0);
    const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
    int64_t repeats[TANDEM_NET_MAX_DIMS];
    int n;
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "repeats", repeats, TANDEM_NET_MAX_DIMS, &n);
    if (n != from.n) {
        (void)tnd_onnx_refuse(call, "%d repeats for %d dimensions", n, from.n);
        return;
    }
    struct tnd_dims shape = from;
    for (int i = 0; i < n && call->net->status == TANDEM_OK; i++) {
        if (repeats[i] < 0 || repeats[i] > INT32_MAX) {
            (void)tnd_onnx_refuse(call, "repeats of %lld", (long long)repeats[i]);
            return;
        }
        /* {before, 1, rest} expanded to {before, repeats, rest} */
        struct tnd_dims flat = {3, {1, 1, 1}};
        for (int k = 0; k < n; k++) {
            flat.dims[k < i ? 0 : 2] *= shape.dims[k];
        }
        x = tnd_net_reshape(call->net, x, &flat);
        flat.dims[1] = repeats[i];
        x = tnd_net_expand(call->net, x, &flat);
        shape.dims[i] *= repeats[i];
        if (tnd_dims_values(&shape) < 0) {
            (void)tnd_onnx_refuse(call, "the result is too large");
            return;
        }
        x = tnd_net_reshape(call->net, x, &shape);
    }
    call->out[0] = x;
}

const struct tnd_onnx_op tnd_onnx_shape[] = {
    {"Constant", build_constant, 0, "0"},
    {"ConstantOfShape", build_constant_of_shape, 0, "1"},
    {"Expand", build_expand, 0, "2"},
    {"Flatten", build_flatten, 0, "1"},
    {"Range", build_range, 0, "3"},
    {"Reshape", build_reshape, 0, "2"},
    {"Shape", build_shape, 0, "1"},
    {"Size", build_size, 0, "1"},
    {"Squeeze", build_squeeze, 0, "1 13:1-2"},
    {"Tile", build_tile, 0, "2"},
    {"Transpose", build_transpose, 0, "1"},
    {"Unsqueeze", build_unsqueeze, 0, "1 13:2"},
    {NULL, NULL, 0, NULL},
};
