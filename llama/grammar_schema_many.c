/* SPDX-License-Identifier: MIT
 * Schemas of arrays and objects. */
#include <string.h>

#include "llama/grammar_schema.h"
#include "llama/grammar_text.h"

static int32_t comma(struct tnd_schema *s)
{
    return tnd_tree_pair(s->tree, tnd_tree_text(s->tree, ","), tnd_schema_json(s, "json-ws"));
}

/* Encloses an expression in brackets, with blanks after the first one; `within` includes those
 * before the second. */
static int32_t enclose(struct tnd_schema *s, const char *open, int32_t within, const char *close)
{
    const int32_t list = tnd_tree_list(s->tree, TND_SEQUENCE);
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, open));
    tnd_tree_append(s->tree, list, tnd_schema_json(s, "json-ws"));
    tnd_tree_append(s->tree, list, within);
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, close));
    return list;
}

/* ---- arrays ---- */

static int32_t item(struct tnd_schema *s, const struct tnd_json_value *schema)
{
    const int32_t value =
        schema != NULL ? tnd_schema_value(s, schema) : tnd_schema_json(s, "json-value");
    return tnd_tree_pair(s->tree, value, tnd_schema_json(s, "json-ws"));
}

/* `min` to `max` (-1: unbounded) items of the same schema; `is_first`: no item precedes them. */
static int32_t alike(struct tnd_schema *s, const struct tnd_json_value *schema, int64_t min,
                     int64_t max, bool is_first)
{
    struct tnd_tree *tree = s->tree;
    if (max == 0) {
        return tnd_tree_text(tree, "");
    }
    if (!is_first) {
        return tnd_tree_repeat(tree, tnd_tree_pair(tree, comma(s), item(s, schema)), min, max);
    }
    const int32_t all =
        tnd_tree_pair(tree, item(s, schema),
                      alike(s, schema, min > 0 ? min - 1 : 0, max < 0 ? -1 : max - 1, false));
    return min > 0 ? all : tnd_tree_repeat(tree, all, 0, 1);
}

struct items {
    const struct tnd_json_value *listed; /* next of the listed schemas; NULL: none is left */
    const struct tnd_json_value *rest;   /* schema of the other items; NULL: any value */
    bool has_rest;
    int64_t min, max;
};

/* Items from i on. */
static int32_t items_from(struct tnd_schema *s, const struct items *items,
                          const struct tnd_json_value *listed, int64_t i)
{
    struct tnd_tree *tree = s->tree;
    if (listed == NULL || (items->max >= 0 && i >= items->max)) {
        const int64_t min = items->min > i ? items->min - i : 0;
        if (!items->has_rest) {
            return min == 0
                       ? tnd_tree_text(tree, "")
                       : tnd_schema_refuse(s, "minItems", "asks for more items than are listed");
        }
        return alike(s, items->rest, min, items->max < 0 ? -1 : items->max - i, i == 0);
    }
    const int32_t list = tnd_tree_list(tree, TND_SEQUENCE);
    if (i > 0) {
        tnd_tree_append(tree, list, comma(s));
    }
    tnd_tree_append(tree, list, item(s, listed));
    if (i >= TND_SCHEMA_MOST_PARTS) {
        return tnd_schema_refuse(s, "prefixItems", "has too many items");
    }
    tnd_tree_append(tree, list, items_from(s, items, listed->next, i + 1));
    return i < items->min ? list : tnd_tree_repeat(tree, list, 0, 1);
}

int32_t tnd_schema_array(struct tnd_schema *s, const struct tnd_schema_view *view)
{
    const struct tnd_json_value *listed = tnd_schema_find(s, view, "prefixItems");
    const struct tnd_json_value *rest = tnd_schema_find(s, view, "items");
    const struct tnd_json_value *unique = tnd_schema_find(s, view, "uniqueItems");
    const struct tnd_json_value *more = tnd_schema_find(s, view, "additionalItems");
    if (unique != NULL && unique->kind != TND_JSON_FALSE) {
        return tnd_schema_refuse(s, "uniqueItems", "is not supported");
    }
    if (rest != NULL && rest->kind == TND_JSON_ARRAY && listed == NULL) { /* syntax up to 2019-09 */
        listed = rest;
        rest = more;
    }
    struct items items = {.listed = listed != NULL ? listed->first : NULL,
                          .rest = rest,
                          .min = tnd_schema_count(s, view, "minItems", 0),
                          .max = tnd_schema_count(s, view, "maxItems", -1)};
    /* if nothing is said about further items and no more are needed, the listed ones are enough */
    items.has_rest = rest != NULL ? rest->kind != TND_JSON_FALSE
                                  : listed == NULL || items.min > listed->n_children;
    if (items.max >= 0 && items.max < items.min) {
        return tnd_tree_fail(s->tree, TANDEM_E_FORMAT, "schema: 'maxItems' is below 'minItems'");
    }
    return enclose(s, "[", items_from(s, &items, items.listed, 0), "]");
}

/* ---- names of members that are not listed ---- */

enum { MOST_PROPERTIES = 1024, MOST_NAME = 64 };

struct property {
    const struct tnd_json_value *schema; /* a member of `properties` */
    bool is_required;
};

struct object {
    struct property list[MOST_PROPERTIES];
    int n;
    const struct tnd_json_value *others; /* their schema; NULL: any value */
    bool has_others;
};

/* The character at *place of a name, 0 at its end; advances *place. */
static uint32_t char_at(struct tnd_schema *s, const struct tnd_json_value *name, size_t *place)
{
    struct tnd_spot t = {.tree = s->tree,
                         .begin = name->name,
                         .at = name->name + *place,
                         .end = name->name + name->name_n};
    const uint32_t c = t.at < t.end ? tnd_spot_char(&t) : 0;
    *place = (size_t)(t.at - name->name);
    return c;
}

/* What may follow `prefix` bytes, common to some names, so that the result is none of these names.
 * Without escapes, which could spell a listed name in another way. */
static int32_t unlike(struct tnd_schema *s, const struct object *o, const struct property *like,
                      size_t prefix, int depth)
{
    static const struct tnd_char_range bare[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
    struct tnd_char_range taken[TND_SPOT_MOST_RANGES];
    struct tnd_tree *tree = s->tree;
    const int32_t list = tnd_tree_list(tree, TND_CHOICE);
    size_t n_taken = 3;
    bool is_name = false;
    memcpy(taken, bare, sizeof(bare));
    for (int i = 0; i < o->n && tree->status == TANDEM_OK; i++) {
        const struct tnd_json_value *name = o->list[i].schema;
        size_t place = prefix;
        bool is_known = false;
        if (name->name_n < prefix ||
            (prefix > 0 && memcmp(name->name, like->schema->name, prefix) != 0)) {
            continue;
        }
        const uint32_t c = char_at(s, name, &place);
        is_name = is_name || c == 0;
        for (size_t k = 0; k < n_taken; k++) {
            is_known = is_known || (c >= taken[k].low && c <= taken[k].high);
        }
        if (c == 0 || is_known) {
            continue;
        }
        if (n_taken == TND_SPOT_MOST_RANGES || depth >= MOST_NAME) {
            return tnd_schema_refuse(s, "additionalProperties",
                                     "beside so many or so long names is not supported");
        }
        taken[n_taken++] = (struct tnd_char_range){c, c};
        tnd_tree_append(tree, list,
                        tnd_tree_pair(tree,
                                      tnd_tree_bytes(tree, name->name + prefix, place - prefix),
                                      unlike(s, o, &o->list[i], place, depth + 1)));
    }
    const int32_t any = tnd_schema_json(s, "json-plain");
    tnd_tree_append(tree, list,
                    tnd_tree_pair(tree, tnd_tree_chars(tree, taken, n_taken, true),
                                  tnd_tree_repeat(tree, any, 0, -1)));
    if (!is_name) {
        tnd_tree_append(tree, list, tnd_tree_text(tree, ""));
    }
    return list;
}

/* ---- objects ---- */

/* A member: its name, then its value. */
static int32_t value_of(struct tnd_schema *s, int32_t name, const struct tnd_json_value *schema)
{
    const int32_t list = tnd_tree_list(s->tree, TND_SEQUENCE);
    tnd_tree_append(s->tree, list, name);
    tnd_tree_append(s->tree, list, tnd_schema_json(s, "json-ws"));
    tnd_tree_append(s->tree, list, tnd_tree_text(s->tree, ":"));
    tnd_tree_append(s->tree, list, tnd_schema_json(s, "json-ws"));
    tnd_tree_append(s->tree, list, item(s, schema));
    return list;
}

static int32_t other_pair(struct tnd_schema *s, const struct object *o)
{
    int32_t name = tnd_schema_json(s, "json-string");
    if (o->n > 0) {
        name = tnd_tree_list(s->tree, TND_SEQUENCE);
        tnd_tree_append(s->tree, name, tnd_tree_text(s->tree, "\""));
        tnd_tree_append(s->tree, name, unlike(s, o, &o->list[0], 0, 0));
        tnd_tree_append(s->tree, name, tnd_tree_text(s->tree, "\""));
    }
    return value_of(s, name, o->others);
}

static int32_t new_rule(struct tnd_schema *s, int32_t node)
{
    const int32_t rule = tnd_tree_rule(s->tree, "", 0);
    if (s->tree->status == TANDEM_OK) {
        s->tree->rules[rule].node = node;
    }
    return rule;
}

static int32_t call(struct tnd_schema *s, int32_t rule)
{
    return tnd_tree_call(s->tree, rule);
}

/* Members in order, built from the last one. `next`: expects a member from i on; `after`: a member
 * was written, so a comma or the end follows. */
static int32_t members(struct tnd_schema *s, const struct object *o)
{
    struct tnd_tree *tree = s->tree;
    int32_t next = new_rule(s, tnd_tree_list(tree, TND_CHOICE)); /* nothing can follow */
    int32_t after = new_rule(s, tnd_tree_text(tree, ""));
    bool may_be_empty = true;
    if (o->has_others) {
        const int32_t pair = new_rule(s, other_pair(s, o));
        const int32_t more = tnd_tree_pair(tree, comma(s), call(s, pair));
        after = new_rule(s, tnd_tree_repeat(tree, more, 0, -1));
        next = new_rule(s, tnd_tree_pair(tree, call(s, pair), call(s, after)));
    }
    for (int i = o->n - 1; i >= 0 && tree->status == TANDEM_OK; i--) {
        const struct tnd_json_value *schema = o->list[i].schema;
        const struct tnd_json_value name = {
            .kind = TND_JSON_STRING, .text = schema->name, .n = schema->name_n};
        const int32_t pair = value_of(s, tnd_schema_literal(s, &name), schema);
        const int32_t choice = tnd_tree_list(tree, TND_CHOICE);
        tnd_tree_append(tree, choice, tnd_tree_pair(tree, pair, call(s, after)));
        if (!o->list[i].is_required) {
            tnd_tree_append(tree, choice, call(s, next));
        }
        may_be_empty = may_be_empty && !o->list[i].is_required;
        next = new_rule(s, choice);
        after = new_rule(s, tnd_tree_repeat(tree, tnd_tree_pair(tree, comma(s), call(s, next)),
                                            !may_be_empty, 1));
    }
    return may_be_empty ? tnd_tree_repeat(tree, call(s, next), 0, 1) : call(s, next);
}

static bool add_properties(struct tnd_schema *s, struct object *o,
                           const struct tnd_json_value *properties)
{
    const struct tnd_json_value *one = properties != NULL ? properties->first : NULL;
    if (properties != NULL && properties->kind != TND_JSON_OBJECT) {
        (void)tnd_schema_refuse(s, "properties", "must be an object");
        return false;
    }
    for (; one != NULL; one = one->next) {
        int at = 0;
        while (at < o->n && strcmp(o->list[at].schema->name, one->name) != 0) {
            at++;
        }
        if (at < o->n && !tnd_json_equal(o->list[at].schema, one)) {
            (void)tnd_schema_refuse(s, one->name, "differs between schemas that hold together");
            return false;
        }
        if (at == MOST_PROPERTIES) {
            (void)tnd_schema_refuse(s, "properties", "has too many members");
            return false;
        }
        if (at == o->n) {
            o->list[o->n++] = (struct property){.schema = one};
        }
    }
    return true;
}

/* Marks required members; required names that are not listed become members of any value. */
static void require(struct tnd_schema *s, struct object *o, const struct tnd_json_value *required)
{
    const struct tnd_json_value *one = required != NULL ? required->first : NULL;
    if (required != NULL && required->kind != TND_JSON_ARRAY) {
        (void)tnd_schema_refuse(s, "required", "must be an array");
    }
    for (; one != NULL && s->tree->status == TANDEM_OK; one = one->next) {
        int at = 0;
        while (at < o->n && one->kind == TND_JSON_STRING &&
               strcmp(o->list[at].schema->name, one->text) != 0) {
            at++;
        }
        if (at == o->n) {
            (void)tnd_schema_refuse(s, "required",
                                    "names a member that 'properties' does not list");
            return;
        }
        o->list[at].is_required = true;
    }
}

/* An object without listed members: `min` to `max` pairs. */
static int32_t dictionary(struct tnd_schema *s, const struct object *o, int64_t min, int64_t max)
{
    struct tnd_tree *tree = s->tree;
    const int32_t pair = new_rule(s, other_pair(s, o));
    if (max == 0) {
        return tnd_tree_text(tree, "");
    }
    const int32_t more = tnd_tree_repeat(tree, tnd_tree_pair(tree, comma(s), call(s, pair)),
                                         min > 0 ? min - 1 : 0, max < 0 ? -1 : max - 1);
    const int32_t all = tnd_tree_pair(tree, call(s, pair), more);
    return min > 0 ? all : tnd_tree_repeat(tree, all, 0, 1);
}

int32_t tnd_schema_object(struct tnd_schema *s, const struct tnd_schema_view *view)
{
    struct object o = {.n = 0};
    const struct tnd_json_value *others = tnd_schema_find(s, view, "additionalProperties");
    const struct tnd_json_value *unevaluated = tnd_schema_find(s, view, "unevaluatedProperties");
    const int64_t min = tnd_schema_count(s, view, "minProperties", 0);
    const int64_t max = tnd_schema_count(s, view, "maxProperties", -1);
    for (int i = 0; i < view->n; i++) {
        if (!add_properties(s, &o, tnd_json_member(view->parts[i], "properties"))) {
            return 0;
        }
    }
    for (int i = 0; i < view->n; i++) {
        require(s, &o, tnd_json_member(view->parts[i], "required"));
    }
    others = others != NULL ? others : unevaluated;
    o.others = others != NULL && others->kind == TND_JSON_OBJECT ? others : NULL;
    o.has_others = others != NULL ? others->kind != TND_JSON_FALSE : o.n == 0;
    if (o.n > 0 && (min > 0 || max >= 0)) {
        return tnd_schema_refuse(s, "minProperties",
                                 "and 'maxProperties' beside 'properties' are "
                                 "not supported");
    }
    if (o.n == 0 && (min > 0 || max >= 0) && o.has_others) {
        return enclose(s, "{", dictionary(s, &o, min, max), "}");
    }
    return enclose(s, "{", members(s, &o), "}");
}
