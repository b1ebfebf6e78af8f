/* SPDX-License-Identifier: MIT
 * Keys and values of the tokens seen so far, one pair of tensors per layer. A token occupies a
 * cell, which records the token's sequence and position; any cell will do. Cells that no later
 * token can see (sliding window) are reused, so the cache rotates by itself. */
#ifndef TND_LLAMA_KV_CACHE_H
#define TND_LLAMA_KV_CACHE_H

#include "tandem/formats.h"
#include "tandem/graph.h"
#include "tandem/runtime.h"

/** A cell's order is sequence * SPAN + position. Positions stay below SPAN / 2, so that sequences
 * are further apart than any window (tandem_attention_ordered). */
#define TND_LLAMA_SPAN          (1 << 24)
#define TND_LLAMA_POSITIONS     (TND_LLAMA_SPAN / 2)
#define TND_LLAMA_MAX_SEQUENCES 127
#define TND_LLAMA_FREE_CELL     INT32_MAX /* above every order, so no query sees it */
/** Caches of several sequences assign cells in blocks of one sequence each: attention skips the
 * blocks of other sequences, and a sequence has the same layout, and so the same bits, whatever
 * other sequences exist. The size is what attention on the CPU processes at a time. */
#define TND_LLAMA_BLOCK         64

/** Layers for which a rank's cache has all heads, not only the rank's own: see phases.h. */
struct tnd_llama_kv_wide {
    int64_t begin, end; /* may be equal */
    int64_t heads;
    int64_t first; /* of these, the first head that the cache has in every layer */
};

struct tnd_llama_kv_cache {
    int64_t head_size;
    int64_t kv_heads; /* of layers that are not wide; those that tokens read and write */
    struct tnd_llama_kv_wide wide;
    int64_t layers;
    int64_t begin, end; /* layers in the cache; a rank may have some of them */
    int64_t window;     /* of every layer; 0: some see everything, and no cell is reused */
    int64_t n_cells;
    int64_t n_used; /* all cells from here on are free */
    int64_t next;   /* where the next search for free cells begins */
    enum tandem_type type;
    bool is_transposed; /* values, for attention by two matrix products */
    bool has_blocks;    /* several sequences */
    bool is_long;       /* keys are rotated with LongRoPE's long factors */
    bool is_joined;     /* huge pages were requested */
    tandem_context *owner;
    tandem_tensor **keys;   /* of each layer {head_size, heads, n_cells}; of others NULL */
    tandem_tensor **values; /* likewise, or {n_cells, head_size, heads} */
    int32_t *orders;        /* {n_cells} */
    int32_t *taken;         /* {n_cells}: cells of the current batch, in its order */
    int64_t n_taken;
    int32_t *tokens;  /* {n_cells} */
    int64_t *batches; /* {n_cells}: number of the batch that a token was in */
    bool *is_narrow;  /* {n_cells}: in wide layers, this rank has computed only kv_heads heads */
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
/** Call before the program reads or changes cells: see tandem_runtime_fetch. `runtime` may be
 * NULL. */
enum tandem_status tnd_llama_kv_cache_fetch(const struct tnd_llama_kv_cache *cache,
                                            tandem_runtime *runtime, bool will_change,
                                            struct tandem_error *error);
/** Call before the cache is freed or used with another runtime. `runtime` may be NULL. */
void tnd_llama_kv_cache_leave(const struct tnd_llama_kv_cache *cache, tandem_runtime *runtime);
/** A zeroed cache is allowed. */
void tnd_llama_kv_cache_fini(struct tnd_llama_kv_cache *cache);

/** Takes cells for m tokens, after freeing those that none of them can see. Errors: LIMIT, after
 * which no cell is taken. */
enum tandem_status tnd_llama_kv_cache_take(struct tnd_llama_kv_cache *cache,
                                           const int32_t *sequences, const int32_t *positions,
                                           int64_t m, struct tandem_error *error);
/** Copies the first n positions of sequence `from` to sequence `to`, which has no cells. The
 * host's memory must be valid (tnd_llama_kv_cache_fetch). Errors: LIMIT, after which nothing is
 * copied. */
enum tandem_status tnd_llama_kv_cache_copy(struct tnd_llama_kv_cache *cache, int32_t from,
                                           int32_t to, int64_t n, struct tandem_error *error);
/** Records tokens and number of the current batch, for tnd_llama_kv_cache_retake. */
void tnd_llama_kv_cache_note(struct tnd_llama_kv_cache *cache, const int32_t *tokens,
                             int64_t batch);
/** Zeroes keys and values in host memory of all cells of later batches. */
void tnd_llama_kv_cache_clear_after(struct tnd_llama_kv_cache *cache, int64_t batch);
/** Takes the cells of an earlier batch again, in the order of cells; returns how many still
 * exist. */
int64_t tnd_llama_kv_cache_retake(struct tnd_llama_kv_cache *cache, int64_t batch);
/** Frees the cells of the current batch, which was not computed. */
void tnd_llama_kv_cache_rollback(struct tnd_llama_kv_cache *cache);
/** Frees the cells of a sequence from `begin` to `end` - 1. */
void tnd_llama_kv_cache_forget(struct tnd_llama_kv_cache *cache, int32_t sequence, int64_t begin,
                               int64_t end);
/** Whether all positions from `begin` to `end` - 1 have cells. */
bool tnd_llama_kv_cache_has(const struct tnd_llama_kv_cache *cache, int32_t sequence, int64_t begin,
                            int64_t end);

/** Number of heads that the cache has in a layer. */
int64_t tnd_llama_kv_heads_of(const struct tnd_llama_kv_cache *cache, int64_t layer);
/** From now on tokens read and write all heads of the wide layers, and nothing in the others. */
void tnd_llama_kv_widen(struct tnd_llama_kv_cache *cache);
/** Copies n heads of a layer from the `first` one on, keys or values of a cell, to `row`, one
 * after the other, or from `row` to the cache. The host's memory must be valid
 * (tnd_llama_kv_cache_fetch). */
void tnd_llama_kv_copy_heads(const struct tnd_llama_kv_cache *cache, int64_t layer, bool is_value,
                             int64_t cell, int64_t first, int64_t n, char *row, bool to_cache);

/** Whether the cells of the current batch are so scattered that one node for all of them is faster
 * than one per run of cells. */
bool tnd_llama_kv_is_scattered(const struct tnd_llama_kv_cache *cache);
/** Adds nodes to the graph that write the tokens of the current batch; they must precede readers.
 * `k`, `v`: {head_size, kv_heads, m}. `cells`: I32 {m}, cells of the batch, to write all at once,
 * which devices do not support; NULL: run by run. */
void tnd_llama_kv_write(const struct tnd_llama_kv_cache *cache, tandem_graph *graph,
                        tandem_context *context, int64_t layer, tandem_tensor *k, tandem_tensor *v,
                        tandem_tensor *cells);

/** Views of the first t cells: keys {head_size, t, kv_heads}; values likewise, or transposed {t,
 * head_size, kv_heads}. */
tandem_tensor *tnd_llama_read_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                   int64_t layer, int64_t t);
tandem_tensor *tnd_llama_read_values(const struct tnd_llama_kv_cache *cache,
                                     tandem_context *context, int64_t layer, int64_t t);

#endif
