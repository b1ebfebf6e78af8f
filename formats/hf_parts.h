/* SPDX-License-Identifier: MIT
 * Multimodal models, of which the text part is read: config.json has its members in text_config,
 * and prefixes of tensor names tell the parts apart. */
#ifndef TND_HF_PARTS_H
#define TND_HF_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/** A model_type that has a text_config. */
struct tnd_hf_whole {
    const char *model_type;
    const char *text;     /* model_type of the text part, unless text_config states it */
    bool has_one_text;    /* transformers supports no other text part */
    bool is_tied;         /* default of tie_word_embeddings, whatever text_config states */
    bool is_tied_by_text; /* default: as text_config states */
};
/** The row of a model_type, or NULL. */
const struct tnd_hf_whole *tnd_hf_whole_of(const char *model_type);
const struct tnd_hf_whole *tnd_hf_whole_at(int i);
/** A JSON object of transformers' defaults for members of this model_type that text_config leaves
 * out, as many published files do. NULL: they are required. */
const char *tnd_hf_text_defaults(const char *model_type);
/** Whether a member next to text_config concerns only other parts. */
bool tnd_hf_is_of_other_parts(const char *member);

/** Maps a tensor name to the GGUF convention; false: the tensor is not needed. */
typedef bool tnd_hf_name_map(const char *name, char *out, size_t capacity);
/** The mapping for a text model (`whole` NULL), or for the text part of a multimodal one. */
tnd_hf_name_map *tnd_hf_names_of(const struct tnd_hf_whole *whole);

#endif
