/* SPDX-License-Identifier: MIT
 * Tests: the names after `is`. */
#include <ctype.h>
#include <string.h>

#include "formats/template.h"

#define BIT(kind) (1 << TND_KIND_##kind)

/* Kinds of values that are items, one after the other, and those that may be asked for one. */
#define SEQUENCES (BIT(STRING) | BIT(LIST) | BIT(TUPLE) | BIT(DICT) | BIT(UNDEFINED))
#define ITERABLES (SEQUENCES | BIT(LOOP) | BIT(GENERATOR))

/* `kind`: a set of kinds. */
TND_BUILTIN(is_of_kind)
{
    return tnd_bool((kind >> self.kind & 1) != 0);
}

TND_BUILTIN(is_truth)
{
    return tnd_bool(self.kind == TND_KIND_BOOL && self.as.truth == (kind != 0));
}

enum { FILTER, TEST };

/* Whether a filter or a test of that name exists. */
TND_BUILTIN(is_known)
{
    const struct tnd_string *name = tnd_to_string(render, self);
    char text[64] = "";
    if (name->n < sizeof(text)) {
        memcpy(text, name->bytes, name->n);
    }
    return tnd_bool((kind == FILTER ? tnd_find_filter(text) : tnd_find_test(text)) != NULL);
}

/* odd (1), even (0), and divisibleby (-1) */
TND_BUILTIN(is_divisible)
{
    const int64_t by = kind < 0 ? tnd_argument_int(render, arguments, 0, "num", 0) : 2;
    if (self.kind != TND_KIND_INT || by == 0) {
        return tnd_template_fail(render, TANDEM_E_FORMAT, "%s cannot be divided by %lld",
                                 tnd_kind_name(self), (long long)by);
    }
    const int64_t left = by == -1 ? 0 : self.as.integer % by;
    return tnd_bool((left != 0) == (kind > 0));
}

static struct tnd_value other_of(struct tnd_render *render, const struct tnd_arguments *arguments)
{
    const struct tnd_value *other = tnd_argument(render, arguments, 0, NULL);
    return other != NULL ? *other
                         : tnd_template_fail(render, TANDEM_E_FORMAT,
                                             "the test needs a value to compare with");
}

TND_BUILTIN(is_equal)
{
    const bool is = tnd_equal(render, self, other_of(render, arguments));
    return tnd_bool(is == (kind != 0));
}

/* Bits of `kind`: whether it counts if self is less, equal, greater. */
enum { LESS = 1, SAME = 2, GREATER = 4 };

TND_BUILTIN(is_ordered)
{
    const int order = tnd_order(render, self, other_of(render, arguments));
    return tnd_bool((kind & (order < 0 ? LESS : order > 0 ? GREATER : SAME)) != 0);
}

TND_BUILTIN(is_in)
{
    return tnd_bool(tnd_contains(render, other_of(render, arguments), self));
}

TND_BUILTIN(is_same)
{
    const struct tnd_value other = other_of(render, arguments);
    const bool is_simple = self.kind <= TND_KIND_STRING;
    return tnd_bool(self.kind == other.kind &&
                    (is_simple ? tnd_equal(render, self, other) : self.as.dict == other.as.dict));
}

bool tnd_has_only_case(const struct tnd_string *text, bool upper)
{
    bool some = false;
    bool all = true;
    for (size_t i = 0; i < text->n; i++) {
        const unsigned char c = (unsigned char)text->bytes[i];
        some = some || (c < 0x80 && (upper ? isupper(c) : islower(c)));
        all = all && !(c < 0x80 && (upper ? islower(c) : isupper(c)));
    }
    return some && all;
}

TND_BUILTIN(has_case)
{
    return tnd_bool(tnd_has_only_case(tnd_to_string(render, self), kind == TND_CASE_UPPER));
}

const struct tnd_builtin *tnd_find_test(const char *name)
{
    static const struct tnd_builtin tests[] = {
        {"defined", is_of_kind, ~BIT(UNDEFINED)},
        {"undefined", is_of_kind, BIT(UNDEFINED)},
        {"none", is_of_kind, BIT(NONE)},
        {"boolean", is_of_kind, BIT(BOOL)},
        {"true", is_truth, true},
        {"false", is_truth, false},
        {"integer", is_of_kind, BIT(INT)},
        {"float", is_of_kind, BIT(FLOAT)},
        {"number", is_of_kind, BIT(INT) | BIT(FLOAT) | BIT(BOOL)},
        {"string", is_of_kind, BIT(STRING)},
        {"mapping", is_of_kind, BIT(DICT)},
        {"sequence", is_of_kind, SEQUENCES},
        {"iterable", is_of_kind, ITERABLES},
        {"callable", is_of_kind, BIT(MACRO) | BIT(FUNCTION) | BIT(LOOP) | BIT(UNDEFINED)},
        {"escaped", is_of_kind, 0}, /* nothing is */
        {"filter", is_known, FILTER},
        {"test", is_known, TEST},
        {"odd", is_divisible, 1},
        {"even", is_divisible, 0},
        {"divisibleby", is_divisible, -1},
        {"eq", is_equal, true},
        {"equalto", is_equal, true},
        {"==", is_equal, true},
        {"ne", is_equal, false},
        {"!=", is_equal, false},
        {"lt", is_ordered, LESS},
        {"lessthan", is_ordered, LESS},
        {"<", is_ordered, LESS},
        {"le", is_ordered, LESS | SAME},
        {"<=", is_ordered, LESS | SAME},
        {"gt", is_ordered, GREATER},
        {"greaterthan", is_ordered, GREATER},
        {">", is_ordered, GREATER},
        {"ge", is_ordered, GREATER | SAME},
        {">=", is_ordered, GREATER | SAME},
        {"in", is_in, 0},
        {"sameas", is_same, 0},
        {"upper", has_case, TND_CASE_UPPER},
        {"lower", has_case, TND_CASE_LOWER},
        {NULL, NULL, 0},
    };
    return tnd_find_builtin(tests, name);
}
