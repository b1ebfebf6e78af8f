/* SPDX-License-Identifier: MIT
 * What products of experts cost, by the times of plain products: an expert's M is the number of
 * tokens that it gets, not the batch. */
#ifndef TND_EXPERTS_H
#define TND_EXPERTS_H

#include "table/problem.h"
#include "tandem/ops.h"

/** How many of `experts` are expected to be in use when each of `tokens` tokens uses `used` of them
 *  and all are as likely: experts (1 - (1 - used / experts)^tokens). */
double tnd_experts_active(int64_t experts, int64_t used, int64_t tokens);

/** How tokens use the experts of one weight. */
struct tnd_expert_use {
    const float *shares; /* {n}: of all tokens, those that use each expert, 0 to 1 */
    int64_t n;
    double sum;          /* of the shares: experts that a token uses */
    int64_t known_m;     /* what tnd_experts_active_used has found last; 0: nothing */
    double known_active; /* for this many tokens */
};

/** As tnd_experts_active, with shares that differ: sum over experts of 1 - (1 - share)^tokens. One
 *  thread at a time per `use`. */
double tnd_experts_active_used(struct tnd_expert_use *use, int64_t tokens);

/** The plain product that takes as long as a mul_mat_id node is expected to: it reads the rows of
 *  all active experts (N), and each row meets the tokens that an expert gets (M). `use` NULL: all
 *  experts are as likely; else those that tokens use beside the weight's have index -1. */
void tnd_experts_problem(const tandem_tensor *node, struct tnd_expert_use *use,
                         struct tnd_problem *out);

#endif
