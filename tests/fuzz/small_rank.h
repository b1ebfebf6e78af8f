/* SPDX-License-Identifier: MIT
 * One of two ranks, whose messages a fuzz target makes up: its model, and what comes back as it was
 * sent. */
#ifndef TND_TESTS_FUZZ_SMALL_RANK_H
#define TND_TESTS_FUZZ_SMALL_RANK_H

#include <string.h>

#include "tandem/communicator.h"
#include "tandem/llama.h"
#include "tests/fuzz/small_runtime.h"

/* Of two ranks each has half of a vocabulary of 128 and more. */
static inline const tandem_model *small_rank_model(int64_t vocabulary)
{
    static tandem_model *model;
    static tandem_source *source; /* borrowed from as long as the process lives */
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 16,
                                             .hidden = 64,
                                             .layers = 1,
                                             .heads = 2,
                                             .kv_heads = 2,
                                             .vocabulary = vocabulary,
                                             .context = 16};
    if (model == NULL &&
        (tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL) != TANDEM_OK ||
         tandem_model_new(source, &model, NULL) != TANDEM_OK)) {
        abort();
    }
    return model;
}

/* Sums and sizes: as if the other rank had the same. */
static inline bool small_rank_echoes(const struct tandem_message *sends, int n_sends,
                                     const struct tandem_message *receives, int n_receives)
{
    const bool does = n_receives == 1 && n_sends == 1 && sends[0].bytes == receives[0].bytes;
    if (does) {
        memcpy(receives[0].data, sends[0].data, sends[0].bytes);
    }
    return does;
}

static inline void small_rank_end(void *self, bool has_failed)
{
    (void)self, (void)has_failed;
}

#endif
