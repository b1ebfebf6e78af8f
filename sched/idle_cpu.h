/* SPDX-License-Identifier: MIT
 * Threads of one run on one CPU each. A system that wakes a thread where another one of the run
 * computes leaves both there for up to a tenth of a second, and the run takes twice as long. So
 * each thread claims the CPU where it begins; one that finds it claimed moves to an idle CPU.
 * Threads are not bound: afterwards they may run where they might before. */
#ifndef TND_IDLE_CPU_H
#define TND_IDLE_CPU_H

#include <stdatomic.h>
#include <stdbool.h>

enum { TND_CLAIM_CPUS = 1024 };

/** Which round took each CPU last. Zero at the start. */
struct tnd_cpu_claims {
    atomic_uint taken[TND_CLAIM_CPUS];
};

/** This thread begins its part of `round` (not 0) on the CPU where it is. False when another thread
 *  of the round took that CPU before. Any thread. */
bool tnd_cpu_claim(struct tnd_cpu_claims *claims, unsigned round);
/** The same; but where the CPU is taken, this thread moves to one that nobody has taken, if it may
 *  run on such a CPU. Returns whether it moved. */
bool tnd_cpu_move_to_idle(struct tnd_cpu_claims *claims, unsigned round);

#endif
