/* SPDX-License-Identifier: MIT
 * Grammars. Parsers (grammar_gbnf.c, grammar_regex.c, grammar_schema*.c) build a tree of
 * expressions (grammar_tree.c), which grammar_compile.c turns into one automaton per rule over
 * bytes, with edges that call other rules. grammar_match.c simulates all stacks at once and caches
 * every set of stacks that it has met as a state with its transitions; token_trie.c uses it to find
 * which tokens may follow. Everything is bounded: grammars are untrusted. */
#ifndef TND_LLAMA_GRAMMAR_H
#define TND_LLAMA_GRAMMAR_H

#include "llama/llama_error.h"
#include "tandem/llama.h"

enum {
    TND_GRAMMAR_MOST_NODES = 1 << 18,
    TND_GRAMMAR_MOST_RULES = 1 << 13,
    TND_GRAMMAR_MOST_STATES = 1 << 17,
    TND_GRAMMAR_MOST_EDGES = 1 << 18,
    TND_GRAMMAR_MOST_REPEATS = 10000, /* of an expression */
    TND_GRAMMAR_MOST_BYTES = 1 << 18, /* most bytes of a grammar's text */
    TND_GRAMMAR_DEPTH = 64,           /* most nested groups */
    TND_GRAMMAR_LEFT_DEPTH = 256      /* longest chain of rules that begin with each other */
};

/* ---- expressions ---- */

struct tnd_char_range {
    uint32_t low, high; /* code points */
};

enum tnd_expression {
    TND_SEQUENCE, /* all of its children; without children: the empty text */
    TND_CHOICE,   /* one of its children; without children: nothing */
    TND_CHARS,    /* one character */
    TND_BYTES,    /* these bytes */
    TND_REPEAT,   /* its child, min to max times */
    TND_CALL      /* a rule */
};

struct tnd_tree_node {
    uint8_t kind;
    int32_t first, last; /* children; of CHARS, BYTES: range in `ranges`, `bytes` */
    int32_t next;        /* sibling; 0: none */
    int32_t min, max;    /* of REPEAT, max -1: unbounded; of CALL: min is the rule */
};

struct tnd_tree_rule {
    char name[64]; /* "": generated */
    uint32_t hash; /* of the name */
    int32_t node;  /* 0: not defined yet */
};

/** A tree that is being built. After a failure nothing more is added and node 0 is returned, so
 * that builders need not check every step. */
struct tnd_tree {
    struct tnd_tree_node *nodes; /* node 0 means none */
    struct tnd_char_range *ranges;
    char *bytes;
    struct tnd_tree_rule *rules;
    int32_t n_nodes, n_ranges, n_bytes, n_rules;
    int32_t node_capacity, range_capacity, byte_capacity, rule_capacity;
    enum tandem_status status;
    struct tandem_error *error; /* of the caller; NULL allowed */
};

void tnd_tree_init(struct tnd_tree *tree, struct tandem_error *error);
void tnd_tree_free(struct tnd_tree *tree);
/** Records the first failure. Returns 0, as a node. */
int32_t tnd_tree_fail(struct tnd_tree *tree, enum tandem_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int32_t tnd_tree_list(struct tnd_tree *tree, enum tnd_expression kind);
void tnd_tree_append(struct tnd_tree *tree, int32_t list, int32_t child);
/** A sequence of two. */
int32_t tnd_tree_pair(struct tnd_tree *tree, int32_t a, int32_t b);
/** Ranges may overlap and be in any order. */
int32_t tnd_tree_chars(struct tnd_tree *tree, const struct tnd_char_range *ranges, size_t n,
                       bool is_negated);
int32_t tnd_tree_bytes(struct tnd_tree *tree, const char *bytes, size_t n);
int32_t tnd_tree_text(struct tnd_tree *tree, const char *text);
int32_t tnd_tree_repeat(struct tnd_tree *tree, int32_t child, int64_t min, int64_t max);
int32_t tnd_tree_call(struct tnd_tree *tree, int32_t rule);
/** A rule by name; created without a body if it does not exist. "" always creates one. */
int32_t tnd_tree_rule(struct tnd_tree *tree, const char *name, size_t n);

/** Parsers: each adds rules and returns the expression of the whole text. */
int32_t tnd_gbnf_parse(struct tnd_tree *tree, const char *text, size_t n, const char *root);
/** `in_json`: characters that JSON must escape are written as escapes, and a side that is not
 * anchored may be preceded or followed by anything; else the expression matches the whole text. */
int32_t tnd_regex_parse(struct tnd_tree *tree, const char *text, size_t n, bool in_json);
int32_t tnd_choice_parse(struct tnd_tree *tree, const char *text, size_t n);
int32_t tnd_schema_parse(struct tnd_tree *tree, const char *text, size_t n);

/* ---- automata ---- */

enum { TND_EDGE_EMPTY = 256, TND_EDGE_CALL = 257 }; /* kinds of edges other than bytes */

struct tnd_grammar_edge {
    uint16_t low, high; /* bytes; or `low` is a kind */
    int32_t target;     /* state; of a call: the state after it returns */
    int32_t rule;       /* of a call */
};

struct tnd_grammar_rule {
    int32_t start, end; /* states; `end` has no edges */
};

struct tandem_grammar {
    struct tnd_grammar_edge *edges;
    int32_t *starts; /* {n_states + 1}: edges of a state */
    uint8_t *is_end; /* {n_states}: of a rule */
    struct tnd_grammar_rule *rules;
    int32_t n_states, n_rules;
    int32_t root;            /* rule */
    uint8_t byte_class[256]; /* bytes that all edges treat alike have the same class */
    int n_classes;
};

/** Errors: MEMORY, LIMIT, FORMAT (left recursion, undefined rules). */
enum tandem_status tnd_grammar_compile(struct tnd_tree *tree, int32_t root,
                                       tandem_grammar **out_grammar);

/* ---- matchers ---- */

struct tnd_matcher;

enum { TND_MATCHER_DEAD = 0, TND_MATCHER_FAILED = -1 };

/** Borrows the grammar. NULL: no memory. */
struct tnd_matcher *tnd_matcher_new(const tandem_grammar *grammar);
void tnd_matcher_free(struct tnd_matcher *matcher);
/** The state at the start of a text; FAILED: no memory, or too many threads. */
int32_t tnd_matcher_begin(struct tnd_matcher *matcher);
/** The state after one more byte; DEAD if the byte is not allowed; FAILED as above. */
int32_t tnd_matcher_next(struct tnd_matcher *matcher, int32_t state, uint8_t byte);
/** Whether the text may end in a state. */
bool tnd_matcher_accepts(const struct tnd_matcher *matcher, int32_t state);
/** Whether any byte may follow. */
bool tnd_matcher_goes_on(const struct tnd_matcher *matcher, int32_t state);
/** Drops cached states if there are many. Returns the new number of `state`, the only one that
 * stays valid; `out_changed`: other numbers are invalid now. */
int32_t tnd_matcher_tidy(struct tnd_matcher *matcher, int32_t state, bool *out_changed);

/** Sets out[i] for the tokens whose bytes may follow in `state`, and for the end tokens if the
 * text may end there. {vocabulary of the trie}. Returns how many are set; -1: FAILED. */
int64_t tnd_token_trie_mask(const tandem_token_trie *trie, struct tnd_matcher *matcher,
                            int32_t state, bool *out);
/** The state after the bytes of a token. */
int32_t tnd_token_trie_next(const tandem_token_trie *trie, struct tnd_matcher *matcher,
                            int32_t state, int32_t token);
int64_t tnd_token_trie_vocabulary(const tandem_token_trie *trie);

#endif
