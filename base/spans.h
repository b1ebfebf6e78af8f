/* SPDX-License-Identifier: MIT
 * Sets of byte ranges of a file: ascending ranges that neither touch nor overlap. */
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
    bool failed; /* out of memory: the set is incomplete */
};
#define TND_SPANS_INIT                                                                             \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

/** Appends a range, in any order; call tnd_spans_tidy to sort and merge them. */
void tnd_spans_add(struct tnd_spans *spans, uint64_t begin, uint64_t end);
void tnd_spans_tidy(struct tnd_spans *spans);
/** out = a without b. `out` must be empty. */
void tnd_spans_subtract(const struct tnd_spans *a, const struct tnd_spans *b,
                        struct tnd_spans *out);
/** Index of the first range that ends after `at`; n: there is none. */
size_t tnd_spans_find(const struct tnd_spans *spans, uint64_t at);
/** Whether all of these bytes are in the set. */
bool tnd_spans_contain(const struct tnd_spans *spans, uint64_t begin, uint64_t end);
uint64_t tnd_spans_bytes(const struct tnd_spans *spans);
/** Frees the ranges; the set is empty afterwards. */
void tnd_spans_fini(struct tnd_spans *spans);

#endif
