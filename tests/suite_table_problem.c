/* SPDX-License-Identifier: MIT
 * The one spelling of a problem. */
#include <stddef.h>
#include <string.h>

#include "table/conv_problem.h"
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

static void problems_of_convolutions_are_read_as_they_are_written(void)
{
    static const char *const good[] = {
        "conv:f32:w3x3:c64:f128:r28x28", "conv:f32:w3:c8:f4:r1:s2:d3:p-4:g2:i7:e:t12",
        "conv:f32:w1x2x3:c12:f8:r4x5x6:s1x2x1:d2x2x2:p0x1x0:g4:e",
        "conv:f32:w1073741824:c1073741824:f1073741824:r1073741824:p-1073741824:i1073741824"};
    static const char *const bad[] = {"",
                                      "conv",
                                      "conv:f32",
                                      "conv:f16:w3:c1:f1:r1",
                                      "conv:f32:w3x3:c64:f128",
                                      "conv:f32:w3x3:c64:f128:r28",
                                      "conv:f32:r28x28:w3x3:c64:f128",
                                      "conv:f32:w3x3:c64:f128:r28x28:g3",
                                      "conv:f32:w3x3:c0:f128:r28x28",
                                      "conv:f32:w3x3:c2000000000:f128:r28x28",
                                      "conv:f32:w3x3:c64:f128:r28x28:t70000",
                                      "conv:f32:w3x3:c64:f128:r28x28:s0x1",
                                      "conv:f32:w3x3:c64:f128:r28x28::e",
                                      "conv:f32:w3x3:c64:f128:r28x28:cudnn",
                                      "conv:f32:w1x1x1x1:c64:f128:r1x1x1x1"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct tnd_conv_shape shape;
        struct tnd_conv_shape again;
        struct tnd_conv_time record;
        char text[TND_CONV_PROBLEM_MAX];
        int threads;
        check_ok(tnd_conv_problem_parse(good[i], &shape, &threads, NULL));
        tnd_conv_problem_print(&shape, threads, TND_CONV_METHODS, text, sizeof(text));
        check_string(text, good[i]);
        tnd_conv_key(&shape, TND_CONV_WINOGRAD, 3, &record);
        check_string(record.method, "winograd");
        CU_ASSERT_TRUE(tnd_conv_shape_of(&record, &again));
        check_int(memcmp(&again, &shape, offsetof(struct tnd_conv_shape, window)), 0);
        check_int(again.is_followed, shape.is_followed);
        tnd_conv_problem_print(&shape, 0, TND_CONV_COLUMNS, text, sizeof(text));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, ":im2col"));
        check_ok(tnd_conv_problem_parse(text, &shape, &threads, NULL));
        check_int(threads, 0);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tnd_conv_shape shape;
        struct tandem_error error;
        int threads;
        check_status(tnd_conv_problem_parse(bad[i], &shape, &threads, &error), TANDEM_E_FORMAT,
                     "expected", &error);
    }
}

static CU_TestInfo tests[] = {
    {"problem_strings_are_read_as_they_are_written", problem_strings_are_read_as_they_are_written},
    {"problems_of_convolutions_are_read_as_they_are_written",
     problems_of_convolutions_are_read_as_they_are_written},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_table_problem[];
CU_SuiteInfo suites_table_problem[] = {
    {"problems", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
