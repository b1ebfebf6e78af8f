/* SPDX-License-Identifier: MIT
 * Products through the host's own calls, for releases of ggml that nobody has tried. */
#ifndef TND_BRIDGE_SELFTEST_H
#define TND_BRIDGE_SELFTEST_H

#include "bridge/ggml/ggml_abi.h"

/** Has the host allocate and compute two small products, one of them of experts, on `device`
 *  (ours), and compares them with plain sums. False: they went wrong. */
bool tnd_bridge_selftest(struct ggml_object *device, struct ggml_object *buffer_type);

#endif
