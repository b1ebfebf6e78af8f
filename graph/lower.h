/* SPDX-License-Identifier: MIT
 * Nets as graphs of tensors, which a runtime computes on its threads:
 *
 *     tnd_net_lower(net, &lowered, &error);
 *     tnd_lowered_set_input(lowered, i, array, &error);             for each input
 *     tandem_runtime_compute(runtime, tnd_lowered_graph(lowered), NULL, NULL, &error);
 *     tnd_lowered_get_output(lowered, i, array, &error);            for each output
 *
 * Products of F32 become tandem_mul_mat, for which the runtime's table chooses a profile; runs of
 * operations, value by value, become one node; the rest are nodes of their own. Values of other
 * types are carried as bytes in tensors of F32. The memory of what lies between is planned with the
 * graph, so that computing again allocates nothing.
 *
 * Results of convolutions, and of what is computed from them value by value or by windows, are kept
 * with their channels last as long as all readers take that; inputs and outputs never are. */
#ifndef TND_LOWER_H
#define TND_LOWER_H

#include "ggml-like/conv_method.h"
#include "graph/fuse_print.h"
#include "graph/net.h"
#include "tandem/graph.h"

/** A lowered net: owns tensors, graph and folded constants. */
struct tnd_lowered;

/** Fewest channels for Winograd's method: see lower_winograd.c. */
enum { TND_WINOGRAD_CHANNELS = 16 };

/** A copy that changes a value's layout, for a reader that needs the other one. */
struct tnd_conversion {
    struct tnd_dims shape;
    bool is_last;     /* to channels last; else to the order of dimensions */
    const char *name; /* name of the value, owned by the net; NULL: none */
};

/** Receives the texts of generated kernels, each preceded by a line "// ---- kernel". */
struct tnd_lower_kernels {
    enum tnd_dialect dialect;
    struct tnd_text *text;
};

struct tnd_lower_options {
    const struct tandem_chooser *chooser;    /* chooses methods of convolutions; NULL: the rule */
    const struct tnd_lower_kernels *kernels; /* NULL: not wanted */
    bool is_last;                            /* inputs and outputs have channels last */
    bool for_device;          /* prefers convolution methods that can be printed, on more memory */
    struct tnd_net *gives_up; /* the net itself: constants that are not read any more are freed, so
                                 that it cannot be lowered again; NULL: it stays as it is */
};

/** Lowers a net, which must outlive the result unchanged. Values that depend only on constants are
 * computed now. The caller owns the result. One thread at a time per net. Errors: those of the
 * net's builders, those of computing constants, MEMORY. */
enum tandem_status tnd_net_lower(const struct tnd_net *net, struct tnd_lowered **out,
                                 struct tandem_error *error);
/** As tnd_net_lower, with options. */
enum tandem_status tnd_net_lower_with(const struct tnd_net *net,
                                      const struct tnd_lower_options *options,
                                      struct tnd_lowered **out, struct tandem_error *error);
/** Frees it; NULL is allowed. No runtime may be computing its graph. */
void tnd_lowered_free(struct tnd_lowered *lowered);

/** Bytes used, without shared constants. */
size_t tnd_lowered_bytes(const struct tnd_lowered *lowered);

/** The graph, finished, owned by `lowered`. */
tandem_graph *tnd_lowered_graph(const struct tnd_lowered *lowered);

/** The method of convolution `i`, in the net's order; NULL after the last one. Convolutions
 * computed by plain code are not counted. */
const struct tnd_conv_choice *tnd_lowered_conv(const struct tnd_lowered *lowered, int i);

/** Layout conversion `i`, in the net's order; NULL after the last one. */
const struct tnd_conversion *tnd_lowered_conversion(const struct tnd_lowered *lowered, int i);

/** Copies values into input `i` of the net; they are kept for all following computations. Errors:
 * SHAPE (type or shape differ), ARGUMENT (other values than the net was specialised with). */
enum tandem_status tnd_lowered_set_input(struct tnd_lowered *lowered, int i,
                                         const struct tnd_array *array, struct tandem_error *error);
/** The data of input `i` and of output `i`, laid out as an array, to fill and read without a copy
 * while no graph is computed. Never NULL. */
void *tnd_lowered_input(const struct tnd_lowered *lowered, int i);
const void *tnd_lowered_output(const struct tnd_lowered *lowered, int i);
/** Copies output `i` after a computation; the caller frees the array. Errors: MEMORY. */
enum tandem_status tnd_lowered_get_output(const struct tnd_lowered *lowered, int i,
                                          struct tnd_array **out, struct tandem_error *error);

#endif
