/* SPDX-License-Identifier: MIT
 * The template language of chat templates: Jinja 3.1 as transformers sets it up for
 * apply_chat_template (trim_blocks, lstrip_blocks, loop controls, immutable values). Values, trees
 * and the state of one rendering; all of them live in one arena that is bounded. The first error
 * sticks in the state: later calls return at once, so that only the end needs a check.
 * Sources: https://jinja.palletsprojects.com/en/3.1.x/templates/ and the documentation of
 * transformers ("Chat templates"). */
#ifndef TND_TEMPLATE_H
#define TND_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/tnd_status.h"

/* ---- bounds: a template is an untrusted program ---- */

enum {
    TND_TEMPLATE_MAX_BYTES = 1 << 20,         /* of a template's text */
    TND_TEMPLATE_MAX_DEPTH = 240,             /* nesting of expressions, blocks and macro calls */
    TND_TEMPLATE_MAX_OUTPUT = 64 << 20,       /* bytes of a rendering */
    TND_TEMPLATE_MAX_MEMORY = 512 << 20,      /* bytes of a rendering's arena */
    TND_TEMPLATE_MAX_STEPS = 20 * 1000 * 1000 /* nodes evaluated, values visited, KiB copied */
};

/* ---- values ---- */

enum tnd_kind {
    TND_KIND_UNDEFINED, /* a name or member that does not exist; its name is kept for messages */
    TND_KIND_NONE,
    TND_KIND_BOOL,
    TND_KIND_INT,
    TND_KIND_FLOAT,
    TND_KIND_STRING,
    TND_KIND_LIST,
    TND_KIND_TUPLE,
    TND_KIND_GENERATOR, /* a lazy list as in Jinja: no length, no index, no JSON */
    TND_KIND_DICT,
    TND_KIND_NAMESPACE, /* a dict whose members `set` may change */
    TND_KIND_MACRO,
    TND_KIND_FUNCTION, /* a global function, or a method bound to a value */
    TND_KIND_LOOP      /* `loop` inside of a for block */
};

/* Text and the origin of each byte. Strings are immutable once they are values. */
struct tnd_string {
    const char *bytes; /* UTF-8 as far as the input was; not terminated */
    /* One byte per byte of text: 0: from the template, 1: from the caller's variables. NULL: all as
     * `is_user` says. */
    const unsigned char *origin;
    size_t n;
    bool is_user;
    bool is_markup; /* set by the filters safe and escape: `+` escapes the other operand */
};

struct tnd_list;
struct tnd_dict;
struct tnd_function;
struct tnd_macro;
struct tnd_loop;

struct tnd_value {
    enum tnd_kind kind;
    union {
        bool truth;
        int64_t integer;
        double number;
        const struct tnd_string *string; /* of UNDEFINED: its name */
        struct tnd_list *list;
        struct tnd_dict *dict;
        const struct tnd_function *function;
        const struct tnd_macro *macro;
        struct tnd_loop *loop;
    } as;
};

struct tnd_list {
    struct tnd_value *items;
    size_t n, capacity;
};

struct tnd_member {
    struct tnd_value key;
    struct tnd_value value;
};
/* Members in the order of insertion. Lookup is linear: dicts of chat messages are small, and each
 * lookup counts as steps. */
struct tnd_dict {
    struct tnd_member *members;
    size_t n, capacity;
};

/* ---- trees ---- */

enum tnd_template_node_kind {
    /* expressions; a, b, c are operands, list holds more */
    TND_NODE_CONST,     /* value */
    TND_NODE_NAME,      /* name */
    TND_NODE_LIST,      /* list */
    TND_NODE_TUPLE,     /* list */
    TND_NODE_DICT,      /* list: key, value, key, value, ... */
    TND_NODE_MEMBER,    /* a.name */
    TND_NODE_ITEM,      /* a[b] */
    TND_NODE_SLICE,     /* a[b:c:d]; any of b, c, d may be NULL */
    TND_NODE_CALL,      /* a(list, named) */
    TND_NODE_FILTER,    /* a|name(list, named); a NULL: the text of a block */
    TND_NODE_TEST,      /* a is name(list); op 1: is not */
    TND_NODE_UNARY,     /* op a */
    TND_NODE_BINARY,    /* a op b */
    TND_NODE_AND,       /* a and b */
    TND_NODE_OR,        /* a or b */
    TND_NODE_COMPARE,   /* a, then list of operands with ops in their `op` */
    TND_NODE_CONCAT,    /* list joined as text */
    TND_NODE_CONDITION, /* b if a else c; c may be NULL */
    /* statements */
    TND_NODE_TEXT,         /* value: a string */
    TND_NODE_OUTPUT,       /* a */
    TND_NODE_BLOCK,        /* list, one after the other */
    TND_NODE_IF,           /* a, then b, else c (may be NULL) */
    TND_NODE_FOR,          /* for a in b if d: body c, else list[0]; op 1: recursive */
    TND_NODE_SET,          /* a = b */
    TND_NODE_SET_BLOCK,    /* a = text of c, through filter b (may be NULL) */
    TND_NODE_MACRO,        /* name, parameters `named` (default NULL: none), body c */
    TND_NODE_CALL_BLOCK,   /* call b with a macro (parameters `named`, body c) as caller */
    TND_NODE_FILTER_BLOCK, /* text of c through filter b */
    TND_NODE_WITH,         /* named, body c */
    TND_NODE_BREAK,
    TND_NODE_CONTINUE
};

struct tnd_name {
    const char *bytes; /* terminated; lives in the template's arena */
    size_t n;
};

struct tnd_template_node;
struct tnd_named {
    struct tnd_name name;
    struct tnd_template_node *value;
};

struct tnd_template_node {
    enum tnd_template_node_kind kind;
    int op; /* a character or two: '+', '/' + '/' * 256, ...; see template_parse.c */
    int line;
    struct tnd_name name;
    struct tnd_value value;
    struct tnd_template_node *a, *b, *c, *d;
    struct tnd_template_node **list;
    int n_list;
    struct tnd_named *named;
    int n_named;
};

/* ---- the state of one parse or one rendering ---- */

struct tnd_scope {
    struct tnd_scope *parent;
    struct tnd_dict names;
};

struct tnd_render {
    struct tnd_arena *arena;
    const char *name; /* of the template, for messages */
    struct tandem_error *error;
    enum tandem_status status; /* the first error */
    int line;                  /* line being evaluated */
    int depth;
    int64_t steps;
    int64_t now; /* seconds since 1970, for strftime_now */
    struct tnd_scope *globals;
    enum { TND_FLOW_NONE, TND_FLOW_BREAK, TND_FLOW_CONTINUE } flow;
};

struct tnd_macro {
    const struct tnd_template_node *node; /* MACRO or CALL_BLOCK: parameters and body */
    struct tnd_scope *scope;              /* where it was defined */
};

struct tnd_arguments {
    const struct tnd_value *items;
    int n;
    const struct tnd_member *named; /* keys are strings */
    int n_named;
};

/* A built-in function: a row of a table of filters, tests, methods or global functions. */
struct tnd_builtin {
    const char *name; /* NULL: the end of the table */
    struct tnd_value (*call)(struct tnd_render *render, struct tnd_value self,
                             const struct tnd_arguments *arguments, int kind);
    int kind; /* tells apart rows that share a function */
};
/* `self` is the value that a method is bound to or a filter is applied to. */
#define TND_BUILTIN(name)                                                                          \
    static struct tnd_value name(struct tnd_render *render __attribute__((unused)),                \
                                 struct tnd_value self __attribute__((unused)),                    \
                                 const struct tnd_arguments *arguments __attribute__((unused)),    \
                                 int kind __attribute__((unused)))

struct tnd_function {
    const struct tnd_builtin *builtin;
    struct tnd_value self;
};

struct tnd_loop {
    const struct tnd_template_node *node; /* FOR */
    struct tnd_scope *scope;              /* enclosing scope */
    const struct tnd_value *items;
    size_t n, i;
    int depth;
    struct tnd_value changed; /* arguments of the last loop.changed() */
};

/** Records the first error: "NAME: line 12: ...". Returns undefined. */
struct tnd_value tnd_template_fail(struct tnd_render *render, enum tandem_status status,
                                   const char *format, ...) __attribute__((format(printf, 3, 4)));
/** Counts steps, and fails if there are too many. False: the rendering has failed. */
bool tnd_template_step(struct tnd_render *render, size_t steps);
/** Zeroed memory of the rendering; NULL: failed, which is recorded. */
void *tnd_template_alloc(struct tnd_render *render, size_t n, size_t size);

/* ---- template_value.c ---- */

struct tnd_value tnd_undefined(struct tnd_render *render, const char *name, size_t n);
struct tnd_value tnd_none(void);
struct tnd_value tnd_bool(bool truth);
struct tnd_value tnd_int(int64_t integer);
struct tnd_value tnd_number(double number);
/** A text value with a copy of the bytes. */
struct tnd_value tnd_text_value(struct tnd_render *render, const char *bytes, size_t n,
                                bool is_user);
/** The bytes from `begin`, borrowed. */
struct tnd_value tnd_substring(struct tnd_render *render, const struct tnd_string *string,
                               size_t begin, size_t n);
/** The same text, marked as safe. */
struct tnd_value tnd_markup(struct tnd_render *render, const struct tnd_string *string);
/** Escapes & < > " ' for HTML and marks the text as safe; a safe text is returned as it is.
 * template_filters.c. */
struct tnd_value tnd_escape(struct tnd_render *render, const struct tnd_string *string);
struct tnd_value tnd_list_value(struct tnd_render *render, enum tnd_kind kind, size_t capacity);
void tnd_list_add(struct tnd_render *render, struct tnd_list *list, struct tnd_value value);
struct tnd_value tnd_dict_value(struct tnd_render *render);
/** Adds or replaces; keys are strings or numbers. */
void tnd_dict_set(struct tnd_render *render, struct tnd_dict *dict, struct tnd_value key,
                  struct tnd_value value);
const struct tnd_value *tnd_dict_get(struct tnd_render *render, const struct tnd_dict *dict,
                                     struct tnd_value key);
const struct tnd_value *tnd_dict_find(struct tnd_render *render, const struct tnd_dict *dict,
                                      const char *name, size_t n);

bool tnd_is_string(struct tnd_value value, const char *text);
bool tnd_is_number(struct tnd_value value); /* int, float or bool */
double tnd_as_number(struct tnd_value value);
bool tnd_is_true(struct tnd_value value);
bool tnd_equal(struct tnd_render *render, struct tnd_value a, struct tnd_value b);
/** Below 0, 0 or above 0; fails for values without an order. */
int tnd_order(struct tnd_render *render, struct tnd_value a, struct tnd_value b);
/** "str", "int", ...: Python's name of the type, for messages. */
const char *tnd_kind_name(struct tnd_value value);

/* Growing text that keeps the origin of its bytes. */
struct tnd_builder {
    struct tnd_render *render;
    char *bytes;
    unsigned char *origin;
    size_t n, capacity;
};
void tnd_build(struct tnd_builder *builder, const char *bytes, size_t n, bool is_user);
void tnd_build_string(struct tnd_builder *builder, const struct tnd_string *string);
/** What `{{ value }}` prints. */
void tnd_build_value(struct tnd_builder *builder, struct tnd_value value);
/** Python's repr(). */
void tnd_build_repr(struct tnd_builder *builder, struct tnd_value value);
void tnd_build_number(struct tnd_builder *builder, double number);
struct tnd_value tnd_built(struct tnd_builder *builder);
/** The value as text; a string stays as it is. */
const struct tnd_string *tnd_to_string(struct tnd_render *render, struct tnd_value value);

/** Number of characters (code points; an ill-formed byte counts as one). */
size_t tnd_characters(const struct tnd_string *string);
/** Byte offset of character `i`, at most n. */
size_t tnd_character_offset(const struct tnd_string *string, size_t i);
/** The items of a list or tuple, keys of a dict, characters of a string; none of undefined. Fails
 * for other values. */
struct tnd_list *tnd_items_of(struct tnd_render *render, struct tnd_value value);
/** len(); false: the value has none. */
bool tnd_length_of(struct tnd_value value, size_t *out);
bool tnd_contains(struct tnd_render *render, struct tnd_value container, struct tnd_value item);

/* ---- template_json.c ---- */

/** Parses a JSON text; its strings count as the caller's (`is_user`). */
struct tnd_value tnd_template_read_json(struct tnd_render *render, const char *text, size_t n);
struct tnd_tojson {
    int indent; /* -1: one line */
    bool ascii;
    bool sort_keys;
    const char *between, *colon;
};
void tnd_build_json(struct tnd_builder *builder, struct tnd_value value,
                    const struct tnd_tojson *options, int depth);

/* ---- template_lex.c, template_parse.c, template_parse_expression.c ---- */

enum tnd_token_kind {
    TND_LEX_END,
    TND_LEX_DATA,        /* text between tags */
    TND_LEX_BLOCK_BEGIN, /* {% */
    TND_LEX_BLOCK_END,
    TND_LEX_PRINT_BEGIN, /* {{ */
    TND_LEX_PRINT_END,
    TND_LEX_NAME,
    TND_LEX_STRING,
    TND_LEX_INT,
    TND_LEX_FLOAT,
    TND_LEX_OPERATOR /* op has its characters */
};
struct tnd_lexeme {
    enum tnd_token_kind kind;
    int op;
    int line;
    struct tnd_name text; /* of DATA, NAME and STRING (decoded) */
    int64_t integer;
    double number;
};
struct tnd_lexer {
    struct tnd_render *render;
    const char *at, *end;
    int line;
    int braces;              /* open brackets in an expression */
    bool in_tag;             /* after {% or {{ */
    bool at_line_begin;      /* the next text starts a line */
    char tag_end;            /* '%' or '}' */
    bool is_raw;             /* text up to endraw */
    struct tnd_lexeme token; /* the current one */
};
#define TND_OP2(a, b) ((a) + 256 * (b))

void tnd_lex_begin(struct tnd_lexer *lexer, struct tnd_render *render, const char *text, size_t n);
void tnd_lex_next(struct tnd_lexer *lexer);

struct tnd_parser {
    struct tnd_lexer lexer;
    struct tnd_render *render;
    int n_loops; /* loops around the statement */
    int n_soft;  /* conditions around: unknown filters and tests fail only if evaluated */
};
/** NULL after a failure. */
struct tnd_template_node *tnd_parse_template(struct tnd_render *render, const char *text, size_t n);
struct tnd_template_node *tnd_parse_expression(struct tnd_parser *parser);
/** Parses expressions; several with commas become a tuple. `has_condition`: `a if b else c` is
 * allowed. */
struct tnd_template_node *tnd_parse_tuple(struct tnd_parser *parser, bool has_condition);
struct tnd_template_node *tnd_parse_primary(struct tnd_parser *parser);
/** Parses filters after `|`; `a` NULL: applied to the text of a block. */
struct tnd_template_node *tnd_parse_filters(struct tnd_parser *parser, struct tnd_template_node *a);
/** Parses the arguments of a call in parentheses. */
void tnd_parse_arguments(struct tnd_parser *parser, struct tnd_template_node *call);
struct tnd_template_node *tnd_new_node(struct tnd_parser *parser, enum tnd_template_node_kind kind);
void tnd_add_node(struct tnd_parser *parser, struct tnd_template_node *parent,
                  struct tnd_template_node *child);
void tnd_add_named(struct tnd_parser *parser, struct tnd_template_node *parent,
                   struct tnd_name name, struct tnd_template_node *value);
bool tnd_parse_is(const struct tnd_parser *parser, enum tnd_token_kind kind, const char *text);
bool tnd_parse_is_op(const struct tnd_parser *parser, int op);
bool tnd_parse_take_op(struct tnd_parser *parser, int op);
void tnd_parse_expect_op(struct tnd_parser *parser, int op);
struct tnd_name tnd_parse_name(struct tnd_parser *parser);
/** Fails with "unexpected 'x', expected Y". */
void tnd_parse_unexpected(struct tnd_parser *parser, const char *expected);

/* ---- template_eval.c, template_expression.c ---- */

void tnd_render_block(struct tnd_render *render, const struct tnd_template_node *node,
                      struct tnd_scope *scope, struct tnd_builder *out);
/** Runs a for block over the items; `depth` is loop.depth. */
void tnd_render_loop(struct tnd_render *render, const struct tnd_template_node *node,
                     struct tnd_scope *scope, struct tnd_value items, int depth,
                     struct tnd_builder *out);
struct tnd_value tnd_evaluate(struct tnd_render *render, const struct tnd_template_node *node,
                              struct tnd_scope *scope);
struct tnd_value tnd_call(struct tnd_render *render, struct tnd_value function,
                          const struct tnd_arguments *arguments);
/** A function value, bound to a value. */
struct tnd_value tnd_bind(struct tnd_render *render, const struct tnd_builtin *builtin,
                          struct tnd_value self);
struct tnd_value tnd_call_macro(struct tnd_render *render, const struct tnd_macro *macro,
                                const struct tnd_arguments *arguments);
/** value.name: a method or a member. */
struct tnd_value tnd_member_of(struct tnd_render *render, struct tnd_value value,
                               struct tnd_name name);
struct tnd_value tnd_item_of(struct tnd_render *render, struct tnd_value value,
                             struct tnd_value key);
/** Applies a filter node to a value. */
struct tnd_value tnd_apply_filter(struct tnd_render *render, const struct tnd_template_node *node,
                                  struct tnd_scope *scope, struct tnd_value value);
void tnd_scope_set(struct tnd_render *render, struct tnd_scope *scope, struct tnd_name name,
                   struct tnd_value value);

/* ---- arguments of functions ---- */

/** Argument `i`, or the one called `name` (NULL: it has none); NULL: not given. */
const struct tnd_value *tnd_argument(struct tnd_render *render,
                                     const struct tnd_arguments *arguments, int i,
                                     const char *name);
/** Checks that there are `least` to `most` arguments. */
bool tnd_expect_arguments(struct tnd_render *render, const struct tnd_arguments *arguments,
                          const char *function, int least, int most);
bool tnd_argument_true(struct tnd_render *render, const struct tnd_arguments *arguments, int i,
                       const char *name, bool or_else);
int64_t tnd_argument_int(struct tnd_render *render, const struct tnd_arguments *arguments, int i,
                         const char *name, int64_t or_else);
/** NULL: not given, or none. */
const struct tnd_string *tnd_argument_string(struct tnd_render *render,
                                             const struct tnd_arguments *arguments, int i,
                                             const char *name);

/* ---- template_filters.c, template_tests.c, template_methods.c, template_functions.c ---- */

/** Finds a row by name; NULL: none. */
const struct tnd_builtin *tnd_find_builtin(const struct tnd_builtin *rows, const char *name);
const struct tnd_builtin *tnd_find_filter(const char *name);
const struct tnd_builtin *tnd_find_test(const char *name);
const struct tnd_builtin *tnd_find_method(struct tnd_value value, const char *name);
static inline struct tnd_value tnd_call_builtin(struct tnd_render *render,
                                                const struct tnd_builtin *builtin,
                                                struct tnd_value self,
                                                const struct tnd_arguments *arguments)
{
    return builtin->call(render, self, arguments, builtin->kind);
}
void tnd_add_globals(struct tnd_render *render);
/** "a".replace(old, new) with at most `count` replacements (-1: all). */
struct tnd_value tnd_replace(struct tnd_render *render, const struct tnd_string *string,
                             const struct tnd_string *old, const struct tnd_string *by,
                             int64_t count);
/** Strips white space (or the characters of `set`) from the left, the right or both ends. */
struct tnd_value tnd_strip(struct tnd_render *render, const struct tnd_string *string,
                           const struct tnd_string *set, bool left, bool right);
enum tnd_case { TND_CASE_UPPER, TND_CASE_LOWER, TND_CASE_TITLE, TND_CASE_CAPITALIZE };
/** Whether there are ASCII letters of one case and none of the other. */
bool tnd_has_only_case(const struct tnd_string *text, bool upper);
struct tnd_value tnd_change_case(struct tnd_render *render, const struct tnd_string *string,
                                 enum tnd_case to);
/** "%d" % values, and "{}".format(values). */
struct tnd_value tnd_percent_format(struct tnd_render *render, const struct tnd_string *format,
                                    struct tnd_value values);
struct tnd_value tnd_brace_format(struct tnd_render *render, const struct tnd_string *format,
                                  const struct tnd_arguments *arguments);

#endif
