/* SPDX-License-Identifier: MIT
 * Random graphs by random plans on devices of every kind: host memory, memory of their own, two of
 * those. All of them compute by the same arithmetic, so every result is the same bit for bit, and
 * so is what is left in leaves; states stay on devices from graph to graph. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/conflict.h"
#include "tests/suite_sched.h"
#include "tests/support.h"

enum { MOST_TENSORS = 160, MOST_ELEMENTS = 2048, N_LEAVES = 14, N_WEIGHTS = 4, N_OUTPUTS = 4 };

/* ---- leaves: two sets of the same values, one for the runs that are tested ---- */

struct leaves {
    tandem_context *context;
    tandem_tensor *list[N_LEAVES];
    tandem_tensor *weights[N_WEIGHTS];
    tandem_tensor *rows; /* I32 */
    char *shared;        /* memory of leaves that overlap */
};

static const int64_t shapes[][2] = {{32, 4}, {32, 8}, {16, 4}, {32, 1}, {64, 2}};

static tandem_tensor *leaf_at(struct leaves *leaves, int i)
{
    const int64_t *ne = shapes[i % 5];
    size_t bytes = (size_t)(ne[0] * ne[1]) * sizeof(float);
    if (i >= N_LEAVES - 3) { /* three that overlap */
        return tandem_tensor_borrow(leaves->context, TANDEM_TYPE_F32, 2, ne,
                                    leaves->shared + (size_t)(i - N_LEAVES + 3) * 64, bytes);
    }
    return tandem_tensor_new(leaves->context, TANDEM_TYPE_F32, 2, ne);
}

static void leaves_new(struct leaves *leaves, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    static const enum tandem_role roles[] = {TANDEM_ROLE_INPUT, TANDEM_ROLE_STATE,
                                             TANDEM_ROLE_CONSTANT, TANDEM_ROLE_LAZY_STATE};
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &leaves->context, NULL), TANDEM_OK);
    leaves->shared = aligned_alloc(64, 4096);
    memset(leaves->shared, 0, 4096);
    for (int i = 0; i < N_LEAVES; i++) {
        leaves->list[i] = tandem_tensor_set_role(leaf_at(leaves, i), roles[i % 4]);
        tnd_test_fill(&rng, leaves->list[i]->data, tandem_tensor_elements(leaves->list[i]));
    }
    for (int i = 0; i < N_WEIGHTS; i++) {
        float values[32 * 24];
        enum tandem_type type = i % 2 == 0 ? TANDEM_TYPE_Q8_0 : TANDEM_TYPE_F32;
        leaves->weights[i] = tandem_tensor_new(leaves->context, type, 2, (const int64_t[]){32, 24});
        tnd_test_fill(&rng, values, 32 * 24);
        check_ok(tandem_quantize(type, values, leaves->weights[i]->data, 32 * 24));
        tandem_tensor_set_role(leaves->weights[i],
                               i < 2 ? TANDEM_ROLE_CONSTANT : TANDEM_ROLE_INPUT);
    }
    leaves->rows = tandem_tensor_new(leaves->context, TANDEM_TYPE_I32, 1, (const int64_t[]){3});
    memcpy(leaves->rows->data, (const int32_t[]){1, 0, 1}, 3 * sizeof(int32_t));
}

static void leaves_free(struct leaves *leaves)
{
    tandem_context_free(leaves->context);
    free(leaves->shared);
}

/* ---- graphs: the same one for the same seed ---- */

struct built {
    const struct leaves *leaves;
    tandem_context *context;
    tandem_tensor *tensors[MOST_TENSORS];
    int n;
    tandem_tensor *outputs[N_OUTPUTS];
    tandem_graph *graph;
};

static tandem_tensor *pick(const struct built *b, struct tnd_test_rng *rng)
{
    int64_t back = tnd_test_rng_int(rng, 0, 2) == 0 ? b->n : 6;
    int64_t low = b->n > back ? b->n - back : 0;
    return b->tensors[tnd_test_rng_int(rng, low, b->n - 1)];
}

static tandem_tensor *pick_dense(const struct built *b, struct tnd_test_rng *rng)
{
    tandem_tensor *t = pick(b, rng);
    return t->nb[0] == sizeof(float) ? t : tandem_cont(b->context, t);
}

static bool roots_overlap(const tandem_tensor *a, const tandem_tensor *b)
{
    const char *x = a->root->data;
    const char *y = b->root->data;
    return a->root == b->root || (x != NULL && y != NULL && x < y + tandem_tensor_bytes(b->root) &&
                                  y < x + tandem_tensor_bytes(a->root));
}

static bool is_constant(const tandem_tensor *t)
{
    return (t->root->flags & TND_TENSOR_CONSTANT) != 0;
}

/* Rows of a leaf, as new keys are put into a cache. */
static tandem_tensor *write_rows(const struct built *b, struct tnd_test_rng *rng, tandem_tensor *x)
{
    tandem_context *c = b->context;
    tandem_tensor *to = b->tensors[tnd_test_rng_int(rng, 0, N_LEAVES - 1)];
    bool is_turned = tnd_test_rng_int(rng, 0, 1) == 0;
    int64_t n = tnd_test_rng_int(rng, 1, to->ne[1]);
    int64_t first = tnd_test_rng_int(rng, 0, to->ne[1] - n);
    tandem_tensor *place = tandem_view(c, to, 2, (const int64_t[]){to->ne[0], n}, &to->nb[1],
                                       (size_t)first * to->nb[1]);
    if (is_turned) { /* every other value of each row */
        const size_t nb[] = {to->nb[1]};
        place = tandem_view(c, to, 2, (const int64_t[]){to->ne[0] / 2, n}, nb,
                            (size_t)first * to->nb[1] + 4 * sizeof(float));
    }
    if (roots_overlap(x, place) || is_constant(place) || !tandem_tensor_is_contiguous(x) ||
        tandem_tensor_elements(x) < tandem_tensor_elements(place)) {
        return tandem_cont(c, x);
    }
    tandem_tensor *from = tandem_view(c, x, 2, place->ne, NULL, 0);
    return tandem_cpy(c, from, place);
}

/* fakecpu's own scale is for dense tensors. */
static tandem_tensor *scaled(tandem_context *c, tandem_tensor *x)
{
    return tandem_scale(c, tandem_tensor_is_contiguous(x) ? x : tandem_cont(c, x), -0.75f);
}

static tandem_tensor *random_node(const struct built *b, struct tnd_test_rng *rng)
{
    tandem_context *c = b->context;
    int64_t kind = tnd_test_rng_int(rng, 0, 19);
    tandem_tensor *x = pick_dense(b, rng);
    tandem_tensor *y = pick_dense(b, rng);
    int64_t half = x->ne[1] > 1 ? x->ne[1] / 2 : 1;
    bool is_same = memcmp(x->ne, y->ne, sizeof(x->ne)) == 0;
    switch (kind) {
    case 0:
        return tandem_add(c, x, tandem_view(c, y, 1, (int64_t[]){1}, NULL, 0));
    case 1:
        return is_same ? tandem_sub(c, x, y) : tandem_sqr(c, x);
    case 2:
        return scaled(c, x);
    case 3:
        return tandem_relu(c, x);
    case 4:
        return tandem_rms_norm(c, x, 1.0f);
    case 5:
        return tandem_soft_max(c, x, NULL, 1.0f);
    case 6:
        return tandem_transpose(c, x);
    case 7:
        return tandem_permute(c, x, 0, 2, 1, 3);
    case 8:
        return tandem_view(c, x, 2, (int64_t[]){x->ne[0], half}, &x->nb[1],
                           (size_t)(x->ne[1] - half) * x->nb[1]);
    case 9:
        return tandem_tensor_is_contiguous(x)
                   ? tandem_reshape(c, x, 1, (int64_t[]){tandem_tensor_elements(x)})
                   : tandem_cont(c, x);
    case 10:
        return tandem_concat(c, x, x, (int)tnd_test_rng_int(rng, 0, 2));
    case 11:
        return !roots_overlap(x, y) && is_same && !is_constant(y) ? tandem_cpy(c, x, y)
                                                                  : tandem_cont(c, x);
    case 12:
        return x->ne[1] >= 2 && x->ne[2] == 1 && x->ne[3] == 1
                   ? tandem_get_rows(c, x, b->leaves->rows)
                   : tandem_mul_mat(c, x, x);
    case 13:
    case 14:
    case 15:
        return x->ne[0] == 32 && x->ne[2] == 1 && x->ne[3] == 1 && tandem_tensor_is_contiguous(x)
                   ? tandem_mul_mat(c, b->leaves->weights[kind - 12], x)
                   : scaled(c, x);
    case 16:
        return x->ne[0] == 32 && x->ne[2] == 1 && x->ne[3] == 1 && tandem_tensor_is_contiguous(x)
                   ? tandem_mul_mat(c, b->leaves->weights[0], x)
                   : tandem_mul(c, x, tandem_silu(c, x));
    default:
        return write_rows(b, rng, x);
    }
}

static void keep(struct built *b, tandem_tensor *t)
{
    if (t != NULL && tandem_tensor_elements(t) > MOST_ELEMENTS) {
        t = tandem_view(b->context, t, 1, (int64_t[]){8}, NULL, 0);
    }
    if (t != NULL) {
        b->tensors[b->n++] = t;
    }
}

static void build(struct built *b, const struct leaves *leaves, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    struct tandem_error error = {0};
    memset(b, 0, sizeof(*b));
    b->leaves = leaves;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &b->context, NULL), TANDEM_OK);
    for (int i = 0; i < N_LEAVES; i++) {
        b->tensors[b->n++] = leaves->list[i];
    }
    int n_nodes = (int)tnd_test_rng_int(&rng, 3, 60);
    for (int i = 0; i < n_nodes; i++) {
        keep(b, random_node(b, &rng));
    }
    b->graph = tandem_graph_new(b->context);
    for (int i = 0; i < N_OUTPUTS; i++) {
        b->outputs[i] =
            i == 0 ? b->tensors[b->n - 1] : b->tensors[tnd_test_rng_int(&rng, N_LEAVES, b->n - 1)];
        tandem_graph_add(b->graph, b->outputs[i]);
    }
    if (!check_status(tandem_graph_finish(b->graph, &error), TANDEM_OK, NULL, &error)) {
        check_string(error.text, "finished");
    }
}

/* ---- plans ---- */

extern const struct tandem_backend_api tnd_backend_sim;

struct machine {
    struct fakes fakes;
    int host, own, own2; /* slots */
};

static void machine_open(struct machine *machine, const char *settings)
{
    fakes_open(&machine->fakes, 3, -1, NULL);
    struct tnd_registry *registry = machine->fakes.registry;
    check_ok(tnd_registry_add(registry, &tnd_backend_sim, NULL, NULL));
    check_ok(tnd_registry_add(registry, &tnd_sim_own_api, settings, NULL));
    check_ok(tnd_registry_add(registry, &tnd_sim_own2_api, NULL, NULL));
    machine->host = tnd_registry_find(registry, "sim", NULL);
    machine->own = tnd_registry_find(registry, "simown", NULL);
    machine->own2 = tnd_registry_find(registry, "simown2", NULL);
}

static void check_device(struct machine *machine, int slot, int n_mirrors)
{
    struct tnd_sim_statistics statistics;
    tnd_sim_statistics(tnd_registry_backend(machine->fakes.registry, slot), &statistics);
    check_int(statistics.in_flight, 0);
    check_int(statistics.unmapped_accesses, 0);
    if (n_mirrors >= 0) {
        check_int(statistics.mirrors, n_mirrors);
    }
}

static void machine_close(struct machine *machine)
{
    tnd_exec_free(machine->fakes.exec);
    machine->fakes.exec = NULL;
    check_device(machine, machine->host, -1);
    check_device(machine, machine->own, 0);
    check_device(machine, machine->own2, 0);
    fakes_close(&machine->fakes);
}

static bool is_supported(const struct machine *machine, int slot, const tandem_tensor *node,
                         enum tandem_task task)
{
    return tnd_registry_supports(machine->fakes.registry, slot, node, task, NULL) == TANDEM_OK;
}

/* A device; `mix` bit by bit says which ones take part. */
static int pick_device(const struct machine *machine, struct tnd_test_rng *rng, int mix)
{
    const int slots[] = {machine->host, machine->own, machine->own2};
    for (;;) {
        int i = (int)tnd_test_rng_int(rng, 0, 2);
        if ((mix >> i & 1) != 0) {
            return slots[i];
        }
    }
}

/* Products run on devices only, whose arithmetic is the same; the rest may run on workers too. */
static void plan_node(const struct machine *machine, const tandem_graph *graph, tandem_plan *plan,
                      int i, int mix, struct tnd_test_rng *rng)
{
    const tandem_tensor *node = graph->nodes[i];
    int device = pick_device(machine, rng, mix);
    int threads = (int)tnd_test_rng_int(rng, 1, 3);
    int init =
        tnd_test_rng_int(rng, 0, 2) == 0 ? TANDEM_BACKEND_CPU : pick_device(machine, rng, mix);
    if (node->op != TANDEM_OP_MUL_MAT && tnd_test_rng_int(rng, 0, 2) == 0) {
        fake_plan_node(plan, i, machine->fakes.cpu_slot, threads);
    } else if (node->op == TANDEM_OP_MUL_MAT && tnd_test_rng_int(rng, 0, 2) != 0 &&
               is_supported(machine, init, node, TANDEM_TASK_DEQUANTIZE_W) &&
               is_supported(machine, device, node, TANDEM_TASK_MUL_MAT_F32)) {
        fake_plan_product(plan, i, init, device, init == TANDEM_BACKEND_CPU ? threads : 1);
    } else {
        fake_plan_node(plan, i, device, 1);
    }
}

/* Rows or columns of a product with constant weights go to one or two devices. */
static void split_node(const struct machine *machine, const tandem_graph *graph, tandem_plan *plan,
                       int i, int mix, struct tnd_test_rng *rng)
{
    const tandem_tensor *node = graph->nodes[i];
    if (!tnd_mul_mat_is_plain(node) || (node->src[0]->root->flags & TND_TENSOR_CONSTANT) == 0 ||
        tnd_test_rng_int(rng, 0, 1) == 0) {
        return;
    }
    tandem_plan *whole = fake_plan(graph, pick_device(machine, rng, mix), 1);
    struct tandem_plan_part part;
    memset(&part, 0, sizeof(part));
    part.node = i;
    part.choice = *tandem_plan_node(whole, i);
    part.begin = tnd_test_rng_int(rng, 0, 1) == 0 ? 0 : tnd_test_rng_int(rng, 1, 20);
    part.end = part.begin == 0 ? tnd_test_rng_int(rng, 1, 22) : node->ne[0];
    check_ok(tandem_plan_add_part(plan, &part, NULL));
    if (tnd_test_rng_int(rng, 0, 1) == 0) { /* a second one beside it */
        fake_plan_node(whole, i, pick_device(machine, rng, mix), 1);
        part.choice = *tandem_plan_node(whole, i);
        bool is_low = part.begin == 0;
        int64_t middle = is_low ? part.end : part.begin;
        int64_t far = is_low ? tnd_test_rng_int(rng, middle, 23) : tnd_test_rng_int(rng, 1, middle);
        part.begin = is_low ? middle : far;
        part.end = is_low ? far : middle;
        if (part.begin < part.end) {
            check_ok(tandem_plan_add_part(plan, &part, NULL));
        }
    }
    tandem_plan_free(whole);
}

/* Neighbours that do not need one another change places at random. */
static void reorder(const tandem_graph *graph, tandem_plan *plan, struct tnd_test_rng *rng)
{
    int32_t order[MOST_TENSORS];
    for (int i = 0; i < graph->n_nodes; i++) {
        order[i] = i;
    }
    for (int n = 0; n < 3 * graph->n_nodes && graph->n_nodes > 1; n++) {
        int at = (int)tnd_test_rng_int(rng, 0, graph->n_nodes - 2);
        if (!tnd_nodes_conflict(graph->nodes[order[at]], graph->nodes[order[at + 1]])) {
            int32_t node = order[at];
            order[at] = order[at + 1];
            order[at + 1] = node;
        }
    }
    check_ok(tandem_plan_set_order(plan, order, graph->n_nodes, NULL));
}

static tandem_plan *random_plan(const struct machine *machine, const tandem_graph *graph, int mix,
                                bool is_scheduled, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    tandem_plan *plan = fake_plan(graph, machine->host, 1);
    for (int i = 0; i < graph->n_nodes; i++) {
        plan_node(machine, graph, plan, i, mix, &rng);
    }
    for (int i = 0; i < graph->n_nodes && is_scheduled; i++) {
        split_node(machine, graph, plan, i, mix, &rng);
    }
    if (is_scheduled && tnd_test_rng_int(&rng, 0, 1) == 0) {
        reorder(graph, plan, &rng);
    }
    return plan;
}

/* ---- the same bits ---- */

/* Whether devices may owe bytes of it, under its own name or another one. */
static bool may_be_owed(const struct leaves *leaves, const tandem_tensor *root)
{
    const char *data = root->data;
    bool is_shared = data >= leaves->shared && data < leaves->shared + 4096;
    return is_shared || (root->flags & TND_TENSOR_LAZY) != 0;
}

static void fetch_lazy(struct machine *machine, const struct leaves *leaves, bool will_change)
{
    for (int i = 0; i < N_LEAVES; i++) {
        if ((leaves->list[i]->flags & TND_TENSOR_LAZY) != 0) {
            check_ok(tnd_exec_fetch(machine->fakes.exec, leaves->list[i], will_change, NULL));
        }
    }
}

static void compare_root(const struct leaves *leaves, const tandem_tensor *got,
                         const tandem_tensor *want, bool is_fetched, const char *what)
{
    if (is_fetched || !may_be_owed(leaves, got)) {
        check_bits(got->data, want->data, tandem_tensor_bytes(want), what);
    }
}

static void compare(struct machine *machine, const struct built *got, const struct built *want,
                    bool fetches, const char *what)
{
    if (fetches) {
        fetch_lazy(machine, got->leaves, false);
    }
    for (int i = 0; i < N_OUTPUTS; i++) {
        compare_root(got->leaves, got->outputs[i]->root, want->outputs[i]->root, fetches, what);
    }
    for (int i = 0; i < N_LEAVES; i++) {
        compare_root(got->leaves, got->leaves->list[i], want->leaves->list[i], fetches, what);
    }
}

static void run_both(struct machine *machine, const struct leaves *tested,
                     const struct leaves *reference, int mix, bool is_scheduled, uint64_t seed)
{
    struct built got;
    struct built want;
    struct tandem_error error = {0};
    char what[64];
    build(&got, tested, seed);
    build(&want, reference, seed);
    snprintf(what, sizeof(what), "random graph of seed %llu, devices %d", (unsigned long long)seed,
             mix);
    tandem_plan *plan = fake_plan(want.graph, machine->host, 1);
    check_ok(tnd_exec_run(machine->fakes.exec, want.graph, plan, NULL, NULL));
    tandem_plan_free(plan);
    plan = random_plan(machine, got.graph, mix, is_scheduled, seed);
    if (check_status(tnd_exec_run(machine->fakes.exec, got.graph, plan, NULL, &error), TANDEM_OK,
                     NULL, &error)) {
        compare(machine, &got, &want, seed % 2 != 0, what);
    } else {
        check_string(error.text, what);
    }
    tandem_plan_free(plan);
    tandem_context_free(got.context);
    tandem_context_free(want.context);
}

/* The program changes an input, or a state behind a fetch, between two graphs. */
static void change_leaf(struct machine *machine, struct leaves *tested, struct leaves *reference,
                        struct tnd_test_rng *rng)
{
    int i = (int)tnd_test_rng_int(rng, 0, N_LEAVES - 1);
    tandem_tensor *leaf = tested->list[i];
    float value = tnd_test_rng_float(rng);
    if ((leaf->flags & TND_TENSOR_CONSTANT) != 0) {
        return;
    }
    if (may_be_owed(tested, leaf)) {
        fetch_lazy(machine, tested, true);
    }
    if ((leaf->flags & TND_TENSOR_STATE) != 0) {
        check_ok(tnd_exec_fetch(machine->fakes.exec, leaf, true, NULL));
    }
    ((float *)leaf->data)[3] = value;
    ((float *)reference->list[i]->data)[3] = value;
}

static void check_random_graphs(bool is_scheduled)
{
    const int rounds = 100 * tnd_effort();
    struct machine machine;
    machine_open(&machine, NULL);
    for (int round = 0; round < rounds; round++) {
        const uint64_t seed = tnd_test_seed() * 1000003u + (uint64_t)round;
        struct tnd_test_rng rng = tnd_test_rng_new(seed);
        struct leaves tested;
        struct leaves reference;
        leaves_new(&tested, seed);
        leaves_new(&reference, seed);
        for (int i = 0; i < 6; i++) {
            int mix = (int)tnd_test_rng_int(&rng, 1, 7);
            run_both(&machine, &tested, &reference, mix, is_scheduled, seed * 8 + (uint64_t)i);
            change_leaf(&machine, &tested, &reference, &rng);
        }
        for (int i = 0; i < N_LEAVES; i++) {
            if (round % 2 == 0) { /* else the memory is used again by leaves that come later */
                tnd_exec_forget(machine.fakes.exec, tested.list[i]);
            }
        }
        for (int i = 0; i < N_WEIGHTS; i++) {
            tnd_exec_forget(machine.fakes.exec, tested.weights[i]);
        }
        if (round % 2 == 0) {
            check_device(&machine, machine.own, -1);
        }
        leaves_free(&tested);
        leaves_free(&reference);
    }
    machine_close(&machine);
}

static void random_graphs_give_the_same_bits_on_any_mix_of_devices(void)
{
    check_random_graphs(false);
}

static void random_splits_and_orders_change_no_bit(void)
{
    check_random_graphs(true);
}

/* ---- several threads on one device ---- */

enum { N_CALLERS = 3, N_RUNS = 20 };

struct caller {
    pthread_t thread;
    struct machine *machine;
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor *y;
    tandem_plan *plan;
    float expected[24 * 4];
    int n_wrong;
};

/* y = W (2 x) + W x, by weights that are prepared and an input that is uploaded by all. */
static void caller_build(struct caller *caller, struct machine *machine,
                         const struct leaves *leaves, int i)
{
    tandem_tensor *w = leaves->weights[i % 2];
    tandem_tensor *x = leaves->list[0];
    memset(caller, 0, sizeof(*caller));
    caller->machine = machine;
    CU_ASSERT_EQUAL_FATAL(tandem_context_new(NULL, &caller->context, NULL), TANDEM_OK);
    tandem_context *c = caller->context;
    tandem_tensor *twice = tandem_scale(c, x, 2);
    caller->y = tandem_add(c, tandem_mul_mat(c, w, twice), tandem_mul_mat(c, w, x));
    caller->graph = tandem_graph_new(c);
    tandem_graph_add(caller->graph, caller->y);
    check_ok(tandem_graph_finish(caller->graph, NULL));
    caller->plan = fake_plan(caller->graph, machine->host, 1);
    check_ok(tnd_exec_run(machine->fakes.exec, caller->graph, caller->plan, NULL, NULL));
    memcpy(caller->expected, caller->y->data, sizeof(caller->expected));
    tandem_plan_free(caller->plan);
    caller->plan = random_plan(machine, caller->graph, 6, i > 0, (uint64_t)i + 1);
}

static void *compute_often(void *user)
{
    struct caller *caller = user;
    for (int i = 0; i < N_RUNS; i++) {
        memset(caller->y->data, 0, sizeof(caller->expected));
        enum tandem_status status =
            tnd_exec_run(caller->machine->fakes.exec, caller->graph, caller->plan, NULL, NULL);
        caller->n_wrong += status != TANDEM_OK ||
                           memcmp(caller->y->data, caller->expected, sizeof(caller->expected)) != 0;
    }
    return NULL;
}

static void several_threads_share_devices_and_leaves(void)
{
    struct machine machine;
    struct leaves leaves;
    struct caller callers[N_CALLERS];
    machine_open(&machine, NULL);
    leaves_new(&leaves, 1);
    for (int i = 0; i < N_CALLERS; i++) {
        caller_build(&callers[i], &machine, &leaves, i);
    }
    for (int i = 0; i < N_CALLERS; i++) {
        CU_ASSERT_EQUAL(pthread_create(&callers[i].thread, NULL, compute_often, &callers[i]), 0);
    }
    for (int i = 0; i < N_CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        check_int(callers[i].n_wrong, 0);
        tandem_plan_free(callers[i].plan);
        tandem_context_free(callers[i].context);
    }
    check_int(tnd_exec_mirror_count(machine.fakes.exec), 0);
    leaves_free(&leaves);
    machine_close(&machine);
}

static CU_TestInfo random_tests[] = {
    {"random_graphs_give_the_same_bits_on_any_mix_of_devices",
     random_graphs_give_the_same_bits_on_any_mix_of_devices},
    {"random_splits_and_orders_change_no_bit", random_splits_and_orders_change_no_bit},
    {"several_threads_share_devices_and_leaves", several_threads_share_devices_and_leaves},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_sched_random[] = {
    {"random graphs on devices", NULL, NULL, NULL, NULL, random_tests},
    CU_SUITE_INFO_NULL,
};
