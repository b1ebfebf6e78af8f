/* SPDX-License-Identifier: MIT
 * Opens grammars. */
#include <stdlib.h>

#include "llama/grammar.h"

static int32_t parse(struct tnd_tree *tree, const struct tandem_grammar_options *o)
{
    switch (o->kind) {
    case TANDEM_GRAMMAR_GBNF:
        return tnd_gbnf_parse(tree, o->text, o->n, o->root != NULL ? o->root : "root");
    case TANDEM_GRAMMAR_JSON_SCHEMA:
        return tnd_schema_parse(tree, o->text, o->n);
    case TANDEM_GRAMMAR_REGEX:
        return tnd_regex_parse(tree, o->text, o->n, false);
    case TANDEM_GRAMMAR_CHOICE:
        return tnd_choice_parse(tree, o->text, o->n);
    }
    return tnd_tree_fail(tree, TANDEM_E_ARGUMENT, "grammar: unknown kind %d", (int)o->kind);
}

enum tandem_status tandem_grammar_new(const struct tandem_grammar_options *given,
                                      tandem_grammar **out_grammar, struct tandem_error *error)
{
    LLAMA_REQUIRE(out_grammar, error);
    struct tandem_grammar_options o = TANDEM_GRAMMAR_OPTIONS_INIT;
    LLAMA_TRY(tnd_llama_options_read(given, "grammar options", &o, sizeof(o), error));
    LLAMA_REQUIRE(o.text, error);
    if (o.n > TND_GRAMMAR_MOST_BYTES) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, "grammar", (int64_t)o.n,
                              TND_GRAMMAR_MOST_BYTES, "grammar: a text of %zu bytes, at most %d",
                              o.n, (int)TND_GRAMMAR_MOST_BYTES);
    }
    struct tnd_tree tree;
    tnd_tree_init(&tree, error);
    int32_t node = parse(&tree, &o);
    if (tree.status == TANDEM_OK && (o.before != NULL || o.after != NULL)) {
        const int32_t list = tnd_tree_list(&tree, TND_SEQUENCE);
        tnd_tree_append(&tree, list, tnd_tree_text(&tree, o.before != NULL ? o.before : ""));
        tnd_tree_append(&tree, list, node);
        tnd_tree_append(&tree, list, tnd_tree_text(&tree, o.after != NULL ? o.after : ""));
        node = list;
    }
    enum tandem_status status = tree.status;
    if (status == TANDEM_OK) {
        status = tnd_grammar_compile(&tree, node, out_grammar);
    }
    tnd_tree_free(&tree);
    return status;
}

void tandem_grammar_free(tandem_grammar *grammar)
{
    if (grammar != NULL) {
        free(grammar->edges);
        free(grammar->starts);
        free(grammar->is_end);
        free(grammar->rules);
        free(grammar);
    }
}
