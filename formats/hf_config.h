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
    double rope_theta_inside, original_inside; /* of the members that may stand in both places */
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
};

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
