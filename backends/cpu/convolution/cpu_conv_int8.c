/* SPDX-License-Identifier: MIT
 * Convolutions and products of 8-bit integers: for a block of positions at a time, the values under
 * each window are gathered as rows of unsigned bytes; then tiles of rows are multiplied by panels
 * of filters. Rows of a product are read in place. */
#include <string.h>

#include "backends/cpu/convolution/cpu_int8_tiles.h"
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"

/* Positions whose rows are gathered at a time: with 4,608 values each they fit into L2. */
enum { BLOCK_ROWS = 64, MOST_PIECES = 1024 };

struct run {
    const struct tnd_int8_kernels *kernels;
    const struct tandem_tensor *node;
    const struct tnd_conv_int8 *conv;
    const struct tnd_int8_filter *filters;
    const uint8_t *x;
    int32_t zero_x; /* for unsigned bytes */
    uint8_t flip;   /* XOR that makes bytes unsigned */
    int64_t k, row; /* values per sum; bytes per gathered row */
    int64_t places, group_channels, group_filters, group_panels;
    int64_t block_rows;
    uint8_t *rows; /* in the worker's scratch memory: block_rows, as many as tiles need */
    struct tnd_int8_parameters parameters; /* also there, by padded filter */
    bool in_place;                         /* rows of x are read in place */
    /* Runs of bytes under a window that lies inside x, relative to its first position. Adjacent
     * taps are merged; 0: there are too many runs. */
    int64_t n_pieces, piece;
    int64_t pieces[MOST_PIECES];
};

/* (of depthwise windows: one position in the padding) */
static int64_t row_bytes(const struct tnd_conv_int8 *conv)
{
    return tnd_int8_up(
        tnd_max(BLOCK_ROWS * tnd_int8_up(tnd_int8_k(conv), TND_INT8_STEP), conv->channels),
        TND_INT8_STEP);
}

size_t tnd_cpu_conv_int8_scratch(const struct tandem_tensor *node)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    return (size_t)(row_bytes(conv) + tnd_int8_padded_filters(conv) * TND_INT8_PARAMETERS * 4);
}

/* ---- rows ---- */

static void find_pieces(struct run *run)
{
    const struct tnd_conv_int8 *conv = run->conv;
    const int last = conv->n - 1;
    const bool is_line = conv->n > 0 && conv->dilation[last] == 1 && conv->groups == 1;
    const int64_t line = is_line ? conv->taps[last] : 1;
    int64_t tap[TND_INT8_WINDOW] = {0};
    run->piece = line * run->group_channels;
    run->n_pieces = run->k / run->piece <= MOST_PIECES ? run->k / run->piece : 0;
    for (int64_t i = 0; i < run->n_pieces; i++) {
        int64_t place = 0;
        for (int d = 0; d < conv->n; d++) {
            place = place * conv->in[d] + tap[d] * conv->dilation[d];
        }
        run->pieces[i] = place * conv->channels;
        if (last >= 0) {
            tap[last] += line;
        }
        for (int d = last; d > 0 && tap[d] >= conv->taps[d]; d--) {
            tap[d] = 0;
            tap[d - 1]++;
        }
    }
}

/* An output position, with the start of its window. */
struct place {
    int64_t image;
    int64_t start[TND_INT8_WINDOW];
};

static struct place place_of(const struct tnd_conv_int8 *conv, int64_t at)
{
    struct place place = {.image = 0};
    for (int i = conv->n - 1; i >= 0; i--) {
        place.start[i] = at % conv->out[i] * conv->stride[i] - conv->begin[i];
        at /= conv->out[i];
    }
    place.image = at;
    return place;
}

static void next_place(const struct tnd_conv_int8 *conv, struct place *place)
{
    for (int i = conv->n - 1; i >= 0; i--) {
        place->start[i] += conv->stride[i];
        if (place->start[i] < conv->out[i] * conv->stride[i] - conv->begin[i]) {
            return;
        }
        place->start[i] = -conv->begin[i];
    }
    place->image++;
}

/* Address of the values under a window; NULL: part of it is in the padding, or there are too many
 * runs. */
static const uint8_t *whole_window(const struct run *run, const struct place *place)
{
    const struct tnd_conv_int8 *conv = run->conv;
    int64_t at = place->image;
    for (int i = 0; i < conv->n; i++) {
        const int64_t reach = (conv->taps[i] - 1) * conv->dilation[i];
        if (place->start[i] < 0 || place->start[i] + reach >= conv->in[i]) {
            return NULL;
        }
        at = at * conv->in[i] + place->start[i];
    }
    return run->n_pieces > 0 ? run->x + at * conv->channels : NULL;
}

/* Index of the position of x that a window sees at a tap; -1: in the padding. */
static int64_t seen(const struct tnd_conv_int8 *conv, const struct place *place, const int64_t *tap)
{
    int64_t at = place->image;
    for (int i = 0; i < conv->n; i++) {
        const int64_t x = place->start[i] + tap[i] * conv->dilation[i];
        if (x < 0 || x >= conv->in[i]) {
            return -1;
        }
        at = at * conv->in[i] + x;
    }
    return at;
}

/* Gathers what a window at an edge sees of a group, tap by tap. */
static void bring_edge(const struct run *run, const struct place *place, int64_t first_channel,
                       uint8_t *to)
{
    const struct tnd_conv_int8 *conv = run->conv;
    const size_t n = (size_t)run->group_channels;
    int64_t tap[TND_INT8_WINDOW] = {0};
    for (const uint8_t *end = to + run->k; to < end; to += n) {
        const int64_t from = seen(conv, place, tap);
        if (from >= 0) {
            memcpy(to, run->x + from * conv->channels + first_channel, n);
        } else {
            memset(to, (uint8_t)(run->zero_x ^ run->flip), n);
        }
        for (int i = conv->n - 1; i >= 0 && ++tap[i] == conv->taps[i]; i--) {
            tap[i] = 0;
        }
    }
}

/* Inline, because for few bytes a call takes longer. The two halves may overlap. */
static inline void copy_piece(uint8_t *to, const uint8_t *from, int64_t n)
{
    if (n >= 16) {
        memcpy(to, from, (size_t)n);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (int64_t i = 0; i < n; i++) {
            to[i] = from[i];
        }
    }
}

/* Pads a row with zeros. May write past its end. */
static inline void fill_up(const struct run *run, uint8_t *row)
{
    if (run->row - run->k < 4) {
        memset(row + run->row - 4, 0, 4);
    } else {
        memset(row + run->k, 0, (size_t)(run->row - run->k));
    }
}

static void bring_rows(const struct run *run, int64_t first, int64_t n, int64_t first_channel)
{
    struct place place = place_of(run->conv, first);
    for (int64_t i = 0; i < n; i++, next_place(run->conv, &place)) {
        const uint8_t *from = whole_window(run, &place);
        uint8_t *to = run->rows + i * run->row;
        fill_up(run, to);
        for (int64_t p = 0; from != NULL && p < run->n_pieces; p++) {
            copy_piece(to + p * run->piece, from + run->pieces[p] + first_channel, run->piece);
        }
        if (from == NULL) {
            bring_edge(run, &place, first_channel, to);
        }
    }
    if (run->flip != 0) {
        tnd_int8_flip(run->rows, n * run->row);
    }
}

/* ---- tiles ---- */

/* Reads the parameters of all filters, once per worker. */
static void read_parameters(struct run *run)
{
    const int64_t n = tnd_int8_padded_filters(run->conv);
    const int x_less = tnd_int8_is_depthwise(run->conv) ? 0 : run->kernels->x_less;
    run->parameters = tnd_int8_parameters_in(run->rows + row_bytes(run->conv), n);
    for (int64_t f = 0; f < n; f++) {
        tnd_int8_set_parameter(&run->parameters, f, &run->filters[f], run->k, run->zero_x, x_less);
    }
}

static struct tnd_int8_parameters parameters_from(const struct run *run, int64_t first)
{
    const struct tnd_int8_parameters *all = &run->parameters;
    return (struct tnd_int8_parameters){all->zero_w + first, all->base + first, all->scale + first,
                                        all->offset + first};
}

static void *result_at(const struct run *run, int64_t place, int64_t filter)
{
    const int64_t bytes = run->conv->result >= TND_INT8_S8 ? 1 : 4;
    return (char *)run->node->data + (place * run->conv->filters + filter) * bytes;
}

/* Computes some positions of a group, panels `begin` to `end` - 1 of its filters. */
static void run_block(const struct run *run, int64_t group, int64_t first, int64_t n, int64_t begin,
                      int64_t end)
{
    const struct tnd_int8_kernels *kernels = run->kernels;
    const int64_t panel_bytes = tnd_int8_up(run->k, TND_INT8_STEP) * TND_INT8_PANEL;
    const int64_t panel = group * run->group_panels + begin;
    const int64_t filter = begin * TND_INT8_PANEL;
    int32_t x_sums[BLOCK_ROWS];
    const bool in_place = run->in_place && (kernels->begin == NULL || n % kernels->rows == 0);
    const uint8_t *x = in_place ? run->x + first * run->row : run->rows;
    if (!in_place) {
        bring_rows(run, first, n, group * run->group_channels);
    }
    for (int64_t i = 0; run->conv->has_zero_w && i < n; i++) {
        x_sums[i] = tnd_int8_sum_row(x + i * run->row, run->k);
    }
    const struct tnd_int8_tiles tiles = {
        .kernels = kernels,
        .conv = run->conv,
        .parameters = parameters_from(run, panel * TND_INT8_PANEL),
        .n_filters = tnd_min(run->group_filters, end * TND_INT8_PANEL) - filter,
        .k = run->k,
        .x = x,
        .x_stride = run->row,
        .n_rows = n,
        .x_sums = run->conv->has_zero_w ? x_sums : NULL,
        .w = (const int8_t *)run->node->src[1]->data + panel * panel_bytes,
        .y = result_at(run, first, group * run->group_filters + filter)};
    tnd_int8_run_tiles(&tiles);
}

static void run_sums(const struct run *run, struct tandem_worker *worker)
{
    const struct tnd_conv_int8 *conv = run->conv;
    const int64_t n_blocks = (run->places + run->block_rows - 1) / run->block_rows;
    const int64_t wanted = (2 * worker->count + n_blocks * conv->groups - 1) /
                           (n_blocks * conv->groups); /* parts of the filters, so that all work */
    const int64_t pairs = (run->group_panels + run->kernels->panels - 1) / run->kernels->panels;
    const int64_t part = worker->count == 1 ? pairs : (pairs + wanted - 1) / wanted;
    const int64_t n_parts = (pairs + part - 1) / part;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, n_blocks * conv->groups * n_parts, 1, &begin, &end)) {
        for (int64_t item = begin; item < end; item++) {
            const int64_t first = item / n_parts % n_blocks * run->block_rows;
            const int64_t panel = item % n_parts * part * run->kernels->panels;
            const int64_t last = panel + part * run->kernels->panels;
            run_block(run, item / n_parts / n_blocks, first,
                      tnd_min(run->block_rows, run->places - first), panel,
                      tnd_min(last, run->group_panels));
        }
    }
}

/* ---- depthwise: one filter per channel ---- */

/* How many of `n` positions, starting at one with a whole window, have whole windows in the same
 * line. */
static int whole_ahead(const struct tnd_conv_int8 *conv, const struct place *place, int n)
{
    const int last = conv->n - 1;
    if (last < 0) {
        return 1;
    }
    const int64_t room =
        conv->in[last] - 1 - place->start[last] - (conv->taps[last] - 1) * conv->dilation[last];
    const int64_t column = (place->start[last] + conv->begin[last]) / conv->stride[last];
    const int64_t whole = tnd_min(room / conv->stride[last] + 1, conv->out[last] - column);
    return (int)tnd_min(whole, n);
}

/* Finds the rows of channels under the windows of some positions; `padding` if there is none. */
static void find_rows(const struct run *run, int64_t first, int n, const uint8_t *padding,
                      const uint8_t **out)
{
    const struct tnd_conv_int8 *conv = run->conv;
    const int last = conv->n - 1;
    const int64_t stride = last >= 0 ? conv->stride[last] : 0;
    struct place place = place_of(conv, first);
    for (int i = 0, whole = 1; i < n; i += whole, next_place(conv, &place)) {
        const uint8_t *from = whole_window(run, &place);
        int64_t tap[TND_INT8_WINDOW] = {0};
        whole = from != NULL ? whole_ahead(conv, &place, n - i) : 1;
        for (int64_t t = 0; from != NULL && t < run->k; t++) {
            const uint8_t *at = from + run->pieces[t];
            for (int m = 0; m < whole; m++, at += stride * conv->channels) {
                out[t * n + i + m] = at;
            }
        }
        if (last >= 0) {
            place.start[last] += (whole - 1) * stride;
        }
        for (int64_t t = 0; from == NULL && t < run->k; t++) {
            const int64_t at = seen(conv, &place, tap);
            out[t * n + i] = at < 0 ? padding : run->x + at * conv->channels;
            for (int d = conv->n - 1; d >= 0 && ++tap[d] == conv->taps[d]; d--) {
                tap[d] = 0;
            }
        }
    }
}

/* Computes some positions, all channels. */
static void depth_places(const struct run *run, int64_t first, int n, const uint8_t *const *rows)
{
    const struct tnd_conv_int8 *conv = run->conv;
    const float *w = run->node->src[1]->data;
    const int8_t *bytes = (const int8_t *)(w + tnd_int8_padded_filters(conv) * run->k);
    for (int64_t c = 0; c < conv->channels; c += TND_INT8_DEPTH) {
        const struct tnd_int8_depth depth = {
            .rows = rows,
            .n_taps = run->k,
            .channel = c,
            .flip = run->flip,
            .w = w + c * run->k,
            .bytes = conv->has_bytes ? bytes + c * tnd_int8_up(run->k, 4) : NULL};
        const struct tnd_int8_parameters from = parameters_from(run, c);
        const struct tnd_int8_finish finish = {.n_filters =
                                                   (int)tnd_min(TND_INT8_DEPTH, conv->channels - c),
                                               .n_rows = n,
                                               .conv = conv,
                                               .zero_w = from.zero_w,
                                               .base = from.base,
                                               .scale = from.scale,
                                               .offset = from.offset,
                                               .y = result_at(run, first, c),
                                               .y_stride = conv->filters};
        run->kernels->depth(&depth, &finish);
    }
}

static void run_depth(const struct run *run, struct tandem_worker *worker)
{
    const uint8_t *rows[TND_INT8_DEPTH_ROWS];
    const int64_t fair = (run->places + 4 * worker->count - 1) / (4 * worker->count);
    const int64_t most = tnd_min(TND_INT8_PLACES, TND_INT8_DEPTH_ROWS / run->k);
    const int64_t n_at_once = worker->count == 1 ? most : tnd_min(most, fair);
    const int64_t n_items = (run->places + n_at_once - 1) / n_at_once;
    int64_t begin;
    int64_t end;
    TND_ASSERT(run->k <= TND_INT8_TAPS && !run->conv->has_zero_w);
    memset(run->rows, (uint8_t)(run->zero_x ^ run->flip), (size_t)run->conv->channels);
    while (worker->next(worker, n_items, 1, &begin, &end)) {
        for (int64_t item = begin; item < end; item++) {
            const int64_t first = item * n_at_once;
            const int n = (int)tnd_min(n_at_once, run->places - first);
            find_rows(run, first, n, run->rows, rows);
            depth_places(run, first, n, rows);
        }
    }
}

/* ---- the operation ---- */

/* Whether output position i only sees row i of x. */
static bool is_product(const struct tnd_conv_int8 *conv)
{
    bool is = conv->groups == 1;
    for (int i = 0; i < conv->n; i++) {
        is = is && conv->taps[i] == 1 && conv->stride[i] == 1 && conv->begin[i] == 0 &&
             conv->in[i] == conv->out[i];
    }
    return is;
}

/* Rows of a block: whole tiles, and few enough that all workers get some. */
static int64_t block_rows(const struct run *run, int n_workers)
{
    const int64_t fair = (run->places + 2 * n_workers - 1) / (2 * n_workers);
    const int64_t tile = run->kernels->rows;
    const int64_t most = BLOCK_ROWS / tile * tile;
    return tnd_min(most, tnd_int8_up(n_workers > 1 ? fair : run->places, tile));
}

enum tandem_status tnd_cpu_conv_int8(const struct tnd_cpu_kernels *kernels,
                                     const struct tandem_tensor *node, struct tandem_worker *worker)
{
    const struct tnd_conv_int8 *conv = node->params.conv_int8;
    const int64_t k = tnd_int8_k(conv);
    const bool is_depthwise = tnd_int8_is_depthwise(conv);
    struct run run = {.kernels = &kernels->int8,
                      .node = node,
                      .conv = conv,
                      .filters = node->src[2]->data,
                      .x = node->src[0]->data,
                      .zero_x = tnd_int8_zero_x(node),
                      .flip = conv->x_is_signed ? 128 : 0,
                      .k = k,
                      .row = tnd_int8_up(k, kernels->int8.step),
                      .places = tnd_int8_places(conv),
                      .group_channels = conv->channels / conv->groups,
                      .group_filters = conv->filters / conv->groups,
                      .rows = worker->scratch};
    run.group_panels = (run.group_filters + TND_INT8_PANEL - 1) / TND_INT8_PANEL;
    run.in_place = is_product(conv) && !conv->x_is_signed && run.row == k;
    run.block_rows = block_rows(&run, worker->count);
    find_pieces(&run);
    read_parameters(&run);
    TND_ASSERT(worker->scratch_bytes >= tnd_cpu_conv_int8_scratch(node));
    if (is_depthwise) {
        run_depth(&run, worker);
        return TANDEM_OK;
    }
    if (kernels->int8.begin != NULL) {
        kernels->int8.begin();
    }
    run_sums(&run, worker);
    if (kernels->int8.begin != NULL) {
        kernels->int8.end();
    }
    return TANDEM_OK;
}
