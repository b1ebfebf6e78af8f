/* SPDX-License-Identifier: MIT
 * Crossovers over M: where one profile overtakes another by a lead that matters. */
#ifndef TND_CROSSOVER_H
#define TND_CROSSOVER_H

#include <stdbool.h>
#include <stdint.h>

struct tnd_crossover {
    int from, to;    /* profiles, by index */
    double m;        /* where both take equally long */
    int64_t first_m; /* first whole M at which `to` wins */
    /* The clearest lead of `to` over `from` before the next crossover, and what a lead there must
     * exceed to be more than chance; as shares of the time of `to`. */
    double lead, least_lead;
};

/** Whether the lead after a crossover is more than chance. */
bool tnd_crossover_is_clear(const struct tnd_crossover *crossover);

/** Index of the fastest profile at point i, the first of equals. `times` has n_points entries for
 * each profile in turn. */
int tnd_winner(const double *times, int n_profiles, int n_points, int i);

/** Crossovers between the first and the last point, ascending. `m` ascends; `us` and `errors` have
 * n_points entries for each profile in turn. The winner of the first point is kept until another
 * profile is the fastest at a point; then that one is kept. `only_clear`: only if its lead is one
 * for which a table may deviate from the rule: three standard errors of the difference and
 * TND_RULE_LEAD (tune/policy.h). Otherwise any lead counts, and the crossovers are exact
 * intersections. `errors` NULL: times have no error. Fills at most `capacity` entries and returns
 * their number; n_points are always enough. */
int tnd_crossovers(const int64_t *m, int n_points, const double *us, const double *errors,
                   int n_profiles, bool only_clear, struct tnd_crossover *out, int capacity);

#endif
