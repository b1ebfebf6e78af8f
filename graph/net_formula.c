/* SPDX-License-Identifier: MIT
 * Parser of formulas: a single pass over the text that adds each operation to the net once its
 * operands are known. */
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "base/tnd_assert.h"
#include "graph/net_formula.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS  "0123456789"

struct formula {
    struct tnd_net *net;
    const char *head; /* names of the operands */
    const char *at;
    const struct tnd_term *terms;
    int n;
};

static struct tnd_term expression(struct formula *f);

/* A term as a value; a number gets the type of `like`. */
static int value_of(const struct formula *f, const struct tnd_term *term, int like)
{
    return !term->is_number || like == TANDEM_NET_NONE
               ? term->value
               : tnd_net_scalar(f->net, tnd_net_value(f->net, like)->type, term->number);
}

/* ---- operations ---- */

static double of_numbers(enum tandem_binary kind, double a, double b)
{
    switch (kind) {
    case TANDEM_BINARY_ADD:
        return a + b;
    case TANDEM_BINARY_SUB:
        return a - b;
    case TANDEM_BINARY_MUL:
        return a * b;
    default:
        TND_ASSERT(kind == TANDEM_BINARY_DIV);
        return a / b;
    }
}

/* Whether an operation with this number returns its other operand. */
static bool is_neutral(enum tandem_binary kind, const struct tnd_term *term, bool is_second)
{
    const bool is_sum = kind == TANDEM_BINARY_ADD || (kind == TANDEM_BINARY_SUB && is_second);
    const bool is_product = kind == TANDEM_BINARY_MUL || (kind == TANDEM_BINARY_DIV && is_second);
    return term->is_number && ((is_sum && term->number == 0) || (is_product && term->number == 1));
}

static struct tnd_term binary(struct formula *f, enum tandem_binary kind, struct tnd_term a,
                              struct tnd_term b)
{
    if (a.is_number && b.is_number) {
        return tnd_term_number(of_numbers(kind, a.number, b.number));
    }
    if (a.is_missing || b.is_missing) { /* a product is missing, a sum has one term less */
        const bool is_product = kind == TANDEM_BINARY_MUL || kind == TANDEM_BINARY_DIV;
        return a.is_missing == is_product ? a : b;
    }
    if (is_neutral(kind, &b, true)) {
        return a;
    }
    if (is_neutral(kind, &a, false)) {
        return b;
    }
    const int left = value_of(f, &a, b.value);
    return tnd_term_value(tnd_net_binary(f->net, kind, left, value_of(f, &b, a.value)));
}

static struct tnd_term negative(struct formula *f, struct tnd_term a)
{
    return a.is_number ? tnd_term_number(-a.number)
                       : tnd_term_value(tnd_net_unary(f->net, TANDEM_UNARY_NEG, a.value));
}

static struct tnd_term choice(struct formula *f, struct tnd_term condition, struct tnd_term a,
                              struct tnd_term b)
{
    const int yes = value_of(f, &a, b.value);
    return tnd_term_value(tnd_net_select(f->net, condition.value, yes, value_of(f, &b, a.value)));
}

/* ---- reading ---- */

/* Consumes `text` if it comes next. */
static bool take(struct formula *f, const char *text)
{
    f->at += strspn(f->at, " ");
    const size_t n = strlen(text);
    if (strncmp(f->at, text, n) != 0) {
        return false;
    }
    f->at += n;
    return true;
}

static void expect(struct formula *f, const char *text)
{
    const bool is_there = take(f, text);
    TND_ASSERT(is_there);
    (void)is_there;
}

static struct tnd_term operand(const struct formula *f, const char *name, size_t n)
{
    const char *at = f->head;
    for (int i = 0; i < f->n; i++) {
        const size_t length = strspn(at, LETTERS DIGITS);
        if (length == n && memcmp(at, name, n) == 0) {
            struct tnd_term term = f->terms[i];
            term.is_missing = at[n] == '?' && term.value == TANDEM_NET_NONE;
            return term;
        }
        at += strcspn(at, ",:");
        at += strspn(at, ", ");
    }
    TND_ASSERT(!"a name that the formula's head does not have");
    return tnd_term_value(TANDEM_NET_NONE);
}

static bool is_called(const char *name, size_t n, const char *function)
{
    return strncasecmp(name, function, n) == 0 && function[n] == '\0';
}

/* Parses a function of one or two values, or a type, which casts. */
static struct tnd_term function(struct formula *f, const char *name, size_t n)
{
#define NAME(kind, number) [number] = #kind,
    static const char *const unaries[] = {TANDEM_UNARY_LIST(NAME)};
    static const char *const binaries[] = {TANDEM_BINARY_LIST(NAME)};
#undef NAME
    const struct tnd_term a = expression(f);
    if (take(f, ",")) {
        const struct tnd_term b = expression(f);
        expect(f, ")");
        for (int kind = 0; kind < TND_N_BINARY; kind++) {
            if (is_called(name, n, binaries[kind])) {
                return binary(f, (enum tandem_binary)kind, a, b);
            }
        }
    } else {
        expect(f, ")");
        for (int kind = 0; kind < TND_N_UNARY; kind++) {
            if (is_called(name, n, unaries[kind])) {
                return tnd_term_value(tnd_net_unary(f->net, (enum tandem_unary)kind, a.value));
            }
        }
        for (int type = 0; type < TND_N_DTYPES; type++) {
            if (is_called(name, n, tandem_dtype_name((enum tandem_dtype)type))) {
                return a.is_missing
                           ? a
                           : tnd_term_value(tnd_net_cast(f->net, a.value, (enum tandem_dtype)type));
            }
        }
    }
    TND_ASSERT(!"a function that no list has");
    return tnd_term_value(TANDEM_NET_NONE);
}

static struct tnd_term primary(struct formula *f)
{
    if (take(f, "(")) {
        const struct tnd_term inner = expression(f);
        expect(f, ")");
        return inner;
    }
    if (take(f, "-")) {
        return negative(f, primary(f));
    }
    if (take(f, "!")) {
        return tnd_term_value(tnd_net_unary(f->net, TANDEM_UNARY_NOT, primary(f).value));
    }
    const char *from = f->at;
    const size_t digits = strspn(from, DIGITS ".");
    double number;
    if (tnd_text_to_double(from, digits, &number)) {
        f->at += digits;
        return tnd_term_number(number);
    }
    const size_t n = strspn(from, LETTERS DIGITS);
    f->at += n;
    return take(f, "(") ? function(f, from, n) : operand(f, from, n);
}

/* Operators of a level bind more tightly than those of the level before. `a > b` is computed as b <
 * a. */
struct operator
{
    const char *text;
    int level;
    enum tandem_binary kind;
    bool is_turned;
};

static const struct operator operators[] = {
    {"|", 0, TANDEM_BINARY_OR, false},          {"&", 1, TANDEM_BINARY_AND, false},
    {"<=", 2, TANDEM_BINARY_LESS_EQUAL, false}, {">=", 2, TANDEM_BINARY_LESS_EQUAL, true},
    {"==", 2, TANDEM_BINARY_EQUAL, false},      {"<", 2, TANDEM_BINARY_LESS, false},
    {">", 2, TANDEM_BINARY_LESS, true},         {"+", 3, TANDEM_BINARY_ADD, false},
    {"-", 3, TANDEM_BINARY_SUB, false},         {"*", 4, TANDEM_BINARY_MUL, false},
    {"/", 4, TANDEM_BINARY_DIV, false},         {"%", 4, TANDEM_BINARY_MOD, false},
};
enum { N_OPERATORS = sizeof(operators) / sizeof(operators[0]), N_LEVELS = 5 };

static struct tnd_term operation(struct formula *f, int level)
{
    if (level == N_LEVELS) {
        return primary(f);
    }
    struct tnd_term a = operation(f, level + 1);
    for (int i = 0; i < N_OPERATORS; i++) {
        if (operators[i].level == level && take(f, operators[i].text)) {
            const struct tnd_term b = operation(f, level + 1);
            a = operators[i].is_turned ? binary(f, operators[i].kind, b, a)
                                       : binary(f, operators[i].kind, a, b);
            i = -1; /* (another one may follow) */
        }
    }
    return a;
}

static struct tnd_term expression(struct formula *f)
{
    const struct tnd_term a = operation(f, 0);
    if (!take(f, "?")) {
        return a;
    }
    const struct tnd_term yes = expression(f);
    expect(f, ":");
    return choice(f, a, yes, expression(f));
}

int tnd_net_formula_of(struct tnd_net *net, const char *text, const struct tnd_term *terms, int n)
{
    struct formula f = {
        .net = net, .head = text, .at = strchr(text, ':') + 1, .terms = terms, .n = n};
    const int value = expression(&f).value;
    TND_ASSERT(*f.at == '\0');
    return value;
}
