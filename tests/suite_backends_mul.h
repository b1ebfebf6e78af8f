/* SPDX-License-Identifier: MIT
 * One matrix product of the CPU backend without a backend: operands with hard values, chosen
 * kernels, workers that take turns, row ranges, a double-precision reference. For the backends
 * suites. */
#ifndef TND_TESTS_SUITE_BACKENDS_MUL_H
#define TND_TESTS_SUITE_BACKENDS_MUL_H

#include "backends/cpu/kernels/kernels.h"
#include "ggml-like/tnd_tensor.h"

enum tnd_test_pattern {
    TND_TEST_RANDOM,
    TND_TEST_OUTLIERS,
    TND_TEST_CONSTANT_ROWS,
    TND_TEST_ZEROS,
    TND_TEST_LARGE,
    TND_TEST_ALTERNATING,
    TND_TEST_PATTERNS
};
extern const char *const tnd_test_pattern_names[TND_TEST_PATTERNS];

struct tnd_test_mul {
    enum tandem_type type;
    int64_t n, m, k;
    tandem_context *context;
    struct tandem_tensor *node;
    float *w_values; /* as the blocks say */
    void *w, *x, *y; /* guarded */
    void *packed;    /* a copy of w for tasks that read one; NULL: none. The test's own */
    char name[128];
};

void tnd_test_mul_open(struct tnd_test_mul *p, enum tandem_type type, int64_t n, int64_t m,
                       int64_t k, enum tnd_test_pattern pattern);
void tnd_test_mul_close(struct tnd_test_mul *p);
/** m x n values; free() them. */
double *tnd_test_mul_reference(const struct tnd_test_mul *p);

/** Runs one task over a row range by `workers` workers in turn. */
void tnd_test_mul_run(const struct tnd_cpu_kernels *kernels, struct tandem_tensor *node,
                      uint32_t task, int64_t row_begin, int64_t row_end, void *workspace,
                      size_t workspace_bytes, void *packed, int workers);
/** INIT (none for NODE) and COMPUTE over all rows, in `splits` row ranges. */
void tnd_test_mul_compute(const struct tnd_cpu_kernels *kernels, struct tnd_test_mul *p,
                          uint32_t init, uint32_t task, int workers, int splits);

#endif
