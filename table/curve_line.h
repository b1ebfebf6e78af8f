/* SPDX-License-Identifier: MIT
 * The time that a measured curve gives at any M (or any number of bytes). Knows nothing of how far
 * it can be trusted: tune/estimate.c. */
#ifndef TND_CURVE_LINE_H
#define TND_CURVE_LINE_H

#include "table/tnd_table.h"

/** Microseconds at `m`, of a curve with at least one sample: linear between the two measured
 *  neighbours; beyond the last along the line through the last points, never falling; below the
 *  first held or scaled through the origin, whichever fits the measured points. `out_low` and
 *  `out_high` get the samples that it rests on, which are one where m is not between two. */
double tnd_curve_line(const struct tnd_curve *curve, int64_t m, int *out_low, int *out_high);

/** The line through two samples at `m`. */
double tnd_sample_line(const struct tnd_sample *a, const struct tnd_sample *b, int64_t m);

/** Microseconds that moving `bytes` takes by a curve of transfers: what is less than the smallest
 *  number that was measured costs the latency as well. */
double tnd_transfer_line(const struct tnd_curve *curve, int64_t bytes);

#endif
