/* SPDX-License-Identifier: MIT
 * One line of adaptive measuring: its points over M, interpolation between them, and their
 * uncertainty. Only for measure/adapt.c. */
#ifndef TND_ADAPT_LINE_H
#define TND_ADAPT_LINE_H

#include "base/vector.h"
#include "measure/adapt.h"

struct tnd_adapt_point {
    int64_t m;
    double us;        /* the fastest of the trials' medians */
    double second_us; /* the second fastest; 0 after one trial */
    double spread;    /* deviation of the median, as a fraction */
    bool is_noisy;    /* see tnd_sample_is_noisy */
    int trials;
    double uncertainty; /* interpolation error between this and the next point, a fraction;
                         * negative: unknown */
};

struct tnd_adapt_points {
    TND_VECTOR_OF(struct tnd_adapt_point, points); /* ascending m */
};

/** Index of the last point at or below m; -1: none. */
int tnd_adapt_find(const struct tnd_adapt_points *points, int64_t m);

/** Adds a trial; a new point shows the error of interpolating between its neighbours. Errors:
 *  MEMORY. */
enum tandem_status tnd_adapt_put(struct tnd_adapt_points *points, int64_t m,
                                 const struct tnd_stage_time *total);

/** Time at m: interpolated between points, extrapolated by slope and work; `safely`: after the last
 *  point proportional to m. Requires a point. */
double tnd_adapt_line_us(const struct tnd_adapt_points *points, int64_t m, double fixed_tokens,
                         bool safely);

/** Uncertainty of a time at m, where nothing was measured; a fraction. */
double tnd_adapt_gap_uncertainty(const struct tnd_adapt_points *points, int64_t m);
/** Uncertainty of a measured point; a fraction. */
double tnd_adapt_point_uncertainty(const struct tnd_adapt_point *point);

/** Fraction of point i's time that may be a disturbance: by which it exceeds a point of more tokens
 *  (more work takes no less time, except for steps of kernels), or clearly exceeds the line through
 *  its neighbours, or the time per token of the point before it. */
double tnd_adapt_outlier(const struct tnd_adapt_points *points, int i);
/** The M at which to divide the range between two measured ones; 0: do not divide. */
int64_t tnd_adapt_middle(int64_t low, int64_t high);

#endif
