/* SPDX-License-Identifier: MIT
 * What files hold, known without reading them again: digests of parts of mapped files stay good as
 * long as the system says the same of the file (size, device and number, time of its last change,
 * and of the last change of its facts, which nobody sets back). Digests of large files are kept in
 * $XDG_CACHE_HOME/tandem/digests or ~/.cache/tandem/digests. */
#ifndef TND_MAPPED_DIGEST_H
#define TND_MAPPED_DIGEST_H

#include "base/tnd_mapped.h"

/** tnd_digest of these bytes, which need not be of a mapped file. Any thread. */
uint64_t tnd_mapped_digest(const void *data, size_t bytes);
/** Keeps what is known of the file that `data` is mapped from for later processes, where that pays.
 *  That it cannot be kept costs time alone, and is said nowhere. Any thread. */
void tnd_mapped_digests_keep(const void *data);

/** Before the mapping ends. */
void tnd_mapped_digests_leave(const void *data);

/* ---- the contents of a file of digests ---- */

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
/** Number of parts in bytes that were written for this very file; 0: there are none, or they are
 *  damaged or of another file. */
size_t tnd_digests_check(const uint8_t *bytes, size_t n, const struct tnd_mapped_file *file);
/** Part i of bytes that were checked. */
struct tnd_part_digest tnd_digests_part(const uint8_t *bytes, size_t i);

/* ---- for tests ---- */

/** Files of at least `least_bytes` have theirs in `folder`, which is copied (NULL: the usual
 *  values); what is known in this process is forgotten. */
void tnd_mapped_digests_set(const char *folder, size_t least_bytes);

#endif
