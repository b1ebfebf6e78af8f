/* SPDX-License-Identifier: MIT
 * How the items of a stage are shared out. Each worker has a range of its own, one stretch, which
 * it takes chunk by chunk: what it reads is one stream of memory, and the same rows stay with the
 * same worker from run to run. Whoever has done all of its range helps the others with theirs.
 * Chunks have the size asked for, then smaller ones, so that workers end at nearly the same time.
 * Shared by the executor and the benches. */
#ifndef TND_CHUNKS_H
#define TND_CHUNKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TND_CURSOR_ITEMS_BITS = 20 };

/** How far a worker's range is handed out. Zero at the start; loops follow one another. */
struct tnd_chunk_cursor {
    _Alignas(64) _Atomic uint64_t at; /* the loop, and the chunks of it that were taken */
};

/** Items *out_begin .. *out_end - 1 of chunk `i` (0, 1, ..) when `count` workers share `n_items` in
 *  chunks of at most `chunk`; false when there are fewer chunks. The last chunk of each worker (and
 *  what fills no whole chunk) is cut up: each round of chunks takes half of what is left, down to
 *  single items. */
bool tnd_chunk_at(int64_t i, int64_t n_items, int64_t chunk, int count, int64_t *out_begin,
                  int64_t *out_end);

/** The next chunk for worker `index` of `count`, each with one of `cursors`; false when all items
 *  are taken. All workers pass the same `loop` (at least 1, below 2^44), n_items and chunk. Later
 *  loops have greater numbers and begin when all workers have left the one before (a barrier). */
bool tnd_chunk_next(struct tnd_chunk_cursor *cursors, int index, int count, uint64_t loop,
                    int64_t n_items, int64_t chunk, int64_t *out_begin, int64_t *out_end);

#endif
