/* SPDX-License-Identifier: MIT
 * Options of a tool's commands: --m-step 8 or --m-step=8. A single dash and '_' instead of '-' are
 * accepted, too: the published options of mulmat-tune are spelled that way. */
#ifndef TND_TOOLS_ARGS_H
#define TND_TOOLS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Name of the tool in messages. */
extern const char *args_program;

enum { ARGS_LIST_MAX = 256 };

enum args_kind {
    ARGS_FLAG,   /* bool, no value */
    ARGS_STRING, /* const char *, borrowed from argv */
    ARGS_INT,    /* int64_t within [low, high] */
    ARGS_NUMBER, /* double within [low, high] */
    ARGS_INTS,   /* struct args_ints: N[,N..], each within [low, high] */
    ARGS_STRINGS /* struct args_strings: may be repeated */
};

struct args_ints {
    int n;
    int64_t values[ARGS_LIST_MAX];
};

struct args_strings {
    int n;
    const char *values[ARGS_LIST_MAX]; /* borrowed from argv */
};

/* One option. `out` keeps its value when the option is not given, so set the default before. */
struct args_option {
    const char *name; /* "m-step"; "type|t": two names */
    enum args_kind kind;
    void *out;
    double low, high;
    const char *value; /* "N", "FILE": for the help; NULL for flags */
    const char *help;
};

struct args_command {
    const char *name;     /* "analyze" */
    const char *operands; /* "FILE" or "" */
    const char *what;     /* a sentence for the help */
    const struct args_option *options;
    int n_options;
    int min_operands, max_operands;
};

/* Results of args_parse. */
enum { ARGS_OK = 0, ARGS_HELP = -1, ARGS_WRONG = 2 };

/** Parses argv[1..]: options into their `out`, other words into `operands` (max_operands entries).
 * --quiet and --verbose set tnd_say_level. Returns ARGS_OK; ARGS_HELP after printing --help or
 * --version: exit with 0; ARGS_WRONG after a message on stderr: exit with 2. */
int args_parse(const struct args_command *command, int argc, char **argv, const char **operands,
               int *out_n_operands);

/** Parses N[,N..], each within [low, high]; false for anything else. */
bool args_read_ints(const char *text, double low, double high, struct args_ints *out);

/** Writes, in parentheses, what an option that `command` does not have may mean: its most similar
 * option, or the counterpart of an option of llama.cpp; "" without either. In args_hint.c. */
void args_hint(const struct args_command *command, const char *name, size_t length, char *out,
               size_t capacity);

/** The exit code for a result that is not ARGS_OK. */
int args_code(int result);

/** Prints the help of a command to stdout. */
void args_help(const struct args_command *command);

#endif
