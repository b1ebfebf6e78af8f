/* SPDX-License-Identifier: MIT
 * The option --dim NAME=N of tools that read ONNX models. */
#ifndef TND_DIM_OPTION_H
#define TND_DIM_OPTION_H

#include "tandem/onnx_nets.h"
#include "tools/args.h"

/** Parses "NAME=N" words. Free `dims` with tnd_dim_option_free, also after a failure. Errors:
 * ARGUMENT, MEMORY. */
enum tandem_status tnd_dim_option_read(const struct args_strings *words,
                                       struct tandem_onnx_dim dims[ARGS_LIST_MAX],
                                       struct tandem_error *error);
void tnd_dim_option_free(const struct args_strings *words,
                         struct tandem_onnx_dim dims[ARGS_LIST_MAX]);

#endif
