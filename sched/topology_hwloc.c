/* SPDX-License-Identifier: MIT
 * Rows of CPUs with hwloc (API 2): this machine, a recorded one, a synthetic one. */
#include "base/alloc.h"
#include "sched/topology_internal.h"

#ifndef TND_HAVE_HWLOC

bool tnd_topology_rows_from_hwloc(const char *xml_path, const char *synthetic,
                                  struct tnd_cpu_rows *out)
{
    (void)xml_path;
    (void)synthetic;
    (void)out;
    return false;
}

#else

#include <hwloc.h>
#include <string.h>

/* hwloc 2.9 does not check each of its small allocations and crashes when memory runs out. So it is
 * used only when this much can be allocated (it needs some 100 KiB, more for many CPUs). */
enum { HWLOC_BYTES = 4 << 20 };

static bool has_memory(void)
{
    void *memory = tnd_alloc(HWLOC_BYTES);
    tnd_free(memory);
    return memory != NULL;
}

/* A loaded topology, or NULL. I/O devices are not searched: that costs time and may wake
 * drivers. */
static hwloc_topology_t load(const char *xml_path, const char *synthetic)
{
    hwloc_topology_t topology;
    if (!has_memory() || hwloc_topology_init(&topology) != 0) {
        return NULL;
    }
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    int failed = 0;
    if (xml_path != NULL) {
        failed = hwloc_topology_set_xml(topology, xml_path);
    } else if (synthetic != NULL) {
        failed = hwloc_topology_set_synthetic(topology, synthetic);
    }
    /* The whole machine: disallowed CPUs are marked below and still part of its shape. */
    if (failed != 0 ||
        hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return NULL;
    }
    return topology;
}

/* Logical number of the object of a type that contains the CPU, or `otherwise`. */
static int above(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t pu, int otherwise)
{
    hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(topology, type, pu);
    return object != NULL ? (int)object->logical_index : otherwise;
}

static int node_of(hwloc_topology_t topology, hwloc_obj_t pu)
{
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL) {
        if (node->cpuset != NULL && hwloc_bitmap_isset(node->cpuset, pu->os_index)) {
            return (int)node->os_index;
        }
    }
    return 0;
}

/* Kinds are sorted by increasing efficiency value, which means performance in hwloc; -1:
 * unknown. */
static int speed_of(hwloc_topology_t topology, hwloc_obj_t pu)
{
#if HWLOC_API_VERSION >= 0x00020400
    int kind = hwloc_cpukinds_get_by_cpuset(topology, pu->cpuset, 0);
    int efficiency = 0;
    if (kind >= 0 &&
        hwloc_cpukinds_get_info(topology, (unsigned)kind, NULL, &efficiency, NULL, NULL, 0) == 0) {
        return efficiency >= 0 ? efficiency : 0;
    }
#else
    (void)topology;
    (void)pu;
#endif
    return 0;
}

static size_t largest_cache(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    size_t largest = 0;
    hwloc_obj_t cache = NULL;
    while ((cache = hwloc_get_next_obj_by_type(topology, type, cache)) != NULL) {
        if (cache->attr != NULL && cache->attr->cache.size > largest) {
            largest = (size_t)cache->attr->cache.size;
        }
    }
    return largest;
}

bool tnd_topology_rows_from_hwloc(const char *xml_path, const char *synthetic,
                                  struct tnd_cpu_rows *out)
{
    hwloc_topology_t topology = load(xml_path, synthetic);
    if (topology == NULL) {
        return false;
    }
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_obj_t pu = NULL;
    out->n = 0;
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL &&
           out->n < TND_MAX_CPUS) {
        if (pu->os_index >= TND_MAX_CPUS) {
            continue; /* cannot be in a CPU mask either */
        }
        struct tnd_cpu_row *row = &out->row[out->n++];
        row->id = (int)pu->os_index;
        row->core = above(topology, HWLOC_OBJ_CORE, pu, (int)pu->logical_index);
        row->package = above(topology, HWLOC_OBJ_PACKAGE, pu, 0);
        row->numa_node = node_of(topology, pu);
        row->speed = speed_of(topology, pu);
        row->is_allowed = allowed == NULL || hwloc_bitmap_isset(allowed, pu->os_index);
    }
    out->l1d_bytes = largest_cache(topology, HWLOC_OBJ_L1CACHE);
    out->l2_bytes = largest_cache(topology, HWLOC_OBJ_L2CACHE);
    out->l3_bytes = largest_cache(topology, HWLOC_OBJ_L3CACHE);
    hwloc_topology_destroy(topology);
    return out->n > 0;
}

#endif
