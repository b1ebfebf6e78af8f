/* SPDX-License-Identifier: MIT
 * Importance matrices of llama.cpp: for each matrix the mean square of the values that its columns
 * meet (tools/imatrix of ggml-org/llama.cpp). */
#ifndef TND_IMPORTANCE_H
#define TND_IMPORTANCE_H

#include "formats/source.h"

/** Opens a file of either form: GGUF with the tensors NAME.in_sum2 {columns, matrices} and
 *  NAME.counts {1, matrices}, or the older one, of which the sums become tensors of those names.
 *  Close with tandem_source_close. Errors: FILE, FORMAT, TRUNCATED, LIMIT, MEMORY, those of
 *  tandem_source_open. */
enum tandem_status tnd_importance_open(const char *path, tandem_source **out_source,
                                       struct tandem_error *error);

/** Bytes of the older form, which the source borrows. Errors: FORMAT, TRUNCATED, MEMORY. */
enum tandem_status tnd_importance_read(const void *data, size_t n, const char *name,
                                       tandem_source **out_source, struct tandem_error *error);

/** The importance of the columns of a tensor, for each of its matrices, in `out` (NULL: none is
 *  known); free with tnd_free. Errors: FORMAT (as many numbers as fit neither a matrix nor all of
 *  them), MEMORY. */
enum tandem_status tnd_importance_of(const tandem_source *importance,
                                     const struct tandem_source_tensor *tensor, float **out,
                                     struct tandem_error *error);

/** What was collected for one matrix, or for the matrices of experts together. */
struct tnd_importance_sums {
    const char *name;
    int64_t columns, matrices;
    const double *squares; /* {columns, matrices}: sums of x^2 */
    const int64_t *tokens; /* {matrices}: that were added */
};

/** Writes GGUF where the path ends in .gguf, else the older form. `text` is the name of the text,
 *  `chunks` parts of `chunk` tokens. Errors: FILE, MEMORY. */
enum tandem_status tnd_importance_write(const char *path, const struct tnd_importance_sums *sums,
                                        int n, const char *text, int64_t chunks, int64_t chunk,
                                        struct tandem_error *error);

#endif
