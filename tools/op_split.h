/* SPDX-License-Identifier: MIT
 * Where the time of a graph goes, by operation. */
#ifndef TND_OP_SPLIT_H
#define TND_OP_SPLIT_H

#include <stdio.h>

#include "tandem/runtime.h"

struct tnd_op_time {
    char name[64]; /* "mul_mat", "attention", ...; in nets: "conv", "fused", ... */
    double us;
};

struct tnd_op_split {
    struct tnd_op_time rows[64];
    int n;
    double total_us;
};

/** For tandem_compute_options.timed; `user` is a struct tnd_op_split that was zeroed before. */
void tnd_op_split_add(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
/** Prints one line: "mul_mat 83.1 %, attention 11.1 %, ...", largest first. */
void tnd_op_split_print(const struct tnd_op_split *split);

/** Prints the nodes of a graph that run on reference kernels, one per line, and their number;
 * nothing if there are none. */
void tnd_op_split_print_slow(const tandem_graph *graph, FILE *out);

#endif
