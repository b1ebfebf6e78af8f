/* SPDX-License-Identifier: MIT
 * Memory plan. First a walk through the steps with an allocator of the two-level segregated-fit
 * kind (Masmano et al. 2004: free blocks in bins by size, neighbours merged at once), O(1) per
 * record. If that wastes much against the lower bound, memplan_by_size.c tries the largest records
 * first, within a time budget. Start at tnd_memplan. */
#include "ggml-like/memplan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/tnd_assert.h"
#include "ggml-like/memplan_internal.h"

#define UNIT       64       /* every size and offset is a multiple: one cache line */
#define N_BINS     (64 * 4) /* every power of two in 4 parts */
#define SCAN_LIMIT 16       /* most blocks tried per bin: bounds the time per record */
#define NO_BLOCK   (-1)

struct block {
    size_t offset;
    size_t bytes;
    int before; /* neighbours by address */
    int behind;
    int previous; /* in the bin, if free */
    int next;
    bool is_free;
};

struct heap {
    struct block *blocks;
    int n_blocks; /* used so far */
    int unused;   /* list (by `next`) of the entries of merged blocks */
    int top;      /* block with the highest address */
    int bins[N_BINS];
    uint64_t occupied[N_BINS / 64];
};

static int bin_of(size_t bytes)
{
    const uint64_t units = bytes / UNIT;
    TND_ASSERT(units > 0 && bytes % UNIT == 0);
    const int power = 63 - __builtin_clzll(units);
    const uint64_t part = power >= 2 ? units >> (power - 2) : units << (2 - power);
    return power * 4 + (int)(part & 3);
}

static void bin_insert(struct heap *heap, int i)
{
    struct block *block = &heap->blocks[i];
    const int bin = bin_of(block->bytes);
    TND_ASSERT(0 <= i && i < heap->n_blocks && !block->is_free);
    block->is_free = true;
    block->previous = NO_BLOCK;
    block->next = heap->bins[bin];
    if (block->next != NO_BLOCK) {
        heap->blocks[block->next].previous = i;
    }
    heap->bins[bin] = i;
    heap->occupied[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(struct heap *heap, int i)
{
    struct block *block = &heap->blocks[i];
    const int bin = bin_of(block->bytes);
    block->is_free = false;
    if (block->next != NO_BLOCK) {
        heap->blocks[block->next].previous = block->previous;
    }
    if (block->previous != NO_BLOCK) {
        heap->blocks[block->previous].next = block->next;
    } else {
        heap->bins[bin] = block->next;
        if (block->next == NO_BLOCK) {
            heap->occupied[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
        }
    }
}

/* The smallest block of at least `bytes` among the first SCAN_LIMIT of a bin. */
static int bin_search(const struct heap *heap, int bin, size_t bytes)
{
    int best = NO_BLOCK;
    int n_seen = 0;
    for (int i = heap->bins[bin]; i != NO_BLOCK && n_seen < SCAN_LIMIT;
         i = heap->blocks[i].next, n_seen++) {
        const size_t size = heap->blocks[i].bytes;
        if (size >= bytes && (best == NO_BLOCK || size < heap->blocks[best].bytes)) {
            best = i;
            if (size == bytes) {
                break;
            }
        }
    }
    return best;
}

/* The first non-empty bin from `bin` on; N_BINS if there is none. */
static int bin_next(const struct heap *heap, int bin)
{
    while (bin < N_BINS) {
        const uint64_t word = heap->occupied[bin / 64] >> (bin % 64);
        if (word != 0) {
            return bin + __builtin_ctzll(word);
        }
        bin = (bin / 64 + 1) * 64;
    }
    return N_BINS;
}

static int block_new(struct heap *heap)
{
    int i = heap->unused;
    if (i != NO_BLOCK) {
        heap->unused = heap->blocks[i].next;
    } else {
        i = heap->n_blocks++;
    }
    return i;
}

/* Allocates a block at the end of the heap; a free top block becomes part of it. */
static int heap_extend(struct heap *heap, size_t bytes)
{
    int i = heap->top;
    if (i != NO_BLOCK && heap->blocks[i].is_free) {
        bin_remove(heap, i);
        heap->blocks[i].bytes = bytes;
        return i;
    }
    const int before = heap->top;
    i = block_new(heap);
    heap->blocks[i] = (struct block){0, bytes, before, NO_BLOCK, NO_BLOCK, NO_BLOCK, false};
    if (before != NO_BLOCK) {
        heap->blocks[i].offset = heap->blocks[before].offset + heap->blocks[before].bytes;
        heap->blocks[before].behind = i;
    }
    heap->top = i;
    return i;
}

static int heap_take(struct heap *heap, size_t bytes)
{
    int bin = bin_of(bytes);
    int i = bin_search(heap, bin, bytes);
    if (i == NO_BLOCK) {
        bin = bin_next(heap, bin + 1);
        i = bin < N_BINS ? bin_search(heap, bin, bytes) : NO_BLOCK;
    }
    if (i == NO_BLOCK) {
        return heap_extend(heap, bytes);
    }
    bin_remove(heap, i);
    if (heap->blocks[i].bytes > bytes) {
        const int rest = block_new(heap);
        struct block *block = &heap->blocks[i];
        heap->blocks[rest] = (struct block){block->offset + bytes,
                                            block->bytes - bytes,
                                            i,
                                            block->behind,
                                            NO_BLOCK,
                                            NO_BLOCK,
                                            false};
        if (block->behind != NO_BLOCK) {
            heap->blocks[block->behind].before = rest;
        } else {
            heap->top = rest;
        }
        block->behind = rest;
        block->bytes = bytes;
        bin_insert(heap, rest);
    }
    return i;
}

/* Merges block i with the next one, whose entry becomes unused. */
static void merge_behind(struct heap *heap, int i)
{
    struct block *block = &heap->blocks[i];
    const int gone = block->behind;
    TND_ASSERT(gone != NO_BLOCK && heap->blocks[gone].before == i);
    TND_ASSERT(block->offset + block->bytes == heap->blocks[gone].offset);
    block->bytes += heap->blocks[gone].bytes;
    block->behind = heap->blocks[gone].behind;
    if (block->behind != NO_BLOCK) {
        heap->blocks[block->behind].before = i;
    } else {
        heap->top = i;
    }
    heap->blocks[gone].next = heap->unused;
    heap->unused = gone;
}

static void heap_release(struct heap *heap, int i)
{
    TND_ASSERT(0 <= i && i < heap->n_blocks && !heap->blocks[i].is_free);
    const int behind = heap->blocks[i].behind;
    if (behind != NO_BLOCK && heap->blocks[behind].is_free) {
        bin_remove(heap, behind);
        merge_behind(heap, i);
    }
    const int before = heap->blocks[i].before;
    if (before != NO_BLOCK && heap->blocks[before].is_free) {
        bin_remove(heap, before);
        merge_behind(heap, before);
        i = before;
    }
    bin_insert(heap, i);
}

/* Working memory of a plan, in a single allocation. */
struct work {
    struct heap heap;
    int *dying;      /* by step: first of the records whose last step it is */
    int *next_dying; /* by record */
    int *block_of;   /* by record */
};

static struct work *work_new(int n_usages, int n_steps)
{
    const size_t n = (size_t)n_usages;
    const size_t steps = (size_t)n_steps;
    struct work *work = tnd_alloc(sizeof(*work) + (2 * n + 2) * sizeof(struct block) +
                                  (2 * n + steps) * sizeof(int));
    if (work == NULL) {
        return NULL;
    }
    work->heap.blocks = (struct block *)(work + 1);
    work->dying = (int *)(work->heap.blocks + 2 * n + 2);
    work->next_dying = work->dying + steps;
    work->block_of = work->next_dying + n;
    work->heap.n_blocks = 0;
    work->heap.unused = NO_BLOCK;
    work->heap.top = NO_BLOCK;
    memset(work->heap.bins, 0xff, sizeof(work->heap.bins)); /* NO_BLOCK */
    memset(work->heap.occupied, 0, sizeof(work->heap.occupied));
    memset(work->dying, 0xff, steps * sizeof(int));
    return work;
}

/* Walks through the steps: a record's first step allocates its block, its last step frees it.
 * Returns the size of the heap and the lower bound, the largest sum of bytes alive at one step. */
static size_t plan_by_step(struct work *work, struct tnd_usage *usages, int n_usages, int n_steps,
                           size_t *out_bound)
{
    size_t live = 0;
    size_t total = 0;
    *out_bound = 0;
    int i = 0;
    for (int step = 0; step < n_steps; step++) {
        for (; i < n_usages && usages[i].first == step; i++) {
            const int block = heap_take(&work->heap, usages[i].bytes);
            usages[i].offset = work->heap.blocks[block].offset;
            const size_t end = usages[i].offset + usages[i].bytes;
            total = end > total ? end : total;
            live += usages[i].bytes;
            work->block_of[i] = block;
            work->next_dying[i] = work->dying[usages[i].last];
            work->dying[usages[i].last] = i;
        }
        *out_bound = live > *out_bound ? live : *out_bound;
        for (int dead = work->dying[step]; dead >= 0; dead = work->next_dying[dead]) {
            heap_release(&work->heap, work->block_of[dead]);
            live -= usages[dead].bytes;
        }
    }
    return total;
}

enum tandem_status tnd_memplan(struct tnd_usage *usages, int n_usages, int n_steps,
                               size_t *out_total)
{
    if (n_usages == 0) {
        *out_total = 0;
        return TANDEM_OK;
    }
    struct work *work = work_new(n_usages, n_steps);
    if (work == NULL) {
        return TANDEM_E_MEMORY;
    }
    size_t bound;
    size_t total = plan_by_step(work, usages, n_usages, n_steps, &bound);
    tnd_free(work);
    /* only worth the time if the saving is noticeable */
    const size_t waste = total - bound;
    if (waste > bound / 32 && waste > 64 * 1024) {
        total = tnd_memplan_by_size(usages, n_usages, n_steps, total);
    }
    *out_total = total;
    return TANDEM_OK;
}
