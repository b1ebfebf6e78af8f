/* SPDX-License-Identifier: MIT
 * Time budget for measuring while a program loads a model, in seconds of clock time rather than a
 * number of trials, because a trial can take arbitrarily long on a busy machine. The clock must be
 * monotonic. */
#ifndef TND_BRIDGE_BUDGET_H
#define TND_BRIDGE_BUDGET_H

#include <stdbool.h>

struct tnd_bridge_budget {
    double left_s;
    double end_s;   /* during a measurement: when the budget is used up */
    double least_s; /* duration of the shortest measurement so far */
};

/** Whether another measurement may begin: not if even the shortest one so far took longer than
 * what is left. */
static inline bool tnd_budget_is_left(const struct tnd_bridge_budget *budget)
{
    return budget->left_s > budget->least_s;
}

/** Call before and after each measurement. */
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

/** Whether a step with this expected duration may begin. */
static inline bool tnd_budget_allows(const struct tnd_bridge_budget *budget, double now_s,
                                     double step_s)
{
    return now_s + step_s < budget->end_s;
}

#endif
