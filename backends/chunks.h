/* SPDX-License-Identifier: MIT
 * How the items of a stage are divided among workers. Each worker has a contiguous range of its
 * own, which it takes chunk by chunk: it reads one stream of memory, and the same rows stay with
 * the same worker from run to run. A worker that has finished its range helps the others. Chunks
 * have the requested size at first and get smaller towards the end, so that workers finish at
 * nearly the same time. On a machine with several NUMA nodes each node has a range in proportion to
 * its CPUs, which its workers divide in the same way; they help other nodes when their own has
 * nothing left. Shared by the executor and the benches. */
#ifndef TND_CHUNKS_H
#define TND_CHUNKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TND_CURSOR_ITEMS_BITS = 20,
    TND_CHUNK_NODES = 64,     /* most NUMA nodes of a machine */
    TND_CHUNK_WORKERS = 1024, /* most workers of a pool */
    TND_NODE_ROWS = 64 /* nodes' rows of a weight begin at multiples: no tile has more rows */
};

/** How much of a worker's range was handed out. Initially zero; loops follow one another. */
struct tnd_chunk_cursor {
    _Alignas(64) _Atomic uint64_t at; /* loop number, and chunks taken of it */
};

/** Items *out_begin .. *out_end - 1 of chunk `i` (0, 1, ..) when `count` workers share `n_items`
 * in chunks of at most `chunk`; false if there are fewer chunks. The last chunk of each worker (and
 * any incomplete one) is divided: each round of chunks takes half of what is left, down to single
 * items. A single worker takes whole chunks only. */
bool tnd_chunk_at(int64_t i, int64_t n_items, int64_t chunk, int count, int64_t *out_begin,
                  int64_t *out_end);

/** The next chunk for worker `index` of `count`, each with one of `cursors`; false when all items
 * are taken. All workers pass the same `loop` (at least 1, below 2^44), n_items and chunk. Later
 * loops have greater numbers and begin when all workers have left the previous one (a barrier). */
bool tnd_chunk_next(struct tnd_chunk_cursor *cursors, int index, int count, uint64_t loop,
                    int64_t n_items, int64_t chunk, int64_t *out_begin, int64_t *out_end);

/** Which workers run on which NUMA node. */
struct tnd_chunk_nodes {
    int n;                                    /* below 2: ranges are not divided by nodes */
    int64_t cpus_before[TND_CHUNK_NODES + 1]; /* CPUs of nodes 0 .. i-1 */
    uint8_t node[TND_CHUNK_WORKERS];          /* of each worker */
    uint16_t place[TND_CHUNK_WORKERS];        /* of each worker: its index within its node */
    uint16_t first[TND_CHUNK_NODES + 1];      /* index of each node's first worker in `member` */
    uint16_t member[TND_CHUNK_WORKERS];       /* workers node by node, in ascending order */
};

/** Fills in everything that follows from n, cpus_before and node, for workers 0 .. n_workers -
 * 1. */
void tnd_chunk_nodes_finish(struct tnd_chunk_nodes *nodes, int n_workers);

/** How a worker takes part in loops over a range that is divided by nodes. */
struct tnd_chunk_share {
    const struct tnd_chunk_nodes *nodes; /* NULL: the range is not divided by nodes */
    int64_t rows;                        /* of the weight; 0: items are not rows of a weight */
    int64_t row_begin, row_end;          /* the rows that the items stand for */
    uint16_t n_members[TND_CHUNK_NODES]; /* participating workers of each node */
};

/** For workers 0 .. count - 1. If a node has none of them, the range is not divided by nodes. */
void tnd_chunk_share_begin(struct tnd_chunk_share *share, const struct tnd_chunk_nodes *nodes,
                           int count);

/** First row of node `i` of `nodes` in a weight with `rows` rows; i = n: `rows`. It does not
 * depend on workers or tokens, so that rows stay with their node. */
int64_t tnd_chunk_node_row(const struct tnd_chunk_nodes *nodes, int i, int64_t rows);

/** tnd_chunk_next for ranges that are divided by nodes. */
bool tnd_chunk_next_of_node(struct tnd_chunk_cursor *cursors, const struct tnd_chunk_share *share,
                            int index, uint64_t loop, int64_t n_items, int64_t chunk,
                            int64_t *out_begin, int64_t *out_end);

#endif
