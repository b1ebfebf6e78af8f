/* SPDX-License-Identifier: MIT
 * Adapts to the control group's quota and to other programs. /proc/stat: proc(5). */
#include "runtime/quota.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cgroup.h"

#define LOOK_NS UINT64_C(1000000000)
/* The number of threads stays as long as the CPUs left by other programs differ from it by less
 * than this. Unit: CPUs. Why: with a program that keeps half a CPU busy, the number would change at
 * every second check; one that keeps a CPU of two busy beside two threads leaves 1.33, which must
 * change it. */
#define STAYS   0.6

/* ---- other programs ---- */

static bool is_ours(const struct tnd_topology *topology, int cpu)
{
    for (int i = 0; i < topology->n_cpus; i++) {
        if (topology->cpu_ids[i] == cpu) {
            return true;
        }
    }
    return false;
}

int64_t tnd_quota_busy(const char *path, const struct tnd_topology *topology, int *out_cpus)
{
    char line[512];
    int64_t ticks = 0;
    *out_cpus = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        int cpu;
        uint64_t user, system, irq, softirq, steal;
        if (strncmp(line, "cpu", 3) == 0 &&
            isdigit((unsigned char)line[3]) != 0 && /* "cpu " is the sum */
            sscanf(line,
                   "cpu%d %" SCNu64 " %*u %" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64 " %" SCNu64,
                   &cpu, &user, &system, &irq, &softirq, &steal) == 6 &&
            is_ours(topology, cpu)) {
            const uint64_t busy = user + system + irq + softirq + steal;
            ticks += (int64_t)(busy & UINT32_MAX);
            ++*out_cpus;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return ticks;
}

static uint64_t own_ns(void)
{
    struct timespec time = {0, 0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Whether this process has normal priority; otherwise it gets another share than other programs. */
static bool is_like_others(void)
{
    return sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) == 0;
}

/* Number of threads for these CPUs; 0: one per CPU. */
static int threads_of(double left, int n_cpus, int before)
{
    if (fabs(left - (before == 0 ? n_cpus : before)) < STAYS) {
        return before;
    }
    return left >= n_cpus - 0.5 ? 0 : left < 1.5 ? 1 : (int)(left + 0.5);
}

/* Number of threads that other programs leave CPUs for; 0: all, or unknown. */
static int look_at_others(struct tnd_quota *quota, uint64_t now_ns)
{
    const struct tnd_topology *topology = atomic_load(&quota->topology);
    if (topology == NULL || !is_like_others()) {
        return 0;
    }
    int cpus;
    const int64_t ticks = tnd_quota_busy(quota->stat, topology, &cpus) - quota->busy_ticks;
    const uint64_t own = own_ns();
    const double s = 1e-9 * (double)(now_ns - quota->looked_ns);
    const double own_s = 1e-9 * (double)(own - quota->own_ns);
    /* (A CPU that goes online or offline changes the sum by its whole history.) */
    const bool is_told = cpus > 0 && cpus == quota->busy_cpus && ticks >= 0 && s > 0;
    quota->looked_ns = now_ns;
    quota->own_ns = own;
    quota->busy_ticks += ticks;
    quota->busy_cpus = cpus;
    const double others_s = (double)ticks / (double)sysconf(_SC_CLK_TCK) - own_s;
    const double left = is_told ? topology->n_cpus - others_s / s : INFINITY;
    return threads_of(left, topology->n_cpus,
                      atomic_load_explicit(&quota->left, memory_order_relaxed));
}

/* ---- checking ---- */

void tnd_quota_init(struct tnd_quota *quota, double at_open, const struct tnd_topology *topology,
                    const struct tnd_clock *clock)
{
    quota->root = "/sys/fs/cgroup";
    quota->self = "/proc/self/cgroup";
    quota->stat = "/proc/stat";
    quota->clock = clock;
    atomic_init(&quota->topology, topology);
    quota->at_open = at_open;
    quota->looked_ns = clock->now_ns(clock);
    quota->own_ns = own_ns();
    quota->busy_ticks = quota->busy_cpus = 0;
    if (topology != NULL) {
        quota->busy_ticks = tnd_quota_busy(quota->stat, topology, &quota->busy_cpus);
    }
    atomic_init(&quota->due_ns, quota->looked_ns + LOOK_NS / 4);
    atomic_init(&quota->limit, 0);
    atomic_init(&quota->left, 0);
}

/* A larger quota than at the start is no limit: the pool has no more threads. */
static int limit_of(const struct tnd_quota *quota, double now)
{
    bool is_less = now > 0 && (quota->at_open == 0 || now < quota->at_open);
    return !is_less ? 0 : now < 1 ? 1 : (int)now;
}

void tnd_quota_ignore_others(struct tnd_quota *quota)
{
    atomic_store(&quota->topology, NULL);
}

static void tell_others(const struct tnd_log *log, int left)
{
    if (left > 0) {
        tnd_log_line(log, TANDEM_LOG_INFO, "runtime",
                     "other programs leave room for %d thread%s: plans have no more for now", left,
                     left == 1 ? "" : "s");
    } else {
        tnd_log_line(log, TANDEM_LOG_INFO, "runtime", "other programs leave all CPUs again");
    }
}

void tnd_quota_look(struct tnd_quota *quota, const struct tnd_log *log)
{
    uint64_t now_ns = quota->clock->now_ns(quota->clock);
    uint64_t due_ns = atomic_load_explicit(&quota->due_ns, memory_order_relaxed);
    /* Only one thread checks, however long it takes. Acquire: pairs with the release below, so that
     * the next one sees its results. */
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong_explicit(&quota->due_ns, &due_ns, UINT64_MAX,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return;
    }
    /* After a long pause the average load says little about the present. */
    const bool is_old = now_ns - quota->looked_ns > 4 * LOOK_NS;
    const int left = look_at_others(quota, now_ns);
    atomic_store_explicit(&quota->due_ns, now_ns + (is_old ? LOOK_NS / 4 : LOOK_NS),
                          memory_order_release);
    if (atomic_exchange_explicit(&quota->left, left, memory_order_relaxed) != left) {
        tell_others(log, left);
    }
    double cpus = tnd_cgroup_cpus(quota->root, quota->self);
    int limit = limit_of(quota, cpus);
    if (atomic_exchange_explicit(&quota->limit, limit, memory_order_relaxed) == limit) {
        return;
    }
    if (limit > 0) {
        tnd_log_line(log, TANDEM_LOG_WARN, "runtime",
                     "the control group grants %.2f CPUs now: plans have at most %d thread%s", cpus,
                     limit, limit == 1 ? "" : "s");
    } else {
        tnd_log_line(log, TANDEM_LOG_WARN, "runtime",
                     "the control group grants as many CPUs as at the beginning again");
    }
}

int tnd_quota_limit(const struct tnd_quota *quota, bool is_long)
{
    const int limit = atomic_load_explicit(&quota->limit, memory_order_relaxed);
    /* (A look that goes on while others are no more looked at still notes what it has found.) */
    const bool is_shared =
        !is_long && atomic_load_explicit(&quota->topology, memory_order_relaxed) != NULL;
    const int left = is_shared ? atomic_load_explicit(&quota->left, memory_order_relaxed) : 0;
    return limit == 0 || (left > 0 && left < limit) ? left : limit;
}
