/* SPDX-License-Identifier: MIT
 * Following the control group's quota. */
#include "runtime/quota.h"

#include "base/cgroup.h"

#define LOOK_NS UINT64_C(1000000000)

void tnd_quota_init(struct tnd_quota *quota, double at_open, const struct tnd_clock *clock)
{
    quota->root = "/sys/fs/cgroup";
    quota->self = "/proc/self/cgroup";
    quota->clock = clock;
    quota->at_open = at_open;
    atomic_init(&quota->due_ns, clock->now_ns(clock) + LOOK_NS);
    atomic_init(&quota->limit, 0);
}

/* More than at the beginning is no limit: the pool has no more threads. */
static int limit_of(const struct tnd_quota *quota, double now)
{
    bool is_less = now > 0 && (quota->at_open == 0 || now < quota->at_open);
    return !is_less ? 0 : now < 1 ? 1 : (int)now;
}

void tnd_quota_look(struct tnd_quota *quota, const struct tnd_log *log)
{
    uint64_t now_ns = quota->clock->now_ns(quota->clock);
    uint64_t due_ns = atomic_load_explicit(&quota->due_ns, memory_order_relaxed);
    /* relaxed: only one of several threads looks; what it finds is the limit alone */
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong_explicit(&quota->due_ns, &due_ns, now_ns + LOOK_NS,
                                                 memory_order_relaxed, memory_order_relaxed)) {
        return;
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

int tnd_quota_limit(const struct tnd_quota *quota)
{
    return atomic_load_explicit(&quota->limit, memory_order_relaxed);
}
