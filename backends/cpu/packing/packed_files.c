/* SPDX-License-Identifier: MIT
 * Files of packed weights, one per model file. In a cache folder their name is the model's name
 * plus a hash of samples of its contents, so that models with the same name do not collide. */
#include "backends/cpu/packing/packed_files.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "base/mapped_digest.h"
#include "base/tnd_assert.h"

struct tnd_packed_file {
    struct tnd_mapped_file model;
    struct tnd_pack_key key;
    char path[PATH_MAX];
    struct tnd_file cache; /* zero: there is no valid cache */
    size_t n_entries;
    bool is_foreign;   /* another kind of file has the cache's name: it is left alone */
    bool is_untrusted; /* others can write there: it is neither read nor written */
    bool is_written;   /* on request */
    bool has_told;     /* has reported that rows differ from those that were packed */
    int n_holders;
    struct tnd_packed_file *next;
};

struct tnd_packed_files {
    char folder[PATH_MAX]; /* "": none */
    bool writes_beside;
    const char *isa;
    tnd_packed_note_fn *note;
    void *note_user;
    struct tnd_packed_file *first;
};

enum tandem_status tnd_packed_files_new(const char *folder, bool writes_beside, const char *isa,
                                        struct tnd_packed_files **out_files,
                                        struct tandem_error *error)
{
    struct tnd_packed_files *files = tnd_calloc(1, sizeof(*files));
    folder = folder != NULL ? folder : "";
    if (files == NULL || strlen(folder) >= sizeof(files->folder)) {
        tnd_free(files);
        return tnd_error_set(error, TANDEM_E_MEMORY, "pack-cache", PATH_MAX, 0,
                             "cpu: no room for the folder of packed weights");
    }
    memcpy(files->folder, folder, strlen(folder) + 1);
    files->writes_beside = writes_beside;
    files->isa = isa;
    *out_files = files;
    return TANDEM_OK;
}

void tnd_packed_files_free(struct tnd_packed_files *files)
{
    TND_ASSERT(files == NULL || files->first == NULL);
    tnd_free(files);
}

void tnd_packed_files_set_note(struct tnd_packed_files *files, tnd_packed_note_fn *note, void *user)
{
    files->note = note;
    files->note_user = user;
}

/* ---- opening ---- */

static void say(const struct tnd_packed_files *files, bool is_warning, const char *path,
                const char *what)
{
    char text[512];
    if (files->note != NULL) {
        snprintf(text, sizeof(text), "packed weights: %.200s: %.280s", path, what);
        files->note(files->note_user, is_warning, text);
    }
}

/* A cache that does not match is ignored; if it is a cache of this format, it will be replaced. */
static enum tandem_status map_cache(struct tnd_packed_file *file, struct tandem_error *error)
{
    enum tandem_status status = tnd_file_check_owner(file->path, error);
    file->is_untrusted = status != TANDEM_OK;
    if (status != TANDEM_OK || !tnd_file_exists(file->path)) {
        return status;
    }
    status = tnd_file_check_user(file->path, file->model.path, error);
    file->is_untrusted = status != TANDEM_OK;
    if (status != TANDEM_OK) {
        return status;
    }
    status = tnd_file_map(file->path, false, &file->cache, error);
    file->is_foreign =
        status != TANDEM_OK ||
        (file->cache.bytes > 0 && !tnd_pack_cache_is_ours(file->cache.data, file->cache.bytes));
    if (status == TANDEM_OK) {
        status = tnd_pack_cache_check(file->cache.data, file->cache.bytes, &file->key,
                                      &file->n_entries, error);
    }
    return status;
}

static void open_cache(const struct tnd_packed_files *files, struct tnd_packed_file *file)
{
    struct tandem_error error = {0};
    char text[96];
    file->is_foreign = false;
    if (map_cache(file, &error) != TANDEM_OK) {
        tnd_file_close(&file->cache);
        say(files, true, file->path, error.text);
    } else if (file->cache.data != NULL) {
        snprintf(text, sizeof(text), "%zu packed weights, %.0f MiB", file->n_entries,
                 (double)file->cache.bytes / 1048576.0);
        say(files, false, file->path, text);
    }
}

/* Builds the cache's name; false: it would be too long. */
static bool name_beside(const struct tnd_mapped_file *model, char *out, size_t bytes)
{
    const int n = snprintf(out, bytes, "%s.packed", model->path);
    return model->path[0] != '\0' && n > 0 && (size_t)n < bytes;
}

static bool name_in_folder(const struct tnd_packed_files *files, const struct tnd_packed_file *file,
                           char *out, size_t bytes)
{
    const int n = snprintf(out, bytes, "%s/%s-%016" PRIx64 ".packed", files->folder,
                           file->model.name, file->key.model_hash);
    return files->folder[0] != '\0' && n > 0 && (size_t)n < bytes;
}

static struct tnd_packed_file *open_file(const struct tnd_packed_files *files,
                                         const struct tnd_mapped_file *model)
{
    char beside[PATH_MAX];
    const bool has_name = name_beside(model, beside, sizeof(beside));
    const bool is_beside = has_name && (files->writes_beside || tnd_file_exists(beside));
    struct tnd_packed_file *file = files->isa != NULL && (is_beside || files->folder[0] != '\0')
                                       ? tnd_calloc(1, sizeof(*file))
                                       : NULL;
    if (file == NULL) {
        return NULL;
    }
    file->model = *model;
    file->key = (struct tnd_pack_key){.model_bytes = model->bytes,
                                      .model_hash = tnd_pack_model_hash(model->data, model->bytes),
                                      .layout = tnd_pack_layout_of(files->isa)};
    if (is_beside) {
        memcpy(file->path, beside, sizeof(beside));
        open_cache(files, file);
    }
    file->is_written = is_beside && files->writes_beside;
    if (!file->is_written && file->n_entries == 0 &&
        name_in_folder(files, file, file->path, PATH_MAX)) {
        open_cache(files, file);
        file->is_written = true;
    }
    return file;
}

static bool is_same(const struct tnd_mapped_file *a, const struct tnd_mapped_file *b)
{
    return a->device == b->device && a->file == b->file && a->bytes == b->bytes &&
           a->changed_ns == b->changed_ns && a->facts_changed_ns == b->facts_changed_ns;
}

struct tnd_packed_file *tnd_packed_files_hold(struct tnd_packed_files *files, const void *data,
                                              size_t bytes, uint64_t *out_offset)
{
    struct tnd_mapped_file model;
    if (!tnd_mapped_find(data, bytes, &model)) {
        return NULL;
    }
    struct tnd_packed_file *file = files->first;
    while (file != NULL && !is_same(&file->model, &model)) {
        file = file->next;
    }
    if (file == NULL) {
        file = open_file(files, &model);
        if (file == NULL) {
            return NULL;
        }
        file->next = files->first;
        files->first = file;
    }
    file->model = model; /* the same file may be mapped again */
    file->n_holders++;
    *out_offset = (uint64_t)((const uint8_t *)data - model.data);
    return file;
}

void tnd_packed_files_leave(struct tnd_packed_files *files, struct tnd_packed_file *file)
{
    TND_ASSERT(file->n_holders > 0);
    if (--file->n_holders > 0) {
        return;
    }
    struct tnd_packed_file **at = &files->first;
    while (*at != file) {
        at = &(*at)->next;
    }
    *at = file->next;
    tnd_file_close(&file->cache);
    tnd_free(file);
}

/* ---- reading and writing ---- */

static bool is_entry(const struct tnd_pack_entry *a, const struct tnd_pack_entry *b)
{
    return a->offset == b->offset && a->type == b->type && a->k == b->k && a->n == b->n &&
           a->matrices == b->matrices;
}

struct tnd_packed_found tnd_packed_file_find(const struct tnd_packed_files *files,
                                             struct tnd_packed_file *file,
                                             const struct tnd_pack_entry *wanted, const void *rows,
                                             size_t row_bytes)
{
    for (size_t i = 0; i < file->n_entries; i++) {
        struct tnd_pack_entry entry = tnd_pack_cache_entry(file->cache.data, i);
        if (!is_entry(&entry, wanted)) {
            continue;
        }
        if (entry.rows == tnd_mapped_digest(rows, row_bytes)) {
            return (struct tnd_packed_found){file->cache.data, entry};
        }
        if (!file->has_told) {
            say(files, true, file->path,
                "was made of other weights: the model file was changed since; what differs is "
                "packed anew");
        }
        file->has_told = true;
    }
    return (struct tnd_packed_found){.cache = NULL};
}

void tnd_packed_file_tell_damage(const struct tnd_packed_files *files,
                                 const struct tnd_packed_file *file, const char *weight, int64_t i)
{
    char text[256];
    snprintf(text, sizeof(text),
             "is damaged: panel %lld of the weight '%.64s' does not have its digest; panels of "
             "this weight that are damaged are packed anew from the model",
             (long long)i, weight);
    say(files, true, file->path, text);
}

/* Merges the weights in the cache with new ones, and assigns offsets. */
static struct tnd_packed_piece *join(const struct tnd_packed_file *file,
                                     const struct tnd_packed_piece *pieces, size_t n_pieces,
                                     size_t *out_n)
{
    size_t n = 0;
    struct tnd_packed_piece *all = tnd_calloc(n_pieces + file->n_entries, sizeof(*all));
    for (size_t i = 0; i < file->n_entries && all != NULL; i++) {
        struct tnd_pack_entry entry = tnd_pack_cache_entry(file->cache.data, i);
        all[n++] = (struct tnd_packed_piece){entry, file->cache.data + entry.at, file->cache.data};
    }
    for (size_t i = 0; i < n_pieces && all != NULL; i++) {
        size_t same = 0; /* a weight may have been prepared as two tensors */
        while (same < n && !is_entry(&all[same].entry, &pieces[i].entry)) {
            same++;
        }
        all[same] = pieces[i];
        n += same == n;
    }
    *out_n = n;
    return all;
}

static enum tandem_status write_panels(struct tnd_file_stream *stream,
                                       const struct tnd_packed_piece *pieces,
                                       const struct tnd_pack_entry *placed, size_t n, uint64_t at,
                                       struct tandem_error *error)
{
    static const uint8_t zeros[TND_PACK_ALIGNMENT];
    for (size_t i = 0; i < n; i++) {
        TND_TRY(tnd_file_stream_write(stream, zeros, (size_t)(placed[i].at - at), error));
        TND_TRY(tnd_file_stream_write(stream, pieces[i].panels, (size_t)placed[i].bytes, error));
        at = placed[i].at + placed[i].bytes;
    }
    return TANDEM_OK;
}

/* Builds header, index and digests of entries with offsets. Digests of a cache's panels are copied,
 * even of damaged ones, so that the damage stays known. NULL: no memory. */
static uint8_t *make_index(const struct tnd_packed_file *file,
                           const struct tnd_packed_piece *pieces,
                           const struct tnd_pack_entry *placed, size_t n, size_t n_panels,
                           uint64_t file_bytes)
{
    uint8_t *index = tnd_alloc(tnd_pack_index_bytes(n, n_panels));
    for (size_t i = 0; i < n && index != NULL; i++) {
        const struct tnd_packed_piece *piece = &pieces[i];
        const size_t bytes = piece->entry.bytes / piece->entry.panels;
        for (size_t p = 0; p < placed[i].panels; p++) {
            tnd_pack_set_panel(index, n, placed[i].first + p,
                               piece->cache != NULL
                                   ? tnd_pack_cache_panel(piece->cache, &piece->entry, p)
                                   : tnd_digest(piece->panels + p * bytes, bytes));
        }
    }
    if (index != NULL) {
        tnd_pack_write_index(&file->key, placed, n, file_bytes, index);
    }
    return index;
}

static enum tandem_status write_all(const struct tnd_packed_file *file,
                                    const struct tnd_packed_piece *pieces,
                                    struct tnd_pack_entry *entries, size_t n,
                                    struct tandem_error *error)
{
    struct tnd_file_stream stream;
    size_t n_panels = 0;
    const uint64_t bytes = tnd_pack_place(entries, n, &n_panels);
    const size_t index_bytes = tnd_pack_index_bytes(n, n_panels);
    TND_TRY(tnd_file_make_folders(file->path, error));
    TND_TRY(tnd_file_stream_open(file->path, false, &stream, error));
    uint8_t *index = make_index(file, pieces, entries, n, n_panels, bytes);
    enum tandem_status status =
        index != NULL ? tnd_file_stream_write(&stream, index, index_bytes, error)
                      : tnd_error_set(error, TANDEM_E_MEMORY, file->path, (int64_t)index_bytes, 0,
                                      "packed weights: no memory");
    tnd_free(index);
    if (status == TANDEM_OK) {
        status = write_panels(&stream, pieces, entries, n, index_bytes, error);
    }
    if (status == TANDEM_OK) { /* what was packed of a changed file fits neither */
        status = tnd_mapped_check_file(file->model.data, error);
    }
    if (status == TANDEM_OK) {
        return tnd_file_stream_commit(&stream, error);
    }
    tnd_file_stream_abandon(&stream);
    return status;
}

enum tandem_status tnd_packed_file_write(struct tnd_packed_files *files,
                                         struct tnd_packed_file *file,
                                         const struct tnd_packed_piece *pieces, size_t n_pieces,
                                         struct tandem_error *error)
{
    size_t n = 0;
    if (!file->is_written) {
        return TANDEM_OK;
    }
    if (file->is_untrusted) {
        return tnd_file_check_owner(file->path, error) != TANDEM_OK
                   ? TANDEM_E_FILE
                   : tnd_file_check_user(file->path, file->model.path, error);
    }
    if (file->is_foreign) {
        return tnd_error_set(error, TANDEM_E_FILE, file->path, 0, 0,
                             "%.200s: is no file of packed weights and is left alone", file->path);
    }
    struct tnd_packed_piece *all = join(file, pieces, n_pieces, &n);
    struct tnd_pack_entry *entries = tnd_calloc(n, sizeof(*entries));
    enum tandem_status status = TANDEM_E_MEMORY;
    if (all != NULL && entries != NULL) {
        for (size_t i = 0; i < n; i++) {
            entries[i] = all[i].entry;
        }
        status = write_all(file, all, entries, n, error);
    } else {
        (void)tnd_error_set(error, status, file->path, 0, 0, "packed weights: no memory");
    }
    tnd_free(entries);
    tnd_free(all);
    if (status == TANDEM_OK) {
        say(files, false, file->path, "written");
    }
    return status;
}
