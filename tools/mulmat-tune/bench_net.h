/* SPDX-License-Identifier: MIT
 * mulmat-tune bench --net: the methods of a net's convolutions, and its products. */
#ifndef MULMAT_TUNE_BENCH_NET_H
#define MULMAT_TUNE_BENCH_NET_H

#include <signal.h>

#include "tools/mulmat-tune/net_convs.h"
#include "tools/mulmat-tune/open_runtime.h"

struct bench_net_request {
    const struct net_option *net;
    struct args_ints threads; /* none: 1, 2, 4, ... up to the number of cores */
    double budget_s;
    uint64_t begin_ns; /* start of the command: all of its time counts */
    const char *profile, *device;
    const volatile sig_atomic_t *interrupted;
};

/** Measures into `out_table`, which the caller owns; NULL when the model has nothing to measure.
 * Errors: those of reading the model and of measuring, CANCELLED (the table has what was
 * measured). */
enum tandem_status bench_net(const struct bench_net_request *request, tandem_table **out_table,
                             struct tandem_error *error);

#endif
