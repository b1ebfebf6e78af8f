/* SPDX-License-Identifier: MIT
 * The arrays of tests of the base suites, each ended by CU_TEST_INFO_NULL. */
#ifndef TND_TESTS_SUITE_BASE_H
#define TND_TESTS_SUITE_BASE_H

#include "tests/support.h"

extern CU_TestInfo tnd_tests_base_half[];
extern CU_TestInfo tnd_tests_base_memory[];
extern CU_TestInfo tnd_tests_base_file[];
extern CU_TestInfo tnd_tests_base_text[];
extern CU_TestInfo tnd_tests_base_digest[];
extern CU_TestInfo tnd_tests_base_machine[];

#endif
