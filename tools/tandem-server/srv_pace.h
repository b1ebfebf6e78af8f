/* SPDX-License-Identifier: MIT
 * How many tokens of prompts may run beside those that are generated, so that these are not kept
 * waiting: by the timing table's predictions, corrected by what steps take. */
#ifndef TANDEM_SERVER_SRV_PACE_H
#define TANDEM_SERVER_SRV_PACE_H

#include <stdint.h>

#include "tandem/llama.h"

enum { SRV_PACE_SIZES = 10, SRV_PACE_MOST = 1 << (SRV_PACE_SIZES - 1) };

struct srv_pace {
    double us[SRV_PACE_SIZES]; /* of a step of 2^i tokens; 0: not known */
    double delay_us;           /* that a step may take while others wait for their next token */
};

/** Predictions for an empty session; without a timing table none. */
void tnd_srv_pace_init(struct srv_pace *pace, tandem_session *session, double delay_ms);
/** A step of m tokens took so long. */
void tnd_srv_pace_note(struct srv_pace *pace, int64_t m, double us);
/** Tokens of prompts for a step in which `n_others` sequences get their next token: as many as
 *  stay within the delay, at least 8; SRV_PACE_MOST when nobody waits. */
int64_t tnd_srv_pace_chunk(const struct srv_pace *pace, int64_t n_others);

#endif
