/* SPDX-License-Identifier: MIT
 * Backends that stand for those of the machine of a table, so that the planner and the unfolding
 * into steps work for machines that are not here. They take works and run none. */
#ifndef TND_STAND_IN_H
#define TND_STAND_IN_H

#include "tune/candidates.h"

/** A registry of stand-ins: one for the CPU and one for each other backend that the table knows.
 *  A device (by the kind of its stages) of whose transfers the table knows has memory of its own;
 *  another one works in host memory, as the transfers are then in the times of its stages. The
 *  caller closes it with tnd_registry_close. Errors: MEMORY, LIMIT (too many backends). */
enum tandem_status tnd_stand_in_open(const struct tandem_table *table, int n_threads_max,
                                     struct tnd_registry **out_registry,
                                     struct tandem_error *error);

/** For the planner (tnd_ways_fn): the ways that the table's own machine has, resolved against such
 *  a registry. */
int tnd_stand_in_ways(const struct tnd_registry *registry, const struct tandem_table *table,
                      const tandem_tensor *node, enum tandem_type type, double error_bound,
                      struct tnd_way *out);

#endif
