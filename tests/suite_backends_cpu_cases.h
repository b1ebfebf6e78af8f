/* SPDX-License-Identifier: MIT
 * Nodes of every operation that is no matrix product, as data for the tests of the CPU backend. */
#ifndef TND_TESTS_SUITE_BACKENDS_CPU_CASES_H
#define TND_TESTS_SUITE_BACKENDS_CPU_CASES_H

#include "tests/suite_backends_stage.h"

struct tnd_cpu_case {
    const char *name;
    double limit; /* normalised mean squared error; 0: the reference's bits */
    tandem_tensor *(*build)(tandem_context *context, struct tnd_test_rng *rng);
};

extern const struct tnd_cpu_case tnd_cpu_cases[];
extern const int tnd_cpu_case_count;

#endif
