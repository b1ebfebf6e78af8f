/* SPDX-License-Identifier: MIT
 * How values of the template language become text: as {{ }} prints them, and as Python's repr(). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tnd_assert.h"
#include "formats/template.h"
#include "formats/unicode.h"

/* ---- growing text ---- */

static bool reserve(struct tnd_builder *builder, size_t n)
{
    struct tnd_render *render = builder->render;
    if (!tnd_template_step(render, 1 + n / 1024)) {
        return false;
    }
    if (n > (size_t)TND_TEMPLATE_MAX_OUTPUT - builder->n) {
        tnd_template_fail(render, TANDEM_E_LIMIT, "a text becomes longer than %d MiB",
                          TND_TEMPLATE_MAX_OUTPUT >> 20);
        return false;
    }
    if (builder->n + n <= builder->capacity) {
        return true;
    }
    size_t capacity = builder->capacity > 0 ? builder->capacity : 64;
    while (capacity < builder->n + n) {
        capacity *= 2;
    }
    char *bytes = tnd_template_alloc(render, capacity, 1);
    unsigned char *origin = tnd_template_alloc(render, capacity, 1);
    if (bytes == NULL || origin == NULL) {
        return false;
    }
    if (builder->n > 0) {
        memcpy(bytes, builder->bytes, builder->n);
        memcpy(origin, builder->origin, builder->n);
    }
    builder->bytes = bytes;
    builder->origin = origin;
    builder->capacity = capacity;
    return true;
}

void tnd_build(struct tnd_builder *builder, const char *bytes, size_t n, bool is_user)
{
    if (n > 0 && reserve(builder, n)) {
        memcpy(builder->bytes + builder->n, bytes, n);
        memset(builder->origin + builder->n, is_user, n);
        builder->n += n;
    }
}

void tnd_build_string(struct tnd_builder *builder, const struct tnd_string *string)
{
    const size_t begin = builder->n;
    tnd_build(builder, string->bytes, string->n, string->is_user);
    if (string->origin != NULL && builder->n > begin) {
        memcpy(builder->origin + begin, string->origin, string->n);
    }
}

struct tnd_value tnd_built(struct tnd_builder *builder)
{
    struct tnd_string *string = tnd_template_alloc(builder->render, 1, sizeof(*string));
    if (string == NULL) {
        return (struct tnd_value){.kind = TND_KIND_UNDEFINED};
    }
    *string = (struct tnd_string){builder->n > 0 ? builder->bytes : "", builder->origin, builder->n,
                                  false, false};
    return (struct tnd_value){.kind = TND_KIND_STRING, .as.string = string};
}

/* ---- numbers ---- */

/* The shortest digits that read back as the same number, in Python's form: an exponent below 1e-4
 * and from 1e16 on, and never a whole number without ".0". */
void tnd_build_number(struct tnd_builder *builder, double number)
{
    char digits[40];
    char text[64];
    int precision = 0;
    if (!isfinite(number)) {
        const char *name = isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
        tnd_build(builder, name, strlen(name), false);
        return;
    }
    do {
        snprintf(digits, sizeof(digits), "%.*e", precision, number);
    } while (strtod(digits, NULL) != number && precision++ < 17);
    const int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent >= -4 && exponent < 16) {
        const int decimals = precision > exponent ? precision - exponent : 1;
        snprintf(text, sizeof(text), "%.*f", decimals, number);
    } else {
        snprintf(text, sizeof(text), "%.*se%c%02d", (int)(strchr(digits, 'e') - digits), digits,
                 exponent < 0 ? '-' : '+', abs(exponent));
    }
    tnd_build(builder, text, strlen(text), false);
}

/* ---- values ---- */

static void build_text(struct tnd_builder *builder, const char *text)
{
    tnd_build(builder, text, strlen(text), false);
}

/* Python's repr of a text: in single quotes, unless it has some and no double ones. */
static void build_quoted(struct tnd_builder *builder, const struct tnd_string *string)
{
    const bool has_single = memchr(string->bytes, '\'', string->n) != NULL;
    const bool has_double = memchr(string->bytes, '"', string->n) != NULL;
    const char quote = has_single && !has_double ? '"' : '\'';
    tnd_build(builder, &quote, 1, false);
    for (size_t i = 0; i < string->n && builder->render->status == TANDEM_OK; i++) {
        const unsigned char c = (unsigned char)string->bytes[i];
        const bool is_user = string->origin != NULL ? string->origin[i] != 0 : string->is_user;
        char escaped[8] = {(char)c};
        if (c == '\\' || c == (unsigned char)quote) {
            snprintf(escaped, sizeof(escaped), "\\%c", c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            snprintf(escaped, sizeof(escaped), "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        } else if (c < 0x20 || c == 0x7f) {
            snprintf(escaped, sizeof(escaped), "\\x%02x", c);
        }
        tnd_build(builder, escaped, strlen(escaped), is_user);
    }
    tnd_build(builder, &quote, 1, false);
}

static void build_list(struct tnd_builder *builder, struct tnd_value value)
{
    const struct tnd_list *list = value.as.list;
    const bool is_tuple = value.kind == TND_KIND_TUPLE;
    build_text(builder, is_tuple ? "(" : "[");
    for (size_t i = 0; i < list->n; i++) {
        build_text(builder, i > 0 ? ", " : "");
        tnd_build_repr(builder, list->items[i]);
    }
    build_text(builder, !is_tuple ? "]" : list->n == 1 ? ",)" : ")");
}

static void build_dict(struct tnd_builder *builder, const struct tnd_dict *dict)
{
    build_text(builder, "{");
    for (size_t i = 0; i < dict->n; i++) {
        build_text(builder, i > 0 ? ", " : "");
        tnd_build_repr(builder, dict->members[i].key);
        build_text(builder, ": ");
        tnd_build_repr(builder, dict->members[i].value);
    }
    build_text(builder, "}");
}

void tnd_build_repr(struct tnd_builder *builder, struct tnd_value value)
{
    struct tnd_render *render = builder->render;
    char text[32];
    if (!tnd_template_step(render, 1)) {
        return;
    }
    if (++render->depth > 4 * TND_TEMPLATE_MAX_DEPTH) {
        tnd_template_fail(render, TANDEM_E_LIMIT, "values are nested too deep");
    }
    switch (value.kind) {
    case TND_KIND_UNDEFINED:
        build_text(builder, "Undefined");
        break;
    case TND_KIND_NONE:
        build_text(builder, "None");
        break;
    case TND_KIND_BOOL:
        build_text(builder, value.as.truth ? "True" : "False");
        break;
    case TND_KIND_INT:
        snprintf(text, sizeof(text), "%lld", (long long)value.as.integer);
        build_text(builder, text);
        break;
    case TND_KIND_FLOAT:
        tnd_build_number(builder, value.as.number);
        break;
    case TND_KIND_STRING:
        build_quoted(builder, value.as.string);
        break;
    case TND_KIND_LIST:
    case TND_KIND_TUPLE:
        build_list(builder, value);
        break;
    case TND_KIND_DICT:
        build_dict(builder, value.as.dict);
        break;
    default:
        tnd_template_fail(render, TANDEM_E_FORMAT, "a %s cannot be printed", tnd_kind_name(value));
    }
    render->depth--;
}

void tnd_build_value(struct tnd_builder *builder, struct tnd_value value)
{
    if (value.kind == TND_KIND_STRING) {
        tnd_build_string(builder, value.as.string);
    } else if (value.kind != TND_KIND_UNDEFINED) {
        tnd_build_repr(builder, value);
    }
}

const struct tnd_string *tnd_to_string(struct tnd_render *render, struct tnd_value value)
{
    static const struct tnd_string empty = {"", NULL, 0, false, false};
    struct tnd_builder builder = {.render = render};
    if (value.kind == TND_KIND_STRING) {
        return value.as.string;
    }
    tnd_build_value(&builder, value);
    value = tnd_built(&builder);
    return value.kind == TND_KIND_STRING ? value.as.string : &empty;
}
