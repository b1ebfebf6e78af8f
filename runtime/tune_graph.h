/* SPDX-License-Identifier: MIT
 * Measuring on the first use of a graph, for programs that nobody tuned: TANDEM_TUNE. */
#ifndef TND_TUNE_GRAPH_H
#define TND_TUNE_GRAPH_H

#include "runtime/tnd_runtime.h"
#include "table/tnd_table.h"

/** Whether TANDEM_TUNE asks for it; a value that it does not know is logged. */
bool tnd_tune_is_wanted(void);

/** Seconds that measuring on first use may take: TANDEM_TUNE_BUDGET, or the default. */
double tnd_tune_first_use_s(void);

/** Measures the products of a finished graph as tandem_tune_graph does, into `fresh` alone; the
 *  budget begins with the call. Errors: those of measuring, CANCELLED (what was measured is in
 *  `fresh`). */
enum tandem_status tnd_tune_products(tandem_runtime *runtime, const tandem_graph *graph,
                                     const struct tandem_tune_options *options, tandem_table *fresh,
                                     struct tandem_error *error);

/** What was measured serves from now on, beside the table that is in use; with `saves` it is added
 *  to this machine's own table too. Errors: MEMORY, FILE. */
enum tandem_status tnd_tune_adopt(tandem_runtime *runtime, tandem_table *fresh, bool saves,
                                  struct tandem_error *error);

/** Measures the products of the graph that the table does not cover, for TANDEM_TUNE_BUDGET
 *  seconds; failures are logged. False when it covers all of them: nothing was measured. */
bool tnd_tune_on_first_use(tandem_runtime *runtime, const tandem_graph *graph);

#endif
