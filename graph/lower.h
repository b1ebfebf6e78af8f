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

/** Owns tensors, graph and folded constants. */
struct tnd_lowered;

/** Fewest channels of Winograd's method: lower_winograd.c says why. */
enum { TND_WINOGRAD_CHANNELS = 16 };

/** A copy that changes the layout of a value, for a reader that cannot follow the other one. */
struct tnd_conversion {
    struct tnd_dims shape;
    bool is_last;     /* to channels last; else to the order of the dimensions */
    const char *name; /* of the value; NULL: none. Of the net */
};

/** Where the texts of generated kernels go: one line "// ---- kernel" stands in front of each. */
struct tnd_lower_kernels {
    enum tnd_dialect dialect;
    struct tnd_text *text;
};

struct tnd_lower_options {
    const struct tandem_chooser *chooser;    /* of methods of convolutions; NULL: the rule */
    const struct tnd_lower_kernels *kernels; /* NULL: not wanted */
    bool is_last;                            /* inputs and outputs have their channels last */
    bool for_device; /* convolutions are computed in ways that have a text, on more memory */
    struct tnd_net *gives_up; /* the net itself: constants that are not read any more are freed, so
                                 that it cannot be lowered again; NULL: it stays as it is */
};

/** Lowers a net, which must outlive the result and not change. What depends on constants alone is
 *  computed now. The caller owns the result. One thread at a time a net. Errors: those of the
 *  net's builders, those of computing constants, MEMORY. */
enum tandem_status tnd_net_lower(const struct tnd_net *net, struct tnd_lowered **out,
                                 struct tandem_error *error);
/** As tnd_net_lower, with options. */
enum tandem_status tnd_net_lower_with(const struct tnd_net *net,
                                      const struct tnd_lower_options *options,
                                      struct tnd_lowered **out, struct tandem_error *error);
/** NULL is allowed. No runtime may be computing the graph. */
void tnd_lowered_free(struct tnd_lowered *lowered);

/** Bytes that it takes, without constants that others share. */
size_t tnd_lowered_bytes(const struct tnd_lowered *lowered);

/** The graph, finished, owned by `lowered`. */
tandem_graph *tnd_lowered_graph(const struct tnd_lowered *lowered);

/** How convolution `i`, in the order of the net, is computed; NULL behind the last one. Those that
 *  are computed by plain code are not among them. */
const struct tnd_conv_choice *tnd_lowered_conv(const struct tnd_lowered *lowered, int i);

/** Change `i` of a layout, in the order of the net; NULL behind the last one. */
const struct tnd_conversion *tnd_lowered_conversion(const struct tnd_lowered *lowered, int i);

/** Copies values into input `i` (of the net's inputs), where they stay for all computations that
 *  follow. Errors: SHAPE (type or shape differ), ARGUMENT (other values than the net was
 *  specialised with). */
enum tandem_status tnd_lowered_set_input(struct tnd_lowered *lowered, int i,
                                         const struct tnd_array *array, struct tandem_error *error);
/** Where the values of input `i` and of output `i` are, in the form of an array, while no graph
 *  computes: to fill and to read them without a copy. Never NULL. */
void *tnd_lowered_input(const struct tnd_lowered *lowered, int i);
const void *tnd_lowered_output(const struct tnd_lowered *lowered, int i);
/** A copy of output `i` after a computation, which the caller frees. Errors: MEMORY. */
enum tandem_status tnd_lowered_get_output(const struct tnd_lowered *lowered, int i,
                                          struct tnd_array **out, struct tandem_error *error);

#endif
