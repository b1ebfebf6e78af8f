/* SPDX-License-Identifier: MIT
 * One execution of unfolded steps: the memory it needs and the loop over its groups. exec.c
 * keeps runs in a cache and fills one in for each call. Only for exec.c. */
#ifndef TND_RUN_H
#define TND_RUN_H

#include <pthread.h>

#include "backends/chunks.h"
#include "sched/barrier.h"
#include "sched/concurrent.h"
#include "sched/exec.h"

/** Memory that only grows and whose contents are not kept after a run. */
struct tnd_run_memory {
    void *memory;                 /* as allocated */
    char *base;                   /* usable begin: 64-byte aligned, 2 MiB when large */
    size_t bytes;                 /* usable bytes */
    size_t held;                  /* allocated bytes */
    void *handles[TND_MAX_SLOTS]; /* of devices that have a mirror of base .. base + bytes */
};

struct tnd_run;

/** A worker of a run; the part that backends see comes first. */
struct tnd_run_worker {
    _Alignas(TND_CACHE_LINE) struct tandem_worker worker;
    struct tnd_run *run;
    struct tnd_chunk_cursor *cursors; /* of the current step, one a worker */
    uint64_t loop;                    /* number of the current loop over chunks in that step */
    struct tnd_chunk_share share;     /* of that step, with several NUMA nodes */
    struct tandem_error error;
    enum tandem_status status; /* why this worker failed */
    int failed_step;
    uint64_t begin_ns, lost_ns; /* of its part in the last parallel group; only with asks_lost */
};

struct tnd_run_flight {
    uint64_t ticket;
    int step;
    uint64_t expected_ns; /* when it will have ended, by the run's clock; 0: unknown */
};

/** A device with memory of its own, shared by all runs. A failure is reported to only one of the
 *  runs that wait for the device, but work of all of them may have failed: so they sync one after
 *  the other, and each one checks whether a failure was reported since its work began. */
struct tnd_run_device {
    pthread_mutex_t lock;
    unsigned n_failures; /* under the lock */
    /** Its sync was observed to spin, so worker 0 sleeps before it. A hint, relaxed. */
    atomic_bool sync_spins;
    pthread_mutex_t stall_lock; /* guards the members below */
    _Atomic uint64_t stalled;   /* ticket that a run has abandoned (sched/stall.h); 0: none */
    struct tnd_bounce *orphans; /* memory that the device may still write to */
};

/** One wait of worker 0, from tnd_run_wait_begin to tnd_run_wait_end. */
struct tnd_run_wait {
    bool parks;      /* idle workers sleep until it is over */
    bool hints;      /* idle workers sleep until shortly before its end */
    int timed_slot;  /* device that is synced and whose end is predicted; 0: none */
    bool slept;      /* with timed_slot: worker 0 slept before the sync */
    uint64_t now_ns; /* when the sync began, by the run's clock */
    uint64_t cpu_ns; /* CPU time of the thread at that time */
};

/** Start of a period, to compute how much of it the thread was not running. */
struct tnd_run_stay {
    uint64_t begin_ns; /* by the run's clock */
    uint64_t cpu_ns;   /* of the thread */
};

/** What was submitted to a device with memory of its own since its last sync. */
struct tnd_run_device_work {
    uint64_t ticket;     /* of the last work or download */
    int first, last;     /* steps */
    bool is_open;        /* there is something to sync */
    bool has_download;   /* a download is in flight */
    unsigned n_failures; /* of the device when it was given the first work */
};

/** Slots of weights in flight on one device. */
struct tnd_run_stream {
    void *handles[TND_STREAM_SLOTS];
    size_t bytes; /* of each; 0: not mapped */
};

struct tnd_run {
    _Alignas(TND_CACHE_LINE) atomic_bool stop; /* an error or cancel: no more chunks are handed
                                                * out */
    atomic_int failed_worker;                  /* first one; -1: none */
    struct tnd_barrier groups;                 /* pass, gather, release: between groups */
    struct tnd_barrier stage;                  /* wait: inside a step, for backends */
    _Alignas(TND_CACHE_LINE) _Atomic uint64_t
        expected_ns; /* when the next parallel group may begin, as in struct tnd_spin */

    /* ---- set before the run ---- */
    struct tnd_pool *pool;
    const struct tnd_registry *registry;
    struct tnd_run_device *devices; /* by slot, of the executor */
    struct tnd_mirrors *mirrors;    /* of the executor */
    const struct tnd_clock *clock;
    struct tandem_graph *graph;
    const struct tnd_exec_run_options *options;
    struct tnd_steps *steps;
    bool keeps_subnormals; /* threads compute with subnormal floats instead of flushing them to
                            * zero */
    int last_parallel;     /* group after which workers leave the pool; -1: no parallel group */
    bool uses_pool;        /* some groups are parallel */
    unsigned ticket;       /* phase of `groups` before the first release */

    /* ---- changed by worker 0 alone ---- */
    int group_now;  /* published by the release; -1: workers leave */
    int group_next; /* first group that is not done */
    struct tnd_spin spin;
    struct tnd_run_flight flights[TND_MAX_IN_FLIGHT];
    int n_flights;
    struct tnd_run_device_work device_work[TND_MAX_SLOTS];
    uint64_t expected_ns_of[TND_MAX_SLOTS]; /* when all work of a device will have ended; 0:
                                             * unknown */
    bool has_download;                      /* of any device */
    bool has_collected; /* after a failure: earlier writes of devices were downloaded to the host */
    int n_begun;        /* steps 0 .. n_begun - 1 may have had effects */
    int n_times;
    enum tandem_status status; /* failure of worker 0: cancel, devices */
    struct tandem_error error;
    int failed_step;            /* of `status`; -1: none */
    uint64_t asked_ns;          /* when `cancel` was asked last */
    uint64_t until_ns;          /* when the run is abandoned; 0: never */
    bool is_late;               /* the run was abandoned */
    uint64_t give_up_ns;        /* when a wait for a device is abandoned; 0: never */
    struct tnd_bounce *bounces; /* downloads in flight (sched/stall.h), oldest first */
    uint32_t direct;            /* bit a slot: the device writes to the program's memory itself */

    /* ---- kept from run to run ---- */
    struct tnd_run_memory intermediates;
    struct tnd_run_memory workspace;
    struct tnd_run_memory scratch;
    struct tnd_run_stream streams[TND_MAX_SLOTS];
    struct tnd_run_worker *workers;
    struct tnd_chunk_cursor *cursors; /* for each step of a group, one a worker */
    int n_workers;                    /* entries of `workers` */
    struct tnd_run *next_idle;        /* in the cache */
};

/** Allocates an empty run; NULL when out of memory. */
struct tnd_run *tnd_run_new(struct tnd_pool *pool);
void tnd_run_free(struct tnd_run *run);
/** Maps what a run needs on devices with memory of their own, and prepares weights. On failure
 *  `out_failure` names the device. */
enum tandem_status tnd_run_attach(struct tnd_run *run, struct tnd_exec_failure *out_failure,
                                  struct tandem_error *error);
/** Releases the mirrors that tnd_run_attach and the unfolding hold. Buffers of the run stay
 * mapped. */
void tnd_run_detach(struct tnd_run *run, bool is_success);
/** Host address of what a transfer moves. */
void *tnd_run_address(const struct tnd_run *run, const struct tnd_extent *extent);
/** The same bytes in the memory of the device in a slot. */
struct tandem_place tnd_run_place(const struct tnd_run *run, int slot,
                                  const struct tnd_extent *extent);
/** All device memory that the work of a step accesses. */
void tnd_run_places(const struct tnd_run *run, const struct tnd_step *step,
                    struct tandem_places *out);
/** Unmaps a buffer from all devices, before it moves. */
void tnd_run_unmap(const struct tnd_registry *registry, struct tnd_run_memory *memory);

/** When a device will have ended a step that is submitted now, by the run's clock; 0: unknown. */
uint64_t tnd_run_predict_end(struct tnd_run *run, const struct tnd_step *step);
/** Worker 0 begins something that idle workers wait for: `step` itself, or (`slot` > 0) the sync of
 *  a device (`expected_ns`: its end by the run's clock, 0: unknown). Publishes for the idle workers
 *  how to wait, and sleeps before a sync that would keep a CPU busy. */
void tnd_run_wait_begin(struct tnd_run *run, const struct tnd_step *step, int slot,
                        uint64_t expected_ns, struct tnd_run_wait *out);
void tnd_run_wait_end(struct tnd_run *run, const struct tnd_run_wait *wait);

/** Allocates what run->steps need on `n_workers` workers. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_run_reserve(struct tnd_run *run, int n_workers, struct tandem_error *error);
/** Runs all groups on up to `n_workers` workers; devices are idle when it returns. `out_failure`
 *  names the backend that failed. */
enum tandem_status tnd_run_execute(struct tnd_run *run, int n_workers,
                                   struct tnd_exec_failure *out_failure,
                                   struct tandem_error *error);
/** Whether the graph may be run again after the steps that were begun: they overwrote nothing in a
 *  leaf that an earlier node would read again. `out_node` is the node that did. */
bool tnd_run_can_repeat(const struct tnd_run *run, int *out_node);

/* ---- one step (run_steps.c) ---- */

/** The first step of a group. */
static inline const struct tnd_step *tnd_run_steps_of(const struct tnd_run *run,
                                                      const struct tnd_group *group)
{
    return &run->steps->steps[group->first_step];
}

/** The item that a step belongs to. */
static inline const struct tnd_item *tnd_run_item_of(const struct tnd_run *run,
                                                     const struct tnd_step *step)
{
    return &run->steps->items.list[step->item];
}

/** Worker 0: stops the run when its time limit has passed and it can be repeated. */
void tnd_run_ask_late(struct tnd_run *run);
/** Worker 0: calls the caller's `cancel`, and stops the run if it returns true. */
void tnd_run_ask_cancel(struct tnd_run *run);

/** Whether an error or cancel has ended the run. */
static inline bool tnd_run_is_stopped(const struct tnd_run *run)
{
    return atomic_load_explicit(&run->stop, memory_order_relaxed);
}

/** The functions of a worker that backends call. */
bool tnd_run_next_chunk(struct tandem_worker *worker, int64_t n_items, int64_t chunk,
                        int64_t *out_begin, int64_t *out_end);
bool tnd_run_worker_stopped(struct tandem_worker *worker);
/** Barrier of the step's workers, after which a backend may hand out another loop. */
void tnd_run_stage_barrier(struct tandem_worker *worker);
/** Record times of a step that has begun, if the caller wants them. */
void tnd_run_note_begin(struct tnd_run *run, const struct tnd_step *step);
void tnd_run_note_end(struct tnd_run *run, const struct tnd_step *step);
/** Time since tnd_run_stay_begin during which the thread was not running; 0 without asks_lost. */
struct tnd_run_stay tnd_run_stay_begin(const struct tnd_run *run);
uint64_t tnd_run_stay_lost(const struct tnd_run *run, const struct tnd_run_stay *stay);
/** Records the time lost by the workers of a group for each of its steps, when all have arrived;
 *  `own_ns` is that of worker 0. */
void tnd_run_note_lost(struct tnd_run *run, const struct tnd_group *group, int count,
                       uint64_t own_ns);
/** Runs one worker's share of a step that has `count` workers, in a group of `group_count`. False
 * after a failure. */
bool tnd_run_on_worker(struct tnd_run *run, const struct tnd_step *step, int index, int count,
                       int group_count);
/** Submits work to a device; its end is recorded when the device is synced. */
void tnd_run_submit(struct tnd_run *run, const struct tnd_step *step);
/** An upload, or the start of a download. */
void tnd_run_move(struct tnd_run *run, const struct tnd_step *step);
/** Number of failures of the device so far, in all runs. */
unsigned tnd_run_failures_of(const struct tnd_run *run, int slot);
/** Waits for all downloads, or for all work of devices. */
void tnd_run_sync_all(struct tnd_run *run, bool downloads_only);
/** Syncs what must have ended before `group` begins, in the order of submission. */
void tnd_run_sync_flights(struct tnd_run *run, int group);

#endif
