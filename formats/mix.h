/* SPDX-License-Identifier: MIT
 * Which type a tensor gets in a mix that llama.cpp has a name for (mix-list.h). */
#ifndef TND_MIX_H
#define TND_MIX_H

#include "formats/source.h"

/** What the rules ask about a model. */
struct tnd_mix {
    int number;    /* of the mix */
    int file_type; /* general.file_type */
    int64_t layers;
    int64_t experts;
    int64_t group; /* queries that share a key */
    bool is_70b;   /* 80 layers of llama or qwen2 with shared keys */
    bool is_tied;  /* embeddings are the output, too */
    bool has_importance;
};

/** The mix of a name, in any case, for a model. Errors: NOT_FOUND, those of
 *  tandem_source_hparams. */
enum tandem_status tnd_mix_find(const tandem_source *source, const char *name, bool has_importance,
                                struct tnd_mix *out, struct tandem_error *error);

/** The type of a tensor, whose rows are whole blocks of it; its own where it stays as it is. */
enum tandem_type tnd_mix_type(const struct tnd_mix *mix, const struct tandem_source_tensor *tensor);

#endif
