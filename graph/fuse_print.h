/* SPDX-License-Identifier: MIT
 * Prints programs of operations as source text: one generator for C, OpenCL C and CUDA C. Shapes,
 * strides and constants are printed as literals, so that the compiler knows them. */
#ifndef TND_FUSE_PRINT_H
#define TND_FUSE_PRINT_H

#include "base/text.h"
#include "ggml-like/fuse_program.h"

enum tnd_dialect { TND_DIALECT_C, TND_DIALECT_OPENCL, TND_DIALECT_CUDA, TND_N_DIALECTS };

/** Default name of the function. */
#define TND_PRINTED_NAME "tandem_node"

/** Where an operand of a program lies. */
struct tnd_fuse_place {
    int buffer;        /* index of the argument; -1: `value` */
    int64_t offset;    /* in values of its type */
    const void *value; /* its only value, a constant */
};

/** What a value of a matrix {rows, columns} is taken from: buffer 0 under a window. PRODUCTS: the
 *  sum of products with the weights of buffer 1; rows are places of the result, over all images,
 *  columns its channels. LARGEST, SUM: of a channel; rows and columns are the same, or with
 *  `is_plain` channels of all images, and places of one. COLUMNS: each place under the window as it
 *  is, 0 in the padding; rows: by group the places of the result; columns: taps with their
 *  channels. */
enum tnd_printed_window_kind {
    TND_WINDOW_PRODUCTS,
    TND_WINDOW_LARGEST,
    TND_WINDOW_SUM,
    TND_WINDOW_COLUMNS
};
struct tnd_printed_window {
    enum tnd_printed_window_kind kind;
    int n; /* dimensions of the window; extents of input and result */
    int64_t in[TANDEM_NET_MAX_WINDOW], out[TANDEM_NET_MAX_WINDOW];
    int64_t taps[TANDEM_NET_MAX_WINDOW], stride[TANDEM_NET_MAX_WINDOW];
    int64_t dilation[TANDEM_NET_MAX_WINDOW], begin[TANDEM_NET_MAX_WINDOW];
    int64_t
        strides[TANDEM_NET_MAX_WINDOW]; /* of the input, in values; `offset`: of its first one */
    int64_t image_stride, channel_stride, offset;
    int64_t n_places; /* COLUMNS: of all images; is_plain: of one */
    int64_t channels; /* of a group, or all of a pool */
    bool is_plain;
    /* PRODUCTS: filters of a group; blocks of `width` filters, of which a group has those for
     * `packed_filters`; `run` values at each of `n_taps` */
    int64_t filters, packed_filters, width, run, n_taps;
};

/** Values that are only moved. JOINED: the operands side by side along an axis, operand `i` before
 *  ends[i], its offset that of place 0 of the result. GATHERED: operand 0 where operand 1 says, by
 *  place of the axis; negative: from ends[0] back. */
enum tnd_printed_move { TND_MOVE_NONE, TND_MOVE_JOINED, TND_MOVE_GATHERED };

/** A program and how it walks. */
struct tnd_fuse_printed {
    const struct tnd_fuse *fuse;
    const struct tnd_fuse_space *space;
    struct tnd_fuse_place in[TND_FUSE_INPUTS];
    int n_buffers;
    int n_reduced;                           /* trailing dimensions reduced to one result */
    enum tandem_reduce reduce;               /* kind of reduction, if n_reduced > 0 */
    const char *name;                        /* of the function; NULL: TND_PRINTED_NAME */
    const struct tnd_printed_window *window; /* source of operand `self`; NULL: none */
    int self;
    enum tnd_printed_move move; /* replaces the program, which only gives the type */
    int axis;
    int64_t ends[TND_FUSE_INPUTS];
};

/** Whether it can be printed: some integer operations cannot. */
bool tnd_fuse_can_print(const struct tnd_fuse_printed *what);
/** Adds a source to `out`; false, and nothing that is of use, where there is none. The function
 *  computes values of the result, which lies without gaps:
 *
 *      C       void tandem_node(void *y, const void *const *b, long long begin, long long end)
 *      OpenCL  kernel void tandem_node(global uchar *y, ulong y_at, global const uchar *b0,
 *                                      ulong b0_at, ..)          one work item a value
 *      CUDA    extern "C" __global__ void tandem_node(..)        the same arguments
 *
 *  `y_at` and the like are offsets in bytes. Work items behind the last value do nothing. */
bool tnd_fuse_print(const struct tnd_fuse_printed *what, enum tnd_dialect dialect,
                    struct tnd_text *out);
/** As tnd_fuse_print, without the prelude of a source. */
bool tnd_fuse_print_function(const struct tnd_fuse_printed *what, enum tnd_dialect dialect,
                             struct tnd_text *out);
/** Number of values of the result. */
int64_t tnd_fuse_print_values(const struct tnd_fuse_printed *what);
/** Whether the printed code uses double. */
bool tnd_fuse_print_has_double(const struct tnd_fuse_printed *what);

/* fuse_print.c: code that combines `sum` with a value `x` */
const char *tnd_fuse_print_combine(enum tandem_reduce reduce);

/* fuse_print_window.c: code of `float sum` of row i0 and column i1, from buffers px and pw */
void tnd_fuse_print_window(const struct tnd_printed_window *window, enum tnd_dialect dialect,
                           const char *indent, struct tnd_text *out);

/* fuse_print_text.c: the prelude of a source, before all functions */
void tnd_fuse_print_prelude(enum tnd_dialect dialect, bool has_double, struct tnd_text *out);

#endif
