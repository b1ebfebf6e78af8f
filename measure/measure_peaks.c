/* SPDX-License-Identifier: MIT
 * Measuring peaks. The best of several runs counts: a peak is the rate of an undisturbed
 * machine. */
#include "measure/measure_peaks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/kernels/peak.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/tnd_status.h"
#include "tune/policy.h"

/* Work of one worker, and when it was done. */
struct share {
    uint64_t begin_ns, end_ns;
    double done;
    int64_t sink; /* keeps the compiler from removing the reads */
};

struct peak_run {
    const struct tnd_clock *clock;
    tnd_peak_fn *peak; /* NULL: reading */
    tnd_read_fn *read;
    const char *memory;
    size_t bytes;     /* of all workers together */
    int64_t rounds;   /* of arithmetic, or of reading */
    int n_streams;    /* of each worker that reads */
    const int *slice; /* index of the slice of memory that each worker reads, -1: none; NULL: its
                       * own */
    int count;
    struct share shares[TND_POOL_MAX_THREADS];
};

static void work(void *user, int index, int count)
{
    struct peak_run *run = user;
    struct share *share = &run->shares[index];
    size_t bytes = run->bytes / (size_t)count / 4096 * 4096;
    int slice = run->slice != NULL ? run->slice[index] : index;
    share->done = 0;
    share->begin_ns = run->clock->now_ns(run->clock);
    if (run->peak != NULL) {
        share->done = run->peak(run->rounds);
    } else if (slice >= 0) {
        const char *memory = run->memory + (size_t)slice * bytes;
        for (int64_t i = 0; i < run->rounds; i++) {
            share->sink += tnd_read_streams(run->read, memory, bytes, run->n_streams);
        }
        share->done = (double)bytes * (double)run->rounds;
    }
    share->end_ns = run->clock->now_ns(run->clock);
    if (index == 0) {
        run->count = count;
    }
}

/* 1e9 operations or bytes a second; 0 when not all workers ran, or the clock did not advance. */
static double run_once(struct tnd_pool *pool, struct peak_run *run, int threads, double *out_ns)
{
    double done = 0;
    run->count = 0;
    if (tnd_pool_run(pool, threads, work, run) != TANDEM_OK || run->count != threads) {
        return 0;
    }
    uint64_t begin_ns = UINT64_MAX;
    uint64_t end_ns = 0;
    for (int i = 0; i < threads; i++) {
        const struct share *share = &run->shares[i];
        if (share->done == 0) {
            continue; /* a worker without work */
        }
        begin_ns = share->begin_ns < begin_ns ? share->begin_ns : begin_ns;
        end_ns = share->end_ns > end_ns ? share->end_ns : end_ns;
        done += share->done;
    }
    *out_ns = end_ns > begin_ns ? (double)(end_ns - begin_ns) : 0;
    return end_ns > begin_ns ? done / *out_ns : 0;
}

/* Adds the best of several runs to the table; `readers` of the threads have work. */
static enum tandem_status measure_unit(struct tnd_pool *pool, struct peak_run *run,
                                       const char *unit, int threads, int readers, double budget_ns,
                                       int64_t when, struct tandem_table *table)
{
    struct tnd_peak best = {"", readers, 0, 0, when};
    double run_ns = 0;
    uint64_t begin_ns = run->clock->now_ns(run->clock);
    snprintf(best.unit, sizeof(best.unit), "%s", unit);
    run->n_streams = 1;
    (void)run_once(pool, run, threads, &run_ns); /* to warm up, and to see how long a run takes */
    const double wanted_ns = 1e9 * TND_BENCH_SHORTEST_TRIAL_S;
    if (run_ns > 0 && run_ns < wanted_ns) {
        run->rounds = (int64_t)fmin((double)run->rounds * wanted_ns / run_ns, 1e9);
    }
    for (uint32_t i = 0; i < TND_PEAK_RUNS && run_ns > 0; i++) {
        run->n_streams = TND_READ_STREAMS[i % TND_READ_TRIALS];
        best.rate = fmax(best.rate, run_once(pool, run, threads, &run_ns));
        best.count++;
        if (i >= 1 && (double)(run->clock->now_ns(run->clock) - begin_ns) >= budget_ns) {
            break;
        }
    }
    return best.rate > 0 ? tnd_table_add_peak(table, &best) : TANDEM_OK;
}

static void touch(void *user, int index, int count)
{
    struct peak_run *run = user;
    size_t bytes = run->bytes / (size_t)count / 4096 * 4096;
    memset((char *)run->memory + (size_t)index * bytes, 1, bytes);
}

/* A size that exceeds the caches of all cores; 0 when it cannot be filled within the budget. */
static size_t memory_bytes(int threads, double budget_s)
{
    double l3_bytes = (double)tnd_cpu_caches().l3_bytes;
    double wanted = fmax(fmax(TND_PEAK_CACHES * l3_bytes, threads * l3_bytes), TND_LARGE_BYTES);
    double most = fmin(budget_s * TND_PEAK_BYTES_A_SECOND, (double)tnd_cpu_ram_bytes() / 8);
    return most >= fmax(2 * l3_bytes, TND_LARGE_BYTES) ? (size_t)fmin(wanted, most) : 0;
}

/* Measures arithmetic, then reading, on one thread count. */
static enum tandem_status measure_threads(struct tnd_pool *pool, struct peak_run *run, int threads,
                                          double part_ns, int64_t when, struct tandem_table *table)
{
    const struct tnd_peaks peaks = tnd_peaks_find();
    const size_t all = run->bytes;
    const struct {
        const char *unit;
        tnd_peak_fn *peak;
        int64_t rounds;
        size_t bytes;
    } units[] = {{"fma", peaks.fma, TND_REFERENCE_ROUNDS, 0},
                 {peaks.int8_unit, peaks.int8, TND_REFERENCE_ROUNDS, 0},
                 {"bf16", peaks.bf16, TND_REFERENCE_ROUNDS, 0},
                 {"cache", NULL, 1, (size_t)TND_PEAK_CACHE_BYTES * (size_t)threads},
                 {"read", NULL, 1, all}};
    run->read = peaks.read;
    enum tandem_status status = TANDEM_OK;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && status == TANDEM_OK; i++) {
        run->peak = units[i].peak;
        run->rounds = units[i].rounds;
        run->bytes = units[i].bytes;
        if (run->peak != NULL || (run->bytes > 0 && run->bytes <= all)) {
            status = measure_unit(pool, run, units[i].unit, threads, threads, part_ns, when, table);
        }
    }
    run->bytes = all;
    return status;
}

/* ---- several NUMA nodes ---- */

/* One node's workers read memory that they touched first, then memory of another node. */
static enum tandem_status measure_one_node(struct tnd_pool *pool, struct peak_run *run,
                                           double part_ns, int64_t when, struct tandem_table *table)
{
    const struct tnd_chunk_nodes *nodes = tnd_pool_nodes(pool);
    int slice[TND_POOL_MAX_THREADS];
    int most = tnd_pool_size(pool);
    int n_others = nodes->first[2] - nodes->first[1];
    run->slice = slice;
    enum tandem_status status = TANDEM_OK;
    for (int of_other = 0; of_other < 2 && status == TANDEM_OK; of_other++) {
        for (int i = 0; i < most; i++) {
            int from = of_other ? nodes->member[nodes->first[1] + nodes->place[i] % n_others] : i;
            slice[i] = nodes->node[i] == 0 ? from : -1;
        }
        status = measure_unit(pool, run, of_other ? TND_NUMA_UNIT_OTHER : TND_NUMA_UNIT_OWN, most,
                              nodes->first[1], part_ns, when, table);
    }
    run->slice = NULL;
    return status;
}

/* All workers read memory that they touched first, then memory interleaved over all nodes; the
 * latter is skipped if the system refuses. */
static enum tandem_status measure_all_nodes(struct tnd_pool *pool, struct peak_run *run,
                                            double part_ns, int64_t when,
                                            struct tandem_table *table)
{
    int most = tnd_pool_size(pool);
    const char *own = run->memory;
    TND_TRY(measure_unit(pool, run, TND_NUMA_UNIT_ALL_OWN, most, most, part_ns, when, table));
    void *pages =
        mmap(NULL, run->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    enum tandem_status status = TANDEM_OK;
    if (pages != MAP_FAILED && tnd_pool_interleave(pool, pages, run->bytes)) {
        (void)madvise(pages, run->bytes, MADV_HUGEPAGE);
        run->memory = pages;
        status = tnd_pool_run(pool, most, touch, run);
        if (status == TANDEM_OK) {
            status =
                measure_unit(pool, run, TND_NUMA_UNIT_INTERLEAVE, most, most, part_ns, when, table);
        }
        run->memory = own;
    }
    if (pages != MAP_FAILED) {
        munmap(pages, run->bytes);
    }
    return status;
}

static enum tandem_status measure_nodes(struct tnd_pool *pool, struct peak_run *run, double part_ns,
                                        int64_t when, struct tandem_table *table)
{
    const struct tnd_chunk_nodes *nodes = tnd_pool_nodes(pool);
    if (nodes == NULL || run->bytes == 0 || nodes->first[1] == 0 ||
        nodes->first[2] == nodes->first[1]) {
        return TANDEM_OK; /* one node, no memory, or no worker on the first two nodes */
    }
    run->peak = NULL;
    run->rounds = 1;
    TND_TRY(measure_one_node(pool, run, part_ns, when, table));
    return measure_all_nodes(pool, run, part_ns, when, table);
}

enum tandem_status tnd_measure_peaks(struct tnd_pool *pool, const struct tnd_clock *clock,
                                     const int *thread_counts, int n_thread_counts, double budget_s,
                                     int64_t when, struct tandem_table *table,
                                     struct tandem_error *error)
{
    enum { UNITS = 5, NUMA_UNITS = 4 };
    uint64_t begin_ns = clock->now_ns(clock);
    int most = tnd_pool_size(pool);
    struct peak_run *run = tnd_calloc(1, sizeof(*run));
    if (run == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "peaks", (int64_t)sizeof(*run), 0,
                             "measuring peaks: no memory");
    }
    run->clock = clock;
    run->bytes = memory_bytes(most, budget_s);
    char *memory = run->bytes > 0 ? tnd_alloc(run->bytes + TND_PEAK_PAGE) : NULL;
    enum tandem_status status = TANDEM_OK;
    if (memory == NULL) {
        run->bytes = 0; /* reading is not measured */
    } else {
        run->memory = memory + (TND_PEAK_PAGE - (uintptr_t)memory % TND_PEAK_PAGE);
        (void)madvise((void *)run->memory, run->bytes, MADV_HUGEPAGE);
        status = tnd_pool_run(pool, most, touch, run);
    }
    double left_ns = 1e9 * budget_s - (double)(clock->now_ns(clock) - begin_ns);
    int n_parts = UNITS * n_thread_counts + (tnd_pool_nodes(pool) != NULL ? NUMA_UNITS : 0);
    double part_ns = left_ns / n_parts;
    for (int i = 0; i < n_thread_counts && status == TANDEM_OK; i++) {
        if (thread_counts[i] <= most) {
            status = measure_threads(pool, run, thread_counts[i], part_ns, when, table);
        }
    }
    if (status == TANDEM_OK) {
        status = measure_nodes(pool, run, part_ns, when, table);
    }
    tnd_free(memory);
    tnd_free(run);
    return status;
}
