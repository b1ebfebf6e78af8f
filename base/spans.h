/* SPDX-License-Identifier: MIT
 * Sets of bytes of a file: ascending ranges that neither meet nor overlap. */
#ifndef TND_SPANS_H
#define TND_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes begin .. end - 1. */
struct tnd_file_span {
    uint64_t begin, end;
};

struct tnd_spans {
    struct tnd_file_span *list; /* {n} */
    size_t n, capacity;
    bool failed; /* there was no memory: the set lacks something */
};
#define TND_SPANS_INIT                                                                             \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

/** Appends a range in any order; tnd_spans_tidy makes a set of what was added. */
void tnd_spans_add(struct tnd_spans *spans, uint64_t begin, uint64_t end);
void tnd_spans_tidy(struct tnd_spans *spans);
/** Adds to `out`, which is empty, what is in `a` and not in `b`. */
void tnd_spans_subtract(const struct tnd_spans *a, const struct tnd_spans *b,
                        struct tnd_spans *out);
/** Index of the first range that ends behind `at`; n: there is none. */
size_t tnd_spans_find(const struct tnd_spans *spans, uint64_t at);
/** Whether all of these bytes are in the set. */
bool tnd_spans_contain(const struct tnd_spans *spans, uint64_t begin, uint64_t end);
uint64_t tnd_spans_bytes(const struct tnd_spans *spans);
/** The set is empty then. */
void tnd_spans_fini(struct tnd_spans *spans);

#endif
