/* SPDX-License-Identifier: MIT
 * A sorted list of weights. */
#include "tune/placement.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

struct tnd_placement {
    int n;
    struct tnd_placed *list;     /* by address */
    struct tnd_expert_use *uses; /* one per entry of the list */
    float *shares;               /* shares of all entries, one after the other */
};

static int compare(const void *a, const void *b)
{
    const struct tnd_placed *x = a;
    const struct tnd_placed *y = b;
    if (x->data != y->data) {
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    }
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Copies the shares of all entries and makes the entries point to the copies. False: out of memory.
 */
static bool copy_shares(struct tnd_placement *placement)
{
    size_t n = 0;
    for (int i = 0; i < placement->n; i++) {
        n += placement->list[i].shares != NULL ? (size_t)placement->list[i].n_shares : 0;
    }
    placement->uses = tnd_calloc((size_t)placement->n + 1, sizeof(placement->uses[0]));
    placement->shares = tnd_alloc(n * sizeof(placement->shares[0]) + 1);
    if (placement->uses == NULL || placement->shares == NULL) {
        return false;
    }
    float *to = placement->shares;
    for (int i = 0; i < placement->n; i++) {
        struct tnd_placed *entry = &placement->list[i];
        struct tnd_expert_use *use = &placement->uses[i];
        if (entry->shares == NULL) {
            continue;
        }
        memcpy(to, entry->shares, (size_t)entry->n_shares * sizeof(to[0]));
        entry->shares = to;
        *use = (struct tnd_expert_use){.shares = to, .n = entry->n_shares};
        for (int64_t e = 0; e < entry->n_shares; e++) {
            use->sum += (double)to[e];
        }
        to += entry->n_shares;
    }
    return true;
}

enum tandem_status tnd_placement_new(const struct tnd_placed *list, int n,
                                     struct tnd_placement **out_placement,
                                     struct tandem_error *error)
{
    TND_ASSERT(n >= 0);
    struct tnd_placement *placement = tnd_calloc(1, sizeof(*placement));
    struct tnd_placed *copy = tnd_alloc((size_t)n * sizeof(copy[0]) + 1);
    if (placement == NULL || copy == NULL) {
        tnd_free(placement);
        tnd_free(copy);
        return tnd_error_set(error, TANDEM_E_MEMORY, "placement", n, 0,
                             "placement: out of memory for %d weights", n);
    }
    if (n > 0) {
        memcpy(copy, list, (size_t)n * sizeof(copy[0]));
    }
    qsort(copy, (size_t)n, sizeof(copy[0]), compare);
    placement->n = n;
    placement->list = copy;
    if (!copy_shares(placement)) {
        tnd_placement_free(placement);
        return tnd_error_set(error, TANDEM_E_MEMORY, "placement", n, 0,
                             "placement: out of memory for the use of experts");
    }
    *out_placement = placement;
    return TANDEM_OK;
}

void tnd_placement_free(struct tnd_placement *placement)
{
    if (placement != NULL) {
        tnd_free(placement->list);
        tnd_free(placement->uses);
        tnd_free(placement->shares);
        tnd_free(placement);
    }
}

/* Index of an entry; -1: there is none. */
static int find(const struct tnd_placement *placement, const void *data)
{
    int low = 0;
    int high = placement != NULL ? placement->n : 0;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if ((uintptr_t)placement->list[middle].data < (uintptr_t)data) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_known = placement != NULL && low < placement->n && placement->list[low].data == data;
    return is_known ? low : -1;
}

int tnd_placement_slot(const struct tnd_placement *placement, const void *data)
{
    int i = find(placement, data);
    return i >= 0 ? placement->list[i].slot : -1;
}

struct tnd_expert_use *tnd_placement_use(const struct tnd_placement *placement, const void *data)
{
    int i = find(placement, data);
    return i >= 0 && placement->list[i].shares != NULL ? &placement->uses[i] : NULL;
}

uint32_t tnd_placement_refused(const struct tnd_placement *placement, const void *data,
                               uint32_t devices)
{
    int slot = tnd_placement_slot(placement, data);
    return slot < 0 ? 0 : devices & ~(UINT32_C(1) << slot);
}
