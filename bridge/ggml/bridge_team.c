/* SPDX-License-Identifier: MIT
 * Supports GNU's libgomp, and LLVM's libomp, which has the same function names. Our regions have
 * the size of the host's even if fewer threads are needed: libgomp destroys threads that a region
 * does not use, and the host would have to create them again. */
#include "bridge/ggml/bridge_team.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "bridge/ggml/bridge_host.h"

typedef void (*parallel_fn)(void (*body)(void *), void *data, unsigned n_threads, unsigned flags);
typedef int (*number_fn)(void);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static parallel_fn parallel; /* NULL: the host does not use OpenMP */
static number_fn thread_number;
static number_fn team_size;
static number_fn is_in_parallel;
static atomic_int n_threads_host;
static enum tnd_way way_now;           /* used only by the thread that computes */
static void (*set_levels)(int levels); /* both or none */
static number_fn get_levels;
static _Thread_local int levels_before = -1; /* of this thread before a change; -1: unchanged */

struct region {
    int count;
    tandem_team_body_fn body;
    void *data;
};

static ggml_any_fn find(void *library, const char *name)
{
    union ggml_word word = {.p = library != NULL ? dlsym(library, name) : NULL};
    return word.fn;
}

/* The library of the host's CPU backend, which may use OpenMP even if the library that has loaded
 * the bridge does not. */
static void *library_of_cpu(void)
{
    struct ggml_object *cpu = tnd_host.ggml_backend_dev_by_type(GGML_DEVICE_CPU);
    Dl_info info;
    if (cpu == NULL || dladdr(cpu->word[DEVICE_GET_NAME].p, &info) == 0 || info.dli_fname == NULL) {
        return NULL;
    }
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static void look_for_openmp(void)
{
    void *library = library_of_cpu();
    if (find(library, "GOMP_parallel") == NULL) {
        library = tnd_host.library;
    }
    thread_number = (number_fn)find(library, "omp_get_thread_num");
    team_size = (number_fn)find(library, "omp_get_num_threads");
    is_in_parallel = (number_fn)find(library, "omp_in_parallel");
    if (thread_number != NULL && team_size != NULL && is_in_parallel != NULL) {
        parallel = (parallel_fn)find(library, "GOMP_parallel");
        get_levels = (number_fn)find(library, "omp_get_max_active_levels");
    }
    if (parallel != NULL && get_levels != NULL) {
        set_levels = (void (*)(int))find(library, "omp_set_max_active_levels");
    }
}

/* Body of each thread of the team; the thread that opened the region is number 0. */
static void take_part(void *data)
{
    const struct region *region = data;
    int index = thread_number();
    int n = team_size();
    n = n < region->count ? n : region->count;
    if (index < n) {
        region->body(region->data, index, n);
    }
}

bool tnd_bridge_team(void *user, int count, tandem_team_body_fn body, void *data)
{
    (void)user;
    (void)pthread_once(&once, look_for_openmp);
    int n_threads = atomic_load_explicit(&n_threads_host, memory_order_relaxed);
    if (way_now == TND_WAY_ALONE) {
        body(data, 0, 1);
        return true;
    }
    if (way_now == TND_WAY_OWN || parallel == NULL || n_threads < count || is_in_parallel() != 0) {
        return false;
    }
    struct region region = {count, body, data};
    parallel(take_part, &region, (unsigned)n_threads, 0);
    return true;
}

void tnd_bridge_team_set_size(int n_threads)
{
    atomic_store_explicit(&n_threads_host, n_threads, memory_order_relaxed);
}

bool tnd_bridge_team_is_there(void)
{
    (void)pthread_once(&once, look_for_openmp);
    return parallel != NULL;
}

/* Allows the host's parallel regions more than one thread, or not: with no active level allowed,
 * they get one. */
static void let_host_be_parallel(bool is_parallel)
{
    if (set_levels == NULL || is_parallel == (levels_before < 0)) {
        return;
    }
    if (is_parallel) {
        set_levels(levels_before);
        levels_before = -1;
    } else {
        levels_before = get_levels();
        set_levels(0);
    }
}

void tnd_bridge_team_set_way(enum tnd_way way)
{
    way_now = way;
    let_host_be_parallel(way == TND_WAY_TEAM);
}

void tnd_bridge_team_rest(void)
{
    let_host_be_parallel(true);
}
