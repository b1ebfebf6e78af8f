/* SPDX-License-Identifier: MIT
 * A table of anybody in every use that is made of one: explained, planned by, simulated, reported
 * on, checked, pruned to a machine. Each ends, with a result or a reason. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-like/tnd_tensor.h"
#include "runtime/winners.h"
#include "table/invalidate.h"
#include "tests/fuzz/mutate_json.h"
#include "tools/report/replay_print.h"
#include "tools/report/report_html.h"
#include "tools/report/stub_backends.h"
#include "tools/report/table_health.h"
#include "tune/conv_choice.h"
#include "tune/explain.h"
#include "tune/kernel_numbers.h"
#include "tune/planner.h"

enum { THREADS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mutate_table(struct mutation *m)
{
    mutate_json(m, 0, m->n);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_with(data, size, max_size, seed, mutate_table);
}

static int collect(void *user, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(user, bytes, n);
    return 0;
}

static void must(enum tandem_status status, const struct tandem_error *error)
{
    if (status != TANDEM_OK && error->text[0] == '\0') {
        abort();
    }
}

/* ---- explained ---- */

static void explain(const tandem_table *table, const struct tnd_problem *problem,
                    const struct tnd_registry *registry)
{
    struct tandem_error error = {.text = ""};
    struct tnd_explanation explanation;
    struct tnd_text out = TND_TEXT_INIT;
    const struct tnd_explain_options options = {
        .table = table, .registry = registry, .problem = *problem, .n_threads = THREADS};
    const enum tandem_status status = tnd_explain(&options, &explanation, &error);
    must(status, &error);
    if (status == TANDEM_OK) {
        tnd_explain_text(&explanation, &out);
        tnd_explain_json(&explanation, "", &out);
        tnd_explanation_fini(&explanation);
    }
    tnd_text_fini(&out);
}

static void explain_some(const tandem_table *table, const struct tnd_registry *registry)
{
    struct tnd_problem problem;
    static const char *const texts[] = {"mul_mat:q4_0:n64:k32:m1", "mul_mat:q4_0:n256:k512:m37",
                                        "mul_mat:f16:n4096:k4096:m512"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (tnd_problem_parse(texts[i], &problem, NULL) != TANDEM_OK) {
            abort();
        }
        explain(table, &problem, registry);
    }
    for (int i = 0; i < table->n_curves && i < 2; i++) { /* what it claims to know best */
        const struct tnd_curve_key *key = &table->curves[i].key;
        problem.type = key->type;
        problem.n = key->n;
        problem.k = key->k;
        problem.m = 1 + i * 63;
        explain(table, &problem, NULL);
    }
}

/* Each convolution that it claims to know, and one twice as large. */
static void choose_convolutions(const tandem_table *table)
{
    struct tnd_text out = TND_TEXT_INIT;
    for (int i = 0; i < table->n_convolutions && i < 4; i++) {
        struct tnd_conv_question question = {.may = {true, true, true}, .winograd_gain = 2};
        struct tnd_conv_choice choice;
        if (!tnd_conv_shape_of(&table->convolutions[i], &question.shape)) {
            continue;
        }
        for (int times = 1; times <= 2; times++) {
            question.shape.filters *= times;
            tnd_conv_choose(table, table->convolutions[i].threads, &question, &choice);
            if (!question.may[choice.method] || choice.reason == NULL) {
                abort();
            }
            tnd_conv_explain(&choice, table->convolutions[i].threads, &out);
            tnd_conv_explain_json(&choice, table->convolutions[i].threads, &out);
        }
    }
    tnd_text_fini(&out);
}

/* ---- planned by and simulated ---- */

static tandem_graph *new_graph(tandem_context **out_context)
{
    if (tandem_context_new(NULL, out_context, NULL) != TANDEM_OK) {
        abort();
    }
    tandem_graph *graph = tandem_graph_new(*out_context);
    tandem_tensor *x =
        tandem_tensor_new(*out_context, TANDEM_TYPE_F32, 2, (const int64_t[]){64, 8});
    for (int i = 0; i < 3; i++) {
        tandem_tensor *w =
            tandem_tensor_new(*out_context, i == 2 ? TANDEM_TYPE_F16 : TANDEM_TYPE_Q4_0, 2,
                              (const int64_t[]){64, 64});
        tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
        x = tandem_silu(*out_context, tandem_mul_mat(*out_context, w, x));
    }
    tandem_graph_add(graph, x);
    if (tandem_graph_finish(graph, NULL) != TANDEM_OK) {
        abort();
    }
    return graph;
}

static void replay(const tandem_table *table, const struct tnd_registry *registry,
                   tandem_graph *graph, const tandem_plan *plan)
{
    struct tandem_error error = {.text = ""};
    struct tnd_steps *steps = NULL;
    struct tnd_replay result;
    struct tnd_text out = TND_TEXT_INIT;
    enum tandem_status status = tnd_replay_unfold(graph, plan, registry, &steps, &error);
    must(status, &error);
    if (status == TANDEM_OK) {
        const struct tnd_replay_subject subject = {graph, &steps->items, 8, THREADS};
        const struct tnd_replay_options options = {
            .steps = steps, .registry = registry, .table = table, .memory_gbps = 20};
        status = tnd_replay(&options, &result, &error);
        must(status, &error);
        if (status == TANDEM_OK) {
            tnd_replay_text(&result, &subject, &out);
            tnd_replay_json(&result, &subject, "", &out);
            tnd_replay_trace(&result, &subject, 1, &out);
            tnd_replay_fini(&result);
        }
    }
    tnd_steps_free(steps);
    tnd_text_fini(&out);
}

static void plan_and_replay(const tandem_table *table, const struct tnd_registry *registry)
{
    static tandem_context *context;
    static tandem_graph *graph; /* the same for all */
    struct tandem_error error = {.text = ""};
    struct tnd_planner *planner = NULL;
    tandem_plan *plan = NULL;
    graph = graph != NULL ? graph : new_graph(&context);
    const struct tnd_planner_options options = {.registry = registry, .clock = tnd_clock_real()};
    if (tnd_planner_new(&options, &planner, NULL) != TANDEM_OK) {
        abort();
    }
    tnd_planner_set_candidates(planner, tnd_stub_candidates);
    tnd_planner_set_table(planner, table);
    const enum tandem_status status = tnd_planner_plan(planner, graph, THREADS, &plan, &error);
    must(status, &error);
    if (status == TANDEM_OK) {
        replay(table, registry, graph, plan);
    }
    tandem_plan_free(plan);
    tnd_planner_free(planner);
}

/* ---- reported on ---- */

static void report(const tandem_table *table)
{
    struct tandem_error error = {.text = ""};
    struct tnd_text out = TND_TEXT_INIT;
    struct tnd_health health;
    struct tnd_analyze_options options = {TND_ANALYZE_TEXT, "fuzz", NULL, 0, TANDEM_TYPE_NUMBERS};
    const struct tnd_report_source sources[2] = {{table, "one"}, {table, "<other>"}};
    must(tnd_analyze(table, &options, collect, &out, &error), &error);
    options.format = TND_ANALYZE_CSV;
    must(tnd_analyze(table, &options, collect, &out, &error), &error);
    must(tnd_report_html(sources, 2, &options, NULL, collect, &out, &error), &error);
    tnd_table_health(table, &health, &out);
    tnd_text_fini(&out);
}

/* ---- devices that are worth opening ---- */

static void find_winners(const tandem_table *table)
{
    for (int i = 0; i < table->n_curves && i < 4; i++) {
        struct tnd_curve_key key = {.n = 0};
        const char *device = table->curves[i].key.backend;
        int64_t m = 0;
        if (tnd_winners_is_one(table, device, THREADS, &key, &m) &&
            (strcmp(key.backend, device) != 0 || m < 1)) {
            abort();
        }
    }
}

/* ---- numbers of kernels ---- */

/* By the CPU backend, whatever was used before: what it has then is what it may have. */
static void use_numbers(const tandem_table *table)
{
    static struct tnd_registry *registry = NULL;
    const struct tnd_registry_options options = {.backends = "cpu", .n_threads_max = THREADS};
    char numbers[TND_NUMBERS_MAX];
    if (registry == NULL && tnd_registry_open(&options, &registry, NULL) != TANDEM_OK) {
        return;
    }
    tandem_backend *cpu = tnd_registry_backend(registry, 1);
    tnd_kernel_numbers_use(table, registry, NULL);
    if (!tnd_tuner_of(cpu)->present(cpu, "packed_skinny,unpack_part", numbers) ||
        tnd_tuner_of(cpu)->use(cpu, numbers, NULL) != TANDEM_OK) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tandem_error error = {.text = ""};
    struct tnd_registry *registry = NULL;
    struct tnd_invalid_report invalid;
    static struct tnd_fingerprint machine;
    tandem_table *table = NULL;
    if (tandem_table_parse((const char *)data, size, "fuzz", &table, NULL) != TANDEM_OK) {
        return 0;
    }
    const enum tandem_status status = tnd_stub_backends_open(table, THREADS, &registry, &error);
    must(status, &error);
    if (status == TANDEM_OK) {
        explain_some(table, registry);
        choose_convolutions(table);
        plan_and_replay(table, registry);
        tnd_registry_close(registry);
    }
    find_winners(table);
    use_numbers(table);
    report(table);
    tnd_table_invalidate(table, &machine, &invalid);
    (void)tnd_invalid_error(&invalid, &error);
    tandem_table_free(table);
    return 0;
}
