/* SPDX-License-Identifier: MIT
 * Mirrors of all runs: an array ordered by slot and address, so that what overlaps is found by a
 * binary search. Backends are called under the lock: a mirror is there as soon as it is listed. */
#include "sched/mirrors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_status.h"

struct mirror {
    int slot;
    int n_runs;      /* that hold it */
    bool is_state;   /* stays when nobody holds it */
    uint64_t serial; /* of the state's context */
    char *begin;
    size_t bytes;
    struct tnd_span stale; /* of a state that nobody holds */
};

struct tnd_mirrors {
    const struct tnd_registry *registry;
    pthread_mutex_t lock; /* guards everything below */
    struct mirror *list;
    size_t n, capacity;
    _Atomic uint32_t state_slots; /* written under the lock */
};

enum tandem_status tnd_mirrors_new(const struct tnd_registry *registry,
                                   struct tnd_mirrors **out_mirrors, struct tandem_error *error)
{
    struct tnd_mirrors *mirrors = tnd_calloc(1, sizeof(*mirrors));
    if (mirrors == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0, "exec: out of memory");
    }
    mirrors->registry = registry;
    pthread_mutex_init(&mirrors->lock, NULL);
    *out_mirrors = mirrors;
    return TANDEM_OK;
}

/* ---- the list; all under the lock ---- */

/* First mirror of the slot that ends behind `address`, or where it would stand. */
static size_t find(const struct tnd_mirrors *mirrors, int slot, const char *address)
{
    size_t low = 0;
    size_t high = mirrors->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct mirror *mirror = &mirrors->list[middle];
        bool is_before = mirror->slot < slot ||
                         (mirror->slot == slot && mirror->begin + mirror->bytes <= address);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return low;
}

/* The mirror at i if it begins in front of `end`. */
static struct mirror *overlapping(const struct tnd_mirrors *mirrors, size_t i, int slot,
                                  const char *end)
{
    struct mirror *mirror = i < mirrors->n ? &mirrors->list[i] : NULL;
    return mirror != NULL && mirror->slot == slot && mirror->begin < end ? mirror : NULL;
}

static struct mirror *find_range(const struct tnd_mirrors *mirrors, int slot, const char *begin,
                                 size_t bytes)
{
    struct mirror *mirror = overlapping(mirrors, find(mirrors, slot, begin), slot, begin + bytes);
    return mirror != NULL && mirror->begin == begin && mirror->bytes == bytes ? mirror : NULL;
}

static bool is_state_of(const struct mirror *mirror, const struct tandem_tensor *root)
{
    return mirror->is_state && mirror->serial == tnd_context_serial(root->context);
}

static void find_state_slots(struct tnd_mirrors *mirrors)
{
    uint32_t slots = 0;
    for (size_t i = 0; i < mirrors->n; i++) {
        slots |= mirrors->list[i].is_state ? UINT32_C(1) << mirrors->list[i].slot : 0;
    }
    atomic_store_explicit(&mirrors->state_slots, slots, memory_order_release);
}

static void drop(struct tnd_mirrors *mirrors, struct mirror *mirror)
{
    size_t i = (size_t)(mirror - mirrors->list);
    bool is_state = mirror->is_state;
    tnd_backend_unmap(tnd_registry_backend(mirrors->registry, mirror->slot), mirror->begin);
    mirrors->n--;
    memmove(mirror, mirror + 1, (mirrors->n - i) * sizeof(*mirror));
    if (is_state) {
        find_state_slots(mirrors);
    }
}

static bool reserve(struct tnd_mirrors *mirrors)
{
    if (mirrors->n < mirrors->capacity) {
        return true;
    }
    size_t capacity = mirrors->capacity == 0 ? 64 : 2 * mirrors->capacity;
    struct mirror *list =
        tnd_realloc(mirrors->list, mirrors->n * sizeof(*list), capacity * sizeof(*list));
    if (list == NULL) {
        return false;
    }
    mirrors->list = list;
    mirrors->capacity = capacity;
    return true;
}

/* ---- for runs ---- */

uint32_t tnd_mirrors_state_slots(const struct tnd_mirrors *mirrors)
{
    return atomic_load_explicit(&mirrors->state_slots, memory_order_acquire);
}

bool tnd_mirrors_hold_state(struct tnd_mirrors *mirrors, int slot, const struct tandem_tensor *root,
                            struct tnd_span *out_stale)
{
    pthread_mutex_lock(&mirrors->lock);
    struct mirror *mirror = find_range(mirrors, slot, root->data, tandem_tensor_bytes(root));
    bool found = mirror != NULL && is_state_of(mirror, root);
    if (found) {
        mirror->n_runs++;
        *out_stale = mirror->stale;
    }
    pthread_mutex_unlock(&mirrors->lock);
    return found;
}

/* What is in the way and held by nobody goes; BUSY for the rest. */
static enum tandem_status make_way(struct tnd_mirrors *mirrors, int slot, const char *begin,
                                   size_t bytes, struct tandem_error *error)
{
    for (;;) {
        struct mirror *mirror =
            overlapping(mirrors, find(mirrors, slot, begin), slot, begin + bytes);
        if (mirror == NULL) {
            return TANDEM_OK;
        }
        if (mirror->n_runs > 0) {
            return tnd_error_set(error, TANDEM_E_BUSY, tnd_registry_name(mirrors->registry, slot),
                                 (int64_t)bytes, (int64_t)mirror->bytes,
                                 "%s: another computation uses memory that overlaps with a leaf",
                                 tnd_registry_name(mirrors->registry, slot));
        }
        drop(mirrors, mirror);
    }
}

static enum tandem_status map(struct tnd_mirrors *mirrors, int slot, char *begin, size_t bytes,
                              const struct tandem_tensor *state, struct tandem_error *error)
{
    TND_TRY(make_way(mirrors, slot, begin, bytes, error));
    if (!reserve(mirrors)) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0,
                             "exec: out of memory for the list of mirrors");
    }
    TND_TRY(tnd_backend_map(tnd_registry_backend(mirrors->registry, slot), begin, bytes, error));
    size_t i = find(mirrors, slot, begin);
    struct mirror *mirror = &mirrors->list[i];
    memmove(mirror + 1, mirror, (mirrors->n - i) * sizeof(*mirror));
    mirrors->n++;
    *mirror = (struct mirror){.slot = slot,
                              .n_runs = 1,
                              .is_state = state != NULL,
                              .serial = state != NULL ? tnd_context_serial(state->context) : 0,
                              .begin = begin,
                              .bytes = bytes,
                              .stale = {0, bytes}};
    if (state != NULL) {
        find_state_slots(mirrors);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_mirrors_hold(struct tnd_mirrors *mirrors, int slot, void *begin,
                                    size_t bytes, const struct tandem_tensor *state,
                                    struct tandem_error *error)
{
    pthread_mutex_lock(&mirrors->lock);
    enum tandem_status status = TANDEM_OK;
    struct mirror *mirror = find_range(mirrors, slot, begin, bytes);
    bool is_same =
        mirror != NULL && (state != NULL ? is_state_of(mirror, state) : !mirror->is_state);
    if (is_same) {
        mirror->n_runs++;
    } else {
        status = map(mirrors, slot, begin, bytes, state, error);
    }
    pthread_mutex_unlock(&mirrors->lock);
    return status;
}

void tnd_mirrors_release(struct tnd_mirrors *mirrors, int slot, const void *begin,
                         struct tnd_span stale)
{
    pthread_mutex_lock(&mirrors->lock);
    struct mirror *mirror =
        overlapping(mirrors, find(mirrors, slot, begin), slot, (const char *)begin + 1);
    if (mirror != NULL) {
        mirror->n_runs--;
        mirror->stale = stale;
        if (mirror->n_runs == 0 && !mirror->is_state) {
            drop(mirrors, mirror);
        }
    }
    pthread_mutex_unlock(&mirrors->lock);
}

/* ---- from outside of runs ---- */

void tnd_mirrors_spoil(struct tnd_mirrors *mirrors, const struct tandem_tensor *root)
{
    const char *begin = root->data;
    const char *end = begin + tandem_tensor_bytes(root);
    pthread_mutex_lock(&mirrors->lock);
    for (size_t i = 0; i < mirrors->n; i++) {
        struct mirror *mirror = &mirrors->list[i];
        if (mirror->begin < end && begin < mirror->begin + mirror->bytes) {
            mirror->stale = (struct tnd_span){0, mirror->bytes};
        }
    }
    pthread_mutex_unlock(&mirrors->lock);
}

static void drop_where(struct tnd_mirrors *mirrors, int slot, const char *begin, const char *end)
{
    pthread_mutex_lock(&mirrors->lock);
    for (size_t i = mirrors->n; i-- > 0;) {
        struct mirror *mirror = &mirrors->list[i];
        bool is_meant = slot > 0 ? mirror->slot == slot
                                 : mirror->begin < end && begin < mirror->begin + mirror->bytes;
        if (is_meant && mirror->n_runs == 0) {
            drop(mirrors, mirror);
        }
    }
    pthread_mutex_unlock(&mirrors->lock);
}

void tnd_mirrors_forget(struct tnd_mirrors *mirrors, const struct tandem_tensor *root)
{
    const char *begin = root->data;
    drop_where(mirrors, 0, begin, begin + tandem_tensor_bytes(root));
}

void tnd_mirrors_drop_slot(struct tnd_mirrors *mirrors, int slot)
{
    drop_where(mirrors, slot, NULL, NULL);
}

int tnd_mirrors_count(struct tnd_mirrors *mirrors)
{
    pthread_mutex_lock(&mirrors->lock);
    int n = (int)mirrors->n;
    pthread_mutex_unlock(&mirrors->lock);
    return n;
}

void tnd_mirrors_free(struct tnd_mirrors *mirrors)
{
    if (mirrors == NULL) {
        return;
    }
    for (size_t i = 0; i < mirrors->n; i++) {
        const struct mirror *mirror = &mirrors->list[i];
        tnd_backend_unmap(tnd_registry_backend(mirrors->registry, mirror->slot), mirror->begin);
    }
    pthread_mutex_destroy(&mirrors->lock);
    tnd_free(mirrors->list);
    tnd_free(mirrors);
}
