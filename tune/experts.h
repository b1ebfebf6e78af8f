/* SPDX-License-Identifier: MIT
 * Prices products of experts by the times of plain products: an expert's M is the number of tokens
 * routed to it, not the batch. */
#ifndef TND_EXPERTS_H
#define TND_EXPERTS_H

#include "table/problem.h"
#include "tandem/ops.h"

/** Expected number of active experts if each of `tokens` tokens uses `used` of `experts` with equal
 * probability: experts (1 - (1 - used / experts)^tokens). */
double tnd_experts_active(int64_t experts, int64_t used, int64_t tokens);

/** Use of the experts of one weight. */
struct tnd_expert_use {
    const float *shares; /* {n}: fraction of tokens that use each expert, 0 to 1 */
    int64_t n;
    double sum;          /* of the shares: experts per token */
    int64_t known_m;     /* token count of the last tnd_experts_active_used; 0: none */
    double known_active; /* its result */
};

/** Like tnd_experts_active with different shares: sum over experts of 1 - (1 - share)^tokens.
 * Caches its last result in `use`: one thread at a time. */
double tnd_experts_active_used(struct tnd_expert_use *use, int64_t tokens);

/** The plain product that is expected to take as long as a mul_mat_id node: N is the rows of all
 * active experts, M the tokens per active expert. `use` NULL: all experts are equally likely;
 * otherwise experts that tokens use outside of this weight have index -1. */
void tnd_experts_problem(const tandem_tensor *node, struct tnd_expert_use *use,
                         struct tnd_problem *out);

#endif
