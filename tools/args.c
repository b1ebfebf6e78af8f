/* SPDX-License-Identifier: MIT
 * Parsing options. Every mistake prints one line to stderr: what was found and what was
 * expected. */
#include "tools/args.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tandem/version.h"
#include "tools/say.h"

const char *args_program = "mulmat-tune";

enum { ARGS_NONE = -2 }; /* returned besides the results of args_parse: not parsed yet */

/* An option of the command line, split into its parts. */
struct word {
    const char *text;
    const char *name;
    size_t name_length;
    const char *value; /* after '=', or NULL */
};

static int wrong(const struct args_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int wrong(const struct args_command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *blank = command->name[0] != '\0' ? " " : ""; /* a tool of one command has no name */
    fprintf(stderr, "%s%s%s: ", args_program, blank, command->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "; see '%s%s%s --help'\n", args_program, blank, command->name);
    va_end(arguments);
    return ARGS_WRONG;
}

static bool take_apart(const char *text, struct word *out)
{
    if (text[0] != '-' || text[1] == '\0') {
        return false;
    }
    out->text = text;
    out->name = text + (text[1] == '-' ? 2 : 1);
    out->name_length = strcspn(out->name, "=");
    out->value = out->name[out->name_length] == '=' ? out->name + out->name_length + 1 : NULL;
    return true;
}

/* Length of the first name of an option. */
static int first_name(const char *name)
{
    return (int)strcspn(name, "|");
}

/* An option as printed in help and messages. */
struct spelled {
    char text[48];
};

static struct spelled spell(const struct args_option *option)
{
    struct spelled spelled;
    const int n = first_name(option->name);
    snprintf(spelled.text, sizeof(spelled.text), "%s%.*s", n > 1 ? "--" : "-", n, option->name);
    return spelled;
}

static bool is_called(const struct word *word, const char *name)
{
    const size_t length = (size_t)first_name(name);
    bool is_same = length == word->name_length;
    for (size_t i = 0; i < length && is_same; i++) {
        const bool is_dash = name[i] == '-' || name[i] == '_';
        is_same = is_dash ? word->name[i] == '-' || word->name[i] == '_' : word->name[i] == name[i];
    }
    return is_same || (name[length] == '|' && is_called(word, name + length + 1));
}

static bool read_int(const char *text, size_t length, const struct args_option *option,
                     int64_t *out)
{
    char digits[24];
    if (length == 0 || length >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (digits[0] != '-' && (digits[0] < '0' || digits[0] > '9')) {
        return false;
    }
    char *end;
    errno = 0;
    long long value = strtoll(digits, &end, 10);
    if (errno != 0 || *end != '\0' || end == digits || (double)value < option->low ||
        (double)value > option->high) {
        return false;
    }
    *out = value;
    return true;
}

static bool read_ints(const char *text, const struct args_option *option, struct args_ints *out)
{
    struct args_ints list = {0};
    for (;;) {
        size_t length = strcspn(text, ",");
        if (list.n == ARGS_LIST_MAX || !read_int(text, length, option, &list.values[list.n])) {
            return false;
        }
        list.n++;
        if (text[length] == '\0') {
            break;
        }
        text += length + 1;
    }
    *out = list;
    return true;
}

static bool read_number(const char *text, const struct args_option *option, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < option->low ||
        value > option->high) {
        return false;
    }
    *out = value;
    return true;
}

static int add_string(const struct args_command *command, const struct args_option *option,
                      const char *value)
{
    struct args_strings *list = option->out;
    if (list->n == ARGS_LIST_MAX) {
        return wrong(command, "%s '%s': expected at most %d of them", spell(option).text, value,
                     ARGS_LIST_MAX);
    }
    list->values[list->n++] = value;
    return ARGS_OK;
}

static int read_value(const struct args_command *command, const struct args_option *option,
                      const char *value)
{
    bool valid = true;
    const char *kind = "a whole number";
    switch (option->kind) {
    case ARGS_STRING:
        *(const char **)option->out = value;
        return ARGS_OK;
    case ARGS_INT:
        valid = read_int(value, strlen(value), option, option->out);
        break;
    case ARGS_NUMBER:
        kind = "a number";
        valid = read_number(value, option, option->out);
        break;
    case ARGS_INTS:
        kind = "whole numbers, separated by commas,";
        valid = read_ints(value, option, option->out);
        break;
    case ARGS_STRINGS:
        return add_string(command, option, value);
    case ARGS_FLAG:
        break;
    }
    if (!valid) {
        return wrong(command, "%s '%s': expected %s from %.15g to %.15g", spell(option).text, value,
                     kind, option->low, option->high);
    }
    return ARGS_OK;
}

static const struct args_option *find_option(const struct args_command *command,
                                             const struct word *word)
{
    for (int i = 0; i < command->n_options; i++) {
        if (is_called(word, command->options[i].name)) {
            return &command->options[i];
        }
    }
    return NULL;
}

/* Parses the option at argv[*at] and moves past its value. */
static int read_option(const struct args_command *command, const struct word *word, int argc,
                       char **argv, int *at)
{
    const struct args_option *option = find_option(command, word);
    if (option == NULL) {
        char hint[96];
        args_hint(command, word->name, word->name_length, hint, sizeof(hint));
        return wrong(command, "unknown option '%s'%s", word->text, hint);
    }
    if (option->kind == ARGS_FLAG) {
        if (word->value != NULL) {
            return wrong(command, "option %s takes no value", spell(option).text);
        }
        *(bool *)option->out = true;
        return ARGS_OK;
    }
    const char *value = word->value;
    if (value == NULL) {
        if (*at + 1 >= argc) {
            return wrong(command, "option %s needs a value: %s", spell(option).text, option->value);
        }
        (*at)++;
        value = argv[*at];
    }
    return read_value(command, option, value);
}

/* The options that every command has. */
static int read_common(const struct args_command *command, const struct word *word)
{
    if (is_called(word, "help|h")) {
        args_help(command);
        return ARGS_HELP;
    }
    if (is_called(word, "version|V")) {
        printf("%s %s\n", args_program, TANDEM_VERSION_STRING);
        return ARGS_HELP;
    }
    const bool is_quiet = is_called(word, "quiet|q");
    if (!is_quiet && !is_called(word, "verbose")) {
        return ARGS_NONE;
    }
    if (word->value != NULL) {
        return wrong(command, "option %s takes no value", word->text);
    }
    tnd_say_level = is_quiet ? TND_SAY_QUIET : TND_SAY_ALL;
    return ARGS_OK;
}

int args_parse(const struct args_command *command, int argc, char **argv, const char **operands,
               int *out_n_operands)
{
    int n_operands = 0;
    bool only_operands = false;
    for (int i = 1; i < argc; i++) {
        struct word word;
        if (!only_operands && strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (!only_operands && take_apart(argv[i], &word)) {
            int result = read_common(command, &word);
            result = result == ARGS_NONE ? read_option(command, &word, argc, argv, &i) : result;
            if (result != ARGS_OK) {
                return result;
            }
        } else if (n_operands == command->max_operands) {
            return wrong(command, "unexpected '%s'", argv[i]);
        } else {
            operands[n_operands++] = argv[i];
        }
    }
    if (n_operands < command->min_operands) {
        const char *missing = command->operands; /* the first operand that is missing */
        for (int i = 0; i < n_operands && strchr(missing, ' ') != NULL; i++) {
            missing = strchr(missing, ' ') + 1;
        }
        return wrong(command, "%.*s is missing", (int)strcspn(missing, " "), missing);
    }
    if (out_n_operands != NULL) {
        *out_n_operands = n_operands;
    }
    return ARGS_OK;
}

bool args_read_ints(const char *text, double low, double high, struct args_ints *out)
{
    const struct args_option bounds = {.low = low, .high = high};
    return read_ints(text, &bounds, out);
}

int args_code(int result)
{
    return result == ARGS_HELP ? 0 : result;
}

/* Prints words, wrapped to fit a terminal. Continuation lines begin at column `indent`. */
static void print_words(const char *text, int column, int indent)
{
    enum { WIDTH = 79 };
    bool is_first = true;
    while (*text != '\0') {
        const int n = (int)strcspn(text, " \n");
        if (!is_first && column + 1 + n > WIDTH && column > indent) {
            printf("\n%*s", indent, "");
            column = indent;
            is_first = true;
        }
        column += printf("%s%.*s", is_first ? "" : " ", n, text);
        is_first = false;
        text += n + (text[n] != '\0');
    }
    putchar('\n');
}

static void print_option(const char *left, const char *text)
{
    enum { LEFT = 24 };
    print_words(text, printf("  %-*s ", LEFT, left), LEFT + 3);
}

void args_help(const struct args_command *command)
{
    printf("usage: %s%s%s%s%s%s\n\n", args_program, command->name[0] != '\0' ? " " : "",
           command->name, command->n_options > 0 ? " [options]" : "",
           command->operands[0] != '\0' ? " " : "", command->operands);
    print_words(command->what, 0, 0);
    printf("\n");
    for (int i = 0; i < command->n_options; i++) {
        const struct args_option *option = &command->options[i];
        const int n = first_name(option->name);
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s%s%s", spell(option).text,
                 option->name[n] == '|' ? ", -" : "",
                 option->name[n] == '|' ? option->name + n + 1 : "",
                 option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
        print_option(left, option->help);
    }
    print_option("--quiet, -q", "no notes, no progress");
    print_option("--verbose", "notes on what is found and chosen");
    print_option("--help, -h", "this text");
}
