/* SPDX-License-Identifier: MIT
 * Threads of one run on one CPU each. A system that wakes a thread where another one of the run
 * computes leaves both there for up to a tenth of a second, and the run takes twice as long. So
 * each thread says where it begins, and one that finds its CPU taken steps aside. Threads are not
 * bound: afterwards they may run where they might before. */
#ifndef TND_ASIDE_H
#define TND_ASIDE_H

#include <stdatomic.h>
#include <stdbool.h>

enum { TND_ASIDE_CPUS = 1024 };

/** Which round took each CPU last. Zero at the start. */
struct tnd_aside {
    atomic_uint taken[TND_ASIDE_CPUS];
};

/** This thread begins its part of `round` (not 0) on the CPU where it is. False when another thread
 *  of the round took that CPU before. Any thread. */
bool tnd_aside_take(struct tnd_aside *aside, unsigned round);
/** The same; but where the CPU is taken, this thread moves to one that nobody has taken, if it may
 *  run on such a CPU. Returns whether it moved. */
bool tnd_aside_step(struct tnd_aside *aside, unsigned round);

#endif
