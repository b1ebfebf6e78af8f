/* SPDX-License-Identifier: MIT
 * room: formats
 *
 * Where models come from: a source is a set of named tensors and of named values, whatever the file
 * format. Tensors and keys have the names of the GGUF convention ("blk.0.attn_q.weight",
 * "llama.embedding_length"), see docs/formats.md. */
#ifndef TANDEM_FORMATS_H
#define TANDEM_FORMATS_H

#include "tandem/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_source tandem_source;

struct tandem_source_tensor {
    const char *name;       /**< lives as long as the source */
    enum tandem_type type;
    int n_dims;
    int64_t ne[TANDEM_MAX_DIMS];
    const void *data;       /**< borrowed from the source: mapped file or its memory */
    size_t bytes;
};

/** Opens a model file, whose format is told from its contents. The file is mapped and its tensors
 *  are borrowed from the mapping. Errors: FILE, FORMAT, TRUNCATED, UNSUPPORTED_BUILD, MEMORY,
 *  LIMIT. */
TANDEM_API enum tandem_status tandem_source_open(const char *path, tandem_source **out_source,
                                                 struct tandem_error *error);
/** NULL is allowed. Tensors that borrow from the source must be gone. */
TANDEM_API void tandem_source_close(tandem_source *source);

/** Shape of a llama for tandem_source_synthesize. */
struct tandem_llama_shape {
    size_t size;
    int64_t dim, hidden, layers, heads, kv_heads, vocabulary, context;
};
/** A llama with seeded random weights of the given type, made in memory; no file. Tensors whose
 *  rows do not fit the type's blocks, and the norms, are F32. */
TANDEM_API enum tandem_status tandem_source_synthesize(const struct tandem_llama_shape *shape,
                                                       enum tandem_type type, uint64_t seed,
                                                       tandem_source **out_source,
                                                       struct tandem_error *error);
/** Copies a source with its weight matrices converted to `type` where rows fit its blocks (others
 *  stay as they are). */
TANDEM_API enum tandem_status tandem_source_convert(const tandem_source *source,
                                                    enum tandem_type type,
                                                    tandem_source **out_source,
                                                    struct tandem_error *error);

/** "llama2.c version 0", "synthetic", ... */
TANDEM_API const char *tandem_source_format(const tandem_source *source);
TANDEM_API int tandem_source_tensor_count(const tandem_source *source);
/** i-th tensor; false outside. */
TANDEM_API bool tandem_source_tensor_at(const tandem_source *source, int i,
                                        struct tandem_source_tensor *out);
/** Tensor by name; false when there is none. */
TANDEM_API bool tandem_source_find(const tandem_source *source, const char *name,
                                   struct tandem_source_tensor *out);
/** Values by key; false when there is none of that kind. Text lives as long as the source. */
TANDEM_API bool tandem_source_integer(const tandem_source *source, const char *key, int64_t *out);
TANDEM_API bool tandem_source_number(const tandem_source *source, const char *key, double *out);
TANDEM_API bool tandem_source_text(const tandem_source *source, const char *key, const char **out);

#ifdef __cplusplus
}
#endif
#endif
