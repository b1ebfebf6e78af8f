/* SPDX-License-Identifier: MIT
 * From rows of CPUs to what the rest of the library needs: counts, placing order, a line of
 * text. */
#include "sched/topology.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/hash.h"
#include "base/tnd_status.h"
#include "sched/topology_internal.h"

static int by_core(const void *left, const void *right)
{
    const struct tnd_cpu_row *a = left;
    const struct tnd_cpu_row *b = right;
    if (a->package != b->package) {
        return a->package < b->package ? -1 : 1;
    }
    if (a->core != b->core) {
        return a->core < b->core ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

/* First one CPU of every core, fastest kind first, neighbours next to each other. */
static int by_placing(const void *left, const void *right)
{
    const struct tnd_cpu_row *a = left;
    const struct tnd_cpu_row *b = right;
    if (a->smt != b->smt) {
        return a->smt < b->smt ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    return by_core(left, right);
}

static bool same_core(const struct tnd_cpu_row *a, const struct tnd_cpu_row *b)
{
    return a->package == b->package && a->core == b->core;
}

/* Number of different values of a member among the allowed rows. */
static int count_values(const struct tnd_cpu_rows *rows,
                        int (*value)(const struct tnd_cpu_row *row))
{
    int n_values = 0;
    for (int i = 0; i < rows->n; i++) {
        bool is_new = rows->row[i].is_allowed;
        for (int j = 0; j < i && is_new; j++) {
            is_new = !rows->row[j].is_allowed || value(&rows->row[j]) != value(&rows->row[i]);
        }
        n_values += is_new;
    }
    return n_values;
}

static int node_of(const struct tnd_cpu_row *row)
{
    return row->numa_node;
}

static int rank_of(const struct tnd_cpu_row *row)
{
    return row->rank;
}

/* Hash of the whole machine, not only of the allowed CPUs: moving a process to other CPUs does not
 * make it another machine. Rows are sorted by core; only which CPUs share what is hashed, not the
 * system's numbers. */
static uint64_t hash_rows(const struct tnd_cpu_rows *rows)
{
    uint64_t hash = 0;
    for (int i = 0; i < rows->n; i++) {
        const struct tnd_cpu_row *row = &rows->row[i];
        const struct tnd_cpu_row *before = i > 0 ? &rows->row[i - 1] : row;
        int32_t shape[4] = {same_core(row, before), row->package == before->package,
                            row->numa_node == before->numa_node, row->rank};
        hash = tnd_hash_bytes(shape, sizeof(shape), hash);
    }
    uint64_t caches[3] = {rows->l1d_bytes, rows->l2_bytes, rows->l3_bytes};
    return tnd_hash_bytes(caches, sizeof(caches), hash);
}

/* Replaces speeds by ranks, 0 for the slowest, so that both readers give the same values. */
static void rank_speeds(struct tnd_cpu_rows *rows)
{
    int rank = 0;
    for (int above = -1;; rank++) { /* one round a kind */
        int next = INT_MAX;
        for (int i = 0; i < rows->n; i++) {
            if (rows->row[i].speed > above && rows->row[i].speed < next) {
                next = rows->row[i].speed;
            }
        }
        if (next == INT_MAX) {
            return;
        }
        for (int i = 0; i < rows->n; i++) {
            rows->row[i].rank = rows->row[i].speed == next ? rank : rows->row[i].rank;
        }
        above = next;
    }
}

/* Counts cores and numbers the SMT places, only over allowed CPUs: the first allowed one gets 0. */
static void count_cores(struct tnd_cpu_rows *rows, struct tnd_topology *out)
{
    int smt = 0;
    for (int i = 0; i < rows->n; i++) {
        struct tnd_cpu_row *row = &rows->row[i];
        if (i == 0 || !same_core(row, row - 1)) {
            smt = 0;
        }
        row->smt = smt;
        if (!row->is_allowed) {
            continue;
        }
        out->n_cpus++;
        out->n_cores += smt == 0;
        smt++;
        if (smt > out->threads_per_core) {
            out->threads_per_core = smt;
        }
    }
}

/* Lists the node numbers of allowed CPUs, in order; none when there are too many. */
static int list_nodes(const struct tnd_cpu_rows *rows, int *out_ids)
{
    int n = 0;
    for (int i = 0; i < rows->n; i++) {
        int id = rows->row[i].numa_node;
        int at = 0;
        while (at < n && out_ids[at] < id) {
            at++;
        }
        if (!rows->row[i].is_allowed || (at < n && out_ids[at] == id)) {
            continue;
        }
        if (n == TND_MAX_NODES) {
            return 0;
        }
        memmove(&out_ids[at + 1], &out_ids[at], (size_t)(n - at) * sizeof(out_ids[0]));
        out_ids[at] = id;
        n++;
    }
    return n;
}

static void place(const struct tnd_cpu_rows *rows, struct tnd_topology *out)
{
    int n_nodes = list_nodes(rows, out->node_ids);
    int n = 0;
    int fastest = 0;
    for (int i = 0; i < rows->n; i++) {
        if (rows->row[i].is_allowed && rows->row[i].rank > fastest) {
            fastest = rows->row[i].rank;
        }
    }
    for (int i = 0; i < rows->n; i++) {
        if (rows->row[i].is_allowed) {
            int slower_by = fastest - rows->row[i].rank;
            out->cpu_ids[n] = rows->row[i].id;
            out->kind[n] = (uint8_t)(slower_by > 255 ? 255 : slower_by);
            for (int node = 1; node < n_nodes; node++) {
                if (out->node_ids[node] == rows->row[i].numa_node) {
                    out->node[n] = (uint8_t)node;
                }
            }
            n++;
        }
    }
}

static void describe_bytes(char *out, size_t n, const char *name, size_t bytes)
{
    if (bytes == 0) {
        out[0] = '\0';
    } else if (bytes % (1024 * 1024) == 0) {
        snprintf(out, n, ", %s %zu MiB", name, bytes / (1024 * 1024));
    } else {
        snprintf(out, n, ", %s %zu KiB", name, bytes / 1024);
    }
}

static void describe(struct tnd_topology *topology)
{
    char l2[32];
    char l3[32];
    char kinds[32] = "";
    char quota[32] = "";
    describe_bytes(l2, sizeof(l2), "L2", topology->l2_bytes);
    describe_bytes(l3, sizeof(l3), "L3", topology->l3_bytes);
    if (topology->n_core_kinds > 1) {
        snprintf(kinds, sizeof(kinds), " of %d kinds", topology->n_core_kinds);
    }
    if (topology->quota_cpus > 0) {
        snprintf(quota, sizeof(quota), ", quota %.4g CPUs", topology->quota_cpus);
    }
    snprintf(topology->text, sizeof(topology->text),
             "%d core%s%s, %d thread%s, %d NUMA node%s%s%s%s", topology->n_cores,
             topology->n_cores == 1 ? "" : "s", kinds, topology->n_cpus,
             topology->n_cpus == 1 ? "" : "s", topology->n_numa_nodes,
             topology->n_numa_nodes == 1 ? "" : "s", l2, l3, quota);
}

void tnd_topology_fill(struct tnd_cpu_rows *rows, double quota_cpus, struct tnd_topology *out)
{
    memset(out, 0, sizeof(*out));
    rank_speeds(rows);
    qsort(rows->row, (size_t)rows->n, sizeof(rows->row[0]), by_core);
    out->hash = hash_rows(rows);
    out->threads_per_core = 1;
    count_cores(rows, out);
    out->n_numa_nodes = count_values(rows, node_of);
    out->n_core_kinds = count_values(rows, rank_of);
    qsort(rows->row, (size_t)rows->n, sizeof(rows->row[0]), by_placing);
    place(rows, out);
    out->l1d_bytes = rows->l1d_bytes;
    out->l2_bytes = rows->l2_bytes;
    out->l3_bytes = rows->l3_bytes;
    out->quota_cpus = quota_cpus;
    out->recommended_threads = out->n_cores;
    if (quota_cpus > 0 && quota_cpus < out->recommended_threads) {
        out->recommended_threads =
            (int)quota_cpus; /* rounded down: an extra thread would be throttled */
    }
    if (out->recommended_threads < 1) {
        out->recommended_threads = 1;
    }
    describe(out);
}

void tnd_topology_pretend(struct tnd_topology *topology, int n_nodes)
{
    int n_cores = topology->n_cores;
    int most = n_cores < TND_MAX_NODES ? n_cores : TND_MAX_NODES;
    n_nodes = n_nodes < 1 ? 1 : n_nodes > most ? most : n_nodes;
    for (int i = 0; i < topology->n_cpus; i++) { /* one CPU of every core, then their siblings */
        topology->node[i] = (uint8_t)(i % n_cores * n_nodes / n_cores);
    }
    for (int node = 1; node < n_nodes; node++) {
        topology->node_ids[node] = topology->node_ids[0];
    }
    topology->n_numa_nodes = n_nodes;
    describe(topology);
}

/* ---- this machine ---- */

/* Removes CPUs outside this thread's mask; makes rows from the mask when nothing else is known. */
static void apply_own_mask(struct tnd_cpu_rows *rows)
{
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) {
        return;
    }
    if (rows->n == 0) {
        for (int id = 0; id < CPU_SETSIZE && rows->n < TND_MAX_CPUS; id++) {
            if (CPU_ISSET((size_t)id, &mask)) {
                rows->row[rows->n++] =
                    (struct tnd_cpu_row){.id = id, .core = id, .is_allowed = true};
            }
        }
        return;
    }
    int n_left = 0;
    for (int i = 0; i < rows->n; i++) {
        n_left += rows->row[i].is_allowed && CPU_ISSET((size_t)rows->row[i].id, &mask);
    }
    for (int i = 0; i < rows->n && n_left > 0; i++) {
        rows->row[i].is_allowed =
            rows->row[i].is_allowed && CPU_ISSET((size_t)rows->row[i].id, &mask);
    }
}

static void assume_one_cpu(struct tnd_cpu_rows *rows)
{
    if (rows->n == 0) {
        rows->row[0] = (struct tnd_cpu_row){.is_allowed = true};
        rows->n = 1;
    }
}

enum tandem_status tnd_topology_read(struct tnd_topology *out_topology, struct tandem_error *error)
{
    struct tnd_cpu_rows *rows = tnd_calloc(1, sizeof(*rows)); /* too large for the stack */
    if (rows == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "topology", 0, 0, "topology: out of memory");
    }
    /* Without /sys (a bare chroot) hwloc finds nothing and prints to stderr. */
    bool from_hwloc = access("/sys/devices/system/cpu", F_OK) == 0 &&
                      tnd_topology_rows_from_hwloc(NULL, NULL, rows);
    if (!from_hwloc && !tnd_topology_rows_from_sysfs("/sys", rows)) {
        rows->n = 0;
    }
    apply_own_mask(rows);
    assume_one_cpu(rows);
    double quota = tnd_cgroup_cpus("/sys/fs/cgroup", "/proc/self/cgroup");
    tnd_topology_fill(rows, quota, out_topology);
    out_topology->from_hwloc = from_hwloc;
    tnd_free(rows);
    return TANDEM_OK;
}

int tnd_topology_fast_cores(const struct tnd_topology *topology)
{
    int n = 0;
    for (int i = 0; i < topology->n_cores && topology->n_core_kinds > 1; i++) {
        n += topology->kind[i] == topology->kind[0];
    }
    return n;
}
