/* SPDX-License-Identifier: MIT
 * The time that a measured curve gives at any M (or any number of bytes). Knows nothing of how far
 * it can be trusted: tune/estimate.c. */
#ifndef TND_CURVE_LINE_H
#define TND_CURVE_LINE_H

#include "table/tnd_table.h"

/* What is known of a stage beside its samples. `least_per_m` and `floor_us` are what the machine
 * allows at best; the samples themselves are believed: a bound that they break is lowered to
 * them. */
struct tnd_curve_bounds {
    double least_per_m; /* microseconds that a token takes at least; 0: unknown */
    double floor_us;    /* microseconds that any M takes at least; 0: unknown */
    int64_t step;       /* tokens that the kernel takes at once, from this many on; 0: unknown */
};

struct tnd_curve_point {
    double us;
    double residual; /* outside of the samples: of the line there, as a share; else 0 */
    int low, high;   /* the samples that it rests on, one where m is not between two */
    bool is_stair;   /* told by the kernel's step, where neighbours of other steps say nothing */
};

/** Microseconds at `m`, of a curve with at least one sample. Between two samples the line through
 *  both. Outside of them  fixed + per_m * m , neither negative, through the end's sample: never
 *  less for more, never faster than `bounds` (may be NULL), beyond the last one never free for a
 *  task that works by token. With a step, times are stairs: M of one step cost the same, and M
 *  below the first whole step and M from it on say nothing of each other, where both have
 *  samples. */
struct tnd_curve_point tnd_curve_at(const struct tnd_curve *curve, int64_t m,
                                    const struct tnd_curve_bounds *bounds);

/** The line through two samples at `m`. */
double tnd_sample_line(const struct tnd_sample *a, const struct tnd_sample *b, int64_t m);

/** Microseconds that moving `bytes` takes by a curve of transfers: what is less than the smallest
 *  number that was measured costs the latency as well. */
double tnd_transfer_line(const struct tnd_curve *curve, int64_t bytes);

#endif
