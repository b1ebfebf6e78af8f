/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * A graph is a list of nodes in execution order. It is built in a context, finished once, and then
 * computed any number of times by a runtime. */
#ifndef TANDEM_GRAPH_H
#define TANDEM_GRAPH_H

#include "tandem/log.h"
#include "tandem/ops.h"

TANDEM_BEGIN_C

/** Owned by its context: there is no call that frees a graph. */
typedef struct tandem_graph tandem_graph;
/** Chooses how operations of nets become nodes: the chooser of a runtime uses measured times
 * (tandem_runtime_chooser). */
typedef struct tandem_chooser tandem_chooser;

/** An empty graph in `context`, which owns it. One thread at a time per context. Errors: returns
 *  NULL after an error in the context, or when it has no memory, which it records. */
TANDEM_API tandem_graph *tandem_graph_new(tandem_context *context);

/** Adds `result` and everything it needs that is not in the graph yet, operands before users, in
 * the order in which they were built. `result` becomes an output: it gets memory of its own in the
 * context and keeps its values until the next computation. Nodes run in the order in which they
 * were built, whatever the order of adding: what is built after a cpy into a cache sees the copied
 * values. One thread at a time per context. Errors: recorded in the context, for
 * tandem_graph_finish to return: ARGUMENT (`result` is NULL, or belongs to another context or
 * graph), STATE (finished already). */
TANDEM_API void tandem_graph_add(tandem_graph *graph, tandem_tensor *result);

/** Functions of the graph (tandem_custom) do more than compute, as those that send messages: a
 *  computation is never begun anew once one of them has been called, so it is not given up for
 *  another plan, and fails where a device is lost later on. Before it is computed; NULL is allowed.
 *  One thread at a time per context. Never fails. */
TANDEM_API void tandem_graph_set_runs_once(tandem_graph *graph);

/** Checks the graph, orders it and plans its memory: results whose lifetimes do not overlap share
 *  bytes. Returns the first error that any builder recorded in the context. Must be called once,
 *  before the graph is computed. Allocates the outputs in the context. One thread at a time per
 *  context. Errors: those of the builders, STATE (finished already), ARGUMENT (NULL), OVERFLOW,
 *  MEMORY. */
TANDEM_API enum tandem_status tandem_graph_finish(tandem_graph *graph, struct tandem_error *error);

/** Number of nodes that compute something (views are not counted), and the i-th in execution order,
 *  which the context owns. Never fail: 0 and NULL for NULL or a number outside. Any thread while
 *  the graph does not change. */
TANDEM_API int tandem_graph_node_count(const tandem_graph *graph);
TANDEM_API tandem_tensor *tandem_graph_node(const tandem_graph *graph, int i);

/** Memory of a graph, and what sharing it saved. */
struct tandem_memory_report {
    size_t size;          /**< sizeof(struct tandem_memory_report) */
    size_t planned_bytes; /**< bytes that intermediate results share */
    size_t sum_bytes;     /**< bytes they would take without sharing */
    size_t output_bytes;  /**< bytes of outputs, which are not shared */
    int n_results;        /**< intermediate results */
};
#define TANDEM_MEMORY_REPORT_INIT                                                                  \
    {                                                                                              \
        sizeof(struct tandem_memory_report), 0, 0, 0, 0                                            \
    }
/** Memory use of a finished graph; `size` of the structure must be set. Any thread. Errors:
 * ARGUMENT (NULL), STATE (not finished), ABI (no size). */
TANDEM_API enum tandem_status tandem_graph_memory(const tandem_graph *graph,
                                                  struct tandem_memory_report *out_report);

/** Prints one line per node: index, operation, name, type, shape, memory, operands (docs/graphs.md
 * explains them). Any thread while the graph does not change. Errors: ARGUMENT (NULL), STATE (not
 * finished), FILE (`write` stopped). */
TANDEM_API enum tandem_status tandem_graph_print(const tandem_graph *graph, tandem_write_fn write,
                                                 void *user);

TANDEM_END_C
#endif
