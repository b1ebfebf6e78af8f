/* SPDX-License-Identifier: MIT
 * mulmat-tune bench: measures this machine, writes the requested file, and always updates the
 * machine's own table. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tnd_status.h"
#include "table/invalidate.h"
#include "table/table_layers.h"
#include "tools/device_option.h"
#include "tools/args.h"
#include "tools/terminal.h"
#include "tools/mulmat-tune/bench_links.h"
#include "tools/mulmat-tune/bench_net.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/model_shapes.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "base/file.h"
#include "measure/bench.h"
#include "measure/quiet.h"
#include "measure/measure_reference.h"
#include "tools/report/links.h"
#include "tools/report/table_health.h"
#include "tools/say.h"
#include "tune/kernel_numbers.h"
#include "tune/policy.h"

/* The command line. */
struct request {
    const char *model;
    const char *types;
    int64_t m_step, m_num;
    struct args_ints m;
    struct args_ints threads;
    const char *profile;
    const char *device;
    const char *effort_name;
    enum tnd_effort effort;
    double budget_s;
    uint64_t begin_ns;  /* start of the command: all of its time counts */
    bool is_by_default; /* the user did not choose budget_s */
    const char *file;
    bool yes;
    struct net_option net;
    bool has_links;
};

/* Seconds of the budget reserved for updating this machine's table: reading, writing, syncing. */
static double saving_s(double budget_s)
{
    double wanted = 0.15 + 0.005 * budget_s;
    return wanted < 0.03 * budget_s ? wanted : 0.03 * budget_s;
}

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted = signal_number;
}

/* ---- progress ---- */

struct display {
    bool is_terminal;
    double shown_s; /* time of the last output */
    double saved_s; /* time of the last save */
    const tandem_table *table;
};

static void clear_line(const struct display *display)
{
    if (display->is_terminal) {
        tnd_terminal_control("\r\033[K");
    }
}

static int columns(void)
{
    struct winsize size = {.ws_col = 0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

/* On a terminal, shows every cell; in a log, prints a line from time to time. */
static bool show_progress(void *user, const struct tnd_bench_progress *progress)
{
    struct display *display = user;
    double spread = progress->total.median_us > 0
                        ? 100 * progress->total.spread_us / progress->total.median_us
                        : 0;
    const double left_s =
        progress->left_s > 0 ? progress->left_s : 0; /* the last cell may overrun */
    double all_s = progress->elapsed_s + left_s;
    bool is_time = progress->trials == 1 || progress->elapsed_s - display->shown_s >= 5 ||
                   progress->elapsed_s - display->shown_s >= 0.05 * all_s;
    if (display->is_terminal || is_time) {
        char problem[TND_PROBLEM_MAX];
        char line[TND_PROBLEM_MAX + 96];
        int left = (int)(left_s + 0.5);
        tnd_problem_print(&progress->problem, problem, sizeof(problem));
        clear_line(display);
        (void)snprintf(line, sizeof(line), "[%3.0f %%] %d:%02d left, %s: %.1f us, spread %.1f %%%s",
                       all_s > 0 ? 100 * progress->elapsed_s / all_s : 0, left / 60, left % 60,
                       problem, progress->total.median_us, spread,
                       spread > 100 * TND_NOISY_FRAC ? " (noisy)" : "");
        /* a line that wraps cannot be erased, so it is truncated */
        tnd_say("%.*s%s", display->is_terminal ? columns() - 1 : (int)sizeof(line), line,
                display->is_terminal ? "" : "\n");
        display->shown_s = progress->elapsed_s;
    }
    if (progress->elapsed_s - display->saved_s >= TND_BENCH_SAVE_S) {
        char path[4096];
        /* a killed run loses at most five seconds; errors are reported at the end */
        (void)tnd_cmd_update_own_table(display->table, path, sizeof(path), NULL);
        display->saved_s = progress->elapsed_s;
    }
    return interrupted != 0;
}

static bool was_interrupted(void *user)
{
    (void)user;
    return interrupted != 0;
}

/* Prints the outcome of the run in a line or two. */
static void show_summary(const struct display *display, const struct request *request,
                         const struct tnd_bench_summary *summary)
{
    clear_line(display);
    tnd_say("%d cells in %d visits, %.1f s", summary->cells, summary->trials, summary->elapsed_s);
    if (request->budget_s > 0) {
        tnd_say(" of %.1f s%s", request->budget_s,
                summary->is_certain ? " (no cell is left that is worth more time)" : "");
        if (summary->elapsed_s > request->budget_s && 2 * summary->prepared_s > request->budget_s) {
            tnd_say(
                ", %.1f s before the first cell (checks, and kernels that devices compile once)",
                summary->prepared_s);
        }
    }
    if (summary->cells > 0) {
        tnd_say("; median uncertainty %.1f %%", 100 * summary->median_uncertainty);
    }
    tnd_say("\n");
    if (summary->unmeasured > 0) {
        tnd_say("the time was too short for %d cells of the first grid; %d of %d combinations of "
                "shape, profile and threads have no measurement\n",
                summary->unmeasured, summary->unknown, summary->lines);
    }
}

/* Warns about unreliable times. */
static void show_trust(const tandem_table *table)
{
    struct tnd_health health;
    tnd_table_health(table, &health, NULL);
    if (health.n_noisy > 0) {
        tnd_say("%lld of %lld times are noisy (spread above %.0f %% of the median)\n",
                (long long)health.n_noisy, (long long)health.n_samples, 100 * TND_NOISY_FRAC);
    }
    for (int i = 0; i < table->n_checks; i++) {
        const struct tnd_check *check = &table->checks[i];
        if (check->nmse > check->bound) {
            fprintf(stderr,
                    "WRONG: %s with %s weights, M %lld: error %.2g, allowed %.0e; it is not "
                    "chosen\n",
                    check->profile, tandem_type_name(check->type), (long long)check->m, check->nmse,
                    check->bound);
        }
    }
    char text[160];
    if (table->n_sweeps > 0 && tnd_sweep_state_text(&table->sweeps[0], text, sizeof(text))) {
        tnd_say("%s\n", text);
    }
}

/* ---- checking the request ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    size_t n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Files are written beside the old one and renamed, so the folder must be writable. */
static bool can_write(const char *path, struct tandem_error *why)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    struct stat info;
    (void)snprintf(folder, sizeof(folder), "%.*s", slash == NULL ? 1 : (int)(slash - path + 1),
                   slash == NULL ? "." : path);
    if (access(folder, W_OK | X_OK) != 0) {
        tnd_error_set(why, TANDEM_E_FILE, path, errno, 0, "%s cannot be written: %s: %s", path,
                      folder, strerror(errno));
        return false;
    }
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        tnd_error_set(why, TANDEM_E_FILE, path, 0, 0, "%s cannot be written: it is a folder", path);
        return false;
    }
    return true;
}

/* Whether this machine's own table can be written; if not, `why` has the reason. */
static bool has_own_place(struct tandem_error *why)
{
    char own[4096];
    return tnd_table_own_path(own, sizeof(own), why) == TANDEM_OK &&
           tnd_file_make_folders(own, why) == TANDEM_OK && can_write(own, why);
}

/* Whether the files can be written: checked before measuring, not after. */
static bool may_write(const struct request *request)
{
    struct tandem_error why = {0};
    if (!has_own_place(&why) && request->file == NULL) {
        fprintf(stderr, "mulmat-tune bench: %s; --file writes elsewhere\n", why.text);
        return false;
    }
    if (why.status != TANDEM_OK) {
        tnd_say("mulmat-tune bench: %s: only %s will be written\n", why.text, request->file);
    }
    if (request->file != NULL && !can_write(request->file, &why)) {
        fprintf(stderr, "mulmat-tune bench: %s\n", why.text);
        return false;
    }
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
    }
    return 0; /* 0: the default of the effort */
}

static void choose_threads(const struct request *request, int n_cores, int n_fast,
                           struct tnd_bench_options *options)
{
    options->n_thread_counts = 0;
    for (int i = 0; i < request->threads.n && i < TND_MAX_BENCH_THREADS; i++) {
        options->thread_counts[options->n_thread_counts++] = (int)request->threads.values[i];
    }
    if (request->threads.n == 0) {
        options->n_thread_counts = tnd_bench_thread_counts(n_cores, n_fast, options->thread_counts);
    }
}

/* ---- measuring and keeping ---- */

/* Measuring took long: if one of the two files cannot be written, the other one still is. */
static enum tandem_status keep(const tandem_table *table, const struct request *request,
                               struct tandem_error *error)
{
    enum tandem_status status;
    if (request->file == NULL && (request->net.path != NULL || request->has_links)) {
        status = TANDEM_OK; /* (the text format has no convolutions and no links) */
    } else if (request->file == NULL) {
        status = tandem_table_print(table, TANDEM_TABLE_TEXT, tnd_cmd_write, stdout, error);
        if (status == TANDEM_OK) {
            tnd_cmd_tell_shared(table, TANDEM_TABLE_TEXT);
        } else if (status == TANDEM_E_TABLE) { /* only a device, or no one-thread times */
            tnd_say("nothing is printed: %s\n", error->text);
            status = TANDEM_OK;
        }
    } else {
        bool json = ends_with(request->file, ".json");
        struct tandem_error note;
        status = tnd_table_replace_file(request->file, table,
                                        json ? TANDEM_TABLE_JSON : TANDEM_TABLE_TEXT, &note, error);
        if (status == TANDEM_OK) {
            tnd_cmd_show_note(&note);
            tnd_cmd_tell_shared(table, json ? TANDEM_TABLE_JSON : TANDEM_TABLE_TEXT);
            tnd_say("written: %s (%s)\n", request->file,
                    json ? "JSON version 2" : "text version 1");
        }
    }
    char path[4096];
    struct tandem_error trouble = {0};
    if (request->file != NULL && !has_own_place(&trouble)) {
        return status; /* already reported */
    }
    enum tandem_status own = tnd_cmd_update_own_table(table, path, sizeof(path), &trouble);
    if (own == TANDEM_OK) {
        tnd_say("this machine's own table: %s\n", path);
    } else if (status == TANDEM_OK) {
        *error = trouble;
    }
    return status == TANDEM_OK ? own : status;
}

/* Names the one backend that the text format has beside the CPU. */
static void name_accelerator(tandem_table *table, const struct tnd_registry *registry)
{
    for (int slot = 1; slot < tnd_registry_count(registry); slot++) {
        enum tandem_backend_kind kind = tnd_backend_kind(tnd_registry_backend(registry, slot));
        if (kind == TANDEM_KIND_OPENCL) {
            snprintf(table->gpu_name, sizeof(table->gpu_name), "CLBLAST");
            table->gpu_kind = TANDEM_KIND_CLBLAST;
        } else if (kind == TANDEM_KIND_OPENBLAS && table->gpu_kind == 0) {
            snprintf(table->gpu_name, sizeof(table->gpu_name), "OPENBLAS");
            table->gpu_kind = TANDEM_KIND_OPENBLAS;
        }
    }
}

static enum tandem_status new_table(const struct request *request, const struct tnd_shapes *shapes,
                                    const struct tnd_runtime_parts *parts, tandem_table **out_table,
                                    struct tandem_error *error)
{
    enum tandem_status status = tandem_table_new(out_table, error);
    if (status != TANDEM_OK) {
        return status;
    }
    tandem_table *table = *out_table;
    memcpy(table->model, shapes->model, sizeof(table->model));
    table->m_step = request->m.n == 0 && request->m_step > 0 ? request->m_step : 0;
    tnd_fingerprint_read_all(parts->registry, &table->fingerprint);
    name_accelerator(table, parts->registry);
    return TANDEM_OK;
}

/* The valid part of this machine's own table: its stale cells are measured first, and an
 * interrupted run continues; NULL: there is none. Fails when the new times could not be added to
 * the table. */
static enum tandem_status load_known(const struct tnd_fingerprint *machine,
                                     tandem_table **out_known, struct tandem_error *error)
{
    char path[4096];
    struct tandem_error why = {0};
    enum tandem_status status = tnd_table_own_path(path, sizeof(path), &why);
    if (status == TANDEM_OK) {
        status = tandem_table_load(path, out_known, &why);
    }
    if (status == TANDEM_OK) {
        struct tnd_invalid_report report;
        tnd_table_invalidate(*out_known, machine, &report);
    }
    if (status == TANDEM_E_FILE && why.got != ENOENT) {
        return tnd_error_set(error, why.status, path, why.got, 0,
                             "%.180s; nothing is measured, since it could not be kept", why.text);
    }
    return TANDEM_OK;
}

static void catch_signals(void) /* an interrupted run keeps what it measured */
{
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    signal(SIGHUP, on_interrupt);
}

/* Waits for other programs to become idle, for part of the budget, and names them. */
static void wait_for_quiet(const struct tnd_bench_options *options)
{
    const struct tnd_clock *clock = options->measure.clock;
    const uint64_t begin_ns = clock->now_ns(clock);
    const double most_s = options->budget_s > 0 ? TND_BENCH_QUIET_SHARE * options->budget_s
                          : options->effort == TND_EFFORT_ESTIMATE
                              ? TND_BENCH_QUIET_SHARE * TND_BENCH_ESTIMATE_S
                              : TND_BENCH_QUIET_SHARE * TND_BENCH_DEFAULT_S;
    const int n_threads = options->thread_counts[options->n_thread_counts - 1];
    const int n_cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct tnd_disturbance found;
    char text[160];
    double waited_s = 0;
    for (bool is_first = true;; is_first = false) {
        tnd_quiet_look("/proc", TND_BENCH_LOOK_S, &found);
        waited_s = (double)(clock->now_ns(clock) - begin_ns) / 1e9;
        const bool is_quiet = tnd_is_quiet(&found, n_threads, n_cpus);
        tnd_quiet_print(&found, text, sizeof(text));
        if (is_quiet || interrupted != 0 || waited_s + TND_BENCH_LOOK_S > most_s) {
            if (!is_quiet) {
                tnd_say("mulmat-tune: after %.1f s %s: measured all the same\n", waited_s, text);
            } else if (!is_first) {
                tnd_say("mulmat-tune: quiet after %.1f s\n", waited_s);
            }
            return;
        }
        if (is_first) {
            tnd_say("mulmat-tune: %s; waiting up to %.0f s\n", text, most_s);
        }
    }
}

static int measure(const struct request *request, struct tnd_bench_options *options,
                   const struct tnd_runtime_parts *parts)
{
    struct tandem_error error = {0};
    tandem_table *table = NULL;
    if (new_table(request, options->shapes, parts, &table, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    struct display display = {tnd_say_level > TND_SAY_QUIET && isatty(STDERR_FILENO) == 1, 0, 0,
                              table};
    struct tnd_bench_summary summary;
    options->progress = show_progress;
    options->is_stopped = was_interrupted;
    options->user = &display;
    catch_signals();
    tandem_table *known = NULL;
    if (load_known(&table->fingerprint, &known, &error) != TANDEM_OK) {
        tandem_table_free(table);
        return tnd_cmd_failed(&error);
    }
    options->known = known;
    tnd_kernel_numbers_use(known, parts->registry, parts->log); /* as programs will use them */
    wait_for_quiet(options);
    enum tandem_status status = tnd_bench_run(options, table, &summary, &error);
    tandem_table_free(known);
    int result = 0;
    if (status == TANDEM_OK || status == TANDEM_E_CANCELLED) {
        show_summary(&display, request, &summary);
        show_trust(table);
    }
    if (status == TANDEM_E_CANCELLED) {
        fprintf(stderr, "mulmat-tune: %s; they are kept\n", error.text);
        result = 128 + (int)interrupted;
    }
    if (status == TANDEM_OK && summary.cells == 0 && summary.lines > 0 &&
        summary.unknown == summary.lines) {
        fprintf(stderr, "mulmat-tune bench: nothing was measured: no shape fits into the memory or "
                        "the time that there is\n");
        tandem_table_free(table);
        return 1;
    }
    if (status == TANDEM_OK || (status == TANDEM_E_CANCELLED && table->n_curves > 0)) {
        status = keep(table, request, &error);
    }
    tandem_table_free(table);
    return status == TANDEM_OK || status == TANDEM_E_CANCELLED ? result : tnd_cmd_failed(&error);
}

/* Number of types to be measured. */
static int count_types(const struct tnd_bench_options *options, const struct tnd_shapes *shapes)
{
    int n = 0;
    bool seen[TANDEM_TYPE_NUMBERS] = {false};
    for (int s = 0; s < shapes->count; s++) {
        const struct tnd_shape_use *use = &shapes->use[s];
        for (int y = 0; y < (use->is_typed ? 1 : options->n_types); y++) {
            enum tandem_type type = use->is_typed ? use->type : options->types[y];
            n += seen[type] ? 0 : 1;
            seen[type] = true;
        }
    }
    return n;
}

/* NULL, after a note on stderr, when the machine has no energy counters. */
static struct tnd_energy *open_energy(void)
{
    struct tnd_energy *energy = NULL;
    struct tandem_error error = {0};
    if (tnd_energy_open(NULL, &energy, &error) == TANDEM_OK) {
        tnd_say("mulmat-tune: energy of the whole machine by %s\n", tnd_energy_sources(energy));
    } else {
        tnd_say("mulmat-tune: no energy in the table: %s\n", error.text);
    }
    return energy;
}

static int run(const struct request *request)
{
    struct tnd_bench_options options;
    struct tnd_shapes shapes;
    struct tandem_error error = {0};
    memset(&options, 0, sizeof(options));
    if (model_shapes(request->model, request->types == NULL, &shapes, &error) != TANDEM_OK ||
        tnd_cmd_parse_types(request->types != NULL ? request->types : "q4_0", options.types,
                            TND_MAX_BENCH_TYPES, &options.n_types, &error) != TANDEM_OK) {
        tnd_cmd_failed(&error);
        return 2;
    }
    for (int i = 0; i < options.n_types; i++) {
        if (model_shapes_fit(&shapes, options.types[i], &error) != TANDEM_OK) {
            tnd_cmd_failed(&error);
            return 2;
        }
    }
    int n_types = count_types(&options, &shapes);
    if (request->file != NULL && !ends_with(request->file, ".json") && n_types > 1) {
        fprintf(
            stderr,
            "mulmat-tune bench: text version 1 holds one type; write %d types to a .json file\n",
            n_types);
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
    struct tnd_runtime_parts parts;
    tnd_runtime_parts(runtime, &parts);
    choose_threads(request, tandem_runtime_threads(runtime),
                   tnd_topology_fast_cores(parts.topology), &options);
    options.measure = tnd_cmd_measure_options(&parts);
    options.pool = parts.pool;
    options.shapes = &shapes;
    options.profile = request->profile;
    options.effort = request->effort;
    options.budget_s = request->budget_s;
    options.ends_when_certain = request->is_by_default;
    options.reserve_s = saving_s(request->budget_s);
    options.begin_ns = request->begin_ns;
    struct tnd_energy *energy = open_energy();
    options.measure.energy = energy;
    int result = measure(request, &options, &parts);
    tnd_energy_close(energy);
    tandem_runtime_close(runtime);
    return result;
}

/* Default budget for a net, in seconds. */
static double net_budget_s(enum tnd_effort effort)
{
    return effort == TND_EFFORT_ESTIMATE ? 5 : effort == TND_EFFORT_PATIENT ? 120 : 30;
}

/* --net: the times go to the same files. */
static int run_net(const struct request *request)
{
    const struct bench_net_request net = {
        .net = &request->net,
        .threads = request->threads,
        .budget_s = request->budget_s > 0 ? request->budget_s : net_budget_s(request->effort),
        .begin_ns = request->begin_ns,
        .profile = request->profile,
        .device = request->device,
        .interrupted = &interrupted};
    struct tandem_error error = {0};
    tandem_table *table = NULL;
    if (request->file != NULL && !ends_with(request->file, ".json")) {
        fprintf(stderr, "mulmat-tune bench: text version 1 holds no convolutions; write to a .json "
                        "file\n");
        return 2;
    }
    if (!may_write(request)) {
        return 1;
    }
    catch_signals();
    enum tandem_status status = bench_net(&net, &table, &error);
    int result = status == TANDEM_E_CANCELLED ? 128 + (int)interrupted : 0;
    if (status == TANDEM_OK && table == NULL) {
        printf("nothing to measure: no product, and no convolution with several methods\n");
    } else if (status == TANDEM_OK || (status == TANDEM_E_CANCELLED && table != NULL)) {
        status = keep(table, request, &error);
    }
    tandem_table_free(table);
    return status == TANDEM_OK ? result : tnd_cmd_failed(&error);
}

/* --links: rank 0 stores the times. */
static int run_links(const struct request *request)
{
    struct tandem_error error = {0};
    struct tnd_text text = TND_TEXT_INIT;
    tandem_table *table = NULL;
    char end[80], host[48] = "";
    bool is_first = false;
    if (request->file != NULL && !ends_with(request->file, ".json")) {
        fprintf(stderr,
                "mulmat-tune bench: text version 1 holds no links; write to a .json file\n");
        return 2;
    }
    enum tandem_status status = tandem_table_new(&table, &error);
    if (status == TANDEM_OK) {
        tnd_fingerprint_read(&table->fingerprint);
        (void)gethostname(host, sizeof(host) - 1);
        snprintf(end, sizeof(end), "%.47s %016llx", host,
                 (unsigned long long)tnd_fingerprint_hash(&table->fingerprint));
        status = bench_links(end, table, &is_first, &error);
    }
    if (status == TANDEM_OK && is_first) {
        tnd_links_print(&text, table);
        status = may_write(request) ? keep(table, request, &error) : TANDEM_OK;
        printf("%s", text.failed || text.bytes == NULL ? "" : text.bytes);
    }
    tnd_text_fini(&text);
    tandem_table_free(table);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}

int tnd_cmd_bench(int argc, char **argv)
{
    struct request request = {.model = "7B"};
    const char *m = NULL;
    request.begin_ns = tnd_clock_real()->now_ns(tnd_clock_real());
    const struct args_option options[] = {
        {"model", ARGS_STRING, &request.model, 0, 0, "M",
         "quick, 1.1B, 3B, 7B, 13B, 30B, 65B, a model file, or shapes NxK,NxK (default: 7B)"},
        NET_OPTION_ROWS(&request.net,
                        "measure the convolutions of an ONNX model by each method, and its "
                        "products, for 30 s or --budget"),
        {"links", ARGS_FLAG, &request.has_links, 0, 0, NULL,
         "measure the messages between the ranks of mpirun (docs/cluster.md), nothing else"},
        {"type|t", ARGS_STRING, &request.types, 0, 0, "T[,T]",
         "weight types, or all (default: those of the model file, else q4_0)"},
        {"m-step", ARGS_INT, &request.m_step, 1, 65536, "S",
         "measure M = S, 2 S, .. (default: 8 with --m-num)"},
        {"m-num|num_m", ARGS_INT, &request.m_num, 1, TND_MAX_BENCH_M, "C",
         "how many M (default: 16 with --m-step)"},
        {"m", ARGS_STRING, &m, 0, 0, "M[,M..]",
         "measure just these M (default: as the effort says); a name or NxK: the model"},
        {"threads", ARGS_INTS, &request.threads, 1, 1024, "N[,N..]",
         "thread counts (default: 1, 2, 4, .. to one a core; all fast cores)"},
        {"profile", ARGS_STRING, &request.profile, 0, 0, "NAME",
         "only this profile (default: all)"},
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"effort", ARGS_STRING, &request.effort_name, 0, 0, "E",
         "estimate: few cells in 5 s; measure: few M, then where they tell too little; patient: 18 "
         "M from 1 to 512, all twice (default: measure)"},
        {"budget", ARGS_NUMBER, &request.budget_s, 1, 1e6, "SECONDS",
         "end after this long in all, and use it (default: what the effort needs; without "
         "--effort, "
         "-m and --m-step at most 60)"},
        {"file|f", ARGS_STRING, &request.file, 0, 0, "F",
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
    if (m != NULL && !model_or_tokens("bench", m, &request.model, &request.m)) {
        return 2;
    }
    request.is_by_default = request.effort_name == NULL && request.budget_s <= 0 &&
                            request.m.n == 0 && request.m_step == 0 && request.m_num == 0;
    request.budget_s = request.is_by_default ? TND_BENCH_DEFAULT_S : request.budget_s;
    request.effort_name = request.effort_name != NULL ? request.effort_name : "measure";
    if (!tnd_effort_from_name(request.effort_name, &request.effort)) {
        fprintf(stderr, "mulmat-tune bench: effort '%s', expected estimate, measure or patient\n",
                request.effort_name);
        return 2;
    }
    if (request.m.n > TND_MAX_BENCH_M) {
        fprintf(stderr, "mulmat-tune bench: at most %d numbers in -m\n", TND_MAX_BENCH_M);
        return 2;
    }
    return request.has_links          ? run_links(&request)
           : request.net.path != NULL ? run_net(&request)
                                      : run(&request);
}
