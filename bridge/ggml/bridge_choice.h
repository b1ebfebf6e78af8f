/* SPDX-License-Identifier: MIT
 * Which products are faster with us than with the host's own kernels. */
#ifndef TND_BRIDGE_CHOICE_H
#define TND_BRIDGE_CHOICE_H

#include "bridge/ggml/bridge_product.h"

/** Whether to take a product. The first of a type and a class of shapes is measured, both ways, in
 *  at most 1 s altogether, or was by an earlier process (TANDEM_BRIDGE=always: all are taken).
 *  While the weights have no memory, the question is where they shall live: yes when some number of
 *  tokens gains and none clearly loses. Any thread. */
bool tnd_choice_takes(const struct tnd_product *product);

#endif
