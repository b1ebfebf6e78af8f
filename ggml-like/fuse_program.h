/* SPDX-License-Identifier: MIT
 * A chain or tree of operations, value by value, as one program over registers. A register holds a
 * strip of TND_STRIP values, so that what is between two operations never goes through memory. */
#ifndef TND_FUSE_PROGRAM_H
#define TND_FUSE_PROGRAM_H

#include "ggml-like/fuse_code.h"
#include "ggml-like/net_kernels.h"

enum {
    TND_FUSE_INPUTS = 8,     /* most operands of a program */
    TND_FUSE_REGISTERS = 32, /* operands and steps together */
    TND_FUSE_PART = 4096     /* a row longer than twice this is done in parts */
};

/** Register `i` is operand `i`; step `i` writes register n_inputs + i. */
struct tnd_fuse_step {
    enum tnd_net_op op;
    int kind;
    enum tandem_dtype type; /* of the result */
    int n_in;
    int in[3]; /* registers */
    struct tnd_strip_job job;
    bool rounds; /* the register is brought to what `type` can store */
    int n_fast;  /* steps from here on that the kernel runs at once; 0: `job` runs this one */
    int codes;   /* where n_fast > 0: of those steps */
};

/** How a register holds its values. */
enum tnd_fuse_form {
    TND_FORM_LANE,  /* as tnd_lane_of its type says */
    TND_FORM_FLOAT, /* as floats, whatever the type: those of 16 bits and less are exact; wider
                       integers are operands that are cast to F32 alone, or were cast from F32 */
    TND_FORM_MASK,  /* truth values as all bits of a float, or none */
    TND_FORM_I32    /* 32-bit integers as they are */
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

/** Adds an operand, which comes before all steps, or a step; gives its register. The caller keeps
 *  within the limits. */
int tnd_fuse_input(struct tnd_fuse *fuse, enum tandem_dtype type);
int tnd_fuse_step(struct tnd_fuse *fuse, enum tnd_net_op op, int kind, enum tandem_dtype type,
                  const int *in, int n_in);

/** How a program goes over its operands: rows of an iteration space whose result lies without gaps.
 *  Dimensions that all operands walk as one are one. */
struct tnd_fuse_space {
    struct tnd_dims shape;
    int64_t strides[TND_FUSE_INPUTS][TANDEM_NET_MAX_DIMS];
    int64_t n_units;   /* rows, or parts of long ones */
    int64_t row_units; /* of a row */
    int64_t item_units;
    int64_t n_items; /* of several units each */
};

/** The space over `shape` for operands with these strides. `order` (NULL: as they are) says which
 *  dimension is walked as which. */
void tnd_fuse_space(struct tnd_fuse_space *space, int n_inputs, const struct tnd_dims *shape,
                    int64_t (*strides)[TANDEM_NET_MAX_DIMS], const int *order);

/** Some values of a matrix {rows, columns} on their way into a program: operand `self` of it. They
 *  are replaced by what the program makes of them. */
struct tnd_fuse_tile {
    int64_t row, column; /* of the first value */
    int n_rows, n_columns;
    float *values;
    int64_t stride; /* from one row of `values` to the next */
};

/** How the other operands lie: value (r, c) is `strides[0] * r + strides[1] * c` values behind the
 *  first one. All operands and the result are F32. */
struct tnd_fuse_matrix {
    int self;
    int64_t strides[TND_FUSE_INPUTS][2];
};

/* fuse_program.c */
/** The matrix {all but axis 1, axis 1} over a shape for operands with these strides; false where
 *  the rows of an operand are not equally far from each other. `self` is skipped. */
bool tnd_fuse_matrix(struct tnd_fuse_matrix *matrix, int self, int n_inputs,
                     const struct tnd_dims *shape, int64_t (*strides)[TANDEM_NET_MAX_DIMS]);

/* fuse_code.c */
/** Whether kernels run all steps. */
bool tnd_fuse_is_fast(const struct tnd_fuse *fuse);
/** Finds which steps kernels run, and makes their codes. */
void tnd_fuse_translate(struct tnd_fuse *fuse);

#endif
