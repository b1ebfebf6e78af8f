/* SPDX-License-Identifier: MIT
 * mulmat-tune advise: a command line for another program, as this machine's table recommends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/emit.h"
#include "base/file.h"
#include "base/tnd_status.h"
#include "tandem/table.h"
#include "table/table_layers.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/measure_llama.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "tools/report/advise.h"
#include "tools/say.h"

enum { MOST_MODELS = 64, MOST_CONTEXT = 1 << 24, DEFAULT_CONTEXT = 4096 };

struct request {
    const char *target;
    const char *table;
    const char *measure;
    double device_gib;
    double budget_s;
    int64_t context;
    bool json;
    const char *models[MOST_MODELS];
    int n_models;
};

struct advising {
    const struct request *request;
    tandem_table *table;
    struct tnd_advise_model *model;
    int n_told;
    struct tnd_text out;
};

/* This machine's own table may be missing; a table named by the user must exist. */
static enum tandem_status open_table(struct advising *a, struct tandem_error *error)
{
    char own[4096];
    const char *path = a->request->table;
    if (path == NULL) {
        TND_TRY(tandem_table_default_path(own, sizeof(own), error));
        if (own[0] == '\0' || !tnd_file_exists(own)) {
            TND_TRY(tandem_table_new(&a->table, error));
            tnd_fingerprint_read(&a->table->fingerprint);
            a->table->has_fingerprint = true;
            tnd_say("mulmat-tune: this machine has no timing table yet; 'mulmat-tune bench "
                    "--model MODEL' makes one\n");
            return TANDEM_OK;
        }
        path = own;
    }
    return tandem_table_load(path, &a->table, error);
}

/* ---- measuring ---- */

static enum tandem_status keep(struct advising *a, const tandem_table *fresh,
                               struct tandem_error *error)
{
    char own[4096];
    struct tandem_error note = {0};
    if (fresh->n_programs == 0) {
        return TANDEM_OK;
    }
    TND_TRY(tandem_table_merge(a->table, fresh, error));
    if (a->request->table == NULL) {
        return tnd_cmd_update_own_table(fresh, own, sizeof(own), error);
    }
    TND_TRY(tnd_table_update_file(a->request->table, fresh, &note, error));
    tnd_cmd_show_note(&note);
    return TANDEM_OK;
}

/* Keeps what was measured before a failure. */
static enum tandem_status measure(struct advising *a, const struct tnd_advise_request *request,
                                  struct tandem_error *error)
{
    tandem_table *fresh = NULL;
    struct tandem_error why = {0};
    const struct measure_llama measure = {a->request->measure, request, a->request->budget_s,
                                          (int64_t)time(NULL)};
    if (!a->table->has_fingerprint) {
        return tnd_error_set(error, TANDEM_E_TABLE, a->request->table, 0, 0,
                             "%.200s: it does not say whose machine it is of, expected a table of "
                             "this machine for --measure",
                             a->request->table != NULL ? a->request->table : "table");
    }
    TND_TRY(tandem_table_new(&fresh, error));
    tnd_fingerprint_read(&fresh->fingerprint);
    fresh->has_fingerprint = true;
    enum tandem_status status =
        tnd_fingerprint_compare(&a->table->fingerprint, &fresh->fingerprint, error);
    if (status == TANDEM_OK) {
        status = measure_llama(&measure, fresh, error);
        const enum tandem_status kept = keep(a, fresh, &why);
        if (status == TANDEM_OK && kept != TANDEM_OK && error != NULL) {
            *error = why;
            status = kept;
        }
    }
    tandem_table_free(fresh);
    return status;
}

/* ---- one model ---- */

static enum tandem_status read_model(struct advising *a, const char *path,
                                     struct tandem_error *error)
{
    tandem_source *source = NULL;
    TND_TRY(tandem_source_open(path, &source, error));
    const enum tandem_status status = tnd_advise_model_read(source, path, a->model, error);
    tandem_source_close(source);
    return status;
}

static int64_t context_of(const struct advising *a)
{
    const int64_t known = a->model->context;
    if (a->request->context > 0) {
        return a->request->context;
    }
    return known > 0 && known < DEFAULT_CONTEXT ? known : DEFAULT_CONTEXT;
}

static enum tandem_status advise_one(struct advising *a, const char *path,
                                     struct tandem_error *error)
{
    struct tnd_advice advice;
    TND_TRY(read_model(a, path, error));
    const struct tnd_advise_request request = {
        a->table, a->model, a->request->device_gib * 1073741824.0, context_of(a)};
    if (a->request->measure != NULL) {
        TND_TRY(measure(a, &request, error));
    }
    tnd_advise(&request, &advice);
    const bool is_first = a->n_told++ == 0;
    if (a->request->json) {
        tnd_text_add(&a->out, is_first ? "" : ",\n ");
        tnd_advise_json(&request, &advice, a->request->n_models > 1 ? " " : "", &a->out);
    } else {
        tnd_text_add(&a->out, is_first ? "" : "\n");
        tnd_advise_text(&request, &advice, &a->out);
    }
    return TANDEM_OK;
}

static enum tandem_status advise(struct advising *a, struct tandem_error *error)
{
    const bool is_list = a->request->json && a->request->n_models > 1;
    a->model = calloc(1, sizeof(*a->model));
    if (a->model == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "model", 0, 0, "advise: out of memory");
    }
    TND_TRY(open_table(a, error));
    tnd_text_add(&a->out, is_list ? "[" : "");
    for (int i = 0; i < a->request->n_models; i++) {
        TND_TRY(advise_one(a, a->request->models[i], error));
    }
    tnd_text_add(&a->out, is_list ? "]\n" : (a->request->json ? "\n" : ""));
    return tnd_emit_end(&a->out, tnd_cmd_write, stdout, "advice", error);
}

int tnd_cmd_advise(int argc, char **argv)
{
    struct request request = {.target = "llama.cpp", .budget_s = 300};
    const struct args_option options[] = {
        {"for", ARGS_STRING, &request.target, 0, 0, "PROGRAM",
         "the program that is advised: llama.cpp (default)"},
        {"table|file", ARGS_STRING, &request.table, 0, 0, "FILE",
         "timing table (default: this machine's own)"},
        {"measure", ARGS_STRING, &request.measure, 0, 0, "LLAMA_BENCH",
         "run this llama-bench first, on a few points of each model, and keep its times in the "
         "table"},
        {"budget", ARGS_NUMBER, &request.budget_s, 2, 86400, "S",
         "seconds that measuring a model takes at most (default 300)"},
        {"device-memory", ARGS_NUMBER, &request.device_gib, 0, 1e6, "GIB",
         "memory of the device that layers may be put on, in GiB (default: none is advised)"},
        {"context|c", ARGS_INT, &request.context, 1, MOST_CONTEXT, "N",
         "tokens that keys and values are kept for (default: 4096, or the model's if that is "
         "less)"},
        {"json", ARGS_FLAG, &request.json, 0, 0, NULL,
         "one JSON object; a list of them for several models"},
    };
    const struct args_command command = {
        "advise",
        "MODEL...",
        "Prints the command line of llama.cpp that the timing table recommends for a model on this "
        "machine,\n"
        "with predicted speeds and the reasons. What depends on llama.cpp's own kernels is known "
        "only from\n"
        "its own times (--measure); without them it is said to be unknown.",
        options,
        sizeof(options) / sizeof(options[0]),
        1,
        MOST_MODELS};
    int result = args_parse(&command, argc, argv, request.models, &request.n_models);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    if (strcmp(request.target, "llama.cpp") != 0) {
        fprintf(stderr, "mulmat-tune advise: --for '%s': expected llama.cpp\n", request.target);
        return 2;
    }
    struct advising advising = {.request = &request};
    struct tandem_error error = {0};
    const enum tandem_status status = advise(&advising, &error);
    tandem_table_free(advising.table);
    free(advising.model);
    tnd_text_fini(&advising.out);
    return status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
}
