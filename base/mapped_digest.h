/* SPDX-License-Identifier: MIT
 * Digests of parts of mapped files, kept so that the files need not be read again. They stay valid
 * as long as the file's size, device, inode number, mtime and ctime (which nobody can set back) do
 * not change. Digests of large files are stored in $XDG_CACHE_HOME/tandem/digests or
 * ~/.cache/tandem/digests. */
#ifndef TND_MAPPED_DIGEST_H
#define TND_MAPPED_DIGEST_H

#include "base/tnd_mapped.h"

/** tnd_digest of these bytes, cached if they belong to a mapped file. Any thread. */
uint64_t tnd_mapped_digest(const void *data, size_t bytes);
/** Stores the digests of the file that `data` is mapped from for later processes, if it is large
 * enough. A failure to store costs only time and is not reported. Any thread. */
void tnd_mapped_digests_keep(const void *data);

/** Call before the mapping ends. */
void tnd_mapped_digests_leave(const void *data);

/* ---- format of a file of digests ---- */

/** A part of a file. */
struct tnd_part_digest {
    uint64_t offset, bytes, digest;
};
enum {
    TND_DIGESTS_HEADER_BYTES = 8 * 8,
    TND_DIGESTS_MAX_PARTS = 1 << 14,
    TND_DIGESTS_MAX_BYTES = TND_DIGESTS_HEADER_BYTES + 24 * TND_DIGESTS_MAX_PARTS
};

/** Writes TND_DIGESTS_HEADER_BYTES + 24 * n bytes. */
void tnd_digests_write(const struct tnd_mapped_file *file, const struct tnd_part_digest *parts,
                       size_t n, uint8_t *out);
/** Number of parts in `bytes`, if they were written for this very file; 0: none, damaged, or of
 * another file. */
size_t tnd_digests_check(const uint8_t *bytes, size_t n, const struct tnd_mapped_file *file);
/** Part `i` of bytes that passed tnd_digests_check. */
struct tnd_part_digest tnd_digests_part(const uint8_t *bytes, size_t i);

/* ---- for tests ---- */

/** Stores the digests of files of at least `least_bytes` in `folder`, which is copied (NULL: the
 * default values), and forgets all digests of this process. */
void tnd_mapped_digests_set(const char *folder, size_t least_bytes);

#endif
