/* SPDX-License-Identifier: MIT
 * The correctness check that a profile must pass before it may be chosen: small products on this
 * machine, each compared with the double-precision reference; the error goes into the table. */
#ifndef TND_MEASURE_CHECKS_H
#define TND_MEASURE_CHECKS_H

#include "measure/measure.h"
#include "table/tnd_table.h"

struct tnd_check_options {
    struct tnd_measure_options measure; /* its rotate_bytes and is_whole are not used */
    const char *profile;                /* only this one; NULL: all available ones */
    int n_threads;                      /* of the workers that compute */
    int64_t when;                       /* seconds since 1970 */
    uint64_t deadline_ns;               /* no check is begun after it; 0: no limit */
};

/** Largest error accepted for weights of a type: what rounding the activations to the 8 bits of
 *  quantised kernels may cost, or the rounding of 16-bit and 32-bit floats. */
double tnd_check_bound(enum tandem_type type);
/** Error of m rows of n values: that of the worst row, its squared difference over its squared
 *  reference, so that one wrong value among many is detected. TND_CHECK_NOT_FINITE if any value is
 *  not finite. */
double tnd_check_error(const float *got, const float *want, int64_t m, int64_t n);

/** Checks every profile that applies to weights of `type`, on shapes with tails in N and M and on
 *  one without. A profile that its backend does not support, or has no memory for, stays unchecked.
 *  Errors: MEMORY, and those of tnd_measure_open. */
enum tandem_status tnd_measure_checks(const struct tnd_check_options *options,
                                      enum tandem_type type, struct tandem_table *table,
                                      struct tandem_error *error);

#endif
