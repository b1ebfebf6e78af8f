/* SPDX-License-Identifier: MIT
 * The tables that a runtime uses, one over the other; the later wins (tnd_table_overlay):
 *
 *     working  ./mulmat-tune.txt, where the published mulmat-tune writes; read only when no other
 *              layer is valid
 *     system   D/tandem/<fingerprint>.json for each D of $XDG_DATA_DIRS (default /usr/local/share
 *              and /usr/share), the first of them on top; read only
 *     former   other tables in the folder of this machine's own one, the newest on top: what was
 *              measured before CPUs, caches or the build changed, as far as it still holds
 *     user     this machine's own table, tandem_table_default_path; $TANDEM_TABLE takes its place
 *     named    the file that the application names
 *
 * A layer that is missing, damaged or of another machine does not keep the others from serving. */
#ifndef TND_TABLE_LAYERS_H
#define TND_TABLE_LAYERS_H

#include "table/tnd_table.h"

enum tnd_layer_origin {
    TND_LAYER_WORKING,
    TND_LAYER_SYSTEM,
    TND_LAYER_FORMER,
    TND_LAYER_USER,
    TND_LAYER_NAMED
};
enum { TND_LAYERS_MAX = 11, TND_LAYER_PATH_MAX = 4096 };

struct tnd_layer {
    enum tnd_layer_origin origin;
    char path[TND_LAYER_PATH_MAX];
    bool is_asked;             /* somebody named the file: it may lie where all may write */
    bool is_there;             /* the file exists */
    bool serves;               /* some of its cells are valid here */
    bool has_retired;          /* see struct tandem_table */
    struct tandem_error error; /* why nothing or not all of it is valid */
    int64_t n_cells;           /* cells in the file */
    int64_t n_invalid;         /* of which invalid on this machine */
};

struct tnd_layers {
    int n;
    struct tnd_layer layers[TND_LAYERS_MAX]; /* lowest first */
};

/** "working", "system", "former", "user", "named". Static. */
const char *tnd_layer_origin_name(enum tnd_layer_origin origin);

/** The paths of the layers. `named`: the application's file, NULL: none. The caller frees the
 * result with tnd_free. Errors: MEMORY. */
enum tandem_status tnd_layers_find(const char *named, struct tnd_layers **out_layers,
                                   struct tandem_error *error);

/** Logs one line for each layer that exists: what is used, what is not and why. */
void tnd_layers_log(const struct tnd_layers *layers, const struct tnd_log *log, const char *room);

/** Loads all layers, lays them over each other and records the outcome of each. Errors when none is
 * valid: NOT_FOUND, or what is wrong with the highest layer; MEMORY. */
enum tandem_status tnd_layers_load(struct tnd_layers *layers, const struct tnd_fingerprint *machine,
                                   tandem_table **out_table, struct tandem_error *error);

/** tandem_table_default_path for writing: also FILE when every user may write there and
 * TANDEM_TABLE does not name the path. */
enum tandem_status tnd_table_own_path(char *out, size_t n, struct tandem_error *error);

/** Adds `table`, which is newly measured, to the file at `path` by the merge rule; its samples
 * replace older stale ones (tnd_table_supersede). Locks the file against other processes, reads it,
 * merges, and replaces it atomically. No measurement is lost: a file that this version cannot parse
 * is first copied to "<path>.bad-<date>", and a table with cells that are invalid on `table`'s
 * machine, and therefore left out, to "<path>.other-<date>"; `out_note` (may be NULL; status OK: no
 * copy) has the reason and the name. A file that cannot be read or copied is not replaced. Errors:
 * FILE, MEMORY, LIMIT. */
enum tandem_status tnd_table_update_file(const char *path, const tandem_table *table,
                                         struct tandem_error *out_note, struct tandem_error *error);

/** Replaces the file at `path` by `table`, under its lock; a file that is not a table is backed up
 * as by tnd_table_update_file. Errors: FILE, MEMORY, LIMIT. */
enum tandem_status tnd_table_replace_file(const char *path, const tandem_table *table,
                                          enum tandem_table_format format,
                                          struct tandem_error *out_note,
                                          struct tandem_error *error);

#endif
