/* SPDX-License-Identifier: MIT
 * room: runtime
 *
 * The front door: opens backends and threads, loads this machine's timing table, plans graphs and
 * computes them. A runtime may be used by several threads at once; a graph is planned and computed
 * by one thread at a time.
 *
 * fork: a child has none of its parent's threads. A runtime that was opened before the fork
 * answers every call in the child with STATE at once (functions that return no status do nothing,
 * or return 0); closing it returns at once and leaves its memory as it is; the parent's goes on. A
 * runtime that the child opens works; OpenCL devices only where the parent has used none. A child
 * that is forked inside a callback of a computation must not return from it. */
#ifndef TANDEM_RUNTIME_H
#define TANDEM_RUNTIME_H

#include "tandem/backend.h"
#include "tandem/graph.h"
#include "tandem/log.h"
#include "tandem/profile.h"
#include "tandem/table.h"

TANDEM_BEGIN_C

/** Owned by whoever opened it; everything in it is freed by tandem_runtime_close. */
typedef struct tandem_runtime tandem_runtime;

/** Work for `count` threads at once: each calls it with an `index` of its own, 0 .. count-1. */
typedef void (*tandem_team_body_fn)(void *data, int index, int count);
/** Threads of an application that compute for a runtime, so that two thread pools need not take
 *  turns. Calls `body` on up to `count` threads, index 0 on the calling one, and returns true when
 *  all have returned. They must really run at once: they wait for each other. False: there are none
 *  just now, nothing was called, and the runtime's own threads do it. One call at a time. */
typedef bool (*tandem_team_fn)(void *user, int count, tandem_team_body_fn body, void *data);

/** Options of tandem_runtime_open. Texts and arrays are read during the call. */
struct tandem_runtime_options {
    size_t size;   /**< sizeof(struct tandem_runtime_options) */
    int n_threads; /**< threads of a graph; 0: TANDEM_THREADS, else one a core that we may use, and
                        fewer while other programs keep CPUs busy (not threads of this one) */
    const char *table_path; /**< timing table, over the system's and this machine's own; NULL: these
                                 alone; "": none (the rule). docs/tuning.md */
    const char *profile;    /**< force this profile wherever it applies; NULL: choose */
    const char *backends;   /**< comma-separated names; NULL: all that are present (never "sim");
                                 "auto": the CPU and those devices that the tables of this machine
                                 have as the fastest for some product. No other driver is loaded */
    const char *settings; /**< backends' settings "sim:key=value;openblas:key=value"; NULL: none */
    tandem_log_fn log;    /**< NULL: silent */
    void *log_user;       /**< handed to `log` */
    enum tandem_log_level log_level; /**< 0: WARN, or TANDEM_LOG */
    int64_t spin_limit;  /**< polls of an idle worker before it sleeps; 0: default, < 0: none */
    const int *cpu_ids;  /**< CPUs to bind workers to, copied; NULL: do not bind */
    int n_cpu_ids;       /**< length of `cpu_ids` */
    int nice;            /**< niceness added to the worker threads */
    double error_bound;  /**< see tandem_runtime_set_error_bound; 0: none */
    bool ignore_drift;   /**< do not compare run times with predictions (tandem_runtime_drift) */
    const char *plugins; /**< shared libraries that bring backends (TANDEM_PLUGIN_SYMBOL): "FILE.so"
                              or "FILE.so:key=value,..", ';' between two; NULL: none */
    enum tandem_objective objective; /**< what plans aim at, by a table with joules; with another
                                          table time, and the log says so */
    tandem_team_fn team; /**< the application's threads; NULL: the runtime starts its own */
    void *team_user;     /**< handed to `team` */
};
#define TANDEM_RUNTIME_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_runtime_options), 0, NULL, NULL, NULL, NULL, NULL, NULL,              \
            (enum tandem_log_level)0, 0, NULL, 0, 0, 0, false, NULL, TANDEM_OBJECTIVE_TIME, NULL,  \
            NULL                                                                                   \
    }

/** Opens a runtime, which the caller owns: backends, threads, this machine's table. `options` may
 *  be NULL. A table that is missing, foreign or damaged is no error: the rule serves, one log
 *  line says why, tandem_runtime_table_status tells it. Any thread. Errors: ARGUMENT, ABI, MEMORY,
 *  THREAD, NOT_FOUND (unknown profile or backend name). */
TANDEM_API enum tandem_status tandem_runtime_open(const struct tandem_runtime_options *options,
                                                  tandem_runtime **out_runtime,
                                                  struct tandem_error *error);
/** Closes a runtime and waits for its threads. No computation may be in progress; plans, graphs and
 *  contexts live on. NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_runtime_close(tandem_runtime *runtime);

/** Number of backend slots (slot 0 is "none") and name of one, which lives as long as the runtime.
 *  Never fail: 0 and NULL for NULL or a slot beyond the last. Any thread. */
TANDEM_API int tandem_runtime_backend_count(const tandem_runtime *runtime);
TANDEM_API const char *tandem_runtime_backend_name(const tandem_runtime *runtime, int slot);
/** Adds a backend from outside the library: all devices that open with `settings` ("key=value,..",
 *  or NULL). `api` must stay valid until the runtime is closed. Any thread, while others plan and
 *  compute: plans made from now on may use it. Errors: ABI, ARGUMENT (a function is missing, an
 *  unknown setting), EXISTS, LIMIT (no slot is left), those of its `open`. */
TANDEM_API enum tandem_status tandem_runtime_add_backend(tandem_runtime *runtime,
                                                         const struct tandem_backend_api *api,
                                                         const char *settings,
                                                         struct tandem_error *error);

/** OK when a timing table is in use. Any thread. Errors: why there is none (NOT_FOUND, FILE,
 *  FORMAT, TABLE_FOREIGN, ...), ARGUMENT (NULL). */
TANDEM_API enum tandem_status tandem_runtime_table_status(const tandem_runtime *runtime,
                                                          struct tandem_error *error);
/** Uses another table (copied); NULL: none. Plans made before stay valid. Any thread. Errors:
 *  ARGUMENT (NULL), MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_set_table(tandem_runtime *runtime,
                                                       const tandem_table *table,
                                                       struct tandem_error *error);

/** The runtime's chooser, for tandem_lower_options and tandem_onnx_set_chooser: nets that are
 *  lowered with it take the methods of convolutions that are fastest by the table in use, on the
 *  runtime's threads. With TANDEM_TUNE=on-first-use, the first net with convolutions that the table
 *  does not know is measured while it is lowered (docs/tuning.md). It lives as long as the runtime.
 *  NULL for NULL, or in a child of the process that opened the runtime. Never fails. Any thread. */
TANDEM_API const tandem_chooser *tandem_runtime_chooser(const tandem_runtime *runtime);

/** Options of tandem_tune_graph. */
struct tandem_tune_options {
    size_t size;     /**< sizeof(struct tandem_tune_options) */
    double budget_s; /**< seconds that measuring takes, all that belongs to it included; 0: 5 */
    bool saves;      /**< add to this machine's own table too, for other programs and later runs */
    /** Told now and then; true ends measuring with CANCELLED (what was measured serves). May be
     *  NULL. */
    bool (*progress)(void *user, double elapsed_s, double budget_s);
    void *user; /**< handed to `progress` */
};
#define TANDEM_TUNE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_tune_options), 0.0, false, NULL, NULL                                 \
    }

/** Measures the matrix products of a finished graph with every profile that runs here, where it
 *  tells most for the graph (how often each is called, how uncertain its time is), and plans by
 *  what it found from then on; later products of other shapes gain by it as well. Weights and
 *  results are not touched: it measures on operands of its own. At most 64 different weights.
 *  `options` may be NULL. To be called when a program starts, not inside a request: it takes its
 *  budget. Any thread, one at a time per runtime; what others compute meanwhile makes it less
 *  exact. Plans made before stay valid. Errors: STATE (graph not finished), ARGUMENT, CANCELLED,
 *  MEMORY, FILE (not saved; it serves nevertheless), those of measuring. */
TANDEM_API enum tandem_status tandem_tune_graph(tandem_runtime *runtime, const tandem_graph *graph,
                                                const struct tandem_tune_options *options,
                                                struct tandem_error *error);

/** Threads of later plans, 1 .. as opened or more (the pool grows). Waits for computations in
 *  progress. While the process's control group grants fewer CPUs than when the runtime was opened
 *  (looked at once a second at most, when something is planned or computed), plans have no more
 *  threads than that, and tandem_runtime_threads says so. After this call other programs that keep
 *  CPUs busy are no reason for fewer threads. Any thread. Errors: ARGUMENT, THREAD,
 *  MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_set_threads(tandem_runtime *runtime, int n_threads);
/** Threads that later plans have at most; 0 for NULL. Never fails. Any thread. */
TANDEM_API int tandem_runtime_threads(const tandem_runtime *runtime);
/** How later runs carry their plans out: bits of enum tandem_execution; TANDEM_EXECUTE_DEFAULT when
 *  the runtime is opened. Never fails. Any thread. */
TANDEM_API void tandem_runtime_set_execution(tandem_runtime *runtime, uint32_t execution);
/** Parks idle workers at once until tandem_runtime_resume: they take no CPU time. Computing still
 *  works and wakes them. Never fail. Any thread. */
TANDEM_API void tandem_runtime_pause(tandem_runtime *runtime);
TANDEM_API void tandem_runtime_resume(tandem_runtime *runtime);
/** Binds the workers to other CPUs, named by the system's numbers (copied); 0 CPUs: unbound. Waits
 *  for computations in progress. Any thread. Errors: ARGUMENT, THREAD. */
TANDEM_API enum tandem_status tandem_runtime_set_cpus(tandem_runtime *runtime, const int *cpu_ids,
                                                      int n_cpu_ids);

/** Forces a profile wherever it applies in later plans; NULL: choose. tandem_runtime_force_node
 *  does it for one node of one plan. Any thread. Errors: NOT_FOUND, ARGUMENT (NULL). */
TANDEM_API enum tandem_status tandem_runtime_force_profile(tandem_runtime *runtime,
                                                           const char *profile,
                                                           struct tandem_error *error);

/** Bound on the error of results against the reference, as measured on this machine by mulmat-tune
 *  bench: the sum of squared errors over the sum of squares. Profiles above it, and those that
 *  nobody has checked, are not chosen in later plans; where none is left the rule serves. 0:
 *  no bound, and only profiles that were found wrong are left out. Any thread. Errors: ARGUMENT. */
TANDEM_API enum tandem_status tandem_runtime_set_error_bound(tandem_runtime *runtime, double bound);

/** Chooses a profile for every node of a finished graph. Shapes seen before cost well under 1 us a
 *  node. The caller owns the plan. Any thread, one at a time per graph. Errors: STATE (graph not
 *  finished), ARGUMENT (NULL), MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_plan(tandem_runtime *runtime,
                                                  const tandem_graph *graph, tandem_plan **out_plan,
                                                  struct tandem_error *error);
/** What a graph is predicted to take. The layout is fixed for good. */
struct tandem_prediction {
    double us;            /**< from the start of the first node to the end of the last one; 0: the
                               table knows none of them */
    double gain_error_us; /**< error bar of what is gained by working at once; 0: nothing is */
    bool is_at_once;      /**< several devices, or devices and the CPU, at once */
};
/** Plans a finished graph to look at its predicted time, to compare graphs that give the same
 *  results; nothing is tried. Cost: as tandem_runtime_plan. Any thread, one at a time per graph.
 *  Errors: those of tandem_runtime_plan. */
TANDEM_API enum tandem_status tandem_runtime_predict(tandem_runtime *runtime,
                                                     const tandem_graph *graph,
                                                     struct tandem_prediction *out,
                                                     struct tandem_error *error);
/** Forces a profile for node `i` of a plan (as in tandem_graph_node), by name and on the node's
 *  thread count; the others stay as they are. Tells with an error which profiles apply. One thread
 *  at a time per plan. Errors: NOT_FOUND (no such profile), ARGUMENT (NULL, no such node, a plan of
 *  another graph, or a node that is no plain matrix product), UNSUPPORTED_BACKEND (the profile
 *  cannot run this node here), STATE (graph not finished). */
TANDEM_API enum tandem_status
tandem_runtime_force_node(tandem_runtime *runtime, const tandem_graph *graph, tandem_plan *plan,
                          int i, const char *profile, struct tandem_error *error);
/** Prints one line a node: problem, profile, task configs, threads, predicted time, reason; and
 *  what a run moves between host and devices. Any thread while nobody changes the plan. Errors:
 *  ARGUMENT (NULL, or a plan of another graph), MEMORY, FILE (`write` stopped). */
TANDEM_API enum tandem_status tandem_runtime_print_plan(const tandem_runtime *runtime,
                                                        const tandem_graph *graph,
                                                        const tandem_plan *plan,
                                                        tandem_write_fn write, void *user);

/* ---- which weights devices keep ---- */

/** A weight of a model. The layout is fixed for good. */
struct tandem_place_weight {
    const char *name;      /**< as in GGUF files ("blk.0.attn_q.weight"): says layer and part; NULL
                                and other names: a weight by itself */
    const void *data;      /**< of the tensor that holds it (TANDEM_ROLE_CONSTANT); not read */
    size_t bytes;          /**< of `data` */
    enum tandem_type type; /**< of its values */
    int64_t k;             /**< values of a row */
    int64_t n;             /**< rows of a matrix; 1: a vector */
    int64_t n_experts;     /**< matrices of n x k, of which a token uses some; 1: no experts */
};

/** What shall be fast. Numbers are pinned. */
enum tandem_place_objective {
    TANDEM_PLACE_MIXED = 0,     /**< a prompt, and 128 tokens generated one by one */
    TANDEM_PLACE_PROMPT = 1,    /**< a prompt */
    TANDEM_PLACE_GENERATION = 2 /**< generated tokens */
};

/** Options of tandem_runtime_place. Arrays are read during the call. */
struct tandem_place_options {
    size_t size;                           /**< sizeof(struct tandem_place_options) */
    enum tandem_place_objective objective; /**< what shall be fast */
    int64_t prompt_tokens;                 /**< of a prompt; 0: 512 */
    int64_t context;                       /**< tokens whose keys and values layers keep; 0: none */
    enum tandem_type cache_type;           /**< of keys and values */
    int64_t n_used;                        /**< experts that a token uses; 0: all */
    const int64_t *device_memory; /**< bytes of each device with memory of its own, by slot; 0, and
                                       of those behind the last: its driver is asked. Backends may
                                       give weights less (weight_budget) */
    int n_device_memory;          /**< length of `device_memory` */
    bool only_if_needed; /**< nothing is placed where the first device holds all of the weights, or
                              where the memory of a device is not known */
    const double *expert_use; /**< {use_experts, use_layers}: of all tokens, those that use each
                                   expert, 0 to 1; NULL: all are as likely, and experts of a layer
                                   stay together */
    int64_t use_experts;      /**< of a layer */
    int64_t use_layers;       /**< layers that have numbers in names */
    const uint8_t *hot_now;   /**< the same extents: the backend that keeps each expert apart from
                                   others of its layer, as `gather` was told; 0: none. NULL: none */
    double keep_tokens; /**< what was placed before stays as it is unless what changes saves, in so
                             many tokens, twice the time of its uploads; 0: it is replaced */
    /** Asked for a copy of some experts of weight `weight` of the list, one behind the other in
     *  this order, which the device of backend `backend` shall keep; returns its first byte, of a
     *  tensor with TANDEM_ROLE_CONSTANT, or NULL: the device does not get them. Called on the
     *  calling thread. NULL: experts of a layer stay together. */
    const void *(*gather)(void *user, int weight, const int32_t *experts, int64_t n_experts,
                          int backend);
    void *gather_user;    /**< handed to `gather` */
    bool returns_to_host; /**< what each part of a layer computes goes to host memory, and the next
                               one reads it there: processes that share rows of the weights add up
                               their results */
};
#define TANDEM_PLACE_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(struct tandem_place_options), TANDEM_PLACE_MIXED, 0, 0, TANDEM_TYPE_F32, 0, NULL,   \
            0, false, NULL, 0, 0, NULL, 0, NULL, NULL, false                                       \
    }

/** Decides by the timing table which weights live in the memory of which device, by saved time per
 *  byte (docs/placing-weights.md), and keeps it: plans made from now on let a device keep the
 *  weights that are placed on it, and no others of the list; what is not in the list may be
 *  anywhere. Replaces what was placed before; 0 weights: nothing is placed. The data must not move
 *  as long as it counts. With `expert_use` the most used experts of a layer may be kept apart: the
 *  caller gathers them into weights of their own, computes those and the others as two products,
 *  with index -1 in place of the other one's experts, and adds the results up. Products of experts
 *  are priced by that use from then on. `options` may be NULL. Plans made before stay as they are.
 *  Any thread.
 *  Errors: ARGUMENT (sizes that cannot be, a device whose memory nobody knows), NOT_FOUND (no
 *  table, or it has no times for too much of the weights), LIMIT, MEMORY; after an error what was
 *  placed before counts. */
TANDEM_API enum tandem_status tandem_runtime_place(tandem_runtime *runtime,
                                                   const struct tandem_place_weight *weights,
                                                   int n_weights,
                                                   const struct tandem_place_options *options,
                                                   struct tandem_error *error);

/** What tandem_runtime_place has decided. */
struct tandem_place_info {
    size_t size;                /**< sizeof(struct tandem_place_info) */
    int n_weights;              /**< of the list; 0: nothing is placed */
    int n_placed;               /**< of them in the memory of devices */
    int64_t placed_bytes;       /**< of those */
    double prompt_us;           /**< predicted time of a prompt, */
    double prompt_error_us;     /**< and its error bar */
    double generation_us;       /**< the same of a generated token */
    double generation_error_us; /**< and its error bar */
    int n_hot;                  /**< experts that devices keep apart from others of their layer */
    int n_moved;                /**< experts that the last call has given to a device */
    bool is_kept;               /**< the last call left all as it was (keep_tokens) */
};
#define TANDEM_PLACE_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(struct tandem_place_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, false                         \
    }
/** Fills `out_info`, whose size is set. Any thread. Errors: ARGUMENT (NULL), ABI, STATE. */
TANDEM_API enum tandem_status tandem_runtime_placement(const tandem_runtime *runtime,
                                                       struct tandem_place_info *out_info);
/** Name of the backend in whose memory a weight is kept, by its data: a device, or "cpu" for host
 *  memory. NULL for one of which nothing was decided. Never fails. Any thread. */
TANDEM_API const char *tandem_runtime_placed_on(const tandem_runtime *runtime, const void *data);

/** What a plan becomes when it is carried out. */
struct tandem_step_counts {
    size_t size;    /**< sizeof(struct tandem_step_counts) */
    int n_steps;    /**< stages that run, and transfers */
    int n_groups;   /**< steps that run side by side, or one after another on one thread */
    int n_parallel; /**< groups of several threads: each ends with a barrier */
};
#define TANDEM_STEP_COUNTS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct tandem_step_counts), 0, 0, 0                                                 \
    }

/** Counts the steps of a plan as the runtime would run it now, into a structure whose size is set.
 *  Any thread while nobody changes graph and plan. Errors: ARGUMENT (NULL), STATE, ABI, those of
 *  computing it. */
TANDEM_API enum tandem_status tandem_runtime_count_steps(tandem_runtime *runtime,
                                                         const tandem_graph *graph,
                                                         const tandem_plan *plan,
                                                         struct tandem_step_counts *out_counts,
                                                         struct tandem_error *error);

/** Prints for people why each node runs as it does: for every different matrix product the profiles
 *  with predicted times and error bars, the winner and its margin, the M at which another one takes
 *  over, what else would change the choice, and, where the table knows too little, the command that
 *  measures it. Nodes that have no choice are counted only. `plan` NULL: a fresh one. Measures
 *  nothing. Any thread while nobody changes graph and plan. Errors: ARGUMENT (plan of another
 *  graph, graph not finished), MEMORY, FILE (`write` stopped). */
TANDEM_API enum tandem_status tandem_runtime_explain(tandem_runtime *runtime,
                                                     const tandem_graph *graph,
                                                     const tandem_plan *plan, tandem_write_fn write,
                                                     void *user);

/** Writes a plan to a text file, whole or not at all; form: docs/planning.md. Any thread while
 *  nobody changes the plan. Errors: STATE (graph not finished), ARGUMENT (plan of another graph, or
 *  one that could not run), FILE, MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_save_plan(tandem_runtime *runtime,
                                                       const tandem_graph *graph,
                                                       const tandem_plan *plan, const char *path,
                                                       struct tandem_error *error);
/** Reads a plan for a graph with the same operations, types and weight shapes; the number of tokens
 *  may differ. Computing by it gives the bits that the saved one gave. The caller owns the plan.
 *  Any thread. Errors: STATE, FILE, FORMAT, TRUNCATED, TABLE_VERSION, UNSUPPORTED_BACKEND (a
 *  backend that is not open here), ARGUMENT (plan of another graph), LIMIT, MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_load_plan(tandem_runtime *runtime,
                                                       const tandem_graph *graph, const char *path,
                                                       tandem_plan **out_plan,
                                                       struct tandem_error *error);

/** Options of tandem_runtime_prepare. */
struct tandem_prepare_options {
    size_t size;  /**< sizeof(struct tandem_prepare_options) */
    bool experts; /**< also the weights of experts, of which a token reads a few */
    bool keeps; /**< for later processes too, where the settings ask for it (cpu:pack-cache=DIR) */
    /** Told after each weight, on the calling thread; false ends with CANCELLED. May be NULL. */
    bool (*progress)(void *user, uint64_t done_bytes, uint64_t all_bytes);
    void *user; /**< handed to `progress` */
    /** Not now: the first computation of the runtime reads weights as they are, so that its results
     *  come soon, and each later one packs a 32nd of them. Results have the same bits. Packed
     *  weights that a cache has are used at once; none is written. */
    bool gradually;
};
#define TANDEM_PREPARE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_prepare_options), false, true, NULL, NULL, false                      \
    }

/** Does now, on all threads of the plan, what the first computation by it would do with weights:
 *  backends of the host pack them, or take them from their cache. Not needed: whatever is not
 *  prepared is when it is used first. What does not fit is left, what cannot be kept is said to the
 *  log. Weights of which devices compute a part are left too. `options` may be NULL. Any thread
 *  while nobody changes graph and plan. Errors: STATE (graph not finished), ARGUMENT (NULL, plan of
 *  another graph), ABI, CANCELLED, THREAD. */
TANDEM_API enum tandem_status
tandem_runtime_prepare(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                       const struct tandem_prepare_options *options, struct tandem_error *error);

/** Options of tandem_runtime_compute. The functions are called one at a time, on a thread that
 *  takes part in the computation; they must neither use the graph nor close the runtime. */
struct tandem_compute_options {
    size_t size; /**< sizeof(struct tandem_compute_options) */
    /** Asked between nodes and, in nodes that take long, every 0.01 s; true ends the computation
     *  with CANCELLED. May be NULL; tandem_cancel_flag asks a variable. */
    bool (*cancel)(void *user);
    /** Told now and then: nodes done, nodes in all. May be NULL. */
    void (*progress)(void *user, int n_done, int n_total);
    void *user; /**< handed to all three functions */
    /** Told after a computation that succeeded, stage by stage, what a node took: microseconds from
     *  the start of the stage to its end on all threads, moving data included. Parts of a product
     *  that is split are told one by one, joining them as FINALIZE. May be NULL. */
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
};
#define TANDEM_COMPUTE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_compute_options), NULL, NULL, NULL, NULL                              \
    }

/** Computes a graph: by `plan`, or by a fresh plan when NULL. `options` may be NULL. On failure
 *  outputs are undefined and the runtime stays usable. Any thread; one at a time per graph.
 *  A device that fails is not used again while the runtime lives: the log says so once, and the
 *  graph is computed again on what remains, callbacks included. Nodes for whose weights a device
 *  has no room run elsewhere. Errors: STATE (graph not finished), CANCELLED, MEMORY, ARGUMENT (bad
 *  index in get_rows), those of backends; of a failed device only when the graph has overwritten a
 *  leaf that it had read before, so that it cannot be repeated. */
TANDEM_API enum tandem_status tandem_runtime_compute(tandem_runtime *runtime, tandem_graph *graph,
                                                     const tandem_plan *plan,
                                                     const struct tandem_compute_options *options,
                                                     struct tandem_error *error);

/** A function for the members `cancel` of options: `user` points at an int32_t, 0 until another
 *  thread or a signal handler sets it to cancel. NULL never cancels. Never fails. Any thread. */
TANDEM_API bool tandem_cancel_flag(void *user);

/** A time of the table that computations do not bear out. The layout is fixed for good. */
struct tandem_drift_info {
    char what[160];      /**< "mul_mat:q4_0:n4096:k4096:m1 compute mul_mat_q on cpu, threads 2" */
    double predicted_us; /**< by the table */
    double measured_us;  /**< what it takes, the machine's general slowness taken out */
    double noise;        /**< of the computations' times, as a fraction */
};
/** Times of the table in use that turned out wrong over several computations, oldest first. The
 *  planner goes by the measured ones since they were found; one that proves wrong is taken back.
 *  At most every third computation is compared, by the clock readings of its stages and a probe of
 *  the machine before and after it, for at most 0.5 % of the computing time. Fills at most `n`;
 *  returns how many there are; 0 for NULL. Never fails. Any thread. */
TANDEM_API int tandem_runtime_drift(tandem_runtime *runtime, struct tandem_drift_info *out_drift,
                                    int n);
/** Marks those times as stale in a table file, so that mulmat-tune bench measures them anew. `path`
 *  NULL: this machine's own table. Does nothing without drift. Any thread.
 *  Errors: FILE, MEMORY, NOT_FOUND (no home directory), LIMIT. */
TANDEM_API enum tandem_status tandem_runtime_save_drift(tandem_runtime *runtime, const char *path,
                                                        struct tandem_error *error);

/** Candidates for something that is done again and again, of which the fastest is wanted while the
 *  machine changes: what runtimes themselves choose plans by. */
typedef struct tandem_candidates tandem_candidates;
enum { TANDEM_MAX_CANDIDATES = 4 };
/** Nothing is known yet. Of the time, `share` may be lost by trying candidates that are not the
 *  fastest. The caller owns the result. Any thread. Errors: ARGUMENT (NULL, a share not above 0 or
 *  above 0.5), MEMORY. */
TANDEM_API enum tandem_status
tandem_candidates_new(double share, tandem_candidates **out_candidates, struct tandem_error *error);
/** NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_candidates_free(tandem_candidates *candidates);
/** Which one is to do the next piece, of about `amount` units; 0 until a time of the `key` (a kind
 *  of pieces, not 0) was noted. Mostly the fastest; others are tried now and then, sooner when that
 *  one has become slow. `now_s`: a clock that never goes back. Never fails. Any thread. */
TANDEM_API int tandem_candidates_choose(tandem_candidates *candidates, uint64_t key, int64_t amount,
                                        double now_s);
/** A piece of `amount` units took `us` by `candidate` of `n`. `guesses` {n}: expected times, in any
 *  unit; 0: not possible. They are read with the first time of a key. Another candidate takes over
 *  where its times are shorter beyond their errors. At most 256 keys; the one unused for longest is
 *  given up. Any thread. Errors: ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_candidates_note(tandem_candidates *candidates, uint64_t key,
                                                     const double *guesses, int n, int candidate,
                                                     int64_t amount, double us, double now_s,
                                                     struct tandem_error *error);

/** A product inside of a program that Tandem serves: by its kernels or by ours. */
struct tandem_hosted_time {
    size_t size;
    const char *program;   /**< its release and that of its kernels, at most 79 characters */
    const char *kernels;   /**< "ours", "loaded", "plain" (docs/table-format.md); at most 15 */
    enum tandem_type type; /**< of the weights {K, N}, of `experts` such matrices {K, N, experts} */
    int64_t n, k, m;       /**< m: tokens */
    int64_t experts, used; /**< experts: 0: a plain product; used: by a token, 1 */
    int threads;
    const float *us; /**< to be added: times in microseconds, one after the other */
    int n_us;
    bool disturbed; /**< another program took CPUs meanwhile */
    double time_us; /**< found: the median, its standard error, from how many times */
    double error_us;
    int count;
    double age_s; /**< of the newest of them */
};
#define TANDEM_HOSTED_TIME_INIT                                                                    \
    {                                                                                              \
        sizeof(struct tandem_hosted_time), NULL, NULL, TANDEM_TYPE_F32, 0, 0, 0, 0, 1, 1, NULL, 0, \
            false, 0, 0, 0, 0                                                                      \
    }
/** What the table in use knows of a product: fills the members from `disturbed` on. Any thread.
 *  Errors: ARGUMENT, ABI, NOT_FOUND (nobody measured it). */
TANDEM_API enum tandem_status tandem_runtime_find_hosted(tandem_runtime *runtime,
                                                         struct tandem_hosted_time *io_time,
                                                         struct tandem_error *error);
/** Adds the times `us` of `n` products to what is known of them, in the table in use and in this
 *  machine's own file. What was known counts as up to 64 times beside them; where the two differ,
 *  that is spread. Undisturbed times replace disturbed ones, which are never added to others. With
 *  `fresh` what was known counts for nothing. Any thread. Errors: ARGUMENT, ABI, MEMORY; FILE,
 *  NOT_FOUND (no home directory) and LIMIT of the file alone: the table in use has them. */
TANDEM_API enum tandem_status tandem_runtime_add_hosted(tandem_runtime *runtime,
                                                        const struct tandem_hosted_time *times,
                                                        int n, bool fresh,
                                                        struct tandem_error *error);

/** Before a program looks at the values of a tensor with TANDEM_ROLE_STATE: they are in host memory
 *  when it returns. Before it changes them: the same with `will_change`, so that devices fetch them
 *  again. Other tensors: does nothing. No computation may use the tensor meanwhile. One
 *  thread at a time per tensor. Errors: ARGUMENT (NULL), those of devices. */
TANDEM_API enum tandem_status tandem_runtime_fetch(tandem_runtime *runtime,
                                                   const tandem_tensor *tensor, bool will_change,
                                                   struct tandem_error *error);
/** Before the memory of a tensor with TANDEM_ROLE_CONSTANT or TANDEM_ROLE_STATE goes away, or when
 *  devices shall have room for others: gives up what they keep of it. Without this call they keep
 *  it until the runtime is closed. NULL is allowed. No computation may use the tensor meanwhile.
 *  Never fails. One thread at a time per tensor. */
TANDEM_API void tandem_runtime_forget(tandem_runtime *runtime, const tandem_tensor *tensor);

/** One profile of this machine as listed by mulmat-tune profiles. The layout is fixed for good. */
struct tandem_profile_info {
    char name[32];                                  /**< "cpu", "cpu+openblas", ... */
    char what[96];                                  /**< a sentence for people */
    struct tandem_task_config stage[TANDEM_STAGES]; /**< for quantised weights, else for BF16 */
    bool available;                                 /**< its backends are open */
    char reason[128];                               /**< why not available */
};
/** Profiles that this library knows, available or not. Fills at most `n` (0: `out_profiles`
 *  may be NULL); returns how many there are. Never fails. Any thread. */
TANDEM_API int tandem_runtime_profiles(const tandem_runtime *runtime,
                                       struct tandem_profile_info *out_profiles, int n);

/** Facts for reports. Strings live as long as the runtime and do not change. */
struct tandem_runtime_info {
    size_t size;           /**< sizeof(struct tandem_runtime_info) */
    const char *cpu;       /**< model name */
    const char *isa;       /**< instruction set that kernels use, after TANDEM_CPU */
    const char *topology;  /**< one line */
    const char *table;     /**< path of the table in use, or "" */
    int n_threads;         /**< of later plans, at most; see tandem_runtime_threads */
    int n_cores;           /**< physical cores that the process may use */
    size_t prepared_bytes; /**< copies of weights that backends have made for themselves so far */
    int n_devices;         /**< open backends that compute elsewhere than on the host's threads */
};
#define TANDEM_RUNTIME_INFO_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_runtime_info), NULL, NULL, NULL, NULL, 0, 0, 0, 0                     \
    }
/** Fills `out_info`, whose size is set. Any thread. Errors: ARGUMENT (NULL), ABI. */
TANDEM_API enum tandem_status tandem_runtime_describe(const tandem_runtime *runtime,
                                                      struct tandem_runtime_info *out_info);
/** A line for people of the i-th backend that has one: what the device has done so far and keeps,
 *  at most `capacity` bytes with the zero byte. False beyond the last. Never fails. Any thread. */
TANDEM_API bool tandem_runtime_report(const tandem_runtime *runtime, int i, char *out,
                                      size_t capacity);

TANDEM_END_C
#endif
