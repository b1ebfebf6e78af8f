/* SPDX-License-Identifier: MIT
 * Named arrays in NumPy's .npz: a ZIP archive of NAME.npy files, stored or deflated. */
#ifndef TND_NPZ_H
#define TND_NPZ_H

#include "base/tnd_status.h"
#include "ggml-like/array.h"

/** Arrays in the archive's order. */
struct tnd_npz {
    int n;
    char **names; /* without ".npy" */
    struct tnd_array **arrays;
};

/** Reads the bytes of an archive. `name` is used in messages. At most 4,096 arrays, with distinct
 * names; uncompressed they may have at most 1 GiB more than the file. Free with tnd_npz_free.
 * Errors: FORMAT (also a wrong checksum), TRUNCATED, LIMIT, UNSUPPORTED_BUILD (compressed, in a
 * build without zlib), those of tnd_npy_read, MEMORY. */
enum tandem_status tnd_npz_read(const void *bytes, size_t n, const char *name, struct tnd_npz *out,
                                struct tandem_error *error);
/** As tnd_npz_read, from a file. Errors: also FILE. */
enum tandem_status tnd_npz_open(const char *path, struct tnd_npz *out, struct tandem_error *error);
void tnd_npz_free(struct tnd_npz *npz);

/** Writes an archive of arrays without compression and replaces an existing file atomically
 * (base/file_stream.h). Errors: LIMIT (4 GiB and more), those of tnd_npy_save. */
enum tandem_status tnd_npz_save(const char *path, const struct tnd_npz *npz,
                                struct tandem_error *error);

#endif
