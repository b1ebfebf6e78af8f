/* SPDX-License-Identifier: MIT
 * The buffer type "Tandem": the host's own CPU buffers, under a name that loaders try first.
 * Weights that the host loads into them are packed. */
#ifndef TND_BRIDGE_BUFFER_H
#define TND_BRIDGE_BUFFER_H

#include "bridge/ggml/bridge_layout.h"

/** Initialises the buffer type; call before allocating buffers of it. */
void tnd_buffer_type_init(const struct tnd_host_layout *layout, struct ggml_object *device);
struct ggml_object *tnd_buffer_type(void);
/** A buffer over the host's memory: the device function of this name. Any thread. */
struct ggml_backend_buffer *tnd_buffer_from_host_ptr(struct ggml_object *device, void *data,
                                                     size_t size, size_t max_tensor_size);

#endif
