/* SPDX-License-Identifier: MIT
 * The line  us = fixed + per_m * m  through the samples at one end of a curve, both terms not
 * negative: the cost of a stage beyond the measured M. */
#ifndef TND_CURVE_FIT_H
#define TND_CURVE_FIT_H

#include "table/tnd_table.h"

struct tnd_curve_fit {
    double per_m;    /* microseconds per token (or byte) */
    double residual; /* of the samples from the line, as a share of their times */
};

/** Fits the samples within a factor of 8 of the first one, or of the last one (`at_end`), and at
 * least the four nearest: weighted least squares of relative residuals, in which near samples count
 * more and samples far from the line count less (Huber's weights). The M of a sample is
 * tnd_step_up(m, step). Expects at least two samples. No allocation, a few hundred operations. */
struct tnd_curve_fit tnd_curve_fit_end(const struct tnd_curve *curve, bool at_end, int64_t step);

/** The M that `m` costs as much as: kernels process `step` tokens at once, so from `step` on it is
 * the next multiple; below `step`, tokens are processed one by one. A step of 0 or 1: m. */
static inline int64_t tnd_step_up(int64_t m, int64_t step)
{
    return step > 1 && m > step ? (m + step - 1) / step * step : m;
}

#endif
