/* SPDX-License-Identifier: MIT
 * mulmat-tune analyze: reads a table and prints what it says. */
#include <stdio.h>

#include "tandem/table.h"
#include "tools/mulmat-tune/args.h"
#include "tools/mulmat-tune/commands.h"
#include "tune/analyze.h"

int tnd_cmd_analyze(int argc, char **argv)
{
    bool json = false;
    bool csv = false;
    const char *type_name = NULL;
    struct args_ints threads = {0};
    const struct args_option options[] = {
        {"threads", ARGS_INTS, &threads, 1, 1024, "N[,N..]",
         "thread counts (default: those that were measured)"},
        {"type", ARGS_STRING, &type_name, 0, 0, "T", "only this weight type, such as q4_0"},
        {"json", ARGS_FLAG, &json, 0, 0, NULL, "one JSON object"},
        {"csv", ARGS_FLAG, &csv, 0, 0, NULL, "comma-separated values, one line a profile and M"},
    };
    const struct args_command command = {
        "analyze",
        "[FILE]",
        "Prints, for each shape and thread count, the times of every profile, the winner at each M "
        "and\n"
        "where one profile overtakes another. FILE: a timing table (default: this machine's own).",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        1};
    const char *path = NULL;
    int result = args_parse(&command, argc, argv, &path, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    struct tnd_analyze_options analyze = {.type = TANDEM_TYPE_NUMBERS};
    if (type_name != NULL && !tandem_type_from_name(type_name, &analyze.type)) {
        fprintf(stderr, "mulmat-tune analyze: '%s' is no weight type, expected q4_0 and the like\n",
                type_name);
        return 2;
    }
    if (json && csv) {
        fprintf(stderr, "mulmat-tune analyze: choose one of -json and -csv\n");
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
    if (path == NULL) {
        if (tandem_table_default_path(own, sizeof(own), &error) != TANDEM_OK) {
            return tnd_cmd_failed(&error);
        }
        path = own;
    }
    tandem_table *table = NULL;
    if (tandem_table_load(path, &table, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    analyze.name = path;
    enum tandem_status status = tnd_analyze(table, &analyze, tnd_cmd_write, stdout, &error);
    tandem_table_free(table);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}
