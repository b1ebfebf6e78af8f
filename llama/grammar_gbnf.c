/* SPDX-License-Identifier: MIT
 * GBNF, the notation of llama.cpp's grammars (grammars/README.md there): rules of literals,
 * character classes, groups, choices and repetitions. Tokens in angle brackets are refused. */
#include <string.h>

#include "llama/grammar.h"
#include "llama/grammar_text.h"

enum { MOST_REPEATED = 4 /* most repetitions applied to one item without a group */ };

static int32_t parse_choices(struct tnd_spot *t, int depth);

/* ---- blanks, names ---- */

/* Skips blanks and comments; `lines`: newlines, too. */
static void skip(struct tnd_spot *t, bool lines)
{
    while (t->at < t->end) {
        if (*t->at == '#') {
            while (t->at < t->end && *t->at != '\n' && *t->at != '\r') {
                t->at++;
            }
        } else if (*t->at == ' ' || *t->at == '\t' ||
                   (lines && (*t->at == '\n' || *t->at == '\r'))) {
            t->at++;
        } else {
            return;
        }
    }
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Consumes a name; returns its rule. */
static int32_t parse_name(struct tnd_spot *t, bool *out_good)
{
    const char *begin = t->at;
    while (t->at < t->end && is_name(*t->at)) {
        t->at++;
    }
    *out_good = t->at > begin;
    if (t->at == begin) {
        return tnd_spot_fail(t, "a name is expected");
    }
    return tnd_tree_rule(t->tree, begin, (size_t)(t->at - begin));
}

/* ---- literals and classes ---- */

/* Consumes a character of a literal or class, with escapes. */
static uint32_t parse_char(struct tnd_spot *t)
{
    const char *place = t->at;
    if (tnd_spot_peek(t) != '\\') {
        return tnd_spot_char(t);
    }
    t->at++;
    const char c = tnd_spot_peek(t);
    t->at += t->at < t->end;
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'x':
        return tnd_spot_hex(t, 2);
    case 'u':
        return tnd_spot_hex(t, 4);
    case 'U':
        return tnd_spot_hex(t, 8);
    default:
        if (c == '\0' || strchr("\\\"[]-^", c) == NULL) {
            t->at = place;
            (void)tnd_spot_fail(t, "an unknown escape");
        }
        return (unsigned char)c;
    }
}

static int32_t parse_literal(struct tnd_spot *t)
{
    const int32_t list = tnd_tree_list(t->tree, TND_SEQUENCE);
    char bytes[256];
    size_t n = 0;
    t->at++;
    while (t->at < t->end && *t->at != '"' && t->tree->status == TANDEM_OK) {
        n += tnd_spot_utf8(parse_char(t), bytes + n);
        if (n > sizeof(bytes) - 4) {
            tnd_tree_append(t->tree, list, tnd_tree_bytes(t->tree, bytes, n));
            n = 0;
        }
    }
    if (t->at >= t->end) {
        return tnd_spot_fail(t, "a literal has no end");
    }
    t->at++;
    tnd_tree_append(t->tree, list, tnd_tree_bytes(t->tree, bytes, n));
    return list;
}

static int32_t parse_class(struct tnd_spot *t)
{
    struct tnd_char_range ranges[TND_SPOT_MOST_RANGES];
    size_t n = 0;
    t->at++;
    const bool is_negated = tnd_spot_peek(t) == '^';
    t->at += is_negated;
    while (t->at < t->end && *t->at != ']' && t->tree->status == TANDEM_OK) {
        if (n == TND_SPOT_MOST_RANGES) {
            return tnd_spot_fail(t, "a class of too many parts");
        }
        const uint32_t low = parse_char(t);
        ranges[n].low = ranges[n].high = low;
        if (t->end - t->at >= 2 && *t->at == '-' && t->at[1] != ']') {
            t->at++;
            ranges[n].high = parse_char(t);
        }
        if (ranges[n].high < low) {
            return tnd_spot_fail(t, "a range that ends before it begins");
        }
        n++;
    }
    if (t->at >= t->end) {
        return tnd_spot_fail(t, "a class has no end");
    }
    t->at++;
    return tnd_tree_chars(t->tree, ranges, n, is_negated);
}

/* ---- expressions ---- */

static int32_t parse_item(struct tnd_spot *t, int depth)
{
    int32_t node = 0;
    bool is_good;
    switch (tnd_spot_peek(t)) {
    case '"':
        return parse_literal(t);
    case '[':
        return parse_class(t);
    case '.':
        t->at++;
        return tnd_tree_chars(t->tree, NULL, 0, true);
    case '(':
        if (depth >= TND_GRAMMAR_DEPTH) {
            return tnd_spot_fail(t, "too many groups within each other");
        }
        t->at++;
        node = parse_choices(t, depth + 1);
        if (tnd_spot_peek(t) != ')') {
            return tnd_spot_fail(t, "')' is expected");
        }
        t->at++;
        return node;
    case '<':
    case '!':
        return tnd_tree_fail(t->tree, TANDEM_E_UNSUPPORTED_BUILD,
                             "grammar: tokens in angle brackets (line %d) are not supported",
                             tnd_spot_line(t));
    default:
        node = parse_name(t, &is_good);
        return is_good ? tnd_tree_call(t->tree, node) : 0;
    }
}

/* Consumes the repetitions that follow an item: * + ? {m} {m,} {m,n}, any number of them. */
static int32_t parse_repeats(struct tnd_spot *t, int32_t item, int depth)
{
    for (int n = 0;; n++) {
        const char *place = t->at;
        int64_t min, max;
        skip(t, depth > 0);
        if (t->tree->status != TANDEM_OK || !tnd_spot_repeat(t, &min, &max)) {
            t->at = t->tree->status == TANDEM_OK ? place : t->at;
            return item;
        }
        if (n == MOST_REPEATED) {
            return tnd_spot_fail(t, "too many repetitions within each other");
        }
        item = tnd_tree_repeat(t->tree, item, min, max);
    }
}

/* Whether a choice continues on the next line. */
static bool goes_on(struct tnd_spot *t)
{
    const char *place = t->at;
    skip(t, true);
    if (tnd_spot_peek(t) == '|') {
        return true;
    }
    t->at = place;
    return false;
}

static int32_t parse_sequence(struct tnd_spot *t, int depth)
{
    const int32_t list = tnd_tree_list(t->tree, TND_SEQUENCE);
    while (t->tree->status == TANDEM_OK) {
        skip(t, depth > 0);
        if (t->at >= t->end || strchr("|)\r\n", *t->at) != NULL) {
            return list;
        }
        const int32_t item = parse_item(t, depth);
        tnd_tree_append(t->tree, list, parse_repeats(t, item, depth));
    }
    return list;
}

static int32_t parse_choices(struct tnd_spot *t, int depth)
{
    const int32_t list = tnd_tree_list(t->tree, TND_CHOICE);
    skip(t, true);
    tnd_tree_append(t->tree, list, parse_sequence(t, depth));
    while (t->tree->status == TANDEM_OK && goes_on(t)) {
        t->at++; /* the bar */
        skip(t, true);
        tnd_tree_append(t->tree, list, parse_sequence(t, depth));
    }
    return list;
}

static void parse_rule(struct tnd_spot *t)
{
    bool is_good;
    const int32_t rule = parse_name(t, &is_good);
    skip(t, false);
    if (t->tree->status == TANDEM_OK && (t->end - t->at < 3 || memcmp(t->at, "::=", 3) != 0)) {
        (void)tnd_spot_fail(t, "'::=' is expected behind a rule's name");
    }
    if (t->tree->status != TANDEM_OK) {
        return;
    }
    if (t->tree->rules[rule].node != 0) {
        (void)tnd_spot_fail(t, "a rule is defined twice");
        return;
    }
    t->at += 3;
    const int32_t node = parse_choices(t, 0);
    if (t->tree->status == TANDEM_OK) {
        t->tree->rules[rule].node = node;
        skip(t, false);
        if (t->at < t->end && *t->at != '\n' && *t->at != '\r') {
            (void)tnd_spot_fail(t, "more text behind a rule");
        }
    }
}

int32_t tnd_gbnf_parse(struct tnd_tree *tree, const char *text, size_t n, const char *root)
{
    struct tnd_spot t = {.tree = tree, .begin = text, .at = text, .end = text + n};
    for (skip(&t, true); t.at < t.end && tree->status == TANDEM_OK; skip(&t, true)) {
        parse_rule(&t);
    }
    const int32_t rule = tnd_tree_rule(tree, root, strlen(root));
    if (tree->status == TANDEM_OK && tree->rules[rule].node == 0) {
        return tnd_tree_fail(tree, TANDEM_E_FORMAT, "grammar: there is no rule '%s'", root);
    }
    return tnd_tree_call(tree, rule);
}
