/* SPDX-License-Identifier: MIT
 * Who else uses the CPUs before something is measured: how much, and which process most. Reads
 * /proc; where there is none, nothing is known and the machine counts as quiet. */
#ifndef TND_MEASURE_QUIET_H
#define TND_MEASURE_QUIET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TND_QUIET_NAME = 16 };

struct tnd_process_time {
    int pid;
    char name[TND_QUIET_NAME]; /* printable */
    uint64_t ticks;            /* of CPU time, by all of its threads */
};

struct tnd_disturbance {
    double cpus; /* that others keep busy, on average of the look */
    double load; /* of the last minute, as the system tells it */
    int pid;     /* of the busiest other process that can be seen; 0: none */
    char name[TND_QUIET_NAME];
    double process_cpus;
};

/** Reads /proc/PID/stat: "1234 (name) S 1 ...". False: that is none. */
bool tnd_quiet_parse_process(const char *text, struct tnd_process_time *out);
/** Ticks that all CPUs together were busy, of the first line of /proc/stat; -1: not told. */
int64_t tnd_quiet_parse_busy(const char *text);

/** Looks for `seconds`, in which this thread sleeps, at the processes below `proc` ("/proc"). Never
 *  fails: what cannot be read is 0. Any thread. */
void tnd_quiet_look(const char *proc, double seconds, struct tnd_disturbance *out);
/** Whether n threads will have their CPUs to themselves, of `n_cpus` that the machine has. */
bool tnd_is_quiet(const struct tnd_disturbance *found, int n_threads, int n_cpus);
/** "others keep 1.9 CPUs busy (load 11.2), most of all process 1234, cc1: 0.9 CPUs". Always
 *  terminated. */
void tnd_quiet_print(const struct tnd_disturbance *found, char *out, size_t n);

#endif
