/* SPDX-License-Identifier: MIT
 * Trees of expressions. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"

enum { LAST_CODE_POINT = 0x10ffff };

void tnd_tree_init(struct tnd_tree *tree, struct tandem_error *error)
{
    *tree = (struct tnd_tree){.error = error};
    (void)tnd_tree_list(tree, TND_SEQUENCE); /* node 0 */
}

void tnd_tree_free(struct tnd_tree *tree)
{
    free(tree->nodes);
    free(tree->ranges);
    free(tree->bytes);
    free(tree->rules);
}

int32_t tnd_tree_fail(struct tnd_tree *tree, enum tandem_status status, const char *format, ...)
{
    if (tree->status == TANDEM_OK) {
        char text[200];
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        tree->status = tnd_llama_fail(tree->error, status, "grammar", 0, 0, "%s", text);
    }
    return 0;
}

/* Returns the array with room for n more than `count`; NULL after a failure, which leaves the array
 * as it is. */
static void *grow(struct tnd_tree *tree, void *array, int32_t count, size_t n, size_t size,
                  int32_t *capacity, int32_t most)
{
    if (tree->status != TANDEM_OK) {
        return NULL;
    }
    if (n > (size_t)(most - count)) {
        (void)tnd_tree_fail(tree, TANDEM_E_LIMIT, "grammar: more than %d parts", (int)most);
        return NULL;
    }
    if (array != NULL && (size_t)count + n <= (size_t)*capacity) {
        return array;
    }
    const size_t wanted = 2 * ((size_t)count + n) + 16;
    void *more = realloc(array, wanted * size);
    if (more == NULL) {
        (void)tnd_tree_fail(tree, TANDEM_E_MEMORY, "grammar: no memory for %zu parts", wanted);
        return NULL;
    }
    *capacity = (int32_t)wanted;
    return more;
}

static int32_t add_node(struct tnd_tree *tree, struct tnd_tree_node node)
{
    struct tnd_tree_node *nodes = grow(tree, tree->nodes, tree->n_nodes, 1, sizeof(node),
                                       &tree->node_capacity, TND_GRAMMAR_MOST_NODES);
    if (nodes == NULL) {
        return 0;
    }
    tree->nodes = nodes;
    nodes[tree->n_nodes] = node;
    return tree->n_nodes++;
}

int32_t tnd_tree_list(struct tnd_tree *tree, enum tnd_expression kind)
{
    return add_node(tree, (struct tnd_tree_node){.kind = (uint8_t)kind});
}

void tnd_tree_append(struct tnd_tree *tree, int32_t list, int32_t child)
{
    if (tree->status != TANDEM_OK || list == 0 || child == 0) {
        return;
    }
    struct tnd_tree_node *node = &tree->nodes[list];
    if (node->last == 0) {
        node->first = child;
    } else {
        tree->nodes[node->last].next = child;
    }
    node->last = child;
}

int32_t tnd_tree_pair(struct tnd_tree *tree, int32_t a, int32_t b)
{
    const int32_t list = tnd_tree_list(tree, TND_SEQUENCE);
    tnd_tree_append(tree, list, a);
    tnd_tree_append(tree, list, b);
    return list;
}

static int by_low(const void *a, const void *b)
{
    const struct tnd_char_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Sorts and merges ranges; returns how many are left. */
static size_t merge_ranges(struct tnd_char_range *ranges, size_t n)
{
    size_t kept = 0;
    qsort(ranges, n, sizeof(ranges[0]), by_low);
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].low > ranges[i].high) {
            continue;
        }
        if (kept > 0 && ranges[i].low <= ranges[kept - 1].high + 1) {
            ranges[kept - 1].high =
                ranges[i].high > ranges[kept - 1].high ? ranges[i].high : ranges[kept - 1].high;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

/* The complement of sorted ranges: at most n + 1. */
static size_t negate(const struct tnd_char_range *ranges, size_t n, struct tnd_char_range *out)
{
    uint32_t from = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].low > from) {
            out[kept++] = (struct tnd_char_range){from, ranges[i].low - 1};
        }
        from = ranges[i].high + 1;
    }
    if (from <= LAST_CODE_POINT) {
        out[kept++] = (struct tnd_char_range){from, LAST_CODE_POINT};
    }
    return kept;
}

int32_t tnd_tree_chars(struct tnd_tree *tree, const struct tnd_char_range *ranges, size_t n,
                       bool is_negated)
{
    const int32_t begin = tree->n_ranges;
    struct tnd_char_range *all = grow(tree, tree->ranges, begin, 2 * n + 1, sizeof(ranges[0]),
                                      &tree->range_capacity, TND_GRAMMAR_MOST_NODES);
    if (all == NULL) {
        return 0;
    }
    tree->ranges = all;
    struct tnd_char_range *own = all + begin;
    if (n > 0) {
        memcpy(own, ranges, n * sizeof(own[0]));
    }
    size_t kept = merge_ranges(own, n);
    if (is_negated) {
        const size_t inverse = negate(own, kept, own + kept);
        memmove(own, own + kept, inverse * sizeof(own[0]));
        kept = inverse;
    }
    tree->n_ranges += (int32_t)kept;
    return add_node(
        tree, (struct tnd_tree_node){.kind = TND_CHARS, .first = begin, .last = tree->n_ranges});
}

int32_t tnd_tree_bytes(struct tnd_tree *tree, const char *bytes, size_t n)
{
    const int32_t begin = tree->n_bytes;
    char *all = grow(tree, tree->bytes, begin, n, 1, &tree->byte_capacity, TND_GRAMMAR_MOST_BYTES);
    if (all == NULL) {
        return 0;
    }
    tree->bytes = all;
    if (n > 0) {
        memcpy(all + begin, bytes, n);
    }
    tree->n_bytes += (int32_t)n;
    return add_node(
        tree, (struct tnd_tree_node){.kind = TND_BYTES, .first = begin, .last = tree->n_bytes});
}

int32_t tnd_tree_text(struct tnd_tree *tree, const char *text)
{
    return tnd_tree_bytes(tree, text, strlen(text));
}

int32_t tnd_tree_repeat(struct tnd_tree *tree, int32_t child, int64_t min, int64_t max)
{
    if (min < 0 || (max >= 0 && max < min)) {
        return tnd_tree_fail(tree, TANDEM_E_FORMAT, "grammar: %lld to %lld repetitions",
                             (long long)min, (long long)max);
    }
    if (min > TND_GRAMMAR_MOST_REPEATS || max > TND_GRAMMAR_MOST_REPEATS) {
        return tnd_tree_fail(tree, TANDEM_E_LIMIT, "grammar: %lld repetitions, at most %d",
                             (long long)(max > min ? max : min), (int)TND_GRAMMAR_MOST_REPEATS);
    }
    return add_node(tree, (struct tnd_tree_node){.kind = TND_REPEAT,
                                                 .first = child,
                                                 .last = child,
                                                 .min = (int32_t)min,
                                                 .max = max < 0 ? -1 : (int32_t)max});
}

int32_t tnd_tree_call(struct tnd_tree *tree, int32_t rule)
{
    return add_node(tree, (struct tnd_tree_node){.kind = TND_CALL, .min = rule});
}

int32_t tnd_tree_rule(struct tnd_tree *tree, const char *name, size_t n)
{
    struct tnd_tree_rule rule = {.hash = 2166136261u};
    if (n >= sizeof(rule.name)) {
        return tnd_tree_fail(tree, TANDEM_E_FORMAT, "grammar: a rule's name of %zu bytes", n);
    }
    memcpy(rule.name, name, n);
    for (size_t i = 0; i < n; i++) { /* FNV-1a: tells most names apart without comparing them */
        rule.hash = (rule.hash ^ (unsigned char)name[i]) * 16777619u;
    }
    for (int32_t i = 0; n > 0 && i < tree->n_rules; i++) {
        if (tree->rules[i].hash == rule.hash && strcmp(tree->rules[i].name, rule.name) == 0) {
            return i;
        }
    }
    struct tnd_tree_rule *rules = grow(tree, tree->rules, tree->n_rules, 1, sizeof(rule),
                                       &tree->rule_capacity, TND_GRAMMAR_MOST_RULES);
    if (rules == NULL) {
        return 0;
    }
    tree->rules = rules;
    rules[tree->n_rules] = rule;
    return tree->n_rules++;
}
