/* SPDX-License-Identifier: MIT
 * Who else computes, in a made-up /proc and in this machine's. */
#include <string.h>

#include "base/clock.h"
#include "measure/measure_moves.h"
#include "measure/quiet.h"
#include "sched/pool.h"
#include "tests/support.h"
#include "tests/support_tune.h"

static void processes_are_read_whatever_their_names_are(void)
{
    struct tnd_process_time found;
    CU_ASSERT_TRUE(tnd_quiet_parse_process(
        "77 (a) 1 (b)) R 1 2 3 4 5 6 7 8 9 10 40 2 0 0 20 0 1 0 5", &found));
    check_int(found.pid, 77);
    check_string(found.name, "a) 1 (b)");
    check_int((int64_t)found.ticks, 42);
    CU_ASSERT_TRUE(tnd_quiet_parse_process(
        "8 (\033[2J and a name too long) S 1 2 3 4 5 6 7 8 9 10 1 2 0", &found));
    check_string(found.name, "?[2J and a name");
    static const char *const bad[] = {"",        "x",
                                      "7",       "7 (",
                                      "7 )(",    "-1 (a) S 1 2 3",
                                      "0 (a) S", "7 (a) S 1 2 3 4 5 6 7 8 9 10 11"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CU_ASSERT_FALSE(tnd_quiet_parse_process(bad[i], &found));
    }
    check_int(tnd_quiet_parse_busy("cpu  1 2 3 1000 1000 4 5 6 0 0\n"), 21);
    check_int(tnd_quiet_parse_busy("cpu  1 2"), -1);
}

static void others_that_leave_cpus_free_do_not_disturb(void)
{
    struct tnd_disturbance found = {.cpus = 0.1};
    CU_ASSERT_TRUE(tnd_is_quiet(&found, 8, 8));
    found.cpus = 2;
    CU_ASSERT_FALSE(tnd_is_quiet(&found, 8, 8));
    CU_ASSERT_TRUE(tnd_is_quiet(&found, 8, 64));
}

static void a_look_tells_the_busiest_or_nothing(void)
{
    struct tnd_disturbance found;
    char text[160];
    tnd_quiet_look(tnd_test_temp("no-proc"), 0.001, &found);
    CU_ASSERT_TRUE(found.cpus == 0 && found.pid == 0 && found.load == 0);
    tnd_quiet_look("/proc", 0.01, &found);
    CU_ASSERT_TRUE(found.cpus >= 0 && found.process_cpus >= 0);
    found = (struct tnd_disturbance){1.9, 11.2, 1234, "cc1", 0.9};
    tnd_quiet_print(&found, text, sizeof(text));
    check_string(text, "others keep 1.9 CPUs busy (load 11.2), most of all process 1234, cc1: 0.9 "
                       "CPUs");
}

static uint64_t no_ns(const struct tnd_clock *clock)
{
    (void)clock;
    return 0;
}

static void threads_that_wait_for_a_cpu_tell_no_hand_off(void)
{
    struct tnd_pool_options options = {.n_threads = 3, .n_cpus = 2, .spin_limit = -1};
    struct tnd_pool *pool = NULL;
    tandem_table *table = tune_new();
    struct tnd_clock quiet = *tnd_clock_real();
    struct tnd_clock busy = quiet;
    quiet.thread_ns = quiet.now_ns; /* each thread has a CPU of its own */
    busy.thread_ns = no_ns;         /* others have them */
    check_ok(tnd_pool_new(&options, &pool, NULL));
    check_ok(tnd_measure_handoff(pool, &quiet, 1, 5, table, NULL));
    check_ok(tnd_measure_handoff(pool, &busy, 3, 5, table, NULL));
    check_int(table->n_handoffs, 0);
    check_ok(tnd_measure_handoff(pool, &quiet, 3, 5, table, NULL));
    CU_ASSERT_TRUE_FATAL(table->n_handoffs == 1);
    check_int(table->handoffs[0].threads, 3);
    CU_ASSERT_TRUE(table->handoffs[0].spin_us > 0);
    CU_ASSERT_TRUE(table->handoffs[0].wake_us > 0);
    check_int(table->handoffs[0].when, 5);
    tandem_table_free(table);
    tnd_pool_free(pool);
}

static CU_TestInfo tests[] = {
    {"processes_are_read_whatever_their_names_are", processes_are_read_whatever_their_names_are},
    {"others_that_leave_cpus_free_do_not_disturb", others_that_leave_cpus_free_do_not_disturb},
    {"a_look_tells_the_busiest_or_nothing", a_look_tells_the_busiest_or_nothing},
    {"threads_that_wait_for_a_cpu_tell_no_hand_off", threads_that_wait_for_a_cpu_tell_no_hand_off},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_measure_quiet[];
CU_SuiteInfo suites_measure_quiet[] = {
    {"quiet", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
