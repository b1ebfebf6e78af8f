/* SPDX-License-Identifier: MIT
 * The part of CUnit's interface that our suites use (CUnit 2.1, http://cunit.sourceforge.net), for
 * the cross build alone: Debian has no CUnit for MinGW. tests/windows/cunit.c. */
#ifndef TND_CUNIT_H
#define TND_CUNIT_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC system_header /* as the real one: its casts are nobody's business */

typedef bool CU_BOOL;
#define CU_TRUE  true
#define CU_FALSE false

typedef void (*CU_TestFunc)(void);
typedef int (*CU_InitializeFunc)(void);
typedef struct {
    const char *pName;
    CU_TestFunc pTestFunc;
} CU_TestInfo;
typedef struct {
    const char *pName;
    CU_InitializeFunc pInitFunc, pCleanupFunc;
    CU_TestFunc pSetUpFunc, pTearDownFunc;
    CU_TestInfo *pTests;
} CU_SuiteInfo;
#define CU_TEST_INFO_NULL                                                                          \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }
#define CU_SUITE_INFO_NULL                                                                         \
    {                                                                                              \
        NULL, NULL, NULL, NULL, NULL, NULL                                                         \
    }

typedef struct CU_Test {
    const char *pName;
    CU_TestFunc run;
    bool is_active;
    struct CU_Test *pNext;
} CU_Test, *CU_pTest;
typedef struct CU_Suite {
    const char *pName;
    const CU_SuiteInfo *info;
    bool is_active;
    CU_pTest pTest;
    struct CU_Suite *pNext;
} CU_Suite, *CU_pSuite;
typedef struct {
    CU_pSuite pSuite;
} CU_TestRegistry, *CU_pTestRegistry;

enum { CUE_SUCCESS = 0, CUE_NOMEMORY = 1 };
enum { CUEA_FAIL = 1, CU_BRM_VERBOSE = 2 };

CU_pTestRegistry CU_get_registry(void);
int CU_initialize_registry(void);
void CU_cleanup_registry(void);
int CU_register_suites(const CU_SuiteInfo *suites);
const char *CU_get_error_msg(void);
#define CU_set_error_action(action)       ((void)(action))
#define CU_set_fail_on_inactive(is_on)    ((void)(is_on))
#define CU_basic_set_mode(mode)           ((void)(mode))
#define CU_set_test_active(test, is_on)   ((test)->is_active = (is_on))
#define CU_set_suite_active(suite, is_on) ((suite)->is_active = (is_on))
void CU_basic_run_tests(void);
CU_pTest CU_get_current_test(void);
unsigned CU_get_number_of_tests_run(void);
unsigned CU_get_number_of_tests_failed(void);
unsigned CU_get_number_of_suites_failed(void);
unsigned CU_get_number_of_failures(void);
unsigned CU_get_number_of_failure_records(void);

/* Returns whether it holds; a fatal one that does not ends its test. */
CU_BOOL CU_assertImplementation(CU_BOOL holds, unsigned line, const char *condition,
                                const char *file, const char *function, CU_BOOL is_fatal);
#define TND_CU(holds, text, is_fatal)                                                              \
    CU_assertImplementation((holds), (unsigned)__LINE__, text, __FILE__, "", is_fatal)

#define CU_PASS(text)               TND_CU(true, text, false)
#define CU_FAIL(text)               TND_CU(false, "CU_FAIL(" #text ")", false)
#define CU_FAIL_FATAL(text)         TND_CU(false, "CU_FAIL(" #text ")", true)
#define CU_ASSERT(a)                TND_CU((a) ? true : false, #a, false)
#define CU_ASSERT_FATAL(a)          TND_CU((a) ? true : false, #a, true)
#define CU_ASSERT_TRUE(a)           TND_CU((a) ? true : false, "true: " #a, false)
#define CU_ASSERT_TRUE_FATAL(a)     TND_CU((a) ? true : false, "true: " #a, true)
#define CU_ASSERT_FALSE(a)          TND_CU((a) ? false : true, "false: " #a, false)
#define CU_ASSERT_EQUAL(a, b)       TND_CU((a) == (b), #a " == " #b, false)
#define CU_ASSERT_EQUAL_FATAL(a, b) TND_CU((a) == (b), #a " == " #b, true)
#define CU_ASSERT_NOT_EQUAL(a, b)   TND_CU((a) != (b), #a " != " #b, false)
#define CU_ASSERT_PTR_EQUAL(a, b)                                                                  \
    TND_CU((const void *)(a) == (const void *)(b), #a " == " #b, false)
#define CU_ASSERT_PTR_NOT_EQUAL(a, b)                                                              \
    TND_CU((const void *)(a) != (const void *)(b), #a " != " #b, false)
#define CU_ASSERT_PTR_NOT_EQUAL_FATAL(a, b)                                                        \
    TND_CU((const void *)(a) != (const void *)(b), #a " != " #b, true)
#define CU_ASSERT_PTR_NULL(a)           TND_CU((const void *)(a) == NULL, "NULL: " #a, false)
#define CU_ASSERT_PTR_NOT_NULL(a)       TND_CU((const void *)(a) != NULL, "not NULL: " #a, false)
#define CU_ASSERT_PTR_NOT_NULL_FATAL(a) TND_CU((const void *)(a) != NULL, "not NULL: " #a, true)
#define CU_ASSERT_STRING_EQUAL(a, b)    TND_CU(strcmp((a), (b)) == 0, #a " == " #b, false)
#define CU_ASSERT_DOUBLE_EQUAL(a, b, by)                                                           \
    TND_CU((double)(a) - (double)(b) <= (double)(by) && (double)(b) - (double)(a) <= (double)(by), \
           #a " near " #b, false)

#endif
