/* SPDX-License-Identifier: MIT
 * Winograd's F(2x2, 3x3): input tiles are transformed, each tile position is computed like a 1x1
 * convolution, and results are transformed back while in the cache (accuracy:
 * graph/lower_winograd.c). */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"

enum { ITEM_STRIPS = 8 };

/* How tiles are divided: strips of as many tiles as a kernel takes positions, by a block of
 * panels. */
struct strips {
    const struct tnd_conv_kernel *kernel;
    const struct tnd_strip_kernel *strip;
    int64_t pixels, n_strips;
    int64_t n_blocks, block_items;
};

static struct strips strips_of(const struct tnd_cpu_kernels *kernels, const struct tnd_winograd *w)
{
    struct strips strips = {.kernel = &kernels->conv, .strip = kernels->strip};
    const int64_t most = tnd_conv_tile_pixels(strips.kernel, w->n_tiles);
    /* an even number of strips, if there are several, so that 2 or 4 workers get equal shares */
    const int64_t n = (w->n_tiles + most - 1) / most;
    strips.pixels = n > 1 ? (w->n_tiles + n + n % 2 - 1) / (n + n % 2) : most;
    strips.n_strips = (w->n_tiles + strips.pixels - 1) / strips.pixels;
    strips.n_blocks =
        (tnd_conv_panels(w->conv.filters) + strips.kernel->panels - 1) / strips.kernel->panels;
    strips.block_items = (strips.n_strips + ITEM_STRIPS - 1) / ITEM_STRIPS;
    return strips;
}

/* ---- running ---- */

static void transform_tile(const struct tnd_winograd *w, const struct strips *strips,
                           const float *x, int64_t tile, float *out, int64_t step)
{
    const struct tnd_conv *conv = &w->conv;
    const float *rows[TND_WINOGRAD_PLACES];
    int64_t at[2];
    const int64_t image = tnd_winograd_place(w, tile, at);
    for (int p = 0; p < TND_WINOGRAD_PLACES; p++) {
        const int64_t i = at[0] - conv->begin[0] + p / 4;
        const int64_t j = at[1] - conv->begin[1] + p % 4;
        const bool is_inside = i >= 0 && i < conv->in[0] && j >= 0 && j < conv->in[1];
        rows[p] = is_inside ? x + ((image * conv->in[0] + i) * conv->in[1] + j) * conv->channels
                            : conv->zeros;
    }
    strips->kernel->winograd_in(rows, conv->channels, out, step);
}

enum tandem_status tnd_cpu_work_winograd_in(const struct tnd_cpu_kernels *kernels,
                                            const struct tandem_tensor *node, int64_t begin,
                                            int64_t end)
{
    const struct tnd_work *work = node->params.work;
    const struct tnd_winograd *w = work->of.winograd;
    const struct strips strips = strips_of(kernels, w);
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    for (int64_t tile = begin; tile < end; tile++) {
        transform_tile(w, &strips, x, tile, (float *)tandem_tensor_data(node) + tile * w->row,
                       w->step);
    }
    return TANDEM_OK;
}

/* Computes filters `first` to `first + n - 1` of one output position by direct sums. */
static void compute_directly(const struct tnd_winograd *w, const float *x, int64_t pixel,
                             int64_t first, int64_t n, float *out)
{
    const float *rows[TND_WINOGRAD_TAPS];
    const int64_t channels = w->conv.channels;
    tnd_conv_rows(&w->conv, x, pixel, 1, 0, rows);
    for (int64_t f = 0; f < n; f++) {
        const float *weights = w->plain + (first + f) * channels * TND_WINOGRAD_TAPS;
        float sum = 0;
        for (int t = 0; t < TND_WINOGRAD_TAPS; t++) {
            for (int64_t c = 0; c < channels; c++) {
                sum += rows[t][c] * weights[c * TND_WINOGRAD_TAPS + t];
            }
        }
        out[f] = sum;
    }
}

/* Results of a strip: two output lines, in each of them two positions per tile. */
struct strip {
    int64_t first, filter;
    int n, n_panels;   /* tiles */
    int64_t n_filters; /* existing ones, among those of the panels */
    int width;         /* filters of all panels */
    int64_t line;      /* stride between output lines */
    float values[2 * 2 * TND_CONV_PIXELS * TND_CONV_FILTERS];
};

/* Recomputes tile `m` of a strip by direct sums, after a result was not finite. */
static void mend_tile(const struct tnd_winograd *w, const tandem_tensor *node, struct strip *strip,
                      int m)
{
    const struct tnd_conv *conv = &w->conv;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, w->src));
    int64_t at[2];
    const int64_t image = tnd_winograd_place(w, strip->first + m, at);
    for (int i = 0; i < 4; i++) {
        const int64_t line = at[0] + i / 2;
        const int64_t column = at[1] + i % 2;
        if (line < conv->out[0] && column < conv->out[1]) {
            compute_directly(w, x, (image * conv->out[0] + line) * conv->out[1] + column,
                             strip->filter, strip->n_filters,
                             strip->values + i / 2 * strip->line + (2 * m + i % 2) * strip->width);
        }
    }
}

/* Stores adjacent tiles `m` to `m + n - 1`, as far as they are inside the result. */
static void write_tiles(const struct tnd_winograd *w, const struct strips *strips,
                        const tandem_tensor *node, struct strip *strip, int m, int n)
{
    const struct tnd_conv *conv = &w->conv;
    float *y = tandem_tensor_data(node);
    int64_t at[2];
    const int64_t image = tnd_winograd_place(w, strip->first + m, at);
    const int64_t n_places = 2 * n < conv->out[1] - at[1] ? 2 * n : conv->out[1] - at[1];
    for (int i = 0; i < 2 && at[0] + i < conv->out[0]; i++) {
        const int64_t pixel = (image * conv->out[0] + at[0] + i) * conv->out[1] + at[1];
        const struct tnd_fuse_tile part = {.row = pixel,
                                           .column = strip->filter,
                                           .n_rows = (int)n_places,
                                           .n_columns = (int)strip->n_filters,
                                           .values = strip->values + i * strip->line +
                                                     2 * m * strip->width,
                                           .stride = strip->width};
        tnd_epilogue_write(strips->strip, conv->epilogue, node, &part,
                           y + pixel * conv->filters + part.column, conv->filters);
    }
}

/* `v`: the strip's transformed tiles; `step`: stride between tile positions. */
static void multiply(const struct tnd_winograd *w, const struct tnd_conv_kernel *kernel,
                     const float *v, int64_t step, const struct strip *strip, float *sums)
{
    const float *rows[TND_CONV_PIXELS];
    const struct tnd_conv *conv = &w->conv;
    const int64_t panel = conv->channels * TND_CONV_PANEL; /* per tile position */
    for (int p = 0; p < TND_WINOGRAD_PLACES; p++) {
        for (int m = 0; m < strip->n; m++) {
            rows[m] = v + p * step + m * w->row;
        }
        const struct tnd_conv_tile tile = {
            .rows = rows,
            .n_taps = 1,
            .run = conv->channels,
            .w = conv->packed + (strip->filter / TND_CONV_PANEL * TND_WINOGRAD_PLACES + p) * panel,
            .w_panel = TND_WINOGRAD_PLACES * panel,
            .n_filters = strip->width, /* (all of them are transformed back) */
            .y = sums + p * strip->n * strip->width};
        kernel->run[strip->n_panels - 1][strip->n - 1](&tile);
    }
}

static void run_strip(const struct tnd_winograd *w, const struct strips *strips,
                      const tandem_tensor *node, const float *v, int64_t step, int64_t block,
                      int64_t at)
{
    float sums[TND_WINOGRAD_PLACES * TND_CONV_PIXELS * TND_CONV_FILTERS];
    struct strip strip;
    strip.first = at * strips->pixels;
    strip.filter = block * strips->kernel->panels * TND_CONV_PANEL;
    const int64_t left = w->n_tiles - strip.first;
    const int64_t filters = w->conv.filters - strip.filter;
    const int64_t panels = tnd_conv_panels(filters);
    strip.n = (int)(left < strips->pixels ? left : strips->pixels);
    strip.n_panels = (int)(panels < strips->kernel->panels ? panels : strips->kernel->panels);
    strip.width = strip.n_panels * TND_CONV_PANEL;
    strip.line = 2 * strip.n * strip.width;
    strip.n_filters = filters < strip.width ? filters : strip.width;
    multiply(w, strips->kernel, v, step, &strip, sums);
    for (int m = 0; m < strip.n; m++) {
        if (strips->kernel->winograd_out(sums + m * strip.width, strip.n * strip.width, strip.width,
                                         strip.values + 2 * m * strip.width, strip.line) == 0) {
            mend_tile(w, node, &strip, m);
        }
    }
    for (int m = 0; m < strip.n;) {
        const int64_t left_in_line = w->tiles[1] - (strip.first + m) % w->tiles[1];
        const int n = left_in_line < strip.n - m ? (int)left_in_line : strip.n - m;
        write_tiles(w, strips, node, &strip, m, n);
        m += n;
    }
}

static void run_products(const struct tnd_winograd *w, const struct strips *strips,
                         const tandem_tensor *node, int64_t begin, int64_t end)
{
    const float *v = tandem_tensor_data(tandem_tensor_src(node, 0));
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % strips->block_items * ITEM_STRIPS;
        for (int64_t s = first; s < first + ITEM_STRIPS && s < strips->n_strips; s++) {
            run_strip(w, strips, node, v + s * strips->pixels * w->row, w->step,
                      item / strips->block_items, s);
        }
    }
}

static void run_locally(const struct tnd_winograd *w, const struct strips *strips,
                        const tandem_tensor *node, int64_t begin, int64_t end)
{
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const int64_t pixels = strips->pixels;
    const int64_t step = pixels * w->row;
    float v[TND_WINOGRAD_LOCAL];
    for (int64_t strip = begin; strip < end; strip++) {
        for (int64_t m = 0; m < pixels && strip * pixels + m < w->n_tiles; m++) {
            transform_tile(w, strips, x, strip * pixels + m, v + m * w->row, step);
        }
        for (int64_t block = 0; block < strips->n_blocks; block++) {
            run_strip(w, strips, node, v, step, block, strip);
        }
    }
}

int64_t tnd_cpu_items_winograd(const struct tnd_cpu_kernels *kernels, const struct tnd_work *work)
{
    const struct strips strips = strips_of(kernels, work->of.winograd);
    return work->of.winograd->is_local ? strips.n_strips : strips.n_blocks * strips.block_items;
}

enum tandem_status tnd_cpu_work_winograd(const struct tnd_cpu_kernels *kernels,
                                         const struct tandem_tensor *node, int64_t begin,
                                         int64_t end)
{
    const struct tnd_winograd *w = node->params.work->of.winograd;
    const struct strips strips = strips_of(kernels, w);
    if (w->is_local) {
        run_locally(w, &strips, node, begin, end);
    } else {
        run_products(w, &strips, node, begin, end);
    }
    return TANDEM_OK;
}
