/* SPDX-License-Identifier: MIT
 * Epilogues: a program over the result of a node that runs inside of the node, tile by tile. */
#include <string.h>

#include "graph/lower_internal.h"
#include "graph/strip_kernels.h"

/* What a tile works in: results of steps that later ones read, and copies of operands. Programs
 * that need more run in the general way: large frames cost time. */
enum { MOST_SAVED = 4, MOST_COPIES = 2, MOST_ROWS = 2 * TND_CONV_PIXELS };

/* ---- operands ---- */

/* A constant row of `n` values, and as many more as a tile may be wide; NULL without memory. */
static const float *keep_row(struct tnd_lowering *l, const struct tnd_operand *in, int64_t stride,
                             int64_t n)
{
    const struct tnd_dims row = {1, {n + TND_CONV_FILTERS}};
    struct tnd_array *copy = tnd_lower_array(l, TANDEM_DTYPE_F32, &row);
    for (int64_t i = 0; copy != NULL && i < n; i++) {
        ((float *)copy->data)[i] = ((const float *)in->view.data)[i * stride];
    }
    return copy == NULL ? NULL : copy->data;
}

/* Whether kernels run the program over rows of a tile: where the values of a row of each operand
 * lie side by side, or are one constant. */
static bool plan_rows(struct tnd_lowering *l, struct tnd_epilogue *epilogue, int64_t n_columns)
{
    const struct tnd_fuse *fuse = &epilogue->fuse;
    int n_computed = 0;
    int n_saved = 0;
    if (!tnd_fuse_is_fast(fuse)) {
        return false;
    }
    for (const struct tnd_fuse_code *code = fuse->codes; code->op != TND_CODE_END; code++) {
        if (code->op == TND_CODE_SAVE) {
            epilogue->saved[code->in - fuse->n_inputs] = (uint8_t)n_saved++;
        }
    }
    for (int i = 0; i < fuse->n_inputs; i++) {
        const int64_t *strides = epilogue->matrix.strides[i];
        const bool is_row = strides[0] == 0 && epilogue->in[i].src < 0;
        if (i != epilogue->matrix.self && is_row) {
            epilogue->rows[i] = keep_row(l, &epilogue->in[i], strides[1], n_columns);
        }
        if (i != epilogue->matrix.self && epilogue->rows[i] == NULL) {
            n_computed += strides[1] == 1 ? 1 : MOST_COPIES + 1;
        }
    }
    return n_saved <= MOST_SAVED && n_computed <= MOST_COPIES;
}

/* ---- epilogues ---- */

static const float *operand_data(const struct tnd_operand *operand, const tandem_tensor *node)
{
    return operand->src < 0
               ? operand->view.data
               : (const float *)tandem_tensor_data(tandem_tensor_src(node, operand->src)) +
                     operand->offset;
}

const struct tnd_epilogue *tnd_lower_take_epilogue(struct tnd_lowering *l, tandem_tensor **tensors,
                                                   int *n_tensors, int64_t n_columns)
{
    struct tnd_epilogue *epilogue = l->epilogue;
    if (epilogue == NULL || epilogue->n_tensors + *n_tensors > TANDEM_MAX_SRC) {
        return NULL;
    }
    for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
        epilogue->in[i].src += epilogue->in[i].src >= 0 ? *n_tensors : 0;
    }
    for (int i = 0; i < epilogue->n_tensors; i++) {
        tensors[(*n_tensors)++] = epilogue->tensors[i];
    }
    epilogue->is_taken = true;
    epilogue->kernel = tnd_strip_kernel(0);
    epilogue->has_rows = plan_rows(l, epilogue, n_columns);
    return epilogue;
}

void tnd_epilogue_tile(const struct tnd_epilogue *epilogue, const tandem_tensor *node,
                       const struct tnd_fuse_tile *tile)
{
    const void *in[TND_FUSE_INPUTS] = {NULL};
    for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
        in[i] = operand_data(&epilogue->in[i], node);
    }
    tnd_fuse_tile(tnd_strip_kernel(0), &epilogue->fuse, &epilogue->matrix, in, tile);
}

static void copy_rows(const float *from, int64_t from_row, int n_rows, int n_columns, float *to,
                      int64_t to_row)
{
    for (int r = 0; r < n_rows; r++) {
        memcpy(to + r * to_row, from + r * from_row, (size_t)n_columns * sizeof(float));
    }
}

/* Runs the program over rows of a tile that is no wider than the kernel. Kernels take whole vectors:
 * of a narrow tile, rows of operands that were computed are copied, and the result is. */
static void run_rows(const struct tnd_epilogue *epilogue, const tandem_tensor *node,
                     const struct tnd_fuse_tile *tile, float *y, int64_t line)
{
    const struct tnd_fuse *fuse = &epilogue->fuse;
    const struct tnd_strip_kernel *kernel = epilogue->kernel;
    const bool is_half = tile->n_columns <= kernel->width / 2;
    const int width = is_half ? kernel->width / 2 : kernel->width;
    const bool is_narrow = tile->n_columns < width;
    struct tnd_strip_operand operands[TND_FUSE_REGISTERS];
    _Alignas(64) float saved[MOST_SAVED][TND_STRIP_ROWS * TND_CONV_FILTERS];
    _Alignas(64) float copies[MOST_COPIES][MOST_ROWS * TND_CONV_FILTERS];
    int n_copies = 0;
    for (int i = 0; i < fuse->n_inputs; i++) {
        int64_t row = epilogue->matrix.strides[i][0];
        const float *from = epilogue->rows[i];
        if (i == epilogue->matrix.self) {
            from = tile->values;
            row = tile->stride;
        } else if (from != NULL) {
            from += tile->column;
            row = 0;
        } else {
            from = operand_data(&epilogue->in[i], node) + tile->row * row + tile->column;
            if (is_narrow) {
                copy_rows(from, row, row == 0 ? 1 : tile->n_rows, tile->n_columns, copies[n_copies],
                          width);
                from = copies[n_copies++];
                row = row == 0 ? 0 : width;
            }
        }
        operands[i] = (struct tnd_strip_operand){(void *)from, -1, row};
    }
    for (int s = 0; s < fuse->n_steps; s++) {
        operands[fuse->n_inputs + s] =
            (struct tnd_strip_operand){saved[epilogue->saved[s]], 0, width};
    }
    const struct tnd_strip_call call = {.codes = fuse->codes,
                                        .operands = operands,
                                        .out = is_narrow ? tile->values : y,
                                        .n = tile->n_rows,
                                        .line = is_narrow ? tile->stride : line,
                                        .is_half = is_half};
    kernel->run_tile(&call);
    if (is_narrow) {
        copy_rows(tile->values, tile->stride, tile->n_rows, tile->n_columns, y, line);
    }
}

void tnd_epilogue_write(const struct tnd_epilogue *epilogue, const tandem_tensor *node,
                        const struct tnd_fuse_tile *tile, float *y, int64_t line)
{
    if (epilogue != NULL && epilogue->has_rows) {
        const int width = epilogue->kernel->width;
        struct tnd_fuse_tile part = *tile;
        for (int column = 0; column < tile->n_columns; column += width) {
            const int left = tile->n_columns - column;
            part.n_columns = left < width ? left : width;
            run_rows(epilogue, node, &part, y + column, line);
            part.column += width;
            part.values += width;
        }
        return;
    }
    if (epilogue != NULL) {
        tnd_epilogue_tile(epilogue, node, tile);
    }
    copy_rows(tile->values, tile->stride, tile->n_rows, tile->n_columns, y, line);
}
