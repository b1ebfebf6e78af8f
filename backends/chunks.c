/* SPDX-License-Identifier: MIT
 * Chunks of ranges, and cursors that hand them out; see chunks.h. */
#include "backends/chunks.h"

/* Two take part in the end of a range: its worker and one that helps. */
enum { SHARERS = 2, MOST_WHOLE_CHUNKS = 1 << (TND_CURSOR_ITEMS_BITS - 2) };

bool tnd_chunk_at(int64_t i, int64_t n_items, int64_t chunk, int count, int64_t *out_begin,
                  int64_t *out_end)
{
    chunk = chunk < 1 ? 1 : chunk;
    int64_t workers = count < 1 ? 1 : count;
    int64_t n_whole = n_items / chunk > workers ? n_items / chunk - workers : 0;
    int64_t begin = n_whole * chunk;
    if (i < n_whole) {
        *out_begin = i * chunk;
        *out_end = *out_begin + chunk;
        return true;
    }
    i -= n_whole;
    while (begin < n_items) {
        int64_t left = n_items - begin;
        int64_t size = left / (2 * workers);
        size = size < 1 ? 1 : size < chunk ? size : chunk;
        if (i < workers) {
            *out_begin = begin + i * size;
            *out_end = *out_begin + size;
            return *out_begin < n_items; /* beyond the end only in the round of single items */
        }
        begin += workers * size;
        i -= workers;
    }
    return false;
}

/* Items are published by the barrier before the loop, so that no order is needed here. */
static bool take(struct tnd_chunk_cursor *cursor, uint64_t loop, int64_t n_items, int64_t chunk,
                 int sharers, int64_t *out_begin, int64_t *out_end)
{
    const uint64_t mask = (UINT64_C(1) << TND_CURSOR_ITEMS_BITS) - 1;
    uint64_t at = atomic_load_explicit(&cursor->at, memory_order_relaxed);
    uint64_t next;
    do {
        /* A cursor that stands in an earlier loop was not asked in this one. */
        uint64_t i = at >> TND_CURSOR_ITEMS_BITS == loop ? at & mask : 0;
        if (!tnd_chunk_at((int64_t)i, n_items, chunk, sharers, out_begin, out_end)) {
            return false;
        }
        next = loop << TND_CURSOR_ITEMS_BITS | (i + 1);
    } while (!atomic_compare_exchange_weak_explicit(&cursor->at, &at, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

bool tnd_chunk_next(struct tnd_chunk_cursor *cursors, int index, int count, uint64_t loop,
                    int64_t n_items, int64_t chunk, int64_t *out_begin, int64_t *out_end)
{
    int64_t share = n_items / count;
    int64_t rest = n_items % count; /* the first ranges have one item more */
    int64_t least = share / MOST_WHOLE_CHUNKS + 1;
    int sharers = count < SHARERS ? count : SHARERS;
    chunk = chunk > least ? chunk : least;
    for (int turn = 0; turn < count && n_items > 0; turn++) {
        int owner = (index + turn) % count;
        if (take(&cursors[owner], loop, share + (owner < rest), chunk, sharers, out_begin,
                 out_end)) {
            int64_t first = share * owner + (owner < rest ? owner : rest);
            *out_begin += first;
            *out_end += first;
            return true;
        }
    }
    return false;
}
