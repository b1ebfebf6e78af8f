/* SPDX-License-Identifier: MIT
 * Filters of lists. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "formats/template_filters.h"

/* The items, never NULL. */
static const struct tnd_list *items(struct tnd_render *render, struct tnd_value self)
{
    static const struct tnd_list none = {NULL, 0, 0};
    const struct tnd_list *list = tnd_items_of(render, self);
    return list != NULL && render->status == TANDEM_OK ? list : &none;
}

/* None of a value that is false, as map and select of Jinja have it. */
static const struct tnd_list *items_if_true(struct tnd_render *render, struct tnd_value self)
{
    return items(render, tnd_is_true(self) ? self : tnd_list_value(render, TND_KIND_LIST, 0));
}

/* item.a.b or item[0], by the path of an argument `attribute`. */
static struct tnd_value follow(struct tnd_render *render, struct tnd_value item,
                               const struct tnd_value *path)
{
    if (path == NULL || path->kind == TND_KIND_NONE) {
        return item;
    }
    if (path->kind != TND_KIND_STRING) {
        return tnd_item_of(render, item, *path);
    }
    const struct tnd_string *text = path->as.string;
    for (size_t at = 0; at <= text->n && render->status == TANDEM_OK;) {
        const char *dot = memchr(text->bytes + at, '.', text->n - at);
        const size_t n = (dot != NULL ? (size_t)(dot - text->bytes) : text->n) - at;
        int64_t index;
        const struct tnd_value key = tnd_text_to_i64(text->bytes + at, n, &index)
                                         ? tnd_int(index)
                                         : tnd_substring(render, text, at, n);
        item = tnd_item_of(render, item, key);
        at += n + 1;
    }
    return item;
}

TND_BUILTIN(f_list)
{
    const struct tnd_list *from = items(render, self);
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, from->n);
    for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, list.as.list, from->items[i]);
    }
    return list;
}

/* The first one, or (`kind`) the last. */
TND_BUILTIN(f_end)
{
    const struct tnd_list *list = items(render, self);
    const char *name = kind != 0 ? "last" : "first";
    return list->n > 0 ? list->items[kind != 0 ? list->n - 1 : 0]
                       : tnd_undefined(render, name, strlen(name));
}

TND_BUILTIN(f_reverse)
{
    const struct tnd_list *from = items(render, self);
    struct tnd_builder text = {.render = render};
    struct tnd_value list = tnd_list_value(render, TND_KIND_GENERATOR, from->n);
    for (size_t i = from->n; i-- > 0 && render->status == TANDEM_OK;) {
        if (self.kind == TND_KIND_STRING) {
            tnd_build_value(&text, from->items[i]);
        } else {
            tnd_list_add(render, list.as.list, from->items[i]);
        }
    }
    return self.kind == TND_KIND_STRING ? tnd_built(&text) : list;
}

TND_BUILTIN(f_join)
{
    const struct tnd_string *between = tnd_argument_string(render, arguments, 0, "d");
    const struct tnd_value *path = tnd_argument(render, arguments, 1, "attribute");
    const struct tnd_list *list = items(render, self);
    struct tnd_builder text = {.render = render};
    for (size_t i = 0; i < list->n && render->status == TANDEM_OK; i++) {
        if (i > 0 && between != NULL) {
            tnd_build_string(&text, between);
        }
        tnd_build_value(&text, follow(render, list->items[i], path));
    }
    return tnd_built(&text);
}

/* ---- map, select, reject ---- */

static struct tnd_arguments behind(const struct tnd_arguments *arguments, int n)
{
    n = n < arguments->n ? n : arguments->n;
    return (struct tnd_arguments){arguments->items + n, arguments->n - n, arguments->named,
                                  arguments->n_named};
}

static bool name_of(struct tnd_render *render, const struct tnd_value *value, char out[64])
{
    memset(out, 0, 64);
    if (value == NULL || value->kind != TND_KIND_STRING || value->as.string->n > 63) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "the name of a filter or test is expected");
        return false;
    }
    memcpy(out, value->as.string->bytes, value->as.string->n);
    return true;
}

TND_BUILTIN(f_map)
{
    const struct tnd_value *path = tnd_argument(render, arguments, -1, "attribute");
    const struct tnd_value *or_else = tnd_argument(render, arguments, -1, "default");
    const struct tnd_list *from = items_if_true(render, self);
    const struct tnd_arguments rest = behind(arguments, 1);
    struct tnd_value list = tnd_list_value(render, TND_KIND_GENERATOR, from->n);
    const struct tnd_builtin *filter = NULL;
    char name[64];
    if (path == NULL) {
        if (!name_of(render, tnd_argument(render, arguments, 0, NULL), name)) {
            return list;
        }
        filter = tnd_find_filter(name);
        if (filter == NULL) {
            return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD, "there is no filter '%s'",
                                     name);
        }
    }
    for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
        struct tnd_value item = filter != NULL
                                    ? tnd_call_builtin(render, filter, from->items[i], &rest)
                                    : follow(render, from->items[i], path);
        item = item.kind == TND_KIND_UNDEFINED && or_else != NULL ? *or_else : item;
        tnd_list_add(render, list.as.list, item);
    }
    return list;
}

enum { WANTED = 1, HAS_PATH = 2 };

/* select and reject, selectattr and rejectattr. */
TND_BUILTIN(f_choose)
{
    const bool has_path = (kind & HAS_PATH) != 0;
    const bool wanted = (kind & WANTED) != 0;
    const struct tnd_value *path = has_path ? tnd_argument(render, arguments, 0, NULL) : NULL;
    const struct tnd_value *named = tnd_argument(render, arguments, has_path, NULL);
    const struct tnd_arguments rest = behind(arguments, 1 + has_path);
    const struct tnd_list *from = items_if_true(render, self);
    struct tnd_value list = tnd_list_value(render, TND_KIND_GENERATOR, 0);
    const struct tnd_builtin *test = NULL;
    char name[64];
    if (has_path && path == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "the name of a member is expected");
    }
    if (named != NULL) {
        if (!name_of(render, named, name)) {
            return list;
        }
        test = tnd_find_test(name);
        if (test == NULL) {
            return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD, "there is no test '%s'",
                                     name);
        }
    }
    for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
        const struct tnd_value item = follow(render, from->items[i], path);
        const struct tnd_value answer =
            test != NULL ? tnd_call_builtin(render, test, item, &rest) : item;
        if (render->status == TANDEM_OK && tnd_is_true(answer) == wanted) {
            tnd_list_add(render, list.as.list, from->items[i]);
        }
    }
    return list;
}

/* ---- order ---- */

static struct tnd_value without_case(struct tnd_render *render, struct tnd_value key,
                                     bool case_sensitive)
{
    return !case_sensitive && key.kind == TND_KIND_STRING
               ? tnd_change_case(render, key.as.string, TND_CASE_LOWER)
               : key;
}

/* Sorts `n` keys with their values, stably: by merging, so that no list of strangers takes long. */
static void sort_pairs(struct tnd_render *render, struct tnd_member *pairs, size_t n, bool reverse)
{
    struct tnd_member *other = tnd_template_alloc(render, n, sizeof(other[0]));
    for (size_t width = 1; other != NULL && width < n && render->status == TANDEM_OK; width *= 2) {
        for (size_t begin = 0; begin < n && render->status == TANDEM_OK; begin += 2 * width) {
            const size_t middle = begin + width < n ? begin + width : n;
            const size_t end = begin + 2 * width < n ? begin + 2 * width : n;
            size_t a = begin;
            size_t b = middle;
            for (size_t i = begin; i < end; i++) {
                bool takes_a = b >= end;
                if (a < middle && b < end) {
                    const int order = tnd_order(render, pairs[a].key, pairs[b].key);
                    takes_a = reverse ? order >= 0 : order <= 0;
                }
                other[i] = takes_a ? pairs[a++] : pairs[b++];
            }
        }
        memcpy(pairs, other, n * sizeof(pairs[0]));
    }
}

static struct tnd_member *keyed(struct tnd_render *render, const struct tnd_list *from,
                                const struct tnd_value *path, bool case_sensitive)
{
    struct tnd_member *pairs = tnd_template_alloc(render, from->n, sizeof(pairs[0]));
    for (size_t i = 0; pairs != NULL && i < from->n && render->status == TANDEM_OK; i++) {
        pairs[i].value = from->items[i];
        pairs[i].key = without_case(render, follow(render, from->items[i], path), case_sensitive);
    }
    return render->status == TANDEM_OK ? pairs : NULL;
}

static struct tnd_value sorted(struct tnd_render *render, struct tnd_value self,
                               const struct tnd_value *path, bool case_sensitive, bool reverse)
{
    const struct tnd_list *from = items(render, self);
    struct tnd_member *pairs = keyed(render, from, path, case_sensitive);
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, from->n);
    if (pairs != NULL) {
        sort_pairs(render, pairs, from->n, reverse);
    }
    for (size_t i = 0; pairs != NULL && i < from->n && render->status == TANDEM_OK; i++) {
        tnd_list_add(render, list.as.list, pairs[i].value);
    }
    return list;
}

TND_BUILTIN(f_sort)
{
    const bool reverse = tnd_argument_true(render, arguments, 0, "reverse", false);
    const bool case_sensitive = tnd_argument_true(render, arguments, 1, "case_sensitive", false);
    const struct tnd_value *path = tnd_argument(render, arguments, 2, "attribute");
    return sorted(render, self, path, case_sensitive, reverse);
}

TND_BUILTIN(f_dictsort)
{
    const bool case_sensitive = tnd_argument_true(render, arguments, 0, "case_sensitive", false);
    const struct tnd_value *by = tnd_argument(render, arguments, 1, "by");
    const bool reverse = tnd_argument_true(render, arguments, 2, "reverse", false);
    if (self.kind != TND_KIND_DICT) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "dictsort: a dict is expected, not %s",
                                 tnd_kind_name(self));
    }
    const struct tnd_arguments none = {0};
    struct tnd_value pairs_of =
        tnd_call_builtin(render, tnd_find_method(self, "items"), self, &none);
    const struct tnd_value index = tnd_int(by != NULL && tnd_is_string(*by, "value"));
    return sorted(render, pairs_of, &index, case_sensitive, reverse);
}

TND_BUILTIN(f_unique)
{
    const bool case_sensitive = tnd_argument_true(render, arguments, 0, "case_sensitive", false);
    const struct tnd_value *path = tnd_argument(render, arguments, 1, "attribute");
    const struct tnd_list *from = items(render, self);
    struct tnd_value seen = tnd_list_value(render, TND_KIND_LIST, 0);
    struct tnd_value list = tnd_list_value(render, TND_KIND_GENERATOR, 0);
    for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
        const struct tnd_value key =
            without_case(render, follow(render, from->items[i], path), case_sensitive);
        if (!tnd_contains(render, seen, key)) {
            tnd_list_add(render, seen.as.list, key);
            tnd_list_add(render, list.as.list, from->items[i]);
        }
    }
    return list;
}

/* The largest, or the smallest (`kind` -1). */
TND_BUILTIN(f_extreme)
{
    const bool case_sensitive = tnd_argument_true(render, arguments, 0, "case_sensitive", false);
    const struct tnd_value *path = tnd_argument(render, arguments, 1, "attribute");
    const struct tnd_list *from = items(render, self);
    const struct tnd_member *pairs = keyed(render, from, path, case_sensitive);
    size_t best = 0;
    for (size_t i = 1; pairs != NULL && i < from->n && render->status == TANDEM_OK; i++) {
        best = kind * tnd_order(render, pairs[i].key, pairs[best].key) > 0 ? i : best;
    }
    return pairs != NULL && from->n > 0 ? from->items[best] : tnd_undefined(render, "item", 4);
}

TND_BUILTIN(f_sum)
{
    const struct tnd_value *path = tnd_argument(render, arguments, 0, "attribute");
    const struct tnd_value *start = tnd_argument(render, arguments, 1, "start");
    const struct tnd_list *from = items(render, self);
    struct tnd_value sum = start != NULL ? *start : tnd_int(0);
    for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
        const struct tnd_value item = follow(render, from->items[i], path);
        int64_t integer;
        if (sum.kind == TND_KIND_INT && item.kind == TND_KIND_INT &&
            !__builtin_add_overflow(sum.as.integer, item.as.integer, &integer)) {
            sum = tnd_int(integer);
        } else if (tnd_is_number(sum) && tnd_is_number(item)) {
            sum = tnd_number(tnd_as_number(sum) + tnd_as_number(item));
        } else {
            return tnd_template_fail(render, TANDEM_E_FORMAT, "sum: %s is no number",
                                     tnd_kind_name(item));
        }
    }
    return sum;
}

/* ---- groups ---- */

TND_BUILTIN(f_groupby)
{
    const struct tnd_value *path = tnd_argument(render, arguments, 0, "attribute");
    const struct tnd_list *from = items(render, self);
    struct tnd_member *pairs = keyed(render, from, path, true);
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    struct tnd_value group = tnd_none();
    if (pairs != NULL) {
        sort_pairs(render, pairs, from->n, false);
    }
    for (size_t i = 0; pairs != NULL && i < from->n && render->status == TANDEM_OK; i++) {
        if (i == 0 || !tnd_equal(render, pairs[i].key, pairs[i - 1].key)) {
            struct tnd_value pair = tnd_list_value(render, TND_KIND_TUPLE, 2);
            group = tnd_list_value(render, TND_KIND_LIST, 0);
            if (render->status == TANDEM_OK) {
                tnd_list_add(render, pair.as.list, pairs[i].key);
                tnd_list_add(render, pair.as.list, group);
                tnd_list_add(render, list.as.list, pair);
            }
        }
        if (render->status == TANDEM_OK) {
            tnd_list_add(render, group.as.list, pairs[i].value);
        }
    }
    return list;
}

TND_BUILTIN(f_batch)
{
    const int64_t size = tnd_argument_int(render, arguments, 0, "linecount", 0);
    const struct tnd_value *fill = tnd_argument(render, arguments, 1, "fill_with");
    const struct tnd_list *from = items(render, self);
    struct tnd_value list = tnd_list_value(render, TND_KIND_GENERATOR, 0);
    struct tnd_value row = tnd_none();
    if (size < 1) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "batch: a number above 0 is expected");
    }
    for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
        if (i % (size_t)size == 0) {
            row = tnd_list_value(render, TND_KIND_LIST, 0);
            tnd_list_add(render, list.as.list, row);
        }
        if (render->status == TANDEM_OK) {
            tnd_list_add(render, row.as.list, from->items[i]);
        }
    }
    while (fill != NULL && row.kind == TND_KIND_LIST && render->status == TANDEM_OK &&
           row.as.list->n < (size_t)size) {
        tnd_list_add(render, row.as.list, *fill);
    }
    return list;
}

const struct tnd_builtin *tnd_find_list_filter(const char *name)
{
    static const struct tnd_builtin filters[] = {
        {"list", f_list, 0},
        {"first", f_end, 0},
        {"last", f_end, 1},
        {"reverse", f_reverse, 0},
        {"join", f_join, 0},
        {"map", f_map, 0},
        {"select", f_choose, WANTED},
        {"reject", f_choose, 0},
        {"selectattr", f_choose, WANTED | HAS_PATH},
        {"rejectattr", f_choose, HAS_PATH},
        {"sort", f_sort, 0},
        {"dictsort", f_dictsort, 0},
        {"unique", f_unique, 0},
        {"min", f_extreme, -1},
        {"max", f_extreme, 1},
        {"sum", f_sum, 0},
        {"groupby", f_groupby, 0},
        {"batch", f_batch, 0},
        {NULL, NULL, 0},
    };
    return tnd_find_builtin(filters, name);
}
