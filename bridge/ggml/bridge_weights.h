/* SPDX-License-Identifier: MIT
 * The host's weights as tensors of ours, which the runtime packs once. They are forgotten when the
 * host frees the buffer that they lie in. All calls under the lock of bridge_compute.c. */
#ifndef TND_BRIDGE_WEIGHTS_H
#define TND_BRIDGE_WEIGHTS_H

#include "bridge/ggml/bridge_product.h"
#include "tandem/runtime.h"

/** The tensor of a product's W, made at the first call; NULL: no memory. `buffer` is where W lies,
 *  `on_free` is called on the host's thread before it goes away. */
tandem_tensor *tnd_weights_get(const struct tnd_product *product,
                               struct ggml_backend_buffer *buffer,
                               void (*on_free)(struct ggml_backend_buffer *buffer));
/** Whether W is in one read-only mapping of a file. */
bool tnd_weights_is_mapped(const struct tnd_product *product);
/** Computes a product with zeros, so that the runtime packs W of a plain product as it would at its
 *  first use, and lets go of it. What fails here fails again at first use, which tells it. */
void tnd_weights_pack(tandem_runtime *runtime, const struct tnd_product *product,
                      struct ggml_backend_buffer *buffer,
                      void (*on_free)(struct ggml_backend_buffer *buffer));
/** Forgets the weights of a buffer that have some of these bytes. True: there were some, and no
 *  plan may use their tensors any more. */
bool tnd_weights_forget_bytes(tandem_runtime *runtime, struct ggml_backend_buffer *buffer,
                              const void *data, size_t n);
/** After the first computation with them, weights that a host has mapped from a file leave the
 *  memory of the process: our packed copy serves from then on, and what is read once more comes
 *  from the system's cache of the file. */
void tnd_weights_let_go(const struct tnd_product *product, struct ggml_backend_buffer *buffer);
/** Forgets the weights in a buffer; returns what frees its memory in the host, or NULL. */
void (*tnd_weights_forget(tandem_runtime *runtime,
                          struct ggml_backend_buffer *buffer))(struct ggml_backend_buffer *buffer);

#endif
