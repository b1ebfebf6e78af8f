/* SPDX-License-Identifier: MIT
 * The tensors of a llama: their names in the GGUF convention and their extents, one row each.
 * Loaders whose files carry no names walk this list in their file's order. Names: the GGUF
 * specification of the ggml project (docs/gguf.md). */
#ifndef TND_LLAMA_TENSORS_H
#define TND_LLAMA_TENSORS_H

#include "formats/source.h"

/* X(ROLE, "name", in every layer, ne[0], ne[1]): extents by member of struct tnd_llama_dims; a
 * vector has ne[1] `one`. W is N x K, ne = {K, N}. */
#define TND_LLAMA_TENSOR_LIST(X)                                                                   \
    X(TOKEN_EMBD, "token_embd.weight", false, dim, vocabulary)                                     \
    X(ATTN_NORM, "attn_norm.weight", true, dim, one)                                               \
    X(ATTN_Q, "attn_q.weight", true, dim, dim)                                                     \
    X(ATTN_K, "attn_k.weight", true, dim, kv_dim)                                                  \
    X(ATTN_V, "attn_v.weight", true, dim, kv_dim)                                                  \
    X(ATTN_OUTPUT, "attn_output.weight", true, dim, dim)                                           \
    X(FFN_NORM, "ffn_norm.weight", true, dim, one)                                                 \
    X(FFN_GATE, "ffn_gate.weight", true, dim, hidden)                                              \
    X(FFN_DOWN, "ffn_down.weight", true, hidden, dim)                                              \
    X(FFN_UP, "ffn_up.weight", true, dim, hidden)                                                  \
    X(OUTPUT_NORM, "output_norm.weight", false, dim, one)                                          \
    X(OUTPUT, "output.weight", false, dim, vocabulary)

enum tnd_llama_role {
#define TND_LLAMA_ROLE_ENUM(role, name, layered, ne0, ne1) TND_LLAMA_##role,
    TND_LLAMA_TENSOR_LIST(TND_LLAMA_ROLE_ENUM)
#undef TND_LLAMA_ROLE_ENUM
        TND_LLAMA_ROLES
};

/** Sizes of a llama that were checked: positive, heads share out evenly, everything below 2^31. */
struct tnd_llama_dims {
    int64_t dim, kv_dim, hidden, vocabulary, one;
    int64_t layers, heads, kv_heads, context, head_size;
};

/** Checks a shape and fills `out_dims`. `name` stands in messages. Errors: `status` (FORMAT for a
 *  file, ARGUMENT for a caller). */
enum tandem_status tnd_llama_dims_from(const struct tandem_llama_shape *shape, const char *name,
                                       enum tandem_status status, struct tnd_llama_dims *out_dims,
                                       struct tandem_error *error);

/** How many tensors of a role there are (1 or one a layer), their dimensions and extents. */
int64_t tnd_llama_role_count(enum tnd_llama_role role, const struct tnd_llama_dims *dims);
int tnd_llama_role_extents(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                           int64_t ne[2]);

/** Adds one tensor of a role, by its GGUF name. Errors: MEMORY. */
enum tandem_status tnd_llama_add(tandem_source *source, enum tnd_llama_role role, int64_t layer,
                                 const struct tnd_llama_dims *dims, enum tandem_type type,
                                 const void *data, size_t bytes, struct tandem_error *error);

/** Adds the values of the GGUF convention: llama.embedding_length and the like. `pairs` of rope are
 *  adjacent, eps is 1e-5 and the base of the frequencies 10000, as in llama2.c. Errors: MEMORY. */
enum tandem_status tnd_llama_set_values(tandem_source *source, const struct tnd_llama_dims *dims,
                                        struct tandem_error *error);

#endif
