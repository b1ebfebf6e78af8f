/* SPDX-License-Identifier: MIT
 * Running the statements of a template. Scopes are those of Jinja: blocks of for, with, macro, call
 * and filter have names of their own, if has not; a name that is read comes from the innermost
 * scope that has it. Macros see the scope in which they were defined. */
#include <string.h>

#include "base/tnd_assert.h"
#include "formats/template.h"

static bool goes_on(const struct tnd_render *render)
{
    return render->status == TANDEM_OK && render->flow == TND_FLOW_NONE;
}

static struct tnd_value text_of(struct tnd_render *render, struct tnd_name name)
{
    return tnd_text_value(render, name.bytes, name.n, false);
}

void tnd_scope_set(struct tnd_render *render, struct tnd_scope *scope, struct tnd_name name,
                   struct tnd_value value)
{
    tnd_dict_set(render, &scope->names, text_of(render, name), value);
}

/* A scope inside of another one. In the arena, since a macro that was defined in it may be called
 * later. Without memory, which ends the rendering, the outer one. */
static struct tnd_scope *new_scope(struct tnd_render *render, struct tnd_scope *parent)
{
    struct tnd_scope *scope = tnd_template_alloc(render, 1, sizeof(*scope));
    if (scope == NULL) {
        return parent;
    }
    scope->parent = parent;
    return scope;
}

static void assign(struct tnd_render *render, struct tnd_scope *scope,
                   const struct tnd_template_node *target, struct tnd_value value)
{
    if (target->kind == TND_NODE_NAME) {
        tnd_scope_set(render, scope, target->name, value);
        return;
    }
    if (target->kind == TND_NODE_MEMBER) {
        struct tnd_value owner = tnd_evaluate(render, target->a, scope);
        if (owner.kind != TND_KIND_NAMESPACE) {
            tnd_template_fail(render, TANDEM_E_FORMAT,
                              "'%.40s' is no namespace, so that its members cannot be set",
                              target->a->name.bytes);
            return;
        }
        tnd_dict_set(render, owner.as.dict, text_of(render, target->name), value);
        return;
    }
    const struct tnd_list *items = tnd_items_of(render, value);
    if (items != NULL && items->n != (size_t)target->n_list) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "%zu values for %d names", items->n,
                          target->n_list);
    }
    for (int i = 0; items != NULL && i < target->n_list && render->status == TANDEM_OK; i++) {
        assign(render, scope, target->list[i], items->items[i]);
    }
}

static struct tnd_value text_of_block(struct tnd_render *render,
                                      const struct tnd_template_node *body,
                                      struct tnd_scope *parent)
{
    struct tnd_builder text = {.render = render};
    tnd_render_block(render, body, new_scope(render, parent), &text);
    return tnd_built(&text);
}

/* ---- loops ---- */

/* The items for which the condition of the for block holds. */
static struct tnd_list *chosen_items(struct tnd_render *render,
                                     const struct tnd_template_node *node, struct tnd_scope *parent,
                                     struct tnd_list *items)
{
    if (node->d == NULL || items == NULL) {
        return items;
    }
    struct tnd_value chosen = tnd_list_value(render, TND_KIND_LIST, 0);
    for (size_t i = 0; chosen.kind == TND_KIND_LIST && i < items->n && goes_on(render); i++) {
        struct tnd_scope *scope = new_scope(render, parent);
        assign(render, scope, node->a, items->items[i]);
        if (tnd_is_true(tnd_evaluate(render, node->d, scope))) {
            tnd_list_add(render, chosen.as.list, items->items[i]);
        }
    }
    return chosen.kind == TND_KIND_LIST ? chosen.as.list : NULL;
}

void tnd_render_loop(struct tnd_render *render, const struct tnd_template_node *node,
                     struct tnd_scope *parent, struct tnd_value value, int depth,
                     struct tnd_builder *out)
{
    const struct tnd_list *items = chosen_items(render, node, parent, tnd_items_of(render, value));
    struct tnd_loop *loop = tnd_template_alloc(render, 1, sizeof(*loop));
    if (items == NULL || loop == NULL) {
        return;
    }
    *loop = (struct tnd_loop){node, parent, items->items, items->n, 0, depth, tnd_none()};
    for (; loop->i < loop->n && goes_on(render); loop->i++) {
        struct tnd_scope *scope = new_scope(render, parent);
        tnd_scope_set(render, scope, (struct tnd_name){"loop", 4},
                      (struct tnd_value){.kind = TND_KIND_LOOP, .as.loop = loop});
        assign(render, scope, node->a, loop->items[loop->i]);
        tnd_render_block(render, node->c, scope, out);
        if (render->flow == TND_FLOW_CONTINUE) {
            render->flow = TND_FLOW_NONE;
        }
    }
    if (render->flow == TND_FLOW_BREAK) {
        render->flow = TND_FLOW_NONE;
    }
    if (loop->n == 0 && node->n_list > 0) {
        tnd_render_block(render, node->list[0], new_scope(render, parent), out);
    }
}

/* ---- macros ---- */

static struct tnd_value define(struct tnd_render *render, const struct tnd_template_node *node,
                               struct tnd_scope *scope)
{
    struct tnd_macro *macro = tnd_template_alloc(render, 1, sizeof(*macro));
    if (macro == NULL) {
        return tnd_none();
    }
    *macro = (struct tnd_macro){node, scope};
    return (struct tnd_value){.kind = TND_KIND_MACRO, .as.macro = macro};
}

static bool is_parameter(const struct tnd_template_node *node, const struct tnd_value *name)
{
    bool found = false;
    for (int i = 0; i < node->n_named && !found; i++) {
        found = tnd_is_string(*name, node->named[i].name.bytes);
    }
    return found;
}

/* What is called beside its parameters: `varargs`, `kwargs` and `caller`. */
static void bind_others(struct tnd_render *render, const struct tnd_template_node *node,
                        const struct tnd_arguments *arguments, struct tnd_scope *scope)
{
    struct tnd_value varargs = tnd_list_value(render, TND_KIND_TUPLE, 0);
    struct tnd_value kwargs = tnd_dict_value(render);
    for (int i = node->n_named; i < arguments->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, varargs.as.list, arguments->items[i]);
    }
    for (int i = 0; i < arguments->n_named && render->status == TANDEM_OK; i++) {
        const struct tnd_member *named = &arguments->named[i];
        if (tnd_is_string(named->key, "caller")) {
            tnd_dict_set(render, &scope->names, named->key, named->value);
        } else if (!is_parameter(node, &named->key)) {
            tnd_dict_set(render, kwargs.as.dict, named->key, named->value);
        }
    }
    if (render->status == TANDEM_OK) {
        tnd_scope_set(render, scope, (struct tnd_name){"varargs", 7}, varargs);
        tnd_scope_set(render, scope, (struct tnd_name){"kwargs", 6}, kwargs);
    }
}

struct tnd_value tnd_call_macro(struct tnd_render *render, const struct tnd_macro *macro,
                                const struct tnd_arguments *arguments)
{
    const struct tnd_template_node *node = macro->node;
    struct tnd_scope *scope = new_scope(render, macro->scope);
    struct tnd_builder text = {.render = render};
    const int line = render->line;
    if (++render->depth > TND_TEMPLATE_MAX_DEPTH) {
        tnd_template_fail(render, TANDEM_E_LIMIT, "macros call each other too deep");
    }
    bind_others(render, node, arguments, scope);
    for (int i = 0; i < node->n_named && render->status == TANDEM_OK; i++) {
        const struct tnd_named *parameter = &node->named[i];
        const struct tnd_value *given = tnd_argument(render, arguments, i, parameter->name.bytes);
        struct tnd_value value =
            given != NULL ? *given
            : parameter->value != NULL
                ? tnd_evaluate(render, parameter->value, scope)
                : tnd_undefined(render, parameter->name.bytes, parameter->name.n);
        tnd_scope_set(render, scope, parameter->name, value);
    }
    tnd_render_block(render, node->c, scope, &text);
    render->depth--;
    render->line = line;
    return tnd_built(&text);
}

/* The call with one argument more, `caller`. */
static void run_call_block(struct tnd_render *render, const struct tnd_template_node *node,
                           struct tnd_scope *scope, struct tnd_builder *out)
{
    struct tnd_template_node call = *node->b;
    struct tnd_template_node caller = {.kind = TND_NODE_CONST,
                                       .value = define(render, node, scope)};
    struct tnd_named *named =
        tnd_template_alloc(render, (size_t)call.n_named + 1, sizeof(named[0]));
    if (named == NULL) {
        return;
    }
    if (call.n_named > 0) {
        memcpy(named, call.named, (size_t)call.n_named * sizeof(named[0]));
    }
    named[call.n_named++] = (struct tnd_named){{"caller", 6}, &caller};
    call.named = named;
    tnd_build_value(out, tnd_evaluate(render, &call, scope));
}

/* ---- statements ---- */

static void run(struct tnd_render *render, const struct tnd_template_node *node,
                struct tnd_scope *scope, struct tnd_builder *out)
{
    struct tnd_scope *inner;
    struct tnd_value value;
    render->line = node->line;
    switch (node->kind) {
    case TND_NODE_TEXT:
        tnd_build_string(out, node->value.as.string);
        break;
    case TND_NODE_OUTPUT:
        tnd_build_value(out, tnd_evaluate(render, node->a, scope));
        break;
    case TND_NODE_BLOCK:
        tnd_render_block(render, node, scope, out);
        break;
    case TND_NODE_IF:
        while (node != NULL && node->kind == TND_NODE_IF && render->status == TANDEM_OK) {
            const bool holds = tnd_is_true(tnd_evaluate(render, node->a, scope));
            node = holds ? node->b : node->c;
        }
        if (node != NULL) {
            tnd_render_block(render, node, scope, out);
        }
        break;
    case TND_NODE_FOR:
        value = tnd_evaluate(render, node->b, scope);
        tnd_render_loop(render, node, scope, value, 1, out);
        break;
    case TND_NODE_SET:
        assign(render, scope, node->a, tnd_evaluate(render, node->b, scope));
        break;
    case TND_NODE_SET_BLOCK:
        value = text_of_block(render, node->c, scope);
        assign(render, scope, node->a,
               node->b != NULL ? tnd_apply_filter(render, node->b, scope, value) : value);
        break;
    case TND_NODE_MACRO:
        tnd_scope_set(render, scope, node->name, define(render, node, scope));
        break;
    case TND_NODE_CALL_BLOCK:
        run_call_block(render, node, scope, out);
        break;
    case TND_NODE_FILTER_BLOCK:
        value = text_of_block(render, node->c, scope);
        tnd_build_value(out, tnd_apply_filter(render, node->b, scope, value));
        break;
    case TND_NODE_WITH:
        inner = new_scope(render, scope);
        for (int i = 0; i < node->n_named; i++) {
            tnd_scope_set(render, inner, node->named[i].name,
                          tnd_evaluate(render, node->named[i].value, scope));
        }
        tnd_render_block(render, node->c, inner, out);
        break;
    case TND_NODE_BREAK:
        render->flow = TND_FLOW_BREAK;
        break;
    case TND_NODE_CONTINUE:
        render->flow = TND_FLOW_CONTINUE;
        break;
    default:
        TND_ASSERT(false);
    }
}

void tnd_render_block(struct tnd_render *render, const struct tnd_template_node *block,
                      struct tnd_scope *scope, struct tnd_builder *out)
{
    if (++render->depth > TND_TEMPLATE_MAX_DEPTH) {
        tnd_template_fail(render, TANDEM_E_LIMIT, "blocks and macros are nested too deep");
    }
    for (int i = 0; i < block->n_list && goes_on(render) && tnd_template_step(render, 1); i++) {
        run(render, block->list[i], scope, out);
    }
    render->depth--;
}
