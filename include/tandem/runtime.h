/* SPDX-License-Identifier: MIT
 * room: runtime
 *
 * The main interface: opens backends and threads, loads this machine's timing table, plans graphs
 * and computes them. A runtime may be used by several threads at once; a graph is planned and
 * computed by one thread at a time.
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

/** Owned by its opener; everything in it is freed by tandem_runtime_close. */
typedef struct tandem_runtime tandem_runtime;

/** Work for `count` threads at once: each calls it with an `index` of its own, 0 .. count-1. */
typedef void (*tandem_team_body_fn)(void *data, int index, int count);
/** Threads of an application that compute for a runtime, so that two thread pools need not take
 * turns. Calls `body` on up to `count` threads, index 0 on the calling one, and returns true when
 * all have returned. They must really run concurrently: they wait for each other. False: no threads
 * are available now, nothing was called, and the runtime's own threads compute. One call at a
 * time. */
typedef bool (*tandem_team_fn)(void *user, int count, tandem_team_body_fn body, void *data);

/** Options of tandem_runtime_open. Strings and arrays are read during the call. */
struct tandem_runtime_options {
    size_t size;   /**< sizeof(struct tandem_runtime_options) */
    int n_threads; /**< threads of a graph; 0: TANDEM_THREADS, else one per available core, and
                    * fewer while other programs keep CPUs busy (not threads of this one) */
    const char *table_path; /**< timing table, over the system's and this machine's own; NULL: only
                             * these; "": none (the rule). docs/tuning.md */
    const char *profile;    /**< force this profile wherever it applies; NULL: choose */
    const char *backends;   /**< comma-separated names; NULL: all that are present (never "sim");
                             * "auto": the CPU and the devices that this machine's tables have as
                             * the fastest for some product. No other driver is loaded */
    const char *settings; /**< backends' settings "sim:key=value;openblas:key=value"; NULL: none */
    tandem_log_fn log;    /**< NULL: silent */
    void *log_user;       /**< passed to `log` */
    enum tandem_log_level log_level; /**< 0: WARN, or TANDEM_LOG */
    int64_t spin_limit;  /**< polls of an idle worker before it sleeps; 0: default, < 0: none */
    const int *cpu_ids;  /**< CPUs to bind workers to, copied; NULL: do not bind */
    int n_cpu_ids;       /**< length of `cpu_ids` */
    int nice;            /**< niceness added to the worker threads */
    double error_bound;  /**< see tandem_runtime_set_error_bound; 0: none */
    bool ignore_drift;   /**< do not compare run times with predictions (tandem_runtime_drift) */
    const char *plugins; /**< shared libraries that bring backends (TANDEM_PLUGIN_SYMBOL): "FILE.so"
                              or "FILE.so:key=value,..", ';' between two; NULL: none */
    enum tandem_objective objective; /**< what plans minimise, with a table that has joules; with
                                      * another table it is time, which is logged */
    tandem_team_fn team; /**< the application's threads; NULL: the runtime starts its own */
    void *team_user;     /**< passed to `team` */
};
#define TANDEM_RUNTIME_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_runtime_options), 0, NULL, NULL, NULL, NULL, NULL, NULL,              \
            (enum tandem_log_level)0, 0, NULL, 0, 0, 0, false, NULL, TANDEM_OBJECTIVE_TIME, NULL,  \
            NULL                                                                                   \
    }

/** Opens a runtime, which the caller owns: backends, threads, this machine's table. `options` may
 * be NULL. A missing, foreign or damaged table is no error: the rule is used, one log line has the
 * reason, and tandem_runtime_table_status returns it. Any thread. Errors: ARGUMENT, ABI, MEMORY,
 * THREAD, NOT_FOUND (unknown profile or backend name). */
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
/** Adds a backend of the program's own: all devices that open with `settings` ("key=value,..", or
 * NULL). `api` must stay valid until the runtime is closed. Any thread, while others plan and
 * compute: plans made from now on may use it. Errors: ABI, ARGUMENT (a function is missing, an
 * unknown setting), EXISTS, LIMIT (no slot is left), those of its `open`. */
TANDEM_API enum tandem_status tandem_runtime_add_backend(tandem_runtime *runtime,
                                                         const struct tandem_backend_api *api,
                                                         const char *settings,
                                                         struct tandem_error *error);

/** OK when a timing table is in use. Any thread. Errors: the reason why there is none (NOT_FOUND,
 * FILE, FORMAT, TABLE_FOREIGN, ...), ARGUMENT (NULL). */
TANDEM_API enum tandem_status tandem_runtime_table_status(const tandem_runtime *runtime,
                                                          struct tandem_error *error);
/** Uses another table (copied); NULL: none. Plans made before stay valid. Any thread. Errors:
 *  ARGUMENT (NULL), MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_set_table(tandem_runtime *runtime,
                                                       const tandem_table *table,
                                                       struct tandem_error *error);

/** The runtime's chooser, for tandem_lower_options and tandem_onnx_set_chooser: nets lowered with
 * it use the methods of convolutions that are fastest by the table in use, on the runtime's
 * threads. With TANDEM_TUNE=on-first-use, the first net with convolutions that are not in the table
 * is measured while it is lowered (docs/tuning.md). It lives as long as the runtime. NULL for NULL,
 * or in a child of the process that opened the runtime. Never fails. Any thread. */
TANDEM_API const tandem_chooser *tandem_runtime_chooser(const tandem_runtime *runtime);

/** Options of tandem_tune_graph. */
struct tandem_tune_options {
    size_t size;     /**< sizeof(struct tandem_tune_options) */
    double budget_s; /**< seconds for measuring, everything included; 0: 5 */
    bool saves;      /**< also add to this machine's own table, for other programs and later runs */
    /** Called from time to time; returning true ends measuring with CANCELLED (what was measured is
     * used). May be NULL. */
    bool (*progress)(void *user, double elapsed_s, double budget_s);
    void *user; /**< passed to `progress` */
};
#define TANDEM_TUNE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_tune_options), 0.0, false, NULL, NULL                                 \
    }

/** Measures the matrix products of a finished graph with every available profile, those first that
 * matter most for the graph (by the number of calls and the uncertainty of their time), and uses
 * the times in later plans, also for other shapes. Does not touch weights and results: it measures
 * on operands of its own. At most 64 different weights. `options` may be NULL. Call it when a
 * program starts, not inside a request: it takes its whole budget. Any thread, one at a time per
 * runtime; concurrent computations make the times less accurate. Plans made before stay valid.
 * Errors: STATE (graph not finished), ARGUMENT, CANCELLED, MEMORY, FILE (not saved, but used
 * nevertheless), those of measuring. */
TANDEM_API enum tandem_status tandem_tune_graph(tandem_runtime *runtime, const tandem_graph *graph,
                                                const struct tandem_tune_options *options,
                                                struct tandem_error *error);

/** Threads of later plans, 1 .. as opened or more (the pool grows). Waits for computations in
 * progress. While the process's control group grants fewer CPUs than when the runtime was opened
 * (checked at most once a second, when something is planned or computed), plans have no more
 * threads than that, and tandem_runtime_threads returns that number. After this call, busy CPUs no
 * longer reduce the number of threads. Any thread. Errors: ARGUMENT, THREAD, MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_set_threads(tandem_runtime *runtime, int n_threads);
/** Maximum number of threads of later plans; 0 for NULL. Never fails. Any thread. */
TANDEM_API int tandem_runtime_threads(const tandem_runtime *runtime);
/** Sets how later runs execute their plans: bits of enum tandem_execution; TANDEM_EXECUTE_DEFAULT
 * when the runtime is opened. Never fails. Any thread. */
TANDEM_API void tandem_runtime_set_execution(tandem_runtime *runtime, uint32_t execution);
/** Parks idle workers at once until tandem_runtime_resume: they use no CPU time. Computing still
 * works and wakes them. Never fail. Any thread. */
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
 * bench: the sum of squared errors over the sum of squares. Profiles above it, and unchecked ones,
 * are not chosen in later plans; if none is left, the rule is used. 0: no bound, only profiles with
 * wrong results are excluded. Any thread. Errors: ARGUMENT. */
TANDEM_API enum tandem_status tandem_runtime_set_error_bound(tandem_runtime *runtime, double bound);

/** Chooses a profile for every node of a finished graph. Known shapes cost well under 1 us per
 * node. The caller owns the plan. Any thread, one at a time per graph. Errors: STATE (graph not
 * finished), ARGUMENT (NULL), MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_plan(tandem_runtime *runtime,
                                                  const tandem_graph *graph, tandem_plan **out_plan,
                                                  struct tandem_error *error);
/** Predicted time of a graph. The layout is fixed for good. */
struct tandem_prediction {
    double us;            /**< from the start of the first node to the end of the last one; 0: the
                           * table has none of them */
    double gain_error_us; /**< error bar of the gain by running concurrently; 0: no gain */
    bool is_at_once;      /**< uses several devices, or devices and the CPU, at the same time */
};
/** Plans a finished graph only to predict its time, to compare graphs with the same results;
 * computes nothing. Cost: as tandem_runtime_plan. Any thread, one at a time per graph. Errors:
 * those of tandem_runtime_plan. */
TANDEM_API enum tandem_status tandem_runtime_predict(tandem_runtime *runtime,
                                                     const tandem_graph *graph,
                                                     struct tandem_prediction *out,
                                                     struct tandem_error *error);
/** Forces a profile for node `i` of a plan (as in tandem_graph_node), by name and on the node's
 * thread count; the others stay as they are. The error lists the profiles that apply. One thread at
 * a time per plan. Errors: NOT_FOUND (no such profile), ARGUMENT (NULL, no such node, a plan of
 * another graph, or a node that is not a plain matrix product), UNSUPPORTED_BACKEND (the profile
 * cannot run this node here), STATE (graph not finished). */
TANDEM_API enum tandem_status
tandem_runtime_force_node(tandem_runtime *runtime, const tandem_graph *graph, tandem_plan *plan,
                          int i, const char *profile, struct tandem_error *error);
/** Prints one line per node: problem, profile, task configs, threads, predicted time, reason; and
 * the transfers of a run between host and devices. Any thread while nobody changes the plan.
 * Errors: ARGUMENT (NULL, or a plan of another graph), MEMORY, FILE (`write` stopped). */
TANDEM_API enum tandem_status tandem_runtime_print_plan(const tandem_runtime *runtime,
                                                        const tandem_graph *graph,
                                                        const tandem_plan *plan,
                                                        tandem_write_fn write, void *user);

/* ---- which weights devices keep ---- */

/** A weight of a model. The layout is fixed for good. */
struct tandem_place_weight {
    const char *name;      /**< as in GGUF files ("blk.0.attn_q.weight"): determines layer and part;
                            * NULL and other names: an independent weight */
    const void *data;      /**< of the tensor that holds it (TANDEM_ROLE_CONSTANT); not read */
    size_t bytes;          /**< of `data` */
    enum tandem_type type; /**< of its values */
    int64_t k;             /**< values of a row */
    int64_t n;             /**< rows of a matrix; 1: a vector */
    int64_t n_experts;     /**< matrices of n x k, of which a token uses some; 1: no experts */
};

/** What to minimise. Numbers are pinned. */
enum tandem_place_objective {
    TANDEM_PLACE_MIXED = 0,     /**< a prompt, and 128 tokens generated one by one */
    TANDEM_PLACE_PROMPT = 1,    /**< a prompt */
    TANDEM_PLACE_GENERATION = 2 /**< generated tokens */
};

/** Options of tandem_runtime_place. Arrays are read during the call. */
struct tandem_place_options {
    size_t size;                           /**< sizeof(struct tandem_place_options) */
    enum tandem_place_objective objective; /**< what to minimise */
    int64_t prompt_tokens;                 /**< of a prompt; 0: 512 */
    int64_t context;                       /**< tokens in the layers' KV cache; 0: none */
    enum tandem_type cache_type;           /**< of keys and values */
    int64_t n_used;                        /**< experts per token; 0: all */
    const int64_t *device_memory; /**< bytes of each device with its own memory, by slot; 0, and
                                   * slots beyond the last: as reported by its driver. Backends may
                                   * allow less for weights (weight_budget) */
    int n_device_memory;          /**< length of `device_memory` */
    bool only_if_needed; /**< place nothing if the first device holds all, or a memory is unknown */
    const double *expert_use; /**< {use_experts, use_layers}: share of tokens that use each expert,
                               * 0 to 1; NULL: all equally likely, and experts of a layer stay
                               * together */
    int64_t use_experts;      /**< per layer */
    int64_t use_layers;       /**< numbered layers */
    const uint8_t *hot_now;   /**< {use_experts, use_layers}: the backend that keeps each expert
                               * apart from others of its layer, as passed to `gather`; 0: none.
                               * NULL: none */
    double keep_tokens; /**< keep the previous placement unless the changes save, over this many
                         * tokens, twice the time of their uploads; 0: replace it */
    /** Copies some experts of weight `weight` of the list, one after the other in this order, for
     * the device of backend `backend`; returns the first byte, of a tensor with
     * TANDEM_ROLE_CONSTANT, or NULL: the device does not get them. Called on the calling thread.
     * NULL: experts of a layer stay together. */
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
 * byte (docs/placing-weights.md), for later plans: a device then keeps the weights placed on it,
 * and no others of the list; weights outside of the list may be anywhere. Replaces the previous
 * placement; 0 weights: nothing is placed. The data must not move while the placement is in use.
 * With `expert_use` the most used experts of a layer may be kept apart: the caller gathers them
 * into weights of their own, computes those and the others as two products, with index -1 in place
 * of the other one's experts, and adds the results up. Products of experts are priced by that use
 * from then on. `options` may be NULL. Plans made before stay as they are. Any thread. Errors:
 * ARGUMENT (impossible sizes, a device with unknown memory), NOT_FOUND (no table, or it has no
 * times for too much of the weights), LIMIT, MEMORY; after an error the previous placement is
 * kept. */
TANDEM_API enum tandem_status tandem_runtime_place(tandem_runtime *runtime,
                                                   const struct tandem_place_weight *weights,
                                                   int n_weights,
                                                   const struct tandem_place_options *options,
                                                   struct tandem_error *error);

/** The decision of tandem_runtime_place. */
struct tandem_place_info {
    size_t size;                /**< sizeof(struct tandem_place_info) */
    int n_weights;              /**< of the list; 0: nothing is placed */
    int n_placed;               /**< of them in the memory of devices */
    int64_t placed_bytes;       /**< of those */
    double prompt_us;           /**< predicted time of a prompt */
    double prompt_error_us;     /**< its error bar */
    double generation_us;       /**< predicted time of a generated token */
    double generation_error_us; /**< its error bar */
    int n_hot;                  /**< experts that devices keep apart from others of their layer */
    int n_moved;                /**< experts that the last call moved to a device */
    bool is_kept;               /**< the last call changed nothing (keep_tokens) */
};
#define TANDEM_PLACE_INFO_INIT                                                                     \
    {                                                                                              \
        sizeof(struct tandem_place_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, false                         \
    }
/** Fills `out_info`, whose size is set. Any thread. Errors: ARGUMENT (NULL), ABI, STATE. */
TANDEM_API enum tandem_status tandem_runtime_placement(const tandem_runtime *runtime,
                                                       struct tandem_place_info *out_info);
/** Name of the backend in whose memory a weight is kept, by its data: a device, or "cpu" for host
 * memory. NULL for a weight that was not placed. Never fails. Any thread. */
TANDEM_API const char *tandem_runtime_placed_on(const tandem_runtime *runtime, const void *data);

/** The steps of a plan. */
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
 * with predicted times and error bars, the winner and its margin, the M at which another one takes
 * over, what else would change the choice, and, if the table has too few times, the command that
 * measures them. Nodes without a choice are only counted. `plan` NULL: a fresh one. Measures
 * nothing. Any thread while nobody changes graph and plan. Errors: ARGUMENT (plan of another graph,
 * graph not finished), MEMORY, FILE (`write` stopped). */
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
 * may differ. Results are bit-identical to those of the saved plan. The caller owns the plan. Any
 * thread. Errors: STATE, FILE, FORMAT, TRUNCATED, TABLE_VERSION, UNSUPPORTED_BACKEND (a backend
 * that is not open here), ARGUMENT (plan of another graph), LIMIT, MEMORY. */
TANDEM_API enum tandem_status tandem_runtime_load_plan(tandem_runtime *runtime,
                                                       const tandem_graph *graph, const char *path,
                                                       tandem_plan **out_plan,
                                                       struct tandem_error *error);

/** Options of tandem_runtime_prepare. */
struct tandem_prepare_options {
    size_t size;  /**< sizeof(struct tandem_prepare_options) */
    bool experts; /**< also the weights of experts, of which a token reads a few */
    bool keeps;   /**< also for later processes, if the settings ask for it (cpu:pack-cache=DIR) */
    /** Called after each weight, on the calling thread; returning false ends with CANCELLED. May be
     * NULL. */
    bool (*progress)(void *user, uint64_t done_bytes, uint64_t all_bytes);
    void *user; /**< passed to `progress` */
    /** Spread it out: the first computation of the runtime reads weights as they are, so that its
     * results come soon, and each later one packs a 32nd of them. Results have the same bits.
     * Packed weights in a cache are used at once; none are written. */
    bool gradually;
};
#define TANDEM_PREPARE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_prepare_options), false, true, NULL, NULL, false                      \
    }

/** Does at once, on all threads of the plan, what the first computation with it would do with
 * weights: backends of the host pack them, or map them from their cache. Optional: weights that are
 * not prepared are prepared on first use. Weights that do not fit are skipped; a failure to store
 * them is logged. Weights partly computed by devices are skipped too. `options` may be NULL. Any
 * thread while nobody changes graph and plan. Errors: STATE (graph not finished), ARGUMENT (NULL,
 * plan of another graph), ABI, CANCELLED, THREAD. */
TANDEM_API enum tandem_status
tandem_runtime_prepare(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                       const struct tandem_prepare_options *options, struct tandem_error *error);

/** Options of tandem_runtime_compute. The functions are called one at a time, on a thread that
 *  takes part in the computation; they must neither use the graph nor close the runtime. */
struct tandem_compute_options {
    size_t size; /**< sizeof(struct tandem_compute_options) */
    /** Called between nodes and, in long nodes, every 0.01 s; returning true ends the computation
     * with CANCELLED. May be NULL; tandem_cancel_flag checks a variable. */
    bool (*cancel)(void *user);
    /** Called from time to time: nodes done, nodes in all. May be NULL. */
    void (*progress)(void *user, int n_done, int n_total);
    void *user; /**< passed to all three functions */
    /** Called after a successful computation for each stage of a node: microseconds from the start
     * of the stage to its end on all threads, transfers included. Parts of a split product are
     * reported one by one, joining them as FINALIZE. May be NULL. */
    void (*timed)(void *user, const tandem_tensor *node, enum tandem_stage stage, double us);
};
#define TANDEM_COMPUTE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(struct tandem_compute_options), NULL, NULL, NULL, NULL                              \
    }

/** Computes a graph by `plan`, or by a new plan when NULL. `options` may be NULL. On failure
 * outputs are undefined and the runtime stays usable. Any thread; one at a time per graph. A device
 * that fails is not used again by this runtime: this is logged once, and the graph is computed
 * again on the remaining ones, callbacks included. Nodes whose weights do not fit on a device run
 * elsewhere. Errors: STATE (graph not finished), CANCELLED, MEMORY, ARGUMENT (bad index in
 * get_rows), those of backends; of a failed device only if the graph has overwritten a leaf after
 * reading it, so that it cannot be repeated. */
TANDEM_API enum tandem_status tandem_runtime_compute(tandem_runtime *runtime, tandem_graph *graph,
                                                     const tandem_plan *plan,
                                                     const struct tandem_compute_options *options,
                                                     struct tandem_error *error);

/** A function for `cancel` members of options: `user` points to an int32_t, 0 until another thread
 * or a signal handler sets it to cancel. NULL never cancels. Never fails. Any thread. */
TANDEM_API bool tandem_cancel_flag(void *user);

/** A time of the table that computations contradict. The layout is fixed for good. */
struct tandem_drift_info {
    char what[160];      /**< "mul_mat:q4_0:n4096:k4096:m1 compute mul_mat_q on cpu, threads 2" */
    double predicted_us; /**< by the table */
    double measured_us;  /**< corrected for the machine's general slowness */
    double noise;        /**< of the computations' times, as a fraction */
};
/** Times of the table in use that turned out wrong over several computations, oldest first. The
 * planner uses the measured times instead; a correction that proves wrong is reverted. At most
 * every third computation is compared, by the clock readings of its stages and a probe of the
 * machine before and after it, at a cost of at most 0.5 % of the computing time. Fills at most `n`;
 * returns how many there are; 0 for NULL. Never fails. Any thread. */
TANDEM_API int tandem_runtime_drift(tandem_runtime *runtime, struct tandem_drift_info *out_drift,
                                    int n);
/** Marks those times as stale in a table file, so that mulmat-tune bench measures them again.
 * `path` NULL: this machine's own table. Does nothing without drift. Any thread. Errors: FILE,
 * MEMORY, NOT_FOUND (no home directory), LIMIT. */
TANDEM_API enum tandem_status tandem_runtime_save_drift(tandem_runtime *runtime, const char *path,
                                                        struct tandem_error *error);

/** Candidates for repeated work, of which the fastest is wanted while the machine changes: runtimes
 * choose their plans this way. */
typedef struct tandem_candidates tandem_candidates;
enum { TANDEM_MAX_CANDIDATES = 4 };
/** Creates an empty object. At most `share` of the time may be lost by trying candidates that are
 * not the fastest. The caller owns the result. Any thread. Errors: ARGUMENT (NULL, a share not
 * above 0 or above 0.5), MEMORY. */
TANDEM_API enum tandem_status
tandem_candidates_new(double share, tandem_candidates **out_candidates, struct tandem_error *error);
/** NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_candidates_free(tandem_candidates *candidates);
/** The candidate for the next piece of work, of about `amount` units; 0 until a time of the `key`
 * (a kind of work, not 0) was noted. Mostly the fastest; others are tried from time to time, sooner
 * when the fastest has become slow. `now_s`: a monotonic clock. Never fails. Any thread. */
TANDEM_API int tandem_candidates_choose(tandem_candidates *candidates, uint64_t key, int64_t amount,
                                        double now_s);
/** A piece of `amount` units took `us` by `candidate` of `n`. `guesses` {n}: expected times, in any
 * unit; 0: not possible. They are read only with the first time of a key. Another candidate takes
 * over if its times are shorter by more than their errors. At most 256 keys; the least recently
 * used one is dropped. Any thread. Errors: ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_candidates_note(tandem_candidates *candidates, uint64_t key,
                                                     const double *guesses, int n, int candidate,
                                                     int64_t amount, double us, double now_s,
                                                     struct tandem_error *error);

/** A product inside another program that uses Tandem: with that program's kernels or with ours. */
struct tandem_hosted_time {
    size_t size;
    const char *program;   /**< release of the program and of its kernels, at most 79 characters */
    const char *kernels;   /**< "ours", "loaded", "plain" (docs/table-format.md); at most 15 */
    enum tandem_type type; /**< of the weights {K, N}, of `experts` such matrices {K, N, experts} */
    int64_t n, k, m;       /**< m: tokens */
    int64_t experts, used; /**< experts: 0: a plain product; used: by a token, 1 */
    int threads;
    const float *us; /**< for adding: successive times in microseconds */
    int n_us;
    bool disturbed; /**< another program used CPUs meanwhile */
    double time_us; /**< result: the median, its standard error, from how many times */
    double error_us;
    int count;
    double age_s; /**< age of the newest one */
};
#define TANDEM_HOSTED_TIME_INIT                                                                    \
    {                                                                                              \
        sizeof(struct tandem_hosted_time), NULL, NULL, TANDEM_TYPE_F32, 0, 0, 0, 0, 1, 1, NULL, 0, \
            false, 0, 0, 0, 0                                                                      \
    }
/** Looks a product up in the table in use: fills the members from `disturbed` on. Any thread.
 * Errors: ARGUMENT, ABI, NOT_FOUND (not measured). */
TANDEM_API enum tandem_status tandem_runtime_find_hosted(tandem_runtime *runtime,
                                                         struct tandem_hosted_time *io_time,
                                                         struct tandem_error *error);
/** Adds the times `us` of `n` products, in the table in use and in this machine's own file. Known
 * times count as up to 64 times beside them; where the two differ, that is spread. Undisturbed
 * times replace disturbed ones, which are never added to others. `fresh` ignores known times. Any
 * thread. Errors: ARGUMENT, ABI, MEMORY; FILE, NOT_FOUND (no home directory) and LIMIT concern only
 * the file: the table in use has the times. */
TANDEM_API enum tandem_status tandem_runtime_add_hosted(tandem_runtime *runtime,
                                                        const struct tandem_hosted_time *times,
                                                        int n, bool fresh,
                                                        struct tandem_error *error);

/** Call before a program reads the values of a tensor with TANDEM_ROLE_STATE: they are in host
 * memory when it returns. Before changing them, call it with `will_change`, so that devices fetch
 * them again. Other tensors: does nothing. No computation may use the tensor meanwhile. One thread
 * at a time per tensor. Errors: ARGUMENT (NULL), those of devices. */
TANDEM_API enum tandem_status tandem_runtime_fetch(tandem_runtime *runtime,
                                                   const tandem_tensor *tensor, bool will_change,
                                                   struct tandem_error *error);
/** Frees what devices keep of a tensor with TANDEM_ROLE_CONSTANT or TANDEM_ROLE_STATE: call it
 * before the tensor's memory is freed, or to make room on devices. Without this call they keep it
 * until the runtime is closed. NULL is allowed. No computation may use the tensor meanwhile. Never
 * fails. One thread at a time per tensor. */
TANDEM_API void tandem_runtime_forget(tandem_runtime *runtime, const tandem_tensor *tensor);

/** One profile of this machine as listed by mulmat-tune profiles. The layout is fixed for good. */
struct tandem_profile_info {
    char name[32];                                  /**< "cpu", "cpu+openblas", ... */
    char what[96];                                  /**< a sentence for people */
    struct tandem_task_config stage[TANDEM_STAGES]; /**< for quantised weights, else for BF16 */
    bool available;                                 /**< its backends are open */
    char reason[128];                               /**< why not available */
};
/** All profiles of this library, available or not. Fills at most `n` (0: `out_profiles` may be
 * NULL); returns how many there are. Never fails. Any thread. */
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
    size_t prepared_bytes; /**< copies of weights that backends have made so far */
    int n_devices;         /**< open backends that do not compute on the host's threads */
};
#define TANDEM_RUNTIME_INFO_INIT                                                                   \
    {                                                                                              \
        sizeof(struct tandem_runtime_info), NULL, NULL, NULL, NULL, 0, 0, 0, 0                     \
    }
/** Fills `out_info`, whose size is set. Any thread. Errors: ARGUMENT (NULL), ABI. */
TANDEM_API enum tandem_status tandem_runtime_describe(const tandem_runtime *runtime,
                                                      struct tandem_runtime_info *out_info);
/** A line for people about the i-th backend that has one: what the device has done so far and
 * holds, at most `capacity` bytes with the zero byte. False beyond the last. Never fails. Any
 * thread. */
TANDEM_API bool tandem_runtime_report(const tandem_runtime *runtime, int i, char *out,
                                      size_t capacity);

TANDEM_END_C
#endif
