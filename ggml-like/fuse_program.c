/* SPDX-License-Identifier: MIT
 * Programs of element-wise operations: building them, and how they walk over operands. */
#include "ggml-like/fuse_program.h"

#include <string.h>

#include "base/tnd_assert.h"

enum { ITEM_VALUES = 8192 /* values per work item: some microseconds */ };

/* ---- programs ---- */

int tnd_fuse_input(struct tnd_fuse *fuse, enum tandem_dtype type)
{
    TND_ASSERT(fuse->n_steps == 0 && fuse->n_inputs < TND_FUSE_INPUTS);
    fuse->inputs[fuse->n_inputs] = type;
    return fuse->n_inputs++;
}

/* Whether a lane may hold values that the type does not have. */
static bool must_round(const struct tnd_fuse_step *step)
{
    if (step->op == TND_NET_CAST || step->job.out_lane != tnd_lane_of(step->type)) {
        return true;
    }
    if (step->type == TANDEM_DTYPE_BOOL && step->op == TND_NET_BINARY) {
        return step->kind < TANDEM_BINARY_EQUAL; /* (comparisons give 0 and 1) */
    }
    return step->type != TANDEM_DTYPE_F32 && step->type != TANDEM_DTYPE_F64 &&
           step->type != TANDEM_DTYPE_I64 && step->type != TANDEM_DTYPE_U64;
}

int tnd_fuse_step(struct tnd_fuse *fuse, enum tnd_net_op op, int kind, enum tandem_dtype type,
                  const int *in, int n_in)
{
    TND_ASSERT(fuse->n_inputs + fuse->n_steps < TND_FUSE_REGISTERS && n_in <= 3);
    struct tnd_fuse_step *step = &fuse->steps[fuse->n_steps];
    const enum tandem_dtype from = tnd_fuse_type(fuse, in[0]);
    *step = (struct tnd_fuse_step){.op = op,
                                   .kind = kind,
                                   .type = type,
                                   .n_in = n_in,
                                   .job = tnd_strip_job_of(op, kind, from, type)};
    memcpy(step->in, in, (size_t)n_in * sizeof(in[0]));
    step->rounds = must_round(step);
    fuse->n_steps++;
    tnd_fuse_translate(fuse);
    return fuse->n_inputs + fuse->n_steps - 1;
}

/* ---- spaces ---- */

/* Whether all operands can walk dimension i and the one before it as a single dimension. */
static bool may_merge(const struct tnd_fuse_space *space, int n_inputs, int64_t extent,
                      int64_t (*strides)[TANDEM_NET_MAX_DIMS], int from)
{
    const int last = space->shape.n - 1;
    for (int i = 0; i < n_inputs; i++) {
        if (space->strides[i][last] != strides[i][from] * extent) {
            return false;
        }
    }
    return true;
}

void tnd_fuse_space(struct tnd_fuse_space *space, int n_inputs, const struct tnd_dims *shape,
                    int64_t (*strides)[TANDEM_NET_MAX_DIMS], const int *order)
{
    *space = (struct tnd_fuse_space){.shape = {.n = 0}};
    for (int i = 0; i < shape->n; i++) {
        const int from = order == NULL ? i : order[i];
        const int64_t extent = shape->dims[from];
        if (extent == 1) {
            continue;
        }
        const bool merges = space->shape.n > 0 && may_merge(space, n_inputs, extent, strides, from);
        const int to = merges ? space->shape.n - 1 : space->shape.n++;
        space->shape.dims[to] = (merges ? space->shape.dims[to] : 1) * extent;
        for (int k = 0; k < n_inputs; k++) {
            space->strides[k][to] = strides[k][from];
        }
    }
    if (space->shape.n == 0) {
        space->shape = (struct tnd_dims){1, {1}};
    }
    const int64_t row = space->shape.dims[space->shape.n - 1];
    const int64_t values = tnd_dims_values(&space->shape);
    space->row_units = row > 2 * TND_FUSE_PART ? (row + TND_FUSE_PART - 1) / TND_FUSE_PART : 1;
    space->n_units = values == 0 ? 0 : values / row * space->row_units;
    const int64_t unit = space->row_units > 1 ? TND_FUSE_PART : row > 0 ? row : 1;
    space->item_units = unit < ITEM_VALUES ? ITEM_VALUES / unit : 1;
    space->n_items = (space->n_units + space->item_units - 1) / space->item_units;
}

bool tnd_fuse_matrix(struct tnd_fuse_matrix *matrix, int self, int n_inputs,
                     const struct tnd_dims *shape, int64_t (*strides)[TANDEM_NET_MAX_DIMS])
{
    *matrix = (struct tnd_fuse_matrix){.self = self};
    for (int i = 0; i < n_inputs; i++) {
        int64_t next = 0; /* stride required of the next slower dimension; 0: none came yet */
        bool is_first = true;
        for (int d = shape->n - 1; i != self && d >= 0; d--) {
            if (shape->dims[d] == 1 || d == 1) {
                continue;
            }
            if (is_first) {
                matrix->strides[i][0] = strides[i][d];
            } else if (strides[i][d] != next) {
                return false;
            }
            is_first = false;
            next = strides[i][d] * shape->dims[d];
        }
        matrix->strides[i][1] = shape->n > 1 ? strides[i][1] : 0;
    }
    return true;
}
