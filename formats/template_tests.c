/* SPDX-License-Identifier: MIT
 * What stands behind `is`. */
#include <ctype.h>
#include <string.h>

#include "formats/template.h"

#define TEST(name)                                                                                 \
    static struct tnd_value name(struct tnd_render *render, struct tnd_value self,                 \
                                 const struct tnd_arguments *arguments)

/* Tests of a kind alone. */
#define TEST_KIND(name, condition)                                                                 \
    TEST(name)                                                                                     \
    {                                                                                              \
        (void)render;                                                                              \
        (void)arguments;                                                                           \
        return tnd_bool(condition);                                                                \
    }

TEST_KIND(is_defined, self.kind != TND_KIND_UNDEFINED)
TEST_KIND(is_undefined, self.kind == TND_KIND_UNDEFINED)
TEST_KIND(is_none, self.kind == TND_KIND_NONE)
TEST_KIND(is_boolean, self.kind == TND_KIND_BOOL)
TEST_KIND(is_true, self.kind == TND_KIND_BOOL && self.as.truth)
TEST_KIND(is_false, self.kind == TND_KIND_BOOL && !self.as.truth)
TEST_KIND(is_integer, self.kind == TND_KIND_INT)
TEST_KIND(is_float, self.kind == TND_KIND_FLOAT)
TEST_KIND(is_number, tnd_is_number(self))
TEST_KIND(is_string, self.kind == TND_KIND_STRING)
TEST_KIND(is_mapping, self.kind == TND_KIND_DICT)
TEST_KIND(is_sequence, self.kind == TND_KIND_STRING || self.kind == TND_KIND_LIST ||
                           self.kind == TND_KIND_TUPLE || self.kind == TND_KIND_DICT ||
                           self.kind == TND_KIND_UNDEFINED)
TEST_KIND(is_iterable, self.kind == TND_KIND_STRING || self.kind == TND_KIND_LIST ||
                           self.kind == TND_KIND_TUPLE || self.kind == TND_KIND_DICT ||
                           self.kind == TND_KIND_UNDEFINED || self.kind == TND_KIND_LOOP ||
                           self.kind == TND_KIND_GENERATOR)
TEST_KIND(is_callable, self.kind == TND_KIND_MACRO || self.kind == TND_KIND_FUNCTION ||
                           self.kind == TND_KIND_LOOP || self.kind == TND_KIND_UNDEFINED)

TEST(is_escaped) /* nothing is */
{
    (void)render, (void)self, (void)arguments;
    return tnd_bool(false);
}

TEST(is_filter)
{
    (void)arguments;
    const struct tnd_string *name = tnd_to_string(render, self);
    char text[64] = "";
    if (name->n < sizeof(text)) {
        memcpy(text, name->bytes, name->n);
    }
    return tnd_bool(tnd_find_filter(text) != NULL);
}

TEST(is_test)
{
    (void)arguments;
    const struct tnd_string *name = tnd_to_string(render, self);
    char text[64] = "";
    if (name->n < sizeof(text)) {
        memcpy(text, name->bytes, name->n);
    }
    return tnd_bool(tnd_find_test(text) != NULL);
}

static bool modulo_is(struct tnd_render *render, struct tnd_value self, int64_t divisor,
                      int64_t rest)
{
    if (self.kind != TND_KIND_INT || divisor == 0) {
        tnd_template_fail(render, TANDEM_E_FORMAT, "%s cannot be divided by %lld",
                          tnd_kind_name(self), (long long)divisor);
        return false;
    }
    const int64_t left = divisor == -1 ? 0 : self.as.integer % divisor;
    return (left != 0) == (rest != 0);
}

TEST(is_odd)
{
    (void)arguments;
    return tnd_bool(modulo_is(render, self, 2, 1));
}

TEST(is_even)
{
    (void)arguments;
    return tnd_bool(modulo_is(render, self, 2, 0));
}

TEST(is_divisible)
{
    return tnd_bool(modulo_is(render, self, tnd_argument_int(render, arguments, 0, "num", 0), 0));
}

static struct tnd_value other_of(struct tnd_render *render, const struct tnd_arguments *arguments)
{
    const struct tnd_value *other = tnd_argument(render, arguments, 0, NULL);
    return other != NULL ? *other
                         : tnd_template_fail(render, TANDEM_E_FORMAT,
                                             "the test needs a value to compare with");
}

TEST(is_equal)
{
    return tnd_bool(tnd_equal(render, self, other_of(render, arguments)));
}

TEST(is_unequal)
{
    return tnd_bool(!tnd_equal(render, self, other_of(render, arguments)));
}

TEST(is_less)
{
    return tnd_bool(tnd_order(render, self, other_of(render, arguments)) < 0);
}

TEST(is_at_most)
{
    return tnd_bool(tnd_order(render, self, other_of(render, arguments)) <= 0);
}

TEST(is_greater)
{
    return tnd_bool(tnd_order(render, self, other_of(render, arguments)) > 0);
}

TEST(is_at_least)
{
    return tnd_bool(tnd_order(render, self, other_of(render, arguments)) >= 0);
}

TEST(is_in)
{
    return tnd_bool(tnd_contains(render, other_of(render, arguments), self));
}

TEST(is_same)
{
    const struct tnd_value other = other_of(render, arguments);
    const bool is_simple = self.kind <= TND_KIND_STRING;
    return tnd_bool(self.kind == other.kind &&
                    (is_simple ? tnd_equal(render, self, other) : self.as.dict == other.as.dict));
}

static bool has_only_case(struct tnd_render *render, struct tnd_value self, bool upper)
{
    const struct tnd_string *text = tnd_to_string(render, self);
    bool some = false;
    bool all = true;
    for (size_t i = 0; i < text->n; i++) {
        const unsigned char c = (unsigned char)text->bytes[i];
        some = some || (upper ? isupper(c) : islower(c));
        all = all && !(upper ? islower(c) : isupper(c));
    }
    return some && all;
}

TEST(is_upper)
{
    (void)arguments;
    return tnd_bool(has_only_case(render, self, true));
}

TEST(is_lower)
{
    (void)arguments;
    return tnd_bool(has_only_case(render, self, false));
}

tnd_template_call tnd_find_test(const char *name)
{
    static const struct {
        const char *name;
        tnd_template_call call;
    } tests[] = {
        {"defined", is_defined},   {"undefined", is_undefined},
        {"none", is_none},         {"boolean", is_boolean},
        {"true", is_true},         {"false", is_false},
        {"integer", is_integer},   {"float", is_float},
        {"number", is_number},     {"string", is_string},
        {"mapping", is_mapping},   {"sequence", is_sequence},
        {"iterable", is_iterable}, {"callable", is_callable},
        {"escaped", is_escaped},   {"filter", is_filter},
        {"test", is_test},         {"odd", is_odd},
        {"even", is_even},         {"divisibleby", is_divisible},
        {"eq", is_equal},          {"equalto", is_equal},
        {"==", is_equal},          {"ne", is_unequal},
        {"!=", is_unequal},        {"lt", is_less},
        {"lessthan", is_less},     {"<", is_less},
        {"le", is_at_most},        {"<=", is_at_most},
        {"gt", is_greater},        {"greaterthan", is_greater},
        {">", is_greater},         {"ge", is_at_least},
        {">=", is_at_least},       {"in", is_in},
        {"sameas", is_same},       {"upper", is_upper},
        {"lower", is_lower},
    };
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (strcmp(tests[i].name, name) == 0) {
            return tests[i].call;
        }
    }
    return NULL;
}
