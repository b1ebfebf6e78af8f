/* SPDX-License-Identifier: MIT
 * Reads one source: expands its includes, blanks its comments, finds its kernels' arguments. A
 * source that breaks the rules ends the program with file and line. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"

enum { MAX_DEPTH = 8, MAX_INCLUDED = 64, MAX_TOKENS = 1024 };

/* ---- files ---- */

static struct pack_text read_file(const char *path, const char *from, int line)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        pack_fail(from, line, "cannot open %s: %s", path, strerror(errno));
    }
    struct pack_text text = {0};
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof(part), file)) > 0) {
        pack_add(&text, part, n);
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        pack_fail(path, 0, "cannot be read");
    }
    if (text.n == 0 || text.bytes[text.n - 1] != '\n') {
        pack_fail(path, 0, "does not end with a line end");
    }
    if (memchr(text.bytes, '\0', text.n) != NULL) {
        pack_fail(path, 0, "contains a zero byte");
    }
    return text;
}

/* Replaces comments by blanks, but keeps newlines, so that line numbers do not change. */
static void blank_comments(struct pack_text *text, const char *path)
{
    char *at = text->bytes;
    int line = 1;
    char quote = '\0';
    while (*at != '\0') {
        line += *at == '\n';
        if (quote != '\0') {
            if (*at == '\\' && at[1] != '\0') {
                at++;
            } else if (*at == quote || *at == '\n') {
                quote = '\0';
            }
            at++;
        } else if (*at == '"' || *at == '\'') {
            quote = *at++;
        } else if (at[0] == '/' && at[1] == '/') {
            while (*at != '\n' && *at != '\0') {
                *at++ = ' ';
            }
        } else if (at[0] == '/' && at[1] == '*') {
            int begin = line;
            at[0] = ' ';
            at[1] = ' ';
            for (at += 2; !(at[0] == '*' && at[1] == '/'); at++) {
                if (*at == '\0') {
                    pack_fail(path, begin, "a comment does not end");
                }
                line += *at == '\n';
                *at = *at == '\n' ? '\n' : ' ';
            }
            at[0] = ' ';
            at[1] = ' ';
            at += 2;
        } else {
            at++;
        }
    }
}

/* ---- tokens ---- */

struct token {
    const char *at;
    int n; /* 0 at the end of the text */
    int line;
};

struct reader {
    const char *path;
    const char *at;
    int line;
    bool is_line_begin;
};

static void skip_directive(struct reader *in)
{
    for (; *in->at != '\0' && *in->at != '\n'; in->at++) {
        if (in->at[0] == '\\' && in->at[1] == '\n') {
            in->line++;
            in->at++;
        }
    }
}

static struct token next_token(struct reader *in)
{
    for (;; in->at++) {
        if (*in->at == '#' && in->is_line_begin) {
            skip_directive(in);
        }
        if (*in->at == '\n') {
            in->line++;
            in->is_line_begin = true;
        } else if (*in->at == '\0' || !isspace((unsigned char)*in->at)) {
            break;
        }
    }
    in->is_line_begin = false;
    struct token token = {in->at, 0, in->line};
    if (*in->at == '\0') {
        return token;
    }
    if (isalnum((unsigned char)*in->at) || *in->at == '_') {
        while (isalnum((unsigned char)*in->at) || *in->at == '_') {
            in->at++;
        }
    } else {
        in->at++;
    }
    token.n = (int)(in->at - token.at);
    return token;
}

static bool is(struct token token, const char *text)
{
    return token.n == (int)strlen(text) && memcmp(token.at, text, (size_t)token.n) == 0;
}

static bool is_name(struct token token)
{
    return token.n > 0 && (isalpha((unsigned char)*token.at) || *token.at == '_');
}

static void copy_name(char *out, struct token token, const char *path)
{
    if (!is_name(token)) {
        pack_fail(path, token.line, "'%.*s' stands where a name is expected", token.n, token.at);
    }
    if (token.n >= PACK_MAX_NAME) {
        pack_fail(path, token.line, "the name '%.*s' is longer than %d", token.n, token.at,
                  PACK_MAX_NAME - 1);
    }
    memcpy(out, token.at, (size_t)token.n);
    out[token.n] = '\0';
}

/* ---- arguments ---- */

static const struct {
    const char *cl;
    const char *c;
} scalars[] = {{"int", "int32_t"},    {"uint", "uint32_t"}, {"long", "int64_t"},
               {"ulong", "uint64_t"}, {"float", "float"},   {"uchar", "uint8_t"}};

static const char *scalar_type(struct token token)
{
    for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++) {
        if (is(token, scalars[i].cl)) {
            return scalars[i].c;
        }
    }
    return NULL;
}

static bool is_qualifier(struct token token)
{
    return is(token, "const") || is(token, "restrict") || is(token, "volatile") ||
           is(token, "__restrict");
}

/* Refuses names that are keywords of C or used in the generated functions. */
static void check_arg_name(const struct pack_kernel *kernel, struct token token, const char *path)
{
    static const char *const taken[] = {"launch", "error", "int",  "char", "long",    "short",
                                        "signed", "float", "void", "auto", "register"};
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
        if (is(token, taken[i])) {
            pack_fail(path, token.line, "an argument may not be named '%s'", taken[i]);
        }
    }
    for (int i = 0; i < kernel->n_args; i++) {
        if (is(token, kernel->args[i].name)) {
            pack_fail(path, token.line, "two arguments are named '%.*s'", token.n, token.at);
        }
    }
}

/* `tokens` is one argument without qualifiers. `want_at`: name of the offset that must follow the
 * previous pointer. */
static void add_arg(struct pack_kernel *kernel, const struct token *tokens, int n,
                    char want_at[PACK_MAX_NAME + 4], const char *path)
{
    int line = tokens[0].line;
    if (want_at[0] != '\0') {
        if (n != 2 || !is(tokens[0], "ulong") || !is(tokens[1], want_at)) {
            pack_fail(path, line, "'ulong %s' must follow its pointer here", want_at);
        }
        want_at[0] = '\0';
        return;
    }
    if (kernel->n_args == PACK_MAX_ARGS) {
        pack_fail(path, line, "kernel %s has more than %d arguments", kernel->name, PACK_MAX_ARGS);
    }
    struct pack_arg *arg = &kernel->args[kernel->n_args];
    struct token name = tokens[n - 1];
    check_arg_name(kernel, name, path);
    copy_name(arg->name, name, path);
    bool is_global = is(tokens[0], "global") || is(tokens[0], "__global");
    bool is_local = is(tokens[0], "local") || is(tokens[0], "__local");
    if (is_global || is_local) {
        if (n != 4 || !is_name(tokens[1]) || !is(tokens[2], "*")) {
            pack_fail(path, line, "expected '%.*s TYPE *name'", tokens[0].n, tokens[0].at);
        }
        arg->kind = is_global ? PACK_RANGE : PACK_LOCAL;
        if (is_global) {
            snprintf(want_at, PACK_MAX_NAME + 4, "%s_at", arg->name);
        }
    } else {
        arg->kind = PACK_SCALAR;
        arg->c_type = n == 2 ? scalar_type(tokens[0]) : NULL;
        if (arg->c_type == NULL) {
            pack_fail(path, line,
                      "argument '%s' of kernel %s: expected global T *p, ulong p_at; local T *p; "
                      "or int, uint, long, ulong, float, uchar",
                      arg->name, kernel->name);
        }
    }
    kernel->n_args++;
}

/* Parses everything between the parentheses. */
static void read_args(struct reader *in, struct pack_kernel *kernel)
{
    struct token tokens[8];
    int n = 0;
    char want_at[PACK_MAX_NAME + 4] = "";
    for (;;) {
        struct token token = next_token(in);
        if (token.n == 0) {
            pack_fail(in->path, kernel->line, "the arguments of kernel %s do not end",
                      kernel->name);
        }
        if (is(token, ",") || is(token, ")")) {
            if (n == 0) {
                pack_fail(in->path, token.line, "kernel %s: an argument is empty", kernel->name);
            }
            add_arg(kernel, tokens, n, want_at, in->path);
            n = 0;
            if (is(token, ")")) {
                break;
            }
        } else if (!is_qualifier(token)) {
            if (n == (int)(sizeof(tokens) / sizeof(tokens[0]))) {
                pack_fail(in->path, token.line, "kernel %s: this argument is not understood",
                          kernel->name);
            }
            tokens[n++] = token;
        }
    }
    if (want_at[0] != '\0') {
        pack_fail(in->path, kernel->line, "kernel %s: 'ulong %s' is missing", kernel->name,
                  want_at);
    }
}

/* ---- kernels ---- */

static struct token skip_attributes(struct reader *in)
{
    struct token token = next_token(in);
    while (is(token, "__attribute__")) {
        int depth = 0;
        do {
            token = next_token(in);
            depth += is(token, "(") - is(token, ")");
        } while (depth > 0 && token.n > 0);
        token = next_token(in);
    }
    return token;
}

static bool is_same_signature(const struct pack_kernel *a, const struct pack_kernel *b)
{
    bool same = a->n_args == b->n_args && a->source == b->source;
    for (int i = 0; same && i < a->n_args; i++) {
        same = a->args[i].kind == b->args[i].kind && a->args[i].c_type == b->args[i].c_type &&
               strcmp(a->args[i].name, b->args[i].name) == 0;
    }
    return same;
}

static void read_kernel(struct pack *pack, struct reader *in, int source)
{
    static struct pack_kernel kernel;
    memset(&kernel, 0, sizeof(kernel));
    struct token token = skip_attributes(in);
    if (!is(token, "void")) {
        pack_fail(in->path, token.line, "expected 'void' after 'kernel'");
    }
    token = skip_attributes(in);
    copy_name(kernel.name, token, in->path);
    kernel.file = in->path;
    kernel.line = token.line;
    kernel.source = source;
    token = next_token(in);
    if (!is(token, "(")) {
        pack_fail(in->path, token.line, "expected '(' after the name of kernel %s", kernel.name);
    }
    read_args(in, &kernel);
    /* A kernel with two bodies, chosen by #if, is one kernel if its arguments agree. */
    for (int i = 0; i < pack->n_kernels; i++) {
        if (strcmp(pack->kernels[i].name, kernel.name) == 0) {
            if (!is_same_signature(&pack->kernels[i], &kernel)) {
                pack_fail(in->path, kernel.line,
                          "kernel %s stands in %s:%d too, with other arguments or in another file",
                          kernel.name, pack->kernels[i].file, pack->kernels[i].line);
            }
            return;
        }
    }
    if (pack->n_kernels == PACK_MAX_KERNELS) {
        pack_fail(in->path, kernel.line, "more than %d kernels", PACK_MAX_KERNELS);
    }
    pack->kernels[pack->n_kernels++] = kernel;
}

static void read_kernels(struct pack *pack, const char *path, const char *text, int source)
{
    struct reader in = {path, text, 1, true};
    for (struct token token = next_token(&in); token.n > 0; token = next_token(&in)) {
        if (is(token, "kernel") || is(token, "__kernel")) {
            if (source < 0) {
                pack_fail(path, token.line, "a file that is included may not hold kernels");
            }
            read_kernel(pack, &in, source);
        }
    }
}

/* ---- includes ---- */

struct included {
    int n;
    char *paths[MAX_INCLUDED];
};

/* The file name of an `#include "file"` line, or NULL. */
static char *include_name(const char *line, size_t n)
{
    const char *end = line + n;
    const char *at = line;
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if (at == end || *at++ != '#') {
        return NULL;
    }
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if ((size_t)(end - at) < strlen("include") || memcmp(at, "include", strlen("include")) != 0) {
        return NULL;
    }
    const char *open = memchr(at, '"', (size_t)(end - at));
    const char *close = open != NULL ? memchr(open + 1, '"', (size_t)(end - open - 1)) : NULL;
    return close != NULL ? strndup(open + 1, (size_t)(close - open - 1)) : strdup("");
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void add_file(struct pack *pack, struct included *included, const char *path,
                     const char *from, int from_line, int depth, int source, struct pack_text *out);

static void add_include(struct pack *pack, struct included *included, const char *path, int line,
                        const char *name, int depth, struct pack_text *out)
{
    if (name[0] == '\0' || strchr(name, '/') != NULL) {
        pack_fail(path, line, "expected #include \"file\" of the same folder");
    }
    char full[4096];
    if (snprintf(full, sizeof(full), "%.*s%s", (int)(base_name(path) - path), path, name) >=
        (int)sizeof(full)) {
        pack_fail(path, line, "the path of %s is too long", name);
    }
    for (int i = 0; i < included->n; i++) {
        if (strcmp(included->paths[i], full) == 0) {
            return;
        }
    }
    if (included->n == MAX_INCLUDED || depth == MAX_DEPTH) {
        pack_fail(path, line, "too many files are included");
    }
    included->paths[included->n] = strdup(full);
    if (included->paths[included->n] == NULL) {
        pack_fail("kernel-pack", 0, "no memory");
    }
    add_file(pack, included, included->paths[included->n++], path, line, depth + 1, -1, out);
}

static void add_file(struct pack *pack, struct included *included, const char *path,
                     const char *from, int from_line, int depth, int source, struct pack_text *out)
{
    struct pack_text text = read_file(path, from, from_line);
    blank_comments(&text, path);
    read_kernels(pack, path, text.bytes, source);
    pack_printf(out, "#line 1 \"%s\"\n", base_name(path));
    int line = 1;
    for (const char *at = text.bytes; *at != '\0'; line++) {
        size_t n = (size_t)(strchr(at, '\n') - at); /* the last byte is one */
        size_t shown = n;
        while (shown > 0 && (at[shown - 1] == ' ' || at[shown - 1] == '\t')) {
            shown--;
        }
        char *name = include_name(at, n);
        if (name != NULL) {
            add_include(pack, included, path, line, name, depth, out);
            pack_printf(out, "#line %d \"%s\"\n", line + 1, base_name(path));
            free(name);
        } else {
            pack_add(out, at, shown);
            pack_add(out, "\n", 1);
        }
        at += n + 1;
    }
    free(text.bytes);
}

void pack_read_source(struct pack *pack, const char *path)
{
    if (pack->n_sources == PACK_MAX_FILES) {
        pack_fail(path, 0, "more than %d files", PACK_MAX_FILES);
    }
    const char *base = base_name(path);
    size_t n = strlen(base);
    if (n < 4 || n - 3 >= PACK_MAX_NAME || strcmp(base + n - 3, ".cl") != 0) {
        pack_fail(path, 0, "expected a file name that ends in .cl");
    }
    struct pack_source *source = &pack->sources[pack->n_sources];
    source->path = path;
    memcpy(source->name, base, n - 3);
    for (const char *at = source->name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_') {
            pack_fail(path, 0, "expected a file name of letters, digits and '_'");
        }
    }
    for (int i = 0; i < pack->n_sources; i++) {
        if (strcmp(pack->sources[i].name, source->name) == 0) {
            pack_fail(path, 0, "there are two files of this name");
        }
    }
    struct included included = {0};
    add_file(pack, &included, path, path, 0, 0, pack->n_sources, &source->text);
    for (int i = 0; i < included.n; i++) {
        free(included.paths[i]);
    }
    pack->n_sources++;
}
