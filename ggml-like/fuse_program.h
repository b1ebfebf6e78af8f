/* SPDX-License-Identifier: MIT
 * A chain or tree of element-wise operations as one program over registers. A register holds a
 * strip of TND_STRIP values, so intermediate values never go through memory. */
#ifndef TND_FUSE_PROGRAM_H
#define TND_FUSE_PROGRAM_H

#include "ggml-like/fuse_code.h"
#include "ggml-like/net_kernels.h"

enum {
    TND_FUSE_INPUTS = 8,     /* most operands of a program */
    TND_FUSE_REGISTERS = 32, /* most operands and steps together */
    TND_FUSE_PART = 4096     /* rows longer than twice this are computed in parts */
};

/** Register `i` is operand `i`; step `i` writes register n_inputs + i. */
struct tnd_fuse_step {
    enum tnd_net_op op;
    int kind;
    enum tandem_dtype type; /* of the result */
    int n_in;
    int in[3]; /* registers */
    struct tnd_strip_job job;
    bool rounds; /* the result is rounded to what `type` can store */
    int n_fast;  /* steps from this one on that the kernel runs at once; 0: `job` runs this one */
    int codes;   /* if n_fast > 0: index of their first code */
};

/** How a register holds its values. */
enum tnd_fuse_form {
    TND_FORM_LANE,  /* in the lane type of its type, tnd_lane_of */
    TND_FORM_FLOAT, /* as floats, whatever the type. Types of 16 bits and less are exact; wider
                     * integers are operands that are only cast to F32, or results cast from F32 */
    TND_FORM_MASK,  /* truth values: all bits of a float set, or none */
    TND_FORM_I32    /* 32-bit integers */
};

struct tnd_fuse {
    int n_inputs;
    enum tandem_dtype inputs[TND_FUSE_INPUTS];
    int n_steps;
    struct tnd_fuse_step steps[TND_FUSE_REGISTERS];
    struct tnd_fuse_code codes[4 * TND_FUSE_REGISTERS];
    enum tnd_fuse_form forms[TND_FUSE_REGISTERS];
};

static inline enum tandem_dtype tnd_fuse_type(const struct tnd_fuse *fuse, int i)
{
    return i < fuse->n_inputs ? fuse->inputs[i] : fuse->steps[i - fuse->n_inputs].type;
}

/** Appends an operand (all operands before the first step) or a step; returns its register. The
 * caller keeps within the limits. */
int tnd_fuse_input(struct tnd_fuse *fuse, enum tandem_dtype type);
int tnd_fuse_step(struct tnd_fuse *fuse, enum tnd_net_op op, int kind, enum tandem_dtype type,
                  const int *in, int n_in);

/** How a program walks over its operands: rows of an iteration space whose result is dense.
 * Adjacent dimensions that all operands can walk as one are merged. */
struct tnd_fuse_space {
    struct tnd_dims shape;
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS];
    int64_t n_units;   /* rows, or parts of long ones */
    int64_t row_units; /* units per row */
    int64_t item_units;
    int64_t n_items; /* work items of several units each */
};

/** The space over `shape` for operands with these strides. `order` (NULL: unchanged) permutes the
 * dimensions. */
void tnd_fuse_space(struct tnd_fuse_space *space, int n_inputs, const struct tnd_dims *shape,
                    int64_t (*strides)[TANDEM_NET_MAX_DIMS], const int *order);

/** Part of a matrix {rows, columns} that a program takes as its operand `self` and replaces by its
 * result. */
struct tnd_fuse_tile {
    int64_t row, column; /* index of the first value */
    int n_rows, n_columns;
    float *values;
    int64_t stride; /* between rows of `values` */
};

/** How the other operands lie: value (r, c) is at offset `strides[0] * r + strides[1] * c`, in
 * values. All operands and the result are F32. */
struct tnd_fuse_matrix {
    int self;
    int64_t strides[TND_FUSE_INPUTS][2];
};

/* fuse_program.c */
/** Views a shape as the matrix {all axes but 1, axis 1} for operands with these strides; false if
 * the rows of an operand are not equally spaced. `self` is skipped. */
bool tnd_fuse_matrix(struct tnd_fuse_matrix *matrix, int self, int n_inputs,
                     const struct tnd_dims *shape, int64_t (*strides)[TANDEM_NET_MAX_DIMS]);

/* fuse_code.c */
/** Whether kernels run all steps. */
bool tnd_fuse_is_fast(const struct tnd_fuse *fuse);
/** Finds the steps that kernels run, and generates their codes. */
void tnd_fuse_translate(struct tnd_fuse *fuse);

#endif
