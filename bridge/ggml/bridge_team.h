/* SPDX-License-Identifier: MIT
 * The host's OpenMP threads compute for our runtime: the host has them already, and threads of our
 * own beside them would take turns with theirs for each product. */
#ifndef TND_BRIDGE_TEAM_H
#define TND_BRIDGE_TEAM_H

#include "bridge/ggml/bridge_pace.h"
#include "tandem/runtime.h"

/** A tandem_team_fn. False where the host has no OpenMP, its number of threads is not known, or a
 *  parallel region is open already, or where threads of our own shall compute. */
bool tnd_bridge_team(void *user, int count, tandem_team_body_fn body, void *data);
/** The host computes with as many threads; 0: not known. Any thread. */
void tnd_bridge_team_set_size(int n_threads);
/** Whether the host has OpenMP. Any thread. */
bool tnd_bridge_team_is_there(void);
/** Which threads serve from now on, and whether regions of the host on this thread get more than
 *  one. Only by who computes. */
void tnd_bridge_team_set_way(enum tnd_way way);
/** Regions of the host on this thread are as they were. */
void tnd_bridge_team_rest(void);

#endif
