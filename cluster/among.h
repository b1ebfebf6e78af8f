/* SPDX-License-Identifier: MIT
 * A communicator over a subset of another one's ranks, in any order. */
#ifndef TND_CLUSTER_AMONG_H
#define TND_CLUSTER_AMONG_H

#include "tandem/communicator.h"

/** A communicator over `ranks` {n} of `all`, each listed once: ranks[0] becomes rank 0. Collective
 * among these ranks, which include the caller's. Borrows `all`, which must outlive it; a failure of
 * `all` is one of this communicator. Its ranks must not use both at the same time. Errors: those of
 * tandem_communicator_new. */
enum tandem_status tnd_communicator_among(tandem_communicator *all, const int *ranks, int n,
                                          tandem_communicator **out, struct tandem_error *error);

#endif
