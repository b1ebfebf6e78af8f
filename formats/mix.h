/* SPDX-License-Identifier: MIT
 * The type of each tensor in llama.cpp's mixes of types (mix-list.h). */
#ifndef TND_MIX_H
#define TND_MIX_H

#include "formats/source.h"

/** A mix, and what its rules need to know about a model. */
struct tnd_mix {
    int number;    /* of the mix */
    int file_type; /* general.file_type */
    int64_t layers;
    int64_t experts;
    int64_t group; /* query heads per KV head */
    bool is_70b;   /* 80 layers of llama or qwen2 with GQA */
    bool is_tied;  /* the output is the embedding */
    bool has_importance;
};

/** Finds a mix by name, ignoring case, for a model. Errors: NOT_FOUND, those of
 * tandem_source_hparams. */
enum tandem_status tnd_mix_find(const tandem_source *source, const char *name, bool has_importance,
                                struct tnd_mix *out, struct tandem_error *error);

/** The type of a tensor in the mix; rows consist of whole blocks of it. A tensor that is not
 * converted keeps its own. */
enum tandem_type tnd_mix_type(const struct tnd_mix *mix, const struct tandem_source_tensor *tensor);

#endif
