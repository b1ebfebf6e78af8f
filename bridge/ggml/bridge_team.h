/* SPDX-License-Identifier: MIT
 * Lets the host's OpenMP threads compute for our runtime: they exist already, and additional
 * threads of our own would compete with them for CPUs at each product. */
#ifndef TND_BRIDGE_TEAM_H
#define TND_BRIDGE_TEAM_H

#include "bridge/ggml/bridge_pace.h"
#include "tandem/runtime.h"

/** A tandem_team_fn. False if the host has no OpenMP, its number of threads is unknown, a parallel
 * region is open already, or our own threads should compute. */
bool tnd_bridge_team(void *user, int count, tandem_team_body_fn body, void *data);
/** The number of threads with which the host computes; 0: unknown. Any thread. */
void tnd_bridge_team_set_size(int n_threads);
/** Whether the host has OpenMP. Any thread. */
bool tnd_bridge_team_is_there(void);
/** Chooses the threads that compute from now on, and whether the host's regions on this thread get
 * more than one thread. Only for the thread that computes. */
void tnd_bridge_team_set_way(enum tnd_way way);
/** Restores the host's setting of parallel regions on this thread. */
void tnd_bridge_team_rest(void);

#endif
