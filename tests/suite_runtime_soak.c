/* SPDX-License-Identifier: MIT
 * Everything at once: several runtimes, some with a device that fails, threads that compute and
 * cancel graphs of their own on them, and threads that change thread counts, CPUs, tables and
 * profiles, pause, resume, add backends, close and open again meanwhile. For sanitizers above all.
 * TANDEM_TEST_SECONDS is the length: a second by default, half an hour in `make soak`. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"
#include "base/clock.h"
#include "tandem/tandem.h"
#include "tests/support.h"

enum { WIDTH = 128, N_RUNTIMES = 3, N_THREADS = 4 };

static struct {
    tandem_runtime *runtimes[N_RUNTIMES];
    pthread_rwlock_t locks[N_RUNTIMES]; /* written to while a runtime is replaced, else read */
    uint64_t until_ns;
    float want[WIDTH]; /* y of every graph, the same in all profiles: see below */
    atomic_long n_computed, n_cancelled, n_wrong;
} soak;

static bool goes_on(void)
{
    return tnd_clock_real()->now_ns(tnd_clock_real()) < soak.until_ns;
}

/* Which kind of runtime comes next. */
static tandem_runtime *open_one(struct tnd_test_rng *rng)
{
    static const char *const settings[] = {
        NULL, "sim:memory=own", "sim:memory=own,fail=submit,fail_at=3",
        "sim:memory=own,fail=lost,fail_at=20", "sim:latency_us=20"};
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    tandem_runtime *runtime = NULL;
    options.n_threads = (int)tnd_test_rng_int(rng, 1, 4);
    options.table_path = "";
    options.settings = settings[tnd_test_rng_int(rng, 0, 4)];
    options.backends = options.settings != NULL ? "cpu,sim" : "cpu,openblas";
    (void)tandem_runtime_open(&options, &runtime, NULL);
    return runtime;
}

static bool cancel_sometimes(void *user)
{
    return tnd_test_rng_int(user, 0, 9) == 0;
}

/* Whole numbers below 2^24: every order of adding gives the same sums. */
static void compute(tandem_runtime *runtime, struct tnd_test_rng *rng)
{
    struct tandem_compute_options options = TANDEM_COMPUTE_OPTIONS_INIT;
    tandem_context *context = NULL;
    if (runtime == NULL || tandem_context_new(NULL, &context, NULL) != TANDEM_OK) {
        atomic_fetch_add(&soak.n_wrong, 1);
        return;
    }
    tandem_tensor *w = tandem_tensor_new_2d(context, TANDEM_TYPE_F32, WIDTH, WIDTH);
    tandem_tensor *x = tandem_tensor_new_2d(context, TANDEM_TYPE_F32, WIDTH, 2);
    float *weights = tandem_tensor_data(w);
    float *values = tandem_tensor_data(x);
    for (int i = 0; i < WIDTH * WIDTH; i++) {
        weights[i] = (float)(i % 7 - 3);
    }
    for (int i = 0; i < 2 * WIDTH; i++) {
        values[i] = (float)(i % WIDTH % 5 - 2);
    }
    (void)tandem_tensor_set_role(w, TANDEM_ROLE_CONSTANT);
    tandem_tensor *y = tandem_relu(context, tandem_mul_mat(context, w, x));
    tandem_graph *graph = tandem_graph_new(context);
    tandem_graph_add(graph, y);
    enum tandem_status status = tandem_graph_finish(graph, NULL);
    options.cancel = tnd_test_rng_int(rng, 0, 3) == 0 ? cancel_sometimes : NULL;
    options.user = rng;
    for (int i = 0; i < 3 && status == TANDEM_OK; i++) {
        status = tandem_runtime_compute(runtime, graph, NULL, &options, NULL);
        bool is_right = status == TANDEM_E_CANCELLED ||
                        (status == TANDEM_OK &&
                         memcmp(tandem_tensor_data(y), soak.want, sizeof(soak.want)) == 0);
        atomic_fetch_add(status == TANDEM_OK ? &soak.n_computed : &soak.n_cancelled, 1);
        atomic_fetch_add(&soak.n_wrong, !is_right);
    }
    tandem_runtime_forget(runtime, w);
    tandem_context_free(context);
}

/* One that runs here, or none; failing devices are left in the middle of a graph. */
static void force_any(tandem_runtime *runtime, struct tnd_test_rng *rng)
{
    struct tandem_profile_info profiles[64];
    int n = tandem_runtime_profiles(runtime, profiles, 64);
    int i = (int)tnd_test_rng_int(rng, 0, n);
    (void)tandem_runtime_force_profile(
        runtime, i < n && i < 64 && profiles[i].available ? profiles[i].name : NULL, NULL);
}

static void change(tandem_runtime *runtime, struct tnd_test_rng *rng)
{
    struct tandem_runtime_info info = TANDEM_RUNTIME_INFO_INIT;
    tandem_table *table = NULL;
    switch (tnd_test_rng_int(rng, 0, 9)) {
    case 0:
        (void)tandem_runtime_set_threads(runtime, (int)tnd_test_rng_int(rng, 1, 5));
        break;
    case 1:
        tandem_runtime_pause(runtime);
        break;
    case 2:
        tandem_runtime_resume(runtime);
        break;
    case 3:
        (void)tandem_runtime_set_cpus(runtime, (const int[]){0}, (int)tnd_test_rng_int(rng, 0, 1));
        break;
    case 4:
        (void)tandem_table_new(&table, NULL);
        (void)tandem_runtime_set_table(runtime, table, NULL);
        tandem_table_free(table);
        break;
    case 5:
        (void)tandem_runtime_add_backend(runtime, &tnd_sim_own_api, NULL, NULL);
        break;
    case 6:
        tandem_runtime_set_execution(runtime, (uint32_t)tnd_test_rng_int(rng, 0, 3));
        break;
    case 7:
    case 8:
        force_any(runtime, rng);
        break;
    default:
        (void)tandem_runtime_describe(runtime, &info);
        (void)tandem_runtime_drift(runtime, NULL, 0);
    }
}

static void *work_at_random(void *user)
{
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed() * 1000 + (uint64_t)(uintptr_t)user);
    while (goes_on()) {
        int i = (int)tnd_test_rng_int(&rng, 0, N_RUNTIMES - 1);
        int64_t what = tnd_test_rng_int(&rng, 0, 39);
        if (what == 0) {
            pthread_rwlock_wrlock(&soak.locks[i]);
            tandem_runtime_close(soak.runtimes[i]);
            soak.runtimes[i] = open_one(&rng);
            pthread_rwlock_unlock(&soak.locks[i]);
            continue;
        }
        pthread_rwlock_rdlock(&soak.locks[i]);
        if (what < 12) {
            change(soak.runtimes[i], &rng);
        } else {
            compute(soak.runtimes[i], &rng);
        }
        pthread_rwlock_unlock(&soak.locks[i]);
    }
    return NULL;
}

static void everything_at_once_gives_right_results_or_cancels(void)
{
    const char *seconds = getenv("TANDEM_TEST_SECONDS");
    struct tnd_test_rng rng = tnd_test_rng_new(tnd_test_seed());
    pthread_t threads[N_THREADS];
    for (int n = 0; n < WIDTH; n++) {
        float sum = 0;
        for (int k = 0; k < WIDTH; k++) {
            sum += (float)((n * WIDTH + k) % 7 - 3) * (float)(k % 5 - 2);
        }
        soak.want[n] = sum > 0 ? sum : 0;
    }
    for (int i = 0; i < N_RUNTIMES; i++) {
        pthread_rwlock_init(&soak.locks[i], NULL);
        soak.runtimes[i] = open_one(&rng);
    }
    soak.until_ns = tnd_clock_real()->now_ns(tnd_clock_real()) +
                    (uint64_t)(1e9 * (seconds != NULL ? strtod(seconds, NULL) : 1.0));
    for (int i = 0; i < N_THREADS; i++) {
        check_int(pthread_create(&threads[i], NULL, work_at_random, (void *)(uintptr_t)(i + 1)), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < N_RUNTIMES; i++) {
        tandem_runtime_close(soak.runtimes[i]);
        pthread_rwlock_destroy(&soak.locks[i]);
    }
    check_int(soak.n_wrong, 0);
    CU_ASSERT_TRUE(soak.n_computed > 0);
    printf("(%ld computed, %ld cancelled) ", (long)soak.n_computed, (long)soak.n_cancelled);
}

static CU_TestInfo tests[] = {
    {"everything_at_once_gives_right_results_or_cancels",
     everything_at_once_gives_right_results_or_cancels},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_runtime_soak[];
CU_SuiteInfo suites_runtime_soak[] = {
    {"soak", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
