/* SPDX-License-Identifier: MIT
 * Resize and Upsample of ONNX, axis by axis: nearest values are gathered, all else is a product
 * with a constant matrix that holds the weights of each result's neighbours. Formulas:
 * https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md#Resize */
#include <math.h>
#include <string.h>

#include "formats/onnx_op.h"

enum mode { NEAREST, LINEAR, CUBIC };

/* How one axis is resized. */
struct axis {
    int64_t in;
    int64_t out;
    double scale; /* out / in, or as it was given */
    double start; /* of the region, as a share of the axis */
    double end;
};

struct resize {
    enum mode mode;
    const char *coordinates;
    const char *rounding; /* of NEAREST */
    double cubic;         /* cubic_coeff_a */
    bool excludes_outside;
    bool is_antialiased;
    bool is_cropped; /* to the regions of the axes; what lies outside is `outside` */
    double outside;
    struct axis axes[TANDEM_NET_MAX_DIMS];
};

/* ---- places ---- */

/* Where result `i` lies in the input. */
static double place_of(const struct resize *resize, const struct axis *axis, int64_t i)
{
    const double x = (double)i;
    const double in = (double)axis->in;
    const double resized = axis->scale * in;
    const double half = (x + 0.5) / axis->scale - 0.5;
    if (resize->is_cropped) {
        const double size = axis->end - axis->start;
        return axis->out > 1
                   ? axis->start * (in - 1.0) + x * size * (in - 1.0) / (double)(axis->out - 1)
                   : 0.5 * (axis->start + axis->end) * (in - 1.0);
    }
    if (strcmp(resize->coordinates, "asymmetric") == 0) {
        return x / axis->scale;
    }
    if (strcmp(resize->coordinates, "align_corners") == 0) {
        return resized == 1.0 ? 0.0 : x * (in - 1.0) / (resized - 1.0);
    }
    if (strcmp(resize->coordinates, "pytorch_half_pixel") == 0) {
        return resized == 1.0 ? -0.5 : half;
    }
    if (strcmp(resize->coordinates, "half_pixel_symmetric") == 0) {
        return in / 2.0 * (1.0 - (double)axis->out / resized) + half;
    }
    return half;
}

static int64_t nearest(const struct resize *resize, double x)
{
    if (strcmp(resize->rounding, "floor") == 0) {
        return (int64_t)floor(x);
    }
    if (strcmp(resize->rounding, "ceil") == 0) {
        return (int64_t)ceil(x);
    }
    return (int64_t)(strcmp(resize->rounding, "round_prefer_ceil") == 0 ? floor(x + 0.5)
                                                                        : ceil(x - 0.5));
}

/* Keys' cubic convolution (1981) of a distance. */
static double cubic_weight(double a, double distance)
{
    const double x = fabs(distance);
    return x <= 1.0  ? ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
           : x < 2.0 ? ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
                     : 0.0;
}

static double weight(const struct resize *resize, double distance)
{
    if (resize->mode == CUBIC) {
        return cubic_weight(resize->cubic, distance);
    }
    return fabs(distance) < 1.0 ? 1.0 - fabs(distance) : 0.0;
}

/* The column of result `i` in a matrix of `in` rows and `out` columns: weights of the inputs, whose
 * sum is 1. What lies outside counts for the border, or not at all. */
static void fill_column(const struct resize *resize, const struct axis *axis, int64_t i,
                        float *matrix)
{
    const double x = place_of(resize, axis, i);
    const double shrink = resize->is_antialiased && axis->scale < 1.0 ? axis->scale : 1.0;
    const double reach = (resize->mode == CUBIC ? 2.0 : 1.0) / shrink;
    const int64_t first = (int64_t)ceil(x - reach);
    const int64_t last = (int64_t)floor(x + reach);
    double sum = 0.0;
    for (int64_t k = first; k <= last; k++) {
        const bool is_outside = k < 0 || k >= axis->in;
        sum +=
            is_outside && resize->excludes_outside ? 0.0 : weight(resize, shrink * ((double)k - x));
    }
    for (int64_t k = first; k <= last; k++) {
        const int64_t row = k < 0 ? 0 : k >= axis->in ? axis->in - 1 : k;
        if (row == k || !resize->excludes_outside) {
            matrix[row * axis->out + i] +=
                (float)(weight(resize, shrink * ((double)k - x)) / (sum != 0.0 ? sum : 1.0));
        }
    }
}

/* ---- one axis ---- */

static int gather_axis(struct tnd_onnx_call *call, const struct resize *resize, int value, int at)
{
    const struct axis *axis = &resize->axes[at];
    struct tnd_array *list = tnd_array_new(TANDEM_DTYPE_I64, &TND_DIMS(axis->out));
    for (int64_t i = 0; list != NULL && i < axis->out; i++) {
        const int64_t k = nearest(resize, place_of(resize, axis, i));
        ((int64_t *)list->data)[i] = k < 0 ? 0 : k >= axis->in ? axis->in - 1 : k;
    }
    return tnd_net_gather(call->net, value, tnd_net_constant(call->net, list), at);
}

/* The axis becomes the last one, is multiplied with the matrix, and goes back. */
static int weigh_axis(struct tnd_onnx_call *call, const struct resize *resize, int value, int at)
{
    const struct axis *axis = &resize->axes[at];
    const int rank = tnd_onnx_shape_of(call, value)->n;
    struct tnd_array *matrix = tnd_array_new(TANDEM_DTYPE_F32, &TND_DIMS(axis->in, axis->out));
    int order[TANDEM_NET_MAX_DIMS];
    for (int64_t i = 0; matrix != NULL && i < axis->out; i++) {
        fill_column(resize, axis, i, matrix->data);
    }
    for (int i = 0; i < rank; i++) {
        order[i] = i == at ? rank - 1 : i == rank - 1 ? at : i; /* its own inverse */
    }
    const int weights =
        tnd_net_cast(call->net, tnd_net_constant(call->net, matrix), tnd_onnx_type_of(call, value));
    const int product =
        tnd_net_matmul(call->net, tnd_net_permute(call->net, value, order), weights);
    return tnd_net_permute(call->net, product, order);
}

/* `outside` where a place of the axis lies outside of the input. */
static int fill_outside(struct tnd_onnx_call *call, const struct resize *resize, int value, int at)
{
    const struct axis *axis = &resize->axes[at];
    struct tnd_dims shape = {.n = tnd_onnx_shape_of(call, value)->n - at, .dims = {axis->out}};
    for (int i = 1; i < shape.n; i++) {
        shape.dims[i] = 1;
    }
    struct tnd_array *inside = tnd_array_new(TANDEM_DTYPE_BOOL, &shape);
    for (int64_t i = 0; inside != NULL && i < axis->out; i++) {
        const double x = place_of(resize, axis, i);
        ((uint8_t *)inside->data)[i] = x >= 0.0 && x <= (double)(axis->in - 1);
    }
    return tnd_net_select(call->net, tnd_net_constant(call->net, inside), value,
                          tnd_onnx_scalar(call, value, resize->outside));
}

/* (An axis with places that are no integers changes even where its extent stays.) */
static bool is_changed(const struct resize *resize, const struct axis *axis)
{
    if (axis->in != axis->out) {
        return true;
    }
    for (int64_t i = 0; i < axis->out; i++) {
        if (place_of(resize, axis, i) != (double)i) {
            return true;
        }
    }
    return false;
}

static int resize_axes(struct tnd_onnx_call *call, const struct resize *resize, int value)
{
    const int rank = tnd_onnx_shape_of(call, value)->n;
    for (int i = 0; i < rank && value != TANDEM_NET_NONE; i++) {
        const struct axis *axis = &resize->axes[i];
        if (axis->in == 0 && axis->out == 0) { /* (there is nothing to resize) */
            continue;
        }
        if (axis->in < 1 || axis->out < 1 || axis->in > 1 << 20 || axis->out > 1 << 20) {
            return tnd_onnx_refuse(call, "axis %d from %lld to %lld values", i, (long long)axis->in,
                                   (long long)axis->out);
        }
        if (is_changed(resize, axis)) {
            value = resize->mode == NEAREST ? gather_axis(call, resize, value, i)
                                            : weigh_axis(call, resize, value, i);
        }
    }
    for (int i = 0; i < rank && resize->is_cropped && value != TANDEM_NET_NONE; i++) {
        if (resize->axes[i].start < 0.0 || resize->axes[i].end > 1.0) {
            value = fill_outside(call, resize, value, i);
        }
    }
    return value;
}

/* ---- reading ---- */

static bool one_of(struct tnd_onnx_call *call, const char *name, const char *word,
                   const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    (void)tnd_onnx_refuse(call, "%s '%.40s' is not known", name, word);
    return false;
}

static bool read_mode(struct tnd_onnx_call *call, struct resize *out)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const upsample_modes[] = {"nearest", "linear", "bilinear", NULL};
    const char *mode = tnd_onnx_word(call, "mode", "nearest");
    out->mode = mode[0] == 'n' ? NEAREST : mode[0] == 'c' ? CUBIC : LINEAR;
    return one_of(call, "mode", mode, call->opset < 10 ? upsample_modes : modes);
}

/* A list of numbers of an operand, known when the net is built; -1: there is none. */
static int read_numbers(struct tnd_onnx_call *call, int operand, const char *what, double *out)
{
    const struct tnd_array *array = operand == TANDEM_NET_NONE ? NULL : tnd_onnx_ask(call, operand);
    if (operand == TANDEM_NET_NONE || (array != NULL && array->n == 0)) {
        return -1;
    }
    if (array == NULL || array->n > 2 * TANDEM_NET_MAX_DIMS) {
        (void)tnd_onnx_refuse(call, "%s is not known before the net runs", what);
        return -1;
    }
    for (int i = 0; i < (int)array->n; i++) {
        out[i] = tnd_array_number(array, i);
    }
    return (int)array->n;
}

/* Which axes the numbers are for: all, or those of the attribute. */
static int read_axes(struct tnd_onnx_call *call, int rank, int *out)
{
    int n;
    const int64_t *axes = tnd_onnx_ints(call, "axes", &n);
    for (int i = 0; i < (axes != NULL ? n : rank) && i < TANDEM_NET_MAX_DIMS; i++) {
        if (!tnd_onnx_axis(call, axes != NULL ? axes[i] : i, rank, &out[i])) {
            return -1;
        }
    }
    return axes != NULL ? n : rank;
}

/* Scales from sizes: each its own, or the same for all. */
static void scales_of_sizes(const char *policy, struct resize *resize, const int *axes,
                            const double *sizes, int n)
{
    double common = 0.0;
    for (int i = 0; i < n; i++) {
        struct axis *axis = &resize->axes[axes[i]];
        axis->out = (int64_t)sizes[i];
        axis->scale = sizes[i] / (double)axis->in;
        const bool is_taken = i == 0 || (strcmp(policy, "not_larger") == 0)
                                  ? i == 0 || axis->scale < common
                                  : axis->scale > common;
        common = is_taken ? axis->scale : common;
    }
    for (int i = 0; i < n && strcmp(policy, "stretch") != 0; i++) {
        struct axis *axis = &resize->axes[axes[i]];
        axis->scale = common;
        axis->out = (int64_t)floor(common * (double)axis->in + 0.5);
    }
}

/* The regions of the axes: all starts, then all ends. */
static bool read_regions(struct tnd_onnx_call *call, const int *axes, int n, struct resize *out)
{
    double numbers[2 * TANDEM_NET_MAX_DIMS];
    const int given = read_numbers(call, tnd_onnx_in(call, 1), "roi", numbers);
    if (given != 2 * n) {
        (void)tnd_onnx_refuse(call, "roi has %d values, expected %d", given, 2 * n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        struct axis *axis = &out->axes[axes[i]];
        axis->start = numbers[i];
        axis->end = numbers[n + i];
        if (!(axis->start >= -0x1p10 && axis->start <= axis->end && axis->end <= 0x1p10)) {
            (void)tnd_onnx_refuse(call, "a region from %g to %g", axis->start, axis->end);
            return false;
        }
    }
    return true;
}

/* Fills in what becomes of each axis. */
static bool read_extents(struct tnd_onnx_call *call, int scales, int sizes, struct resize *out)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const char *policy = tnd_onnx_word(call, "keep_aspect_ratio_policy", "stretch");
    double numbers[2 * TANDEM_NET_MAX_DIMS];
    int axes[TANDEM_NET_MAX_DIMS];
    for (int i = 0; i < shape.n; i++) {
        out->axes[i] = (struct axis){shape.dims[i], shape.dims[i], 1.0, 0.0, 1.0};
    }
    const int n_axes = read_axes(call, shape.n, axes);
    if (n_axes < 0 || (out->is_cropped && !read_regions(call, axes, n_axes, out))) {
        return false;
    }
    int n = read_numbers(call, scales, "scales", numbers);
    const bool has_scales = n >= 0;
    n = has_scales ? n : read_numbers(call, sizes, "sizes", numbers);
    if (has_scales && out->is_cropped) {
        (void)tnd_onnx_refuse(call, "scales of a region, expected sizes: runtimes differ there");
        return false;
    }
    if (n != n_axes || n < 0 || !one_of(call, "keep_aspect_ratio_policy", policy, policies)) {
        (void)tnd_onnx_refuse(call, "%d scales or sizes for %d axes", n, n_axes);
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!(numbers[i] > 0.0 && numbers[i] < 0x1p20)) {
            (void)tnd_onnx_refuse(call, "a scale or size of %g", numbers[i]);
            return false;
        }
        if (has_scales) {
            struct axis *axis = &out->axes[axes[i]];
            axis->scale = numbers[i];
            axis->out = (int64_t)floor((double)axis->in * (axis->end - axis->start) * numbers[i]);
        }
    }
    if (!has_scales) {
        scales_of_sizes(policy, out, axes, numbers, n);
    }
    return true;
}

static void give(struct tnd_onnx_call *call, const struct resize *resize)
{
    const int x = tnd_onnx_in(call, 0);
    if (resize->mode != NEAREST && tnd_dtype_kind(tnd_onnx_type_of(call, x)) != TND_KIND_FLOAT) {
        (void)tnd_onnx_refuse(call, "values of %s between others",
                              tandem_dtype_name(tnd_onnx_type_of(call, x)));
        return;
    }
    call->out[0] = resize_axes(call, resize, x);
}

static void build_resize(struct tnd_onnx_call *call)
{
    static const char *const coordinates[] = {"half_pixel",
                                              "half_pixel_symmetric",
                                              "align_corners",
                                              "pytorch_half_pixel",
                                              "asymmetric",
                                              "tf_crop_and_resize",
                                              NULL};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil", NULL};
    const bool is_old = call->opset < 11;
    struct resize resize = {
        .coordinates = tnd_onnx_word(call, "coordinate_transformation_mode",
                                     is_old ? "asymmetric" : "half_pixel"),
        .rounding = tnd_onnx_word(call, "nearest_mode", is_old ? "floor" : "round_prefer_floor"),
        .cubic = (double)tnd_onnx_float(call, "cubic_coeff_a", -0.75f),
        .excludes_outside = tnd_onnx_int(call, "exclude_outside", 0) != 0,
        .is_antialiased = tnd_onnx_int(call, "antialias", 0) != 0,
        .outside = (double)tnd_onnx_float(call, "extrapolation_value", 0.0f)};
    resize.is_cropped = strcmp(resize.coordinates, "tf_crop_and_resize") == 0;
    if (read_mode(call, &resize) &&
        one_of(call, "coordinate_transformation_mode", resize.coordinates, coordinates) &&
        one_of(call, "nearest_mode", resize.rounding, roundings) &&
        read_extents(call, tnd_onnx_in(call, is_old ? 1 : 2),
                     is_old ? TANDEM_NET_NONE : tnd_onnx_in(call, 3), &resize)) {
        give(call, &resize);
    }
}

static void build_upsample(struct tnd_onnx_call *call)
{
    struct resize resize = {.coordinates = "asymmetric", .rounding = "floor"};
    int n = 0;
    const float *list = tnd_onnx_floats(call, "scales", &n);
    int scales = tnd_onnx_in(call, 1);
    if (list != NULL) {
        const struct tnd_dims shape = {1, {n}};
        struct tnd_array *array = tnd_array_new(TANDEM_DTYPE_F32, &shape);
        if (array != NULL && n > 0) {
            memcpy(array->data, list, (size_t)n * sizeof(list[0]));
        }
        scales = tnd_net_constant(call->net, array);
    }
    if (read_mode(call, &resize) && read_extents(call, scales, TANDEM_NET_NONE, &resize)) {
        give(call, &resize);
    }
}

const struct tnd_onnx_op tnd_onnx_resize[] = {
    {"Resize", build_resize, 0, "2 11:3-4 13:1-4"},
    {"Upsample", build_upsample, 0, "1 9:2"},
    {NULL, NULL, 0, NULL},
};
