/* SPDX-License-Identifier: MIT
 * A graph's choices explained: each distinct product once, with its nodes. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/explain_ops.h"
#include "runtime/observer.h"
#include "runtime/print_schedule.h"
#include "runtime/runtime_nodes.h"
#include "runtime/tnd_runtime.h"
#include "sched/plan.h"
#include "base/emit.h"
#include "tune/explain.h"

enum { MAX_NODES_NAMED = 8 };

static bool has_choice(const tandem_tensor *node)
{
    return node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node);
}

/* Whether both nodes have the same problem and the same choice. */
static bool is_alike(const tandem_graph *graph, const tandem_plan *plan, int a, int b)
{
    const tandem_tensor *one = graph->nodes[a];
    const tandem_tensor *two = graph->nodes[b];
    return has_choice(two) && one->src[0]->type == two->src[0]->type &&
           one->src[0]->ne[0] == two->src[0]->ne[0] && one->src[0]->ne[1] == two->src[0]->ne[1] &&
           one->ne[1] == two->ne[1] &&
           memcmp(&plan->nodes[a], &plan->nodes[b], sizeof(plan->nodes[a])) == 0;
}

/* "nodes 3, 12, 21, ... (22 of them)"; marks them as done. */
static void add_nodes(const tandem_graph *graph, const tandem_plan *plan, int first, bool *done,
                      struct tnd_text *out)
{
    int n = 0;
    tnd_text_add(out, "node");
    for (int i = first; i < graph->n_nodes; i++) {
        if (!done[i] && is_alike(graph, plan, first, i)) {
            if (n < MAX_NODES_NAMED) {
                tnd_text_printf(out, "%s %d", n == 0 ? "" : ",", i);
            }
            done[i] = true;
            n++;
        }
    }
    if (n > MAX_NODES_NAMED) {
        tnd_text_printf(out, ", ... (%d of them)", n);
    }
    const struct tandem_plan_node *choice = &plan->nodes[first];
    tnd_text_printf(out, ": %s on %d thread%s, reason: %s\n", choice->profile,
                    (int)choice->n_threads, choice->n_threads == 1 ? "" : "s",
                    tandem_plan_reason_name((enum tandem_plan_reason)choice->reason));
}

/* Adds a note if the plan kept a choice made by an earlier table. */
static void add_kept(const struct tandem_plan_node *choice, const struct tnd_explanation *e,
                     struct tnd_text *out)
{
    const char *best = tnd_explain_profile(e, &e->choice.best);
    if (choice->reason == TANDEM_REASON_TABLE && best[0] != '\0' &&
        (strcmp(choice->profile, best) != 0 || choice->n_threads != e->choice.best.threads)) {
        tnd_text_printf(out,
                        "  kept as it was chosen before: %s on %d thread%s is not clearly "
                        "faster (or X and Y lie on a device)\n",
                        best, e->choice.best.threads, e->choice.best.threads == 1 ? "" : "s");
    }
}

static enum tandem_status explain_nodes(const struct tnd_runtime_parts *parts,
                                        const struct tandem_table *table, int n_threads,
                                        const tandem_graph *graph, const tandem_plan *plan,
                                        bool *done, struct tnd_text *out,
                                        struct tandem_error *error)
{
    bool is_warm = tnd_planner_is_warm(parts->planner, graph);
    for (int i = 0; i < graph->n_nodes; i++) {
        if (done[i] || !has_choice(graph->nodes[i])) {
            continue;
        }
        struct tnd_explain_options options = {.table = table,
                                              .registry = parts->registry,
                                              .node = graph->nodes[i],
                                              .n_threads = n_threads,
                                              .error_bound = parts->error_bound,
                                              .is_warm = is_warm};
        struct tnd_explanation explanation;
        char rows[224];
        tnd_problem_of_node(graph->nodes[i], &options.problem);
        TND_TRY(tnd_explain(&options, &explanation, error));
        add_nodes(graph, plan, i, done, out);
        add_kept(&plan->nodes[i], &explanation, out);
        if (tnd_numa_describe_rows(parts->pool, graph->nodes[i], &plan->nodes[i], rows,
                                   sizeof(rows)) > 0) {
            tnd_text_printf(out, "  %s\n", rows);
        }
        tnd_explain_text(&explanation, out);
        tnd_explanation_fini(&explanation);
        tnd_text_add_char(out, '\n');
    }
    int n_only = tnd_explain_ops(table, parts->registry, graph, plan, n_threads, done, out);
    tnd_text_printf(out, "%d of %d nodes have one way alone (the CPU's own kernels)\n", n_only,
                    graph->n_nodes);
    tnd_text_add(out, is_warm ? "planned by times of weights in the cache: all of them fit\n" : "");
    return TANDEM_OK;
}

enum tandem_status tandem_runtime_explain(tandem_runtime *runtime, const tandem_graph *graph,
                                          const tandem_plan *plan, tandem_write_fn write,
                                          void *user)
{
    tandem_plan *own = NULL;
    tandem_table *table = NULL; /* a copy: drift may replace the runtime's own */
    bool *done = NULL;
    struct tnd_runtime_parts parts;
    struct tnd_text text = TND_TEXT_INIT;
    TND_TRY(tnd_runtime_check(runtime, "explain", NULL));
    if (write == NULL || graph == NULL || !graph->finished ||
        (plan != NULL && plan->n_nodes != graph->n_nodes)) {
        return TANDEM_E_ARGUMENT;
    }
    tnd_runtime_parts(runtime, &parts);
    int n_threads = tnd_planner_limit(parts.planner, tandem_runtime_threads(runtime));
    enum tandem_status status =
        plan == NULL ? tandem_runtime_plan(runtime, graph, &own, NULL) : TANDEM_OK;
    if (status == TANDEM_OK) {
        done = tnd_calloc((size_t)graph->n_nodes + 1, sizeof(done[0]));
        status = done != NULL ? tnd_runtime_copy_table(runtime, &table, NULL) : TANDEM_E_MEMORY;
    }
    if (status == TANDEM_OK) {
        status = explain_nodes(&parts, table, n_threads, graph, own != NULL ? own : plan, done,
                               &text, NULL);
    }
    if (status == TANDEM_OK) {
        char plans[400];
        tnd_print_schedule(parts.registry, own != NULL ? own : plan, &text);
        tnd_observer_explain(runtime, graph, plans, sizeof(plans));
        tnd_text_add(&text, plans);
        status = tnd_emit_end(&text, write, user, "explanation", NULL);
    }
    tnd_text_fini(&text);
    tnd_free(done);
    tandem_table_free(table);
    tandem_plan_free(own);
    return status;
}
