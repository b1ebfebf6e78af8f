/* SPDX-License-Identifier: MIT
 * mulmat-tune test: checks that every profile computes correct results on this machine. Its other
 * parts: test_oracle.c, test_interpolation.c, test_extrapolation.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "tools/device_option.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/mulmat-tune/test_parts.h"
#include "measure/measure.h"
#include "measure/measure_checks.h"
#include "table/problem.h"
#include "tune/profiles.h"

enum { MAX_TYPES = 16, MOST_TABLES = 16 };

/* ---- results ---- */

struct test_counts {
    int problems;
    int ran, wrong; /* profiles and thread counts */
    int without;    /* profiles without a kernel for a type */
};

/* Runs every profile at every thread count on one problem. */
static enum tandem_status test_problem(const struct tnd_measure_options *measure_options,
                                       enum tandem_type type, int64_t m, const char *only,
                                       int n_threads, struct test_counts *io,
                                       struct tandem_error *error)
{
    enum { N = 288, K = 512 };
    static const struct tnd_measure_effort once = {
        .budget_s = 1e-6, .min_repeats = 1, .max_repeats = 1, .spread_frac = 1};
    struct tnd_measure *measure = NULL;
    float *want = tnd_alloc((size_t)m * N * sizeof(float));
    enum tandem_status status =
        want != NULL ? tnd_measure_open(measure_options, type, N, K, m, &measure, error)
                     : tnd_error_set(error, TANDEM_E_MEMORY, "test", m, 0,
                                     "no memory for %lld rows", (long long)m);
    status = status == TANDEM_OK ? tnd_measure_reference(measure, m, want, error) : status;
    io->problems++;
    for (int p = 0; status == TANDEM_OK && p < tnd_profile_count(measure_options->registry); p++) {
        struct tandem_plan_node choice;
        if ((only != NULL &&
             strcmp(tnd_profile_at(measure_options->registry, p)->name, only) != 0) ||
            !tnd_plan_node_for_profile(measure_options->registry, p, type, n_threads, &choice)) {
            continue;
        }
        struct tnd_measure_result result;
        struct tnd_problem problem = {"mul_mat", type, N, K, m, n_threads, ""};
        char text[TND_PROBLEM_MAX];
        snprintf(problem.profile, sizeof(problem.profile), "%s", choice.profile);
        tnd_problem_print(&problem, text, sizeof(text));
        const enum tandem_status ran = tnd_measure_run(measure, m, &choice, &once, &result, error);
        if (ran == TANDEM_E_UNSUPPORTED_BACKEND) {
            io->without++;
            continue;
        }
        io->ran++;
        if (ran != TANDEM_OK) {
            printf("FAILED %s: %s\n", text, error->text);
            io->wrong++;
            continue;
        }
        double found = tnd_check_error(tnd_measure_output(measure), want, m, N);
        bool right = found <= tnd_check_bound(type);
        printf("%s %-56s error %.2e, allowed %.0e\n", right ? "ok    " : "WRONG ", text, found,
               tnd_check_bound(type));
        io->wrong += right ? 0 : 1;
    }
    tnd_measure_close(measure);
    tnd_free(want);
    return status;
}

static int test_results(const struct test_request *request, const struct tnd_runtime_parts *parts,
                        const enum tandem_type *types, int n_types, int n_threads)
{
    static const int64_t tokens[] = {1, 3, 8, 33};
    struct tnd_measure_options options = tnd_cmd_measure_options(parts);
    options.rotate_bytes = 1; /* nothing is timed, so one copy of the weights is enough */
    struct tandem_error error = {0};
    struct test_counts counts = {0};
    for (int y = 0; y < n_types; y++) {
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
            if (test_problem(&options, types[y], tokens[i], request->profile, n_threads, &counts,
                             &error) != TANDEM_OK) {
                return tnd_cmd_failed(&error);
            }
        }
    }
    printf("%d problems in every way this machine has: %d wrong", counts.problems, counts.wrong);
    if (counts.without > 0) {
        printf("; %d times a way has no kernel for the type", counts.without);
    }
    printf("\n");
    return counts.wrong == 0 && counts.ran > 0 ? 0 : 1;
}

/* ---- command ---- */

static int run(const struct test_request *request)
{
    enum tandem_type types[MAX_TYPES];
    int n_types = 0;
    struct tandem_error error = {0};
    const char *names = request->types != NULL ? request->types : "all";
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
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(runtime, &parts);
    int result = request->net.path != NULL ? test_oracle_net(request, runtime)
                 : request->oracle         ? test_oracle(request, runtime)
                                           : test_results(request, &parts, types, n_types,
                                                          tandem_runtime_threads(runtime));
    tandem_runtime_close(runtime);
    return result;
}

int tnd_cmd_test(int argc, char **argv)
{
    struct test_request request = {.seed = 1,
                                   .max_median = -1,
                                   .max_p95 = 5,
                                   .max_worst = 15,
                                   .max_far = 20,
                                   .min_within = 70,
                                   .max_within = 95};
    request.begin_ns = tnd_clock_real()->now_ns(tnd_clock_real());
    const struct args_option options[] = {
        {"oracle", ARGS_FLAG, &request.oracle, 0, 0, NULL,
         "compare the plan's choices with every other way of computing"},
        {"interpolation", ARGS_FLAG, &request.interpolation, 0, 0, NULL,
         "compare the predictions of TABLE with the times of FULL, a fuller table of the same "
         "machine; fails above 3 % in the median"},
        {"extrapolation", ARGS_FLAG, &request.extrapolation, 0, 0, NULL,
         "leave out the largest and smallest M of tables (default: this machine's own) and predict "
         "them"},
        {"shapes", ARGS_STRING, &request.shapes, 0, 0, "NxK,..",
         "with --oracle: weight shapes, or a model (default: four of the table, four of none)"},
        NET_OPTION_ROWS(&request.net, "with --oracle: the convolutions of an ONNX model"),
        {"m", ARGS_INTS, &request.m, 1, 65536, "M,..",
         "with --oracle: numbers of tokens (default: drawn from 1 to 2048)"},
        {"type|t", ARGS_STRING, &request.types, 0, 0, "T[,T]",
         "weight types, or all (default: all; with --oracle those of the table)"},
        {"threads", ARGS_INT, &request.threads, 1, 1024, "N",
         "most threads (default: one a core; with --oracle drawn up to it)"},
        {"profile", ARGS_STRING, &request.profile, 0, 0, "NAME",
         "only this profile; with --oracle: judge it as if it were the choice"},
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"table", ARGS_STRING, &request.table, 0, 0, "FILE",
         "with --oracle and --extrapolation: judge this table, or none (default: this machine's "
         "own)"},
        {"budget", ARGS_NUMBER, &request.budget_s, 1, 1e6, "SECONDS",
         "with --oracle: as many problems as fit (default: 300 problems)"},
        {"seed", ARGS_INT, &request.seed, 0, 1e15, "N",
         "with --oracle: of what is drawn at random (default: 1)"},
        {"rounds", ARGS_INT, &request.rounds, 1, 64, "N",
         "with --oracle: rounds of the choice against the best (default: 7)"},
        {"cell-time", ARGS_NUMBER, &request.cell_s, 0.01, 600, "SECONDS",
         "with --oracle: time for one problem in all ways (default: 1, or less by the budget)"},
        {"max-median", ARGS_NUMBER, &request.max_median, 0, 1000, "PERCENT",
         "fail when the median regret, or error, is above (default: 2; with --interpolation 3; "
         "with --extrapolation 10, at twice the range)"},
        {"max-far", ARGS_NUMBER, &request.max_far, 0, 1000, "PERCENT",
         "with --extrapolation: the same at four times the range (default: 20)"},
        {"min-within", ARGS_NUMBER, &request.min_within, 0, 100, "PERCENT",
         "with --extrapolation: fail when fewer cells lie within their error bars (default: 70)"},
        {"max-within", ARGS_NUMBER, &request.max_within, 0, 100, "PERCENT",
         "the same when more do, since the bars are too wide then (default: 95)"},
        {"max-p95", ARGS_NUMBER, &request.max_p95, 0, 1000, "PERCENT",
         "with --oracle: fail when the 95th percentile is above (default: 5)"},
        {"max-worst", ARGS_NUMBER, &request.max_worst, 0, 1000, "PERCENT",
         "with --oracle: fail when the worst regret is above (default: 15)"},
        {"json", ARGS_FLAG, &request.json, 0, 0, NULL,
         "with --oracle and --extrapolation: one JSON object"},
    };
    const struct args_command command = {"test",
                                         "[TABLE FULL | TABLE..]",
                                         "Checks that every profile computes the right thing on "
                                         "this machine. With --oracle, measures how\n"
                                         "much slower the plan's choices are than the best ones.",
                                         options,
                                         sizeof(options) / sizeof(options[0]),
                                         0,
                                         MOST_TABLES};
    const char *operands[MOST_TABLES];
    int n_operands = 0;
    int result = args_parse(&command, argc, argv, operands, &n_operands);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    if (!request.extrapolation && n_operands != (request.interpolation ? 2 : 0)) {
        fprintf(stderr, "mulmat-tune test: %s; see 'mulmat-tune test --help'\n",
                request.interpolation ? "--interpolation wants two tables" : "too many words");
        return 2;
    }
    if (request.net.path != NULL && !request.oracle) {
        fprintf(stderr, "mulmat-tune test: --net wants --oracle; see 'mulmat-tune test --help'\n");
        return 2;
    }
    if (request.max_median < 0) {
        request.max_median = request.extrapolation ? 10 : request.interpolation ? 3 : 2;
    }
    if (request.extrapolation) {
        return test_extrapolation(&request, operands, n_operands);
    }
    return request.interpolation ? test_interpolation(&request, operands[0], operands[1])
                                 : run(&request);
}
