/* SPDX-License-Identifier: MIT
 * The KV cache: tensors in a context of its own, written by cpy into views, read through views. */
#include "llama/kv_cache.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "llama/llama_error.h"

#ifndef MADV_COLLAPSE /* Linux 6.1; C libraries may be older */
#define MADV_COLLAPSE 25
#endif

enum {
    SCATTERED = 4, /* runs of cells, from which on one scatter node for all of them is faster */
    HUGE_PAGE = 2 * 1024 * 1024
};

/* ---- memory ---- */

static enum tandem_status check_options(const struct tandem_hparams *h,
                                        const struct tnd_llama_kv_options *options,
                                        struct tandem_error *error)
{
    const bool is_known = options->type == TANDEM_TYPE_F32 || options->type == TANDEM_TYPE_F16 ||
                          options->type == TANDEM_TYPE_Q8_0 || options->type == TANDEM_TYPE_Q4_0;
    if (!is_known || h->head_size % tandem_type_block_values(options->type) != 0) {
        return tnd_llama_fail(
            error, TANDEM_E_ARGUMENT, "KV cache", options->type, h->head_size,
            "KV cache: heads of %lld values cannot be stored as %s; expected f32, "
            "f16, or q8_0 or q4_0 where heads are whole blocks of 32",
            (long long)h->head_size, tandem_type_name(options->type));
    }
    if (options->is_transposed && tandem_type_is_quantized(options->type)) {
        return tnd_llama_fail(error, TANDEM_E_ARGUMENT, "KV cache", options->type, 0,
                              "KV cache: attention that is not fused needs f32 or f16, not %s",
                              tandem_type_name(options->type));
    }
    return TANDEM_OK;
}

static bool is_wide(const struct tnd_llama_kv_cache *cache, int64_t layer)
{
    return layer >= cache->wide.begin && layer < cache->wide.end;
}

int64_t tnd_llama_kv_heads_of(const struct tnd_llama_kv_cache *cache, int64_t layer)
{
    return is_wide(cache, layer) ? cache->wide.heads : cache->kv_heads;
}

void tnd_llama_kv_widen(struct tnd_llama_kv_cache *cache)
{
    cache->kv_heads = cache->wide.heads > 0 ? cache->wide.heads : cache->kv_heads;
    cache->wide.first = 0;
}

/* The first head that tokens read and write. */
static int64_t first_head(const struct tnd_llama_kv_cache *cache, int64_t layer)
{
    return is_wide(cache, layer) ? cache->wide.first : 0;
}

/* Bytes of all tensors, so that the context allocates them in one chunk; 0 (the context's own
 * choice) if the numbers are too large, which building the tensors reports. */
static size_t all_bytes(const struct tnd_llama_kv_cache *cache)
{
    const size_t spare = 1 << 20; /* the tensors themselves, and alignment */
    size_t bytes = tandem_type_row_bytes(cache->type, cache->head_size), heads = 0;
    for (int64_t l = cache->begin; l < cache->end; l++) {
        if (__builtin_add_overflow(heads, 2 * (size_t)tnd_llama_kv_heads_of(cache, l), &heads)) {
            return 0;
        }
    }
    if (__builtin_mul_overflow(bytes, heads, &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)cache->n_cells, &bytes) ||
        __builtin_add_overflow(bytes, spare, &bytes)) {
        return 0;
    }
    return bytes;
}

static enum tandem_status make_tensors(struct tnd_llama_kv_cache *cache, struct tandem_error *error)
{
    struct tandem_context_options options = TANDEM_CONTEXT_OPTIONS_INIT;
    options.chunk_bytes = all_bytes(cache);
    LLAMA_TRY(tandem_context_new(&options, &cache->owner, error));
    cache->keys = calloc((size_t)cache->layers + 1, sizeof(cache->keys[0]));
    cache->values = calloc((size_t)cache->layers + 1, sizeof(cache->values[0]));
    cache->orders = calloc((size_t)cache->n_cells, sizeof(cache->orders[0]));
    cache->taken = calloc((size_t)cache->n_cells, sizeof(cache->taken[0]));
    cache->tokens = calloc((size_t)cache->n_cells, sizeof(cache->tokens[0]));
    cache->batches = calloc((size_t)cache->n_cells, sizeof(cache->batches[0]));
    cache->is_narrow = calloc((size_t)cache->n_cells, sizeof(cache->is_narrow[0]));
    if (cache->keys == NULL || cache->values == NULL || cache->orders == NULL ||
        cache->taken == NULL || cache->tokens == NULL || cache->batches == NULL ||
        cache->is_narrow == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, "KV cache", cache->n_cells, 0,
                              "KV cache: no memory for %lld layers and %lld tokens",
                              (long long)cache->layers, (long long)cache->n_cells);
    }
    /* values lost with a device are recomputed from earlier tokens, which a window has dropped */
    const enum tandem_role role = cache->window > 0 ? TANDEM_ROLE_STATE : TANDEM_ROLE_LAZY_STATE;
    for (int64_t l = cache->begin; l < cache->end; l++) {
        const int64_t heads = tnd_llama_kv_heads_of(cache, l);
        const int64_t ne[] = {cache->head_size, heads, cache->n_cells};
        const int64_t transposed_ne[] = {cache->n_cells, cache->head_size, heads};
        cache->keys[l] = tandem_tensor_new(cache->owner, cache->type, 3, ne);
        cache->values[l] = tandem_tensor_new(cache->owner, cache->type, 3,
                                             cache->is_transposed ? transposed_ne : ne);
        tandem_tensor_set_role(cache->keys[l], role);
        tandem_tensor_set_role(cache->values[l], role);
        tandem_tensor_set_name(cache->keys[l], "keys");
        tandem_tensor_set_name(cache->values[l], "values");
    }
    for (int64_t i = 0; i < cache->n_cells; i++) {
        cache->orders[i] = TND_LLAMA_FREE_CELL;
    }
    return tandem_context_status(cache->owner, error);
}

bool tnd_llama_is_windowed(const struct tandem_hparams *h)
{
    return h->windowed == NULL && h->window_period == 0 && h->window > 0;
}

enum tandem_status tnd_llama_kv_cache_init(struct tnd_llama_kv_cache *cache,
                                           const struct tandem_hparams *hparams,
                                           const struct tnd_llama_kv_options *options,
                                           struct tandem_error *error)
{
    LLAMA_TRY(check_options(hparams, options, error));
    *cache = (struct tnd_llama_kv_cache){
        .head_size = hparams->head_size,
        .kv_heads = hparams->kv_heads > 0 ? hparams->kv_heads : 1, /* 0: a rank without any */
        .layers = hparams->is_encoder ? 0 : hparams->layers,       /* no text spans batches */
        .begin = options->begin,
        .end = options->end,
        .wide = options->wide,
        .window = tnd_llama_is_windowed(hparams) ? hparams->window : 0,
        .n_cells = options->n_cells,
        .type = options->type,
        .is_transposed = options->is_transposed,
        .has_blocks = options->has_blocks};
    if (hparams->is_encoder || (cache->begin == 0 && cache->end == 0)) {
        cache->begin = 0;
        cache->end = cache->layers;
    }
    LLAMA_ASSERT(cache->begin <= cache->end && cache->end <= cache->layers);
    const enum tandem_status status = make_tensors(cache, error);
    if (status != TANDEM_OK) {
        tnd_llama_kv_cache_fini(cache);
    }
    return status;
}

enum tandem_status tnd_llama_kv_cache_fetch(const struct tnd_llama_kv_cache *cache,
                                            tandem_runtime *runtime, bool will_change,
                                            struct tandem_error *error)
{
    for (int64_t l = cache->begin; runtime != NULL && l < cache->end; l++) {
        LLAMA_TRY(tandem_runtime_fetch(runtime, cache->keys[l], will_change, error));
        LLAMA_TRY(tandem_runtime_fetch(runtime, cache->values[l], will_change, error));
    }
    return TANDEM_OK;
}

void tnd_llama_kv_cache_leave(const struct tnd_llama_kv_cache *cache, tandem_runtime *runtime)
{
    for (int64_t l = cache->begin; cache->keys != NULL && cache->values != NULL && l < cache->end;
         l++) {
        tandem_runtime_forget(runtime, cache->keys[l]);
        tandem_runtime_forget(runtime, cache->values[l]);
    }
}

void tnd_llama_kv_cache_fini(struct tnd_llama_kv_cache *cache)
{
    tandem_context_free(cache->owner);
    free(cache->keys);
    free(cache->values);
    free(cache->orders);
    free(cache->taken);
    free(cache->tokens);
    free(cache->batches);
    free(cache->is_narrow);
    memset(cache, 0, sizeof(*cache));
}

/* ---- cells ---- */

static int32_t order_of(int32_t sequence, int64_t position)
{
    LLAMA_ASSERT(sequence >= 0 && sequence < TND_LLAMA_MAX_SEQUENCES);
    LLAMA_ASSERT(position >= 0 && position <= TND_LLAMA_POSITIONS);
    return sequence * TND_LLAMA_SPAN + (int32_t)position;
}

/* Updates n_used: one more than the last cell in use. */
static void find_used(struct tnd_llama_kv_cache *cache)
{
    cache->n_used = cache->n_cells;
    while (cache->n_used > 0 && cache->orders[cache->n_used - 1] == TND_LLAMA_FREE_CELL) {
        cache->n_used--;
    }
    if (cache->n_used == 0) {
        cache->next = 0;
    }
}

void tnd_llama_kv_cache_forget(struct tnd_llama_kv_cache *cache, int32_t sequence, int64_t begin,
                               int64_t end)
{
    const int64_t last = end < TND_LLAMA_POSITIONS ? end : TND_LLAMA_POSITIONS;
    for (int64_t i = 0; i < cache->n_used; i++) {
        if (cache->orders[i] >= order_of(sequence, begin) &&
            cache->orders[i] < order_of(sequence, last)) {
            cache->orders[i] = TND_LLAMA_FREE_CELL;
            cache->next = i < cache->next ? i : cache->next;
        }
    }
    find_used(cache);
}

bool tnd_llama_kv_cache_has(const struct tnd_llama_kv_cache *cache, int32_t sequence, int64_t begin,
                            int64_t end)
{
    int64_t n = 0;
    for (int64_t i = 0; i < cache->n_used; i++) {
        n += cache->orders[i] >= order_of(sequence, begin) &&
             cache->orders[i] < order_of(sequence, end);
    }
    return n == end - begin;
}

void tnd_llama_kv_cache_rollback(struct tnd_llama_kv_cache *cache)
{
    for (int64_t i = cache->n_taken; i-- > 0;) {
        LLAMA_ASSERT(cache->orders[cache->taken[i]] != TND_LLAMA_FREE_CELL);
        cache->orders[cache->taken[i]] = TND_LLAMA_FREE_CELL;
        cache->next = cache->taken[i];
    }
    cache->n_taken = 0;
    find_used(cache);
}

void tnd_llama_kv_cache_note(struct tnd_llama_kv_cache *cache, const int32_t *tokens, int64_t batch)
{
    for (int64_t i = 0; i < cache->n_taken; i++) {
        cache->tokens[cache->taken[i]] = tokens[i];
        cache->batches[cache->taken[i]] = batch;
    }
}

static size_t heads_bytes(const struct tnd_llama_kv_cache *cache, int64_t heads)
{
    return tandem_type_row_bytes(cache->type, cache->head_size) * (size_t)heads;
}

/* Bytes per cell in a layer. */
static size_t row_bytes(const struct tnd_llama_kv_cache *cache, int64_t layer)
{
    return heads_bytes(cache, tnd_llama_kv_heads_of(cache, layer));
}

/* Zeroes a cell. Transposed values have one value of the cell in each row. */
static void clear_cell(const struct tnd_llama_kv_cache *cache, int64_t layer, bool is_value,
                       int64_t cell)
{
    const size_t bytes = row_bytes(cache, layer);
    char *data = tandem_tensor_data(is_value ? cache->values[layer] : cache->keys[layer]);
    const int64_t n = is_value && cache->is_transposed
                          ? cache->head_size * tnd_llama_kv_heads_of(cache, layer)
                          : 1;
    const size_t one = bytes / (size_t)n;
    for (int64_t i = 0; i < n; i++) {
        memset(data + (size_t)(i * cache->n_cells + cell) * one, 0, one);
    }
}

void tnd_llama_kv_cache_clear_after(struct tnd_llama_kv_cache *cache, int64_t batch)
{
    for (int64_t cell = 0; cell < cache->n_used; cell++) {
        for (int64_t l = cache->begin; l < cache->end && cache->batches[cell] > batch; l++) {
            clear_cell(cache, l, false, cell);
            clear_cell(cache, l, true, cell);
        }
    }
}

int64_t tnd_llama_kv_cache_retake(struct tnd_llama_kv_cache *cache, int64_t batch)
{
    cache->n_taken = 0;
    for (int64_t i = 0; i < cache->n_used; i++) {
        if (cache->orders[i] != TND_LLAMA_FREE_CELL && cache->batches[i] == batch) {
            cache->taken[cache->n_taken++] = (int32_t)i;
        }
    }
    return cache->n_taken;
}

/* Frees cells that are before the window of each sequence's first token in the batch. */
static void slide(struct tnd_llama_kv_cache *cache, const int32_t *sequences,
                  const int32_t *positions, int64_t m)
{
    for (int64_t i = 0; cache->window > 0 && i < m; i++) {
        const int64_t unseen = positions[i] - cache->window + 1;
        if ((i == 0 || sequences[i] != sequences[i - 1]) && unseen > 0) {
            tnd_llama_kv_cache_forget(cache, sequences[i], 0, unseen);
        }
    }
}

static bool is_free(const struct tnd_llama_kv_cache *cache, int64_t begin, int64_t end)
{
    while (begin < end && cache->orders[begin] == TND_LLAMA_FREE_CELL) {
        begin++;
    }
    return begin == end;
}

static int64_t block_end(const struct tnd_llama_kv_cache *cache, int64_t begin)
{
    const int64_t end = begin + TND_LLAMA_BLOCK;
    return end < cache->n_cells ? end : cache->n_cells;
}

/* The cell of the previous token of the text; -1: there is none. */
static int64_t cell_before(const struct tnd_llama_kv_cache *cache, int32_t order)
{
    for (int64_t i = 0; order % TND_LLAMA_SPAN > 0 && i < cache->n_used; i++) {
        if (cache->orders[i] == order - 1) {
            return i;
        }
    }
    return -1;
}

/* A free cell for a token; -1: there is none. `before`: the cell of the previous token, or -1. */
static int64_t find_cell(const struct tnd_llama_kv_cache *cache, int64_t before)
{
    if (cache->has_blocks) {
        const int64_t cell = before + 1;
        if (before >= 0 && cell % TND_LLAMA_BLOCK != 0 && cell < cache->n_cells &&
            cache->orders[cell] == TND_LLAMA_FREE_CELL) {
            return cell;
        }
        for (int64_t i = 0; i < cache->n_cells; i += TND_LLAMA_BLOCK) {
            if (is_free(cache, i, block_end(cache, i))) {
                return i;
            }
        }
    }
    for (int64_t i = 0; i < cache->n_cells; i++) {
        const int64_t cell = (cache->next + i) % cache->n_cells;
        if (cache->orders[cell] == TND_LLAMA_FREE_CELL) {
            return cell;
        }
    }
    return -1;
}

/* Requests huge pages once a text is long. Each token reads some of every small page of all layers,
 * and between two tokens the weights evict the translations of those pages from the TLB: 2 to 4 %
 * of the time per token after 2,048 tokens (1.1B, one thread, Zen 5). Short texts keep small pages:
 * huge ones for every layer would take memory, and time to zero it, before the first token. */
static void join_pages(struct tnd_llama_kv_cache *cache)
{
    const int64_t n = cache->end > cache->begin ? cache->n_used : 0;
    if (cache->is_joined || n == 0 ||
        (n < cache->n_cells / 4 && (size_t)n * row_bytes(cache, cache->begin) < HUGE_PAGE / 2)) {
        return;
    }
    /* all tensors lie in one chunk: see all_bytes */
    const tandem_tensor *last = cache->values[cache->end - 1];
    const uintptr_t begin = (uintptr_t)tandem_tensor_data(cache->keys[cache->begin]);
    const uintptr_t end = (uintptr_t)tandem_tensor_data(last) + tandem_tensor_bytes(last);
    const uintptr_t first = (begin + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    cache->is_joined = true;
    if (first + HUGE_PAGE <= end) {
        const size_t bytes = (end - first) / HUGE_PAGE * HUGE_PAGE;
        (void)madvise((void *)first, bytes, MADV_HUGEPAGE); /* pages that are touched later */
        (void)madvise((void *)first, bytes, MADV_COLLAPSE); /* pages that exist already */
    }
}

static void take_cell(struct tnd_llama_kv_cache *cache, int64_t cell, int32_t order)
{
    cache->taken[cache->n_taken++] = (int32_t)cell;
    cache->orders[cell] = order;
    cache->n_used = cell >= cache->n_used ? cell + 1 : cache->n_used;
    cache->next = (cell + 1) % cache->n_cells;
}

/* Returns the cells that the batch has taken, and fails. */
static enum tandem_status too_many(struct tnd_llama_kv_cache *cache, int64_t m,
                                   struct tandem_error *error)
{
    int64_t n_free = 0;
    tnd_llama_kv_cache_rollback(cache);
    for (int64_t i = 0; i < cache->n_cells; i++) {
        n_free += cache->orders[i] == TND_LLAMA_FREE_CELL;
    }
    return tnd_llama_fail(error, TANDEM_E_LIMIT, "KV cache", m, n_free,
                          "llama: %lld more tokens do not fit: %lld of %lld cells are free",
                          (long long)m, (long long)n_free, (long long)cache->n_cells);
}

enum tandem_status tnd_llama_kv_cache_take(struct tnd_llama_kv_cache *cache,
                                           const int32_t *sequences, const int32_t *positions,
                                           int64_t m, struct tandem_error *error)
{
    slide(cache, sequences, positions, m);
    cache->n_taken = 0;
    for (int64_t i = 0; i < m; i++) {
        const int32_t order = order_of(sequences[i], positions[i]);
        const bool goes_on = i > 0 && sequences[i - 1] == sequences[i];
        const int64_t before = !cache->has_blocks ? -1
                               : goes_on          ? cache->taken[i - 1]
                                                  : cell_before(cache, order);
        const int64_t cell = find_cell(cache, before);
        if (cell < 0) {
            return too_many(cache, m, error);
        }
        take_cell(cache, cell, order);
    }
    join_pages(cache);
    return TANDEM_OK;
}

/* ---- copies ---- */

void tnd_llama_kv_copy_heads(const struct tnd_llama_kv_cache *cache, int64_t layer, bool is_value,
                             int64_t cell, int64_t first, int64_t n, char *row, bool to_cache)
{
    char *data = tandem_tensor_data(is_value ? cache->values[layer] : cache->keys[layer]);
    const size_t bytes = heads_bytes(cache, n);
    if (!is_value || !cache->is_transposed) {
        char *place = data + (size_t)cell * row_bytes(cache, layer) + heads_bytes(cache, first);
        memcpy(to_cache ? place : row, to_cache ? row : place, bytes);
        return;
    }
    const size_t size = tandem_type_row_bytes(cache->type, 1); /* F32 or F16 */
    for (int64_t i = 0; i < n * cache->head_size; i++) {
        char *place =
            data + (size_t)((first * cache->head_size + i) * cache->n_cells + cell) * size;
        char *value = row + (size_t)i * size;
        memcpy(to_cache ? place : value, to_cache ? value : place, size);
    }
}

static void copy_cell(const struct tnd_llama_kv_cache *cache, int64_t from, int64_t to)
{
    const size_t value = cache->is_transposed ? tandem_type_row_bytes(cache->type, 1) : 0;
    for (int64_t l = cache->begin; l < cache->end; l++) {
        const size_t row = row_bytes(cache, l);
        char *keys = tandem_tensor_data(cache->keys[l]);
        char *values = tandem_tensor_data(cache->values[l]);
        memcpy(keys + (size_t)to * row, keys + (size_t)from * row, row);
        if (!cache->is_transposed) {
            memcpy(values + (size_t)to * row, values + (size_t)from * row, row);
            continue;
        }
        for (int64_t i = 0; i < cache->head_size * tnd_llama_kv_heads_of(cache, l); i++) {
            char *line = values + (size_t)(i * cache->n_cells) * value;
            memcpy(line + (size_t)to * value, line + (size_t)from * value, value);
        }
    }
}

enum tandem_status tnd_llama_kv_cache_copy(struct tnd_llama_kv_cache *cache, int32_t from,
                                           int32_t to, int64_t n, struct tandem_error *error)
{
    const int32_t first = order_of(from, 0);
    const int64_t n_used = cache->n_used;
    int64_t last = -1;
    cache->n_taken = 0;
    for (int64_t i = 0; i < n_used; i++) { /* in the order of cells: the layout is the same */
        if (cache->orders[i] >= first && cache->orders[i] < first + (int32_t)n) {
            const int64_t cell = find_cell(cache, last);
            if (cell < 0) {
                return too_many(cache, n, error);
            }
            take_cell(cache, cell, order_of(to, cache->orders[i] - first));
            copy_cell(cache, i, cell);
            cache->tokens[cell] = cache->tokens[i];
            cache->is_narrow[cell] = cache->is_narrow[i];
            last = cell;
        }
    }
    return TANDEM_OK;
}

/* ---- nodes ---- */

/* A part {head_size, kv_heads, n} of the new keys or values. */
static tandem_tensor *part(tandem_context *context, tandem_tensor *a, int64_t first, int64_t n)
{
    const int64_t *whole = tandem_tensor_ne(a);
    if (first == 0 && n == whole[2]) {
        return a;
    }
    const int64_t ne[] = {whole[0], whole[1], n};
    const size_t *nb = tandem_tensor_nb(a); /* a part of a wider product has gaps */
    return tandem_view(context, a, 3, ne, nb != NULL ? nb + 1 : NULL,
                       nb != NULL ? (size_t)first * nb[2] : 0);
}

/* View {head_size, heads, n} of n cells of a layer, with the heads that tokens read and write. */
static tandem_tensor *rows_at(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                              int64_t layer, tandem_tensor *rows, int64_t cell, int64_t n)
{
    const int64_t ne[] = {cache->head_size, cache->kv_heads, n};
    const size_t row = row_bytes(cache, layer);
    const size_t nb[] = {heads_bytes(cache, 1), row, row * (size_t)n};
    return tandem_view(context, rows, 3, ne, nb,
                       (size_t)cell * row + heads_bytes(cache, first_head(cache, layer)));
}

/* View {n, head_size, heads} of transposed values. */
static tandem_tensor *columns_at(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                 int64_t layer, int64_t cell, int64_t n)
{
    tandem_tensor *values = cache->values[layer];
    const size_t *nb = tandem_tensor_nb(values);
    const int64_t ne[] = {n, cache->head_size, cache->kv_heads};
    return tandem_view(context, values, 3, ne, nb + 1,
                       (size_t)cell * nb[0] + (size_t)first_head(cache, layer) * nb[2]);
}

/* Writes tokens first .. first + n - 1 of the batch, whose cells are adjacent. */
static void write_run(const struct tnd_llama_kv_cache *cache, tandem_graph *graph,
                      tandem_context *context, int64_t layer, tandem_tensor *k, tandem_tensor *v,
                      int64_t first, int64_t n)
{
    const int64_t cell = cache->taken[first];
    LLAMA_ASSERT(first + n <= cache->n_taken && cell + n <= cache->n_used);
    tandem_tensor *place = rows_at(cache, context, layer, cache->keys[layer], cell, n);
    k = part(context, k, first, n);
    v = part(context, v, first, n);
    tandem_graph_add(graph, tandem_cpy(context, k, place));
    if (cache->is_transposed) {
        place = columns_at(cache, context, layer, cell, n);
        v = tandem_permute(context, v, 1, 2, 0, 3); /* {n, head_size, kv_heads} */
    } else {
        place = rows_at(cache, context, layer, cache->values[layer], cell, n);
    }
    tandem_graph_add(graph, tandem_cpy(context, v, place));
}

static int64_t run_end(const struct tnd_llama_kv_cache *cache, int64_t first)
{
    int64_t end = first + 1;
    while (end < cache->n_taken && cache->taken[end] == cache->taken[end - 1] + 1) {
        end++;
    }
    return end;
}

bool tnd_llama_kv_is_scattered(const struct tnd_llama_kv_cache *cache)
{
    int64_t n_runs = 0;
    for (int64_t first = 0; first < cache->n_taken; first = run_end(cache, first)) {
        n_runs++;
    }
    return !cache->is_transposed && n_runs >= SCATTERED;
}

/* Scatters `a`, of all tokens of the batch, to their cells. */
static void scatter(const struct tnd_llama_kv_cache *cache, tandem_graph *graph,
                    tandem_context *context, int64_t layer, tandem_tensor *a, tandem_tensor *rows,
                    tandem_tensor *cells)
{
    tandem_tensor *place = rows_at(cache, context, layer, rows, 0, cache->n_used);
    tandem_graph_add(graph, tandem_scatter(context, a, place, cells));
}

void tnd_llama_kv_write(const struct tnd_llama_kv_cache *cache, tandem_graph *graph,
                        tandem_context *context, int64_t layer, tandem_tensor *k, tandem_tensor *v,
                        tandem_tensor *cells)
{
    if (cells != NULL) {
        scatter(cache, graph, context, layer, k, cache->keys[layer], cells);
        scatter(cache, graph, context, layer, v, cache->values[layer], cells);
        return;
    }
    for (int64_t first = 0; k != NULL && v != NULL && first < cache->n_taken;) {
        const int64_t end = run_end(cache, first);
        write_run(cache, graph, context, layer, k, v, first, end - first);
        first = end;
    }
}

static tandem_tensor *read_rows(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                int64_t layer, tandem_tensor *rows, int64_t t)
{
    LLAMA_ASSERT(t > 0 && t <= cache->n_cells);
    return tandem_permute(context, rows_at(cache, context, layer, rows, 0, t), 0, 2, 1, 3);
}

tandem_tensor *tnd_llama_read_keys(const struct tnd_llama_kv_cache *cache, tandem_context *context,
                                   int64_t layer, int64_t t)
{
    return read_rows(cache, context, layer, cache->keys[layer], t);
}

tandem_tensor *tnd_llama_read_values(const struct tnd_llama_kv_cache *cache,
                                     tandem_context *context, int64_t layer, int64_t t)
{
    return cache->is_transposed ? columns_at(cache, context, layer, 0, t)
                                : read_rows(cache, context, layer, cache->values[layer], t);
}
