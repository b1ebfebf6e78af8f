/* SPDX-License-Identifier: MIT
 * ONNX operators: concatenation, slicing, gathering, scattering, padding. */
#include <string.h>

#include "formats/onnx_op.h"

/* ---- joining and cutting ---- */

static void build_concat(struct tnd_onnx_call *call)
{
    const int rank = tnd_onnx_shape_of(call, tnd_onnx_in(call, 0))->n;
    int axis;
    if (call->n_in == 0 || !tnd_onnx_has(call, "axis")) {
        (void)tnd_onnx_refuse(call, "operands or axis are missing");
    } else if (tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), rank, &axis)) {
        call->out[0] = tnd_net_concat(call->net, call->in, call->n_in, axis);
    }
}

#define MAX_PARTS 1024

/* Extents of the parts: given, or equal, the last of which may be smaller. */
static bool split_extents(struct tnd_onnx_call *call, int64_t extent, int64_t *out)
{
    int n = 0;
    const int64_t *stated = tnd_onnx_ints(call, "split", &n);
    const int64_t parts = tnd_onnx_int(call, "num_outputs", call->n_out);
    if (stated != NULL && n == call->n_out && n <= MAX_PARTS) {
        memcpy(out, stated, (size_t)n * sizeof(out[0]));
    } else if (tnd_onnx_in(call, 1) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 1), "split", out, MAX_PARTS, &n);
    } else if (stated == NULL && parts == call->n_out && parts > 0) {
        const int64_t each = (extent + parts - 1) / parts;
        n = call->n_out;
        for (int i = 0; i < n; i++) {
            const int64_t left = extent - i * each;
            out[i] = left < 0 ? 0 : left < each ? left : each;
        }
    }
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum = out[i] < 0 || out[i] > extent ? -1 : sum + out[i];
        if (sum < 0) {
            break;
        }
    }
    if (n != call->n_out || sum != extent) {
        (void)tnd_onnx_refuse(call, "its parts are not %d with %lld values together", call->n_out,
                              (long long)extent);
        return false;
    }
    return true;
}

static void build_split(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    int64_t extents[MAX_PARTS];
    int axis;
    if (!tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), shape.n, &axis) ||
        !split_extents(call, shape.dims[axis], extents)) {
        return;
    }
    int64_t at = 0;
    for (int i = 0; i < call->n_out; i++) {
        call->out[i] = tnd_net_slice(call->net, x, axis, at, extents[i], 1);
        at += extents[i];
    }
}

/* Slices an axis as in Python: negative indices count from the end, others are clamped. */
static int slice_axis(struct tnd_onnx_call *call, int x, int axis, int64_t start, int64_t end,
                      int64_t step)
{
    const int64_t extent = tnd_onnx_shape_of(call, x)->dims[axis];
    const int64_t low = step < 0 ? -1 : 0;
    const int64_t high = step < 0 ? extent - 1 : extent;
    if (step == 0) {
        return tnd_onnx_refuse(call, "a step of 0");
    }
    start = start < 0 ? start + extent : start;
    end = end < 0 ? (end < -extent ? low : end + extent) : end;
    start = start < low ? low : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    const int64_t span = step < 0 ? start - end : end - start;
    const int64_t stride = step < -INT64_MAX ? INT64_MAX : step < 0 ? -step : step;
    const int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (count <= 1) { /* (a step may be larger than any axis) */
        return tnd_net_slice(call->net, x, axis, count == 0 ? 0 : start, count, 1);
    }
    return tnd_net_slice(call->net, x, axis, start, count, step);
}

static void build_slice(struct tnd_onnx_call *call)
{
    int x = tnd_onnx_in(call, 0);
    int64_t starts[TANDEM_NET_MAX_DIMS];
    int64_t ends[TANDEM_NET_MAX_DIMS];
    int64_t axes[TANDEM_NET_MAX_DIMS];
    int64_t steps[TANDEM_NET_MAX_DIMS];
    int n;
    int n_ends;
    int n_axes;
    int n_steps;
    tnd_onnx_list(call, "starts", 1, starts, &n);
    tnd_onnx_list(call, "ends", 2, ends, &n_ends);
    tnd_onnx_list(call, "axes", 3, axes, &n_axes);
    tnd_onnx_list(call, "steps", 4, steps, &n_steps);
    if (n < 0 || n_ends != n || (n_axes >= 0 && n_axes != n) || (n_steps >= 0 && n_steps != n)) {
        (void)tnd_onnx_refuse(call, "starts, ends, axes and steps have %d, %d, %d and %d values", n,
                              n_ends, n_axes, n_steps);
        return;
    }
    const int rank = tnd_onnx_shape_of(call, x)->n;
    for (int i = 0; i < n && call->net->status == TANDEM_OK; i++) {
        int axis;
        if (tnd_onnx_axis(call, n_axes < 0 ? i : axes[i], rank, &axis)) {
            x = slice_axis(call, x, axis, starts[i], ends[i], n_steps < 0 ? 1 : steps[i]);
        }
    }
    call->out[0] = x;
}

/* ---- gathering ---- */

static void build_gather(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    int axis;
    if (tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), tnd_onnx_shape_of(call, x)->n, &axis)) {
        call->out[0] = tnd_net_gather(call->net, x, tnd_onnx_in(call, 1), axis);
    }
}

static void build_gather_elements(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    int axis;
    if (tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), tnd_onnx_shape_of(call, x)->n, &axis)) {
        call->out[0] = tnd_net_gather_elements(call->net, x, tnd_onnx_in(call, 1), axis);
    }
}

/* One row index per tuple of `depth` indices, into the first `depth` dimensions of `shape` (from
 * `first` on) flattened. Negative indices count from the end of their own dimension. */
static int row_numbers(struct tnd_onnx_call *call, int indices, const struct tnd_dims *shape,
                       int first, int depth)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims of = *tnd_onnx_shape_of(call, indices);
    int sum = TANDEM_NET_NONE;
    indices = tnd_net_cast(net, indices, TANDEM_DTYPE_I64);
    for (int i = 0; i < depth; i++) {
        const int column = tnd_net_slice(net, indices, of.n - 1, i, 1, 1);
        sum = tnd_net_formula(net, "sum?, i, n: sum * n + (i < 0 ? i + n : i)", sum, column,
                              (double)shape->dims[first + i]);
    }
    return sum;
}

/* (An index out of range in one dimension may be in range after flattening: so each column is first
 * gathered from a list of its own numbers, which refuses it.) */
static int checked_columns(struct tnd_onnx_call *call, int indices, const struct tnd_dims *shape,
                           int first, int depth)
{
    struct tnd_net *net = call->net;
    const int last = tnd_onnx_shape_of(call, indices)->n - 1;
    int columns[TANDEM_NET_MAX_DIMS];
    indices = tnd_net_cast(net, indices, TANDEM_DTYPE_I64);
    for (int i = 0; i < depth && net->status == TANDEM_OK; i++) {
        const struct tnd_dims list = {1, {shape->dims[first + i]}};
        struct tnd_array *numbers = tnd_array_new(TANDEM_DTYPE_I64, &list);
        for (int64_t k = 0; numbers != NULL && k < numbers->n; k++) {
            ((int64_t *)numbers->data)[k] = k;
        }
        columns[i] = tnd_net_gather(net, tnd_net_constant(net, numbers),
                                    tnd_net_slice(net, indices, last, i, 1, 1), 0);
    }
    return net->status == TANDEM_OK ? tnd_net_concat(net, columns, depth, last) : TANDEM_NET_NONE;
}

/* {batch, rows to choose from, what a row holds} and the numbers of rows, for GatherND and
 * ScatterND without batch dimensions. */
static void build_gather_nd(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims by = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 1));
    const int64_t batch = tnd_onnx_int(call, "batch_dims", 0);
    const int64_t depth = by.n > 0 ? by.dims[by.n - 1] : 0;
    if (by.n == 0 || batch < 0 || batch >= by.n || depth < 1 || batch + depth > shape.n ||
        by.n - 1 + shape.n - batch - depth > TANDEM_NET_MAX_DIMS) {
        (void)tnd_onnx_refuse(call, "batch_dims %lld and tuples of %lld indices into %d dimensions",
                              (long long)batch, (long long)depth, shape.n);
        return;
    }
    const int checked = checked_columns(call, tnd_onnx_in(call, 1), &shape, (int)batch, (int)depth);
    if (checked == TANDEM_NET_NONE) {
        return;
    }
    const int rows = row_numbers(call, checked, &shape, (int)batch, (int)depth);
    struct tnd_dims flat = {3, {1, 1, 1}}; /* {batch, rows, inner} */
    struct tnd_dims out = {0};
    int64_t n_rows = 1;
    for (int i = 0; i < shape.n; i++) {
        flat.dims[i < batch ? 0 : i < batch + depth ? 1 : 2] *= shape.dims[i];
    }
    for (int i = 0; i < by.n - 1; i++) {
        out.dims[out.n++] = by.dims[i];
        n_rows *= i < batch ? 1 : by.dims[i];
    }
    for (int i = (int)(batch + depth); i < shape.n; i++) {
        out.dims[out.n++] = shape.dims[i];
    }
    const struct tnd_dims numbers = {3, {flat.dims[0], n_rows, 1}};
    const struct tnd_dims wide = {3, {flat.dims[0], n_rows, flat.dims[2]}};
    const int index = tnd_net_expand(net, tnd_net_reshape(net, rows, &numbers), &wide);
    const int picked = tnd_net_gather_elements(net, tnd_net_reshape(net, x, &flat), index, 1);
    call->out[0] = tnd_net_reshape(net, picked, &out);
}

/* ---- scattering ---- */

static bool scatter_kind(struct tnd_onnx_call *call, enum tandem_scatter *out)
{
    static const struct {
        const char *name;
        enum tandem_scatter kind;
    } kinds[] = {{"none", TANDEM_SCATTER_SET},
                 {"add", TANDEM_SCATTER_ADD},
                 {"mul", TANDEM_SCATTER_MUL},
                 {"max", TANDEM_SCATTER_MAX},
                 {"min", TANDEM_SCATTER_MIN}};
    const char *name = tnd_onnx_word(call, "reduction", "none");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = kinds[i].kind;
            return true;
        }
    }
    (void)tnd_onnx_refuse(call, "reduction '%.40s', expected none, add, mul, max or min", name);
    return false;
}

static void build_scatter_elements(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    enum tandem_scatter kind;
    int axis;
    if (tnd_onnx_axis(call, tnd_onnx_int(call, "axis", 0), tnd_onnx_shape_of(call, x)->n, &axis) &&
        scatter_kind(call, &kind)) {
        call->out[0] = tnd_net_scatter_elements(call->net, kind, x, tnd_onnx_in(call, 1),
                                                tnd_onnx_in(call, 2), axis);
    }
}

static void build_scatter_nd(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims by = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 1));
    const int64_t depth = by.n > 0 ? by.dims[by.n - 1] : 0;
    enum tandem_scatter kind;
    if (by.n == 0 || depth < 1 || depth > shape.n) {
        (void)tnd_onnx_refuse(call, "tuples of %lld indices into %d dimensions", (long long)depth,
                              shape.n);
        return;
    }
    const int checked = checked_columns(call, tnd_onnx_in(call, 1), &shape, 0, (int)depth);
    if (checked == TANDEM_NET_NONE || !scatter_kind(call, &kind)) {
        return;
    }
    struct tnd_dims flat = {2, {1, 1}};
    struct tnd_dims wide = {2, {1, 1}};
    for (int i = 0; i < shape.n; i++) {
        flat.dims[i < depth ? 0 : 1] *= shape.dims[i];
    }
    for (int i = 0; i < by.n - 1; i++) {
        wide.dims[0] *= by.dims[i];
    }
    const struct tnd_dims numbers = {2, {wide.dims[0], 1}};
    wide.dims[1] = flat.dims[1];
    const int rows = row_numbers(call, checked, &shape, 0, (int)depth);
    const int index = tnd_net_expand(net, tnd_net_reshape(net, rows, &numbers), &wide);
    const int updates = tnd_net_reshape(net, tnd_onnx_in(call, 2), &wide);
    const int done =
        tnd_net_scatter_elements(net, kind, tnd_net_reshape(net, x, &flat), index, updates, 0);
    call->out[0] = tnd_net_reshape(net, done, &shape);
}

/* ---- padding ---- */

static bool pad_mode(struct tnd_onnx_call *call, enum tandem_pad *out)
{
    static const struct {
        const char *name;
        enum tandem_pad mode;
    } modes[] = {{"constant", TANDEM_PAD_CONSTANT},
                 {"edge", TANDEM_PAD_EDGE},
                 {"reflect", TANDEM_PAD_REFLECT},
                 {"wrap", TANDEM_PAD_WRAP}};
    const char *name = tnd_onnx_word(call, "mode", "constant");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(modes[i].name, name) == 0) {
            *out = modes[i].mode;
            return true;
        }
    }
    (void)tnd_onnx_refuse(call, "mode '%.40s', expected constant, edge, reflect or wrap", name);
    return false;
}

/* Padding before and after each axis. */
static bool read_pads(struct tnd_onnx_call *call, int rank, int64_t *begin, int64_t *end)
{
    int64_t pads[2 * TANDEM_NET_MAX_DIMS];
    int64_t axes[TANDEM_NET_MAX_DIMS];
    int n = 0;
    int n_axes;
    memset(begin, 0, TANDEM_NET_MAX_DIMS * sizeof(begin[0]));
    memset(end, 0, TANDEM_NET_MAX_DIMS * sizeof(end[0]));
    if (tnd_onnx_has(call, "pads")) {
        const int64_t *list = tnd_onnx_ints(call, "pads", &n);
        if (n > 0 && n <= 2 * TANDEM_NET_MAX_DIMS) {
            memcpy(pads, list, (size_t)n * sizeof(pads[0]));
        }
    } else {
        tnd_onnx_known(call, tnd_onnx_in(call, 1), "pads", pads, 2 * TANDEM_NET_MAX_DIMS, &n);
    }
    tnd_onnx_list(call, "axes", 3, axes, &n_axes);
    const int n_padded = n_axes < 0 ? rank : n_axes;
    if (call->net->status != TANDEM_OK || n != 2 * n_padded) {
        (void)tnd_onnx_refuse(call, "pads has %d values, expected %d", n, 2 * n_padded);
        return false;
    }
    for (int i = 0; i < n_padded; i++) {
        int axis;
        if (!tnd_onnx_axis(call, n_axes < 0 ? i : axes[i], rank, &axis)) {
            return false;
        }
        begin[axis] = pads[i];
        end[axis] = pads[n_padded + i];
    }
    return true;
}

static void build_pad(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const enum tandem_dtype type = tnd_onnx_type_of(call, x);
    static const struct tnd_dims scalar;
    int64_t begin[TANDEM_NET_MAX_DIMS];
    int64_t end[TANDEM_NET_MAX_DIMS];
    enum tandem_pad mode;
    const double stated = (double)tnd_onnx_float(call, "value", 0.0f);
    if (!pad_mode(call, &mode) || !read_pads(call, tnd_onnx_shape_of(call, x)->n, begin, end)) {
        return;
    }
    const int given = tnd_onnx_in(call, 2);
    const int constant = given != TANDEM_NET_NONE ? tnd_net_reshape(call->net, given, &scalar)
                                                  : tnd_net_scalar(call->net, type, stated);
    call->out[0] = tnd_net_pad(call->net, mode, x, begin, end, constant);
}

const struct tnd_onnx_op tnd_onnx_move[] = {
    {"Concat", build_concat, 0, "1-*"},
    {"Gather", build_gather, 0, "2"},
    {"GatherElements", build_gather_elements, 0, "2"},
    {"GatherND", build_gather_nd, 0, "2"},
    {"Pad", build_pad, 0, "1 11:2-3 18:2-4"},
    {"Scatter", build_scatter_elements, 0, "3"},
    {"ScatterElements", build_scatter_elements, 0, "3"},
    {"ScatterND", build_scatter_nd, 0, "3"},
    {"Slice", build_slice, 0, "1 10:3-5"},
    {"Split", build_split, 0, "1>1-* 13:1-2>1-*"},
    {NULL, NULL, 0, NULL},
};
