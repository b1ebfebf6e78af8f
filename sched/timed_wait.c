/* SPDX-License-Identifier: MIT
 * The arithmetic of waiting by prediction. */
#include "sched/timed_wait.h"

#include "base/tnd_assert.h"

uint64_t tnd_timed_wait_until(uint64_t now_ns, uint64_t expected_ns, uint64_t wake_ns)
{
    if (expected_ns <= now_ns || expected_ns - now_ns <= wake_ns) {
        return 0;
    }
    return expected_ns - wake_ns;
}

uint64_t tnd_timed_wait_renew(uint64_t now_ns, uint64_t expected_ns, uint64_t wake_ns)
{
    uint64_t overdue_ns = expected_ns < now_ns ? now_ns - expected_ns : 0;
    if (expected_ns == 0 || overdue_ns > TND_TIMED_WAIT_LONGEST_NS) {
        return 0;
    }
    /* At least twice the cost of waking, else the sleep would have no length. */
    return now_ns + (overdue_ns > 2 * wake_ns ? overdue_ns : 2 * wake_ns);
}

uint64_t tnd_wake_cost_learn(uint64_t wake_ns, uint64_t late_ns)
{
    late_ns = late_ns < TND_WAKE_MOST_NS ? late_ns : TND_WAKE_MOST_NS;
    wake_ns =
        late_ns > wake_ns ? wake_ns + (late_ns - wake_ns) / 2 : wake_ns - (wake_ns - late_ns) / 32;
    TND_ASSERT(wake_ns <= TND_WAKE_MOST_NS || late_ns < wake_ns);
    return wake_ns > TND_WAKE_LEAST_NS ? wake_ns : TND_WAKE_LEAST_NS;
}
