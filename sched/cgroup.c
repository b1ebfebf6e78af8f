/* SPDX-License-Identifier: MIT
 * CPU time granted by control groups. Formats: Linux Documentation/admin-guide/cgroup-v2.rst
 * (cpu.max) and scheduler/sched-bwc.rst (cpu.cfs_quota_us), cgroups(7) for /proc/self/cgroup.
 * Anything that cannot be read or understood grants no quota. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/topology.h"

enum { MAX_PATH = 4096, MAX_LINE = 4096 };

/* First line of a file; false when there is none. */
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

/* A positive number at the start of the text and nothing but blanks behind it, up to `end`. */
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

static double smaller_quota(double a, double b)
{
    if (a == 0 || b == 0) {
        return a + b;
    }
    return a < b ? a : b;
}

/* Smallest quota of `mount`/`path` and all levels above it, down to `mount` itself. Levels that
 * are not there (a container sees its own group as the root) are passed over. */
static double quota_of_levels(const char *mount, const char *path,
                              double (*quota_of)(const char *folder))
{
    char folder[MAX_PATH];
    int n = snprintf(folder, sizeof(folder), "%s%s", mount, path);
    double quota = 0;
    if (n < 0 || (size_t)n >= sizeof(folder)) {
        return quota_of(mount);
    }
    for (;;) {
        quota = smaller_quota(quota, quota_of(folder));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < strlen(mount)) {
            return quota;
        }
        *slash = '\0';
    }
}

/* Whether the comma-separated list has the word. */
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

/* One line "number:controllers:path" of the process's cgroup file. */
static double quota_of_line(const char *root, char *line)
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
        double quota = quota_of_levels(root, path, quota_of_v2);
        char unified[MAX_PATH]; /* where version 1 systems mount version 2 beside it */
        snprintf(unified, sizeof(unified), "%s/unified", root);
        return smaller_quota(quota, quota_of_levels(unified, path, quota_of_v2));
    }
    if (!has_word(controllers, "cpu")) {
        return 0;
    }
    char mount[MAX_PATH];
    snprintf(mount, sizeof(mount), "%s/%s", root, controllers); /* "cpu,cpuacct" */
    double quota = quota_of_levels(mount, path, quota_of_v1);
    snprintf(mount, sizeof(mount), "%s/cpu", root);
    return smaller_quota(quota, quota_of_levels(mount, path, quota_of_v1));
}

double tnd_topology_quota(const char *root, const char *self)
{
    char line[MAX_LINE];
    double quota = 0;
    FILE *file = fopen(self, "re");
    if (file == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        quota = smaller_quota(quota, quota_of_line(root, line));
    }
    fclose(file);
    return quota;
}
