/* SPDX-License-Identifier: MIT
 * Devices behind the front door: faults at every call, weights without room, states. The pretended
 * device fails as its script says; the graph must end with the right result all the same. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/alloc.h"
#include "ggml-like/tnd_tensor.h"
#include "runtime/tnd_runtime.h"
#include "sched/conflict.h"
#include "tandem/tandem.h"
#include "tests/support.h"

enum { WIDTH = 64, HIDDEN = 96, TOKENS = 3, CELLS = 8, STEPS = 4 };

static char log_text[8192];

static void collect_log(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    (void)level;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    size_t used = strlen(log_text);
    snprintf(log_text + used, sizeof(log_text) - used, "%s: %s\n", room, text);
    pthread_mutex_unlock(&lock);
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        n++;
    }
    return n;
}

static tandem_runtime *open_with(const char *settings)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {0};
    tandem_runtime *runtime = NULL;
    options.n_threads = 2;
    options.table_path = "";
    options.backends = "cpu,sim";
    options.settings = settings;
    options.log = collect_log;
    log_text[0] = '\0';
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

static int sim_slot(tandem_runtime *runtime)
{
    for (int i = 1; i < tandem_runtime_backend_count(runtime); i++) {
        if (strcmp(tandem_runtime_backend_name(runtime, i), "sim") == 0) {
            return i;
        }
    }
    return 0;
}

static struct tnd_sim_statistics statistics_of(tandem_runtime *runtime)
{
    struct tnd_runtime_parts parts;
    struct tnd_sim_statistics statistics;
    tnd_runtime_parts(runtime, &parts);
    tnd_sim_statistics(tnd_registry_backend(parts.registry, sim_slot(runtime)), &statistics);
    return statistics;
}

/* ---- a small model with a cache: each step writes a row of it and reads all rows ---- */

struct model {
    tandem_context *context;
    tandem_tensor *w1, *w2, *cache, *x;
};

static void fill(tandem_tensor *tensor, uint64_t seed)
{
    struct tnd_test_rng rng = tnd_test_rng_new(seed);
    int64_t n = tandem_tensor_elements(tensor);
    float *values = malloc((size_t)n * sizeof(float));
    tnd_test_fill(&rng, values, n);
    check_ok(tandem_quantize(tandem_tensor_type(tensor), values, tandem_tensor_data(tensor), n));
    free(values);
}

static tandem_tensor *leaf(tandem_context *context, enum tandem_type type, int64_t ne0, int64_t ne1,
                           enum tandem_role role, uint64_t seed)
{
    tandem_tensor *tensor = tandem_tensor_new(context, type, 2, (const int64_t[]){ne0, ne1});
    fill(tensor, seed);
    return tandem_tensor_set_role(tensor, role);
}

static struct model model_new(void)
{
    struct model model;
    check_ok(tandem_context_new(NULL, &model.context, NULL));
    model.w1 = leaf(model.context, TANDEM_TYPE_Q8_0, WIDTH, HIDDEN, TANDEM_ROLE_CONSTANT, 1);
    model.w2 = leaf(model.context, TANDEM_TYPE_F32, HIDDEN, WIDTH, TANDEM_ROLE_CONSTANT, 2);
    model.cache = leaf(model.context, TANDEM_TYPE_F32, WIDTH, CELLS, TANDEM_ROLE_STATE, 3);
    model.x = leaf(model.context, TANDEM_TYPE_F32, WIDTH, TOKENS, TANDEM_ROLE_INPUT, 4);
    return model;
}

struct step {
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor *y;
};

/* h = w2 silu(w1 x) + x; its first row goes into the cache; y = cache h / 2. */
static struct step step_new(const struct model *model, int cell, bool adds_to_cache)
{
    struct step step;
    check_ok(tandem_context_new(NULL, &step.context, NULL));
    tandem_context *c = step.context;
    tandem_tensor *place = tandem_view(c, model->cache, 1, (const int64_t[]){WIDTH}, NULL,
                                       (size_t)cell * WIDTH * sizeof(float));
    tandem_tensor *h = tandem_silu(c, tandem_mul_mat(c, model->w1, model->x));
    h = tandem_add(c, tandem_mul_mat(c, model->w2, h), model->x);
    tandem_tensor *row = tandem_view(c, h, 1, (const int64_t[]){WIDTH}, NULL, 0);
    row = adds_to_cache ? tandem_add(c, row, place) : row;
    tandem_tensor *written = tandem_cpy(c, row, place);
    step.graph = tandem_graph_new(c);
    tandem_graph_add(step.graph, written);
    tandem_tensor *seen =
        tandem_view(c, model->cache, 2, (const int64_t[]){WIDTH, cell + 1}, NULL, 0);
    step.y = tandem_scale(c, tandem_mul_mat(c, tandem_cont(c, seen), h), 0.5f);
    tandem_graph_add(step.graph, step.y);
    check_ok(tandem_graph_finish(step.graph, NULL));
    return step;
}

/* How the nodes are spread. */
enum spread { ALL_ON_DEVICE, EVERY_OTHER, STAGES, ORDERED, SPLIT_ROWS, SPLIT_COLUMNS, N_SPREADS };

/* Half of a product with constant weights is left to what it was planned for, the other half goes
 * to the device. */
static void split(tandem_plan *plan, int i, const tandem_tensor *product, uint8_t slot,
                  enum spread spread)
{
    struct tandem_plan_part part;
    memset(&part, 0, sizeof(part));
    part.node = i;
    part.split = spread == SPLIT_ROWS ? TANDEM_SPLIT_ROWS : TANDEM_SPLIT_COLUMNS;
    part.begin = spread == SPLIT_ROWS ? 0 : 32;
    part.end = spread == SPLIT_ROWS ? product->src[0]->ne[1] / 2 : product->src[0]->ne[0];
    memcpy(part.choice.profile, "sim", 4);
    part.choice.n_threads = 1;
    part.choice.stage[TANDEM_STAGE_COMPUTE] =
        (struct tandem_task_config){.backend = slot, .task = TANDEM_TASK_NODE};
    check_ok(tandem_plan_add_part(plan, &part, NULL));
}

/* Neighbours change places where they may. */
static void order(const tandem_graph *graph, tandem_plan *plan)
{
    int32_t list[32];
    CU_ASSERT_TRUE_FATAL(graph->n_nodes <= 32);
    for (int i = 0; i < graph->n_nodes; i++) {
        bool is_swapped = i > 0 && !tnd_nodes_conflict(graph->nodes[list[i - 1]], graph->nodes[i]);
        list[i] = is_swapped ? list[i - 1] : i;
        list[i - is_swapped] = i;
    }
    check_ok(tandem_plan_set_order(plan, list, graph->n_nodes, NULL));
}

static tandem_plan *plan_for(tandem_runtime *runtime, const tandem_graph *graph, enum spread spread)
{
    tandem_plan *plan = NULL;
    uint8_t slot = (uint8_t)sim_slot(runtime);
    check_ok(tandem_runtime_plan(runtime, graph, &plan, NULL));
    for (int i = 0; i < tandem_plan_node_count(plan); i++) {
        struct tandem_plan_node node = *tandem_plan_node(plan, i);
        const tandem_tensor *tensor = tandem_graph_node(graph, i);
        bool is_split = spread >= SPLIT_ROWS && tnd_mul_mat_is_plain(tensor) &&
                        (tensor->src[0]->flags & TND_TENSOR_CONSTANT) != 0;
        if (is_split) {
            split(plan, i, tensor, slot, spread);
        }
        if (is_split || (spread >= EVERY_OTHER && spread != STAGES && i % 2 == 1)) {
            continue;
        }
        memset(node.stage, 0, sizeof(node.stage));
        node.stage[TANDEM_STAGE_COMPUTE] =
            (struct tandem_task_config){.backend = slot, .task = TANDEM_TASK_NODE};
        if (spread == STAGES && tnd_mul_mat_is_plain(tensor) &&
            tensor->src[0]->type != TANDEM_TYPE_F32) {
            node.stage[TANDEM_STAGE_INIT] = (struct tandem_task_config){
                .backend = TANDEM_BACKEND_CPU, .task = TANDEM_TASK_DEQUANTIZE_W};
            node.stage[TANDEM_STAGE_COMPUTE].task = TANDEM_TASK_MUL_MAT_F32;
        }
        check_ok(tandem_plan_set_node(plan, i, &node));
    }
    if (spread == ORDERED) {
        order(graph, plan);
    }
    return plan;
}

/* What the steps give, y after y, computed by the CPU alone: a reference within rounding. */
static void reference(float *out, float *out_cache)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = 1;
    options.table_path = "";
    options.backends = "cpu";
    check_ok(tandem_runtime_open(&options, &runtime, NULL));
    struct model model = model_new();
    for (int i = 0; i < STEPS; i++) {
        struct step step = step_new(&model, i, false);
        check_ok(tandem_runtime_compute(runtime, step.graph, NULL, NULL, NULL));
        size_t n = (size_t)tandem_tensor_elements(step.y);
        memcpy(out, tandem_tensor_data(step.y), n * sizeof(float));
        out += n;
        tandem_context_free(step.context);
    }
    memcpy(out_cache, tandem_tensor_data(model.cache), WIDTH * CELLS * sizeof(float));
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

/* All steps on one runtime; true when the device was taken out of service on the way. */
static bool check_steps(const char *settings, enum spread spread, const float *want,
                        const float *want_cache)
{
    long live = tnd_alloc_live();
    tandem_runtime *runtime = open_with(settings);
    struct model model = model_new();
    char what[128];
    snprintf(what, sizeof(what), "%s, spread %d", settings, (int)spread);
    for (int i = 0; i < STEPS; i++) {
        struct step step = step_new(&model, i, false);
        struct tandem_error error = {0};
        tandem_plan *plan = plan_for(runtime, step.graph, spread);
        int64_t n = tandem_tensor_elements(step.y);
        if (!check_status(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error),
                          TANDEM_OK, NULL, &error)) {
            check_string(error.text, what);
        }
        check_nmse(tandem_tensor_data(step.y), want, n, 1e-4, what);
        want += n;
        tandem_plan_free(plan);
        tandem_context_free(step.context);
    }
    check_ok(tandem_runtime_fetch(runtime, model.cache, false, NULL));
    check_nmse(tandem_tensor_data(model.cache), want_cache, WIDTH * CELLS, 1e-4, what);
    bool has_failed = strstr(log_text, "is not used any more") != NULL;
    check_int(count(log_text, "is not used any more"), has_failed);
    struct tnd_sim_statistics statistics = statistics_of(runtime);
    check_int(statistics.in_flight, 0);
    check_int(statistics.unmapped_accesses, 0);
    tandem_runtime_close(runtime);
    tandem_context_free(model.context);
    check_int(tnd_alloc_live(), live);
    return has_failed;
}

static void a_fault_at_any_call_leaves_the_right_result(void)
{
    static const char *const faults[] = {"memory=own,fail=any",
                                         "memory=own,fail=lost",
                                         "memory=own,fail=sync",
                                         "fail=submit",
                                         "fail=sync",
                                         "fail=lost"};
    float want[STEPS * CELLS * TOKENS];
    float want_cache[WIDTH * CELLS];
    reference(want, want_cache);
    for (int spread = 0; spread < N_SPREADS; spread++) {
        for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
            bool has_failed = true;
            for (int n = 1; has_failed && n < 1000; n++) {
                char settings[96];
                snprintf(settings, sizeof(settings), "sim:%s,fail_at=%d", faults[i], n);
                has_failed = check_steps(settings, (enum spread)spread, want, want_cache);
                CU_ASSERT(n > 1 || has_failed);
            }
            CU_ASSERT_FALSE(has_failed);
        }
    }
}

static void a_device_that_has_failed_is_not_used_again(void)
{
    tandem_runtime *runtime = open_with("sim:memory=own,fail=submit,fail_at=2");
    struct model model = model_new();
    struct step step = step_new(&model, 0, false);
    tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, NULL));
    check_contains(log_text, "sim (pretended device with memory of its own) has failed and is not "
                             "used any more");
    check_contains(log_text, "submit 2 fails");
    uint64_t submits = statistics_of(runtime).submits;
    check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, NULL));
    check_ok(tandem_runtime_compute(runtime, step.graph, NULL, NULL, NULL));
    check_int(statistics_of(runtime).submits, submits);
    check_int(count(log_text, "is not used any more"), 1);
    /* The caller's plan is as it was. */
    check_int(tandem_node_task_conf(plan, 0, TANDEM_STAGE_COMPUTE).backend, sim_slot(runtime));
    struct tandem_error error = {0};
    struct tnd_runtime_parts parts;
    const char *reason = "";
    tnd_runtime_parts(runtime, &parts);
    check_status(tnd_registry_supports(parts.registry, sim_slot(runtime),
                                       tandem_graph_node(step.graph, 0), TANDEM_TASK_NODE, &error),
                 TANDEM_E_UNSUPPORTED_BACKEND, "submit 2 fails", &error);
    check_int(tnd_registry_find(parts.registry, "sim", &reason), -1);
    check_contains(reason, "out of service");
    tandem_plan_free(plan);
    tandem_context_free(step.context);
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

static int collect_line(void *user, const char *text, unsigned long n)
{
    char *out = user;
    size_t used = strlen(out);
    snprintf(out + used, 8192 - used, "%.*s", (int)n, text);
    return 0;
}

static void a_printed_plan_says_what_is_moved(void)
{
    static char text[8192];
    tandem_runtime *runtime = open_with("sim:memory=own");
    struct model model = model_new();
    struct step step = step_new(&model, 0, false);
    tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    text[0] = '\0';
    check_ok(tandem_runtime_print_plan(runtime, step.graph, plan, collect_line, text));
    /* x and the cache; a row of the cache and y */
    check_contains(text, "2 uploads (2816 bytes), 2 downloads (268 bytes)");
    tandem_plan_free(plan);
    tandem_context_free(step.context);
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

static void a_graph_that_has_overwritten_what_it_read_is_not_repeated(void)
{
    /* On the CPU the cache is overwritten, then the device fails. */
    tandem_runtime *runtime = open_with("sim:memory=own,fail=submit,fail_at=2");
    struct model model = model_new();
    struct step step = step_new(&model, 0, true);
    struct tandem_error error = {0};
    tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    for (int i = 1; i < tandem_plan_node_count(plan); i++) {
        struct tandem_plan_node node = *tandem_plan_node(plan, i);
        bool is_late = i > tandem_plan_node_count(plan) - 2;
        node.stage[TANDEM_STAGE_COMPUTE].backend =
            is_late ? (uint8_t)sim_slot(runtime) : TANDEM_BACKEND_CPU;
        check_ok(tandem_plan_set_node(plan, i, &node));
    }
    check_status(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error), TANDEM_E_DEVICE,
                 "cannot be repeated", &error);
    /* When the device fails before, nothing is lost. */
    tandem_runtime_close(runtime);
    runtime = open_with("sim:memory=own,fail=submit,fail_at=1");
    check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error));
    /* Nor when the device alone has overwritten it. */
    tandem_plan_free(plan);
    tandem_runtime_close(runtime);
    runtime = open_with("sim:memory=own,fail=submit,fail_at=8");
    plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error));
    check_contains(log_text, "is not used any more");
    tandem_plan_free(plan);
    tandem_context_free(step.context);
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

static void weights_without_room_run_elsewhere(void)
{
    tandem_runtime *runtime = open_with("sim:memory=own,budget=8000"); /* w1 fits, w2 does not */
    struct model model = model_new();
    struct step step = step_new(&model, 0, false);
    struct tandem_error error = {0};
    tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    for (int i = 0; i < 3; i++) {
        check_status(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error), TANDEM_OK,
                     NULL, &error);
    }
    check_int(count(log_text, "no room"), 1);
    check_contains(log_text, "no room for some weights");
    check_int(statistics_of(runtime).residents, 1);
    check_int(statistics_of(runtime).submits, 3 * 7); /* of eight nodes */
    /* With the weights forgotten there is room for others. */
    tandem_runtime_forget(runtime, model.w1);
    check_int(statistics_of(runtime).residents, 0);
    tandem_plan_free(plan);
    tandem_context_free(step.context);
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

static void a_part_without_room_ends_the_split_of_its_node_alone(void)
{
    tandem_runtime *runtime = open_with("sim:memory=own,budget=8000"); /* half of w1 alone */
    struct model model = model_new();
    struct step step = step_new(&model, 0, false);
    struct tandem_error error = {0};
    tandem_plan *plan = plan_for(runtime, step.graph, SPLIT_ROWS);
    float want[STEPS * CELLS * TOKENS];
    float want_cache[WIDTH * CELLS];
    reference(want, want_cache);
    for (int i = 0; i < 3; i++) {
        check_status(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error), TANDEM_OK,
                     NULL, &error);
        check_nmse(tandem_tensor_data(step.y), want, tandem_tensor_elements(step.y), 1e-4, "split");
    }
    check_int(count(log_text, "no room"), 1);
    check_int(statistics_of(runtime).residents, 1);
    check_int(statistics_of(runtime).weight_uploads, 1); /* it stays from run to run */
    tandem_runtime_forget(runtime, model.w1);
    check_int(statistics_of(runtime).residents, 0);
    tandem_plan_free(plan);
    tandem_context_free(step.context);
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

static void a_state_stays_on_the_device_and_its_rows_alone_are_moved(void)
{
    tandem_runtime *runtime = open_with("sim:memory=own");
    struct model model = model_new();
    uint64_t row = WIDTH * sizeof(float);
    for (int i = 0; i < STEPS; i++) {
        struct step step = step_new(&model, i, false);
        tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
        struct tnd_sim_statistics before = statistics_of(runtime);
        check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, NULL));
        struct tnd_sim_statistics after = statistics_of(runtime);
        uint64_t cache = i == 0 ? row * CELLS : 0;
        check_int(after.upload_bytes - before.upload_bytes, row * TOKENS + cache);
        check_int(after.download_bytes - before.download_bytes, row + tandem_tensor_bytes(step.y));
        check_int(after.mirrors, 2); /* of the cache and of intermediate results */
        tandem_plan_free(plan);
        tandem_context_free(step.context);
    }
    check_ok(tandem_runtime_fetch(runtime, model.cache, true, NULL));
    struct step step = step_new(&model, 0, false);
    tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    struct tnd_sim_statistics before = statistics_of(runtime);
    check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, NULL));
    check_int(statistics_of(runtime).upload_bytes - before.upload_bytes,
              row * TOKENS + row * CELLS);
    tandem_runtime_forget(runtime, model.cache);
    check_int(statistics_of(runtime).mirrors, 1);
    struct tandem_error error = {0};
    check_status(tandem_runtime_fetch(runtime, NULL, true, &error), TANDEM_E_ARGUMENT, "NULL",
                 &error);
    tandem_runtime_forget(runtime, NULL);
    tandem_plan_free(plan);
    tandem_context_free(step.context);
    tandem_context_free(model.context);
    tandem_runtime_close(runtime);
}

/* ---- lazy states ---- */

static void compute_lazily(tandem_runtime *runtime, const struct model *model, int cell,
                           enum tandem_status want)
{
    struct step step = step_new(model, cell, false);
    struct tandem_error error = {0};
    tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
    check_status(tandem_runtime_compute(runtime, step.graph, plan, NULL, &error), want,
                 want == TANDEM_OK ? NULL : "lost with a device", &error);
    tandem_plan_free(plan);
    tandem_context_free(step.context);
}

static void what_is_written_into_a_lazy_state_is_fetched_in_one_piece_now_and_then(void)
{
    tandem_runtime *runtime = open_with("sim:memory=own");
    struct model model = model_new();
    float want[STEPS * CELLS * TOKENS];
    float want_cache[WIDTH * CELLS];
    reference(want, want_cache);
    tandem_tensor_set_role(model.cache, TANDEM_ROLE_LAZY_STATE);
    for (int i = 0; i < STEPS; i++) {
        compute_lazily(runtime, &model, i, TANDEM_OK);
    }
    check_int(statistics_of(runtime).downloads, STEPS); /* of y */
    check_ok(tandem_runtime_fetch(runtime, model.cache, false, NULL));
    check_int(statistics_of(runtime).downloads, STEPS + 1); /* rows of all steps */
    check_nmse(tandem_tensor_data(model.cache), want_cache, WIDTH * CELLS, 1e-4, "rows");
    check_ok(tandem_runtime_fetch(runtime, model.cache, false, NULL));
    check_int(statistics_of(runtime).downloads, STEPS + 1);
    for (int i = 0; i < 2 * TANDEM_STATE_DEBT; i++) {
        compute_lazily(runtime, &model, 0, TANDEM_OK);
    }
    check_int(statistics_of(runtime).downloads, STEPS + 1 + 2 * TANDEM_STATE_DEBT + 2);
    tandem_runtime_forget(runtime, model.cache);
    check_int(statistics_of(runtime).mirrors, 1);
    tandem_runtime_close(runtime);
    tandem_context_free(model.context);
}

/* The device fails at its n-th call, for some n between two steps. */
static void a_lazy_state_that_is_lost_is_refused_until_the_program_has_written_it(void)
{
    float want[STEPS * CELLS * TOKENS];
    float want_cache[WIDTH * CELLS];
    int n_lost = 0;
    reference(want, want_cache);
    for (int n = 1; n < 60; n++) {
        char settings[64];
        snprintf(settings, sizeof(settings), "sim:memory=own,fail=lost,fail_at=%d", n);
        tandem_runtime *runtime = open_with(settings);
        struct model model = model_new();
        tandem_tensor_set_role(model.cache, TANDEM_ROLE_LAZY_STATE);
        compute_lazily(runtime, &model, 0, TANDEM_OK);
        struct step step = step_new(&model, 1, false);
        tandem_plan *plan = plan_for(runtime, step.graph, ALL_ON_DEVICE);
        struct tandem_error error = {0};
        enum tandem_status status = tandem_runtime_compute(runtime, step.graph, plan, NULL, &error);
        if (status != TANDEM_OK) {
            n_lost++;
            check_status(status, TANDEM_E_DEVICE_LOST, "lost with a device", &error);
            compute_lazily(runtime, &model, 1, TANDEM_E_DEVICE_LOST);
            check_status(tandem_runtime_fetch(runtime, model.cache, false, &error),
                         TANDEM_E_DEVICE_LOST, "lost with a device", &error);
            check_ok(tandem_runtime_fetch(runtime, model.cache, true, NULL));
            compute_lazily(runtime, &model, 0, TANDEM_OK);
            check_ok(tandem_runtime_compute(runtime, step.graph, plan, NULL, NULL));
        }
        if (tandem_runtime_fetch(runtime, model.cache, false, NULL) == TANDEM_OK) {
            check_nmse(tandem_tensor_data(model.cache), want_cache, 2 * (int64_t)WIDTH, 1e-4,
                       settings);
        } else {
            n_lost++;
        }
        tandem_plan_free(plan);
        tandem_context_free(step.context);
        tandem_context_free(model.context);
        tandem_runtime_close(runtime);
    }
    CU_ASSERT_TRUE(n_lost > 5);
}

/* ---- a fault while several threads compute ---- */

enum { N_CALLERS = 3 };

struct caller {
    pthread_t thread;
    tandem_runtime *runtime;
    struct step step;
    tandem_plan *plan;
    float want[CELLS * TOKENS];
    int n_wrong;
};

static void *compute_often(void *user)
{
    struct caller *caller = user;
    size_t n = (size_t)tandem_tensor_elements(caller->step.y);
    for (int i = 0; i < 4; i++) {
        float *got = tandem_tensor_data(caller->step.y);
        memset(got, 0, n * sizeof(float));
        bool is_wrong = tandem_runtime_compute(caller->runtime, caller->step.graph, caller->plan,
                                               NULL, NULL) != TANDEM_OK;
        double error = 0;
        double sum = 0;
        for (size_t j = 0; j < n; j++) {
            double difference = (double)got[j] - (double)caller->want[j];
            error += difference * difference;
            sum += (double)caller->want[j] * (double)caller->want[j];
        }
        is_wrong = is_wrong || !(error <= 1e-3 * sum);
        caller->n_wrong += is_wrong;
    }
    return NULL;
}

static void a_fault_while_several_threads_compute_spoils_no_result(void)
{
    for (int n = 1; n <= 40; n++) {
        char settings[64];
        struct model models[N_CALLERS];
        struct caller callers[N_CALLERS];
        snprintf(settings, sizeof(settings), "sim:memory=own,fail=%s,fail_at=%d",
                 n % 2 == 0 ? "sync" : "any", n);
        tandem_runtime *runtime = open_with(settings);
        for (int i = 0; i < N_CALLERS; i++) {
            struct caller *caller = &callers[i];
            models[i] = model_new();
            memset(caller, 0, sizeof(*caller));
            caller->runtime = runtime;
            caller->step = step_new(&models[i], 0, false);
            check_ok(tandem_runtime_compute(runtime, caller->step.graph, NULL, NULL, NULL));
            memcpy(caller->want, tandem_tensor_data(caller->step.y),
                   (size_t)tandem_tensor_elements(caller->step.y) * sizeof(float));
            caller->plan = plan_for(runtime, caller->step.graph, ALL_ON_DEVICE);
        }
        for (int i = 0; i < N_CALLERS; i++) {
            CU_ASSERT_EQUAL(pthread_create(&callers[i].thread, NULL, compute_often, &callers[i]),
                            0);
        }
        for (int i = 0; i < N_CALLERS; i++) {
            pthread_join(callers[i].thread, NULL);
            check_int(callers[i].n_wrong, 0);
            tandem_plan_free(callers[i].plan);
            tandem_context_free(callers[i].step.context);
            tandem_context_free(models[i].context);
        }
        check_int(count(log_text, "is not used any more"), 1);
        tandem_runtime_close(runtime);
    }
}

static CU_TestInfo tests[] = {
    {"a_fault_at_any_call_leaves_the_right_result", a_fault_at_any_call_leaves_the_right_result},
    {"a_fault_while_several_threads_compute_spoils_no_result",
     a_fault_while_several_threads_compute_spoils_no_result},
    {"a_device_that_has_failed_is_not_used_again", a_device_that_has_failed_is_not_used_again},
    {"a_graph_that_has_overwritten_what_it_read_is_not_repeated",
     a_graph_that_has_overwritten_what_it_read_is_not_repeated},
    {"a_printed_plan_says_what_is_moved", a_printed_plan_says_what_is_moved},
    {"weights_without_room_run_elsewhere", weights_without_room_run_elsewhere},
    {"a_part_without_room_ends_the_split_of_its_node_alone",
     a_part_without_room_ends_the_split_of_its_node_alone},
    {"what_is_written_into_a_lazy_state_is_fetched_in_one_piece_now_and_then",
     what_is_written_into_a_lazy_state_is_fetched_in_one_piece_now_and_then},
    {"a_lazy_state_that_is_lost_is_refused_until_the_program_has_written_it",
     a_lazy_state_that_is_lost_is_refused_until_the_program_has_written_it},
    {"a_state_stays_on_the_device_and_its_rows_alone_are_moved",
     a_state_stays_on_the_device_and_its_rows_alone_are_moved},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_devices[];
CU_SuiteInfo suites_runtime_devices[] = {
    {"runtime and devices", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
