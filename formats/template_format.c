/* SPDX-License-Identifier: MIT
 * Python's two ways to format: "%s" % values and "{}".format(values), as far as chat templates use
 * them: %s %r %d %i %u %f %e %g %x %o %c %%, and {}, {0}, {name} with a width and .2f at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/template.h"

struct spec {
    bool left, zero, plus;
    int width, precision; /* precision -1: none */
    char kind;            /* 0: none */
};

/* A number of at most 4 digits. */
static int take_number(const char **at, const char *end, int or_else)
{
    int value = or_else;
    for (int n = 0; *at < end && **at >= '0' && **at <= '9' && n < 4; (*at)++, n++) {
        value = (n > 0 ? value * 10 : 0) + (**at - '0');
    }
    return value;
}

static void build_padded(struct tnd_builder *text, const struct tnd_string *string,
                         const struct spec *spec, bool is_left)
{
    const int64_t free = spec->width - (int64_t)tnd_characters(string);
    for (int64_t i = 0; i < free && !is_left; i++) {
        tnd_build(text, " ", 1, false);
    }
    tnd_build_string(text, string);
    for (int64_t i = 0; i < free && is_left; i++) {
        tnd_build(text, " ", 1, false);
    }
}

static void build_number(struct tnd_builder *text, struct tnd_value value, const struct spec *spec)
{
    struct tnd_render *render = text->render;
    char format[32];
    char number[800];
    const bool is_float = strchr("feEgGF", spec->kind) != NULL;
    if (!tnd_is_number(value)) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "a format '%c' takes a number, not %s",
                          spec->kind, tnd_kind_name(value));
        return;
    }
    const int width = spec->width < 100 ? spec->width : 100;
    const int precision = spec->precision < 100 ? spec->precision : 100;
    const char *flags = spec->left ? "-" : spec->zero ? "0" : "";
    const char *plus = spec->plus ? "+" : "";
    if (is_float) {
        snprintf(format, sizeof(format), "%%%s%s%d.%d%c", flags, plus, width,
                 precision >= 0 ? precision : 6, spec->kind);
        snprintf(number, sizeof(number), format, tnd_as_number(value));
    } else {
        const long long integer = value.kind == TND_KIND_INT     ? (long long)value.as.integer
                                  : value.kind == TND_KIND_FLOAT ? (long long)value.as.number
                                                                 : (long long)value.as.truth;
        const char kind =
            spec->kind == 'x' || spec->kind == 'X' || spec->kind == 'o' ? spec->kind : 'd';
        snprintf(format, sizeof(format), "%%%s%s%dll%c", flags, kind == 'd' ? plus : "", width,
                 kind);
        snprintf(number, sizeof(number), format, integer);
    }
    tnd_build(text, number, strlen(number), false);
}

static void build_formatted(struct tnd_builder *text, struct tnd_value value,
                            const struct spec *spec, bool numbers_right)
{
    struct tnd_render *render = text->render;
    if (spec->kind != 0 && strchr("diufeEgGFxXo", spec->kind) != NULL) {
        if (value.kind == TND_KIND_FLOAT && strchr("diuxXo", spec->kind) != NULL &&
            !(value.as.number > -9e18 && value.as.number < 9e18)) {
            tnd_template_fail(render, TANDEM_E_LIMIT, "a number is beyond 64 bits");
            return;
        }
        build_number(text, value, spec);
        return;
    }
    struct tnd_builder plain = {.render = render};
    if (spec->kind == 'r') {
        tnd_build_repr(&plain, value);
    } else {
        tnd_build_value(&plain, value);
    }
    struct tnd_value string = tnd_built(&plain);
    if (string.kind != TND_KIND_STRING) {
        return;
    }
    if (spec->precision >= 0) {
        string = tnd_substring(render, string.as.string, 0,
                               tnd_character_offset(string.as.string, (size_t)spec->precision));
    }
    if (string.kind == TND_KIND_STRING) {
        build_padded(text, string.as.string, spec,
                     spec->left || (numbers_right && !tnd_is_number(value)));
    }
}

static struct spec take_spec(const char **at, const char *end)
{
    struct spec spec = {.precision = -1};
    for (; *at < end && strchr("-0+ #", **at) != NULL && **at != 0; (*at)++) {
        spec.left = spec.left || **at == '-';
        spec.zero = spec.zero || **at == '0';
        spec.plus = spec.plus || **at == '+';
    }
    spec.width = take_number(at, end, 0);
    if (*at < end && **at == '.') {
        (*at)++;
        spec.precision = take_number(at, end, 0);
    }
    if (*at < end) {
        spec.kind = *(*at)++;
    }
    return spec;
}

/* %(name)s */
static bool take_named(struct tnd_render *render, const char **at, const char *end,
                       struct tnd_value values, struct tnd_value *out)
{
    const char *close = memchr(*at, ')', (size_t)(end - *at));
    if (close == NULL || values.kind != TND_KIND_DICT) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "a format with names takes a dict");
        return false;
    }
    const struct tnd_value *found =
        tnd_dict_find(render, values.as.dict, *at + 1, (size_t)(close - *at) - 1);
    if (found == NULL) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "a name of the format is not in the dict");
        return false;
    }
    *out = *found;
    *at = close + 1;
    return true;
}

struct tnd_value tnd_percent_format(struct tnd_render *render, const struct tnd_string *format,
                                    struct tnd_value values)
{
    struct tnd_builder text = {.render = render};
    const char *at = format->bytes;
    const char *end = at + format->n;
    const bool is_tuple = values.kind == TND_KIND_TUPLE;
    const size_t n_values = is_tuple ? values.as.list->n : 1;
    size_t i = 0;
    while (at < end && render->status == TANDEM_OK) {
        const char *percent = memchr(at, '%', (size_t)(end - at));
        const char *stop = percent != NULL ? percent : end;
        tnd_build_value(&text, tnd_substring(render, format, (size_t)(at - format->bytes),
                                             (size_t)(stop - at)));
        at = stop + (percent != NULL);
        if (percent == NULL) {
            break;
        }
        struct tnd_value value = tnd_none();
        const bool is_named = at < end && *at == '(';
        if (is_named && !take_named(render, &at, end, values, &value)) {
            break;
        }
        const struct spec spec = take_spec(&at, end);
        if (spec.kind == '%') {
            tnd_build(&text, "%", 1, false);
            continue;
        }
        if (spec.kind == 0 || strchr("srdiufeEgGFxXoc", spec.kind) == NULL) {
            return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                                     "a format '%%%c' is not understood", spec.kind);
        }
        if (!is_named) {
            if (i >= n_values) {
                return tnd_template_fail(render, TANDEM_E_FORMAT,
                                         "a format has more places than values");
            }
            value = is_tuple ? values.as.list->items[i] : values;
            i++;
        }
        build_formatted(&text, value, &spec, false);
    }
    if (render->status == TANDEM_OK && i < n_values && values.kind != TND_KIND_DICT) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "a format has fewer places than values");
    }
    return tnd_built(&text);
}

/* One replacement field between its braces: [number or name][.member or [index]][:spec]. */
static void build_field(struct tnd_builder *text, const char *at, const char *end,
                        const struct tnd_arguments *arguments, int *next)
{
    struct tnd_render *render = text->render;
    const char *colon = memchr(at, ':', (size_t)(end - at));
    const char *stop = colon != NULL ? colon : end;
    char name[64] = "";
    const struct tnd_value *value;
    if (stop - at >= (ptrdiff_t)sizeof(name) || memchr(at, '!', (size_t)(stop - at)) != NULL ||
        memchr(at, '.', (size_t)(stop - at)) != NULL ||
        memchr(at, '[', (size_t)(stop - at)) != NULL) {
        tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                          "a field of format() is not understood");
        return;
    }
    memcpy(name, at, (size_t)(stop - at));
    if (name[0] == 0) {
        value = tnd_argument(render, arguments, (*next)++, NULL);
    } else if (strspn(name, "0123456789") == strlen(name)) {
        value = tnd_argument(render, arguments, strlen(name) < 5 ? atoi(name) : 99999, NULL);
    } else {
        value = tnd_argument(render, arguments, -1, name);
    }
    if (value == NULL) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "format(): there is no value for '{%s}'", name);
        return;
    }
    struct spec spec = {.precision = -1};
    if (colon != NULL) {
        const char *rest = colon + 1;
        const bool is_left = rest < end && *rest == '<';
        rest += rest < end && (*rest == '<' || *rest == '>');
        const bool is_right = rest > colon + 1 && !is_left;
        spec = take_spec(&rest, end);
        if (rest < end) {
            tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                              "a field of format() is not understood");
            return;
        }
        spec.left = is_left;
        build_formatted(text, *value, &spec, !is_right);
        return;
    }
    build_formatted(text, *value, &spec, true);
}

struct tnd_value tnd_brace_format(struct tnd_render *render, const struct tnd_string *format,
                                  const struct tnd_arguments *arguments)
{
    struct tnd_builder text = {.render = render};
    int next = 0;
    for (size_t at = 0; at < format->n && render->status == TANDEM_OK; at++) {
        const char c = format->bytes[at];
        const char *close;
        if ((c == '{' || c == '}') && at + 1 < format->n && format->bytes[at + 1] == c) {
            tnd_build(&text, &c, 1, false);
            at++;
        } else if (c == '{' && (close = memchr(format->bytes + at, '}', format->n - at)) != NULL) {
            build_field(&text, format->bytes + at + 1, close, arguments, &next);
            at = (size_t)(close - format->bytes);
        } else if (c == '{' || c == '}') {
            return tnd_template_fail(render, TANDEM_E_FORMAT, "format(): a brace stands alone");
        } else {
            tnd_build_value(&text, tnd_substring(render, format, at, 1));
        }
    }
    return tnd_built(&text);
}
