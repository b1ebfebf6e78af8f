/* SPDX-License-Identifier: MIT
 * Nodes between products: what the bridge takes of them, and what it makes of them. */
#ifndef TND_BRIDGE_TEST_NODES_H
#define TND_BRIDGE_TEST_NODES_H

#include "tests/bridge/small_host.h"

/** Each returns NULL, or what went wrong. */
const char *nodes_of_a_layer_are_right(struct device *device, struct backend *backend);
const char *memory_that_the_host_uses_again_is_right(struct device *device,
                                                     struct backend *backend);
const char *nodes_are_taken_where_they_follow_from_products(struct device *device);
const char *nodes_with_unknown_parameters_are_left_to_the_host(struct device *device);
const char *nodes_outside_of_buffers_fail(struct device *device, struct backend *backend);

#endif
