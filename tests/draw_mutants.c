/* SPDX-License-Identifier: MIT
 * usage: draw-mutants SEED N FILE...        (tools/dev/mutants.sh)
 * Draws N different single changes of C sources by a seed: first a kind, then a place among all
 * places of that kind. A line each: file, line, column (from 1), length, new text, kind; separated
 * by tabs. The sources are formatted by clang-format, so a binary operator stands between
 * blanks. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { COMPARISON, LOGIC, SIGN, STRIDE, CONSTANT, CALL, N_KINDS };
static const char *const kind_names[N_KINDS] = {"comparison", "logic",    "sign",
                                                "stride",     "constant", "missing call or order"};

struct place {
    const char *file;
    int line, column, length;
    char text[32];
    bool is_drawn;
};

static struct place *places[N_KINDS];
static size_t n_places[N_KINDS];

static void add(enum kind kind, const char *file, int line, size_t column, size_t length,
                const char *text)
{
    if ((n_places[kind] & (n_places[kind] - 1)) == 0) { /* a power of two, or none: full */
        const size_t room = n_places[kind] > 0 ? 2 * n_places[kind] : 1;
        places[kind] = realloc(places[kind], room * sizeof(struct place));
        if (places[kind] == NULL) {
            exit(2);
        }
    }
    struct place *place = &places[kind][n_places[kind]++];
    *place = (struct place){file, line, (int)column + 1, (int)length, "", false};
    snprintf(place->text, sizeof(place->text), "%s", text);
}

/* Blanks out comments, strings and characters, so that columns stay; whether a comment goes on. */
static bool hide_text(char *line, bool in_comment)
{
    char quote = '\0';
    for (char *at = line; *at != '\0'; at++) {
        if (in_comment) {
            in_comment = strncmp(at, "*/", 2) != 0;
            at[0] = ' ';
            if (!in_comment) {
                *++at = ' ';
            }
        } else if (quote != '\0') {
            if (*at == '\\' && at[1] != '\0') {
                *at++ = '_';
            } else if (*at == quote) {
                quote = '\0';
            }
            *at = '_';
        } else if (strncmp(at, "/*", 2) == 0) {
            in_comment = true;
            *at = ' ';
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
            *at = '_';
        }
    }
    return in_comment;
}

static void find_operators(const char *file, int number, const char *line)
{
    static const struct {
        enum kind kind;
        const char *old, *new;
    } changes[] = {{COMPARISON, " < ", " <= "},
                   {COMPARISON, " <= ", " < "},
                   {COMPARISON, " > ", " >= "},
                   {COMPARISON, " >= ", " > "},
                   {COMPARISON, " == ", " != "},
                   {COMPARISON, " != ", " == "},
                   {LOGIC, " && ", " || "},
                   {LOGIC, " || ", " && "},
                   {SIGN, " + ", " - "},
                   {SIGN, " - ", " + "},
                   {SIGN, " += ", " -= "},
                   {SIGN, " -= ", " += "},
                   {STRIDE, " * ", " + "},
                   {STRIDE, " / ", " * "},
                   {STRIDE, " % ", " / "},
                   {LOGIC, "(!", "("},
                   {CALL, "order_acquire", "order_relaxed"},
                   {CALL, "order_release", "order_relaxed"},
                   {CALL, "order_acq_rel", "order_relaxed"},
                   {CALL, "order_seq_cst", "order_relaxed"}};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const size_t length = strlen(changes[i].old);
        for (const char *at = strstr(line, changes[i].old); at != NULL;
             at = strstr(at + 1, changes[i].old)) {
            add(changes[i].kind, file, number, (size_t)(at - line), length, changes[i].new);
        }
    }
}

/* Decimal integers: one more, and one less where that is not below zero. In brackets they choose a
 * dimension. */
static void find_constants(const char *file, int number, const char *line)
{
    for (size_t i = 1; line[i] != '\0'; i++) {
        const char before = line[i - 1];
        if (!isdigit((unsigned char)line[i]) || isalnum((unsigned char)before) || before == '_' ||
            before == '.') {
            continue;
        }
        const size_t length = strspn(line + i, "0123456789");
        const char after = line[i + length];
        if (length < 8 && after != '.' && after != 'x' && after != 'e') {
            const long value = atol(line + i);
            const enum kind kind = before == '[' && after == ']' ? STRIDE : CONSTANT;
            char text[32];
            snprintf(text, sizeof(text), "%ld", value + 1);
            add(kind, file, number, i, length, text);
            if (value > 0) {
                snprintf(text, sizeof(text), "%ld", value - 1);
                add(kind, file, number, i, length, text);
            }
        }
        i += length - 1;
    }
}

/* Statements of one line that free, unlock, close, wake or wait. */
static void find_calls(const char *file, int number, const char *line)
{
    static const char *const parts[] = {"free",   "unlock", "barrier", "close",   "release",
                                        "munmap", "signal", "wake",    "destroy", "broadcast"};
    const size_t blanks = strspn(line, " ");
    const char *call = line + blanks + (strncmp(line + blanks, "(void)", 6) == 0 ? 6 : 0);
    const size_t name = strspn(call, "abcdefghijklmnopqrstuvwxyz0123456789_>-.");
    const size_t length = strcspn(line, "\n");
    if (blanks == 0 || name == 0 || call[name] != '(' || line[length - 1] != ';') {
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const char *found = strstr(call, parts[i]);
        if (found != NULL && found < call + name) {
            add(CALL, file, number, blanks, length - blanks, "(void)0;");
            return;
        }
    }
}

static void find_places(const char *file)
{
    FILE *stream = fopen(file, "r");
    char line[4096];
    bool in_comment = false, in_directive = false;
    for (int number = 1; stream != NULL && fgets(line, sizeof(line), stream) != NULL; number++) {
        const bool goes_on = strstr(line, "\\\n") != NULL;
        in_comment = hide_text(line, in_comment);
        in_directive = in_directive || line[0] == '#';
        if (!in_directive && strstr(line, "ASSERT") == NULL && strstr(line, "_assert") == NULL) {
            find_operators(file, number, line);
            find_constants(file, number, line);
            find_calls(file, number, line);
        }
        in_directive = in_directive && goes_on;
    }
    if (stream == NULL) {
        fprintf(stderr, "draw-mutants: cannot open %s\n", file);
        exit(2);
    }
    (void)fclose(stream);
}

/* Splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: draw-mutants SEED N FILE...\n");
        return 2;
    }
    uint64_t state = strtoull(argv[1], NULL, 10);
    const long n = atol(argv[2]);
    for (int i = 3; i < argc; i++) {
        find_places(argv[i]);
    }
    for (long i = 0, tries = 0; i < n && tries < 100 * n; tries++) {
        const enum kind kind = (enum kind)(next_random(&state) % N_KINDS);
        if (n_places[kind] == 0) {
            continue;
        }
        struct place *place = &places[kind][next_random(&state) % n_places[kind]];
        if (!place->is_drawn) {
            place->is_drawn = true;
            i++;
            printf("%s\t%d\t%d\t%d\t%s\t%s\n", place->file, place->line, place->column,
                   place->length, place->text, kind_names[kind]);
        }
    }
    return 0;
}
