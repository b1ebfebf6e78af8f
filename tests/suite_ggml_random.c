/* SPDX-License-Identifier: MIT
 * Random graphs: results that share memory equal results that do not, bit for bit, and no two
 * results that live together share a byte unless one runs in the place of the other. */
#include <stdio.h>
#include <string.h>

#include "tests/suite_ggml.h"

#define MOST_TENSORS  200
#define MOST_ELEMENTS 4096 /* larger results are replaced by a part of themselves */

struct built {
    tandem_context *context;
    tandem_tensor *tensors[MOST_TENSORS]; /* leaves, nodes and views, as built */
    int n;
    tandem_tensor *outputs[8];
    int n_outputs;
};

static tandem_tensor *pick(const struct built *b, struct tnd_test_rng *rng)
{
    /* mostly recent ones, so that lives end */
    const int64_t back = tnd_test_rng_int(rng, 0, 3) == 0 ? b->n : 6;
    const int64_t low = b->n > back ? b->n - back : 0;
    return b->tensors[tnd_test_rng_int(rng, low, b->n - 1)];
}

/* A dense form, for operands whose rows must be dense. */
static tandem_tensor *pick_dense(const struct built *b, struct tnd_test_rng *rng)
{
    tandem_tensor *t = pick(b, rng);
    return t->nb[0] == sizeof(float) ? t : tandem_cont(b->context, t);
}

/* Adds a tensor, or its first row when it has grown too large. */
static void keep(struct built *b, tandem_tensor *t)
{
    if (t != NULL && tandem_tensor_elements(t) > MOST_ELEMENTS) {
        t = tandem_view(b->context, t, 1, (int64_t[]){8}, NULL, 0);
    }
    if (t != NULL) {
        b->tensors[b->n++] = t;
    }
}

/* Products of experts chosen by their own values; `x` is {K, N, experts}. */
static tandem_tensor *experts_node(const struct built *b, tandem_tensor *x)
{
    tandem_context *c = b->context;
    if (x->ne[3] != 1) {
        return tandem_sqr(c, x);
    }
    tandem_tensor *first = tandem_view(c, x, 3, (int64_t[]){1, x->ne[1], x->ne[2]}, &x->nb[1], 0);
    tandem_tensor *zeros = tandem_top_k(c, first, 1); /* the only index there is */
    tandem_tensor *ids = tandem_reshape(c, zeros, 2, (int64_t[]){x->ne[1], x->ne[2]});
    tandem_tensor *y = tandem_mul_mat_id(c, x, x, ids); /* {N, N, experts} */
    tandem_tensor *weights = tandem_view(c, x, 2, (int64_t[]){1, x->ne[2]}, &x->nb[2], 0);
    tandem_tensor *one =
        tandem_view(c, y, 3, (int64_t[]){y->ne[0], 1, y->ne[2]}, (size_t[]){y->nb[1], y->nb[2]}, 0);
    return tandem_weighted_sum(c, one, weights);
}

static tandem_tensor *random_node(const struct built *b, struct tnd_test_rng *rng)
{
    tandem_context *c = b->context;
    const int64_t kind = tnd_test_rng_int(rng, 0, 16);
    tandem_tensor *x = pick_dense(b, rng);
    tandem_tensor *y = pick_dense(b, rng);
    const int64_t half = x->ne[1] > 1 ? x->ne[1] / 2 : 1;
    switch (kind) {
    case 0:
        return tandem_add(c, x, tandem_view(c, y, 1, (int64_t[]){1}, NULL, 0));
    case 1:
        return memcmp(x->ne, y->ne, sizeof(x->ne)) == 0 ? tandem_sub(c, x, y) : tandem_sqr(c, x);
    case 2:
        return tandem_scale(c, x, 0.5f);
    case 3:
        return tandem_relu(c, x);
    case 4:
        return tandem_gelu(c, x);
    case 5:
        return tandem_rms_norm(c, x, 1.0f);
    case 6:
        return tandem_soft_max(c, x, NULL, 1.0f);
    case 7:
        return tandem_mul_mat(c, x, x);
    case 8:
        return tandem_transpose(c, x);
    case 9:
        return tandem_permute(c, x, 0, 2, 1, 3);
    case 10:
        return tandem_view(c, x, 2, (int64_t[]){x->ne[0], half}, &x->nb[1],
                           (size_t)(x->ne[1] - half) * x->nb[1]);
    case 11:
        return tandem_tensor_is_contiguous(x)
                   ? tandem_reshape(c, x, 1, (int64_t[]){tandem_tensor_elements(x)})
                   : tandem_cont(c, x);
    case 12:
        return tandem_concat(c, x, x, (int)tnd_test_rng_int(rng, 0, 2));
    case 13:
        /* into the memory of another result, which may have readers before and behind this */
        return x->root != y->root && memcmp(x->ne, y->ne, sizeof(x->ne)) == 0 ? tandem_cpy(c, x, y)
                                                                              : tandem_cont(c, x);
    case 14:
        return x->ne[2] == 1 && x->ne[3] == 1
                   ? tandem_gather(c, x, tandem_top_k(c, x, (x->ne[0] + 1) / 2))
                   : tandem_sigmoid(c, x);
    case 15:
        return experts_node(b, x);
    default:
        return tandem_mul(c, x, tandem_silu(c, x));
    }
}

/* The same graph for the same seed. */
static void build(struct built *b, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    b->context = ggml_context();
    b->n = 0;
    b->n_outputs = 0;
    for (int i = 0; i < 4; i++) {
        tandem_tensor *leaf = ggml_ramp(b->context, 0.1f, 8, tnd_test_rng_int(&rng, 1, 8), 0, 0);
        tnd_test_fill(&rng, tandem_tensor_data(leaf), tandem_tensor_elements(leaf));
        keep(b, leaf);
    }
    const int64_t n = tnd_test_rng_int(&rng, 5, MOST_TENSORS);
    while (b->n < n) {
        tandem_tensor *t = random_node(b, &rng);
        if (t == NULL) {
            struct tandem_error error = {0};
            tandem_context_status(b->context, &error);
            check_string(error.text, "built");
            return;
        }
        keep(b, t);
    }
    for (int64_t i = tnd_test_rng_int(&rng, 1, 8); i > 0; i--) {
        b->outputs[b->n_outputs++] = pick(b, &rng);
    }
}

static tandem_graph *finish(struct built *b)
{
    struct tandem_error error = {0};
    tandem_graph *graph = tandem_graph_new(b->context);
    for (int i = 0; i < b->n_outputs; i++) {
        tandem_graph_add(graph, b->outputs[i]);
    }
    if (!check_status(tandem_graph_finish(graph, &error), TANDEM_OK, NULL, &error)) {
        check_string(error.text, "finished");
        return NULL;
    }
    return graph;
}

/* Gives every intermediate result memory of its own in place of the shared buffer. */
static void separate(tandem_graph *graph)
{
    size_t offset = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        struct tandem_tensor *node = graph->nodes[i];
        if (node->plan_offset >= 0) {
            node->plan_offset = (int64_t)offset;
            offset += (tandem_tensor_bytes(node) + 127) / 64 * 64;
        }
    }
    graph->planned_bytes = offset;
}

/* Last node that touches the memory of node i, found the slow way. */
static int last_touch(const tandem_graph *graph, int i)
{
    int last = i;
    for (int j = i; j < graph->n_nodes; j++) {
        for (int k = 0; k < graph->nodes[j]->n_src; k++) {
            if (graph->nodes[j]->src[k]->root == graph->nodes[i]) {
                last = j;
            }
        }
    }
    return last;
}

static bool share_a_byte(const struct tandem_tensor *a, const struct tandem_tensor *b)
{
    return a->plan_offset >= 0 && b->plan_offset >= 0 &&
           a->plan_offset < b->plan_offset + (int64_t)tandem_tensor_bytes(b) &&
           b->plan_offset < a->plan_offset + (int64_t)tandem_tensor_bytes(a);
}

static void check_no_overlap(const tandem_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const int last = last_touch(graph, i);
        for (int j = i + 1; j <= last; j++) {
            const struct tandem_tensor *earlier = graph->nodes[i];
            const struct tandem_tensor *later = graph->nodes[j];
            if (share_a_byte(earlier, later)) {
                CU_ASSERT(j == last && tnd_op_may_run_in_place(later->op) &&
                          later->src[0]->root == earlier &&
                          later->plan_offset == earlier->plan_offset);
            }
        }
    }
}

static void shared_memory_changes_no_bit_of_any_output(void)
{
    const int rounds = 150 * tnd_effort();
    size_t planned = 0;
    size_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        struct built shared;
        struct built apart;
        const uint64_t seed = tnd_test_seed() * 1000003u + (uint64_t)round;
        char what[64];
        build(&shared, seed);
        build(&apart, seed);
        snprintf(what, sizeof(what), "random graph of seed %llu", (unsigned long long)seed);
        tandem_graph *graph = finish(&shared);
        tandem_graph *reference = finish(&apart);
        if (graph != NULL && reference != NULL) {
            struct tandem_memory_report report = TANDEM_MEMORY_REPORT_INIT;
            separate(reference);
            check_no_overlap(graph);
            check_ok(ggml_compute(graph, NULL));
            check_ok(ggml_compute(reference, NULL));
            for (int i = 0; i < shared.n_outputs; i++) {
                const struct tandem_tensor *root = shared.outputs[i]->root;
                check_bits(root->data, apart.outputs[i]->root->data, tandem_tensor_bytes(root),
                           what);
            }
            check_ok(tandem_graph_memory(graph, &report));
            CU_ASSERT(report.planned_bytes <= report.sum_bytes);
            planned += report.planned_bytes;
            sum += report.sum_bytes;
        }
        tandem_context_free(shared.context);
        tandem_context_free(apart.context);
    }
    CU_ASSERT(planned < sum / 2);
}

static CU_TestInfo random_tests[] = {
    {"shared_memory_changes_no_bit_of_any_output", shared_memory_changes_no_bit_of_any_output},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_ggml_random[] = {
    {"random", NULL, NULL, NULL, NULL, random_tests},
    CU_SUITE_INFO_NULL,
};
