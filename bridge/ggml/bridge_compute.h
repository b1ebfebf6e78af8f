/* SPDX-License-Identifier: MIT
 * Computes the host's nodes with a single runtime per process. Any thread; calls are serialised. */
#ifndef TND_BRIDGE_COMPUTE_H
#define TND_BRIDGE_COMPUTE_H

#include "bridge/ggml/ggml_abi.h"
#include "tandem/runtime.h"

/** Computes the nodes of a graph in order. Returns GGML_STATUS_*; failures are written to the
 * host's log. The time of a trial is not used for choosing threads. */
int tnd_bridge_compute(struct ggml_cgraph *graph, bool is_a_trial);
/** The host has placed a weight tensor in `buffer`: if it lies in a mapped file, its values are
 * valid and a matrix is packed now. Matrices of experts are packed at their first use. */
void tnd_bridge_weights_mapped(struct ggml_backend_buffer *buffer,
                               const struct ggml_tensor *tensor);
/** The host has set bytes of a weight tensor: what was packed of them is dropped, and a matrix
 * that was set completely is packed now. */
void tnd_bridge_weights_set(struct ggml_backend_buffer *buffer, const struct ggml_tensor *tensor,
                            size_t offset, size_t size);
/** The runtime, which is never closed; NULL: it cannot be opened. */
tandem_runtime *tnd_bridge_runtime(void);
/** Fills in what the runtime knows about the machine and returns the number of threads that
 * compute, one per core if the host has not set it; 0: there is no runtime. */
int tnd_bridge_describe(struct tandem_runtime_info *out);
/** Sets the number of threads for later computations: the host's, at most the runtime's default. */
void tnd_bridge_set_threads(int n_threads);

#endif
