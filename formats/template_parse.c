/* SPDX-License-Identifier: MIT
 * Blocks of the template language: text, output and statements become a tree. Statements that read
 * other templates (import, include, extends, block) are refused. */
#include <stdio.h>
#include <string.h>

#include "formats/template.h"

static bool goes_on(const struct tnd_parser *parser)
{
    return parser->render->status == TANDEM_OK;
}

static void expect_end(struct tnd_parser *parser)
{
    if (parser->lexer.token.kind == TND_LEX_BLOCK_END) {
        tnd_lex_next(&parser->lexer);
    } else {
        tnd_parse_unexpected(parser, "'%}'");
    }
}

static struct tnd_template_node *parse_block(struct tnd_parser *parser, const char *const *ends,
                                             const char *opened);

/* The body of a block up to one of `ends`, whose name is the current token then. */
static struct tnd_template_node *parse_body(struct tnd_parser *parser, const char *const *ends,
                                            const char *opened)
{
    expect_end(parser);
    return parse_block(parser, ends, opened);
}

/* A body that ends with "end" and the block's name. */
static struct tnd_template_node *parse_only_body(struct tnd_parser *parser, const char *name)
{
    char end[24];
    snprintf(end, sizeof(end), "end%s", name);
    const char *const ends[] = {end, NULL};
    struct tnd_template_node *body = parse_body(parser, ends, name);
    tnd_lex_next(&parser->lexer);
    expect_end(parser);
    return body;
}

static bool take_word(struct tnd_parser *parser, const char *word)
{
    const bool is_it = tnd_parse_is(parser, TND_LEX_NAME, word);
    if (is_it) {
        tnd_lex_next(&parser->lexer);
    }
    return is_it;
}

/* ---- statements; the current token stands behind their name ---- */

static struct tnd_template_node *parse_if(struct tnd_parser *parser)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct tnd_template_node *first = tnd_new_node(parser, TND_NODE_IF);
    struct tnd_template_node *node = first;
    parser->n_soft++;
    for (;;) {
        node->a = tnd_parse_tuple(parser, true);
        node->b = parse_body(parser, ends, "if");
        if (!goes_on(parser) || !take_word(parser, "elif")) {
            break;
        }
        struct tnd_template_node *next = tnd_new_node(parser, TND_NODE_IF);
        node->c = next;
        node = next;
    }
    if (take_word(parser, "else")) {
        static const char *const end[] = {"endif", NULL};
        node->c = parse_body(parser, end, "if");
    }
    parser->n_soft--;
    tnd_lex_next(&parser->lexer);
    expect_end(parser);
    return first;
}

/* Names that get values: a name, names with commas between, or namespace.member. */
static struct tnd_template_node *parse_target(struct tnd_parser *parser, bool has_members)
{
    const bool is_enclosed = tnd_parse_take_op(parser, '(');
    struct tnd_template_node *tuple = tnd_new_node(parser, TND_NODE_TUPLE);
    do {
        struct tnd_template_node *name = tnd_new_node(parser, TND_NODE_NAME);
        name->name = tnd_parse_name(parser);
        if (has_members && tnd_parse_take_op(parser, '.')) {
            struct tnd_template_node *member = tnd_new_node(parser, TND_NODE_MEMBER);
            member->a = name;
            member->name = tnd_parse_name(parser);
            name = member;
        }
        tnd_add_node(parser, tuple, name);
    } while (goes_on(parser) && tnd_parse_take_op(parser, ',') &&
             parser->lexer.token.kind == TND_LEX_NAME && !tnd_parse_is(parser, TND_LEX_NAME, "in"));
    if (is_enclosed) {
        tnd_parse_expect_op(parser, ')');
    }
    return tuple->n_list == 1 ? tuple->list[0] : tuple;
}

static struct tnd_template_node *parse_for(struct tnd_parser *parser)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_FOR);
    node->a = parse_target(parser, false);
    if (!take_word(parser, "in")) {
        tnd_parse_unexpected(parser, "'in'");
    }
    node->b = tnd_parse_tuple(parser, false);
    if (take_word(parser, "if")) {
        node->d = tnd_parse_expression(parser);
    }
    node->op = take_word(parser, "recursive");
    parser->n_loops++;
    node->c = parse_body(parser, ends, "for");
    parser->n_loops--;
    if (take_word(parser, "else")) {
        static const char *const end[] = {"endfor", NULL};
        tnd_add_node(parser, node, parse_body(parser, end, "for"));
    }
    tnd_lex_next(&parser->lexer);
    expect_end(parser);
    return node;
}

static struct tnd_template_node *parse_set(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_SET);
    node->a = parse_target(parser, true);
    if (tnd_parse_take_op(parser, '=')) {
        node->b = tnd_parse_tuple(parser, true);
        expect_end(parser);
        return node;
    }
    node->kind = TND_NODE_SET_BLOCK;
    if (tnd_parse_take_op(parser, '|')) {
        node->b = tnd_parse_filters(parser, NULL);
    }
    node->c = parse_only_body(parser, "set");
    return node;
}

/* (a, b=1) */
static void parse_parameters(struct tnd_parser *parser, struct tnd_template_node *node)
{
    tnd_parse_expect_op(parser, '(');
    while (goes_on(parser) && !tnd_parse_is_op(parser, ')')) {
        const struct tnd_name name = tnd_parse_name(parser);
        struct tnd_template_node *value = NULL;
        if (tnd_parse_take_op(parser, '=')) {
            value = tnd_parse_expression(parser);
        } else if (node->n_named > 0 && node->named[node->n_named - 1].value != NULL) {
            tnd_parse_unexpected(parser, "a parameter with a default, as the one before has");
        }
        tnd_add_named(parser, node, name, value);
        if (!tnd_parse_take_op(parser, ',')) {
            break;
        }
    }
    tnd_parse_expect_op(parser, ')');
}

/* The body of a macro begins anew: its loops and conditions are its own. */
static struct tnd_template_node *parse_macro_body(struct tnd_parser *parser, const char *name)
{
    const int n_loops = parser->n_loops;
    parser->n_loops = 0;
    struct tnd_template_node *body = parse_only_body(parser, name);
    parser->n_loops = n_loops;
    return body;
}

static struct tnd_template_node *parse_macro(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_MACRO);
    node->name = tnd_parse_name(parser);
    parse_parameters(parser, node);
    node->c = parse_macro_body(parser, "macro");
    return node;
}

static struct tnd_template_node *parse_call_block(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_CALL_BLOCK);
    node->name = (struct tnd_name){"caller", 6};
    if (tnd_parse_is_op(parser, '(')) {
        parse_parameters(parser, node);
    }
    node->b = tnd_parse_expression(parser);
    if (goes_on(parser) && node->b->kind != TND_NODE_CALL) {
        tnd_parse_unexpected(parser, "the call of a macro");
    }
    node->c = parse_macro_body(parser, "call");
    return node;
}

static struct tnd_template_node *parse_filter_block(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_FILTER_BLOCK);
    node->b = tnd_parse_filters(parser, NULL);
    node->c = parse_only_body(parser, "filter");
    return node;
}

static struct tnd_template_node *parse_with(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_WITH);
    while (goes_on(parser) && parser->lexer.token.kind != TND_LEX_BLOCK_END) {
        const struct tnd_name name = tnd_parse_name(parser);
        tnd_parse_expect_op(parser, '=');
        tnd_add_named(parser, node, name, tnd_parse_expression(parser));
        if (!tnd_parse_take_op(parser, ',')) {
            break;
        }
    }
    node->c = parse_only_body(parser, "with");
    return node;
}

/* transformers' mark around what a model is trained to write; the text stays as it is. */
static struct tnd_template_node *parse_generation(struct tnd_parser *parser)
{
    return parse_only_body(parser, "generation");
}

static struct tnd_template_node *parse_jump(struct tnd_parser *parser,
                                            enum tnd_template_node_kind kind)
{
    struct tnd_template_node *node = tnd_new_node(parser, kind);
    if (parser->n_loops == 0) {
        tnd_parse_unexpected(parser, "a loop around 'break' or 'continue'");
    }
    expect_end(parser);
    return node;
}

static struct tnd_template_node *parse_break(struct tnd_parser *parser)
{
    return parse_jump(parser, TND_NODE_BREAK);
}

static struct tnd_template_node *parse_continue(struct tnd_parser *parser)
{
    return parse_jump(parser, TND_NODE_CONTINUE);
}

static struct tnd_template_node *parse_raw(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_TEXT);
    if (parser->lexer.token.kind != TND_LEX_BLOCK_END) {
        tnd_parse_unexpected(parser, "'%}'");
        return node;
    }
    parser->lexer.is_raw = true;
    tnd_lex_next(&parser->lexer);
    node->value = tnd_text_value(parser->render, parser->lexer.token.text.bytes,
                                 parser->lexer.token.text.n, false);
    tnd_lex_next(&parser->lexer);
    return node;
}

static struct tnd_template_node *parse_statement(struct tnd_parser *parser)
{
    static const struct {
        const char *name;
        struct tnd_template_node *(*parse)(struct tnd_parser *parser);
    } statements[] = {{"if", parse_if},           {"for", parse_for},
                      {"set", parse_set},         {"macro", parse_macro},
                      {"call", parse_call_block}, {"filter", parse_filter_block},
                      {"with", parse_with},       {"generation", parse_generation},
                      {"break", parse_break},     {"continue", parse_continue},
                      {"raw", parse_raw}};
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        if (take_word(parser, statements[i].name)) {
            return statements[i].parse(parser);
        }
    }
    if (tnd_parse_is(parser, TND_LEX_NAME, NULL)) {
        parser->render->line = parser->lexer.token.line;
        tnd_template_fail(parser->render, TANDEM_E_UNSUPPORTED_BUILD,
                          "the statement '%.40s' is not understood, or has no begin",
                          parser->lexer.token.text.bytes);
    } else {
        tnd_parse_unexpected(parser, "a statement");
    }
    return tnd_new_node(parser, TND_NODE_BLOCK);
}

/* ---- blocks ---- */

static bool is_end(const struct tnd_parser *parser, const char *const *ends)
{
    for (int i = 0; ends != NULL && ends[i] != NULL; i++) {
        if (tnd_parse_is(parser, TND_LEX_NAME, ends[i])) {
            return true;
        }
    }
    return false;
}

static struct tnd_template_node *parse_output(struct tnd_parser *parser)
{
    struct tnd_template_node *node = tnd_new_node(parser, TND_NODE_OUTPUT);
    tnd_lex_next(&parser->lexer);
    node->a = tnd_parse_tuple(parser, true);
    if (parser->lexer.token.kind != TND_LEX_PRINT_END) {
        tnd_parse_unexpected(parser, "'}}'");
    }
    tnd_lex_next(&parser->lexer);
    return node;
}

static struct tnd_template_node *parse_block(struct tnd_parser *parser, const char *const *ends,
                                             const char *opened)
{
    struct tnd_template_node *block = tnd_new_node(parser, TND_NODE_BLOCK);
    if (++parser->render->depth > TND_TEMPLATE_MAX_DEPTH) {
        parser->render->line = parser->lexer.token.line;
        tnd_template_fail(parser->render, TANDEM_E_LIMIT, "blocks are nested too deep");
    }
    while (goes_on(parser) && parser->lexer.token.kind != TND_LEX_END) {
        const enum tnd_token_kind kind = parser->lexer.token.kind;
        if (kind == TND_LEX_DATA) {
            struct tnd_template_node *text = tnd_new_node(parser, TND_NODE_TEXT);
            text->value = tnd_text_value(parser->render, parser->lexer.token.text.bytes,
                                         parser->lexer.token.text.n, false);
            tnd_add_node(parser, block, text);
            tnd_lex_next(&parser->lexer);
        } else if (kind == TND_LEX_PRINT_BEGIN) {
            tnd_add_node(parser, block, parse_output(parser));
        } else {
            tnd_lex_next(&parser->lexer);
            if (is_end(parser, ends)) {
                break;
            }
            tnd_add_node(parser, block, parse_statement(parser));
        }
    }
    parser->render->depth--;
    if (ends != NULL && goes_on(parser) && parser->lexer.token.kind == TND_LEX_END) {
        parser->render->line = block->line;
        tnd_template_fail(parser->render, TANDEM_E_FORMAT, "the block '%s' has no end", opened);
    }
    return block;
}

struct tnd_template_node *tnd_parse_template(struct tnd_render *render, const char *text, size_t n)
{
    struct tnd_parser parser = {.render = render};
    tnd_lex_begin(&parser.lexer, render, text, n);
    tnd_lex_next(&parser.lexer);
    struct tnd_template_node *block = parse_block(&parser, NULL, NULL);
    return render->status == TANDEM_OK ? block : NULL;
}
