/* SPDX-License-Identifier: MIT
 * The state of one unfolding, and its parts: groups and transfers (unfold_groups.c), checks
 * (unfold_check.c), the walk over items (unfold.c). Only for these files and step.c. */
#ifndef TND_UNFOLD_H
#define TND_UNFOLD_H

#include "sched/plan.h"

/* A device step that has not been synced yet. */
struct tnd_unfolding_flight {
    int step;
    int slot; /* of an early download; else 0 */
    const struct tandem_tensor *tensor;
    size_t workspace_begin, workspace_end;
};

struct tnd_unfolding {
    const struct tnd_registry *registry;
    struct tandem_error *error;
    struct tnd_steps *out;
    const struct tnd_item *items; /* of `out` */
    int n_items;
    uint32_t execution;   /* bits of enum tandem_execution */
    uint32_t quarantined; /* bit a slot */
    bool must_break;      /* the next step opens a group, since devices are synced before it */
    bool has_download;    /* in the last group: what follows opens a group */
    bool is_concurrent;   /* steps join the last group, whatever it holds */
    bool is_early;        /* downloads are not waited for before their readers */
    bool is_moved;        /* what the stages need is where they run */
    bool device_waits;    /* workers sleep while a device works whose result is downloaded next */
    float device_us;      /* predicted time of those works */
    struct tnd_unfolding_flight flights[TND_MAX_IN_FLIGHT];
    int n_flights;
};

/** Before the next group begins, devices are synced that use memory of `item` (NULL: all of
 * them). */
void tnd_unfold_wait_for_devices(struct tnd_unfolding *unfolding, const struct tnd_item *item);

/** First offset at which `bytes` of workspace touch no region that a device still uses. */
enum tandem_status tnd_unfold_place_workspace(struct tnd_unfolding *unfolding, size_t bytes,
                                              size_t *out_offset);

/** Opens a group for that many workers; 0 and 1 are the same. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_unfold_open_group(struct tnd_unfolding *unfolding, int n_workers);

/** Adds a step to the last group, or to a new one where it may not join. Errors: MEMORY,
 *  OVERFLOW. */
enum tandem_status tnd_unfold_add_step(struct tnd_unfolding *unfolding, struct tnd_step *step);

/** Whether FINALIZE of item i fetches its result from the device in `slot`. */
bool tnd_unfold_fetches(const struct tnd_unfolding *unfolding, int i, int slot);

/** A transfer on behalf of a stage of item i; or, when it fetches the result of a node whose
 * FINALIZE does that, on behalf of that FINALIZE. Fetching is put off until the result is needed in
 * host memory: the device and the workers go on meanwhile. */
enum tandem_status tnd_unfold_add_move(struct tnd_unfolding *unfolding, const struct tnd_move *move,
                                       int i, int stage);

/** Finds the first and the last parallel group. Workers sleep in the gap behind a parallel group
 *  when a stage in the gap asks for it and the end of none is predicted. */
void tnd_unfold_find_waits(struct tnd_steps *out);

/** Asks the backends of one item; bytes of workspace that its stages share. */
enum tandem_status tnd_unfold_check_node(struct tnd_unfolding *unfolding, int i,
                                         size_t *out_workspace);

/** Unfolds the items of `out`, those of a graph, into its memory; its residency is that of the
 *  graph or NULL. `execution`: bits of enum tandem_execution. Errors: those of tnd_steps_new. */
enum tandem_status tnd_unfold(const struct tandem_graph *graph, const struct tnd_registry *registry,
                              uint32_t execution, struct tnd_steps *out,
                              struct tandem_error *error);

#endif
