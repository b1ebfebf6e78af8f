/* SPDX-License-Identifier: MIT
 * Measured times of operations, beside those that their plans predicted. */
#ifndef TND_OP_TIMES_H
#define TND_OP_TIMES_H

#include <stdio.h>

#include "tandem/runtime.h"

/* Sums over computations. */
struct tnd_op_time_sum {
    double us; /* of all stages, transfers included */
    int64_t n; /* nodes that were computed */
    double predicted_us;
    int64_t n_predicted; /* nodes with a predicted time */
};

struct tnd_op_times {
    struct tnd_op_time_sum ops[TANDEM_OP_COUNT]; /* by enum tandem_op */
};

/** For tandem_compute_options.timed; `user` is a struct tnd_op_times that was zeroed before. */
void tnd_op_times_add(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
/** For tandem_session_options.adjust: adds the plan's prediction for each node; does not change the
 * plan. */
void tnd_op_times_predict(void *user, const tandem_graph *graph, tandem_plan *plan);
/** Prints one line per operation that was computed; nothing if there was none. */
void tnd_op_times_print(const struct tnd_op_times *times, FILE *out);

#endif
