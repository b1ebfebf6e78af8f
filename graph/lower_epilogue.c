/* SPDX-License-Identifier: MIT
 * Epilogues: a program over the result of a node that runs inside of the node, tile by tile. */
#include "graph/lower_internal.h"

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
    return epilogue;
}

void tnd_epilogue_tile(const struct tnd_epilogue *epilogue, const tandem_tensor *node,
                       const struct tnd_fuse_tile *tile)
{
    const void *in[TND_FUSE_INPUTS] = {NULL};
    for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
        const struct tnd_operand *operand = &epilogue->in[i];
        in[i] = operand->src < 0
                    ? operand->view.data
                    : (const float *)tandem_tensor_data(tandem_tensor_src(node, operand->src)) +
                          operand->offset;
    }
    tnd_fuse_tile(&epilogue->fuse, &epilogue->matrix, in, tile);
}
