/* SPDX-License-Identifier: MIT
 * Depthwise convolutions (one filter per channel), channels last: parts of lines whose windows
 * share loaded values, or single positions if the window is dilated or has another size. */
#include "backends/cpu/net/cpu_net.h"

enum { FEW_PLACES = 192 /* positions that need smaller items for several threads */ };

/* How positions are divided: lines into parts of about equal size, some parts per item. */
struct parts {
    int64_t places, in_line; /* of a part; parts per line */
    int64_t in_item, n;      /* parts per item; parts of all lines */
};

static bool has_lines(const struct tnd_conv *conv)
{
    const int last = conv->n - 1;
    const int64_t taps = conv->taps[last];
    return (taps == 3 || taps == 5 || taps == 7) && conv->stride[last] <= 2 &&
           conv->dilation[last] == 1 && conv->out[last] > TND_CONV_LINE_PLACES / 2 &&
           conv->n_taps / taps <= TND_CONV_MAX_LINES;
}

static struct parts parts_of(const struct tnd_conv *conv)
{
    const int64_t line = conv->out[conv->n - 1];
    struct parts parts = {.in_line = (line + TND_CONV_LINE_PLACES - 1) / TND_CONV_LINE_PLACES};
    parts.places = (line + parts.in_line - 1) / parts.in_line;
    parts.in_line = (line + parts.places - 1) / parts.places;
    parts.in_item = conv->n_pixels < FEW_PLACES ? 1 : TND_EPILOGUE_ROWS / parts.places;
    parts.n = conv->n_pixels / line * parts.in_line;
    return parts;
}

/* The positions of a part. */
struct part {
    int64_t pixel;
    int n_places;
};

static struct part part_of(const struct tnd_conv *conv, const struct parts *parts, int64_t i)
{
    const int64_t line = conv->out[conv->n - 1];
    const int64_t first = i % parts->in_line * parts->places;
    return (struct part){.pixel = i / parts->in_line * line + first,
                         .n_places = (int)tnd_min(parts->places, line - first)};
}

/* Writes a tile through the epilogue to the result. */
static void write_tile(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv,
                       const tandem_tensor *node, const struct tnd_fuse_tile *tile)
{
    tnd_epilogue_write(kernels->strip, conv->epilogue, node, tile,
                       (float *)tandem_tensor_data(node) + tile->row * conv->all_channels +
                           tile->column,
                       conv->all_channels);
}

/* Computes the parts of an item, a block of channels at a time, and runs their epilogue once. */
static void run_lines(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv,
                      const tandem_tensor *node, const struct parts *parts, int64_t item)
{
    enum { COLUMNS = TND_CONV_MAX_LINES * TND_CONV_LINE_COLUMNS };
    const struct tnd_conv_kernel *kernel = &kernels->conv;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *y = tandem_tensor_data(node);
    const float *columns[TND_EPILOGUE_ROWS / 2][COLUMNS];
    float sums[(TND_EPILOGUE_ROWS + TND_CONV_LINE_PLACES) * TND_CONV_FILTERS];
    const int last = conv->n - 1;
    const int width = kernel->channels;
    const int n = (int)tnd_min(parts->in_item, parts->n - item * parts->in_item);
    struct part part[TND_EPILOGUE_ROWS / 2];
    struct tnd_conv_lines lines = {.n_lines = (int)(conv->n_taps / conv->taps[last]),
                                   .taps = (int)conv->taps[last],
                                   .stride = (int)conv->stride[last],
                                   .w_panel = conv->n_taps * TND_CONV_PANEL};
    struct tnd_fuse_tile tile = {.values = sums, .stride = width};
    for (int i = 0; i < n; i++) {
        part[i] = part_of(conv, parts, item * parts->in_item + i);
        tile.n_rows += part[i].n_places;
        tnd_conv_columns(conv, x, part[i].pixel, columns[i]);
    }
    for (lines.channel = 0; lines.channel < conv->all_channels; lines.channel += width) {
        lines.n_channels = (int)tnd_min(conv->all_channels - lines.channel, width);
        lines.w = conv->packed + lines.channel / TND_CONV_PANEL * lines.w_panel +
                  lines.channel % TND_CONV_PANEL;
        tile.column = lines.channel;
        tile.n_columns = lines.n_channels;
        lines.y = sums;
        for (int i = 0; i < n; i++) { /* (the next one overwrites what a short part has too much) */
            struct tnd_strip_operand operands[TND_FUSE_REGISTERS];
            tile.row = part[i].pixel;
            lines.ending = tnd_epilogue_ending(kernel, conv->epilogue, node, &tile,
                                               conv->all_channels, operands);
            if (lines.ending.codes != NULL) {
                lines.y = y + tile.row * conv->all_channels + tile.column;
            }
            lines.columns = columns[i];
            lines.n_places = part[i].n_places;
            kernel->lines(&lines);
            lines.y += part[i].n_places * width;
        }
        if (lines.ending.codes == NULL) {
            tile.row = part[0].pixel;
            write_tile(kernels, conv, node, &tile);
        }
    }
}

/* Positions at a time if windows share nothing; fewer if there would be few items. */
static int64_t depth_pixels(const struct tnd_conv *conv)
{
    return conv->n_pixels < FEW_PLACES ? 4 : 12;
}

/* Computes some positions, a block of channels at a time. */
static void run_places(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv,
                       const tandem_tensor *node, int64_t item)
{
    const struct tnd_conv_kernel *kernel = &kernels->conv;
    const int64_t pixels = depth_pixels(conv);
    const int64_t pixel = item * pixels;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const float *rows[TND_CONV_MAX_TAPS * TND_CONV_PIXELS];
    float sums[TND_CONV_PIXELS * TND_CONV_FILTERS];
    const int width = kernel->channels;
    struct tnd_conv_depth depth = {.rows = rows,
                                   .n_taps = conv->n_taps,
                                   .n_places = (int)tnd_min(conv->n_pixels - pixel, pixels),
                                   .w_panel = conv->n_taps * TND_CONV_PANEL,
                                   .y = sums};
    tnd_conv_rows(conv, x, pixel, depth.n_places, 0, rows);
    for (depth.channel = 0; depth.channel < conv->all_channels; depth.channel += width) {
        depth.w = conv->packed + depth.channel / TND_CONV_PANEL * depth.w_panel +
                  depth.channel % TND_CONV_PANEL;
        depth.n_channels = (int)tnd_min(conv->all_channels - depth.channel, width);
        kernel->depth(&depth);
        const struct tnd_fuse_tile tile = {.row = pixel,
                                           .column = depth.channel,
                                           .n_rows = depth.n_places,
                                           .n_columns = depth.n_channels,
                                           .values = sums,
                                           .stride = width};
        write_tile(kernels, conv, node, &tile);
    }
}

int64_t tnd_cpu_depthwise_items(const struct tnd_conv *conv)
{
    const struct parts parts = parts_of(conv);
    const int64_t depth = depth_pixels(conv);
    return has_lines(conv) ? (parts.n + parts.in_item - 1) / parts.in_item
                           : (conv->n_pixels + depth - 1) / depth;
}

void tnd_cpu_depthwise(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv,
                       const tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct parts parts = parts_of(conv);
    for (int64_t item = begin; item < end; item++) {
        if (has_lines(conv)) {
            run_lines(kernels, conv, node, &parts, item);
        } else {
            run_places(kernels, conv, node, item);
        }
    }
}
