/* SPDX-License-Identifier: MIT
 * What a user of llama.cpp would set, out of the table: sums over the shapes of a model. */
#ifndef TND_EXPLAIN_LLAMA_H
#define TND_EXPLAIN_LLAMA_H

#include "base/text.h"
#include "measure/models.h"
#include "tune/candidates.h"

struct tnd_llama_advice {
    bool found;
    int64_t prompt_m; /* 512, or the largest measured below */
    int prompt_threads, generation_threads;
    double prompt_us, generation_us; /* of all shapes once */
    bool has_other; /* profiles that use more than the CPU's own kernels are known */
    bool pays;
    int64_t pays_from; /* the first M at which the best of them is faster */
    int64_t m_limit;   /* the largest M looked at */
};
void tnd_explain_llama(const struct tandem_table *table, const struct tnd_registry *registry,
                       enum tandem_type type, const struct tnd_shape *shapes, int n_shapes,
                       int n_threads, struct tnd_llama_advice *out);
void tnd_explain_llama_text(const struct tnd_llama_advice *advice, struct tnd_text *out);
void tnd_explain_llama_json(const struct tnd_llama_advice *advice, struct tnd_text *out);

#endif
