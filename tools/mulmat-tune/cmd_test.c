/* SPDX-License-Identifier: MIT
 * mulmat-tune test: does every profile compute the right thing on this machine; with --oracle: how
 * far are the plan's choices from the best ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/device_option.h"
#include "tools/mulmat-tune/args.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/oracle_report.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tune/oracle.h"
#include "tune/profiles.h"

enum { MAX_TYPES = 16, MAX_M = 64 };

struct request {
    bool oracle;
    bool json;
    const char *shapes;
    struct args_ints m;
    const char *types;
    int64_t threads;
    const char *table;
    const char *profile;
    const char *device;
    int64_t rounds;
    double cell_s;
    double max_median, max_worst; /* percent; 0: no bound */
};

/* ---- results ---- */

/* Normalised mean squared error that a profile may have against double precision. */
static double allowed_error(enum tandem_type type)
{
    switch (type) {
    case TANDEM_TYPE_F32:
        return 1e-10;
    case TANDEM_TYPE_F16:
        return 1e-6;
    case TANDEM_TYPE_BF16:
        return 5e-6;
    default:
        return 5e-4;
    }
}

static double nmse(const float *got, const float *want, int64_t n)
{
    double error = 0;
    double power = 0;
    for (int64_t i = 0; i < n; i++) {
        double difference = (double)got[i] - (double)want[i];
        error += difference * difference;
        power += (double)want[i] * (double)want[i];
    }
    return power > 0 ? error / power : error;
}

/* Runs every profile at every thread count on one problem; returns how many were wrong, or -1. */
static int test_problem(const struct tnd_measure_options *measure_options, enum tandem_type type,
                        int64_t m, const char *only, int n_threads, struct tandem_error *error)
{
    enum { N = 288, K = 512 };
    static const struct tnd_measure_effort once = {
        .budget_s = 1e-6, .min_repeats = 1, .max_repeats = 1, .spread_frac = 1};
    struct tnd_measure *measure = NULL;
    float *want = tnd_alloc((size_t)m * N * sizeof(float));
    int wrong = -1;
    if (want == NULL ||
        tnd_measure_open(measure_options, type, N, K, m, &measure, error) != TANDEM_OK ||
        tnd_measure_reference(measure, m, want, error) != TANDEM_OK) {
        goto done;
    }
    wrong = 0;
    for (int p = 0; p < tnd_profile_count(); p++) {
        struct tandem_plan_node choice;
        if ((only != NULL && strcmp(tnd_profile_at(p)->name, only) != 0) ||
            !tnd_plan_node_for_profile(measure_options->registry, p, type, n_threads, &choice)) {
            continue;
        }
        struct tnd_measure_result result;
        struct tnd_problem problem = {"mul_mat", type, N, K, m, n_threads, ""};
        char text[TND_PROBLEM_MAX];
        snprintf(problem.profile, sizeof(problem.profile), "%s", choice.profile);
        tnd_problem_print(&problem, text, sizeof(text));
        if (tnd_measure_run(measure, m, &choice, &once, &result, error) != TANDEM_OK) {
            printf("FAILED %s: %s\n", text, error->text);
            wrong++;
            continue;
        }
        double found = nmse(tnd_measure_output(measure), want, m * N);
        bool right = found <= allowed_error(type);
        printf("%s %-56s error %.2e, allowed %.0e\n", right ? "ok    " : "WRONG ", text, found,
               allowed_error(type));
        wrong += right ? 0 : 1;
    }
done:
    tnd_measure_close(measure);
    tnd_free(want);
    return wrong;
}

static int test_results(const struct request *request, const struct tnd_runtime_rooms *rooms,
                        const enum tandem_type *types, int n_types, int n_threads)
{
    static const int64_t tokens[] = {1, 3, 8, 33};
    struct tnd_measure_options options = tnd_cmd_measure_options(rooms);
    options.rotate_bytes = 1; /* nothing is timed: one copy of the weights will do */
    struct tandem_error error = {0};
    int wrong = 0;
    int problems = 0;
    for (int y = 0; y < n_types; y++) {
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
            int found =
                test_problem(&options, types[y], tokens[i], request->profile, n_threads, &error);
            if (found < 0) {
                return tnd_cmd_failed(&error);
            }
            wrong += found;
            problems++;
        }
    }
    printf("%d problems in every way this machine has: %d wrong\n", problems, wrong);
    return wrong == 0 ? 0 : 1;
}

/* ---- oracle ---- */

/* Neither shapes nor M of bench's lists, so that what is judged was not measured. */
static const char *const default_shapes = "3072x2560,1536x6144,8192x3072,640x2048";
static const int64_t default_m[] = {1, 3, 6, 10, 20, 40, 80, 160, 320};

static bool show_cell(void *user, const struct tnd_oracle_cell *cell, int done, int count)
{
    (void)user;
    char problem[TND_PROBLEM_MAX];
    tnd_problem_print(&cell->problem, problem, sizeof(problem));
    fprintf(stderr, "[%3d %%] %s: regret %.1f %%\n", 100 * done / count, problem,
            100 * cell->regret);
    return false;
}

static enum tandem_status run_cells(const struct request *request,
                                    const struct tnd_runtime_rooms *rooms,
                                    const struct tnd_shapes *shapes, const enum tandem_type *types,
                                    int n_types, const int64_t *m, int n_m, int n_threads,
                                    struct tnd_oracle_cell *cells, int *out_n,
                                    struct tandem_error *error)
{
    struct tnd_oracle_options options;
    memset(&options, 0, sizeof(options));
    options.measure = tnd_cmd_measure_options(rooms);
    options.planner = rooms->planner;
    options.n_threads = n_threads;
    options.rounds = (int)request->rounds;
    options.cell_s = request->cell_s;
    options.progress = show_cell;
    int n = 0;
    int count = n_types * shapes->count * n_m;
    for (int y = 0; y < n_types; y++) {
        for (int s = 0; s < shapes->count; s++) {
            if (tandem_type_row_bytes(types[y], shapes->shape[s].k) == 0) {
                count -= n_m;
                continue;
            }
            enum tandem_status status = tnd_oracle_run(&options, types[y], &shapes->shape[s], m,
                                                       n_m, &cells[n], n, count, error);
            if (status != TANDEM_OK) {
                return status;
            }
            n += n_m;
        }
    }
    *out_n = n;
    return TANDEM_OK;
}

static int compare_m(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int judge(const struct request *request, const struct tnd_regret *regret)
{
    bool too_much = (request->max_median > 0 && 100 * regret->median > request->max_median) ||
                    (request->max_worst > 0 && 100 * regret->worst > request->max_worst);
    if (too_much) {
        fprintf(stderr,
                "mulmat-tune test: regret is above the bound: median %.1f %%, worst %.1f %%\n",
                100 * regret->median, 100 * regret->worst);
    }
    return too_much ? 1 : 0;
}

static int test_oracle(const struct request *request, tandem_runtime *runtime,
                       const enum tandem_type *types, int n_types, int n_threads)
{
    struct tandem_error error = {0};
    struct tnd_runtime_rooms rooms;
    struct tnd_shapes shapes;
    int64_t m[MAX_M];
    int n_m = 0;
    tnd_runtime_rooms(runtime, &rooms);
    if (tnd_shapes_parse(request->shapes != NULL ? request->shapes : default_shapes, &shapes,
                         &error) != TANDEM_OK) {
        tnd_cmd_failed(&error);
        return 2;
    }
    for (int i = 0; i < request->m.n && n_m < MAX_M; i++) {
        m[n_m++] = request->m.values[i];
    }
    if (n_m == 0) {
        n_m = sizeof(default_m) / sizeof(default_m[0]);
        memcpy(m, default_m, sizeof(default_m));
    }
    qsort(m, (size_t)n_m, sizeof(m[0]), compare_m);
    if (tandem_runtime_table_status(runtime, &error) != TANDEM_OK) {
        fprintf(stderr, "mulmat-tune test: the fixed rule is judged, not a table: %s\n",
                error.text);
    }
    size_t capacity = (size_t)(n_types * shapes.count * n_m);
    struct tnd_oracle_cell *cells = tnd_calloc(capacity, sizeof(cells[0]));
    int n = 0;
    int result = 1;
    struct tnd_regret regret;
    if (cells == NULL) {
        fprintf(stderr, "mulmat-tune test: out of memory\n");
        return 1;
    }
    if (run_cells(request, &rooms, &shapes, types, n_types, m, n_m, n_threads, cells, &n, &error) !=
        TANDEM_OK) {
        result = tnd_cmd_failed(&error);
    } else if (n == 0) {
        fprintf(stderr, "mulmat-tune test: no shape fits the blocks of the types\n");
    } else if (tnd_oracle_regret(cells, n, &regret) == TANDEM_OK &&
               oracle_report(cells, n, &regret, request->json, &error) == TANDEM_OK) {
        result = judge(request, &regret);
    }
    tnd_free(cells);
    return result;
}

/* ---- command ---- */

static int run(const struct request *request)
{
    enum tandem_type types[MAX_TYPES];
    int n_types = 0;
    struct tandem_error error = {0};
    const char *names = request->types != NULL ? request->types : request->oracle ? "q4_0" : "all";
    if (tnd_cmd_parse_types(names, types, MAX_TYPES, &n_types, &error) != TANDEM_OK) {
        tnd_cmd_failed(&error);
        return 2;
    }
    tandem_runtime *runtime = NULL;
    const char *table = request->oracle ? request->table : "";
    if (table != NULL && strcmp(table, "none") == 0) {
        table = "";
    }
    if (tnd_cmd_open_runtime(table, (int)request->threads, request->profile, request->device,
                             &runtime, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    int n_threads = tandem_runtime_threads(runtime);
    struct tnd_runtime_rooms rooms;
    tnd_runtime_rooms(runtime, &rooms);
    int result = request->oracle ? test_oracle(request, runtime, types, n_types, n_threads)
                                 : test_results(request, &rooms, types, n_types, n_threads);
    tandem_runtime_close(runtime);
    return result;
}

int tnd_cmd_test(int argc, char **argv)
{
    struct request request = {0};
    const struct args_option options[] = {
        {"oracle", ARGS_FLAG, &request.oracle, 0, 0, NULL,
         "compare the plan's choices with every other way of computing"},
        {"shapes", ARGS_STRING, &request.shapes, 0, 0, "NxK,..",
         "with -oracle: weight shapes, or a model (default: four that bench never measures)"},
        {"m", ARGS_INTS, &request.m, 1, 65536, "M,..", "with -oracle: numbers of tokens"},
        {"type", ARGS_STRING, &request.types, 0, 0, "T[,T]",
         "weight types, or all (default: all; with -oracle q4_0)"},
        {"threads", ARGS_INT, &request.threads, 1, 1024, "N", "most threads (default: one a core)"},
        {"profile", ARGS_STRING, &request.profile, 0, 0, "NAME",
         "only this profile; with -oracle: judge it as if it were the choice"},
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"table", ARGS_STRING, &request.table, 0, 0, "FILE",
         "with -oracle: judge this table, or none (default: this machine's own)"},
        {"rounds", ARGS_INT, &request.rounds, 1, 64, "N",
         "with -oracle: alternating rounds (default: 7)"},
        {"cell_time", ARGS_NUMBER, &request.cell_s, 0.01, 600, "SECONDS",
         "with -oracle: time for one problem in all ways (default: 2)"},
        {"max_median", ARGS_NUMBER, &request.max_median, 0, 1000, "PERCENT",
         "with -oracle: fail when the median regret is above (default: no bound)"},
        {"max_worst", ARGS_NUMBER, &request.max_worst, 0, 1000, "PERCENT",
         "with -oracle: fail when the worst regret is above (default: no bound)"},
        {"json", ARGS_FLAG, &request.json, 0, 0, NULL, "with -oracle: one JSON object"},
    };
    const struct args_command command = {"test",
                                         "",
                                         "Checks that every profile computes the right thing on "
                                         "this machine. With -oracle, measures how\n"
                                         "much slower the plan's choices are than the best ones.",
                                         options,
                                         sizeof(options) / sizeof(options[0]),
                                         0,
                                         0};
    int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    return run(&request);
}
