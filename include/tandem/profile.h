/* SPDX-License-Identifier: MIT
 * room: sched
 *
 * Profiles, task configs and plans. Every node runs in up to three stages, INIT, COMPUTE and
 * FINALIZE, with a barrier between two stages. A profile is a named way of running a node: one task
 * config per stage. A plan is the list of choices for one graph, and, if devices work beside the
 * CPU, also a schedule: products that are split, the order of the nodes, predicted times on each
 * lane. It is plain data that can be printed, changed by hand, copied, stored and run again. */
#ifndef TANDEM_PROFILE_H
#define TANDEM_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/backend.h"
#include "tandem/graph.h"

TANDEM_BEGIN_C

/** The stages of a node, in the order in which they run. Numbers are pinned. */
enum tandem_stage { TANDEM_STAGE_INIT, TANDEM_STAGE_COMPUTE, TANDEM_STAGE_FINALIZE };
#define TANDEM_STAGES 3 /**< number of stages */

/** Backends are named by their slot in a runtime, see tandem_runtime_backend_name. */
#define TANDEM_MAX_BACKENDS 16
#define TANDEM_BACKEND_NONE 0 /**< slot 0: the stage does not exist */
#define TANDEM_BACKEND_CPU  1 /**< slot 1: the CPU backend, always there */

/** How one stage of one node runs. Plain data; the layout is fixed for good. */
struct tandem_task_config {
    uint8_t backend;  /**< slot of the backend in the runtime, 0: no stage */
    uint8_t task;     /**< enum tandem_task */
    bool parallel;    /**< all threads of the node, in chunks; else one thread */
    bool wait;        /**< idle workers sleep, where a time is predicted until shortly before its
                         end; else they spin for a while first */
    bool own_threads; /**< not parallel, but the backend may use n_threads threads itself */
};

/** Why a node runs as it does. */
enum tandem_plan_reason {
    TANDEM_REASON_ONLY,    /**< there is no alternative */
    TANDEM_REASON_TABLE,   /**< predicted fastest by the timing table */
    TANDEM_REASON_RULE,    /**< the rule: no table, or the table does not cover the node */
    TANDEM_REASON_FORCED,  /**< asked for by the user */
    TANDEM_REASON_HAND,    /**< changed in the plan by hand */
    TANDEM_REASON_FALLBACK /**< the chosen device has failed, or has no room for the weights */
};

/** The choice for one node. Plain data; the layout is fixed for good. */
struct tandem_plan_node {
    char profile[32];                               /**< "cpu", "cpu+openblas", ... */
    struct tandem_task_config stage[TANDEM_STAGES]; /**< how each stage runs */
    int32_t n_threads;                 /**< threads of the node's parallel stages, >= 1 */
    uint32_t reason;                   /**< enum tandem_plan_reason */
    float predicted_us[TANDEM_STAGES]; /**< 0 if unknown */
    float runner_up_us;                /**< predicted total of the second-best choice, or 0 */
};

/** Along which dimension of W (N x K) a product is split. Numbers are pinned. */
enum tandem_split {
    TANDEM_SPLIT_ROWS,   /**< each part computes some columns of Y; changes no bit where all parts
                              run the same kernels */
    TANDEM_SPLIT_COLUMNS /**< each part sums over some columns of W and X; the sums are added */
};

/** A part of a product that another backend computes at the same time. The rest, which must be a
 * contiguous, non-empty range, is computed by the node's own choice; both are joined in FINALIZE of
 * the node. Plain data; the layout is fixed for good. */
struct tandem_plan_part {
    int32_t node;                   /**< index of the product, as in tandem_graph_node; W is
                                         TANDEM_ROLE_CONSTANT, X and Y are dense matrices */
    uint32_t split;                 /**< enum tandem_split; all parts of a node have the same */
    int64_t begin, end;             /**< rows of W begin .. end - 1, or columns: then multiples of
                                         the block of its type */
    struct tandem_plan_node choice; /**< how the part runs, with its predicted times */
};

/** Lanes work at the same time: each backend computes on one lane, and each device with memory of
 *  its own has one lane for each direction of its transfers. Numbers are pinned. */
enum tandem_lane { TANDEM_LANE_COMPUTE, TANDEM_LANE_UPLOAD, TANDEM_LANE_DOWNLOAD };
#define TANDEM_LANES 3 /**< how many there are for a backend */

/** When something is predicted to run. Plain data; the layout is fixed for good. */
struct tandem_plan_span {
    int32_t node;    /**< index of the node */
    int32_t part;    /**< number of the part among those of the node, by `begin`, from 0; -1: the
                          node's own choice */
    uint8_t backend; /**< slot, with `lane` the lane */
    uint8_t lane;    /**< enum tandem_lane */
    uint8_t stage;   /**< enum tandem_stage; for uploads INIT, for downloads and joining FINALIZE */
    uint8_t pad;     /**< padding, 0 */
    float begin_us;  /**< from the start of the graph */
    float end_us;    /**< at least begin_us */
};

/** The choices for all nodes of one graph, or of graphs with the same structure. Owned by its
 * creator. Used by any number of threads while none changes it. */
typedef struct tandem_plan tandem_plan;

/** Options of execution, as bits. The first two change no bit of the results; they are for
 * comparisons.
 *
 * Some CPUs take up to 60 times as long for subnormal floats (below 1.2e-38): measured on Sapphire
 * Rapids; Zen 4 does not. Unless TANDEM_EXECUTE_SUBNORMALS is set, all threads of a run, the
 * caller's too, treat them as zero and flush them to zero; the caller's own floating-point state is
 * restored when the run ends. Callbacks of custom operations run in that mode. Subnormal F16 values
 * are normal floats and keep their value. */
enum tandem_execution {
    TANDEM_EXECUTE_FUSED = 1,      /**< small nodes that follow each other run as one step */
    TANDEM_EXECUTE_CONCURRENT = 2, /**< nodes that do not depend on one another share barriers */
    TANDEM_EXECUTE_DEFAULT = 3,    /**< both */
    TANDEM_EXECUTE_SUBNORMALS = 4  /**< subnormal floats keep their value, as IEEE 754 requires */
};

/** A plan for `n_nodes` nodes: each on one CPU thread in its COMPUTE stage. The caller owns it. Any
 *  thread. Errors: ARGUMENT (NULL, a negative count), MEMORY. */
TANDEM_API enum tandem_status tandem_plan_new(int n_nodes, tandem_plan **out_plan,
                                              struct tandem_error *error);
/** A copy of a plan, which the caller owns. Any thread while nobody changes `plan`. Errors:
 *  ARGUMENT, MEMORY. */
TANDEM_API enum tandem_status tandem_plan_copy(const tandem_plan *plan, tandem_plan **out_plan,
                                               struct tandem_error *error);
/** Frees a plan that no computation uses. NULL is allowed. Never fails. One thread at a time. */
TANDEM_API void tandem_plan_free(tandem_plan *plan);
/** Number of nodes of the graph that it was made for; 0 for NULL. Never fails. Any thread. */
TANDEM_API int tandem_plan_node_count(const tandem_plan *plan);
/** Largest thread count of any node; 1 for NULL. Never fails. Any thread. */
TANDEM_API int tandem_plan_threads(const tandem_plan *plan);
/** Microseconds that making the plan took; 0 for a plan that no runtime made. Never fails. Any
 *  thread. */
TANDEM_API double tandem_plan_took_us(const tandem_plan *plan);

/** The choice for node i (as in tandem_graph_node); lives as long as the plan. Never fails: NULL
 *  outside. Any thread while nobody changes the plan. */
TANDEM_API const struct tandem_plan_node *tandem_plan_node(const tandem_plan *plan, int i);
/** Replaces the choice for node i by a copy of `node`; whether it can run is checked when the plan
 *  is run (tandem_runtime_force_node checks at once). One thread at a time per plan. Errors:
 *  ARGUMENT (NULL, no such node, a predicted time that is negative or NaN). */
TANDEM_API enum tandem_status tandem_plan_set_node(tandem_plan *plan, int i,
                                                   const struct tandem_plan_node *node);

/** Task config of one stage of node i. Never fails: all zero outside. Any thread while nobody
 * changes the plan. */
TANDEM_API struct tandem_task_config tandem_node_task_conf(const tandem_plan *plan, int i,
                                                           enum tandem_stage stage);
/** Sets the task config of one stage of node i by hand: its reason becomes HAND. One thread at a
 *  time per plan. Errors: ARGUMENT (NULL, no such node or stage). */
TANDEM_API enum tandem_status tandem_node_set_task_conf(tandem_plan *plan, int i,
                                                        enum tandem_stage stage,
                                                        struct tandem_task_config config);

/** Adds a copy of `part`; whether it can run is checked when the plan is run. One thread at a time
 *  per plan. Errors: ARGUMENT (NULL, no such node or split, an empty range, a part of the node that
 *  overlaps or is split otherwise, a predicted time that is negative or NaN), MEMORY. */
TANDEM_API enum tandem_status tandem_plan_add_part(tandem_plan *plan,
                                                   const struct tandem_plan_part *part,
                                                   struct tandem_error *error);
/** Number of parts of all nodes; 0 for NULL. Never fails. Any thread while nobody changes the
 *  plan. */
TANDEM_API int tandem_plan_part_count(const tandem_plan *plan);
/** The i-th part, ordered by node and by `begin`; valid until the plan changes. Never fails: NULL
 *  outside. Any thread while nobody changes the plan. */
TANDEM_API const struct tandem_plan_part *tandem_plan_part(const tandem_plan *plan, int i);

/** Sets the order in which nodes are started: `n` node indices, each one once; copied. NULL and 0:
 * the order of the graph, which is the default. Whether each node comes after what it needs, and
 * after the node whose memory it reuses, is checked when the plan is run. One thread at a time per
 * plan. Errors: ARGUMENT (no plan, not each node once), MEMORY. */
TANDEM_API enum tandem_status tandem_plan_set_order(tandem_plan *plan, const int32_t *order, int n,
                                                    struct tandem_error *error);
/** The order, as many indices as nodes, valid until the plan changes; NULL: that of the graph.
 *  Never fails. Any thread while nobody changes the plan. */
TANDEM_API const int32_t *tandem_plan_order(const tandem_plan *plan);

/** Adds a copy of a predicted span; runs ignore spans. One thread at a time per plan. Errors:
 * ARGUMENT (NULL, no such node, backend, lane or stage, times that are negative, no numbers or in
 * the wrong order), MEMORY. */
TANDEM_API enum tandem_status tandem_plan_add_span(tandem_plan *plan,
                                                   const struct tandem_plan_span *span,
                                                   struct tandem_error *error);
/** Number of spans; 0 for NULL. Never fails. Any thread while nobody changes the plan. */
TANDEM_API int tandem_plan_span_count(const tandem_plan *plan);
/** The i-th span, in the order of adding; valid until the plan changes. Never fails: NULL outside.
 *  Any thread while nobody changes the plan. */
TANDEM_API const struct tandem_plan_span *tandem_plan_span(const tandem_plan *plan, int i);

/** Removes parts, order and spans: one choice per node is left. NULL is allowed. Never fails. One
 * thread at a time per plan. */
TANDEM_API void tandem_plan_clear_schedule(tandem_plan *plan);

/** "rows", "columns"; "unknown" for another number. Static storage. Never fails. Any thread. */
TANDEM_API const char *tandem_split_name(enum tandem_split split);
/** "compute", "upload", "download"; "unknown" for another number. Static storage. Never fails. Any
 *  thread. */
TANDEM_API const char *tandem_lane_name(enum tandem_lane lane);
/** "init", "compute", "finalize"; "unknown" for another number. Static storage. Never fails. Any
 *  thread. */
TANDEM_API const char *tandem_stage_name(enum tandem_stage stage);
/** "only", "table", "rule", ...; "unknown" for another number. Static storage. Never fails. Any
 *  thread. */
TANDEM_API const char *tandem_plan_reason_name(enum tandem_plan_reason reason);

TANDEM_END_C
#endif
