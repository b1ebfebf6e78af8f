/* SPDX-License-Identifier: MIT
 * mulmat-tune simulate: the plan of a model by any machine's table, run on a virtual clock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/tnd_status.h"
#include "tandem/table.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/new_file.h"
#include "tools/report/model_graph.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "base/emit.h"
#include "tune/explain.h"
#include "tune/place.h"
#include "tune/planner.h"
#include "tools/report/fit_weights.h"
#include "tools/report/replay_print.h"
#include "tools/report/stub_backends.h"

enum { MOST_TOKENS = 8192, MOST_THREADS = 1024 };

struct request {
    const char *table;
    const char *model;
    const char *type;
    const char *trace;
    const char *objective;
    const char *device_memory;
    double skew; /* exponent of the experts' use; below 0: experts of a layer stay together */
    struct args_ints m;
    int64_t threads;
    int64_t past;
    double memory_gbps;
    bool json, replaces;
};

struct simulation {
    const struct request *request;
    tandem_table *table;
    struct tnd_registry *registry;
    struct tnd_planner *planner;
    struct model_graphs graphs;
    enum tandem_type type;
    int n_threads;
    int n_told, n_refused; /* passes */
    struct tnd_text out;
    struct tnd_text trace;
};

static int most_threads(const tandem_table *table)
{
    int most = 1;
    for (int i = 0; i < table->n_curves; i++) {
        most = table->curves[i].key.threads > most ? table->curves[i].key.threads : most;
    }
    return most;
}

static enum tandem_status read_type(struct simulation *s, struct tandem_error *error)
{
    const char *name = s->request->type;
    if (name != NULL && !tandem_type_from_name(name, &s->type)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, name, 0, 0,
                             "--type '%s': expected a weight type such as q4_0", name);
    }
    if (name == NULL) { /* default: q4_0, or the first one in the table */
        bool has_other =
            s->table->n_curves > 0 && tnd_table_largest_m(s->table, TANDEM_TYPE_Q4_0) == 0;
        s->type = has_other ? s->table->curves[0].key.type : TANDEM_TYPE_Q4_0;
    }
    return TANDEM_OK;
}

static const char *place_of(void *user, const void *data)
{
    const struct simulation *s = user;
    int slot = tnd_planner_placed_slot(s->planner, data);
    return slot >= 0 ? tnd_registry_name(s->registry, slot) : NULL;
}

/* With the memory of devices: places weights as `tandem-llama fit` does. */
static enum tandem_status place_weights(struct simulation *s, struct tandem_error *error)
{
    uint8_t slots[TND_MAX_SLOTS];
    struct tnd_placement *placement = NULL;
    int64_t most = 1;
    for (int i = 0; i < s->request->m.n; i++) {
        most = s->request->m.values[i] > most ? s->request->m.values[i] : most;
    }
    struct tnd_fit_options options = {.table = s->table,
                                      .n_threads = s->n_threads,
                                      .prompt_tokens = most,
                                      .context = most + s->request->past,
                                      .cache_type = TANDEM_TYPE_F16};
    int n = tnd_place_devices(s->registry, slots);
    options.n_devices = n < TND_FIT_SIDES ? n : TND_FIT_SIDES - 1;
    for (int side = 1; side <= options.n_devices; side++) {
        options.devices[side] = tnd_registry_name(s->registry, slots[side - 1]);
    }
    if (!tnd_fit_read_memory(s->request->device_memory, options.n_devices, options.memory)) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, s->request->device_memory, n, 0,
                             "--device-memory '%.64s': expected %d number%s of GiB with ',' "
                             "between, one a device of the table",
                             s->request->device_memory, n, n == 1 ? "" : "s");
    }
    const struct tnd_fit_skew skew = {
        .skew = s->request->skew, .add_hot = model_graphs_add_hot, .user = &s->graphs};
    TND_TRY(tnd_fit_place(s->graphs.source, &options, slots, &skew, &placement, error));
    tnd_planner_set_placement(s->planner, placement);
    return model_graphs_place(&s->graphs, place_of, s, error);
}

static enum tandem_status open_simulation(struct simulation *s, struct tandem_error *error)
{
    char own[4096];
    const char *path = s->request->table;
    if (path == NULL) {
        TND_TRY(tandem_table_default_path(own, sizeof(own), error));
        path = own;
    }
    if (path == own && !tnd_file_exists(own)) {
        return tnd_error_set(error, TANDEM_E_FILE, own, 0, 0,
                             "this machine has no timing table: %s does not exist; 'mulmat-tune "
                             "bench --model MODEL' makes one",
                             own);
    }
    TND_TRY(tandem_table_load(path, &s->table, error));
    TND_TRY(tnd_cmd_aim(s->request->objective, s->table, error));
    TND_TRY(read_type(s, error));
    s->n_threads = s->request->threads > 0 ? (int)s->request->threads : most_threads(s->table);
    TND_TRY(tnd_stub_backends_open(s->table, s->n_threads, &s->registry, error));
    const struct tnd_planner_options options = {.registry = s->registry, .clock = tnd_clock_real()};
    TND_TRY(tnd_planner_new(&options, &s->planner, error));
    tnd_planner_set_candidates(s->planner, tnd_stub_candidates);
    tnd_planner_set_table(s->planner, s->table);
    TND_TRY(model_graphs_open(s->request->model, s->type, &s->graphs, error));
    return s->request->device_memory != NULL ? place_weights(s, error) : TANDEM_OK;
}

static void close_simulation(struct simulation *s)
{
    model_graphs_close(&s->graphs);
    tnd_planner_free(s->planner);
    tnd_registry_close(s->registry);
    tandem_table_free(s->table);
    tnd_text_fini(&s->out);
    tnd_text_fini(&s->trace);
}

/* ---- one pass ---- */

static void print(struct simulation *s, const struct tnd_replay *replay,
                  const struct tnd_replay_subject *subject)
{
    s->n_told++;
    if (s->request->json) {
        tnd_text_add(&s->out, s->n_told > 1 ? ",\n    " : "\n    ");
        tnd_replay_json(replay, subject, "    ", &s->out);
    } else {
        tnd_text_add_char(&s->out, '\n');
        tnd_replay_text(replay, subject, &s->out);
    }
    if (s->request->trace != NULL) {
        tnd_replay_trace(replay, subject, s->n_told, &s->trace);
    }
}

/* Whether so many products have no time that the pass would look much too fast. A few, such as the
 * logits of one token after a prompt, are reported beside the result. */
static bool is_unknown(const tandem_graph *graph, int n_untimed)
{
    int n_products = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        n_products += graph->nodes[i]->op == TANDEM_OP_MUL_MAT;
    }
    return 10 * n_untimed > n_products;
}

static void refuse(struct simulation *s, int64_t m, int n_products)
{
    s->n_refused++;
    fprintf(stderr,
            "mulmat-tune simulate: M = %" PRId64 ": the table has no times for %d steps of "
            "products of %s weights; expected their shapes, measured at M from a quarter of it to "
            "four times as many (the largest measured M is %" PRId64 ")\n",
            m, n_products, tandem_type_name(s->type), tnd_table_largest_m(s->table, s->type));
}

/* The highest rate of a unit, GB/s; 0: unknown. */
static double rate_of(const tandem_table *table, const char *unit)
{
    double rate = 0;
    for (int i = 0; i < table->n_peaks; i++) {
        bool is_it = strcmp(table->peaks[i].unit, unit) == 0;
        rate = is_it && table->peaks[i].rate > rate ? table->peaks[i].rate : rate;
    }
    return rate;
}

/* On a machine with several NUMA nodes, prints how fast the CPU's weights can be read at best, by
 * their placement. */
static void tell_nodes(struct simulation *s, const tandem_graph *graph, const tandem_plan *plan)
{
    double own = rate_of(s->table, TND_NUMA_UNIT_OWN);
    double all_own = rate_of(s->table, TND_NUMA_UNIT_ALL_OWN);
    double interleave = rate_of(s->table, TND_NUMA_UNIT_INTERLEAVE);
    double bytes = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        uint8_t backend = plan->nodes[i].stage[TANDEM_STAGE_COMPUTE].backend;
        bool is_ours = node->op == TANDEM_OP_MUL_MAT && backend == TANDEM_BACKEND_CPU;
        bytes += is_ours ? (double)tandem_tensor_bytes(node->src[0]) : 0;
    }
    if (s->request->json || bytes == 0 || !(own > 0 && all_own > 0 && interleave > 0)) {
        return;
    }
    tnd_text_printf(&s->out,
                    "  NUMA nodes: the CPU's products read %.2f GB of weights: in %.2f ms at best "
                    "if each node has its own rows (first touch), %.2f ms interleaved, %.2f ms if "
                    "all lie on one node\n",
                    bytes * 1e-9, bytes * 1e-6 / all_own, bytes * 1e-6 / interleave,
                    bytes * 1e-6 / own);
}

/* The caller frees both: tnd_replay_fini, tnd_steps_free. */
static enum tandem_status run_plan(struct simulation *s, tandem_graph *graph,
                                   const tandem_plan *plan, struct tnd_steps **out_steps,
                                   struct tnd_replay *out, struct tandem_error *error)
{
    TND_TRY(tnd_replay_unfold(graph, plan, s->registry, out_steps, error));
    const struct tnd_replay_options options = {.steps = *out_steps,
                                               .registry = s->registry,
                                               .table = s->table,
                                               .memory_gbps = s->request->memory_gbps};
    enum tandem_status status = tnd_replay(&options, out, error);
    if (status != TANDEM_OK) {
        tnd_steps_free(*out_steps);
    }
    return status;
}

static enum tandem_status replay_plan(struct simulation *s, int64_t m, tandem_graph *graph,
                                      const tandem_plan *plan, struct tandem_error *error)
{
    struct tnd_steps *steps = NULL;
    struct tnd_replay replay;
    TND_TRY(run_plan(s, graph, plan, &steps, &replay, error));
    const struct tnd_replay_subject subject = {graph, &steps->items, m, s->n_threads};
    if (is_unknown(graph, replay.n_untimed_products)) {
        refuse(s, m, replay.n_untimed_products);
    } else {
        print(s, &replay, &subject);
        tell_nodes(s, graph, plan);
    }
    tnd_replay_fini(&replay);
    tnd_steps_free(steps);
    return TANDEM_OK;
}

/* A pass in n micro-batches, and its plan; the caller frees both. */
static enum tandem_status plan_pass(struct simulation *s, int64_t m, int n,
                                    struct model_graph *out_pass, tandem_plan **out_plan,
                                    struct tandem_error *error)
{
    TND_TRY(model_graph_build(&s->graphs, m, s->request->past, n, out_pass, error));
    enum tandem_status status =
        tnd_planner_plan(s->planner, out_pass->graph, s->n_threads, out_plan, error);
    if (status != TANDEM_OK) {
        model_graph_fini(out_pass);
    }
    return status;
}

struct cutting {
    struct simulation *simulation;
    int64_t m;
};

/* Predicts by the virtual clock, which also replaces the trials of a session. */
static enum tandem_status predict_pass(void *user, int n, struct tandem_prediction *out,
                                       struct tandem_error *error)
{
    const struct cutting *cutting = user;
    struct model_graph pass;
    struct tnd_steps *steps = NULL;
    struct tnd_replay replay;
    tandem_plan *plan = NULL;
    TND_TRY(plan_pass(cutting->simulation, cutting->m, n, &pass, &plan, error));
    enum tandem_status status =
        run_plan(cutting->simulation, pass.graph, plan, &steps, &replay, error);
    if (status == TANDEM_OK) {
        *out = (struct tandem_prediction){
            .us = replay.makespan_us,
            .gain_error_us = plan->schedule != NULL ? (double)plan->schedule->gain_error_us : 0,
            .is_at_once = tnd_plan_is_scheduled(plan)};
        tnd_replay_fini(&replay);
        tnd_steps_free(steps);
    }
    tandem_plan_free(plan);
    model_graph_fini(&pass);
    return status;
}

/* Uses as many micro-batches as a session would choose. */
static enum tandem_status simulate_pass(struct simulation *s, int64_t m, struct tandem_error *error)
{
    struct cutting cutting = {s, m};
    struct model_graph pass;
    tandem_plan *plan = NULL;
    int n = 1;
    if (s->graphs.has_places && m > 1) {
        TND_TRY(tnd_llama_choose_cut(m, predict_pass, &cutting, &n, error));
    }
    TND_TRY(plan_pass(s, m, n, &pass, &plan, error));
    enum tandem_status status = replay_plan(s, m, pass.graph, plan, error);
    tandem_plan_free(plan);
    model_graph_fini(&pass);
    return status;
}

/* ---- all of them ---- */

static void begin_output(struct simulation *s)
{
    const struct request *request = s->request;
    const char *table = request->table != NULL ? request->table : "this machine's own";
    if (!request->json) {
        tnd_text_printf(&s->out,
                        "Simulation: %s, weights %s, %" PRId64 " tokens before; timing table: %s\n"
                        "Nothing was run: times are what the table predicts.\n",
                        request->model, tandem_type_name(s->type), request->past, table);
        return;
    }
    tnd_text_add(&s->out, "{\n  \"table\": ");
    tnd_emit_json_string(&s->out, table);
    tnd_text_add(&s->out, ",\n  \"model\": ");
    tnd_emit_json_string(&s->out, request->model);
    tnd_text_printf(&s->out, ",\n  \"type\": \"%s\",\n  \"past\": %" PRId64 ",\n  \"passes\": [",
                    tandem_type_name(s->type), request->past);
}

static enum tandem_status write_trace(struct simulation *s, struct tandem_error *error)
{
    struct tnd_text file = TND_TEXT_INIT;
    tnd_text_add(&file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    tnd_text_add_bytes(&file, tnd_text_string(&s->trace), s->trace.n);
    tnd_text_add(&file, "\n]}\n");
    enum tandem_status status =
        s->trace.failed || file.failed
            ? tnd_error_set(error, TANDEM_E_MEMORY, "trace", 0, 0, "trace: out of memory")
            : tnd_file_write_atomic(s->request->trace, file.bytes, file.n, error);
    tnd_text_fini(&file);
    return status;
}

static enum tandem_status simulate(struct simulation *s, struct tandem_error *error)
{
    if (s->request->trace != NULL) {
        TND_TRY(tnd_new_file_check(s->request->trace, s->request->replaces, error));
    }
    TND_TRY(open_simulation(s, error));
    begin_output(s);
    for (int i = 0; i < s->request->m.n; i++) {
        TND_TRY(simulate_pass(s, s->request->m.values[i], error));
    }
    tnd_text_add(&s->out, s->request->json ? "\n  ]\n}\n" : "");
    if (s->request->trace != NULL) {
        TND_TRY(write_trace(s, error));
    }
    TND_TRY(tnd_emit_end(&s->out, tnd_cmd_write, stdout, "simulation", error));
    return s->n_refused == 0
               ? TANDEM_OK
               : tnd_error_set(error, TANDEM_E_NOT_FOUND, "simulate", s->n_refused, 0,
                               "%d of %d passes were not simulated", s->n_refused, s->request->m.n);
}

int tnd_cmd_simulate(int argc, char **argv)
{
    struct request request = {.model = "7B", .m = {4, {1, 32, 128, 512}}, .skew = -1};
    const struct args_option options[] = {
        {"model", ARGS_STRING, &request.model, 0, 0, "M",
         "quick, 1.1B, 3B, 7B, 8B, 13B, 30B, 30B-A3B, 65B, 70B or a model file (default 7B)"},
        {"type|t", ARGS_STRING, &request.type, 0, 0, "T",
         "weight type of a named model (default: q4_0, or the first of the table)"},
        {"m", ARGS_INTS, &request.m, 1, MOST_TOKENS, "M[,M..]",
         "tokens of a pass: 1 is generating, more a prompt (default 1,32,128,512)"},
        {"threads", ARGS_INT, &request.threads, 1, MOST_THREADS, "N",
         "plan for at most N threads (default: the most in the table)"},
        {"past", ARGS_INT, &request.past, 0, MOST_TOKENS, "P",
         "tokens before them in the text (default 0)"},
        {"memory-gbps", ARGS_NUMBER, &request.memory_gbps, 0, 1e6, "G",
         "operations that the table has no times of read and write memory at G GB/s (default: "
         "they take no time)"},
        {"device-memory", ARGS_STRING, &request.device_memory, 0, 0, "GiB[,GiB]",
         "of each device of the table: weights live where tandem-llama fit puts them (default: "
         "there is room for all)"},
        {"expert-skew", ARGS_NUMBER, &request.skew, 0, 10, "S",
         "with --device-memory: experts of a layer apart, the r-th most used one counts r^-S "
         "(default: they stay together)"},
        {"trace", ARGS_STRING, &request.trace, 0, 0, "FILE",
         "write the timeline for chrome://tracing or ui.perfetto.dev"},
        TND_NEW_FILE_OPTION(request.replaces),
        {"objective", ARGS_STRING, &request.objective, 0, 0, "O", TND_OBJECTIVE_OPTION_HELP},
        {"json", ARGS_FLAG, &request.json, 0, 0, NULL, "one JSON object"},
    };
    const struct args_command command = {
        "simulate",
        "[TABLE]",
        "Plans a llama by a timing table, of this machine or another one, and runs the plan by a "
        "virtual\n"
        "clock: how long a pass takes, how busy each lane is (threads of the CPU, devices, each "
        "direction of\n"
        "transfer), and what the critical path consists of. TABLE: default this machine's own.",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        1};
    int result = args_parse(&command, argc, argv, &request.table, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    if (request.replaces && request.trace == NULL) {
        fprintf(stderr, "mulmat-tune simulate: -y needs --trace FILE\n");
        return 2;
    }
    struct simulation simulation = {.request = &request};
    struct tandem_error error = {0};
    enum tandem_status status = simulate(&simulation, &error);
    close_simulation(&simulation);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}
