/* SPDX-License-Identifier: MIT
 * Plans without what is out of service or has no room: nodes that would use it run elsewhere. */
#ifndef TND_FALLBACK_H
#define TND_FALLBACK_H

#include "runtime/tnd_runtime.h"

/** Whether nodes of the plan use a backend in quarantine, one of `excluded` (bit a slot), or one
 *  that had no room for their weights. Cheap when all is well. */
bool tnd_fallback_is_needed(const struct tnd_runtime_parts *parts, const struct tandem_graph *graph,
                            const struct tandem_plan *plan, uint32_t excluded);
/** Replaces those nodes: by a fresh choice where it may run, else by the CPU. Errors: MEMORY. */
enum tandem_status tnd_fallback_adapt(const struct tnd_runtime_parts *parts,
                                      const struct tandem_graph *graph, int n_threads,
                                      uint32_t excluded, struct tandem_plan *plan,
                                      struct tandem_error *error);

#endif
