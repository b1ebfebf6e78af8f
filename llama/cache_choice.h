/* SPDX-License-Identifier: MIT
 * Chooses the type of a session's keys and values if the caller leaves it to the plan. */
#ifndef TND_LLAMA_CACHE_CHOICE_H
#define TND_LLAMA_CACHE_CHOICE_H

#include "llama/kv_cache.h"
#include "tandem/llama.h"

enum { TND_CACHE_CHOICES = 3 };

/** Types that keys and values can have, most exact one first, and which of them the session uses.
 * A type that the caller has given is the only entry. */
struct tnd_llama_cache_choices {
    struct tandem_cache_info list[TND_CACHE_CHOICES];
    int n;
};

/** Fills `out` and returns the chosen type. `n_cells`: size of the cache; `n_positions`: length of
 * a text; `memory`: limit in bytes for keys and values; 0: none. Errors: MEMORY, those of
 * tandem_runtime_predict. */
enum tandem_status tnd_llama_choose_cache(const tandem_model *model, tandem_runtime *runtime,
                                          int64_t n_cells, int64_t n_positions, bool is_unfused,
                                          int64_t memory, struct tnd_llama_cache_choices *out,
                                          enum tandem_type *out_type, struct tandem_error *error);
/** Describes a type that the caller has given. */
void tnd_llama_cache_given(const struct tnd_llama_kv_cache *cache,
                           struct tnd_llama_cache_choices *out);
/** Index of the choice: types that fit and whose error is within the bound are compared by time,
 * and a less exact one must be clearly faster. If no error is within the bound, the most exact type
 * that fits; if none fits, the smallest. */
int tnd_llama_pick_cache(const struct tandem_cache_info *list, int n);

#endif
