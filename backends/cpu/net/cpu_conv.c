/* SPDX-License-Identifier: MIT
 * Convolutions by direct sums: a tile of output positions by a tile of filters, summed over the
 * taps of the window in registers; rows of channels are read in place. Also prepares input for them
 * and for matrix products: padded rows, rows of windows (columns). */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"

enum { ITEM_TILES = 8, FEW_PLACES = 8 /* of a tile of few filters */ };

/* Weights that stay in a core's cache over all positions, in values: then all blocks of a position
 * run together, and what they read and write is adjacent (an expansion of 16 to 96 channels,
 * 112x112: 0.57 instead of 0.76 ms). */
enum { CACHED_WEIGHTS = 65536 };

/* How positions and filters are divided: some tiles of positions by a block of panels. */
struct tiles {
    const struct tnd_conv_kernel *kernel;
    const struct tnd_strip_kernel *strip;
    int64_t pixels;       /* positions per tile; all tiles have about the same size */
    int64_t group_blocks; /* blocks of panels per group */
    int64_t n_blocks, block_items;
    bool by_place; /* all blocks of some positions in sequence, else all positions of a block */
};

static struct tiles tiles_of(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv)
{
    struct tiles tiles = {.kernel = &kernels->conv, .strip = kernels->strip};
    tiles.pixels = conv->is_few ? FEW_PLACES : tnd_conv_tile_pixels(tiles.kernel, conv->n_pixels);
    tiles.group_blocks =
        (tnd_conv_panels(conv->filters) + tiles.kernel->panels - 1) / tiles.kernel->panels;
    tiles.n_blocks = conv->all_filters / conv->filters * tiles.group_blocks;
    tiles.block_items =
        (conv->n_pixels + ITEM_TILES * tiles.pixels - 1) / (ITEM_TILES * tiles.pixels);
    tiles.by_place = conv->all_filters * conv->channels * conv->n_taps <= CACHED_WEIGHTS;
    return tiles;
}

/* A tile's filters, and buffers that all tiles of an item share. */
struct tile {
    int64_t group, panel; /* `panel`: the first one, within the group */
    int n_panels, n_filters;
    const float *rows[TND_CONV_MAX_TAPS * TND_CONV_PIXELS];
    float sums[TND_EPILOGUE_ROWS * TND_CONV_FILTERS];
};

/* Computes a tile of `n` positions, with its ending if there is one. */
static void sum_tile(const struct tnd_conv *conv, const struct tiles *tiles,
                     const tandem_tensor *node, struct tile *at, int64_t first, int n,
                     const struct tnd_conv_ending *ending, float *y)
{
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const int64_t panel_values =
        conv->n_taps * (conv->is_few ? tnd_conv_few_row(conv->run) : conv->run * TND_CONV_PANEL);
    const int64_t panel =
        at->group * (conv->is_few ? conv->filters : tnd_conv_panels(conv->filters)) + at->panel;
    tnd_conv_rows(conv, x, first, n, at->group * conv->channels, at->rows);
    const struct tnd_conv_tile tile = {.rows = at->rows,
                                       .n_taps = conv->n_taps,
                                       .run = conv->run,
                                       .w = conv->packed + panel * panel_values,
                                       .w_panel = panel_values,
                                       .n_filters = at->n_filters,
                                       .y = y,
                                       .ending = *ending};
    if (conv->is_few) {
        tiles->kernel->few(&tile, n);
    } else {
        tiles->kernel->run[at->n_panels - 1][n - 1](&tile);
    }
}

/* Computes some adjacent tiles, at most TND_EPILOGUE_ROWS positions, and runs the epilogue once. */
static void run_tiles(const struct tnd_conv *conv, const struct tiles *tiles,
                      const tandem_tensor *node, struct tile *at, int64_t first, int n)
{
    const int width = at->n_panels * TND_CONV_PANEL;
    struct tnd_fuse_tile part = {.row = first,
                                 .column = at->group * conv->filters + at->panel * TND_CONV_PANEL,
                                 .n_rows = n,
                                 .n_columns = at->n_filters,
                                 .values = at->sums,
                                 .stride = width};
    float *y = (float *)tandem_tensor_data(node) + part.column;
    struct tnd_conv_ending ending = {.codes = NULL};
    for (int i = 0; i < n; i += (int)tiles->pixels, part.row += tiles->pixels) {
        struct tnd_strip_operand operands[TND_FUSE_REGISTERS];
        if (!conv->is_few) {
            ending = tnd_epilogue_ending(tiles->kernel, conv->epilogue, node, &part,
                                         conv->all_filters, operands);
        }
        sum_tile(conv, tiles, node, at, first + i, (int)tnd_min(n - i, tiles->pixels), &ending,
                 ending.codes != NULL ? y + part.row * conv->all_filters : at->sums + i * width);
    }
    if (ending.codes == NULL) {
        part.row = first;
        tnd_epilogue_write(tiles->strip, conv->epilogue, node, &part, y + first * conv->all_filters,
                           conv->all_filters);
    }
}

static void run_conv(const struct tnd_cpu_kernels *kernels, const struct tnd_conv *conv,
                     const tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tiles tiles = tiles_of(kernels, conv);
    const int64_t at_once = TND_EPILOGUE_ROWS / tiles.pixels * tiles.pixels;
    struct tile tile;
    for (int64_t item = begin; item < end; item++) {
        const int64_t block = tiles.by_place ? item % tiles.n_blocks : item / tiles.block_items;
        const int64_t places = tiles.by_place ? item / tiles.n_blocks : item % tiles.block_items;
        const int64_t first = places * ITEM_TILES * tiles.pixels;
        const int64_t last = tnd_min(first + ITEM_TILES * tiles.pixels, conv->n_pixels);
        tile.group = block / tiles.group_blocks;
        tile.panel = block % tiles.group_blocks * tiles.kernel->panels;
        tile.n_panels =
            (int)tnd_min(tnd_conv_panels(conv->filters) - tile.panel, tiles.kernel->panels);
        tile.n_filters = (int)tnd_min(conv->filters - tile.panel * TND_CONV_PANEL,
                                      tile.n_panels * TND_CONV_PANEL);
        for (int64_t at = first; at < last; at += at_once) {
            run_tiles(conv, &tiles, node, &tile, at, (int)tnd_min(last - at, at_once));
        }
    }
}

int64_t tnd_cpu_items_conv(const struct tnd_cpu_kernels *kernels, const struct tnd_work *work)
{
    const struct tnd_conv *conv = work->of.conv;
    const struct tiles tiles = tiles_of(kernels, conv);
    return tnd_conv_is_depthwise(conv) ? tnd_cpu_depthwise_items(conv)
                                       : tiles.n_blocks * tiles.block_items;
}

enum tandem_status tnd_cpu_work_conv(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, int64_t begin, int64_t end)
{
    const struct tnd_conv *conv = node->params.work->of.conv;
    if (tnd_conv_is_depthwise(conv)) {
        tnd_cpu_depthwise(kernels, conv, node, begin, end);
    } else {
        run_conv(kernels, conv, node, begin, end);
    }
    return TANDEM_OK;
}

/* ---- preparing input ---- */

enum tandem_status tnd_cpu_work_pad_rows(const struct tnd_cpu_kernels *kernels,
                                         const struct tandem_tensor *node, int64_t begin,
                                         int64_t end)
{
    const struct tnd_work *work = node->params.work;
    (void)kernels;
    const struct tnd_work_rows *padded = work->of.rows;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *y = tandem_tensor_data(node);
    for (int64_t i = begin; i < end; i++) {
        float *to = y + i * padded->width;
        memset(to, 0, (size_t)padded->width * sizeof(float));
        memcpy(to + padded->front, x + i * padded->row, (size_t)padded->row * sizeof(float));
    }
    return TANDEM_OK;
}

/* Rows of windows: for each group all positions, for each of them the taps with their channels. */
enum tandem_status tnd_cpu_work_columns(const struct tnd_cpu_kernels *kernels,
                                        const struct tandem_tensor *node, int64_t begin,
                                        int64_t end)
{
    const struct tnd_work *work = node->params.work;
    (void)kernels;
    const struct tnd_conv *conv = work->of.conv;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const float *rows[TND_CONV_MAX_TAPS];
    const int64_t k = conv->n_taps * conv->channels;
    for (int64_t item = begin; item < end; item++) {
        const int64_t group = item / conv->n_pixels;
        float *to = (float *)tandem_tensor_data(node) + item * k;
        tnd_conv_rows(conv, x, item % conv->n_pixels, 1, group * conv->channels, rows);
        for (int64_t t = 0; t < conv->n_taps; t++, to += conv->channels) {
            memcpy(to, rows[t], (size_t)conv->channels * sizeof(float));
        }
    }
    return TANDEM_OK;
}
