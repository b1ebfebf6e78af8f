/* SPDX-License-Identifier: MIT
 * Programs of operations as source text: one generator, printed as C, OpenCL C and CUDA C. Shapes,
 * strides and constants stand in the text as numbers, so that the compiler knows them. */
#ifndef TND_FUSE_PRINT_H
#define TND_FUSE_PRINT_H

#include "base/text.h"
#include "graph/fuse_program.h"

enum tnd_dialect { TND_DIALECT_C, TND_DIALECT_OPENCL, TND_DIALECT_CUDA, TND_N_DIALECTS };

/** Name of the function, if no other is wanted. */
#define TND_PRINTED_NAME "tandem_node"

/** Where an operand of a program lies. */
struct tnd_fuse_place {
    int buffer;        /* argument; -1: `value` */
    int64_t offset;    /* in values of its type */
    const void *value; /* the one value that it has */
};

/** A program and how it walks. */
struct tnd_fuse_printed {
    const struct tnd_fuse *fuse;
    const struct tnd_fuse_space *space;
    struct tnd_fuse_place in[TND_FUSE_INPUTS];
    int n_buffers;
    int n_reduced;          /* last dimensions of the space that one result takes together */
    enum tnd_reduce reduce; /* how, where n_reduced > 0 */
    const char *name;       /* of the function; NULL: TND_PRINTED_NAME */
};

/** Adds a source to `out`; false, and nothing that is of use, for operations that have no text
 *  (some of integers). The function computes values of the result, which lies without gaps:
 *
 *      C       void tandem_node(void *y, const void *const *b, long long begin, long long end)
 *      OpenCL  kernel void tandem_node(global uchar *y, ulong y_at, global const uchar *b0,
 *                                      ulong b0_at, ..)          one work item a value
 *      CUDA    extern "C" __global__ void tandem_node(..)        the same arguments
 *
 *  `y_at` and the like are offsets in bytes. Work items behind the last value do nothing. */
bool tnd_fuse_print(const struct tnd_fuse_printed *what, enum tnd_dialect dialect,
                    struct tnd_text *out);
/** The same without what stands in front of all functions of a source. */
bool tnd_fuse_print_function(const struct tnd_fuse_printed *what, enum tnd_dialect dialect,
                             struct tnd_text *out);
/** Values of the result. */
int64_t tnd_fuse_print_values(const struct tnd_fuse_printed *what);
/** Whether the text computes with double. */
bool tnd_fuse_print_has_double(const struct tnd_fuse_printed *what);

/* fuse_print_text.c: what stands in front of all functions */
void tnd_fuse_print_prelude(enum tnd_dialect dialect, bool has_double, struct tnd_text *out);

#endif
