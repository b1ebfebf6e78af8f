/* SPDX-License-Identifier: MIT
 * mulmat-tune explain: why the planner makes its choices, and what it would choose if times or
 * thread counts changed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_status.h"
#include "tandem/table.h"
#include "tools/device_option.h"
#include "tools/args.h"
#include "tools/mulmat-tune/cmd_output.h"
#include "tools/mulmat-tune/commands.h"
#include "tools/mulmat-tune/explain_convs.h"
#include "tools/mulmat-tune/model_shapes.h"
#include "tools/mulmat-tune/open_runtime.h"
#include "base/emit.h"
#include "table/conv_problem.h"
#include "tune/explain.h"

struct request {
    const char *model;
    const char *type;
    struct args_ints m;
    int64_t threads;
    const char *table;
    const char *what_if;
    const char *scale;
    const char *device;
    const char *objective;
    bool json;
    const char *problem;
    struct net_option net;
};

/* The products to explain. */
struct subject {
    struct tnd_shapes shapes;
    enum tandem_type type;
    struct args_ints m;
    bool in_full; /* one problem: all details; a model: one line per shape and M */
    int n_threads;
    int if_threads;            /* equal to n_threads by default */
    tandem_table *loaded;      /* owned, or NULL */
    const tandem_table *table; /* NULL: none */
    tandem_table *scaled;      /* owned; NULL: no --scale */
    char table_name[256];
    tandem_runtime *runtime; /* NULL: uses the candidates of the table */
    const struct tnd_registry *registry;
};

static int usage(const char *option, const char *value, const char *expected)
{
    fprintf(stderr, "mulmat-tune explain: %s '%s': expected %s; see 'mulmat-tune explain --help'\n",
            option, value, expected);
    return 2;
}

/* ---- the request ---- */

/* The default type: q4_0, or the first one in the table. */
static enum tandem_type default_type(const tandem_table *table)
{
    if (table == NULL || table->n_curves == 0 || tnd_table_largest_m(table, TANDEM_TYPE_Q4_0) > 0) {
        return TANDEM_TYPE_Q4_0;
    }
    for (int i = 0; i < table->n_curves; i++) {
        if (strcmp(table->curves[i].key.op, "mul_mat") == 0) {
            return table->curves[i].key.type;
        }
    }
    return TANDEM_TYPE_Q4_0;
}

static int most_threads(const tandem_table *table)
{
    int most = 1;
    for (int i = 0; i < table->n_curves; i++) {
        most = table->curves[i].key.threads > most ? table->curves[i].key.threads : most;
    }
    return most;
}

static enum tandem_status open_table(const struct request *request, struct subject *subject,
                                     struct tandem_error *error)
{
    struct tnd_runtime_parts parts;
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    if (request->table != NULL) {
        TND_TRY(tandem_table_load(request->table, &subject->loaded, error));
        subject->table = subject->loaded;
        subject->n_threads = most_threads(subject->loaded);
        snprintf(subject->table_name, sizeof(subject->table_name), "%s", request->table);
    } else {
        TND_TRY(tnd_cmd_open_runtime(NULL, 0, NULL, request->device, &subject->runtime, error));
        tnd_runtime_parts(subject->runtime, &parts);
        tandem_runtime_describe(subject->runtime, &info);
        subject->registry = parts.registry;
        TND_TRY(tnd_runtime_copy_table(subject->runtime, &subject->loaded, error));
        subject->table = subject->loaded;
        subject->n_threads = info.n_threads;
        snprintf(subject->table_name, sizeof(subject->table_name), "%s", info.table);
    }
    if (request->threads > 0) {
        subject->n_threads = (int)request->threads;
    }
    subject->if_threads = subject->n_threads;
    return tnd_cmd_aim(request->objective, subject->loaded, error);
}

static int read_what_if(const char *text, struct subject *subject)
{
    char *end;
    long threads = strncmp(text, "threads=", 8) == 0 ? strtol(text + 8, &end, 10) : 0;
    if (threads < 1 || threads > 1024 || *end != '\0') {
        return usage("--what-if", text, "threads=N, N from 1 to 1024");
    }
    subject->if_threads = (int)threads;
    return 0;
}

/* Parses "openblas=0.5,cpu=2". */
static int read_scale(const char *text, struct subject *subject, struct tandem_error *error)
{
    if (subject->table == NULL) {
        return usage("--scale", text, "a timing table (there is none; run mulmat-tune bench)");
    }
    if (tandem_table_copy(subject->table, &subject->scaled, error) != TANDEM_OK) {
        return tnd_cmd_failed(error);
    }
    for (const char *at = text;; at++) {
        char backend[32] = ""; /* also with ".transfer" appended */
        size_t length = strcspn(at, "=,");
        char *end;
        if (length == 0 || length >= sizeof(backend) || at[length] != '=') {
            return usage("--scale", text, "BACKEND=FACTOR[,BACKEND=FACTOR]");
        }
        memcpy(backend, at, length);
        double factor = strtod(at + length + 1, &end);
        if (end == at + length + 1 || !(factor >= 1e-3 && factor <= 1e3) ||
            (*end != ',' && *end != '\0')) {
            return usage("--scale", text, "factors from 0.001 to 1000");
        }
        if (!tnd_table_scale(subject->scaled, backend, factor)) {
            return usage("--scale", text, "backends that the table has times of");
        }
        at = end;
        if (*at == '\0') {
            return 0;
        }
    }
}

static int read_problem(const struct request *request, struct subject *subject,
                        struct tandem_error *error)
{
    struct tnd_problem problem;
    if (tnd_problem_parse(request->problem, &problem, error) != TANDEM_OK) {
        tnd_cmd_failed(error);
        return 2;
    }
    if (strcmp(problem.op, "mul_mat") != 0) {
        return usage("PROBLEM", request->problem, "mul_mat:TYPE:nN:kK:mM");
    }
    subject->in_full = true;
    subject->type = problem.type;
    subject->shapes.count = 1;
    subject->shapes.shape[0].n = problem.n;
    subject->shapes.shape[0].k = problem.k;
    snprintf(subject->shapes.model, sizeof(subject->shapes.model), "%" PRId64 "x%" PRId64,
             problem.n, problem.k);
    if (request->m.n == 0) {
        subject->m.n = 1;
        subject->m.values[0] = problem.m;
    }
    if (problem.threads > 0 && request->threads == 0) {
        subject->n_threads = problem.threads < 1024 ? problem.threads : 1024;
        subject->if_threads = subject->n_threads;
    }
    return 0;
}

static int read_model(const struct request *request, struct subject *subject,
                      struct tandem_error *error)
{
    static const int64_t usual[] = {1, 8, 32, 128, 512};
    if (tnd_shapes_parse(request->model, &subject->shapes, error) != TANDEM_OK) {
        tnd_cmd_failed(error);
        return 2;
    }
    if (strcmp(subject->shapes.model, "custom") == 0) {
        snprintf(subject->shapes.model, sizeof(subject->shapes.model), "%s", request->model);
    }
    subject->type = default_type(subject->table);
    if (request->m.n == 0) {
        subject->m.n = sizeof(usual) / sizeof(usual[0]);
        memcpy(subject->m.values, usual, sizeof(usual));
    }
    return 0;
}

static int read_request(const struct request *request, struct subject *subject,
                        struct tandem_error *error)
{
    if (open_table(request, subject, error) != TANDEM_OK) {
        return tnd_cmd_failed(error);
    }
    subject->m = request->m;
    int result = request->problem != NULL ? read_problem(request, subject, error)
                                          : read_model(request, subject, error);
    if (result == 0 && request->type != NULL &&
        !tandem_type_from_name(request->type, &subject->type)) {
        result = usage("--type", request->type, "a weight type such as q4_0");
    }
    if (result == 0 && model_shapes_fit(&subject->shapes, subject->type, error) != TANDEM_OK) {
        tnd_cmd_failed(error);
        result = 2;
    }
    if (result == 0 && request->what_if != NULL) {
        result = read_what_if(request->what_if, subject);
    }
    if (result == 0 && request->scale != NULL) {
        result = read_scale(request->scale, subject, error);
    }
    return result;
}

/* ---- answers ---- */

static bool has_what_if(const struct subject *subject)
{
    return subject->scaled != NULL || subject->if_threads != subject->n_threads;
}

static enum tandem_status explain(const struct subject *subject, bool as_it_is,
                                  const struct tnd_shape *shape, int64_t m,
                                  struct tnd_explanation *out, struct tandem_error *error)
{
    struct tnd_explain_options options;
    memset(&options, 0, sizeof(options));
    options.table = as_it_is || subject->scaled == NULL ? subject->table : subject->scaled;
    options.registry = subject->registry;
    options.n_threads = as_it_is ? subject->n_threads : subject->if_threads;
    snprintf(options.problem.op, sizeof(options.problem.op), "mul_mat");
    options.problem.type = subject->type;
    options.problem.n = shape->n;
    options.problem.k = shape->k;
    options.problem.m = m;
    return tnd_explain(&options, out, error);
}

/* "cpu on 2 threads, 12.5 +- 0.3 us" */
static void add_winner(struct tnd_text *out, const struct tnd_explanation *e)
{
    const struct tnd_prediction *best = &e->choice.best;
    if (best->candidate < 0) {
        tnd_text_add(out, (e->thin & TND_THIN_BEYOND) != 0
                              ? "more than four times outside of the table; the rule serves"
                              : "not in the table");
        return;
    }
    tnd_text_printf(out, "%s on %d thread%s, ", tnd_explain_profile(e, best), best->threads,
                    best->threads == 1 ? "" : "s");
    tnd_emit_number(out, 0, 1, best->total.us);
    tnd_text_add(out, " +- ");
    tnd_emit_error(out, 0, best->total.error_us);
    tnd_text_add(out, " us");
}

static enum tandem_status add_one(const struct subject *subject, const struct tnd_shape *shape,
                                  int64_t m, struct tnd_text *out, unsigned *thin,
                                  struct tandem_error *error)
{
    struct tnd_explanation e;
    struct tnd_explanation before;
    TND_TRY(explain(subject, false, shape, m, &e, error));
    *thin |= e.thin;
    if (subject->in_full) {
        tnd_explain_text(&e, out);
    } else {
        tnd_text_printf(out, "  M %5" PRId64 "  ", m);
        add_winner(out, &e);
        if (e.choice.second.candidate >= 0) {
            tnd_text_add(out, "; ");
            tnd_emit_number(out, 0, 1, 100 * e.margin);
            tnd_text_printf(out, " %% ahead of %s%s", tnd_explain_profile(&e, &e.choice.second),
                            (e.thin & TND_THIN_LEAD) != 0 ? " (within the error bars)" : "");
        }
        if (e.above.found) {
            tnd_text_printf(out, "; from M = %" PRId64 " on %s", e.above.m, e.above.to);
        }
        if (e.scaling.threads > 0) {
            tnd_text_add(out, "\n           ");
            tnd_explain_scaling(&e, out);
        }
        tnd_text_add_char(out, '\n');
    }
    tnd_explanation_fini(&e);
    if (has_what_if(subject)) {
        TND_TRY(explain(subject, true, shape, m, &before, error));
        tnd_text_add(out, subject->in_full ? "  as it is: " : "           as it is: ");
        add_winner(out, &before);
        tnd_text_add_char(out, '\n');
        tnd_explanation_fini(&before);
    }
    return TANDEM_OK;
}

static void add_model_command(const struct subject *subject, unsigned thin, struct tnd_text *out)
{
    const unsigned to_measure = TND_THIN_NO_TABLE | TND_THIN_NO_CELL | TND_THIN_SHAPE |
                                TND_THIN_CANDIDATES | TND_THIN_BEYOND;
    if ((thin & to_measure) != 0) {
        tnd_text_printf(out,
                        "\nNot all of it was measured. To know better, on that machine:\n"
                        "  mulmat-tune bench --model %s --type %s\n",
                        subject->shapes.model, tandem_type_name(subject->type));
    }
}

static enum tandem_status add_text(const struct request *request, const struct subject *subject,
                                   struct tnd_text *out, struct tandem_error *error)
{
    unsigned thin = 0;
    tnd_text_printf(out, "Timing table: %s\n",
                    subject->table_name[0] != '\0' ? subject->table_name : "none");
    if (subject->table != NULL && subject->table->objective != TANDEM_OBJECTIVE_TIME) {
        tnd_text_printf(out, "Ways are compared by %s, of the whole machine\n",
                        subject->table->objective == TANDEM_OBJECTIVE_ENERGY ? "energy"
                                                                             : "energy times time");
    }
    if (has_what_if(subject)) {
        tnd_text_printf(out, "What if: at most %d thread%s%s%s\n", subject->if_threads,
                        subject->if_threads == 1 ? "" : "s",
                        request->scale != NULL ? ", times of " : "",
                        request->scale != NULL ? request->scale : "");
    }
    for (int s = 0; s < subject->shapes.count; s++) {
        const struct tnd_shape *shape = &subject->shapes.shape[s];
        if (!subject->in_full) {
            tnd_text_printf(out, "\nN %" PRId64 " x K %" PRId64 ", %s, at most %d thread%s\n",
                            shape->n, shape->k, tandem_type_name(subject->type),
                            subject->if_threads, subject->if_threads == 1 ? "" : "s");
        }
        for (int i = 0; i < subject->m.n; i++) {
            tnd_text_add(out, subject->in_full ? "\n" : "");
            TND_TRY(add_one(subject, shape, subject->m.values[i], out, &thin, error));
        }
    }
    if (!subject->in_full) {
        add_model_command(subject, thin, out);
    }
    if (subject->table != NULL) {
        tnd_text_add(out, "\nWhat to set in llama.cpp: mulmat-tune advise MODEL\n");
    }
    return TANDEM_OK;
}

static enum tandem_status add_json(const struct subject *subject, struct tnd_text *out,
                                   struct tandem_error *error)
{
    const char *separator = "\n";
    tnd_text_add(out, "{\n  \"table\": ");
    tnd_emit_json_string(out, subject->table_name);
    tnd_text_printf(out, ",\n  \"what_if\": %s,\n  \"problems\": [",
                    has_what_if(subject) ? "true" : "false");
    for (int s = 0; s < subject->shapes.count; s++) {
        for (int i = 0; i < subject->m.n; i++) {
            struct tnd_explanation e;
            TND_TRY(explain(subject, false, &subject->shapes.shape[s], subject->m.values[i], &e,
                            error));
            tnd_text_add(out, separator);
            tnd_explain_json(&e, "    ", out);
            tnd_explanation_fini(&e);
            separator = ",\n";
        }
    }
    tnd_text_add(out, "\n  ]\n}\n");
    return TANDEM_OK;
}

static bool is_about_convs(const struct request *request)
{
    return request->net.path != NULL ||
           (request->problem != NULL && tnd_conv_problem_is(request->problem));
}

static int run_convs(const struct request *request)
{
    static struct subject subject; /* static because it is large */
    struct tandem_error error = {0};
    if (open_table(request, &subject, &error) != TANDEM_OK) {
        return tnd_cmd_failed(&error);
    }
    const struct explain_convs_request convs = {.problem = request->problem,
                                                .net = &request->net,
                                                .table = subject.table,
                                                .table_name = subject.table_name,
                                                .threads = subject.n_threads,
                                                .json = request->json};
    const enum tandem_status status = explain_convs(&convs, &error);
    tandem_table_free(subject.loaded);
    tandem_runtime_close(subject.runtime);
    if (status != TANDEM_OK) {
        tnd_cmd_failed(&error);
    }
    const bool is_usage = status == TANDEM_E_FORMAT && request->problem != NULL;
    return status == TANDEM_OK ? 0 : is_usage ? 2 : 1;
}

static int run(const struct request *request)
{
    static struct subject subject; /* static because it is large */
    struct tandem_error error = {0};
    struct tnd_text text = TND_TEXT_INIT;
    int result = read_request(request, &subject, &error);
    if (result == 0) {
        enum tandem_status status = request->json ? add_json(&subject, &text, &error)
                                                  : add_text(request, &subject, &text, &error);
        if (status == TANDEM_OK) {
            status = tnd_emit_end(&text, tnd_cmd_write, stdout, "explain", &error);
        }
        result = status == TANDEM_OK ? 0 : tnd_cmd_failed(&error);
    }
    tnd_text_fini(&text);
    tandem_table_free(subject.scaled);
    tandem_table_free(subject.loaded);
    tandem_runtime_close(subject.runtime);
    return result;
}

int tnd_cmd_explain(int argc, char **argv)
{
    struct request request = {.model = "7B"};
    const char *m = NULL;
    const struct args_option options[] = {
        {"model", ARGS_STRING, &request.model, 0, 0, "M",
         "quick, 1.1B, 3B, 7B, 13B, 30B, 65B, or shapes NxK,NxK (default: 7B)"},
        {"type|t", ARGS_STRING, &request.type, 0, 0, "T",
         "weight type (default: q4_0, or what the table has)"},
        {"m", ARGS_STRING, &m, 0, 0, "M[,M..]",
         "numbers of tokens (default: that of PROBLEM; for a model 1, 8, 32, 128, 512); a name or "
         "NxK: the model"},
        {"threads", ARGS_INT, &request.threads, 1, 1024, "N",
         "plan for at most N threads (default: one a core, or the most that FILE has)"},
        {"table", ARGS_STRING, &request.table, 0, 0, "FILE",
         "another machine's table, with the ways that it has (default: this machine's own)"},
        {"what-if", ARGS_STRING, &request.what_if, 0, 0, "threads=N",
         "what if there were N threads?"},
        {"scale", ARGS_STRING, &request.scale, 0, 0, "B=F[,B=F]",
         "what if backend B took F times as long? B=0.5: twice as fast; B.transfer=2: at half the "
         "transfer speed"},
        {"device", ARGS_STRING, &request.device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},
        {"objective", ARGS_STRING, &request.objective, 0, 0, "O", TND_OBJECTIVE_OPTION_HELP},
        NET_OPTION_ROWS(&request.net, "the convolutions of an ONNX model"),
        {"json", ARGS_FLAG, &request.json, 0, 0, NULL, "one JSON object"},
    };
    const struct args_command command = {
        "explain",
        "[PROBLEM]",
        "Tells why a matrix product runs as it does: every way with its predicted time and error "
        "bar, the\n"
        "winner and its margin, the M at which another way takes over, what else would change the "
        "choice, and\n"
        "what to measure where too little is known. 'mulmat-tune advise' says what to set in "
        "llama.cpp.\n"
        "PROBLEM: such as mul_mat:q4_0:n4096:k4096:m32 or conv:f32:w3x3:c64:f64:r56x56:p1x1; "
        "without it all shapes of a model, in "
        "short.",
        options,
        sizeof(options) / sizeof(options[0]),
        0,
        1};
    int result = args_parse(&command, argc, argv, &request.problem, NULL);
    if (result != ARGS_OK) {
        return result == ARGS_HELP ? 0 : result;
    }
    if (m != NULL && !model_or_tokens("explain", m, &request.model, &request.m)) {
        return 2;
    }
    if (is_about_convs(&request) && (request.what_if != NULL || request.scale != NULL)) {
        return usage("--what-if and --scale", "", "a product, not convolutions");
    }
    return is_about_convs(&request) ? run_convs(&request) : run(&request);
}
