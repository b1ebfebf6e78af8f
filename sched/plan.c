/* SPDX-License-Identifier: MIT
 * Plans as data: create, copy, read, change. unfold.c turns them into steps. */
#include "sched/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"

static size_t plan_bytes(int n_nodes)
{
    return sizeof(struct tandem_plan) + (size_t)n_nodes * sizeof(struct tandem_plan_node);
}

static bool has_node(const tandem_plan *plan, int i)
{
    return plan != NULL && i >= 0 && i < plan->n_nodes;
}

static bool is_stage(enum tandem_stage stage)
{
    return (unsigned)stage < TANDEM_STAGES;
}

enum tandem_status tandem_plan_new(int n_nodes, tandem_plan **out_plan, struct tandem_error *error)
{
    if (n_nodes < 0 || out_plan == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", n_nodes, 0,
                             "plan: %d nodes; 0 or more are possible", n_nodes);
    }
    tandem_plan *plan = tnd_alloc(plan_bytes(n_nodes));
    if (plan == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", n_nodes, 0,
                             "plan: out of memory for %d nodes", n_nodes);
    }
    struct tandem_plan_node node;
    memset(&node, 0, sizeof(node)); /* plans are compared and hashed as bytes */
    memcpy(node.profile, "cpu", 4);
    node.stage[TANDEM_STAGE_COMPUTE].backend = TANDEM_BACKEND_CPU;
    node.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_NODE;
    node.n_threads = 1;
    node.reason = TANDEM_REASON_ONLY;
    plan->n_nodes = n_nodes;
    plan->took_us = 0;
    plan->schedule = NULL;
    plan->observed_key = 0;
    plan->kind = 0;
    for (int i = 0; i < n_nodes; i++) {
        plan->nodes[i] = node;
    }
    *out_plan = plan;
    return TANDEM_OK;
}

enum tandem_status tandem_plan_copy(const tandem_plan *plan, tandem_plan **out_plan,
                                    struct tandem_error *error)
{
    if (plan == NULL || out_plan == NULL) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "plan", 0, 0, "plan: nothing to copy");
    }
    tandem_plan *copy = tnd_alloc(plan_bytes(plan->n_nodes));
    if (copy == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", plan->n_nodes, 0,
                             "plan: out of memory for %d nodes", plan->n_nodes);
    }
    memcpy(copy, plan, plan_bytes(plan->n_nodes));
    copy->schedule = NULL;
    copy->observed_key = 0;
    enum tandem_status status = tnd_plan_copy_schedule(copy, plan, error);
    if (status != TANDEM_OK) {
        tandem_plan_free(copy);
        return status;
    }
    *out_plan = copy;
    return TANDEM_OK;
}

void tandem_plan_free(tandem_plan *plan)
{
    tandem_plan_clear_schedule(plan);
    tnd_free(plan);
}

int tandem_plan_node_count(const tandem_plan *plan)
{
    return plan == NULL ? 0 : plan->n_nodes;
}

int tandem_plan_threads(const tandem_plan *plan)
{
    int most = 1;
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        if (plan->nodes[i].n_threads > most) {
            most = plan->nodes[i].n_threads;
        }
    }
    for (int i = 0; i < tandem_plan_part_count(plan); i++) {
        int n_threads = plan->schedule->parts[i].choice.n_threads;
        most = n_threads > most ? n_threads : most;
    }
    return most;
}

double tandem_plan_took_us(const tandem_plan *plan)
{
    return plan == NULL ? 0 : plan->took_us;
}

const struct tandem_plan_node *tandem_plan_node(const tandem_plan *plan, int i)
{
    return has_node(plan, i) ? &plan->nodes[i] : NULL;
}

enum tandem_status tandem_plan_set_node(tandem_plan *plan, int i,
                                        const struct tandem_plan_node *node)
{
    if (!has_node(plan, i) || node == NULL) {
        return TANDEM_E_ARGUMENT;
    }
    for (int s = 0; s < TANDEM_STAGES; s++) {
        if (!(node->predicted_us[s] >= 0)) { /* NaN too */
            return TANDEM_E_ARGUMENT;
        }
    }
    plan->observed_key = 0;
    plan->nodes[i] = *node;
    plan->nodes[i].profile[sizeof(node->profile) - 1] = '\0';
    return TANDEM_OK;
}

struct tandem_task_config tandem_node_task_conf(const tandem_plan *plan, int i,
                                                enum tandem_stage stage)
{
    struct tandem_task_config none;
    memset(&none, 0, sizeof(none));
    return has_node(plan, i) && is_stage(stage) ? plan->nodes[i].stage[stage] : none;
}

enum tandem_status tandem_node_set_task_conf(tandem_plan *plan, int i, enum tandem_stage stage,
                                             struct tandem_task_config config)
{
    if (!has_node(plan, i) || !is_stage(stage) || config.backend >= TANDEM_MAX_BACKENDS ||
        config.task >= TANDEM_TASK_COUNT) {
        return TANDEM_E_ARGUMENT;
    }
    plan->observed_key = 0;
    plan->nodes[i].stage[stage] = config;
    plan->nodes[i].reason = TANDEM_REASON_HAND;
    return TANDEM_OK;
}

const char *tandem_stage_name(enum tandem_stage stage)
{
    static const char *const names[TANDEM_STAGES] = {"init", "compute", "finalize"};
    return is_stage(stage) ? names[stage] : "unknown";
}

const char *tandem_plan_reason_name(enum tandem_plan_reason reason)
{
    static const char *const names[] = {"only", "table", "rule", "forced", "hand", "fallback"};
    return (unsigned)reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "unknown";
}
