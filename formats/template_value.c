/* SPDX-License-Identifier: MIT
 * Values of the template language, and text that knows who wrote each byte. Strings are immutable;
 * lists and dicts grow only while they are made (templates cannot change them, as in the sandbox of
 * transformers). */
#include "formats/template.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "base/tnd_assert.h"
#include "formats/unicode.h"

/* ---- failures, steps, memory ---- */

struct tnd_value tnd_template_fail(struct tnd_render *render, enum tandem_status status,
                                   const char *format, ...)
{
    if (render->status == TANDEM_OK) {
        char text[200];
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        render->status = tnd_error_set(render->error, status, render->name, render->line, 0,
                                       "%s: line %d: %s", render->name, render->line, text);
    }
    return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
}

bool tnd_template_step(struct tnd_render *render, size_t steps)
{
    if (render->status != TANDEM_OK) {
        return false;
    }
    if (steps > (size_t)TND_TEMPLATE_MAX_STEPS ||
        (render->steps += (int64_t)steps) > TND_TEMPLATE_MAX_STEPS) {
        tnd_template_fail(render, TANDEM_E_LIMIT, "the template takes more than %d steps",
                          (int)TND_TEMPLATE_MAX_STEPS);
        return false;
    }
    return true;
}

void *tnd_template_alloc(struct tnd_render *render, size_t n, size_t size)
{
    size_t bytes;
    void *memory = NULL;
    if (!tnd_template_step(render, 0)) {
        return NULL;
    }
    if (tnd_mul_size(n > 0 ? n : 1, size, &bytes)) {
        memory = tnd_arena_alloc(render->arena, bytes, 16);
    }
    if (memory == NULL) {
        tnd_template_fail(render, TANDEM_E_MEMORY, "no memory, or more than %d MiB of it",
                          TND_TEMPLATE_MAX_MEMORY >> 20);
    }
    return memory;
}

/* ---- making values ---- */

struct tnd_value tnd_none(void)
{
    return (struct tnd_value){.kind = TND_KIND_NONE};
}

struct tnd_value tnd_bool(bool truth)
{
    return (struct tnd_value){.kind = TND_KIND_BOOL, .as.truth = truth};
}

struct tnd_value tnd_int(int64_t integer)
{
    return (struct tnd_value){.kind = TND_KIND_INT, .as.integer = integer};
}

struct tnd_value tnd_number(double number)
{
    return (struct tnd_value){.kind = TND_KIND_FLOAT, .as.number = number};
}

static struct tnd_value of_string(struct tnd_render *render, const char *bytes,
                                  const unsigned char *origin, size_t n, bool is_user)
{
    struct tnd_string *string = tnd_template_alloc(render, 1, sizeof(*string));
    if (string == NULL) {
        return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
    }
    *string = (struct tnd_string){bytes, origin, n, is_user, false};
    return (struct tnd_value){.kind = TND_KIND_STRING, .as.string = string};
}

struct tnd_value tnd_text_value(struct tnd_render *render, const char *bytes, size_t n,
                                bool is_user)
{
    char *copy = tnd_template_alloc(render, n, 1);
    if (copy == NULL) {
        return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
    }
    if (n > 0) {
        memcpy(copy, bytes, n);
    }
    return of_string(render, copy, NULL, n, is_user);
}

struct tnd_value tnd_undefined(struct tnd_render *render, const char *name, size_t n)
{
    struct tnd_value value = tnd_text_value(render, name, n, false);
    value.kind = TND_KIND_UNDEFINED;
    return value;
}

struct tnd_value tnd_markup(struct tnd_render *render, const struct tnd_string *string)
{
    struct tnd_string *markup = tnd_template_alloc(render, 1, sizeof(*markup));
    if (markup == NULL) {
        return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
    }
    *markup = *string;
    markup->is_markup = true;
    return (struct tnd_value){.kind = TND_KIND_STRING, .as.string = markup};
}

struct tnd_value tnd_substring(struct tnd_render *render, const struct tnd_string *string,
                               size_t begin, size_t n)
{
    TND_ASSERT(begin <= string->n && n <= string->n - begin);
    const unsigned char *origin = string->origin != NULL ? string->origin + begin : NULL;
    struct tnd_value part = of_string(render, string->bytes + begin, origin, n, string->is_user);
    if (string->is_markup && part.kind == TND_KIND_STRING) {
        return tnd_markup(render, part.as.string);
    }
    return part;
}

struct tnd_value tnd_list_value(struct tnd_render *render, enum tnd_kind kind, size_t capacity)
{
    struct tnd_list *list = tnd_template_alloc(render, 1, sizeof(*list));
    if (list == NULL) {
        return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
    }
    list->items = tnd_template_alloc(render, capacity, sizeof(list->items[0]));
    list->capacity = list->items != NULL ? capacity : 0;
    return (struct tnd_value){.kind = kind, .as.list = list};
}

/* Grows an array of `n` items of `size` bytes by at least one. */
static bool grow(struct tnd_render *render, void **items, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity) {
        return true;
    }
    size_t wanted = *capacity > 0 ? 2 * *capacity : 8;
    void *grown = tnd_template_alloc(render, wanted, size);
    if (grown == NULL) {
        return false;
    }
    if (n > 0) {
        memcpy(grown, *items, n * size);
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

void tnd_list_add(struct tnd_render *render, struct tnd_list *list, struct tnd_value value)
{
    void *items = list != NULL ? list->items : NULL;
    if (list != NULL && tnd_template_step(render, 1) &&
        grow(render, &items, list->n, &list->capacity, sizeof(list->items[0]))) {
        list->items = items;
        list->items[list->n++] = value;
    }
}

struct tnd_value tnd_dict_value(struct tnd_render *render)
{
    struct tnd_dict *dict = tnd_template_alloc(render, 1, sizeof(*dict));
    if (dict == NULL) {
        return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
    }
    return (struct tnd_value){.kind = TND_KIND_DICT, .as.dict = dict};
}

const struct tnd_value *tnd_dict_find(struct tnd_render *render, const struct tnd_dict *dict,
                                      const char *name, size_t n)
{
    size_t i = 0;
    const struct tnd_value *found = NULL;
    for (; i < dict->n && found == NULL; i++) {
        const struct tnd_value *key = &dict->members[i].key;
        if (key->kind == TND_KIND_STRING && key->as.string->n == n &&
            memcmp(key->as.string->bytes, name, n) == 0) {
            found = &dict->members[i].value;
        }
    }
    (void)tnd_template_step(render, i / 8);
    return found;
}

static struct tnd_member *find_member(struct tnd_render *render, const struct tnd_dict *dict,
                                      struct tnd_value key)
{
    for (size_t i = 0; i < dict->n && tnd_template_step(render, 1); i++) {
        if (tnd_equal(render, dict->members[i].key, key)) {
            return &dict->members[i];
        }
    }
    return NULL;
}

const struct tnd_value *tnd_dict_get(struct tnd_render *render, const struct tnd_dict *dict,
                                     struct tnd_value key)
{
    if (key.kind == TND_KIND_STRING) {
        return tnd_dict_find(render, dict, key.as.string->bytes, key.as.string->n);
    }
    const struct tnd_member *member = find_member(render, dict, key);
    return member != NULL ? &member->value : NULL;
}

void tnd_dict_set(struct tnd_render *render, struct tnd_dict *dict, struct tnd_value key,
                  struct tnd_value value)
{
    if (key.kind > TND_KIND_STRING && key.kind != TND_KIND_TUPLE) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "a %s cannot be the key of a dict",
                          tnd_kind_name(key));
        return;
    }
    struct tnd_member *member = find_member(render, dict, key);
    void *members = dict->members;
    if (member != NULL) {
        member->value = value;
    } else if (tnd_template_step(render, 1) &&
               grow(render, &members, dict->n, &dict->capacity, sizeof(dict->members[0]))) {
        dict->members = members;
        dict->members[dict->n++] = (struct tnd_member){key, value};
    }
}

/* ---- comparing ---- */

bool tnd_is_string(struct tnd_value value, const char *text)
{
    const size_t n = strlen(text);
    return value.kind == TND_KIND_STRING && value.as.string->n == n &&
           memcmp(value.as.string->bytes, text, n) == 0;
}

bool tnd_is_number(struct tnd_value value)
{
    return value.kind == TND_KIND_BOOL || value.kind == TND_KIND_INT ||
           value.kind == TND_KIND_FLOAT;
}

double tnd_as_number(struct tnd_value value)
{
    return value.kind == TND_KIND_FLOAT ? value.as.number
           : value.kind == TND_KIND_INT ? (double)value.as.integer
                                        : (double)value.as.truth;
}

static int64_t as_integer(struct tnd_value value)
{
    return value.kind == TND_KIND_INT ? value.as.integer : (int64_t)value.as.truth;
}

bool tnd_length_of(struct tnd_value value, size_t *out)
{
    switch (value.kind) {
    case TND_KIND_STRING:
        *out = tnd_characters(value.as.string);
        return true;
    case TND_KIND_LIST:
    case TND_KIND_TUPLE:
        *out = value.as.list->n;
        return true;
    case TND_KIND_DICT:
        *out = value.as.dict->n;
        return true;
    case TND_KIND_UNDEFINED:
        *out = 0;
        return true;
    case TND_KIND_LOOP:
        *out = value.as.loop->n;
        return true;
    default:
        return false;
    }
}

bool tnd_is_true(struct tnd_value value)
{
    size_t n;
    if (value.kind == TND_KIND_NONE) {
        return false;
    }
    if (tnd_is_number(value)) {
        return tnd_as_number(value) != 0;
    }
    return tnd_length_of(value, &n) ? n > 0 : true;
}

const char *tnd_kind_name(struct tnd_value value)
{
    static const char *const names[] = {
        [TND_KIND_UNDEFINED] = "undefined", [TND_KIND_NONE] = "None",
        [TND_KIND_BOOL] = "bool",           [TND_KIND_INT] = "int",
        [TND_KIND_FLOAT] = "float",         [TND_KIND_STRING] = "str",
        [TND_KIND_LIST] = "list",           [TND_KIND_TUPLE] = "tuple",
        [TND_KIND_GENERATOR] = "generator", [TND_KIND_DICT] = "dict",
        [TND_KIND_NAMESPACE] = "namespace", [TND_KIND_MACRO] = "macro",
        [TND_KIND_FUNCTION] = "function",   [TND_KIND_LOOP] = "loop"};
    return names[value.kind];
}

static int order_strings(const struct tnd_string *a, const struct tnd_string *b)
{
    const size_t n = a->n < b->n ? a->n : b->n;
    const int order = n > 0 ? memcmp(a->bytes, b->bytes, n) : 0;
    return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

static bool equal_dicts(struct tnd_render *render, const struct tnd_dict *a,
                        const struct tnd_dict *b)
{
    bool is_equal = a->n == b->n;
    for (size_t i = 0; i < a->n && is_equal; i++) {
        const struct tnd_value *other = tnd_dict_get(render, b, a->members[i].key);
        is_equal = other != NULL && tnd_equal(render, a->members[i].value, *other);
    }
    return is_equal;
}

static bool equal_lists(struct tnd_render *render, const struct tnd_list *a,
                        const struct tnd_list *b)
{
    bool is_equal = a->n == b->n;
    for (size_t i = 0; i < a->n && is_equal; i++) {
        is_equal = tnd_equal(render, a->items[i], b->items[i]);
    }
    return is_equal;
}

bool tnd_equal(struct tnd_render *render, struct tnd_value a, struct tnd_value b)
{
    if (!tnd_template_step(render, 1)) {
        return false;
    }
    if (tnd_is_number(a) && tnd_is_number(b)) {
        return a.kind != TND_KIND_FLOAT && b.kind != TND_KIND_FLOAT
                   ? as_integer(a) == as_integer(b)
                   : tnd_as_number(a) == tnd_as_number(b);
    }
    if (a.kind != b.kind) {
        return false;
    }
    bool is_equal;
    render->depth++; /* values are nested by what made them: JSON and expressions are bounded */
    switch (a.kind) {
    case TND_KIND_STRING:
        is_equal = order_strings(a.as.string, b.as.string) == 0;
        break;
    case TND_KIND_LIST:
    case TND_KIND_TUPLE:
        is_equal =
            render->depth < 4 * TND_TEMPLATE_MAX_DEPTH && equal_lists(render, a.as.list, b.as.list);
        break;
    case TND_KIND_DICT:
        is_equal =
            render->depth < 4 * TND_TEMPLATE_MAX_DEPTH && equal_dicts(render, a.as.dict, b.as.dict);
        break;
    case TND_KIND_UNDEFINED:
    case TND_KIND_NONE:
        is_equal = true;
        break;
    default:
        is_equal = a.as.dict == b.as.dict;
    }
    render->depth--;
    return is_equal;
}

int tnd_order(struct tnd_render *render, struct tnd_value a, struct tnd_value b)
{
    if (!tnd_template_step(render, 1)) {
        return 0;
    }
    if (tnd_is_number(a) && tnd_is_number(b)) {
        const double x = tnd_as_number(a);
        const double y = tnd_as_number(b);
        return (x > y) - (x < y);
    }
    if (a.kind == TND_KIND_STRING && b.kind == TND_KIND_STRING) {
        return order_strings(a.as.string, b.as.string);
    }
    if (a.kind == b.kind && (a.kind == TND_KIND_LIST || a.kind == TND_KIND_TUPLE)) {
        const struct tnd_list *x = a.as.list;
        const struct tnd_list *y = b.as.list;
        for (size_t i = 0; i < x->n && i < y->n; i++) {
            if (!tnd_equal(render, x->items[i], y->items[i])) {
                return tnd_order(render, x->items[i], y->items[i]);
            }
        }
        return (x->n > y->n) - (x->n < y->n);
    }
    tnd_template_fail(render, TANDEM_E_FORMAT, "%s and %s have no order", tnd_kind_name(a),
                      tnd_kind_name(b));
    return 0;
}

/* ---- characters ---- */

static bool is_ascii(const struct tnd_string *string)
{
    unsigned char all = 0;
    for (size_t i = 0; i < string->n; i++) {
        all |= (unsigned char)string->bytes[i];
    }
    return all < 0x80;
}

size_t tnd_characters(const struct tnd_string *string)
{
    if (is_ascii(string)) {
        return string->n;
    }
    size_t n = 0;
    for (size_t at = 0; at < string->n; n++) {
        at += tnd_utf8_loose_length(string->bytes + at, string->n - at);
    }
    return n;
}

size_t tnd_character_offset(const struct tnd_string *string, size_t i)
{
    if (is_ascii(string)) {
        return i < string->n ? i : string->n;
    }
    size_t at = 0;
    for (; i > 0 && at < string->n; i--) {
        at += tnd_utf8_loose_length(string->bytes + at, string->n - at);
    }
    return at;
}

struct tnd_list *tnd_items_of(struct tnd_render *render, struct tnd_value value)
{
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    if (list.kind != TND_KIND_LIST) {
        return NULL;
    }
    switch (value.kind) {
    case TND_KIND_LIST:
    case TND_KIND_TUPLE:
    case TND_KIND_GENERATOR:
        return value.as.list;
    case TND_KIND_DICT:
        for (size_t i = 0; i < value.as.dict->n; i++) {
            tnd_list_add(render, list.as.list, value.as.dict->members[i].key);
        }
        break;
    case TND_KIND_STRING:
        for (size_t at = 0, n; at < value.as.string->n && tnd_template_step(render, 1); at += n) {
            n = tnd_utf8_loose_length(value.as.string->bytes + at, value.as.string->n - at);
            tnd_list_add(render, list.as.list, tnd_substring(render, value.as.string, at, n));
        }
        break;
    case TND_KIND_UNDEFINED:
        break;
    default:
        tnd_template_fail(render, TANDEM_E_FORMAT, "a %s has no items to go through",
                          tnd_kind_name(value));
    }
    return list.as.list;
}

bool tnd_contains(struct tnd_render *render, struct tnd_value container, struct tnd_value item)
{
    if (container.kind == TND_KIND_STRING) {
        if (item.kind != TND_KIND_STRING) {
            tnd_template_fail(render, TANDEM_E_FORMAT, "'in' a text looks for a text, not for a %s",
                              tnd_kind_name(item));
            return false;
        }
        (void)tnd_template_step(render, container.as.string->n / 64);
        return item.as.string->n == 0 || memmem(container.as.string->bytes, container.as.string->n,
                                                item.as.string->bytes, item.as.string->n) != NULL;
    }
    if (container.kind == TND_KIND_DICT) {
        return tnd_dict_get(render, container.as.dict, item) != NULL;
    }
    const struct tnd_list *items = tnd_items_of(render, container);
    bool found = false;
    for (size_t i = 0; items != NULL && i < items->n && !found; i++) {
        found = tnd_equal(render, items->items[i], item);
    }
    return found;
}
