/* SPDX-License-Identifier: MIT
 * A communicator of some of the ranks of another one, in another order. */
#ifndef TND_CLUSTER_AMONG_H
#define TND_CLUSTER_AMONG_H

#include "tandem/communicator.h"

/** A communicator of ranks {n} of `all`, each of them once: ranks[0] is its rank 0. Collective
 *  among these; this rank is one of them. It borrows `all`, which must outlive it and fails with
 *  it; its ranks use `all` at other times only. Errors: those of tandem_communicator_new. */
enum tandem_status tnd_communicator_among(tandem_communicator *all, const int *ranks, int n,
                                          tandem_communicator **out, struct tandem_error *error);

#endif
