/* SPDX-License-Identifier: MIT
 * The tensors of a llama: their names in the GGUF convention and their extents, one row each.
 * Loaders whose files carry no names walk this list in their file's order. Names: the GGUF
 * specification of the ggml project (docs/gguf.md). */
#ifndef TND_LLAMA_TENSORS_H
#define TND_LLAMA_TENSORS_H

#include "formats/source.h"

/* X(ROLE, "name", in every layer, ne[0], ne[1], group): extents by member of struct
 * tnd_llama_dims; a vector has ne[1] `one`. W is N x K, ne = {K, N}. Groups: which models have the
 * tensor. */
#define TND_LLAMA_TENSOR_LIST(X)                                                                   \
    X(TOKEN_EMBD, "token_embd.weight", false, dim, vocabulary, ALL)                                \
    X(ATTN_NORM, "attn_norm.weight", true, dim, one, ALL)                                          \
    X(ATTN_Q, "attn_q.weight", true, dim, q_dim, ALL)                                              \
    X(ATTN_K, "attn_k.weight", true, dim, kv_dim, ALL)                                             \
    X(ATTN_V, "attn_v.weight", true, dim, kv_dim, ALL)                                             \
    X(ATTN_OUTPUT, "attn_output.weight", true, q_dim, dim, ALL)                                    \
    X(FFN_NORM, "ffn_norm.weight", true, dim, one, ALL)                                            \
    X(FFN_GATE, "ffn_gate.weight", true, dim, hidden, FFN)                                         \
    X(FFN_DOWN, "ffn_down.weight", true, hidden, dim, FFN)                                         \
    X(FFN_UP, "ffn_up.weight", true, dim, hidden, FFN)                                             \
    X(OUTPUT_NORM, "output_norm.weight", false, dim, one, ALL)                                     \
    X(OUTPUT, "output.weight", false, dim, vocabulary, OUTPUT)
/* What no loader makes by itself. */
#define TND_LLAMA_EXTRA_LIST(X)                                                                    \
    X(ATTN_Q_BIAS, "attn_q.bias", true, q_dim, one, QKV_BIAS)                                      \
    X(ATTN_K_BIAS, "attn_k.bias", true, kv_dim, one, QKV_BIAS)                                     \
    X(ATTN_V_BIAS, "attn_v.bias", true, kv_dim, one, QKV_BIAS)                                     \
    X(ATTN_OUTPUT_BIAS, "attn_output.bias", true, dim, one, OUTPUT_BIAS)                           \
    X(FFN_BIAS_1, "ffn_gate.bias", true, hidden, one, FFN_BIAS)                                    \
    X(FFN_BIAS_2, "ffn_down.bias", true, dim, one, FFN_BIAS)                                       \
    X(FFN_BIAS_3, "ffn_up.bias", true, hidden, one, FFN_BIAS)                                      \
    X(ATTN_Q_NORM, "attn_q_norm.weight", true, head_size, one, HEAD_NORM)                          \
    X(ATTN_K_NORM, "attn_k_norm.weight", true, head_size, one, HEAD_NORM)                          \
    X(FFN_ROUTER, "ffn_gate_inp.weight", true, dim, experts, ROUTER)                               \
    X(FFN_GATE_EXPS, "ffn_gate_exps.weight", true, dim, expert_hidden, EXPERTS)                    \
    X(FFN_DOWN_EXPS, "ffn_down_exps.weight", true, expert_hidden, dim, EXPERTS)                    \
    X(FFN_UP_EXPS, "ffn_up_exps.weight", true, dim, expert_hidden, EXPERTS)                        \
    X(FFN_GATE_INP_SHEXP, "ffn_gate_inp_shexp.weight", true, dim, one, SHARED)                     \
    X(FFN_GATE_SHEXP, "ffn_gate_shexp.weight", true, dim, shared_hidden, SHARED)                   \
    X(FFN_DOWN_SHEXP, "ffn_down_shexp.weight", true, shared_hidden, dim, SHARED)                   \
    X(FFN_UP_SHEXP, "ffn_up_shexp.weight", true, dim, shared_hidden, SHARED)

enum tnd_llama_role {
#define TND_LLAMA_ROLE_ENUM(role, name, layered, ne0, ne1, group) TND_LLAMA_##role,
    TND_LLAMA_TENSOR_LIST(TND_LLAMA_ROLE_ENUM)
        TND_LLAMA_ROLES, /* of every llama; the extras follow */
    TND_LLAMA_LAST_ROLE = TND_LLAMA_ROLES - 1,
    TND_LLAMA_EXTRA_LIST(TND_LLAMA_ROLE_ENUM)
#undef TND_LLAMA_ROLE_ENUM
        TND_LLAMA_ALL_ROLES
};

/** Whether a model has the tensors of a group. */
enum tnd_llama_group {
    TND_LLAMA_GROUP_ALL,
    TND_LLAMA_GROUP_OUTPUT,
    TND_LLAMA_GROUP_QKV_BIAS,
    TND_LLAMA_GROUP_OUTPUT_BIAS,
    TND_LLAMA_GROUP_FFN_BIAS,
    TND_LLAMA_GROUP_HEAD_NORM,
    TND_LLAMA_GROUP_FFN,     /* of models without experts */
    TND_LLAMA_GROUP_ROUTER,  /* of models with experts */
    TND_LLAMA_GROUP_EXPERTS, /* the same; ne[2] is their number */
    TND_LLAMA_GROUP_SHARED,  /* an expert that every token uses */
    TND_LLAMA_GROUPS
};
enum tnd_llama_promise { TND_LLAMA_OPTIONAL, TND_LLAMA_NEEDED, TND_LLAMA_ABSENT };

/** Sizes of a llama that were checked: positive, heads share out evenly, everything below 2^31. */
struct tnd_llama_dims {
    int64_t dim, q_dim, kv_dim, hidden, vocabulary, one;
    int64_t layers, heads, kv_heads, context, head_size;
    int64_t experts, experts_used, expert_hidden, shared_hidden; /* 0: none */
};

/** llama_hparams.c: checks a shape as the numbers of a file are checked, and fills `out_dims`.
 *  `name` stands in messages. Errors: `status` (FORMAT for a file, ARGUMENT for a caller). */
enum tandem_status tnd_llama_dims_from(const struct tandem_llama_shape *shape, const char *name,
                                       enum tandem_status status, struct tnd_llama_dims *out_dims,
                                       struct tandem_error *error);

/** Checks that the source has what `promises` (one a group) say and nothing else, with the extents
 *  of `dims`; of `h` how rope is scaled. Errors: NOT_FOUND, SHAPE, TYPE, FORMAT,
 *  UNSUPPORTED_BUILD. */
enum tandem_status tnd_llama_check_tensors(const tandem_source *source,
                                           const struct tnd_llama_dims *dims,
                                           const struct tandem_hparams *h,
                                           const enum tnd_llama_promise *promises,
                                           struct tandem_error *error);

/** llama_rope.c: reads how rope is scaled; architecture, context, n_rot and rope_pairs (unless the
 *  source says them) are there. Errors: FORMAT, UNSUPPORTED_BUILD. */
enum tandem_status tnd_llama_read_rope(const tandem_source *source, struct tandem_hparams *h,
                                       struct tandem_error *error);

/** Llama 3's scaling of rope. */
struct tnd_llama3_rope {
    int64_t head_size;
    double base, factor, low, high, original;
};
/** Adds rope_freqs.weight, the divisor of each pair's angle. Errors: FORMAT (numbers that cannot
 *  be), MEMORY, LIMIT. */
enum tandem_status tnd_llama_add_divisors(tandem_source *source, const struct tnd_llama3_rope *rope,
                                          struct tandem_error *error);

/** Adds rope_factors_short.weight and rope_factors_long.weight, n values each. Errors: as above. */
enum tandem_status tnd_llama_add_longrope(tandem_source *source, const float *short_factors,
                                          const float *long_factors, int64_t n,
                                          struct tandem_error *error);

/** How many tensors of a role the loaders make that make models of dims (1, one a layer, or none),
 *  their dimensions and extents. */
int64_t tnd_llama_role_count(enum tnd_llama_role role, const struct tnd_llama_dims *dims);
int tnd_llama_role_extents(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                           int64_t ne[3]);

/** Adds one tensor of a role, by its GGUF name. Errors: MEMORY. */
enum tandem_status tnd_llama_add(tandem_source *source, enum tnd_llama_role role, int64_t layer,
                                 const struct tnd_llama_dims *dims, enum tandem_type type,
                                 const void *data, size_t bytes, struct tandem_error *error);

/** Adds the values of the GGUF convention: llama.embedding_length and the like. `pairs` of rope are
 *  adjacent, eps is 1e-5 and the base of the frequencies 10000, as in llama2.c. Errors: MEMORY. */
enum tandem_status tnd_llama_set_values(tandem_source *source, const struct tnd_llama_dims *dims,
                                        struct tandem_error *error);

#endif
