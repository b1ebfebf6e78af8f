/* SPDX-License-Identifier: MIT
 * The rule. */
#include "tune/rule.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "ggml-like/work.h"
#include "tune/policy.h"

static const char rounding[] = "cpu-bf16";

const char *tnd_rule_profile(const char *cpu_id, int i)
{
    static const char *const names[] = {rounding, "cpu-packed", "cpu"};
    const int first = strncmp(cpu_id, "AuthenticAMD", strlen("AuthenticAMD")) == 0 ? 0 : 1;
    return i >= 0 && (size_t)i < sizeof(names) / sizeof(names[0]) - (size_t)first ? names[first + i]
                                                                                  : NULL;
}

int tnd_rule_rank(const char *cpu_id, const char *profile)
{
    for (int i = 0; tnd_rule_profile(cpu_id, i + 1) != NULL; i++) {
        if (strcmp(tnd_rule_profile(cpu_id, i), profile) == 0) {
            return i;
        }
    }
    return INT_MAX;
}

bool tnd_rule_rounds(const char *profile)
{
    return strcmp(profile, rounding) == 0;
}

/* Least work of a share that is worth its hand-off, in the unit of the operation's cost. */
static const double worth[] = {
    [TND_COST_NOTHING] = INFINITY,
    [TND_COST_PRODUCT] = TND_RULE_MULTIPLY_ADDS,
    [TND_COST_ATTENTION] = TND_RULE_MULTIPLY_ADDS,
    [TND_COST_SUMS] = TND_RULE_MULTIPLY_ADDS,
    [TND_COST_EXPONENTIALS] = TND_RULE_EXPONENTIALS,
    [TND_COST_VALUES] = TND_RULE_VALUES,
};

static bool is_worth_sharing(const tandem_tensor *node, double handoff_us)
{
    const enum tnd_op_cost cost = tnd_op_traits(node->op)->cost;
    if (cost == TND_COST_USER) {
        return node->params.custom.n_items > 1; /* the cost of the user's function is unknown */
    }
    const struct tnd_work *work = tnd_work_of(node);
    return (work == NULL || work->n_items > 1) &&
           tnd_node_work(node) / fmax(handoff_us, 1.0) >= worth[cost];
}

/* Threads for a product: a single token is limited by reading the weights, for which one thread per
 * core is enough. */
static int limit_of(int64_t tokens, int n_threads, int n_cores)
{
    return tokens == 1 && n_cores > 0 && n_cores < n_threads ? n_cores : n_threads;
}

int tnd_rule_problem_threads(const struct tnd_problem *problem, int n_threads, int n_cores,
                             double handoff_us)
{
    double work = (double)problem->n * (double)problem->k * (double)problem->m;
    bool is_worth = work / fmax(handoff_us, 1.0) >= TND_RULE_MULTIPLY_ADDS;
    return is_worth ? limit_of(problem->m, n_threads, n_cores) : 1;
}

int tnd_rule_product_threads(const tandem_tensor *node, int n_threads, int n_cores,
                             double handoff_us)
{
    const int64_t tokens = node->ne[node->op == TANDEM_OP_MUL_MAT_ID ? 2 : 1];
    return tnd_rule_threads(node, limit_of(tokens, n_threads, n_cores), handoff_us);
}

int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us)
{
    return n_threads > 1 && is_worth_sharing(node, handoff_us) ? n_threads : 1;
}

bool tnd_rule_is_long(const tandem_graph *graph)
{
    double work = 0;
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        if (tnd_op_traits(node->op)->cost == TND_COST_PRODUCT) {
            work += tnd_node_work(node);
            n++;
        }
    }
    return work > n * TND_RULE_LONG;
}

/* Bytes that a node reads and writes; of weights only the rows that it uses. */
static double bytes_of(const tandem_tensor *node)
{
    double bytes = (double)tandem_tensor_bytes(node);
    for (int s = 0; s < node->n_src; s++) {
        const tandem_tensor *src = node->src[s];
        const bool is_taken_from = node->op == TANDEM_OP_GET_ROWS && s == 0;
        const double share = is_taken_from ? (double)node->ne[1] / (double)src->ne[1] : 1;
        bytes += src != NULL ? share * (double)tandem_tensor_bytes(src) : 0;
    }
    return bytes;
}

double tnd_rule_us(const struct tandem_table *table, const tandem_tensor *node, int n_threads)
{
    const enum tnd_op_cost cost = tnd_op_traits(node->op)->cost;
    if (cost == TND_COST_USER || cost == TND_COST_NOTHING) {
        return 0;
    }
    const int threads = tnd_rule_threads(node, n_threads, 0);
    double us = TND_RULE_US * tnd_node_work(node) / worth[cost] / threads;
    double bytes_per_us = table != NULL ? tnd_table_peak(table, "read", threads) * 1e3 : 0;
    return bytes_per_us > 0 ? fmax(us, bytes_of(node) / bytes_per_us) : us;
}
