/* SPDX-License-Identifier: MIT
 * The fixed rule. */
#include "tune/rule.h"

#include <math.h>

#include "backends/kinds.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/policy.h"

/* The first profile of a library that computes in host memory, of the kinds that are opened by
 * themselves; NULL where this build has none. */
static const char *library_profile(void)
{
    const struct tnd_profiles *profiles = tnd_profiles_built_in();
    for (int kind = 0; tnd_kind_at(kind) != NULL; kind++) {
        const struct tandem_backend_api *api = tnd_kind_at(kind);
        bool is_library =
            tnd_kind_is_default(kind) && api->run != NULL && api->kind != TANDEM_KIND_CPU;
        for (int i = 0; is_library && i < profiles->n; i++) {
            if (profiles->list[i].api == api) {
                return profiles->list[i].name;
            }
        }
    }
    return NULL;
}

const char *tnd_rule_profile(int64_t m)
{
    const char *library = m >= TND_RULE_BLAS_M ? library_profile() : NULL;
    return library != NULL ? library : "cpu";
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

int tnd_rule_threads(const tandem_tensor *node, int n_threads, double handoff_us)
{
    return n_threads > 1 && is_worth_sharing(node, handoff_us) ? n_threads : 1;
}
