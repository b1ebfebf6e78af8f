/* SPDX-License-Identifier: MIT
 * A chooser for tests that takes one method for all convolutions that have it. */
#ifndef TND_TESTS_PREFER_METHOD_H
#define TND_TESTS_PREFER_METHOD_H

#include "ggml-like/conv_method.h"

static inline bool prefer_begin(void *user, const struct tnd_conv_shape *shapes, int n)
{
    (void)user;
    (void)shapes;
    (void)n;
    return false;
}

static inline void prefer_choose(void *user, const struct tnd_conv_question *question,
                                 struct tnd_conv_choice *out)
{
    const enum tnd_conv_method method = *(const enum tnd_conv_method *)user;
    tnd_conv_choose_by_rule(question, out);
    out->method = question->may[method] ? method : out->method;
}

/** `method` must outlive the chooser. */
static inline struct tandem_chooser prefer_method(enum tnd_conv_method *method)
{
    return (struct tandem_chooser){prefer_begin, prefer_choose, method};
}

#endif
