/* SPDX-License-Identifier: MIT
 * Sizes of prompt chunks. */
#include "tools/tandem-server/srv_pace.h"

enum { LEAST = 8, FIRST = 64 /* nothing is known yet */ };
static const double NEW_SHARE = 0.25; /* of a measured time in the mean */

/* Adds up what the plan of m more tokens predicts. */
static double predict(tandem_session *session, int64_t m)
{
    tandem_graph *graph = NULL;
    tandem_plan *plan = NULL;
    double us = 0.0;
    if (tandem_session_plan(session, m, &graph, &plan, NULL) != TANDEM_OK) {
        return 0.0;
    }
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        const struct tandem_plan_node *node = tandem_plan_node(plan, i);
        for (int stage = 0; stage < TANDEM_STAGES; stage++) {
            us += (double)node->predicted_us[stage];
        }
    }
    tandem_plan_free(plan);
    return us;
}

void tnd_srv_pace_init(struct srv_pace *pace, tandem_session *session, double delay_ms)
{
    *pace = (struct srv_pace){.delay_us = 1e3 * delay_ms};
    for (int i = 0; session != NULL && i < SRV_PACE_SIZES; i++) {
        pace->us[i] = predict(session, (int64_t)1 << i);
    }
}

/* The largest i with 2^i <= m. */
static int size_of(int64_t m)
{
    int i = 0;
    while (i + 1 < SRV_PACE_SIZES && (int64_t)1 << (i + 1) <= m) {
        i++;
    }
    return i;
}

/* The share of the time that grows with m is not known: all of it, which errs on the safe side. */
void tnd_srv_pace_note(struct srv_pace *pace, int64_t m, double us)
{
    const int i = size_of(m);
    const double scaled = us * (double)((int64_t)1 << i) / (double)m;
    pace->us[i] = pace->us[i] > 0.0 ? pace->us[i] + NEW_SHARE * (scaled - pace->us[i]) : scaled;
}

/* The time of a step of m tokens; 0: not known. */
static double expect(const struct srv_pace *pace, int64_t m)
{
    const int i = size_of(m);
    for (int k = i; k >= 0; k--) { /* from the nearest smaller size that is known */
        if (pace->us[k] > 0.0) {
            return pace->us[k] * (double)m / (double)((int64_t)1 << k);
        }
    }
    for (int k = i + 1; k < SRV_PACE_SIZES; k++) {
        if (pace->us[k] > 0.0) {
            return pace->us[k];
        }
    }
    return 0.0;
}

int64_t tnd_srv_pace_chunk(const struct srv_pace *pace, int64_t n_others)
{
    if (n_others == 0) {
        return SRV_PACE_MOST;
    }
    if (expect(pace, FIRST) <= 0.0) {
        return FIRST;
    }
    int64_t n = SRV_PACE_MOST;
    while (n > LEAST && expect(pace, n + n_others) > pace->delay_us) {
        n /= 2;
    }
    return n;
}
