/* SPDX-License-Identifier: MIT
 * Measuring on the first use of a graph, for programs that nobody tuned: TANDEM_TUNE. */
#ifndef TND_TUNE_GRAPH_H
#define TND_TUNE_GRAPH_H

#include "runtime/tnd_runtime.h"

/** Whether TANDEM_TUNE asks for it; a value that it does not know is logged. */
bool tnd_tune_is_wanted(void);

/** Measures the products of the graph that the table does not cover, for TANDEM_TUNE_BUDGET
 *  seconds; failures are logged. False when it covers all of them: nothing was measured. */
bool tnd_tune_on_first_use(tandem_runtime *runtime, const tandem_graph *graph);

#endif
