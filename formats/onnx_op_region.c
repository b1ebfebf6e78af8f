/* SPDX-License-Identifier: MIT
 * Operators of ONNX that read a picture at computed places: regions of interest (RoiAlign),
 * convolution with offsets (DeformConv), and the choice among boxes (NonMaxSuppression).
 * Formulas: https://github.com/onnx/onnx/blob/v1.18.0/docs/Operators.md#RoiAlign, #DeformConv and
 * #NonMaxSuppression */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/onnx_op.h"

#define MAX_GRID 4096 /* samples of a bin along an axis */

/* The two neighbours of each place along an axis: indices (int64) and weights. */
struct pair {
    int index[2];
    int weight[2];
};

static int clamped_index(struct tnd_onnx_call *call, int x, double last)
{
    return tnd_net_formula(call->net, "x, last: int64(min(max(x, 0), last))", x, last);
}

/* ---- RoiAlign ---- */

struct regions {
    int64_t n; /* regions */
    int64_t out[2];
    int64_t grid[2]; /* samples of a bin along height, width */
    int64_t extent[2];
    int start[2]; /* {n, 1}: where each region begins, how long a bin is */
    int bin[2];
    int count[2]; /* {n, 1}: samples of a bin; TANDEM_NET_NONE: grid, of all regions */
};

/* The numbers of samples of a bin where each region has its own: its extent, rounded up. The net is
 * made for the largest. */
static bool own_grids(struct tnd_onnx_call *call, struct regions *it)
{
    for (int k = 0; k < 2; k++) {
        const int count = tnd_net_unary(call->net, TANDEM_UNARY_CEIL, it->bin[k]);
        const struct tnd_array *known = tnd_onnx_ask(call, count);
        double most = 1.0;
        if (known == NULL) {
            (void)tnd_onnx_refuse(call, "sampling_ratio 0 for regions that are computed while the "
                                        "net runs");
            return false;
        }
        for (int64_t i = 0; i < known->n; i++) {
            most = fmax(most, tnd_array_number(known, i));
        }
        if (!(most <= MAX_GRID)) {
            (void)tnd_onnx_refuse(call, "%.3g samples of a bin, expected at most %d", most,
                                  MAX_GRID);
            return false;
        }
        it->grid[k] = (int64_t)most;
        it->count[k] = count;
    }
    return true;
}

static bool read_regions(struct tnd_onnx_call *call, struct regions *it)
{
    const struct tnd_dims x = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const int rois = tnd_onnx_wide(call, tnd_onnx_in(call, 1));
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, rois);
    const char *otherwise = call->opset < 16 ? "output_half_pixel" : "half_pixel";
    const char *mode = tnd_onnx_word(call, "coordinate_transformation_mode", otherwise);
    const bool is_half = strcmp(mode, "half_pixel") == 0;
    const double scale = (double)tnd_onnx_float(call, "spatial_scale", 1.0F);
    const int64_t ratio = tnd_onnx_int(call, "sampling_ratio", 0);
    it->out[0] = tnd_onnx_int(call, "output_height", 1);
    it->out[1] = tnd_onnx_int(call, "output_width", 1);
    if (x.n != 4 || shape.n != 2 || shape.dims[1] != 4 || it->out[0] < 1 || it->out[1] < 1 ||
        it->out[0] > 1 << 16 || it->out[1] > 1 << 16 || ratio < 0 || ratio > MAX_GRID ||
        x.dims[2] < 1 || x.dims[3] < 1 || (!is_half && strcmp(mode, "output_half_pixel") != 0)) {
        (void)tnd_onnx_refuse(call, "mode '%.20s', %lldx%lld bins of %lld samples", mode,
                              (long long)it->out[0], (long long)it->out[1], (long long)ratio);
        return false;
    }
    it->n = shape.dims[0];
    for (int k = 0; k < 2; k++) { /* {x1, y1, x2, y2} */
        const double shift = is_half ? 0.5 : 0.0;
        const int low = tnd_net_slice(call->net, rois, 1, 1 - k, 1, 1);
        const int high = tnd_net_slice(call->net, rois, 1, 3 - k, 1, 1);
        const double bins = (double)it->out[k];
        it->extent[k] = x.dims[2 + k];
        it->start[k] =
            tnd_net_formula(call->net, "low, scale, shift: low * scale - shift", low, scale, shift);
        it->bin[k] = tnd_net_formula(
            call->net,
            is_half ? "start, high, scale, shift, bins: (high * scale - shift - start) / bins"
                    : "start, high, scale, shift, bins: max(high * scale - start, 1) / bins",
            it->start[k], high, scale, shift, bins);
        it->grid[k] = ratio;
        it->count[k] = TANDEM_NET_NONE;
    }
    return call->net->status == TANDEM_OK && (ratio > 0 || own_grids(call, it));
}

/* Samples of all bins along an axis, {n, out, grid}: neighbours, and weights that are 0 outside of
 * the picture and behind the last sample of a region's own grid. */
static void sample_axis(struct tnd_onnx_call *call, const struct regions *it, int k,
                        struct pair *out)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims by_region = {3, {it->n, 1, 1}};
    const struct tnd_dims by_bin = {3, {1, it->out[k], 1}};
    const struct tnd_dims by_sample = {3, {1, 1, it->grid[k]}};
    const double last = (double)it->extent[k] - 1.0;
    const int like = it->start[k];
    const enum tandem_dtype type = tnd_onnx_type_of(call, like);
    const int bins =
        tnd_net_cast(net, tnd_net_reshape(net, tnd_onnx_counting(call, it->out[k]), &by_bin), type);
    const int samples = tnd_net_cast(
        net, tnd_net_reshape(net, tnd_onnx_counting(call, it->grid[k]), &by_sample), type);
    const bool is_one_grid = it->count[k] == TANDEM_NET_NONE;
    const int count =
        is_one_grid
            ? tnd_onnx_scalar(call, like, (double)it->grid[k])
            : tnd_net_reshape(net, tnd_onnx_with(call, TANDEM_BINARY_MAX, it->count[k], 1.0),
                              &by_region);
    const int start = tnd_net_reshape(net, it->start[k], &by_region);
    const int length = tnd_net_reshape(net, it->bin[k], &by_region);
    const int x = tnd_net_formula(net,
                                  "start, bin, length, sample, count:"
                                  " start + bin * length + (sample + 0.5) * length / count",
                                  start, bins, length, samples, count);
    const int counts = tnd_net_formula(
        net,
        is_one_grid ? "x, sample, count, last: -1 <= x & x <= last + 1"
                    : "x, sample, count, last: -1 <= x & x <= last + 1 & sample < count",
        x, samples, count, last);
    const int inside = tnd_net_formula(net, "x, last: min(max(x, 0), last)", x, last);
    const int first = tnd_net_unary(net, TANDEM_UNARY_FLOOR, inside);
    const int part = tnd_net_binary(net, TANDEM_BINARY_SUB, inside, first);
    *out = (struct pair){
        {clamped_index(call, first, last),
         clamped_index(call, tnd_onnx_with(call, TANDEM_BINARY_ADD, first, 1.0), last)},
        {tnd_net_formula(net, "counts, part: counts ? 1 - part : 0", counts, part),
         tnd_net_formula(net, "counts, part: counts ? part : 0", counts, part)}};
}

/* {n, out, grid} of height or width as {n, out, grid, 1, 1} or {n, 1, 1, out, grid}. */
static int beside(struct tnd_onnx_call *call, const struct regions *it, int value, int k)
{
    const struct tnd_dims tall = {5, {it->n, it->out[0], it->grid[0], 1, 1}};
    const struct tnd_dims flat = {5, {it->n, 1, 1, it->out[1], it->grid[1]}};
    return tnd_net_reshape(call->net, value, k == 0 ? &tall : &flat);
}

/* What the largest of a bin counts, which is what each neighbour gives by itself. */
static int pooled(struct tnd_onnx_call *call, const struct regions *it, int sum, bool is_max)
{
    static const unsigned samples = 1U << 2 | 1U << 4;
    if (is_max) {
        return tnd_net_reduce(call->net, TANDEM_REDUCE_MAX, sum, samples);
    }
    sum = tnd_net_reduce(call->net, TANDEM_REDUCE_SUM, sum, samples);
    for (int k = 0; k < 2; k++) {
        const int count =
            it->count[k] == TANDEM_NET_NONE
                ? tnd_onnx_scalar(call, sum, (double)it->grid[k])
                : tnd_net_reshape(call->net,
                                  tnd_onnx_with(call, TANDEM_BINARY_MAX, it->count[k], 1.0),
                                  &TND_DIMS(it->n, 1, 1, 1, 1, 1));
        sum = tnd_onnx_binary(call, TANDEM_BINARY_DIV, sum, count);
    }
    return sum;
}

/* The rows of the picture, {batch * height * width, channels}, at a neighbour of each sample. */
static int gathered(struct tnd_onnx_call *call, const struct regions *it, int rows, int images,
                    const struct pair *pairs, int corner)
{
    struct tnd_net *net = call->net;
    const int y = beside(call, it, pairs[0].index[corner >> 1], 0);
    const int x = beside(call, it, pairs[1].index[corner & 1], 1);
    const int at =
        tnd_net_formula(net, "image, y, x, height, width: (image * height + y) * width + x", images,
                        y, x, (double)it->extent[0], (double)it->extent[1]);
    const int weight =
        tnd_onnx_binary(call, TANDEM_BINARY_MUL, beside(call, it, pairs[0].weight[corner >> 1], 0),
                        beside(call, it, pairs[1].weight[corner & 1], 1));
    struct tnd_dims shape = *tnd_onnx_shape_of(call, weight);
    if (weight == TANDEM_NET_NONE) {
        return weight;
    }
    shape.dims[shape.n++] = 1;
    return tnd_onnx_binary(call, TANDEM_BINARY_MUL, tnd_net_gather(net, rows, at, 0),
                           tnd_net_reshape(net, weight, &shape));
}

static void build_roi_align(struct tnd_onnx_call *call)
{
    static const int channels_last[] = {0, 2, 3, 1};
    static const int channels_first[] = {0, 3, 1, 2};
    struct tnd_net *net = call->net;
    struct regions it = {0};
    struct pair pairs[2];
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const char *mode = tnd_onnx_word(call, "mode", "avg");
    const bool is_max = strcmp(mode, "max") == 0;
    if (!read_regions(call, &it)) {
        return;
    }
    const struct tnd_dims by_region = {5, {it.n, 1, 1, 1, 1}};
    if (!is_max && strcmp(mode, "avg") != 0) {
        (void)tnd_onnx_refuse(call, "mode '%.20s'", mode);
        return;
    }
    const int rows =
        tnd_net_reshape(net, tnd_net_permute(net, tnd_onnx_wide(call, x), channels_last),
                        &TND_DIMS(shape.dims[0] * shape.dims[2] * shape.dims[3], shape.dims[1]));
    const int images =
        tnd_net_reshape(net, tnd_net_cast(net, tnd_onnx_in(call, 2), TANDEM_DTYPE_I64), &by_region);
    sample_axis(call, &it, 0, &pairs[0]);
    sample_axis(call, &it, 1, &pairs[1]);
    int all = TANDEM_NET_NONE;
    for (int i = 0; i < 4 && net->status == TANDEM_OK; i++) {
        const int one = gathered(call, &it, rows, images, pairs, i);
        all = i == 0
                  ? one
                  : tnd_onnx_binary(call, is_max ? TANDEM_BINARY_MAX : TANDEM_BINARY_ADD, all, one);
    }
    if (net->status != TANDEM_OK) {
        return;
    }
    const struct tnd_dims bins = {4, {it.n, it.out[0], it.out[1], shape.dims[1]}};
    const int y = tnd_net_reshape(net, pooled(call, &it, all, is_max), &bins);
    call->out[0] =
        tnd_net_cast(net, tnd_net_permute(net, y, channels_first), tnd_onnx_type_of(call, x));
}

/* ---- DeformConv ---- */

struct deformed {
    int64_t batch;
    int64_t channels;
    int64_t extent[2];
    int64_t window[2]; /* extents of the filters */
    int64_t stride[2];
    int64_t dilation[2];
    int64_t pad[2]; /* in front */
    int64_t out[2];
    int64_t groups;  /* of filters */
    int64_t offsets; /* groups of channels that share their offsets */
};

static void read_two(struct tnd_onnx_call *call, const char *name, int64_t otherwise, int at,
                     int64_t *out)
{
    int n;
    const int64_t *list = tnd_onnx_ints(call, name, &n);
    for (int k = 0; k < 2; k++) {
        out[k] = n > at + k ? list[at + k] : otherwise;
        if (out[k] < otherwise || out[k] > 1 << 20) {
            (void)tnd_onnx_refuse(call, "%s has a %lld", name, (long long)out[k]);
        }
    }
}

/* Whether offsets or their weights are of {batch, count, out}. */
static bool fits_places(const struct tnd_onnx_call *call, int value, const struct deformed *it,
                        int64_t count)
{
    const struct tnd_dims wanted = {4, {it->batch, count, it->out[0], it->out[1]}};
    return tnd_dims_is_equal(tnd_onnx_shape_of(call, value), &wanted);
}

static bool read_deformed(struct tnd_onnx_call *call, struct deformed *it)
{
    const struct tnd_dims x = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 0));
    const struct tnd_dims w = *tnd_onnx_shape_of(call, tnd_onnx_in(call, 1));
    int64_t behind[2];
    int64_t stated[2];
    it->groups = tnd_onnx_int(call, "group", 1);
    it->offsets = tnd_onnx_int(call, "offset_group", 1);
    read_two(call, "strides", 1, 0, it->stride);
    read_two(call, "dilations", 1, 0, it->dilation);
    read_two(call, "pads", 0, 0, it->pad);
    read_two(call, "pads", 0, 2, behind);
    read_two(call, "kernel_shape", 0, 0, stated);
    if (call->net->status != TANDEM_OK || x.n != 4 || w.n != 4) {
        (void)tnd_onnx_refuse(call, "pictures of %d dimensions, expected 4", x.n);
        return false;
    }
    it->batch = x.dims[0];
    it->channels = x.dims[1];
    bool fits = it->groups >= 1 && it->offsets >= 1 && it->channels % it->groups == 0 &&
                it->channels % it->offsets == 0 && w.dims[1] == it->channels / it->groups &&
                w.dims[0] % it->groups == 0;
    for (int k = 0; k < 2 && fits; k++) {
        it->extent[k] = x.dims[2 + k];
        it->window[k] = w.dims[2 + k];
        const int64_t room =
            it->extent[k] + it->pad[k] + behind[k] - (it->window[k] - 1) * it->dilation[k] - 1;
        it->out[k] = room / it->stride[k] + 1;
        fits = it->extent[k] > 0 && it->window[k] > 0 && room >= 0 &&
               (stated[k] == 0 || stated[k] == it->window[k]);
    }
    const int64_t places = fits ? it->offsets * it->window[0] * it->window[1] : 0;
    const int mask = tnd_onnx_in(call, 4);
    if (!fits || !fits_places(call, tnd_onnx_in(call, 2), it, 2 * places) ||
        (mask != TANDEM_NET_NONE && !fits_places(call, mask, it, places))) {
        (void)tnd_onnx_refuse(call, "filters, offsets or their weights do not fit the picture");
        return false;
    }
    return true;
}

/* The places {batch, offsets, window, out} along an axis: neighbours, and weights that are 0
 * outside of the picture. */
static void deform_axis(struct tnd_onnx_call *call, const struct deformed *it, int k,
                        struct pair *pair)
{
    struct tnd_net *net = call->net;
    const int64_t area = it->out[0] * it->out[1];
    const struct tnd_dims split = {
        5, {it->batch, it->offsets, it->window[0] * it->window[1], 2, area}};
    const struct tnd_dims one = {4, {it->batch, it->offsets, it->window[0] * it->window[1], area}};
    const struct tnd_dims in_window = {
        4, {k == 0 ? it->window[0] : 1, k == 0 ? 1 : it->window[1], 1, 1}};
    const struct tnd_dims in_picture = {4,
                                        {1, 1, k == 0 ? it->out[0] : 1, k == 0 ? 1 : it->out[1]}};
    const struct tnd_dims all = {4, {it->window[0], it->window[1], it->out[0], it->out[1]}};
    const struct tnd_dims joined = {4, {1, 1, it->window[0] * it->window[1], area}};
    const double last = (double)it->extent[k] - 1.0;
    int x = tnd_net_reshape(net, tnd_onnx_wide(call, tnd_onnx_in(call, 2)), &split);
    x = tnd_net_reshape(net, tnd_net_slice(net, x, 3, k, 1, 1), &one);
    const int tap = tnd_net_reshape(net, tnd_onnx_counting(call, it->window[k]), &in_window);
    const int step = tnd_net_reshape(net, tnd_onnx_counting(call, it->out[k]), &in_picture);
    int place = tnd_net_formula(
        net, "tap, step, dilation, stride, pad: tap * dilation + step * stride - pad", tap, step,
        (double)it->dilation[k], (double)it->stride[k], (double)it->pad[k]);
    place = tnd_net_reshape(net, tnd_net_expand(net, place, &all), &joined);
    x = tnd_onnx_binary(call, TANDEM_BINARY_ADD, x,
                        tnd_net_cast(net, place, tnd_onnx_type_of(call, x)));
    const int first = tnd_net_unary(net, TANDEM_UNARY_FLOOR, x);
    for (int i = 0; i < 2; i++) {
        const int at = tnd_onnx_with(call, TANDEM_BINARY_ADD, first, i);
        pair->index[i] = clamped_index(call, at, last);
        pair->weight[i] = tnd_net_formula(
            net,
            i == 0 ? "x, first, at, last: at == min(max(at, 0), last) ? 1 - (x - first) : 0"
                   : "x, first, at, last: at == min(max(at, 0), last) ? x - first : 0",
            x, first, at, last);
    }
}

/* What a neighbour of each place gives, {batch, offsets, channels, window * out}. */
static int deformed_corner(struct tnd_onnx_call *call, const struct deformed *it, int picture,
                           const struct pair *pairs, int corner)
{
    struct tnd_net *net = call->net;
    const int64_t places = it->window[0] * it->window[1] * it->out[0] * it->out[1];
    const struct tnd_dims row = {4, {it->batch, it->offsets, 1, places}};
    const struct tnd_dims all = {4, {it->batch, it->offsets, it->channels / it->offsets, places}};
    int at = tnd_net_formula(net, "y, x, width: y * width + x", pairs[0].index[corner >> 1],
                             pairs[1].index[corner & 1], (double)it->extent[1]);
    int weight = tnd_onnx_binary(call, TANDEM_BINARY_MUL, pairs[0].weight[corner >> 1],
                                 pairs[1].weight[corner & 1]);
    weight = tnd_net_reshape(net, weight, &row);
    at = tnd_net_expand(net, tnd_net_reshape(net, at, &row), &all);
    return tnd_onnx_binary(call, TANDEM_BINARY_MUL, tnd_net_gather_elements(net, picture, at, 3),
                           weight);
}

/* The picture's values at all places, {batch, offsets, channels, window * out}. */
static int deformed_values(struct tnd_onnx_call *call, const struct deformed *it)
{
    struct tnd_net *net = call->net;
    struct pair pairs[2];
    const struct tnd_dims split = {
        4, {it->batch, it->offsets, it->channels / it->offsets, it->extent[0] * it->extent[1]}};
    const int picture = tnd_net_reshape(net, tnd_onnx_wide(call, tnd_onnx_in(call, 0)), &split);
    deform_axis(call, it, 0, &pairs[0]);
    deform_axis(call, it, 1, &pairs[1]);
    int sum = TANDEM_NET_NONE;
    for (int i = 0; i < 4 && net->status == TANDEM_OK; i++) {
        const int one = deformed_corner(call, it, picture, pairs, i);
        sum = i == 0 ? one : tnd_onnx_binary(call, TANDEM_BINARY_ADD, sum, one);
    }
    if (tnd_onnx_in(call, 4) != TANDEM_NET_NONE && sum != TANDEM_NET_NONE) {
        const struct tnd_dims row = {
            4, {it->batch, it->offsets, 1, tnd_onnx_shape_of(call, sum)->dims[3]}};
        const int mask = tnd_onnx_wide(call, tnd_onnx_in(call, 4));
        sum = tnd_onnx_binary(call, TANDEM_BINARY_MUL, sum, tnd_net_reshape(net, mask, &row));
    }
    return sum;
}

static void build_deform_conv(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    struct deformed it = {0};
    if (!read_deformed(call, &it)) {
        return;
    }
    const int bias = tnd_onnx_in(call, 3);
    const int64_t filters = tnd_onnx_shape_of(call, tnd_onnx_in(call, 1))->dims[0];
    const int64_t taps = it.channels / it.groups * it.window[0] * it.window[1];
    const struct tnd_dims columns = {4, {it.batch, it.groups, taps, it.out[0] * it.out[1]}};
    const struct tnd_dims rows = {4, {1, it.groups, filters / it.groups, taps}};
    const struct tnd_dims to = {4, {it.batch, filters, it.out[0], it.out[1]}};
    const struct tnd_dims upright = {3, {filters, 1, 1}};
    const int values = tnd_net_reshape(net, deformed_values(call, &it), &columns);
    const int w = tnd_net_reshape(net, tnd_onnx_wide(call, tnd_onnx_in(call, 1)), &rows);
    int y = tnd_net_reshape(net, tnd_net_matmul(net, w, values), &to);
    if (bias != TANDEM_NET_NONE) {
        y = tnd_onnx_binary(call, TANDEM_BINARY_ADD, y,
                            tnd_net_reshape(net, tnd_onnx_wide(call, bias), &upright));
    }
    call->out[0] = tnd_onnx_narrow(call, y, tnd_onnx_in(call, 0));
}

/* ---- NonMaxSuppression ---- */

struct box {
    float low[2];
    float high[2];
};

/* The box `i`: two corners, or middle and extents. */
static struct box box_of(const struct tnd_array *boxes, int64_t i, bool is_centred)
{
    const float *at = (const float *)boxes->data + 4 * i;
    struct box box;
    for (int k = 0; k < 2; k++) {
        const float half = at[2 + k] / 2.0F;
        const float a = is_centred ? at[k] - half : at[k];
        const float b = is_centred ? at[k] + half : at[2 + k];
        box.low[k] = is_centred || a < b ? a : b;
        box.high[k] = is_centred || a < b ? b : a;
    }
    return box;
}

/* Whether two boxes share more than a part of what they cover together. */
static bool is_overlap(const struct box *a, const struct box *b, float threshold)
{
    float common = 1.0F;
    float area_a = 1.0F;
    float area_b = 1.0F;
    for (int k = 0; k < 2; k++) {
        const float low = a->low[k] > b->low[k] ? a->low[k] : b->low[k];
        const float high = a->high[k] < b->high[k] ? a->high[k] : b->high[k];
        common *= high > low ? high - low : 0.0F;
        area_a *= a->high[k] - a->low[k];
        area_b *= b->high[k] - b->low[k];
    }
    const float all = area_a + area_b - common;
    return common > 0.0F && area_a > 0.0F && area_b > 0.0F && all > 0.0F &&
           common / all > threshold;
}

struct suppression {
    const struct tnd_array *boxes;  /* {batch, n, 4} */
    const struct tnd_array *scores; /* {batch, classes, n} */
    int64_t most;
    float overlap;
    float least;
    bool has_least;
    bool is_centred;
    int64_t *chosen; /* three numbers each */
    int64_t n_chosen;
};

struct candidate {
    float score; /* never NaN */
    int64_t box;
};

/* The best first; of equal ones the first. */
static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->box > y->box) - (x->box < y->box);
}

static void choose_class(struct suppression *it, int64_t image, int64_t class,
                         struct candidate *list)
{
    const int64_t n = it->boxes->shape.dims[1];
    const int64_t first = it->n_chosen;
    const float *scores =
        (const float *)it->scores->data + (image * it->scores->shape.dims[1] + class) * n;
    size_t n_list = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!it->has_least || scores[i] > it->least) {
            const float score = isnan(scores[i]) ? -INFINITY : scores[i];
            list[n_list++] = (struct candidate){score, i};
        }
    }
    qsort(list, n_list, sizeof(list[0]), compare_candidates);
    for (size_t i = 0; i < n_list && it->n_chosen - first < it->most; i++) {
        const struct box box = box_of(it->boxes, image * n + list[i].box, it->is_centred);
        bool stays = true;
        for (int64_t k = first; k < it->n_chosen && stays; k++) {
            const struct box other =
                box_of(it->boxes, image * n + it->chosen[3 * k + 2], it->is_centred);
            stays = !is_overlap(&box, &other, it->overlap);
        }
        if (stays) {
            const int64_t numbers[] = {image, class, list[i].box};
            memcpy(it->chosen + 3 * it->n_chosen++, numbers, sizeof(numbers));
        }
    }
}

/* Known floats, or a known number, of an operand; NULL: refused. */
static const struct tnd_array *known_floats(struct tnd_onnx_call *call, int operand)
{
    const int value = tnd_net_cast(call->net, tnd_onnx_in(call, operand), TANDEM_DTYPE_F32);
    const struct tnd_array *known = value == TANDEM_NET_NONE ? NULL : tnd_onnx_ask(call, value);
    if (known == NULL) {
        (void)tnd_onnx_refuse(call, "the extent of its result depends on values");
    }
    return known;
}

static float known_number(struct tnd_onnx_call *call, int operand)
{
    if (tnd_onnx_in(call, operand) == TANDEM_NET_NONE) {
        return 0.0F;
    }
    const struct tnd_array *known = known_floats(call, operand);
    return known != NULL && known->n == 1 ? ((const float *)known->data)[0] : 0.0F;
}

static bool read_suppression(struct tnd_onnx_call *call, struct suppression *it)
{
    int n = 1;
    it->is_centred = tnd_onnx_int(call, "center_point_box", 0) != 0;
    it->boxes = known_floats(call, 0);
    it->scores = it->boxes == NULL ? NULL : known_floats(call, 1);
    if (tnd_onnx_in(call, 2) != TANDEM_NET_NONE) {
        tnd_onnx_known(call, tnd_onnx_in(call, 2), "the number of boxes", &it->most, 1, &n);
    }
    it->overlap = known_number(call, 3);
    it->has_least = tnd_onnx_in(call, 4) != TANDEM_NET_NONE;
    it->least = known_number(call, 4);
    if (call->net->status != TANDEM_OK) {
        return false;
    }
    const struct tnd_dims *boxes = &it->boxes->shape;
    const struct tnd_dims *scores = &it->scores->shape;
    if (boxes->n != 3 || boxes->dims[2] != 4 || scores->n != 3 ||
        scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1]) {
        (void)tnd_onnx_refuse(call, "boxes and scores that do not fit each other");
        return false;
    }
    it->most = it->most < 0 ? 0 : it->most < boxes->dims[1] ? it->most : boxes->dims[1];
    return true;
}

/* How many boxes there are depends on values: they must be known while the net is built. */
static void build_suppression(struct tnd_onnx_call *call)
{
    struct suppression it = {0};
    if (!read_suppression(call, &it)) {
        return;
    }
    const int64_t batch = it.scores->shape.dims[0];
    const int64_t classes = it.scores->shape.dims[1];
    const struct tnd_dims most = {2, {batch * classes * it.most, 3}};
    struct tnd_array *list = tnd_array_new(TANDEM_DTYPE_I64, &most);
    const size_t n = (size_t)it.boxes->shape.dims[1];
    struct candidate *candidates = tnd_calloc(n + 1, sizeof(candidates[0]));
    if (list != NULL && candidates != NULL) {
        it.chosen = list->data;
        for (int64_t i = 0; i < batch * classes; i++) {
            choose_class(&it, i / classes, i % classes, candidates);
        }
    }
    if (candidates == NULL) {
        (void)tnd_net_fail(call->net, TANDEM_E_MEMORY, "no memory for boxes");
    }
    tnd_free(candidates);
    const int all = tnd_net_constant(call->net, list);
    call->out[0] = it.n_chosen == 0 ? all : tnd_net_slice(call->net, all, 0, 0, it.n_chosen, 1);
    if (it.n_chosen == 0 && all != TANDEM_NET_NONE) {
        const struct tnd_dims none = {2, {0, 3}};
        call->out[0] = tnd_net_constant(call->net, tnd_array_new(TANDEM_DTYPE_I64, &none));
    }
}

const struct tnd_onnx_op tnd_onnx_region[] = {
    {"DeformConv", build_deform_conv, 0, "3-5"},
    {"NonMaxSuppression", build_suppression, 0, "2-5"},
    {"RoiAlign", build_roi_align, 0, "3"},
    {NULL, NULL, 0, NULL},
};
