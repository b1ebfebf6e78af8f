/* SPDX-License-Identifier: MIT
 * What programs that Tandem serves measure and choose by: records of the table, and the observer's
 * judge of candidates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table/judge.h"
#include "table/records.h"
#include "tandem/runtime.h"
#include "tests/support_tune.h"

static tandem_runtime *open_runtime(void)
{
    struct tandem_runtime_options options = TANDEM_RUNTIME_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = NULL;
    options.n_threads = 1;
    options.backends = "cpu";
    check_status(tandem_runtime_open(&options, &runtime, &error), TANDEM_OK, NULL, &error);
    return runtime;
}

static struct tandem_hosted_time product(const char *kernels)
{
    struct tandem_hosted_time one = TANDEM_HOSTED_TIME_INIT;
    one.program = "a program 1.0";
    one.kernels = kernels;
    one.type = TANDEM_TYPE_Q4_0;
    one.n = one.k = 4096;
    one.m = 1;
    one.threads = 2;
    return one;
}

static void add(tandem_runtime *runtime, const float *us, int n, bool disturbed, bool fresh)
{
    struct tandem_error error = {.text = ""};
    struct tandem_hosted_time one = product("ours");
    one.us = us;
    one.n_us = n;
    one.disturbed = disturbed;
    check_status(tandem_runtime_add_hosted(runtime, &one, 1, fresh, &error), TANDEM_OK, NULL,
                 &error);
}

static struct tandem_hosted_time found(tandem_runtime *runtime)
{
    struct tandem_error error = {.text = ""};
    struct tandem_hosted_time one = product("ours");
    check_status(tandem_runtime_find_hosted(runtime, &one, &error), TANDEM_OK, NULL, &error);
    return one;
}

static void hosted_times_add_up(void)
{
    static const float first[] = {100, 102, 98, 100, 101, 99};
    static const float same[] = {101, 100, 99, 100, 100, 102};
    static const float other[] = {150, 151, 149, 150, 150, 152};
    tandem_runtime *runtime = open_runtime();
    struct tandem_hosted_time one = product("plain");
    check_int(tandem_runtime_find_hosted(runtime, &one, NULL), TANDEM_E_NOT_FOUND);
    add(runtime, first, 6, false, false);
    one = found(runtime);
    check_int(one.count, 6);
    CU_ASSERT_DOUBLE_EQUAL(one.time_us, 100, 1e-6);
    CU_ASSERT_TRUE(one.error_us > 0.9 && one.error_us < 5);
    CU_ASSERT_TRUE(one.age_s >= 0 && !one.disturbed);
    const double error_us = one.error_us;
    add(runtime, same, 6, false, false);
    one = found(runtime);
    check_int(one.count, 12);
    CU_ASSERT_TRUE(one.error_us < error_us);
    for (int i = 0; i < 20; i++) {
        add(runtime, first, 6, false, false);
    }
    check_int(found(runtime).count, 70);
    add(runtime, other, 6, false, false); /* contradicts: that is spread */
    CU_ASSERT_TRUE(found(runtime).error_us > 1.2);
    add(runtime, other, 6, false, true); /* fresh: the old ones count for nothing */
    CU_ASSERT_DOUBLE_EQUAL(found(runtime).time_us, 150, 1e-6);
    tandem_runtime_close(runtime);
}

static void undisturbed_times_replace_disturbed_ones(void)
{
    static const float calm[] = {100, 101, 99};
    static const float busy[] = {300, 900, 200};
    tandem_runtime *runtime = open_runtime();
    add(runtime, busy, 3, true, false);
    CU_ASSERT_TRUE(found(runtime).disturbed);
    CU_ASSERT_TRUE(found(runtime).error_us > 0.15 * found(runtime).time_us);
    add(runtime, calm, 3, false, false);
    CU_ASSERT_FALSE(found(runtime).disturbed);
    CU_ASSERT_DOUBLE_EQUAL(found(runtime).time_us, 100, 1e-6);
    add(runtime, busy, 3, true, false);
    CU_ASSERT_DOUBLE_EQUAL(found(runtime).time_us, 100, 1e-6);
    tandem_runtime_close(runtime);
}

static void hosted_times_are_in_the_file_of_the_machine(void)
{
#ifdef TND_HAVE_CJSON
    static const float us[] = {5, 5, 6};
    const char *path = tnd_test_temp("hosted.json");
    setenv("TANDEM_TABLE", path, 1);
    tandem_runtime *runtime = open_runtime();
    add(runtime, us, 3, false, false);
    tandem_runtime_close(runtime);
    runtime = open_runtime();
    CU_ASSERT_DOUBLE_EQUAL(found(runtime).time_us, 5, 1e-6);
    tandem_runtime_close(runtime);
    setenv("TANDEM_TABLE", "none", 1);
#else
    tnd_skip("optional part not built: tables as JSON need cJSON");
#endif
}

static void hosted_times_that_are_none_are_refused(void)
{
    static const float us[] = {5};
    static const float nothing[] = {NAN};
    struct tandem_hosted_time one = product("ours");
    struct tandem_error error = {.text = ""};
    tandem_runtime *runtime = open_runtime();
    check_status(tandem_runtime_add_hosted(runtime, &one, 1, false, &error), TANDEM_E_ARGUMENT,
                 "0 times", &error);
    one.us = nothing;
    one.n_us = 1;
    check_status(tandem_runtime_add_hosted(runtime, &one, 1, false, &error), TANDEM_E_ARGUMENT,
                 "cannot be kept", &error);
    one.us = us;
    one.threads = 0;
    check_status(tandem_runtime_add_hosted(runtime, &one, 1, false, &error), TANDEM_E_ARGUMENT,
                 "0 threads", &error);
    one = product("kernels whose name is too long");
    check_status(tandem_runtime_find_hosted(runtime, &one, &error), TANDEM_E_ARGUMENT, "kernels",
                 &error);
    tandem_runtime_close(runtime);
}

/* ---- candidates ---- */

/* Seconds of a piece by each candidate; how long each served in `for_s`. */
static void live(tandem_candidates *candidates, const double *piece_s, double for_s,
                 double *io_now_s, double out_s[3])
{
    static const double guesses[] = {1, 1.5, 1.5};
    const double end_s = *io_now_s + for_s;
    out_s[0] = out_s[1] = out_s[2] = 0;
    while (*io_now_s < end_s) {
        const int one = tandem_candidates_choose(candidates, 7, 10, *io_now_s);
        CU_ASSERT_FATAL(one >= 0 && one < 3);
        *io_now_s += piece_s[one];
        out_s[one] += piece_s[one];
        check_ok(tandem_candidates_note(candidates, 7, guesses, 3, one, 10, piece_s[one] * 1e6,
                                        *io_now_s, NULL));
    }
}

static void the_fastest_candidate_serves_and_is_left_when_it_becomes_slow(void)
{
    double piece_s[] = {0.02, 0.03, 0.08};
    double now_s = 1, in_s[3];
    tandem_candidates *candidates = NULL;
    check_ok(tandem_candidates_new(0.01, &candidates, NULL));
    live(candidates, piece_s, 60, &now_s, in_s);
    CU_ASSERT_TRUE(in_s[0] > 0.94 * 60);
    piece_s[0] = 0.2;
    live(candidates, piece_s, 3, &now_s, in_s);
    live(candidates, piece_s, 30, &now_s, in_s);
    CU_ASSERT_TRUE(in_s[1] > 0.9 * 30);
    piece_s[0] = 0.01;
    live(candidates, piece_s, 60, &now_s, in_s);
    live(candidates, piece_s, 30, &now_s, in_s);
    CU_ASSERT_TRUE(in_s[0] > 0.97 * 30);
    tandem_candidates_free(candidates);
    tandem_candidates_free(NULL);
}

static void candidates_that_are_none_are_refused(void)
{
    static const double guesses[] = {1, 0};
    struct tandem_error error = {.text = ""};
    tandem_candidates *candidates = NULL;
    check_status(tandem_candidates_new(0, &candidates, &error), TANDEM_E_ARGUMENT, "share", &error);
    check_status(tandem_candidates_new(NAN, &candidates, &error), TANDEM_E_ARGUMENT, "share",
                 &error);
    check_int(tandem_candidates_new(0.1, NULL, NULL), TANDEM_E_ARGUMENT);
    check_ok(tandem_candidates_new(0.1, &candidates, NULL));
    check_int(tandem_candidates_choose(candidates, 1, 1, 0), 0);
    check_int(tandem_candidates_choose(NULL, 1, 1, 0), 0);
    check_int(tandem_candidates_note(candidates, 0, guesses, 2, 0, 1, 1, 0, NULL),
              TANDEM_E_ARGUMENT);
    check_int(tandem_candidates_note(candidates, 1, guesses, 2, 1, 1, 1, 0, NULL),
              TANDEM_E_ARGUMENT);
    check_int(tandem_candidates_note(candidates, 1, guesses, 9, 0, 1, 1, 0, NULL),
              TANDEM_E_ARGUMENT);
    check_int(tandem_candidates_note(candidates, 1, guesses, 2, 0, 1, NAN, 0, NULL),
              TANDEM_E_ARGUMENT);
    check_int(tandem_candidates_note(candidates, 1, NULL, 2, 0, 1, 1, 0, NULL), TANDEM_E_ARGUMENT);
    check_int(tandem_candidates_note(NULL, 1, guesses, 2, 0, 1, 1, 0, NULL), TANDEM_E_ARGUMENT);
    check_ok(tandem_candidates_note(candidates, 1, guesses, 2, 0, 1, 1, 0, NULL));
    for (int i = 0; i < 200; i++) { /* the second is not possible */
        check_ok(tandem_candidates_note(candidates, 1, guesses, 2, 0, 1, 1, i, NULL));
        check_int(tandem_candidates_choose(candidates, 1, 1, i), 0);
    }
    tandem_candidates_free(candidates);
}

static CU_TestInfo tests[] = {
    {"hosted_times_add_up", hosted_times_add_up},
    {"undisturbed_times_replace_disturbed_ones", undisturbed_times_replace_disturbed_ones},
    {"hosted_times_are_in_the_file_of_the_machine", hosted_times_are_in_the_file_of_the_machine},
    {"hosted_times_that_are_none_are_refused", hosted_times_that_are_none_are_refused},
    {"the_fastest_candidate_serves_and_is_left_when_it_becomes_slow",
     the_fastest_candidate_serves_and_is_left_when_it_becomes_slow},
    {"candidates_that_are_none_are_refused", candidates_that_are_none_are_refused},
    CU_TEST_INFO_NULL,
};

static void without_a_file(void)
{
    setenv("TANDEM_TABLE", "none", 1);
}

static void as_before(void)
{
    setenv("TANDEM_TABLE", "/nowhere/table.json", 1);
}

extern CU_SuiteInfo suites_runtime_hosted[];
CU_SuiteInfo suites_runtime_hosted[] = {
    {"hosted", NULL, NULL, without_a_file, as_before, tests},
    CU_SUITE_INFO_NULL,
};
