/* SPDX-License-Identifier: MIT
 * What operations took, beside what their plans predicted. */
#ifndef TND_OP_TIMES_H
#define TND_OP_TIMES_H

#include <stdio.h>

#include "tandem/runtime.h"

/* Sums over computations. */
struct tnd_op_time_sum {
    double us; /* of all stages, moving data included */
    int64_t n; /* nodes that were computed */
    double predicted_us;
    int64_t n_predicted; /* nodes for which the plan knew a time */
};

struct tnd_op_times {
    struct tnd_op_time_sum ops[TANDEM_OP_COUNT]; /* by enum tandem_op */
};

/** For tandem_compute_options.timed; `user` is a struct tnd_op_times that began as zeros. */
void tnd_op_times_add(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
/** For tandem_session_options.adjust: takes what the plan predicts for each
 *  node, changes nothing. */
void tnd_op_times_predict(void *user, const tandem_graph *graph, tandem_plan *plan);
/** A line an operation that was computed; nothing where nothing was. */
void tnd_op_times_print(const struct tnd_op_times *times, FILE *out);

#endif
