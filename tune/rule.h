/* SPDX-License-Identifier: MIT
 * The fixed rule: what is done without a table, or outside of it. */
#ifndef TND_RULE_H
#define TND_RULE_H

#include "tandem/ops.h"
#include "tune/policy.h"

/** From this many tokens on a matrix product goes to BLAS where there is one; the threshold that
 *  llama.cpp  used (ggml_compute_forward_mul_mat_use_blas) when the original proposal was made. */
/** Name of the profile for a product of m tokens, static storage; the planner falls back to "cpu"
 *  where it cannot run. Any thread. */
const char *tnd_rule_profile(int64_t m);

/** Threads for a node: 1 when its work is too small to pay for handing it to others, else
 *  n_threads. `handoff_us`: what that was measured to cost; 0: unknown. */
int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us);

#endif
