/* SPDX-License-Identifier: MIT
 * Mirrors of all runs of an executor, in lists: inputs and states, prepared weights, and columns of
 * weights. Lists are walked only when a mirror is made or dropped; the mirror of a root is found in
 * its buffer. Backends are called under the lock, so everything listed exists. */
#include "sched/mirrors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

struct tnd_mirrors {
    const struct tnd_registry *registry;
    uint64_t first_owner;      /* of handles in buffers; the slot is added */
    pthread_mutex_t lock;      /* guards everything below */
    struct tnd_mirror *mapped; /* inputs and states */
    struct tnd_mirror *weights;
    struct tnd_mirror *columns;   /* of slot 0 */
    uint64_t round;               /* of refusals; from 1 */
    uint64_t n_releases;          /* of contexts, when orphans were last dropped from `weights` */
    _Atomic uint32_t state_slots; /* written under the lock */
    atomic_bool has_refused;      /* written under the lock */
    atomic_bool has_lost;         /* never cleared */
    atomic_int n_debts;           /* mirrors with a debt; written under the lock */
};

enum tandem_status tnd_mirrors_new(const struct tnd_registry *registry,
                                   struct tnd_mirrors **out_mirrors, struct tandem_error *error)
{
    struct tnd_mirrors *mirrors = tnd_calloc(1, sizeof(*mirrors));
    if (mirrors == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0, "exec: out of memory");
    }
    mirrors->registry = registry;
    mirrors->first_owner = tnd_buffer_owners(TND_MAX_SLOTS);
    mirrors->round = 1;
    pthread_mutex_init(&mirrors->lock, NULL);
    *out_mirrors = mirrors;
    return TANDEM_OK;
}

/* ---- the lists; all under the lock ---- */

static struct tnd_mirror **list_of(struct tnd_mirrors *mirrors, enum tnd_mirror_kind kind)
{
    return kind == TND_MIRROR_COLUMNS  ? &mirrors->columns
           : kind == TND_MIRROR_WEIGHT ? &mirrors->weights
                                       : &mirrors->mapped;
}

static bool overlaps(const struct tnd_mirror *mirror, const char *begin, size_t bytes)
{
    return mirror->begin < begin + bytes && begin < mirror->begin + mirror->bytes;
}

static bool is_range(const struct tnd_mirror *mirror, const char *begin, size_t bytes)
{
    return mirror->begin == begin && mirror->bytes == bytes;
}

/* Finds the mirror of a root, or of a range of a weight; several ranges of one weight may begin at
 * the same byte. Called for each product, so sizes in bytes are not computed. */
static struct tnd_mirror *find_at(const struct tnd_mirrors *mirrors, int slot,
                                  const struct tandem_tensor *root)
{
    struct tnd_handle *handle = NULL;
    struct tnd_mirror *mirror;
    TND_ASSERT(slot >= 0 && slot < TND_MAX_SLOTS && root->buffer != NULL);
    do {
        mirror = tnd_buffer_next(root->buffer, mirrors->first_owner + (uint64_t)slot, &handle);
    } while (mirror != NULL && (mirror->begin != root->data || mirror->ne[0] != root->ne[0] ||
                                mirror->ne[1] != root->ne[1]));
    return mirror;
}

static void find_state_slots(struct tnd_mirrors *mirrors)
{
    uint32_t slots = 0;
    for (const struct tnd_mirror *mirror = mirrors->mapped; mirror != NULL; mirror = mirror->next) {
        slots |= mirror->kind == TND_MIRROR_STATE ? UINT32_C(1) << mirror->slot : 0;
    }
    atomic_store_explicit(&mirrors->state_slots, slots, memory_order_release);
}

static bool is_owing(const struct tnd_mirror *mirror)
{
    return mirror->debt.begin < mirror->debt.end;
}

static void set_debt(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror, struct tnd_span debt)
{
    int before = is_owing(mirror);
    mirror->debt = debt;
    mirror->n_owed = is_owing(mirror) ? mirror->n_owed + 1 : 0;
    atomic_fetch_add_explicit(&mirrors->n_debts, is_owing(mirror) - before, memory_order_relaxed);
}

/* Which mirrors of a list are selected. */
struct selection {
    enum tnd_mirror_kind kind;
    int slot;          /* 0: any */
    const char *begin; /* NULL: all bytes */
    size_t bytes;
    uint64_t serial;  /* of the context; 0: any */
    bool is_not_that; /* select every context but `serial` */
    bool is_gone;     /* only of contexts that are gone */
};

static int drop_idle(struct tnd_mirrors *mirrors, const struct selection *of);

/* Unlinks the mirror at `place` and frees it. */
static void drop(struct tnd_mirrors *mirrors, struct tnd_mirror **place)
{
    struct tnd_mirror *mirror = *place;
    tandem_backend *backend = tnd_registry_backend(mirrors->registry, mirror->slot);
    TND_ASSERT(mirror->n_runs == 0);
    *place = mirror->next;
    set_debt(mirrors, mirror, (struct tnd_span){0, 0});
    tnd_buffer_detach(mirror->at);
    if (mirror->kind == TND_MIRROR_WEIGHT) {
        tnd_backend_forget(backend, mirror->handle);
    } else if (mirror->kind == TND_MIRROR_COLUMNS) {
        const struct selection prepared = {.kind = TND_MIRROR_WEIGHT,
                                           .begin = mirror->handle,
                                           .bytes = mirror->bytes,
                                           .serial = mirror->serial};
        (void)drop_idle(mirrors, &prepared);
        tnd_free(mirror->handle);
    } else {
        tnd_backend_unmap(backend, mirror->handle);
    }
    if (mirror->kind == TND_MIRROR_STATE) {
        find_state_slots(mirrors);
    }
    tnd_free(mirror);
}

/* Frees selected mirrors that no run holds; returns how many. */
static int drop_idle(struct tnd_mirrors *mirrors, const struct selection *of)
{
    int n_dropped = 0;
    for (struct tnd_mirror **place = list_of(mirrors, of->kind); *place != NULL;) {
        const struct tnd_mirror *mirror = *place;
        bool is_meant = mirror->n_runs == 0 && (of->slot == 0 || mirror->slot == of->slot) &&
                        (of->serial == 0 || (mirror->serial == of->serial) != of->is_not_that) &&
                        (!of->is_gone || tnd_handle_is_alone(mirror->at)) &&
                        (of->begin == NULL || overlaps(mirror, of->begin, of->bytes));
        if (is_meant) {
            drop(mirrors, place);
            n_dropped++;
        } else {
            place = &(*place)->next;
        }
    }
    return n_dropped;
}

static enum tandem_status out_of_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0,
                         "exec: out of memory for the list of mirrors");
}

/* Adds a mirror held by one run, without memory of the backend yet, to the buffer of `root`; NULL:
 * to none. */
static enum tandem_status add(struct tnd_mirrors *mirrors, int slot, enum tnd_mirror_kind kind,
                              const char *begin, size_t bytes, const struct tandem_tensor *root,
                              struct tandem_error *error)
{
    struct tnd_mirror **list = list_of(mirrors, kind);
    struct tnd_mirror *mirror = tnd_calloc(1, sizeof(*mirror));
    if (mirror == NULL) {
        return out_of_memory(error);
    }
    *mirror = (struct tnd_mirror){.begin = begin,
                                  .bytes = bytes,
                                  .kind = (uint8_t)kind,
                                  .slot = (uint8_t)slot,
                                  .n_runs = 1,
                                  .serial = root != NULL ? tnd_context_serial(root->context) : 0,
                                  .stale = {0, bytes},
                                  .next = *list};
    if (root != NULL) {
        mirror->buffer = root->buffer;
        mirror->ne[0] = root->ne[0];
        mirror->ne[1] = root->ne[1];
        mirror->at = tnd_buffer_attach(root->context, root->buffer,
                                       mirrors->first_owner + (uint64_t)slot, mirror);
        if (mirror->at == NULL) {
            tnd_free(mirror);
            return out_of_memory(error);
        }
    }
    *list = mirror;
    return TANDEM_OK;
}

/* ---- inputs and states ---- */

uint32_t tnd_mirrors_state_slots(const struct tnd_mirrors *mirrors)
{
    return atomic_load_explicit(&mirrors->state_slots, memory_order_acquire);
}

struct tnd_mirror *tnd_mirrors_hold_state(struct tnd_mirrors *mirrors, int slot,
                                          const struct tandem_tensor *root,
                                          struct tnd_span *out_stale, struct tnd_span *out_debt,
                                          int *out_n_owed)
{
    pthread_mutex_lock(&mirrors->lock);
    struct tnd_mirror *mirror = find_at(mirrors, slot, root);
    mirror = mirror != NULL && mirror->kind == TND_MIRROR_STATE ? mirror : NULL;
    if (mirror != NULL) {
        TND_ASSERT(is_range(mirror, root->data, tandem_tensor_bytes(root)));
        mirror->n_runs++;
        *out_stale = mirror->stale;
        *out_debt = mirror->debt;
        *out_n_owed = mirror->n_owed;
    }
    pthread_mutex_unlock(&mirrors->lock);
    return mirror;
}

bool tnd_mirrors_has_state(struct tnd_mirrors *mirrors, const void *begin, size_t bytes)
{
    bool any = false;
    pthread_mutex_lock(&mirrors->lock);
    for (const struct tnd_mirror *mirror = mirrors->mapped; mirror != NULL && !any;
         mirror = mirror->next) {
        any = mirror->kind == TND_MIRROR_STATE && overlaps(mirror, begin, bytes);
    }
    pthread_mutex_unlock(&mirrors->lock);
    return any;
}

/* Drops mirrors that overlap; BUSY if a run holds one of them. */
static enum tandem_status give_up_one(struct tnd_mirrors *mirrors, int slot, const char *begin,
                                      size_t bytes, struct tandem_error *error)
{
    const char *name = tnd_registry_name(mirrors->registry, slot);
    for (struct tnd_mirror **place = &mirrors->mapped; *place != NULL;) {
        struct tnd_mirror *mirror = *place;
        if (mirror->slot != slot || !overlaps(mirror, begin, bytes)) {
            place = &mirror->next;
        } else if (mirror->n_runs == 0 && !is_owing(mirror)) {
            drop(mirrors, place);
        } else {
            return tnd_error_set(error, TANDEM_E_BUSY, name, (int64_t)bytes, (int64_t)mirror->bytes,
                                 "%s: another computation uses memory that overlaps with a leaf",
                                 name);
        }
    }
    return TANDEM_OK;
}

static enum tandem_status map(struct tnd_mirrors *mirrors, int slot, const char *begin,
                              size_t bytes, const struct tandem_tensor *state,
                              struct tandem_error *error)
{
    tandem_backend *backend = tnd_registry_backend(mirrors->registry, slot);
    void *handle = NULL;
    TND_TRY(give_up_one(mirrors, slot, begin, bytes, error));
    TND_TRY(tnd_backend_map(backend, bytes, &handle, error));
    enum tandem_status status =
        add(mirrors, slot, state != NULL ? TND_MIRROR_STATE : TND_MIRROR_INPUT, begin, bytes, state,
            error);
    if (status != TANDEM_OK) {
        tnd_backend_unmap(backend, handle);
        return status;
    }
    mirrors->mapped->handle = handle;
    if (state != NULL) {
        find_state_slots(mirrors);
    }
    return TANDEM_OK;
}

/* The mirror of exactly this range that a run may share. */
static struct tnd_mirror *find_same(const struct tnd_mirrors *mirrors, int slot, const char *begin,
                                    size_t bytes, const struct tandem_tensor *state)
{
    if (state != NULL) {
        struct tnd_mirror *mirror = find_at(mirrors, slot, state);
        return mirror != NULL && mirror->kind == TND_MIRROR_STATE ? mirror : NULL;
    }
    struct tnd_mirror *mirror = mirrors->mapped;
    while (mirror != NULL && (mirror->slot != slot || mirror->kind != TND_MIRROR_INPUT ||
                              !is_range(mirror, begin, bytes))) {
        mirror = mirror->next;
    }
    return mirror;
}

enum tandem_status tnd_mirrors_hold(struct tnd_mirrors *mirrors, int slot, const void *begin,
                                    size_t bytes, const struct tandem_tensor *state,
                                    struct tnd_mirror **out_mirror, struct tandem_error *error)
{
    enum tandem_status status = TANDEM_OK;
    pthread_mutex_lock(&mirrors->lock);
    struct tnd_mirror *mirror = find_same(mirrors, slot, begin, bytes, state);
    if (mirror != NULL) {
        mirror->n_runs++;
    } else {
        status = map(mirrors, slot, begin, bytes, state, error);
        mirror = mirrors->mapped;
    }
    if (status == TANDEM_OK) {
        *out_mirror = mirror;
    }
    pthread_mutex_unlock(&mirrors->lock);
    return status;
}

void tnd_mirrors_release(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror,
                         struct tnd_span stale, struct tnd_span debt)
{
    pthread_mutex_lock(&mirrors->lock);
    TND_ASSERT(mirror->n_runs > 0);
    mirror->n_runs--;
    mirror->stale = stale;
    set_debt(mirrors, mirror, debt);
    if (mirror->n_runs == 0 && mirror->kind == TND_MIRROR_INPUT) {
        struct tnd_mirror **place = &mirrors->mapped;
        while (*place != mirror) {
            place = &(*place)->next;
        }
        drop(mirrors, place);
    }
    pthread_mutex_unlock(&mirrors->lock);
}

/* ---- weights ---- */

/* Frees what was prepared of weights whose context is gone: it cannot be found any more. */
static void drop_orphans(struct tnd_mirrors *mirrors)
{
    const uint64_t n_releases = tnd_buffer_releases();
    if (n_releases == mirrors->n_releases) {
        return;
    }
    mirrors->n_releases = n_releases;
    for (struct tnd_mirror **place = &mirrors->weights; *place != NULL;) {
        if ((*place)->n_runs == 0 && tnd_handle_is_alone((*place)->at)) {
            drop(mirrors, place);
        } else {
            place = &(*place)->next;
        }
    }
}

static void note_refusal(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror)
{
    mirror->refused_in = mirrors->round;
    atomic_store_explicit(&mirrors->has_refused, true, memory_order_release);
}

/* On a device with memory of its own: frees weights in the same bytes that no run holds. Those of
 * other contexts, which may be gone, are useless; those of this context are other ranges, or the
 * whole, for other plans: they are freed only when memory runs out. Backends of the host keep one
 * for each context. */
static int drop_overlapping(struct tnd_mirrors *mirrors, int slot,
                            const struct tandem_tensor *weight, bool is_other_context)
{
    const struct selection of = {.kind = TND_MIRROR_WEIGHT,
                                 .slot = slot,
                                 .begin = weight->data,
                                 .bytes = tandem_tensor_bytes(weight),
                                 .serial = tnd_context_serial(weight->context),
                                 .is_not_that = is_other_context};
    return drop_idle(mirrors, &of);
}

/* Drops mirrors whose context is gone. */
static void drop_gone(struct tnd_mirrors *mirrors)
{
    (void)drop_idle(mirrors, &(struct selection){.kind = TND_MIRROR_COLUMNS, .is_gone = true});
    (void)drop_idle(mirrors, &(struct selection){.kind = TND_MIRROR_WEIGHT, .is_gone = true});
}

/* Has the backend prepare a weight for the first time. */
static enum tandem_status make(struct tnd_mirrors *mirrors, int slot,
                               const struct tandem_tensor *weight, struct tnd_mirror *mirror,
                               struct tandem_error *error)
{
    tandem_backend *backend = tnd_registry_backend(mirrors->registry, slot);
    void *handle = NULL;
    enum tandem_status status = tnd_backend_prepare(backend, weight, &handle, error);
    if (status == TANDEM_E_DEVICE_MEMORY && tnd_backend_is_own(backend)) {
        mirror->n_runs++; /* so that it is not dropped itself */
        int n_dropped = drop_overlapping(mirrors, slot, weight, false);
        mirror->n_runs--;
        status = n_dropped > 0 ? tnd_backend_prepare(backend, weight, &handle, error) : status;
    }
    if (status == TANDEM_E_DEVICE_MEMORY && tnd_backend_is_own(backend)) {
        note_refusal(mirrors, mirror);
    }
    if (status == TANDEM_OK) {
        atomic_store_explicit(&mirror->handle, handle, memory_order_release);
        mirror->refused_in = 0;
    }
    return status;
}

static enum tandem_status prepare(struct tnd_mirrors *mirrors, int slot,
                                  const struct tandem_tensor *weight,
                                  struct tnd_mirror **out_mirror, struct tandem_error *error)
{
    struct tnd_mirror *mirror = find_at(mirrors, slot, weight);
    TND_ASSERT(mirror == NULL || mirror->kind == TND_MIRROR_WEIGHT);
    if (mirror == NULL) {
        drop_orphans(mirrors);
        if (tnd_backend_is_own(tnd_registry_backend(mirrors->registry, slot))) {
            drop_gone(mirrors);
            (void)drop_overlapping(mirrors, slot, weight, true);
        }
        TND_TRY(add(mirrors, slot, TND_MIRROR_WEIGHT, weight->data, tandem_tensor_bytes(weight),
                    weight, error));
        mirror = mirrors->weights;
        mirror->n_runs = 0;
    }
    if (mirror->handle == NULL) {
        TND_TRY(make(mirrors, slot, weight, mirror, error));
    }
    mirror->n_runs++;
    *out_mirror = mirror;
    return TANDEM_OK;
}

enum tandem_status tnd_mirrors_prepare(struct tnd_mirrors *mirrors, int slot,
                                       const struct tandem_tensor *weight,
                                       struct tnd_mirror **out_mirror, struct tandem_error *error)
{
    pthread_mutex_lock(&mirrors->lock);
    enum tandem_status status = prepare(mirrors, slot, weight, out_mirror, error);
    pthread_mutex_unlock(&mirrors->lock);
    return status;
}

void *tnd_mirrors_prepared(const struct tnd_mirrors *mirrors, int slot,
                           const struct tandem_tensor *weight)
{
    const struct tnd_mirror *mirror =
        weight->buffer != NULL ? find_at(mirrors, slot, weight) : NULL;
    return mirror != NULL ? atomic_load_explicit(&mirror->handle, memory_order_acquire) : NULL;
}

void *tnd_mirrors_make(struct tnd_mirrors *mirrors, int slot, const struct tandem_tensor *weight)
{
    struct tnd_mirror *mirror = NULL;
    const struct tnd_span none = {0, 0};
    void *prepared = tnd_mirrors_prepared(mirrors, slot, weight);
    if (prepared == NULL && weight->buffer != NULL &&
        tnd_mirrors_prepare(mirrors, slot, weight, &mirror, NULL) == TANDEM_OK) {
        tnd_mirrors_release(mirrors, mirror, none, none);
        prepared = tnd_mirrors_prepared(mirrors, slot, weight);
    }
    return prepared;
}

/* Copies columns to adjacent memory, row by row; the first of them is at range->data. NULL when out
 * of memory. */
static void *copy_columns(struct tnd_mirrors *mirrors, const struct tandem_tensor *weight,
                          const struct tandem_tensor *range)
{
    const size_t bytes = tandem_tensor_bytes(range);
    const char *begin = range->data;
    char *copy = tnd_alloc(bytes);
    drop_gone(mirrors);
    if (copy == NULL ||
        add(mirrors, 0, TND_MIRROR_COLUMNS, begin, bytes, range, NULL) != TANDEM_OK) {
        tnd_free(copy);
        return NULL;
    }
    for (int64_t row = 0; row < range->ne[1]; row++) {
        memcpy(copy + (size_t)row * range->nb[1], begin + (size_t)row * weight->nb[1],
               range->nb[1]);
    }
    mirrors->columns->handle = copy;
    mirrors->columns->n_runs = 0;
    return copy;
}

bool tnd_mirrors_range(struct tnd_mirrors *mirrors, const struct tandem_tensor *weight,
                       enum tandem_split split, int64_t begin, int64_t end, bool copies,
                       struct tandem_tensor *out_range)
{
    bool is_rows = split == TANDEM_SPLIT_ROWS;
    TND_ASSERT(begin >= 0 && begin < end && weight->root->buffer != NULL);
    *out_range = *weight;
    out_range->op = TANDEM_OP_NONE;
    out_range->flags = TND_TENSOR_CONSTANT | TND_TENSOR_READ_ONLY | TND_TENSOR_RANGE;
    out_range->n_src = 0;
    out_range->ne[is_rows ? 1 : 0] = end - begin;
    out_range->nb[1] = tandem_type_row_bytes(weight->type, out_range->ne[0]);
    out_range->nb[2] = out_range->nb[3] = out_range->nb[1] * (size_t)out_range->ne[1];
    out_range->root = out_range;
    out_range->root_offset = 0;
    out_range->buffer = weight->root->buffer;
    out_range->data = (char *)weight->data + (is_rows ? (size_t)begin * weight->nb[1]
                                                      : tandem_type_row_bytes(weight->type, begin));
    if (is_rows || mirrors == NULL) {
        return true;
    }
    pthread_mutex_lock(&mirrors->lock);
    const struct tnd_mirror *mirror = find_at(mirrors, 0, out_range);
    out_range->data = mirror != NULL ? mirror->handle
                      : copies       ? copy_columns(mirrors, weight, out_range)
                                     : NULL;
    pthread_mutex_unlock(&mirrors->lock);
    return out_range->data != NULL;
}

bool tnd_mirrors_has_refused(const struct tnd_mirrors *mirrors)
{
    return atomic_load_explicit(&mirrors->has_refused, memory_order_acquire);
}

bool tnd_mirrors_is_refused(struct tnd_mirrors *mirrors, int slot,
                            const struct tandem_tensor *weight)
{
    if (!tnd_mirrors_has_refused(mirrors)) {
        return false;
    }
    pthread_mutex_lock(&mirrors->lock);
    const struct tnd_mirror *mirror = find_at(mirrors, slot, weight);
    bool is_refused = mirror != NULL && mirror->refused_in == mirrors->round;
    pthread_mutex_unlock(&mirrors->lock);
    return is_refused;
}

/* ---- debts ---- */

bool tnd_mirrors_owes(const struct tnd_mirrors *mirrors)
{
    return atomic_load_explicit(&mirrors->n_debts, memory_order_relaxed) > 0;
}

bool tnd_mirrors_has_lost(const struct tnd_mirrors *mirrors)
{
    return atomic_load_explicit(&mirrors->has_lost, memory_order_acquire);
}

struct tnd_mirror *tnd_mirrors_take_debt(struct tnd_mirrors *mirrors, int slot, const void *begin,
                                         size_t bytes, struct tnd_span *out_debt)
{
    pthread_mutex_lock(&mirrors->lock);
    struct tnd_mirror *mirror = mirrors->mapped;
    while (mirror != NULL &&
           (!is_owing(mirror) || mirror->n_runs > 0 || (slot > 0 && mirror->slot != slot) ||
            (begin != NULL && !overlaps(mirror, begin, bytes)))) {
        mirror = mirror->next;
    }
    if (mirror != NULL) {
        mirror->n_runs++;
        *out_debt = mirror->debt;
    }
    pthread_mutex_unlock(&mirrors->lock);
    return mirror;
}

void tnd_mirrors_end_debt(struct tnd_mirrors *mirrors, struct tnd_mirror *mirror)
{
    pthread_mutex_lock(&mirrors->lock);
    set_debt(mirrors, mirror, (struct tnd_span){0, 0});
    mirror->n_runs--;
    pthread_mutex_unlock(&mirrors->lock);
}

void tnd_mirrors_note_lost(struct tnd_mirrors *mirrors, const struct tnd_mirror *mirror)
{
    if (!tnd_handle_is_alone(mirror->at)) {
        atomic_store_explicit(&mirror->buffer->is_lost, true, memory_order_relaxed);
        atomic_store_explicit(&mirrors->has_lost, true, memory_order_release);
    }
}

/* ---- between runs ---- */

void tnd_mirrors_spoil(struct tnd_mirrors *mirrors, const struct tandem_tensor *root)
{
    pthread_mutex_lock(&mirrors->lock);
    for (struct tnd_mirror *mirror = mirrors->mapped; mirror != NULL; mirror = mirror->next) {
        if (overlaps(mirror, root->data, tandem_tensor_bytes(root))) {
            mirror->stale = (struct tnd_span){0, mirror->bytes};
        }
    }
    pthread_mutex_unlock(&mirrors->lock);
}

void tnd_mirrors_forget(struct tnd_mirrors *mirrors, const struct tandem_tensor *root)
{
    struct selection of = {
        .kind = TND_MIRROR_INPUT, .begin = root->data, .bytes = tandem_tensor_bytes(root)};
    pthread_mutex_lock(&mirrors->lock);
    (void)drop_idle(mirrors, &of);
    of.serial = tnd_context_serial(root->context); /* other contexts may have borrowed the same
                                                    * bytes */
    of.kind = TND_MIRROR_COLUMNS;
    (void)drop_idle(mirrors, &of);
    of.kind = TND_MIRROR_WEIGHT;
    (void)drop_idle(mirrors, &of);
    mirrors->round++;
    atomic_store_explicit(&mirrors->has_refused, false, memory_order_release);
    pthread_mutex_unlock(&mirrors->lock);
}

void tnd_mirrors_drop_slot(struct tnd_mirrors *mirrors, int slot)
{
    pthread_mutex_lock(&mirrors->lock);
    (void)drop_idle(mirrors, &(struct selection){.kind = TND_MIRROR_INPUT, .slot = slot});
    pthread_mutex_unlock(&mirrors->lock);
}

void tnd_mirrors_drop_orphans(struct tnd_mirrors *mirrors)
{
    pthread_mutex_lock(&mirrors->lock);
    drop_orphans(mirrors);
    pthread_mutex_unlock(&mirrors->lock);
}

int tnd_mirrors_count(struct tnd_mirrors *mirrors)
{
    int n = 0;
    pthread_mutex_lock(&mirrors->lock);
    for (const struct tnd_mirror *mirror = mirrors->mapped; mirror != NULL; mirror = mirror->next) {
        n++;
    }
    pthread_mutex_unlock(&mirrors->lock);
    return n;
}

void tnd_mirrors_free(struct tnd_mirrors *mirrors)
{
    if (mirrors == NULL) {
        return;
    }
    while (mirrors->mapped != NULL) {
        drop(mirrors, &mirrors->mapped);
    }
    while (mirrors->columns != NULL) {
        drop(mirrors, &mirrors->columns);
    }
    while (mirrors->weights != NULL) {
        drop(mirrors, &mirrors->weights);
    }
    pthread_mutex_destroy(&mirrors->lock);
    tnd_free(mirrors);
}
