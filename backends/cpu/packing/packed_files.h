/* SPDX-License-Identifier: MIT
 * The caches of packed weights in one folder: one file a model file. A cache is found by the
 * mapping that a weight lies in, mapped when the first weight of a model is prepared, and written
 * when somebody asks for it, whole or not at all. Not thread-safe: packed_weights.c has the
 * lock. */
#ifndef TND_PACKED_FILES_H
#define TND_PACKED_FILES_H

#include "backends/cpu/packing/pack_cache.h"
#include "base/tnd_mapped.h"

struct tnd_packed_file; /* one model file and its cache */
struct tnd_packed_files;

/** Told now and then, in one line: what was found, and why a cache does not serve. */
typedef void tnd_packed_note_fn(void *user, bool is_warning, const char *text);

/** `folder` is copied; `isa` lives as long. Errors: MEMORY. */
enum tandem_status tnd_packed_files_new(const char *folder, const char *isa,
                                        struct tnd_packed_files **out_files,
                                        struct tandem_error *error);
/** All weights were removed before. NULL is allowed. */
void tnd_packed_files_free(struct tnd_packed_files *files);
void tnd_packed_files_set_note(struct tnd_packed_files *files, tnd_packed_note_fn *note,
                               void *user);

/** The file that a weight lies in, held until it is left; NULL: in none that is mapped, or there is
 *  no memory. */
struct tnd_packed_file *tnd_packed_files_hold(struct tnd_packed_files *files, const void *data,
                                              size_t bytes, uint64_t *out_offset);
void tnd_packed_files_leave(struct tnd_packed_files *files, struct tnd_packed_file *file);

/** Panels of the cache for a weight, all but `at` filled in; NULL: it has none. */
const uint8_t *tnd_packed_file_find(const struct tnd_packed_file *file,
                                    const struct tnd_pack_entry *wanted);

/** A weight to write. */
struct tnd_packed_piece {
    struct tnd_pack_entry entry;
    const uint8_t *panels;
};
/** Writes the cache anew with these weights and those that it has already; what is mapped stays as
 *  it is. Errors: FILE, MEMORY. */
enum tandem_status tnd_packed_file_write(struct tnd_packed_files *files,
                                         struct tnd_packed_file *file,
                                         const struct tnd_packed_piece *pieces, size_t n_pieces,
                                         struct tandem_error *error);

#endif
