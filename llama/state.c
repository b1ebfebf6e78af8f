/* SPDX-License-Identifier: MIT
 * State files. Little-endian, no padding:
 *   "TNDSTATE", uint32 version (2), uint32 0
 *   int64: layers, KV heads, head size, type of the cache, window, vocabulary, sequences,
 *          identity of the model (tandem_source_identity), cells
 *   each sequence: int64 position, int64 1 if there are logits
 *   each cell: int32 order (sequence * 2^24 + position)
 *   each layer: keys of all cells, values of all cells (kv_heads rows of head_size values each)
 *   logits of each sequence that has them: float each
 *   uint64 FNV-1a of everything before it
 * Of a session of several ranks it is the same file: each has some of the KV heads of all cells, or
 * some layers, and rank 0 puts them together, so that any number of ranks may read it.
 * All sizes follow from numbers that the session knows, but for the count of cells, which has a
 * bound; so a reader allocates nothing that the file's header asks for. */
#include "llama/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "llama/llama_error.h"
#include "llama/ranks.h"
#include "llama/shard.h"
#include "tandem/files.h"

static const char magic[8] = {'T', 'N', 'D', 'S', 'T', 'A', 'T', 'E'};
enum {
    VERSION = 2,
    IDENTITY = 7,
    HEADER_NUMBERS = 9,
    HEADER_BYTES = 16 + 8 * HEADER_NUMBERS,
    CHECK_BYTES = 8
};

static const char *const header_names[HEADER_NUMBERS] = {
    "layers", "KV heads",   "head size", "type of the cache",
    "window", "vocabulary", "sequences", "identity of the model",
    "cells"};

static uint64_t fnv(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    return hash;
}

/* ---- sizes ---- */

/* KV heads in a state; this rank may have only some of them. */
static int64_t all_heads(const tandem_session *session)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    return shard != NULL ? shard->all_kv_heads : session->cache.kv_heads;
}

static size_t heads_bytes(const tandem_session *session, int64_t heads)
{
    const struct tnd_llama_kv_cache *cache = &session->cache;
    return tandem_type_row_bytes(cache->type, cache->head_size) * (size_t)heads;
}

static size_t cell_bytes(const tandem_session *session)
{
    return heads_bytes(session, all_heads(session));
}

/* KV heads of this rank; a rank without heads keeps a cache of one head anyway. */
static int64_t own_heads(const tandem_session *session)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    return shard != NULL ? shard->kv_heads.end - shard->kv_heads.begin : session->cache.kv_heads;
}

/* Offset of this rank's heads in the row of a cell. */
static size_t own_begin(const tandem_session *session)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    return heads_bytes(session, shard != NULL ? shard->kv_heads.begin : 0);
}

/* Size with n cells, and logits of `n_logits` sequences. The cache itself is larger, so nothing
 * overflows. */
static size_t state_bytes(const tandem_session *session, int64_t n, int n_logits)
{
    return HEADER_BYTES + 16 * (size_t)session->n_sequences + 4 * (size_t)n +
           2 * (size_t)session->cache.layers * (size_t)n * cell_bytes(session) +
           (size_t)n_logits * (size_t)session->model->hparams.vocabulary * sizeof(float) +
           CHECK_BYTES;
}

/* Whether a cell holds a token of a text. Drafts after its end are not part of a state. */
static bool is_held(const tandem_session *session, int64_t cell)
{
    const int32_t order = session->cache.orders[cell];
    return order != TND_LLAMA_FREE_CELL &&
           order % TND_LLAMA_SPAN < session->sequences[order / TND_LLAMA_SPAN].n_past;
}

static int64_t cells_in_use(const tandem_session *session)
{
    int64_t n = 0;
    for (int64_t i = 0; i < session->cache.n_used; i++) {
        n += is_held(session, i);
    }
    return n;
}

size_t tandem_session_state_bytes(const tandem_session *session)
{
    if (session == NULL) {
        return 0;
    }
    int n_logits = 0;
    for (int i = 0; i < session->n_sequences; i++) {
        n_logits += session->sequences[i].has_logits;
    }
    return state_bytes(session, cells_in_use(session), n_logits);
}

static enum tandem_status header_numbers(const tandem_session *session, int64_t out[HEADER_NUMBERS],
                                         struct tandem_error *error)
{
    const struct tnd_llama_kv_cache *cache = &session->cache;
    uint64_t identity;
    LLAMA_TRY(tnd_llama_identity(session->model, &identity, error));
    const int64_t numbers[HEADER_NUMBERS] = {
        cache->layers,        all_heads(session),
        cache->head_size,     cache->type + (cache->is_long ? 256 : 0),
        cache->window,        session->model->hparams.vocabulary,
        session->n_sequences, [IDENTITY] = (int64_t)identity,
        cells_in_use(session)};
    memcpy(out, numbers, sizeof(numbers));
    return TANDEM_OK;
}

/* ---- rows of the cache ---- */

/* Keys, or values, of a layer. */
struct rows {
    int64_t layer;
    bool is_value;
};

static struct rows rows_at(int64_t i)
{
    return (struct rows){i / 2, i % 2 != 0};
}

/* Copies this rank's heads between a cell's row in a state and the cache. */
static void copy_row(const tandem_session *session, struct rows rows, int64_t cell, char *row,
                     bool to_cache)
{
    const struct tnd_llama_kv_cache *cache = &session->cache;
    const bool is_wide = rows.layer >= cache->wide.begin && rows.layer < cache->wide.end;
    if (own_heads(session) > 0) {
        tnd_llama_kv_copy_heads(cache, rows.layer, rows.is_value, cell,
                                is_wide ? cache->wide.first : 0, own_heads(session), row, to_cache);
    }
}

/* ---- writing ---- */

static char *put(char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

static bool has_layer(const tandem_session *session, int64_t layer)
{
    return layer >= session->cache.begin && layer < session->cache.end;
}

static char *put_rows(const tandem_session *session, struct rows rows, char *at)
{
    for (int64_t i = 0; i < session->cache.n_used; i++) {
        if (is_held(session, i)) {
            if (has_layer(session, rows.layer)) { /* else another rank has it */
                copy_row(session, rows, i, at + own_begin(session), false);
            }
            at += cell_bytes(session);
        }
    }
    return at;
}

/* ---- rows of other ranks ---- */

/* Packs this rank's heads of all cells, keys or values of a layer. */
static void pack_rows(const tandem_session *session, struct rows rows, char *out)
{
    for (int64_t i = 0; i < session->cache.n_used; i++) {
        if (is_held(session, i)) {
            copy_row(session, rows, i, out, false);
            out += heads_bytes(session, own_heads(session));
        }
    }
}

/* Bytes of a rank's heads per cell, summed over its layers. */
static size_t bytes_of_rank(const tandem_session *session, int rank)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    const struct tnd_llama_range *heads = &shard->heads[rank];
    return heads_bytes(session, shard->division == TANDEM_DIVIDE_ROWS ? heads->end - heads->begin
                                                                      : shard->all_kv_heads);
}

/* Receives keys or values of a layer from another rank into `rows`. */
static enum tandem_status receive_rows(const tandem_session *session, int rank, size_t begin,
                                       size_t bytes, char *part, char *rows,
                                       struct tandem_error *error)
{
    const size_t n = (size_t)cells_in_use(session);
    LLAMA_TRY(tandem_communicator_receive(session->model->shard->communicator, rank, part,
                                          n * bytes, error));
    for (size_t i = 0; i < n; i++) {
        memcpy(rows + i * cell_bytes(session) + begin, part + i * bytes, bytes);
    }
    return TANDEM_OK;
}

enum tandem_status tnd_llama_state_send(const tandem_session *session, struct tandem_error *error)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    const struct tnd_llama_kv_cache *cache = &session->cache;
    const size_t n = (size_t)cells_in_use(session) * heads_bytes(session, own_heads(session));
    struct tandem_error own = {.text = ""};
    char *part = malloc(n + 1);
    enum tandem_status status =
        part == NULL ? tnd_llama_fail(&own, TANDEM_E_MEMORY, "cluster", (int64_t)n, 0,
                                      "llama: no memory for %zu bytes of a state", n)
                     : TANDEM_OK;
    status = tnd_llama_agree(shard->communicator, status, &own, error);
    for (int64_t l = 2 * cache->begin; status == TANDEM_OK && n > 0 && l < 2 * cache->end; l++) {
        pack_rows(session, rows_at(l), part);
        status = tandem_communicator_send(shard->communicator, 0, part, n, error);
    }
    free(part);
    return status;
}

/* Collects the rows of all other ranks into a state; `rows` has this rank's heads already. */
static enum tandem_status collect_rows(const tandem_session *session, char *rows,
                                       struct tandem_error *error)
{
    const struct tnd_llama_shard *shard = session->model->shard;
    const size_t n = (size_t)cells_in_use(session);
    if (session->leads == NULL) {
        return TANDEM_OK;
    }
    struct tandem_error own = {.text = ""};
    char *part = malloc(n * cell_bytes(session) + 1);
    enum tandem_status status =
        part == NULL ? tnd_llama_fail(&own, TANDEM_E_MEMORY, "cluster", (int64_t)n, 0,
                                      "llama: no memory for a state of %zu cells", n)
                     : TANDEM_OK;
    status = tnd_llama_tell_state_write(session, status, &own, error);
    for (int64_t l = 0; status == TANDEM_OK && n > 0 && l < 2 * session->cache.layers; l++) {
        size_t begin = 0;
        for (int r = 0; status == TANDEM_OK && r < shard->count; r++) {
            const size_t its = bytes_of_rank(session, r);
            const bool has_any =
                its > 0 && l / 2 >= shard->layers[r].begin && l / 2 < shard->layers[r].end;
            if (r > 0 && has_any) {
                status = receive_rows(session, r, begin, its, part,
                                      rows + (size_t)l * n * cell_bytes(session), error);
            }
            begin += shard->division == TANDEM_DIVIDE_ROWS ? its : 0;
        }
    }
    free(part);
    return status;
}

enum tandem_status tandem_session_state_write(const tandem_session *session, void *out,
                                              struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(out, error);
    const struct tnd_llama_kv_cache *cache = &session->cache;
    const uint32_t version[2] = {VERSION, 0};
    int64_t numbers[HEADER_NUMBERS];
    LLAMA_TRY(tnd_llama_flights_refuse(session, "a state is saved", error));
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, false, error));
    if (session->must_recover) {
        return tnd_llama_fail(error, TANDEM_E_DEVICE_LOST, "llama", 0, 0,
                              "llama: the newest keys and values are lost with a device; the next "
                              "decoded token computes them once more");
    }
    LLAMA_TRY(header_numbers(session, numbers, error));
    char *at = put(out, magic, sizeof(magic));
    at = put(at, version, sizeof(version));
    at = put(at, numbers, sizeof(numbers));
    for (int i = 0; i < session->n_sequences; i++) {
        const int64_t pair[2] = {session->sequences[i].n_past, session->sequences[i].has_logits};
        at = put(at, pair, sizeof(pair));
    }
    for (int64_t i = 0; i < cache->n_used; i++) {
        if (is_held(session, i)) {
            at = put(at, &cache->orders[i], sizeof(cache->orders[i]));
        }
    }
    char *rows = at;
    for (int64_t l = 0; l < 2 * cache->layers; l++) {
        at = put_rows(session, rows_at(l), at);
    }
    LLAMA_TRY(tnd_llama_during(collect_rows(session, rows, error), "a state was saved", error));
    for (int i = 0; i < session->n_sequences; i++) {
        if (session->sequences[i].has_logits) {
            at = put(at, session->sequences[i].logits,
                     (size_t)session->model->hparams.vocabulary * sizeof(float));
        }
    }
    const uint64_t check = fnv(out, (size_t)(at - (char *)out));
    at = put(at, &check, sizeof(check));
    LLAMA_ASSERT((size_t)(at - (char *)out) == tandem_session_state_bytes(session));
    return TANDEM_OK;
}

/* ---- reading: all checks come before the first change ---- */

struct reader {
    const tandem_session *session;
    const char *name;
    const char *bytes;
    size_t n;
    int64_t n_cells;
};

static enum tandem_status check_header(struct reader *r, struct tandem_error *error)
{
    uint32_t version[2];
    int64_t want[HEADER_NUMBERS], got[HEADER_NUMBERS];
    if (r->n < HEADER_BYTES + CHECK_BYTES) {
        return tnd_llama_fail(error, TANDEM_E_TRUNCATED, r->name, (int64_t)r->n, HEADER_BYTES,
                              "%s: has %zu bytes, a state has a header of %d", r->name, r->n,
                              (int)HEADER_BYTES);
    }
    memcpy(version, r->bytes + 8, sizeof(version));
    if (memcmp(r->bytes, magic, sizeof(magic)) == 0 && version[0] == 1 && version[1] == 0) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, r->name, version[0], VERSION,
                              "%s: is a state of version 1, made by an older version of Tandem: it "
                              "does not say of which weights it is; the text is computed anew",
                              r->name);
    }
    if (memcmp(r->bytes, magic, sizeof(magic)) != 0 || version[0] != VERSION || version[1] != 0) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, r->name, version[0], VERSION,
                              "%s: is no state file of version %d", r->name, (int)VERSION);
    }
    memcpy(got, r->bytes + 16, sizeof(got));
    LLAMA_TRY(header_numbers(r->session, want, error));
    for (int i = 0; i < HEADER_NUMBERS - 1; i++) {
        if (got[i] != want[i] && i == IDENTITY) {
            return tnd_llama_fail(
                error, TANDEM_E_FORMAT, r->name, got[i], want[i],
                "%s: is of another model: its weights have the identity %016" PRIx64
                ", those of this model %016" PRIx64
                " (a merge, another quantisation, a changed file)",
                r->name, (uint64_t)got[i], (uint64_t)want[i]);
        }
        if (got[i] != want[i]) {
            return tnd_llama_fail(error, TANDEM_E_FORMAT, r->name, got[i], want[i],
                                  "%s: is of another model or session: %s is %" PRId64
                                  ", expected %" PRId64,
                                  r->name, header_names[i], got[i], want[i]);
        }
    }
    r->n_cells = got[HEADER_NUMBERS - 1];
    if (r->n_cells < 0 || r->n_cells > r->session->cache.n_cells) {
        return tnd_llama_fail(error, TANDEM_E_LIMIT, r->name, r->n_cells, r->session->cache.n_cells,
                              "%s: holds %" PRId64 " tokens, the session has room for %" PRId64,
                              r->name, r->n_cells, r->session->cache.n_cells);
    }
    return TANDEM_OK;
}

/* Position and flag of a sequence. */
static void read_sequence(const struct reader *r, int i, int64_t out[2])
{
    memcpy(out, r->bytes + HEADER_BYTES + 16 * (size_t)i, 16);
}

static const char *orders_at(const struct reader *r)
{
    return r->bytes + HEADER_BYTES + 16 * (size_t)r->session->n_sequences;
}

static enum tandem_status check_size(const struct reader *r, struct tandem_error *error)
{
    int n_logits = 0;
    for (int i = 0;
         r->n >= HEADER_BYTES + 16 * (size_t)r->session->n_sequences && i < r->session->n_sequences;
         i++) {
        int64_t pair[2];
        read_sequence(r, i, pair);
        n_logits += pair[1] == 1;
    }
    const size_t want = state_bytes(r->session, r->n_cells, n_logits);
    if (r->n != want) {
        return tnd_llama_fail(error, r->n < want ? TANDEM_E_TRUNCATED : TANDEM_E_FORMAT, r->name,
                              (int64_t)r->n, (int64_t)want, "%s: has %zu bytes, expected %zu",
                              r->name, r->n, want);
    }
    uint64_t check;
    memcpy(&check, r->bytes + r->n - CHECK_BYTES, sizeof(check));
    if (check != fnv(r->bytes, r->n - CHECK_BYTES)) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, r->name, (int64_t)r->n, 0,
                              "%s: is damaged: the checksum differs", r->name);
    }
    return TANDEM_OK;
}

static int compare_orders(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a;
    const int32_t y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Checks the positions of a sequence in the sorted orders: none twice, none past its end, and none
 * missing that the next token sees. Returns their number, or -1. */
static int64_t count_positions(const struct reader *r, const int32_t *sorted, int sequence,
                               int64_t n_past)
{
    const int64_t window = r->session->cache.window;
    const int64_t seen = window > 0 && n_past >= window ? n_past - window + 1 : 0;
    const int64_t begin = (int64_t)sequence * TND_LLAMA_SPAN;
    int64_t n = 0, n_seen = 0;
    for (int64_t i = 0; i < r->n_cells; i++) {
        if (sorted[i] < begin || sorted[i] >= begin + TND_LLAMA_SPAN) {
            continue;
        }
        if (sorted[i] >= begin + n_past || (i > 0 && sorted[i] == sorted[i - 1])) {
            return -1;
        }
        n++;
        n_seen += sorted[i] >= begin + seen;
    }
    return n_seen == n_past - seen ? n : -1;
}

static enum tandem_status check_cells(const struct reader *r, struct tandem_error *error)
{
    int32_t *sorted = malloc((size_t)(r->n_cells + 1) * sizeof(sorted[0]));
    int64_t n = 0;
    bool is_good = sorted != NULL;
    if (sorted == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, r->name, r->n_cells, 0,
                              "%s: no memory for %" PRId64 " cells", r->name, r->n_cells);
    }
    memcpy(sorted, orders_at(r), (size_t)r->n_cells * sizeof(sorted[0]));
    qsort(sorted, (size_t)r->n_cells, sizeof(sorted[0]), compare_orders);
    for (int i = 0; is_good && i < r->session->n_sequences; i++) {
        int64_t pair[2];
        read_sequence(r, i, pair);
        is_good = pair[0] >= 0 && pair[0] <= r->session->n_positions && (pair[1] | 1) == 1;
        const int64_t found = is_good ? count_positions(r, sorted, i, pair[0]) : -1;
        is_good = found >= 0;
        n += is_good ? found : 0;
    }
    free(sorted);
    if (!is_good || n != r->n_cells) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, r->name, n, r->n_cells,
                              "%s: the positions of its tokens contradict each other", r->name);
    }
    return TANDEM_OK;
}

static const char *take_rows(tandem_session *session, struct rows rows, int64_t n, const char *at)
{
    for (int64_t i = 0; i < n; i++) {
        if (has_layer(session, rows.layer)) {
            copy_row(session, rows, session->cache.taken[i], (char *)at + own_begin(session), true);
        }
        at += cell_bytes(session);
    }
    return at;
}

static int32_t order_at(const struct reader *r, int64_t i)
{
    int32_t order;
    memcpy(&order, orders_at(r) + (size_t)i * sizeof(order), sizeof(order));
    return order;
}

/* First cell of each sequence, in whole blocks, for a state's positions; `low`: the lowest position
 * of each. Returns the number of cells needed. */
static int64_t lay_blocks(const struct reader *r, int64_t *begin, int64_t *low)
{
    const int n = r->session->n_sequences;
    int64_t n_cells = 0;
    int64_t end[TND_LLAMA_MAX_SEQUENCES] = {0};
    for (int64_t i = 0; i < r->n_cells; i++) {
        const int64_t s = order_at(r, i) / TND_LLAMA_SPAN;
        const int64_t position = order_at(r, i) % TND_LLAMA_SPAN;
        low[s] = end[s] == 0 || position < low[s] ? position : low[s];
        end[s] = position + 1 > end[s] ? position + 1 : end[s];
    }
    for (int s = 0; s < n; s++) {
        begin[s] = n_cells;
        n_cells += (end[s] - low[s] + TND_LLAMA_BLOCK - 1) / TND_LLAMA_BLOCK * TND_LLAMA_BLOCK;
    }
    return n_cells;
}

/* Assigns a cell to each row of a state, in cache->taken: in blocks by position again, unless that
 * takes more cells than there are. */
static void take_cells(struct tnd_llama_kv_cache *cache, const struct reader *r)
{
    int64_t begin[TND_LLAMA_MAX_SEQUENCES] = {0};
    int64_t low[TND_LLAMA_MAX_SEQUENCES] = {0};
    const bool in_blocks = cache->has_blocks && lay_blocks(r, begin, low) <= cache->n_cells;
    for (int64_t i = 0; i < cache->n_cells; i++) {
        cache->orders[i] = TND_LLAMA_FREE_CELL;
    }
    cache->n_used = 0;
    for (int64_t i = 0; i < r->n_cells; i++) {
        const int32_t order = order_at(r, i);
        const int64_t s = order / TND_LLAMA_SPAN;
        const int64_t cell = in_blocks ? begin[s] + order % TND_LLAMA_SPAN - low[s] : i;
        LLAMA_ASSERT(cell < cache->n_cells && cache->orders[cell] == TND_LLAMA_FREE_CELL);
        cache->orders[cell] = order;
        cache->tokens[cell] = -1; /* states do not contain tokens */
        cache->is_narrow[cell] = true;
        cache->taken[i] = (int32_t)cell;
        cache->n_used = cell >= cache->n_used ? cell + 1 : cache->n_used;
    }
    cache->next = cache->n_used % cache->n_cells;
    cache->n_taken = 0;
}

static void take(tandem_session *session, const struct reader *r)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    const size_t logits = (size_t)session->model->hparams.vocabulary * sizeof(float);
    const char *at = orders_at(r) + (size_t)r->n_cells * sizeof(cache->orders[0]);
    take_cells(cache, r);
    for (int64_t l = 0; l < 2 * cache->layers; l++) {
        at = take_rows(session, rows_at(l), r->n_cells, at);
    }
    for (int i = 0; i < session->n_sequences; i++) {
        int64_t pair[2];
        read_sequence(r, i, pair);
        session->sequences[i].n_past = pair[0];
        session->sequences[i].has_logits = pair[1] == 1;
        session->sequences[i].has_embedding = false; /* states do not contain embeddings */
        session->sequences[i].chosen_for = NULL;
        if (pair[1] == 1) {
            memcpy(session->sequences[i].logits, at, logits);
            at += logits;
        }
    }
}

/* Applies a state that was checked. */
static enum tandem_status take_state(tandem_session *session, const struct reader *r,
                                     struct tandem_error *error)
{
    LLAMA_TRY(tnd_llama_kv_cache_fetch(&session->cache, session->runtime, true, error));
    for (int i = 0; i < session->n_sequences; i++) {
        tnd_llama_draft_forget(session, i, 0);
    }
    take(session, r);
    session->n_on_host = session->n_batches;
    session->must_recover = false;
    return TANDEM_OK;
}

/* A reader for a state sent by rank 0. */
static struct reader told(const tandem_session *session, const void *bytes, size_t n)
{
    struct reader r = {.session = session, .name = "a state of rank 0", .bytes = bytes, .n = n};
    if (n >= HEADER_BYTES) {
        memcpy(&r.n_cells, r.bytes + HEADER_BYTES - 8, sizeof(r.n_cells));
    }
    return r;
}

enum tandem_status tnd_llama_state_check(const tandem_session *session, const void *bytes, size_t n,
                                         struct tandem_error *error)
{
    struct reader r = told(session, bytes, n);
    if (n < HEADER_BYTES || r.n_cells < 0 || r.n_cells > session->cache.n_cells) {
        return tnd_llama_fail(error, TANDEM_E_FORMAT, r.name, (int64_t)n, HEADER_BYTES,
                              "%s: has %zu bytes and %" PRId64 " cells", r.name, n, r.n_cells);
    }
    LLAMA_TRY(check_size(&r, error));
    return check_cells(&r, error);
}

enum tandem_status tnd_llama_state_take(tandem_session *session, const void *bytes, size_t n,
                                        struct tandem_error *error)
{
    const struct reader r = told(session, bytes, n);
    return take_state(session, &r, error);
}

size_t tnd_llama_state_most(const tandem_session *session)
{
    return state_bytes(session, session->cache.n_cells, session->n_sequences);
}

enum tandem_status tandem_session_state_read(tandem_session *session, const void *bytes, size_t n,
                                             const char *name, struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(bytes, error);
    struct reader r = {.session = session, .name = name, .bytes = bytes, .n = n};
    LLAMA_TRY(tnd_llama_flights_refuse(session, "a state is read", error));
    LLAMA_TRY(check_header(&r, error));
    LLAMA_TRY(check_size(&r, error));
    LLAMA_TRY(check_cells(&r, error));
    LLAMA_TRY(tnd_llama_during(tnd_llama_tell_state_read(session, bytes, n, error),
                               "a state was read", error));
    return take_state(session, &r, error);
}

/* ---- files ---- */

enum tandem_status tandem_session_save(const tandem_session *session, const char *path,
                                       struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(path, error);
    const size_t n = tandem_session_state_bytes(session);
    char *bytes = malloc(n);
    if (bytes == NULL) {
        return tnd_llama_fail(error, TANDEM_E_MEMORY, path, (int64_t)n, 0,
                              "%s: no memory for a state of %zu bytes", path, n);
    }
    enum tandem_status status = tandem_session_state_write(session, bytes, error);
    if (status == TANDEM_OK) {
        status = tandem_file_write(path, bytes, n, true, error);
    }
    free(bytes);
    return status;
}

enum tandem_status tandem_session_load(tandem_session *session, const char *path,
                                       struct tandem_error *error)
{
    LLAMA_REQUIRE(session, error);
    LLAMA_REQUIRE(path, error);
    void *bytes = NULL;
    size_t n = 0;
    LLAMA_TRY(tandem_file_read(path,
                               state_bytes(session, session->cache.n_cells, session->n_sequences),
                               &bytes, &n, error));
    enum tandem_status status = tandem_session_state_read(session, bytes, n, path, error);
    tandem_file_free(bytes);
    return status;
}
