/* SPDX-License-Identifier: MIT
 * The state of one unfolding, and its parts: groups and transfers (unfold_groups.c), checks
 * (unfold_check.c), the walk over items (unfold.c). Only for these files, step.c and stream.c. */
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
    bool must_break;      /* the next step opens a group, since devices must be synced before it */
    bool has_download;    /* in the last group: the next step opens a group */
    bool is_concurrent;   /* steps join the last group, whatever is in it */
    bool is_early;        /* downloads are not waited for until their readers begin */
    bool is_moved;        /* operands of the stages were transferred already */
    bool device_waits;    /* workers sleep during work of a device whose result is downloaded
                           * next */
    float device_us;      /* predicted time of that work */
    struct tnd_unfolding_flight flights[TND_MAX_IN_FLIGHT];
    int n_flights;
};

/** Syncs devices that use memory of `item` (NULL: all devices) before the next group begins. */
void tnd_unfold_wait_for_devices(struct tnd_unfolding *unfolding, const struct tnd_item *item);

/** First offset at which `bytes` of workspace overlap no region that a device still uses. */
enum tandem_status tnd_unfold_place_workspace(struct tnd_unfolding *unfolding, size_t bytes,
                                              size_t *out_offset);

/** Opens a group for this many workers; 0 means 1. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_unfold_open_group(struct tnd_unfolding *unfolding, int n_workers);

/** Adds a step to the last group, or to a new one where it may not join. Errors: MEMORY,
 *  OVERFLOW. */
enum tandem_status tnd_unfold_add_step(struct tnd_unfolding *unfolding, struct tnd_step *step);

/** Whether FINALIZE of item i downloads its result from the device in `slot`. */
bool tnd_unfold_fetches(const struct tnd_unfolding *unfolding, int i, int slot);

/** Adds a transfer that belongs to a stage of item i; or, when it downloads the result of a node
 * that has FINALIZE, to that FINALIZE. Downloads are deferred until the host needs the result: the
 * device and the workers go on meanwhile. */
enum tandem_status tnd_unfold_add_move(struct tnd_unfolding *unfolding, const struct tnd_move *move,
                                       int i, int stage);

/** Finds the first and the last parallel group. Workers sleep in the gap after a parallel group
 *  when a stage in the gap asks for it and none has a predicted end. */
void tnd_unfold_find_waits(struct tnd_steps *out);

/** Checks one item with its backends; stores the bytes of workspace that its stages share. */
enum tandem_status tnd_unfold_check_node(struct tnd_unfolding *unfolding, int i,
                                         size_t *out_workspace);

/** Unfolds the items of `out` for a graph into the memory of `out`; the residency of `out` is that
 *  of the graph or NULL. `execution`: bits of enum tandem_execution. Errors: those of
 *  tnd_steps_new. */
enum tandem_status tnd_unfold(const struct tandem_graph *graph, const struct tnd_registry *registry,
                              uint32_t execution, struct tnd_steps *out,
                              struct tandem_error *error);

#endif
