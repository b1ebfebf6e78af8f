/* SPDX-License-Identifier: MIT
 * Epilogues: a program over the result of a node that runs inside of the node, tile by tile. */
#include <string.h>

#include "graph/lower_internal.h"

/* ---- chains ---- */

static bool is_plain(int kind)
{
    return kind <= TND_BINARY_DIV || kind == TND_BINARY_MAX || kind == TND_BINARY_MIN;
}

/* Whether step `i` is an operation of the result of the step in front, or of the node, and an
 * operand whose values of one row lie side by side, or are one constant. */
static bool is_link(const struct tnd_epilogue *epilogue, int i, struct tnd_conv_step *out, int *in)
{
    const struct tnd_fuse *fuse = &epilogue->fuse;
    const struct tnd_fuse_step *step = &fuse->steps[i];
    const int self = epilogue->matrix.self;
    const int before = i == 0 ? self : fuse->n_inputs + i - 1;
    if (step->op != TND_NET_BINARY || !is_plain(step->kind) || step->n_in != 2 ||
        (step->in[0] == before) == (step->in[1] == before)) {
        return false;
    }
    out->kind = step->kind;
    out->is_right = step->in[1] == before;
    *in = step->in[out->is_right ? 0 : 1];
    if (*in >= fuse->n_inputs || *in == self) {
        return false;
    }
    const int64_t *strides = epilogue->matrix.strides[*in];
    out->row = strides[0];
    return strides[1] == 1 || (strides[0] == 0 && strides[1] == 0 && epilogue->in[*in].src < 0);
}

/* (Without memory it is no chain.) */
static void plan_chain(struct tnd_lowering *l, struct tnd_epilogue *epilogue)
{
    const struct tnd_dims row = {1, {TND_CONV_FILTERS}};
    int n = 0;
    for (; n < epilogue->fuse.n_steps; n++) {
        if (n == TND_CONV_STEPS ||
            !is_link(epilogue, n, &epilogue->chain[n], &epilogue->chain_in[n])) {
            return;
        }
        const int in = epilogue->chain_in[n];
        if (epilogue->matrix.strides[in][1] != 1) {
            struct tnd_array *same = tnd_lower_array(l, TND_DTYPE_F32, &row);
            for (int i = 0; same != NULL && i < TND_CONV_FILTERS; i++) {
                ((float *)same->data)[i] = *(const float *)epilogue->in[in].view.data;
            }
            if (same == NULL) {
                return;
            }
            epilogue->chain[n].at = same->data;
        }
    }
    epilogue->n_chain = n;
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
                                                   int *n_tensors)
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
    plan_chain(l, epilogue);
    return epilogue;
}

void tnd_epilogue_tile(const struct tnd_epilogue *epilogue, const tandem_tensor *node,
                       const struct tnd_fuse_tile *tile)
{
    const void *in[TND_FUSE_INPUTS] = {NULL};
    for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
        in[i] = operand_data(&epilogue->in[i], node);
    }
    tnd_fuse_tile(&epilogue->fuse, &epilogue->matrix, in, tile);
}

/* A tile as wide as the kernel's, whose epilogue is a chain. */
static void write_chain(const struct tnd_epilogue *epilogue, const struct tnd_conv_kernel *kernel,
                        const tandem_tensor *node, const struct tnd_fuse_tile *tile, float *y,
                        int64_t line)
{
    struct tnd_conv_step steps[TND_CONV_STEPS];
    const struct tnd_conv_finish finish = {.sums = tile->values,
                                           .stride = tile->stride,
                                           .y = y,
                                           .line = line,
                                           .n_places = tile->n_rows,
                                           .steps = steps,
                                           .n_steps = epilogue == NULL ? 0 : epilogue->n_chain};
    for (int i = 0; i < finish.n_steps; i++) {
        const int in = epilogue->chain_in[i];
        steps[i] = epilogue->chain[i];
        if (steps[i].at == NULL) {
            steps[i].at =
                operand_data(&epilogue->in[in], node) + tile->row * steps[i].row + tile->column;
        }
    }
    kernel->finish(&finish);
}

void tnd_epilogue_write(const struct tnd_epilogue *epilogue, const struct tnd_conv_kernel *kernel,
                        const tandem_tensor *node, const struct tnd_fuse_tile *tile, float *y,
                        int64_t line)
{
    if (tile->n_columns == kernel->filters && (epilogue == NULL || epilogue->n_chain > 0)) {
        write_chain(epilogue, kernel, node, tile, y, line);
        return;
    }
    if (epilogue != NULL) {
        tnd_epilogue_tile(epilogue, node, tile);
    }
    for (int r = 0; r < tile->n_rows; r++) {
        memcpy(y + r * line, tile->values + r * tile->stride,
               (size_t)tile->n_columns * sizeof(float));
    }
}
