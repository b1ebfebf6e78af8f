/* SPDX-License-Identifier: MIT
 * Compiles trees to automata by Thompson's construction (Comm. ACM 11, 1968), one per rule:
 * characters become their UTF-8 bytes, and rules are called by edges. */
#include <stdlib.h>
#include <string.h>

#include "llama/grammar.h"

enum { FEW_COPIES = 3 /* of a repeated expression; for more, a rule is called */ };

struct build {
    struct tnd_tree *tree;
    tandem_grammar *grammar;
    struct tnd_grammar_edge *edges; /* in order of creation, */
    int32_t *origins;               /* with the states where they begin */
    int32_t n_edges, capacity;
};

/* ---- states and edges ---- */

static int32_t add_state(struct build *b)
{
    if (b->grammar->n_states >= TND_GRAMMAR_MOST_STATES) {
        return tnd_tree_fail(b->tree, TANDEM_E_LIMIT, "grammar: more than %d states",
                             (int)TND_GRAMMAR_MOST_STATES);
    }
    return b->grammar->n_states++;
}

static bool grow_edges(struct build *b)
{
    const int32_t capacity = 2 * b->capacity + 256;
    struct tnd_grammar_edge *edges = realloc(b->edges, (size_t)capacity * sizeof(edges[0]));
    b->edges = edges != NULL ? edges : b->edges;
    int32_t *origins = realloc(b->origins, (size_t)capacity * sizeof(origins[0]));
    b->origins = origins != NULL ? origins : b->origins;
    if (edges == NULL || origins == NULL) {
        (void)tnd_tree_fail(b->tree, TANDEM_E_MEMORY, "grammar: no memory for %d edges",
                            (int)capacity);
        return false;
    }
    b->capacity = capacity;
    return true;
}

static void add_edge(struct build *b, int32_t from, struct tnd_grammar_edge edge)
{
    if (b->n_edges >= TND_GRAMMAR_MOST_EDGES) {
        (void)tnd_tree_fail(b->tree, TANDEM_E_LIMIT, "grammar: more than %d edges",
                            (int)TND_GRAMMAR_MOST_EDGES);
    }
    if (b->tree->status != TANDEM_OK || (b->n_edges == b->capacity && !grow_edges(b))) {
        return;
    }
    b->origins[b->n_edges] = from;
    b->edges[b->n_edges++] = edge;
}

static void add_empty(struct build *b, int32_t from, int32_t to)
{
    if (from != to) {
        add_edge(b, from, (struct tnd_grammar_edge){.low = TND_EDGE_EMPTY, .target = to});
    }
}

/* ---- characters ---- */

/* Encodes a code point as UTF-8; returns the number of bytes. */
static int utf8_of(uint32_t c, uint8_t *out)
{
    const int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (uint8_t)(heads[n] | c);
    return n;
}

/* Adds a range whose code points have equally many bytes, which vary independently. */
static void add_product(struct build *b, uint32_t low, uint32_t high, int32_t from, int32_t to)
{
    uint8_t a[4], z[4];
    const int n = utf8_of(low, a);
    (void)utf8_of(high, z);
    for (int i = 0; i < n; i++) {
        const int32_t target = i == n - 1 ? to : add_state(b);
        add_edge(b, from, (struct tnd_grammar_edge){.low = a[i], .high = z[i], .target = target});
        from = target;
    }
}

/* Splits a range where the number of bytes changes, at the surrogates, and where a leading byte
 * changes while later bytes do not cover their whole range. */
static void add_range(struct build *b, uint32_t low, uint32_t high, int32_t from, int32_t to)
{
    static const uint32_t limits[] = {0x7f, 0x7ff, 0xd7ff, 0xffff, 0x10ffff};
    while (low <= high && b->tree->status == TANDEM_OK) {
        uint32_t end = high;
        if (low >= 0xd800 && low <= 0xdfff) {
            low = 0xe000;
            continue;
        }
        for (int i = 4; i >= 0; i--) {
            end = low <= limits[i] && end > limits[i] ? limits[i] : end;
        }
        for (uint32_t block = 0x3f; low >= 0x80 && block <= 0x3ffff; block = block << 6 | 0x3f) {
            if ((low & ~block) == (end & ~block)) {
                break; /* leading bytes are equal */
            }
            if ((low & block) != 0) {
                end = low | block;
                break;
            }
            if ((end & block) != block) {
                end = (end & ~block) - 1;
            }
        }
        add_product(b, low, end, from, to);
        low = end + 1;
    }
}

/* ---- expressions ---- */

static void add_node(struct build *b, int32_t node, int32_t from, int32_t to);

static void add_bytes(struct build *b, const struct tnd_tree_node *node, int32_t from, int32_t to)
{
    if (node->first == node->last) {
        add_empty(b, from, to);
    }
    for (int32_t i = node->first; i < node->last; i++) {
        const int32_t target = i == node->last - 1 ? to : add_state(b);
        const uint8_t byte = (uint8_t)b->tree->bytes[i];
        add_edge(b, from, (struct tnd_grammar_edge){.low = byte, .high = byte, .target = target});
        from = target;
    }
}

static void add_sequence(struct build *b, const struct tnd_tree_node *node, int32_t from,
                         int32_t to)
{
    int32_t child = node->first;
    if (child == 0) {
        add_empty(b, from, to);
    }
    while (child != 0 && b->tree->status == TANDEM_OK) {
        const int32_t next = b->tree->nodes[child].next;
        const int32_t target = next == 0 ? to : add_state(b);
        add_node(b, child, from, target);
        from = target;
        child = next;
    }
}

/* Makes a rule of a child that is copied often, so that only calls are copied. */
static int32_t share(struct build *b, struct tnd_tree_node *node)
{
    const struct tnd_tree_node *child = &b->tree->nodes[node->first];
    const int32_t copies = node->max > node->min ? node->max : node->min;
    if (copies <= FEW_COPIES || child->kind == TND_CALL) {
        return node->first;
    }
    const int32_t rule = tnd_tree_rule(b->tree, "", 0);
    const int32_t call = tnd_tree_call(b->tree, rule);
    if (b->tree->status == TANDEM_OK) {
        b->tree->rules[rule].node = node->first;
    }
    return call;
}

static void add_repeat(struct build *b, struct tnd_tree_node node, int32_t from, int32_t to)
{
    const int32_t child = share(b, &node);
    for (int32_t i = 0; i < node.min && b->tree->status == TANDEM_OK; i++) {
        const int32_t target = node.max == node.min && i == node.min - 1 ? to : add_state(b);
        add_node(b, child, from, target);
        from = target;
    }
    if (node.max < 0) {
        const int32_t loop = add_state(b);
        add_empty(b, from, loop);
        add_node(b, child, loop, loop);
        add_empty(b, loop, to);
        return;
    }
    for (int32_t i = node.min; i < node.max && b->tree->status == TANDEM_OK; i++) {
        const int32_t target = i == node.max - 1 ? to : add_state(b);
        add_empty(b, from, to);
        add_node(b, child, from, target);
        from = target;
    }
    if (node.max == 0) {
        add_empty(b, from, to);
    }
}

/* Adds an expression between two states. Recursion is bounded by the depth of trees. */
static void add_node(struct build *b, int32_t index, int32_t from, int32_t to)
{
    const struct tnd_tree_node node = b->tree->nodes[index]; /* a copy: nodes may move */
    if (b->tree->status != TANDEM_OK) {
        return;
    }
    switch ((enum tnd_expression)node.kind) {
    case TND_SEQUENCE:
        add_sequence(b, &node, from, to);
        break;
    case TND_CHOICE:
        for (int32_t child = node.first; child != 0; child = b->tree->nodes[child].next) {
            add_node(b, child, from, to);
        }
        break;
    case TND_CHARS:
        for (int32_t i = node.first; i < node.last; i++) {
            add_range(b, b->tree->ranges[i].low, b->tree->ranges[i].high, from, to);
        }
        break;
    case TND_BYTES:
        add_bytes(b, &node, from, to);
        break;
    case TND_REPEAT:
        add_repeat(b, node, from, to);
        break;
    case TND_CALL:
        add_edge(b, from,
                 (struct tnd_grammar_edge){.low = TND_EDGE_CALL, .target = to, .rule = node.min});
        break;
    }
}

/* Builds all rules; building may add more. */
static void add_rules(struct build *b)
{
    tandem_grammar *g = b->grammar;
    g->rules = calloc(TND_GRAMMAR_MOST_RULES, sizeof(g->rules[0]));
    if (g->rules == NULL) {
        (void)tnd_tree_fail(b->tree, TANDEM_E_MEMORY, "grammar: no memory for rules");
    }
    for (int32_t i = 0; i < b->tree->n_rules && b->tree->status == TANDEM_OK; i++) {
        if (b->tree->rules[i].node == 0) {
            (void)tnd_tree_fail(b->tree, TANDEM_E_FORMAT, "grammar: rule '%s' is not defined",
                                b->tree->rules[i].name);
            return;
        }
        g->rules[i].start = add_state(b);
        g->rules[i].end = add_state(b);
        g->n_rules = i + 1;
        add_node(b, b->tree->rules[i].node, g->rules[i].start, g->rules[i].end);
    }
}

/* Sorts the edges by their start states. */
static void finish(struct build *b)
{
    tandem_grammar *g = b->grammar;
    const size_t n = (size_t)g->n_states;
    g->edges = calloc((size_t)b->n_edges + 1, sizeof(g->edges[0]));
    g->starts = calloc(n + 2, sizeof(g->starts[0]));
    g->is_end = calloc(n + 1, 1);
    if (g->edges == NULL || g->starts == NULL || g->is_end == NULL) {
        (void)tnd_tree_fail(b->tree, TANDEM_E_MEMORY, "grammar: no memory for %zu states", n);
        return;
    }
    for (int32_t i = 0; i < b->n_edges; i++) {
        g->starts[b->origins[i] + 2]++;
    }
    for (size_t i = 2; i <= n + 1; i++) {
        g->starts[i] += g->starts[i - 1];
    }
    for (int32_t i = 0; i < b->n_edges; i++) { /* starts[i + 1] becomes the end of i */
        g->edges[g->starts[b->origins[i] + 1]++] = b->edges[i];
    }
    for (int32_t i = 0; i < g->n_rules; i++) {
        g->is_end[g->rules[i].end] = 1;
    }
}

static void find_classes(tandem_grammar *g)
{
    bool begins[257] = {true};
    int class = -1;
    for (int32_t i = 0; i < g->starts[g->n_states]; i++) {
        if (g->edges[i].low < TND_EDGE_EMPTY) {
            begins[g->edges[i].low] = true;
            begins[g->edges[i].high + 1] = true;
        }
    }
    for (int i = 0; i < 256; i++) {
        class += begins[i];
        g->byte_class[i] = (uint8_t) class;
    }
    g->n_classes = class + 1;
}

/* ---- left recursion ---- */

enum { NEW, OPEN, NULLABLE, FULL };

struct left_search {
    struct build *b;
    uint8_t *kinds;   /* {rules} */
    int32_t *seen;    /* {states}: number of the search that has seen it */
    int32_t *waiting; /* {states}: a stack that all searches share */
    int32_t n_waiting;
};

/* Whether a rule matches the empty text; fails if the rule is left-recursive. A rule has its own
 * states, so all searches together visit each state once. */
static bool is_nullable(struct left_search *s, int32_t rule, int depth)
{
    const tandem_grammar *g = s->b->grammar;
    if (s->kinds[rule] == OPEN || depth > TND_GRAMMAR_LEFT_DEPTH) {
        (void)tnd_tree_fail(s->b->tree, TANDEM_E_FORMAT,
                            depth > TND_GRAMMAR_LEFT_DEPTH
                                ? "grammar: too many rules begin with each other, at '%s'"
                                : "grammar: rule '%s' begins with itself (left recursion)",
                            s->b->tree->rules[rule].name);
        return false;
    }
    if (s->kinds[rule] != NEW) {
        return s->kinds[rule] == NULLABLE;
    }
    const int32_t bottom = s->n_waiting;
    s->kinds[rule] = OPEN;
    s->seen[g->rules[rule].start] = 1;
    s->waiting[s->n_waiting++] = g->rules[rule].start;
    while (s->n_waiting > bottom && s->b->tree->status == TANDEM_OK) {
        const int32_t state = s->waiting[--s->n_waiting];
        for (int32_t i = g->starts[state]; i < g->starts[state + 1]; i++) {
            const struct tnd_grammar_edge *edge = &g->edges[i];
            if (edge->low >= TND_EDGE_EMPTY && !s->seen[edge->target] &&
                (edge->low == TND_EDGE_EMPTY || is_nullable(s, edge->rule, depth + 1))) {
                s->seen[edge->target] = 1;
                s->waiting[s->n_waiting++] = edge->target;
            } else if (edge->low == TND_EDGE_CALL) {
                (void)is_nullable(s, edge->rule, depth + 1);
            }
        }
    }
    s->kinds[rule] = s->seen[g->rules[rule].end] ? NULLABLE : FULL;
    return s->kinds[rule] == NULLABLE;
}

static void refuse_left_recursion(struct build *b)
{
    struct left_search s = {.b = b,
                            .kinds = calloc((size_t)b->grammar->n_rules + 1, 1),
                            .seen = calloc((size_t)b->grammar->n_states + 1, sizeof(int32_t)),
                            .waiting = calloc((size_t)b->grammar->n_states + 1, sizeof(int32_t))};
    if (s.kinds == NULL || s.seen == NULL || s.waiting == NULL) {
        (void)tnd_tree_fail(b->tree, TANDEM_E_MEMORY, "grammar: no memory for its check");
    }
    for (int32_t i = 0; i < b->grammar->n_rules && b->tree->status == TANDEM_OK; i++) {
        (void)is_nullable(&s, i, 0);
    }
    free(s.kinds);
    free(s.seen);
    free(s.waiting);
}

enum tandem_status tnd_grammar_compile(struct tnd_tree *tree, int32_t node,
                                       tandem_grammar **out_grammar)
{
    struct build b = {.tree = tree, .grammar = calloc(1, sizeof(*b.grammar))};
    if (b.grammar == NULL) {
        (void)tnd_tree_fail(tree, TANDEM_E_MEMORY, "grammar: no memory");
        return tree->status;
    }
    const int32_t root = tnd_tree_rule(tree, "", 0);
    if (tree->status == TANDEM_OK) {
        tree->rules[root].node = node;
        b.grammar->root = root;
        add_rules(&b);
    }
    if (tree->status == TANDEM_OK) {
        finish(&b);
    }
    if (tree->status == TANDEM_OK) {
        find_classes(b.grammar);
        refuse_left_recursion(&b);
    }
    free(b.edges);
    free(b.origins);
    if (tree->status != TANDEM_OK) {
        tandem_grammar_free(b.grammar);
        return tree->status;
    }
    *out_grammar = b.grammar;
    return TANDEM_OK;
}
