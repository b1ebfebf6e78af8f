/* SPDX-License-Identifier: MIT
 * Operators of ONNX: convolution and pooling. */
#include <string.h>

#include "formats/onnx_op.h"

/* ---- windows ---- */

/* A list of `n` numbers; `otherwise` for each where the node has none. */
static bool numbers_of(struct tnd_onnx_call *call, const char *name, int n, int64_t otherwise,
                       int64_t low, int64_t *out)
{
    int given;
    const int64_t *list = tnd_onnx_ints(call, name, &given);
    for (int i = 0; i < n; i++) {
        out[i] = list != NULL && given == n ? list[i] : otherwise;
        if (out[i] < low || out[i] > 1 << 24) {
            (void)tnd_onnx_refuse(call, "%s has a %lld, expected at least %lld", name,
                                  (long long)out[i], (long long)low);
            return false;
        }
    }
    if (list != NULL && given != n) {
        (void)tnd_onnx_refuse(call, "%s has %d values, expected %d", name, given, n);
        return false;
    }
    return true;
}

static int64_t covered(const struct tnd_window *window, int i)
{
    return (window->extent[i] - 1) * window->dilation[i] + 1;
}

/* auto_pad: as much padding as gives ceil(extent / stride) places. */
static void pad_same(struct tnd_window *window, const int64_t *extents, bool is_upper)
{
    for (int i = 0; i < window->n; i++) {
        const int64_t places = (extents[i] + window->stride[i] - 1) / window->stride[i];
        const int64_t all = (places - 1) * window->stride[i] + covered(window, i) - extents[i];
        const int64_t needed = all < 0 ? 0 : all;
        window->begin[i] = is_upper ? needed / 2 : needed - needed / 2;
        window->end[i] = needed - window->begin[i];
    }
}

/* Reads strides, dilations and padding of a window whose extents are known. */
static bool read_window(struct tnd_onnx_call *call, const int64_t *extents,
                        struct tnd_window *window)
{
    const char *mode = tnd_onnx_word(call, "auto_pad", "NOTSET");
    int64_t pads[2 * TANDEM_NET_MAX_WINDOW];
    if (!numbers_of(call, "strides", window->n, 1, 1, window->stride) ||
        !numbers_of(call, "dilations", window->n, 1, 1, window->dilation) ||
        !numbers_of(call, "pads", 2 * window->n, 0, 0, pads)) {
        return false;
    }
    if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
        pad_same(window, extents, mode[5] == 'U');
        return true;
    }
    if (strcmp(mode, "NOTSET") != 0 && strcmp(mode, "VALID") != 0) {
        (void)tnd_onnx_refuse(call, "auto_pad '%.40s'", mode);
        return false;
    }
    memcpy(window->begin, pads, (size_t)window->n * sizeof(pads[0]));
    memcpy(window->end, pads + window->n, (size_t)window->n * sizeof(pads[0]));
    return true;
}

static bool check_rank(struct tnd_onnx_call *call, int rank)
{
    if (rank < 3 || rank > TANDEM_NET_MAX_WINDOW + 2) {
        (void)tnd_onnx_refuse(call, "an operand of %d dimensions, expected 3 to %d", rank,
                              TANDEM_NET_MAX_WINDOW + 2);
        return false;
    }
    return true;
}

/* ---- convolution ---- */

/* Adds one value a channel to {N, C, spatial}. */
static int add_bias(struct tnd_onnx_call *call, int value, int bias)
{
    if (bias == TANDEM_NET_NONE || value == TANDEM_NET_NONE) {
        return value;
    }
    struct tnd_dims shape = *tnd_onnx_shape_of(call, bias);
    for (int i = 2; i < tnd_onnx_shape_of(call, value)->n; i++) {
        shape.dims[shape.n++] = 1;
    }
    return tnd_net_binary(call->net, TANDEM_BINARY_ADD, value,
                          tnd_net_reshape(call->net, bias, &shape));
}

/* The extents of the window are those of the weights; kernel_shape may only say the same. */
static bool read_filters(struct tnd_onnx_call *call, const struct tnd_dims *w,
                         struct tnd_window *window)
{
    int64_t stated[TANDEM_NET_MAX_WINDOW];
    window->n = w->n - 2;
    window->groups = tnd_onnx_int(call, "group", 1);
    memcpy(window->extent, w->dims + 2, (size_t)window->n * sizeof(stated[0]));
    if (tnd_onnx_has(call, "kernel_shape") &&
        (!numbers_of(call, "kernel_shape", window->n, 1, 1, stated) ||
         memcmp(stated, window->extent, (size_t)window->n * sizeof(stated[0])) != 0)) {
        (void)tnd_onnx_refuse(call, "kernel_shape is not that of the weights");
        return false;
    }
    return true;
}

int tnd_onnx_conv(struct tnd_onnx_call *call, int x, int w)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    struct tnd_window window = {0};
    if (!check_rank(call, shape.n) || tnd_onnx_shape_of(call, w)->n != shape.n ||
        !read_filters(call, tnd_onnx_shape_of(call, w), &window) ||
        !read_window(call, shape.dims + 2, &window)) {
        return TANDEM_NET_NONE;
    }
    return tnd_net_conv(call->net, x, w, &window);
}

static void build_conv(struct tnd_onnx_call *call)
{
    const int y = tnd_onnx_conv(call, tnd_onnx_in(call, 0), tnd_onnx_in(call, 1));
    call->out[0] = add_bias(call, y, tnd_onnx_in(call, 2));
}

/* x with `stride` - 1 zeros between its values along each spatial dimension. */
static int spread(struct tnd_onnx_call *call, int x, const struct tnd_window *window)
{
    static const int64_t none[TANDEM_NET_MAX_DIMS];
    struct tnd_net *net = call->net;
    for (int i = 0; i < window->n && x != TANDEM_NET_NONE; i++) {
        if (window->stride[i] == 1) {
            continue;
        }
        const struct tnd_dims from = *tnd_onnx_shape_of(call, x);
        const int axis = 2 + i;
        struct tnd_dims flat = {3, {1, 1, 1}};
        int64_t end[TANDEM_NET_MAX_DIMS] = {0, window->stride[i] - 1, 0};
        for (int k = 0; k < from.n; k++) {
            flat.dims[k <= axis ? 0 : 2] *= from.dims[k];
        }
        const int zero = tnd_net_scalar(net, tnd_onnx_type_of(call, x), 0.0);
        x = tnd_net_pad(net, TANDEM_PAD_CONSTANT, tnd_net_reshape(net, x, &flat), none, end, zero);
        struct tnd_dims to = from;
        to.dims[axis] *= window->stride[i];
        x = tnd_net_reshape(net, x, &to);
        const int64_t count = (from.dims[axis] - 1) * window->stride[i] + 1;
        x = from.dims[axis] > 0 ? tnd_net_slice(net, x, axis, 0, count, 1) : x;
    }
    return x;
}

/* {C, M / groups, spatial} as the weights of a convolution, {M, C / groups, spatial}, turned. */
static int turned_filters(struct tnd_onnx_call *call, int w, const struct tnd_window *window)
{
    struct tnd_net *net = call->net;
    const struct tnd_dims from = *tnd_onnx_shape_of(call, w);
    struct tnd_dims split = {.n = from.n + 1,
                             .dims = {window->groups, from.dims[0] / window->groups, from.dims[1]}};
    struct tnd_dims joined = from;
    int axes[TANDEM_NET_MAX_DIMS] = {0, 2, 1};
    joined.dims[0] = window->groups * from.dims[1];
    joined.dims[1] = from.dims[0] / window->groups;
    for (int i = 0; i < window->n; i++) {
        split.dims[3 + i] = from.dims[2 + i];
        axes[3 + i] = 3 + i;
        w = tnd_net_slice(net, w, 2 + i, from.dims[2 + i] - 1, from.dims[2 + i], -1);
    }
    return tnd_net_reshape(net, tnd_net_permute(net, tnd_net_reshape(net, w, &split), axes),
                           &joined);
}

/* Padding of a transposed convolution (Operators.md, ConvTranspose): by pads, or by the extents of
 * the result. */
static bool transposed_pads(struct tnd_onnx_call *call, const int64_t *extents, const int64_t *more,
                            struct tnd_window *window)
{
    const char *mode = tnd_onnx_word(call, "auto_pad", "NOTSET");
    const bool is_same = strncmp(mode, "SAME_", 5) == 0;
    int64_t wanted[TANDEM_NET_MAX_WINDOW];
    if (tnd_onnx_has(call, "output_shape")
            ? !numbers_of(call, "output_shape", window->n, 0, 1, wanted)
            : !is_same) {
        return call->net->status == TANDEM_OK;
    }
    for (int i = 0; i < window->n; i++) {
        const int64_t natural = window->stride[i] * (extents[i] - 1) + more[i] + covered(window, i);
        const int64_t target =
            tnd_onnx_has(call, "output_shape") ? wanted[i] : extents[i] * window->stride[i];
        const int64_t all = natural - target;
        const int64_t half = (all - (all < 0)) / 2; /* rounded down */
        window->begin[i] = strcmp(mode, "SAME_UPPER") == 0 ? half : all - half;
        window->end[i] = all - window->begin[i];
    }
    return true;
}

static int64_t floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* The weights {C, M, spatial} of a convolution that gives the stride[i] values between two places
 * of x as channels: {C, strides * M, spatial}, so that tap j of phase r is tap stride * j + r.
 * (M side by side are moved together.) */
static int phases_of(struct tnd_onnx_call *call, int w, const struct tnd_window *window)
{
    static const int64_t none[TANDEM_NET_MAX_DIMS];
    struct tnd_net *net = call->net;
    for (int i = window->n - 1; i >= 0 && w != TANDEM_NET_NONE; i--) {
        const struct tnd_dims from = *tnd_onnx_shape_of(call, w);
        const int64_t stride = window->stride[i];
        const int64_t taps = (from.dims[2 + i] + stride - 1) / stride;
        int64_t end[TANDEM_NET_MAX_DIMS] = {0};
        struct tnd_dims split = {from.n + 1, {0}};
        struct tnd_dims joined = from;
        int axes[TANDEM_NET_MAX_DIMS] = {0, 3 + i, 1};
        end[2 + i] = taps * stride - from.dims[2 + i];
        for (int k = 0; k < from.n; k++) {
            split.dims[k + (k > 2 + i)] = from.dims[k];
            axes[k + (k > 0)] = k + (k > 2 + i);
        }
        split.dims[2 + i] = taps;
        split.dims[3 + i] = stride;
        joined.dims[1] *= stride;
        joined.dims[2 + i] = taps;
        if (end[2 + i] > 0) {
            const int zero = tnd_net_scalar(net, tnd_onnx_type_of(call, w), 0.0);
            w = tnd_net_pad(net, TANDEM_PAD_CONSTANT, w, none, end, zero);
        }
        w = tnd_net_reshape(net, w, &split);
        w = tnd_net_reshape(net, tnd_net_permute(net, w, axes), &joined);
    }
    return w;
}

/* {N, groups * strides * M, places} -> {N, groups * M, places * strides} */
static int join_phases(struct tnd_onnx_call *call, int y, const struct tnd_window *window)
{
    const struct tnd_dims from = *tnd_onnx_shape_of(call, y);
    const int n = window->n;
    struct tnd_dims split = {2 + 2 * n, {from.dims[0] * window->groups}};
    struct tnd_dims to = from;
    int axes[TANDEM_NET_MAX_DIMS] = {0, n + 1};
    for (int i = 0; i < n; i++) {
        split.dims[1 + i] = window->stride[i];
        split.dims[n + 2 + i] = from.dims[2 + i];
        to.dims[1] /= window->stride[i];
        to.dims[2 + i] *= window->stride[i];
        axes[2 + 2 * i] = n + 2 + i;
        axes[3 + 2 * i] = 1 + i;
    }
    split.dims[n + 1] = to.dims[1] / window->groups;
    y = tnd_net_reshape(call->net, y, &split);
    return tnd_net_reshape(call->net, tnd_net_permute(call->net, y, axes), &to);
}

/* The bias of each channel, for all of its phases. */
static int bias_of_phases(struct tnd_onnx_call *call, int bias, int64_t groups, int64_t phases)
{
    if (bias == TANDEM_NET_NONE || phases == 1 || tnd_onnx_shape_of(call, bias)->n != 1 ||
        tnd_onnx_shape_of(call, bias)->dims[0] % groups != 0) {
        return bias;
    }
    const int64_t n = tnd_onnx_shape_of(call, bias)->dims[0];
    bias = tnd_net_reshape(call->net, bias, &(struct tnd_dims){3, {groups, 1, n / groups}});
    bias = tnd_net_expand(call->net, bias, &(struct tnd_dims){3, {groups, phases, n / groups}});
    return tnd_net_reshape(call->net, bias, &(struct tnd_dims){1, {n * phases}});
}

/* By a convolution over x as it is, each of whose places is a block of the result (sub-pixel
 * convolution; Shi et al. 2016): result[stride * q + r] = sum over j of x[q - j] w[stride * j + r].
 */
static int transposed_conv(struct tnd_onnx_call *call, int x, int w,
                           const struct tnd_window *window, const int64_t *more)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    struct tnd_window taps = *window; /* (with dilation, zeros between the weights) */
    struct tnd_window inner = *window;
    int64_t out[TANDEM_NET_MAX_WINDOW];
    int64_t phases = 1;
    for (int i = 0; i < window->n; i++) {
        taps.stride[i] = window->dilation[i];
        phases *= window->stride[i];
    }
    w = phases_of(call, spread(call, w, &taps), window);
    for (int i = 0; i < window->n && w != TANDEM_NET_NONE; i++) {
        const int64_t stride = window->stride[i];
        const int64_t n = tnd_onnx_shape_of(call, w)->dims[2 + i];
        const int64_t begin = window->begin[i];
        out[i] = stride * (shape.dims[2 + i] - 1) + covered(window, i) + more[i] - begin -
                 window->end[i];
        inner.extent[i] = n;
        inner.stride[i] = inner.dilation[i] = 1;
        inner.begin[i] = n - 1 - floor_of(begin, stride);
        inner.end[i] = floor_of(begin + out[i] - 1, stride) + 1 - shape.dims[2 + i];
    }
    int y = tnd_net_conv(call->net, x, turned_filters(call, w, window), &inner);
    y = add_bias(call, y, bias_of_phases(call, tnd_onnx_in(call, 2), window->groups, phases));
    y = y == TANDEM_NET_NONE || phases == 1 ? y : join_phases(call, y, window);
    for (int i = 0; i < window->n && y != TANDEM_NET_NONE; i++) {
        const int64_t first =
            window->begin[i] - floor_of(window->begin[i], window->stride[i]) * window->stride[i];
        if (out[i] != tnd_onnx_shape_of(call, y)->dims[2 + i]) {
            y = tnd_net_slice(call->net, y, 2 + i, first, out[i], 1);
        }
    }
    return y;
}

static void build_conv_transpose(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const int w = tnd_onnx_in(call, 1);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const struct tnd_dims filters = *tnd_onnx_shape_of(call, w);
    struct tnd_window window = {0};
    int64_t more[TANDEM_NET_MAX_WINDOW];
    if (!check_rank(call, shape.n) || filters.n != shape.n ||
        !read_filters(call, &filters, &window) ||
        !numbers_of(call, "output_padding", window.n, 0, 0, more) ||
        !read_window(call, shape.dims + 2, &window) ||
        !transposed_pads(call, shape.dims + 2, more, &window)) {
        return;
    }
    if (window.groups < 1 || filters.dims[0] % window.groups != 0 ||
        filters.dims[0] != shape.dims[1]) {
        (void)tnd_onnx_refuse(call, "%lld groups of %lld channels", (long long)window.groups,
                              (long long)filters.dims[0]);
        return;
    }
    call->out[0] = transposed_conv(call, x, w, &window, more);
}

/* ---- blocks to pictures ---- */

#define MAX_BLOCK 1024 /* values of a block */

/* The picture and the block, {N, C * block, places} -> {N * C, block, places of each axis}. */
static int read_blocks(struct tnd_onnx_call *call, struct tnd_window *window, int64_t *picture,
                       struct tnd_dims *out)
{
    const int x = tnd_onnx_in(call, 0);
    const struct tnd_dims *from = tnd_onnx_shape_of(call, x);
    struct tnd_dims split = {2, {0, 1}};
    int64_t places = 1;
    int n;
    tnd_onnx_known(call, tnd_onnx_in(call, 1), "image_shape", picture, TANDEM_NET_MAX_WINDOW,
                   &window->n);
    tnd_onnx_known(call, tnd_onnx_in(call, 2), "block_shape", window->extent, TANDEM_NET_MAX_WINDOW,
                   &n);
    if (n != window->n || n < 1 || from->n != 3 || !read_window(call, picture, window)) {
        return tnd_onnx_refuse(call, "%d dimensions, a picture of %d, a block of %d", from->n,
                               window->n, n);
    }
    for (int i = 0; i < n; i++) {
        if (window->extent[i] < 1 || window->extent[i] > MAX_BLOCK || picture[i] < 1 ||
            picture[i] > 1 << 20 || window->dilation[i] > 1 << 20) {
            return tnd_onnx_refuse(call, "a block of %lld values in a picture of %lld",
                                   (long long)window->extent[i], (long long)picture[i]);
        }
        const int64_t room = picture[i] + window->begin[i] + window->end[i] - covered(window, i);
        split.dims[1] *= split.dims[1] > MAX_BLOCK ? 1 : window->extent[i];
        split.dims[split.n] = room < 0 ? 0 : room / window->stride[i] + 1;
        places *= split.dims[split.n++];
    }
    if (split.dims[1] > MAX_BLOCK || from->dims[1] % split.dims[1] != 0 ||
        from->dims[2] != places) {
        return tnd_onnx_refuse(call,
                               "%lld channels and %lld places, expected blocks of %lld "
                               "values (at most %d) at %lld places",
                               (long long)from->dims[1], (long long)from->dims[2],
                               (long long)split.dims[1], MAX_BLOCK, (long long)places);
    }
    *out = (struct tnd_dims){3, {from->dims[0], from->dims[1] / split.dims[1]}};
    split.dims[0] = out->dims[0] * out->dims[1];
    return tnd_net_reshape(call->net, x, &split);
}

/* The sum of the block's values, each one spread over the places that it falls on. */
static void build_col2im(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    struct tnd_window window = {.groups = 1};
    int64_t picture[TANDEM_NET_MAX_WINDOW] = {0};
    struct tnd_dims to;
    int sum = TANDEM_NET_NONE;
    const int x = read_blocks(call, &window, picture, &to);
    const int64_t n = x == TANDEM_NET_NONE ? 0 : tnd_onnx_shape_of(call, x)->dims[1];
    for (int64_t k = 0; k < n && net->status == TANDEM_OK; k++) {
        int64_t begin[TANDEM_NET_MAX_DIMS] = {0};
        int64_t end[TANDEM_NET_MAX_DIMS] = {0};
        int part = spread(call, tnd_net_slice(net, x, 1, k, 1, 1), &window);
        int64_t rest = k;
        for (int i = window.n - 1; i >= 0; rest /= window.extent[i], i--) {
            const int64_t at = rest % window.extent[i] * window.dilation[i] - window.begin[i];
            begin[2 + i] = at;
            end[2 + i] = picture[i] - at - tnd_onnx_shape_of(call, part)->dims[2 + i];
        }
        const int zero = tnd_net_scalar(net, tnd_onnx_type_of(call, x), 0.0);
        part = tnd_net_pad(net, TANDEM_PAD_CONSTANT, part, begin, end, zero);
        sum = sum == TANDEM_NET_NONE ? part : tnd_net_binary(net, TANDEM_BINARY_ADD, sum, part);
    }
    to.n = 2 + window.n;
    memcpy(to.dims + 2, picture, (size_t)(n > 0 ? window.n : 0) * sizeof(picture[0]));
    call->out[0] = n > 0 ? tnd_net_reshape(net, sum, &to) : TANDEM_NET_NONE;
}

/* ---- pooling ---- */

/* ceil_mode: more padding behind, so that a last window that begins inside counts. */
static void pad_for_ceil(struct tnd_window *window, const int64_t *extents)
{
    for (int i = 0; i < window->n; i++) {
        const int64_t room = extents[i] + window->begin[i] + window->end[i] - covered(window, i);
        const int64_t left = room < 0 ? 0 : room % window->stride[i];
        const int64_t places = left == 0 ? 0 : room / window->stride[i] + 1;
        if (left != 0 && places * window->stride[i] < extents[i] + window->begin[i]) {
            window->end[i] += window->stride[i] - left;
        }
    }
}

static bool read_pool(struct tnd_onnx_call *call, int x, struct tnd_window *window,
                      struct tnd_window *stated)
{
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    if (!check_rank(call, shape.n)) {
        return false;
    }
    window->n = shape.n - 2;
    window->groups = 1;
    if (!tnd_onnx_has(call, "kernel_shape") ||
        !numbers_of(call, "kernel_shape", window->n, 1, 1, window->extent) ||
        !read_window(call, shape.dims + 2, window)) {
        (void)tnd_onnx_refuse(call, "kernel_shape is missing");
        return false;
    }
    *stated = *window;
    if (tnd_onnx_int(call, "ceil_mode", 0) != 0) {
        pad_for_ceil(window, shape.dims + 2);
    }
    return true;
}

/* Indices of places of pictures in row-major order, as those in column-major order. */
static int by_column(struct tnd_onnx_call *call, int indices, int64_t height, int64_t width)
{
    const int place = tnd_onnx_with(call, TANDEM_BINARY_FMOD, indices, (double)(height * width));
    return tnd_net_formula(call->net,
                           "i, place, height, width:"
                           " i - place + (fmod(place, width) * height + place / width)",
                           indices, place, (double)height, (double)width);
}

/* Indices of the largest values, in row-major order or with the last two dimensions exchanged. */
static void build_max_pool(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    struct tnd_window window = {0};
    struct tnd_window stated;
    if (!read_pool(call, x, &window, &stated)) {
        return;
    }
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const bool is_by_column = tnd_onnx_int(call, "storage_order", 0) != 0;
    if (is_by_column && call->n_out > 1 && shape.n != 4) {
        (void)tnd_onnx_refuse(call, "indices in column-major order of %d dimensions", shape.n);
        return;
    }
    call->out[0] = tnd_net_pool(call->net, TANDEM_POOL_MAX, x, &window);
    if (call->n_out > 1) {
        call->out[1] = tnd_net_pool(call->net, TANDEM_POOL_ARG_MAX, x, &window);
        call->out[1] = is_by_column ? by_column(call, call->out[1], shape.dims[2], shape.dims[3])
                                    : call->out[1];
    }
}

/* How many values each window covers: the sum of ones. */
static int window_counts(struct tnd_onnx_call *call, int x, const struct tnd_window *window,
                         const struct tnd_window *stated, bool counts_padding)
{
    struct tnd_net *net = call->net;
    struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    struct tnd_window over = *window;
    shape.dims[0] = 1;
    shape.dims[1] = 1;
    for (int i = 0; i < window->n && counts_padding; i++) {
        shape.dims[2 + i] += stated->begin[i] + stated->end[i];
        over.begin[i] -= stated->begin[i];
        over.end[i] -= stated->end[i];
    }
    const int one = tnd_net_scalar(net, tnd_onnx_type_of(call, x), 1.0);
    return tnd_net_pool(net, TANDEM_POOL_SUM, tnd_net_expand(net, one, &shape), &over);
}

static void build_average_pool(struct tnd_onnx_call *call)
{
    const int x = tnd_onnx_in(call, 0);
    const bool counts_padding = tnd_onnx_int(call, "count_include_pad", 0) != 0;
    struct tnd_window window = {0};
    struct tnd_window stated;
    if (read_pool(call, x, &window, &stated)) {
        call->out[0] = tnd_net_binary(call->net, TANDEM_BINARY_DIV,
                                      tnd_net_pool(call->net, TANDEM_POOL_SUM, x, &window),
                                      window_counts(call, x, &window, &stated, counts_padding));
    }
}

/* (sum of |x|^p)^(1/p) */
#define POWERS "x, p: pow(abs(x), p)"
#define ROOTS  "sum, p: pow(sum, 1 / p)"

static void build_lp_pool(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    const int x = tnd_onnx_in(call, 0);
    const double p = (double)tnd_onnx_int(call, "p", 2);
    struct tnd_window window = {0};
    struct tnd_window stated;
    if (p < 1.0 || !read_pool(call, x, &window, &stated)) {
        (void)tnd_onnx_refuse(call, "p is %g", p);
        return;
    }
    const int powers = tnd_net_formula(net, POWERS, x, p);
    const int sums = tnd_net_pool(net, TANDEM_POOL_SUM, powers, &window);
    call->out[0] = tnd_net_formula(net, ROOTS, sums, p);
}

enum { GLOBAL_MEAN, GLOBAL_MAX, GLOBAL_LP };

static void build_global_pool(struct tnd_onnx_call *call)
{
    struct tnd_net *net = call->net;
    int x = tnd_onnx_in(call, 0);
    const struct tnd_dims shape = *tnd_onnx_shape_of(call, x);
    const double p = call->kind == GLOBAL_LP ? (double)tnd_onnx_int(call, "p", 2) : 1.0;
    double n = 1.0;
    unsigned axes = 0;
    if (shape.n < 3 || p < 1.0) {
        (void)tnd_onnx_refuse(call, "%d dimensions, p %g", shape.n, p);
        return;
    }
    for (int i = 2; i < shape.n; i++) {
        axes |= 1u << i;
        n *= (double)shape.dims[i];
    }
    if (call->kind == GLOBAL_MAX) {
        call->out[0] = tnd_net_reduce(net, TANDEM_REDUCE_MAX, x, axes);
        return;
    }
    const bool is_lp = call->kind == GLOBAL_LP;
    x = is_lp ? tnd_net_formula(net, POWERS, x, p) : x;
    const int sum = tnd_net_reduce(net, TANDEM_REDUCE_SUM, x, axes);
    call->out[0] = is_lp ? tnd_net_formula(net, ROOTS, sum, p)
                         : tnd_onnx_with(call, TANDEM_BINARY_DIV, sum, n);
}

const struct tnd_onnx_op tnd_onnx_window[] = {
    {"AveragePool", build_average_pool, 0, "1"},
    {"Col2Im", build_col2im, 0, "3"},
    {"Conv", build_conv, 0, "2-3"},
    {"ConvTranspose", build_conv_transpose, 0, "2-3"},
    {"GlobalAveragePool", build_global_pool, GLOBAL_MEAN, "1"},
    {"GlobalLpPool", build_global_pool, GLOBAL_LP, "1"},
    {"GlobalMaxPool", build_global_pool, GLOBAL_MAX, "1"},
    {"LpPool", build_lp_pool, 0, "1"},
    {"MaxPool", build_max_pool, 0, "1 8:1>1-2"},
    {NULL, NULL, 0, NULL},
};
