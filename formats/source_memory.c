/* SPDX-License-Identifier: MIT
 * Memory and files of a source, bounded by the size of its file, and the check that names differ.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "base/vector.h"
#include "base/checked.h"
#include "base/tnd_mapped.h"
#include "formats/cursor.h"
#include "formats/source.h"

enum tandem_status tnd_source_alloc(tandem_source *source, const char *name, size_t bytes,
                                    size_t file_bytes, void **out_memory,
                                    struct tandem_error *error)
{
    size_t sum;
    size_t limit;
    if (!tnd_add_size(file_bytes, TND_SOURCE_SPARE_BYTES, &limit)) {
        limit = SIZE_MAX;
    }
    if (!tnd_add_size(source->block_bytes, bytes, &sum) || sum > limit) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, (int64_t)bytes, (int64_t)limit,
                             "%.80s: needs %zu bytes of memory after %zu of others, its file "
                             "allows %zu altogether",
                             name, bytes, source->block_bytes, limit);
    }
    void *memory = tnd_alloc(bytes);
    if (memory == NULL || !tnd_grow(&source->blocks, source->n_blocks, &source->block_capacity,
                                    sizeof(source->blocks[0]))) {
        tnd_free(memory);
        return tnd_error_set(error, TANDEM_E_MEMORY, name, (int64_t)bytes, 0,
                             "%.80s: no memory for %zu bytes", name, bytes);
    }
    source->blocks[source->n_blocks++] = memory;
    source->block_bytes = sum;
    *out_memory = memory;
    return TANDEM_OK;
}

enum tandem_status tnd_source_map(tandem_source *source, const char *path,
                                  struct tnd_file *out_file, struct tandem_error *error)
{
    if (!tnd_grow(&source->more_files, source->n_more_files, &source->more_file_capacity,
                  sizeof(source->more_files[0]))) {
        return tnd_error_set(error, TANDEM_E_MEMORY, path, 0, 0, "%s: no memory to map it",
                             tnd_short_name(path));
    }
    TND_TRY(
        tnd_file_map(path, tnd_source_copies, &source->more_files[source->n_more_files], error));
    *out_file = source->more_files[source->n_more_files++];
    return TANDEM_OK;
}

enum tandem_status tnd_source_check(const tandem_source *source, struct tandem_error *error)
{
    TND_TRY(tnd_file_check(&source->file, error));
    for (size_t i = 0; i < source->n_more_files; i++) {
        TND_TRY(tnd_file_check(&source->more_files[i], error));
    }
    for (size_t i = 0; source->partial != NULL && i < source->n_tensors; i++) {
        const struct tandem_source_tensor *tensor = &source->tensors[i];
        struct tandem_error why = {.text = ""};
        if (tandem_mapped_check(tensor->data, tensor->bytes, &why) != TANDEM_OK) {
            return tnd_error_set(error, why.status, tensor->name, why.got, why.limit,
                                 "'%.64s' in %.180s", tensor->name, why.text);
        }
    }
    return TANDEM_OK;
}

void tnd_source_memory_free(tandem_source *source)
{
    for (size_t i = 0; i < source->n_blocks; i++) {
        tnd_free(source->blocks[i]);
    }
    for (size_t i = 0; i < source->n_more_files; i++) {
        tnd_file_close(&source->more_files[i]);
    }
    tnd_free(source->blocks);
    tnd_free(source->more_files);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Checks that names differ: equal names are neighbours after sorting. */
static enum tandem_status check_list(const char **names, size_t n, const char *what,
                                     const char *path, struct tandem_error *error)
{
    qsort(names, n, sizeof(names[0]), compare_names);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            return tnd_error_set(error, TANDEM_E_FORMAT, path, 2, 1,
                                 "%s: the %s '%.80s' stands in it twice", tnd_short_name(path),
                                 what, names[i]);
        }
    }
    return TANDEM_OK;
}

enum tandem_status tnd_source_check_names(const tandem_source *source, const char *path,
                                          struct tandem_error *error)
{
    const size_t most = source->n_tensors > source->n_values ? source->n_tensors : source->n_values;
    const char **names = tnd_calloc(most, sizeof(names[0]));
    if (names == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)most, 0,
                             "%s: no memory to compare %zu names", tnd_short_name(path), most);
    }
    for (size_t i = 0; i < source->n_tensors; i++) {
        names[i] = source->tensors[i].name;
    }
    enum tandem_status status = check_list(names, source->n_tensors, "tensor", path, error);
    for (size_t i = 0; i < source->n_values; i++) {
        names[i] = source->values[i].key;
    }
    if (status == TANDEM_OK) {
        status = check_list(names, source->n_values, "key", path, error);
    }
    tnd_free(names);
    return status;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct tnd_source_name *)a)->name,
                  ((const struct tnd_source_name *)b)->name);
}

void tnd_source_index(tandem_source *source)
{
    struct tnd_source_name *list = tnd_alloc(source->n_tensors * sizeof(list[0]));
    if (list == NULL) {
        return;
    }
    TND_ASSERT(source->n_tensors <= source->tensor_capacity);
    for (size_t i = 0; i < source->n_tensors; i++) {
        list[i] = (struct tnd_source_name){source->tensors[i].name, i};
    }
    qsort(list, source->n_tensors, sizeof(list[0]), compare_entries);
    tnd_free(source->by_name);
    source->by_name = list;
    source->n_by_name = source->n_tensors;
}
