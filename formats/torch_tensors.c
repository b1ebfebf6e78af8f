/* SPDX-License-Identifier: MIT
 * Tensors of a checkpoint's tree of dicts and lists, under names joined by dots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "formats/safetensors.h"
#include "formats/hf_parts.h"
#include "formats/torch_llama.h"
#include "formats/torch_pickle.h"

#define MAX_DEPTH 32
#define MAX_NAME  512
#define MAX_STEPS 4194304 /* of values: objects that are shared may be met again and again */

/* ---- storages ---- */

static int compare_keys(const char *a, size_t n_a, const char *b, size_t n_b)
{
    const int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static int compare_storages(const void *a, const void *b)
{
    const struct tnd_torch_storage *left = a;
    const struct tnd_torch_storage *right = b;
    return compare_keys(left->key, left->key_bytes, right->key, right->key_bytes);
}

void tnd_torch_sort(struct tnd_torch_storages *storages)
{
    if (storages->n > 0) {
        qsort(storages->rows, storages->n, sizeof(storages->rows[0]), compare_storages);
    }
}

enum tandem_status tnd_torch_check_keys(const struct tnd_torch_storages *storages, const char *path,
                                        struct tandem_error *error)
{
    for (size_t i = 1; i < storages->n; i++) {
        const struct tnd_torch_storage *row = &storages->rows[i];
        if (compare_storages(row - 1, row) == 0) {
            return tnd_error_set(error, TANDEM_E_FORMAT, path, 2, 1,
                                 "%s: two storages have the key '%.*s'", tnd_short_name(path),
                                 (int)(row->key_bytes < 60 ? row->key_bytes : 60), row->key);
        }
    }
    return TANDEM_OK;
}

const struct tnd_torch_storage *tnd_torch_find(const struct tnd_torch_storages *storages,
                                               const struct tnd_pickle_value *key)
{
    const struct tnd_torch_storage wanted = {.key = key->text, .key_bytes = key->n};
    return storages->n == 0 ? NULL
                            : bsearch(&wanted, storages->rows, storages->n,
                                      sizeof(storages->rows[0]), compare_storages);
}

/* ---- the tree ---- */

struct walk {
    tandem_source *source;
    const struct tnd_torch_storages *storages;
    const char *path;
    char name[MAX_NAME];
    size_t name_bytes;
    int64_t steps;
    /* maps names to the GGUF convention; NULL: names are kept */
    tnd_hf_name_map *map;
};

static enum tandem_status refuse(const struct walk *walk, const char *what, int64_t got,
                                 int64_t limit, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, walk->path, got, limit,
                         "%s: at '%.60s': %s is %lld, expected at most %lld",
                         tnd_short_name(walk->path), walk->name, what, (long long)got,
                         (long long)limit);
}

static enum tandem_status add_tensor(struct walk *walk, const struct tnd_pickle_value *value,
                                     struct tandem_error *error)
{
    char mapped[MAX_NAME];
    if (walk->map != NULL && !walk->map(walk->name, mapped, sizeof(mapped))) {
        return TANDEM_OK; /* a table that we compute */
    }
    const struct tnd_pickle_value *storage = value->tensor.storage;
    const struct tnd_pickle_value *key = storage->storage.key;
    const struct tnd_torch_storage *found = tnd_torch_find(walk->storages, key);
    if (found == NULL) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, walk->path, 0, 0,
                             "%s: tensor %.60s lies in storage '%.*s', which the file lacks",
                             tnd_short_name(walk->path), walk->name,
                             (int)(key->n < 40 ? key->n : 40), key->text);
    }
    if (value->tensor.shape->n > TANDEM_MAX_DIMS) {
        return refuse(walk, "the number of dimensions", value->tensor.shape->n, TANDEM_MAX_DIMS,
                      error);
    }
    struct tnd_foreign_tensor tensor = {.name = walk->map != NULL ? mapped : walk->name,
                                        .path = walk->path,
                                        .type = storage->storage.type,
                                        .n_dims = (int)value->tensor.shape->n,
                                        .storage = found->data,
                                        .storage_bytes = found->bytes,
                                        .is_big_endian = walk->storages->is_big_endian,
                                        .file_bytes = walk->storages->file_bytes};
    tensor.widens = walk->map != NULL && tensor.n_dims == 1;
    for (int i = 0; i < tensor.n_dims; i++) {
        tensor.shape[i] = value->tensor.shape->items[i]->integer;
        tensor.strides[i] = value->tensor.strides->items[i]->integer;
    }
    if (value->tensor.offset < 0 || storage->storage.offset < 0 ||
        !tnd_add_i64(value->tensor.offset, storage->storage.offset, &tensor.offset)) {
        return refuse(walk, "an offset", value->tensor.offset, INT64_MAX, error);
    }
    return tnd_foreign_add(walk->source, &tensor, error);
}

/* Appends a part to the name, after a dot unless it is the first. */
static enum tandem_status enter(struct walk *walk, const char *part, size_t n,
                                struct tandem_error *error)
{
    const size_t dot = walk->name_bytes > 0 ? 1 : 0;
    if (n + dot >= MAX_NAME - walk->name_bytes) {
        return refuse(walk, "the length of a name below", (int64_t)n, MAX_NAME - 1, error);
    }
    if (n == 0 || memchr(part, 0, n) != NULL) {
        return refuse(walk, "the number of empty keys or zero bytes in keys", 1, 0, error);
    }
    if (dot != 0) {
        walk->name[walk->name_bytes++] = '.';
    }
    memcpy(walk->name + walk->name_bytes, part, n);
    walk->name_bytes += n;
    walk->name[walk->name_bytes] = '\0';
    return TANDEM_OK;
}

static enum tandem_status add_value(struct walk *walk, const struct tnd_pickle_value *value,
                                    struct tandem_error *error)
{
    switch (value->kind) {
    case TND_PICKLE_INTEGER:
        return tnd_source_set_integer(walk->source, walk->name, value->integer, error);
    case TND_PICKLE_NUMBER:
        return tnd_source_set_number(walk->source, walk->name, value->number, error);
    case TND_PICKLE_TEXT:
        return tnd_source_set_text_bytes(walk->source, walk->name, value->text, value->n, error);
    default:
        return TANDEM_OK;
    }
}

static enum tandem_status add_below(struct walk *walk, const struct tnd_pickle_value *value,
                                    int depth, struct tandem_error *error);

static enum tandem_status add_item(struct walk *walk, const struct tnd_pickle_value *key,
                                   int64_t number, const struct tnd_pickle_value *value, int depth,
                                   struct tandem_error *error)
{
    char digits[24];
    const size_t name_bytes = walk->name_bytes;
    const bool is_text = key != NULL && key->kind == TND_PICKLE_TEXT;
    if (key != NULL && key->kind == TND_PICKLE_INTEGER) {
        number = key->integer;
    } else if (key != NULL && !is_text) {
        return TANDEM_OK; /* a key that has no name: nothing of ours */
    }
    snprintf(digits, sizeof(digits), "%lld", (long long)number);
    const bool is_container = value->kind == TND_PICKLE_LIST || value->kind == TND_PICKLE_DICT;
    if (!is_container && value->kind != TND_PICKLE_TENSOR && key == NULL) {
        return TANDEM_OK; /* an item of a list of plain values */
    }
    TND_TRY(enter(walk, is_text ? key->text : digits, is_text ? key->n : strlen(digits), error));
    TND_TRY(add_below(walk, value, depth, error));
    walk->name_bytes = name_bytes;
    walk->name[name_bytes] = '\0';
    return TANDEM_OK;
}

static enum tandem_status add_below(struct walk *walk, const struct tnd_pickle_value *value,
                                    int depth, struct tandem_error *error)
{
    if (depth > MAX_DEPTH) {
        return refuse(walk, "the depth of containers in one another", depth, MAX_DEPTH, error);
    }
    if (value->kind == TND_PICKLE_TENSOR) {
        return add_tensor(walk, value, error);
    }
    if (value->kind != TND_PICKLE_LIST && value->kind != TND_PICKLE_DICT) {
        return add_value(walk, value, error);
    }
    const uint32_t step = value->kind == TND_PICKLE_DICT ? 2 : 1;
    for (uint32_t i = 0; i < value->n; i += step) {
        if (++walk->steps > MAX_STEPS) {
            return refuse(walk, "the number of values", walk->steps, MAX_STEPS, error);
        }
        const struct tnd_pickle_value *key = step == 2 ? value->items[i] : NULL;
        TND_TRY(add_item(walk, key, i, value->items[i + step - 1], depth + 1, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_torch_add(tandem_source *source, const struct tnd_pickle_value *root,
                                 const struct tnd_torch_storages *storages, const char *path,
                                 enum tnd_torch_role role, struct tandem_error *error)
{
    struct walk walk = {.source = source, .storages = storages, .path = path};
    if (root->kind == TND_PICKLE_TENSOR) { /* the tensor of a file with a single one has no name */
        snprintf(walk.name, sizeof(walk.name), "tensor");
    } else if (root->kind != TND_PICKLE_LIST && root->kind != TND_PICKLE_DICT) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, root->kind, 0,
                             "%s: its object is neither tensor nor container",
                             tnd_short_name(path));
    }
    bool is_theirs = role == TND_TORCH_MODEL_PART;
    if (role == TND_TORCH_WHOLE) {
        TND_TRY(tnd_safetensors_config_beside(path, source, &is_theirs, error));
    }
    root = is_theirs ? tnd_torch_state_dict(root) : root;
    if (role != TND_TORCH_WHOLE) {
        walk.map = is_theirs ? tnd_hf_names_of(source->hf_whole) : NULL;
        return add_below(&walk, root, 0, error);
    }
    const struct tnd_pickle_value *llama = is_theirs ? NULL : tnd_torch_llama_weights(root);
    walk.map = is_theirs       ? tnd_hf_names_of(source->hf_whole)
               : llama != NULL ? tnd_torch_llama_name
                               : NULL;
    TND_TRY(add_below(&walk, llama != NULL ? llama : root, 0, error));
    if (llama != NULL) {
        TND_TRY(tnd_torch_llama_values(root, path, source, error));
    }
    TND_TRY(tnd_source_check_names(source, path, error));
    return is_theirs ? tnd_hf_finish(source, error) : TANDEM_OK;
}
