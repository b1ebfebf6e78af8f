/* SPDX-License-Identifier: MIT
 * Where the nodes of a graph run when devices with memory of their own are open: a product in
 * host memory or on a device or rows of it on several, and the other operations beside it. The
 * schedule of the graph decides (schedule.h); docs/planning.md tells the rules. */
#ifndef TND_PLACE_H
#define TND_PLACE_H

#include "backends/registry.h"
#include "tandem/profile.h"
#include "table/tnd_table.h"
#include "tune/schedule_cache.h"

struct tnd_place_choice {
    struct tandem_plan_node node;
    double us; /* cautiously */
    double error_us;
    double half_us[2]; /* of half of the rows, of half of the columns; 0: nobody has asked */
};

struct tnd_place_options {
    const struct tnd_registry *registry;
    const struct tandem_table *table; /* transfers and waking; NULL: both unknown */
    const struct tandem_graph *graph;
    int n_threads;
    int n_devices;
    uint8_t slots[TND_MAX_SLOTS]; /* of side 1, 2, .., rising */
    int forced_side; /* every node that this device supports runs there; 0: none is forced */
    const struct tnd_placement
        *placement;       /* of weights; NULL: none. Products see to it themselves */
    bool only_singles;    /* nothing runs at once on purpose */
    bool forced_products; /* each product has one side, as `product` says; the rest follows it */
    /** Best profile of a plain product that reads X and leaves its result on a side (0: host
     *  memory, 1 ..: devices); false: none. Side 0 has always one. */
    bool (*product)(void *user, const tandem_tensor *node, int side, struct tnd_place_choice *out);
    /** What half of a product's rows or columns take on a side by the same profile; NULL: half of
     *  the time of all. */
    double (*half_us)(void *user, const tandem_tensor *node, int side, enum tandem_split split);
    /** An operation that runs as a whole on the CPU. */
    void (*whole)(void *user, const tandem_tensor *node, struct tandem_plan_node *out);
    /** What such an operation takes on the device of a side; false: nobody knows, it counts as on
     *  the CPU. NULL: never known. */
    bool (*device_op)(void *user, const tandem_tensor *node, int side,
                      struct tnd_schedule_time *out);
    void *user;
};

/** Devices with memory of their own that are open and in service, by slot. */
int tnd_place_devices(const struct tnd_registry *registry, uint8_t out_slots[TND_MAX_SLOTS]);

/** Fills in all nodes of a plan, and its schedule. `cache` holds schedules under the same table.
 *  Errors: MEMORY, OVERFLOW. */
enum tandem_status tnd_place(const struct tnd_place_options *options,
                             struct tnd_schedule_cache *cache, struct tandem_plan *plan,
                             struct tandem_error *error);

#endif
