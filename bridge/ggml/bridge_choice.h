/* SPDX-License-Identifier: MIT
 * Decides which products are faster with Tandem than with the host's own kernels. */
#ifndef TND_BRIDGE_CHOICE_H
#define TND_BRIDGE_CHOICE_H

#include "bridge/ggml/bridge_product.h"

/** Whether the bridge should compute the product. The first product of each type and class of
 * shapes is measured both ways, for at most 1 s in total, or was measured by an earlier process
 * (TANDEM_BRIDGE=always: all are computed). As long as its weights have no memory, the question is
 * where they should be allocated: true if we are faster for some number of tokens and clearly
 * slower for none. Any thread. */
bool tnd_choice_takes(const struct tnd_product *product);

#endif
