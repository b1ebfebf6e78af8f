/* SPDX-License-Identifier: MIT
 * Options of the tools: both dashes, both separators, checked numbers. The tool is not a library,
 * so its files are compiled into this one. */
#include "tools/args.c"
#include "tools/args_hint.c"
#include "tools/say.c"

#include <fcntl.h>
#include <unistd.h>

#include "tests/support.h"

static bool flag;
static const char *file;
static int64_t step;
static double seconds;
static struct args_ints list;

static const struct args_option options[] = {
    {"y", ARGS_FLAG, &flag, 0, 0, NULL, "yes"},
    {"file", ARGS_STRING, &file, 0, 0, "FILE", "a file"},
    {"m_step|s", ARGS_INT, &step, 1, 1000, "S", "a step"},
    {"budget", ARGS_NUMBER, &seconds, 0.5, 60, "S", "seconds"},
    {"threads", ARGS_INTS, &list, 1, 64, "N[,N..]", "counts"},
};
static const struct args_command command = {"try", "FILE", "For tests.", options, 5, 1, 2};

static const char *operands[2];
static int n_operands;

/* Splits at blanks and parses; what is printed goes nowhere. */
static int parse(const char *line)
{
    char words[256];
    char *argv[16] = {words};
    int argc = 0;
    snprintf(words, sizeof(words), "try %s", line);
    for (char *word = strtok(words, " "); word != NULL && argc < 15; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    flag = false;
    file = NULL;
    step = 8;
    n_operands = -1;
    fflush(NULL);
    int saved = dup(STDERR_FILENO);
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
    int result = args_parse(&command, argc, argv, operands, &n_operands);
    fflush(NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(nowhere);
    return result;
}

static void every_spelling_of_an_option_is_the_same(void)
{
    static const char *const lines[] = {"-m_step 16 a",  "--m_step 16 a", "-m-step 16 a",
                                        "a --m-step=16", "a -m_step=16",  "-s 16 a"};
    for (int i = 0; i < 6; i++) {
        check_int(parse(lines[i]), ARGS_OK);
        check_int(step, 16);
        check_int(n_operands, 1);
    }
    check_int(parse("-y a b"), ARGS_OK);
    CU_ASSERT_TRUE(flag);
    check_int(n_operands, 2);
    check_int(parse("-- -y"), ARGS_OK);
    CU_ASSERT_FALSE(flag);
    check_int(n_operands, 1);
    check_int(parse("a -threads 1,2,64 --budget 1.5"), ARGS_OK);
    check_int(list.n, 3);
    check_int(list.values[2], 64);
    CU_ASSERT_EQUAL(seconds, 1.5);
}

static void mistakes_are_refused_and_change_nothing(void)
{
    static const char *const lines[] = {"",
                                        "a b c",
                                        "a -colour",
                                        "a -m_step",
                                        "a -m_step 0",
                                        "a -m_step x",
                                        "a -m_step 1001",
                                        "a -m_step 8x",
                                        "a -m_step 1e2",
                                        "a -m_step=",
                                        "a -y=1",
                                        "a -threads 1,,2",
                                        "a -threads 1,65",
                                        "a -threads 1,",
                                        "a -budget nan",
                                        "a -budget 0",
                                        "a -budget 1s",
                                        "a -m_step 99999999999999999999",
                                        "a -m_step +5",
                                        "a -m_step|s 5",
                                        "a -m_step| 5"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (parse(lines[i]) != ARGS_WRONG || step != 8) {
            printf("    accepted: '%s'\n", lines[i]);
            CU_FAIL("a wrong command line was accepted");
        }
    }
}

static CU_TestInfo tests[] = {
    {"every_spelling_of_an_option_is_the_same", every_spelling_of_an_option_is_the_same},
    {"mistakes_are_refused_and_change_nothing", mistakes_are_refused_and_change_nothing},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_report_args[];
CU_SuiteInfo suites_report_args[] = {
    {"args", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
