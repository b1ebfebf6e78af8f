/* SPDX-License-Identifier: MIT
 * Messages, and the objects that every command opens. */
#include "tools/tandem-llama/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tools/runtime_option.h"
#include "tune/objective.h"
#include "tools/say.h"

/* ---- messages ---- */

/* An unknown name in the options counts as wrong usage: exit code 2. */
static bool is_unknown_name(const struct tandem_error *error)
{
    return strncmp(error->text, "unknown type: ", 14) == 0 ||
           strncmp(error->text, "objective: ", 11) == 0 ||
           (error->status == TANDEM_E_NOT_FOUND && strncmp(error->text, "profile '", 9) == 0);
}

int tnd_cli_fail(const struct tandem_error *error)
{
    fprintf(stderr, "tandem-llama: %s\n", error->text);
    return is_unknown_name(error) ? 2 : 1;
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

int tnd_cli_write(void *file, const char *bytes, unsigned long n)
{
    return fwrite(bytes, 1, n, file) == n ? 0 : 1;
}

enum tandem_status tnd_cli_error(struct tandem_error *error, enum tandem_status status,
                                 const char *what, const char *text)
{
    error->status = status;
    snprintf(error->text, sizeof(error->text), "%s: '%s'", what, text);
    return status;
}

/* ---- input ---- */

/* Reads to the end of the stream, or until the limit is exceeded; NULL when out of memory. */
static char *read_stream(FILE *stream, size_t limit_bytes, size_t *out_n)
{
    size_t capacity = (size_t)1 << 16;
    size_t n = 0;
    char *text = malloc(capacity);
    while (text != NULL) {
        n += fread(text + n, 1, capacity - n, stream);
        if (n < capacity || (limit_bytes > 0 && n > limit_bytes)) {
            break;
        }
        char *larger = realloc(text, capacity * 2);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
        capacity *= 2;
    }
    *out_n = n;
    return text;
}

enum tandem_status tnd_cli_read_text(const char *path, size_t limit_bytes, char **out_text,
                                     size_t *out_n, struct tandem_error *error)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    FILE *stream = is_stdin ? stdin : fopen(path, "rb");
    size_t n = 0;
    if (stream == NULL) {
        return tnd_cli_error(error, TANDEM_E_FILE, strerror(errno), name);
    }
    errno = 0;
    char *text = read_stream(stream, limit_bytes, &n);
    const bool failed = ferror(stream) != 0;
    const int reason = errno;
    if (!is_stdin) {
        fclose(stream);
    }
    if (text != NULL && !failed && (limit_bytes == 0 || n <= limit_bytes)) {
        text[n] = '\0'; /* in bounds: reading stops one byte early */
        *out_text = text;
        *out_n = n;
        return TANDEM_OK;
    }
    const bool has_memory = text != NULL;
    free(text);
    return !has_memory ? tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the text of", name)
           : failed    ? tnd_cli_error(error, TANDEM_E_FILE, strerror(reason), name)
                       : tnd_cli_error(error, TANDEM_E_LIMIT, "the text is too long", name);
}

enum tandem_status tnd_cli_take_text(const char *given, char **out_text, size_t *out_n,
                                     struct tandem_error *error)
{
    if (given == NULL) {
        return tnd_cli_read_text("-", 0, out_text, out_n, error);
    }
    *out_text = strdup(given);
    *out_n = strlen(given);
    return *out_text != NULL ? TANDEM_OK
                             : tnd_cli_error(error, TANDEM_E_MEMORY, "no memory for the text of",
                                             "the command line");
}

/* ---- objects ---- */

enum tandem_status tnd_cli_type(const char *name, enum tandem_type *out, struct tandem_error *error)
{
    return name == NULL || tandem_type_from_name(name, out)
               ? TANDEM_OK
               : tnd_cli_error(error, TANDEM_E_ARGUMENT, "unknown type", name);
}

enum tandem_status tnd_cli_open_runtime(const struct tnd_cli_runtime *wanted,
                                        tandem_runtime **out_runtime, struct tandem_error *error)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tnd_pack_option memory;
    options.n_threads = (int)wanted->threads;
    options.profile = wanted->profile;
    options.settings = wanted->settings;
    if (wanted->objective != NULL && !tnd_objective_parse(wanted->objective, &options.objective)) {
        return tnd_cli_error(error, TANDEM_E_ARGUMENT,
                             "objective: expected time, energy or edp, got", wanted->objective);
    }
    CLI_TRY(tnd_pack_option_apply(wanted->pack_cache, &memory, &options, error));
    return tnd_runtime_option_open(&options, wanted->table, wanted->device, out_runtime, error);
}

void tnd_cli_place(tandem_session *session, tandem_runtime *runtime)
{
    struct tandem_place_options options = TANDEM_PLACE_OPTIONS_INIT;
    struct tandem_place_info info = TANDEM_PLACE_INFO_INIT;
    struct tandem_error error = {0};
    options.only_if_needed = true;
    if (tandem_runtime_table_status(runtime, &error) != TANDEM_OK) {
        return;
    }
    if (tandem_session_place(session, &options, &error) != TANDEM_OK) {
        tnd_say("tandem-llama: note: weights go where there is room: %s\n", error.text);
        return;
    }
    if (tandem_runtime_placement(runtime, &info) == TANDEM_OK && info.n_weights > 0) {
        tnd_say("tandem-llama: note: devices keep %d of %d weights, %.2f GiB; predicted: %.1f "
                "tokens/s generated\n",
                info.n_placed, info.n_weights, (double)info.placed_bytes / 1073741824.0,
                1e6 / info.generation_us);
    }
}

enum tandem_status tnd_cli_open_source(const char *path, const char *type,
                                       tandem_source **out_source, struct tandem_error *error)
{
    enum tandem_type target = TANDEM_TYPE_F32;
    tandem_source *source;
    CLI_TRY(tnd_cli_type(type, &target, error));
    CLI_TRY(tandem_source_open(path, &source, error));
    tnd_say_text_of(source);
    if (type == NULL) {
        *out_source = source;
        return TANDEM_OK;
    }
    const enum tandem_status status = tandem_source_convert(source, target, out_source, error);
    tandem_source_close(source);
    return status;
}

/* Named shapes: 1.1b is the shape of TinyLlama 1.1B, 1b-moe has 16 experts, of which each token
 * uses 2. */
static bool read_shape(const char *text, struct tandem_llama_shape *shape)
{
    long long v[8] = {0};
    char rest;
    text = strcmp(text, "1.1b") == 0     ? "2048,5632,22,32,4,32000"
           : strcmp(text, "quick") == 0  ? "1024,2816,8,16,4,8192"
           : strcmp(text, "1b-moe") == 0 ? "1024,1024,20,16,4,8192,16,2"
                                         : text;
    const int n = sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld%c", &v[0], &v[1], &v[2],
                         &v[3], &v[4], &v[5], &v[6], &v[7], &rest);
    if ((n != 6 && n != 8) ||
        (n == 6 && strchr(text, ',') != NULL && text[strlen(text) - 1] == ',')) {
        return false;
    }
    *shape = (struct tandem_llama_shape){.size = sizeof(*shape),
                                         .dim = v[0],
                                         .hidden = v[1],
                                         .layers = v[2],
                                         .heads = v[3],
                                         .kv_heads = v[4],
                                         .vocabulary = v[5],
                                         .experts = v[6],
                                         .experts_used = v[7]};
    return true;
}

enum tandem_status tnd_cli_synthesize(const char *shape_text, const char *type_text,
                                      int64_t context, tandem_source **out_source,
                                      struct tandem_error *error)
{
    struct tandem_llama_shape shape;
    enum tandem_type type;
    CLI_TRY(tnd_cli_type(type_text, &type, error));
    if (!read_shape(shape_text, &shape)) {
        return tnd_cli_error(error, TANDEM_E_ARGUMENT,
                             "expected 1.1b, quick, 1b-moe or dim,hidden,layers,heads,kv_heads,"
                             "vocabulary[,experts,used]",
                             shape_text);
    }
    shape.context = context;
    return tandem_source_synthesize(&shape, type, 1, out_source, error);
}

/* ---- numbers ---- */

bool tnd_cli_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

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

double tnd_cli_median_between(double *values, int n, double *out_low, double *out_high)
{
    const double median = tnd_cli_median(values, n);      /* sorts the values */
    const int low = (int)floor(0.5 * n - 0.98 * sqrt(n)); /* ranks by the binomial distribution */
    *out_low = n > 0 ? values[low > 0 ? low : 0] : 0.0;
    *out_high = n > 0 ? values[n - 1 - (low > 0 ? low : 0)] : 0.0;
    return median;
}
