/* SPDX-License-Identifier: MIT
 * Computing the host's products with one runtime of the process. Any thread; one at a time goes
 * on. */
#ifndef TND_BRIDGE_COMPUTE_H
#define TND_BRIDGE_COMPUTE_H

#include "bridge/ggml/ggml_abi.h"
#include "tandem/runtime.h"

/** Computes the nodes of a graph, in its order. Returns GGML_STATUS_*; a failure is told to the
 *  host's log. A trial's time teaches nothing about the threads to use. */
int tnd_bridge_compute(struct ggml_cgraph *graph, bool is_a_trial);
/** The host has placed a tensor of weights in `buffer`: when it lies in a mapped file, its values
 *  are there, and a matrix is packed now. Matrices of experts wait for their first use. */
void tnd_bridge_weights_mapped(struct ggml_backend_buffer *buffer,
                               const struct ggml_tensor *tensor);
/** The host has set bytes of a tensor of weights: what was packed of them is forgotten, and a
 *  matrix that was set as a whole is packed now. */
void tnd_bridge_weights_set(struct ggml_backend_buffer *buffer, const struct ggml_tensor *tensor,
                            size_t offset, size_t size);
/** The runtime, which lives as long as the process; NULL: it cannot be opened. */
tandem_runtime *tnd_bridge_runtime(void);
/** Fills what the runtime knows of the machine and says how many threads compute, one a core where
 *  the host has not said; 0: there is no runtime. */
int tnd_bridge_describe(struct tandem_runtime_info *out);
/** Threads of later computations: what the host uses, at most what a runtime of ours would. */
void tnd_bridge_set_threads(int n_threads);

#endif
