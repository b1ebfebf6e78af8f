/* SPDX-License-Identifier: MIT
 * Arrays that nets of one model share, by the recipes that make them. */
#include "graph/store.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/tnd_assert.h"
#include "base/tnd_status.h"
#include "base/vector.h"

enum {
    SMALL = 4096, /* bytes: smaller arrays keep their values, which passes read */
    LASTS = 16,   /* an array is freed after this many nets that did not use it */
    N_LISTS = 1024
};

struct kept;

/* A recipe as bytes: this, operands, and the bytes of `how`. */
struct key {
    tnd_store_make_fn make;
    uint64_t n_how;
    struct tnd_dims shape;
    int32_t type, n_in;
};

struct operand {
    struct kept *of;
    int64_t offset;
    struct tnd_dims shape;
    int64_t strides[TANDEM_NET_MAX_DIMS];
    int64_t type;
};

struct tensor {
    int64_t offset;
    int64_t ne[TANDEM_MAX_DIMS];
    tandem_tensor *tensor;
};

struct kept {
    struct tnd_array array; /* the first member */
    struct tnd_store *store;
    struct kept *next;   /* in its list */
    struct kept **place; /* the pointer to it in that list */
    struct kept *then;   /* next to free together with it */
    uint64_t hash;
    struct key *key; /* NULL: found by its values */
    size_t n_key;
    int n_holders;
    int n_pins;              /* arrays made from it, or equal to it */
    bool is_remade;          /* by its recipe: its values may be dropped and recomputed */
    bool is_made;            /* its values have been computed once */
    uint64_t used;           /* the last net that used it */
    struct kept *same;       /* NULL: none */
    tandem_context *context; /* of the tensors */
    TND_VECTOR_OF(struct tensor, tensors);
};

struct tnd_store {
    struct kept *lists[N_LISTS]; /* by hash */
    uint64_t clock;
    size_t bytes;
};

static struct kept *kept_of(const struct tnd_array *array)
{
    return (struct kept *)(uintptr_t)array;
}

static size_t bytes_of(const struct tnd_array *array)
{
    return (size_t)array->n * tandem_dtype_bytes(array->type);
}

static struct operand *operands_of(const struct kept *kept)
{
    return (struct operand *)(kept->key + 1);
}

static int operand_count(const struct kept *kept)
{
    return kept->key != NULL ? kept->key->n_in : 0;
}

/* ---- what goes ---- */

static void drop_values(struct kept *kept)
{
    tandem_context_free(kept->context);
    tnd_vector_fini(&kept->tensors_vector);
    kept->context = NULL;
    if (kept->array.data != NULL) {
        kept->store->bytes -= bytes_of(&kept->array);
        tnd_free(kept->array.data);
        kept->array.data = NULL;
    }
}

static bool may_go(const struct kept *kept, uint64_t before)
{
    return kept->n_holders == 0 && kept->n_pins == 0 && kept->used < before;
}

/* Removes a pin; an array that may then be freed is put before `then`. */
static struct kept *unpin(struct kept *kept, uint64_t before, struct kept *then)
{
    kept->n_pins--;
    if (!may_go(kept, before)) {
        return then;
    }
    kept->then = then;
    return kept;
}

/* Frees arrays, and those from which they were made if nothing needs them and no net has used them
 * since `before`. */
static void forget(struct kept *first, uint64_t before)
{
    while (first != NULL) {
        struct kept *kept = first;
        TND_ASSERT(kept->n_holders == 0 && kept->n_pins == 0);
        first = kept->then;
        for (int i = 0; i < operand_count(kept); i++) {
            first = unpin(operands_of(kept)[i].of, before, first);
        }
        first = kept->same != NULL ? unpin(kept->same, before, first) : first;
        *kept->place = kept->next;
        if (kept->next != NULL) {
            kept->next->place = kept->place;
        }
        drop_values(kept);
        tnd_free(kept->key);
        tnd_free(kept);
    }
}

static void give_back(struct tnd_array *array)
{
    struct kept *kept = kept_of(array);
    TND_ASSERT(kept->n_holders > 0);
    if (--kept->n_holders > 0) {
        return;
    }
    if ((!kept->is_made || (kept->key != NULL && !kept->is_remade)) && kept->n_pins == 0) {
        kept->then = NULL;
        forget(kept, 0);
    } else if (kept->is_remade && bytes_of(array) > SMALL) {
        drop_values(kept);
    }
}

static bool fill(struct tnd_array *array);

static const struct tnd_array_keeper keeper = {.give_back = give_back, .fill = fill};

bool tnd_store_has(const struct tnd_store *store, const struct tnd_array *array)
{
    return store != NULL && array->keeper == &keeper && kept_of(array)->store == store;
}

struct tnd_store *tnd_store_new(void)
{
    return tnd_calloc(1, sizeof(struct tnd_store));
}

/* Frees arrays that nothing needs and no net has used since `before`. */
static void sweep(struct tnd_store *store, uint64_t before)
{
    struct kept *first = NULL;
    for (int i = 0; i < N_LISTS; i++) {
        for (struct kept *kept = store->lists[i]; kept != NULL; kept = kept->next) {
            if (may_go(kept, before)) {
                kept->then = first;
                first = kept;
            }
        }
    }
    forget(first, before);
}

void tnd_store_free(struct tnd_store *store)
{
    if (store != NULL) {
        sweep(store, UINT64_MAX);
        tnd_free(store);
    }
}

void tnd_store_sweep(struct tnd_store *store)
{
    store->clock++;
    sweep(store, store->clock > LASTS ? store->clock - LASTS : 0);
}

size_t tnd_store_bytes(const struct tnd_store *store)
{
    return store->bytes;
}

/* ---- what is found ---- */

static struct kept *new_kept(struct tnd_store *store, uint64_t hash, enum tandem_dtype type,
                             const struct tnd_dims *shape)
{
    struct kept **place = &store->lists[hash % N_LISTS];
    struct kept *kept = tnd_calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    *kept = (struct kept){
        .array = {.type = type, .shape = *shape, .n = tnd_dims_values(shape), .keeper = &keeper},
        .store = store,
        .next = *place,
        .place = place,
        .hash = hash};
    if (kept->next != NULL) {
        kept->next->place = &kept->next;
    }
    *place = kept;
    return kept;
}

static struct kept *hold(struct kept *kept)
{
    kept = kept->same != NULL ? kept->same : kept;
    kept->used = kept->store->clock;
    kept->n_holders++;
    return kept;
}

struct tnd_array *tnd_store_take(struct tnd_store *store, struct tnd_array *array)
{
    const size_t bytes = bytes_of(array);
    const uint64_t hash = tnd_hash_bytes(array->data, bytes < SMALL ? bytes : SMALL,
                                         (uint64_t)array->type ^ (uint64_t)bytes << 8);
    for (struct kept *kept = store->lists[hash % N_LISTS]; kept != NULL; kept = kept->next) {
        if (kept->hash == hash && kept->key == NULL && kept->array.type == array->type &&
            tnd_dims_is_equal(&kept->array.shape, &array->shape) &&
            memcmp(kept->array.data, array->data, bytes) == 0) {
            tnd_array_free(array);
            return &hold(kept)->array;
        }
    }
    struct kept *kept = new_kept(store, hash, array->type, &array->shape);
    if (kept != NULL) {
        kept->array.data = array->data;
        kept->is_made = true;
        store->bytes += bytes;
        array->data = NULL;
    }
    tnd_array_free(array);
    return kept != NULL ? &hold(kept)->array : NULL;
}

/* The bytes of a recipe, which the caller frees. */
static struct key *key_of(const struct tnd_store_recipe *recipe, size_t *n)
{
    *n = sizeof(struct key) + (size_t)recipe->n_in * sizeof(struct operand) + recipe->n_how;
    struct key *key = tnd_calloc(1, *n);
    struct operand *in = (struct operand *)(key + 1);
    if (key == NULL) {
        return NULL;
    }
    key->make = recipe->make;
    key->n_how = recipe->n_how;
    key->type = (int32_t)recipe->type;
    key->n_in = recipe->n_in;
    key->shape.n = recipe->shape.n;
    memcpy(key->shape.dims, recipe->shape.dims, (size_t)recipe->shape.n * sizeof(int64_t));
    for (int i = 0; i < recipe->n_in; i++) {
        const struct tnd_view *view = &recipe->in[i].view;
        in[i].of = kept_of(recipe->in[i].array);
        in[i].offset = recipe->in[i].offset;
        in[i].type = (int64_t)view->type;
        in[i].shape.n = view->shape.n;
        memcpy(in[i].shape.dims, view->shape.dims, (size_t)view->shape.n * sizeof(int64_t));
        memcpy(in[i].strides, view->strides, (size_t)view->shape.n * sizeof(int64_t));
    }
    if (recipe->n_how > 0) {
        memcpy(in + recipe->n_in, recipe->how, recipe->n_how);
    }
    return key;
}

/* The entry of a recipe, with a reference; NULL: out of memory. */
static struct kept *place_of(struct tnd_store *store, const struct tnd_store_recipe *recipe,
                             bool is_remade)
{
    size_t n;
    struct key *key = key_of(recipe, &n);
    if (key == NULL) {
        return NULL;
    }
    const uint64_t hash = tnd_hash_bytes(key, n, 1);
    for (struct kept *kept = store->lists[hash % N_LISTS]; kept != NULL; kept = kept->next) {
        if (kept->hash == hash && kept->n_key == n && (kept->is_made || kept->is_remade) &&
            memcmp(kept->key, key, n) == 0) {
            tnd_free(key);
            return hold(kept);
        }
    }
    struct kept *kept = new_kept(store, hash, recipe->type, &recipe->shape);
    if (kept == NULL) {
        tnd_free(key);
        return NULL;
    }
    kept->key = key;
    kept->n_key = n;
    kept->is_remade = is_remade;
    for (int i = 0; i < key->n_in; i++) {
        operands_of(kept)[i].of->n_pins++;
    }
    return hold(kept);
}

/* ---- what is made ---- */

static enum tandem_status no_memory(struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, NULL, 0, 0, "no memory for constants of a model");
}

static bool take_memory(struct kept *kept)
{
    const size_t n = (size_t)kept->array.n + (kept->array.n == 0);
    kept->array.data =
        kept->array.n < 0 ? NULL : tnd_calloc(n, tandem_dtype_bytes(kept->array.type));
    kept->store->bytes += kept->array.data != NULL ? bytes_of(&kept->array) : 0;
    return kept->array.data != NULL;
}

/* Computes an array's values; its operands' must be present. */
static enum tandem_status make(struct kept *kept, struct tandem_error *error)
{
    const int n_in = operand_count(kept);
    const struct operand *in = operands_of(kept);
    struct tnd_view *views = tnd_calloc((size_t)n_in + 1, sizeof(views[0]));
    if (views == NULL || !take_memory(kept)) {
        tnd_free(views);
        return no_memory(error);
    }
    for (int i = 0; i < n_in; i++) {
        const enum tandem_dtype type = (enum tandem_dtype)in[i].type;
        views[i] = (struct tnd_view){.type = type,
                                     .shape = in[i].shape,
                                     .data = (const char *)in[i].of->array.data +
                                             in[i].offset * (int64_t)tandem_dtype_bytes(type)};
        memcpy(views[i].strides, in[i].strides, sizeof(views[i].strides));
    }
    const enum tandem_status status = kept->key->make(in + n_in, views, n_in, &kept->array, error);
    tnd_free(views);
    if (status != TANDEM_OK) {
        drop_values(kept);
    }
    kept->is_made = kept->is_made || status == TANDEM_OK;
    return status;
}

/* Arrays to compute for one array: each needs those after it. Each is referenced. */
struct waiting {
    struct kept **items;
    size_t n, capacity;
};

static bool push(struct waiting *waiting, struct kept *kept)
{
    if (!tnd_grow(&waiting->items, waiting->n, &waiting->capacity, sizeof(waiting->items[0]))) {
        return false;
    }
    kept->n_holders++;
    waiting->items[waiting->n++] = kept;
    return true;
}

/* An operand whose values are missing; NULL: none. */
static struct kept *missing_of(const struct kept *kept)
{
    for (int i = 0; i < operand_count(kept); i++) {
        if (operands_of(kept)[i].of->array.data == NULL) {
            return operands_of(kept)[i].of;
        }
    }
    return NULL;
}

/* Computes an array, after recomputing dropped values from which it is made. (A loop, not
 * recursion: a model may nest constants arbitrarily deep.) */
static enum tandem_status make_all(struct kept *kept, struct tandem_error *error)
{
    struct waiting waiting = {.n = 0};
    enum tandem_status status = push(&waiting, kept) ? TANDEM_OK : no_memory(error);
    struct waiting done = {.n = 0};
    while (status == TANDEM_OK && waiting.n > 0) {
        struct kept *last = waiting.items[waiting.n - 1];
        struct kept *missing = last->array.data == NULL ? missing_of(last) : NULL;
        if (missing != NULL) {
            status = push(&waiting, missing) ? TANDEM_OK : no_memory(error);
            continue;
        }
        status = last->array.data == NULL ? make(last, error) : TANDEM_OK;
        if (status == TANDEM_OK) { /* referenced until all are computed */
            status = push(&done, last) ? TANDEM_OK : no_memory(error);
            last->n_holders--;
            waiting.n--;
        }
    }
    for (size_t i = 0; i < waiting.n; i++) {
        give_back(&waiting.items[i]->array);
    }
    for (size_t i = 0; i < done.n; i++) {
        give_back(&done.items[i]->array);
    }
    tnd_free(waiting.items);
    tnd_free(done.items);
    return status;
}

static bool fill(struct tnd_array *array)
{
    struct tandem_error ignored;
    struct kept *kept = kept_of(array);
    TND_ASSERT(kept->n_holders > 0);
    return make_all(kept, &ignored) == TANDEM_OK;
}

enum tandem_status tnd_store_derive(struct tnd_store *store, const struct tnd_store_recipe *recipe,
                                    struct tnd_array **out, struct tandem_error *error)
{
    struct kept *kept = place_of(store, recipe, true);
    if (kept == NULL) {
        return no_memory(error);
    }
    const enum tandem_status status =
        kept->is_made || recipe->is_late ? TANDEM_OK : make_all(kept, error);
    if (status != TANDEM_OK) {
        give_back(&kept->array);
        return status;
    }
    *out = &kept->array;
    return TANDEM_OK;
}

struct tnd_array *tnd_store_find(struct tnd_store *store, const struct tnd_store_recipe *recipe,
                                 bool *is_new)
{
    struct kept *kept = place_of(store, recipe, false);
    *is_new = kept != NULL && !kept->is_made;
    if (*is_new && !take_memory(kept)) {
        give_back(&kept->array);
        return NULL;
    }
    return kept != NULL ? &kept->array : NULL;
}

void tnd_store_made(struct tnd_array *array)
{
    kept_of(array)->is_made = true;
}

void tnd_store_hold(struct tnd_array *array)
{
    kept_of(array)->n_holders++;
}

void tnd_store_note_same(const struct tnd_array *a, const struct tnd_array *b)
{
    struct kept *first = kept_of(a);
    struct kept *second = kept_of(b);
    if (a->keeper == &keeper && b->keeper == &keeper && first != second && first->same == NULL &&
        second->same == NULL && second->key != NULL && second->n_pins == 0) {
        second->same = first;
        first->n_pins++;
    }
}

/* ---- tensors ---- */

tandem_tensor *tnd_store_tensor(struct tnd_array *array, int64_t offset, int n_dims,
                                const int64_t *ne)
{
    struct kept *kept = kept_of(array);
    struct tensor wanted = {.offset = offset};
    const size_t begin = (size_t)offset * tandem_dtype_bytes(array->type);
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    memcpy(wanted.ne, ne, (size_t)n_dims * sizeof(ne[0]));
    for (int i = 0; i < kept->n_tensors; i++) {
        if (kept->tensors[i].offset == offset &&
            memcmp(kept->tensors[i].ne, wanted.ne, sizeof(wanted.ne)) == 0) {
            return kept->tensors[i].tensor;
        }
    }
    options.chunk_bytes = 1024;
    if ((kept->context == NULL &&
         tandem_context_new(&options, &kept->context, NULL) != TANDEM_OK) ||
        tnd_vector_insert(&kept->tensors_vector, sizeof(kept->tensors[0]), INT_MAX / 2,
                          kept->n_tensors) != TANDEM_OK) {
        return NULL;
    }
    wanted.tensor =
        tandem_tensor_borrow_const(kept->context, TANDEM_TYPE_F32, n_dims, ne,
                                   (const char *)array->data + begin, bytes_of(array) - begin);
    kept->n_tensors -= wanted.tensor == NULL;
    if (wanted.tensor != NULL) {
        kept->tensors[kept->n_tensors - 1] = wanted;
    }
    return wanted.tensor;
}
