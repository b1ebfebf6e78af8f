/* SPDX-License-Identifier: MIT
 * Functions that every template can call: Jinja's range, dict, namespace, joiner and cycler, and
 * transformers' raise_exception and strftime_now. */
#include <string.h>
#include <time.h>

#include "formats/template.h"

TND_BUILTIN(range)
{
    if (!tnd_expect_arguments(render, arguments, "range", 1, 3)) {
        return tnd_none();
    }
    const int64_t first = tnd_argument_int(render, arguments, 0, NULL, 0);
    const bool has_begin = arguments->n > 1;
    const int64_t end = has_begin ? tnd_argument_int(render, arguments, 1, NULL, 0) : first;
    const int64_t step = tnd_argument_int(render, arguments, 2, NULL, 1);
    struct tnd_value list = tnd_list_value(render, TND_KIND_LIST, 0);
    int64_t i = has_begin ? first : 0;
    if (step == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "range: the step is 0");
    }
    while ((step > 0 ? i < end : i > end) && render->status == TANDEM_OK) {
        if (list.as.list->n >= 100000) { /* Jinja's sandbox has this limit, too */
            return tnd_template_fail(render, TANDEM_E_LIMIT, "range: more than 100000 numbers");
        }
        tnd_list_add(render, list.as.list, tnd_int(i));
        if (__builtin_add_overflow(i, step, &i)) {
            break;
        }
    }
    return list;
}

/* dict and namespace */
TND_BUILTIN(named_members)
{
    struct tnd_value made = tnd_dict_value(render);
    if (arguments->n > 0 && arguments->items[0].kind == TND_KIND_DICT) {
        const struct tnd_dict *from = arguments->items[0].as.dict;
        for (size_t i = 0; i < from->n && render->status == TANDEM_OK; i++) {
            tnd_dict_set(render, made.as.dict, from->members[i].key, from->members[i].value);
        }
    } else if (arguments->n > 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "members are given by name: f(a=1)");
    }
    for (int i = 0; i < arguments->n_named && render->status == TANDEM_OK; i++) {
        tnd_dict_set(render, made.as.dict, arguments->named[i].key, arguments->named[i].value);
    }
    made.kind = made.kind == TND_KIND_DICT ? (enum tnd_kind)kind : made.kind;
    return made;
}

TND_BUILTIN(raise_exception)
{
    const struct tnd_string *text = tnd_argument_string(render, arguments, 0, "message");
    return tnd_template_fail(render, TANDEM_E_ARGUMENT, "the template refuses: %.*s",
                             text != NULL ? (int)(text->n < 150 ? text->n : 150) : 0,
                             text != NULL ? text->bytes : "");
}

TND_BUILTIN(strftime_now)
{
    const struct tnd_string *format = tnd_argument_string(render, arguments, 0, "format");
    const time_t now = (time_t)render->now;
    struct tm local;
    char pattern[128];
    char text[512];
    if (format == NULL || format->n >= sizeof(pattern) || localtime_r(&now, &local) == NULL) {
        return tnd_template_fail(render, TANDEM_E_FORMAT,
                                 "strftime_now: a pattern of less than %zu bytes is expected",
                                 sizeof(pattern));
    }
    memcpy(pattern, format->bytes, format->n);
    pattern[format->n] = 0;
    const size_t n = strftime(text, sizeof(text), pattern, &local);
    return tnd_text_value(render, text, n, false);
}

/* joiner(", ")() is empty the first time; cycler(a, b).next() gives a, b, a, ... No template known
 * to us uses them, and both keep a state: refused by name. */
TND_BUILTIN(refuse)
{
    return tnd_template_fail(render, TANDEM_E_UNSUPPORTED_BUILD,
                             "joiner, cycler and lipsum are not understood");
}

const struct tnd_builtin *tnd_find_builtin(const struct tnd_builtin *rows, const char *name)
{
    while (rows->name != NULL && strcmp(rows->name, name) != 0) {
        rows++;
    }
    return rows->name != NULL ? rows : NULL;
}

void tnd_add_globals(struct tnd_render *render)
{
    static const struct tnd_builtin globals[] = {
        {"range", range, 0},
        {"dict", named_members, TND_KIND_DICT},
        {"namespace", named_members, TND_KIND_NAMESPACE},
        {"raise_exception", raise_exception, 0},
        {"strftime_now", strftime_now, 0},
        {"joiner", refuse, 0},
        {"cycler", refuse, 0},
        {"lipsum", refuse, 0},
        {NULL, NULL, 0},
    };
    for (const struct tnd_builtin *row = globals; row->name != NULL; row++) {
        const struct tnd_name name = {row->name, strlen(row->name)};
        tnd_scope_set(render, render->globals, name, tnd_bind(render, row, tnd_none()));
    }
}
