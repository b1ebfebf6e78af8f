/* SPDX-License-Identifier: MIT
 * mulmat-tune bench --links: messages between the ranks of a launcher, sums and collections. */
#ifndef MULMAT_TUNE_BENCH_LINKS_H
#define MULMAT_TUNE_BENCH_LINKS_H

#include "table/tnd_table.h"

/** Measures with all ranks. `end`: a name for this machine, of less than 80 bytes. On rank 0 the
 *  times are added to `table`; on the others nothing is. Errors: STATE (no launcher has started
 *  several ranks), those of communicators and of tnd_cell_add. */
enum tandem_status bench_links(const char *end, tandem_table *table, bool *out_is_first,
                               struct tandem_error *error);

#endif
