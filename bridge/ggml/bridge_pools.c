/* SPDX-License-Identifier: MIT
 * GNU's libgomp lets idle threads spin, and reads for how long when it is loaded, which is before
 * us. So the threads get something to do: a parallel region, in which they wait on a condition
 * variable. Behind it they spin again, and the host's next region starts as fast as without us.
 * LLVM's libomp has kmp_set_blocktime for the thread that opens regions. */
#include "bridge/ggml/bridge_pools.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "bridge/ggml/bridge_host.h"

typedef void (*parallel_fn)(void (*body)(void *), void *data, unsigned n_threads, unsigned flags);
typedef int (*number_fn)(void);
typedef void (*set_number_fn)(int);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static parallel_fn parallel; /* of libgomp; NULL: the host does not use it */
static number_fn thread_number;
static number_fn is_in_parallel;
static set_number_fn set_blocktime; /* of libomp */
static _Thread_local bool has_blocktime;

struct region {
    void (*work)(void *data);
    void *data;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

static ggml_any_fn find(void *library, const char *name)
{
    union ggml_word word = {.p = library != NULL ? dlsym(library, name) : NULL};
    return word.fn;
}

static void look_for_openmp(void)
{
    if (getenv("KMP_BLOCKTIME") == NULL) {
        set_blocktime = (set_number_fn)find(tnd_host.library, "kmp_set_blocktime");
    }
    if (find(tnd_host.library, "kmp_set_blocktime") != NULL) {
        return; /* libomp has libgomp's names, too */
    }
    /* The CPU backend may be a library of its own, which the host's does not name. */
    void *library = find(tnd_host.library, "GOMP_parallel") != NULL
                        ? tnd_host.library
                        : dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    thread_number = (number_fn)find(library, "omp_get_thread_num");
    is_in_parallel = (number_fn)find(library, "omp_in_parallel");
    if (thread_number != NULL && is_in_parallel != NULL) {
        parallel = (parallel_fn)find(library, "GOMP_parallel");
    }
}

static void end_region(struct region *region)
{
    pthread_mutex_lock(&region->lock);
    region->is_done = true;
    pthread_cond_broadcast(&region->changed);
    pthread_mutex_unlock(&region->lock);
}

static void wait_for_end(struct region *region)
{
    pthread_mutex_lock(&region->lock);
    while (!region->is_done) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        (void)pthread_cond_timedwait(&region->changed, &region->lock, &until);
    }
    pthread_mutex_unlock(&region->lock);
}

/* Of each thread of the team; the one that opened the region is number 0. */
static void body(void *data)
{
    struct region *region = data;
    if (thread_number() != 0) {
        wait_for_end(region);
        return;
    }
    region->work(region->data);
    end_region(region);
}

static void run_in_region(unsigned n_threads, void (*work)(void *data), void *data)
{
    struct region region = {.work = work, .data = data, .is_done = false};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&region.lock, NULL);
    pthread_cond_init(&region.changed, &attributes);
    parallel(body, &region, n_threads, 0);
    pthread_cond_destroy(&region.changed);
    pthread_mutex_destroy(&region.lock);
    pthread_condattr_destroy(&attributes);
}

void tnd_bridge_run_alone(int n_threads, void (*work)(void *data), void *data)
{
    (void)pthread_once(&once, look_for_openmp);
    if (set_blocktime != NULL && !has_blocktime) {
        set_blocktime(0);
        has_blocktime = true;
    }
    if (parallel != NULL && n_threads > 1 && is_in_parallel() == 0) {
        run_in_region((unsigned)n_threads, work, data);
    } else {
        work(data);
    }
}
