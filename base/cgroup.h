/* SPDX-License-Identifier: MIT
 * What the operating system lets this process use: CPU time and memory granted by control groups
 * (versions 1 and 2, the smallest limit of all levels), and free memory. Each call reads the files
 * again; none fails. Any thread. */
#ifndef TND_CGROUP_H
#define TND_CGROUP_H

/** CPUs granted by a cgroup file system mounted at `root` ("/sys/fs/cgroup") for the process whose
 *  cgroup file is `self` ("/proc/self/cgroup"); 0: no quota. */
double tnd_cgroup_cpus(const char *root, const char *self);
/** Bytes that this process can use without swapping: the smaller of what is available on the
 * machine (`proc` is "/proc") and in its control groups, where page cache counts as free; 0:
 * unknown. */
double tnd_memory_available(const char *proc, const char *root);

#endif
