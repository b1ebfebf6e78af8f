/* SPDX-License-Identifier: MIT
 * The convolutions of an ONNX model, for the commands that measure, explain and test them. */
#ifndef MULMAT_TUNE_NET_CONVS_H
#define MULMAT_TUNE_NET_CONVS_H

#include "ggml-like/conv_method.h"
#include "tools/args.h"
#include "tools/model_parts.h"

/* The options --net and --dim. */
struct net_option {
    const char *path; /* NULL: not given */
    struct args_strings dims;
};
#define NET_OPTION_ROWS(option, help)                                                              \
    {"net", ARGS_STRING, &(option)->path, 0, 0, "MODEL.onnx", help},                               \
    {                                                                                              \
        "dim", ARGS_STRINGS, &(option)->dims, 0, 0, "NAME=N",                                      \
            "with --net: extent of a dimension with a name"                                        \
    }

struct net_convs {
    tandem_onnx *model;
    struct tnd_model_inputs inputs; /* generated: tools/model_parts.h */
    int n_parts;
    int n; /* distinct convolutions with several methods */
    TND_VECTOR_OF(struct tnd_conv_shape, shapes);
    TND_VECTOR_OF(struct tnd_conv_question, questions);
};

/** Opens, builds and lowers the model, and computes what its extents depend on; the caller must
 * call net_convs_fini, also after an error. Errors: those of tnd_model_inputs_make and
 * tandem_onnx_begin, of opening a runtime and computing. */
enum tandem_status net_convs_read(const struct net_option *option, struct net_convs *out,
                                  struct tandem_error *error);
void net_convs_fini(struct net_convs *convs);

#endif
