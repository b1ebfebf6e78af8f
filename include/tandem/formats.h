/* SPDX-License-Identifier: MIT
 * room: formats
 *
 * Model files: a source is a set of named tensors and named values, whatever the file format.
 * Tensors and keys have the names of the GGUF convention ("blk.0.attn_q.weight",
 * "llama.embedding_length"), see docs/formats.md. */
#ifndef TANDEM_FORMATS_H
#define TANDEM_FORMATS_H

#include "tandem/ops.h"

TANDEM_BEGIN_C

/** An open model: named tensors and values. Never changed, so that any number of threads may read
 *  it. */
typedef struct tandem_source tandem_source;

/** One tensor of a source. The layout is fixed for good. */
struct tandem_source_tensor {
    const char *name;            /**< lives as long as the source */
    enum tandem_type type;       /**< of the values in the file */
    int n_dims;                  /**< 1 to 4 */
    int64_t ne[TANDEM_MAX_DIMS]; /**< extents, fastest first; missing ones are 1 */
    const void *data;            /**< borrowed from the source: its mapped file or its memory */
    size_t bytes;                /**< of `data`; dense */
};

/** Options of tandem_source_open_with. */
struct tandem_source_options {
    size_t size; /**< sizeof(struct tandem_source_options) */
    bool copies; /**< read the files instead of mapping them: they may change while they are open */
};
#define TANDEM_SOURCE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        sizeof(struct tandem_source_options), false                                                \
    }

/** Opens a model file, whose format is detected from its contents. The file is mapped and its
 * tensors are borrowed from the mapping; see tandem/mapped.h for what happens when the file is
 * truncated meanwhile. `options` may be NULL. The caller owns the source. Any thread. Errors:
 * ARGUMENT, ABI, FILE, FORMAT, TRUNCATED, UNSUPPORTED_BUILD, MEMORY, LIMIT. */
TANDEM_API enum tandem_status tandem_source_open_with(const char *path,
                                                      const struct tandem_source_options *options,
                                                      tandem_source **out_source,
                                                      struct tandem_error *error);
/** tandem_source_open_with without options. Any thread. Errors: as above. */
TANDEM_API enum tandem_status tandem_source_open(const char *path, tandem_source **out_source,
                                                 struct tandem_error *error);
/** Closes a source. Tensors that borrow from it must be gone. NULL is allowed. Never fails. One
 *  thread at a time. */
TANDEM_API void tandem_source_close(tandem_source *source);

/** Shape of a llama for tandem_source_synthesize. */
struct tandem_llama_shape {
    size_t size;          /**< sizeof(struct tandem_llama_shape) */
    int64_t dim;          /**< values of a token's state */
    int64_t hidden;       /**< values inside a feed-forward block */
    int64_t layers;       /**< transformer blocks */
    int64_t heads;        /**< of queries; divides dim */
    int64_t kv_heads;     /**< of keys and values; divides heads */
    int64_t vocabulary;   /**< tokens */
    int64_t context;      /**< positions */
    int64_t experts;      /**< experts per feed-forward block, each `hidden` wide; 0: none */
    int64_t experts_used; /**< per token; 1 to experts */
    int64_t head_size;    /**< of attention; 0: dim / heads */
};
/** A llama with seeded random weights of the given type, made in memory; no file. Tensors whose
 * rows do not fit the type's blocks, and the norms, are F32. Deterministic in the seed. The caller
 * owns the source. Any thread. Errors: ABI, ARGUMENT, TYPE, OVERFLOW, MEMORY. */
TANDEM_API enum tandem_status tandem_source_synthesize(const struct tandem_llama_shape *shape,
                                                       enum tandem_type type, uint64_t seed,
                                                       tandem_source **out_source,
                                                       struct tandem_error *error);
/** Copies a source with its weight matrices converted to `type` where rows fit its blocks (others
 * stay as they are). The caller owns the new source, which borrows nothing from the first one. Any
 * thread. Errors: ARGUMENT, TYPE, OVERFLOW, MEMORY. */
TANDEM_API enum tandem_status tandem_source_convert(const tandem_source *source,
                                                    enum tandem_type type,
                                                    tandem_source **out_source,
                                                    struct tandem_error *error);

/** "llama2.c version 0", "synthetic", ...; lives as long as the source. Never fails. Any thread. */
TANDEM_API const char *tandem_source_format(const tandem_source *source);
/** Number of tensors. Never fails. Any thread. */
TANDEM_API int tandem_source_tensor_count(const tandem_source *source);
/** i-th tensor in the order of the file. Never fails: false outside, and `out` is untouched. Any
 *  thread. */
TANDEM_API bool tandem_source_tensor_at(const tandem_source *source, int i,
                                        struct tandem_source_tensor *out);
/** Tensor by name. Never fails: false when there is none, and `out` is untouched. Any thread. */
TANDEM_API bool tandem_source_find(const tandem_source *source, const char *name,
                                   struct tandem_source_tensor *out);
/** Values by key: an integer (booleans too), a number (that is no integer), a text, which lives as
 *  long as the source. Never fail: false when there is none of that kind, and `out` is untouched.
 *  Any thread. */
TANDEM_API bool tandem_source_integer(const tandem_source *source, const char *key, int64_t *out);
TANDEM_API bool tandem_source_number(const tandem_source *source, const char *key, double *out);
TANDEM_API bool tandem_source_text(const tandem_source *source, const char *key, const char **out);

/* ---- what a model is ---- */

/** The activation of the gate in a feed-forward block. Numbers are pinned. */
enum tandem_activation {
    TANDEM_ACTIVATION_SILU = 0,
    TANDEM_ACTIVATION_GELU = 1,       /**< with the error function, tandem_gelu_erf */
    TANDEM_ACTIVATION_GELU_TANH = 2,  /**< its approximation by tanh, tandem_gelu */
    TANDEM_ACTIVATION_QUICK_GELU = 3, /**< a sigmoid(1.702 a), Hendrycks and Gimpel 2016 */
    TANDEM_ACTIVATION_RELU = 4,
    TANDEM_ACTIVATION_RELU2 = 5,  /**< relu(a)^2, So et al. 2021 */
    TANDEM_ACTIVATION_LINEAR = 6, /**< a itself */
    /** With the gate a clamped to at most 7 and the other half b to [-7, 7]: a sigmoid(1.702 a) (b
     * + 1), as in the model card of gpt-oss and its reference code. */
    TANDEM_ACTIVATION_CLAMPED = 7
};

/** How layers normalise; numbers are pinned. */
enum tandem_norm_kind {
    TANDEM_LLAMA_RMS_NORM = 0, /**< by the mean square, tandem_rms_norm */
    TANDEM_LLAMA_LAYER_NORM =
        1 /**< by mean and variance, tandem_norm; with a bias if the model has one */
};

/** How a router turns its scores into weights of experts; numbers are pinned. */
enum tandem_router {
    TANDEM_ROUTER_SOFTMAX = 0,
    TANDEM_ROUTER_SIGMOID = 1 /**< each score by itself, as DeepSeek V3 */
};

/** RoPE scalings that differ from pair to pair; numbers are pinned. */
enum tandem_rope_scaling {
    TANDEM_ROPE_EVEN = 0, /**< none, or one that freq_base or freq_scale express */
    TANDEM_ROPE_LLAMA3 = 1,
    TANDEM_ROPE_YARN = 2,
    /** By tensors rope_factors_short.weight and rope_factors_long.weight; the latter for sessions
     *  of more than rope_original positions. */
    TANDEM_ROPE_LONGROPE = 3
};

/** How the embeddings of a text's tokens are combined into one; numbers are pinned, and equal to
 * those of llama.cpp. */
enum tandem_pooling {
    TANDEM_POOLING_NONE = 0, /**< not in the file: decoders take the last token's */
    TANDEM_POOLING_MEAN = 1,
    TANDEM_POOLING_CLS = 2,  /**< the first token's */
    TANDEM_POOLING_LAST = 3, /**< the last token's */
    TANDEM_POOLING_RANK = 4  /**< scores, by a classifier on the first token's */
};

/** The hyper-parameters of a model. Read-only: the library fills them in, later versions append
 * members, and `size` is the size of this version. */
struct tandem_hparams {
    size_t size;              /**< of this structure */
    const char *architecture; /**< "llama", "gemma3", ...: docs/architectures.md lists them */
    int64_t dim;              /**< length of a token's vector */
    int64_t hidden;           /**< width of the feed-forward network */
    int64_t layers;           /**< transformer blocks */
    int64_t heads;            /**< of the queries */
    int64_t kv_heads;         /**< of keys and values: each serves heads / kv_heads queries */
    int64_t head_size;        /**< dim / heads unless the model says otherwise */
    int64_t q_dim;            /**< heads * head_size */
    int64_t kv_dim;           /**< kv_heads * head_size */
    int64_t vocabulary;       /**< tokens that the model knows */
    int64_t context;          /**< positions that the model was trained for */
    int64_t window;  /**< a token sees this many tokens, itself included; 0: all before it. In an
                      * encoder: window / 2 tokens on both sides */
    float norm_eps;  /**< added to the mean square, or to the variance, in norms */
    bool has_biases; /**< on q, k and v; the architecture always has them */
    enum tandem_type weight_type; /**< of the first layer's matrix of queries; others may differ */
    enum tandem_activation activation;
    /** {layers}, borrowed from the source: 0 where a layer has no window; NULL: all have it. */
    const uint8_t *windowed;
    enum tandem_rope_pairs rope_pairs; /**< linear and NTK scaling are in the next numbers */
    int64_t n_rot;                     /**< values of a head that are rotated */
    float freq_base;
    float freq_scale;
    double rope_factor; /**< of llama 3 and YaRN: see tandem_hparams_divisors; 0: none */
    double rope_low;    /**< llama 3: wavelengths; YaRN: first and last pair slowed in part */
    double rope_high;
    double rope_original;    /**< context before the scaling */
    int64_t experts;         /**< of each feed-forward block; 0: the block is no mixture */
    int64_t experts_used;    /**< by each token */
    int64_t expert_hidden;   /**< width of an expert */
    int64_t shared_hidden;   /**< width of the expert that every token uses; 0: there is none */
    bool has_normed_experts; /**< weights of the experts of a token add up to 1 */
    enum tandem_rope_scaling rope_scaling; /**< those that differ from pair to pair */
    float rope_magnitude;                  /**< factor of rotated queries and keys; 1: none */
    enum tandem_norm_kind norm;
    bool is_parallel;      /**< attention and feed-forward network read the same x, and add to it */
    bool norms_after_rope; /**< queries and keys are normalised after rotation */
    bool is_rotated_in_windows; /**< only layers with a window rotate */
    int64_t window_period;      /**< of so many layers, the last has no window; 0: see `windowed` */
    int64_t rope_period;        /**< of so many layers, the last does not rotate; 0: all do */
    const uint8_t *rotated;     /**< {layers}, borrowed from the source: 0: does not rotate; NULL */
    float window_freq_base;     /**< for layers with a window, unscaled; 0: as the other layers */
    float embedding_scale;      /**< factor of embeddings; 1: none */
    float residual_scale;       /**< factor of each block's output */
    float logit_scale;          /**< factor of logits */
    float attention_scale;      /**< factor of scores; 0: 1 / sqrt(head_size) */
    float attention_cap;        /**< scores s become cap tanh(s / cap); 0: unchanged */
    float logit_cap;            /**< the same for logits */
    enum tandem_router router;
    float expert_scale;   /**< factor of the chosen experts' weights */
    int64_t dense_layers; /**< leading layers of a mixture that have no experts */
    bool has_sinks;       /**< attention sinks: one more score a head, without a value */
    bool is_encoder;      /**< bidirectional attention; a text is one batch and has no logits */
    enum tandem_pooling pooling;
    int64_t token_types; /**< token types (first and second text); 0: the model has none */
    int64_t labels;      /**< scores of a reranker for one text; 0: not a reranker */
    /** Latent attention (DeepSeek-AI 2024, arXiv:2405.04434): width of the vector from which keys
     * and values are computed, and of that for the queries; 0: computed from x. */
    int64_t kv_latent, q_latent;
    int64_t value_size; /**< of a head's value; differs from head_size only in latent attention */
    /** Experts are chosen only in the best groups; 0: in all. */
    int64_t expert_groups, expert_groups_used;
    int64_t nextn_layers; /**< after `layers`, for predicting ahead; 0: none */
    bool has_wide_first;  /**< of window_period layers, the first has no window, not the last */
    bool is_first_bare;   /**< attention of the first layer reads x without a norm */
    bool scores_mean;     /**< a reranker scores the mean of a text's embeddings, not the first */
};

/** Reads the numbers of a model of an architecture in docs/architectures.md and checks the source
 * completely: each number, whether they are consistent, and for each tensor that it is known,
 * present, and has the extents that the numbers imply. Call it before computing with a source or
 * converting it. Reads no weights. Any thread. Errors: FORMAT (another architecture, or numbers
 * that do not fit together), NOT_FOUND (a tensor or a number), SHAPE, TYPE, UNSUPPORTED_BUILD (a
 * tensor, a key or a scaling of rope that this version does not compute), ARGUMENT. */
TANDEM_API enum tandem_status tandem_source_hparams(const tandem_source *source,
                                                    struct tandem_hparams *out_hparams,
                                                    struct tandem_error *error);
/** Scaling of rope as the divisor of each pair's angle, n_rot / 2 values. Llama 3 (Llama 3.1 model
 * card): wavelengths longer than original / low are slowed by the factor, those shorter than
 * original / high are not, those between partly. YaRN (Peng et al. 2023, arXiv:2309.00071): pairs
 * from rope_high on are slowed, those up to rope_low are not. All 1 for others (LongRoPE's divisors
 * are tensors of the source). Never fails. Any thread. */
TANDEM_API void tandem_hparams_divisors(const struct tandem_hparams *hparams, float *out);

/** A number that identifies a model: a digest of names, types, extents and contents of all tensors
 * and of all values but `general.*` and chat templates. Two files with the same identity compute
 * the same; a merge, another quantisation or one changed byte of a weight changes it. It detects
 * accidents, and is no signature. Reads all weights, unless digests of the file are stored from an
 * earlier time (docs/formats.md, "Packed weights"). Any thread. Errors: FILE (part of a mapped file
 * is gone), ARGUMENT. */
TANDEM_API enum tandem_status tandem_source_identity(const tandem_source *source,
                                                     uint64_t *out_identity,
                                                     struct tandem_error *error);

/* ---- lists, and all values in the order of the file ---- */

/** Kind of a value; numbers are pinned. */
enum tandem_value_kind {
    TANDEM_VALUE_INTEGER, /**< booleans too */
    TANDEM_VALUE_NUMBER,  /**< floating point */
    TANDEM_VALUE_TEXT,    /**< UTF-8, as the file has it */
    TANDEM_VALUE_ARRAY    /**< a list, see struct tandem_array */
};

/** A list of values of one kind, such as the tokens of a vocabulary. Its contents are borrowed from
 *  the source. The layout is fixed for good. */
struct tandem_array {
    enum tandem_value_kind kind; /**< of the items; ARRAY: nested lists, which are not accessible */
    int64_t count;               /**< items */
    const void *items;           /**< for the functions below */
};
/** A list by key. Never fails: false when there is none, and `out` is untouched. Any thread. */
TANDEM_API bool tandem_source_array(const tandem_source *source, const char *key,
                                    struct tandem_array *out);
/** Item `i`. Never fail: false outside and for another kind. tandem_array_number accepts integers
 * too. A text is not terminated and may hold any byte; `out_bytes` is its length. O(1). Any
 * thread. */
TANDEM_API bool tandem_array_integer(const struct tandem_array *array, int64_t i, int64_t *out);
TANDEM_API bool tandem_array_number(const struct tandem_array *array, int64_t i, double *out);
TANDEM_API bool tandem_array_text(const struct tandem_array *array, int64_t i, const char **out,
                                  size_t *out_bytes);

/** One value of a source; members beside `key` and `kind` as the kind says. The layout is fixed for
 *  good. */
struct tandem_source_value {
    const char *key;             /**< lives as long as the source */
    enum tandem_value_kind kind; /**< which of the members below holds the value */
    int64_t integer;             /**< INTEGER */
    double number;               /**< NUMBER */
    const char *text;            /**< TEXT; lives as long as the source */
    struct tandem_array array;   /**< ARRAY */
};
/** Number of values. Never fails. Any thread. */
TANDEM_API int tandem_source_value_count(const tandem_source *source);
/** i-th value in the order of the file. Never fails: false outside, and `out` is untouched. Any
 *  thread. */
TANDEM_API bool tandem_source_value_at(const tandem_source *source, int i,
                                       struct tandem_source_value *out);

/* ---- writing ---- */

/** Options of tandem_source_save_gguf. */
struct tandem_save_options {
    size_t size;           /**< sizeof(struct tandem_save_options); 0 is an error */
    bool converts;         /**< convert matrices to `type` where their rows fit its blocks */
    enum tandem_type type; /**< of matrices, when `converts` */
    int threads;           /**< for converting; 0: one for each CPU that this process may use */
    /** Called on the caller's thread after each piece; returning false ends with CANCELLED. NULL:
     * none. */
    bool (*progress)(void *user, const char *tensor, int64_t done_bytes, int64_t all_bytes);
    void *user; /**< passed to `progress` */
    /** Name of a mix of types as defined by llama.cpp ("q4_k_m"), in place of `type`; NULL: none.
     * Borrowed during the call. */
    const char *mix;
    /** Path of an importance matrix of llama.cpp, GGUF or older; NULL: none. Types below 3 bits
     *  (IQ2_XXS, IQ2_XS, IQ2_S, IQ1_S, IQ1_M) need one, but for embeddings and the output. */
    const char *importance;
};
#define TANDEM_SAVE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_save_options), false, TANDEM_TYPE_F32, 0, NULL, NULL, NULL, NULL      \
    }

/** Writes a GGUF file (version 3): tensors, values and lists. The file appears atomically when it
 * is complete; a failure leaves no file. The rows of attn_q and attn_k of a source whose rope pairs
 * are halves (models of Hugging Face) are reordered as the GGUF convention for the architecture
 * llama requires. `options` may be NULL. Any thread. Errors: ARGUMENT, FILE, MEMORY, OVERFLOW,
 * TYPE, CANCELLED; NOT_FOUND (no such mix), those of tandem_source_hparams (a mix); FORMAT and
 * TRUNCATED (importance). */
TANDEM_API enum tandem_status tandem_source_save_gguf(const tandem_source *source, const char *path,
                                                      const struct tandem_save_options *options,
                                                      struct tandem_error *error);

TANDEM_END_C
#endif
