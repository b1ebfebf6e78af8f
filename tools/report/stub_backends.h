/* SPDX-License-Identifier: MIT
 * Backends that stand for those of the machine of a table, so that the planner and the unfolding
 * into steps work for machines that are not here. They take works and run none. */
#ifndef TND_STUB_BACKENDS_H
#define TND_STUB_BACKENDS_H

#include "tune/candidates.h"

/** A registry of stubs: one for the CPU and one for each other backend that the table knows.
 *  A device (by the kind of its stages) of whose transfers the table knows has memory of its own;
 *  another one works in host memory, as the transfers are then in the times of its stages. The
 *  caller closes it with tnd_registry_close. Errors: MEMORY, LIMIT (too many backends). */
enum tandem_status tnd_stub_backends_open(const struct tandem_table *table, int n_threads_max,
                                          struct tnd_registry **out_registry,
                                          struct tandem_error *error);

/** For the planner (tnd_candidates_fn): the candidates that the table's own machine has,
 *  resolved against such a registry. */
int tnd_stub_candidates(const struct tnd_registry *registry, const struct tandem_table *table,
                        const tandem_tensor *node, enum tandem_type type, double error_bound,
                        struct tnd_candidate *out);

#endif
