/* SPDX-License-Identifier: MIT
 * Which profile to keep over M, of times that are lines between the points measured. */
#include "tools/report/crossover.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "tune/policy.h"

int tnd_winner(const double *times, int n_profiles, int n_points, int i)
{
    int best = 0;
    for (int p = 1; p < n_profiles; p++) {
        if (times[p * n_points + i] < times[best * n_points + i]) {
            best = p;
        }
    }
    return best;
}

/* The times of a shape, by profile and point. */
struct times {
    const double *us, *errors; /* errors may be NULL */
    int n_points;
};

static double time_of(const struct times *times, int profile, int point)
{
    return times->us[profile * times->n_points + point];
}

static bool is_clearly_faster(const struct times *times, int profile, int kept, int point)
{
    const double lead = time_of(times, kept, point) - time_of(times, profile, point);
    if (times->errors == NULL) {
        return lead > 0;
    }
    return lead > (TND_REPORT_ENOUGH - 1) * time_of(times, profile, point) &&
           lead > times->errors[profile * times->n_points + point] +
                      times->errors[kept * times->n_points + point];
}

/* Where `profile`, which is ahead at `point`, overtook `kept`: in the last segment in front of it
 * at whose beginning it was not ahead. */
static double crossing(const struct times *times, const int64_t *m, int profile, int kept,
                       int point)
{
    int i = point - 1;
    while (time_of(times, profile, i) < time_of(times, kept, i)) {
        i--;
    }
    const double behind = time_of(times, profile, i) - time_of(times, kept, i);
    const double ahead = time_of(times, kept, i + 1) - time_of(times, profile, i + 1);
    return (double)m[i] + (double)(m[i + 1] - m[i]) * behind / (behind + ahead);
}

int tnd_crossovers(const int64_t *m, int n_points, const double *us, const double *errors,
                   int n_profiles, struct tnd_crossover *out, int capacity)
{
    const struct times times = {us, errors, n_points};
    int n = 0;
    int kept = n_points > 0 ? tnd_winner(us, n_profiles, n_points, 0) : 0;
    for (int i = 1; i < n_points && n < capacity; i++) {
        const int winner = tnd_winner(us, n_profiles, n_points, i);
        if (is_clearly_faster(&times, winner, kept, i)) {
            const double at = crossing(&times, m, winner, kept, i);
            out[n++] = (struct tnd_crossover){kept, winner, at, (int64_t)floor(at) + 1};
            kept = winner;
        }
    }
    return n;
}
