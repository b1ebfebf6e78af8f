/* SPDX-License-Identifier: MIT
 * Files of packed weights, one a model file: MODEL.packed beside it, or a cache in a folder. Such a
 * file is found by the mapping that a weight lies in, mapped when the first weight of a model is
 * prepared, and written when somebody asks for it, whole or not at all. Not thread-safe:
 * packed_weights.c has the lock. */
#ifndef TND_PACKED_FILES_H
#define TND_PACKED_FILES_H

#include "backends/cpu/packing/pack_cache.h"
#include "base/tnd_mapped.h"

struct tnd_packed_file; /* one model file and its cache */
struct tnd_packed_files;

/** Told now and then, in one line: what was found, and why a cache does not serve. */
typedef void tnd_packed_note_fn(void *user, bool is_warning, const char *text);

/** `folder` of caches is copied (NULL: none are kept); `isa` (NULL: no file is used) lives as long.
 *  Files beside models are always read, and are what is written if `writes_beside`. Errors:
 *  MEMORY. */
enum tandem_status tnd_packed_files_new(const char *folder, bool writes_beside, const char *isa,
                                        struct tnd_packed_files **out_files,
                                        struct tandem_error *error);
/** All weights were removed before. NULL is allowed. */
void tnd_packed_files_free(struct tnd_packed_files *files);
void tnd_packed_files_set_note(struct tnd_packed_files *files, tnd_packed_note_fn *note,
                               void *user);

/** The file that a weight lies in, held until it is left; NULL: in none that is mapped, or packed
 *  weights are neither there nor to be written, or there is no memory. */
struct tnd_packed_file *tnd_packed_files_hold(struct tnd_packed_files *files, const void *data,
                                              size_t bytes, uint64_t *out_offset);
void tnd_packed_files_leave(struct tnd_packed_files *files, struct tnd_packed_file *file);

/** What a cache has of a weight. */
struct tnd_packed_found {
    const uint8_t *cache; /* whole; NULL: it has nothing */
    struct tnd_pack_entry entry;
};
/** Looks for a weight, of which offset, type and shape are filled in, and whose rows are those that
 *  the cache was made of. */
struct tnd_packed_found tnd_packed_file_find(const struct tnd_packed_files *files,
                                             struct tnd_packed_file *file,
                                             const struct tnd_pack_entry *wanted, const void *rows,
                                             size_t row_bytes);
/** Tells that a panel of a weight did not have its digest, and was packed again, or could not be.
 *  Any thread while the file is held. */
void tnd_packed_file_tell_damage(const struct tnd_packed_files *files,
                                 const struct tnd_packed_file *file, const char *weight, int64_t i);

/** A weight to write. */
struct tnd_packed_piece {
    struct tnd_pack_entry entry; /* complete but for its places */
    const uint8_t *panels;
    const uint8_t *cache; /* that has their digests; NULL: they are computed */
};
/** Writes the file anew with these weights and those that it has already; what is mapped stays as
 *  it is. Does nothing for a model whose packed weights nobody asked to keep. Errors: FILE,
 *  MEMORY. */
enum tandem_status tnd_packed_file_write(struct tnd_packed_files *files,
                                         struct tnd_packed_file *file,
                                         const struct tnd_packed_piece *pieces, size_t n_pieces,
                                         struct tandem_error *error);

#endif
