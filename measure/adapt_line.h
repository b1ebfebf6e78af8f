/* SPDX-License-Identifier: MIT
 * One line of adaptive measuring: its points over M, what lies between them, and how far they are
 * to be trusted. Behind measure/adapt.c alone. */
#ifndef TND_ADAPT_LINE_H
#define TND_ADAPT_LINE_H

#include "base/vector.h"
#include "measure/adapt.h"

struct tnd_adapt_point {
    int64_t m;
    double us;        /* the fastest of the trials' medians */
    double second_us; /* the second fastest; 0 after one trial */
    double spread;    /* deviation of the median, as a fraction */
    bool is_noisy;    /* as tnd_sample_is_noisy has it */
    int trials;
    double uncertainty; /* seen between this and the next point, a fraction; below 0: unknown */
};

struct tnd_adapt_points {
    TND_VECTOR_OF(struct tnd_adapt_point, points); /* ascending m */
};

/** Index of the last point with m at most this; -1: none. */
int tnd_adapt_find(const struct tnd_adapt_points *points, int64_t m);

/** Adds a trial; a new point tells how wrong the line between its neighbours was. Errors:
 *  MEMORY. */
enum tandem_status tnd_adapt_put(struct tnd_adapt_points *points, int64_t m,
                                 const struct tnd_stage_time *total);

/** Time at m: between points along the line, beyond them by slope and work; `safely`: beyond the
 *  last one proportional to m. Expects a point. */
double tnd_adapt_line_us(const struct tnd_adapt_points *points, int64_t m, double fixed_tokens,
                         bool safely);

/** How wrong a time at m, where nothing was measured, may be; a fraction. */
double tnd_adapt_gap_uncertainty(const struct tnd_adapt_points *points, int64_t m);
/** How wrong a measured point may be; a fraction. */
double tnd_adapt_point_uncertainty(const struct tnd_adapt_point *point);

/** How much of point i's time may be a disturbance: the fraction by which it exceeds a point of
 *  more tokens (more work takes no less time, but for steps of kernels), or clearly the line
 *  through the points around it, or the time a token of the point before. */
double tnd_adapt_outlier(const struct tnd_adapt_points *points, int i);
/** Where to divide the range between two measured M; 0: nowhere. */
int64_t tnd_adapt_middle(int64_t low, int64_t high);

#endif
