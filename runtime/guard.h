/* SPDX-License-Identifier: MIT
 * The guard over plans that let devices and the CPU work at once: products split, nodes in another
 * order, weights in flight. Such a plan is taken on trust in predictions of many things together.
 * So in its first uses it takes turns with the best plan without all that; whole computations are
 * timed, and the faster plan serves from then on, for good. Plans alone are handed out in turns: a
 * plan that a program keeps is run as it is. */
#ifndef TND_GUARD_H
#define TND_GUARD_H

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/tnd_runtime.h"

enum { TND_GUARD_ENTRIES = 256, TND_GUARD_CELLS = 8 };

/** A plan is known by the products of its graph and the thread count. */
struct tnd_guard_key {
    uint64_t graph; /* never 0 */
    uint64_t like;  /* the same without M beyond its power of two */
};

/** A time of the table that a plan relied on. */
struct tnd_guard_cell {
    struct tnd_curve_key key;
    int64_t m;
};

enum tnd_guard_state { TND_GUARD_TRIAL, TND_GUARD_KEPT, TND_GUARD_DROPPED };

struct tnd_guard_entry {
    struct tnd_guard_key key;
    enum tnd_guard_state state;
    int n_timed[2]; /* uses: [0] single, [1] both at once */
    uint64_t best_ns[2];
    int n_cells;
    struct tnd_guard_cell cells[TND_GUARD_CELLS]; /* on devices */
};

struct tnd_guard {
    pthread_mutex_t lock;            /* guards everything below; no other lock is taken inside */
    struct tnd_guard_entry *entries; /* NULL until the first one */
    int n_entries;
    atomic_int n_dropped; /* written under the lock */
};

void tnd_guard_init(struct tnd_guard *guard);
void tnd_guard_fini(struct tnd_guard *guard);

/** Which plan is handed out now: true for both at once. `plan` is that one; its cells on devices
 *  are kept. Without room for another key the single plan serves. */
bool tnd_guard_choose(struct tnd_guard *guard, const struct tnd_guard_key *key,
                      const struct tnd_registry *registry, const tandem_graph *graph,
                      const tandem_plan *plan);
/** A computation by a plan took so long. True when that decides; `out` then gets what is known. */
bool tnd_guard_note(struct tnd_guard *guard, uint64_t graph_key, bool is_both, uint64_t ns,
                    struct tnd_guard_entry *out);

/* ---- of a runtime ---- */

/** Plans a graph under the guard. Errors: MEMORY. */
enum tandem_status tnd_guard_plan(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                  const tandem_graph *graph, int n_threads, tandem_plan **out_plan,
                                  struct tandem_error *error);
/** What the plan would take that the guard trusts; nothing is noted. Errors: MEMORY. */
enum tandem_status tnd_guard_predict(tandem_runtime *runtime, const struct tnd_runtime_parts *parts,
                                     const tandem_graph *graph, int n_threads,
                                     struct tandem_prediction *out, struct tandem_error *error);
/** A computation by a plan that has a guard key took so long; a decision goes to the log. */
void tnd_guard_told(tandem_runtime *runtime, const tandem_graph *graph, const tandem_plan *plan,
                    uint64_t ns);
/** What an explanation says of a plan's trial; "" when there is none. */
void tnd_guard_explain(tandem_runtime *runtime, const tandem_graph *graph, char *out, size_t n);
/** Adds the cells of dropped plans to a table of stale ones. Errors: MEMORY. */
enum tandem_status tnd_guard_add_stale(tandem_runtime *runtime, const tandem_table *table,
                                       tandem_table *stale);
/** Whether any plan was dropped. Cheap. */
bool tnd_guard_has_dropped(const struct tnd_guard *guard);

#endif
