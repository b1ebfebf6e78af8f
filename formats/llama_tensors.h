/* SPDX-License-Identifier: MIT
 * The tensors of Llama-like models: names in the GGUF convention and extents, one row each. Loaders
 * whose files have no names walk this list in their file's order. Names: the GGUF specification of
 * the ggml project (docs/gguf.md). */
#ifndef TND_LLAMA_TENSORS_H
#define TND_LLAMA_TENSORS_H

#include "formats/source.h"

/* X(ROLE, "name", in every layer, ne[0], ne[1], group): extents are members of struct
 * tnd_llama_dims; ne[1] of a vector is `one`. W is N x K, ne = {K, N}. A group says which models
 * have the tensor. */
#define TND_LLAMA_TENSOR_LIST(X)                                                                   \
    X(TOKEN_EMBD, "token_embd.weight", false, dim, vocabulary, ALL)                                \
    X(ATTN_NORM, "attn_norm.weight", true, dim, one, ATTN_NORM)                                    \
    X(ATTN_Q, "attn_q.weight", true, dim, q_dim, QKV)                                              \
    X(ATTN_K, "attn_k.weight", true, dim, kv_dim, QKV)                                             \
    X(ATTN_V, "attn_v.weight", true, dim, kv_dim, QKV)                                             \
    X(ATTN_OUTPUT, "attn_output.weight", true, q_dim, dim, ALL)                                    \
    X(FFN_NORM, "ffn_norm.weight", true, dim, one, FFN_NORM)                                       \
    X(FFN_GATE, "ffn_gate.weight", true, dim, hidden, FFN_W1)                                      \
    X(FFN_DOWN, "ffn_down.weight", true, hidden, dim, FFN)                                         \
    X(FFN_UP, "ffn_up.weight", true, dim, hidden, FFN_UP)                                          \
    X(OUTPUT_NORM, "output_norm.weight", false, dim, one, FINAL_NORM)                              \
    X(OUTPUT, "output.weight", false, dim, vocabulary, OUTPUT)
/* Tensors that come from files with names only. */
#define TND_LLAMA_EXTRA_LIST(X)                                                                    \
    X(ATTN_Q_BIAS, "attn_q.bias", true, q_dim, one, QKV_BIAS)                                      \
    X(ATTN_K_BIAS, "attn_k.bias", true, kv_dim, one, QKV_BIAS)                                     \
    X(ATTN_V_BIAS, "attn_v.bias", true, kv_dim, one, QKV_BIAS)                                     \
    X(ATTN_OUTPUT_BIAS, "attn_output.bias", true, dim, one, OUTPUT_BIAS)                           \
    X(FFN_BIAS_1, "ffn_gate.bias", true, hidden, one, FFN_W1_BIAS)                                 \
    X(FFN_BIAS_2, "ffn_down.bias", true, dim, one, FFN_BIAS)                                       \
    X(FFN_BIAS_3, "ffn_up.bias", true, hidden, one, FFN_BIAS)                                      \
    X(ATTN_Q_NORM, "attn_q_norm.weight", true, head_size, one, HEAD_NORM)                          \
    X(ATTN_K_NORM, "attn_k_norm.weight", true, head_size, one, HEAD_NORM)                          \
    X(FFN_ROUTER, "ffn_gate_inp.weight", true, dim, experts, ROUTER)                               \
    X(FFN_GATE_EXPS, "ffn_gate_exps.weight", true, dim, expert_hidden, EXPERTS)                    \
    X(FFN_DOWN_EXPS, "ffn_down_exps.weight", true, expert_hidden, dim, EXPERTS)                    \
    X(FFN_UP_EXPS, "ffn_up_exps.weight", true, dim, expert_hidden, EXPERTS)                        \
    X(FFN_GATE_INP_SHEXP, "ffn_gate_inp_shexp.weight", true, dim, one, SHARED_SHARE)               \
    X(FFN_GATE_SHEXP, "ffn_gate_shexp.weight", true, dim, shared_hidden, SHARED)                   \
    X(FFN_DOWN_SHEXP, "ffn_down_shexp.weight", true, shared_hidden, dim, SHARED)                   \
    X(FFN_UP_SHEXP, "ffn_up_shexp.weight", true, dim, shared_hidden, SHARED)                       \
    X(POSITION_EMBD, "position_embd.weight", false, dim, context, POSITIONS)                       \
    X(OUTPUT_NORM_BIAS, "output_norm.bias", false, dim, one, NORM_BIAS)                            \
    X(OUTPUT_BIAS, "output.bias", false, vocabulary, one, CLASSIFIER_BIAS)                         \
    X(ATTN_NORM_BIAS, "attn_norm.bias", true, dim, one, NORM_BIAS)                                 \
    X(ATTN_NORM_2, "attn_norm_2.weight", true, dim, one, SECOND_NORM)                              \
    X(ATTN_NORM_2_BIAS, "attn_norm_2.bias", true, dim, one, SECOND_NORM)                           \
    X(FFN_NORM_BIAS, "ffn_norm.bias", true, dim, one, FFN_NORM_BIAS)                               \
    X(ATTN_POST_NORM, "post_attention_norm.weight", true, dim, one, POST_NORM)                     \
    X(FFN_LATE_NORM, "post_attention_norm.weight", true, dim, one, LATE_FFN_NORM)                  \
    X(FFN_POST_NORM, "post_ffw_norm.weight", true, dim, one, POST_NORM)                            \
    X(ATTN_QKV, "attn_qkv.weight", true, dim, qkv_dim, FUSED_QKV)                                  \
    X(ATTN_QKV_BIAS, "attn_qkv.bias", true, qkv_dim, one, FUSED_QKV_BIAS)                          \
    X(FFN_GATE_UP, "ffn_up.weight", true, dim, hidden_2, FUSED_FFN)                                \
    X(ATTN_Q_WIDE_NORM, "attn_q_norm.weight", true, q_dim, one, WIDE_NORM)                         \
    X(ATTN_K_WIDE_NORM, "attn_k_norm.weight", true, kv_dim, one, WIDE_NORM)                        \
    X(ATTN_Q_NORMS, "attn_q_norm.weight", true, head_size, heads, HEAD_NORMS)                      \
    X(ATTN_K_NORMS, "attn_k_norm.weight", true, head_size, kv_heads, HEAD_NORMS)                   \
    X(ATTN_SINKS, "attn_sinks.weight", true, heads, one, SINKS)                                    \
    X(FFN_ROUTER_BIAS, "ffn_gate_inp.bias", true, experts, one, EXPERT_BIAS)                       \
    X(FFN_GATE_EXPS_BIAS, "ffn_gate_exps.bias", true, expert_hidden, experts, EXPERT_BIAS)         \
    X(FFN_DOWN_EXPS_BIAS, "ffn_down_exps.bias", true, dim, experts, EXPERT_BIAS)                   \
    X(FFN_UP_EXPS_BIAS, "ffn_up_exps.bias", true, expert_hidden, experts, EXPERT_BIAS)             \
    X(EXP_PROBS_B, "exp_probs_b.bias", true, experts, one, CHOICE_BIAS)                            \
    X(TOKEN_TYPES, "token_types.weight", false, dim, token_types, TOKEN_TYPES)                     \
    X(EMBD_NORM, "token_embd_norm.weight", false, dim, one, EMBEDDING_NORM)                        \
    X(EMBD_NORM_BIAS, "token_embd_norm.bias", false, dim, one, EMBEDDING_NORM_BIAS)                \
    X(ATTN_SUM_NORM, "attn_output_norm.weight", true, dim, one, SUM_NORM)                          \
    X(ATTN_SUM_NORM_BIAS, "attn_output_norm.bias", true, dim, one, SUM_NORM)                       \
    X(LAYER_SUM_NORM, "layer_output_norm.weight", true, dim, one, SUM_NORM)                        \
    X(LAYER_SUM_NORM_BIAS, "layer_output_norm.bias", true, dim, one, SUM_NORM)                     \
    X(ATTN_Q_A, "attn_q_a.weight", true, dim, q_latent, LATENT_Q)                                  \
    X(ATTN_Q_A_NORM, "attn_q_a_norm.weight", true, q_latent, one, LATENT_Q)                        \
    X(ATTN_Q_B, "attn_q_b.weight", true, q_latent, own_q_dim, LATENT_Q)                            \
    X(ATTN_OWN_Q, "attn_q.weight", true, dim, own_q_dim, OWN_Q)                                    \
    X(ATTN_KV_A, "attn_kv_a_mqa.weight", true, dim, head_size, LATENT_KV)                          \
    X(ATTN_KV_A_NORM, "attn_kv_a_norm.weight", true, kv_latent, one, LATENT_KV)                    \
    X(ATTN_K_B, "attn_k_b.weight", true, own_key, kv_latent, LATENT_HEADS)                         \
    X(ATTN_V_B, "attn_v_b.weight", true, kv_latent, value_size, LATENT_HEADS)                      \
    X(NEXTN_EH_PROJ, "nextn.eh_proj.weight", true, dim_2, dim, NEXTN)                              \
    X(NEXTN_ENORM, "nextn.enorm.weight", true, dim, one, NEXTN)                                    \
    X(NEXTN_HNORM, "nextn.hnorm.weight", true, dim, one, NEXTN)                                    \
    X(NEXTN_NORM, "nextn.shared_head_norm.weight", true, dim, one, NEXTN)                          \
    X(NEXTN_EMBD, "nextn.embed_tokens.weight", true, dim, vocabulary, NEXTN_OWN)                   \
    X(NEXTN_HEAD, "nextn.shared_head_head.weight", true, dim, vocabulary, NEXTN_OWN)               \
    X(CLS, "cls.weight", false, dim, dim, RANK)                                                    \
    X(CLS_BIAS, "cls.bias", false, dim, one, RANK_BIAS)                                            \
    X(CLS_NORM, "cls.norm.weight", false, dim, one, RANK_NORM)                                     \
    X(CLS_OUTPUT, "cls.output.weight", false, dim, labels, RANK)                                   \
    X(CLS_OUTPUT_BIAS, "cls.output.bias", false, labels, one, RANK)

enum tnd_llama_role {
#define TND_LLAMA_ROLE_ENUM(role, name, layered, ne0, ne1, group) TND_LLAMA_##role,
    TND_LLAMA_TENSOR_LIST(TND_LLAMA_ROLE_ENUM) TND_LLAMA_ROLES, /* the extra list follows */
    TND_LLAMA_LAST_ROLE = TND_LLAMA_ROLES - 1,
    TND_LLAMA_EXTRA_LIST(TND_LLAMA_ROLE_ENUM)
#undef TND_LLAMA_ROLE_ENUM
        TND_LLAMA_ALL_ROLES
};

/** Tensors that a model either has together or lacks together. */
enum tnd_llama_group {
    TND_LLAMA_GROUP_ALL,
    TND_LLAMA_GROUP_OUTPUT,
    TND_LLAMA_GROUP_ATTN_NORM,
    TND_LLAMA_GROUP_FFN_NORM,
    TND_LLAMA_GROUP_QKV,
    TND_LLAMA_GROUP_QKV_BIAS,
    TND_LLAMA_GROUP_OUTPUT_BIAS,
    TND_LLAMA_GROUP_FFN_BIAS,
    TND_LLAMA_GROUP_FFN_W1_BIAS,
    TND_LLAMA_GROUP_HEAD_NORM,
    TND_LLAMA_GROUP_FFN,    /* layers without experts */
    TND_LLAMA_GROUP_FFN_W1, /* likewise; without it the activation applies to FFN_UP */
    TND_LLAMA_GROUP_FFN_UP,
    TND_LLAMA_GROUP_ROUTER,  /* layers with experts */
    TND_LLAMA_GROUP_EXPERTS, /* likewise; ne[2] is the number of experts */
    TND_LLAMA_GROUP_SHARED,  /* an expert that every token uses */
    TND_LLAMA_GROUP_SHARED_SHARE,
    TND_LLAMA_GROUP_POSITIONS, /* learned positions instead of RoPE */
    TND_LLAMA_GROUP_NORM_BIAS,
    TND_LLAMA_GROUP_FFN_NORM_BIAS,
    TND_LLAMA_GROUP_SECOND_NORM, /* attention's, where ATTN_NORM is the feed-forward network's */
    TND_LLAMA_GROUP_CLASSIFIER_BIAS,
    TND_LLAMA_GROUP_POST_NORM,     /* applied to a block's output before it is added */
    TND_LLAMA_GROUP_LATE_FFN_NORM, /* FFN_NORM under another name */
    TND_LLAMA_GROUP_FUSED_QKV,     /* q, k and v in one matrix */
    TND_LLAMA_GROUP_FUSED_QKV_BIAS,
    TND_LLAMA_GROUP_FUSED_FFN,  /* gate and up in one matrix */
    TND_LLAMA_GROUP_WIDE_NORM,  /* one norm over all heads' queries, one over all keys */
    TND_LLAMA_GROUP_HEAD_NORMS, /* weights per head */
    TND_LLAMA_GROUP_SINKS,
    TND_LLAMA_GROUP_EXPERT_BIAS,
    TND_LLAMA_GROUP_CHOICE_BIAS, /* added to the router's scores only when choosing experts */
    TND_LLAMA_GROUP_FINAL_NORM,
    TND_LLAMA_GROUP_TOKEN_TYPES,
    TND_LLAMA_GROUP_EMBEDDING_NORM, /* before the first layer */
    TND_LLAMA_GROUP_EMBEDDING_NORM_BIAS,
    TND_LLAMA_GROUP_SUM_NORM,     /* applied to x plus the block's output */
    TND_LLAMA_GROUP_LATENT_Q,     /* queries projected from a latent vector */
    TND_LLAMA_GROUP_OWN_Q,        /* queries projected from x, where keys are latent */
    TND_LLAMA_GROUP_LATENT_KV,    /* keys and values projected from a latent vector */
    TND_LLAMA_GROUP_LATENT_HEADS, /* likewise; ne[2] is the number of heads */
    TND_LLAMA_GROUP_RANK,         /* a reranker's classifier */
    TND_LLAMA_GROUP_RANK_BIAS,    /* of the layer before the classifier */
    TND_LLAMA_GROUP_RANK_NORM,    /* after that layer, whose activation then differs */
    TND_LLAMA_GROUP_NEXTN,        /* of prediction layers (MTP) after the last layer */
    TND_LLAMA_GROUP_NEXTN_OWN,    /* likewise; without them they share the model's */
    TND_LLAMA_GROUPS
};
enum tnd_llama_promise { TND_LLAMA_OPTIONAL, TND_LLAMA_NEEDED, TND_LLAMA_ABSENT };
/** A group as a bit of a mask. */
#define TND_HAS(group) ((uint64_t)1 << TND_LLAMA_GROUP_##group)

/** An architecture of the GGUF convention: a row of llama_architectures.c. Zero members: as for
 * llama. */
struct tnd_llama_architecture {
    const char *name;             /* general.architecture */
    enum tandem_rope_pairs pairs; /* order of the rows in files */
    enum tandem_norm_kind norm;
    enum tandem_activation activation;
    uint64_t has, may, lacks; /* groups: needed beyond llama's, allowed, llama's that it lacks */
    bool may_have_experts, must_have_experts;
    bool has_normed_experts; /* weights of a token's experts sum to 1 */
    enum tandem_router router;
    bool may_have_sigmoid; /* the file may choose between softmax and sigmoid */
    bool is_latent;        /* latent attention (MLA) */
    bool is_parallel;      /* default of the file's key */
    bool norms_after_rope;
    bool is_rotated_in_windows;
    bool is_encoder;
    bool is_first_bare;             /* the first layer's attention reads x without a norm */
    bool has_wide_first;            /* the first of each window_period layers has no window */
    bool has_normed_scores;         /* a reranker has RANK_NORM instead of RANK_BIAS */
    bool scales_embedding;          /* by sqrt(dim) */
    bool may_have_divisors;         /* longrope's, without a key for the RoPE scaling */
    bool divides_logits;            /* logit_scale is a divisor */
    int window_period, rope_period; /* see struct tandem_hparams */
    float window_freq_base;         /* default of the file's key */
    bool has_plain_windows;         /* RoPE in layers with a window: same base, unscaled */
    int64_t wide_layers; /* a model of this many layers scales scores by 1 / sqrt(dim / heads) */
    const char *keys;    /* keys that only architectures listing them may have: "name name" */
    const char *needs;   /* which of `keys` are required */
};
/** The architecture of a name, or NULL. */
const struct tnd_llama_architecture *tnd_llama_architecture_of(const char *name);
/** Row i, or NULL after the last one. */
const struct tnd_llama_architecture *tnd_llama_architecture_at(int i);
/** Whether a list of names separated by spaces contains `name`. */
bool tnd_llama_lists(const char *list, const char *name);

/** Checked sizes of a Llama-like model: positive, heads divide evenly, everything below 2^31. */
struct tnd_llama_dims {
    int64_t dim, q_dim, kv_dim, hidden, vocabulary, one;
    int64_t qkv_dim, hidden_2, dim_2; /* q_dim + 2 kv_dim; 2 hidden; 2 dim */
    int64_t nextn;                    /* prediction layers (MTP) after the last layer */
    int64_t layers, heads, kv_heads, context, head_size;
    int64_t experts, experts_used, expert_hidden, shared_hidden; /* 0: none */
    int64_t token_types, labels;                                 /* 0: none */
    /* latent attention; own_q_dim: values of all heads' queries, own_key: unrotated values per key
     */
    int64_t q_latent, kv_latent, value_size, own_q_dim, own_key;
};

/** llama_hparams.c: checks a shape as a file's numbers are checked, and fills `out_dims`. `name` is
 * used in messages. Errors: `status` (FORMAT for a file, ARGUMENT for a caller). */
enum tandem_status tnd_llama_dims_from(const struct tandem_llama_shape *shape, const char *name,
                                       enum tandem_status status, struct tnd_llama_dims *out_dims,
                                       struct tandem_error *error);

/** Checks that the source has exactly the tensors that `promises` require or allow, with the
 * extents of `dims`. promises[0]: layers without experts, [1]: layers with them. Of `h` the RoPE
 * scaling and the special layers are read. Errors: NOT_FOUND, SHAPE, TYPE, FORMAT,
 * UNSUPPORTED_BUILD. */
enum tandem_status tnd_llama_check_tensors(const tandem_source *source,
                                           const struct tnd_llama_dims *dims,
                                           const struct tandem_hparams *h,
                                           enum tnd_llama_promise promises[2][TND_LLAMA_GROUPS],
                                           struct tandem_error *error);

/** llama_rope.c: reads the RoPE scaling into `h`, whose architecture, context, n_rot and rope_pairs
 * (unless the source states them) are set. Errors: FORMAT, UNSUPPORTED_BUILD. */
enum tandem_status tnd_llama_read_rope(const tandem_source *source, struct tandem_hparams *h,
                                       struct tandem_error *error);

/** Llama 3's RoPE scaling. */
struct tnd_llama3_rope {
    int64_t head_size;
    double base, factor, low, high, original;
};
/** Adds rope_freqs.weight, the divisor of each pair's angle. Errors: FORMAT (impossible numbers),
 * MEMORY, LIMIT. */
enum tandem_status tnd_llama_add_divisors(tandem_source *source, const struct tnd_llama3_rope *rope,
                                          struct tandem_error *error);

/** Adds rope_factors_short.weight and rope_factors_long.weight, n values each. Errors: those of
 * tnd_llama_add_divisors. */
enum tandem_status tnd_llama_add_longrope(tandem_source *source, const float *short_factors,
                                          const float *long_factors, int64_t n,
                                          struct tandem_error *error);

/** How many tensors of a role a model of `dims` has (1, one per layer, or 0), for loaders that
 * create models from dims; and their dimensions and extents. */
int64_t tnd_llama_role_count(enum tnd_llama_role role, const struct tnd_llama_dims *dims);
int tnd_llama_role_extents(enum tnd_llama_role role, const struct tnd_llama_dims *dims,
                           int64_t ne[3]);

/** Adds one tensor of a role under its GGUF name. Errors: MEMORY. */
enum tandem_status tnd_llama_add(tandem_source *source, enum tnd_llama_role role, int64_t layer,
                                 const struct tnd_llama_dims *dims, enum tandem_type type,
                                 const void *data, size_t bytes, struct tandem_error *error);

/** Adds the values of the GGUF convention: llama.embedding_length etc. As in llama2.c, RoPE rotates
 * adjacent pairs, eps is 1e-5 and the base of the frequencies 10000. Errors: MEMORY. */
enum tandem_status tnd_llama_set_values(tandem_source *source, const struct tnd_llama_dims *dims,
                                        struct tandem_error *error);

#endif
