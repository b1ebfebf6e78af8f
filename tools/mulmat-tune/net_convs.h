/* SPDX-License-Identifier: MIT
 * The convolutions of an ONNX model, for the commands that measure, explain and judge them. */
#ifndef MULMAT_TUNE_NET_CONVS_H
#define MULMAT_TUNE_NET_CONVS_H

#include "ggml-like/conv_method.h"
#include "tandem/onnx_nets.h"
#include "tools/args.h"

/* --net and --dim. */
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
    tandem_lowered *lowered;
    int n;
    struct tnd_conv_question *questions; /* those with several methods, no two alike */
};

/** Builds and lowers the model; the caller owes net_convs_fini. Errors: those of
 *  tandem_onnx_net and tandem_net_lower. */
enum tandem_status net_convs_read(const struct net_option *option, struct net_convs *out,
                                  struct tandem_error *error);
void net_convs_fini(struct net_convs *convs);

#endif
