/* SPDX-License-Identifier: MIT
 * What is known of a stage beside its samples: what the machine allows at best, by the peaks that
 * its table holds, and how many tokens its kernel takes at once. */
#ifndef TND_ROOF_H
#define TND_ROOF_H

#include "table/curve_line.h"

/** Bounds of a stage of a matrix product on `threads` threads: 2 * N * K operations a token at the
 *  highest peak that the type could use, and the weights' bytes at the bandwidth of reading where
 *  they come from memory. Zeros where the table (may be NULL) has no such peak, for other
 *  operations, and for other backends than the CPU's own. */
struct tnd_curve_bounds tnd_roof_of(const struct tandem_table *table,
                                    const struct tnd_curve_key *key, int threads);

/** Tokens that the kernel of a stage takes at once (struct tnd_curve_bounds); 0: unknown. */
int64_t tnd_step_of(const struct tnd_curve_key *key);

#endif
