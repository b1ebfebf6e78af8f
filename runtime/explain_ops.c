/* SPDX-License-Identifier: MIT
 * Explains devices and thread counts of operations other than products. */
#include "runtime/explain_ops.h"

#include <string.h>

#include "tune/candidates.h"
#include "base/emit.h"
#include "tune/op_cost.h"

static bool is_alike(const tandem_graph *graph, const tandem_plan *plan, int a, int b)
{
    const tandem_tensor *one = graph->nodes[a];
    const tandem_tensor *two = graph->nodes[b];
    struct tnd_op_work work[2] = {{.n = 0}, {.n = 0}};
    bool known = tnd_op_work_of(one, &work[0]);
    return one->op == two->op && plan->nodes[a].n_threads == plan->nodes[b].n_threads &&
           plan->nodes[a].stage[TANDEM_STAGE_COMPUTE].backend ==
               plan->nodes[b].stage[TANDEM_STAGE_COMPUTE].backend &&
           known == tnd_op_work_of(two, &work[1]) && work[0].n == work[1].n &&
           work[0].k == work[1].k && work[0].m == work[1].m;
}

static int count_alike(const tandem_graph *graph, const tandem_plan *plan, int first, bool *done)
{
    int n = 0;
    for (int i = first; i < graph->n_nodes; i++) {
        if (!done[i] && is_alike(graph, plan, first, i)) {
            done[i] = true;
            n++;
        }
    }
    return n;
}

/* "2.1 +- 0.1 us" */
static void add_time(const struct tnd_estimate *one, struct tnd_text *out)
{
    tnd_emit_number(out, 0, 1, one->us);
    tnd_text_add(out, " +- ");
    tnd_emit_error(out, 0, one->error_us);
    tnd_text_printf(out, " us%s", one->stale ? " (stale)" : "");
}

/* "; 1: 2.1 +- 0.1 us, 2: 3.4 +- 0.1 us" */
static void add_predictions(const struct tandem_table *table, const struct tnd_op_work *work,
                            int n_threads, const char *before, struct tnd_text *out)
{
    struct tnd_estimate one;
    const char *separator = before;
    for (int t = 1; tnd_op_estimate(table, work, t, &one);
         t = tnd_next_thread_count(table, t, n_threads)) {
        tnd_text_printf(out, "%s%d: ", separator, t);
        add_time(&one, out);
        separator = ", ";
        if (t >= n_threads) {
            break;
        }
    }
}

static void add_shares(const struct tandem_table *table, const struct tnd_op_work *work,
                       int n_threads, struct tnd_text *out)
{
    struct tnd_estimate one;
    if (!tnd_op_estimate(table, work, 1, &one)) {
        tnd_text_add(out, "; not measured: shared out from ten hand-offs' time on");
    } else if (work->shares < n_threads) {
        tnd_text_printf(out, "; there is work for %d", work->shares > 1 ? (int)work->shares : 1);
    }
}

/* Adds predictions for all devices in the table; returns whether `chosen` is one of them. */
static bool add_devices(const struct tandem_table *table, const struct tnd_registry *registry,
                        const struct tnd_op_work *work, const char *chosen, struct tnd_text *out)
{
    bool is_known = false;
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        const char *name = tnd_registry_name(registry, slot);
        struct tnd_estimate one;
        if (slot != TANDEM_BACKEND_CPU && tnd_op_device_estimate(table, work, name, &one)) {
            tnd_text_printf(out, "; on %s: ", name);
            add_time(&one, out);
            is_known = is_known || strcmp(name, chosen) == 0;
        }
    }
    return is_known;
}

/* Adds a note about copies between sides, which are extra. */
static void add_sides(const struct tandem_table *table, const struct tnd_registry *registry,
                      const struct tnd_op_work *work, const struct tandem_plan_node *choice,
                      int n_threads, struct tnd_text *out)
{
    if (choice->stage[TANDEM_STAGE_COMPUTE].backend == TANDEM_BACKEND_CPU) {
        add_predictions(table, work, n_threads, "; ", out);
        add_shares(table, work, n_threads, out);
        (void)add_devices(table, registry, work, choice->profile, out);
        return;
    }
    if (!add_devices(table, registry, work, choice->profile, out)) {
        tnd_text_add(out, "; not measured there: as on the CPU");
    }
    add_predictions(table, work, n_threads, "; on the CPU: ", out);
}

int tnd_explain_ops(const struct tandem_table *table, const struct tnd_registry *registry,
                    const tandem_graph *graph, const tandem_plan *plan, int n_threads, bool *done,
                    struct tnd_text *out)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (done[i]) {
            continue;
        }
        const tandem_tensor *node = graph->nodes[i];
        const struct tandem_plan_node *choice = &plan->nodes[i];
        struct tnd_op_work work;
        tnd_text_add(out, n == 0 ? "other operations (threads; predicted for each number)\n" : "");
        int count = count_alike(graph, plan, i, done);
        n += count;
        tnd_text_printf(out, "  %-12s {%lld, %lld, %lld}", tandem_op_name(node->op),
                        (long long)node->ne[0], (long long)node->ne[1], (long long)node->ne[2]);
        tnd_text_printf(out, " x %d: %s, %d thread%s", count, choice->profile,
                        (int)choice->n_threads, choice->n_threads == 1 ? "" : "s");
        if (tnd_op_work_of(node, &work)) {
            add_sides(table, registry, &work, choice, n_threads, out);
        }
        tnd_text_add_char(out, '\n');
    }
    return n;
}
