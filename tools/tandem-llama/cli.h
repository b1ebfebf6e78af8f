/* SPDX-License-Identifier: MIT
 * Shared by all commands of tandem-llama: messages, opening a runtime and a model, numbers. */
#ifndef TANDEM_LLAMA_CLI_H
#define TANDEM_LLAMA_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "tandem/llama.h"
#include "tools/args.h"
#include "tools/device_option.h"
#include "tools/pack_option.h"
#include "tools/report/ranks_cli.h"

#define CLI_ROWS(rows) rows, (int)(sizeof(rows) / sizeof((rows)[0]))

/** Prints "tandem-llama: ..." to stderr and returns the exit code 1. */
int tnd_cli_fail(const struct tandem_error *error);
/** Reports wrong usage; returns exit code 2. */
int tnd_cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Returns a failure to the caller. */
#define CLI_TRY(expression)                                                                        \
    do {                                                                                           \
        const enum tandem_status cli_try_status_ = (expression);                                   \
        if (cli_try_status_ != TANDEM_OK) {                                                        \
            return cli_try_status_;                                                                \
        }                                                                                          \
    } while (0)

/** tandem_write_fn for a FILE. */
int tnd_cli_write(void *file, const char *bytes, unsigned long n);

struct tnd_cli_runtime {
    int64_t threads; /* 0: one per core */
    const char *profile;
    const char *table;      /* path, "none", or NULL for this machine's own */
    const char *device;     /* as in tools/device_option.h */
    const char *settings;   /* of backends, "name:key=value,..;name:..", or NULL */
    const char *pack_cache; /* folder, or NULL */
    const char *objective;  /* what plans minimise: "time", "energy", "edp", or NULL: time */
};

/** Entries of these options for a struct args_command. */
#define TND_RUNTIME_ROWS(r)                                                                        \
    {"threads", ARGS_INT, &(r)->threads, 0, 1024, "N", "threads; default: one a core"},            \
        {"profile",                                                                                \
         ARGS_STRING,                                                                              \
         &(r)->profile,                                                                            \
         0,                                                                                        \
         0,                                                                                        \
         "NAME",                                                                                   \
         "force a profile wherever it applies"},                                                   \
        {"device", ARGS_STRING, &(r)->device, 0, 0, "SEL", TND_DEVICE_OPTION_HELP},                \
        {"settings",                                                                               \
         ARGS_STRING,                                                                              \
         &(r)->settings,                                                                           \
         0,                                                                                        \
         0,                                                                                        \
         "TEXT",                                                                                   \
         "of backends, as cpu:packed=4096,rows=release"},                                          \
        {"pack-cache", ARGS_STRING, &(r)->pack_cache, 0, 0, "DIR", TND_PACK_OPTION_HELP},          \
        {"objective",                                                                              \
         ARGS_STRING,                                                                              \
         &(r)->objective,                                                                          \
         0,                                                                                        \
         0,                                                                                        \
         "O",                                                                                      \
         "of plans: time, energy or edp, by a table with joules; time"},                           \
    {                                                                                              \
        "table", ARGS_STRING, &(r)->table, 0, 0, "FILE",                                           \
            "timing table; none: the rule; default: this machine's"                                \
    }

enum tandem_status tnd_cli_open_runtime(const struct tnd_cli_runtime *wanted,
                                        tandem_runtime **out_runtime, struct tandem_error *error);

/** If the devices cannot hold all weights of a session's model, decides by the table which ones
 * they hold (docs/placing-weights.md), and prints a note. Does nothing without a table or
 * device. */
void tnd_cli_place(tandem_session *session, tandem_runtime *runtime);

/** Fills `error` with "what: 'text'" and returns `status`. */
enum tandem_status tnd_cli_error(struct tandem_error *error, enum tandem_status status,
                                 const char *what, const char *text);
/** Parses a type's name; leaves `out` as it is for NULL. Errors: ARGUMENT. */
enum tandem_status tnd_cli_type(const char *name, enum tandem_type *out,
                                struct tandem_error *error);

/** Opens a checkpoint, converted to `type` unless that is NULL. */
enum tandem_status tnd_cli_open_source(const char *path, const char *type,
                                       tandem_source **out_source, struct tandem_error *error);

/** Makes a synthetic llama: "1.1b", "quick", "1b-moe", or
 *  "dim,hidden,layers,heads,kv_heads,vocabulary[,experts,used]". */
enum tandem_status tnd_cli_synthesize(const char *shape, const char *type, int64_t context,
                                      tandem_source **out_source, struct tandem_error *error);

/** Reads a whole file, or standard input for "-", and appends a zero byte, which `out_n` does not
 * count; free with free(). Errors: MEMORY, FILE, LIMIT (more than `limit_bytes`; 0: no limit). */
enum tandem_status tnd_cli_read_text(const char *path, size_t limit_bytes, char **out_text,
                                     size_t *out_n, struct tandem_error *error);

/** A copy of the text of -p, or all of standard input if it is NULL; as tnd_cli_read_text. */
enum tandem_status tnd_cli_take_text(const char *given, char **out_text, size_t *out_n,
                                     struct tandem_error *error);

double tnd_cli_seconds(void);
bool tnd_cli_is_folder(const char *path);
/** Median of n values, which are sorted; 0 when n is 0. */
double tnd_cli_median(double *values, int n);
/** Median of n values, which are sorted, and its 95 % confidence interval: by ranks from six values
 * on, with fewer the least and the largest; all 0 when n is 0. */
double tnd_cli_median_between(double *values, int n, double *out_low, double *out_high);

int tnd_cmd_run(int argc, char **argv);
int tnd_cmd_chat(int argc, char **argv);
int tnd_cmd_bench(int argc, char **argv);
int tnd_cmd_compare(int argc, char **argv);
int tnd_cmd_embed(int argc, char **argv);
int tnd_cmd_demo(int argc, char **argv);
int tnd_cmd_tokenize(int argc, char **argv);
int tnd_cmd_imatrix(int argc, char **argv);
int tnd_cmd_convert(int argc, char **argv);
int tnd_cmd_inspect(int argc, char **argv);
int tnd_cmd_fit(int argc, char **argv);
int tnd_cmd_synth(int argc, char **argv);

#endif
