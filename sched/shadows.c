/* SPDX-License-Identifier: MIT
 * Shadows of weights: a list by root, in it a list by part. Everything is done under one lock,
 * which a run takes once for each part. */
#include "sched/shadows.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"

struct shadow {
    struct tandem_tensor tensor;
    struct tnd_buffer buffer;
    const void *weight; /* the first byte of the whole */
    enum tandem_split split;
    int64_t begin, end;
    void *copy; /* of columns; NULL: rows in place */
    struct shadow *next;
};

/* All parts of the weights that lie in one root. */
struct shadowed {
    struct shadow *first;
    struct tnd_handle *at; /* in the buffer of the root */
    uint64_t serial;       /* of the context of the root */
    struct shadowed *next;
};

struct tnd_shadows {
    uint64_t owner; /* in buffers */
    pthread_mutex_t lock;
    struct shadowed *roots;
};

enum tandem_status tnd_shadows_new(struct tnd_shadows **out_shadows, struct tandem_error *error)
{
    struct tnd_shadows *shadows = tnd_calloc(1, sizeof(*shadows));
    if (shadows == NULL || pthread_mutex_init(&shadows->lock, NULL) != 0) {
        tnd_free(shadows);
        return tnd_error_set(error, TANDEM_E_MEMORY, "exec", 0, 0, "exec: out of memory");
    }
    shadows->owner = tnd_buffer_owners(1);
    *out_shadows = shadows;
    return TANDEM_OK;
}

/* Takes the entry at `place` out of the list, with all parts. */
static void drop(struct shadowed **place, struct tnd_mirrors *mirrors)
{
    struct shadowed *root = *place;
    *place = root->next;
    tnd_buffer_detach(root->at);
    while (root->first != NULL) {
        struct shadow *shadow = root->first;
        root->first = shadow->next;
        if (mirrors != NULL) {
            tnd_mirrors_forget_bytes(mirrors, shadow->tensor.data,
                                     tandem_tensor_bytes(&shadow->tensor), root->serial);
        }
        tnd_free(shadow->copy);
        tnd_free(shadow);
    }
    tnd_free(root);
}

void tnd_shadows_free(struct tnd_shadows *shadows)
{
    if (shadows != NULL) {
        while (shadows->roots != NULL) {
            drop(&shadows->roots, NULL);
        }
        pthread_mutex_destroy(&shadows->lock);
        tnd_free(shadows);
    }
}

/* ---- under the lock ---- */

static const struct shadow *find(const struct tnd_shadows *shadows,
                                 const struct tandem_tensor *weight, enum tandem_split split,
                                 int64_t begin, int64_t end)
{
    const struct shadowed *root = tnd_buffer_find(weight->root->buffer, shadows->owner);
    const struct shadow *shadow = root != NULL ? root->first : NULL;
    while (shadow != NULL && (shadow->weight != weight->data || shadow->split != split ||
                              shadow->begin != begin || shadow->end != end)) {
        shadow = shadow->next;
    }
    return shadow;
}

/* The entry of a root, a new one where there is none; what contexts have left that are gone is
 * given up on that occasion. NULL without memory. */
static struct shadowed *need_root(struct tnd_shadows *shadows, struct tnd_mirrors *mirrors,
                                  const struct tandem_tensor *root)
{
    struct shadowed *entry = tnd_buffer_find(root->buffer, shadows->owner);
    if (entry != NULL) {
        return entry;
    }
    for (struct shadowed **place = &shadows->roots; *place != NULL;) {
        if (tnd_handle_is_alone((*place)->at)) {
            drop(place, mirrors);
        } else {
            place = &(*place)->next;
        }
    }
    entry = tnd_calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return NULL;
    }
    entry->at = tnd_buffer_attach(root->context, root->buffer, shadows->owner, entry);
    if (entry->at == NULL) {
        tnd_free(entry);
        return NULL;
    }
    entry->serial = tnd_context_serial(root->context);
    entry->next = shadows->roots;
    shadows->roots = entry;
    return entry;
}

/* Columns side by side, row after row; NULL without memory. */
static void *copy_columns(const struct tandem_tensor *weight, int64_t begin, size_t row_bytes)
{
    size_t bytes;
    size_t skipped = tandem_type_row_bytes(weight->type, begin);
    if (!tnd_mul_size(row_bytes, (size_t)weight->ne[1], &bytes)) {
        return NULL;
    }
    char *copy = tnd_alloc(bytes);
    for (int64_t row = 0; row < weight->ne[1] && copy != NULL; row++) {
        memcpy(copy + (size_t)row * row_bytes,
               (const char *)weight->data + (size_t)row * weight->nb[1] + skipped, row_bytes);
    }
    return copy;
}

static void describe(struct shadow *shadow, const struct tandem_tensor *weight, size_t row_bytes)
{
    struct tandem_tensor *tensor = &shadow->tensor;
    bool is_rows = shadow->split == TANDEM_SPLIT_ROWS;
    *tensor = *weight;
    tensor->op = TANDEM_OP_NONE;
    tensor->flags = TND_TENSOR_CONSTANT | TND_TENSOR_READ_ONLY | TND_TENSOR_SHADOW;
    tensor->n_src = 0;
    tensor->ne[is_rows ? 1 : 0] = shadow->end - shadow->begin;
    tensor->nb[1] = row_bytes;
    tensor->nb[2] = tensor->nb[3] = row_bytes * (size_t)tensor->ne[1];
    tensor->root = tensor;
    tensor->root_offset = 0;
    tensor->data =
        is_rows ? (char *)weight->data + (size_t)shadow->begin * weight->nb[1] : shadow->copy;
    tensor->buffer = &shadow->buffer;
    tensor->plan_offset = -1;
    tensor->previous = NULL;
    tensor->graph = NULL;
    memset(tensor->src, 0, sizeof(tensor->src));
}

static struct shadow *make(struct tnd_shadows *shadows, struct tnd_mirrors *mirrors,
                           const struct tandem_tensor *weight, enum tandem_split split,
                           int64_t begin, int64_t end)
{
    struct shadowed *root = need_root(shadows, mirrors, weight->root);
    struct shadow *shadow = root != NULL ? tnd_calloc(1, sizeof(*shadow)) : NULL;
    if (shadow == NULL) {
        return NULL;
    }
    bool is_rows = split == TANDEM_SPLIT_ROWS;
    size_t row_bytes = is_rows ? weight->nb[1] : tandem_type_row_bytes(weight->type, end - begin);
    shadow->weight = weight->data;
    shadow->split = split;
    shadow->begin = begin;
    shadow->end = end;
    shadow->copy = is_rows ? NULL : copy_columns(weight, begin, row_bytes);
    if (!is_rows && shadow->copy == NULL) {
        tnd_free(shadow);
        return NULL;
    }
    describe(shadow, weight, row_bytes);
    shadow->next = root->first;
    root->first = shadow;
    return shadow;
}

/* ---- for everybody ---- */

enum tandem_status tnd_shadows_take(struct tnd_shadows *shadows, struct tnd_mirrors *mirrors,
                                    const struct tandem_tensor *weight, enum tandem_split split,
                                    int64_t begin, int64_t end, struct tandem_tensor **out_shadow,
                                    struct tandem_error *error)
{
    TND_ASSERT(begin >= 0 && begin < end && weight->root->buffer != NULL);
    pthread_mutex_lock(&shadows->lock);
    const struct shadow *shadow = find(shadows, weight, split, begin, end);
    if (shadow == NULL) {
        shadow = make(shadows, mirrors, weight, split, begin, end);
    }
    pthread_mutex_unlock(&shadows->lock);
    if (shadow == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "plan", end - begin, 0,
                             "plan: out of memory for a part of the weight %s", weight->name);
    }
    *out_shadow = (struct tandem_tensor *)&shadow->tensor; /* not changed from here on */
    return TANDEM_OK;
}

const struct tandem_tensor *tnd_shadows_find(struct tnd_shadows *shadows,
                                             const struct tandem_tensor *weight,
                                             enum tandem_split split, int64_t begin, int64_t end)
{
    if (weight->root->buffer == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&shadows->lock);
    const struct shadow *shadow = find(shadows, weight, split, begin, end);
    pthread_mutex_unlock(&shadows->lock);
    return shadow != NULL ? &shadow->tensor : NULL;
}

void tnd_shadows_forget(struct tnd_shadows *shadows, struct tnd_mirrors *mirrors,
                        const struct tandem_tensor *root)
{
    if (root->buffer == NULL) {
        return;
    }
    pthread_mutex_lock(&shadows->lock);
    const struct shadowed *entry = tnd_buffer_find(root->buffer, shadows->owner);
    struct shadowed **place = &shadows->roots;
    while (entry != NULL && *place != entry) {
        place = &(*place)->next;
    }
    if (entry != NULL) {
        drop(place, mirrors);
    }
    pthread_mutex_unlock(&shadows->lock);
}
