/* SPDX-License-Identifier: MIT
 * Transfers with the backend's own functions, hand-offs with the barriers of the executor.
 * Medians. */
#include "measure/measure_moves.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/tuner.h"
#include "base/tnd_assert.h"
#include "base/alloc.h"
#include "base/tnd_status.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/barrier.h"
#include "measure/measure.h"
#include "tune/policy.h"

static double us_since(const struct tnd_clock *clock, uint64_t begin_ns)
{
    return (double)(clock->now_ns(clock) - begin_ns) / 1e3;
}

/* ---- transfers ---- */

struct link {
    const struct tnd_registry *registry;
    int slot;
    tandem_backend *backend;
    const struct tnd_clock *clock;
    struct tandem_place mirror; /* of `buffer` */
    char *buffer;
    double samples[TND_MOVE_REPEATS];
    double scratch[TND_MOVE_REPEATS];
};

static enum tandem_status download(struct link *link, size_t bytes, double *out_us,
                                   struct tandem_error *error)
{
    uint64_t ticket = 0;
    uint64_t begin_ns = link->clock->now_ns(link->clock);
    TND_TRY(tnd_backend_download(link->backend, link->mirror, link->buffer, bytes, &ticket, error));
    TND_TRY(tnd_backend_sync(link->backend, ticket, error));
    *out_us = us_since(link->clock, begin_ns);
    return TANDEM_OK;
}

/* An upload has ended when a download after it has. */
static enum tandem_status upload(struct link *link, size_t bytes, double probe_us, double *out_us,
                                 struct tandem_error *error)
{
    double behind_us = 0;
    uint64_t begin_ns = link->clock->now_ns(link->clock);
    TND_TRY(tnd_backend_upload(link->backend, link->mirror, link->buffer, bytes, error));
    double call_us = us_since(link->clock, begin_ns);
    TND_TRY(download(link, TND_TRANSFER_PROBE_BYTES, &behind_us, error));
    double us = us_since(link->clock, begin_ns) - probe_us;
    *out_us = us > call_us ? us : call_us;
    return TANDEM_OK;
}

static enum tandem_status repeat(struct link *link, enum tnd_direction direction, size_t bytes,
                                 double probe_us, struct tnd_stage_time *out,
                                 struct tandem_error *error)
{
    uint64_t begin_ns = link->clock->now_ns(link->clock);
    double warm_up;
    int n = 0;
    TND_TRY(direction == TND_UPLOAD ? upload(link, bytes, probe_us, &warm_up, error)
                                    : download(link, bytes, &warm_up, error));
    while (n < TND_MOVE_REPEATS &&
           (n < TND_MEASURE_REPEATS ||
            link->clock->now_ns(link->clock) - begin_ns < (uint64_t)(1e9 * TND_BENCH_TRIAL_S))) {
        TND_TRY(direction == TND_UPLOAD ? upload(link, bytes, probe_us, &link->samples[n], error)
                                        : download(link, bytes, &link->samples[n], error));
        n++;
    }
    *out = tnd_stage_time_of(link->samples, (uint32_t)n, link->scratch);
    return TANDEM_OK;
}

enum tandem_status tnd_measure_round_trip(const struct tnd_registry *registry, int slot,
                                          const struct tnd_clock *clock, double *out_us,
                                          struct tandem_error *error)
{
    tandem_backend *backend = tnd_registry_backend(registry, slot);
    *out_us = 0;
    if (backend == NULL || !tnd_backend_is_own(backend)) {
        return TANDEM_OK;
    }
    struct link *link = tnd_calloc(1, sizeof(*link));
    char *memory = tnd_calloc(1, TND_TRANSFER_LEAST_BYTES);
    struct tnd_stage_time time = {0, 0, 0};
    enum tandem_status status = TANDEM_OK;
    if (link == NULL || memory == NULL) {
        status = tnd_error_set(error, TANDEM_E_MEMORY, "transfers", TND_TRANSFER_LEAST_BYTES, 0,
                               "measuring transfers: no memory");
    } else {
        link->backend = backend;
        link->clock = clock;
        link->buffer = memory;
        status = tnd_backend_map(backend, TND_TRANSFER_LEAST_BYTES, &link->mirror.handle, error);
    }
    if (status == TANDEM_OK) {
        status = tnd_backend_upload(backend, link->mirror, memory, TND_TRANSFER_LEAST_BYTES, error);
        if (status == TANDEM_OK) {
            status = repeat(link, TND_DOWNLOAD, TND_TRANSFER_PROBE_BYTES, 0, &time, error);
        }
        tnd_backend_unmap(backend, link->mirror.handle);
    }
    *out_us = time.median_us;
    tnd_free(memory);
    tnd_free(link);
    return status;
}

double tnd_without_round_trip(double us, double round_trip_us)
{
    double rest = us - round_trip_us;
    return rest > us / 4 ? rest : us / 4;
}

/* One size, both directions, through a mirror of exactly that size. */
static enum tandem_status measure_size(struct link *link, size_t bytes, int64_t when,
                                       struct tandem_table *table, struct tandem_error *error)
{
    const char *name = tnd_registry_name(link->registry, link->slot);
    struct tnd_stage_time probe = {0, 0, 0};
    TND_TRY(tnd_backend_map(link->backend, bytes, &link->mirror.handle, error));
    enum tandem_status status =
        tnd_backend_upload(link->backend, link->mirror, link->buffer, bytes, error);
    if (status == TANDEM_OK) {
        status = repeat(link, TND_DOWNLOAD, TND_TRANSFER_PROBE_BYTES, 0, &probe, error);
    }
    for (int d = 0; d < TND_DIRECTIONS && status == TANDEM_OK; d++) {
        struct tnd_stage_time time;
        status = repeat(link, (enum tnd_direction)d, bytes, probe.median_us, &time, error);
        if (status == TANDEM_OK) {
            struct tnd_sample sample = {.m = (int64_t)bytes,
                                        .median_us = time.median_us,
                                        .spread_us = time.spread_us,
                                        .count = time.count,
                                        .when = when};
            status = tnd_table_add_transfer(table, name, (enum tnd_direction)d, &sample);
        }
    }
    tnd_backend_unmap(link->backend, link->mirror.handle);
    return status;
}

double tnd_measure_transfers_s(int64_t most_bytes)
{
    double s = 0;
    for (int64_t bytes = TND_TRANSFER_LEAST_BYTES; bytes <= most_bytes; bytes *= 4) {
        s += 2 * TND_BENCH_TRIAL_S; /* up and down */
    }
    return 2 * s; /* buffers, warm-ups, round trips and launches */
}

enum tandem_status tnd_measure_transfers(const struct tnd_registry *registry, int slot,
                                         const struct tnd_clock *clock, int64_t most_bytes,
                                         int64_t when, struct tandem_table *table,
                                         struct tandem_error *error)
{
    tandem_backend *backend = tnd_registry_backend(registry, slot);
    if (backend == NULL || !tnd_backend_is_own(backend)) {
        return TANDEM_OK;
    }
    struct link *link = tnd_calloc(1, sizeof(*link));
    char *memory = tnd_alloc((size_t)most_bytes + TND_ALIGNMENT);
    enum tandem_status status = TANDEM_OK;
    if (link == NULL || memory == NULL) {
        status =
            tnd_error_set(error, TANDEM_E_MEMORY, "transfers", most_bytes, 0,
                          "measuring transfers: no memory for %lld bytes", (long long)most_bytes);
    } else {
        link->registry = registry;
        link->slot = slot;
        link->backend = backend;
        link->clock = clock;
        link->buffer = memory + (TND_ALIGNMENT - (uintptr_t)memory % TND_ALIGNMENT) % TND_ALIGNMENT;
        memset(memory, 1, (size_t)most_bytes + TND_ALIGNMENT);
    }
    for (int64_t bytes = TND_TRANSFER_LEAST_BYTES; bytes <= most_bytes && status == TANDEM_OK;
         bytes *= 4) {
        status = measure_size(link, (size_t)bytes, when, table, error);
        if (status == TANDEM_E_DEVICE_MEMORY && bytes > TND_TRANSFER_LEAST_BYTES) {
            status = TANDEM_OK;
            break;
        }
    }
    tnd_free(memory);
    tnd_free(link);
    return status;
}

/* ---- hand-offs ---- */

struct handoff {
    struct tnd_barrier barrier;
    struct tnd_spin spin; /* of worker 0, and of the others in the spinning case */
    const struct tnd_clock *clock;
    bool asleep;
    atomic_bool is_over;
    atomic_bool is_disturbed; /* another program ran on the CPU of a spinning thread */
    unsigned ticket;
    int count;
    uint32_t n_samples;
    double samples[TND_MOVE_REPEATS];
    double scratch[TND_MOVE_REPEATS];
};

static void wait_for_sleepers(struct handoff *handoff, int count)
{
    const struct tnd_clock *clock = handoff->clock;
    while ((int)atomic_load(&handoff->barrier.releases.sleepers) < count - 1) {
    }
    /* The others have announced that they sleep; gives them time to do so. */
    for (uint64_t begin = clock->now_ns(clock); clock->now_ns(clock) - begin < 50000;) {
    }
}

static void lead(struct handoff *handoff, int count)
{
    TND_ASSERT(count >= 2);
    const struct tnd_clock *clock = handoff->clock;
    int rounds = handoff->asleep ? 1 : TND_HANDOFF_ROUNDS;
    uint64_t first_ns = clock->now_ns(clock);
    handoff->count = count;
    for (int i = 0; i < TND_MOVE_REPEATS &&
                    (i < TND_MEASURE_REPEATS ||
                     clock->now_ns(clock) - first_ns < (uint64_t)(1e9 * TND_BENCH_TRIAL_S));
         i++) {
        if (handoff->asleep) {
            wait_for_sleepers(handoff, count);
        }
        uint64_t begin_ns = clock->now_ns(clock);
        for (int r = 0; r < rounds; r++) {
            tnd_barrier_release(&handoff->barrier);
            tnd_barrier_gather(&handoff->barrier, count, &handoff->spin);
        }
        handoff->samples[handoff->n_samples++] = us_since(clock, begin_ns) / rounds;
    }
    /* Release: pairs with the acquire in `follow`, also through the barrier. */
    atomic_store_explicit(&handoff->is_over, true, memory_order_release);
    tnd_barrier_release(&handoff->barrier);
    tnd_barrier_gather(&handoff->barrier, count, &handoff->spin);
}

static void follow(struct handoff *handoff, int count)
{
    TND_ASSERT(count >= 2);
    static const struct tnd_spin none = {.polls = 0};
    unsigned ticket = handoff->ticket;
    bool is_over = false;
    while (!is_over) {
        tnd_barrier_pass(&handoff->barrier, &ticket, handoff->asleep ? &none : &handoff->spin);
        is_over = atomic_load_explicit(&handoff->is_over, memory_order_acquire);
        tnd_barrier_arrive(&handoff->barrier, count);
    }
}

/* Worker 0 hands work to the others and waits for them, again and again. */
static void meet(void *user, int index, int count)
{
    struct handoff *handoff = user;
    const struct tnd_clock *clock = handoff->clock;
    const uint64_t begin_ns = clock->now_ns(clock);
    const uint64_t ran_ns = clock->thread_ns(clock);
    if (index == 0) {
        lead(handoff, count);
    } else {
        follow(handoff, count);
    }
    const double ns = (double)(clock->now_ns(clock) - begin_ns);
    if (!handoff->asleep &&
        (double)(clock->thread_ns(clock) - ran_ns) < (1 - TND_QUIET_LOST) * ns) {
        atomic_store(&handoff->is_disturbed, true);
    }
}

static enum tandem_status hand_over(struct tnd_pool *pool, struct handoff *handoff, int threads,
                                    bool asleep, struct tnd_stage_time *out,
                                    struct tandem_error *error)
{
    if (!tnd_barrier_init(&handoff->barrier, NULL)) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "hand-offs", 0, 0,
                             "measuring hand-offs: no barrier");
    }
    handoff->spin = tnd_pool_spin(pool, threads);
    handoff->ticket = tnd_barrier_ticket(&handoff->barrier);
    handoff->asleep = asleep;
    atomic_store_explicit(&handoff->is_over, false, memory_order_relaxed); /* no worker runs yet */
    handoff->n_samples = 0;
    enum tandem_status status = tnd_pool_run(pool, threads, meet, handoff);
    tnd_barrier_fini(&handoff->barrier);
    *out = tnd_stage_time_of(handoff->samples, handoff->n_samples, handoff->scratch);
    return status;
}

enum tandem_status tnd_measure_handoff(struct tnd_pool *pool, const struct tnd_clock *clock,
                                       int threads, int64_t when, struct tandem_table *table,
                                       struct tandem_error *error)
{
    struct tnd_stage_time spinning;
    struct tnd_stage_time sleeping;
    threads = threads < tnd_pool_size(pool) ? threads : tnd_pool_size(pool);
    if (threads < 2) {
        return TANDEM_OK;
    }
    struct handoff *handoff = tnd_calloc(1, sizeof(*handoff));
    if (handoff == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "hand-offs", (int64_t)sizeof(*handoff), 0,
                             "measuring hand-offs: no memory");
    }
    handoff->clock = clock;
    enum tandem_status status = hand_over(pool, handoff, threads, false, &spinning, error);
    if (status == TANDEM_OK) {
        status = hand_over(pool, handoff, threads, true, &sleeping, error);
    }
    int met = handoff->count;
    bool is_disturbed = atomic_load(&handoff->is_disturbed);
    tnd_free(handoff);
    TND_TRY(status);
    /* If some threads could not be started, the team is not the one to measure; and the time until
     * threads that wait for a CPU meet is no hand-off. */
    if (met == threads && !is_disturbed) {
        struct tnd_handoff measured = {threads, spinning.median_us, sleeping.median_us,
                                       sleeping.count, when};
        status = tnd_table_add_handoff(table, &measured);
    }
    return status;
}
