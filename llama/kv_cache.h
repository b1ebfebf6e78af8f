/* SPDX-License-Identifier: MIT
 * Keys and values of the tokens seen so far, one pair of tensors a layer. A token lives in a cell,
 * which knows the token's sequence and position; which cell does not matter. Cells that no later
 * token can see (a sliding window) are taken again, so the cache rotates by itself. */
#ifndef TND_LLAMA_KV_CACHE_H
#define TND_LLAMA_KV_CACHE_H

#include "tandem/formats.h"
#include "tandem/graph.h"
#include "tandem/runtime.h"

/** A cell's order is sequence * SPAN + position; positions stay below SPAN / 2, so that sequences
 *  are further apart than any window (tandem_attention_ordered). */
#define TND_LLAMA_SPAN          (1 << 24)
#define TND_LLAMA_POSITIONS     (TND_LLAMA_SPAN / 2)
#define TND_LLAMA_MAX_SEQUENCES 127
#define TND_LLAMA_FREE_CELL     INT32_MAX /* behind every order: nobody sees it */
/** Caches of several sequences give each whole blocks of cells: attention skips the blocks of the
 *  others, and what a sequence sees lies alike whatever stands beside it, so that it gets the same
 *  bits. As many as attention on the CPU takes at a time. */
#define TND_LLAMA_BLOCK         64

/** Layers of which the cache of a rank has all heads, not only its own: see phases.h. */
struct tnd_llama_kv_wide {
    int64_t begin, end; /* may be the same */
    int64_t heads;
    int64_t first; /* of these, the first head that the cache has of every layer */
};

struct tnd_llama_kv_cache {
    int64_t head_size;
    int64_t kv_heads; /* of the layers that are not wide, and which tokens read and write */
    struct tnd_llama_kv_wide wide;
    int64_t layers;
    int64_t begin, end; /* layers that the cache is of; a rank may have some of them */
    int64_t window;     /* of every layer; 0: some see all, and no cell is taken again */
    int64_t n_cells;
    int64_t n_used; /* cells from here on are free */
    int64_t next;   /* where the search for free cells goes on */
    enum tandem_type type;
    bool is_transposed; /* values, for attention by two products */
    bool has_blocks;    /* several sequences */
    bool is_long;       /* keys are turned by LongRoPE's long factors */
    bool is_joined;     /* huge pages were asked for */
    tandem_context *owner;
    tandem_tensor **keys;   /* of each layer {head_size, heads, n_cells}; of others NULL */
    tandem_tensor **values; /* the same, or {n_cells, head_size, heads} */
    int32_t *orders;        /* {n_cells} */
    int32_t *taken;         /* {n_cells}: cells of the batch in hand, in its order */
    int64_t n_taken;
    int32_t *tokens;  /* {n_cells} */
    int64_t *batches; /* {n_cells}: number of the batch that a token came with */
    bool *is_narrow;  /* {n_cells}: of wide layers only kv_heads heads have been computed here */
};

struct tnd_llama_kv_options {
    int64_t n_cells;
    enum tandem_type type; /* F32, F16, Q8_0 or Q4_0 */
    bool is_transposed;    /* not with Q8_0 and Q4_0 */
    bool has_blocks;
    int64_t begin, end; /* layers; both 0: all of them */
    struct tnd_llama_kv_wide wide;
};

/** Whether all layers have the window. */
bool tnd_llama_is_windowed(const struct tandem_hparams *hparams);

/** Errors: ARGUMENT (a type that does not fit), MEMORY, OVERFLOW. */
enum tandem_status tnd_llama_kv_cache_init(struct tnd_llama_kv_cache *cache,
                                           const struct tandem_hparams *hparams,
                                           const struct tnd_llama_kv_options *options,
                                           struct tandem_error *error);
/** Before the program looks at cells, or changes them: see tandem_runtime_fetch. `runtime` may be
 *  NULL. */
enum tandem_status tnd_llama_kv_cache_fetch(const struct tnd_llama_kv_cache *cache,
                                            tandem_runtime *runtime, bool will_change,
                                            struct tandem_error *error);
/** Before the cache goes away, or is used with another runtime. `runtime` may be NULL. */
void tnd_llama_kv_cache_leave(const struct tnd_llama_kv_cache *cache, tandem_runtime *runtime);
/** A zeroed cache is allowed. */
void tnd_llama_kv_cache_fini(struct tnd_llama_kv_cache *cache);

/** Takes cells for m tokens, after freeing those that none of them can see. Errors: LIMIT; nothing
 *  is taken then. */
enum tandem_status tnd_llama_kv_cache_take(struct tnd_llama_kv_cache *cache,
                                           const int32_t *sequences, const int32_t *positions,
                                           int64_t m, struct tandem_error *error);
/** Copies the first n positions of sequence `from` to sequence `to`, which has no cells. The bytes
 *  must be the host's (tnd_llama_kv_cache_fetch). Errors: LIMIT; nothing is copied then. */
enum tandem_status tnd_llama_kv_cache_copy(struct tnd_llama_kv_cache *cache, int32_t from,
                                           int32_t to, int64_t n, struct tandem_error *error);
/** Notes tokens and number of the batch in hand, for tnd_llama_kv_cache_retake. */
void tnd_llama_kv_cache_note(struct tnd_llama_kv_cache *cache, const int32_t *tokens,
                             int64_t batch);
/** Sets keys and values of all cells that came with later batches to zero in host memory. */
void tnd_llama_kv_cache_clear_after(struct tnd_llama_kv_cache *cache, int64_t batch);
/** Takes the cells of an earlier batch once more, by cell; returns how many there still are. */
int64_t tnd_llama_kv_cache_retake(struct tnd_llama_kv_cache *cache, int64_t batch);
/** Frees the cells of the batch in hand: it was not computed. */
void tnd_llama_kv_cache_rollback(struct tnd_llama_kv_cache *cache);
/** Frees the cells of a sequence from `begin` to `end` - 1. */
void tnd_llama_kv_cache_forget(struct tnd_llama_kv_cache *cache, int32_t sequence, int64_t begin,
                               int64_t end);
/** Whether the cells of all positions from `begin` to `end` - 1 are there. */
bool tnd_llama_kv_cache_has(const struct tnd_llama_kv_cache *cache, int32_t sequence, int64_t begin,
                            int64_t end);

/** Heads of a layer that the cache has. */
int64_t tnd_llama_kv_heads_of(const struct tnd_llama_kv_cache *cache, int64_t layer);
/** From now on tokens read and write all heads of the wide layers, and nothing of the others. */
void tnd_llama_kv_widen(struct tnd_llama_kv_cache *cache);
/** Copies n heads from the `first` one of a layer on, keys or values of a cell, to `row`, one
 *  behind the other, or from there. The bytes must be the host's (tnd_llama_kv_cache_fetch). */
void tnd_llama_kv_copy_heads(const struct tnd_llama_kv_cache *cache, int64_t layer, bool is_value,
                             int64_t cell, int64_t first, int64_t n, char *row, bool to_cache);

/** Whether the cells of the batch in hand lie scattered: one node for all of them is faster than
 *  one for each run of cells. */
bool tnd_llama_kv_is_scattered(const struct tnd_llama_kv_cache *cache);
/** Nodes that write the tokens of the batch in hand, added to the graph; they must stand before
 *  what reads. `k`, `v`: {head_size, kv_heads, m}. `cells`: I32 {m}, those of the batch, so that
 *  all are written at once, which devices do not; NULL: run by run. */
void tnd_llama_kv_write(const struct tnd_llama_kv_cache *cache, tandem_graph *graph,
                        tandem_context *context, int64_t layer, tandem_tensor *k, tandem_tensor *v,
                        tandem_tensor *cells);

/** Views of the first t cells: keys {head_size, t, kv_heads}; values likewise, or transposed
 *  {t, head_size, kv_heads}. */
tandem_tensor *tnd_llama_read_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                   int64_t layer, int64_t t);
tandem_tensor *tnd_llama_read_values(const struct tnd_llama_kv_cache *cache,
                                     tandem_context *context, int64_t layer, int64_t t);

#endif
