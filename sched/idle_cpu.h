/* SPDX-License-Identifier: MIT
 * One CPU for each thread of a run. A system that wakes a thread on a CPU where another thread of
 * the run computes leaves both there for up to a tenth of a second, and the run takes twice as
 * long. So each thread claims the CPU where it begins; one that finds it claimed moves to an idle
 * CPU. Threads are not bound: afterwards their CPU mask is as before. */
#ifndef TND_IDLE_CPU_H
#define TND_IDLE_CPU_H

#include <stdatomic.h>
#include <stdbool.h>

enum { TND_CLAIM_CPUS = 1024 };

/** The last round that claimed each CPU. Zero at the start. */
struct tnd_cpu_claims {
    atomic_uint taken[TND_CLAIM_CPUS];
};

/** This thread begins its part of `round` (not 0) on its current CPU. False when another thread of
 *  the round has claimed that CPU. Any thread. */
bool tnd_cpu_claim(struct tnd_cpu_claims *claims, unsigned round);
/** Like tnd_cpu_claim; but if the CPU is taken, moves this thread to an unclaimed one that its mask
 *  allows. Returns whether it moved. */
bool tnd_cpu_move_to_idle(struct tnd_cpu_claims *claims, unsigned round);

#endif
