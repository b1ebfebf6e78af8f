/* SPDX-License-Identifier: MIT
 * Printing plans for people. */
#include "runtime/print_plan.h"
#include "runtime/print_schedule.h"
#include "runtime/runtime_nodes.h"

#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "base/tnd_status.h"
#include "sched/plan.h"
#include "table/problem.h"

/* "init cpu/quantize_x*2, " : backend, task, and how many threads take part ("+own" for its
 * own). */
static void describe_stage(const struct tnd_registry *registry, const struct tandem_plan_node *node,
                           enum tandem_stage stage, char *out, size_t n)
{
    const struct tandem_task_config *config = &node->stage[stage];
    const char *backend = tnd_registry_name(registry, config->backend);
    char threads[24] = "1";
    if (config->parallel) {
        snprintf(threads, sizeof(threads), "%d", (int)node->n_threads);
    } else if (config->own_threads) {
        snprintf(threads, sizeof(threads), "%d of its own", (int)node->n_threads);
    }
    snprintf(out, n, "%s %s %s, threads %s%s", tandem_stage_name(stage),
             backend != NULL ? backend : "(no such backend)",
             tandem_task_name((enum tandem_task)config->task), threads,
             config->wait ? ", others sleep" : "");
}

static void describe_node(const tandem_tensor *node, char *out, size_t n)
{
    if (node->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(node)) {
        struct tnd_problem problem;
        tnd_problem_of_node(node, &problem);
        tnd_problem_print(&problem, out, n);
    } else {
        snprintf(out, n, "%s {%lld, %lld, %lld, %lld}", tandem_op_name(node->op),
                 (long long)node->ne[0], (long long)node->ne[1], (long long)node->ne[2],
                 (long long)node->ne[3]);
    }
}

/* "; runs 2.1 to 104.5 us": when the node's own choice is predicted to run. */
static size_t describe_span(const struct tandem_plan *plan, int i, char *out, size_t n)
{
    for (int s = 0; s < tandem_plan_span_count(plan); s++) {
        const struct tandem_plan_span *span = tandem_plan_span(plan, s);
        if (span->node == i && span->part <= 0 && span->lane == TANDEM_LANE_COMPUTE &&
            span->stage == TANDEM_STAGE_COMPUTE) {
            return (size_t)snprintf(out, n, "; runs %.1f to %.1f us", (double)span->begin_us,
                                    (double)span->end_us);
        }
    }
    return 0;
}

static int print_node(const struct tnd_registry *registry, struct tnd_pool *pool,
                      const tandem_tensor *node, const struct tandem_plan *plan,
                      const struct tnd_steps *steps, int i, tandem_write_fn write, void *user)
{
    const struct tandem_plan_node *choice = tandem_plan_node(plan, i);
    char line[1024];
    char rows[224];
    char what[TND_PROBLEM_MAX];
    describe_node(node, what, sizeof(what));
    size_t used =
        (size_t)snprintf(line, sizeof(line), "%4d %-44s %-22s %-6s", i, what, choice->profile,
                         tandem_plan_reason_name((enum tandem_plan_reason)choice->reason));
    const char *separator = " ";
    double total_us = 0;
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (choice->stage[s].backend == TANDEM_BACKEND_NONE) {
            continue;
        }
        char stage[160];
        describe_stage(registry, choice, (enum tandem_stage)s, stage, sizeof(stage));
        used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s", separator, stage);
        separator = "; ";
        total_us += (double)choice->predicted_us[s];
    }
    if (total_us > 0) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "; predicted %.1f us", total_us);
        if (choice->runner_up_us > 0) {
            used += (size_t)snprintf(line + used, sizeof(line) - used, " (second best %.1f us)",
                                     (double)choice->runner_up_us);
        }
    }
    used += describe_span(plan, i, line + used, sizeof(line) - used);
    if (tnd_numa_describe_rows(pool, node, choice, rows, sizeof(rows)) > 0) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "; %s", rows);
    }
    if (steps != NULL && steps->items.list[i].into >= 0) {
        used += (size_t)snprintf(line + used, sizeof(line) - used, "; fused into node %d",
                                 (int)steps->items.list[i].into);
    }
    line[used] = '\n';
    return write(user, line, used + 1);
}

/* Describes transfers of a run between host and devices, with and without states and weights in
 * place, and how often workers synchronise. */
static void describe_steps(const struct tnd_steps *steps, char *out, size_t n)
{
    int count[2] = {0, 0};
    size_t bytes[2] = {0, 0};
    int n_parallel = 0;
    for (int i = 0; i < steps->n_groups; i++) {
        n_parallel += steps->groups[i].n_workers > 1;
    }
    int used = snprintf(out, n, ", %d steps in %d groups (%d parallel)", steps->n_steps,
                        steps->n_groups, n_parallel);
    for (int i = 0; i < steps->n_steps && steps->residency != NULL; i++) {
        const struct tnd_step *step = &steps->steps[i];
        if (step->kind != TND_STEP_WORK) {
            count[step->kind == TND_STEP_DOWNLOAD]++;
            bytes[step->kind == TND_STEP_DOWNLOAD] += step->moved.bytes;
        }
    }
    if (count[0] + count[1] > 0) {
        snprintf(out + used, n - (size_t)used, ", %d uploads (%zu bytes), %d downloads (%zu bytes)",
                 count[0], bytes[0], count[1], bytes[1]);
    }
}

static enum tandem_status print_all(const struct tnd_registry *registry, struct tnd_pool *pool,
                                    const struct tandem_graph *graph,
                                    const struct tandem_plan *plan, const struct tnd_steps *steps,
                                    tandem_write_fn write, void *user)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        if (print_node(registry, pool, graph->nodes[i], plan, steps, i, write, user) != 0) {
            return TANDEM_E_FILE;
        }
    }
    struct tnd_text schedule = TND_TEXT_INIT;
    tnd_print_schedule(registry, plan, &schedule);
    enum tandem_status status = tnd_emit_end(&schedule, write, user, "plan", NULL);
    tnd_text_fini(&schedule);
    TND_TRY(status);
    char line[320];
    char text[192] = "";
    if (steps != NULL) {
        describe_steps(steps, text, sizeof(text));
    }
    char chains[40] = "";
    if (graph->n_chains > 1) {
        snprintf(chains, sizeof(chains), " in %d chains", graph->n_chains);
    }
    int n = snprintf(line, sizeof(line), "%d nodes%s, up to %d threads%s, planned in %.1f us\n",
                     graph->n_nodes, chains, tandem_plan_threads(plan), text,
                     tandem_plan_took_us(plan));
    return write(user, line, (unsigned long)n) == 0 ? TANDEM_OK : TANDEM_E_FILE;
}

enum tandem_status tnd_print_plan(const struct tnd_registry *registry, struct tnd_pool *pool,
                                  const struct tandem_graph *graph, const struct tandem_plan *plan,
                                  tandem_write_fn write, void *user)
{
    struct tnd_steps *steps = NULL;
    if (tandem_plan_node_count(plan) != graph->n_nodes) {
        return TANDEM_E_ARGUMENT;
    }
    /* If it cannot be unfolded, running it reports why. A plan with a schedule has other steps. */
    if (!tnd_plan_is_scheduled(plan)) {
        (void)tnd_steps_new(graph, plan, registry, &steps, NULL);
    }
    enum tandem_status status = print_all(registry, pool, graph, plan, steps, write, user);
    tnd_steps_free(steps);
    return status;
}
