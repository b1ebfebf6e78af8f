/* SPDX-License-Identifier: MIT
 * NUMA nodes of a runtime; see runtime_nodes.h. The topology finds nodes, backends/chunks.h divides
 * rows among them, and the CPU's packed weights place pages. */
#include "runtime/runtime_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/packing/packed_numa.h"
#include "backends/registry.h"
#include "base/environment.h"
#include "base/tnd_log.h"
#include "table/tnd_table.h"
#include "tune/policy.h"

void tnd_numa_pretend(struct tnd_topology *topology)
{
    const double n = tnd_environment_number(TND_ENVIRONMENT_NUMA);
    if (n >= 1) {
        tnd_topology_pretend(topology, n < TND_MAX_NODES ? (int)n : TND_MAX_NODES);
    }
}

static tandem_backend *cpu_of(const tandem_runtime *runtime)
{
    return tnd_registry_backend(runtime->registry, TANDEM_BACKEND_CPU);
}

const struct tnd_topology *tnd_numa_topology(const tandem_runtime *runtime)
{
    int n = runtime->topology.n_numa_nodes;
    bool has_several = n > 1 && n <= TND_MAX_NODES;
    return has_several && tnd_cpu_numa_asked(cpu_of(runtime)) != TND_NUMA_OFF ? &runtime->topology
                                                                              : NULL;
}

void tnd_numa_place(const tandem_runtime *runtime, const struct tandem_table *table)
{
    const struct tnd_topology *topology = tnd_numa_topology(runtime);
    struct tnd_packed_numa numa = {.policy = tnd_cpu_numa_asked(cpu_of(runtime))};
    if (topology == NULL) {
        return;
    }
    double first_touch = 0;
    double interleave = 0;
    if (numa.policy == TND_NUMA_AUTO) {
        if (table != NULL) {
            first_touch = tnd_table_peak(table, TND_NUMA_UNIT_ALL_OWN, topology->n_cpus);
            interleave = tnd_table_peak(table, TND_NUMA_UNIT_INTERLEAVE, topology->n_cpus);
        }
        numa.policy = first_touch > 0 && interleave > first_touch * TND_NUMA_GAIN
                          ? TND_NUMA_INTERLEAVE
                          : TND_NUMA_FIRST_TOUCH;
    }
    if (numa.policy == TND_NUMA_MIRROR && tnd_pool_nodes(runtime->pool) == NULL) {
        numa.policy = TND_NUMA_FIRST_TOUCH; /* an application's threads: they have no nodes */
    }
    numa.n_nodes = topology->n_numa_nodes;
    memcpy(numa.node_ids, topology->node_ids, sizeof(numa.node_ids));
    tnd_cpu_numa_set(cpu_of(runtime), &numa);
    tnd_log_line(&runtime->log, TANDEM_LOG_INFO, "runtime", "%d NUMA nodes, packed weights: %s%s",
                 numa.n_nodes, tnd_numa_policy_name(numa.policy),
                 interleave > 0 ? " (as measured)" : "");
}

size_t tnd_numa_describe_rows(struct tnd_pool *pool, const tandem_tensor *node,
                              const struct tandem_plan_node *choice, char *out, size_t n)
{
    int64_t rows[TND_CHUNK_NODES + 1];
    const struct tandem_task_config *config = &choice->stage[TANDEM_STAGE_COMPUTE];
    bool is_shared =
        node->op == TANDEM_OP_MUL_MAT && config->backend == TANDEM_BACKEND_CPU && config->parallel;
    int n_nodes =
        is_shared ? tnd_pool_node_rows(pool, choice->n_threads, node->src[0]->ne[1], rows) : 0;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < n_nodes && used < n; i++) {
        if (rows[i] < rows[i + 1]) {
            used += (size_t)snprintf(out + used, n - used, "%scpu node %d rows %lld-%lld",
                                     used > 0 ? ", " : "", i, (long long)rows[i],
                                     (long long)rows[i + 1] - 1);
        }
    }
    return used < n ? used : n - 1;
}
