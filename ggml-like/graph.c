/* SPDX-License-Identifier: MIT
 * Graphs: which tensors an output needs, in which order they run, and where their results lie.
 * Start at tandem_graph_finish. Needs neither recursion nor a stack: the context lists pending
 * tensors in the order of building, and operands are always built before their users, so one walk
 * back from the last output meets every user before its operands. */
#include "base/alloc.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "ggml-like/memplan.h"
#include "ggml-like/tensor_internal.h"

tandem_graph *tandem_graph_new(tandem_context *context)
{
    if (context == NULL || context->error.status != TANDEM_OK) {
        return NULL;
    }
    struct tandem_graph *graph =
        tnd_context_take(context, sizeof(*graph), _Alignof(struct tandem_graph));
    if (graph != NULL) {
        graph->context = context;
    }
    return graph;
}

static void fail_foreign(struct tandem_graph *graph, const struct tandem_tensor *tensor)
{
    tnd_build_fail(graph->context, TANDEM_E_STATE, "graph", 0, 0,
                   "graph: %s %s belongs to another %s and has no values yet",
                   tandem_op_name(tensor->op), tensor->name[0] != '\0' ? tensor->name : "(no name)",
                   tensor->context != graph->context ? "context" : "graph");
}

/* Marks a tensor as needed, unless it has values already. */
static void mark(struct tandem_graph *graph, struct tandem_tensor *tensor)
{
    if (tensor->graph == graph || tnd_tensor_has_values(tensor)) {
        return;
    }
    if (tensor->graph != NULL || tensor->context != graph->context) {
        fail_foreign(graph, tensor);
        return;
    }
    tensor->graph = graph;
    graph->n_pending++;
}

void tandem_graph_set_runs_once(tandem_graph *graph)
{
    if (graph != NULL) {
        graph->runs_once = true;
    }
}

void tandem_graph_add(tandem_graph *graph, tandem_tensor *result)
{
    if (graph == NULL) {
        return;
    }
    if (result == NULL) {
        tnd_build_fail(graph->context, TANDEM_E_ARGUMENT, "graph", 0, 0,
                       "graph: the result to add is NULL");
        return;
    }
    if (graph->finished) {
        tnd_build_fail(graph->context, TANDEM_E_STATE, "graph", 0, 0,
                       "graph: it is finished, %s cannot be added", tandem_op_name(result->op));
        return;
    }
    mark(graph, result);
    if (result->graph != graph) {
        return; /* nothing to compute, or the error is in the context */
    }
    result->flags |= TND_TENSOR_OUTPUT;
    if (graph->latest == NULL || graph->latest->sequence < result->sequence) {
        graph->latest = result;
    }
}

/* ---- order ---- */

/* Marks everything that the outputs need; counts nodes and views. */
static void mark_needed(struct tandem_graph *graph)
{
    struct tandem_tensor *tensor = graph->latest;
    for (; tensor != NULL && graph->n_pending > 0; tensor = tensor->previous) {
        if (tensor->graph != graph) {
            continue;
        }
        graph->n_pending--;
        if (tnd_op_is_view(tensor->op)) {
            graph->n_views++;
        } else {
            graph->n_nodes++;
        }
        for (int i = 0; i < tensor->n_src; i++) {
            mark(graph, tensor->src[i]);
        }
        struct tandem_tensor *root = tensor->root;
        if ((tensor->flags & TND_TENSOR_OUTPUT) != 0 && root->op != TANDEM_OP_NONE &&
            (root->graph == NULL || root->graph == graph)) {
            root->flags |= TND_TENSOR_OUTPUT; /* this walk meets the root later */
        }
    }
}

/* Lists nodes and views in the order of building. */
static bool list_needed(struct tandem_graph *graph)
{
    const size_t n_all = (size_t)graph->n_nodes + (size_t)graph->n_views;
    struct tandem_tensor **all = tnd_context_take(graph->context, (n_all + 1) * sizeof(*all),
                                                  _Alignof(struct tandem_tensor *));
    if (all == NULL) {
        return false;
    }
    graph->nodes = all;
    graph->views = all + graph->n_nodes;
    int i_node = graph->n_nodes;
    int i_view = graph->n_views;
    for (struct tandem_tensor *tensor = graph->latest; i_node + i_view > 0;
         tensor = tensor->previous) {
        if (tensor->graph != graph) {
            continue;
        }
        if (tnd_op_is_view(tensor->op)) {
            graph->views[--i_view] = tensor;
        } else {
            graph->nodes[--i_node] = tensor;
            tensor->index = i_node;
        }
    }
    return true;
}

/* ---- memory ---- */

/* Whether the tensor owns memory that this graph plans. */
static bool is_intermediate(const struct tandem_graph *graph, const struct tandem_tensor *tensor)
{
    return tensor->graph == graph && tensor->root == tensor &&
           (tensor->flags & TND_TENSOR_OUTPUT) == 0;
}

/* Bytes rounded up to the alignment, at least one unit, so that every result has an address. */
static size_t padded_bytes(const struct tandem_tensor *tensor)
{
    const size_t bytes = tandem_tensor_bytes(tensor); /* at most a quarter of the range */
    return bytes == 0 ? TND_ALIGNMENT : (bytes + TND_ALIGNMENT - 1) / TND_ALIGNMENT * TND_ALIGNMENT;
}

/* last[i]: the last node that reads or writes the memory of node i, for nodes that own memory. Uses
 * of a view count as uses of its root, which keeps the root alive. Counts readers, too. */
static void find_last_uses(const struct tandem_graph *graph, int *last)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        last[i] = i;
        for (int j = 0; j < node->n_src; j++) {
            struct tandem_tensor *root = node->src[j]->root;
            if (root->graph == graph) {
                last[root->index] = i;
                root->n_readers++;
            }
        }
    }
}

/* The operand whose memory node i may reuse, or NULL. The operation must be element-wise, the
 * operand exactly its root and of the same chain, this node the root's last use, and no other
 * operand may read the root's memory. */
static const struct tandem_tensor *in_place_operand(const struct tandem_graph *graph, int i,
                                                    const int *last)
{
    const struct tandem_tensor *node = graph->nodes[i];
    const struct tandem_tensor *a = node->src[0];
    if (!tnd_op_may_run_in_place(node->op) || !is_intermediate(graph, a->root) ||
        last[a->root->index] != i || a->root_offset != 0 || !tandem_tensor_is_contiguous(a) ||
        padded_bytes(a->root) != padded_bytes(node) || a->root->chain != node->chain) {
        return NULL;
    }
    for (int j = 1; j < node->n_src; j++) {
        if (node->src[j]->root == a->root) {
            return NULL;
        }
    }
    return a->root;
}

/* Usage records of a chain's intermediate results; record_of[i] is the record of node i, or -1. */
static bool record_usages(struct tandem_graph *graph, int chain, const int *last,
                          struct tnd_usage *usages, int *record_of, int *out_n_usages)
{
    int n_usages = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        record_of[i] = -1;
        if (node->chain != chain || !is_intermediate(graph, node)) {
            continue;
        }
        const size_t bytes = padded_bytes(node);
        if (!tnd_add_size(graph->memory.sum_bytes, bytes, &graph->memory.sum_bytes) ||
            graph->memory.sum_bytes > PTRDIFF_MAX) {
            tnd_build_fail(graph->context, TANDEM_E_OVERFLOW, "graph", i, 0,
                           "graph: the bytes of all results do not fit into 63 bits");
            return false;
        }
        graph->memory.n_results++;
        const struct tandem_tensor *operand = in_place_operand(graph, i, last);
        if (operand != NULL) {
            record_of[i] = record_of[operand->index];
            usages[record_of[i]].last = last[i];
        } else {
            record_of[i] = n_usages;
            usages[n_usages++] = (struct tnd_usage){bytes, i, last[i], 0};
        }
    }
    *out_n_usages = n_usages;
    return true;
}

/* Each chain's memory follows that of the chains before it. */
static bool plan_chain(struct tandem_graph *graph, int chain, const int *last,
                       struct tnd_usage *usages, int *record_of)
{
    int n_usages = 0;
    size_t bytes = 0;
    if (!record_usages(graph, chain, last, usages, record_of, &n_usages)) {
        return false;
    }
    enum tandem_status status = tnd_memplan(usages, n_usages, graph->n_nodes, &bytes);
    if (status != TANDEM_OK) {
        tnd_build_fail(graph->context, status, "graph", n_usages, 0,
                       "graph: the memory of %d results could not be planned", n_usages);
        return false;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        if (record_of[i] >= 0) {
            graph->nodes[i]->plan_offset =
                (int64_t)(graph->planned_bytes + usages[record_of[i]].offset);
        }
    }
    graph->planned_bytes += bytes; /* at most the sum of all bytes */
    return true;
}

static bool plan_intermediates(struct tandem_graph *graph)
{
    const size_t n = (size_t)graph->n_nodes;
    struct tnd_usage *usages = tnd_alloc(n * (sizeof(*usages) + 2 * sizeof(int)) + 1);
    if (usages == NULL) {
        tnd_build_fail(graph->context, TANDEM_E_MEMORY, "graph", graph->n_nodes, 0,
                       "graph: no memory to plan %d nodes", graph->n_nodes);
        return false;
    }
    int *last = (int *)(usages + n);
    int *record_of = last + n;
    bool is_planned = true;
    graph->n_chains = 1;
    for (int i = 0; i < graph->n_nodes; i++) {
        const int n_chains = graph->nodes[i]->chain + 1;
        graph->n_chains = n_chains > graph->n_chains ? n_chains : graph->n_chains;
    }
    find_last_uses(graph, last);
    for (int chain = 0; chain < graph->n_chains && is_planned; chain++) {
        is_planned = plan_chain(graph, chain, last, usages, record_of);
    }
    graph->memory.planned_bytes = graph->planned_bytes;
    tnd_free(usages);
    return is_planned;
}

/* Allocates outputs, and sets the addresses of everything in memory that never moves. */
static bool place_outputs(struct tandem_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tandem_tensor *node = graph->nodes[i];
        if (node->root == node && (node->flags & TND_TENSOR_OUTPUT) != 0) {
            const size_t bytes = padded_bytes(node);
            node->data = tnd_context_take(graph->context, bytes, TND_ALIGNMENT);
            if (node->data == NULL || !tnd_tensor_take_buffer(node)) {
                return false;
            }
            graph->memory.output_bytes += bytes;
        }
    }
    return true;
}

static void place_view(struct tandem_tensor *view)
{
    char *data = view->root->data;
    TND_ASSERT(view->root != view && view->root->root == view->root);
    view->data = data == NULL ? NULL : data + view->root_offset;
}

/* Views of memory that never moves get their final address; the others are kept for
 * tnd_graph_bind. */
static void place_views(struct tandem_graph *graph)
{
    int n_kept = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i]->root != graph->nodes[i] && graph->nodes[i]->root->plan_offset < 0) {
            place_view(graph->nodes[i]);
        }
    }
    for (int i = 0; i < graph->n_views; i++) {
        struct tandem_tensor *view = graph->views[i];
        if (view->root->plan_offset < 0) {
            place_view(view);
        } else {
            graph->views[n_kept++] = view;
        }
    }
    graph->n_views = n_kept;
}

/* Unmarks the tensors of a graph that cannot be finished, so that another graph may use them. */
static void give_up(struct tandem_graph *graph)
{
    struct tandem_tensor *tensor = graph->context->last_pending;
    for (; tensor != NULL; tensor = tensor->previous) {
        if (tensor->graph == graph) {
            tensor->graph = NULL;
            tensor->flags &= ~TND_TENSOR_OUTPUT;
            tensor->n_readers = 0;
            if (tensor->root == tensor) {
                tensor->data = NULL;
                tensor->buffer = NULL;
                tensor->plan_offset = -1;
            }
        }
    }
    graph->n_nodes = 0;
    graph->n_views = 0;
    graph->n_pending = 0;
    graph->latest = NULL;
}

enum tandem_status tandem_graph_finish(tandem_graph *graph, struct tandem_error *error)
{
    if (graph == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "graph", 0, 0, "graph is NULL");
    }
    if (graph->finished) {
        return tnd_error_set(error, TANDEM_E_STATE, "graph", 0, 0, "graph: it is finished already");
    }
    tandem_context *context = graph->context;
    if (context->error.status == TANDEM_OK) {
        mark_needed(graph);
    }
    if (context->error.status == TANDEM_OK && list_needed(graph) && plan_intermediates(graph) &&
        place_outputs(graph)) {
        place_views(graph);
        graph->finished = true;
        graph->serial = tnd_new_serial();
        return TANDEM_OK;
    }
    give_up(graph);
    return tandem_context_status(context, error);
}

void tnd_graph_bind(struct tandem_graph *graph, void *buffer)
{
    TND_ASSERT(graph->finished && (buffer != NULL || graph->planned_bytes == 0));
    TND_ASSERT((uintptr_t)buffer % TND_ALIGNMENT == 0);
    if (graph->is_bound && graph->bound_to == buffer) {
        return;
    }
    graph->is_bound = true;
    graph->bound_to = buffer;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tandem_tensor *node = graph->nodes[i];
        if (node->plan_offset >= 0) {
            node->data = (char *)buffer + node->plan_offset;
        } else if (node->root->plan_offset >= 0) {
            place_view(node); /* a cpy into an intermediate result, an earlier node */
        }
    }
    for (int i = 0; i < graph->n_views; i++) {
        place_view(graph->views[i]);
    }
}

/* ---- accessors ---- */

int tandem_graph_node_count(const tandem_graph *graph)
{
    return graph == NULL ? 0 : graph->n_nodes;
}

tandem_tensor *tandem_graph_node(const tandem_graph *graph, int i)
{
    return graph == NULL || i < 0 || i >= graph->n_nodes ? NULL : graph->nodes[i];
}

enum tandem_status tandem_graph_memory(const tandem_graph *graph,
                                       struct tandem_memory_report *out_report)
{
    if (graph == NULL || out_report == NULL) {
        return TANDEM_E_ARGUMENT;
    }
    if (!graph->finished) {
        return TANDEM_E_STATE;
    }
    return tnd_results_write(&graph->memory, sizeof(graph->memory), "tandem_memory_report",
                             out_report, NULL);
}
