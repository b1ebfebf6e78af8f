/* SPDX-License-Identifier: MIT
 * Element-wise operations of a net, written as a formula. */
#ifndef TND_NET_FORMULA_H
#define TND_NET_FORMULA_H

#include "graph/net.h"

enum { TND_FORMULA_TERMS = 6 };

/** A value of the net, or a number without a type yet. */
struct tnd_term {
    bool is_number;
    bool is_missing;
    int value;
    double number;
};

static inline struct tnd_term tnd_term_value(int value)
{
    return (struct tnd_term){.value = value};
}

static inline struct tnd_term tnd_term_number(double number)
{
    return (struct tnd_term){.is_number = true, .value = TANDEM_NET_NONE, .number = number};
}

/** Adds the operations of a formula; gives its result. In front of the colon stand names for the
 *  operands that follow: values (int) and numbers (double).
 *
 *      tnd_net_formula(net, "x, y, limit: x > limit ? x : y * exp(-x)", x, y, 0.5)
 *
 *  It may have ? :, | & < <= == > >= + - * / % (as MOD) and - ! in front, numbers, the functions of
 *  net-list.h in small letters, and types, which cast. A number gets the type of the value beside
 *  it; two of them are computed with now. x + 0, x - 0, x * 1 and x / 1 are x. A value with a
 *  question mark behind its name in the head may be TANDEM_NET_NONE: then it is left out of sums,
 *  with all that it is multiplied with.
 *
 *  A formula is part of the program: mistakes in one are found by assertions. */
#define tnd_net_formula(net, text, ...)                                                            \
    tnd_net_formula_of(                                                                            \
        net, text,                                                                                 \
        (const struct tnd_term[]){TND_TERMS(__VA_ARGS__, 6, 5, 4, 3, 2, 1, )(__VA_ARGS__)},        \
        TND_TERM_COUNT(__VA_ARGS__, 6, 5, 4, 3, 2, 1, ))
int tnd_net_formula_of(struct tnd_net *net, const char *text, const struct tnd_term *terms, int n);

/* A list of terms, one for each of up to 6 arguments. */
#define TND_TERM_COUNT(a, b, c, d, e, f, n, ...) n
#define TND_TERMS(a, b, c, d, e, f, n, ...)      TND_TERMS_##n
#define TND_TERMS_1(a)                           TND_TERM(a)
#define TND_TERMS_2(a, ...)                      TND_TERM(a), TND_TERMS_1(__VA_ARGS__)
#define TND_TERMS_3(a, ...)                      TND_TERM(a), TND_TERMS_2(__VA_ARGS__)
#define TND_TERMS_4(a, ...)                      TND_TERM(a), TND_TERMS_3(__VA_ARGS__)
#define TND_TERMS_5(a, ...)                      TND_TERM(a), TND_TERMS_4(__VA_ARGS__)
#define TND_TERMS_6(a, ...)                      TND_TERM(a), TND_TERMS_5(__VA_ARGS__)

#define TND_TERM(x) _Generic((x), int : tnd_term_value, double : tnd_term_number)(x)

#endif
