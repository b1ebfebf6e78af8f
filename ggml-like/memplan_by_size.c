/* SPDX-License-Identifier: MIT
 * Memory plan, largest records first: each goes into the smallest gap between the placed records
 * that live at the same time (greedy by size, Pisarchyk and Lee 2020). Close to the lower bound,
 * but quadratic in bad cases, so it has a budget proportional to the number of records. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "ggml-like/memplan_internal.h"

#define NONE              (-1)
#define SHORT_STEPS       16  /* longer lives are kept in one list instead of by first step */
#define BUDGET_PER_RECORD 256 /* comparisons with other records */

struct placed {
    size_t offset;
    size_t end;
};

struct placing {
    const struct tnd_usage *usages;
    size_t *offsets; /* by record */
    int *order;      /* records by size */
    int *started;    /* by first step: list (by `next`) of placed short records */
    int *next;       /* by record */
    int *long_lived; /* long records placed */
    int n_long;
    struct placed *met; /* placed records that live at the same time as the current one */
    int n_met;
    int64_t budget;
};

static struct placing *placing_new(const struct tnd_usage *usages, int n_usages, int n_steps)
{
    const size_t n = (size_t)n_usages;
    const size_t ints = 3 * n + (size_t)n_steps;
    struct placing *placing = tnd_alloc(sizeof(*placing) + n * sizeof(struct placed) +
                                        n * sizeof(size_t) + ints * sizeof(int));
    if (placing == NULL) {
        return NULL;
    }
    placing->usages = usages;
    placing->met = (struct placed *)(placing + 1);
    placing->offsets = (size_t *)(placing->met + n);
    placing->order = (int *)(placing->offsets + n);
    placing->next = placing->order + n;
    placing->long_lived = placing->next + n;
    placing->started = placing->long_lived + n;
    placing->n_long = 0;
    placing->budget = BUDGET_PER_RECORD * (int64_t)n_usages;
    memset(placing->started, 0xff, (size_t)n_steps * sizeof(int)); /* NONE */
    return placing;
}

struct sort_key {
    size_t bytes;
    int record;
};

static int larger_first(const void *a, const void *b)
{
    const struct sort_key *x = a;
    const struct sort_key *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->record < y->record ? -1 : x->record > y->record;
}

/* Fills `order`. `met`, as large as the keys, serves as scratch memory. */
static void sort_by_size(struct placing *placing, int n_usages)
{
    _Static_assert(sizeof(struct sort_key) <= sizeof(struct placed), "keys fit into met");
    struct sort_key *keys = (struct sort_key *)(void *)placing->met;
    for (int i = 0; i < n_usages; i++) {
        keys[i] = (struct sort_key){placing->usages[i].bytes, i};
    }
    qsort(keys, (size_t)n_usages, sizeof(*keys), larger_first);
    for (int i = 0; i < n_usages; i++) {
        placing->order[i] = keys[i].record;
    }
}

/* Adds a placed record to `met`, which is sorted by offset. */
static void meet(struct placing *placing, int record)
{
    const size_t offset = placing->offsets[record];
    int i = placing->n_met++;
    for (; i > 0 && placing->met[i - 1].offset > offset; i--) {
        placing->met[i] = placing->met[i - 1];
        placing->budget--;
    }
    TND_ASSERT(i == 0 || placing->met[i - 1].offset <= offset);
    placing->met[i] = (struct placed){offset, offset + placing->usages[record].bytes};
}

static void meet_all(struct placing *placing, const struct tnd_usage *usage)
{
    placing->n_met = 0;
    for (int i = 0; i < placing->n_long && placing->budget > 0; i++) {
        const struct tnd_usage *other = &placing->usages[placing->long_lived[i]];
        placing->budget--;
        if (other->first <= usage->last && other->last >= usage->first) {
            meet(placing, placing->long_lived[i]);
        }
    }
    const int begin = usage->first > SHORT_STEPS ? usage->first - SHORT_STEPS : 0;
    for (int step = begin; step <= usage->last && placing->budget > 0; step++) {
        placing->budget--;
        for (int i = placing->started[step]; i != NONE; i = placing->next[i]) {
            placing->budget--;
            if (placing->usages[i].last >= usage->first) {
                meet(placing, i);
            }
        }
    }
}

/* Offset of the smallest gap of at least `bytes`; behind all records if there is none. */
static size_t smallest_gap(const struct placing *placing, size_t bytes)
{
    size_t reached = 0; /* end of what is taken or was looked at */
    size_t best = SIZE_MAX;
    size_t best_gap = SIZE_MAX;
    for (int i = 0; i < placing->n_met; i++) {
        const struct placed *placed = &placing->met[i];
        if (placed->offset > reached) {
            const size_t gap = placed->offset - reached;
            if (gap >= bytes && gap < best_gap) {
                best = reached;
                best_gap = gap;
            }
        }
        TND_ASSERT(placed->end > placed->offset);
        reached = placed->end > reached ? placed->end : reached;
    }
    return best != SIZE_MAX ? best : reached;
}

static void keep(struct placing *placing, int record)
{
    const struct tnd_usage *usage = &placing->usages[record];
    if (usage->last - usage->first > SHORT_STEPS) {
        placing->long_lived[placing->n_long++] = record;
    } else {
        placing->next[record] = placing->started[usage->first];
        placing->started[usage->first] = record;
    }
}

size_t tnd_memplan_by_size(struct tnd_usage *usages, int n_usages, int n_steps, size_t total)
{
    struct placing *placing = placing_new(usages, n_usages, n_steps);
    if (placing == NULL) {
        return total; /* the existing plan is good enough */
    }
    sort_by_size(placing, n_usages);
    size_t sized_total = 0;
    for (int i = 0; i < n_usages && sized_total < total; i++) {
        const int record = placing->order[i];
        meet_all(placing, &usages[record]);
        if (placing->budget <= 0) {
            sized_total = total;
            break;
        }
        const size_t offset = smallest_gap(placing, usages[record].bytes);
        const size_t end = offset + usages[record].bytes;
        placing->offsets[record] = offset;
        sized_total = end > sized_total ? end : sized_total;
        keep(placing, record);
    }
    if (sized_total < total) {
        for (int i = 0; i < n_usages; i++) {
            usages[i].offset = placing->offsets[i];
        }
        total = sized_total;
    }
    tnd_free(placing);
    return total;
}
