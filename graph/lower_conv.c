/* SPDX-License-Identifier: MIT
 * Convolutions of F32 with constant weights, channels last. Those over single places are matrix
 * products, which the runtime's table chooses; the others are computed directly: a tile of places
 * by a tile of filters, summed over the taps of the window in registers, reading rows of channels
 * where they lie. */
#include <limits.h>
#include <string.h>

#include "base/cpu.h"
#include "base/tnd_assert.h"
#include "graph/lower_conv.h"

/* Fewer multiplications that pay for transforms. Unit: ratio. */
#define WINOGRAD_GAIN 1.3

/* Values of the columns of a convolution on a device: 1 GiB. */
#define MAX_COLUMNS 0x1p28

enum { FEW_CHANNELS = 16, ITEM_TILES = 8 };

const struct tnd_conv_kernel *tnd_conv_kernel_best(void)
{
#if defined(__x86_64__)
    const uint32_t features = tnd_cpu_features();
    if ((features & TND_CPU_SET_AVX512) == TND_CPU_SET_AVX512) {
        return &tnd_conv_avx512;
    }
    if ((features & TND_CPU_SET_AVX2) == TND_CPU_SET_AVX2) {
        return &tnd_conv_avx2;
    }
#endif
    return &tnd_conv_scalar;
}

/* ---- running ---- */

/* Where the window begins for a place of the result; returns the image. */
static int64_t place_of(const struct tnd_conv *conv, int64_t pixel, int64_t *start)
{
    for (int i = conv->n - 1; i >= 0; i--) {
        start[i] = pixel % conv->out[i] * conv->stride[i] - conv->begin[i];
        pixel /= conv->out[i];
    }
    return pixel;
}

/* How many of `n` places from one on, in the same line, see nothing of the padding. */
static int count_whole(const struct tnd_conv *conv, const int64_t *start, int n)
{
    const int last = conv->n - 1;
    for (int i = 0; i < conv->n; i++) {
        if (start[i] < 0 || start[i] + (conv->taps[i] - 1) * conv->dilation[i] >= conv->in[i]) {
            return 0;
        }
    }
    const int64_t room =
        conv->in[last] - 1 - start[last] - (conv->taps[last] - 1) * conv->dilation[last];
    const int64_t column = (start[last] + conv->begin[last]) / conv->stride[last];
    int64_t whole = room / conv->stride[last] + 1;
    whole = whole < conv->out[last] - column ? whole : conv->out[last] - column;
    return whole < n ? (int)whole : n;
}

/* Pointers of such places, `step` from tap to tap. */
static void find_whole(const struct tnd_conv *conv, const float *x, int64_t image,
                       const int64_t *start, int n, const float **rows, int64_t step)
{
    const int64_t next = conv->stride[conv->n - 1] * conv->all_channels;
    for (int i = 0; i < conv->n; i++) {
        image = image * conv->in[i] + start[i];
    }
    for (int64_t t = 0; t < conv->n_taps; t++) {
        const float *at = x + image * conv->all_channels + conv->offsets[t];
        for (int m = 0; m < n; m++, at += next) {
            rows[t * step + m] = at;
        }
    }
}

/* Pointers of one place at the edge. */
static void find_rows(const struct tnd_conv *conv, const float *x, int64_t image,
                      const int64_t *start, const float **rows, int64_t step)
{
    int64_t tap[TND_NET_MAX_WINDOW] = {0};
    for (int64_t t = 0; t < conv->n_taps; t++) {
        int64_t at = image;
        bool is_inside = true;
        for (int i = 0; i < conv->n; i++) {
            const int64_t place = start[i] + tap[i] * conv->dilation[i];
            is_inside = is_inside && place >= 0 && place < conv->in[i];
            at = at * conv->in[i] + place;
        }
        rows[t * step] = is_inside ? x + at * conv->all_channels : conv->zeros;
        for (int i = conv->n - 1; i >= 0 && ++tap[i] == conv->taps[i]; i--) {
            tap[i] = 0;
        }
    }
}

void tnd_conv_rows(const struct tnd_conv *conv, const float *x, int64_t pixel, int n,
                   int64_t channel, const float **rows)
{
    int64_t start[TND_NET_MAX_WINDOW];
    int64_t image = place_of(conv, pixel, start);
    for (int m = 0; m < n;) {
        int whole = count_whole(conv, start, n - m);
        if (whole > 0) {
            find_whole(conv, x + channel, image, start, whole, rows + m, n);
        } else {
            find_rows(conv, x + channel, image, start, rows + m, n);
            whole = 1;
        }
        m += whole;
        int i = conv->n - 1;
        start[i] += whole * conv->stride[i];
        while (i >= 0 && start[i] == conv->out[i] * conv->stride[i] - conv->begin[i]) {
            start[i] = -conv->begin[i];
            if (--i >= 0) {
                start[i] += conv->stride[i];
            } else {
                image++;
            }
        }
    }
}

int64_t tnd_conv_tile_pixels(const struct tnd_conv_kernel *kernel, int64_t n)
{
    const int64_t parts = (n + kernel->pixels - 1) / kernel->pixels;
    return (n + parts - 1) / parts;
}

static void run_tile(const struct tnd_conv *conv, const tandem_tensor *node, int64_t block,
                     int64_t first)
{
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *y = tandem_tensor_data(node);
    const float *rows[TND_CONV_MAX_TAPS * TND_CONV_PIXELS];
    float sums[TND_CONV_PIXELS * TND_CONV_FILTERS];
    const int width = conv->kernel->filters;
    const int64_t group_blocks = (conv->filters + width - 1) / width;
    const int64_t group = block / group_blocks;
    const int64_t filter = block % group_blocks * width;
    const int64_t left = conv->n_pixels - first;
    const int n = (int)(left < conv->tile_pixels ? left : conv->tile_pixels);
    tnd_conv_rows(conv, x, first, n, group * conv->channels, rows);
    const struct tnd_conv_tile tile = {.rows = rows,
                                       .n_taps = conv->n_taps,
                                       .run = conv->run,
                                       .w = conv->packed + block * conv->n_taps * conv->run * width,
                                       .y = sums};
    conv->kernel->run[n - 1](&tile);
    const int64_t of_group = conv->filters - filter;
    const struct tnd_fuse_tile part = {.row = first,
                                       .column = group * conv->filters + filter,
                                       .n_rows = n,
                                       .n_columns = (int)(of_group < width ? of_group : width),
                                       .values = sums,
                                       .stride = width};
    tnd_epilogue_write(conv->epilogue, conv->kernel, node, &part,
                       y + first * conv->all_filters + part.column, conv->all_filters);
}

static enum tandem_status run_conv(void *user, const tandem_tensor *node, int64_t begin,
                                   int64_t end)
{
    const struct tnd_job *job = user;
    const struct tnd_conv *conv = job->more;
    const int64_t pixels = conv->tile_pixels;
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % conv->block_items * ITEM_TILES * pixels;
        const int64_t last = first + ITEM_TILES * pixels;
        for (int64_t at = first; at < last && at < conv->n_pixels; at += pixels) {
            run_tile(conv, node, item / conv->block_items, at);
        }
    }
    return TANDEM_OK;
}

/* One filter a channel: strips of channels. */
static enum tandem_status run_depthwise(void *user, const tandem_tensor *node, int64_t begin,
                                        int64_t end)
{
    const struct tnd_job *job = user;
    const struct tnd_conv *conv = job->more;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const float *rows[TND_CONV_MAX_TAPS];
    const int64_t n = conv->all_channels;
    float *y = (float *)tandem_tensor_data(node) + begin * n;
    for (int64_t pixel = begin; pixel < end; pixel++, y += n) {
        tnd_conv_rows(conv, x, pixel, 1, 0, rows);
        memset(y, 0, (size_t)n * sizeof(float));
        for (int64_t t = 0; t < conv->n_taps; t++) {
            const float *restrict from = rows[t];
            const float *restrict w = conv->packed + t * n;
            float *restrict to = y;
            for (int64_t c = 0; from != conv->zeros && c < n; c++) {
                to[c] += from[c] * w[c];
            }
        }
        if (conv->epilogue != NULL) {
            const struct tnd_fuse_tile row = {
                .row = pixel, .n_rows = 1, .n_columns = (int)n, .values = y, .stride = n};
            tnd_epilogue_tile(conv->epilogue, node, &row);
        }
    }
    return TANDEM_OK;
}

/* ---- weights ---- */

/* Filter {M, C, taps} as the kernels read it; `by_channel`: by tap and channel. */
static void pack(const struct tnd_conv *conv, const float *w, int64_t taps, bool by_channel,
                 float *out)
{
    const int64_t width = by_channel ? conv->all_filters : conv->kernel->filters;
    const int64_t blocks = by_channel ? 1 : (conv->filters + width - 1) / width;
    const int64_t channels = conv->channels;
    for (int64_t f = 0; f < conv->all_filters; f++) {
        const int64_t group = by_channel ? 0 : f / conv->filters;
        const int64_t in_group = by_channel ? f : f % conv->filters;
        float *block = out + (group * blocks + in_group / width) * taps * channels * width;
        for (int64_t t = 0; t < taps; t++) {
            for (int64_t c = 0; c < channels; c++) {
                block[(t * channels + c) * width + in_group % width] =
                    w[(f * channels + c) * taps + t];
            }
        }
    }
}

static enum tandem_status pack_weights(struct tnd_lowering *l, struct tnd_conv *conv,
                                       bool by_channel, tandem_tensor **tensor)
{
    const struct tnd_view w = tnd_lower_known(l, conv->weights);
    int64_t taps = 1;
    for (int i = 2; i < w.shape.n; i++) {
        taps *= w.shape.dims[i];
    }
    const int64_t width = conv->kernel->filters;
    const int64_t group_blocks = (conv->filters + width - 1) / width;
    conv->n_blocks = conv->all_filters / conv->filters * group_blocks;
    const struct tnd_dims packed = {
        1,
        {by_channel ? taps * conv->all_filters : conv->n_blocks * width * taps * conv->channels}};
    const struct tnd_dims zeros = {1, {conv->run}};
    struct tnd_array *array = tnd_lower_array(l, TND_DTYPE_F32, &packed);
    struct tnd_array *nothing = array == NULL ? NULL : tnd_lower_array(l, TND_DTYPE_F32, &zeros);
    struct tnd_array *plain =
        tnd_view_has_no_gaps(&w) ? NULL : tnd_array_new(TND_DTYPE_F32, &w.shape);
    if (nothing == NULL || (plain == NULL && !tnd_view_has_no_gaps(&w))) {
        tnd_array_free(plain);
        return tnd_lower_no_memory(l);
    }
    if (plain != NULL) {
        const struct tnd_kernel_call copy = {.in = &w, .n_in = 1, .out = plain, .error = l->error};
        (void)tnd_kernel_copy(&copy); /* (always good) */
    }
    pack(conv, plain != NULL ? plain->data : w.data, taps, by_channel, array->data);
    tnd_array_free(plain);
    conv->packed = array->data;
    conv->zeros = nothing->data;
    *tensor = l->options->for_device ? tnd_lower_weights(l, array) : NULL;
    return TANDEM_OK;
}

/* ---- lowering ---- */

static void describe(struct tnd_conv *conv, const struct tnd_net_node *node,
                     const struct tnd_dims *x, const struct tnd_dims *y)
{
    const struct tnd_window *window = &node->params.window;
    conv->kernel = tnd_conv_kernel_best();
    conv->n = window->n;
    conv->n_taps = 1;
    conv->n_pixels = y->dims[0];
    for (int i = 0; i < conv->n; i++) {
        conv->in[i] = x->dims[2 + i];
        conv->out[i] = y->dims[2 + i];
        conv->taps[i] = window->extent[i];
        conv->stride[i] = window->stride[i];
        conv->dilation[i] = window->dilation[i];
        conv->begin[i] = window->begin[i];
        conv->n_taps *= window->extent[i];
        conv->n_pixels *= y->dims[2 + i];
    }
    conv->all_channels = x->dims[1];
    conv->all_filters = y->dims[1];
    conv->channels = x->dims[1] / window->groups;
    conv->filters = y->dims[1] / window->groups;
    conv->run = conv->channels;
    conv->weights = node->inputs[1];
}

/* The innermost padding: places of it that the windows read in front of a row, and behind. */
static void find_padding(const struct tnd_conv *conv, int64_t *front, int64_t *behind)
{
    const int last = conv->n - 1;
    const int64_t end = (conv->out[last] - 1) * conv->stride[last] - conv->begin[last] +
                        (conv->taps[last] - 1) * conv->dilation[last] + 1 - conv->in[last];
    *front = conv->begin[last] > 0 ? conv->begin[last] : 0;
    *behind = end > 0 ? end : 0;
}

/* Rows of the input with their padding. */
struct padded {
    int64_t row, front, width; /* values */
};

static enum tandem_status run_pad(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_job *job = user;
    const struct padded *padded = job->more;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *y = tandem_tensor_data(node);
    for (int64_t i = begin; i < end; i++) {
        float *to = y + i * padded->width;
        memset(to, 0, (size_t)padded->width * sizeof(float));
        memcpy(to + padded->front, x + i * padded->row, (size_t)padded->row * sizeof(float));
    }
    return TANDEM_OK;
}

/* With few channels a tap is too short for the loops over its values: rows are copied with their
 * padding, so that all taps of a row are one (merge_taps). The sums keep every bit. */
static enum tandem_status pad_rows(struct tnd_lowering *l, struct tnd_conv *conv,
                                   const struct tnd_dims *shape, tandem_tensor **x)
{
    const int last = conv->n - 1;
    int64_t front;
    int64_t behind;
    find_padding(conv, &front, &behind);
    if (conv->channels != conv->all_channels || conv->channels >= FEW_CHANNELS ||
        conv->taps[last] == 1 || conv->dilation[last] != 1 || front + behind == 0) {
        return TANDEM_OK;
    }
    struct tnd_job *job = tnd_lower_job(l, 0);
    struct padded *padded =
        tnd_arena_alloc(&l->out->arena, sizeof(*padded), _Alignof(struct padded));
    if (job == NULL || padded == NULL) {
        return tnd_lower_no_memory(l);
    }
    padded->row = conv->in[last] * conv->channels;
    padded->front = front * conv->channels;
    conv->in[last] += front + behind;
    conv->begin[last] -= front;
    padded->width = conv->in[last] * conv->channels;
    job->type = TND_DTYPE_F32;
    job->shape = *shape;
    job->shape.dims[1 + conv->n] = conv->in[last];
    job->more = padded;
    job->n_items = tnd_dims_values(shape) / padded->row;
    job->run = run_pad;
    return tnd_lower_emit(l, job, x, 1, x);
}

/* Taps side by side lie side by side in memory: they are one where there is no padding between. */
static void merge_taps(struct tnd_conv *conv)
{
    const int last = conv->n - 1;
    int64_t front;
    int64_t behind;
    find_padding(conv, &front, &behind);
    if (conv->channels == conv->all_channels && front + behind == 0 && conv->dilation[last] == 1) {
        conv->run *= conv->taps[last];
        conv->n_taps /= conv->taps[last];
        conv->taps[last] = 1;
    }
}

/* Offsets of the window's taps; NULL: no memory. */
static const int64_t *find_offsets(struct tnd_lowering *l, const struct tnd_conv *conv)
{
    int64_t tap[TND_NET_MAX_WINDOW] = {0};
    int64_t *out =
        tnd_arena_alloc(&l->out->arena, (size_t)conv->n_taps * sizeof(out[0]), _Alignof(int64_t));
    for (int64_t t = 0; out != NULL && t < conv->n_taps; t++) {
        int64_t at = 0;
        for (int i = 0; i < conv->n; i++) {
            at = at * conv->in[i] + tap[i] * conv->dilation[i];
        }
        out[t] = at * conv->all_channels;
        for (int i = conv->n - 1; i >= 0 && ++tap[i] == conv->taps[i]; i--) {
            tap[i] = 0;
        }
    }
    return out;
}

static bool is_point(const struct tnd_window *window)
{
    bool is = window->groups == 1;
    for (int i = 0; i < window->n; i++) {
        is = is && window->extent[i] == 1 && window->stride[i] == 1 && window->begin[i] == 0 &&
             window->end[i] == 0;
    }
    return is;
}

static bool is_depthwise(const struct tnd_conv *conv)
{
    return conv->channels == 1 && conv->filters == 1;
}

static enum tandem_status lower_direct(struct tnd_lowering *l, struct tnd_conv *conv,
                                       const struct tnd_net_node *node, tandem_tensor *x,
                                       tandem_tensor **out)
{
    const bool by_channel = is_depthwise(conv);
    struct tnd_job *job = tnd_lower_job(l, 0);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {x};
    TND_TRY(pack_weights(l, conv, by_channel, &tensors[1]));
    conv->tile_pixels = tnd_conv_tile_pixels(conv->kernel, conv->n_pixels);
    const int64_t tile = ITEM_TILES * conv->tile_pixels;
    conv->block_items = (conv->n_pixels + tile - 1) / tile;
    job->op = TND_NET_CONV;
    job->type = TND_DTYPE_F32;
    job->shape = tnd_net_value(l->net, node->output)->shape;
    job->more = conv;
    job->n_items = by_channel ? conv->n_pixels : conv->n_blocks * conv->block_items;
    job->run = by_channel ? run_depthwise : run_conv;
    const bool has_text = tensors[1] != NULL;
    int n_tensors = has_text ? 2 : 1;
    conv->epilogue = tnd_lower_take_epilogue(l, tensors, &n_tensors);
    TND_TRY(tnd_lower_emit(l, job, tensors, n_tensors, out));
    if (has_text) {
        tnd_conv_print_sums(l, conv, by_channel, *out);
    }
    return TANDEM_OK;
}

/* ---- choosing ---- */

const char *tnd_conv_method_name(enum tnd_conv_method method)
{
    static const char *const names[] = {
#define TND_CONV_METHOD_NAME(name, text) text,
        TND_CONV_METHOD_LIST(TND_CONV_METHOD_NAME)
#undef TND_CONV_METHOD_NAME
    };
    return names[method];
}

static struct tnd_conv_shape shape_of(const struct tnd_conv *conv)
{
    struct tnd_conv_shape shape = {.n = conv->n,
                                   .images = conv->n_pixels,
                                   .channels = conv->all_channels,
                                   .filters = conv->all_filters,
                                   .groups = conv->all_channels / conv->channels};
    for (int i = 0; i < conv->n; i++) {
        shape.window[i] = conv->taps[i];
        shape.stride[i] = conv->stride[i];
        shape.dilation[i] = conv->dilation[i];
        shape.padding[i] = conv->begin[i];
        shape.result[i] = conv->out[i];
        shape.images /= conv->out[i];
    }
    return shape;
}

/* A device's products are tuned, its texts of sums are not: ResNet-18 takes 107 ms by columns and
 * 910 ms by sums, a U-Net 58 and 479 ms (PoCL on two cores of a Zen 4). */
static void choose_for_device(const struct tnd_conv *conv, struct tnd_conv_choice *choice)
{
    const double columns = (double)conv->n_pixels * (double)(conv->n_taps * conv->channels);
    if (conv->channels != conv->all_channels) {
        choice->reason = "on a device, groups are summed where they lie";
    } else if (columns > MAX_COLUMNS) {
        choice->reason = "on a device, the columns would be too large";
    } else {
        choice->method = TND_CONV_COLUMNS;
        choice->reason = "on a device, whose products are tuned";
    }
}

/* Where no times are known. Of the 14 shapes of ResNet-18 and a U-Net whose direct sums multiply
 * 1.3 times as often Winograd's method was faster for all, 1.15 to 1.8 times, and for the one below
 * that it gained nothing (two cores of a Zen 4). */
static void choose_by_rule(const struct tnd_conv *conv, bool is_point, bool for_device,
                           struct tnd_conv_choice *choice)
{
    choice->method = TND_CONV_DIRECT;
    choice->reason = "no times are known";
    if (is_point) {
        choice->method = TND_CONV_COLUMNS;
        choice->reason = "no times are known, a window of one place is a matrix product";
    } else if (for_device) {
        choose_for_device(conv, choice);
    } else if (tnd_conv_winograd_gain(conv) >= WINOGRAD_GAIN) {
        choice->method = TND_CONV_WINOGRAD;
        choice->reason = "no times are known, direct sums take far more multiplications";
    }
}

/* The fastest of the methods with times, where two are known at least. */
static void choose(const struct tnd_lowering *l, const struct tnd_conv *conv, bool is_point,
                   struct tnd_conv_choice *choice)
{
    int known = 0;
    *choice = (struct tnd_conv_choice){.shape = shape_of(conv)};
    choice->may[TND_CONV_DIRECT] = true;
    choice->may[TND_CONV_COLUMNS] = !is_depthwise(conv);
    choice->may[TND_CONV_WINOGRAD] = !l->options->for_device && tnd_conv_may_winograd(conv);
    choose_by_rule(conv, is_point, l->options->for_device, choice);
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        choice->us[method] = -1;
    }
    if (l->options->conv_times != NULL) {
        l->options->conv_times(l->options->user, &choice->shape, choice->us);
    }
    for (int method = 0; method < TND_CONV_METHODS; method++) {
        if (choice->may[method] && choice->us[method] >= 0) {
            const bool is_best = known == 0 || choice->us[method] < choice->us[choice->method];
            choice->method = is_best ? (enum tnd_conv_method)method : choice->method;
            known++;
        }
    }
    choice->is_measured = known > 0;
    choice->reason = known > 0 ? "the fastest that was measured" : choice->reason;
}

static enum tandem_status keep_choice(struct tnd_lowering *l, const struct tnd_conv_choice *choice)
{
    struct tnd_lowered *out = l->out;
    if (tnd_vector_insert(&out->convs_vector, sizeof(out->convs[0]), INT_MAX / 2, out->n_convs) !=
        TANDEM_OK) {
        return tnd_lower_no_memory(l);
    }
    out->convs[out->n_convs - 1] = *choice;
    return TANDEM_OK;
}

const struct tnd_conv_choice *tnd_lowered_conv(const struct tnd_lowered *lowered, int i)
{
    return i >= 0 && i < lowered->n_convs ? &lowered->convs[i] : NULL;
}

static enum tandem_status lower_method(struct tnd_lowering *l, struct tnd_conv *conv,
                                       const struct tnd_net_node *node, tandem_tensor *x,
                                       tandem_tensor **out)
{
    const bool point = is_point(&node->params.window);
    struct tnd_conv_choice choice;
    choose(l, conv, point, &choice);
    TND_TRY(keep_choice(l, &choice));
    if (choice.method == TND_CONV_DIRECT && !is_depthwise(conv)) {
        if (!l->options->for_device) {
            TND_TRY(pad_rows(l, conv, &tnd_net_value(l->net, node->inputs[0])->shape, &x));
        }
        merge_taps(conv);
    }
    conv->offsets = find_offsets(l, conv);
    if (conv->offsets == NULL) {
        return tnd_lower_no_memory(l);
    }
    switch (choice.method) {
    case TND_CONV_COLUMNS:
        return tnd_lower_conv_columns(l, conv, point, x, out);
    case TND_CONV_WINOGRAD:
        return tnd_lower_conv_winograd(l, conv, x, out);
    default:
        return lower_direct(l, conv, node, x, out);
    }
}

enum tandem_status tnd_lower_conv(struct tnd_lowering *l, const struct tnd_net_node *node,
                                  bool *done)
{
    const struct tnd_net_value *x = tnd_net_value(l->net, node->inputs[0]);
    const struct tnd_net_value *y = tnd_net_value(l->net, node->output);
    const struct tnd_lower_value *base = tnd_lower_value(l, node->inputs[0]);
    struct tnd_conv *conv =
        tnd_arena_alloc(&l->out->arena, sizeof(*conv), _Alignof(struct tnd_conv));
    if (conv == NULL) {
        return tnd_lower_no_memory(l);
    }
    describe(conv, node, &x->shape, &y->shape);
    if (x->type != TND_DTYPE_F32 || base->known != NULL ||
        tnd_lower_value(l, node->inputs[1])->known == NULL || conv->n_taps > TND_CONV_MAX_TAPS ||
        tnd_dims_values(&y->shape) == 0 || conv->channels == 0) {
        return TANDEM_OK;
    }
    tandem_tensor *tensor = NULL;
    TND_TRY(tnd_lower_last(l, node->inputs[0], &tensor));
    tandem_tensor **out = &l->values[node->output].tensors[TND_LAYOUT_LAST];
    *done = true;
    return lower_method(l, conv, node, tensor, out);
}
