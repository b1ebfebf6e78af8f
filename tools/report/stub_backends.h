/* SPDX-License-Identifier: MIT
 * Stubs for the backends of a table's machine, so that planning and unfolding into steps work for
 * machines that are not here. They accept work, but run nothing. */
#ifndef TND_STUB_BACKENDS_H
#define TND_STUB_BACKENDS_H

#include "tune/candidates.h"

/** Opens a registry of stubs: one for the CPU and one for each other backend in the table. A device
 * (by the kind of its stages) has its own memory if the table has its transfers; otherwise it works
 * in host memory, since its stages' times then include the transfers. The caller closes it with
 * tnd_registry_close. Errors: MEMORY, LIMIT (too many backends). */
enum tandem_status tnd_stub_backends_open(const struct tandem_table *table, int n_threads_max,
                                          struct tnd_registry **out_registry,
                                          struct tandem_error *error);

/** For the planner (tnd_candidates_fn): the candidates of the table's machine, resolved against
 * such a registry. */
int tnd_stub_candidates(const struct tnd_registry *registry, const struct tandem_table *table,
                        const tandem_tensor *node, enum tandem_type type, double error_bound,
                        struct tnd_candidate *out);

#endif
