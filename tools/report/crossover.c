/* SPDX-License-Identifier: MIT
 * Lower envelope of piecewise linear functions that share their break points. */
#include "tools/report/crossover.h"

#include <math.h>

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

/* Lines of all profiles between two points. */
struct segment {
    double begin, end; /* M */
    const double
        *left; /* time of profile p at `begin`: left[p * stride], at `end`: left[p * stride + 1] */
    int stride;
};

static double slope(const struct segment *segment, int p)
{
    const double *time = segment->left + p * segment->stride;
    return (time[1] - time[0]) / (segment->end - segment->begin);
}

static double time_at(const struct segment *segment, int p, double m)
{
    return segment->left[p * segment->stride] + slope(segment, p) * (m - segment->begin);
}

/* The profile that next undercuts `winner` behind `m`, or -1; of several at one place the flattest.
 * */
static int next_winner(const struct segment *segment, int n_profiles, int winner, double m,
                       double *out_m)
{
    int next = -1;
    for (int p = 0; p < n_profiles; p++) {
        double gain = slope(segment, winner) - slope(segment, p);
        if (p == winner || !(gain > 0.0)) {
            continue;
        }
        double lead = time_at(segment, p, m) - time_at(segment, winner, m);
        double at = m + fmax(lead, 0.0) / gain; /* rounding may leave the winner a hair above */
        if (at < segment->end && (next < 0 || at < *out_m ||
                                  (at == *out_m && slope(segment, p) < slope(segment, next)))) {
            next = p;
            *out_m = at;
        }
    }
    return next;
}

/* A profile that is ahead only between two whole M never runs: it is left out of the list. */
static int append(struct tnd_crossover *list, int n, struct tnd_crossover entry)
{
    if (n > 0 && list[n - 1].first_m >= entry.first_m) {
        entry.from = list[n - 1].from;
        n--;
        if (entry.from == entry.to) {
            return n;
        }
    }
    list[n] = entry;
    return n + 1;
}

int tnd_crossovers(const int64_t *m, int n_points, const double *times, int n_profiles,
                   struct tnd_crossover *out, int capacity)
{
    if (n_points < 2 || n_profiles < 2) {
        return 0;
    }
    int n = 0;
    int winner = tnd_winner(times, n_profiles, n_points, 0);
    for (int i = 0; i + 1 < n_points; i++) {
        struct segment segment = {(double)m[i], (double)m[i + 1], times + i, n_points};
        double at = segment.begin;
        int next = next_winner(&segment, n_profiles, winner, at, &at);
        while (next >= 0 && n < capacity) {
            struct tnd_crossover entry = {winner, next, at, (int64_t)floor(at) + 1};
            n = append(out, n, entry);
            winner = next;
            double from = at;
            next = next_winner(&segment, n_profiles, winner, from, &at);
        }
    }
    /* What wins only behind the last point is no finding of this table. */
    while (n > 0 && out[n - 1].first_m > m[n_points - 1]) {
        n--;
    }
    return n;
}
