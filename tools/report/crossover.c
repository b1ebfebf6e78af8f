/* SPDX-License-Identifier: MIT
 * Which profile to keep over M; times between measured points are interpolated linearly. */
#include "tools/report/crossover.h"

#include <math.h>
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

/* By how much `profile` leads over `kept` at a point, and what the lead must exceed to be clear. */
static double lead_of(const struct times *times, int profile, int kept, int point,
                      double *out_least)
{
    const double *errors = times->errors;
    const double noise = errors == NULL ? 0
                                        : hypot(errors[profile * times->n_points + point],
                                                errors[kept * times->n_points + point]);
    *out_least = fmax(TND_CLEAR_SIGMAS * noise, TND_RULE_LEAD * time_of(times, profile, point));
    return time_of(times, kept, point) - time_of(times, profile, point);
}

/* The M at which `profile`, which is ahead at `point`, overtook `kept`: in the last segment before
 * `point` at whose beginning it was not ahead. */
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

bool tnd_crossover_is_clear(const struct tnd_crossover *crossover)
{
    return crossover->lead > crossover->least_lead;
}

/* Updates the clearest lead since the crossover. */
static void see_lead(const struct times *times, int point, struct tnd_crossover *io)
{
    double least;
    const double us = time_of(times, io->to, point);
    const double lead = lead_of(times, io->to, io->from, point, &least);
    if (us > 0 && lead / us - least / us > io->lead - io->least_lead) {
        io->lead = lead / us;
        io->least_lead = least / us;
    }
}

int tnd_crossovers(const int64_t *m, int n_points, const double *us, const double *errors,
                   int n_profiles, bool only_clear, struct tnd_crossover *out, int capacity)
{
    const struct times times = {us, errors, n_points};
    int n = 0;
    int kept = n_points > 0 ? tnd_winner(us, n_profiles, n_points, 0) : 0;
    for (int i = 1; i < n_points; i++) {
        const int winner = tnd_winner(us, n_profiles, n_points, i);
        double least;
        const double lead = lead_of(&times, winner, kept, i, &least);
        if (n < capacity && lead > (only_clear ? least : 0.0)) {
            const double at = crossing(&times, m, winner, kept, i);
            out[n++] =
                (struct tnd_crossover){kept, winner, at, (int64_t)floor(at) + 1, 0, INFINITY};
            kept = winner;
        }
        if (n > 0) {
            see_lead(&times, i, &out[n - 1]);
        }
    }
    return n;
}
