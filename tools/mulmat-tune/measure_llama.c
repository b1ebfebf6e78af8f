/* SPDX-License-Identifier: MIT
 * The runs of --measure. Each run of llama-bench is a process with a share of the budget; each line
 * of its output (`-o jsonl`) is one result, so results before a timeout are kept. */
#include "tools/mulmat-tune/measure_llama.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/tnd_status.h"
#include "tools/report/llama_bench.h"
#include "tools/run_program.h"
#include "tools/say.h"

enum { MOST_ARGUMENTS = 32, MOST_THREAD_COUNTS = 4 };

struct run {
    const struct measure_llama *measure;
    tandem_table *fresh;
    uint64_t end_ns;
    int n_results;
};

static double seconds_left(const struct run *run)
{
    const uint64_t now = tnd_clock_real()->now_ns(tnd_clock_real());
    return now < run->end_ns ? 1e-9 * (double)(run->end_ns - now) : 0;
}

/* Stores the result of one line. Drops results of another model: they would never be looked up. */
static enum tandem_status keep_line(struct run *run, const char *line, size_t n,
                                    struct tandem_error *error)
{
    const struct tnd_advise_model *model = run->measure->request->model;
    struct tnd_program_time time;
    TND_TRY(tnd_llama_bench_read(line, n, run->measure->when, &time, error));
    if (time.bytes != model->bytes || time.weights != model->weights) {
        return tnd_error_set(error, TANDEM_E_FORMAT, "llama-bench", time.bytes, model->bytes,
                             "llama-bench: it measured a model of %" PRId64 " bytes and %" PRId64
                             " weights, expected %" PRId64 " and %" PRId64,
                             time.bytes, time.weights, model->bytes, model->weights);
    }
    TND_TRY(tnd_record_add(run->fresh, TND_RECORD_PROGRAMS, &time));
    run->n_results++;
    return TANDEM_OK;
}

static enum tandem_status keep_output(struct run *run, const struct tnd_run_result *result,
                                      struct tandem_error *error)
{
    const char *line = tnd_text_string(&result->out);
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        if (line[0] == '{') { /* other lines are not results */
            TND_TRY(keep_line(run, line, (size_t)(end - line), error));
        }
    }
    return TANDEM_OK;
}

static enum tandem_status why_failed(const struct run *run, const struct tnd_run_result *result,
                                     struct tandem_error *error)
{
    const char *program = run->measure->program;
    if (result->is_late) {
        return tnd_error_set(error, TANDEM_E_NOT_FOUND, program, 0, 0,
                             "%.100s: no end within the budget of %.0f s (--budget)", program,
                             run->measure->budget_s);
    }
    return tnd_error_set(error, TANDEM_E_FILE, program, result->code, 0, "%.100s: %s%d%s%.200s",
                         program,
                         result->is_long ? "its output is too long, " : "it ended with status ",
                         result->code, result->said[0] != '\0' ? ": " : "", result->said);
}

/* Options are separated by blanks; `may_fail`: older versions of llama-bench may not know one of
 * them. */
static enum tandem_status run_with(struct run *run, const char *options, bool may_fail,
                                   struct tandem_error *error)
{
    char words[256];
    char program[4096];
    char model[4096];
    char *argv[MOST_ARGUMENTS] = {program, (char[]){"-o"}, (char[]){"jsonl"}, (char[]){"-m"},
                                  model};
    struct tnd_run_result result;
    int n = 5;
    if (seconds_left(run) <= 1) {
        return TANDEM_OK; /* leaves out the last points */
    }
    snprintf(program, sizeof(program), "%s", run->measure->program);
    snprintf(model, sizeof(model), "%s", run->measure->request->model->name);
    snprintf(words, sizeof(words), "%s", options);
    for (char *word = strtok(words, " "); word != NULL && n < MOST_ARGUMENTS - 1;
         word = strtok(NULL, " ")) {
        argv[n++] = word;
    }
    tnd_say("mulmat-tune: llama-bench %s\n", options);
    TND_TRY(tnd_run_program(argv, seconds_left(run), &result, error));
    enum tandem_status status = keep_output(run, &result, error);
    if (status == TANDEM_OK && result.code != 0 && !may_fail) {
        status = why_failed(run, &result, error);
    } else if (status == TANDEM_OK && result.code != 0) {
        fprintf(stderr, "mulmat-tune: llama-bench %s: not measured: %s\n", options,
                result.is_late ? "out of time" : result.said);
    }
    tnd_run_fini(&result);
    return status;
}

/* Lists thread counts, "1,2,4": half of the cores, all cores, all hardware threads. */
static void list_threads(const struct tandem_table *table, char *out, size_t n)
{
    const int cores = table->fingerprint.n_cores > 0 ? table->fingerprint.n_cores : 1;
    const int all = table->fingerprint.n_cpus > cores ? table->fingerprint.n_cpus : cores;
    const int counts[MOST_THREAD_COUNTS] = {cores / 2, cores, all, 0};
    int last = 0;
    out[0] = '\0';
    for (int i = 0; i < MOST_THREAD_COUNTS; i++) {
        if (counts[i] > last) {
            const size_t length = strlen(out);
            snprintf(out + length, n - length, "%s%d", last > 0 ? "," : "", counts[i]);
            last = counts[i];
        }
    }
}

/* The thread counts recommended so far; unchanged if there are none. */
static void name_threads(const struct tnd_advice *advice, char *threads, size_t n)
{
    if (advice->threads > 0 && advice->batch_threads == advice->threads) {
        snprintf(threads, n, "%d", advice->threads);
    } else if (advice->threads > 0 && advice->batch_threads > 0) {
        snprintf(threads, n, "%d,%d", advice->threads, advice->batch_threads);
    }
}

/* The advice that follows from the times so far. */
static void advise(const struct run *run, struct tnd_advice *out)
{
    struct tnd_advise_request request = *run->measure->request;
    request.table = run->fresh;
    tnd_advise(&request, out);
}

/* Options -ngl and -ncmoe as recommended so far. */
static void name_place(const struct tnd_advice *advice, char *out, size_t n)
{
    if (advice->layers > 0 && advice->expert_layers > 0) {
        snprintf(out, n, "-ngl %d -ncmoe %d", advice->layers, advice->expert_layers);
    } else {
        snprintf(out, n, "-ngl %d", advice->layers > 0 ? advice->layers : 0);
    }
}

/* With a device: measures whether it is faster than only the CPU, and whether uploading weights to
 * it pays. */
static enum tandem_status measure_device(struct run *run, const struct tnd_advice *advice,
                                         const char *threads, const char *place,
                                         struct tandem_error *error)
{
    char options[200];
    const bool is_whole =
        advice->layers > run->measure->request->model->n_layers && advice->expert_layers == 0;
    snprintf(options, sizeof(options), "-p 512 -n 32 -r 2 -ub 512 -t %s -ngl 0", threads);
    TND_TRY(run_with(run, options, true, error));
    if (is_whole) {
        return TANDEM_OK;
    }
    snprintf(options, sizeof(options), "-p 512 -n 0 -r 3 -ub 512 -t %s %s -nopo 1", threads, place);
    return run_with(run, options, true, error);
}

static enum tandem_status measure_all(struct run *run, struct tandem_error *error)
{
    struct tnd_advice first;
    struct tnd_advice advice;
    char options[200];
    char threads[64];
    char place[64];
    advise(run, &first);
    name_place(&first, place, sizeof(place));
    list_threads(run->fresh, threads, sizeof(threads));
    snprintf(options, sizeof(options), "-p 512 -n 32 -r 3 -ub 512 -t %s %s", threads, place);
    TND_TRY(run_with(run, options, false, error));
    advise(run, &advice);
    name_threads(&advice, threads, sizeof(threads));
    if (first.layers > 0) {
        TND_TRY(measure_device(run, &first, threads, place, error));
    }
    snprintf(options, sizeof(options), "-p 512 -n 32 -r 3 -ub 512 -t %s %s --repack 0", threads,
             place);
    TND_TRY(run_with(run, options, true, error));
    snprintf(options, sizeof(options), "-p 1024 -n 0 -r 2 -ub 128,512,1024 -t %d %s",
             advice.batch_threads > 0 ? advice.batch_threads : 1, place);
    return run_with(run, options, true, error);
}

enum tandem_status measure_llama(const struct measure_llama *measure, tandem_table *fresh,
                                 struct tandem_error *error)
{
    struct run run = {measure, fresh, 0, 0};
    run.end_ns = tnd_clock_real()->now_ns(tnd_clock_real()) + (uint64_t)(1e9 * measure->budget_s);
    TND_TRY(measure_all(&run, error));
    return run.n_results > 0 ? TANDEM_OK
                             : tnd_error_set(error, TANDEM_E_NOT_FOUND, measure->program, 0, 1,
                                             "%.200s: it printed no result", measure->program);
}
