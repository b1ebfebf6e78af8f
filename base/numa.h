/* SPDX-License-Identifier: MIT
 * Memory on machines of several NUMA nodes: policies, and the two system calls behind them. */
#ifndef TND_NUMA_H
#define TND_NUMA_H

#include <stddef.h>

enum tnd_numa_policy {
    TND_NUMA_AUTO,        /* as measured; first touch where nothing was */
    TND_NUMA_OFF,         /* as if there were one node */
    TND_NUMA_FIRST_TOUCH, /* each page on the node whose worker writes it first */
    TND_NUMA_INTERLEAVE,  /* pages on all nodes in turn */
    TND_NUMA_MIRROR,      /* a copy on each node */
    TND_NUMA_POLICIES
};

/** "auto", "off", "first-touch", "interleave", "mirror"; static. */
const char *tnd_numa_policy_name(enum tnd_numa_policy policy);

/** Asks the system to put pages that nobody has touched on `n` nodes (the system's numbers) in
 *  turn. `pages` is the start of a page. Returns 0, or errno when the system refuses (containers
 *  often do): then pages lie where they are touched first. */
int tnd_numa_interleave(void *pages, size_t bytes, const int *node_ids, int n);

/** The node where a touched page lies, by the system's number; -1: the system does not tell. */
int tnd_numa_node_of(const void *page);

#endif
