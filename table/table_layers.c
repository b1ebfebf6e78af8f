/* SPDX-License-Identifier: MIT
 * Finding and reading the layers, and adding to a file that other processes may be adding to as
 * well. */
#include "table/table_layers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/file_stream.h"
#include "base/tnd_mapped.h"
#include "base/tnd_status.h"
#include "table/table_filter.h"
#include "table/invalidate.h"

enum { MAX_SYSTEM = 4, MAX_FORMER = 4 };

const char *tnd_layer_origin_name(enum tnd_layer_origin origin)
{
    static const char *const names[] = {"working", "system", "former", "user", "named"};
    return names[origin];
}

/* ---- paths ---- */

static void add_layer(struct tnd_layers *layers, enum tnd_layer_origin origin, bool is_asked,
                      const char *path)
{
    if (layers->n < TND_LAYERS_MAX && strlen(path) < TND_LAYER_PATH_MAX) {
        struct tnd_layer *layer = &layers->layers[layers->n++];
        layer->origin = origin;
        layer->is_asked = is_asked;
        snprintf(layer->path, sizeof(layer->path), "%s", path);
    }
}

/* By its absolute path, because every folder in it must be trusted. A program with more rights than
 * its user does not read the working directory. */
static void add_working(struct tnd_layers *layers)
{
    char path[TND_LAYER_PATH_MAX];
    static const char name[] = "/mulmat-tune.txt";
    if (getauxval(AT_SECURE) == 0 && getcwd(path, sizeof(path) - sizeof(name)) != NULL) {
        strcat(path, name);
        if (tnd_file_exists(path)) {
            add_layer(layers, TND_LAYER_WORKING, false, path);
        }
    }
}

/* The first folder of the list has precedence, so it is added last. Source: XDG Base Directory
 * Specification 0.8. */
static void add_system(struct tnd_layers *layers, const char *file)
{
    const char *listed = secure_getenv("XDG_DATA_DIRS");
    listed = listed != NULL && listed[0] != '\0' ? listed : "/usr/local/share:/usr/share";
    const char *end = listed + strlen(listed);
    const int most = layers->n + MAX_SYSTEM;
    while (end > listed) {
        const char *begin = end;
        while (begin > listed && begin[-1] != ':') {
            begin--;
        }
        size_t length = (size_t)(end - begin);
        while (length > 1 && begin[length - 1] == '/') {
            length--;
        }
        char path[TND_LAYER_PATH_MAX];
        int n = snprintf(path, sizeof(path), "%.*s/tandem/%s", (int)length, begin, file);
        bool is_absolute = length > 0 && begin[0] == '/'; /* XDG: ignore relative paths */
        if (is_absolute && n > 0 && (size_t)n < sizeof(path) && layers->n < most) {
            add_layer(layers, TND_LAYER_SYSTEM, false, path);
        }
        end = begin > listed ? begin - 1 : listed;
    }
}

/* Tables beside the user's own one, oldest first. */
struct former {
    int n;
    struct {
        char name[24];
        int64_t changed_ns;
    } files[MAX_FORMER];
};

/* Inserts a table by its age; drops the oldest when full. */
static void keep_former(struct former *former, const char *name, int64_t changed_ns)
{
    int at = former->n;
    while (at > 0 && former->files[at - 1].changed_ns > changed_ns) {
        at--;
    }
    if (former->n == MAX_FORMER && at == 0) {
        return;
    }
    if (former->n == MAX_FORMER) {
        at--; /* drops the oldest */
        memmove(&former->files[0], &former->files[1], (size_t)at * sizeof(former->files[0]));
    } else {
        memmove(&former->files[at + 1], &former->files[at],
                (size_t)(former->n - at) * sizeof(former->files[0]));
        former->n++;
    }
    snprintf(former->files[at].name, sizeof(former->files[at].name), "%s", name);
    former->files[at].changed_ns = changed_ns;
}

/* Adds the tables in the folder of `own`; they are named by fingerprints. */
static void add_former(struct tnd_layers *layers, const char *own)
{
    const char *base = strrchr(own, '/');
    char path[TND_LAYER_PATH_MAX];
    struct former former = {0};
    if (base == NULL) {
        return;
    }
    int folder = (int)(base - own);
    snprintf(path, sizeof(path), "%.*s", folder, own);
    DIR *files = opendir(path);
    const struct dirent *file = NULL;
    while (files != NULL && (file = readdir(files)) != NULL) {
        struct stat facts;
        const char *name = file->d_name;
        bool is_table = strspn(name, "0123456789abcdef") == 16 && strcmp(name + 16, ".json") == 0 &&
                        strcmp(name, base + 1) != 0;
        snprintf(path, sizeof(path), "%.*s/%s", folder, own, name);
        if (is_table && stat(path, &facts) == 0) {
            keep_former(&former, name, tnd_mapped_changed_ns(&facts));
        }
    }
    if (files != NULL) {
        closedir(files);
    }
    for (int i = 0; i < former.n; i++) {
        snprintf(path, sizeof(path), "%.*s/%s", folder, own, former.files[i].name);
        add_layer(layers, TND_LAYER_FORMER, false, path);
    }
}

enum tandem_status tnd_layers_find(const char *named, struct tnd_layers **out_layers,
                                   struct tandem_error *error)
{
    struct tnd_layers *layers = tnd_calloc(1, sizeof(*layers));
    if (layers == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "table", 0, 0, "table: out of memory");
    }
    const char *instead = tnd_environment(TND_ENVIRONMENT_TABLE);
    char path[TND_LAYER_PATH_MAX];
    if (instead == NULL || strcmp(instead, "none") != 0) {
        add_working(layers);
        snprintf(path, sizeof(path), "%016llx.json", (unsigned long long)tnd_fingerprint_here());
        add_system(layers, path);
        if (tandem_table_default_path(path, sizeof(path), NULL) == TANDEM_OK) {
            if (instead == NULL) {
                add_former(layers, path);
            }
            add_layer(layers, TND_LAYER_USER, instead != NULL, path);
        }
    }
    if (named != NULL) {
        add_layer(layers, TND_LAYER_NAMED, true, named);
    }
    *out_layers = layers;
    return TANDEM_OK;
}

/* ---- reading ---- */

/* The part of a layer that is valid on this machine; NULL, with the reason in the layer, when there
 * is none. */
static tandem_table *read_layer(struct tnd_layer *layer, const struct tnd_fingerprint *machine)
{
    tandem_table *table = NULL;
    struct tnd_invalid_report report;
    layer->is_there = tnd_file_exists(layer->path);
    if (layer->is_there && !layer->is_asked &&
        tnd_file_check_owner(layer->path, &layer->error) != TANDEM_OK) {
        return NULL;
    }
    if (tandem_table_load(layer->path, &table, &layer->error) != TANDEM_OK) {
        return NULL;
    }
    layer->has_retired = table->has_retired;
    layer->n_cells = tnd_table_count_cells(table);
    tnd_table_invalidate(table, machine, &report);
    layer->n_invalid = report.n_cells;
    tnd_invalid_error(&report, &layer->error);
    if (layer->n_invalid > 0 && layer->n_invalid == layer->n_cells) {
        tandem_table_free(table);
        return NULL;
    }
    layer->serves = true;
    return table;
}

enum tandem_status tnd_layers_load(struct tnd_layers *layers, const struct tnd_fingerprint *machine,
                                   tandem_table **out_table, struct tandem_error *error)
{
    tandem_table *table = NULL;
    enum tandem_status status = TANDEM_OK;
    const int first = layers->n > 0 && layers->layers[0].origin == TND_LAYER_WORKING ? 1 : 0;
    for (int i = first; i < layers->n && status == TANDEM_OK; i++) {
        tandem_table *upper = read_layer(&layers->layers[i], machine);
        if (table == NULL) {
            table = upper;
        } else if (upper != NULL) {
            status = tnd_table_overlay(table, upper, error);
            tandem_table_free(upper);
        }
    }
    if (status == TANDEM_OK && table == NULL && first == 1) {
        table = read_layer(&layers->layers[0], machine);
    }
    if (status == TANDEM_OK && table == NULL) {
        const struct tandem_error *why =
            layers->n > 0 ? &layers->layers[layers->n - 1].error : NULL;
        status = why != NULL ? why->status : TANDEM_E_NOT_FOUND;
        tnd_error_set(error, status, why != NULL ? why->where : "", why != NULL ? why->got : 0, 0,
                      "%s", why != NULL ? why->text : "no timing table: none is wanted");
    }
    if (status != TANDEM_OK) {
        tandem_table_free(table);
        return status;
    }
    *out_table = table;
    return TANDEM_OK;
}

void tnd_layers_log(const struct tnd_layers *layers, const struct tnd_log *log, const char *room)
{
    for (int i = 0; i < layers->n; i++) {
        const struct tnd_layer *layer = &layers->layers[i];
        /* A table measured before the machine changed is never expected to be valid as a whole. */
        bool is_whole = layer->error.status == TANDEM_OK || layer->origin == TND_LAYER_FORMER;
        /* Nobody named the file in the working directory, so using it is logged as a warning. */
        bool is_expected = is_whole && layer->origin != TND_LAYER_WORKING;
        if (layer->serves) {
            tnd_log_line(log, is_expected ? TANDEM_LOG_INFO : TANDEM_LOG_WARN, room,
                         "timing table (%s) %s%s%s%s", tnd_layer_origin_name(layer->origin),
                         layer->path, is_whole ? "" : ": ", layer->error.text,
                         layer->has_retired ? "; its list 'launches' is not used any more" : "");
        } else if (layer->is_there && layer->origin != TND_LAYER_FORMER) {
            tnd_log_line(log, TANDEM_LOG_WARN, room, "timing table (%s) does not serve: %s",
                         tnd_layer_origin_name(layer->origin), layer->error.text);
        }
    }
}

/* ---- adding ---- */

enum tandem_status tnd_table_own_path(char *out, size_t n, struct tandem_error *error)
{
    TND_TRY(tandem_table_default_path(out, n, error));
    return tnd_environment(TND_ENVIRONMENT_TABLE) != NULL ? TANDEM_OK
                                                          : tnd_file_check_owner(out, error);
}

/* Leaves room for a sentence before and after it in a struct tandem_error. */
enum { REASON_CHARS = 150 };

static const char *last_part(const char *path)
{
    return path + tnd_file_folder_length(path);
}

/* Backs up the file at `path` and adds the name of the copy to `note`. */
static enum tandem_status keep_backup(const char *path, const char *why, struct tandem_error *note,
                                      struct tandem_error *error)
{
    char name[TND_LAYER_PATH_MAX];
    TND_TRY(tnd_file_back_up(path, why, name, sizeof(name), error));
    (void)tnd_error_set(note, note->status, note->where, note->got, note->limit,
                        "%.*s; the old file is kept whole as %.80s", REASON_CHARS, note->text,
                        last_part(name));
    return TANDEM_OK;
}

/* Loads the table at `path`; NULL when there is none, or none that can be parsed, with the reason
 * in `note`. Fails when the file can be neither read nor backed up. */
static enum tandem_status read_old(const char *path, tandem_table **out_table,
                                   struct tandem_error *note, struct tandem_error *error)
{
    tandem_table *table = NULL;
    enum tandem_status status = tandem_table_load(path, &table, note);
    if (status == TANDEM_E_FILE && note->got == ENOENT) {
        memset(note, 0, sizeof(*note));
    } else if (status == TANDEM_E_FILE || status == TANDEM_E_MEMORY || status == TANDEM_E_LIMIT ||
               status == TANDEM_E_UNSUPPORTED_BUILD) { /* not parsed, so it may be a valid table */
        return tnd_error_set(error, status, path, note->got, note->limit,
                             "%.*s; the file is not replaced", REASON_CHARS, note->text);
    }
    *out_table = table;
    return TANDEM_OK;
}

static bool is_empty(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && facts.st_size == 0;
}

/* The table to add to: the one at `path` without what is invalid. Backs up whatever the write would
 * lose. */
static enum tandem_status read_to_extend(const char *path, const tandem_table *addition,
                                         tandem_table **out_table, struct tandem_error *note,
                                         struct tandem_error *error)
{
    tandem_table *table = NULL;
    struct tnd_invalid_report report = {0};
    const char *why = NULL;
    TND_TRY(read_old(path, &table, note, error));
    if (table == NULL) {
        why = note->status != TANDEM_OK && !is_empty(path) ? "bad" : NULL;
    } else if (addition->has_fingerprint) {
        tnd_table_invalidate(table, &addition->fingerprint, &report);
        tnd_invalid_error(&report, note);
        why = report.n_cells > 0 ? "other" : NULL;
    }
    enum tandem_status status = why != NULL ? keep_backup(path, why, note, error) : TANDEM_OK;
    if (status != TANDEM_OK) {
        tandem_table_free(table);
        return status;
    }
    *out_table = table;
    return TANDEM_OK;
}

static enum tandem_status add_to_file(const char *path, const tandem_table *table,
                                      struct tandem_error *note, struct tandem_error *error)
{
    tandem_table *fresh = NULL;
    tandem_table *sum = NULL;
    TND_TRY(read_to_extend(path, table, &sum, note, error));
    enum tandem_status status = tandem_table_copy(table, &fresh, error);
    if (status == TANDEM_OK && sum == NULL) {
        sum = fresh;
        fresh = NULL;
    } else if (status == TANDEM_OK) {
        tnd_table_supersede(fresh, sum);
        status = tandem_table_merge(sum, fresh, error);
    }
    if (status == TANDEM_OK) {
        status = tandem_table_save(sum, path, TANDEM_TABLE_JSON, error);
    }
    tandem_table_free(fresh);
    tandem_table_free(sum);
    return status;
}

static enum tandem_status replace_file(const char *path, const tandem_table *table,
                                       enum tandem_table_format format, struct tandem_error *note,
                                       struct tandem_error *error)
{
    tandem_table *old = NULL;
    TND_TRY(read_old(path, &old, note, error));
    tandem_table_free(old);
    if (note->status != TANDEM_OK && !is_empty(path)) {
        TND_TRY(keep_backup(path, "bad", note, error));
    }
    return tandem_table_save(table, path, format, error);
}

/* Updates or replaces the file under its lock. */
static enum tandem_status write_file(const char *path, const tandem_table *table, bool adds,
                                     enum tandem_table_format format, struct tandem_error *out_note,
                                     struct tandem_error *error)
{
    struct tandem_error note = {0};
    int lock;
    TND_TRY(tnd_file_make_folders(path, error));
    TND_TRY(tnd_file_lock(path, TND_LOCK_WAIT_MS, &lock, error));
    enum tandem_status status = adds ? add_to_file(path, table, &note, error)
                                     : replace_file(path, table, format, &note, error);
    tnd_file_unlock(lock);
    if (out_note != NULL) {
        *out_note = note;
    }
    return status;
}

enum tandem_status tnd_table_update_file(const char *path, const tandem_table *table,
                                         struct tandem_error *out_note, struct tandem_error *error)
{
    return write_file(path, table, true, TANDEM_TABLE_JSON, out_note, error);
}

enum tandem_status tnd_table_replace_file(const char *path, const tandem_table *table,
                                          enum tandem_table_format format,
                                          struct tandem_error *out_note, struct tandem_error *error)
{
    return write_file(path, table, false, format, out_note, error);
}
