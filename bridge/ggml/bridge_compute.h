/* SPDX-License-Identifier: MIT
 * Computing the host's products with one runtime of the process. Any thread; one at a time goes
 * on. */
#ifndef TND_BRIDGE_COMPUTE_H
#define TND_BRIDGE_COMPUTE_H

#include "bridge/ggml/ggml_abi.h"
#include "tandem/runtime.h"

/** Computes the products of a graph, in its order; its other nodes compute nothing. Returns
 *  GGML_STATUS_*; a failure is told to the host's log. */
int tnd_bridge_compute(struct ggml_cgraph *graph);
/** Fills what the runtime knows of the machine and says how many threads compute, one a core where
 *  the host has not said; 0: there is no runtime. */
int tnd_bridge_describe(struct tandem_runtime_info *out);
/** Threads of later computations: what the host uses, at most what a runtime of ours would. */
void tnd_bridge_set_threads(int n_threads);

#endif
