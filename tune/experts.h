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

/** The plain product that takes as long as a mul_mat_id node is expected to: it reads the rows of
 *  all active experts (N), and each row meets the tokens that an expert gets (M). */
void tnd_experts_problem(const tandem_tensor *node, struct tnd_problem *out);

#endif
