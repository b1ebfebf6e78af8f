/* SPDX-License-Identifier: MIT
 * Divides ranges into chunks; cursors hand them out. See chunks.h. */
#include "backends/chunks.h"

#include <stddef.h>

/* At the end of a range, two workers share what is left: its owner and one that helps. */
enum { SHARERS = 2, MOST_WHOLE_CHUNKS = 1 << (TND_CURSOR_ITEMS_BITS - 2) };

bool tnd_chunk_at(int64_t i, int64_t n_items, int64_t chunk, int count, int64_t *out_begin,
                  int64_t *out_end)
{
    chunk = chunk < 1 ? 1 : chunk;
    if (count <= 1) { /* a single worker need not finish together with others */
        *out_begin = i < n_items / chunk + 1 ? i * chunk : n_items;
        *out_end = n_items - *out_begin < chunk ? n_items : *out_begin + chunk;
        return *out_begin < n_items;
    }
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

/* relaxed: the barrier before the loop has published the items */
static bool take(struct tnd_chunk_cursor *cursor, uint64_t loop, int64_t n_items, int64_t chunk,
                 int sharers, int64_t *out_begin, int64_t *out_end)
{
    const uint64_t mask = (UINT64_C(1) << TND_CURSOR_ITEMS_BITS) - 1;
    uint64_t at = atomic_load_explicit(&cursor->at, memory_order_relaxed);
    uint64_t next;
    do {
        /* a cursor of an earlier loop: nothing was taken in this one */
        uint64_t i = at >> TND_CURSOR_ITEMS_BITS == loop ? at & mask : 0;
        if (!tnd_chunk_at((int64_t)i, n_items, chunk, sharers, out_begin, out_end)) {
            return false;
        }
        next = loop << TND_CURSOR_ITEMS_BITS | (i + 1);
    } while (!atomic_compare_exchange_weak_explicit(&cursor->at, &at, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* Takes from the owners' parts of items 0 .. n_items - 1 in a circle, beginning with owner `first`.
 * Owner i has cursor owners[i], or cursor i (NULL). */
static inline bool next_in_circle(struct tnd_chunk_cursor *cursors, const uint16_t *owners,
                                  int first, int count, uint64_t loop, int64_t n_items,
                                  int64_t chunk, int64_t *out_begin, int64_t *out_end)
{
    int64_t share = n_items / count;
    int64_t rest = n_items % count; /* the first parts have one item more */
    int64_t least = share / MOST_WHOLE_CHUNKS + 1;
    int sharers = count < SHARERS ? count : SHARERS;
    chunk = chunk > least ? chunk : least;
    for (int turn = 0; turn < count && n_items > 0; turn++) {
        int owner = (first + turn) % count;
        if (take(&cursors[owners != NULL ? owners[owner] : owner], loop, share + (owner < rest),
                 chunk, sharers, out_begin, out_end)) {
            int64_t begin = share * owner + (owner < rest ? owner : rest);
            *out_begin += begin;
            *out_end += begin;
            return true;
        }
    }
    return false;
}

bool tnd_chunk_next(struct tnd_chunk_cursor *cursors, int index, int count, uint64_t loop,
                    int64_t n_items, int64_t chunk, int64_t *out_begin, int64_t *out_end)
{
    return next_in_circle(cursors, NULL, index, count, loop, n_items, chunk, out_begin, out_end);
}

/* ---- several NUMA nodes ---- */

void tnd_chunk_nodes_finish(struct tnd_chunk_nodes *nodes, int n_workers)
{
    uint16_t n = 0;
    for (int node = 0; node < nodes->n; node++) {
        nodes->first[node] = n;
        for (int i = 0; i < n_workers; i++) {
            if (nodes->node[i] == node) {
                nodes->place[i] = (uint16_t)(n - nodes->first[node]);
                nodes->member[n++] = (uint16_t)i;
            }
        }
    }
    nodes->first[nodes->n] = n;
}

void tnd_chunk_share_begin(struct tnd_chunk_share *share, const struct tnd_chunk_nodes *nodes,
                           int count)
{
    share->nodes = nodes;
    for (int node = 0; node < nodes->n; node++) {
        int at = nodes->first[node];
        while (at < nodes->first[node + 1] && nodes->member[at] < count) {
            at++;
        }
        share->n_members[node] = (uint16_t)(at - nodes->first[node]);
        if (share->n_members[node] == 0 &&
            nodes->cpus_before[node] < nodes->cpus_before[node + 1]) {
            share->nodes = NULL;
            return;
        }
    }
}

int64_t tnd_chunk_node_row(const struct tnd_chunk_nodes *nodes, int i, int64_t rows)
{
    int64_t row = rows * nodes->cpus_before[i] / nodes->cpus_before[nodes->n];
    if (nodes->cpus_before[i] == nodes->cpus_before[nodes->n]) {
        return rows;
    }
    row = (row + TND_NODE_ROWS / 2) / TND_NODE_ROWS * TND_NODE_ROWS;
    return row < rows ? row : rows;
}

/* Tiles begin at multiples of their number of rows; rounding down gives the same row for every
 * tile. */
static int64_t first_item(const struct tnd_chunk_share *share, int node, int64_t n_items)
{
    const struct tnd_chunk_nodes *nodes = share->nodes;
    int64_t n_rows = share->row_end - share->row_begin;
    if (share->rows == 0 || n_rows <= 0) {
        return n_items * nodes->cpus_before[node] / nodes->cpus_before[nodes->n];
    }
    int64_t row = tnd_chunk_node_row(nodes, node, share->rows) - share->row_begin;
    row = row < 0 ? 0 : row > n_rows ? n_rows : row;
    return row * n_items / n_rows;
}

bool tnd_chunk_next_of_node(struct tnd_chunk_cursor *cursors, const struct tnd_chunk_share *share,
                            int index, uint64_t loop, int64_t n_items, int64_t chunk,
                            int64_t *out_begin, int64_t *out_end)
{
    const struct tnd_chunk_nodes *nodes = share->nodes;
    for (int turn = 0; turn < nodes->n; turn++) {
        int node = (nodes->node[index] + turn) % nodes->n;
        int count = share->n_members[node];
        int64_t begin = first_item(share, node, n_items);
        int64_t end = first_item(share, node + 1, n_items);
        if (begin < end &&
            next_in_circle(cursors, &nodes->member[nodes->first[node]], nodes->place[index] % count,
                           count, loop, end - begin, chunk, out_begin, out_end)) {
            *out_begin += begin;
            *out_end += begin;
            return true;
        }
    }
    return false;
}
