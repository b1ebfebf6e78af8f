/* SPDX-License-Identifier: MIT
 * mulmat-tune bench: measures this machine, writes what was asked for, and always updates the
 * machine's own table. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/device_option.h"
#include "tools/mulmat-tune/args.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tune/bench.h"

/* What was asked for on the command line. */
struct request {
    const char *model;
    const char *types;
    int64_t m_step, m_num;
    struct args_ints m;
    struct args_ints threads;
    const char *profile;
    const char *device;
    double budget_s;
    const char *file;
    bool yes;
};

/* Dense where libraries change their kernels with M, then in steps of a half. */
static const int64_t default_m[] = {1,  2,  3,  4,  6,   8,   12,  16,  24,
                                    32, 48, 64, 96, 128, 192, 256, 384, 512};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* ---- progress ---- */

struct display {
    bool is_terminal;
    int last_percent;
};

static bool show_progress(void *user, const struct tnd_bench_progress *progress)
{
    struct display *display = user;
    char problem[TND_PROBLEM_MAX];
    tnd_problem_print(&progress->problem, problem, sizeof(problem));
    int percent = 100 * progress->done / progress->count;
    int left = (int)(progress->left_s + 0.5);
    double spread = progress->total.median_us > 0
                        ? 100 * progress->total.spread_us / progress->total.median_us
                        : 0;
    if (display->is_terminal) {
        fprintf(stderr, "\r\033[K[%3d %%] %s: %.1f us, spread %.1f %%, %d:%02d left", percent,
                problem, progress->total.median_us, spread, left / 60, left % 60);
        if (progress->done == progress->count) {
            fputc('\n', stderr);
        }
    } else if (percent / 5 != display->last_percent / 5 || progress->done == 1) {
        fprintf(stderr, "[%3d %%] %s: %.1f us, spread %.1f %%, %d:%02d left\n", percent, problem,
                progress->total.median_us, spread, left / 60, left % 60);
    }
    display->last_percent = percent;
    return interrupted != 0;
}

/* ---- checking the request ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Whether the file may be written. Asked before measuring, not after. */
static bool may_write(const struct request *request)
{
    if (request->file == NULL || request->yes || access(request->file, F_OK) != 0) {
        return true;
    }
    fprintf(stderr, "%s exists. Overwrite it? [y/N] ", request->file);
    char answer[16] = "";
    if (fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y')) {
        return true;
    }
    fprintf(stderr, "\nmulmat-tune bench: %s is left as it is (-y overwrites without asking)\n",
            request->file);
    return false;
}

static int choose_m(const struct request *request, struct tnd_bench_options *options)
{
    options->n_m = 0;
    if (request->m.n > 0) {
        for (int i = 0; i < request->m.n; i++) {
            if (i > 0 && request->m.values[i] <= request->m.values[i - 1]) {
                fprintf(stderr, "mulmat-tune bench: -m is a list of growing numbers\n");
                return 2;
            }
            options->m[options->n_m++] = request->m.values[i];
        }
    } else if (request->m_step > 0 || request->m_num > 0) {
        int64_t step = request->m_step > 0 ? request->m_step : 8;
        int64_t n = request->m_num > 0 ? request->m_num : 16;
        for (int64_t i = 1; i <= n; i++) {
            options->m[options->n_m++] = i * step;
        }
    } else {
        memcpy(options->m, default_m, sizeof(default_m));
        options->n_m = sizeof(default_m) / sizeof(default_m[0]);
    }
    return 0;
}

static void choose_threads(const struct request *request, int n_cores,
                           struct tnd_bench_options *options)
{
    options->n_thread_counts = 0;
    for (int i = 0; i < request->threads.n && i < TND_MAX_BENCH_THREADS; i++) {
        options->thread_counts[options->n_thread_counts++] = (int)request->threads.values[i];
    }
    for (int threads = 1;
         request->threads.n == 0 && options->n_thread_counts < TND_MAX_BENCH_THREADS;
         threads = 2 * threads < n_cores ? 2 * threads : n_cores) {
        options->thread_counts[options->n_thread_counts++] = threads;
        if (threads >= n_cores) {
            break;
        }
    }
}

/* ---- measuring and keeping ---- */

/* Measuring took its time: trouble with one of the two places must not keep the other from being
 * written. */
static enum tandem_status keep(const tandem_table *table, const struct request *request,
                               struct tandem_error *error)
{
    enum tandem_status status;
    if (request->file == NULL) {
        status = tandem_table_print(table, TANDEM_TABLE_TEXT, tnd_cmd_write, stdout, error);
        if (status == TANDEM_E_TABLE) { /* a device alone, or no times on one thread */
            fprintf(stderr, "nothing for stdout: %s\n", error->text);
            status = TANDEM_OK;
        }
    } else {
        bool json = ends_with(request->file, ".json");
        status = tandem_table_save(table, request->file,
                                   json ? TANDEM_TABLE_JSON : TANDEM_TABLE_TEXT, error);
        if (status == TANDEM_OK) {
            fprintf(stderr, "written: %s (%s)\n", request->file,
                    json ? "JSON version 2" : "text version 1");
        }
    }
    char path[4096];
    struct tandem_error trouble = {0};
    enum tandem_status own = tnd_cmd_update_own_table(table, path, sizeof(path), &trouble);
    if (own == TANDEM_OK) {
        fprintf(stderr, "this machine's own table: %s\n", path);
    } else if (status == TANDEM_OK) {
        *error = trouble;
    }
    return status == TANDEM_OK ? own : status;
}

static enum tandem_status new_table(const struct request *request, const struct tnd_shapes *shapes,
                                    const struct tnd_runtime_rooms *rooms, tandem_table **out_table,
                                    struct tandem_error *error)
{
    enum tandem_status status = tandem_table_new(out_table, error);
    if (status != TANDEM_OK) {
        return status;
    }
    tandem_table *table = *out_table;
    memcpy(table->model, shapes->model, sizeof(table->model));
    table->m_step = request->m.n == 0 && request->m_step > 0 ? request->m_step : 0;
    tnd_fingerprint_read_all(rooms->registry, &table->fingerprint);
    if (table->fingerprint.gpu[0] != '\0') {
        snprintf(table->gpu_name, sizeof(table->gpu_name), "CLBLAST");
        table->gpu_kind = TANDEM_KIND_CLBLAST;
    } else if (table->fingerprint.openblas[0] != '\0') {
        snprintf(table->gpu_name, sizeof(table->gpu_name), "OPENBLAS");
        table->gpu_kind = TANDEM_KIND_OPENBLAS;
    }
    return TANDEM_OK;
}

static int measure(const struct request *request, struct tnd_bench_options *options,
                   const struct tnd_runtime_rooms *rooms)
{
    struct tandem_error error = {0};
    tandem_table *table = NULL;
    if (new_table(request, options->shapes, rooms, &table, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    struct display display = {isatty(STDERR_FILENO) == 1, 0};
    options->progress = show_progress;
    options->user = &display;
    signal(SIGINT, on_interrupt);
    enum tandem_status status = tnd_bench_run(options, table, &error);
    int result = 0;
    if (status == TANDEM_E_CANCELLED) {
        fprintf(stderr, "\nmulmat-tune: %s; they are kept\n", error.text);
        result = 130;
    }
    if (status == TANDEM_OK || (status == TANDEM_E_CANCELLED && table->n_curves > 0)) {
        status = keep(table, request, &error);
    }
    tandem_table_free(table);
    return status == TANDEM_OK || status == TANDEM_E_CANCELLED ? result : tnd_cmd_failed(&error);
}

static int run(const struct request *request)
{
    struct tnd_bench_options options;
    struct tnd_shapes shapes;
    struct tandem_error error = {0};
    memset(&options, 0, sizeof(options));
    if (tnd_shapes_parse(request->model, &shapes, &error) != TANDEM_OK ||
        tnd_cmd_parse_types(request->types, options.types, TND_MAX_BENCH_TYPES, &options.n_types,
                            &error) != TANDEM_OK) {
        tnd_cmd_failed(&error);
        return 2;
    }
    if (request->file != NULL && !ends_with(request->file, ".json") && options.n_types > 1) {
        fprintf(
            stderr,
            "mulmat-tune bench: text version 1 holds one type; write %d types to a .json file\n",
            options.n_types);
        return 2;
    }
    if (choose_m(request, &options) != 0) {
        return 2;
    }
    if (!may_write(request)) {
        return 1;
    }
    tandem_runtime *runtime = NULL;
    int most_threads = 0;
    for (int i = 0; i < request->threads.n; i++) {
        int threads = (int)request->threads.values[i];
        most_threads = threads > most_threads ? threads : most_threads;
    }
    if (tnd_cmd_open_runtime("", most_threads, request->profile, request->device, &runtime,
                             &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    struct tnd_runtime_rooms rooms;
    tnd_runtime_rooms(runtime, &rooms);
    choose_threads(request, tandem_runtime_threads(runtime), &options);
    options.measure = tnd_cmd_measure_options(&rooms);
    options.pool = rooms.pool;
    options.shapes = &shapes;
    options.profile = request->profile;
    options.budget_s = request->budget_s;
    int result = measure(request, &options, &rooms);
    tandem_runtime_close(runtime);
    return result;
}

int tnd_cmd_bench(int argc, char **argv)
{
    struct request request = {.model = "7B", .types = "q4_0"};
    const struct args_option options[] = {
        {"model", ARGS_STRING, &request.model, 0, 0, "M",
         "quick, 1.1B, 3B, 7B, 13B, 30B, 65B, or shapes NxK,NxK (default: 7B)"},
        {"type", ARGS_STRING, &request.types, 0, 0, "T[,T]",
         "weight types, or all (default: q4_0)"},
        {"m_step", ARGS_INT, &request.m_step, 1, 65536, "S",
         "measure M = S, 2 S, .. (default: 8 with -m_num)"},
        {"m_num", ARGS_INT, &request.m_num, 1, TND_MAX_BENCH_M, "C",
         "how many M (default: 16 with -m_step)"},
        {"m", ARGS_INTS, &request.m, 1, 65536, "M[,M..]",
         "measure these M (default: 18 numbers from 1 to 512)"},
        {"threads", ARGS_INTS, &request.threads, 1, 1024, "N[,N..]",
         "thread counts (default: 1, 2, 4, .. up to one a core)"},
        {"profile", ARGS_STRING, &request.profile, 0, 0, "NAME",
         "only this profile (default: all)"},
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"budget", ARGS_NUMBER, &request.budget_s, 1, 1e6, "SECONDS",
         "aim for this long in all (default: what each cell needs)"},
        {"file", ARGS_STRING, &request.file, 0, 0, "F",
         "write there too: F.json JSON version 2, else text version 1 (default: text on stdout)"},
        {"y", ARGS_FLAG, &request.yes, 0, 0, NULL, "overwrite the file without asking"},
    };
    const struct args_command command = {
        "bench",
        "",
        "Measures every profile of this machine and adds the times to the machine's own table, "
        "which\n"
        "programs that use Tandem find by themselves. Keep the machine idle meanwhile.",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        0};
    int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    if (request.m.n > TND_MAX_BENCH_M) {
        fprintf(stderr, "mulmat-tune bench: at most %d numbers in -m\n", TND_MAX_BENCH_M);
        return 2;
    }
    return run(&request);
}
