/* SPDX-License-Identifier: MIT
 * How a problem is spelled in benches, tests, plans, logs and bug reports:
 *     mul_mat:q4_0:n4096:k4096:m32[:t2][:cpu+openblas] */
#ifndef TND_PROBLEM_H
#define TND_PROBLEM_H

#include "tandem/tensor.h"

enum { TND_PROBLEM_MAX = 160 };

struct tnd_problem {
    char op[24];
    enum tandem_type type; /* of the weights */
    int64_t n, k, m;
    int threads;      /* 0: left out */
    char profile[32]; /* "": left out */
};

/** Writes the problem string; truncated when `n` is too small (TND_PROBLEM_MAX never is). */
void tnd_problem_print(const struct tnd_problem *problem, char *out, size_t n);
/** Parses a problem string. Errors: FORMAT with the part that is wrong. */
enum tandem_status tnd_problem_parse(const char *text, struct tnd_problem *out,
                                     struct tandem_error *error);
/** The problem of a mul_mat node, without threads and profile. */
void tnd_problem_of_node(const tandem_tensor *node, struct tnd_problem *out);

#endif
