/* SPDX-License-Identifier: MIT
 * Checkpoints since PyTorch 1.6: a ZIP archive with NAME/data.pkl, NAME/byteorder and the storages
 * NAME/data/KEY, mostly stored as they are. */
#include <string.h>

#include "base/alloc.h"
#include "formats/torch_pickle.h"
#include "formats/zip.h"

struct archive {
    struct tnd_zip zip;
    tandem_source *source; /* owns decompressed data */
};

bool tnd_torch_zip_is(const uint8_t *bytes, size_t n)
{
    return tnd_zip_is(bytes, n);
}

/* Bytes of an entry; unpacked ones belong to the source. */
static enum tandem_status open_entry(struct archive *archive, const struct tnd_zip_entry *entry,
                                     const uint8_t **out, struct tandem_error *error)
{
    void *memory = NULL;
    if (tnd_zip_is_stored(entry)) {
        *out = entry->data;
        return TANDEM_OK;
    }
    TND_TRY(tnd_zip_check(&archive->zip, entry, error));
    TND_TRY(tnd_source_alloc(archive->source, archive->zip.cursor.name, entry->bytes,
                             archive->zip.cursor.n, &memory, error));
    TND_TRY(tnd_zip_inflate(&archive->zip, entry, memory, error));
    *out = memory;
    return TANDEM_OK;
}

static bool ends_with(const struct tnd_zip_entry *entry, const char *end)
{
    const size_t n = strlen(end);
    return entry->name_bytes >= n && memcmp(entry->name + entry->name_bytes - n, end, n) == 0;
}

/* The part of an entry's name after the folder `root` and `folder`; NULL: elsewhere. */
static const char *name_below(const struct tnd_zip_entry *entry, const struct tnd_zip_entry *root,
                              size_t root_n, const char *folder, size_t *out_n)
{
    const size_t n = strlen(folder);
    if (entry->name_bytes < root_n + n || memcmp(entry->name, root->name, root_n) != 0 ||
        memcmp(entry->name + root_n, folder, n) != 0) {
        return NULL;
    }
    *out_n = entry->name_bytes - root_n - n;
    return entry->name + root_n + n;
}

/* The pickle of the object: the data.pkl nearest to the root. */
static const struct tnd_zip_entry *find_pickle(const struct archive *archive)
{
    const struct tnd_zip_entry *found = NULL;
    for (size_t i = 0; i < archive->zip.n; i++) {
        const struct tnd_zip_entry *entry = &archive->zip.entries[i];
        const bool is_whole = entry->name_bytes == strlen("data.pkl");
        if (ends_with(entry, "data.pkl") && (is_whole || ends_with(entry, "/data.pkl")) &&
            (found == NULL || entry->name_bytes < found->name_bytes)) {
            found = entry;
        }
    }
    return found;
}

static enum tandem_status find_storages(struct archive *archive, const struct tnd_zip_entry *pickle,
                                        struct tnd_torch_storages *out, struct tandem_error *error)
{
    const size_t root_n = pickle->name_bytes - strlen("data.pkl");
    for (size_t i = 0; i < archive->zip.n; i++) {
        const struct tnd_zip_entry *entry = &archive->zip.entries[i];
        struct tnd_torch_storage row = {.bytes = entry->bytes};
        row.key = name_below(entry, pickle, root_n, "data/", &row.key_bytes);
        if (row.key != NULL) {
            TND_TRY(open_entry(archive, entry, &row.data, error));
            out->rows[out->n++] = row;
            continue;
        }
        if (name_below(entry, pickle, root_n, "byteorder", &row.key_bytes) != NULL &&
            row.key_bytes == 0) {
            TND_TRY(open_entry(archive, entry, &row.data, error));
            out->is_big_endian = row.bytes == 3 && memcmp(row.data, "big", 3) == 0;
        }
    }
    tnd_torch_sort(out);
    return tnd_torch_check_keys(out, archive->zip.cursor.name, error);
}

static enum tandem_status read_object(struct archive *archive, struct tnd_torch_storages *storages,
                                      enum tnd_torch_role role, struct tandem_error *error)
{
    struct tnd_pickle machine;
    const struct tnd_pickle_value *root = NULL;
    const uint8_t *bytes = NULL;
    const struct tnd_zip_entry *pickle = find_pickle(archive);
    if (pickle == NULL) {
        return tnd_error_set(error, TANDEM_E_FORMAT, archive->zip.cursor.name, 0, 1,
                             "%s: ZIP archive without data.pkl: no PyTorch checkpoint",
                             tnd_short_name(archive->zip.cursor.name));
    }
    TND_TRY(find_storages(archive, pickle, storages, error));
    TND_TRY(open_entry(archive, pickle, &bytes, error));
    tnd_pickle_init(&machine, bytes, pickle->bytes, 0, archive->zip.cursor.name);
    enum tandem_status status = tnd_pickle_run(&machine, &root, error);
    if (status == TANDEM_OK) {
        status =
            tnd_torch_add(archive->source, root, storages, archive->zip.cursor.name, role, error);
    }
    tnd_pickle_fini(&machine);
    return status;
}

enum tandem_status tnd_torch_zip_add(const void *bytes, size_t n, const char *path,
                                     enum tnd_torch_role role, tandem_source *source,
                                     struct tandem_error *error)
{
    struct archive archive = {.source = source};
    struct tnd_torch_storages storages = {.file_bytes = n};
    enum tandem_status status = tnd_zip_open(bytes, n, path, &archive.zip, error);
    if (status == TANDEM_OK) {
        storages.rows = tnd_calloc(archive.zip.n, sizeof(storages.rows[0]));
        status = storages.rows == NULL
                     ? tnd_error_set(error, TANDEM_E_MEMORY, path, (int64_t)archive.zip.n, 0,
                                     "%s: no memory for its list of storages", tnd_short_name(path))
                     : read_object(&archive, &storages, role, error);
    }
    tnd_zip_close(&archive.zip);
    tnd_free(storages.rows);
    return status;
}

enum tandem_status tnd_torch_zip_read(const void *bytes, size_t n, const char *path,
                                      tandem_source **out_source, struct tandem_error *error)
{
    tandem_source *source;
    TND_TRY(tnd_source_new("PyTorch, ZIP archive", &source, error));
    const enum tandem_status status =
        tnd_torch_zip_add(bytes, n, path, TND_TORCH_WHOLE, source, error);
    return tnd_source_end(status, source, out_source);
}
