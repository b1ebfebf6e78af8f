/* SPDX-License-Identifier: MIT
 * Importance matrices of llama.cpp: for each column of each weight matrix the mean square of the
 * activations that it is multiplied with (tools/imatrix of ggml-org/llama.cpp). */
#ifndef TND_IMPORTANCE_H
#define TND_IMPORTANCE_H

#include "formats/source.h"

/** Opens a file of either format: GGUF with the tensors NAME.in_sum2 {columns, matrices} and
 * NAME.counts {1, matrices}, or the older format, whose sums become tensors of those names. Close
 * with tandem_source_close. Errors: FILE, FORMAT, TRUNCATED, LIMIT, MEMORY, those of
 * tandem_source_open. */
enum tandem_status tnd_importance_open(const char *path, tandem_source **out_source,
                                       struct tandem_error *error);

/** Reads the older format from memory, which the source borrows. Errors: FORMAT, TRUNCATED,
 * MEMORY. */
enum tandem_status tnd_importance_read(const void *data, size_t n, const char *name,
                                       tandem_source **out_source, struct tandem_error *error);

/** Sets `out` to the importance of the columns of each of a tensor's matrices (NULL: none in the
 * file); free with tnd_free. Errors: FORMAT (the count fits neither one matrix nor all), MEMORY. */
enum tandem_status tnd_importance_of(const tandem_source *importance,
                                     const struct tandem_source_tensor *tensor, float **out,
                                     struct tandem_error *error);

/** Sums collected for one matrix, or for all experts' matrices of a tensor. */
struct tnd_importance_sums {
    const char *name;
    int64_t columns, matrices;
    const double *squares; /* {columns, matrices}: sums of x^2 */
    const int64_t *tokens; /* {matrices}: number of tokens summed */
};

/** Writes GGUF if the path ends in .gguf, else the older format. `text` is the name of the
 * calibration text, which has `chunks` chunks of `chunk` tokens. Errors: FILE, MEMORY. */
enum tandem_status tnd_importance_write(const char *path, const struct tnd_importance_sums *sums,
                                        int n, const char *text, int64_t chunks, int64_t chunk,
                                        struct tandem_error *error);

#endif
