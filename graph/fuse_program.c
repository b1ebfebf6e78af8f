/* SPDX-License-Identifier: MIT
 * Programs of operations, value by value: making them, and an interpreter over strips. */
#include "graph/fuse_program.h"

#include <string.h>

#include "base/tnd_assert.h"

enum {
    PART_VALUES = 4096, /* a row longer than twice this is done in parts */
    ITEM_VALUES = 8192  /* a worker takes so many values at a time: some microseconds */
};

/* ---- programs ---- */

int tnd_fuse_input(struct tnd_fuse *fuse, enum tnd_dtype type)
{
    TND_ASSERT(fuse->n_steps == 0 && fuse->n_inputs < TND_FUSE_INPUTS);
    fuse->inputs[fuse->n_inputs] = type;
    return fuse->n_inputs++;
}

static enum tnd_dtype register_type(const struct tnd_fuse *fuse, int i)
{
    return i < fuse->n_inputs ? fuse->inputs[i] : fuse->steps[i - fuse->n_inputs].type;
}

/* Whether a lane may hold values that the type has not. */
static bool must_round(const struct tnd_fuse_step *step)
{
    if (step->op == TND_NET_CAST || step->job.out_lane != tnd_lane_of(step->type)) {
        return true;
    }
    return step->type != TND_DTYPE_F32 && step->type != TND_DTYPE_F64 &&
           step->type != TND_DTYPE_I64 && step->type != TND_DTYPE_U64;
}

int tnd_fuse_step(struct tnd_fuse *fuse, enum tnd_net_op op, int kind, enum tnd_dtype type,
                  const int *in, int n_in)
{
    TND_ASSERT(fuse->n_inputs + fuse->n_steps < TND_FUSE_REGISTERS && n_in <= 3);
    struct tnd_fuse_step *step = &fuse->steps[fuse->n_steps];
    const enum tnd_dtype from = register_type(fuse, in[0]);
    *step = (struct tnd_fuse_step){.op = op,
                                   .kind = kind,
                                   .type = type,
                                   .n_in = n_in,
                                   .job = tnd_strip_job_of(op, kind, from, type)};
    memcpy(step->in, in, (size_t)n_in * sizeof(in[0]));
    step->rounds = must_round(step);
    step->fast = from == TND_DTYPE_F32 && type == TND_DTYPE_F32 ? tnd_strip_fast(op, kind) : NULL;
    return fuse->n_inputs + fuse->n_steps++;
}

/* ---- spaces ---- */

/* Whether dimension i and the one before it are walked as one by everybody. */
static bool may_merge(const struct tnd_fuse_space *space, int n_inputs, int64_t extent,
                      int64_t (*strides)[TND_NET_MAX_DIMS], int from)
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
                    int64_t (*strides)[TND_NET_MAX_DIMS], const int *order)
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
    space->row_units = row > 2 * PART_VALUES ? (row + PART_VALUES - 1) / PART_VALUES : 1;
    space->n_units = values == 0 ? 0 : values / row * space->row_units;
    const int64_t unit = space->row_units > 1 ? PART_VALUES : row > 0 ? row : 1;
    space->item_units = unit < ITEM_VALUES ? ITEM_VALUES / unit : 1;
    space->n_items = (space->n_units + space->item_units - 1) / space->item_units;
}

/* ---- the interpreter ---- */

struct machine {
    const struct tnd_fuse *fuse;
    const void *at[TND_FUSE_REGISTERS]; /* of each register */
    bool is_uniform[TND_FUSE_INPUTS];   /* operands of one value, loaded before all strips */
    union tnd_values registers[TND_FUSE_REGISTERS];
};

static void load(struct machine *machine, int i, const char *from, int64_t stride, int n)
{
    const enum tnd_dtype type = machine->fuse->inputs[i];
    machine->at[i] = &machine->registers[i];
    if (type == TND_DTYPE_F32 && stride == 1 && n == TND_LANES) {
        machine->at[i] = from;
    } else if (type == TND_DTYPE_F32) {
        float *to = machine->registers[i].f32;
        const float *values = (const void *)from;
        for (int k = 0; k < n; k++) {
            to[k] = values[k * stride];
        }
    } else {
        tnd_values_load(type, from, stride, n, tnd_lane_of(type), &machine->registers[i]);
    }
}

static void run_step(struct machine *machine, const struct tnd_fuse_step *step, int to, int n)
{
    union tnd_values *out = &machine->registers[to];
    machine->at[to] = out;
    if (step->fast != NULL) {
        step->fast(machine->at[step->in[0]], machine->at[step->in[step->n_in - 1]], out->f32);
        return;
    }
    union tnd_values in[3];
    for (int i = 0; i < step->n_in; i++) {
        memcpy(&in[i], machine->at[step->in[i]],
               (size_t)n * (step->job.lanes[i] == TND_LANE_F32 ? 4 : 8));
    }
    step->job.run(&step->job, in, n, out);
    if (step->rounds) {
        char stored[TND_LANES * 8];
        tnd_values_store(step->type, step->job.out_lane, out, n, stored);
        tnd_values_load(step->type, stored, 1, n, tnd_lane_of(step->type), out);
    }
}

static void run_steps(struct machine *machine, int n)
{
    const struct tnd_fuse *fuse = machine->fuse;
    for (int i = 0; i < fuse->n_steps; i++) {
        run_step(machine, &fuse->steps[i], fuse->n_inputs + i, n);
    }
}

static void run_strip(struct machine *machine, int n, char *out)
{
    const struct tnd_fuse *fuse = machine->fuse;
    run_steps(machine, n);
    const int last = fuse->n_inputs + fuse->n_steps - 1;
    const enum tnd_dtype type = register_type(fuse, last);
    if (type == TND_DTYPE_F32) {
        memcpy(out, machine->at[last], (size_t)n * sizeof(float));
    } else {
        tnd_values_store(type, tnd_lane_of(type), &machine->registers[last], n, out);
    }
}

/* A unit: a row of the space, or a part of one. What stays the same in a row is loaded by its first
 * strip, which is the longest. */
static void run_unit(struct machine *machine, const struct tnd_fuse_space *space,
                     const void *const *in, char *out, int64_t unit)
{
    const struct tnd_fuse *fuse = machine->fuse;
    const int last = space->shape.n - 1;
    const int64_t row = space->shape.dims[last];
    const int64_t begin = space->row_units > 1 ? unit % space->row_units * PART_VALUES : 0;
    const int64_t end =
        space->row_units > 1 && begin + PART_VALUES < row ? begin + PART_VALUES : row;
    const char *from[TND_FUSE_INPUTS];
    int64_t offsets[TND_FUSE_INPUTS] = {0};
    int64_t rest = unit / space->row_units;
    out += (rest * row + begin) *
           (int64_t)tnd_dtype_bytes(register_type(fuse, fuse->n_inputs + fuse->n_steps - 1));
    for (int d = last - 1; d >= 0; d--) {
        const int64_t at = rest % space->shape.dims[d];
        rest /= space->shape.dims[d];
        for (int i = 0; i < fuse->n_inputs; i++) {
            offsets[i] += at * space->strides[i][d];
        }
    }
    for (int i = 0; i < fuse->n_inputs; i++) {
        from[i] = (const char *)in[i] + (offsets[i] + begin * space->strides[i][last]) *
                                            (int64_t)tnd_dtype_bytes(fuse->inputs[i]);
    }
    for (int64_t at = begin; at < end; at += TND_LANES) {
        const int n = (int)(end - at < TND_LANES ? end - at : TND_LANES);
        for (int i = 0; i < fuse->n_inputs; i++) {
            const int64_t stride = space->strides[i][last];
            if (!machine->is_uniform[i] && (at == begin || stride != 0)) {
                load(machine, i, from[i], stride, n);
            }
            from[i] += n * stride * (int64_t)tnd_dtype_bytes(fuse->inputs[i]);
        }
        run_strip(machine, n, out);
        out += (size_t)n * tnd_dtype_bytes(register_type(fuse, fuse->n_inputs + fuse->n_steps - 1));
    }
}

void tnd_fuse_run(const struct tnd_fuse *fuse, const struct tnd_fuse_space *space,
                  const void *const *in, void *out, int64_t begin, int64_t end)
{
    struct machine machine;
    const size_t used = (size_t)(fuse->n_inputs + fuse->n_steps);
    machine.fuse = fuse;
    memset(machine.registers, 0, used * sizeof(machine.registers[0]));
    for (int i = 0; i < fuse->n_inputs; i++) {
        machine.is_uniform[i] = true;
        for (int d = 0; d < space->shape.n; d++) {
            machine.is_uniform[i] = machine.is_uniform[i] && space->strides[i][d] == 0;
        }
        if (machine.is_uniform[i] && space->n_units > 0) {
            load(&machine, i, in[i], 0, TND_LANES);
        }
    }
    const int64_t last = end * space->item_units;
    for (int64_t unit = begin * space->item_units; unit < last && unit < space->n_units; unit++) {
        run_unit(&machine, space, in, out, unit);
    }
}

/* ---- tiles ---- */

bool tnd_fuse_matrix(struct tnd_fuse_matrix *matrix, int self, int n_inputs,
                     const struct tnd_dims *shape, int64_t (*strides)[TND_NET_MAX_DIMS])
{
    *matrix = (struct tnd_fuse_matrix){.self = self};
    for (int i = 0; i < n_inputs; i++) {
        int64_t next = 0; /* stride that a slower dimension must have; 0: no dimension came yet */
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

/* Rows of a tile that make a strip together, each `n` values. */
static void load_rows(struct machine *machine, int i, const float *from, const int64_t *strides,
                      int n_rows, int n)
{
    float *to = machine->registers[i].f32;
    machine->at[i] = to;
    for (int r = 0; r < n_rows; r++, from += strides[0], to += n) {
        if (strides[1] == 1) {
            memcpy(to, from, (size_t)n * sizeof(float));
            continue;
        }
        for (int c = 0; c < n; c++) {
            to[c] = from[c * strides[1]];
        }
    }
}

/* As many rows as fit into a strip, from row `row` on. Operands that are the same for all rows are
 * loaded for the first strip alone, which has most rows. */
static int run_rows(struct machine *machine, const struct tnd_fuse_matrix *matrix,
                    const void *const *in, const struct tnd_fuse_tile *tile, int row, int column)
{
    const struct tnd_fuse *fuse = machine->fuse;
    const int left = tile->n_columns - column;
    const int n = left < TND_LANES ? left : TND_LANES;
    const int fit = TND_LANES / n;
    const int n_rows = tile->n_rows - row < fit ? tile->n_rows - row : fit;
    float *values = tile->values + row * tile->stride + column;
    for (int i = 0; i < fuse->n_inputs; i++) {
        const int64_t *strides = matrix->strides[i];
        if (i == matrix->self && n_rows * n == TND_LANES && (n_rows == 1 || tile->stride == n)) {
            machine->at[i] = values;
        } else if (i == matrix->self) {
            load_rows(machine, i, values, (const int64_t[2]){tile->stride, 1}, n_rows, n);
        } else if (row == 0 || strides[0] != 0) {
            load_rows(machine, i,
                      (const float *)in[i] + (tile->row + row) * strides[0] +
                          (tile->column + column) * strides[1],
                      strides, n_rows, n);
        }
    }
    run_steps(machine, n_rows * n);
    const float *from = machine->at[fuse->n_inputs + fuse->n_steps - 1];
    for (int r = 0; r < n_rows; r++) {
        memcpy(values + r * tile->stride, from + r * n, (size_t)n * sizeof(float));
    }
    return n_rows;
}

void tnd_fuse_tile(const struct tnd_fuse *fuse, const struct tnd_fuse_matrix *matrix,
                   const void *const *in, const struct tnd_fuse_tile *tile)
{
    struct machine machine;
    const size_t used = (size_t)(fuse->n_inputs + fuse->n_steps);
    machine.fuse = fuse;
    memset(machine.registers, 0, used * sizeof(machine.registers[0]));
    for (int column = 0; column < tile->n_columns; column += TND_LANES) {
        for (int row = 0; row < tile->n_rows;) {
            row += run_rows(&machine, matrix, in, tile, row, column);
        }
    }
}
