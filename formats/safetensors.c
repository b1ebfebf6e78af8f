/* SPDX-License-Identifier: MIT
 * Reader of safetensors files, single and sharded. The header is parsed in one pass; tensors borrow
 * from the mapping if their data is aligned. */
#include "formats/safetensors.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/vector.h"
#include "formats/cursor.h"
#include "formats/foreign.h"
#include "formats/hf_config.h"
#include "formats/hf_parts.h"
#include "formats/json_pull.h"
#include "formats/torch_pickle.h"
#include "formats/places.h"

#define MAX_FILES     4096
#define MAX_FILE_NAME 256
#define CONFIG_BYTES  ((size_t)1 << 20)

struct reader {
    struct tnd_json json;
    tandem_source *source;
    const uint8_t *data;
    size_t data_bytes;
    size_t file_bytes;
    bool is_model; /* names are mapped */
    struct tnd_places places;
};

bool tnd_safetensors_is(const uint8_t *bytes, size_t n)
{
    return n >= 10 && bytes[8] == '{' &&
           (bytes[9] == '"' || bytes[9] == '}' || bytes[9] == ' ' || bytes[9] == '\n');
}

bool tnd_safetensors_is_index(const uint8_t *bytes, size_t n)
{
    return n >= 2 && bytes[0] == '{' &&
           (bytes[1] == '"' || bytes[1] == ' ' || bytes[1] == '\n' || bytes[1] == '\r');
}

static enum tandem_status broken(const struct reader *reader, const char *name, const char *what,
                                 int64_t got, int64_t wanted, struct tandem_error *error)
{
    return tnd_error_set(error, TANDEM_E_FORMAT, name, got, wanted,
                         "%s: header, byte %lld: tensor %.60s: %s is %lld, expected %lld",
                         tnd_short_name(reader->json.name),
                         (long long)(reader->json.at - reader->json.begin), name, what,
                         (long long)got, (long long)wanted);
}

/* ---- one tensor ---- */

/* Parses a list of at most `most` counts. */
static enum tandem_status take_counts(struct tnd_json *json, int64_t *out, int most, int *out_n,
                                      struct tandem_error *error)
{
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_item(&walk)) {
        if (walk.i == most) {
            return tnd_error_set(error, TANDEM_E_FORMAT, json->name, walk.n, most,
                                 "%s: header, byte %lld: a list of more than %d numbers",
                                 tnd_short_name(json->name), (long long)(json->at - json->begin),
                                 most);
        }
        TND_TRY(tnd_json_count(json, &out[walk.i], error));
    }
    TND_TRY(walk.status);
    *out_n = (int)walk.n;
    return TANDEM_OK;
}

struct entry {
    const char *name; /* as in the header */
    char type[16];
    int64_t shape[TANDEM_MAX_DIMS];
    int n_dims; /* -1: not stated */
    int64_t place[2];
    int n_place;
};

static enum tandem_status take_entry(struct tnd_json *json, struct entry *entry,
                                     struct tandem_error *error)
{
    char key[32];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "dtype") == 0) {
            TND_TRY(tnd_json_pull_string(json, entry->type, sizeof(entry->type), error));
        } else if (strcmp(key, "shape") == 0) {
            TND_TRY(take_counts(json, entry->shape, TANDEM_MAX_DIMS, &entry->n_dims, error));
        } else if (strcmp(key, "data_offsets") == 0) {
            TND_TRY(take_counts(json, entry->place, 2, &entry->n_place, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    return walk.status;
}

static enum tandem_status note_place(struct reader *reader, const struct entry *entry,
                                     const char *name, struct tandem_error *error)
{
    if (entry->place[0] > entry->place[1] || (uint64_t)entry->place[1] > reader->data_bytes) {
        return tnd_error_set(error, TANDEM_E_TRUNCATED, name, entry->place[1],
                             (int64_t)reader->data_bytes,
                             "%s: tensor %.60s: data from %lld to %lld, the file has %zu bytes",
                             tnd_short_name(reader->json.name), name, (long long)entry->place[0],
                             (long long)entry->place[1], reader->data_bytes);
    }
    if (reader->places.n >= 2 * TND_SOURCE_MAX_TENSORS) {
        return tnd_error_set(error, TANDEM_E_LIMIT, name, (int64_t)reader->places.n,
                             2 * TND_SOURCE_MAX_TENSORS, "%s: more than %d tensors",
                             tnd_short_name(reader->json.name), 2 * TND_SOURCE_MAX_TENSORS);
    }
    const size_t n = strlen(name);
    const struct tnd_place place = {entry->place[0], entry->place[1], entry->name,
                                    (int)(n < 60 ? n : 60)};
    return tnd_places_add(&reader->places, place, reader->json.name, error);
}

/* Adds an F8 tensor as raw bytes, which tnd_hf_unpack converts. */
static enum tandem_status add_f8(const struct reader *reader, const char *name,
                                 const struct entry *entry, struct tandem_error *error)
{
    int64_t ne[TANDEM_MAX_DIMS] = {1, 1, 1, 1};
    int64_t values = 1;
    bool fits = true;
    for (int i = 0; i < entry->n_dims; i++) {
        ne[entry->n_dims - 1 - i] = entry->shape[i];
        fits = fits && !__builtin_mul_overflow(values, entry->shape[i], &values);
    }
    const int64_t bytes = entry->place[1] - entry->place[0];
    if (!fits || values != bytes) {
        return broken(reader, name, "the number of its bytes", bytes, fits ? values : INT64_MAX,
                      error);
    }
    return tnd_source_add(reader->source, name, TND_HF_RAW_F8, entry->n_dims, ne,
                          reader->data + entry->place[0], (size_t)bytes, error);
}

static enum tandem_status add_entry(struct reader *reader, const char *name,
                                    const struct entry *entry, struct tandem_error *error)
{
    struct tnd_foreign_tensor t = {.path = reader->json.name, .n_dims = entry->n_dims};
    char mapped[TND_SAFETENSORS_MAX_NAME];
    if (entry->n_dims < 0 || entry->n_place != 2 || entry->type[0] == '\0') {
        return broken(reader, name, "the number of its members dtype, shape, data_offsets",
                      (entry->n_dims >= 0) + (entry->n_place == 2) + (entry->type[0] != '\0'), 3,
                      error);
    }
    TND_TRY(note_place(reader, entry, name, error));
    t.name = name;
    if (reader->is_model) {
        if (!tnd_hf_names_of(reader->source->hf_whole)(name, mapped, sizeof(mapped))) {
            return TANDEM_OK;
        }
        t.name = mapped;
    }
    if (reader->is_model && strcmp(entry->type, "F8_E4M3") == 0 &&
        reader->source->hf_quantized.method == TND_HF_FP8) {
        return add_f8(reader, t.name, entry, error);
    }
    if (!tnd_foreign_from_name(entry->type, &t.type)) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_BUILD, name, 0, 0,
                             "%s: tensor %.60s has type %s%s, which this version does not read",
                             tnd_short_name(reader->json.name), name, entry->type,
                             entry->type[0] == 'F' ? " (quantised weights)" : "");
    }
    int64_t values = 1;
    bool fits = true;
    for (int i = 0; i < entry->n_dims; i++) {
        t.shape[i] = entry->shape[i];
        fits = fits && !__builtin_mul_overflow(values, t.shape[i], &values);
    }
    const int64_t bytes = entry->place[1] - entry->place[0];
    int64_t wanted = 0;
    fits = fits && tnd_foreign_dense(&t) &&
           !__builtin_mul_overflow(values, (int64_t)tnd_foreign_bytes(t.type), &wanted);
    if (!fits || wanted != bytes) {
        return broken(reader, name, "the number of its bytes", bytes, fits ? wanted : INT64_MAX,
                      error);
    }
    t.widens = reader->is_model && entry->n_dims == 1;
    t.storage = reader->data + entry->place[0];
    t.storage_bytes = (size_t)bytes;
    t.file_bytes = reader->file_bytes;
    return tnd_foreign_add(reader->source, &t, error);
}

/* ---- one file ---- */

/* "__metadata__": texts by key. */
static enum tandem_status take_metadata(struct reader *reader, struct tandem_error *error)
{
    struct tnd_json *json = &reader->json;
    char key[TND_SAFETENSORS_MAX_NAME];
    char text[4096];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        const char *begin = json->at;
        if (tnd_json_pull_string(json, text, sizeof(text), error) == TANDEM_E_LIMIT) {
            json->at = begin; /* too long; not needed */
            TND_TRY(tnd_json_skip(json, error));
            continue;
        }
        json->at = begin;
        TND_TRY(tnd_json_pull_string(json, text, sizeof(text), error));
        if (!reader->is_model) {
            TND_TRY(tnd_source_set_text(reader->source, key, text, error));
        }
    }
    return walk.status;
}

/* Checks that the tensors cover the data without gaps and overlaps. */
static enum tandem_status check_places(struct reader *reader, struct tandem_error *error)
{
    int64_t end = 0;
    TND_TRY(tnd_places_check(&reader->places, reader->json.name, error));
    for (size_t i = 0; i <= reader->places.n; i++) {
        const bool is_last = i == reader->places.n;
        const int64_t begin = is_last ? (int64_t)reader->data_bytes : reader->places.items[i].begin;
        if (begin != end) {
            return tnd_error_set(error, TANDEM_E_FORMAT, reader->json.name, begin, end,
                                 "%s: a hole in the data: a tensor ends at byte %lld, the next "
                                 "begins at %lld",
                                 tnd_short_name(reader->json.name), (long long)end,
                                 (long long)begin);
        }
        end = is_last ? end : reader->places.items[i].end;
    }
    return TANDEM_OK;
}

static enum tandem_status read_header(struct reader *reader, struct tandem_error *error)
{
    struct tnd_json *json = &reader->json;
    char name[TND_SAFETENSORS_MAX_NAME];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, name, sizeof(name))) {
        struct entry entry = {.name = walk.key, .n_dims = -1};
        if (strcmp(name, "__metadata__") == 0) {
            TND_TRY(take_metadata(reader, error));
            continue;
        }
        TND_TRY(take_entry(json, &entry, error));
        TND_TRY(add_entry(reader, name, &entry, error));
    }
    TND_TRY(walk.status);
    TND_TRY(tnd_json_end(json, error));
    return check_places(reader, error);
}

static enum tandem_status read_file(const void *bytes, size_t n, const char *path, bool is_model,
                                    tandem_source *source, struct tandem_error *error)
{
    struct tnd_cursor cursor = {bytes, n, 0, path};
    const uint8_t *header = NULL;
    uint64_t header_bytes = 0;
    TND_TRY(tnd_cursor_u64(&cursor, "the length of the header", &header_bytes, error));
    if (header_bytes > TND_SAFETENSORS_MAX_HEADER) {
        return tnd_error_set(error, TANDEM_E_FORMAT, path, (int64_t)header_bytes,
                             (int64_t)TND_SAFETENSORS_MAX_HEADER,
                             "%s: a header of %llu bytes, expected at most %llu",
                             tnd_short_name(path), (unsigned long long)header_bytes,
                             (unsigned long long)TND_SAFETENSORS_MAX_HEADER);
    }
    TND_TRY(tnd_cursor_take(&cursor, header_bytes, "the header", &header, error));
    const char *text = (const char *)header;
    struct reader reader = {.json = {text, text, text + header_bytes, path},
                            .source = source,
                            .data = cursor.data + cursor.at,
                            .data_bytes = tnd_cursor_left(&cursor),
                            .file_bytes = n,
                            .is_model = is_model};
    const enum tandem_status status = read_header(&reader, error);
    tnd_places_fini(&reader.places);
    return status;
}

/* ---- the files of a model ---- */

/* Path of a file in the folder of `path`; false: too long. */
static bool beside(const char *path, const char *name, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    return snprintf(out, PATH_MAX, "%.*s%s", folder, path, name) < PATH_MAX;
}

enum tandem_status tnd_safetensors_in_folder(const char *path, char *out_path,
                                             struct tandem_error *error)
{
    static const char *const names[] = {"model.safetensors.index.json", "model.safetensors",
                                        "pytorch_model.bin.index.json", "pytorch_model.bin",
                                        "consolidated.00.pth"};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return snprintf(out_path, PATH_MAX, "%s", path) < PATH_MAX
                   ? TANDEM_OK
                   : tnd_error_set(error, TANDEM_E_LIMIT, "path", PATH_MAX, PATH_MAX,
                                   "%.180s...: the path is too long", path);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (snprintf(out_path, PATH_MAX, "%s/%s", path, names[i]) < PATH_MAX &&
            tnd_file_exists(out_path)) {
            return TANDEM_OK;
        }
    }
    return tnd_error_set(
        error, TANDEM_E_FILE, path, 0, 0,
        "%.160s: a folder without model.safetensors, pytorch_model.bin, an index of "
        "them or consolidated.00.pth; a GGUF file is named itself",
        path);
}

/* Reads a small file in the folder of `path`; `out` stays empty if it does not exist. */
static enum tandem_status read_beside(const char *path, const char *name, char out_path[PATH_MAX],
                                      struct tnd_file *out, struct tandem_error *error)
{
    *out = (struct tnd_file){.bytes = 0};
    return !beside(path, name, out_path) || !tnd_file_exists(out_path)
               ? TANDEM_OK
               : tnd_file_read(out_path, CONFIG_BYTES, out, error);
}

enum tandem_status tnd_safetensors_config_beside(const char *path, tandem_source *source,
                                                 bool *out_is_model, struct tandem_error *error)
{
    char name[PATH_MAX];
    struct tnd_file file;
    struct tnd_end_tokens ends = {.n = 0};
    enum tandem_status status = TANDEM_OK;
    *out_is_model = false;
    TND_TRY(read_beside(path, "generation_config.json", name, &file, error));
    if (file.data != NULL) {
        status = tnd_safetensors_read_ends(file.data, file.bytes, name, &ends, error);
        tnd_file_close(&file);
    }
    TND_TRY(status);
    TND_TRY(read_beside(path, "config.json", name, &file, error));
    if (file.data != NULL) {
        status = tnd_safetensors_read_config(file.data, file.bytes, name, &ends, source,
                                             out_is_model, error);
        tnd_file_close(&file);
    }
    if (status == TANDEM_OK && *out_is_model && beside(path, "", name)) {
        status = tnd_hf_chat_templates(name, source, error);
        status = status == TANDEM_OK ? tnd_hf_read_pooling(name, source, error) : status;
    }
    return status;
}

enum tandem_status tnd_safetensors_read(const void *bytes, size_t n, const char *path,
                                        tandem_source **out_source, struct tandem_error *error)
{
    tandem_source *source;
    bool is_model = false;
    TND_TRY(tnd_source_new("safetensors", &source, error));
    enum tandem_status status = tnd_safetensors_config_beside(path, source, &is_model, error);
    if (status == TANDEM_OK) {
        status = read_file(bytes, n, path, is_model, source, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_source_check_names(source, path, error);
    }
    if (status == TANDEM_OK && is_model) {
        status = tnd_hf_finish(source, error);
    }
    return tnd_source_end(status, source, out_source);
}

/* Files that an index names, each once. */
struct file_list {
    char (*names)[MAX_FILE_NAME];
    size_t *ends;    /* number of tensors after each file was read; NULL before */
    uint16_t *slots; /* hash table of index in the list + 1, open addressing; 0: free */
    int n;
    size_t capacity;
    int64_t n_tensors; /* that the index lists and a model needs */
};
#define FILE_SLOTS (2 * MAX_FILES) /* a power of two */

/* The slot of a name, or the free slot for it. */
static uint16_t *file_slot(const struct file_list *files, const char *name)
{
    size_t at = (size_t)tnd_hash_string(name, 0) & (FILE_SLOTS - 1);
    while (files->slots[at] != 0 && strcmp(files->names[files->slots[at] - 1], name) != 0) {
        at = (at + 1) & (FILE_SLOTS - 1);
    }
    return &files->slots[at];
}

static enum tandem_status note_file(struct file_list *files, const struct tnd_json *json,
                                    const char *name, struct tandem_error *error)
{
    if (files->slots == NULL) {
        files->slots = tnd_calloc(FILE_SLOTS, sizeof(files->slots[0]));
    }
    uint16_t *slot = files->slots == NULL ? NULL : file_slot(files, name);
    if (slot != NULL && *slot != 0) {
        return TANDEM_OK;
    }
    if (files->n == MAX_FILES || name[0] == '\0' || strchr(name, '/') != NULL) {
        return tnd_error_set(error, TANDEM_E_FORMAT, json->name, files->n, MAX_FILES,
                             "%s: file %d is '%.60s', expected at most %d names without folder",
                             tnd_short_name(json->name), files->n + 1, name, MAX_FILES);
    }
    if (slot == NULL ||
        !tnd_grow(&files->names, (size_t)files->n, &files->capacity, MAX_FILE_NAME)) {
        return tnd_error_set(error, TANDEM_E_MEMORY, json->name, files->n, 0,
                             "%s: no memory for its list of files", tnd_short_name(json->name));
    }
    strcpy(files->names[files->n++], name);
    *slot = (uint16_t)files->n;
    return TANDEM_OK;
}

/* Checks that the tensor of that name came from the file that the index states. */
static enum tandem_status check_place(const struct file_list *files, const struct tnd_json *json,
                                      const tandem_source *source, const char *name,
                                      const char *file, struct tandem_error *error)
{
    const int64_t at = tnd_source_find(source, name);
    const int i = *file_slot(files, file) - 1;
    if (at >= 0 && i >= 0 && (size_t)at < files->ends[i] &&
        (i == 0 || (size_t)at >= files->ends[i - 1])) {
        return TANDEM_OK;
    }
    return tnd_error_set(error, TANDEM_E_FORMAT, json->name, at, 0,
                         "%s: tensor %.60s is not in %.60s, where it should be",
                         tnd_short_name(json->name), name, file);
}

/* Parses "weight_map": lists the files; after they have been read (`source` is not NULL), checks
 * their tensors. */
static enum tandem_status read_map(struct tnd_json *json, struct file_list *files,
                                   const tandem_source *source, bool is_model,
                                   struct tandem_error *error)
{
    char name[TND_SAFETENSORS_MAX_NAME];
    char mapped[TND_SAFETENSORS_MAX_NAME];
    char file[MAX_FILE_NAME];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, name, sizeof(name))) {
        TND_TRY(tnd_json_pull_string(json, file, sizeof(file), error));
        if (source == NULL) {
            TND_TRY(note_file(files, json, file, error));
        } else if (!is_model) {
            TND_TRY(check_place(files, json, source, name, file, error));
            files->n_tensors++;
        } else if (tnd_hf_names_of(source->hf_whole)(name, mapped, sizeof(mapped))) {
            TND_TRY(check_place(files, json, source, mapped, file, error));
            files->n_tensors++;
        }
    }
    return walk.status;
}

static enum tandem_status read_index(struct tnd_json *json, struct file_list *files,
                                     const tandem_source *source, bool is_model,
                                     struct tandem_error *error)
{
    char key[TND_SAFETENSORS_MAX_NAME];
    struct tnd_json_walk walk = {.json = json, .error = error};
    while (tnd_json_next_member(&walk, key, sizeof(key))) {
        if (strcmp(key, "weight_map") == 0) {
            TND_TRY(read_map(json, files, source, is_model, error));
        } else {
            TND_TRY(tnd_json_skip(json, error));
        }
    }
    TND_TRY(walk.status);
    TND_TRY(tnd_json_end(json, error));
    if (files->n == 0) {
        return tnd_error_set(error, TANDEM_E_FORMAT, json->name, 0, 1,
                             "%s: names no files of weights; an index of them has a \"weight_map\"",
                             tnd_short_name(json->name));
    }
    return TANDEM_OK;
}

/* Checks that each tensor is in the file that the index states, and that there are no others. */
static enum tandem_status check_index(const struct tnd_json *json, struct file_list *files,
                                      tandem_source *source, bool is_model, size_t n_before,
                                      struct tandem_error *error)
{
    struct tnd_json again = {json->begin, json->begin, json->end, json->name};
    tnd_source_index(source);
    TND_TRY(read_index(&again, files, source, is_model, error));
    const int64_t n = (int64_t)(source->n_tensors - n_before);
    if (files->n_tensors != n) {
        return tnd_error_set(error, TANDEM_E_FORMAT, json->name, n, files->n_tensors,
                             "%s: its %d files have %lld tensors, it names %lld",
                             tnd_short_name(json->name), files->n, (long long)n,
                             (long long)files->n_tensors);
    }
    return TANDEM_OK;
}

/* Adds the tensors of one file of an index, in either format. */
static enum tandem_status add_file(const struct tnd_file *file, const char *path, bool is_model,
                                   tandem_source *source, struct tandem_error *error)
{
    const enum tnd_torch_role role = is_model ? TND_TORCH_MODEL_PART : TND_TORCH_PART;
    if (tnd_torch_zip_is(file->data, file->bytes)) {
        return tnd_torch_zip_add(file->data, file->bytes, path, role, source, error);
    }
    if (tnd_torch_legacy_is(file->data, file->bytes)) {
        return tnd_torch_legacy_add(file->data, file->bytes, path, role, source, error);
    }
    return read_file(file->data, file->bytes, path, is_model, source, error);
}

static enum tandem_status read_files(const struct tnd_json *json, struct file_list *files,
                                     tandem_source *source, struct tandem_error *error)
{
    const char *path = json->name;
    bool is_model = false;
    char part[PATH_MAX];
    TND_TRY(tnd_safetensors_config_beside(path, source, &is_model, error));
    const size_t n_before = source->n_tensors;
    files->ends = tnd_calloc((size_t)files->n, sizeof(files->ends[0]));
    if (files->ends == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, path, files->n, 0,
                             "%s: no memory for its list of files", tnd_short_name(path));
    }
    for (int i = 0; i < files->n; i++) {
        struct tnd_file file = {.bytes = 0};
        if (!beside(path, files->names[i], part)) {
            return tnd_error_set(error, TANDEM_E_FILE, path, 0, PATH_MAX, "%s: a path too long",
                                 tnd_short_name(path));
        }
        TND_TRY(tnd_source_map(source, part, &file, error));
        TND_TRY(add_file(&file, part, is_model, source, error));
        files->ends[i] = source->n_tensors;
    }
    TND_TRY(tnd_source_check_names(source, path, error));
    TND_TRY(check_index(json, files, source, is_model, n_before, error));
    return is_model ? tnd_hf_finish(source, error) : TANDEM_OK;
}

enum tandem_status tnd_safetensors_read_index(const void *bytes, size_t n, const char *path,
                                              tandem_source **out_source,
                                              struct tandem_error *error)
{
    const char *text = bytes;
    struct tnd_json json = {text, text, text + n, path};
    struct file_list files = {.names = NULL};
    tandem_source *source = NULL;
    enum tandem_status status = read_index(&json, &files, NULL, false, error);
    if (status == TANDEM_OK) {
        status = tnd_source_new("safetensors, sharded", &source, error);
    }
    if (status == TANDEM_OK) {
        status = read_files(&json, &files, source, error);
    }
    tnd_free(files.names);
    tnd_free(files.slots);
    tnd_free(files.ends);
    return tnd_source_end(status, source, out_source);
}
