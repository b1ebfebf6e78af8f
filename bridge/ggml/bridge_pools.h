/* SPDX-License-Identifier: MIT
 * Two thread pools share the CPUs in turns: ours is paused while the host computes, and the host's
 * OpenMP threads, which would spin for milliseconds, sleep while we do. */
#ifndef TND_BRIDGE_POOLS_H
#define TND_BRIDGE_POOLS_H

/** Calls `work` on this thread while the other threads of the host's OpenMP team sleep.
 *  `n_threads`: as many as the host computes with, so that it is the same team; 0: unknown, which
 *  leaves them as they are. Hosts without OpenMP have no idle threads between computations. */
void tnd_bridge_run_alone(int n_threads, void (*work)(void *data), void *data);

#endif
