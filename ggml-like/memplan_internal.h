/* SPDX-License-Identifier: MIT
 * The second way of planning memory; see memplan.c. */
#ifndef TND_MEMPLAN_INTERNAL_H
#define TND_MEMPLAN_INTERNAL_H

#include <stdbool.h>

#include "ggml-like/memplan.h"

/** Places the largest records first. Replaces the offsets when the result is below `total`. Returns
 *  the better total; gives up (and returns `total`) when its budget is spent or memory is short.
 *  */
size_t tnd_memplan_by_size(struct tnd_usage *usages, int n_usages, int n_steps, size_t total);

#endif
