/* SPDX-License-Identifier: MIT
 * The fixed rule. */
#include "tune/rule.h"

#include "ggml-like/tnd_tensor.h"
#include "tune/policy.h"

const char *tnd_rule_profile(int64_t m)
{
    return m >= TND_RULE_BLAS_M ? "cpu+openblas" : "cpu";
}

static bool is_worth_sharing(const tandem_tensor *node, double handoff_us)
{
    double values = (double)tandem_tensor_elements(node) / (handoff_us > 1.0 ? handoff_us : 1.0);
    switch (node->op) {
    case TANDEM_OP_MUL_MAT:
        return values * (double)node->src[0]->ne[0] >= TND_RULE_MULTIPLY_ADDS;
    case TANDEM_OP_ATTENTION: /* two products with T keys */
        return values * 2.0 * (double)node->src[1]->ne[1] >= TND_RULE_MULTIPLY_ADDS;
    case TANDEM_OP_SILU:
    case TANDEM_OP_GELU:
    case TANDEM_OP_SOFT_MAX:
    case TANDEM_OP_ROPE:
        return values >= TND_RULE_EXPONENTIALS;
    case TANDEM_OP_CUSTOM:
        return node->params.custom.n_items > 1; /* nothing is known of the user's work */
    default:
        return values >= TND_RULE_VALUES;
    }
}

int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us)
{
    return n_threads > 1 && is_worth_sharing(node, handoff_us) ? n_threads : 1;
}
