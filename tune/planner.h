/* SPDX-License-Identifier: MIT
 * Chooses a profile and a thread count for every node of a graph: by the timing table where it
 * covers the node, else by the rule. Choices are kept (plan_cache.h), so that planning a
 * graph whose shapes were seen costs one look-up a node. */
#ifndef TND_PLANNER_H
#define TND_PLANNER_H

#include "backends/registry.h"
#include "base/clock.h"
#include "tandem/profile.h"
#include "tune/candidates.h"

struct tnd_placement;
struct tnd_planner;

/** Candidates for a node on the machine of a registry, as tnd_candidates_here. */
typedef int (*tnd_candidates_fn)(const struct tnd_registry *registry,
                                 const struct tandem_table *table, const tandem_tensor *node,
                                 enum tandem_type type, double error_bound,
                                 struct tnd_candidate *out);

/** Bit a slot: devices that had no room for a constant weight, a root. Any thread. */
typedef uint32_t (*tnd_refused_fn)(void *user, const tandem_tensor *weight);

struct tnd_planner_options {
    const struct tnd_registry *registry; /* borrowed */
    const struct tnd_clock *clock;       /* borrowed */
    struct tnd_log log;
    int n_cpus;         /* that may be used: plans by a table have no more threads; 0: unknown */
    int n_cores;        /* that may be used, for the rule; 0: unknown */
    size_t cache_bytes; /* weights that together take no more stay in the cache; 0: unknown */
};

enum tandem_status tnd_planner_new(const struct tnd_planner_options *options,
                                   struct tnd_planner **out_planner, struct tandem_error *error);
void tnd_planner_free(struct tnd_planner *planner);

/** Table to plan by (borrowed until replaced; NULL: none). What was chosen by the last one stays as
 *  long as no other choice is clearly better (tnd_lead_is_clear). Any thread. */
void tnd_planner_set_table(struct tnd_planner *planner, const struct tandem_table *table);
/** Forces profile i (tnd_profile_at) wherever it applies; -1: choose. Any thread. */
void tnd_planner_force(struct tnd_planner *planner, int profile);
/** The profile that is forced; -1: none is. Any thread. */
int tnd_planner_forced(struct tnd_planner *planner);

/** Candidates to choose from; tnd_candidates_here unless set. Before the first plan. */
void tnd_planner_set_candidates(struct tnd_planner *planner, tnd_candidates_fn candidates);
/** Asked for the weights of products; where it says so, they may travel to the device for each use
 *  (stream_cost.h). Before the first plan. */
void tnd_planner_set_refused(struct tnd_planner *planner, tnd_refused_fn refused_by, void *user);
/** Where weights are kept: devices do not keep others of those that it names. Takes it over; NULL:
 *  weights may be anywhere. Any thread. */
void tnd_planner_set_placement(struct tnd_planner *planner, struct tnd_placement *placement);
/** tnd_placement_slot of it. Any thread. */
int tnd_planner_placed_slot(struct tnd_planner *planner, const void *data);
/** Candidates whose results are known to be farther from the reference than `bound` (normalised
 *  squared error), or not known at all, are not chosen; 0: those that were found wrong are not.
 *  Any thread. */
void tnd_planner_set_error_bound(struct tnd_planner *planner, double bound);
/** The most threads of a plan for n_threads: as many, or with a table as there are CPUs. Any
 *  thread. */
int tnd_planner_limit(struct tnd_planner *planner, int n_threads);
/** Whether a graph is planned by times of weights that stay in the cache. Any thread. */
bool tnd_planner_is_warm(struct tnd_planner *planner, const struct tandem_graph *graph);

/** Plans a finished graph for at most n_threads threads. Any thread. Errors: MEMORY. */
enum tandem_status tnd_planner_plan(struct tnd_planner *planner, const struct tandem_graph *graph,
                                    int n_threads, struct tandem_plan **out_plan,
                                    struct tandem_error *error);

/** The best plan of a kind. */
enum tnd_plan_kind {
    TND_PLAN_BEST,   /* of all: what tnd_planner_plan gives */
    TND_PLAN_SINGLE, /* nothing at once: no split products, no other order, no weights in flight */
    TND_PLAN_HOST,   /* nothing on devices with memory of their own */
    TND_PLAN_DEVICE, /* all that it can run on the first of those */
    TND_PLAN_KINDS
};
/** As tnd_planner_plan, for one kind. */
enum tandem_status tnd_planner_plan_kind(struct tnd_planner *planner,
                                         const struct tandem_graph *graph, int n_threads,
                                         enum tnd_plan_kind kind, struct tandem_plan **out_plan,
                                         struct tandem_error *error);

/** Choice for one plain matrix product by a given profile and thread count, for measuring. Returns
 *  false  when the profile does not apply or its backends are not open. */
bool tnd_plan_node_for_profile(const struct tnd_registry *registry, int profile,
                               enum tandem_type type, int n_threads, struct tandem_plan_node *out);

#endif
