/* SPDX-License-Identifier: MIT
 * tandem-graph bench: the median time of a model on random inputs. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/vector.h"
#include "ggml-like/tnd_tensor.h"
#include "graph/net_public.h"
#include "tools/device_option.h"
#include "tools/op_split.h"
#include "tune/conv_choice.h"
#include "tools/tandem-graph/graph_cli.h"

#define MAX_ROUNDS 100000
#define MIN_ROUNDS 3

struct part {
    uint64_t serial; /* of the lowered part, which the model may rebuild */
    tandem_lowered *lowered;
    tandem_plan *plan;
    int round; /* that computed it last; parts of older rounds may be gone */
};

struct bench {
    const char *path;
    bool is_json, explains, has_ops;
    double seconds;
    struct args_strings dims;
    const char *pass_names;
    struct tnd_graph_runtime how;
    struct tandem_onnx_dim sizes[ARGS_LIST_MAX];
    tandem_onnx *model;
    struct tnd_model_inputs inputs;
    tandem_runtime *runtime;
    TND_VECTOR_OF(struct part, parts); /* in execution order */
    struct tnd_op_split split;
    bool is_split; /* receives times */
    double *ms;
    int n_rounds, round;
    double start_mib, load_ms, plan_ms;
};

/* Memory of the process in MiB: current (VmRSS) or peak (VmHWM); 0 when unknown. */
static double process_mib(const char *name)
{
    struct tnd_file file;
    if (tnd_file_read("/proc/self/status", 0, &file, NULL) != TANDEM_OK) {
        return 0;
    }
    const char *at = strstr((const char *)file.data, name);
    const double kib = at == NULL ? 0 : strtod(at + strlen(name), NULL);
    tnd_file_close(&file);
    return kib / 1024.0;
}

/* The entry of a part in the list; adds one if necessary. */
static enum tandem_status find_part(struct bench *bench, tandem_lowered *lowered, struct part **out,
                                    struct tandem_error *error)
{
    const uint64_t serial = tandem_lowered_serial(lowered);
    for (int i = 0; i < bench->n_parts; i++) {
        if (bench->parts[i].serial == serial) {
            *out = &bench->parts[i];
            (*out)->round = bench->round;
            return TANDEM_OK;
        }
    }
    struct part part = {.serial = serial, .lowered = lowered, .round = bench->round};
    TND_TRY(tandem_runtime_plan(bench->runtime, tandem_lowered_graph(lowered), &part.plan, error));
    if (tnd_vector_insert(&bench->parts_vector, sizeof(part), INT_MAX / 2, bench->n_parts) !=
        TANDEM_OK) {
        tandem_plan_free(part.plan);
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, bench->n_parts, 0,
                             "no memory for a plan");
    }
    *out = &bench->parts[bench->n_parts - 1];
    **out = part;
    return TANDEM_OK;
}

static enum tandem_status compute_part(void *user, tandem_lowered *lowered, bool is_last,
                                       struct tandem_error *error)
{
    struct bench *bench = user;
    struct part *part = NULL;
    (void)is_last;
    TND_TRY(find_part(bench, lowered, &part, error));
    struct tandem_compute_options options = TANDEM_COMPUTE_OPTIONS_INIT;
    options.timed = bench->is_split ? tnd_op_split_add : NULL;
    options.user = &bench->split;
    return tandem_runtime_compute(bench->runtime, tandem_lowered_graph(lowered), part->plan,
                                  &options, error);
}

static struct tandem_lower_options how_lowered(const struct bench *bench)
{
    struct tandem_lower_options how = TANDEM_LOWER_OPTIONS_INIT;
    how.passes = bench->pass_names;
    how.chooser = tandem_runtime_chooser(bench->runtime);
    return how;
}

/* A model with one part has its inputs already: the part is just computed again. */
static enum tandem_status compute_model(struct bench *bench, struct tandem_error *error)
{
    const struct tandem_lower_options how = how_lowered(bench);
    bench->round++;
    if (bench->n_parts == 1) {
        return compute_part(bench, bench->parts[0].lowered, true, error);
    }
    return tnd_model_parts(bench->model, bench->inputs.arrays, bench->inputs.n, &how, compute_part,
                           bench, NULL, error);
}

static enum tandem_status compute(struct bench *bench, struct tandem_error *error)
{
    const double begin = tnd_graph_now_ns();
    TND_TRY(compute_model(bench, error));
    bench->ms[bench->n_rounds++] = (tnd_graph_now_ns() - begin) / 1e6;
    return TANDEM_OK;
}

/* Loads the model and lowers its first part. */
static enum tandem_status prepare(struct bench *bench, struct tandem_error *error)
{
    tandem_lowered *first = NULL;
    bench->ms = tnd_alloc(MAX_ROUNDS * sizeof(double));
    if (bench->ms == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for times");
    }
    TND_TRY(tnd_dim_option_read(&bench->dims, bench->sizes, error));
    TND_TRY(tandem_onnx_open(bench->path, &bench->model, error));
    TND_TRY(tnd_graph_open_runtime(&bench->how, &bench->runtime, error));
    TND_TRY(
        tnd_model_inputs_make(bench->model, bench->sizes, bench->dims.n, &bench->inputs, error));
    const struct tandem_lower_options how = how_lowered(bench);
    return tandem_onnx_begin(bench->model, bench->inputs.arrays, bench->inputs.n, &how, &first,
                             error);
}

/* Runs a few more rounds that time each node. */
static enum tandem_status split_by_op(struct bench *bench, struct tandem_error *error)
{
    bench->is_split = true;
    for (int i = 0; i < MIN_ROUNDS; i++) {
        TND_TRY(compute_model(bench, error));
    }
    return TANDEM_OK;
}

/* The first computation plans and warms up; it is reported separately. */
static enum tandem_status measure(struct bench *bench, struct tandem_error *error)
{
    bench->start_mib = process_mib("VmRSS:");
    const double begin = tnd_graph_now_ns();
    TND_TRY(prepare(bench, error));
    bench->load_ms = (tnd_graph_now_ns() - begin) / 1e6;
    TND_TRY(compute(bench, error));
    bench->plan_ms = bench->ms[0];
    bench->n_rounds = 0;
    const double end = tnd_graph_now_ns() + bench->seconds * 1e9;
    while (bench->n_rounds < MIN_ROUNDS ||
           (bench->n_rounds < MAX_ROUNDS && tnd_graph_now_ns() < end)) {
        TND_TRY(compute(bench, error));
    }
    tnd_graph_sort(bench->ms, bench->n_rounds);
    return bench->has_ops ? split_by_op(bench, error) : TANDEM_OK;
}

/* Sums over all parts. */
struct sums {
    int n_parts, n_nodes, on_device, by_reference;
    double results_mib;
};

/* Whether a part was computed in the last round. */
static bool is_part(const struct bench *bench, int i)
{
    return bench->parts[i].round == bench->round;
}

static struct sums sum_up(const struct bench *bench)
{
    struct sums sums = {.n_parts = 0};
    for (int i = 0; i < bench->n_parts; i++) {
        struct tandem_memory_report report = TANDEM_MEMORY_REPORT_INIT;
        const struct part *part = &bench->parts[i];
        if (!is_part(bench, i)) {
            continue;
        }
        tandem_graph *graph = tandem_lowered_graph(part->lowered);
        (void)tandem_graph_memory(graph, &report);
        sums.n_parts++;
        sums.n_nodes += tandem_plan_node_count(part->plan);
        sums.by_reference += tnd_graph_reference_work(graph).n_hot;
        sums.results_mib += (double)(report.planned_bytes + report.output_bytes) / 1048576.0;
        for (int k = 0; k < tandem_plan_node_count(part->plan); k++) {
            sums.on_device +=
                tnd_device_option_has_profile(tandem_plan_node(part->plan, k)->profile);
        }
    }
    return sums;
}

/* In a unit that fits: small nets take only microseconds. */
static void print_time(double ms)
{
    printf(ms < 1.0 ? "%.2f us" : "%.3f ms", ms < 1.0 ? 1e3 * ms : ms);
}

static void print(const struct bench *bench)
{
    const struct sums sums = sum_up(bench);
    const double median = bench->ms[bench->n_rounds / 2];
    const double peak = process_mib("VmHWM:") - bench->start_mib;
    if (bench->is_json) {
        printf("{\"ms\": %.6f, \"least_ms\": %.6f, \"first_ms\": %.6f, \"rounds\": %d, "
               "\"load_ms\": %.3f, \"results_mib\": %.3f, \"peak_mib\": %.3f, \"parts\": %d, "
               "\"nodes\": %d, \"on_device\": %d, \"by_reference\": %d}\n",
               median, bench->ms[0], bench->plan_ms, bench->n_rounds, bench->load_ms,
               sums.results_mib, peak, sums.n_parts, sums.n_nodes, sums.on_device,
               sums.by_reference);
        return;
    }
    print_time(median);
    printf(", the median of %d; the fastest ", bench->n_rounds);
    print_time(bench->ms[0]);
    printf(", the first ");
    print_time(bench->plan_ms);
    printf("\n");
    printf("loaded in %.0f ms; %.1f MiB of results", bench->load_ms, sums.results_mib);
    if (peak > 0) {
        printf(", %.1f MiB at most, the program itself not counted", peak);
    }
    printf("\n");
    if (sums.n_parts > 1) {
        printf("in %d parts: extents depend on values\n", sums.n_parts);
    }
    if (sums.on_device > 0) {
        printf("%d of %d nodes on a device\n", sums.on_device, sums.n_nodes);
    }
    if (bench->has_ops) {
        printf("time by operation: ");
        tnd_op_split_print(&bench->split);
    }
    for (int i = 0; i < bench->n_parts; i++) {
        if (is_part(bench, i)) {
            tnd_op_split_print_slow(tandem_lowered_graph(bench->parts[i].lowered), stdout);
        }
    }
}

static void print_conversions(const struct tnd_lowered *lowered)
{
    const struct tnd_conversion *one;
    double values = 0;
    int n = 0;
    for (; (one = tnd_lowered_conversion(lowered, n)) != NULL; n++) {
        printf("layout %d:", n + 1);
        for (int d = 0; d < one->shape.n; d++) {
            printf("%s%" PRId64, d == 0 ? " " : "x", one->shape.dims[d]);
        }
        printf(" %s%s%s\n", one->is_last ? "to channels last" : "from channels last",
               one->name != NULL ? ", value " : "", one->name != NULL ? one->name : "");
        values += (double)tnd_dims_values(&one->shape);
    }
    printf("copies that change a layout: %d, %.0f values in all\n", n, values);
}

/* Prints how each convolution is computed, and why. */
static void explain(const struct bench *bench, const struct part *part)
{
    const struct tnd_lowered *lowered = tnd_lowered_of(part->lowered);
    const struct tnd_conv_choice *choice;
    struct tnd_text text = TND_TEXT_INIT;
    for (int i = 0; (choice = tnd_lowered_conv(lowered, i)) != NULL; i++) {
        tnd_conv_explain(choice, tandem_runtime_threads(bench->runtime), &text);
    }
    fputs(tnd_text_string(&text), stdout);
    tnd_text_fini(&text);
    print_conversions(lowered);
}

static void release(struct bench *bench)
{
    for (int i = 0; i < bench->n_parts; i++) {
        tandem_plan_free(bench->parts[i].plan);
    }
    tnd_vector_fini(&bench->parts_vector);
    tandem_onnx_close(bench->model);
    tandem_runtime_close(bench->runtime);
    tnd_model_inputs_fini(&bench->inputs);
    tnd_free(bench->ms);
    tnd_dim_option_free(&bench->dims, bench->sizes);
}

int tnd_cmd_graph_bench(int argc, char **argv)
{
    struct bench bench = {.seconds = 1.0};
    const struct args_option options[] = {
        {"dim", ARGS_STRINGS, &bench.dims, 0, 0, "NAME=N", "extent of a dimension with a name"},
        {"seconds", ARGS_NUMBER, &bench.seconds, 0, 3600, "S", "how long; 1"},
        {"threads", ARGS_INT, &bench.how.threads, 0, 1024, "N", "threads; default: one a core"},
        {"table", ARGS_STRING, &bench.how.table, 0, 0, "FILE",
         "timing table; none: the rule; default: this machine's"},
        TND_GRAPH_DEVICE_ROWS(&bench.how),
        TND_GRAPH_PASSES_ROW(&bench.pass_names),
        {"explain", ARGS_FLAG, &bench.explains, 0, 0, NULL,
         "say how each convolution is computed, and why"},
        {"ops", ARGS_FLAG, &bench.has_ops, 0, 0, NULL, "say which operations the time went to"},
        {"json", ARGS_FLAG, &bench.is_json, 0, 0, NULL, "one object with the times"},
    };
    const struct args_command command = {"bench",
                                         "MODEL.onnx",
                                         "Computes a model again and again and prints the median "
                                         "time. Inputs of float32 are random,\n"
                                         "others are 0.",
                                         options,
                                         (int)(sizeof(options) / sizeof(options[0])),
                                         1,
                                         1};
    struct tandem_error error = {.text = ""};
    unsigned passes;
    const int result = args_parse(&command, argc, argv, &bench.path, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (!tnd_graph_passes(bench.pass_names, &passes)) {
        return ARGS_WRONG;
    }
    const enum tandem_status status = measure(&bench, &error);
    for (int i = 0; status == TANDEM_OK && bench.explains && i < bench.n_parts; i++) {
        if (is_part(&bench, i)) {
            explain(&bench, &bench.parts[i]);
        }
    }
    if (status == TANDEM_OK) {
        print(&bench);
    }
    release(&bench);
    return status == TANDEM_OK ? 0 : tnd_graph_fail(&error);
}
