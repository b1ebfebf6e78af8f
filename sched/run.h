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

/** Memory that only grows and whose contents do not outlive a run. */
struct tnd_run_memory {
    void *memory; /* as allocated */
    char *base;   /* where it begins for the user: 64-byte aligned, 2 MiB when large */
    size_t bytes; /* usable ones */
    size_t held;  /* allocated ones */
    void *handles[TND_MAX_SLOTS]; /* of devices that have a mirror of base .. base + bytes */
};

struct tnd_run;

/** A worker of a run. The worker that backends see comes first. */
struct tnd_run_worker {
    _Alignas(TND_CACHE_LINE) struct tandem_worker worker;
    struct tnd_run *run;
    struct tnd_chunk_cursor *cursors; /* of the step that it runs, one a worker */
    uint64_t loop;                    /* of that step, that it hands out now */
    struct tnd_chunk_share share;     /* of that step, on a machine of several NUMA nodes */
    struct tandem_error error;
    enum tandem_status status; /* why this worker failed */
    int failed_step;
    uint64_t begin_ns, lost_ns; /* of its part in the last parallel group, when asked */
};

struct tnd_run_flight {
    uint64_t ticket;
    int step;
    uint64_t expected_ns; /* when it will have ended, by the run's clock; 0: unknown */
};

/** A device with memory of its own, as all runs see it. A failure is told to one of those that wait
 *  for the device, but works of all may have failed: so they wait one after the other, and each one
 *  looks whether somebody was told of a failure since it began. */
struct tnd_run_device {
    pthread_mutex_t lock;
    unsigned n_failures; /* under the lock */
    /** Its sync was seen to keep a CPU busy, so worker 0 sleeps before it. A hint, relaxed. */
    atomic_bool sync_spins;
    pthread_mutex_t stall_lock; /* guards the members below */
    _Atomic uint64_t stalled;   /* ticket that a run has given up (sched/stall.h); 0: none */
    struct tnd_bounce *orphans; /* what the device may still write to */
};

/** One wait of worker 0, from tnd_run_wait_begin to tnd_run_wait_end. */
struct tnd_run_wait {
    bool parks;      /* idle workers sleep until it is over */
    bool hints;      /* idle workers sleep until shortly before its end */
    int timed_slot;  /* a device is synced whose end is predicted; 0: no */
    bool slept;      /* then: worker 0 slept before the sync */
    uint64_t now_ns; /* when the sync began, by the run's clock */
    uint64_t cpu_ns; /* and by that of the thread */
};

/** The begin of a while of which is asked how much of it a thread did not run. */
struct tnd_run_stay {
    uint64_t begin_ns; /* by the run's clock */
    uint64_t cpu_ns;   /* of the thread */
};

/** What a device with memory of its own was given since it was synced last. */
struct tnd_run_device_work {
    uint64_t ticket;     /* of the last work or download */
    int first, last;     /* steps */
    bool is_open;        /* there is something to sync */
    bool has_download;   /* host memory is not there yet */
    unsigned n_failures; /* of the device when it was given the first work */
};

/** Slots of weights in flight on one device. */
struct tnd_run_stream {
    void *handles[TND_STREAM_SLOTS];
    size_t bytes; /* of each; 0: not mapped */
};

struct tnd_run {
    _Alignas(TND_CACHE_LINE) atomic_bool stop; /* an error or cancel: hand out nothing more */
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
    bool keeps_subnormals; /* threads compute with subnormal floats */
    int last_parallel;     /* group after which workers may go; -1: no parallel group */
    bool uses_pool;        /* some groups are parallel */
    unsigned ticket;       /* phase of `groups` before the first release */

    /* ---- changed by worker 0 alone ---- */
    int group_now;  /* published by the release; -1: leave */
    int group_next; /* first group that is not done */
    struct tnd_spin spin;
    struct tnd_run_flight flights[TND_MAX_IN_FLIGHT];
    int n_flights;
    struct tnd_run_device_work device_work[TND_MAX_SLOTS];
    uint64_t expected_ns_of[TND_MAX_SLOTS]; /* when a device will have done all; 0: unknown */
    bool has_download;                      /* of any device */
    bool has_collected; /* after a failure: the host has what devices wrote before */
    int n_begun;        /* steps 0 .. n_begun - 1 may have changed something */
    int n_times;
    enum tandem_status status; /* of worker 0's own doing: cancel, devices */
    struct tandem_error error;
    int failed_step;            /* of `status`; -1: none */
    uint64_t asked_ns;          /* when `cancel` was asked last */
    uint64_t until_ns;          /* when the run is given up; 0: never */
    bool is_late;               /* it was */
    uint64_t give_up_ns;        /* the same of a wait for a device */
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

/** Empty run, or NULL. */
struct tnd_run *tnd_run_new(struct tnd_pool *pool);
void tnd_run_free(struct tnd_run *run);
/** Maps what the works of a run need on devices with memory of their own, prepares weights. On
 *  failure `out_failure` says which device is concerned. */
enum tandem_status tnd_run_attach(struct tnd_run *run, struct tnd_exec_failure *out_failure,
                                  struct tandem_error *error);
/** Ends what tnd_run_attach and the unfolding hold. Buffers of the run stay mapped. */
void tnd_run_detach(struct tnd_run *run, bool is_success);
/** Host address of what a transfer moves. */
void *tnd_run_address(const struct tnd_run *run, const struct tnd_extent *extent);
/** Where the device in a slot has it. */
struct tandem_place tnd_run_place(const struct tnd_run *run, int slot,
                                  const struct tnd_extent *extent);
/** Where the device of a step has what its work touches. */
void tnd_run_places(const struct tnd_run *run, const struct tnd_step *step,
                    struct tandem_places *out);
/** Gives up the mirrors of a buffer, before it moves. */
void tnd_run_unmap(const struct tnd_registry *registry, struct tnd_run_memory *memory);

/** When a device will have ended a step that is submitted now, by the run's clock; 0: unknown. */
uint64_t tnd_run_predict_end(struct tnd_run *run, const struct tnd_step *step);
/** Worker 0 begins something for which idle workers wait: `step` itself, or (`slot` > 0) the sync
 *  of a device (`expected_ns`: its end by the run's clock, 0: unknown). Tells the idle workers how
 *  to wait, and sleeps before a sync that would keep a CPU busy. */
void tnd_run_wait_begin(struct tnd_run *run, const struct tnd_step *step, int slot,
                        uint64_t expected_ns, struct tnd_run_wait *out);
void tnd_run_wait_end(struct tnd_run *run, const struct tnd_run_wait *wait);

/** Makes room for run->steps on `n_workers` workers. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_run_reserve(struct tnd_run *run, int n_workers, struct tandem_error *error);
/** Runs all groups on up to `n_workers` workers; devices are drained when it returns. `out_failure`
 *  says which backend failed. */
enum tandem_status tnd_run_execute(struct tnd_run *run, int n_workers,
                                   struct tnd_exec_failure *out_failure,
                                   struct tandem_error *error);
/** Whether the graph may be run again after the steps that were begun: nothing was overwritten in
 *  a leaf that an earlier node, run again, would read. `out_node` is the node that did it. */
bool tnd_run_can_repeat(const struct tnd_run *run, int *out_node);

/* ---- one step (run_steps.c) ---- */

/** The first step of a group. */
static inline const struct tnd_step *tnd_run_steps_of(const struct tnd_run *run,
                                                      const struct tnd_group *group)
{
    return &run->steps->steps[group->first_step];
}

/** What a step is one stage of. */
static inline const struct tnd_item *tnd_run_item_of(const struct tnd_run *run,
                                                     const struct tnd_step *step)
{
    return &run->steps->items.list[step->item];
}

/** Worker 0: stops the run when its limit is over and it can be repeated. */
void tnd_run_ask_late(struct tnd_run *run);
/** Worker 0: asks the caller whether to go on, and stops the run if not. */
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
/** After the barrier a backend may hand out a second loop. */
void tnd_run_stage_barrier(struct tandem_worker *worker);
/** Times of a step, when the caller wants them; steps that have begun. */
void tnd_run_note_begin(struct tnd_run *run, const struct tnd_step *step);
void tnd_run_note_end(struct tnd_run *run, const struct tnd_step *step);
/** What a thread did not run since tnd_run_stay_begin; zeros when nobody asked. */
struct tnd_run_stay tnd_run_stay_begin(const struct tnd_run *run);
uint64_t tnd_run_stay_lost(const struct tnd_run *run, const struct tnd_run_stay *stay);
/** What the workers of a group lost, for each of its steps, when all have arrived; `own_ns` is that
 *  of worker 0. */
void tnd_run_note_lost(struct tnd_run *run, const struct tnd_group *group, int count,
                       uint64_t own_ns);
/** `count` workers run the step, among those of its group. False after a failure. */
bool tnd_run_on_worker(struct tnd_run *run, const struct tnd_step *step, int index, int count,
                       int group_count);
/** Hands a work to a device; its end is noted when the device is synced. */
void tnd_run_submit(struct tnd_run *run, const struct tnd_step *step);
/** An upload, or the start of a download. */
void tnd_run_move(struct tnd_run *run, const struct tnd_step *step);
/** How often the device has failed so far, in all runs. */
unsigned tnd_run_failures_of(const struct tnd_run *run, int slot);
/** Downloads are awaited, or everything. */
void tnd_run_sync_all(struct tnd_run *run, bool downloads_only);
/** Syncs what must be over before `group` begins, in the order of submission. */
void tnd_run_sync_flights(struct tnd_run *run, int group);

#endif
