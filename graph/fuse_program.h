/* SPDX-License-Identifier: MIT
 * A chain or tree of operations, value by value, as one program over registers. A register holds a
 * strip of TND_LANES values, so that what is between two operations never goes through memory. */
#ifndef TND_FUSE_PROGRAM_H
#define TND_FUSE_PROGRAM_H

#include "graph/net_kernels.h"

enum {
    TND_FUSE_INPUTS = 8,    /* most operands of a program */
    TND_FUSE_REGISTERS = 32 /* operands and steps together */
};

/** A step over whole strips of F32: operands (those that it has) and result. */
typedef void (*tnd_strip_fn)(const float *a, const float *b, float *out);

/** Register `i` is operand `i`; step `i` writes register n_inputs + i. */
struct tnd_fuse_step {
    enum tnd_net_op op;
    int kind;
    enum tnd_dtype type; /* of the result */
    int n_in;
    int in[3]; /* registers */
    struct tnd_strip_job job;
    bool rounds;       /* the register is brought to what `type` can store */
    tnd_strip_fn fast; /* the same bits, faster; NULL: `job` */
};

struct tnd_fuse {
    int n_inputs;
    enum tnd_dtype inputs[TND_FUSE_INPUTS];
    int n_steps;
    struct tnd_fuse_step steps[TND_FUSE_REGISTERS];
};

/** Adds an operand, which comes before all steps, or a step; gives its register. The caller keeps
 *  within the limits. */
int tnd_fuse_input(struct tnd_fuse *fuse, enum tnd_dtype type);
int tnd_fuse_step(struct tnd_fuse *fuse, enum tnd_net_op op, int kind, enum tnd_dtype type,
                  const int *in, int n_in);

/** How a program goes over its operands: rows of an iteration space whose result lies without gaps.
 *  Dimensions that all operands walk as one are one. */
struct tnd_fuse_space {
    struct tnd_dims shape;
    int64_t strides[TND_FUSE_INPUTS][TND_NET_MAX_DIMS];
    int64_t n_units;   /* rows, or parts of long ones */
    int64_t row_units; /* of a row */
    int64_t item_units;
    int64_t n_items; /* of several units each */
};

/** The space over `shape` for operands with these strides. `order` (NULL: as they are) says which
 *  dimension is walked as which. */
void tnd_fuse_space(struct tnd_fuse_space *space, int n_inputs, const struct tnd_dims *shape,
                    int64_t (*strides)[TND_NET_MAX_DIMS], const int *order);

/** Computes items `begin` to `end - 1`. `in`: where the values at index 0 are. */
void tnd_fuse_run(const struct tnd_fuse *fuse, const struct tnd_fuse_space *space,
                  const void *const *in, void *out, int64_t begin, int64_t end);

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

/** The matrix {all but axis 1, axis 1} over a shape for operands with these strides; false where
 *  the rows of an operand are not equally far from each other. `self` is skipped. */
bool tnd_fuse_matrix(struct tnd_fuse_matrix *matrix, int self, int n_inputs,
                     const struct tnd_dims *shape, int64_t (*strides)[TND_NET_MAX_DIMS]);

/** Computes one tile in place, with the bits of tnd_fuse_run. */
void tnd_fuse_tile(const struct tnd_fuse *fuse, const struct tnd_fuse_matrix *matrix,
                   const void *const *in, const struct tnd_fuse_tile *tile);

/* fuse_strips.c */
/** The fast function of a step whose operands and result are F32; NULL: none. */
tnd_strip_fn tnd_strip_fast(enum tnd_net_op op, int kind);

#endif
