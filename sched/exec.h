/* SPDX-License-Identifier: MIT
 * Runs the steps of a plan on a pool and on devices. Makes no decision of its own. Executing is
 * re-entrant: several threads may run different graphs on one pool. Buffers (intermediate
 * results, workspace, scratch) are taken from a cache that grows before the run begins; nothing
 * is allocated while steps run. */
#ifndef TND_EXEC_H
#define TND_EXEC_H

#include "base/clock.h"
#include "sched/plan.h"
#include "sched/pool.h"

struct tnd_exec;

/** Measured times of one step: worker 0's clock around its group's barriers; steps that share a
 *  folded group are timed one by one. A step of a device with memory of its own ends when the
 *  device is synced next. */
struct tnd_step_time {
    int32_t node;
    uint8_t stage;
    uint8_t backend;
    uint8_t kind; /* enum tnd_step_kind */
    uint8_t role; /* enum tnd_item_role: for an item of a split product; else TND_ITEM_WHOLE */
    int32_t part; /* number among the parts of the node; -1: none */
    size_t bytes; /* of transfers */
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t ticket;  /* of work on a device */
    uint64_t lost_ns; /* most that any worker of its group was late or not running; only with
                       * asks_lost */
};

/** Why a run failed, so that the planner can plan without the device. */
enum tnd_exec_failure_kind {
    TND_FAILURE_NONE,   /* not caused by a device */
    TND_FAILURE_FAULT,  /* a device failed */
    TND_FAILURE_ROOM,   /* a device has no memory for this run */
    TND_FAILURE_WEIGHT, /* a device has no memory for weights: tnd_exec_is_refused */
    TND_FAILURE_LATE    /* a device has not finished its part within the limit */
};

struct tnd_exec_failure {
    enum tnd_exec_failure_kind kind;
    int slot;              /* of the device */
    bool can_repeat;       /* running the graph again gives the right result */
    int not_repeated_node; /* node that overwrote what an earlier node had read; only if not
                            * can_repeat */
};

struct tnd_exec_run_options {
    /** Called between groups by worker 0; true ends the run with CANCELLED. May be NULL. */
    bool (*cancel)(void *user);
    /** Called after groups, by worker 0: nodes finished, all nodes. May be NULL. */
    void (*progress)(void *user, int n_done, int n_total);
    void *user;
    struct tnd_step_time *times; /* at least n_times entries or NULL; later steps are not kept */
    int n_times;
    int *out_n_times; /* entries filled; may be NULL */
    bool asks_lost;   /* fill tnd_step_time.lost_ns: two readings of CPU time a worker and group */
    bool sync_each;   /* every step of a device with memory of its own is synced at once */
    bool packs_gradually; /* copies (packs) a 32nd of the weights in each run; until then products
                           * read the rows */
    bool *out_is_packing; /* whether a gradual run made copies, or ran without some; may be NULL */
    bool is_plain; /* no fused nodes and no shared groups, so that each node is timed separately */
    /** Time limit: a graph that can be repeated is abandoned with DEVICE_TIMEOUT when the next
     *  group begins after it; 0: none. */
    uint64_t limit_ns;
    struct tnd_exec_failure *out_failure; /* filled when the run fails; may be NULL */
};

enum tandem_status tnd_exec_new(struct tnd_pool *pool, const struct tnd_registry *registry,
                                const struct tnd_clock *clock, struct tnd_exec **out_exec,
                                struct tandem_error *error);
/** For tests: another clock (borrowed). No run may be in progress. */
void tnd_exec_set_clock(struct tnd_exec *exec, const struct tnd_clock *clock);
/** No run may be in progress. Returns a bit mask of slots: devices that still work on an abandoned
 *  run, which must not be closed. */
uint32_t tnd_exec_free(struct tnd_exec *exec);
/** Bits of enum tandem_execution, for later runs; TANDEM_EXECUTE_DEFAULT at first. Any thread. */
void tnd_exec_set_execution(struct tnd_exec *exec, uint32_t execution);
uint32_t tnd_exec_execution(const struct tnd_exec *exec);

/** Runs a finished graph by a plan. On failure outputs are undefined, devices are drained, and
 *  the runtime stays usable. Errors: those of tnd_steps_new, of backends (first one wins),
 *  CANCELLED, MEMORY. */
enum tandem_status tnd_exec_run(struct tnd_exec *exec, struct tandem_graph *graph,
                                const struct tandem_plan *plan,
                                const struct tnd_exec_run_options *options,
                                struct tandem_error *error);
/** Prepares and finishes the weights of a plan before a run needs them: see finish.h. Errors:
 *  CANCELLED, THREAD. */
enum tandem_status tnd_exec_finish(struct tnd_exec *exec, const struct tandem_graph *graph,
                                   const struct tandem_plan *plan, bool experts,
                                   bool (*progress)(void *user, uint64_t done, uint64_t all),
                                   void *user, struct tandem_error *error);
/** Before the program reads a state, or changes it: downloads it to the host, or invalidates the
 *  mirrors on devices. */
enum tandem_status tnd_exec_fetch(struct tnd_exec *exec, const struct tandem_tensor *root,
                                  bool will_change, struct tandem_error *error);
/** Makes devices free what they keep of a weight or state. */
void tnd_exec_forget(struct tnd_exec *exec, const struct tandem_tensor *root);
/** Drops the mirrors of states on a device that has failed. */
void tnd_exec_drop_device(struct tnd_exec *exec, int slot);
/** Whether the device had no memory for one of the weights of the node; `streams`: only weights in
 *  flight count, which are those of operands after the first. Cheap when there was memory for
 *  all. */
bool tnd_exec_is_refused(struct tnd_exec *exec, int slot, const struct tandem_tensor *node,
                         bool streams);
/** Bit mask of slots: devices that had no memory for a constant weight, a root. Any thread. */
uint32_t tnd_exec_refused_by(struct tnd_exec *exec, const struct tandem_tensor *weight);
bool tnd_exec_has_refused(struct tnd_exec *exec);
/** Like tnd_exec_has_refused, for the rows or columns of a part of the node. */
bool tnd_exec_is_part_refused(struct tnd_exec *exec, int slot, const struct tandem_tensor *node,
                              const struct tandem_plan_part *part);
/** Number of mirrors of leaves, for tests. */
int tnd_exec_mirror_count(struct tnd_exec *exec);
/** See tnd_mirrors_drop_orphans. */
void tnd_exec_drop_orphans(struct tnd_exec *exec);

#endif
