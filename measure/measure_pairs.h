/* SPDX-License-Identifier: MIT
 * Slow-down of backends that work at the same time: they share the memory, the caches and the CPU's
 * power. Measured while both run. */
#ifndef TND_MEASURE_PAIRS_H
#define TND_MEASURE_PAIRS_H

#include "measure/measure.h"
#include "table/tnd_table.h"

struct tnd_pairs_options {
    struct tnd_measure_options measure; /* its rotate_bytes: 0: up to 48 MiB for each backend */
    enum tandem_type type;              /* of weights; backends that only support F32 get F32 */
    int64_t n, k, m;                    /* 0: 2048, 2048, 32 */
    double budget_s;                    /* for all of it, roughly; 0: 0.1 s for each time */
    uint64_t deadline_ns;               /* no measurement is begun after it; 0: no limit */
    int64_t when;                       /* seconds since 1970 */
};

/** Measures each pair of backends that are open and have a profile of their own: the time of one,
 *  on one thread of the host, alone and while the other computes the same on another thread, and
 *  vice versa. Twice, if time allows; the faster one counts. If a backend fails, its pairs stay
 *  unknown. For a device whose transfers are in the table, also measures products in a row with
 *  weights in flight: the ratio of their time to the longer of computing and transfer is stored as
 *  the device's slow-down beside itself. Errors: MEMORY, THREAD. */
enum tandem_status tnd_measure_pairs(const struct tnd_pairs_options *options,
                                     struct tandem_table *table, struct tandem_error *error);

#endif
