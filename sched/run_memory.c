/* SPDX-License-Identifier: MIT
 * Memory of runs: grown before a run begins, kept for the next one. */
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/tnd_status.h"
#include "sched/run.h"
#include "sched/stream.h"

enum { HUGE_PAGE = 2 * 1024 * 1024 };

/* Every product reads all dequantised weights: large pages avoid most TLB misses. madvise is best
 * effort. */
static bool grow(const struct tnd_run *run, struct tnd_run_memory *memory, size_t bytes)
{
    if (bytes <= memory->bytes) {
        return true;
    }
    tnd_run_unmap(run->registry, memory);
    tnd_free(memory->memory); /* before allocating, so that the two never coexist */
    memset(memory, 0, sizeof(*memory));
    bool is_large = bytes >= 2 * (size_t)HUGE_PAGE;
    size_t padded = bytes;
    if (is_large &&
        (!tnd_align_up(bytes, HUGE_PAGE, &padded) || !tnd_add_size(padded, HUGE_PAGE, &padded))) {
        return false;
    }
    memory->memory = tnd_alloc(padded);
    if (memory->memory == NULL) {
        return false;
    }
    memory->held = padded;
    memory->base = memory->memory;
    memory->bytes = bytes;
    if (is_large) {
        size_t misfit = (uintptr_t)memory->base % HUGE_PAGE;
        memory->base += misfit == 0 ? 0 : HUGE_PAGE - misfit;
        memory->bytes = padded - HUGE_PAGE;
        (void)madvise(memory->base, memory->bytes, MADV_HUGEPAGE);
    }
    return true;
}

static bool reserve_workers(struct tnd_run *run, int n_workers)
{
    if (n_workers <= run->n_workers) {
        return true;
    }
    struct tnd_run_worker *workers = tnd_calloc((size_t)n_workers, sizeof(*workers));
    struct tnd_chunk_cursor *cursors =
        tnd_calloc((size_t)n_workers * TND_CONCURRENT_NODES, sizeof(*cursors));
    if (workers == NULL || cursors == NULL) {
        tnd_free(workers);
        tnd_free(cursors);
        return false;
    }
    tnd_free(run->workers);
    tnd_free(run->cursors);
    run->workers = workers;
    run->cursors = cursors;
    run->n_workers = n_workers;
    return true;
}

static enum tandem_status out_of_memory(struct tandem_error *error, const char *what, size_t bytes)
{
    return tnd_error_set(error, TANDEM_E_MEMORY, "exec", (int64_t)bytes, 0,
                         "exec: out of memory for %s (%zu bytes)", what, bytes);
}

enum tandem_status tnd_run_reserve(struct tnd_run *run, int n_workers, struct tandem_error *error)
{
    size_t stride;
    size_t scratch;
    if (!tnd_align_up(run->steps->scratch_bytes, TND_CACHE_LINE, &stride) ||
        !tnd_mul_size(stride, (size_t)n_workers, &scratch)) {
        return tnd_error_set(error, TANDEM_E_OVERFLOW, "exec", n_workers, 0,
                             "exec: the scratch of %d workers does not fit into the address space",
                             n_workers);
    }
    if (!reserve_workers(run, n_workers)) {
        return out_of_memory(error, "the workers", (size_t)n_workers * sizeof(*run->workers));
    }
    if (!grow(run, &run->intermediates, run->steps->items.planned_bytes)) {
        return out_of_memory(error, "intermediate results", run->steps->items.planned_bytes);
    }
    if (!grow(run, &run->workspace, run->steps->workspace_bytes)) {
        return out_of_memory(error, "the workspace", run->steps->workspace_bytes);
    }
    if (!grow(run, &run->scratch, scratch)) {
        return out_of_memory(error, "the workers' scratch", scratch);
    }
    for (int i = 0; i < n_workers; i++) {
        run->workers[i].worker.scratch =
            stride == 0 ? NULL : run->scratch.base + (size_t)i * stride;
        run->workers[i].worker.scratch_bytes = stride;
    }
    return TANDEM_OK;
}

struct tnd_run *tnd_run_new(struct tnd_pool *pool)
{
    struct tnd_run *run = tnd_calloc(1, sizeof(*run));
    if (run == NULL) {
        return NULL;
    }
    run->pool = pool;
    if (!tnd_barrier_init(&run->groups, tnd_pool_park_counts(pool))) {
        tnd_free(run);
        return NULL;
    }
    if (!tnd_barrier_init(&run->stage, tnd_pool_park_counts(pool))) {
        tnd_barrier_fini(&run->groups);
        tnd_free(run);
        return NULL;
    }
    return run;
}

void tnd_run_free(struct tnd_run *run)
{
    if (run == NULL) {
        return;
    }
    tnd_barrier_fini(&run->stage);
    tnd_barrier_fini(&run->groups);
    tnd_steps_free(run->steps);
    tnd_run_unmap(run->registry, &run->intermediates);
    tnd_run_unmap(run->registry, &run->workspace);
    tnd_stream_unmap(run);
    tnd_free(run->intermediates.memory);
    tnd_free(run->workspace.memory);
    tnd_free(run->scratch.memory);
    tnd_free(run->workers);
    tnd_free(run->cursors);
    tnd_free(run);
}
