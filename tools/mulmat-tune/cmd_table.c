/* SPDX-License-Identifier: MIT
 * mulmat-tune table: files of tables. Each action is a function in the list below; those that write
 * hold the lock of the file. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tnd_status.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/mulmat-tune/table_show.h"
#include "base/emit.h"
#include "table/records.h"
#include "table/table_filter.h"
#include "tools/report/table_health.h"

enum { MAX_FILES = 64 };

/* The fingerprint of this machine with its libraries and devices, for which backends must be
 * open. */
static enum tandem_status read_machine(struct tnd_fingerprint *out, struct tandem_error *error)
{
    tandem_runtime *runtime = NULL;
    struct tnd_runtime_parts parts;
    TND_TRY(tnd_cmd_open_runtime("", 1, NULL, NULL, &runtime, error));
    tnd_runtime_parts(runtime, &parts);
    tnd_fingerprint_read_all(parts.registry, out);
    tandem_runtime_close(runtime);
    return TANDEM_OK;
}

static int print(struct tnd_text *text)
{
    struct tandem_error error = {0};
    enum tandem_status status = tnd_emit_end(text, tnd_cmd_write, stdout, "table", &error);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}

static enum tandem_table_format format_of(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".txt") == 0 ? TANDEM_TABLE_TEXT : TANDEM_TABLE_JSON;
}

/* ---- list ---- */

static enum tandem_status list(struct tnd_text *out, struct tandem_error *error)
{
    struct tnd_fingerprint machine;
    struct tnd_layers *layers = NULL;
    tandem_table *table = NULL;
    TND_TRY(read_machine(&machine, error));
    TND_TRY(tnd_layers_find(NULL, &layers, error));
    if (tnd_layers_load(layers, &machine, &table, NULL) == TANDEM_OK) {
        tandem_table_free(table);
    }
    tnd_show_layers(out, layers);
    if (layers->n == 0) {
        tnd_text_add(out, "no table is wanted: TANDEM_TABLE=none\n");
    }
    tnd_free(layers);
    return TANDEM_OK;
}

static int cmd_list(int argc, char **argv)
{
    const struct args_command command = {
        "table list",
        "",
        "Lists the tables that serve on this machine, the lowest layer first: the system's, those "
        "which\nwere measured before the machine changed, this machine's own.",
        NULL,
        0,
        0,
        0};
    int result = args_parse(&command, argc, argv, NULL, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    struct tnd_text text = TND_TEXT_INIT;
    struct tandem_error error = {0};
    if (list(&text, &error) != TANDEM_OK) {
        tnd_text_fini(&text);
        return tnd_cmd_failed(&error);
    }
    return print(&text);
}

/* ---- show ---- */

/* Loads the file, or all layers that are used on this machine. */
static enum tandem_status load_shown(const char *path, tandem_table **out_table,
                                     struct tandem_error *error)
{
    struct tnd_fingerprint machine;
    struct tnd_layers *layers = NULL;
    if (path != NULL) {
        return tandem_table_load(path, out_table, error);
    }
    TND_TRY(read_machine(&machine, error));
    TND_TRY(tnd_layers_find(NULL, &layers, error));
    enum tandem_status status = tnd_layers_load(layers, &machine, out_table, error);
    tnd_free(layers);
    return status;
}

static int cmd_show(int argc, char **argv)
{
    bool json = false;
    const struct args_option options[] = {
        {"json", ARGS_FLAG, &json, 0, 0, NULL, "the table as JSON, version 2"},
    };
    const struct args_command command = {
        "table show",
        "[FILE]",
        "Prints what a table knows: its machine, profiles, and for each type, backend and task the "
        "shapes,\nM and thread counts. FILE: a table (default: all layers that serve here, one "
        "over the other).",
        options,
        1,
        0,
        1};
    const char *path = NULL;
    int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    struct tandem_error error = {0};
    tandem_table *table = NULL;
    if (load_shown(path, &table, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    struct tnd_text text = TND_TEXT_INIT;
    if (json) {
        enum tandem_status status =
            tandem_table_print(table, TANDEM_TABLE_JSON, tnd_cmd_write, stdout, &error);
        result = status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
    } else {
        tnd_show_table(&text, table);
        result = print(&text);
    }
    tandem_table_free(table);
    return result;
}

/* ---- merge ---- */

/* Adds all files to the contents of OUT; call under its lock. */
static enum tandem_status merge_into(const char *out, const char *const *files, int n,
                                     int64_t *out_cells, struct tandem_error *error)
{
    tandem_table *sum = NULL;
    enum tandem_status status = TANDEM_OK;
    if (tnd_file_exists(out)) {
        TND_TRY(tandem_table_load(out, &sum, error));
    }
    for (int i = 0; i < n && status == TANDEM_OK; i++) {
        tandem_table *table = NULL;
        status = tandem_table_load(files[i], &table, error);
        if (status == TANDEM_OK && sum == NULL) {
            sum = table;
            continue;
        }
        if (status == TANDEM_OK) {
            status = tandem_table_merge(sum, table, error);
        }
        tandem_table_free(table);
    }
    if (status == TANDEM_OK) {
        *out_cells = tnd_table_count_cells(sum);
        tnd_cmd_tell_shared(sum, format_of(out));
        status = tandem_table_save(sum, out, format_of(out), error);
    }
    tandem_table_free(sum);
    return status;
}

static int cmd_merge(int argc, char **argv)
{
    const struct args_command command = {
        "table merge",
        "OUT FILE..",
        "Adds the tables FILE to the table OUT, which is made where it does not exist. Of two "
        "samples of\none cell the one with more measurements stays, then the newer one. Tables of "
        "different machines\nare refused. OUT is replaced in one step; other processes that add to "
        "it wait. A name that ends\nwith .txt gets text version 1, any other JSON version 2.",
        NULL,
        0,
        2,
        MAX_FILES};
    const char *paths[MAX_FILES] = {NULL};
    int n = 0;
    int result = args_parse(&command, argc, argv, paths, &n);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    struct tandem_error error = {0};
    int64_t n_cells = 0;
    int lock;
    enum tandem_status status = tnd_file_make_folders(paths[0], &error);
    if (status == TANDEM_OK &&
        (status = tnd_file_lock(paths[0], TND_LOCK_WAIT_MS, &lock, &error)) == TANDEM_OK) {
        status = merge_into(paths[0], paths + 1, n - 1, &n_cells, &error);
        tnd_file_unlock(lock);
    }
    if (status != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    printf("%s: %" PRId64 " cells\n", paths[0], n_cells);
    return 0;
}

/* ---- check ---- */

/* Whether the whole table is valid on this machine, and no profile in it is wrong. */
static bool check_file(struct tnd_text *out, const char *path,
                       const struct tnd_fingerprint *machine)
{
    tandem_table *table = NULL;
    struct tandem_error error = {0};
    struct tnd_invalid_report report;
    if (tandem_table_load(path, &table, &error) != TANDEM_OK) {
        const bool is_named = strncmp(error.text, path, strlen(path)) == 0;
        tnd_text_printf(out, "%s%s%s\n", is_named ? "" : path, is_named ? "" : ": ", error.text);
        return false;
    }
    int64_t n_cells = tnd_table_count_cells(table);
    tnd_table_invalidate(table, machine, &report);
    tnd_text_printf(out, "%s: %" PRId64 " of %" PRId64 " cells serve on this machine%s\n", path,
                    n_cells - report.n_cells, n_cells,
                    table->has_fingerprint ? "" : " (the file does not say where it comes from)");
    tnd_show_invalid(out, &report);
    struct tnd_health health;
    tnd_table_health(table, &health, out);
    tandem_table_free(table);
    return report.n_cells == 0 && health.n_wrong == 0;
}

static int cmd_check(int argc, char **argv)
{
    const struct args_command command = {
        "table check",
        "[FILE..]",
        "Reads tables as a program would and tells what of them serves on this machine, and which "
        "change\nof the machine invalidates the rest; then what of it is noisy, stale (found wrong "
        "while "
        "programs ran),\nwrong or missing. FILE: tables (default: this machine's own). Exit status "
        "1 when a table cannot be\nread, some of it is invalid, or a profile computes wrong "
        "results.",
        NULL,
        0,
        0,
        MAX_FILES};
    const char *paths[MAX_FILES] = {NULL};
    int n = 0;
    int result = args_parse(&command, argc, argv, paths, &n);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    char own[TND_LAYER_PATH_MAX];
    struct tandem_error error = {0};
    struct tnd_fingerprint machine;
    if (n == 0) {
        if (tandem_table_default_path(own, sizeof(own), &error) != TANDEM_OK) {
            return tnd_cmd_failed(&error);
        }
        paths[n++] = own;
    }
    if (read_machine(&machine, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    struct tnd_text text = TND_TEXT_INIT;
    bool is_good = true;
    for (int i = 0; i < n; i++) {
        is_good = check_file(&text, paths[i], &machine) && is_good;
    }
    result = print(&text);
    return result != 0 ? result : !is_good;
}

/* ---- prune ---- */

/* What to remove: cells that meet all given conditions. */
struct pruning {
    int type;            /* -1: any */
    const char *backend; /* NULL: any */
    int64_t before;      /* measured before this; 0: any time */
    bool has_condition;  /* else only invalid cells are removed */
};

/* Works on the facts of any kind of record; a record without a type or backend does not meet a
 * condition on it. */
static bool keep(void *user, enum tnd_record which, const void *record,
                 const struct tnd_sample *sample)
{
    const struct pruning *pruning = user;
    const struct tnd_record_kind *kind = &tnd_record_kinds[which];
    bool is_type = pruning->type < 0;
    bool is_backend = pruning->backend == NULL;
    int64_t when = sample != NULL ? sample->when : 0;
    for (int i = 0; i < kind->n_facts; i++) {
        const struct tnd_fact *fact = &kind->facts[i];
        if (fact->kind == TND_FACT_TYPE) {
            is_type = is_type || tnd_fact_whole(fact, record) == pruning->type;
        } else if (fact->kind == TND_FACT_BACKEND || fact->kind == TND_FACT_DEVICE) {
            const char *name = tnd_fact_text(fact, record);
            is_backend =
                is_backend || strcmp(name[0] != '\0' ? name : "cpu", pruning->backend) == 0;
        } else if (fact->kind == TND_FACT_WHEN) {
            when = tnd_fact_whole(fact, record);
        }
    }
    bool is_old = pruning->before == 0 || when < pruning->before;
    return !(kind->kept == 0 && is_type && is_backend && is_old);
}

static enum tandem_status prune_file(const char *path, struct pruning *pruning,
                                     struct tnd_text *out, struct tandem_error *error)
{
    struct tnd_fingerprint machine;
    struct tnd_invalid_report report = {0};
    tandem_table *table = NULL;
    if (!pruning->has_condition) {
        TND_TRY(read_machine(&machine, error));
    }
    TND_TRY(tandem_table_load(path, &table, error));
    int64_t before = tnd_table_count_cells(table);
    if (pruning->has_condition) {
        tnd_table_remove(table, keep, pruning);
    } else {
        tnd_table_invalidate(table, &machine, &report);
    }
    int64_t after = tnd_table_count_cells(table);
    enum tandem_status status =
        after == before ? TANDEM_OK : tandem_table_save(table, path, format_of(path), error);
    if (status == TANDEM_OK) {
        tnd_text_printf(out, "%s: %" PRId64 " of %" PRId64 " cells removed\n", path, before - after,
                        before);
        tnd_show_invalid(out, &report);
    }
    tandem_table_free(table);
    return status;
}

static int cmd_prune(int argc, char **argv)
{
    const char *type_name = NULL;
    int64_t days = 0;
    struct pruning pruning = {-1, NULL, 0, false};
    const struct args_option options[] = {
        {"type", ARGS_STRING, &type_name, 0, 0, "T", "cells of this weight type"},
        {"backend", ARGS_STRING, &pruning.backend, 0, 0, "NAME", "cells of this backend"},
        {"older-than", ARGS_INT, &days, 1, 36500, "DAYS", "cells measured longer ago"},
    };
    const struct args_command command = {
        "table prune",
        "[FILE]",
        "Removes cells from a table: without options those that are invalid on this machine, else "
        "those for\nwhich every option holds. FILE: a table (default: this machine's own).",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        1};
    const char *path = NULL;
    char own[TND_LAYER_PATH_MAX];
    struct tandem_error error = {0};
    int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    enum tandem_type type;
    if (type_name != NULL && !tandem_type_from_name(type_name, &type)) {
        fprintf(stderr, "mulmat-tune table prune: '%s' is no weight type\n", type_name);
        return 2;
    }
    pruning.type = type_name != NULL ? (int)type : -1;
    pruning.before = days > 0 ? (int64_t)time(NULL) - days * 86400 : 0;
    pruning.has_condition = type_name != NULL || pruning.backend != NULL || days > 0;
    if (path == NULL) {
        if (tandem_table_default_path(own, sizeof(own), &error) != TANDEM_OK) {
            return tnd_cmd_failed(&error);
        }
        path = own;
    }
    struct tnd_text text = TND_TEXT_INIT;
    int lock;
    enum tandem_status status = tnd_file_lock(path, TND_LOCK_WAIT_MS, &lock, &error);
    if (status == TANDEM_OK) {
        status = prune_file(path, &pruning, &text, &error);
        tnd_file_unlock(lock);
    }
    if (status != TANDEM_OK) {
        tnd_text_fini(&text);
        return tnd_cmd_failed(&error);
    }
    return print(&text);
}

/* ---- the command ---- */

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} actions[] = {
    {"list", cmd_list, "which tables serve on this machine, and where they lie"},
    {"show", cmd_show, "what a table knows"},
    {"merge", cmd_merge, "add tables to a table"},
    {"check", cmd_check, "what of a table serves on this machine, and what is to be distrusted"},
    {"prune", cmd_prune, "remove cells that are invalid, old, or of one type or backend"},
};
enum { N_ACTIONS = sizeof(actions) / sizeof(actions[0]) };

static void print_usage(FILE *out)
{
    fprintf(out, "usage: mulmat-tune table ACTION [options]\n\n");
    for (int i = 0; i < N_ACTIONS; i++) {
        fprintf(out, "  %-10s %s\n", actions[i].name, actions[i].what);
    }
    fprintf(out, "\n'mulmat-tune table ACTION --help' lists the options of an action.\n");
}

int tnd_cmd_table(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (int i = 0; i < N_ACTIONS; i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return actions[i].run(argc - 1, argv + 1);
        }
    }
    bool is_help = strcmp(name, "--help") == 0 || strcmp(name, "-help") == 0 ||
                   strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    if (!is_help && name[0] != '\0') {
        fprintf(stderr, "mulmat-tune table: unknown action '%s'\n", name);
    }
    print_usage(is_help ? stdout : stderr);
    return is_help ? 0 : 2;
}
