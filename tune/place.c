/* SPDX-License-Identifier: MIT
 * Placement: what is where is followed from node to node, as the executor will. Start at tnd_place,
 * then walk. Two placements of a graph differ in where products run (struct policy); the other
 * operations follow their operands. */
#include "tune/place.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "tune/moves.h"

#define NO_REGION (-1)

/* Memory that moves as one: a result of the graph, or a leaf. */
struct region {
    const tandem_tensor *root;
    int64_t bytes;
    bool is_fetched;  /* the host wants it at the end: an output, or a leaf that was written */
    uint8_t at_first; /* bit a home: valid there when the graph begins */
    uint8_t valid;    /* bit a home */
    bool is_written;
    int64_t written_bytes; /* of a leaf: what the graph wrote is all that moves */
};

struct node {
    int32_t result;                                  /* region */
    int32_t operands[TANDEM_MAX_SRC];                /* regions; NO_REGION: constant or none */
    uint8_t supported;                               /* bit a home: it can run there */
    bool is_product;                                 /* plain: planned by table */
    uint8_t home;                                    /* by the walk */
    struct tnd_place_choice choice[TND_PLACE_HOMES]; /* of products */
};

struct placing {
    const struct tnd_place_options *options;
    int n_regions;
    struct region *regions;
    struct node *nodes;
    uint8_t *best; /* homes of the best walk */
    int32_t *hashed;
    size_t n_hashed;
};

/* How products choose their home in a walk. */
struct policy {
    bool by_cost;   /* the cheapest where X is now, left to right */
    int home;       /* else this one where there is a way */
    bool takes_all; /* other operations go there too, wherever their operands are */
};

int tnd_place_devices(const struct tnd_registry *registry, uint8_t out_slots[])
{
    uint32_t usable = tnd_registry_own_slots(registry) & ~tnd_registry_quarantined(registry);
    int n = 0;
    for (int slot = 1; slot < tnd_registry_count(registry) && n < TND_PLACE_MAX_DEVICES; slot++) {
        if ((usable >> slot & 1) != 0) {
            out_slots[n++] = (uint8_t)slot;
        }
    }
    return n;
}

/* ---- regions ---- */

static int32_t new_region(struct placing *p, const tandem_tensor *root)
{
    bool is_leaf = root->op == TANDEM_OP_NONE;
    uint8_t everywhere = (uint8_t)((1u << (p->options->n_devices + 1)) - 1);
    struct region region = {.root = root, .bytes = (int64_t)tandem_tensor_bytes(root)};
    region.is_fetched = !is_leaf && (root->flags & TND_TENSOR_OUTPUT) != 0;
    if (is_leaf) {
        region.at_first = (root->flags & TND_TENSOR_STATE) != 0 ? everywhere : 1;
    }
    p->regions[p->n_regions] = region;
    return p->n_regions++;
}

/* Region of the memory behind a tensor; NO_REGION: a constant, which devices keep. */
static int32_t region_of(struct placing *p, const tandem_tensor *tensor)
{
    const tandem_tensor *root = tensor->root;
    if ((root->flags & TND_TENSOR_CONSTANT) != 0) {
        return NO_REGION;
    }
    size_t at = ((uintptr_t)root >> 4) * (size_t)0x9e3779b97f4a7c15 >> 20 & (p->n_hashed - 1);
    while (p->hashed[at] != NO_REGION && p->regions[p->hashed[at]].root != root) {
        at = (at + 1) & (p->n_hashed - 1);
    }
    if (p->hashed[at] == NO_REGION) {
        p->hashed[at] = new_region(p, root);
    }
    return p->hashed[at];
}

static void read_node(struct placing *p, int i)
{
    const struct tnd_place_options *options = p->options;
    const tandem_tensor *tensor = options->graph->nodes[i];
    struct node *node = &p->nodes[i];
    node->is_product = tensor->op == TANDEM_OP_MUL_MAT && tnd_mul_mat_is_plain(tensor);
    for (int s = 0; s < TANDEM_MAX_SRC; s++) {
        bool is_there = s < tensor->n_src && tensor->src[s] != NULL;
        node->operands[s] = is_there ? region_of(p, tensor->src[s]) : NO_REGION;
    }
    node->result = region_of(p, tensor);
    node->supported = node->is_product ? 0 : 1;
    for (int home = 0; home <= options->n_devices; home++) {
        bool runs;
        if (node->is_product) {
            runs = options->product(options->user, tensor, home, &node->choice[home]);
        } else {
            runs = home > 0 && tnd_registry_supports(options->registry, options->slots[home - 1],
                                                     tensor, TANDEM_TASK_NODE, NULL) == TANDEM_OK;
        }
        node->supported |= (uint8_t)(runs ? 1u << home : 0);
    }
}

/* ---- a walk ---- */

static const char *backend_of(const struct placing *p, int home)
{
    return tnd_registry_name(p->options->registry, p->options->slots[home - 1]);
}

static double move_us(const struct placing *p, int home, enum tnd_direction direction,
                      int64_t bytes)
{
    struct tnd_estimate one =
        tnd_estimate_transfer(p->options->table, backend_of(p, home), direction, bytes);
    return one.us + one.error_us;
}

static int64_t moved_bytes(const struct region *region)
{
    bool in_part = region->is_written && region->root->op == TANDEM_OP_NONE;
    return in_part && region->written_bytes < region->bytes ? region->written_bytes : region->bytes;
}

/* What bringing a region to `home` costs now. */
static double fetch_us(const struct placing *p, const struct region *region, int home)
{
    double us = 0;
    if ((region->valid & 1u << home) != 0) {
        return 0;
    }
    for (int from = 1; from <= p->options->n_devices && (region->valid & 1) == 0; from++) {
        if ((region->valid & 1u << from) != 0) {
            us += move_us(p, from, TND_DOWNLOAD, moved_bytes(region));
            break;
        }
    }
    return home > 0 ? us + move_us(p, home, TND_UPLOAD, moved_bytes(region)) : us;
}

static double operands_us(const struct placing *p, const struct node *node, int home)
{
    double us = 0;
    for (int s = 0; s < TANDEM_MAX_SRC; s++) {
        us +=
            node->operands[s] != NO_REGION ? fetch_us(p, &p->regions[node->operands[s]], home) : 0;
    }
    return us;
}

/* Left to right: what the operands cost to bring, the product, and the way back of the result,
 * since nobody knows yet who wants it. A chain that pays as a whole is found by the walks that
 * prefer a device. */
static int cheapest_home(const struct placing *p, const struct node *node)
{
    const struct region *result = &p->regions[node->result];
    double best_us = INFINITY;
    int best = -1;
    for (int home = 0; home <= p->options->n_devices; home++) {
        if ((node->supported & 1u << home) == 0) {
            continue;
        }
        double us = node->choice[home].us + operands_us(p, node, home);
        us += home > 0 ? move_us(p, home, TND_DOWNLOAD, result->bytes) : 0;
        if (best < 0 || us < best_us) {
            best_us = us;
            best = home;
        }
    }
    return best < 0 ? 0 : best;
}

/* The device that has all operands which this graph has computed; 0: none has. */
static int home_of_operands(const struct placing *p, const struct node *node)
{
    unsigned valid = UINT8_MAX;
    bool any = false;
    for (int s = 0; s < TANDEM_MAX_SRC; s++) {
        if (node->operands[s] != NO_REGION && p->regions[node->operands[s]].is_written) {
            valid &= p->regions[node->operands[s]].valid;
            any = true;
        }
    }
    for (int home = 1; home <= p->options->n_devices && any; home++) {
        if ((valid & node->supported & 1u << home) != 0) {
            return home;
        }
    }
    return 0;
}

static int home_for(const struct placing *p, const struct node *node, const struct policy *policy)
{
    bool can = (node->supported & 1u << policy->home) != 0;
    if (node->is_product) {
        return can && !policy->by_cost ? policy->home : cheapest_home(p, node);
    }
    if (policy->takes_all) {
        return can ? policy->home : 0;
    }
    return policy->by_cost ? home_of_operands(p, node) : 0;
}

static void bring(struct placing *p, const struct node *node, int home)
{
    for (int s = 0; s < TANDEM_MAX_SRC; s++) {
        struct region *region =
            node->operands[s] != NO_REGION ? &p->regions[node->operands[s]] : NULL;
        if (region != NULL && (region->valid & 1u << home) == 0) {
            region->valid |= (uint8_t)(1u | 1u << home); /* by way of the host */
        }
    }
}

/* Places all nodes; returns the predicted time of the products and of all that moves. */
static double walk(struct placing *p, const struct policy *policy)
{
    const struct tandem_graph *graph = p->options->graph;
    double wake_us = tnd_estimate_wake(p->options->table, p->options->n_threads);
    double us = 0;
    bool asleep = false;
    for (int r = 0; r < p->n_regions; r++) {
        p->regions[r].valid = p->regions[r].at_first;
        p->regions[r].is_written = false;
        p->regions[r].written_bytes = 0;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        struct node *node = &p->nodes[i];
        int home = home_for(p, node, policy);
        node->home = (uint8_t)home;
        us += operands_us(p, node, home);
        bring(p, node, home);
        us += node->is_product ? node->choice[home].us : 0;
        if (home > 0) {
            asleep = true;
        } else if (asleep && node->is_product && node->choice[0].node.n_threads > 1) {
            us += wake_us;
            asleep = false;
        }
        struct region *result = &p->regions[node->result];
        result->valid = (uint8_t)(1u << home);
        result->is_written = true;
        result->written_bytes += (int64_t)tandem_tensor_bytes(graph->nodes[i]);
    }
    for (int r = 0; r < p->n_regions; r++) {
        const struct region *region = &p->regions[r];
        bool is_leaf = region->root->op == TANDEM_OP_NONE;
        if (region->is_written && (region->is_fetched || is_leaf)) {
            us += fetch_us(p, region, 0);
        }
    }
    return us;
}

/* ---- the best walk ---- */

static void keep(struct placing *p)
{
    for (int i = 0; i < p->options->graph->n_nodes; i++) {
        p->best[i] = p->nodes[i].home;
    }
}

static void try_policies(struct placing *p)
{
    const struct tnd_place_options *options = p->options;
    double best_us = INFINITY;
    if (options->forced_home > 0 || options->forced_products) {
        const struct policy forced = {options->forced_home == 0, options->forced_home,
                                      options->forced_home > 0};
        (void)walk(p, &forced);
        keep(p);
        return;
    }
    /* Of equals the first: nothing moves without a reason. */
    for (int home = 0; home <= options->n_devices; home++) {
        const struct policy prefer = {false, home, home > 0};
        double us = walk(p, &prefer);
        if (home == 0 || us < best_us) {
            best_us = us;
            keep(p);
        }
    }
    const struct policy by_cost = {true, 0, false};
    if (walk(p, &by_cost) < best_us) {
        keep(p);
    }
}

static void fill(const struct placing *p, struct tandem_plan_node *nodes)
{
    const struct tnd_place_options *options = p->options;
    for (int i = 0; i < options->graph->n_nodes; i++) {
        int home = p->best[i];
        if (p->nodes[i].is_product) {
            nodes[i] = p->nodes[i].choice[home].node;
            continue;
        }
        options->whole(options->user, options->graph->nodes[i], &nodes[i]);
        if (home > 0) {
            struct tandem_task_config *config = &nodes[i].stage[TANDEM_STAGE_COMPUTE];
            memset(nodes[i].profile, 0, sizeof(nodes[i].profile));
            strncpy(nodes[i].profile, backend_of(p, home), sizeof(nodes[i].profile) - 1);
            config->backend = options->slots[home - 1];
            config->parallel = false;
            config->wait = true;
            nodes[i].n_threads = 1;
            nodes[i].reason = options->forced_home > 0 ? TANDEM_REASON_FORCED : TANDEM_REASON_TABLE;
        }
    }
}

enum tandem_status tnd_place(const struct tnd_place_options *options,
                             struct tandem_plan_node *nodes, struct tandem_error *error)
{
    size_t n = (size_t)options->graph->n_nodes;
    struct placing p = {.options = options, .n_hashed = 16};
    size_t n_regions = n; /* at most */
    for (size_t i = 0; i < n; i++) {
        n_regions += (size_t)options->graph->nodes[i]->n_src;
    }
    while (p.n_hashed < 2 * n_regions) {
        p.n_hashed *= 2;
    }
    p.regions = tnd_alloc(n_regions * sizeof(p.regions[0]) + 1);
    p.nodes = tnd_alloc(n * sizeof(p.nodes[0]) + 1);
    p.best = tnd_alloc(n + 1);
    p.hashed = tnd_alloc(p.n_hashed * sizeof(p.hashed[0]));
    bool has_memory = p.regions != NULL && p.nodes != NULL && p.best != NULL && p.hashed != NULL;
    if (has_memory) {
        memset(p.hashed, 0xff, p.n_hashed * sizeof(p.hashed[0])); /* NO_REGION */
        for (size_t i = 0; i < n; i++) {
            read_node(&p, (int)i);
        }
        try_policies(&p);
        fill(&p, nodes);
    }
    tnd_free(p.regions);
    tnd_free(p.nodes);
    tnd_free(p.best);
    tnd_free(p.hashed);
    return has_memory ? TANDEM_OK
                      : tnd_error_set(error, TANDEM_E_MEMORY, "planner", (int64_t)n, 0,
                                      "planner: out of memory for %zu nodes", n);
}
