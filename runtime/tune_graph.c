/* SPDX-License-Identifier: MIT
 * Measures the matrix products of a graph from within a program, on the runtime's own threads and
 * backends, within a time budget. */
#include "runtime/tune_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/options.h"
#include "base/tnd_log.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "measure/bench.h"
#include "runtime/runtime_internal.h"
#include "tune/candidates.h"
#include "tune/profiles.h"
#include "table/table_layers.h"
#include "tune/policy.h"

static const double LONGEST_S = 1e6; /* eleven days */

/* The products of a graph, and the M to start with. */
struct subject {
    struct tnd_shapes shapes;
    int n_m;
    int64_t m[TND_MAX_BENCH_M]; /* ascending */
};

/* A few M besides those of the graph: plans for other numbers of tokens will need them. */
static const int64_t anchors[] = {1, 32, 128};

static void add_m(struct subject *subject, int64_t m)
{
    int at = 0;
    while (at < subject->n_m && subject->m[at] < m) {
        at++;
    }
    if ((at < subject->n_m && subject->m[at] == m) || subject->n_m == TND_MAX_BENCH_M) {
        return;
    }
    memmove(&subject->m[at + 1], &subject->m[at], (size_t)(subject->n_m - at) * sizeof(int64_t));
    subject->m[at] = m;
    subject->n_m++;
}

/* Whether the table has measured exactly these weights. */
static bool is_covered(const struct tandem_table *table, const struct tnd_problem *problem,
                       int n_threads)
{
    struct tnd_table_profile cpu;
    struct tnd_estimate stages[TANDEM_STAGES];
    struct tnd_estimate sum;
    return table != NULL && tnd_profile_describe(NULL, 0, problem->type, &cpu) &&
           tnd_estimate_stages(table, &cpu, problem->type, problem->n, problem->k, problem->m,
                               n_threads, false, stages, &sum) &&
           sum.measured_shape && !tnd_is_beyond(&sum);
}

/* Lists products of at most TND_MAX_SHAPES distinct weights; others rely on estimates. */
static void list_products(const struct tandem_graph *graph, const struct tandem_table *covering,
                          int n_threads, struct subject *out)
{
    memset(out, 0, sizeof(*out));
    strcpy(out->shapes.model, "graph");
    for (int i = 0; i < graph->n_nodes; i++) {
        const tandem_tensor *node = graph->nodes[i];
        struct tnd_problem problem;
        if (node->op != TANDEM_OP_MUL_MAT || !tnd_mul_mat_is_plain(node)) {
            continue;
        }
        tnd_problem_of_node(node, &problem);
        if (!is_covered(covering, &problem, n_threads) &&
            tnd_shapes_count(&out->shapes, problem.type, problem.n, problem.k, 1, NULL) ==
                TANDEM_OK) {
            add_m(out, problem.m);
        }
    }
    for (size_t i = 0; out->n_m > 0 && i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        add_m(out, anchors[i]);
    }
}

/* ---- measuring ---- */

struct watch {
    const struct tandem_tune_options *options;
    double budget_s;
};

static bool tell(void *user, const struct tnd_bench_progress *progress)
{
    const struct watch *watch = user;
    return watch->options->progress != NULL &&
           watch->options->progress(watch->options->user, progress->elapsed_s, watch->budget_s);
}

enum tandem_status tnd_runtime_update_file(tandem_runtime *runtime, const char *path,
                                           const tandem_table *table, struct tandem_error *error)
{
    struct tandem_error note;
    TND_TRY(tnd_table_update_file(path, table, &note, error));
    if (note.status != TANDEM_OK) {
        tnd_log_line(&runtime->log, TANDEM_LOG_WARN, "runtime", "timing table %.200s: %s", path,
                     note.text);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_tune_adopt(tandem_runtime *runtime, tandem_table *fresh, bool saves,
                                  struct tandem_error *error)
{
    tandem_table *merged = NULL;
    char path[4096] = "";
    enum tandem_status status = tnd_runtime_copy_table(runtime, &merged, error);
    if (status == TANDEM_OK && merged == NULL) {
        status = tandem_table_copy(fresh, &merged, error);
    } else if (status == TANDEM_OK) {
        tnd_table_supersede(fresh, merged); /* replaces times corrected by drift */
        status = tandem_table_merge(merged, fresh, error);
    }
    if (status == TANDEM_OK) {
        tnd_runtime_adopt_table(runtime, merged);
        merged = NULL;
    }
    if (status == TANDEM_OK && saves) {
        status = tnd_table_own_path(path, sizeof(path), error);
        if (status == TANDEM_OK) {
            status = tnd_runtime_update_file(runtime, path, fresh, error);
        }
    }
    tandem_table_free(merged);
    return status;
}

static enum tandem_status measure_into(tandem_runtime *runtime, const struct subject *subject,
                                       const struct tandem_tune_options *options, uint64_t begin_ns,
                                       tandem_table *fresh, struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    struct tnd_bench_options bench;
    struct watch watch = {options,
                          options->budget_s > 0 ? options->budget_s : TND_BENCH_ESTIMATE_S};
    tnd_runtime_parts(runtime, &parts);
    memset(&bench, 0, sizeof(bench));
    bench.measure.registry = parts.registry;
    bench.measure.exec = parts.exec;
    bench.measure.clock = parts.clock;
    bench.measure.seed = 1;
    bench.shapes = &subject->shapes;
    bench.n_m = subject->n_m;
    memcpy(bench.m, subject->m, sizeof(bench.m));
    bench.is_adaptive = true;
    bench.n_thread_counts =
        tnd_bench_thread_counts(tandem_runtime_threads(runtime),
                                tnd_topology_fast_cores(parts.topology), bench.thread_counts);
    bench.pool = parts.pool;
    bench.budget_s = watch.budget_s;
    bench.reserve_s = options->saves ? TND_TUNE_SAVING * watch.budget_s : 0;
    bench.begin_ns = begin_ns;
    bench.progress = tell;
    bench.user = &watch;
    tnd_fingerprint_read_all(parts.registry, &fresh->fingerprint);
    return tnd_bench_run(&bench, fresh, NULL, error);
}

static enum tandem_status measure(tandem_runtime *runtime, const struct subject *subject,
                                  const struct tandem_tune_options *options, uint64_t begin_ns,
                                  struct tandem_error *error)
{
    tandem_table *fresh = NULL;
    struct tandem_error why = {0};
    TND_TRY(tandem_table_new(&fresh, error));
    enum tandem_status status = measure_into(runtime, subject, options, begin_ns, fresh, &why);
    enum tandem_status kept = TANDEM_OK;
    if (fresh->n_curves > 0) {
        kept = tnd_tune_adopt(runtime, fresh, options->saves, error);
    }
    tandem_table_free(fresh);
    if (status != TANDEM_OK && error != NULL) {
        *error = why;
    }
    return status != TANDEM_OK ? status : kept;
}

enum tandem_status tnd_tune_products(tandem_runtime *runtime, const tandem_graph *graph,
                                     const struct tandem_tune_options *options, tandem_table *fresh,
                                     struct tandem_error *error)
{
    struct subject subject;
    const uint64_t begin_ns = runtime->clock->now_ns(runtime->clock);
    list_products(graph, NULL, tandem_runtime_threads(runtime), &subject);
    return subject.n_m > 0 ? measure_into(runtime, &subject, options, begin_ns, fresh, error)
                           : TANDEM_OK;
}

enum tandem_status tandem_tune_graph(tandem_runtime *runtime, const tandem_graph *graph,
                                     const struct tandem_tune_options *options,
                                     struct tandem_error *error)
{
    struct tandem_tune_options complete = TANDEM_TUNE_OPTIONS_INIT;
    struct tnd_runtime_parts parts;
    struct subject subject;
    TND_TRY(tnd_runtime_check(runtime, "tune_graph", error));
    TND_TRY(tnd_options_read(options, "tandem_tune_options", &complete, sizeof(complete), error));
    if (!(complete.budget_s >= 0) || complete.budget_s > LONGEST_S) {
        return tnd_error_set(error, TANDEM_E_ARGUMENT, "budget_s", (int64_t)complete.budget_s,
                             (int64_t)LONGEST_S, "tune: budget of %g s, expected 0 (default) to %g",
                             complete.budget_s, LONGEST_S);
    }
    TND_TRY(tnd_runtime_check_graph(graph, error));
    tnd_runtime_parts(runtime, &parts);
    uint64_t begin_ns = parts.clock->now_ns(parts.clock);
    list_products(graph, NULL, tandem_runtime_threads(runtime), &subject);
    return subject.n_m > 0 ? measure(runtime, &subject, &complete, begin_ns, error) : TANDEM_OK;
}

/* ---- on first use ---- */

bool tnd_tune_is_wanted(void)
{
    return tnd_environment(TND_ENVIRONMENT_TUNE) != NULL; /* its only value: on-first-use */
}

double tnd_tune_first_use_s(void)
{
    const double budget_s = tnd_environment_number(TND_ENVIRONMENT_TUNE_BUDGET);
    return budget_s > 0 && budget_s <= LONGEST_S ? budget_s : TND_TUNE_FIRST_USE_S;
}

bool tnd_tune_on_first_use(tandem_runtime *runtime, const tandem_graph *graph)
{
    struct tandem_tune_options options = TANDEM_TUNE_OPTIONS_INIT;
    struct tnd_runtime_parts parts;
    struct subject subject;
    struct tandem_error error = {0};
    tnd_runtime_parts(runtime, &parts);
    uint64_t begin_ns = parts.clock->now_ns(parts.clock);
    int n_threads = tandem_runtime_threads(runtime);
    pthread_mutex_lock(&runtime->lock);
    list_products(graph, tnd_runtime_locked_table(runtime), n_threads, &subject);
    pthread_mutex_unlock(&runtime->lock);
    if (subject.n_m == 0) {
        return false;
    }
    options.budget_s = tnd_tune_first_use_s();
    options.saves = true;
    tnd_log_line(parts.log, TANDEM_LOG_INFO, "runtime",
                 "first use of %d weight shapes that no table knows: measuring for %.1f s",
                 subject.shapes.count, options.budget_s);
    if (measure(runtime, &subject, &options, begin_ns, &error) != TANDEM_OK) {
        tnd_log_line(parts.log, TANDEM_LOG_WARN, "runtime", "measuring on first use: %s",
                     error.text);
    }
    return true;
}
