/* SPDX-License-Identifier: MIT
 * Measuring candidates for numbers of kernels, of a tuner that is made up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure_numbers.h"
#include "sched/pool.h"
#include "tests/support_tune.h"
#include "tune/policy.h"

static int wings = 1;
static int n_times;
static int stop_after;

static bool present_wings(tandem_backend *backend, const char *names, char out[TND_NUMBERS_MAX])
{
    (void)backend;
    (void)snprintf(out, TND_NUMBERS_MAX, "wings=%d", wings);
    return strncmp(names, "wings", 5) == 0;
}

static enum tandem_status use_wings(tandem_backend *backend, const char *numbers,
                                    struct tandem_error *error)
{
    (void)backend;
    (void)error;
    wings = atoi(numbers + strlen("wings="));
    return TANDEM_OK;
}

static bool note_time(void *user, const struct tnd_tuner_time *time)
{
    (void)user;
    CU_ASSERT(time->n_us == TND_MEASURE_REPEATS && time->us[0] >= 0 && time->count == 3);
    check_int(time->threads, 2);
    return ++n_times != stop_after;
}

static void choose_wings(void *user, const char *family, const char *prior,
                         char out[TND_NUMBERS_MAX])
{
    (void)user;
    check_string(family, "wings");
    check_string(prior, "wings=1");
    strcpy(out, "wings=3");
}

static void numbers_are_measured_in_turns_and_chosen_by_others(void)
{
    static const struct tnd_number_sweep sweeps[] = {
        {"wings", "cpu", {1, 2, 3, -1}, {TANDEM_TYPE_Q4_0}, 1, {1}}};
    const struct tnd_tuner tuner = {
        .present = present_wings, .use = use_wings, .sweeps = sweeps, .n_sweeps = 1};
    const struct tnd_tuner_options asked = {.timed = note_time, .choose = choose_wings};
    const struct tnd_registry_options registry_options = {"cpu", NULL, 4, {0}};
    const struct tnd_pool_options pool_options = {.n_threads = 2, .n_cpus = 2, .spin_limit = -1};
    struct tnd_registry *registry = NULL;
    struct tnd_pool *pool = NULL;
    struct tnd_exec *exec = NULL;
    check_ok(tnd_registry_open(&registry_options, &registry, NULL));
    check_ok(tnd_pool_new(&pool_options, &pool, NULL));
    check_ok(tnd_exec_new(pool, registry, tnd_clock_real(), &exec, NULL));
    const struct tnd_measure_options options = {.registry = registry,
                                                .exec = exec,
                                                .clock = tnd_clock_real(),
                                                .rotate_bytes = 1,
                                                .limit_bytes = (size_t)256 << 20};
    wings = 1;
    n_times = 0;
    stop_after = 0;
    check_ok(tnd_measure_numbers(&options, &tuner, NULL, 2, &asked, NULL));
    check_int(n_times, 3);
    check_int(wings, 3);
    wings = 1;
    n_times = 0;
    stop_after = 2;
    struct tandem_error error = {.text = ""};
    check_status(tnd_measure_numbers(&options, &tuner, NULL, 2, &asked, &error), TANDEM_E_CANCELLED,
                 "stopped", &error);
    check_int(wings, 1); /* as before */
    tnd_exec_free(exec);
    tnd_pool_free(pool);
    tnd_registry_close(registry);
}

static CU_TestInfo tests[] = {
    {"numbers are measured in turns and chosen by others",
     numbers_are_measured_in_turns_and_chosen_by_others},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_numbers[];
CU_SuiteInfo suites_measure_numbers[] = {
    {"numbers", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
