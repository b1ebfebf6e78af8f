/* SPDX-License-Identifier: MIT
 * Sizes of prompt chunks. */
#include "tools/tandem-server/srv_pace.h"

#include "tandem/llama.h"

enum { LEAST = 8, FIRST = 64 /* before any times are known */ };

double tnd_srv_pace_session(void *user, int64_t m)
{
    struct tandem_expected expected;
    return tandem_session_expect(user, m, &expected) ? expected.us : 0.0;
}

int64_t tnd_srv_pace_chunk(srv_pace_fn *expect, void *user, double delay_us, int64_t n_others)
{
    if (n_others == 0) {
        return SRV_PACE_MOST;
    }
    if (expect(user, FIRST) <= 0.0) {
        return FIRST;
    }
    int64_t n = SRV_PACE_MOST;
    while (n > LEAST && expect(user, n + n_others) > delay_us) {
        n /= 2;
    }
    return n;
}
