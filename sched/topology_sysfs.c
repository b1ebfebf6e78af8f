/* SPDX-License-Identifier: MIT
 * Rows of CPUs from Linux's sysfs, for builds without hwloc. Files: Linux
 * Documentation/ABI/testing/sysfs-devices-system-cpu and admin-guide/cputopology.rst. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/topology_internal.h"

enum { MAX_PATH = 512, MAX_LIST = 4096, MAX_NODES = 256, MAX_CACHES = 16 };

static bool read_text(const char *path, char *out, size_t n)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool has_text = fgets(out, (int)n, file) != NULL;
    fclose(file);
    if (has_text) {
        out[strcspn(out, "\n")] = '\0';
    }
    return has_text;
}

static int read_number(const char *path, int otherwise)
{
    char text[64];
    char *end = NULL;
    if (!read_text(path, text, sizeof(text))) {
        return otherwise;
    }
    long number = strtol(text, &end, 10);
    return end != text && number >= 0 && number <= INT32_MAX ? (int)number : otherwise;
}

/* Whether a list like "0-3,8,10-11" contains the number. */
static bool list_has(const char *list, int number)
{
    for (const char *at = list; *at != '\0';) {
        char *end = NULL;
        long first = strtol(at, &end, 10);
        if (end == at) {
            return false;
        }
        long last = first;
        if (*end == '-') {
            at = end + 1;
            last = strtol(at, &end, 10);
            if (end == at) {
                return false;
            }
        }
        if (number >= first && number <= last) {
            return true;
        }
        at = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != '\0') {
            return false;
        }
    }
    return false;
}

/* Sizes are written like "48K" or "32M". */
static size_t parse_size(const char *text)
{
    char *end = NULL;
    unsigned long long number = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return end == text || number > (1u << 24) ? 0 : (size_t)number << shift;
}

static void read_caches(const char *cpu, struct tnd_cpu_rows *out)
{
    for (int i = 0; i < MAX_CACHES; i++) {
        char path[MAX_PATH];
        char type[32];
        char size[32];
        snprintf(path, sizeof(path), "%s/cache/index%d/type", cpu, i);
        if (!read_text(path, type, sizeof(type))) {
            return;
        }
        snprintf(path, sizeof(path), "%s/cache/index%d/size", cpu, i);
        if (strcmp(type, "Instruction") == 0 || !read_text(path, size, sizeof(size))) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/cache/index%d/level", cpu, i);
        int level = read_number(path, 0);
        size_t *place = level == 1   ? &out->l1d_bytes
                        : level == 2 ? &out->l2_bytes
                        : level == 3 ? &out->l3_bytes
                                     : NULL;
        size_t bytes = parse_size(size);
        if (place != NULL && bytes > *place) {
            *place = bytes;
        }
    }
}

/* arm64 has a capacity for each CPU; Intel's hybrid CPUs list the performance cores. */
static int read_speed(const char *sysfs, const char *cpu, int id)
{
    char path[MAX_PATH];
    char list[MAX_LIST];
    snprintf(path, sizeof(path), "%s/cpu_capacity", cpu);
    int capacity = read_number(path, -1);
    if (capacity >= 0) {
        return capacity;
    }
    snprintf(path, sizeof(path), "%s/devices/cpu_core/cpus", sysfs);
    return read_text(path, list, sizeof(list)) && list_has(list, id) ? 1 : 0;
}

static void read_cpu(const char *sysfs, int id, struct tnd_cpu_row *row, struct tnd_cpu_rows *out)
{
    char cpu[MAX_PATH - 64];
    char path[MAX_PATH];
    snprintf(cpu, sizeof(cpu), "%s/devices/system/cpu/cpu%d", sysfs, id);
    row->id = id;
    snprintf(path, sizeof(path), "%s/topology/core_id", cpu);
    row->core = read_number(path, id);
    snprintf(path, sizeof(path), "%s/topology/physical_package_id", cpu);
    row->package = read_number(path, 0);
    row->speed = read_speed(sysfs, cpu, id);
    row->numa_node = 0;
    row->is_allowed = true;
    read_caches(cpu, out);
}

/* core_id counts within a die, and a package may have several: CPUs share a core only when the list
 * of siblings says so. The core gets the number of its first CPU. */
static void name_cores(const char *sysfs, struct tnd_cpu_rows *out)
{
    for (int i = 0; i < out->n; i++) {
        char path[MAX_PATH];
        char list[MAX_LIST];
        snprintf(path, sizeof(path), "%s/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 sysfs, out->row[i].id);
        if (read_text(path, list, sizeof(list)) && list_has(list, out->row[i].id)) {
            out->row[i].core = (int)strtol(list, NULL, 10);
        }
    }
}

static void read_nodes(const char *sysfs, struct tnd_cpu_rows *out)
{
    for (int node = 0; node < MAX_NODES; node++) {
        char path[MAX_PATH];
        char list[MAX_LIST];
        snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", sysfs, node);
        if (!read_text(path, list, sizeof(list))) {
            continue;
        }
        for (int i = 0; i < out->n; i++) {
            if (list_has(list, out->row[i].id)) {
                out->row[i].numa_node = node;
            }
        }
    }
}

bool tnd_topology_rows_from_sysfs(const char *sysfs, struct tnd_cpu_rows *out)
{
    char path[MAX_PATH];
    char online[MAX_LIST];
    if (strlen(sysfs) > MAX_PATH / 2) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/devices/system/cpu/online", sysfs);
    if (!read_text(path, online, sizeof(online))) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    for (int id = 0; id < TND_MAX_CPUS; id++) {
        if (list_has(online, id)) {
            read_cpu(sysfs, id, &out->row[out->n], out);
            out->n++;
        }
    }
    name_cores(sysfs, out);
    read_nodes(sysfs, out);
    return out->n > 0;
}
