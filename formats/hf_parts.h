/* SPDX-License-Identifier: MIT
 * Models of more than text, of which the text is read: their config.json has its members in
 * text_config, and their files name its tensors by the part that it is. */
#ifndef TND_HF_PARTS_H
#define TND_HF_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/** A model_type that has a text_config. */
struct tnd_hf_whole {
    const char *model_type;
    const char *text;     /* the model_type of its text, where text_config says none */
    bool has_one_text;    /* transformers takes no other */
    bool is_tied;         /* where it does not say, whatever text_config says */
    bool is_tied_by_text; /* if text_config says so */
};
/** NULL: none is called so. tnd_hf_whole_at: the i-th row; NULL behind the last one. */
const struct tnd_hf_whole *tnd_hf_whole_of(const char *model_type);
const struct tnd_hf_whole *tnd_hf_whole_at(int i);
/** An object of JSON: what transformers takes for members of this model_type that text_config
 *  leaves out, as many published files do. NULL: it must say them. */
const char *tnd_hf_text_defaults(const char *model_type);
/** Whether a member beside text_config tells of other parts alone. */
bool tnd_hf_is_of_other_parts(const char *member);

/** What a name of a file becomes in the GGUF convention; false: nobody needs the tensor. */
typedef bool tnd_hf_name_map(const char *name, char *out, size_t capacity);
/** Names of a model of text (NULL), or of the text inside such a model. */
tnd_hf_name_map *tnd_hf_names_of(const struct tnd_hf_whole *whole);

#endif
