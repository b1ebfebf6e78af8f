/* SPDX-License-Identifier: MIT
 * Chooses a profile and a thread count for every node of a graph: by the table if it covers the
 * node, else by the rule. Choices are cached (plan_cache.h), so that planning a graph with known
 * shapes costs one look-up per node. */
#ifndef TND_PLANNER_H
#define TND_PLANNER_H

#include "backends/registry.h"
#include "base/clock.h"
#include "tandem/profile.h"
#include "tune/candidates.h"

struct tnd_placement;
struct tnd_planner;

/** Lists candidates for a node; as tnd_candidates_here. */
typedef int (*tnd_candidates_fn)(const struct tnd_registry *registry,
                                 const struct tandem_table *table, const tandem_tensor *node,
                                 enum tandem_type type, double error_bound,
                                 struct tnd_candidate *out);

/** Returns the devices (bit a slot) that have no room for a constant weight, a root. Any thread. */
typedef uint32_t (*tnd_refused_fn)(void *user, const tandem_tensor *weight);

struct tnd_planner_options {
    const struct tnd_registry *registry; /* borrowed */
    const struct tnd_clock *clock;       /* borrowed */
    struct tnd_log log;
    int n_cpus;         /* usable CPUs, the most threads of plans by a table; 0: unknown */
    int n_cores;        /* usable cores, for the rule; 0: unknown */
    size_t cache_bytes; /* weights of this total size stay in the cache; 0: unknown */
};

enum tandem_status tnd_planner_new(const struct tnd_planner_options *options,
                                   struct tnd_planner **out_planner, struct tandem_error *error);
void tnd_planner_free(struct tnd_planner *planner);

/** Sets the table (borrowed until replaced; NULL: none). Choices made with the previous one stay
 * unless another one is clearly better (tnd_lead_is_clear). Any thread. */
void tnd_planner_set_table(struct tnd_planner *planner, const struct tandem_table *table);
/** Forces profile i (tnd_profile_at) wherever it applies; -1: choose. Any thread. */
void tnd_planner_force(struct tnd_planner *planner, int profile);
/** The forced profile; -1: none. Any thread. */
int tnd_planner_forced(struct tnd_planner *planner);

/** Replaces tnd_candidates_here as the source of candidates. Call it before the first plan. */
void tnd_planner_set_candidates(struct tnd_planner *planner, tnd_candidates_fn candidates);
/** Sets the callback that names devices without room for a weight; these may use it as a weight in
 * flight (stream_cost.h). Call it before the first plan. */
void tnd_planner_set_refused(struct tnd_planner *planner, tnd_refused_fn refused_by, void *user);
/** Sets where weights are kept: a device does not keep weights that the placement assigns
 * elsewhere. Takes ownership; NULL: weights may be anywhere. Any thread. */
void tnd_planner_set_placement(struct tnd_planner *planner, struct tnd_placement *placement);
/** tnd_placement_slot of the present placement. Any thread. */
int tnd_planner_placed_slot(struct tnd_planner *planner, const void *data);
/** Excludes candidates whose results deviate from the reference by more than `bound` (normalised
 * squared error), or were never checked; 0: only those found wrong. Any thread. */
void tnd_planner_set_error_bound(struct tnd_planner *planner, double bound);
/** The most threads of a plan for n_threads: as many, or, with a table, the number of CPUs if that
 * is less. Any thread. */
int tnd_planner_limit(struct tnd_planner *planner, int n_threads);
/** Whether a graph is planned by times measured with weights in the cache. Any thread. */
bool tnd_planner_is_warm(struct tnd_planner *planner, const struct tandem_graph *graph);

/** Plans a finished graph for at most n_threads threads. Any thread. Errors: MEMORY. */
enum tandem_status tnd_planner_plan(struct tnd_planner *planner, const struct tandem_graph *graph,
                                    int n_threads, struct tandem_plan **out_plan,
                                    struct tandem_error *error);

/** The best plan of a kind. */
enum tnd_plan_kind {
    TND_PLAN_BEST,   /* of all plans: as tnd_planner_plan */
    TND_PLAN_SINGLE, /* no split products, no reordering, no weights in flight */
    TND_PLAN_HOST,   /* nothing on devices with memory of their own */
    TND_PLAN_DEVICE, /* everything that the first of those supports runs on it */
    TND_PLAN_KINDS
};
/** Like tnd_planner_plan, restricted to one kind. */
enum tandem_status tnd_planner_plan_kind(struct tnd_planner *planner,
                                         const struct tandem_graph *graph, int n_threads,
                                         enum tnd_plan_kind kind, struct tandem_plan **out_plan,
                                         struct tandem_error *error);

/** Fills in the choice of a profile and thread count for one plain matrix product, for measuring.
 * Returns false if the profile does not apply or its backends are not open. */
bool tnd_plan_node_for_profile(const struct tnd_registry *registry, int profile,
                               enum tandem_type type, int n_threads, struct tandem_plan_node *out);

#endif
