/* SPDX-License-Identifier: MIT
 * Convolutions by Winograd's F(2x2, 3x3) (Lavin & Gray 2015, arXiv 1509.09308): 2 by 2 places of
 * the result come from 16 products instead of 36. One node transforms the input, tile by tile;
 * another one computes the products of some tiles with some filters and transforms them back in the
 * cache.
 *
 * How exact: let u be 2^-24, C the channels, x the largest value that a tile reads and w the
 * largest weight. Transforming adds two values twice (two roundings, 4 x at most), weights are
 * transformed in double precision and rounded once (9/4 w at most), a product sums C values, and
 * transforming back adds three values twice (four roundings, 9 sums). So the error is at most
 * (C + 7) u * 81 C x w to first order. Direct sums of 9 C products have 9 C u * 9 C x w: the bound
 * is 1 + 7 / C times theirs, 1.5 times at TND_WINOGRAD_CHANNELS. Tiles with a result that is not
 * finite are computed directly, so that infinities, NaN and overflow reach just the places that see
 * them. */
#include <string.h>

#include "graph/conv_winograd.h"
#include "graph/lower_conv.h"

enum { TAPS = 9, POSITIONS = 16, ITEM_STRIPS = 8, PAD = 16 };

/* Where the transformed tiles of a strip fit onto a stack and all weights into a cache of one core,
 * a worker transforms a strip for itself and goes through all filters: nothing goes through memory
 * and there is one node. */
enum { LOCAL_VALUES = 49152, LOCAL_WEIGHTS = 262144 };

/* More transformed values than that go through memory. */
enum { LARGE_VALUES = 2097152 };

struct winograd {
    struct tnd_conv conv;
    int64_t tiles[2], n_tiles;
    int64_t row;        /* from one transformed tile to the next, in values */
    int64_t step;       /* from one position of all tiles to the next */
    const float *plain; /* filters {M, C, 9} */
    bool is_local;
    int src; /* operand of the node with the products that is the input */
};

/* How tiles are handed out: strips of as many as a kernel takes as places, by a block of panels. */
struct strips {
    const struct tnd_conv_kernel *kernel;
    int64_t pixels, n_strips;
    int64_t n_blocks, block_items;
};

static struct strips strips_of(const struct winograd *w)
{
    struct strips strips = {.kernel = tnd_conv_kernel_best()};
    const int64_t most = tnd_conv_tile_pixels(strips.kernel, w->n_tiles);
    /* (an even number of strips, where there are several: 2 or 4 workers then take equal shares) */
    const int64_t n = (w->n_tiles + most - 1) / most;
    strips.pixels = n > 1 ? (w->n_tiles + n + n % 2 - 1) / (n + n % 2) : most;
    strips.n_strips = (w->n_tiles + strips.pixels - 1) / strips.pixels;
    strips.n_blocks =
        (tnd_conv_panels(w->conv.filters) + strips.kernel->panels - 1) / strips.kernel->panels;
    strips.block_items = (strips.n_strips + ITEM_STRIPS - 1) / ITEM_STRIPS;
    return strips;
}

static int64_t image_of(const struct winograd *w, int64_t tile, int64_t at[2])
{
    at[1] = tile % w->tiles[1] * 2;
    tile /= w->tiles[1];
    at[0] = tile % w->tiles[0] * 2;
    return tile / w->tiles[0];
}

/* ---- running ---- */

static void transform_tile(const struct winograd *w, const struct strips *strips, const float *x,
                           int64_t tile, float *out, int64_t step)
{
    const struct tnd_conv *conv = &w->conv;
    const float *rows[POSITIONS];
    int64_t at[2];
    const int64_t image = image_of(w, tile, at);
    for (int p = 0; p < POSITIONS; p++) {
        const int64_t i = at[0] - conv->begin[0] + p / 4;
        const int64_t j = at[1] - conv->begin[1] + p % 4;
        const bool is_inside = i >= 0 && i < conv->in[0] && j >= 0 && j < conv->in[1];
        rows[p] = is_inside ? x + ((image * conv->in[0] + i) * conv->in[1] + j) * conv->channels
                            : conv->zeros;
    }
    strips->kernel->winograd_in(rows, conv->channels, out, step);
}

static enum tandem_status run_in(const struct tnd_work *work, const tandem_tensor *node,
                                 int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const struct winograd *w = job->more;
    const struct strips strips = strips_of(w);
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    for (int64_t tile = begin; tile < end; tile++) {
        transform_tile(w, &strips, x, tile, (float *)tandem_tensor_data(node) + tile * w->row,
                       w->step);
    }
    return TANDEM_OK;
}

/* Filters `first` to `first + n - 1` of one place by sums over the window. */
static void compute_directly(const struct winograd *w, const float *x, int64_t pixel, int64_t first,
                             int64_t n, float *out)
{
    const float *rows[TAPS];
    const int64_t channels = w->conv.channels;
    tnd_conv_rows(&w->conv, x, pixel, 1, 0, rows);
    for (int64_t f = 0; f < n; f++) {
        const float *weights = w->plain + (first + f) * channels * TAPS;
        float sum = 0;
        for (int t = 0; t < TAPS; t++) {
            for (int64_t c = 0; c < channels; c++) {
                sum += rows[t][c] * weights[c * TAPS + t];
            }
        }
        out[f] = sum;
    }
}

/* Results of a strip: two lines of places, two of each line by tile. */
struct strip {
    int64_t first, filter;
    int n, n_panels;   /* tiles */
    int64_t n_filters; /* that there are, of the panels */
    int width;         /* of the panels */
    int64_t line;      /* from one line of places to the next */
    float values[2 * 2 * TND_CONV_PIXELS * TND_CONV_FILTERS];
};

/* Sums directly what came out of tile `m` of a strip as a number that is not finite. */
static void mend_tile(const struct winograd *w, const tandem_tensor *node, struct strip *strip,
                      int m)
{
    const struct tnd_conv *conv = &w->conv;
    const float *x = tandem_tensor_data(tandem_tensor_src(node, w->src));
    int64_t at[2];
    const int64_t image = image_of(w, strip->first + m, at);
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

/* Tiles `m` to `m + n - 1`, which lie side by side, as far as they are in the result. */
static void write_tiles(const struct winograd *w, const tandem_tensor *node, struct strip *strip,
                        int m, int n)
{
    const struct tnd_conv *conv = &w->conv;
    float *y = tandem_tensor_data(node);
    int64_t at[2];
    const int64_t image = image_of(w, strip->first + m, at);
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
        tnd_epilogue_write(conv->epilogue, node, &part, y + pixel * conv->filters + part.column,
                           conv->filters);
    }
}

/* `v`: the strip's transformed tiles, `step` from one position to the next. */
static void multiply(const struct winograd *w, const struct tnd_conv_kernel *kernel, const float *v,
                     int64_t step, const struct strip *strip, float *sums)
{
    const float *rows[TND_CONV_PIXELS];
    const struct tnd_conv *conv = &w->conv;
    const int64_t panel = conv->channels * TND_CONV_PANEL; /* of a position */
    for (int p = 0; p < POSITIONS; p++) {
        for (int m = 0; m < strip->n; m++) {
            rows[m] = v + p * step + m * w->row;
        }
        const struct tnd_conv_tile tile = {
            .rows = rows,
            .n_taps = 1,
            .run = conv->channels,
            .w = conv->packed + (strip->filter / TND_CONV_PANEL * POSITIONS + p) * panel,
            .w_panel = POSITIONS * panel,
            .y = sums + p * strip->n * strip->width};
        kernel->run[strip->n_panels - 1][strip->n - 1](&tile);
    }
}

static void run_strip(const struct winograd *w, const struct strips *strips,
                      const tandem_tensor *node, const float *v, int64_t step, int64_t block,
                      int64_t at)
{
    float sums[POSITIONS * TND_CONV_PIXELS * TND_CONV_FILTERS];
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
        write_tiles(w, node, &strip, m, n);
        m += n;
    }
}

static enum tandem_status run_products(const struct tnd_work *work, const tandem_tensor *node,
                                       int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const struct winograd *w = job->more;
    const struct strips strips = strips_of(w);
    const float *v = tandem_tensor_data(tandem_tensor_src(node, 0));
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % strips.block_items * ITEM_STRIPS;
        for (int64_t s = first; s < first + ITEM_STRIPS && s < strips.n_strips; s++) {
            run_strip(w, &strips, node, v + s * strips.pixels * w->row, w->step,
                      item / strips.block_items, s);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status run_locally(const struct tnd_work *work, const tandem_tensor *node,
                                      int64_t begin, int64_t end)
{
    const struct tnd_job *job = (const struct tnd_job *)work;
    const struct winograd *w = job->more;
    const struct strips strips = strips_of(w);
    const float *x = tandem_tensor_data(tandem_tensor_src(node, 0));
    const int64_t pixels = strips.pixels;
    const int64_t step = pixels * w->row;
    float v[LOCAL_VALUES];
    for (int64_t strip = begin; strip < end; strip++) {
        for (int64_t m = 0; m < pixels && strip * pixels + m < w->n_tiles; m++) {
            transform_tile(w, &strips, x, strip * pixels + m, v + m * w->row, step);
        }
        for (int64_t block = 0; block < strips.n_blocks; block++) {
            run_strip(w, &strips, node, v, step, block, strip);
        }
    }
    return TANDEM_OK;
}

/* ---- weights ---- */

/* G g G' of one filter and channel; G: 1 0 0, 1/2 1/2 1/2, 1/2 -1/2 1/2, 0 0 1. */
static void transform_weights(const float *g, double out[POSITIONS])
{
    double t[4][3];
    for (int j = 0; j < 3; j++) {
        const double a = g[j];
        const double b = g[3 + j];
        const double c = g[6 + j];
        t[0][j] = a;
        t[1][j] = (a + b + c) / 2;
        t[2][j] = (a - b + c) / 2;
        t[3][j] = c;
    }
    for (int i = 0; i < 4; i++) {
        out[4 * i] = t[i][0];
        out[4 * i + 1] = (t[i][0] + t[i][1] + t[i][2]) / 2;
        out[4 * i + 2] = (t[i][0] - t[i][1] + t[i][2]) / 2;
        out[4 * i + 3] = t[i][2];
    }
}

/* By panel of filters, position and channel: one value for each filter of the panel. */
static void pack(const struct tnd_conv *conv, const float *plain, float *out)
{
    const int width = TND_CONV_PANEL;
    for (int64_t f = 0; f < conv->filters; f++) {
        float *panel = out + f / width * POSITIONS * conv->channels * width + f % width;
        for (int64_t c = 0; c < conv->channels; c++) {
            double u[POSITIONS];
            transform_weights(plain + (f * conv->channels + c) * TAPS, u);
            for (int p = 0; p < POSITIONS; p++) {
                panel[(p * conv->channels + c) * width] = (float)u[p];
            }
        }
    }
}

static enum tandem_status prepare(struct tnd_lowering *l, struct winograd *w)
{
    const struct tnd_view view = tnd_lower_known(l, w->conv.weights);
    const void *plain;
    struct tnd_conv *conv = &w->conv;
    const struct tnd_dims packed = {
        1, {tnd_conv_panels(conv->filters) * TND_CONV_PANEL * POSITIONS * conv->channels}};
    const struct tnd_dims zeros = {1, {conv->channels}};
    const int64_t how[] = {TND_CONV_WINOGRAD};
    bool is_new;
    struct tnd_array *array = tnd_lower_shared(l, conv->weights, &view, TANDEM_DTYPE_F32, &packed,
                                               how, sizeof(how), &is_new);
    struct tnd_array *nothing = array == NULL ? NULL : tnd_lower_array(l, TANDEM_DTYPE_F32, &zeros);
    if (nothing == NULL) {
        return tnd_lower_no_memory(l);
    }
    TND_TRY(tnd_lower_keep(l, conv->weights, &view, &plain));
    if (is_new) {
        pack(conv, plain, array->data);
        tnd_lower_packed(array);
    }
    conv->packed = array->data;
    conv->zeros = nothing->data;
    w->plain = plain;
    return TANDEM_OK;
}

/* ---- lowering ---- */

bool tnd_conv_may_winograd(const struct tnd_conv *conv)
{
    bool may = conv->n == 2 && conv->channels == conv->all_channels &&
               conv->channels >= TND_WINOGRAD_CHANNELS;
    for (int i = 0; i < conv->n; i++) {
        may = may && conv->taps[i] == 3 && conv->stride[i] == 1 && conv->dilation[i] == 1;
    }
    return may;
}

static void describe(struct winograd *w, const struct tnd_conv *conv)
{
    const int64_t filters = tnd_conv_panels(conv->filters) * TND_CONV_PANEL;
    w->conv = *conv;
    w->tiles[0] = (conv->out[0] + 1) / 2;
    w->tiles[1] = (conv->out[1] + 1) / 2;
    w->n_tiles = conv->n_pixels / (conv->out[0] * conv->out[1]) * w->tiles[0] * w->tiles[1];
    /* (one line of the cache more than it takes, or all tiles would lie in the same few sets; so
     * would all positions, but for an odd number of lines) */
    w->row = (conv->channels + TND_WINOGRAD_IN - 1) / TND_WINOGRAD_IN * TND_WINOGRAD_IN + PAD;
    w->step = w->n_tiles * w->row / PAD % 2 == 0 ? w->n_tiles * w->row + PAD : w->n_tiles * w->row;
    w->is_local = POSITIONS * TND_CONV_PIXELS * w->row <= LOCAL_VALUES &&
                  POSITIONS * conv->channels * filters <= LOCAL_WEIGHTS;
    w->src = w->is_local ? 0 : 1;
}

/* The node that transforms the input. */
static enum tandem_status emit_in(struct tnd_lowering *l, const struct winograd *w,
                                  tandem_tensor *x, tandem_tensor **out)
{
    struct tnd_job *job = tnd_lower_job(l, 0);
    if (job == NULL) {
        return tnd_lower_no_memory(l);
    }
    job->op = TND_NET_CONV;
    job->type = TANDEM_DTYPE_F32;
    job->shape = (struct tnd_dims){2, {POSITIONS, w->step}};
    job->row = TANDEM_OP_MOVE;
    job->more = w;
    job->work.n_items = w->n_tiles;
    job->work.run = run_in;
    return tnd_lower_emit(l, job, &x, 1, out);
}

double tnd_conv_winograd_gain(const struct tnd_conv *conv)
{
    struct winograd w;
    if (!tnd_conv_may_winograd(conv)) {
        return 0;
    }
    describe(&w, conv);
    const bool is_large = POSITIONS * w.step > LARGE_VALUES;
    return !w.is_local && is_large
               ? 0
               : (double)(TAPS * conv->n_pixels) / (double)(POSITIONS * w.n_tiles);
}

enum tandem_status tnd_lower_conv_winograd(struct tnd_lowering *l, const struct tnd_conv *conv,
                                           tandem_tensor *x, tandem_tensor **out)
{
    struct winograd *w = tnd_arena_alloc(&l->out->arena, sizeof(*w), _Alignof(struct winograd));
    struct tnd_job *job = tnd_lower_job(l, 0);
    tandem_tensor *tensors[TANDEM_MAX_SRC] = {x, x};
    if (w == NULL || job == NULL) {
        return tnd_lower_no_memory(l);
    }
    describe(w, conv);
    int n_tensors = w->src + 1;
    TND_TRY(prepare(l, w));
    if (!w->is_local) {
        TND_TRY(emit_in(l, w, x, &tensors[0]));
    }
    job->op = TND_NET_CONV;
    job->type = TANDEM_DTYPE_F32;
    job->shape = (struct tnd_dims){2, {conv->n_pixels, conv->filters}};
    job->work.amount =
        (double)POSITIONS * (double)w->n_tiles * (double)conv->channels * (double)conv->filters;
    job->more = w;
    const struct strips strips = strips_of(w);
    job->work.n_items = w->is_local ? strips.n_strips : strips.n_blocks * strips.block_items;
    job->work.run = w->is_local ? run_locally : run_products;
    w->conv.epilogue = tnd_lower_take_epilogue(l, tensors, &n_tensors, conv->all_filters);
    return tnd_lower_emit(l, job, tensors, n_tensors, out);
}
