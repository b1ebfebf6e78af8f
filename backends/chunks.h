/* SPDX-License-Identifier: MIT
 * How the items of a stage are shared out: chunks of the size asked for, then smaller ones,
 * so that workers end at nearly the same time. Pure arithmetic, shared by the executor and the
 * benches. */
#ifndef TND_CHUNKS_H
#define TND_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

/** Items *out_begin .. *out_end - 1 of chunk `i` (0, 1, ..) when `count` workers share `n_items` in
 *  chunks of at most `chunk`; false when there are fewer chunks. The last chunk of each worker (and
 *  what fills no whole chunk) is cut up: each round of chunks takes half of what is left, down to
 *  single items. */
static inline bool tnd_chunk_at(int64_t i, int64_t n_items, int64_t chunk, int count,
                                int64_t *out_begin, int64_t *out_end)
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

#endif
