/* SPDX-License-Identifier: MIT
 * A config.json of Hugging Face as it was read (safetensors_config.c), and how its scaling of rope
 * becomes that of the GGUF convention (hf_config_rope.c). */
#ifndef TND_HF_CONFIG_H
#define TND_HF_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/llama-lists.h"
#include "formats/safetensors.h"
#include "formats/source.h"

#define TND_HF_MAX_LAYERS  4096
#define TND_HF_MAX_FACTORS 1024      /* of longrope: half of a head */
#define TND_NOT_SAID       INT64_MIN /* of a whole number; of others it is a NaN */

/** Which layers of a family may have a window. */
enum tnd_hf_windows {
    TND_HF_NO_WINDOW,
    TND_HF_ALL,  /* all of them */
    TND_HF_QWEN, /* those that use_sliding_window and max_window_layers or layer_types say */
    TND_HF_TYPES /* those that layer_types says, else all but every window_period-th */
};

/** A model_type: a row of hf_families.c. Zeros: as llama in transformers. Lists are names with
 *  blanks between. */
struct tnd_hf_family {
    const char *model_type;
    const char *architecture; /* in the GGUF convention */
    /* what counts where config.json does not say */
    int64_t kv_heads, head_dim, context, window, bos, eos; /* TND_NOT_SAID: as it must follow */
    double eps, theta, window_theta; /* 0: 1e-6; 10000; that of the other layers */
    double partial;                  /* of each head is rotated */
    double query_scalar, attention_scale, attention_cap, logit_cap, logit_scale; /* 0: none */
    const char *activation; /* our name; NULL: silu */
    bool is_encoder;        /* and pools by the files of sentence-transformers */
    bool has_wide_first;    /* of window_period layers the first one has no window, not the last */
    bool pads_positions;    /* the first positions, up to the padding token's, are never used */
    bool is_tied, is_parallel, has_attention_bias, has_mlp_bias, has_multi_query, norms_experts;
    bool is_latent;    /* keys and values of a latent vector */
    bool has_sigmoid;  /* its router, whose choice is biased */
    int hidden_of_dim; /* the feed-forward network is this many times as wide as a token */
    int window_period, rope_period, dense_layers, shared_experts;
    /* of mixtures: experts, those that a token uses, widths; 0: the member belongs to others */
    int64_t experts, used, expert_hidden, shared_hidden;
    bool experts_are_hidden; /* as wide as intermediate_size, and said so */
    /* what its members mean */
    enum tnd_hf_windows windows;
    bool may_have_attention_bias, may_have_mlp_bias;
    bool bias_of_qkv;    /* attention_bias is of q, k and v alone */
    bool bias_of_all;    /* ... and of the feed-forward network, too */
    bool is_partial;     /* partial_rotary_factor counts */
    bool is_adjacent;    /* rope rotates adjacent values */
    bool means_tanh;     /* by gelu that by tanh */
    bool means_longrope; /* by the scalings su and yarn */
    bool has_alpha;      /* by the scaling dynamic and alpha a base of NTK's kind */
    bool needs_scaling;  /* transformers makes one up, we do not */
    const char *own;     /* members of its own, of those that must be named */
    const char *aliases; /* "theirs=ours" */
    const char *ignores; /* that transformers passes over */
    const char *texts;   /* "member=the only value": it tells of no other model, but might */
    const char *lacks;   /* of the members of all */
    /* what its tensors go through (hf_reshape.c), by the names of the convention */
    const char *renames;    /* "from=to" behind blk.N., all at once */
    const char *transposes; /* {N, K} in the file */
    const char *drops;      /* beginnings of names that embeddings and scores do not need */
    bool adds_one;          /* to the weights of norms */
    bool parts_experts;     /* gate and up of an expert alternate, {dim, 2 hidden} in the file */
    bool groups_qkv;        /* rows of attn_qkv: of each KV head its queries, its key, its value */
};
/** NULL: none is called so. */
const struct tnd_hf_family *tnd_hf_family_of(const char *model_type);
/** i-th row; NULL behind the last one. */
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
    double rope_theta_inside, original_inside, partial_inside; /* said inside rope_parameters */
    char scaling[32];
    char older_scaling[32];                 /* the member "type", where there is no "rope_type" */
    double attn_factor;                     /* in the convention's sense; NAN: not said */
    bool keeps_fractions;                   /* of yarn's pairs */
    int64_t n_short, n_long;                /* of longrope's factors */
    float short_factor[TND_HF_MAX_FACTORS]; /* longrope's divisors */
    float long_factor[TND_HF_MAX_FACTORS];
    const char *activation; /* our name; NULL: silu */
    int n_ropes;            /* rope_scaling and rope_parameters that say something */
    int64_t bos;
    struct tnd_end_tokens ends;
    uint8_t windowed[TND_HF_MAX_LAYERS]; /* by layer_types */
    int64_t n_layer_types;
    uint8_t rotated[TND_HF_MAX_LAYERS]; /* by no_rope_layers */
    int64_t n_rotated;
    int64_t pooling;     /* enum tandem_pooling */
    bool ignores_groups; /* of experts */
    int64_t n_rot;       /* values of a head that are rotated */
    bool is_partial;     /* they may be a part of it */
    bool scores_mean;    /* by classifier_pooling */
};

/** A file that is read, of a family. */
struct tnd_config_reader {
    struct tnd_json *json;
    const struct tnd_hf_family *family;
    struct tnd_hf_config *config;
};

/** hf_resolve.c: what counts before config.json is read. */
void tnd_hf_set_defaults(const struct tnd_hf_family *family, struct tnd_hf_config *out);
/** Behind it: refuses what the family does not have, and what it needs and has not, and sets what
 *  follows from other members. Errors: NOT_FOUND, FORMAT, UNSUPPORTED_BUILD, LIMIT. */
enum tandem_status tnd_hf_resolve(const struct tnd_config_reader *reader,
                                  struct tandem_error *error);
/** hf_values.c: adds all that the config says to the values of the source. Errors: MEMORY. */
enum tandem_status tnd_hf_add_values(tandem_source *source, const struct tnd_config_reader *reader,
                                     struct tandem_error *error);
/** Numbers of 0 or 1 that say which tensors there must be. Errors: MEMORY. */
enum tandem_status tnd_hf_add_promises(tandem_source *source,
                                       const struct tnd_config_reader *reader,
                                       struct tandem_error *error);
/** The name that an alias stands for, of "theirs=ours theirs=ours"; false: it is none. */
bool tnd_hf_alias(const char *aliases, const char *name, char *out, size_t capacity);
/** hf_pooling.c: sets pooling_type as the files of sentence-transformers in `folder` (with a slash,
 *  or empty) say it. Errors: FILE, FORMAT, NOT_FOUND, UNSUPPORTED_BUILD, MEMORY. */
enum tandem_status tnd_hf_read_pooling(const char *folder, tandem_source *source,
                                       struct tandem_error *error);
/** "FILE: member "MEMBER" WHY". */
enum tandem_status tnd_hf_refuse(const struct tnd_json *json, enum tandem_status status,
                                 const char *member, const char *why, struct tandem_error *error);

/** Values of a head. */
int64_t tnd_hf_head_size(const struct tnd_hf_config *c);
/** Which of the members that say the same counts; `theta` is the base where none says it. */
void tnd_hf_resolve_rope(struct tnd_hf_config *c, double theta);
/** Converts what the convention has no words for into what it has: NTK's into the base, llama 3's
 *  into divisors, YaRN's and LongRoPE's magnitude into attn_factor. The base of "dynamic" grows for
 *  texts beyond the context only, which no session decodes. Others, and what cannot be, stay
 *  for the model to judge. Errors: FORMAT, UNSUPPORTED_BUILD, MEMORY, LIMIT. */
enum tandem_status tnd_hf_convert_scaling(tandem_source *source, struct tnd_hf_config *c,
                                          struct tandem_error *error);
/** Adds the values of the scaling that are no member's own. Errors: MEMORY. */
enum tandem_status tnd_hf_add_scaling(tandem_source *source, const char *architecture,
                                      const struct tnd_hf_config *c, struct tandem_error *error);

#endif
