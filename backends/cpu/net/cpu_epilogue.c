/* SPDX-License-Identifier: MIT
 * Epilogues: a program over the result of a node that runs within the node, tile by tile. */
#include <string.h>

#include "backends/cpu/net/cpu_net.h"

_Static_assert((int)TND_CONV_FILTERS <= (int)TND_EPILOGUE_WIDTH, "rows fit");

struct tnd_conv_ending tnd_epilogue_ending(const struct tnd_conv_kernel *kernel,
                                           const struct tnd_epilogue *epilogue,
                                           const tandem_tensor *node,
                                           const struct tnd_fuse_tile *tile, int64_t line,
                                           struct tnd_strip_operand *operands)
{
    static const struct tnd_fuse_code end[] = {{.op = TND_CODE_END}};
    struct tnd_conv_ending ending = {.operands = operands, .line = line};
    if (tile->n_columns % kernel->end_filters != 0 || (epilogue != NULL && !epilogue->ends_sums)) {
        return ending;
    }
    ending.codes = epilogue == NULL ? end : epilogue->fuse.codes + 1; /* (after the load) */
    for (int i = 0; epilogue != NULL && i < epilogue->fuse.n_inputs; i++) {
        const float *row = epilogue->rows[i];
        const int64_t stride = row != NULL ? 0 : epilogue->matrix.strides[i][0];
        if (i != epilogue->matrix.self) {
            row = row != NULL ? row : tnd_work_values(&epilogue->in[i], node) + tile->row * stride;
            operands[i] =
                (struct tnd_strip_operand){.from = (void *)(row + tile->column), .row = stride};
        }
    }
    return ending;
}

static void run_tile(const struct tnd_strip_kernel *kernel, const struct tnd_epilogue *epilogue,
                     const tandem_tensor *node, const struct tnd_fuse_tile *tile)
{
    const void *in[TND_FUSE_INPUTS] = {NULL};
    for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
        in[i] = tnd_work_values(&epilogue->in[i], node);
    }
    tnd_fuse_tile(kernel, &epilogue->fuse, &epilogue->matrix, in, tile);
}

static void copy_rows(const float *from, int64_t from_row, int n_rows, int n_columns, float *to,
                      int64_t to_row)
{
    const int narrow = n_columns >= 8 ? 0 : n_columns >= 4 ? 4 : n_columns >= 2 ? 2 : 1;
    const int last = n_columns - narrow;
    for (int r = 0; r < n_rows; r++, from += from_row, to += to_row) {
        switch (narrow) { /* inline, because a call takes longer; the two halves may overlap */
        case 4:
            memcpy(to, from, 4 * sizeof(float));
            memcpy(to + last, from + last, 4 * sizeof(float));
            break;
        case 2:
            memcpy(to, from, 2 * sizeof(float));
            memcpy(to + last, from + last, 2 * sizeof(float));
            break;
        case 1:
            *to = *from;
            break;
        default:
            memcpy(to, from, (size_t)n_columns * sizeof(float));
            break;
        }
    }
}

/* Runs the program over the rows of a tile that is no wider than the kernel. Kernels process whole
 * vectors, so for a narrow tile the rows of computed operands and of the result go through
 * copies. */
static void run_rows(const struct tnd_strip_kernel *kernel, const struct tnd_epilogue *epilogue,
                     const tandem_tensor *node, const struct tnd_fuse_tile *tile, float *y,
                     int64_t line)
{
    const struct tnd_fuse *fuse = &epilogue->fuse;
    const bool is_half = tile->n_columns <= kernel->width / 2;
    const int width = is_half ? kernel->width / 2 : kernel->width;
    const bool is_narrow = tile->n_columns < width;
    struct tnd_strip_operand operands[TND_FUSE_REGISTERS];
    _Alignas(64) float saved[TND_EPILOGUE_SAVED][TND_STRIP_ROWS * TND_EPILOGUE_WIDTH];
    _Alignas(64) float copies[TND_EPILOGUE_COPIES][TND_EPILOGUE_ROWS * TND_EPILOGUE_WIDTH];
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
            from = tnd_work_values(&epilogue->in[i], node) + tile->row * row + tile->column;
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

void tnd_epilogue_write(const struct tnd_strip_kernel *kernel, const struct tnd_epilogue *epilogue,
                        const tandem_tensor *node, const struct tnd_fuse_tile *tile, float *y,
                        int64_t line)
{
    if (epilogue != NULL && epilogue->has_rows) {
        const int width = kernel->width;
        struct tnd_fuse_tile part = *tile;
        for (int column = 0; column < tile->n_columns; column += width) {
            const int left = tile->n_columns - column;
            part.n_columns = left < width ? left : width;
            run_rows(kernel, epilogue, node, &part, y + column, line);
            part.column += width;
            part.values += width;
        }
        return;
    }
    if (epilogue != NULL) {
        run_tile(kernel, epilogue, node, tile);
    }
    copy_rows(tile->values, tile->stride, tile->n_rows, tile->n_columns, y, line);
}
