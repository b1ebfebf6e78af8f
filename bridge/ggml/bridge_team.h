/* SPDX-License-Identifier: MIT
 * The host's OpenMP threads compute for our runtime: the host has them already, and threads of our
 * own beside them would take turns with theirs for each product. */
#ifndef TND_BRIDGE_TEAM_H
#define TND_BRIDGE_TEAM_H

#include "tandem/runtime.h"

/** A tandem_team_fn. False where the host has no OpenMP, its number of threads is not known, or a
 *  parallel region is open already. */
bool tnd_bridge_team(void *user, int count, tandem_team_body_fn body, void *data);
/** The host computes with as many threads; 0: not known. Any thread. */
void tnd_bridge_team_set_size(int n_threads);

#endif
