/* SPDX-License-Identifier: MIT
 * Internals of a plan, and its unfolding into steps. Plans and steps are plain data; nothing here
 * knows costs. A step is one stage of one item (items.h): of one node, on one backend, over
 * a range of rows.
 *
 * Steps stand in groups: all steps of a group may run at the same time (a product split over CPU
 * and device, independent nodes); a barrier stands between two groups. Consecutive one-thread steps
 * of the CPU are folded into one group of which worker 0 runs them in order, without barriers in
 * between. Neighbours that do not depend on one another share the groups of their stages
 * (concurrent.h): a worker that finds nothing left to do in one step goes on to the next. A step of
 * a device that works in host memory is synced before group `until` begins, so that it may overlap
 * with several groups.
 *
 * Devices with memory of their own (residency.h) work in the order of submission: their steps are
 * never synced one by one, and fold like steps of the CPU. Transfers are steps of their own:
 * operands belong to INIT of the node that reads them, a result to FINALIZE of the node that wrote
 * it, if the plan has that stage. FINALIZE is deferred until the host needs the result, and is left
 * out when it never does. A download has ended before the next group begins. */
#ifndef TND_PLAN_H
#define TND_PLAN_H

#include "backends/registry.h"
#include "base/vector.h"
#include "ggml-like/tnd_tensor.h"
#include "sched/items.h"
#include "sched/mirrors.h"
#include "sched/residency.h"
#include "tandem/profile.h"

/** The schedule of a plan: what it has besides one choice for each node. */
struct tnd_plan_schedule {
    TND_VECTOR_OF(struct tandem_plan_part, parts); /* by node and begin */
    TND_VECTOR_OF(struct tandem_plan_span, spans);
    int32_t *order; /* n_nodes; NULL: the graph's */
    /* Known only to the planner; all 0 in a plan that was read or changed by hand. */
    float makespan_us;
    float single_us;     /* of the best placement without a split and without planned overlap */
    float best_us;       /* of the best schedule that was found */
    float gain_error_us; /* error bar of the difference */
};

struct tandem_plan {
    int n_nodes;
    double took_us;
    struct tnd_plan_schedule *schedule; /* NULL: none, as of all plans without devices */
    uint64_t observed_key; /* key of the observations of its computations; 0: not observed. Cleared
                            * when the plan is changed or copied */
    uint8_t kind;          /* if observed: which of the graph's plans it is, as the planner numbers
                            * them */
    struct tandem_plan_node nodes[];
};

/** Copies the schedule of `from` (or none) into a plan that has none. Errors: MEMORY. */
enum tandem_status tnd_plan_copy_schedule(struct tandem_plan *plan, const struct tandem_plan *from,
                                          struct tandem_error *error);
/** Returns the number of parts of node i and stores the first of them (NULL: none). */
int tnd_plan_parts_of(const struct tandem_plan *plan, int i,
                      const struct tandem_plan_part **out_first);
/** The range of `all` rows or columns of node i that is left to its own choice, as a part. False
 *  when it is empty or not one range, when the parts exceed `all`, and when there are none. */
bool tnd_plan_own_part(const struct tandem_plan *plan, int i, int64_t all,
                       struct tandem_plan_part *out_own);
/** Removes the parts of node i; its own choice computes all of it. */
void tnd_plan_remove_parts(struct tandem_plan *plan, int i);
/** Upper bound of the items that the plan leads to, including those that splitting adds. */
static inline int tnd_plan_most_nodes(const struct tandem_plan *plan)
{
    int n_parts = plan->schedule != NULL ? plan->schedule->n_parts : 0;
    return plan->n_nodes + 6 * n_parts; /* copy of X, product, joining; for the node itself too */
}
/** Whether runs must follow a schedule. */
static inline bool tnd_plan_is_scheduled(const struct tandem_plan *plan)
{
    return plan->schedule != NULL && (plan->schedule->n_parts > 0 || plan->schedule->order != NULL);
}

enum tnd_step_kind {
    TND_STEP_WORK,
    TND_STEP_UPLOAD,   /* host to a device's mirror */
    TND_STEP_DOWNLOAD, /* mirror to host */
    TND_STEP_STREAM    /* weights to a slot of a device, see stream.h */
};

/** Slots of device memory that weights in flight use in turns. */
#define TND_STREAM_SLOTS 2

struct tnd_step {
    int32_t item;       /* index in the list of items */
    uint8_t kind;       /* enum tnd_step_kind */
    bool on_device;     /* on a device with memory of its own */
    uint8_t stage;      /* enum tandem_stage; downloads at the end of the run: FINALIZE */
    uint8_t task;       /* enum tandem_task */
    uint8_t backend;    /* slot */
    bool wait;          /* idle workers sleep */
    bool is_early;      /* a download that is not waited for before group `until` */
    uint8_t stream;     /* slot of its weights in flight, from 1; 0: none */
    float predicted_us; /* 0: unknown; for downloads: of the work that they wait for */
    int32_t n_workers;  /* workers that run it; 1 when not parallel; 0 for an asynchronous device */
    int32_t own_threads;
    union {
        struct { /* works */
            int64_t row_begin, row_end;
            size_t workspace_offset; /* in the graph's workspace */
            size_t workspace_bytes;
            void *prepared;        /* of this run, for tasks that read prepared weights: see
                                    * tnd_exec_run */
            bool reads_rows_first; /* touches the rows of its weight first: their pages may not be
                                    * mapped */
        };
        struct tnd_extent moved; /* transfers */
    };
    int32_t group;
    int32_t until; /* device steps, early downloads: synced before this group begins; else group +
                    * 1 */
};

/** Steps first_step .. first_step + n_steps - 1. */
struct tnd_group {
    int32_t first_step;
    int32_t n_steps;
    int32_t n_workers; /* 1: worker 0 runs all steps in order; more: concurrent steps of the CPU,
                        * each for one worker or for this many */
    bool wait_after;   /* workers that have nothing to do until the next parallel group sleep at
                        * once, since its begin is not predicted; else they wait by the hint */
};

/** Weights in flight to one device. */
struct tnd_stream {
    int n_uploads, n_works; /* so far */
    size_t bytes;           /* the largest of them */
};

/** What steps were unfolded from: while all of it is the same, the steps are reused. */
struct tnd_steps_kept {
    uint64_t graph;        /* serial of the graph of the last run; 0: none */
    bool is_whole;         /* the other members are set: that was not its first run */
    uint64_t role_changes; /* of any tensors */
    uint32_t execution;    /* bits of enum tandem_execution */
    uint32_t quarantined;  /* bit a slot */
    int n_slots;           /* backends that were open */
    int n_nodes;
};

struct tnd_steps {
    struct tnd_step *steps; /* by group */
    struct tnd_group *groups;
    int n_steps;
    int n_groups;
    int n_workers;          /* most workers of any step, >= 1 */
    size_t workspace_bytes; /* nodes use it one after the other */
    size_t scratch_bytes;   /* of one worker */
    int capacity;           /* steps and groups that the memory holds */
    struct tnd_items items; /* their choices point into the plan: must not be read once the plan may
                             * be freed */
    struct tnd_stream streams[TND_MAX_SLOTS];
    uint32_t device_slots; /* bit a slot: backends of the plan with memory of their own */
    /** Where the newest bytes are; NULL when no device of the plan has memory of its own and none
     *  holds a state. */
    struct tnd_residency *residency;
    struct tnd_residency *spare;       /* kept for its memory while no residency is needed */
    int first_parallel, last_parallel; /* groups; -1: none is */
    bool uses_prepared;                /* some work reads weights that a backend prepared */
    struct tnd_steps_kept kept;
    void *kept_nodes; /* a copy of the plan's nodes */
    size_t kept_bytes;
};

/** Whether idle workers sleep by prediction while the step runs: they wake before its end. Not
 *  while a library with threads of its own runs, because early waking would take a CPU from it. */
static inline bool tnd_step_is_timed(const struct tnd_step *step)
{
    return step->wait && step->predicted_us > 0 && step->own_threads <= 1;
}

/** Checks a plan against graph and backends and unfolds it. Errors: ARGUMENT (node count, threads),
 *  UNSUPPORTED_BACKEND (a stage's task is refused, with the backend's reason), MEMORY, OVERFLOW.
 *  `out_steps` is freed with tnd_steps_free. */
enum tandem_status tnd_steps_new(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                 const struct tnd_registry *registry, struct tnd_steps **out_steps,
                                 struct tandem_error *error);
void tnd_steps_free(struct tnd_steps *steps);

/** tnd_steps_new into the memory of *io_steps (NULL: none yet), which grows when it is too small.
 *  Its contents are undefined after a failure. No allocation when it fits. `mirrors` knows what
 *  devices hold already (NULL: nothing); states found there are held until tnd_residency_release,
 *  which the caller must call on success. `execution`: bits of enum tandem_execution. */
enum tandem_status tnd_steps_renew(const struct tandem_graph *graph, const struct tandem_plan *plan,
                                   const struct tnd_registry *registry, struct tnd_mirrors *mirrors,
                                   uint32_t execution, struct tnd_steps **io_steps,
                                   struct tandem_error *error);

/** Predicted time from the start of the first node to the end of the last one; 0: unknown. */
double tnd_plan_predicted_us(const struct tandem_plan *plan);

/** Device steps that may be in flight at the same time. */
#define TND_MAX_IN_FLIGHT 32

#endif
