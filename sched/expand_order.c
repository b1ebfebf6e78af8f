/* SPDX-License-Identifier: MIT
 * Whether a graph may run in another order. Only pairs of nodes that change places are looked at:
 * orders of a schedule move nodes a little. */
#include "sched/expand_order.h"

#include "base/tnd_status.h"
#include "sched/conflict.h"

/* Functions of the program may share what they like. */
static bool may_change_places(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    return (a->op != TANDEM_OP_CUSTOM || b->op != TANDEM_OP_CUSTOM) && !tnd_nodes_conflict(a, b);
}

enum tandem_status tnd_order_check(const struct tandem_graph *graph, const int32_t *order,
                                   int32_t *largest, struct tandem_error *error)
{
    int64_t n_left = TND_ORDER_PAIRS * (int64_t)graph->n_nodes;
    for (int at = 0; at < graph->n_nodes; at++) {
        int32_t node = order[at];
        largest[at] = at > 0 && largest[at - 1] > node ? largest[at - 1] : node;
        /* The nodes before it that stand behind it in the graph. */
        for (int before = at - 1; before >= 0 && largest[before] > node; before--) {
            if (order[before] < node) {
                continue;
            }
            if (n_left-- == 0) {
                return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", at, graph->n_nodes,
                                     "plan: its order moves too many nodes too far");
            }
            if (!may_change_places(graph->nodes[order[before]], graph->nodes[node])) {
                return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", order[before], node,
                                     "plan: its order has node %d before node %d, which it needs "
                                     "or whose memory it takes over",
                                     (int)order[before], (int)node);
            }
        }
    }
    return TANDEM_OK;
}
