/* SPDX-License-Identifier: MIT
 * tandem-graph test: runs all cases below a folder; prints text or one JSON object. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/emit.h"
#include "base/file.h"
#include "tools/tandem-graph/graph_cli.h"

#define MAX_DEPTH 16 /* of folders: links may be circular */

struct tests {
    tandem_runtime *runtime;
    const char *top;
    bool is_json;
    int counts[TND_N_CASE_STATUSES];
    struct tnd_text cases; /* as JSON */
};

static const char *const status_names[] = {"passed", "failed", "refused"};

static void tell(struct tests *tests, const char *name, enum tnd_case_status status,
                 const char *reason)
{
    tests->counts[status]++;
    if (!tests->is_json) {
        if (status != TND_CASE_PASSED) {
            printf("%s %s: %s\n", status_names[status], name, reason);
        }
        return;
    }
    tnd_text_add(&tests->cases, tests->cases.n > 0 ? ",\n  {\"name\": " : "  {\"name\": ");
    tnd_emit_json_string(&tests->cases, name);
    tnd_text_printf(&tests->cases, ", \"status\": \"%s\", \"reason\": ", status_names[status]);
    tnd_emit_json_string(&tests->cases, reason);
    tnd_text_add(&tests->cases, "}");
}

/* Path of the folder relative to the top folder. */
static const char *case_name(const struct tests *tests, const char *folder)
{
    const char *name = folder + strlen(tests->top);
    name += *name == '/';
    return *name != '\0' ? name : folder;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void walk(struct tests *tests, const char *folder, int depth)
{
    struct tnd_text path = TND_TEXT_INIT;
    struct dirent **entries = NULL;
    struct stat info;
    tnd_text_printf(&path, "%s/model.onnx", folder);
    if (!path.failed && tnd_file_exists(tnd_text_string(&path))) {
        struct tandem_error reason = {.text = ""};
        const enum tnd_case_status status = tnd_graph_case(folder, tests->runtime, &reason);
        tell(tests, case_name(tests, folder), status, status == TND_CASE_PASSED ? "" : reason.text);
    } else {
        const int n = depth < MAX_DEPTH ? scandir(folder, &entries, is_shown, alphasort) : 0;
        for (int i = 0; i < n; i++) {
            tnd_text_clear(&path);
            tnd_text_printf(&path, "%s/%s", folder, entries[i]->d_name);
            if (!path.failed && stat(tnd_text_string(&path), &info) == 0 && S_ISDIR(info.st_mode)) {
                walk(tests, tnd_text_string(&path), depth + 1);
            }
            free(entries[i]);
        }
        free(entries);
    }
    tnd_text_fini(&path);
}

static int print(struct tests *tests)
{
    const int *counts = tests->counts;
    if (!tests->is_json) {
        printf("%d passed, %d failed, %d refused\n", counts[TND_CASE_PASSED],
               counts[TND_CASE_FAILED], counts[TND_CASE_REFUSED]);
    } else if (tests->cases.failed) {
        fputs("tandem-graph: no memory for the list of cases\n", stderr);
        return 1;
    } else {
        printf("{\"passed\": %d, \"failed\": %d, \"refused\": %d, \"cases\": [\n%s\n]}\n",
               counts[TND_CASE_PASSED], counts[TND_CASE_FAILED], counts[TND_CASE_REFUSED],
               tnd_text_string(&tests->cases));
    }
    return counts[TND_CASE_FAILED] > 0 ? 1 : 0;
}

int tnd_cmd_graph_test(int argc, char **argv)
{
    struct tnd_graph_runtime runtime = {.threads = 0};
    struct tests tests = {.cases = TND_TEXT_INIT};
    const struct args_option options[] = {
        TND_GRAPH_RUNTIME_ROWS(&runtime),
        {"json", ARGS_FLAG, &tests.is_json, 0, 0, NULL, "one object with all cases"},
    };
    const struct args_command command = {
        "test",
        "DIR",
        "Runs each case below a folder: model.onnx, test_data_set_*/input_*.pb, output_*.pb. "
        "Floats\n"
        "may differ by 1e-7 and a thousandth, other values not at all. A case is refused when the\n"
        "model cannot be read or built; the reason names operator, version and node. The exit "
        "code\n"
        "is 1 when a case failed, or when there was none.",
        options,
        (int)(sizeof(options) / sizeof(options[0])),
        1,
        1};
    struct tandem_error error = {.text = ""};
    const int result = args_parse(&command, argc, argv, &tests.top, NULL);
    if (result != ARGS_OK) {
        return args_code(result);
    }
    if (tnd_graph_open_runtime(&runtime, &tests.runtime, &error) != TANDEM_OK) {
        return tnd_graph_fail(&error);
    }
    walk(&tests, tests.top, 0);
    int code = print(&tests);
    if (tests.counts[0] + tests.counts[1] + tests.counts[2] == 0) {
        fprintf(stderr, "tandem-graph: %s: no model.onnx is there, expected cases in folders\n",
                tests.top);
        code = 1;
    }
    tnd_text_fini(&tests.cases);
    tandem_runtime_close(tests.runtime);
    return code;
}
