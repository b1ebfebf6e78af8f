/* SPDX-License-Identifier: MIT
 * The cases of the conformance suite: nodes of every operation over odd shapes, as data. */
#ifndef TND_TESTS_SUITE_BACKENDS_CASES_H
#define TND_TESTS_SUITE_BACKENDS_CASES_H

#include "tests/suite_backends_stage.h"

enum { TND_TEST_SHAPES = 6 };

struct tnd_test_kit {
    tandem_context *context;
    struct tnd_test_rng *rng;
    int64_t ne[TANDEM_MAX_DIMS]; /* shape of the first operand */
    enum tandem_type type;
};

struct tnd_test_case {
    const char *name;
    tandem_tensor *(*build)(struct tnd_test_kit *kit); /* NULL: the shape does not fit */
    enum tandem_type type;
    double limit; /* normalised mean squared error; products have their own */
};

int tnd_test_case_count(void);
const struct tnd_test_case *tnd_test_case_at(int i);
/** A node with memory, or NULL when the shape does not fit the operation. */
tandem_tensor *tnd_test_case_build(const struct tnd_test_case *one, tandem_context *context,
                                   int shape, struct tnd_test_rng *rng);

#endif
