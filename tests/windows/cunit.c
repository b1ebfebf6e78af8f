/* SPDX-License-Identifier: MIT
 * Runs suites as CUnit does: all tests in order, each to its first fatal assertion that fails. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/windows/tnd_cunit.h"

static CU_TestRegistry registry;
static CU_pTest current;
static jmp_buf end_of_test;
static unsigned n_run, n_failed, n_failures, n_suites_failed;

CU_pTestRegistry CU_get_registry(void)
{
    return &registry;
}

int CU_initialize_registry(void)
{
    return CUE_SUCCESS;
}

const char *CU_get_error_msg(void)
{
    return "no memory";
}

static bool add_test(CU_pSuite suite, const CU_TestInfo *info)
{
    CU_pTest *at = &suite->pTest;
    while (*at != NULL) {
        at = &(*at)->pNext;
    }
    *at = calloc(1, sizeof(**at));
    if (*at == NULL) {
        return false;
    }
    **at = (CU_Test){.pName = info->pName, .run = info->pTestFunc, .is_active = true};
    return true;
}

static bool add_suite(const CU_SuiteInfo *info)
{
    CU_pSuite *at = &registry.pSuite;
    while (*at != NULL) {
        at = &(*at)->pNext;
    }
    *at = calloc(1, sizeof(**at));
    if (*at == NULL) {
        return false;
    }
    **at = (CU_Suite){.pName = info->pName, .info = info, .is_active = true};
    for (const CU_TestInfo *test = info->pTests; test->pName != NULL; test++) {
        if (!add_test(*at, test)) {
            return false;
        }
    }
    return true;
}

int CU_register_suites(const CU_SuiteInfo *suites)
{
    for (; suites->pName != NULL; suites++) {
        if (!add_suite(suites)) {
            return CUE_NOMEMORY;
        }
    }
    return CUE_SUCCESS;
}

void CU_cleanup_registry(void)
{
    while (registry.pSuite != NULL) {
        const CU_pSuite suite = registry.pSuite;
        registry.pSuite = suite->pNext;
        while (suite->pTest != NULL) {
            const CU_pTest test = suite->pTest;
            suite->pTest = test->pNext;
            free(test);
        }
        free(suite);
    }
}

static void run_test(const CU_SuiteInfo *info, CU_pTest test)
{
    const unsigned before = n_failures;
    current = test;
    n_run++;
    printf("  Test: %s ...", test->pName);
    (void)fflush(stdout);
    if (info->pSetUpFunc != NULL) {
        info->pSetUpFunc();
    }
    if (setjmp(end_of_test) == 0) {
        test->run();
    }
    if (info->pTearDownFunc != NULL) {
        info->pTearDownFunc();
    }
    n_failed += n_failures > before;
    printf("%s\n", n_failures > before ? "FAILED" : "passed");
    current = NULL;
}

void CU_basic_run_tests(void)
{
    for (CU_pSuite suite = registry.pSuite; suite != NULL; suite = suite->pNext) {
        if (!suite->is_active) {
            continue;
        }
        printf("Suite: %s\n", suite->pName);
        if (suite->info->pInitFunc != NULL && suite->info->pInitFunc() != 0) {
            printf("  the suite's init failed\n");
            n_suites_failed++;
            continue;
        }
        for (CU_pTest test = suite->pTest; test != NULL; test = test->pNext) {
            if (test->is_active) {
                run_test(suite->info, test);
            }
        }
        if (suite->info->pCleanupFunc != NULL && suite->info->pCleanupFunc() != 0) {
            n_suites_failed++;
        }
    }
}

CU_pTest CU_get_current_test(void)
{
    return current;
}

unsigned CU_get_number_of_tests_run(void)
{
    return n_run;
}

unsigned CU_get_number_of_tests_failed(void)
{
    return n_failed;
}

unsigned CU_get_number_of_suites_failed(void)
{
    return n_suites_failed;
}

unsigned CU_get_number_of_failures(void)
{
    return n_failures;
}

unsigned CU_get_number_of_failure_records(void)
{
    return n_failures + n_suites_failed;
}

CU_BOOL CU_assertImplementation(CU_BOOL holds, unsigned line, const char *condition,
                                const char *file, const char *function, CU_BOOL is_fatal)
{
    (void)function;
    if (holds) {
        return true;
    }
    n_failures++;
    printf("\n    %s:%u: %s\n", file, line, condition);
    if (is_fatal) {
        longjmp(end_of_test, 1);
    }
    return false;
}
