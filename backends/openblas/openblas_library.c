/* SPDX-License-Identifier: MIT
 * Loading OpenBLAS and the gate before its calls. Facts about OpenBLAS are from its sources,
 * version 0.3.21 (driver/others/blas_server.c, openblas_env.c, memory.c), and were measured with
 * Debian's package:
 *
 * - Its threads start while the library loads, and poll for work for 2^t ticks before they
 *   sleep; t is read then from OPENBLAS_THREAD_TIMEOUT (4 to 30, by default 26 to 28: an idle
 *   thread takes a core from ours for 0.1 s after each call). So t = 4 is set around the
 *   loading: 0.0001 s.
 * - openblas_set_num_threads sets one number for the process (and starts threads that are
 *   missing).
 * - More calls at once than the build's MAX_THREADS end the process ("too many memory regions").
 * - Where a thread cannot be started it ends the process, where address space for its buffers (128
 *   MiB a call at once, 8 MiB of stack a thread) is missing it asks for ever. Both happen under
 *   `ulimit -v` and in small containers, so both are probed before, see look_around.
 * - Unloading while threads end is a source of crashes: the library is never closed.
 *
 * A variable that the user has set is left alone, and ours is taken back after the loading.
 * Changing the environment is not safe while other threads read it: open the first runtime
 * before they start, or say "openblas:environment=keep". */
#include "backends/openblas/openblas_library.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/dl.h"
#include "base/fork.h"

#define TIMEOUT_VARIABLE "OPENBLAS_THREAD_TIMEOUT"
#define TIMEOUT_SMALLEST "4"

/* State of the process, because the library is shared by all of it. */
static struct {
    struct tnd_fork_lock lock; /* guards all members */
    bool is_loaded;
    int n_users;
    int n_threads_found; /* the library's number of threads before its first user */
    struct tnd_openblas library;
} loaded = {.lock = TND_FORK_LOCK_INIT};

/* The gate: callers take tickets and are admitted in order, so that none starves. */
static struct {
    pthread_mutex_t lock; /* guards all members; taken alone */
    pthread_cond_t changed;
    uint64_t next_ticket;
    uint64_t serving;  /* tickets below have been admitted */
    int n_single;      /* one-thread calls in progress */
    bool is_exclusive; /* a multi-threaded call is in progress */
} entrance = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void open_gate(void);

/* ---- loading ---- */

#define SYMBOL(required, member, name)                                                             \
    {                                                                                              \
        name, offsetof(struct tnd_openblas_functions, member), required                            \
    }
static const struct tnd_dl_symbol symbols[] = {
    SYMBOL(true, sgemm, "cblas_sgemm"),
    SYMBOL(true, set_num_threads, "openblas_set_num_threads"),
    SYMBOL(true, get_num_threads, "openblas_get_num_threads"),
    SYMBOL(true, get_config, "openblas_get_config"),
    SYMBOL(false, get_parallel, "openblas_get_parallel"),
    SYMBOL(false, get_corename, "openblas_get_corename"),
    SYMBOL(false, thread_timeout, "openblas_thread_timeout"),
};
#undef SYMBOL

/* Fedora and related systems name the pthreads build libopenblasp and the sequential one
 * libopenblas; Debian has one name, selected by its alternatives. */
static const char *const usual_names[] = {"libopenblasp.so.0", "libopenblas.so.0",
                                          "libopenblaso.so.0", "libopenblas.so", NULL};

/* ---- resource limits ---- */

enum surroundings {
    AMPLE,  /* for one thread and one buffer per CPU */
    NARROW, /* for one call at a time, on the caller's thread */
    TOO_NARROW
};

#define RECHECK_NS (20u * 1000 * 1000)
#define MIB        ((size_t)1 << 20)

static bool has_addresses(size_t bytes)
{
    void *probe = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (probe != MAP_FAILED) {
        munmap(probe, bytes);
    }
    return probe != MAP_FAILED;
}

static void *wait_for_lock(void *user)
{
    pthread_mutex_lock(user);
    pthread_mutex_unlock(user);
    return NULL;
}

/* Whether this many threads can exist at once. */
static bool has_threads(int n)
{
    enum { MOST = 256 };
    pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[MOST];
    int started = 0;
    n = n < MOST ? n : MOST;
    pthread_mutex_lock(&held);
    while (started < n && pthread_create(&threads[started], NULL, wait_for_lock, &held) == 0) {
        started++;
    }
    pthread_mutex_unlock(&held);
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return started == n;
}

static enum surroundings look_around(void)
{
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = n_cpus > 0 && n_cpus < 1024 ? (size_t)n_cpus : 1;
    if (!has_addresses(320 * MIB)) { /* the library itself and one buffer */
        return TOO_NARROW;
    }
    return has_addresses((256 + 160 * n) * MIB) && has_threads((int)n - 1) ? AMPLE : NARROW;
}

/* ---- opening ---- */

/* An environment variable that is set while the library loads. */
struct lent {
    const char *name;
    bool is_set; /* by us */
    bool had;
    char before[32];
};

static struct lent lend(const char *name, const char *value)
{
    const char *now = getenv(name);
    struct lent lent = {.name = name, .had = now != NULL};
    if (now == NULL || strlen(now) < sizeof(lent.before)) {
        snprintf(lent.before, sizeof(lent.before), "%s", now != NULL ? now : "");
        lent.is_set = setenv(name, value, 1) == 0;
    }
    return lent;
}

static void take_back(const struct lent *lent)
{
    if (lent->is_set && lent->had) {
        (void)setenv(lent->name, lent->before, 1);
    } else if (lent->is_set) {
        unsetenv(lent->name);
    }
}

static enum tandem_status open_library(const struct tnd_openblas_load *load, bool is_narrow,
                                       struct tnd_openblas_functions *out_functions,
                                       struct tandem_error *error)
{
    const char *const one_name[] = {load->path, NULL};
    struct lent timeout = {0};
    struct lent threads = {0};
    if (!load->keep_environment && getenv(TIMEOUT_VARIABLE) == NULL) {
        timeout = lend(TIMEOUT_VARIABLE, TIMEOUT_SMALLEST);
    }
    if (is_narrow) {
        threads = lend("OPENBLAS_NUM_THREADS", "1");
    }
    void *library = NULL; /* stays open for the life of the process */
    enum tandem_status status =
        tnd_dl_open(load->path != NULL ? one_name : usual_names, symbols,
                    (int)(sizeof(symbols) / sizeof(symbols[0])), out_functions, &library, error);
    take_back(&timeout);
    take_back(&threads);
    return status;
}

/* MAX_THREADS=n in the configuration text; if it is missing, 1 call at a time. */
static int threads_of_config(const char *config)
{
    const char *at = strstr(config, "MAX_THREADS=");
    long n = at != NULL ? strtol(at + strlen("MAX_THREADS="), NULL, 10) : 1;
    return n < 1 ? 1 : n > 1024 ? 1024 : (int)n;
}

/* Whether idle threads poll for more than 2^16 ticks, which is reported; OpenMP's idle threads
 * follow OMP_WAIT_POLICY instead. */
static bool idle_threads_poll(const struct tnd_openblas *library)
{
    if (library->flavour == TND_OPENBLAS_SEQUENTIAL) {
        return false;
    }
    if (library->flavour == TND_OPENBLAS_OPENMP || library->functions.thread_timeout == NULL) {
        return true;
    }
    unsigned timeout = library->functions.thread_timeout();
    return timeout == 0 || timeout > 16;
}

static void describe(struct tnd_openblas *library, const char *config)
{
    static const char *const flavours[] = {"sequential", "pthreads", "OpenMP"};
    const char *core =
        library->functions.get_corename != NULL ? library->functions.get_corename() : "";
    snprintf(library->text, sizeof(library->text), "%.80s %s, %s%s", config, core,
             flavours[library->flavour],
             library->may_spin ? ", idle threads poll (loaded before us, or OpenMP)" : "");
}

/* Computes a product large enough to make the library allocate its buffer while there is memory for
 * it. */
static enum tandem_status take_buffer(const struct tnd_openblas *library,
                                      struct tandem_error *error)
{
    enum { N = 128 };
    float *w = tnd_calloc((size_t)3 * N * N, sizeof(float));
    if (w == NULL) {
        return tnd_error_set(error, TANDEM_E_MEMORY, "openblas", 0, 0, "openblas: out of memory");
    }
    library->functions.sgemm(TND_CBLAS_ROW_MAJOR, TND_CBLAS_NO_TRANS, TND_CBLAS_TRANS, N, N, N,
                             1.0F, w, N, w + N * N, N, 0.0F, w + 2 * N * N, N);
    tnd_free(w);
    return TANDEM_OK;
}

static enum tandem_status load_library(const struct tnd_openblas_load *load,
                                       struct tandem_error *error)
{
    struct tnd_openblas library = {0};
    enum surroundings room = look_around();
    if (room == TOO_NARROW || (room == NARROW && load->keep_environment)) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "openblas", 0, 0,
                             "openblas: this process may not have the address space or the threads "
                             "that it needs (ulimit -v, ulimit -u)");
    }
    TND_TRY(open_library(load, room == NARROW, &library.functions, error));
    const char *config = library.functions.get_config();
    if (strstr(config, "USE64BITINT") != NULL) {
        return tnd_error_set(error, TANDEM_E_UNSUPPORTED_MACHINE, "openblas", 64, 32,
                             "openblas: the library found has 64-bit integers (%.80s), expected 32",
                             config);
    }
    int flavour = library.functions.get_parallel != NULL ? library.functions.get_parallel()
                                                         : TND_OPENBLAS_SEQUENTIAL;
    library.flavour = flavour == TND_OPENBLAS_PTHREADS || flavour == TND_OPENBLAS_OPENMP
                          ? (enum tnd_openblas_flavour)flavour
                          : TND_OPENBLAS_SEQUENTIAL;
    /* a sequential build may lack locks around its buffers: one call at a time */
    library.max_threads =
        library.flavour == TND_OPENBLAS_SEQUENTIAL ? 1 : threads_of_config(config);
    if (room == NARROW) {
        library.max_threads = 1;
        library.functions.set_num_threads(1);
        TND_TRY(take_buffer(&library, error));
    }
    library.may_spin = idle_threads_poll(&library);
    describe(&library, config);
    loaded.library = library;
    loaded.is_loaded = true;
    open_gate();
    return TANDEM_OK;
}

enum tandem_status tnd_openblas_acquire(const struct tnd_openblas_load *load,
                                        const struct tnd_openblas **out_library,
                                        struct tandem_error *error)
{
    tnd_fork_lock_take(&loaded.lock);
    enum tandem_status status = loaded.is_loaded ? TANDEM_OK : load_library(load, error);
    if (status == TANDEM_OK) {
        if (loaded.n_users++ == 0) {
            loaded.n_threads_found = loaded.library.functions.get_num_threads();
        }
        *out_library = &loaded.library;
    }
    tnd_fork_lock_give(&loaded.lock);
    return status;
}

void tnd_openblas_release(void)
{
    tnd_fork_lock_take(&loaded.lock);
    if (--loaded.n_users == 0 && loaded.n_threads_found > 0) {
        loaded.library.functions.set_num_threads(loaded.n_threads_found);
    }
    tnd_fork_lock_give(&loaded.lock);
}

/* ---- the gate ---- */

static void init_condition(void)
{
    pthread_condattr_t attributes;
    bool has_attributes = pthread_condattr_init(&attributes) == 0;
    if (has_attributes) {
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* setting the time is no matter */
    }
    pthread_cond_init(&entrance.changed, has_attributes ? &attributes : NULL);
    if (has_attributes) {
        pthread_condattr_destroy(&attributes);
    }
}

/* Waits for a change, with a timeout, so that a lost wake-up costs time but does not hang the
 * program. */
static void wait_for_change(void)
{
    const struct tnd_clock *clock = tnd_clock_real();
    const struct timespec until = tnd_timespec(clock->now_ns(clock) + RECHECK_NS);
    pthread_cond_timedwait(&entrance.changed, &entrance.lock, &until);
}

static bool may_enter(const struct tnd_openblas *library, int n_threads)
{
    if (entrance.is_exclusive) {
        return false;
    }
    return n_threads == 1 ? entrance.n_single < library->max_threads : entrance.n_single == 0;
}

/* Other users of the library may have changed its number of threads, so it is read each time.
 * OpenMP has a number per calling thread, so there it is always set. */
static void set_threads(const struct tnd_openblas *library, int n_threads)
{
    if (library->flavour == TND_OPENBLAS_SEQUENTIAL) {
        return;
    }
    if (library->flavour == TND_OPENBLAS_OPENMP ||
        library->functions.get_num_threads() != n_threads) {
        library->functions.set_num_threads(n_threads);
    }
}

/* Returns, holding the lock, when it is the caller's turn. */
static void wait_for_turn(const struct tnd_openblas *library, int n_threads)
{
    pthread_mutex_lock(&entrance.lock);
    uint64_t ticket = entrance.next_ticket++;
    while (entrance.serving != ticket || !may_enter(library, n_threads)) {
        wait_for_change();
    }
}

void tnd_openblas_enter(const struct tnd_openblas *library, int n_threads)
{
    wait_for_turn(library, n_threads);
    entrance.serving++;
    if (n_threads == 1) {
        entrance.n_single++;
    } else {
        entrance.is_exclusive = true;
    }
    set_threads(library, n_threads);
    if (entrance.next_ticket != entrance.serving) {
        pthread_cond_broadcast(&entrance.changed);
    }
    pthread_mutex_unlock(&entrance.lock);
}

void tnd_openblas_leave(const struct tnd_openblas *library, int n_threads)
{
    (void)library;
    pthread_mutex_lock(&entrance.lock);
    if (n_threads == 1) {
        entrance.n_single--;
    } else {
        entrance.is_exclusive = false;
    }
    if (entrance.next_ticket != entrance.serving) {
        pthread_cond_broadcast(&entrance.changed);
    }
    pthread_mutex_unlock(&entrance.lock);
}

/* ---- forks ---- */

/* OpenBLAS ends its threads before a fork and starts them again at the next call, in parent and
 * child (blas_thread_shutdown_), but it does not wait for calls that use them: so a fork passes the
 * gate like a multi-threaded call. Registered after OpenBLAS's own handlers, this one runs before
 * them. */
static void before_fork(void)
{
    wait_for_turn(&loaded.library, loaded.library.max_threads + 1);
}

static void after_fork(void)
{
    entrance.serving++;
    pthread_cond_broadcast(&entrance.changed);
    pthread_mutex_unlock(&entrance.lock);
}

/* no other thread exists in the child, and the parent's runtimes are not users here */
static void in_child(void)
{
    entrance.serving = entrance.next_ticket;
    init_condition();
    loaded.n_users = 0;
    pthread_mutex_unlock(&entrance.lock);
}

static void open_gate(void)
{
    init_condition();
    (void)pthread_atfork(before_fork, after_fork, in_child); /* (fails only without memory) */
}
