/* SPDX-License-Identifier: MIT
 * The host's weights as tensors of ours, which the runtime packs once. They are dropped when the
 * host frees their buffer. Call everything under the lock of bridge_compute.c. */
#ifndef TND_BRIDGE_WEIGHTS_H
#define TND_BRIDGE_WEIGHTS_H

#include "bridge/ggml/bridge_product.h"
#include "tandem/runtime.h"

/** The tensor of a product's W, created at the first call; NULL: no memory. `buffer` contains W;
 * `on_free` is called on the host's thread before the buffer is freed. */
tandem_tensor *tnd_weights_get(const struct tnd_product *product,
                               struct ggml_backend_buffer *buffer,
                               void (*on_free)(struct ggml_backend_buffer *buffer));
/** Whether W is in one read-only mapping of a file. */
bool tnd_weights_is_mapped(const struct tnd_product *product);
/** Computes a product with zeros, so that the runtime packs W of a plain product as at its first
 * use, and releases the original. If it fails, the first use fails again and reports it. */
void tnd_weights_pack(tandem_runtime *runtime, const struct tnd_product *product,
                      struct ggml_backend_buffer *buffer,
                      void (*on_free)(struct ggml_backend_buffer *buffer));
/** Drops the weights in a buffer that overlap these bytes. True: there were some, and no plan may
 * use their tensors any more. */
bool tnd_weights_forget_bytes(tandem_runtime *runtime, struct ggml_backend_buffer *buffer,
                              const void *data, size_t n);
/** After the first computation with them, releases the pages of weights that a host has mapped
 * from a file: from then on our packed copy is used, and other reads come from the system's page
 * cache. */
void tnd_weights_let_go(const struct tnd_product *product, struct ggml_backend_buffer *buffer);
/** Drops the weights in a buffer; returns the host's function that frees the buffer, or NULL. */
void (*tnd_weights_forget(tandem_runtime *runtime,
                          struct ggml_backend_buffer *buffer))(struct ggml_backend_buffer *buffer);

#endif
