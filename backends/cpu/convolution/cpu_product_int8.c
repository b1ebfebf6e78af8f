/* SPDX-License-Identifier: MIT
 * Products of two computed matrices of 8-bit integers. A worker packs some columns of w into panels
 * of its own and multiplies rows of x by them, so no worker waits for another; when several workers
 * share the rows of a product, each of them packs the columns. */
#include <string.h>

#include "backends/cpu/convolution/cpu_int8_tiles.h"
#include "backends/cpu/ops/cpu_ops.h"
#include "base/tnd_assert.h"
#include "ggml-like/product_int8.h"

/* Rows that are gathered at a time; packed columns stay in L2. */
enum { BLOCK_ROWS = 64, PACKED_BYTES = 256 << 10 };

struct run {
    const struct tnd_int8_kernels *kernels;
    const struct tandem_tensor *node;
    const struct tnd_product_int8 *product;
    const struct tnd_int8_filter *filters;
    int32_t zero_x;        /* for unsigned bytes */
    int32_t zero_w;        /* for signed bytes, as packed */
    int64_t k, rows;       /* values per sum; rows per product */
    int64_t part, columns; /* rows and columns per item */
    /* in the worker's scratch memory */
    int8_t *packed;
    uint8_t *brought;
    struct tnd_int8_parameters parameters;
};

static int64_t row_bytes(const struct tnd_conv_int8 *sums)
{
    return tnd_int8_up(sums->channels, TND_INT8_STEP);
}

/* Number of columns that are packed at a time. */
static int64_t column_block(const struct tnd_conv_int8 *sums)
{
    const int64_t fit = PACKED_BYTES / row_bytes(sums) / TND_INT8_TILE * TND_INT8_TILE;
    return tnd_min(tnd_max(fit, TND_INT8_TILE), tnd_int8_padded_filters(sums));
}

size_t tnd_cpu_product_int8_scratch(const struct tandem_tensor *node)
{
    const struct tnd_conv_int8 *sums = &tnd_product_int8_of(node)->sums;
    const int64_t columns = column_block(sums);
    return (size_t)((columns + BLOCK_ROWS) * row_bytes(sums) + columns * TND_INT8_PARAMETERS * 4);
}

/* ---- packing ---- */

/* Packs four rows of w, 16 columns. The loops are vectorised if columns or rows are adjacent. */
static void pack_whole(const uint8_t *w, const struct tnd_int8_matrix *at, uint8_t flip,
                       int8_t *out)
{
    uint8_t bytes[TND_INT8_PANEL * 4];
    if (at->row == 1) {
        for (int c = 0; c < TND_INT8_PANEL; c++) {
            memcpy(bytes + 4 * c, w + c * at->column, 4);
        }
    } else if (at->column == 1) {
        for (int c = 0; c < TND_INT8_PANEL; c++) {
            bytes[4 * c] = w[c];
            bytes[4 * c + 1] = w[at->row + c];
            bytes[4 * c + 2] = w[2 * at->row + c];
            bytes[4 * c + 3] = w[3 * at->row + c];
        }
    } else {
        for (int i = 0; i < TND_INT8_PANEL * 4; i++) {
            bytes[i] = w[i / 4 * at->column + i % 4 * at->row];
        }
    }
    for (int i = 0; i < TND_INT8_PANEL * 4; i++) {
        bytes[i] ^= flip;
    }
    memcpy(out, bytes, sizeof(bytes));
}

static void pack_part(const uint8_t *w, const struct tnd_int8_matrix *at, uint8_t flip,
                      int64_t rows, int64_t columns, int8_t *out)
{
    memset(out, 0, TND_INT8_PANEL * 4);
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            out[4 * c + r] = (int8_t)(w[c * at->column + r * at->row] ^ flip);
        }
    }
}

/* Packs a panel of `columns` columns, and computes their sums. */
static void pack_panel(const struct run *run, const uint8_t *w, int64_t columns, int8_t *out,
                       int32_t sums[TND_INT8_PANEL])
{
    const struct tnd_int8_matrix *at = &run->product->w;
    const uint8_t flip = run->product->w_is_signed ? 0 : 128;
    const int64_t end = row_bytes(&run->product->sums);
    memset(sums, 0, TND_INT8_PANEL * sizeof(*sums));
    for (int64_t k = 0; k < end; k += 4, out += TND_INT8_PANEL * 4) {
        if (k >= run->k) {
            memset(out, 0, TND_INT8_PANEL * 4);
            continue;
        }
        if (columns == TND_INT8_PANEL && k + 4 <= run->k) {
            pack_whole(w + k * at->row, at, flip, out);
        } else {
            pack_part(w + k * at->row, at, flip, tnd_min(4, run->k - k), columns, out);
        }
        for (int c = 0; c < TND_INT8_PANEL; c++) {
            sums[c] += out[4 * c] + out[4 * c + 1] + out[4 * c + 2] + out[4 * c + 3];
        }
    }
}

/* Packs columns `first` to `first` + n - 1 of a product, and sets their parameters. */
static void pack_columns(const struct run *run, int64_t product, int64_t first, int64_t n)
{
    const struct tnd_product_int8 *p = run->product;
    const uint8_t *w =
        (const uint8_t *)run->node->src[1]->data + p->w.offset + product * p->w.product;
    const int64_t panel_bytes = row_bytes(&p->sums) * TND_INT8_PANEL;
    for (int64_t c = 0; c < n; c += TND_INT8_PANEL) {
        int32_t sums[TND_INT8_PANEL];
        pack_panel(run, w + (first + c) * p->w.column, tnd_min(n - c, TND_INT8_PANEL),
                   run->packed + c / TND_INT8_PANEL * panel_bytes, sums);
        for (int i = 0; i < TND_INT8_PANEL; i++) {
            struct tnd_int8_filter filter = run->filters[first + c + i];
            filter.zero_w = run->zero_w;
            filter.sum_w = sums[i];
            tnd_int8_set_parameter(&run->parameters, c + i, &filter, run->k, run->zero_x,
                                   run->kernels->x_less);
        }
    }
}

/* ---- rows ---- */

static void bring_rows(const struct run *run, const uint8_t *x, int64_t n)
{
    const int64_t row = row_bytes(&run->product->sums);
    for (int64_t i = 0; i < n; i++) {
        uint8_t *to = run->brought + i * row;
        memcpy(to, x + i * run->product->x.row, (size_t)run->k);
        memset(to + run->k, 0, (size_t)(row - run->k));
    }
    if (run->product->sums.x_is_signed) {
        tnd_int8_flip(run->brought, n * row);
    }
}

/* Multiplies some rows of a product by the packed columns. */
static void run_rows(const struct run *run, int64_t product, int64_t first, int64_t n,
                     int64_t column, int64_t n_columns)
{
    const struct tnd_product_int8 *p = run->product;
    const struct tnd_int8_kernels *kernels = run->kernels;
    const bool has_zero_w = run->zero_w != 0;
    const int64_t bytes = p->sums.result >= TND_INT8_S8 ? 1 : 4;
    const int64_t at = product * run->rows + first;
    const uint8_t *x = (const uint8_t *)run->node->src[0]->data + p->x.offset +
                       product * p->x.product + first * p->x.row;
    /* kernels read whole steps, and some of them whole tiles of rows */
    const bool in_place = !p->sums.x_is_signed && run->k % kernels->step == 0 &&
                          (kernels->begin == NULL || n % kernels->rows == 0);
    int32_t x_sums[BLOCK_ROWS];
    struct tnd_int8_tiles tiles = {.kernels = kernels,
                                   .conv = &p->sums,
                                   .parameters = run->parameters,
                                   .n_filters = n_columns,
                                   .k = run->k,
                                   .x = in_place ? x : run->brought,
                                   .x_stride = in_place ? p->x.row : row_bytes(&p->sums),
                                   .n_rows = n,
                                   .x_sums = has_zero_w ? x_sums : NULL,
                                   .w = run->packed,
                                   .y = (char *)run->node->data +
                                        (at * p->sums.filters + column) * bytes};
    if (!in_place) {
        bring_rows(run, x, n);
    }
    for (int64_t i = 0; has_zero_w && i < n; i++) {
        x_sums[i] = tnd_int8_sum_row(tiles.x + i * tiles.x_stride, run->k);
    }
    tnd_int8_run_tiles(&tiles);
}

/* ---- the operation ---- */

static void run_part(const struct run *run, int64_t product, int64_t first, int64_t column)
{
    const int64_t tile = run->kernels->rows;
    const int64_t block = BLOCK_ROWS / tile * tile;
    const int64_t end = tnd_min(first + run->part, run->rows);
    const int64_t n_columns = tnd_min(run->columns, run->product->sums.filters - column);
    pack_columns(run, product, column, n_columns);
    for (int64_t row = first; row < end; row += block) {
        run_rows(run, product, row, tnd_min(block, end - row), column, n_columns);
    }
}

static void run_parts(const struct run *run, struct tandem_worker *worker)
{
    const int64_t n_parts = (run->rows + run->part - 1) / run->part;
    const int64_t n_blocks = (run->product->sums.filters + run->columns - 1) / run->columns;
    int64_t begin;
    int64_t end;
    while (worker->next(worker, run->product->n * n_blocks * n_parts, 1, &begin, &end)) {
        for (int64_t item = begin; item < end; item++) {
            run_part(run, item / n_parts / n_blocks, item % n_parts * run->part,
                     item / n_parts % n_blocks * run->columns);
        }
    }
}

/* Rows of a product per item, so that all workers have work. */
static int64_t rows_of_part(const struct run *run, int n_workers)
{
    const int64_t n_blocks = (run->product->sums.filters + run->columns - 1) / run->columns;
    const int64_t items = run->product->n * n_blocks;
    const int64_t n_parts = n_workers == 1 ? 1 : (2 * n_workers + items - 1) / items;
    return tnd_int8_up((run->rows + n_parts - 1) / n_parts, run->kernels->rows);
}

enum tandem_status tnd_cpu_product_int8(const struct tnd_cpu_kernels *kernels,
                                        const struct tandem_tensor *node,
                                        struct tandem_worker *worker)
{
    const struct tnd_product_int8 *product = tnd_product_int8_of(node);
    const struct tnd_conv_int8 *sums = &product->sums;
    struct run run = {.kernels = &kernels->int8,
                      .node = node,
                      .product = product,
                      .filters = node->src[2]->data,
                      .zero_x = tnd_product_int8_zero_x(node) + (sums->x_is_signed ? 128 : 0),
                      .zero_w = tnd_product_int8_zero_w(node) - (product->w_is_signed ? 0 : 128),
                      .k = sums->channels,
                      .rows = sums->images / product->n,
                      .columns = column_block(sums),
                      .packed = worker->scratch};
    run.part = rows_of_part(&run, worker->count);
    run.brought = (uint8_t *)run.packed + run.columns * row_bytes(sums);
    run.parameters =
        tnd_int8_parameters_in(run.brought + BLOCK_ROWS * row_bytes(sums), run.columns);
    TND_ASSERT(worker->scratch_bytes >= tnd_cpu_product_int8_scratch(node));
    if (kernels->int8.begin != NULL) {
        kernels->int8.begin();
    }
    run_parts(&run, worker);
    if (kernels->int8.begin != NULL) {
        kernels->int8.end();
    }
    return TANDEM_OK;
}
