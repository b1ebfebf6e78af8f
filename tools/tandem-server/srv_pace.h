/* SPDX-License-Identifier: MIT
 * How many prompt tokens may share a batch with generated ones without delaying them too much, by
 * the session's expected batch times. */
#ifndef TANDEM_SERVER_SRV_PACE_H
#define TANDEM_SERVER_SRV_PACE_H

#include <stdint.h>

enum { SRV_PACE_MOST = 512 };

/** Microseconds of a step of m tokens; 0: unknown. */
typedef double srv_pace_fn(void *user, int64_t m);

/** Expected times of the session `user`. */
srv_pace_fn tnd_srv_pace_session;
/** Number of prompt tokens for a step in which `n_others` sequences get their next token: as many
 * as fit into `delay_us`, at least 8; SRV_PACE_MOST when no sequence waits. */
int64_t tnd_srv_pace_chunk(srv_pace_fn *expect, void *user, double delay_us, int64_t n_others);

#endif
