/* SPDX-License-Identifier: MIT
 * Support for processes that fork. A child has only the thread that called fork: counting forks
 * lets objects with threads notice that theirs are gone, and process-wide locks are made free in
 * the child. */
#ifndef TND_FORK_H
#define TND_FORK_H

#include <pthread.h>
#include <stdatomic.h>

/** Number of forks between the first process that called this function and the current one. An
 * object that stored the number when it was created is inherited from a parent if the number has
 * changed. Any thread. */
unsigned tnd_fork_generation(void);

/** A lock for static variables. Its holder takes no other lock and waits for no other thread. A
 * fork takes it first, so that in the child it is free and what it guards is consistent. */
struct tnd_fork_lock {
    pthread_mutex_t mutex;
    atomic_bool is_listed;
    struct tnd_fork_lock *next; /* list of all locks */
};
#define TND_FORK_LOCK_INIT                                                                         \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                                         \
    }

void tnd_fork_lock_take(struct tnd_fork_lock *lock);
void tnd_fork_lock_give(struct tnd_fork_lock *lock);

#endif
