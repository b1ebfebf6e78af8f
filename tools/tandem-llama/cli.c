/* SPDX-License-Identifier: MIT
 * Options, messages and the few objects that every command opens. */
#include "tools/tandem-llama/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/device_option.h"

/* ---- options ---- */

static const struct cli_option *find_option(const struct cli_options *options, const char *name)
{
    name += name[1] == '-' ? 2 : 1;
    for (int i = 0; i < options->n; i++) {
        if (strcmp(options->rows[i].name, name) == 0) {
            return &options->rows[i];
        }
    }
    return NULL;
}

static bool set_value(const struct cli_option *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    if (option->kind == CLI_TEXT) {
        *(const char **)option->value = text;
        return true;
    }
    if (option->kind == CLI_INTEGER) {
        const long long value = strtoll(text, &end, 10);
        if (errno == 0 && end != text && *end == '\0') {
            *(int64_t *)option->value = value;
            return true;
        }
    } else {
        const double value = strtod(text, &end);
        if (errno == 0 && end != text && *end == '\0') {
            *(double *)option->value = value;
            return true;
        }
    }
    (void)tnd_cli_usage("-%s: '%s' is no number", option->name, text);
    return false;
}

bool tnd_cli_parse(int argc, char **argv, const struct cli_options *options, const char **arguments,
                   int max, int *n_arguments)
{
    *n_arguments = 0;
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            if (*n_arguments == max) {
                (void)tnd_cli_usage("'%s' is one argument too many", argv[i]);
                return false;
            }
            arguments[(*n_arguments)++] = argv[i];
            continue;
        }
        const struct cli_option *option = find_option(options, argv[i]);
        if (option == NULL) {
            (void)tnd_cli_usage("unknown option %s", argv[i]);
            return false;
        }
        if (option->kind == CLI_FLAG) {
            *(bool *)option->value = true;
            continue;
        }
        if (i + 1 == argc) {
            (void)tnd_cli_usage("%s needs a value: %s", argv[i], option->argument);
            return false;
        }
        if (!set_value(option, argv[++i])) {
            return false;
        }
    }
    return true;
}

void tnd_cli_print_options(const struct cli_options *options)
{
    for (int i = 0; i < options->n; i++) {
        const struct cli_option *option = &options->rows[i];
        char left[64];
        snprintf(left, sizeof(left), "-%s%s %s", strlen(option->name) > 1 ? "-" : "", option->name,
                 option->argument != NULL ? option->argument : "");
        printf("  %-22s %s\n", left, option->what);
    }
}

/* ---- messages ---- */

int tnd_cli_fail(const struct tandem_error *error)
{
    fprintf(stderr, "tandem-llama: %s (%s)\n", error->text, tandem_status_name(error->status));
    return 1;
}

int tnd_cli_usage(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("tandem-llama: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs(" (tandem-llama help tells more)\n", stderr);
    va_end(arguments);
    return 2;
}

void tnd_cli_log(void *user, enum tandem_log_level level, const char *room, const char *text)
{
    (void)user;
    fprintf(stderr, "tandem-llama: %s: %s: %s\n", level <= TANDEM_LOG_ERROR ? "error" : "note",
            room, text);
}

int tnd_cli_write(void *file, const char *bytes, unsigned long n)
{
    return fwrite(bytes, 1, n, file) == n ? 0 : 1;
}

static enum tandem_status fail(struct tandem_error *error, enum tandem_status status,
                               const char *what, const char *text)
{
    error->status = status;
    snprintf(error->text, sizeof(error->text), "%s: '%s'", what, text);
    return status;
}

/* ---- objects ---- */

enum tandem_status tnd_cli_open_runtime(const struct tnd_cli_runtime *wanted,
                                        tandem_runtime **out_runtime, struct tandem_error *error)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tnd_device_option memory;
    char settings[1024];
    tandem_runtime *runtime = NULL;
    if (wanted->threads < 0 || wanted->threads > 4096) {
        return fail(error, TANDEM_E_ARGUMENT, "expected 0 to 4096 threads", "--threads");
    }
    options.n_threads = (int)wanted->threads;
    options.profile = wanted->profile;
    options.table_path =
        wanted->table != NULL && strcmp(wanted->table, "none") == 0 ? "" : wanted->table;
    options.log = tnd_cli_log;
    enum tandem_status status =
        tnd_device_option_apply(wanted->device, wanted->profile, &memory, &options, error);
    if (status == TANDEM_OK && wanted->settings != NULL) {
        const char *others = options.settings != NULL ? options.settings : "";
        int n = snprintf(settings, sizeof(settings), "%s;%s", others, wanted->settings);
        if (n >= (int)sizeof(settings)) {
            return fail(error, TANDEM_E_ARGUMENT, "too long", "--settings");
        }
        options.settings = settings;
    }
    if (status == TANDEM_OK) {
        status = tandem_runtime_open(&options, &runtime, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_device_option_check(wanted->device, wanted->profile, runtime, error);
    }
    if (status != TANDEM_OK) {
        tandem_runtime_close(runtime);
        return status;
    }
    *out_runtime = runtime;
    return TANDEM_OK;
}

enum tandem_status tnd_cli_open_source(const char *path, const char *type,
                                       tandem_source **out_source, struct tandem_error *error)
{
    enum tandem_type target = TANDEM_TYPE_F32;
    tandem_source *source;
    if (type != NULL && !tandem_type_from_name(type, &target)) {
        return fail(error, TANDEM_E_ARGUMENT, "unknown type", type);
    }
    enum tandem_status status = tandem_source_open(path, &source, error);
    if (status != TANDEM_OK || type == NULL) {
        if (status == TANDEM_OK) {
            *out_source = source;
        }
        return status;
    }
    status = tandem_source_convert(source, target, out_source, error);
    tandem_source_close(source);
    return status;
}

static bool read_shape(const char *text, struct tandem_llama_shape *shape)
{
    long long v[6];
    char rest;
    if (strcmp(text, "1.1b") == 0) { /* the shape of TinyLlama 1.1B */
        const struct tandem_llama_shape known = {.size = sizeof(known),
                                                 .dim = 2048,
                                                 .hidden = 5632,
                                                 .layers = 22,
                                                 .heads = 32,
                                                 .kv_heads = 4,
                                                 .vocabulary = 32000};
        *shape = known;
        return true;
    }
    if (strcmp(text, "quick") == 0) {
        const struct tandem_llama_shape known = {.size = sizeof(known),
                                                 .dim = 1024,
                                                 .hidden = 2816,
                                                 .layers = 8,
                                                 .heads = 16,
                                                 .kv_heads = 4,
                                                 .vocabulary = 8192};
        *shape = known;
        return true;
    }
    if (sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld%c", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
               &rest) != 6) {
        return false;
    }
    *shape = (struct tandem_llama_shape){.size = sizeof(*shape),
                                         .dim = v[0],
                                         .hidden = v[1],
                                         .layers = v[2],
                                         .heads = v[3],
                                         .kv_heads = v[4],
                                         .vocabulary = v[5]};
    return true;
}

enum tandem_status tnd_cli_synthesize(const char *shape_text, const char *type_text,
                                      int64_t context, tandem_source **out_source,
                                      struct tandem_error *error)
{
    struct tandem_llama_shape shape;
    enum tandem_type type;
    if (!tandem_type_from_name(type_text, &type)) {
        return fail(error, TANDEM_E_ARGUMENT, "unknown type", type_text);
    }
    if (!read_shape(shape_text, &shape)) {
        return fail(error, TANDEM_E_ARGUMENT,
                    "expected 1.1b, quick or dim,hidden,layers,heads,kv_heads,vocabulary",
                    shape_text);
    }
    shape.context = context;
    return tandem_source_synthesize(&shape, type, 1, out_source, error);
}

/* ---- numbers ---- */

double tnd_cli_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double tnd_cli_median(double *values, int n)
{
    if (n == 0) {
        return 0.0;
    }
    qsort(values, (size_t)n, sizeof(values[0]), compare_numbers);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}
