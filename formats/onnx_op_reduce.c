/* SPDX-License-Identifier: MIT
 * Operators of ONNX: sums and their like, running sums, softmax, sorting. Floats of 16 bits are
 * computed with as float32. */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

/* ---- reductions ---- */

enum reduction { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE };

/* The axes as a set; false: refused. None named: all, or *is_none. */
static bool read_axes(struct tnd_onnx_call *call, int rank, unsigned *axes, bool *is_none)
{
    /* (the axes are an attribute before opset 13 of ReduceSum, before 18 of others) */
    const bool is_operand = call->opset >= (call->kind == SUM ? 13 : 18);
    int64_t list[2 * TANDEM_NET_MAX_DIMS];
    int n = 0;
    if (is_operand && tnd_onnx_in(call, 1) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 1), "axes", list, 2 * TANDEM_NET_MAX_DIMS, &n);
    } else if (!is_operand) {
        const int64_t *stated = tnd_onnx_ints(call, "axes", &n);
        n = n > 2 * TANDEM_NET_MAX_DIMS ? 2 * TANDEM_NET_MAX_DIMS : n;
        if (n > 0) {
            memcpy(list, stated, (size_t)n * sizeof(list[0]));
        }
    }
    const bool keeps_all = is_operand && tnd_onnx_int(call, "noop_with_empty_axes", 0) != 0;
    *axes = 0;
    for (int i = 0; i < n; i++) {
        int axis;
        if (!tnd_onnx_axis(call, list[i], rank, &axis)) {
            return false;
        }
        *axes |= 1U << axis;
    }
    *is_none = n == 0 && keeps_all;
    *axes = n == 0 && !keeps_all ? (1U << rank) - 1 : *axes;
    return n >= 0;
}

/* The shape without the axes of a set, all of them of extent 1. */
static int drop_axes(struct tnd_onnx_call *call, int value, unsigned axes)
{
    const struct tnd_dims *from = tnd_onnx_shape_of(call, value);
    struct tnd_dims to = {.n = 0};
    for (int i = 0; i < from->n; i++) {
        if ((axes >> i & 1) == 0) {
            to.dims[to.n++] = from->dims[i];
        }
    }
    return tnd_net_reshape(call->net, value, &to);
}

static double count_of(const struct tnd_dims *shape, unsigned axes)
{
    double n = 1.0;
    for (int i = 0; i < shape->n; i++) {
        n *= axes >> i & 1 ? (double)shape->dims[i] : 1.0;
    }
    return n;
}

static int sum(struct tnd_onnx_call *call, int value, unsigned axes)
{
    return tnd_net_reduce(call->net, TANDEM_REDUCE_SUM, value, axes);
}

/* log of the sum of e to the power of each, the largest taken out so that nothing overflows. */
static int log_sum_exp(struct tnd_onnx_call *call, int x, unsigned axes)
{
    struct tnd_net *net = call->net;
    const int most = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, axes);
    const int shift = tnd_net_formula(net, "most: is_inf(most) ? 0 : most", most);
    const int e = tnd_net_formula(net, "x, shift: exp(x - shift)", x, shift);
    return tnd_net_formula(net, "sum, shift: log(sum) + shift", sum(call, e, axes), shift);
}

static int reduce(struct tnd_onnx_call *call, int x, unsigned axes)
{
    static const struct {
        enum tandem_reduce kind;
        const char *of, *result; /* formulas: what is reduced, and what is made of that */
    } reductions[] = {[SUM] = {TANDEM_REDUCE_SUM, "x: x", "y, n: y"},
                      [MEAN] = {TANDEM_REDUCE_SUM, "x: x", "y, n: y / n"},
                      [MAX] = {TANDEM_REDUCE_MAX, "x: x", "y, n: y"},
                      [MIN] = {TANDEM_REDUCE_MIN, "x: x", "y, n: y"},
                      [PROD] = {TANDEM_REDUCE_PROD, "x: x", "y, n: y"},
                      [L1] = {TANDEM_REDUCE_SUM, "x: abs(x)", "y, n: y"},
                      [L2] = {TANDEM_REDUCE_SUM, "x: x * x", "y, n: sqrt(y)"},
                      [LOG_SUM] = {TANDEM_REDUCE_SUM, "x: x", "y, n: log(y)"},
                      [SUM_SQUARE] = {TANDEM_REDUCE_SUM, "x: x * x", "y, n: y"}};
    const double n = count_of(tnd_onnx_shape_of(call, x), axes);
    if (call->kind == LOG_SUM_EXP) {
        return log_sum_exp(call, x, axes);
    }
    const int of = tnd_net_formula(call->net, reductions[call->kind].of, x);
    const int y = tnd_net_reduce(call->net, reductions[call->kind].kind, of, axes);
    return tnd_net_formula(call->net, reductions[call->kind].result, y, n);
}

static void build_reduce(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    const enum tandem_dtype type = tnd_onnx_type_of(call, from);
    const bool keeps = tnd_onnx_int(call, "keepdims", 1) != 0;
    unsigned axes;
    bool is_none;
    if (!read_axes(call, tnd_onnx_shape_of(call, from)->n, &axes, &is_none)) {
        return;
    }
    const bool is_root = call->kind == L2 || call->kind == LOG_SUM || call->kind == LOG_SUM_EXP;
    int x = tnd_onnx_wide(call, from);
    if (is_root && tnd_dtype_kind(type) != TND_KIND_FLOAT) {
        x = tnd_net_cast(call->net, x, TANDEM_DTYPE_F64);
    }
    /* (without axes every value is reduced alone; ONNX gives back the operand) */
    const int result = is_none ? from : tnd_onnx_narrow(call, reduce(call, x, axes), from);
    call->out[0] = keeps || result == TANDEM_NET_NONE ? result : drop_axes(call, result, axes);
}

static void build_arg(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const bool keeps = tnd_onnx_int(call, "keepdims", 1) != 0;
    const bool picks_last = tnd_onnx_int(call, "select_last_index", 0) != 0;
    int axis;
    if (x == TANDEM_NET_NONE ||
        !tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), tnd_onnx_shape_of(call, x)->n, &axis)) {
        return;
    }
    const int at = tnd_net_arg_reduce(call->net, call->kind == MAX, x, axis, picks_last);
    call->out[0] = keeps || at == TANDEM_NET_NONE ? at : drop_axes(call, at, 1U << axis);
}

/* Moved by some places along an axis, ones in front. */
static int moved(struct tnd_onnx_call *call, int x, int axis, int64_t by)
{
    int64_t begin[TANDEM_NET_MAX_DIMS] = {0};
    int64_t end[TANDEM_NET_MAX_DIMS] = {0};
    begin[axis] = by;
    end[axis] = -by;
    return tnd_net_pad(call->net, TANDEM_PAD_CONSTANT, x, begin, end,
                       tnd_onnx_scalar(call, x, 1.0));
}

/* Products of all values up to each one, in steps that double what they reach. */
static int running_product(struct tnd_onnx_call *call, int x, int axis, bool is_exclusive,
                           bool is_reverse)
{
    const int64_t extent = tnd_onnx_shape_of(call, x)->dims[axis];
    const int64_t forward = is_reverse ? -1 : 1;
    x = is_exclusive && extent > 0 ? moved(call, x, axis, forward) : x;
    for (int64_t step = 1; step < extent && call->net->status == TANDEM_OK; step *= 2) {
        x = tnd_net_binary(call->net, TANDEM_BINARY_MUL, x, moved(call, x, axis, forward * step));
    }
    return x;
}

static void build_cumulated(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const bool is_exclusive = tnd_onnx_int(call, "exclusive", 0) != 0;
    const bool is_reverse = tnd_onnx_int(call, "reverse", 0) != 0;
    int64_t stated = 0;
    int n;
    int axis;
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "axis", &stated, 1, &n);
    if (n < 0 || !tnd_onnx_axis(call, stated, tnd_onnx_shape_of(call, x)->n, &axis)) {
        return;
    }
    call->out[0] = call->kind == PROD ? running_product(call, x, axis, is_exclusive, is_reverse)
                                      : tnd_net_scan(call->net, x, axis, is_exclusive, is_reverse);
}

/* ---- softmax ---- */

enum softmax { SOFTMAX, LOG_SOFTMAX, HARDMAX };

/* 1 at the first of the largest, 0 elsewhere. */
static int hardmax(struct tnd_onnx_call *call, int x, int axis)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    struct tnd_dims along = shape;
    for (int i = 0; i < along.n; i++) {
        along.dims[i] = i == axis ? shape.dims[axis] : 1;
    }
    const int numbers = tnd_net_reshape(net, tnd_onnx_counting(call, shape.dims[axis]), &along);
    const int best = tnd_net_arg_reduce(net, true, x, axis, false);
    return tnd_net_cast(net, tnd_net_binary(net, TANDEM_BINARY_EQUAL, numbers, best),
                        tnd_onnx_type_of(call, x));
}

static int softmax(struct tnd_onnx_call *call, int x, int axis)
{
    struct tnd_net *net = call->net;
    if (call->kind == HARDMAX) {
        return tnd_dims_values(tnd_onnx_shape_of(call, x)) == 0 ? x : hardmax(call, x, axis);
    }
    const int most = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, 1U << axis);
    const int low = tnd_net_binary(net, TANDEM_BINARY_SUB, x, most);
    const int e = tnd_net_unary(net, TANDEM_UNARY_EXP, low);
    const int total = sum(call, e, 1U << axis);
    return tnd_net_formula(
        net, call->kind == SOFTMAX ? "low, e, total: e / total" : "low, e, total: low - log(total)",
        low, e, total);
}

/* Before opset 13 all axes from `axis` on count as one. */
static void build_softmax(struct tnd_onnx_call *call)
{
    const int from = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, from);
    const bool is_old = call->opset < 13;
    const int64_t stated = tnd_onnx_int(call, "axis", is_old ? 1 : -1);
    int axis = shape.n;
    if (from == TANDEM_NET_NONE ||
        (!(is_old && stated == shape.n) && !tnd_onnx_axis(call, stated, shape.n, &axis))) {
        return;
    }
    int x = tnd_onnx_wide(call, from);
    if (is_old) {
        struct tnd_dims flat = {2, {1, 1}};
        for (int i = 0; i < shape.n; i++) {
            flat.dims[i >= axis] *= shape.dims[i];
        }
        x = tnd_net_reshape(call->net, x, &flat);
        axis = 1;
    }
    const int result =
        tnd_onnx_narrow(call, x == TANDEM_NET_NONE ? x : softmax(call, x, axis), from);
    call->out[0] = tnd_net_reshape(call->net, result, &shape);
}

/* ---- sorting ---- */

static void build_top_k(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int64_t k = 0;
    int n = 1;
    int axis;
    if (call->opset < 10) {
        k = tnd_onnx_int(call, "k", -1);
    } else {
        tnd_onnx_known(call, tnd_onnx_in(call, 1), "K", &k, 1, &n);
    }
    const bool largest = tnd_onnx_int(call, "largest", 1) != 0;
    (void)tnd_onnx_int(call, "sorted", 1); /* (sorted is one of the orders that are free) */
    if (n != 1 || !tnd_onnx_axis(call, tnd_onnx_int(call, "axis", -1), shape.n, &axis)) {
        return;
    }
    if (k < 0 || k > shape.dims[axis]) {
        (void)tnd_onnx_refuse(call, "K is %lld, but axis %d has %lld values", (long long)k, axis,
                              (long long)shape.dims[axis]);
        return;
    }
    const int order = tnd_net_arg_sort(call->net, x, axis, largest);
    const int first = tnd_net_slice(call->net, order, axis, 0, k, 1);
    call->out[0] = tnd_net_gather_elements(call->net, x, first, axis);
    if (call->n_out > 1) {
        call->out[1] = first;
    }
}

const struct tnd_onnx_op tnd_onnx_reduce[] = {
    {"ReduceSum", build_reduce, SUM, "1 13:1-2"},
    {"ReduceMean", build_reduce, MEAN, "1 18:1-2"},
    {"ReduceMax", build_reduce, MAX, "1 18:1-2"},
    {"ReduceMin", build_reduce, MIN, "1 18:1-2"},
    {"ReduceProd", build_reduce, PROD, "1 18:1-2"},
    {"ReduceL1", build_reduce, L1, "1 18:1-2"},
    {"ReduceL2", build_reduce, L2, "1 18:1-2"},
    {"ReduceLogSum", build_reduce, LOG_SUM, "1 18:1-2"},
    {"ReduceLogSumExp", build_reduce, LOG_SUM_EXP, "1 18:1-2"},
    {"ReduceSumSquare", build_reduce, SUM_SQUARE, "1 18:1-2"},
    {"ArgMax", build_arg, MAX, "1"},
    {"ArgMin", build_arg, MIN, "1"},
    {"CumProd", build_cumulated, PROD, "2"},
    {"CumSum", build_cumulated, SUM, "2"},
    {"Softmax", build_softmax, SOFTMAX, "1"},
    {"LogSoftmax", build_softmax, LOG_SOFTMAX, "1"},
    {"Hardmax", build_softmax, HARDMAX, "1"},
    {"TopK", build_top_k, 0, "1>2 10:2>2"},
    {NULL, NULL, 0, NULL},
};
