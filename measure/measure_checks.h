/* SPDX-License-Identifier: MIT
 * The gate before a profile may win: does it compute the right thing on this machine? Small
 * products, each against the reference in double precision; the error goes into the table. */
#ifndef TND_MEASURE_CHECKS_H
#define TND_MEASURE_CHECKS_H

#include "measure/measure.h"
#include "table/tnd_table.h"

struct tnd_check_options {
    struct tnd_measure_options measure; /* its rotate_bytes and is_whole are not used */
    const char *profile;                /* only this one; NULL: all that are available */
    int n_threads;                      /* of the team that computes */
    int64_t when;                       /* seconds since 1970 */
    uint64_t deadline_ns;               /* nothing is begun after it; 0: none */
};

/** Largest error that counts as right for weights of a type: what rounding the activations to the
 *  8 bits of quantised kernels may cost, or what 16-bit and 32-bit floats may. */
double tnd_check_bound(enum tandem_type type);
/** Error of m rows of n values: that of the worst row, its squared difference over its squared
 *  reference, so that one wrong value in many is seen. TND_CHECK_NOT_FINITE for anything else than
 *  numbers. */
double tnd_check_error(const float *got, const float *want, int64_t m, int64_t n);

/** Checks every profile that applies to weights of `type`, on shapes with tails in N and M and on
 *  one without. What a backend does not support, or has no room for, stays unknown. Errors: MEMORY,
 *  and those of tnd_measure_open. */
enum tandem_status tnd_measure_checks(const struct tnd_check_options *options,
                                      enum tandem_type type, struct tandem_table *table,
                                      struct tandem_error *error);

#endif
