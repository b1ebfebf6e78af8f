/* SPDX-License-Identifier: MIT
 * Arrays in NumPy's files: .npy of versions 1.0 to 3.0, as numpy.lib.format describes them
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). */
#ifndef TND_NPY_H
#define TND_NPY_H

#include "base/tnd_status.h"
#include "base/text.h"
#include "ggml-like/array.h"

/** Reads the bytes of a .npy file: little-endian values in C or Fortran order; the array is always
 * in C order. `name` is used in messages. The caller frees the array. Errors: FORMAT, TRUNCATED,
 * UNSUPPORTED_BUILD (a type that nets do not have, or big-endian values), LIMIT (more than
 * TANDEM_NET_MAX_DIMS dimensions), OVERFLOW, MEMORY. */
enum tandem_status tnd_npy_read(const void *bytes, size_t n, const char *name,
                                struct tnd_array **out, struct tandem_error *error);
/** As tnd_npy_read, from a file. Errors: also FILE. */
enum tandem_status tnd_npy_open(const char *path, struct tnd_array **out,
                                struct tandem_error *error);

/** Appends the file's header, up to the values. `path` is used in messages. Errors:
 * UNSUPPORTED_BUILD (bfloat16), MEMORY. */
enum tandem_status tnd_npy_header(const char *path, const struct tnd_array *array,
                                  struct tnd_text *out, struct tandem_error *error);
/** Writes an array to a file of version 1.0 and replaces an existing file atomically
 * (base/file_stream.h). Errors: UNSUPPORTED_BUILD (bfloat16, which NumPy does not have), FILE,
 * MEMORY. */
enum tandem_status tnd_npy_save(const char *path, const struct tnd_array *array,
                                struct tandem_error *error);

#endif
