/* SPDX-License-Identifier: MIT
 * A parsed config.json of Hugging Face (safetensors_config.c), and the conversion of its RoPE
 * scaling to the GGUF convention (hf_config_rope.c). */
#ifndef TND_HF_CONFIG_H
#define TND_HF_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/llama-lists.h"
#include "formats/safetensors.h"
#include "formats/source.h"

#define TND_HF_MAX_LAYERS  4096
#define TND_HF_MAX_FACTORS 1024      /* longrope's divisors: half a head */
#define TND_NOT_SAID       INT64_MIN /* an integer not stated; numbers: NaN */

/** Which layers of a family may have a sliding window. */
enum tnd_hf_windows {
    TND_HF_NO_WINDOW,
    TND_HF_ALL,  /* every layer */
    TND_HF_QWEN, /* by use_sliding_window with max_window_layers or layer_types */
    TND_HF_TYPES /* by layer_types; without it, all but every window_period-th */
};

/** A model_type: a row of hf_families.c. Zero members: as for llama in transformers. Lists are
 * names separated by spaces. */
struct tnd_hf_family {
    const char *model_type;
    const char *architecture; /* general.architecture of the GGUF convention */
    /* defaults where config.json does not state a member */
    int64_t kv_heads, head_dim, context, window, bos, eos; /* TND_NOT_SAID: derived from others */
    double eps, theta, window_theta;                       /* 0: 1e-6; 10000; as in other layers */
    double partial;                                        /* share of each head that is rotated */
    double query_scalar, attention_scale, attention_cap, logit_cap, logit_scale; /* 0: none */
    const char *activation; /* our name; NULL: silu */
    bool is_encoder;        /* its pooling is read from the files of sentence-transformers */
    bool has_wide_first;    /* the first of each window_period layers has no window, not the last */
    bool pads_positions;    /* positions up to the padding token's are never used */
    bool is_tied, is_parallel, has_attention_bias, has_mlp_bias, has_multi_query, norms_experts;
    bool is_latent;    /* keys and values are projected from a latent vector (MLA) */
    bool has_sigmoid;  /* the router uses a sigmoid, and a bias when it chooses experts */
    int hidden_of_dim; /* width of the feed-forward network, in multiples of hidden_size */
    int window_period, rope_period, dense_layers, shared_experts;
    /* mixtures of experts: experts, experts per token, widths; 0: the family lacks the member */
    int64_t experts, used, expert_hidden, shared_hidden;
    bool experts_are_hidden; /* an expert's width is intermediate_size */
    /* meaning of its members */
    enum tnd_hf_windows windows;
    bool may_have_attention_bias, may_have_mlp_bias;
    bool bias_of_qkv;    /* attention_bias: of q, k and v only */
    bool bias_of_all;    /* attention_bias: of the feed-forward network, too */
    bool is_partial;     /* partial_rotary_factor is used */
    bool is_adjacent;    /* RoPE rotates pairs of adjacent values */
    bool means_tanh;     /* "gelu" is the approximation by tanh */
    bool means_longrope; /* the scalings "su" and "yarn" are longrope */
    bool has_alpha;      /* the scaling "dynamic" with alpha changes the base as NTK does */
    bool needs_scaling;  /* rope_scaling is required: we do not use transformers' made-up default */
    const char *own;     /* members that only families listing them have */
    const char *aliases; /* "name here=common name" */
    const char *ignores; /* members that transformers ignores */
    const char *texts;   /* "member=value": the only supported value */
    const char *lacks;   /* common members that the family does not have */
    /* how its tensors are converted (hf_reshape.c), by their names in the convention */
    const char *renames;    /* "from=to" after blk.N., applied simultaneously */
    const char *transposes; /* stored as {N, K} */
    const char *drops;      /* prefixes of names that embeddings and scores do not need */
    bool adds_one;          /* adds 1 to the weights of norms */
    bool parts_experts;     /* gate and up columns of an expert alternate in the file */
    bool groups_qkv;        /* rows of attn_qkv are grouped by KV head: its queries, key, value */
};
/** The family of a model_type, or NULL. */
const struct tnd_hf_family *tnd_hf_family_of(const char *model_type);
/** Row i, or NULL after the last one. */
const struct tnd_hf_family *tnd_hf_family_at(int i);

struct tnd_hf_config {
#define INTEGER_MEMBER(name, where, key) int64_t name;
    TND_CONFIG_INTEGERS(INTEGER_MEMBER)
#undef INTEGER_MEMBER
#define NUMBER_MEMBER(name, where, key) double name;
    TND_CONFIG_NUMBERS(NUMBER_MEMBER)
#undef NUMBER_MEMBER
#define FLAG_MEMBER(name) bool name;
    TND_CONFIG_FLAGS(FLAG_MEMBER)
#undef FLAG_MEMBER
    double rope_theta_inside, original_inside, partial_inside; /* from inside rope_parameters */
    char scaling[32];
    char older_scaling[32];                 /* "type", used where "rope_type" is missing */
    double attn_factor;                     /* as in the convention; NAN: not stated */
    bool keeps_fractions;                   /* of the pairs' bounds in YaRN ("truncate" is false) */
    int64_t n_short, n_long;                /* numbers of longrope's divisors */
    float short_factor[TND_HF_MAX_FACTORS]; /* longrope's divisors */
    float long_factor[TND_HF_MAX_FACTORS];
    const char *activation; /* our name; NULL: silu */
    int n_ropes;            /* how many of rope_scaling and rope_parameters are not empty */
    int64_t bos;
    struct tnd_end_tokens ends;
    uint8_t windowed[TND_HF_MAX_LAYERS]; /* by layer_types */
    int64_t n_layer_types;
    uint8_t rotated[TND_HF_MAX_LAYERS]; /* by no_rope_layers */
    int64_t n_rotated;
    int64_t pooling;     /* enum tandem_pooling */
    bool ignores_groups; /* of experts: chooses among all of them */
    int64_t n_rot;       /* rotated values per head */
    bool is_partial;     /* n_rot may be less than a head */
    bool scores_mean;    /* classifier_pooling is "mean" */
};

/** A config.json being parsed. */
struct tnd_config_reader {
    struct tnd_json *json;
    const struct tnd_hf_family *family;
    struct tnd_hf_config *config;
};

/** hf_resolve.c: sets the defaults of a family, before config.json is parsed. */
void tnd_hf_set_defaults(const struct tnd_hf_family *family, struct tnd_hf_config *out);
/** After parsing: refuses members that the family does not have, and missing ones that it needs,
 * and derives members from others. Errors: NOT_FOUND, FORMAT, UNSUPPORTED_BUILD, LIMIT. */
enum tandem_status tnd_hf_resolve(const struct tnd_config_reader *reader,
                                  struct tandem_error *error);
/** hf_values.c: adds the config's members to the values of the source. Errors: MEMORY. */
enum tandem_status tnd_hf_add_values(tandem_source *source, const struct tnd_config_reader *reader,
                                     struct tandem_error *error);
/** Adds values tandem.has.GROUP, 1 or 0: whether the source must have the tensors of a group.
 * Errors: MEMORY. */
enum tandem_status tnd_hf_add_promises(tandem_source *source,
                                       const struct tnd_config_reader *reader,
                                       struct tandem_error *error);
/** Looks up `name` in a list "alias=name alias=name" and copies what it stands for to `out`. False:
 * not an alias. */
bool tnd_hf_alias(const char *aliases, const char *name, char *out, size_t capacity);
/** hf_pooling.c: sets pooling_type from the files of sentence-transformers in `folder` (with a
 * trailing slash, or empty). Errors: FILE, FORMAT, NOT_FOUND, UNSUPPORTED_BUILD, MEMORY. */
enum tandem_status tnd_hf_read_pooling(const char *folder, tandem_source *source,
                                       struct tandem_error *error);
/** Sets the error "FILE: member "MEMBER" WHY" and returns `status`. */
enum tandem_status tnd_hf_refuse(const struct tnd_json *json, enum tandem_status status,
                                 const char *member, const char *why, struct tandem_error *error);

/** Values per head; 0: the number of heads is not known. */
int64_t tnd_hf_head_size(const struct tnd_hf_config *c);
/** Resolves members that state the same in several places; `theta` is the default base. */
void tnd_hf_resolve_rope(struct tnd_hf_config *c, double theta);
/** Converts scalings that the convention cannot express to ones that it can: NTK to another base,
 * Llama 3's to divisors, the magnitudes of YaRN and LongRoPE to attn_factor. The base of "dynamic"
 * grows only for texts longer than the context, which no session decodes. Unknown and impossible
 * scalings are left for the model's loader to refuse. Errors: FORMAT, UNSUPPORTED_BUILD, MEMORY,
 * LIMIT. */
enum tandem_status tnd_hf_convert_scaling(tandem_source *source, struct tnd_hf_config *c,
                                          struct tandem_error *error);
/** Adds the values of the scaling that do not map to one member each. Errors: MEMORY. */
enum tandem_status tnd_hf_add_scaling(tandem_source *source, const char *architecture,
                                      const struct tnd_hf_config *c, struct tandem_error *error);

#endif
