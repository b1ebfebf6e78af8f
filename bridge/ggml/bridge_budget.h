/* SPDX-License-Identifier: MIT
 * Seconds that measuring may take while a program loads a model, whatever a single trial takes: by
 * the clock, since on a busy machine a count of trials says nothing. Times are those of one clock
 * that does not go back. */
#ifndef TND_BRIDGE_BUDGET_H
#define TND_BRIDGE_BUDGET_H

#include <stdbool.h>

struct tnd_bridge_budget {
    double left_s;
    double end_s;   /* while something is measured: when nothing is left */
    double least_s; /* that the shortest measurement so far has taken */
};

/** Whether one more measurement may begin: never one that took longer than is left at its
 *  shortest. */
static inline bool tnd_budget_is_left(const struct tnd_bridge_budget *budget)
{
    return budget->left_s > budget->least_s;
}

/** Around each measurement. */
static inline void tnd_budget_begin(struct tnd_bridge_budget *budget, double now_s)
{
    budget->end_s = now_s + budget->left_s;
}
static inline void tnd_budget_end(struct tnd_bridge_budget *budget, double now_s)
{
    const double took_s = budget->left_s - (budget->end_s - now_s);
    budget->least_s = budget->least_s == 0 || took_s < budget->least_s ? took_s : budget->least_s;
    budget->left_s = budget->end_s - now_s;
}

/** Whether a step may begin that is expected to take so long. */
static inline bool tnd_budget_allows(const struct tnd_bridge_budget *budget, double now_s,
                                     double step_s)
{
    return now_s + step_s < budget->end_s;
}

#endif
