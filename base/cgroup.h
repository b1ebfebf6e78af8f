/* SPDX-License-Identifier: MIT
 * What the operating system lets this process use: CPU time and memory granted by control groups
 * (versions 1 and 2, smallest of all levels), and memory that is free. Read again by each call;
 * never fails. Any thread. */
#ifndef TND_CGROUP_H
#define TND_CGROUP_H

/** CPUs granted by a cgroup file system mounted at `root` ("/sys/fs/cgroup") for the process whose
 *  cgroup file is `self` ("/proc/self/cgroup"); 0: no quota. */
double tnd_cgroup_cpus(const char *root, const char *self);
/** Bytes that this process can take without swapping: of the machine (`proc` is "/proc") and of its
 *  groups, for which cached pages of files count as free; 0: unknown. */
double tnd_memory_available(const char *proc, const char *root);

#endif
