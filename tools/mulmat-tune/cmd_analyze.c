/* SPDX-License-Identifier: MIT
 * mulmat-tune analyze: prints a report on a table, or writes a page about several. */
#include <stdio.h>

#include "base/file.h"
#include "base/text.h"
#include "tandem/files.h"
#include "tandem/table.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/new_file.h"
#include "tools/report/analyze.h"
#include "tools/report/report_html.h"
#include "tools/report/trace_run.h"

static int collect(void *text, const char *bytes, unsigned long n)
{
    tnd_text_add_bytes(text, bytes, n);
    return ((struct tnd_text *)text)->failed ? 1 : 0;
}

/* Writes the page as a whole or not at all. */
static enum tandem_status write_page(const char *path, const struct tnd_report_source *sources,
                                     int n, const struct tnd_analyze_options *options,
                                     const struct tnd_trace_run *run, struct tandem_error *error)
{
    struct tnd_text page = TND_TEXT_INIT;
    enum tandem_status status = tnd_report_html(sources, n, options, run, collect, &page, error);
    if (status == TANDEM_OK) {
        status = tnd_file_write_atomic(path, page.bytes, page.n, error);
    }
    tnd_text_fini(&page);
    return status;
}

static enum tandem_status read_trace(const char *path, struct tnd_trace_run *out,
                                     struct tandem_error *error)
{
    void *bytes = NULL;
    size_t n = 0;
    TND_TRY(tandem_file_read(path, (size_t)1 << 30, &bytes, &n, error));
    enum tandem_status status = tnd_trace_run_read(bytes, n, path, out, error);
    tandem_file_free(bytes);
    return status;
}

/* The page to write, and the trace that it shows. */
struct wanted_page {
    const char *html;  /* NULL: none */
    const char *trace; /* NULL: none */
    bool replaces;
};

static enum tandem_status report_page(const struct wanted_page *wanted,
                                      const struct tnd_report_source *sources, int n,
                                      const struct tnd_analyze_options *options,
                                      struct tandem_error *error)
{
    struct tnd_trace_run run = {.n = 0};
    TND_TRY(tnd_new_file_check(wanted->html, wanted->replaces, error));
    if (wanted->trace != NULL) {
        TND_TRY(read_trace(wanted->trace, &run, error));
    }
    enum tandem_status status =
        write_page(wanted->html, sources, n, options, wanted->trace != NULL ? &run : NULL, error);
    tnd_trace_run_fini(&run);
    return status;
}

/* Loads the tables, prints or writes the report, frees them. */
static enum tandem_status report(const char **paths, int n, const struct wanted_page *wanted,
                                 const char *objective, struct tnd_analyze_options *options,
                                 struct tandem_error *error)
{
    tandem_table *tables[TND_REPORT_MAX_SOURCES] = {NULL};
    struct tnd_report_source sources[TND_REPORT_MAX_SOURCES];
    enum tandem_status status = TANDEM_OK;
    for (int i = 0; i < n && status == TANDEM_OK; i++) {
        status = tandem_table_load(paths[i], &tables[i], error);
        if (status == TANDEM_OK) {
            status = tnd_cmd_aim(objective, tables[i], error);
        }
        sources[i] = (struct tnd_report_source){tables[i], paths[i]};
    }
    if (status == TANDEM_OK && wanted->html != NULL) {
        status = report_page(wanted, sources, n, options, error);
    } else if (status == TANDEM_OK) {
        options->name = paths[0];
        status = tnd_analyze(tables[0], options, tnd_cmd_write, stdout, error);
    }
    for (int i = 0; i < n; i++) {
        tandem_table_free(tables[i]);
    }
    return status;
}

int tnd_cmd_analyze(int argc, char **argv)
{
    bool json = false;
    bool csv = false;
    const char *type_name = NULL;
    struct wanted_page wanted = {NULL, NULL, false};
    const char *objective = NULL;
    struct args_ints threads = {0};
    const struct args_option options[] = {
        {"threads", ARGS_INTS, &threads, 1, 1024, "N[,N..]",
         "thread counts (default: those that were measured)"},
        {"type|t", ARGS_STRING, &type_name, 0, 0, "T", "only this weight type, such as q4_0"},
        {"json", ARGS_FLAG, &json, 0, 0, NULL, "one JSON object"},
        {"csv", ARGS_FLAG, &csv, 0, 0, NULL, "comma-separated values, one line a profile and M"},
        {"objective", ARGS_STRING, &objective, 0, 0, "O", TND_OBJECTIVE_OPTION_HELP},
        {"html", ARGS_STRING, &wanted.html, 0, 0, "OUT",
         "one page with charts; compares up to 8 FILEs"},
        {"trace", ARGS_STRING, &wanted.trace, 0, 0, "TRACE",
         "with --html: the last run of this file of TANDEM_TRACE, lane by lane, predicted beside "
         "measured"},
        TND_NEW_FILE_OPTION(wanted.replaces),
    };
    const struct args_command command = {
        "analyze",
        "[FILE..]",
        "Prints, for each shape and thread count, the times of every profile, the winner at each M "
        "and\n"
        "where one profile overtakes another. FILE: a timing table (default: this machine's own).",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        TND_REPORT_MAX_SOURCES};
    const char *paths[TND_REPORT_MAX_SOURCES] = {NULL};
    int n_paths = 0;
    int result = args_parse(&command, argc, argv, paths, &n_paths);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    struct tnd_analyze_options analyze = {.type = TANDEM_TYPE_NUMBERS};
    if (type_name != NULL && !tandem_type_from_name(type_name, &analyze.type)) {
        fprintf(stderr, "mulmat-tune analyze: '%s' is no weight type, expected q4_0 and the like\n",
                type_name);
        return 2;
    }
    if (json + csv + (wanted.html != NULL) > 1) {
        fprintf(stderr, "mulmat-tune analyze: choose one of --json, --csv and --html\n");
        return 2;
    }
    if (wanted.trace != NULL && wanted.html == NULL) {
        fprintf(stderr, "mulmat-tune analyze: --trace needs --html OUT\n");
        return 2;
    }
    if (wanted.replaces && wanted.html == NULL) {
        fprintf(stderr, "mulmat-tune analyze: -y needs --html OUT\n");
        return 2;
    }
    if (n_paths > 1 && wanted.html == NULL) {
        fprintf(stderr, "mulmat-tune analyze: several tables need --html OUT\n");
        return 2;
    }
    int counts[ARGS_LIST_MAX];
    for (int i = 0; i < threads.n; i++) {
        counts[i] = (int)threads.values[i];
    }
    analyze.format = json ? TND_ANALYZE_JSON : csv ? TND_ANALYZE_CSV : TND_ANALYZE_TEXT;
    analyze.threads = threads.n > 0 ? counts : NULL;
    analyze.n_threads = threads.n;

    struct tandem_error error = {0};
    char own[4096];
    if (n_paths == 0) {
        if (tandem_table_default_path(own, sizeof(own), &error) != TANDEM_OK) {
            return tnd_cmd_failed(&error);
        }
        paths[n_paths++] = own;
    }
    enum tandem_status status = report(paths, n_paths, &wanted, objective, &analyze, &error);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}
