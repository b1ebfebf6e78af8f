/* SPDX-License-Identifier: MIT
 * Expressions of the template language become trees. Precedence, loosest first: if-else, or, and,
 * not, comparisons, + and -, ~, * / // %, **, signs, then members, calls, filters and tests. */
#include <stdio.h>
#include <string.h>

#include "formats/template.h"

/* ---- tokens ---- */

bool tnd_parse_is(const struct tnd_parser *parser, enum tnd_token_kind kind, const char *text)
{
    const struct tnd_lexeme *token = &parser->lexer.token;
    return token->kind == kind && (text == NULL || strcmp(token->text.bytes, text) == 0);
}

bool tnd_parse_is_op(const struct tnd_parser *parser, int op)
{
    return parser->lexer.token.kind == TND_LEX_OPERATOR && parser->lexer.token.op == op;
}

bool tnd_parse_take_op(struct tnd_parser *parser, int op)
{
    const bool is_it = tnd_parse_is_op(parser, op);
    if (is_it) {
        tnd_lex_next(&parser->lexer);
    }
    return is_it;
}

static bool take_name(struct tnd_parser *parser, const char *name)
{
    const bool is_it = tnd_parse_is(parser, TND_LEX_NAME, name);
    if (is_it) {
        tnd_lex_next(&parser->lexer);
    }
    return is_it;
}

void tnd_parse_unexpected(struct tnd_parser *parser, const char *expected)
{
    const struct tnd_lexeme *token = &parser->lexer.token;
    char text[48] = "the end of the template";
    if (token->kind == TND_LEX_NAME) {
        snprintf(text, sizeof(text), "'%.40s'", token->text.bytes);
    } else if (token->kind == TND_LEX_OPERATOR) {
        snprintf(text, sizeof(text), "'%c%c'", token->op % 256, token->op / 256);
        text[2 + (token->op > 255)] = '\'';
        text[3 + (token->op > 255)] = 0;
    } else if (token->kind != TND_LEX_END) {
        static const char *const names[] = {
            [TND_LEX_DATA] = "text",          [TND_LEX_BLOCK_BEGIN] = "'{%'",
            [TND_LEX_BLOCK_END] = "'%}'",     [TND_LEX_PRINT_BEGIN] = "'{{'",
            [TND_LEX_PRINT_END] = "'}}'",     [TND_LEX_STRING] = "a text in quotes",
            [TND_LEX_INT] = "a whole number", [TND_LEX_FLOAT] = "a number"};
        snprintf(text, sizeof(text), "%s", names[token->kind]);
    }
    parser->render->line = token->line;
    tnd_template_fail(parser->render, TANDEM_E_FORMAT, "%s stands where %s is expected", text,
                      expected);
}

void tnd_parse_expect_op(struct tnd_parser *parser, int op)
{
    if (!tnd_parse_take_op(parser, op)) {
        const char expected[] = {'\'', (char)op, '\'', 0};
        tnd_parse_unexpected(parser, expected);
    }
}

struct tnd_name tnd_parse_name(struct tnd_parser *parser)
{
    struct tnd_name name = {"", 0};
    if (tnd_parse_is(parser, TND_LEX_NAME, NULL)) {
        name = parser->lexer.token.text;
        tnd_lex_next(&parser->lexer);
    } else {
        tnd_parse_unexpected(parser, "a name");
    }
    return name;
}

/* ---- nodes ---- */

struct tnd_template_node *tnd_new_node(struct tnd_parser *parser, enum tnd_template_node_kind kind)
{
    static struct tnd_template_node none; /* after a failure nothing of it is used */
    struct tnd_template_node *node = tnd_template_alloc(parser->render, 1, sizeof(*node));
    if (node == NULL) {
        return &none;
    }
    node->kind = kind;
    node->line = parser->lexer.token.line;
    return node;
}

static bool has_room(int n)
{
    return n == 0 || (n & (n - 1)) != 0; /* arrays have powers of two */
}

void tnd_add_node(struct tnd_parser *parser, struct tnd_template_node *parent,
                  struct tnd_template_node *child)
{
    if (parser->render->status != TANDEM_OK) {
        return;
    }
    if (parent->n_list == 0 || !has_room(parent->n_list)) {
        const size_t capacity = parent->n_list > 0 ? 2 * (size_t)parent->n_list : 1;
        struct tnd_template_node **grown =
            tnd_template_alloc(parser->render, capacity, sizeof(grown[0]));
        if (grown == NULL) {
            return;
        }
        if (parent->n_list > 0) {
            memcpy(grown, parent->list, (size_t)parent->n_list * sizeof(grown[0]));
        }
        parent->list = grown;
    }
    parent->list[parent->n_list++] = child;
}

void tnd_add_named(struct tnd_parser *parser, struct tnd_template_node *parent,
                   struct tnd_name name, struct tnd_template_node *value)
{
    if (parser->render->status != TANDEM_OK) {
        return;
    }
    if (parent->n_named == 0 || !has_room(parent->n_named)) {
        const size_t capacity = parent->n_named > 0 ? 2 * (size_t)parent->n_named : 1;
        struct tnd_named *grown = tnd_template_alloc(parser->render, capacity, sizeof(grown[0]));
        if (grown == NULL) {
            return;
        }
        if (parent->n_named > 0) {
            memcpy(grown, parent->named, (size_t)parent->n_named * sizeof(grown[0]));
        }
        parent->named = grown;
    }
    parent->named[parent->n_named++] = (struct tnd_named){name, value};
}

static struct tnd_template_node *new_constant(struct tnd_parser *parser, struct tnd_value value)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_CONST);
    node->value = value;
    return node;
}

static struct tnd_template_node *new_pair(struct tnd_parser *parser,
                                          enum tnd_template_node_kind kind, int op,
                                          struct tnd_template_node *a, struct tnd_template_node *b)
{
    struct tnd_template_node *node = tnd_new_node(parser, kind);
    node->op = op;
    node->a = a;
    node->b = b;
    return node;
}

static bool goes_on(const struct tnd_parser *parser)
{
    return parser->render->status == TANDEM_OK;
}

/* ---- what stands between operators ---- */

/* (a), (a,), (a, b), (). */
static struct tnd_template_node *parse_parentheses(struct tnd_parser *parser)
{
    struct tnd_template_node *tuple = tnd_new_node(parser, TND_NODE_TUPLE);
    bool is_tuple = tnd_parse_is_op(parser, ')');
    while (goes_on(parser) && !tnd_parse_is_op(parser, ')')) {
        tnd_add_node(parser, tuple, tnd_parse_expression(parser));
        if (!tnd_parse_take_op(parser, ',')) {
            break;
        }
        is_tuple = true;
    }
    tnd_parse_expect_op(parser, ')');
    return is_tuple || tuple->n_list != 1 ? tuple : tuple->list[0];
}

static struct tnd_template_node *parse_list(struct tnd_parser *parser)
{
    struct tnd_template_node *list = tnd_new_node(parser, TND_NODE_LIST);
    while (goes_on(parser) && !tnd_parse_is_op(parser, ']')) {
        tnd_add_node(parser, list, tnd_parse_expression(parser));
        if (!tnd_parse_take_op(parser, ',')) {
            break;
        }
    }
    tnd_parse_expect_op(parser, ']');
    return list;
}

static struct tnd_template_node *parse_dict(struct tnd_parser *parser)
{
    struct tnd_template_node *dict = tnd_new_node(parser, TND_NODE_DICT);
    while (goes_on(parser) && !tnd_parse_is_op(parser, '}')) {
        tnd_add_node(parser, dict, tnd_parse_expression(parser));
        tnd_parse_expect_op(parser, ':');
        tnd_add_node(parser, dict, tnd_parse_expression(parser));
        if (!tnd_parse_take_op(parser, ',')) {
            break;
        }
    }
    tnd_parse_expect_op(parser, '}');
    return dict;
}

static struct tnd_template_node *parse_strings(struct tnd_parser *parser)
{
    struct tnd_builder text = {.render = parser->render};
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_CONST);
    while (goes_on(parser) && tnd_parse_is(parser, TND_LEX_STRING, NULL)) {
        tnd_build(&text, parser->lexer.token.text.bytes, parser->lexer.token.text.n, false);
        tnd_lex_next(&parser->lexer);
    }
    node->value = tnd_built(&text);
    return node;
}

static struct tnd_template_node *parse_word(struct tnd_parser *parser)
{
    static const struct {
        const char *name;
        struct tnd_value value;
    } constants[] = {{"true", {TND_KIND_BOOL, {.truth = true}}},
                     {"True", {TND_KIND_BOOL, {.truth = true}}},
                     {"false", {TND_KIND_BOOL, {.truth = false}}},
                     {"False", {TND_KIND_BOOL, {.truth = false}}},
                     {"none", {.kind = TND_KIND_NONE}},
                     {"None", {.kind = TND_KIND_NONE}}};
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_NAME);
    node->name = parser->lexer.token.text;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (strcmp(node->name.bytes, constants[i].name) == 0) {
            node->kind = TND_NODE_CONST;
            node->value = constants[i].value;
        }
    }
    tnd_lex_next(&parser->lexer);
    return node;
}

struct tnd_template_node *tnd_parse_primary(struct tnd_parser *parser)
{
    const struct tnd_lexeme *token = &parser->lexer.token;
    struct tnd_template_node *node = NULL;
    if (++parser->render->depth > TND_TEMPLATE_MAX_DEPTH) {
        parser->render->line = token->line;
        tnd_template_fail(parser->render, TANDEM_E_LIMIT, "expressions are nested too deep");
    } else if (token->kind == TND_LEX_NAME) {
        node = parse_word(parser);
    } else if (token->kind == TND_LEX_STRING) {
        node = parse_strings(parser);
    } else if (token->kind == TND_LEX_INT || token->kind == TND_LEX_FLOAT) {
        node = new_constant(parser, token->kind == TND_LEX_INT ? tnd_int(token->integer)
                                                               : tnd_number(token->number));
        tnd_lex_next(&parser->lexer);
    } else if (tnd_parse_take_op(parser, '(')) {
        node = parse_parentheses(parser);
    } else if (tnd_parse_take_op(parser, '[')) {
        node = parse_list(parser);
    } else if (tnd_parse_take_op(parser, '{')) {
        node = parse_dict(parser);
    } else {
        tnd_parse_unexpected(parser, "a value");
    }
    parser->render->depth--;
    return node != NULL ? node : tnd_new_node(parser, TND_NODE_CONST);
}

/* ---- members, calls ---- */

void tnd_parse_arguments(struct tnd_parser *parser, struct tnd_template_node *call)
{
    tnd_parse_expect_op(parser, '(');
    while (goes_on(parser) && !tnd_parse_is_op(parser, ')')) {
        struct tnd_template_node *value;
        if (tnd_parse_is_op(parser, '*') || tnd_parse_is_op(parser, TND_OP2('*', '*'))) {
            parser->render->line = parser->lexer.token.line;
            tnd_template_fail(parser->render, TANDEM_E_UNSUPPORTED_BUILD,
                              "arguments that are unpacked by '*' are not understood");
            return;
        }
        value = tnd_parse_expression(parser);
        if (value->kind == TND_NODE_NAME && tnd_parse_take_op(parser, '=')) {
            tnd_add_named(parser, call, value->name, tnd_parse_expression(parser));
        } else if (call->n_named > 0) {
            tnd_parse_unexpected(parser, "an argument with a name, as the one before has");
        } else {
            tnd_add_node(parser, call, value);
        }
        if (!tnd_parse_take_op(parser, ',')) {
            break;
        }
    }
    tnd_parse_expect_op(parser, ')');
}

/* Parses a[b], a[b:c], a[b:c:d] after '['. */
static struct tnd_template_node *parse_subscript(struct tnd_parser *parser,
                                                 struct tnd_template_node *a)
{
    struct tnd_template_node *parts[3] = {NULL, NULL, NULL};
    int n = 0;
    while (goes_on(parser) && n < 3) {
        if (!tnd_parse_is_op(parser, ':') && !tnd_parse_is_op(parser, ']')) {
            parts[n] = tnd_parse_expression(parser);
        }
        n++;
        if (!tnd_parse_take_op(parser, ':')) {
            break;
        }
    }
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_ITEM);
    if (n > 1) {
        node->kind = TND_NODE_SLICE;
        node->c = parts[1];
        node->d = parts[2];
    } else if (parts[0] == NULL) {
        tnd_parse_unexpected(parser, "an index");
    }
    node->a = a;
    node->b = parts[0];
    tnd_parse_expect_op(parser, ']');
    return node;
}

static struct tnd_template_node *parse_dot(struct tnd_parser *parser, struct tnd_template_node *a)
{
    if (parser->lexer.token.kind == TND_LEX_INT) {
        struct tnd_template_node *i = new_constant(parser, tnd_int(parser->lexer.token.integer));
        tnd_lex_next(&parser->lexer);
        return new_pair(parser, TND_NODE_ITEM, 0, a, i);
    }
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_MEMBER);
    node->a = a;
    node->name = tnd_parse_name(parser);
    return node;
}

static struct tnd_template_node *parse_call(struct tnd_parser *parser,
                                            struct tnd_template_node *function)
{
    struct tnd_template_node *call = tnd_new_node(parser, TND_NODE_CALL);
    call->a = function;
    tnd_parse_arguments(parser, call);
    return call;
}

static struct tnd_template_node *parse_postfix(struct tnd_parser *parser,
                                               struct tnd_template_node *node)
{
    while (goes_on(parser)) {
        if (tnd_parse_take_op(parser, '.')) {
            node = parse_dot(parser, node);
        } else if (tnd_parse_take_op(parser, '[')) {
            node = parse_subscript(parser, node);
        } else if (tnd_parse_is_op(parser, '(')) {
            node = parse_call(parser, node);
        } else {
            break;
        }
    }
    return node;
}

/* ---- filters and tests ---- */

static struct tnd_name parse_dotted(struct tnd_parser *parser)
{
    struct tnd_name name = tnd_parse_name(parser);
    if (tnd_parse_is_op(parser, '.')) {
        tnd_parse_unexpected(parser, "a filter or test whose name has no '.'");
    }
    return name;
}

/* Refuses unknown filters and tests, except after a condition: there they fail when evaluated, as
 * in Jinja. */
static void check_known(struct tnd_parser *parser, const struct tnd_template_node *node,
                        bool is_known)
{
    if (!is_known && parser->n_soft == 0 && goes_on(parser)) {
        parser->render->line = node->line;
        tnd_template_fail(parser->render, TANDEM_E_UNSUPPORTED_BUILD, "there is no %s '%.60s'",
                          node->kind == TND_NODE_TEST ? "test" : "filter", node->name.bytes);
    }
}

struct tnd_template_node *tnd_parse_filters(struct tnd_parser *parser, struct tnd_template_node *a)
{
    struct tnd_template_node *node;
    do {
        node = tnd_new_node(parser, TND_NODE_FILTER);
        node->a = a;
        node->name = parse_dotted(parser);
        if (tnd_parse_is_op(parser, '(')) {
            tnd_parse_arguments(parser, node);
        }
        check_known(parser, node, tnd_find_filter(node->name.bytes) != NULL);
        a = node;
    } while (goes_on(parser) && tnd_parse_take_op(parser, '|'));
    return node;
}

static bool begins_operand(const struct tnd_parser *parser)
{
    const struct tnd_lexeme *token = &parser->lexer.token;
    if (token->kind == TND_LEX_NAME) {
        static const char *const others[] = {"else", "or", "and", "is", "not", "in", "if"};
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            if (strcmp(token->text.bytes, others[i]) == 0) {
                return false;
            }
        }
        return true;
    }
    return token->kind == TND_LEX_STRING || token->kind == TND_LEX_INT ||
           token->kind == TND_LEX_FLOAT || tnd_parse_is_op(parser, '[') ||
           tnd_parse_is_op(parser, '{');
}

static struct tnd_template_node *parse_test(struct tnd_parser *parser, struct tnd_template_node *a)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_TEST);
    node->a = a;
    node->op = take_name(parser, "not");
    node->name = parse_dotted(parser);
    if (tnd_parse_is_op(parser, '(')) {
        tnd_parse_arguments(parser, node);
    } else if (begins_operand(parser)) {
        tnd_add_node(parser, node, parse_postfix(parser, tnd_parse_primary(parser)));
    }
    check_known(parser, node, tnd_find_test(node->name.bytes) != NULL);
    return node;
}

static struct tnd_template_node *parse_filters_and_tests(struct tnd_parser *parser,
                                                         struct tnd_template_node *node)
{
    while (goes_on(parser)) {
        if (tnd_parse_take_op(parser, '|')) {
            node = tnd_parse_filters(parser, node);
        } else if (take_name(parser, "is")) {
            node = parse_test(parser, node);
        } else if (tnd_parse_is_op(parser, '(')) {
            node = parse_call(parser, node);
        } else {
            break;
        }
    }
    return node;
}

/* ---- operators ---- */

static struct tnd_template_node *parse_unary(struct tnd_parser *parser, bool has_filters)
{
    struct tnd_template_node *node;
    const int op = tnd_parse_is_op(parser, '-') ? '-' : tnd_parse_is_op(parser, '+') ? '+' : 0;
    if (op != 0) {
        if (++parser->render->depth > TND_TEMPLATE_MAX_DEPTH) {
            tnd_parse_unexpected(parser, "fewer signs");
        }
        tnd_lex_next(&parser->lexer);
        node = new_pair(parser, TND_NODE_UNARY, op, NULL, NULL);
        node->a = goes_on(parser) ? parse_unary(parser, false) : node;
        parser->render->depth--;
    } else {
        node = tnd_parse_primary(parser);
    }
    node = parse_postfix(parser, node);
    return has_filters ? parse_filters_and_tests(parser, node) : node;
}

static int level_of(const struct tnd_parser *parser)
{
    switch (parser->lexer.token.kind == TND_LEX_OPERATOR ? parser->lexer.token.op : 0) {
    case '+':
    case '-':
        return 1;
    case '~':
        return 2;
    case '*':
    case '/':
    case '%':
    case TND_OP2('/', '/'):
        return 3;
    case TND_OP2('*', '*'):
        return 4;
    default:
        return 0;
    }
}

/* Operators of `level` and tighter ones; each level groups from the left. */
static struct tnd_template_node *parse_arithmetic(struct tnd_parser *parser, int level)
{
    struct tnd_template_node *node =
        level > 4 ? parse_unary(parser, true) : parse_arithmetic(parser, level + 1);
    while (goes_on(parser) && level <= 4 && level_of(parser) == level) {
        const int op = parser->lexer.token.op;
        tnd_lex_next(&parser->lexer);
        struct tnd_template_node *right = parse_arithmetic(parser, level + 1);
        if (op != '~') {
            node = new_pair(parser, TND_NODE_BINARY, op, node, right);
            continue;
        }
        if (node->kind != TND_NODE_CONCAT) {
            struct tnd_template_node *concat = tnd_new_node(parser, TND_NODE_CONCAT);
            tnd_add_node(parser, concat, node);
            node = concat;
        }
        tnd_add_node(parser, node, right);
    }
    return node;
}

/* Consumes a comparison operator and returns its `op`; 'i' in, 'n' not in; 0: none. */
static int take_comparison(struct tnd_parser *parser)
{
    static const int ops[] = {
        TND_OP2('=', '='), TND_OP2('!', '='), TND_OP2('<', '='), TND_OP2('>', '='), '<', '>'};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (tnd_parse_take_op(parser, ops[i])) {
            return ops[i];
        }
    }
    if (take_name(parser, "in")) {
        return 'i';
    }
    if (take_name(parser, "not")) {
        if (!take_name(parser, "in")) {
            tnd_parse_unexpected(parser, "'in' behind 'not'");
        }
        return 'n';
    }
    return 0;
}

static struct tnd_template_node *parse_comparison(struct tnd_parser *parser)
{
    struct tnd_template_node *node = parse_arithmetic(parser, 1);
    struct tnd_template_node *chain = NULL;
    int op;
    while (goes_on(parser) && (op = take_comparison(parser)) != 0) {
        if (chain == NULL) {
            chain = tnd_new_node(parser, TND_NODE_COMPARE);
            chain->a = node;
        }
        struct tnd_template_node *operand = tnd_new_node(parser, TND_NODE_COMPARE);
        operand->op = op;
        operand->a = parse_arithmetic(parser, 1);
        tnd_add_node(parser, chain, operand);
    }
    return chain != NULL ? chain : node;
}

static struct tnd_template_node *parse_not(struct tnd_parser *parser)
{
    if (!take_name(parser, "not")) {
        return parse_comparison(parser);
    }
    struct tnd_template_node *node = new_pair(parser, TND_NODE_UNARY, '!', NULL, NULL);
    if (++parser->render->depth > TND_TEMPLATE_MAX_DEPTH) {
        tnd_parse_unexpected(parser, "fewer 'not'");
    }
    node->a = goes_on(parser) ? parse_not(parser) : node;
    parser->render->depth--;
    return node;
}

static struct tnd_template_node *parse_and(struct tnd_parser *parser)
{
    struct tnd_template_node *node = parse_not(parser);
    while (goes_on(parser) && take_name(parser, "and")) {
        node = new_pair(parser, TND_NODE_AND, 0, node, parse_not(parser));
    }
    return node;
}

static struct tnd_template_node *parse_or(struct tnd_parser *parser)
{
    struct tnd_template_node *node = parse_and(parser);
    while (goes_on(parser) && take_name(parser, "or")) {
        node = new_pair(parser, TND_NODE_OR, 0, node, parse_and(parser));
    }
    return node;
}

struct tnd_template_node *tnd_parse_expression(struct tnd_parser *parser)
{
    struct tnd_template_node *node = parse_or(parser);
    while (goes_on(parser) && take_name(parser, "if")) {
        struct tnd_template_node *condition = tnd_new_node(parser, TND_NODE_CONDITION);
        parser->n_soft++;
        condition->b = node;
        condition->a = parse_or(parser);
        if (take_name(parser, "else")) {
            if (++parser->render->depth > TND_TEMPLATE_MAX_DEPTH) {
                tnd_parse_unexpected(parser, "fewer conditions");
            }
            condition->c = goes_on(parser) ? tnd_parse_expression(parser) : NULL;
            parser->render->depth--;
        }
        parser->n_soft--;
        node = condition;
    }
    return node;
}

struct tnd_template_node *tnd_parse_tuple(struct tnd_parser *parser, bool has_condition)
{
    struct tnd_template_node *first =
        has_condition ? tnd_parse_expression(parser) : parse_or(parser);
    if (!tnd_parse_is_op(parser, ',')) {
        return first;
    }
    struct tnd_template_node *tuple = tnd_new_node(parser, TND_NODE_TUPLE);
    tnd_add_node(parser, tuple, first);
    while (goes_on(parser) && tnd_parse_take_op(parser, ',')) {
        if (parser->lexer.token.kind == TND_LEX_BLOCK_END ||
            parser->lexer.token.kind == TND_LEX_PRINT_END || tnd_parse_is_op(parser, '=') ||
            tnd_parse_is(parser, TND_LEX_NAME, "in")) {
            break;
        }
        tnd_add_node(parser, tuple,
                     has_condition ? tnd_parse_expression(parser) : parse_or(parser));
    }
    return tuple;
}
