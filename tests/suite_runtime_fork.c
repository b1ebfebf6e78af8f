/* SPDX-License-Identifier: MIT
 * Forks: what a child may expect of runtimes that its parent opened, and of its own. A child never
 * calls CUnit: it tells by its exit code which of its checks failed first. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tandem/tandem.h"
#include "tests/support.h"

/* Why a child of a process with threads cannot run here; NULL where it can. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_CHILD "ThreadSanitizer ends a child of a process with threads"
#elif __has_feature(address_sanitizer) && __clang_major__ < 18
#define NO_CHILD OLD_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define NO_CHILD "ThreadSanitizer ends a child of a process with threads"
#elif defined(__SANITIZE_ADDRESS__)
#define NO_CHILD OLD_ADDRESS_SANITIZER
#endif
#define OLD_ADDRESS_SANITIZER                                                                      \
    "AddressSanitizer before LLVM 18 does not hold its allocator's locks across a fork: a child "  \
    "hangs where another thread held one (llvm/llvm-project pull request 75290)"
#if !defined(NO_CHILD)
#define NO_CHILD NULL
#endif

enum { WIDTH = 192, TOKENS = 24, CHILD_SECONDS = 60 };

/* One product on a context of its own. */
struct product {
    tandem_context *context;
    tandem_graph *graph;
    tandem_tensor *y;
};

static bool product_new(struct product *out)
{
    if (tandem_context_new(NULL, &out->context, NULL) != TANDEM_OK) {
        return false;
    }
    tandem_tensor *w =
        tandem_tensor_new(out->context, TANDEM_TYPE_F32, 2, (const int64_t[]){WIDTH, WIDTH});
    tandem_tensor *x =
        tandem_tensor_new(out->context, TANDEM_TYPE_F32, 2, (const int64_t[]){WIDTH, TOKENS});
    struct tnd_test_rng rng = tnd_test_rng_new(7);
    tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tnd_test_fill(&rng, tandem_tensor_data(w), WIDTH * WIDTH);
    tnd_test_fill(&rng, tandem_tensor_data(x), WIDTH * TOKENS);
    out->y = tandem_mul_mat(out->context, w, x);
    out->graph = tandem_graph_new(out->context);
    tandem_graph_add(out->graph, out->y);
    return tandem_graph_finish(out->graph, NULL) == TANDEM_OK;
}

static tandem_runtime *open_with(const char *backends, const char *profile)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = 3;
    options.table_path = "";
    options.backends = backends;
    options.profile = profile;
    return tandem_runtime_open(&options, &runtime, NULL) == TANDEM_OK ? runtime : NULL;
}

/* Exit code of a child that runs `fn`; -1 when it hangs or dies. */
static int in_child(int (*fn)(tandem_runtime *inherited, struct product *product),
                    tandem_runtime *inherited, struct product *product)
{
    int state = 0;
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        _exit(fn(inherited, product));
    }
    return child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) ? WEXITSTATUS(state)
                                                                               : -1;
}

static bool is_state(enum tandem_status status, const struct tandem_error *error)
{
    return status == TANDEM_E_STATE && strstr(error->text, "before the process forked") != NULL;
}

/* Every call of an inherited runtime returns at once; the first that does not is told. */
static int refuses_and_closes(tandem_runtime *inherited, struct product *product)
{
    struct tandem_error error = {0};
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_plan *plan = NULL;
    if (!is_state(tandem_runtime_compute(inherited, product->graph, NULL, NULL, &error), &error)) {
        return 1;
    }
    if (!is_state(tandem_runtime_plan(inherited, product->graph, &plan, &error), &error)) {
        return 2;
    }
    if (!is_state(tandem_tune_graph(inherited, product->graph, NULL, &error), &error)) {
        return 3;
    }
    if (!is_state(tandem_runtime_fetch(inherited, product->y, false, &error), &error)) {
        return 4;
    }
    if (tandem_runtime_set_threads(inherited, 2) != TANDEM_E_STATE ||
        tandem_runtime_set_cpus(inherited, NULL, 0) != TANDEM_E_STATE ||
        tandem_runtime_describe(inherited, &info) != TANDEM_E_STATE ||
        tandem_runtime_set_table(inherited, NULL, NULL) != TANDEM_E_STATE) {
        return 5;
    }
    if (tandem_runtime_threads(inherited) != 0 || tandem_runtime_drift(inherited, NULL, 0) != 0) {
        return 6;
    }
    tandem_runtime_pause(inherited);
    tandem_runtime_resume(inherited);
    tandem_runtime_forget(inherited, product->y);
    tandem_runtime_close(inherited);
    return 0;
}

/* A new runtime gives the bits that the parent's gave. */
static int computes_anew(tandem_runtime *inherited, struct product *product)
{
    const char *profiles[] = {"cpu", "cpu+openblas-panels", "cpu+openblas-threads"};
    (void)inherited;
    for (int i = 0; i < 3; i++) {
        tandem_runtime *own = open_with(NULL, profiles[i]);
        struct product fresh;
        if (own == NULL) {
            continue; /* without OpenBLAS */
        }
        if (!product_new(&fresh) ||
            tandem_runtime_compute(own, fresh.graph, NULL, NULL, NULL) != TANDEM_OK) {
            return 10 + i;
        }
        if (i == 0 && memcmp(tandem_tensor_data(fresh.y), tandem_tensor_data(product->y),
                             tandem_tensor_bytes(product->y)) != 0) {
            return 20 + i;
        }
        tandem_runtime_close(own);
        tandem_context_free(fresh.context);
    }
    return 0;
}

static bool cannot_fork(void)
{
    const char *reason = NO_CHILD;
    if (reason != NULL) {
        tnd_skip("%s", reason);
    }
    return reason != NULL;
}

static void an_inherited_runtime_says_at_once_that_it_cannot_compute(void)
{
    struct product product;
    if (cannot_fork()) {
        return;
    }
    tandem_runtime *runtime = open_with(NULL, "cpu");
    CU_ASSERT_TRUE(product_new(&product));
    check_ok(tandem_runtime_compute(runtime, product.graph, NULL, NULL, NULL));
    check_int(in_child(refuses_and_closes, runtime, &product), 0);
    check_ok(tandem_runtime_compute(runtime, product.graph, NULL, NULL, NULL)); /* the parent */
    tandem_runtime_close(runtime);
    tandem_context_free(product.context);
}

static void a_runtime_that_a_child_opens_works(void)
{
    struct product product;
    if (cannot_fork()) {
        return;
    }
    tandem_runtime *runtime = open_with(NULL, "cpu");
    CU_ASSERT_TRUE(product_new(&product));
    check_ok(tandem_runtime_compute(runtime, product.graph, NULL, NULL, NULL));
    check_int(in_child(computes_anew, runtime, &product), 0);
    tandem_runtime_close(runtime);
    tandem_context_free(product.context);
}

/* ---- forks in the middle of work ---- */

struct worker {
    tandem_runtime *runtime;
    atomic_bool must_end;
    atomic_int n_done;
    int n_failed;
};

static void *compute_on(void *user)
{
    struct worker *worker = user;
    while (!atomic_load(&worker->must_end)) {
        struct product product;
        bool is_right =
            product_new(&product) &&
            tandem_runtime_compute(worker->runtime, product.graph, NULL, NULL, NULL) == TANDEM_OK;
        worker->n_failed += !is_right;
        tandem_context_free(product.context);
        atomic_fetch_add(&worker->n_done, 1);
    }
    return NULL;
}

/* Any lock may be held by the other thread at the moment of the fork. */
static void forks_while_others(const char *profile)
{
    enum { FORKS = 12 };
    struct worker worker = {.runtime = open_with(NULL, profile)};
    struct product product;
    pthread_t thread;
    if (worker.runtime == NULL) {
        return; /* without OpenBLAS */
    }
    tandem_runtime *mine = open_with(NULL, "cpu");
    CU_ASSERT_TRUE(product_new(&product));
    check_ok(tandem_runtime_compute(mine, product.graph, NULL, NULL, NULL));
    check_int(pthread_create(&thread, NULL, compute_on, &worker), 0);
    for (int i = 0; i < FORKS; i++) {
        int n_done = atomic_load(&worker.n_done);
        check_int(
            in_child(i % 2 == 0 ? computes_anew : refuses_and_closes, worker.runtime, &product), 0);
        while (atomic_load(&worker.n_done) == n_done) {
            sched_yield();
        }
    }
    atomic_store(&worker.must_end, true);
    pthread_join(thread, NULL);
    check_int(worker.n_failed, 0);
    tandem_runtime_close(mine);
    tandem_runtime_close(worker.runtime);
    tandem_context_free(product.context);
}

static void a_fork_beside_a_computation_leaves_both_processes_whole(void)
{
    if (!cannot_fork()) {
        forks_while_others("cpu");
    }
}

static void a_fork_beside_openblas_threads_leaves_both_processes_whole(void)
{
    if (!cannot_fork()) {
        forks_while_others("cpu+openblas-threads");
        forks_while_others("cpu+openblas-panels");
    }
}

static CU_TestInfo tests[] = {
    {"an_inherited_runtime_says_at_once_that_it_cannot_compute",
     an_inherited_runtime_says_at_once_that_it_cannot_compute},
    {"a_runtime_that_a_child_opens_works", a_runtime_that_a_child_opens_works},
    {"a_fork_beside_a_computation_leaves_both_processes_whole",
     a_fork_beside_a_computation_leaves_both_processes_whole},
    {"a_fork_beside_openblas_threads_leaves_both_processes_whole",
     a_fork_beside_openblas_threads_leaves_both_processes_whole},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_fork[];
CU_SuiteInfo suites_runtime_fork[] = {
    {"fork", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
