/* SPDX-License-Identifier: MIT
 * What becomes of a process that forks: its child has the caller's thread alone. Counts forks, so
 * that objects with threads know that theirs are elsewhere, and keeps the locks of the whole
 * process free in the child. */
#ifndef TND_FORK_H
#define TND_FORK_H

#include <pthread.h>
#include <stdatomic.h>

/** How many forks lie between the first process that asked and this one. An object that keeps the
 *  number of its time is inherited when the number is another one now. Any thread. */
unsigned tnd_fork_generation(void);

/** A lock for static variables. Inside nothing else is locked, and nothing waits for another
 *  thread; a fork takes it first, so the child finds it free and what it guards whole. */
struct tnd_fork_lock {
    pthread_mutex_t mutex;
    atomic_bool is_listed;
    struct tnd_fork_lock *next; /* in the list of all of them */
};
#define TND_FORK_LOCK_INIT                                                                         \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

void tnd_fork_lock_take(struct tnd_fork_lock *lock);
void tnd_fork_lock_give(struct tnd_fork_lock *lock);

#endif
