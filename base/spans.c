/* SPDX-License-Identifier: MIT
 * Sets of byte ranges of a file. */
#include "base/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/vector.h"

void tnd_spans_add(struct tnd_spans *spans, uint64_t begin, uint64_t end)
{
    struct tnd_file_span *last = spans->n > 0 ? &spans->list[spans->n - 1] : NULL;
    if (begin >= end) {
        return;
    }
    if (last != NULL && begin >= last->begin && begin <= last->end) {
        last->end = end > last->end ? end : last->end;
    } else if (tnd_grow(&spans->list, spans->n, &spans->capacity, sizeof(spans->list[0]))) {
        spans->list[spans->n++] = (struct tnd_file_span){begin, end};
    } else {
        spans->failed = true;
    }
}

static int compare(const void *a, const void *b)
{
    const struct tnd_file_span *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

void tnd_spans_tidy(struct tnd_spans *spans)
{
    const size_t n = spans->n;
    if (n < 2) {
        return;
    }
    qsort(spans->list, n, sizeof(spans->list[0]), compare);
    spans->n = 0;
    for (size_t i = 0; i < n; i++) { /* in place: adds at most as many as were read */
        tnd_spans_add(spans, spans->list[i].begin, spans->list[i].end);
    }
}

size_t tnd_spans_find(const struct tnd_spans *spans, uint64_t at)
{
    size_t low = 0, high = spans->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (spans->list[middle].end > at) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

void tnd_spans_subtract(const struct tnd_spans *a, const struct tnd_spans *b, struct tnd_spans *out)
{
    for (size_t i = 0; i < a->n; i++) {
        uint64_t at = a->list[i].begin;
        const uint64_t end = a->list[i].end;
        for (size_t j = tnd_spans_find(b, at); j < b->n && b->list[j].begin < end; j++) {
            tnd_spans_add(out, at, b->list[j].begin);
            at = b->list[j].end;
        }
        tnd_spans_add(out, at, end);
    }
    out->failed = out->failed || a->failed || b->failed;
}

bool tnd_spans_contain(const struct tnd_spans *spans, uint64_t begin, uint64_t end)
{
    const size_t i = tnd_spans_find(spans, begin);
    return begin >= end ||
           (i < spans->n && spans->list[i].begin <= begin && spans->list[i].end >= end);
}

uint64_t tnd_spans_bytes(const struct tnd_spans *spans)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < spans->n; i++) {
        bytes += spans->list[i].end - spans->list[i].begin;
    }
    return bytes;
}

void tnd_spans_fini(struct tnd_spans *spans)
{
    tnd_free(spans->list);
    memset(spans, 0, sizeof(*spans));
}
