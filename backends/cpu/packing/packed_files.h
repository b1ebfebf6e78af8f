/* SPDX-License-Identifier: MIT
 * Files of packed weights, one per model file: MODEL.packed beside it, or a cache in a folder. A
 * file is found by the mapping in which a weight lies, mapped when the first weight of a model is
 * prepared, and written on request, atomically. Not thread-safe: packed_weights.c has the lock. */
#ifndef TND_PACKED_FILES_H
#define TND_PACKED_FILES_H

#include "backends/cpu/packing/pack_cache.h"
#include "base/tnd_mapped.h"

struct tnd_packed_file; /* one model file and its cache */
struct tnd_packed_files;

/** Receives messages of one line: what was found, and why a cache cannot be used. */
typedef void tnd_packed_note_fn(void *user, bool is_warning, const char *text);

/** `folder` of caches is copied (NULL: none are kept); `isa` (NULL: no files are used) must stay
 * valid. Files beside models are always read; they are written instead of caches if
 * `writes_beside`. Errors: MEMORY. */
enum tandem_status tnd_packed_files_new(const char *folder, bool writes_beside, const char *isa,
                                        struct tnd_packed_files **out_files,
                                        struct tandem_error *error);
/** All weights must have been removed. NULL is allowed. */
void tnd_packed_files_free(struct tnd_packed_files *files);
void tnd_packed_files_set_note(struct tnd_packed_files *files, tnd_packed_note_fn *note,
                               void *user);

/** The file of the model that contains a weight, held until it is left. NULL: the weight is not in
 * a mapped file, packed files are neither read nor written, or there is no memory. */
struct tnd_packed_file *tnd_packed_files_hold(struct tnd_packed_files *files, const void *data,
                                              size_t bytes, uint64_t *out_offset);
void tnd_packed_files_leave(struct tnd_packed_files *files, struct tnd_packed_file *file);

/** A weight found in a cache. */
struct tnd_packed_found {
    const uint8_t *cache; /* the whole file; NULL: not found */
    struct tnd_pack_entry entry;
};
/** Finds a weight, given its offset, type and shape, and checks that its rows are those that were
 * packed. */
struct tnd_packed_found tnd_packed_file_find(const struct tnd_packed_files *files,
                                             struct tnd_packed_file *file,
                                             const struct tnd_pack_entry *wanted, const void *rows,
                                             size_t row_bytes);
/** Reports that a panel of a weight did not match its digest, and was packed again, or could not
 * be. Any thread while the file is held. */
void tnd_packed_file_tell_damage(const struct tnd_packed_files *files,
                                 const struct tnd_packed_file *file, const char *weight, int64_t i);

/** A weight to write. */
struct tnd_packed_piece {
    struct tnd_pack_entry entry; /* complete except for offsets in the cache */
    const uint8_t *panels;
    const uint8_t *cache; /* cache with their digests; NULL: they are computed */
};
/** Writes the file again with these weights and those that it has already; existing mappings are
 * unaffected. Does nothing for a model whose packed weights are not to be kept. Errors: FILE,
 * MEMORY. */
enum tandem_status tnd_packed_file_write(struct tnd_packed_files *files,
                                         struct tnd_packed_file *file,
                                         const struct tnd_packed_piece *pieces, size_t n_pieces,
                                         struct tandem_error *error);

#endif
