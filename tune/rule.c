/* SPDX-License-Identifier: MIT
 * The rule. */
#include "tune/rule.h"

#include <math.h>

#include "ggml-like/tnd_tensor.h"
#include "tune/policy.h"

const char *tnd_rule_profile(int i)
{
    static const char *const names[] = {"cpu-packed", "cpu"};
    return i >= 0 && (size_t)i < sizeof(names) / sizeof(names[0]) ? names[i] : NULL;
}

/* Work from which a share is worth its hand-off, by the unit of the operation's cost. */
static const double worth[] = {
    [TND_COST_NOTHING] = INFINITY,
    [TND_COST_PRODUCT] = TND_RULE_MULTIPLY_ADDS,
    [TND_COST_ATTENTION] = TND_RULE_MULTIPLY_ADDS,
    [TND_COST_EXPONENTIALS] = TND_RULE_EXPONENTIALS,
    [TND_COST_VALUES] = TND_RULE_VALUES,
};

static bool is_worth_sharing(const tandem_tensor *node, double handoff_us)
{
    const enum tnd_op_cost cost = tnd_op_traits(node->op)->cost;
    double work = (double)tandem_tensor_elements(node) / (handoff_us > 1.0 ? handoff_us : 1.0);
    if (cost == TND_COST_USER) {
        return node->params.custom.n_items > 1; /* nothing is known of the user's work */
    }
    if (cost == TND_COST_PRODUCT) {
        work *= (double)node->src[0]->ne[0];
    } else if (cost == TND_COST_ATTENTION) { /* two products with T keys */
        work *= 2.0 * (double)node->src[1]->ne[1];
    }
    return work >= worth[cost];
}

int tnd_rule_product_threads(const tandem_tensor *node, int n_threads, int n_cores,
                             double handoff_us)
{
    const int64_t tokens = node->ne[node->op == TANDEM_OP_MUL_MAT_ID ? 2 : 1];
    bool is_limited = tokens == 1 && n_cores > 0 && n_cores < n_threads;
    return tnd_rule_threads(node, is_limited ? n_cores : n_threads, handoff_us);
}

int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us)
{
    return n_threads > 1 && is_worth_sharing(node, handoff_us) ? n_threads : 1;
}
