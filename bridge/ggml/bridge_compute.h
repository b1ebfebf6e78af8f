/* SPDX-License-Identifier: MIT
 * Computing the host's products with one runtime of the process. Any thread; one at a time goes
 * on. */
#ifndef TND_BRIDGE_COMPUTE_H
#define TND_BRIDGE_COMPUTE_H

#include "bridge/ggml/ggml_abi.h"

/** Computes the products of a graph, in its order; its other nodes compute nothing. Returns
 *  GGML_STATUS_*; a failure is told to the host's log. */
int tnd_bridge_compute(struct ggml_cgraph *graph);
/** Computes with as many threads as a runtime of ours has from now on, and says how many. */
int tnd_bridge_use_own_threads(void);
/** Threads of later computations: what the host uses, at most what a runtime of ours would. */
void tnd_bridge_set_threads(int n_threads);

#endif
