/* SPDX-License-Identifier: MIT
 * The tables that serve a runtime, one over the other; the later wins (tnd_table_overlay):
 *
 *     working  ./mulmat-tune.txt, where the published mulmat-tune writes; read only when no other
 *              layer serves
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
    bool serves;               /* some of its cells do */
    bool has_retired;          /* see struct tandem_table */
    struct tandem_error error; /* why not, or why not all */
    int64_t n_cells;           /* in the file */
    int64_t n_invalid;         /* of them of no use on this machine */
};

struct tnd_layers {
    int n;
    struct tnd_layer layers[TND_LAYERS_MAX]; /* lowest first */
};

/** "working", "system", "former", "user", "named". Static. */
const char *tnd_layer_origin_name(enum tnd_layer_origin origin);

/** Where the layers lie. `named`: the application's file, NULL: none. The caller frees the result
 *  with tnd_free. Errors: MEMORY. */
enum tandem_status tnd_layers_find(const char *named, struct tnd_layers **out_layers,
                                   struct tandem_error *error);

/** One line to the log for each layer that is there: what serves, what does not and why. */
void tnd_layers_log(const struct tnd_layers *layers, const struct tnd_log *log, const char *room);

/** Reads all of them and lays them over each other; fills in what became of each. Errors:
 *  NOT_FOUND, or what is wrong with the highest layer, when none serves; MEMORY. */
enum tandem_status tnd_layers_load(struct tnd_layers *layers, const struct tnd_fingerprint *machine,
                                   tandem_table **out_table, struct tandem_error *error);

/** tandem_table_default_path for somebody who will write there: FILE, too, when every user may
 *  write to that place and nobody named it (TANDEM_TABLE). */
enum tandem_status tnd_table_own_path(char *out, size_t n, struct tandem_error *error);

/** Adds `table`, which is newly measured, to the file at `path` by the merge rule, with its samples
 *  in place of older stale ones (tnd_table_supersede): locks it against other processes, reads it
 *  anew, merges, replaces it in one step. Nothing that was measured is lost: what is no table that
 *  this version understands is first copied to "<path>.bad-<date>", and a table with cells that are
 *  invalid on `table`'s machine, and so left out, to "<path>.other-<date>"; `out_note` (may be
 *  NULL; status OK: nothing was) has the reason and the name. A file that cannot be read or copied
 *  is not replaced. Errors: FILE, MEMORY, LIMIT. */
enum tandem_status tnd_table_update_file(const char *path, const tandem_table *table,
                                         struct tandem_error *out_note, struct tandem_error *error);

/** Puts `table` in the place of the file at `path`, under its lock, with the same care for one that
 *  is no table. Errors: FILE, MEMORY, LIMIT. */
enum tandem_status tnd_table_replace_file(const char *path, const tandem_table *table,
                                          enum tandem_table_format format,
                                          struct tandem_error *out_note,
                                          struct tandem_error *error);

#endif
