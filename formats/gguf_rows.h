/* SPDX-License-Identifier: MIT
 * Prepares a tensor's rows for writing: reorders and converts them, with several threads. */
#ifndef TND_GGUF_ROWS_H
#define TND_GGUF_ROWS_H

#include "formats/source.h"

/** How the rows of one tensor are written. */
struct tnd_gguf_rows {
    const struct tandem_source_tensor *tensor;
    enum tandem_type type; /* of the written rows */
    int64_t row_values;
    int64_t n_rows;
    size_t from_bytes; /* bytes of a row in the tensor */
    size_t to_bytes;
    /** Not 0: reorders the rows of this many heads from two halves to adjacent pairs. */
    int64_t heads;
    const float *importance; /* per column and matrix of the tensor; NULL: uniform */
};

/** Fills `out`. `converts`: to `type`, if the tensor's rows allow it. With `heads`, each has an
 * even number of rows. Errors: ARGUMENT (no values), OVERFLOW. */
enum tandem_status tnd_gguf_rows_plan(const struct tandem_source_tensor *tensor, bool converts,
                                      enum tandem_type type, int64_t heads,
                                      struct tnd_gguf_rows *out, struct tandem_error *error);

/** Writes `count` rows, starting with row `first`, to `to`, with up to `threads` threads. Errors:
 * TYPE, MEMORY. */
enum tandem_status tnd_gguf_rows_make(const struct tnd_gguf_rows *rows, int64_t first,
                                      int64_t count, int threads, void *to,
                                      struct tandem_error *error);

#endif
