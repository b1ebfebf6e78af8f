/* SPDX-License-Identifier: MIT
 * The NUMA node of each worker of a pool. Workers are spread over the nodes in proportion to the
 * nodes' CPUs, so that a run with few workers also uses the memory of all nodes. */
#include <string.h>

#include "base/alloc.h"
#include "base/numa.h"
#include "base/tnd_assert.h"
#include "sched/pool_threads.h"

_Static_assert((int)TND_CHUNK_NODES == (int)TND_MAX_NODES, "each node may have workers");
_Static_assert((int)TND_CHUNK_WORKERS >= (int)TND_POOL_MAX_THREADS, "all workers have a node");

bool tnd_pool_read_nodes(struct tnd_pool *pool, const struct tnd_topology *topology)
{
    if (topology == NULL || topology->n_numa_nodes < 2 ||
        topology->n_numa_nodes > TND_CHUNK_NODES) {
        return true;
    }
    struct tnd_pool_cpu_nodes *all = tnd_calloc(1, sizeof(*all));
    if (all == NULL) {
        return false;
    }
    all->n = topology->n_numa_nodes;
    for (int i = 0; i < topology->n_cpus; i++) {
        TND_ASSERT(topology->node[i] < all->n && topology->cpu_ids[i] < TND_MAX_CPUS);
        all->node[topology->cpu_ids[i]] = topology->node[i];
        CPU_SET((size_t)topology->cpu_ids[i], &all->cpus[topology->node[i]]);
    }
    memcpy(all->ids, topology->node_ids, sizeof(all->ids));
    pool->cpu_nodes = all;
    return true;
}

/* CPUs of each node: only those that workers are bound to, if they are bound. */
static void count_cpus(const struct tnd_pool *pool, int64_t *out_cpus)
{
    const struct tnd_pool_cpu_nodes *all = pool->cpu_nodes;
    memset(out_cpus, 0, TND_CHUNK_NODES * sizeof(*out_cpus));
    for (int i = 0; i < pool->n_cpu_ids; i++) {
        out_cpus[all->node[pool->cpu_ids[i] % TND_MAX_CPUS]]++;
    }
    for (int node = 0; node < all->n && pool->n_cpu_ids == 0; node++) {
        out_cpus[node] = CPU_COUNT(&all->cpus[node]);
    }
}

void tnd_pool_place_workers(struct tnd_pool *pool, int n_threads)
{
    struct tnd_pool_cpu_nodes *all = pool->cpu_nodes;
    int64_t cpus[TND_CHUNK_NODES];
    int64_t n_placed[TND_CHUNK_NODES] = {0};
    if (all == NULL) {
        return;
    }
    struct tnd_chunk_nodes *nodes = &all->nodes;
    count_cpus(pool, cpus);
    /* Workers read this without a lock, but no run is in progress. The lock is for
     * tnd_pool_node_rows. */
    pthread_mutex_lock(&pool->ticket_lock);
    nodes->n = all->n;
    for (int node = 0; node < all->n; node++) {
        nodes->cpus_before[node + 1] = nodes->cpus_before[node] + cpus[node];
    }
    for (int i = 0; i < n_threads; i++) {
        int most = 0; /* the node furthest below its share of i + 1 workers */
        int64_t lack = INT64_MIN;
        for (int node = 0; node < all->n; node++) {
            int64_t lacks = (i + 1) * cpus[node] - n_placed[node] * nodes->cpus_before[all->n];
            most = lacks > lack ? node : most;
            lack = lacks > lack ? lacks : lack;
        }
        if (pool->n_cpu_ids > 0) {
            most = all->node[pool->cpu_ids[i % pool->n_cpu_ids] % TND_MAX_CPUS];
        }
        nodes->node[i] = (uint8_t)most;
        n_placed[most]++;
    }
    tnd_chunk_nodes_finish(nodes, n_threads);
    pthread_mutex_unlock(&pool->ticket_lock);
}

void tnd_pool_cpus_of(const struct tnd_pool *pool, int index, cpu_set_t *set)
{
    const struct tnd_pool_cpu_nodes *all = pool->cpu_nodes;
    cpu_set_t both;
    if (all == NULL) {
        return;
    }
    CPU_AND(&both, set, &all->cpus[all->nodes.node[index]]);
    if (CPU_COUNT(&both) > 0) {
        *set = both;
    }
}

const struct tnd_chunk_nodes *tnd_pool_nodes(const struct tnd_pool *pool)
{
    return pool->cpu_nodes != NULL ? &pool->cpu_nodes->nodes : NULL;
}

int tnd_pool_node_rows(struct tnd_pool *pool, int count, int64_t rows,
                       int64_t out_rows[TND_CHUNK_NODES + 1])
{
    struct tnd_chunk_share share;
    int n = 0;
    if (pool->cpu_nodes == NULL || count < 2) {
        return 0;
    }
    pthread_mutex_lock(&pool->ticket_lock);
    tnd_chunk_share_begin(&share, &pool->cpu_nodes->nodes, count);
    if (share.nodes != NULL) {
        n = share.nodes->n;
        for (int i = 0; i <= n; i++) {
            out_rows[i] = tnd_chunk_node_row(share.nodes, i, rows);
        }
    }
    pthread_mutex_unlock(&pool->ticket_lock);
    return n;
}

bool tnd_pool_interleave(const struct tnd_pool *pool, void *pages, size_t bytes)
{
    const struct tnd_pool_cpu_nodes *all = pool->cpu_nodes;
    return all != NULL && tnd_numa_interleave(pages, bytes, all->ids, all->n) == 0;
}
