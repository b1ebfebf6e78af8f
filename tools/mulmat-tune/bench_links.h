/* SPDX-License-Identifier: MIT
 * mulmat-tune bench --links: messages between the ranks of a launcher, collective operations, and
 * how much messages slow down the products that run at the same time. */
#ifndef MULMAT_TUNE_BENCH_LINKS_H
#define MULMAT_TUNE_BENCH_LINKS_H

#include "table/tnd_table.h"
#include "tandem/communicator.h"

/** Measures with all ranks. `end`: a name of this machine, shorter than 80 bytes. Only rank 0 adds
 * the times to `table`. Errors: STATE (no launcher started several ranks), those of communicators
 * and of tnd_cell_add. */
enum tandem_status bench_links(const char *end, tandem_table *table, bool *out_is_first,
                               struct tandem_error *error);

/** Measures how much longer products take on the CPUs of each rank while it sends and receives
 * messages; rank 0 stores the largest factor of all ranks as the slow-down of "cpu" beside "links".
 * Measures nothing if the transport has no non-blocking operations. All ranks call it; only rank 0
 * uses `table`. Errors: those of communicators, of tandem_runtime_compute and of tnd_record_add. */
enum tandem_status bench_links_products(tandem_communicator *communicator, tandem_table *table,
                                        struct tandem_error *error);

#endif
