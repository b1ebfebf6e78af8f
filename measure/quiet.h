/* SPDX-License-Identifier: MIT
 * CPU use of other processes before a measurement: how much, and which process uses most. Reads
 * /proc; without it nothing is known and the machine counts as quiet. */
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
    double cpus; /* kept busy by others, average over the interval */
    double load; /* load average of the last minute */
    int pid;     /* of the busiest other process that is visible; 0: none */
    char name[TND_QUIET_NAME];
    double process_cpus;
};

/** Parses /proc/PID/stat: "1234 (name) S 1 ...". False when the format is wrong. */
bool tnd_quiet_parse_process(const char *text, struct tnd_process_time *out);
/** Ticks that all CPUs together were busy, from the first line of /proc/stat; -1: unknown. */
int64_t tnd_quiet_parse_busy(const char *text);

/** Observes the processes in `proc` ("/proc") for `seconds`, during which this thread sleeps. Never
 *  fails: what cannot be read is 0. Any thread. */
void tnd_quiet_look(const char *proc, double seconds, struct tnd_disturbance *out);
/** Whether n threads will have CPUs of their own, of the machine's `n_cpus`. */
bool tnd_is_quiet(const struct tnd_disturbance *found, int n_threads, int n_cpus);
/** "others keep 1.9 CPUs busy (load 11.2), most of all process 1234, cc1: 0.9 CPUs". Always
 *  terminated. */
void tnd_quiet_print(const struct tnd_disturbance *found, char *out, size_t n);

#endif
