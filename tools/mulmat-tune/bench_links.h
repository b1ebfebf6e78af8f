/* SPDX-License-Identifier: MIT
 * mulmat-tune bench --links: messages between the ranks of a launcher, sums and collections, and
 * what messages cost the products beside them. */
#ifndef MULMAT_TUNE_BENCH_LINKS_H
#define MULMAT_TUNE_BENCH_LINKS_H

#include "table/tnd_table.h"
#include "tandem/communicator.h"

/** Measures with all ranks. `end`: a name for this machine, of less than 80 bytes. On rank 0 the
 *  times are added to `table`; on the others nothing is. Errors: STATE (no launcher has started
 *  several ranks), those of communicators and of tnd_cell_add. */
enum tandem_status bench_links(const char *end, tandem_table *table, bool *out_is_first,
                               struct tandem_error *error);

/** How many times as long products take on the CPUs of each rank while it sends and receives
 *  messages: the largest of all ranks becomes, on rank 0, the slow-down of "cpu" beside "links".
 *  Nothing is measured where the transport cannot post. All ranks call it; `table` is used on rank
 *  0. Errors: those of communicators, of tandem_runtime_compute and of tnd_record_add. */
enum tandem_status bench_links_products(tandem_communicator *communicator, tandem_table *table,
                                        struct tandem_error *error);

#endif
