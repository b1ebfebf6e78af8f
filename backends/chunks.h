/* SPDX-License-Identifier: MIT
 * How the items of a stage are shared out. Each worker has a range of its own, one stretch, which
 * it takes chunk by chunk: what it reads is one stream of memory, and the same rows stay with the
 * same worker from run to run. Whoever has done all of its range helps the others with theirs.
 * Chunks have the size asked for, then smaller ones, so that workers end at nearly the same time.
 * On a machine of several NUMA nodes each node has a stretch, in proportion to its CPUs, which its
 * workers share out like that; they help another node when their own has nothing left. Shared by
 * the executor and the benches. */
#ifndef TND_CHUNKS_H
#define TND_CHUNKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TND_CURSOR_ITEMS_BITS = 20,
    TND_CHUNK_NODES = 64,     /* NUMA nodes of a machine */
    TND_CHUNK_WORKERS = 1024, /* of a pool */
    TND_NODE_ROWS = 64 /* nodes' rows of a weight begin at multiples: no tile has more rows */
};

/** How far a worker's range is handed out. Zero at the start; loops follow one another. */
struct tnd_chunk_cursor {
    _Alignas(64) _Atomic uint64_t at; /* the loop, and the chunks of it that were taken */
};

/** Items *out_begin .. *out_end - 1 of chunk `i` (0, 1, ..) when `count` workers share `n_items` in
 *  chunks of at most `chunk`; false when there are fewer chunks. The last chunk of each worker (and
 *  what fills no whole chunk) is cut up: each round of chunks takes half of what is left, down to
 *  single items. One worker alone takes whole chunks. */
bool tnd_chunk_at(int64_t i, int64_t n_items, int64_t chunk, int count, int64_t *out_begin,
                  int64_t *out_end);

/** The next chunk for worker `index` of `count`, each with one of `cursors`; false when all items
 *  are taken. All workers pass the same `loop` (at least 1, below 2^44), n_items and chunk. Later
 *  loops have greater numbers and begin when all workers have left the one before (a barrier). */
bool tnd_chunk_next(struct tnd_chunk_cursor *cursors, int index, int count, uint64_t loop,
                    int64_t n_items, int64_t chunk, int64_t *out_begin, int64_t *out_end);

/** Which workers run on which NUMA node. */
struct tnd_chunk_nodes {
    int n;                                    /* below 2: nothing is divided by nodes */
    int64_t cpus_before[TND_CHUNK_NODES + 1]; /* CPUs of nodes 0 .. i-1 */
    uint8_t node[TND_CHUNK_WORKERS];          /* of each worker */
    uint16_t place[TND_CHUNK_WORKERS];        /* of each worker among those of its node */
    uint16_t first[TND_CHUNK_NODES + 1];      /* of each node in `member` */
    uint16_t member[TND_CHUNK_WORKERS]; /* workers node by node, in the order of their number */
};

/** Fills in what follows from n, cpus_before and node, for workers 0 .. n_workers - 1. */
void tnd_chunk_nodes_finish(struct tnd_chunk_nodes *nodes, int n_workers);

/** How one worker takes part in loops over a range that is divided by nodes. */
struct tnd_chunk_share {
    const struct tnd_chunk_nodes *nodes; /* NULL: the range is not divided by nodes */
    int64_t rows;                        /* of the weight, 0: the items are no rows of a weight */
    int64_t row_begin, row_end;          /* of them, that the items stand for */
    uint16_t n_members[TND_CHUNK_NODES]; /* workers of each node that take part */
};

/** Workers 0 .. count - 1 take part. Where a node has none of them, nothing is divided by nodes. */
void tnd_chunk_share_begin(struct tnd_chunk_share *share, const struct tnd_chunk_nodes *nodes,
                           int count);

/** Row of a weight with `rows` rows at which node `i` of `nodes` begins; i = n: `rows`. It does not
 *  depend on workers or tokens, so that rows stay with their node. */
int64_t tnd_chunk_node_row(const struct tnd_chunk_nodes *nodes, int i, int64_t rows);

/** tnd_chunk_next for a share with nodes. */
bool tnd_chunk_next_of_node(struct tnd_chunk_cursor *cursors, const struct tnd_chunk_share *share,
                            int index, uint64_t loop, int64_t n_items, int64_t chunk,
                            int64_t *out_begin, int64_t *out_end);

#endif
