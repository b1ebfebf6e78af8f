/* SPDX-License-Identifier: MIT
 * Of which type a session's keys and values are, where the caller leaves that to the plan. */
#ifndef TND_LLAMA_CACHE_CHOICE_H
#define TND_LLAMA_CACHE_CHOICE_H

#include "llama/kv_cache.h"
#include "tandem/llama.h"

enum { TND_CACHE_CHOICES = 3 };

/** The types that keys and values may have, most exact one first, and which of them a session has.
 *  A type that was not planned is the only choice. */
struct tnd_llama_cache_choices {
    struct tandem_cache_info list[TND_CACHE_CHOICES];
    int n;
};

/** Fills `out` and gives the chosen type. `n_cells` of the cache, texts of `n_positions`; `memory`:
 *  bytes that keys and values may take; 0: no bound. Errors: MEMORY, those of
 *  tandem_runtime_predict. */
enum tandem_status tnd_llama_choose_cache(const tandem_model *model, tandem_runtime *runtime,
                                          int64_t n_cells, int64_t n_positions, bool is_unfused,
                                          int64_t memory, struct tnd_llama_cache_choices *out,
                                          enum tandem_type *out_type, struct tandem_error *error);
/** What is told of a type that the caller chose. */
void tnd_llama_cache_given(const struct tnd_llama_kv_cache *cache,
                           struct tnd_llama_cache_choices *out);
/** Which of the choices it is: those that fit and whose error is within the bound are compared by
 *  time; a less exact one must be clearly faster. Where none does, the most exact one that fits;
 *  where none fits, the smallest. */
int tnd_llama_pick_cache(const struct tandem_cache_info *list, int n);

#endif
