/* SPDX-License-Identifier: MIT
 * The second method of planning memory; see memplan.c. */
#ifndef TND_MEMPLAN_INTERNAL_H
#define TND_MEMPLAN_INTERNAL_H

#include <stdbool.h>

#include "ggml-like/memplan.h"

/** Places the largest records first. Replaces the offsets if its result is below `total`. Returns
 * the smaller total; returns `total` if its budget is spent or memory is short. */
size_t tnd_memplan_by_size(struct tnd_usage *usages, int n_usages, int n_steps, size_t total);

#endif
