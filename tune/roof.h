/* SPDX-License-Identifier: MIT
 * Facts about a stage beside its samples: the least time that the machine allows, by the table's
 * peaks, and how many tokens its kernel takes at once. */
#ifndef TND_ROOF_H
#define TND_ROOF_H

#include "table/curve_line.h"

/** Bounds of a stage of a matrix product on `threads` threads: 2 * N * K operations per token at
 * the highest peak that the type could use, and the weights' bytes at the read bandwidth if they
 * come from memory. Zeros if the table (may be NULL) has no such peak, for other operations, and
 * for backends other than the CPU's own. */
struct tnd_curve_bounds tnd_roof_of(const struct tandem_table *table,
                                    const struct tnd_curve_key *key, int threads);

/** Tokens that a stage's kernel takes at once (struct tnd_curve_bounds); 0: unknown. */
int64_t tnd_step_of(const struct tnd_curve_key *key);

#endif
