/* SPDX-License-Identifier: MIT
 * Plans without devices that are out of service or out of memory: their nodes run elsewhere. */
#ifndef TND_FALLBACK_H
#define TND_FALLBACK_H

#include "runtime/tnd_runtime.h"

/** Whether nodes of the plan use a backend in quarantine, one in `excluded` (a bit per slot), or
 * one without memory for their weights. Cheap if there are none. */
bool tnd_fallback_is_needed(const struct tnd_runtime_parts *parts, const struct tandem_graph *graph,
                            const struct tandem_plan *plan, uint32_t excluded);
/** Replaces the choices of those nodes: by a new choice if it can run, else by the CPU. Errors:
 * MEMORY. */
enum tandem_status tnd_fallback_adapt(const struct tnd_runtime_parts *parts,
                                      const struct tandem_graph *graph, int n_threads,
                                      uint32_t excluded, struct tandem_plan *plan,
                                      struct tandem_error *error);

#endif
