/* SPDX-License-Identifier: MIT
 * Reference kernels of nets: one function per operation. Operands are views; the result is written
 * without gaps. They are not fast: faster kernels are compared with them. */
#ifndef TND_NET_KERNELS_H
#define TND_NET_KERNELS_H

#include "base/tnd_status.h"
#include "ggml-like/net_op.h"

/** Puts the operation and its name before the error's message, if there is one. */
void tnd_net_name_error(enum tnd_net_op op, const char *name, struct tandem_error *error);

/** Arguments of a kernel. */
struct tnd_kernel_call {
    const struct tnd_net_params *params;
    const struct tnd_view *in;
    int n_in;
    struct tnd_array *out;
    void *scratch; /* tnd_kernel_scratch bytes, aligned for 64 bits; NULL where that is 0 */
    struct tandem_error *error;
};

typedef enum tandem_status (*tnd_net_kernel_fn)(const struct tnd_kernel_call *call);
/** The reference kernel of an operation. */
tnd_net_kernel_fn tnd_net_kernel(enum tnd_net_op op);
/** Bytes of scratch memory that an operation's kernel needs for any part of its first two
 * operands, which have the shapes `in`. */
size_t tnd_kernel_scratch(enum tnd_net_op op, const struct tnd_net_params *params,
                          const struct tnd_dims *const in[2]);

/* net_elementwise.c */
/** A function over strips: loads `in` as `lanes`, stores `out` from `out_lane`. */
struct tnd_strip_job {
    enum tnd_lane lanes[3]; /* of the operands */
    enum tnd_lane out_lane;
    int kind;
    unsigned bits; /* of an operand's value, for shifts */
    void (*run)(const struct tnd_strip_job *job, const union tnd_values *in, int n,
                union tnd_values *out);
};
/** The function of TND_NET_COPY, CAST, UNARY, BINARY or SELECT; `in` is the type of the first
 *  operand. */
struct tnd_strip_job tnd_strip_job_of(enum tnd_net_op op, int kind, enum tandem_dtype in,
                                      enum tandem_dtype out);
enum tandem_status tnd_kernel_copy(const struct tnd_kernel_call *call); /* and casts */
enum tandem_status tnd_kernel_unary(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_binary(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_select(const struct tnd_kernel_call *call);
/** A binary function on strips, computed as TND_NET_BINARY does; `lane` is never U64 for kinds
 * that work on bits. */
void tnd_binary_strip(enum tandem_binary kind, enum tnd_lane lane, const union tnd_values *a,
                      const union tnd_values *b, int n, unsigned bits, union tnd_values *out);
/* net_reduce.c */
enum tandem_status tnd_kernel_reduce(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_arg_reduce(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_scan(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_arg_sort(const struct tnd_kernel_call *call);
size_t tnd_kernel_sort_scratch(int64_t n);
/* net_move.c */
/** An index into `n` values, counted from the end when it is negative. Errors: ARGUMENT. */
enum tandem_status tnd_kernel_index(int64_t *index, int64_t n, struct tandem_error *error);
/** Index of the value, of `n` along a dimension, that element `at` of a pad copies; -1: the
 * constant. */
int64_t tnd_kernel_pad_source(enum tandem_pad mode, int64_t at, int64_t n);
enum tandem_status tnd_kernel_concat(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_pad(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_gather(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_gather_elements(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_scatter_elements(const struct tnd_kernel_call *call);
/* net_linear.c */
enum tandem_status tnd_kernel_contract(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_conv(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_pool(const struct tnd_kernel_call *call);
/* net_row_kernels.c */
enum tandem_status tnd_kernel_softmax(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_norm(const struct tnd_kernel_call *call);
enum tandem_status tnd_kernel_attention(const struct tnd_kernel_call *call);
/* net_recurrent.c */
enum tandem_status tnd_kernel_recurrent(const struct tnd_kernel_call *call);

#endif
