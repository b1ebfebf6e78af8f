/* SPDX-License-Identifier: MIT
 * Counts the profiles of a plan. */
#include "tools/tandem-llama/plan_summary.h"

#include <stdio.h>
#include <string.h>

#include "tools/tandem-llama/cli.h"

enum { MAX_PROFILES = 16 };

struct count {
    const char *name;
    int n;
};

static void count_one(struct count *counts, int *n_counts, const char *profile)
{
    int at = 0;
    while (at < *n_counts && strcmp(counts[at].name, profile) != 0) {
        at++;
    }
    if (at == *n_counts && *n_counts < MAX_PROFILES) {
        counts[(*n_counts)++].name = profile;
    }
    if (at < *n_counts) {
        counts[at].n++;
    }
}

enum tandem_status tnd_plan_summary(tandem_session *session, int64_t m, struct tnd_plan_facts *out,
                                    struct tandem_error *error)
{
    const size_t capacity = sizeof(out->profiles);
    struct count counts[MAX_PROFILES] = {{NULL, 0}};
    int n_counts = 0;
    size_t at = 0;
    tandem_graph *graph;
    tandem_plan *plan;
    *out = (struct tnd_plan_facts){.n_products = 0};
    CLI_TRY(tandem_session_plan(session, m, &graph, &plan, error));
    for (int i = 0; i < tandem_graph_node_count(graph); i++) {
        const enum tandem_op op = tandem_tensor_op(tandem_graph_node(graph, i));
        if (op == TANDEM_OP_MUL_MAT || op == TANDEM_OP_MUL_MAT_ID) {
            const struct tandem_plan_node *choice = tandem_plan_node(plan, i);
            count_one(counts, &n_counts, choice->profile);
            out->n_products++;
            out->n_by_table += choice->reason == TANDEM_REASON_TABLE;
        }
    }
    for (int i = 0; i < n_counts && at < capacity; i++) {
        at += (size_t)snprintf(out->profiles + at, capacity - at, "%s%s %d", i > 0 ? ", " : "",
                               counts[i].name, counts[i].n);
    }
    out->took_us = tandem_plan_took_us(plan);
    tandem_plan_free(plan);
    return TANDEM_OK;
}
