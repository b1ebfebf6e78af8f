/* SPDX-License-Identifier: MIT
 * How many tokens of prompts may run beside those that are generated, so that these are not kept
 * waiting: by what the session expects of batches. */
#ifndef TANDEM_SERVER_SRV_PACE_H
#define TANDEM_SERVER_SRV_PACE_H

#include <stdint.h>

enum { SRV_PACE_MOST = 512 };

/** Microseconds of a step of m tokens; 0: not known. */
typedef double srv_pace_fn(void *user, int64_t m);

/** The pace of a session, for `user`. */
srv_pace_fn tnd_srv_pace_session;
/** Tokens of prompts for a step in which `n_others` sequences get their next token: as many as
 *  keep it within `delay_us`, at least 8; SRV_PACE_MOST when nobody waits. */
int64_t tnd_srv_pace_chunk(srv_pace_fn *expect, void *user, double delay_us, int64_t n_others);

#endif
