/* SPDX-License-Identifier: MIT
 * Prints a plan, one line per node. */
#ifndef TND_PRINT_PLAN_H
#define TND_PRINT_PLAN_H

#include "backends/registry.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/pool.h"
#include "tandem/log.h"
#include "tandem/profile.h"

/** `pool`: rows of each NUMA node. Errors: ARGUMENT (plan and graph differ in their number of
 * nodes), FILE (the writer stopped). */
enum tandem_status tnd_print_plan(const struct tnd_registry *registry, struct tnd_pool *pool,
                                  const struct tandem_graph *graph, const struct tandem_plan *plan,
                                  tandem_write_fn write, void *user);

#endif
