/* SPDX-License-Identifier: MIT
 * CPU and memory limits of control groups. Formats: Linux Documentation/admin-guide/cgroup-v2.rst
 * (cpu.max, memory.max, memory.current, memory.stat), scheduler/sched-bwc.rst (cpu.cfs_quota_us),
 * cgroup-v1/memory.rst, cgroups(7) for /proc/self/cgroup. A file that cannot be read or parsed sets
 * no limit. */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 4096, MAX_LINE = 4096 };

/* Reads the first line of a file; false when there is none. */
static bool read_line(const char *folder, const char *name, char *out, size_t n)
{
    char path[MAX_PATH + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool has_line = fgets(out, (int)n, file) != NULL;
    fclose(file);
    return has_line;
}

/* Parses a positive number at the start of `text`; *out_end is the first character after it. */
static bool parse_positive(const char *text, double *out, const char **out_end)
{
    char *end = NULL;
    double number = strtod(text, &end);
    if (end == text || !(number > 0) || number > 1e15) {
        return false;
    }
    *out = number;
    *out_end = end;
    return true;
}

/* "50000 100000", or "max 100000" for no quota. */
static double quota_of_v2(const char *folder)
{
    char line[128];
    double quota;
    double period;
    const char *end;
    if (!read_line(folder, "cpu.max", line, sizeof(line)) || !parse_positive(line, &quota, &end) ||
        !parse_positive(end, &period, &end)) {
        return 0;
    }
    return quota / period;
}

static double quota_of_v1(const char *folder)
{
    char line[128];
    double quota; /* -1: none */
    double period;
    const char *end;
    if (!read_line(folder, "cpu.cfs_quota_us", line, sizeof(line)) ||
        !parse_positive(line, &quota, &end) ||
        !read_line(folder, "cpu.cfs_period_us", line, sizeof(line)) ||
        !parse_positive(line, &period, &end)) {
        return 0;
    }
    return quota / period;
}

/* Sum of the values named `first` and `second` in a file of lines "name value". */
static double sum_of_rows(const char *folder, const char *file_name, const char *first,
                          const char *second)
{
    char path[MAX_PATH + 64];
    char line[256];
    double sum = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, file_name);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        double value;
        const char *end;
        char *blank = strchr(line, ' ');
        if (blank == NULL) {
            continue;
        }
        *blank = '\0';
        bool is_wanted = strcmp(line, first) == 0 || strcmp(line, second) == 0;
        sum += is_wanted && parse_positive(blank + 1, &value, &end) ? value : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return sum;
}

/* Page cache counts as free (`files`): the kernel drops clean pages of files before it refuses
 * memory. */
static double memory_of(const char *folder, const char *limit_name, const char *used_name,
                        double files)
{
    char line[128];
    double limit;
    double used = 0;
    const char *end;
    if (!read_line(folder, limit_name, line, sizeof(line)) || !parse_positive(line, &limit, &end)) {
        return 0;
    }
    if (read_line(folder, used_name, line, sizeof(line))) {
        (void)parse_positive(line, &used, &end);
    }
    double left = limit - used + files;
    return left < 1 ? 1 : left < limit ? left : limit;
}

static double memory_of_v2(const char *folder)
{
    double files = sum_of_rows(folder, "memory.stat", "inactive_file", "active_file");
    return memory_of(folder, "memory.max", "memory.current", files);
}

static double memory_of_v1(const char *folder)
{
    double files = sum_of_rows(folder, "memory.stat", "total_inactive_file", "total_active_file");
    return memory_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", files);
}

/* A resource that control groups limit. */
struct resource {
    const char *controller; /* name of the version 1 controller */
    double (*of_v1)(const char *folder);
    double (*of_v2)(const char *folder);
};

static double smaller_limit(double a, double b)
{
    if (a == 0 || b == 0) {
        return a + b;
    }
    return a < b ? a : b;
}

/* Smallest limit of `mount`/`path` and all levels above it, up to `mount` itself. Skips levels that
 * do not exist (a container sees its own group as the root). */
static double limit_of_levels(const char *mount, const char *path,
                              double (*limit_of)(const char *folder))
{
    char folder[MAX_PATH];
    int n = snprintf(folder, sizeof(folder), "%s%s", mount, path);
    double limit = 0;
    if (n < 0 || (size_t)n >= sizeof(folder)) {
        return limit_of(mount);
    }
    for (;;) {
        limit = smaller_limit(limit, limit_of(folder));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < strlen(mount)) {
            return limit;
        }
        *slash = '\0';
    }
}

/* Whether the comma-separated list contains the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Limit of one line "number:controllers:path" of the process's cgroup file. */
static double limit_of_line(const struct resource *resource, const char *root, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return 0;
    }
    *path++ = '\0';
    controllers++;
    if (*controllers == '\0') {
        double limit = limit_of_levels(root, path, resource->of_v2);
        char unified[MAX_PATH]; /* version 2 is mounted here beside version 1 */
        snprintf(unified, sizeof(unified), "%s/unified", root);
        return smaller_limit(limit, limit_of_levels(unified, path, resource->of_v2));
    }
    if (!has_word(controllers, resource->controller)) {
        return 0;
    }
    char mount[MAX_PATH];
    snprintf(mount, sizeof(mount), "%s/%s", root, controllers); /* "cpu,cpuacct" */
    double limit = limit_of_levels(mount, path, resource->of_v1);
    snprintf(mount, sizeof(mount), "%s/%s", root, resource->controller);
    return smaller_limit(limit, limit_of_levels(mount, path, resource->of_v1));
}

static double limit_of(const struct resource *resource, const char *root, const char *self)
{
    char line[MAX_LINE];
    double limit = 0;
    FILE *file = fopen(self, "re");
    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        limit = smaller_limit(limit, limit_of_line(resource, root, line));
    }
    fclose(file);
    return limit;
}

double tnd_cgroup_cpus(const char *root, const char *self)
{
    static const struct resource cpu = {"cpu", quota_of_v1, quota_of_v2};
    return limit_of(&cpu, root, self);
}

double tnd_memory_available(const char *proc, const char *root)
{
    static const struct resource memory = {"memory", memory_of_v1, memory_of_v2};
    char path[MAX_PATH];
    snprintf(path, sizeof(path), "%s/self/cgroup", proc);
    double left = limit_of(&memory, root, path);
    double free_kib = sum_of_rows(proc, "meminfo", "MemAvailable:", "");
    return smaller_limit(left, 1024.0 * free_kib);
}
