/* SPDX-License-Identifier: MIT
 * Convolutions as direct sums: a tile of places by a tile of filters, summed over the taps of the
 * window in registers, reading rows of channels where they lie. */
#include <string.h>

#include "base/cpu.h"
#include "graph/lower_conv.h"

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

/* How the places and filters are handed out: some tiles of places by a block of panels. */
struct tiles {
    const struct tnd_conv_kernel *kernel;
    int64_t pixels;       /* places of a tile: tiles are about equally large */
    int64_t group_blocks; /* of the panels of a group */
    int64_t n_blocks, block_items;
};

static struct tiles tiles_of(const struct tnd_conv *conv)
{
    struct tiles tiles = {.kernel = tnd_conv_kernel_best()};
    tiles.pixels = tnd_conv_tile_pixels(tiles.kernel, conv->n_pixels);
    tiles.group_blocks =
        (tnd_conv_panels(conv->filters) + tiles.kernel->panels - 1) / tiles.kernel->panels;
    tiles.n_blocks = conv->all_filters / conv->filters * tiles.group_blocks;
    tiles.block_items =
        (conv->n_pixels + ITEM_TILES * tiles.pixels - 1) / (ITEM_TILES * tiles.pixels);
    return tiles;
}

/* Where a tile lies, and what all tiles of some items work in. */
struct tile {
    int64_t group, panel; /* the first panel, of the group */
    const float *rows[TND_CONV_MAX_TAPS * TND_CONV_PIXELS];
    float sums[TND_CONV_PIXELS * TND_CONV_FILTERS];
};

static void run_tile(const struct tnd_conv *conv, const struct tiles *tiles,
                     const tandem_tensor *node, struct tile *at, int64_t first)
{
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *y = tandem_tensor_data(node);
    const int64_t panel_values = conv->n_taps * conv->run * TND_CONV_PANEL;
    const int64_t group_panels = tnd_conv_panels(conv->filters);
    const int64_t panels_left = group_panels - at->panel;
    const int n_panels =
        (int)(panels_left < tiles->kernel->panels ? panels_left : tiles->kernel->panels);
    const int width = n_panels * TND_CONV_PANEL;
    const int64_t left = conv->n_pixels - first;
    const int n = (int)(left < tiles->pixels ? left : tiles->pixels);
    tnd_conv_rows(conv, x, first, n, at->group * conv->channels, at->rows);
    const struct tnd_conv_tile tile = {.rows = at->rows,
                                       .n_taps = conv->n_taps,
                                       .run = conv->run,
                                       .w = conv->packed +
                                            (at->group * group_panels + at->panel) * panel_values,
                                       .w_panel = panel_values,
                                       .y = at->sums};
    tiles->kernel->run[n_panels - 1][n - 1](&tile);
    const int64_t of_group = conv->filters - at->panel * TND_CONV_PANEL;
    const struct tnd_fuse_tile part = {.row = first,
                                       .column =
                                           at->group * conv->filters + at->panel * TND_CONV_PANEL,
                                       .n_rows = n,
                                       .n_columns = (int)(of_group < width ? of_group : width),
                                       .values = at->sums,
                                       .stride = width};
    tnd_epilogue_write(conv->epilogue, node, &part, y + first * conv->all_filters + part.column,
                       conv->all_filters);
}

static enum tandem_status run_conv(const struct tnd_work *work, const tandem_tensor *node,
                                   int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const struct tnd_conv *conv = job->more;
    const struct tiles tiles = tiles_of(conv);
    struct tile tile;
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % tiles.block_items * ITEM_TILES * tiles.pixels;
        const int64_t last = first + ITEM_TILES * tiles.pixels;
        tile.group = item / tiles.block_items / tiles.group_blocks;
        tile.panel = item / tiles.block_items % tiles.group_blocks * tiles.kernel->panels;
        for (int64_t at = first; at < last && at < conv->n_pixels; at += tiles.pixels) {
            run_tile(conv, &tiles, node, &tile, at);
        }
    }
    return TANDEM_OK;
}

/* One filter a channel: some places by a block of channels at a time. */
static enum tandem_status run_depthwise(const struct tnd_work *work, const tandem_tensor *node,
                                        int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const struct tnd_conv *conv = job->more;
    const struct tiles tiles = tiles_of(conv);
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const float *rows[TND_CONV_MAX_TAPS * TND_CONV_PIXELS];
    float sums[TND_CONV_PIXELS * TND_CONV_FILTERS];
    const int width = tiles.kernel->channels;
    struct tnd_conv_depth depth = {
        .rows = rows, .n_taps = conv->n_taps, .w_panel = conv->n_taps * TND_CONV_PANEL, .y = sums};
    begin *= tiles.pixels;
    end = end * tiles.pixels < conv->n_pixels ? end * tiles.pixels : conv->n_pixels;
    for (int64_t pixel = begin; pixel < end; pixel += depth.n_places) {
        const int64_t places = end - pixel;
        depth.n_places = (int)(places < tiles.pixels ? places : tiles.pixels);
        tnd_conv_rows(conv, x, pixel, depth.n_places, 0, rows);
        for (depth.channel = 0; depth.channel < conv->all_channels; depth.channel += width) {
            const int64_t left = conv->all_channels - depth.channel;
            depth.w = conv->packed + depth.channel / TND_CONV_PANEL * depth.w_panel +
                      depth.channel % TND_CONV_PANEL;
            depth.n_channels = (int)(left < width ? left : width);
            tiles.kernel->depth(&depth);
            const struct tnd_fuse_tile part = {.row = pixel,
                                               .column = depth.channel,
                                               .n_rows = depth.n_places,
                                               .n_columns = depth.n_channels,
                                               .values = sums,
                                               .stride = width};
            tnd_epilogue_write(conv->epilogue, node, &part,
                               (float *)tandem_tensor_data(node) + pixel * conv->all_channels +
                                   depth.channel,
                               conv->all_channels);
        }
    }
    return TANDEM_OK;
}

/* ---- weights ---- */

/* Filter {M, C, taps} in panels; `by_channel`: of one filter each of several groups. */
static void pack(const struct tnd_conv *conv, const float *w, int64_t taps, bool by_channel,
                 float *out)
{
    const int64_t width = TND_CONV_PANEL;
    const int64_t panels = tnd_conv_panels(conv->filters);
    const int64_t channels = conv->channels;
    for (int64_t f = 0; f < conv->all_filters; f++) {
        const int64_t group = by_channel ? 0 : f / conv->filters;
        const int64_t in_group = by_channel ? f : f % conv->filters;
        float *panel = out + (group * panels + in_group / width) * taps * channels * width;
        for (int64_t t = 0; t < taps; t++) {
            for (int64_t c = 0; c < channels; c++) {
                panel[(t * channels + c) * width + in_group % width] =
                    w[(f * channels + c) * taps + t];
            }
        }
    }
}

static enum tandem_status pack_weights(struct tnd_lowering *l, struct tnd_conv *conv,
                                       bool by_channel, tandem_tensor **tensor)
{
    struct tnd_view w = tnd_lower_known(l, conv->weights);
    int64_t taps = 1;
    for (int i = 2; i < w.shape.n; i++) {
        taps *= w.shape.dims[i];
    }
    const int64_t in_group = by_channel ? conv->all_filters : conv->filters;
    const int64_t n_panels = conv->all_filters / in_group * tnd_conv_panels(in_group);
    const struct tnd_dims packed = {1, {n_panels * TND_CONV_PANEL * taps * conv->channels}};
    const struct tnd_dims zeros = {1, {by_channel ? conv->all_channels : conv->run}};
    const int64_t how[] = {TND_CONV_DIRECT, in_group, by_channel};
    bool is_new;
    struct tnd_array *array = tnd_lower_shared(l, conv->weights, &w, TANDEM_DTYPE_F32, &packed, how,
                                               sizeof(how), &is_new);
    struct tnd_array *nothing = array == NULL ? NULL : tnd_lower_array(l, TANDEM_DTYPE_F32, &zeros);
    struct tnd_array *plain =
        tnd_view_has_no_gaps(&w) || !is_new ? NULL : tnd_array_new(TANDEM_DTYPE_F32, &w.shape);
    w = tnd_lower_known(l, conv->weights);
    if (nothing == NULL || (plain == NULL && is_new && !tnd_view_has_no_gaps(&w))) {
        tnd_array_free(plain);
        return tnd_lower_no_memory(l);
    }
    if (plain != NULL) {
        const struct tnd_kernel_call copy = {.in = &w, .n_in = 1, .out = plain, .error = l->error};
        (void)tnd_kernel_copy(&copy); /* (always good) */
    }
    if (is_new) {
        pack(conv, plain != NULL ? plain->data : w.data, taps, by_channel, array->data);
        tnd_lower_packed(array);
    }
    tnd_array_free(plain);
    conv->packed = array->data;
    conv->zeros = nothing->data;
    *tensor = l->options->for_device ? tnd_lower_weights(l, array) : NULL;
    return TANDEM_OK;
}

/* ---- padding ---- */

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

static enum tandem_status run_pad(const struct tnd_work *work, const tandem_tensor *node,
                                  int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
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
    job->type = TANDEM_DTYPE_F32;
    job->shape = *shape;
    job->shape.dims[1 + conv->n] = conv->in[last];
    job->more = padded;
    job->work.n_items = tnd_dims_values(shape) / padded->row;
    job->work.run = run_pad;
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

/* ---- lowering ---- */

enum tandem_status tnd_lower_conv_direct(struct tnd_lowering *l, struct tnd_conv *conv,
                                         const struct tnd_net_node *node, tandem_tensor *x,
                                         tandem_tensor **out)
{
    const bool by_channel = tnd_conv_is_depthwise(conv);
    struct tnd_job *job = tnd_lower_job(l, 0);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    if (!by_channel) {
        if (!l->options->for_device) {
            TND_TRY(pad_rows(l, conv, &tnd_net_value(l->net, node->inputs[0])->shape, &x));
        }
        merge_taps(conv);
    }
    TND_TRY(tnd_conv_find_offsets(l, conv));
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {x};
    TND_TRY(pack_weights(l, conv, by_channel, &tensors[1]));
    job->op = TND_NET_CONV;
    job->type = TANDEM_DTYPE_F32;
    job->shape = tnd_net_value(l->net, node->output)->shape;
    job->work.amount =
        (double)tnd_dims_values(&job->shape) * (double)conv->n_taps * (double)conv->run;
    job->more = conv;
    const struct tiles tiles = tiles_of(conv);
    job->work.n_items = by_channel ? (conv->n_pixels + tiles.pixels - 1) / tiles.pixels
                                   : tiles.n_blocks * tiles.block_items;
    job->work.run = by_channel ? run_depthwise : run_conv;
    const bool has_text = tensors[1] != NULL;
    int n_tensors = has_text ? 2 : 1;
    conv->epilogue = tnd_lower_take_epilogue(l, tensors, &n_tensors, conv->all_filters);
    TND_TRY(tnd_lower_emit(l, job, tensors, n_tensors, out));
    if (has_text) {
        tnd_conv_print_sums(l, conv, by_channel, *out);
    }
    return TANDEM_OK;
}
