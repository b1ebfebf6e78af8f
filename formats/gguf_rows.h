/* SPDX-License-Identifier: MIT
 * Rows of a tensor on their way into a file: reordered, in another type, by several threads. */
#ifndef TND_GGUF_ROWS_H
#define TND_GGUF_ROWS_H

#include "formats/source.h"

/** What becomes of one tensor. */
struct tnd_gguf_rows {
    const struct tandem_source_tensor *tensor;
    enum tandem_type type; /* of the rows that come out */
    int64_t row_values;
    int64_t n_rows;
    size_t from_bytes; /* of one row */
    size_t to_bytes;
    /** Not 0: rows of a head come as two halves and go out in adjacent pairs, this many heads. */
    int64_t heads;
    const float *importance; /* of each column, for each matrix of the tensor; NULL: all alike */
};

/** Plans the rows. `converts`: to `type` where that fits. The rows are whole pairs of each head.
 *  Errors: ARGUMENT (no values), OVERFLOW. */
enum tandem_status tnd_gguf_rows_plan(const struct tandem_source_tensor *tensor, bool converts,
                                      enum tandem_type type, int64_t heads,
                                      struct tnd_gguf_rows *out, struct tandem_error *error);

/** Makes `count` rows from row `first` on in `to`, with up to `threads` threads. Errors: TYPE,
 *  MEMORY. */
enum tandem_status tnd_gguf_rows_make(const struct tnd_gguf_rows *rows, int64_t first,
                                      int64_t count, int threads, void *to,
                                      struct tandem_error *error);

#endif
