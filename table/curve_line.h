/* SPDX-License-Identifier: MIT
 * The time of a measured curve at any M (or any number of bytes). How reliable it is:
 * tune/estimate.c. */
#ifndef TND_CURVE_LINE_H
#define TND_CURVE_LINE_H

#include "table/tnd_table.h"

/* What else is known of a stage. `least_per_m` and `floor_us` are the machine's limits; samples
 * take precedence: a bound that a sample is below is lowered to that sample. */
struct tnd_curve_bounds {
    double least_per_m; /* minimum microseconds per token; 0: unknown */
    double floor_us;    /* minimum microseconds for any M; 0: unknown */
    int64_t step;       /* tokens that the kernel processes at once, when M >= step; 0: unknown */
};

struct tnd_curve_point {
    double us;
    double residual; /* outside of the samples: that of the fitted line, as a share; else 0 */
    int low, high;   /* the samples used; equal where m is not between two */
    bool is_stair;   /* follows from the kernel's step; other steps tell nothing about it */
};

/** Microseconds at `m`, of a curve with at least one sample. Between two samples: the line through
 * both. Outside of them: fixed + per_m * m, both not negative, through the outermost sample; more
 * tokens never take less, times are never below `bounds` (may be NULL), and beyond the last sample
 * tokens are never free for a task whose work grows with them. With a step, times are stairs: all M
 * of one step cost the same, and samples below the first whole step are not used above it or the
 * other way round, where both sides have samples. */
struct tnd_curve_point tnd_curve_at(const struct tnd_curve *curve, int64_t m,
                                    const struct tnd_curve_bounds *bounds);

/** The line through two samples at `m`. */
double tnd_sample_line(const struct tnd_sample *a, const struct tnd_sample *b, int64_t m);

/** Microseconds to move `bytes`, by a curve of transfers. Below the smallest measured size, the
 * latency is that of the smallest size. */
double tnd_transfer_line(const struct tnd_curve *curve, int64_t bytes);

#endif
