/* SPDX-License-Identifier: MIT
 * Products through the host's own interface, to check untested releases of ggml. */
#ifndef TND_BRIDGE_SELFTEST_H
#define TND_BRIDGE_SELFTEST_H

#include "bridge/ggml/ggml_abi.h"

/** Lets the host allocate and compute two small products, one of them of experts, on `device`
 * (ours), and compares the results with plain sums. False: they were wrong. */
bool tnd_bridge_selftest(struct ggml_object *device, struct ggml_object *buffer_type);

#endif
