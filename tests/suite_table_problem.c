/* SPDX-License-Identifier: MIT
 * The one spelling of a problem. */
#include "table/problem.h"
#include "tests/support.h"

static void problem_strings_are_read_as_they_are_written(void)
{
    static const char *const good[] = {
        "mul_mat:q4_0:n4096:k4096:m32", "mul_mat:q6_k:n1:k256:m1:t12",
        "mul_mat:f32:n3:k5:m7:t2:cpu+openblas", "mul_mat:bf16:n3:k5:m7:cpu+openblas-panels"};
    static const char *const bad[] = {"",
                                      "mul_mat",
                                      "mul_mat:q9_9:n1:k1:m1",
                                      "mul_mat:q4_0:n0:k1:m1",
                                      "mul_mat:q4_0:k1:n1:m1",
                                      "mul_mat:q4_0:n1:k1:m-1",
                                      "mul_mat:q4_0:n1:k1:m1:t0",
                                      "mul_mat:q4_0:n99999999999:k1:m1",
                                      "mul_mat:q4_0:n1:k1:m1:t1:cpu:more"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct tnd_problem problem;
        char text[TND_PROBLEM_MAX];
        check_ok(tnd_problem_parse(good[i], &problem, NULL));
        tnd_problem_print(&problem, text, sizeof(text));
        check_string(text, good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tnd_problem problem;
        struct tandem_error error;
        check_status(tnd_problem_parse(bad[i], &problem, &error), TANDEM_E_FORMAT, "expected",
                     &error);
    }
}

static CU_TestInfo tests[] = {
    {"problem_strings_are_read_as_they_are_written", problem_strings_are_read_as_they_are_written},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_problem[];
CU_SuiteInfo suites_table_problem[] = {
    {"problems", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
