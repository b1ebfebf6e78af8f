/* SPDX-License-Identifier: MIT
 * Memory on machines of several NUMA nodes: policies, and the two system calls behind them. */
#ifndef TND_NUMA_H
#define TND_NUMA_H

#include <stddef.h>

enum tnd_numa_policy {
    TND_NUMA_AUTO,        /* the fastest measured; if none was measured, first touch */
    TND_NUMA_OFF,         /* as if the machine had one node */
    TND_NUMA_FIRST_TOUCH, /* each page on the node of the worker that writes it first */
    TND_NUMA_INTERLEAVE,  /* pages on all nodes in turn (round robin) */
    TND_NUMA_MIRROR,      /* a copy of the weights on each node */
    TND_NUMA_POLICIES
};

/** "auto", "off", "first-touch", "interleave", "mirror"; static. */
const char *tnd_numa_policy_name(enum tnd_numa_policy policy);

/** Asks the system to distribute untouched pages over `n` nodes (the system's numbers) in turn.
 * `pages` is aligned to a page. Returns 0, or errno when the system refuses (containers often do):
 * then each page lies where it is touched first. */
int tnd_numa_interleave(void *pages, size_t bytes, const int *node_ids, int n);

/** The node of a touched page, by the system's number; -1: unknown. */
int tnd_numa_node_of(const void *page);

#endif
