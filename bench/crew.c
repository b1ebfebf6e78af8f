/* SPDX-License-Identifier: MIT
 * Threads of the kernel bench; see crew.h. */
#include "bench/crew.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/chunks.h"
#include "sched/idle_cpu.h"

enum { THREADS_MAX = 64 };

struct member {
    struct tandem_worker base;
    struct tnd_crew *crew;
    pthread_t thread;
    double end_s; /* when it was done with the last job */
};

struct tnd_crew {
    int n_threads;
    tnd_crew_fn *job; /* NULL: go home */
    void *user;
    atomic_int generation; /* release: job and user are set; acquired by the members */
    atomic_int n_done;     /* release: a member's results; acquired by the caller */
    uint64_t loop;         /* the job's number, for the cursors */
    struct tnd_chunk_cursor cursors[THREADS_MAX];
    struct tnd_cpu_claims claims; /* threads of a job run on one CPU each */
    struct member members[THREADS_MAX];
};

static bool crew_next(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                      int64_t *out_begin, int64_t *out_end)
{
    struct tnd_crew *crew = ((struct member *)worker)->crew;
    return tnd_chunk_next(crew->cursors, worker->index, worker->count, crew->loop, n_items, chunk,
                          out_begin, out_end);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void no_barrier(struct tandem_worker *worker)
{
    (void)worker;
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct tnd_crew *crew = member->crew;
    for (int seen = 0;; seen++) {
        while (atomic_load_explicit(&crew->generation, memory_order_acquire) == seen) {
        }
        if (crew->job == NULL) {
            return NULL;
        }
        (void)tnd_cpu_move_to_idle(&crew->claims, (unsigned)crew->loop);
        crew->job(crew->user, &member->base);
        member->end_s = now_s();
        atomic_fetch_add_explicit(&crew->n_done, 1, memory_order_release);
    }
}

tnd_crew *tnd_crew_new(int n_threads, size_t scratch_bytes)
{
    struct tnd_crew *crew = aligned_alloc(64, (sizeof(*crew) + 63) / 64 * 64);
    if (crew == NULL) {
        return NULL;
    }
    memset(crew, 0, sizeof(*crew));
    crew->n_threads = n_threads < 1 ? 1 : n_threads > THREADS_MAX ? THREADS_MAX : n_threads;
    for (int i = 0; i < crew->n_threads; i++) {
        struct member *member = &crew->members[i];
        member->crew = crew;
        member->base = (struct tandem_worker){
            .index = i,
            .count = crew->n_threads,
            .own_threads = 1,
            .scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64),
            .scratch_bytes = scratch_bytes,
            .next = crew_next,
            .barrier = no_barrier,
        };
        if (i > 0) {
            pthread_create(&member->thread, NULL, member_main, member);
        }
    }
    return crew;
}

void tnd_crew_run(tnd_crew *crew, tnd_crew_fn *job, void *user)
{
    crew->job = job;
    crew->user = user;
    crew->loop++;
    (void)tnd_cpu_claim(&crew->claims, (unsigned)crew->loop);
    atomic_store_explicit(&crew->n_done, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&crew->generation, 1, memory_order_release);
    job(user, &crew->members[0].base);
    crew->members[0].end_s = now_s();
    while (atomic_load_explicit(&crew->n_done, memory_order_acquire) < crew->n_threads) {
    }
}

double tnd_crew_tail_s(const tnd_crew *crew)
{
    double first = crew->members[0].end_s;
    double last = first;
    for (int i = 1; i < crew->n_threads; i++) {
        first = crew->members[i].end_s < first ? crew->members[i].end_s : first;
        last = crew->members[i].end_s > last ? crew->members[i].end_s : last;
    }
    return last - first;
}

void tnd_crew_free(tnd_crew *crew)
{
    crew->job = NULL;
    atomic_fetch_add_explicit(&crew->generation, 1, memory_order_release);
    for (int i = 0; i < crew->n_threads; i++) {
        if (i > 0) {
            pthread_join(crew->members[i].thread, NULL);
        }
        free(crew->members[i].base.scratch);
    }
    free(crew);
}
