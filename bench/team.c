/* SPDX-License-Identifier: MIT
 * Threads of the kernel bench; see team.h. */
#include "bench/team.h"

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
    struct tnd_team *team;
    pthread_t thread;
    double end_s; /* end of its last job */
};

struct tnd_team {
    int n_threads;
    tnd_team_fn *job; /* NULL: exit */
    void *user;
    atomic_int generation; /* release: job and user are set; acquired by the members */
    atomic_int n_done;     /* release: a member's results; acquired by the caller */
    uint64_t loop;         /* the job's number, for the cursors */
    struct tnd_chunk_cursor cursors[THREADS_MAX];
    struct tnd_cpu_claims claims; /* threads of a job run on one CPU each */
    struct member members[THREADS_MAX];
};

static bool team_next(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                      int64_t *out_begin, int64_t *out_end)
{
    struct tnd_team *team = ((struct member *)worker)->team;
    return tnd_chunk_next(team->cursors, worker->index, worker->count, team->loop, n_items, chunk,
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
    struct tnd_team *team = member->team;
    for (int seen = 0;; seen++) {
        while (atomic_load_explicit(&team->generation, memory_order_acquire) == seen) {
        }
        if (team->job == NULL) {
            return NULL;
        }
        (void)tnd_cpu_move_to_idle(&team->claims, (unsigned)team->loop);
        team->job(team->user, &member->base);
        member->end_s = now_s();
        atomic_fetch_add_explicit(&team->n_done, 1, memory_order_release);
    }
}

tnd_team *tnd_team_new(int n_threads, size_t scratch_bytes)
{
    struct tnd_team *team = aligned_alloc(64, (sizeof(*team) + 63) / 64 * 64);
    if (team == NULL) {
        return NULL;
    }
    memset(team, 0, sizeof(*team));
    team->n_threads = n_threads < 1 ? 1 : n_threads > THREADS_MAX ? THREADS_MAX : n_threads;
    for (int i = 0; i < team->n_threads; i++) {
        struct member *member = &team->members[i];
        member->team = team;
        member->base = (struct tandem_worker){
            .index = i,
            .count = team->n_threads,
            .own_threads = 1,
            .scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64),
            .scratch_bytes = scratch_bytes,
            .next = team_next,
            .barrier = no_barrier,
        };
        if (i > 0) {
            pthread_create(&member->thread, NULL, member_main, member);
        }
    }
    return team;
}

void tnd_team_run(tnd_team *team, tnd_team_fn *job, void *user)
{
    team->job = job;
    team->user = user;
    team->loop++;
    (void)tnd_cpu_claim(&team->claims, (unsigned)team->loop);
    atomic_store_explicit(&team->n_done, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&team->generation, 1, memory_order_release);
    job(user, &team->members[0].base);
    team->members[0].end_s = now_s();
    while (atomic_load_explicit(&team->n_done, memory_order_acquire) < team->n_threads) {
    }
}

double tnd_team_tail_s(const tnd_team *team)
{
    double first = team->members[0].end_s;
    double last = first;
    for (int i = 1; i < team->n_threads; i++) {
        first = team->members[i].end_s < first ? team->members[i].end_s : first;
        last = team->members[i].end_s > last ? team->members[i].end_s : last;
    }
    return last - first;
}

void tnd_team_free(tnd_team *team)
{
    team->job = NULL;
    atomic_fetch_add_explicit(&team->generation, 1, memory_order_release);
    for (int i = 0; i < team->n_threads; i++) {
        if (i > 0) {
            pthread_join(team->members[i].thread, NULL);
        }
        free(team->members[i].base.scratch);
    }
    free(team);
}
