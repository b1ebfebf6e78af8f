/* SPDX-License-Identifier: MIT
 * The buffer type "Tandem": the host's own CPU buffers, under a name that loaders try first. What a
 * host loads into them as weights is packed then. */
#ifndef TND_BRIDGE_BUFFER_H
#define TND_BRIDGE_BUFFER_H

#include "bridge/ggml/bridge_layout.h"

/** Fills in the buffer type, before anything is allocated of it. */
void tnd_buffer_type_init(const struct tnd_host_layout *layout, struct ggml_object *device);
struct ggml_object *tnd_buffer_type(void);
/** A buffer over memory of the host's: the device's member of this name. Any thread. */
struct ggml_backend_buffer *tnd_buffer_from_host_ptr(struct ggml_object *device, void *data,
                                                     size_t size, size_t max_tensor_size);

#endif
