/* SPDX-License-Identifier: MIT
 * Which nodes of a graph must not run at the same time, because of the memory that they access. */
#ifndef TND_CONFLICT_H
#define TND_CONFLICT_H

#include <stdbool.h>

#include "ggml-like/tnd_tensor.h"

/** Whether one of the nodes writes bytes that the other one reads or writes; a node conflicts with
 *  itself. Whole roots are compared, not views. Works on a finished graph, bound or not. */
bool tnd_nodes_conflict(const struct tandem_tensor *a, const struct tandem_tensor *b);

/** Whether the roots of the tensors share bytes. */
bool tnd_tensors_overlap(const struct tandem_tensor *a, const struct tandem_tensor *b);

#endif
