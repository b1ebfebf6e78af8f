/* SPDX-License-Identifier: MIT
 * Measures a graph's products on its first use, for programs that were never tuned: TANDEM_TUNE. */
#ifndef TND_TUNE_GRAPH_H
#define TND_TUNE_GRAPH_H

#include "runtime/tnd_runtime.h"
#include "table/tnd_table.h"

/** Whether TANDEM_TUNE asks for it; logs an unknown value. */
bool tnd_tune_is_wanted(void);

/** Budget of measuring on first use, in seconds: TANDEM_TUNE_BUDGET, or the default. */
double tnd_tune_first_use_s(void);

/** Measures the products of a finished graph like tandem_tune_graph, into `fresh` only; the budget
 * starts with the call. Errors: those of measuring, CANCELLED (times so far are in `fresh`). */
enum tandem_status tnd_tune_products(tandem_runtime *runtime, const tandem_graph *graph,
                                     const struct tandem_tune_options *options, tandem_table *fresh,
                                     struct tandem_error *error);

/** Uses the measured times from now on, in addition to the current table; with `saves`, also adds
 * them to this machine's own table. Errors: MEMORY, FILE. */
enum tandem_status tnd_tune_adopt(tandem_runtime *runtime, tandem_table *fresh, bool saves,
                                  struct tandem_error *error);

/** Measures the products of the graph that the table does not cover, for TANDEM_TUNE_BUDGET
 * seconds; failures are logged. False: it covers all of them, nothing was measured. */
bool tnd_tune_on_first_use(tandem_runtime *runtime, const tandem_graph *graph);

#endif
