/* SPDX-License-Identifier: MIT
 * Regular expressions: the common subset of ECMA-262 and Python's `re` that an automaton can match.
 * Capturing groups are plain groups; lazy repetitions match the same texts as greedy ones. */
#include <string.h>

#include "llama/grammar.h"
#include "llama/grammar_text.h"

enum { MOST_GROUPS = 48, LAST = 0x10ffff };

static int32_t parse_choices(struct tnd_spot *t, int depth);

static int32_t refuse(struct tnd_spot *t, const char *what)
{
    return tnd_tree_fail(t->tree, TANDEM_E_UNSUPPORTED_BUILD,
                         "pattern: %s at byte %d are not supported", what, (int)(t->at - t->begin));
}

/* ---- characters ---- */

struct set {
    struct tnd_char_range ranges[TND_SPOT_MOST_RANGES];
    size_t n;
};

static void add_range(struct tnd_spot *t, struct set *set, uint32_t low, uint32_t high)
{
    if (set->n == TND_SPOT_MOST_RANGES) {
        (void)tnd_spot_fail(t, "a class of too many parts");
        return;
    }
    set->ranges[set->n++] = (struct tnd_char_range){low, high};
}

/* Adds \d \w \s, or their complements. */
static bool add_kind(struct tnd_spot *t, struct set *set, char kind)
{
    switch (kind) {
    case 'd':
        add_range(t, set, '0', '9');
        return true;
    case 'D':
        add_range(t, set, 0, '0' - 1);
        add_range(t, set, '9' + 1, LAST);
        return true;
    case 'w':
        add_range(t, set, '0', '9');
        add_range(t, set, 'A', 'Z');
        add_range(t, set, 'a', 'z');
        add_range(t, set, '_', '_');
        return true;
    case 'W':
        add_range(t, set, 0, '0' - 1);
        add_range(t, set, '9' + 1, 'A' - 1);
        add_range(t, set, 'Z' + 1, '_' - 1);
        add_range(t, set, '_' + 1, 'a' - 1);
        add_range(t, set, 'z' + 1, LAST);
        return true;
    case 's':
        add_range(t, set, '\t', '\r');
        add_range(t, set, ' ', ' ');
        return true;
    case 'S':
        add_range(t, set, 0, '\t' - 1);
        add_range(t, set, '\r' + 1, ' ' - 1);
        add_range(t, set, ' ' + 1, LAST);
        return true;
    default:
        return false;
    }
}

/* Consumes a single character after a backslash. */
static uint32_t parse_escape(struct tnd_spot *t)
{
    static const char names[] = "nrtfv0";
    static const char values[] = "\n\r\t\f\v";
    const char c = tnd_spot_peek(t);
    const char *at = c != '\0' ? strchr(names, c) : NULL;
    if (c == 'x' || c == 'u') {
        t->at++;
        return tnd_spot_hex(t, c == 'x' ? 2 : 4);
    }
    if (at != NULL) {
        t->at++;
        return (unsigned char)values[at - names];
    }
    if ((c >= '1' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) {
        (void)refuse(t, "back references and escapes such as \\b and \\p");
        return 0;
    }
    return tnd_spot_char(t);
}

/* A character within a JSON string: escaped if necessary. */
static int32_t in_json(struct tnd_spot *t, uint32_t c)
{
    static const char raw[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    const char *at = c > 0 && c < 0x80 ? strchr(raw, (int)c) : NULL;
    const char named[] = {'\\', at != NULL ? names[at - raw] : '\0', '\0'};
    return at != NULL ? tnd_tree_text(t->tree, named) : 0;
}

/* A set of characters; in JSON, characters that must be escaped are, and control characters without
 * a short escape are left out. */
static int32_t add_set(struct tnd_spot *t, const struct set *set, bool is_negated)
{
    static const struct tnd_char_range bare[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
    struct tnd_tree *tree = t->tree;
    const int32_t chars = tnd_tree_chars(tree, set->ranges, set->n, is_negated);
    if (!t->in_json || tree->status != TANDEM_OK) {
        return chars;
    }
    const int32_t list = tnd_tree_list(tree, TND_CHOICE);
    struct set plain = {.n = 0};
    const int32_t begin = tree->nodes[chars].first, end = tree->nodes[chars].last;
    for (int32_t i = begin; i < end; i++) {
        uint32_t from = tree->ranges[i].low;
        const uint32_t high = tree->ranges[i].high;
        for (int k = 0; k < 3; k++) {
            if (from < bare[k].low) {
                add_range(t, &plain, from, high < bare[k].low - 1 ? high : bare[k].low - 1);
            }
            for (uint32_t c = from > bare[k].low ? from : bare[k].low;
                 c <= bare[k].high && c <= high; c++) {
                tnd_tree_append(tree, list, in_json(t, c));
            }
            from = from > bare[k].high ? from : bare[k].high + 1;
        }
        if (from <= high) {
            add_range(t, &plain, from, high);
        }
    }
    if (plain.n > 0) {
        tnd_tree_append(tree, list, tnd_tree_chars(tree, plain.ranges, plain.n, false));
    }
    return list;
}

static int32_t add_char(struct tnd_spot *t, uint32_t c)
{
    struct set set = {.n = 0};
    add_range(t, &set, c, c);
    return add_set(t, &set, false);
}

/* Consumes an end point of a range, or a class such as \d: then returns true. */
static bool parse_member(struct tnd_spot *t, struct set *set, uint32_t *out)
{
    if (tnd_spot_peek(t) != '\\') {
        *out = tnd_spot_char(t);
        return false;
    }
    t->at++;
    if (add_kind(t, set, tnd_spot_peek(t))) {
        t->at++;
        return true;
    }
    if (tnd_spot_peek(t) == 'b') {
        t->at++;
        *out = '\b';
        return false;
    }
    *out = parse_escape(t);
    return false;
}

static int32_t parse_class(struct tnd_spot *t)
{
    struct set set = {.n = 0};
    t->at++;
    const bool is_negated = tnd_spot_peek(t) == '^';
    t->at += is_negated;
    while (t->at < t->end && *t->at != ']' && t->tree->status == TANDEM_OK) {
        uint32_t low = 0, high = 0;
        if (parse_member(t, &set, &low)) {
            continue;
        }
        high = low;
        if (t->end - t->at >= 2 && t->at[0] == '-' && t->at[1] != ']') {
            t->at++;
            if (parse_member(t, &set, &high) || high < low) {
                return tnd_spot_fail(t, "a range that ends before it begins");
            }
        }
        add_range(t, &set, low, high);
    }
    if (t->at >= t->end) {
        return tnd_spot_fail(t, "a class has no end");
    }
    t->at++;
    return add_set(t, &set, is_negated);
}

/* ---- expressions ---- */

static int32_t parse_group(struct tnd_spot *t, int depth)
{
    t->at++;
    if (depth >= MOST_GROUPS) {
        return tnd_spot_fail(t, "too many groups within each other");
    }
    if (tnd_spot_peek(t) == '?') {
        if (t->end - t->at < 2 || t->at[1] != ':') {
            return refuse(t, "groups with a question mark other than (?:");
        }
        t->at += 2;
    }
    const int32_t node = parse_choices(t, depth + 1);
    if (tnd_spot_peek(t) != ')') {
        return tnd_spot_fail(t, "')' is expected");
    }
    t->at++;
    return node;
}

static int32_t parse_item(struct tnd_spot *t, int depth)
{
    struct set set = {.n = 0};
    switch (tnd_spot_peek(t)) {
    case '(':
        return parse_group(t, depth);
    case '[':
        return parse_class(t);
    case '.':
        t->at++;
        add_range(t, &set, '\n', '\n');
        add_range(t, &set, '\r', '\r');
        return add_set(t, &set, true);
    case '^':
    case '$':
        return refuse(t, "anchors within an expression");
    case '*':
    case '+':
    case '?':
    case '{':
        return tnd_spot_fail(t, "nothing to repeat");
    case '\\':
        t->at++;
        if (add_kind(t, &set, tnd_spot_peek(t))) {
            t->at++;
            return add_set(t, &set, false);
        }
        return add_char(t, parse_escape(t));
    default:
        return add_char(t, tnd_spot_char(t));
    }
}

static int32_t parse_repeat(struct tnd_spot *t, int32_t item)
{
    int64_t min, max;
    if (t->tree->status != TANDEM_OK || !tnd_spot_repeat(t, &min, &max)) {
        return item;
    }
    if (tnd_spot_peek(t) == '?') {
        t->at++; /* lazy: ignored */
    } else if (tnd_spot_peek(t) == '+') {
        return refuse(t, "possessive repetitions");
    }
    return tnd_tree_repeat(t->tree, item, min, max);
}

/* Adds what may stand on a side that is not anchored. */
static void add_anything(struct tnd_spot *t, int32_t list)
{
    struct set set = {.n = 0};
    if (t->in_json) {
        const int32_t any = add_set(t, &set, true);
        tnd_tree_append(t->tree, list, tnd_tree_repeat(t->tree, any, 0, -1));
    }
}

static int32_t parse_sequence(struct tnd_spot *t, int depth)
{
    const int32_t list = tnd_tree_list(t->tree, TND_SEQUENCE);
    if (depth == 0 && tnd_spot_peek(t) == '^') {
        t->at++;
    } else if (depth == 0) {
        add_anything(t, list);
    }
    while (t->tree->status == TANDEM_OK && t->at < t->end && *t->at != '|' && *t->at != ')') {
        const bool is_last = t->at + 1 == t->end || t->at[1] == '|';
        if (depth == 0 && *t->at == '$' && is_last) {
            t->at++;
            return list;
        }
        const int32_t item = parse_item(t, depth);
        tnd_tree_append(t->tree, list, parse_repeat(t, item));
    }
    if (depth == 0) {
        add_anything(t, list);
    }
    return list;
}

static int32_t parse_choices(struct tnd_spot *t, int depth)
{
    const int32_t list = tnd_tree_list(t->tree, TND_CHOICE);
    tnd_tree_append(t->tree, list, parse_sequence(t, depth));
    while (t->tree->status == TANDEM_OK && tnd_spot_peek(t) == '|') {
        t->at++;
        tnd_tree_append(t->tree, list, parse_sequence(t, depth));
    }
    return list;
}

int32_t tnd_regex_parse(struct tnd_tree *tree, const char *text, size_t n, bool is_in_json)
{
    struct tnd_spot t = {
        .tree = tree, .begin = text, .at = text, .end = text + n, .in_json = is_in_json};
    const int32_t node = parse_choices(&t, 0);
    return t.at == t.end || tree->status != TANDEM_OK ? node
                                                      : tnd_spot_fail(&t, "')' has no begin");
}
