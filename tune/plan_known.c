/* SPDX-License-Identifier: MIT
 * Hashes graphs and stores their plans. */
#include "tune/plan_known.h"

#include <string.h>

/* Odd numbers without a pattern, so that sums of products with them rarely collide. */
#define FACTOR_1 0x9e3779b97f4a7c15u
#define FACTOR_2 0xc2b2ae3d27d4eb4fu
#define FACTOR_3 0x165667b19e3779f9u
#define FACTOR_4 0xd6e8feb86659fd93u

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * FACTOR_1;
    return hash ^ hash >> 32;
}

/* Hashes shape and memory of a tensor. The multiplications are independent, so that they overlap.
 */
static uint64_t key_of_tensor(const struct tandem_graph *graph, const struct tandem_tensor *tensor)
{
    const struct tandem_tensor *root = tensor->root;
    const bool is_leaf = !tnd_graph_computes(graph, root);
    const uint64_t place =
        is_leaf ? (uint64_t)(uintptr_t)root->data : (uint64_t)(uint32_t)root->index + 1;
    uint64_t shape = (uint64_t)tensor->ne[0] * FACTOR_1 + (uint64_t)tensor->ne[1] * FACTOR_2 +
                     (uint64_t)tensor->ne[2] * FACTOR_3 + (uint64_t)tensor->ne[3] * FACTOR_4;
    uint64_t strides = (uint64_t)tensor->nb[0] * FACTOR_4 + (uint64_t)tensor->nb[1] * FACTOR_3 +
                       (uint64_t)tensor->nb[2] * FACTOR_2 + (uint64_t)tensor->nb[3] * FACTOR_1;
    return shape ^ (strides >> 7 | strides << 57) ^ (place * FACTOR_2 + tensor->root_offset) ^
           ((uint64_t)tensor->type << 32 | root->flags) * FACTOR_3;
}

uint64_t tnd_plan_known_key(const struct tandem_graph *graph, uint64_t seed)
{
    uint64_t key = mix(seed, (uint64_t)graph->n_nodes);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct tandem_tensor *node = graph->nodes[i];
        uint64_t words[sizeof(node->params) / sizeof(uint64_t) + 1] = {0};
        uint64_t params = 0;
        if (node->op == TANDEM_OP_MUL_MAT_ID || node->op == TANDEM_OP_CONV_INT8 ||
            node->op == TANDEM_OP_PRODUCT_INT8 || tnd_op_traits(node->op)->family == TND_OP_work) {
            return 0; /* use of experts; operations described elsewhere */
        }
        memcpy(words, &node->params, sizeof(node->params));
        for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
            params = params * FACTOR_3 + words[w];
        }
        key = mix(key, key_of_tensor(graph, node) + ((uint64_t)node->op << 8 | node->flags));
        key = mix(key, params + (uint64_t)node->plan_offset * FACTOR_2);
        for (int s = 0; s < node->n_src; s++) {
            key = mix(key, node->src[s] != NULL ? key_of_tensor(graph, node->src[s]) : FACTOR_4);
        }
    }
    return key | 1;
}

struct tandem_plan *tnd_plan_known_copy(struct tnd_plan_known *known, uint64_t key, int n_nodes)
{
    struct tandem_plan *copy = NULL;
    known->n_lookups++;
    for (int i = 0; i < TND_PLANS_KNOWN; i++) {
        if (known->entries[i].used > 0 && known->entries[i].key == key &&
            known->entries[i].plan->n_nodes == n_nodes) {
            known->entries[i].used = known->n_lookups;
            (void)tandem_plan_copy(known->entries[i].plan, &copy, NULL);
            return copy;
        }
    }
    return NULL;
}

void tnd_plan_known_keep(struct tnd_plan_known *known, uint64_t key, const struct tandem_plan *plan)
{
    int oldest = 0;
    struct tandem_plan *copy = NULL;
    for (int i = 1; i < TND_PLANS_KNOWN; i++) {
        oldest = known->entries[i].used < known->entries[oldest].used ? i : oldest;
    }
    if (tandem_plan_copy(plan, &copy, NULL) == TANDEM_OK) {
        tandem_plan_free(known->entries[oldest].plan);
        known->entries[oldest].plan = copy;
        known->entries[oldest].key = key;
        known->entries[oldest].used = ++known->n_lookups;
    }
}

void tnd_plan_known_clear(struct tnd_plan_known *known)
{
    for (int i = 0; i < TND_PLANS_KNOWN; i++) {
        tandem_plan_free(known->entries[i].plan);
        known->entries[i].plan = NULL;
        known->entries[i].used = 0;
    }
}
