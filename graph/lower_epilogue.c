/* SPDX-License-Identifier: MIT
 * Epilogues: a program over a node's result that runs inside the node, tile by tile. */
#include "graph/lower_internal.h"

/* ---- operands ---- */

/* A constant row of `n` values, padded by the maximum width of a tile; NULL: out of memory. */
static const float *keep_row(struct tnd_lowering *l, const struct tnd_operand *in, int64_t stride,
                             int64_t n)
{
    const struct tnd_dims row = {1, {n + TND_EPILOGUE_WIDTH}};
    struct tnd_array *copy = tnd_lower_array(l, TANDEM_DTYPE_F32, &row);
    for (int64_t i = 0; copy != NULL && i < n; i++) {
        ((float *)copy->data)[i] = ((const float *)in->view.data)[i * stride];
    }
    return copy == NULL ? NULL : copy->data;
}

/* Whether the program only extends the sums, from its first code to its last. */
static bool ends_sums(const struct tnd_epilogue *epilogue)
{
    const struct tnd_fuse_code *code = epilogue->fuse.codes;
    const int self = epilogue->matrix.self;
    const bool is_first = code->op == TND_CODE_LOAD && code->in == self;
    do {
        code++;
    } while (is_first && tnd_code_ends_sums(code->op) &&
             (code->op == TND_CODE_HARD_SWISH || code->in != self));
    return is_first && code->op == TND_CODE_END;
}

/* Whether the program can run on rows of a tile in place: each operand's row is contiguous or one
 * constant, and few registers are needed (large frames cost time). */
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
            n_computed += strides[1] == 1 ? 1 : TND_EPILOGUE_COPIES + 1;
        }
    }
    return n_saved <= TND_EPILOGUE_SAVED && n_computed <= TND_EPILOGUE_COPIES;
}

/* ---- epilogues ---- */

const struct tnd_epilogue *tnd_lower_take_epilogue(struct tnd_lowering *l, tandem_tensor **tensors,
                                                   int *n_tensors, int64_t n_columns)
{
    struct tnd_lower_epilogue *waiting = l->epilogue;
    if (waiting == NULL || waiting->n_tensors + *n_tensors > TANDEM_MAX_SRC) {
        return NULL;
    }
    struct tnd_epilogue *epilogue = waiting->of;
    for (int i = 0; i < epilogue->fuse.n_inputs; i++) {
        epilogue->in[i].src += epilogue->in[i].src >= 0 ? *n_tensors : 0;
    }
    for (int i = 0; i < waiting->n_tensors; i++) {
        tensors[(*n_tensors)++] = waiting->tensors[i];
    }
    waiting->is_taken = true;
    epilogue->has_rows = plan_rows(l, epilogue, n_columns);
    epilogue->ends_sums = epilogue->has_rows && ends_sums(epilogue);
    return epilogue;
}
