/* SPDX-License-Identifier: MIT
 * Nodes of every operation that is no matrix product, as data for the tests of the CPU backend. */
#ifndef TND_TESTS_SUITE_BACKENDS_CPU_CASES_H
#define TND_TESTS_SUITE_BACKENDS_CPU_CASES_H

#include "backends/cpu/kernels/kernels.h"
#include "tests/suite_backends_stage.h"

struct tnd_cpu_case {
    const char *name;
    double limit; /* normalised mean squared error; 0: the reference's bits */
    tandem_tensor *(*build)(tandem_context *context, struct tnd_test_rng *rng);
    double words_limit; /* 0: limit; where attention meets words of 16 bits */
};

extern const struct tnd_cpu_case tnd_cpu_cases[];
extern const int tnd_cpu_case_count;

/* Runs the node by `count` workers in turn, all on this thread; the first error wins. */
enum tandem_status tnd_cpu_run_in_turn(const struct tnd_cpu_kernels *kernels,
                                       const tandem_tensor *node, int count,
                                       struct tandem_error *error);

/* Tests of the row kernels, suite_backends_cpu_vec.c. */
void tnd_cpu_exp_is_right_to_two_units(void);
void tnd_cpu_functions_agree_on_all_lengths_and_hard_values(void);
void tnd_cpu_row_kernels_agree_on_all_lengths(void);
void tnd_cpu_values_do_not_depend_on_their_place_in_a_row(void);
void tnd_cpu_sixteen_bit_floats_convert_like_the_plain_ones(void);

#endif
