/* SPDX-License-Identifier: MIT
 * Where the nodes of a graph run when devices with memory of their own are open: a product in
 * host memory or on a device, and the other operations beside it. Several placements of the whole
 * graph are walked through with the transfers that they cause; the cheapest is kept. docs/opencl.md
 * tells the rules. */
#ifndef TND_PLACE_H
#define TND_PLACE_H

#include "backends/registry.h"
#include "tandem/profile.h"
#include "table/tnd_table.h"

/* A home is where a product reads X and leaves its result: 0 host memory, 1 .. devices. */
enum { TND_PLACE_MAX_DEVICES = 3, TND_PLACE_HOMES = TND_PLACE_MAX_DEVICES + 1 };

struct tnd_place_choice {
    struct tandem_plan_node node;
    double us; /* cautiously */
};

struct tnd_place_options {
    const struct tnd_registry *registry;
    const struct tandem_table *table; /* transfers and waking; NULL: both unknown */
    const struct tandem_graph *graph;
    int n_threads;
    int n_devices;
    uint8_t slots[TND_PLACE_MAX_DEVICES]; /* of home 1, 2, .. */
    int forced_home;      /* every node that this device supports runs there; 0: none is forced */
    bool forced_products; /* each product has one home, as `product` says; the rest follows it */
    /** Best way of a plain product at a home; false: none. Home 0 has always one. */
    bool (*product)(void *user, const tandem_tensor *node, int home, struct tnd_place_choice *out);
    /** An operation that runs as a whole on the CPU. */
    void (*whole)(void *user, const tandem_tensor *node, struct tandem_plan_node *out);
    void *user;
};

/** Devices with memory of their own that are open, at most TND_PLACE_MAX_DEVICES. */
int tnd_place_devices(const struct tnd_registry *registry, uint8_t out_slots[]);

/** Fills in all nodes of a plan. Errors: MEMORY. */
enum tandem_status tnd_place(const struct tnd_place_options *options,
                             struct tandem_plan_node *nodes, struct tandem_error *error);

#endif
