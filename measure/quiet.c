/* SPDX-License-Identifier: MIT
 * Reads the CPU times of all processes twice, and compares them. */
#include "measure/quiet.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tune/policy.h"

enum { MOST_PROCESSES = 8192, TEXT_BYTES = 1024 };

struct look {
    int64_t busy; /* ticks of all CPUs; -1: unknown */
    uint64_t own; /* of this process */
    int n;
    struct tnd_process_time *processes; /* {MOST_PROCESSES} */
};

/* ---- parsing ---- */

bool tnd_quiet_parse_process(const char *text, struct tnd_process_time *out)
{
    const char *begin = strchr(text, '(');
    const char *end = strrchr(text, ')'); /* names may have any characters */
    unsigned long long user, system;
    const long pid = strtol(text, NULL, 10);
    if (pid <= 0 || pid > INT32_MAX || begin == NULL || end == NULL || end < begin ||
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) !=
            2) {
        return false;
    }
    size_t n = 0;
    for (const char *at = begin + 1; at < end && n + 1 < sizeof(out->name); at++) {
        out->name[n++] = isprint((unsigned char)*at) ? *at : '?';
    }
    out->name[n] = '\0';
    out->pid = (int)pid;
    out->ticks = (uint64_t)user + system;
    return true;
}

int64_t tnd_quiet_parse_busy(const char *text)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq, steal;
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &iowait, &irq, &softirq, &steal) != 8) {
        return -1;
    }
    return (int64_t)((user + nice + system + irq + softirq + steal) & INT64_MAX);
}

/* ---- observing ---- */

static bool read_text(const char *proc, const char *name, char out[TEXT_BYTES])
{
    char path[512];
    const int length = snprintf(path, sizeof(path), "%s/%s", proc, name);
    FILE *file = length > 0 && (size_t)length < sizeof(path) ? fopen(path, "re") : NULL;
    if (file == NULL) {
        return false;
    }
    const size_t n = fread(out, 1, TEXT_BYTES - 1, file);
    out[n] = '\0';
    (void)fclose(file);
    return n > 0;
}

static void look(const char *proc, struct look *out)
{
    char text[TEXT_BYTES];
    DIR *folder = opendir(proc);
    out->busy = read_text(proc, "stat", text) ? tnd_quiet_parse_busy(text) : -1;
    out->own = 0;
    out->n = 0;
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL;
         entry != NULL && out->n < MOST_PROCESSES; entry = readdir(folder)) {
        char name[sizeof(entry->d_name) + 8];
        struct tnd_process_time *process = &out->processes[out->n];
        (void)snprintf(name, sizeof(name), "%s/stat", entry->d_name);
        if (isdigit((unsigned char)entry->d_name[0]) && read_text(proc, name, text) &&
            tnd_quiet_parse_process(text, process)) {
            const bool is_own = process->pid == (int)getpid();
            out->own = is_own ? process->ticks : out->own;
            out->n += is_own ? 0 : 1;
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static int compare_pids(const void *a, const void *b)
{
    const struct tnd_process_time *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void find_busiest(const struct look *before, const struct look *after, double ticks,
                         struct tnd_disturbance *out)
{
    qsort(before->processes, (size_t)before->n, sizeof(before->processes[0]), compare_pids);
    for (int i = 0; i < after->n; i++) {
        const struct tnd_process_time *now = &after->processes[i];
        const struct tnd_process_time *then =
            bsearch(now, before->processes, (size_t)before->n, sizeof(now[0]), compare_pids);
        const uint64_t from = then != NULL ? then->ticks : 0; /* 0: it began in between */
        const double cpus = now->ticks > from ? (double)(now->ticks - from) / ticks : 0;
        if (cpus > out->process_cpus) {
            out->process_cpus = cpus;
            out->pid = now->pid;
            memcpy(out->name, now->name, sizeof(out->name));
        }
    }
}

static double now_s(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void tnd_quiet_look(const char *proc, double seconds, struct tnd_disturbance *out)
{
    struct look before = {.busy = -1}, after = {.busy = -1};
    char text[TEXT_BYTES];
    memset(out, 0, sizeof(*out));
    before.processes = tnd_calloc(2 * MOST_PROCESSES, sizeof(before.processes[0]));
    if (before.processes == NULL) {
        return;
    }
    after.processes = before.processes + MOST_PROCESSES;
    const double begin_s = now_s();
    look(proc, &before);
    const struct timespec pause = {(time_t)seconds,
                                   (long)(1e9 * (seconds - (double)(time_t)seconds))};
    (void)nanosleep(&pause, NULL);
    look(proc, &after);
    const double ticks = (now_s() - begin_s) * (double)sysconf(_SC_CLK_TCK);
    const int64_t own = (int64_t)(after.own - before.own);
    if (before.busy >= 0 && after.busy - before.busy > own && ticks > 0) {
        out->cpus = (double)(after.busy - before.busy - own) / ticks;
    }
    if (ticks > 0) {
        find_busiest(&before, &after, ticks, out);
    }
    out->load = read_text(proc, "loadavg", text) ? strtod(text, NULL) : 0;
    tnd_free(before.processes);
}

bool tnd_is_quiet(const struct tnd_disturbance *found, int n_threads, int n_cpus)
{
    return found->cpus <= TND_QUIET_CPUS || 2 * found->cpus + n_threads <= n_cpus;
}

void tnd_quiet_print(const struct tnd_disturbance *found, char *out, size_t n)
{
    int used = snprintf(out, n, "others keep %.1f CPUs busy (load %.1f)", found->cpus, found->load);
    if (used > 0 && (size_t)used < n && found->pid > 0) {
        (void)snprintf(out + used, n - (size_t)used, ", most of all process %d, %s: %.1f CPUs",
                       found->pid, found->name, found->process_cpus);
    }
}
