/* SPDX-License-Identifier: MIT
 * The handlers of pthread_atfork, registered once: they take all listed locks before a fork,
 * release them in parent and child, and count the fork in the child. */
#include "base/fork.h"

#include <stdbool.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint generation; /* relaxed: written by a child while it has only one thread */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; taken first */
static struct tnd_fork_lock *first;

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct tnd_fork_lock *lock = first; lock != NULL; lock = lock->next) {
        pthread_mutex_lock(&lock->mutex);
    }
}

static void after_fork(void)
{
    for (struct tnd_fork_lock *lock = first; lock != NULL; lock = lock->next) {
        pthread_mutex_unlock(&lock->mutex);
    }
    pthread_mutex_unlock(&list_lock);
}

static void in_child(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    after_fork();
}

static void register_handlers(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child); /* fails only when out of memory */
}

unsigned tnd_fork_generation(void)
{
    pthread_once(&once, register_handlers);
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

static void list(struct tnd_fork_lock *lock)
{
    (void)tnd_fork_generation(); /* registers the handlers */
    pthread_mutex_lock(&list_lock);
    if (!atomic_load_explicit(&lock->is_listed, memory_order_relaxed)) {
        lock->next = first;
        first = lock;
        atomic_store_explicit(&lock->is_listed, true, memory_order_release);
    }
    pthread_mutex_unlock(&list_lock);
}

void tnd_fork_lock_take(struct tnd_fork_lock *lock)
{
    if (!atomic_load_explicit(&lock->is_listed, memory_order_acquire)) {
        list(lock);
    }
    pthread_mutex_lock(&lock->mutex);
}

void tnd_fork_lock_give(struct tnd_fork_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}
