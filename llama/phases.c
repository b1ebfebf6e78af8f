/* SPDX-License-Identifier: MIT
 * Moves keys and values between two divisions of a model, by layers and by heads: after a prompt
 * they go to the ranks that have their heads, before the next prompt to the ranks that have their
 * layers. A cell that was sent is not sent again, so each token moves once. */
#include "llama/phases.h"

#include <stdlib.h>

#include "llama/llama_error.h"
#include "llama/shard.h"

enum { PIECE = 16 << 20 /* bytes that all ranks together move at a time */ };

const tandem_model *tnd_llama_part_for(const tandem_session *session, int64_t m)
{
    return session->prompt_part != NULL && m >= session->prompt_batch ? session->prompt_part
                                                                      : session->model;
}

struct tnd_llama_kv_wide tnd_llama_wide_layers(const tandem_session *session)
{
    if (session->prompt_part == NULL) {
        return (struct tnd_llama_kv_wide){.heads = 0};
    }
    const struct tnd_llama_range layers = tnd_llama_own_layers(session->prompt_part);
    return (struct tnd_llama_kv_wide){.begin = layers.begin,
                                      .end = layers.end,
                                      .heads = session->prompt_part->hparams.kv_heads,
                                      .first = session->model->shard->kv_heads.begin};
}

/* Cells {n} to move: to the ranks that have their heads, or their layers. */
struct move {
    const tandem_session *session;
    bool to_heads;
    const int32_t *cells;
    int64_t n;
};

static int64_t length(struct tnd_llama_range range)
{
    return range.end - range.begin;
}

/* Finds the layers and heads that one rank sends to another. */
static void find_message(const struct move *move, int from, int to, struct tnd_llama_range *layers,
                         struct tnd_llama_range *heads)
{
    *layers = move->session->prompt_part->shard->layers[move->to_heads ? from : to];
    *heads = move->session->model->shard->heads[move->to_heads ? to : from];
}

static size_t head_bytes(const tandem_session *session)
{
    return tandem_type_row_bytes(session->cache.type, session->cache.head_size);
}

static size_t message_bytes(const struct move *move, int from, int to)
{
    struct tnd_llama_range layers, heads;
    find_message(move, from, to, &layers, &heads);
    return from == to
               ? 0
               : 2 * (size_t)(length(layers) * length(heads) * move->n) * head_bytes(move->session);
}

/* Copies a message between this rank's cache and the buffer at `at`; returns the end of the message
 * in the buffer. */
static char *copy_message(const struct move *move, int from, int to, char *at, bool to_cache)
{
    const struct tnd_llama_kv_cache *cache = &move->session->cache;
    const int64_t own = move->session->model->shard->kv_heads.begin;
    struct tnd_llama_range layers, heads;
    find_message(move, from, to, &layers, &heads);
    for (int64_t l = layers.begin; l < layers.end && from != to && length(heads) > 0; l++) {
        const bool has_all = l >= cache->wide.begin && l < cache->wide.end;
        const int64_t first = heads.begin - (has_all ? 0 : own);
        for (int64_t i = 0; i < 2 * move->n; i++) {
            tnd_llama_kv_copy_heads(cache, l, i >= move->n, move->cells[i % move->n], first,
                                    length(heads), at, to_cache);
            at += (size_t)length(heads) * head_bytes(move->session);
        }
    }
    return at;
}

/* Exchanges messages. A rank waits for as long as the others compute. */
static enum tandem_status exchange(tandem_communicator *communicator, const char *mine,
                                   const size_t *to, char *out, const size_t *from,
                                   struct tandem_error *error)
{
    const double limit_s = tandem_communicator_limit(communicator);
    tandem_communicator_set_limit(communicator, limit_s > 0 ? -limit_s : limit_s);
    const enum tandem_status status =
        tandem_communicator_all_to_all(communicator, mine, to, out, from, error);
    tandem_communicator_set_limit(communicator, limit_s);
    return status;
}

static enum tandem_status move_piece(const struct move *move, struct tandem_error *error)
{
    const struct tnd_llama_shard *shard = move->session->model->shard;
    const int rank = shard->rank, count = shard->count;
    size_t *to = calloc(2 * (size_t)count, sizeof(to[0]));
    size_t *from = to != NULL ? to + count : NULL;
    size_t n_to = 1, n_from = 1;
    for (int i = 0; to != NULL && i < count; i++) {
        n_to += to[i] = message_bytes(move, rank, i);
        n_from += from[i] = message_bytes(move, i, rank);
    }
    char *mine = to != NULL ? malloc(n_to) : NULL;
    char *out = to != NULL ? malloc(n_from) : NULL;
    enum tandem_status status =
        mine == NULL || out == NULL ? tnd_llama_no_memory(error) : TANDEM_OK;
    if (status == TANDEM_OK) {
        char *at = mine;
        for (int i = 0; i < count; i++) {
            at = copy_message(move, rank, i, at, false);
        }
        status = exchange(shard->communicator, mine, to, out, from, error);
        at = out;
        for (int i = 0; status == TANDEM_OK && i < count; i++) {
            at = copy_message(move, i, rank, at, true);
        }
    }
    free(to);
    free(mine);
    free(out);
    return status;
}

/* Moves cells in pieces of PIECE bytes over all ranks, so that every rank cuts at the same
 * cells. */
static enum tandem_status move_cells(const struct move *move, struct tandem_error *error)
{
    const struct tandem_hparams *h = &move->session->prompt_part->hparams;
    const int64_t bytes = 2 * h->layers * h->kv_heads * (int64_t)head_bytes(move->session);
    const int64_t most = bytes < PIECE ? PIECE / bytes : 1;
    for (int64_t begin = 0; begin < move->n; begin += most) {
        struct move piece = *move;
        piece.cells += begin;
        piece.n = move->n - begin < most ? move->n - begin : most;
        LLAMA_TRY(move_piece(&piece, error));
    }
    return TANDEM_OK;
}

enum tandem_status tnd_llama_phase_begin(tandem_session *session, int64_t m,
                                         struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    struct move move = {.session = session, .cells = cache->taken};
    if (tnd_llama_part_for(session, m) == session->model) {
        return TANDEM_OK;
    }
    cache->n_taken = 0; /* this batch has not taken its cells yet */
    for (int64_t i = 0; i < cache->n_used; i++) {
        if (cache->orders[i] != TND_LLAMA_FREE_CELL && cache->is_narrow[i]) {
            cache->taken[move.n++] = (int32_t)i;
        }
    }
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, true, error));
    LLAMA_TRY(move_cells(&move, error));
    for (int64_t i = 0; i < move.n; i++) {
        cache->is_narrow[move.cells[i]] = false;
    }
    return TANDEM_OK;
}

enum tandem_status tnd_llama_phase_end(tandem_session *session, int64_t m,
                                       struct tandem_error *error)
{
    struct tnd_llama_kv_cache *cache = &session->cache;
    const bool by_rows = tnd_llama_part_for(session, m) == session->model;
    const struct move move = {
        .session = session, .to_heads = true, .cells = cache->taken, .n = cache->n_taken};
    for (int64_t i = 0; i < cache->n_taken; i++) {
        cache->is_narrow[cache->taken[i]] = by_rows;
    }
    if (by_rows) {
        return TANDEM_OK;
    }
    LLAMA_TRY(tnd_llama_kv_cache_fetch(cache, session->runtime, true, error));
    return move_cells(&move, error);
}
