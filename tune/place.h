/* SPDX-License-Identifier: MIT
 * Places the nodes of a graph when devices with memory of their own are open: each product on the
 * host, on a device, or split over several, and the other operations near it. The schedule of the
 * graph decides (schedule.h); docs/planning.md describes the rules. */
#ifndef TND_PLACE_H
#define TND_PLACE_H

#include "backends/registry.h"
#include "tandem/profile.h"
#include "table/tnd_table.h"
#include "tune/schedule_cache.h"

struct tnd_place_choice {
    struct tandem_plan_node node;
    double us; /* tnd_prediction.cautious_us */
    double error_us;
    double half_us[2]; /* of half of the rows, of half of the columns; 0: not estimated yet */
};

struct tnd_place_options {
    const struct tnd_registry *registry;
    const struct tandem_table *table; /* transfers and waking; NULL: both unknown */
    const struct tandem_graph *graph;
    int n_threads;
    int n_devices;
    uint8_t slots[TND_MAX_SLOTS]; /* backend slots of sides 1, 2, .., rising */
    int forced_side;              /* every node that this side supports runs there; 0: none */
    const struct tnd_placement *placement; /* of weights; NULL: none. `product` applies it itself */
    bool only_singles;                     /* no splits and no deliberate overlaps */
    /* each product runs on the one side that `product` allows; the others follow */
    bool forced_products;
    /** Finds the best profile of a plain product that reads X and leaves its result on a side (0:
     * host memory, 1 ..: devices). Returns false if there is none; side 0 always has one. */
    bool (*product)(void *user, const tandem_tensor *node, int side, struct tnd_place_choice *out);
    /** Time of half of a product's rows or columns on a side with the same profile. NULL: half of
     * the whole product's time. */
    double (*half_us)(void *user, const tandem_tensor *node, int side, enum tandem_split split);
    /** Plans an operation that runs as a whole on the CPU. */
    void (*whole)(void *user, const tandem_tensor *node, struct tandem_plan_node *out);
    /** Time of such an operation on a side's device. Returns false if unknown; then the time on the
     * CPU counts. NULL: always unknown. */
    bool (*device_op)(void *user, const tandem_tensor *node, int side,
                      struct tnd_schedule_time *out);
    void *user;
};

/** Lists open devices in service with memory of their own, by slot. Returns their number. */
int tnd_place_devices(const struct tnd_registry *registry, uint8_t out_slots[TND_MAX_SLOTS]);

/** Fills in all nodes of a plan, and its schedule. `cache` holds schedules found with the same
 * table. Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_place(const struct tnd_place_options *options,
                             struct tnd_schedule_cache *cache, struct tandem_plan *plan,
                             struct tandem_error *error);

#endif
