/* SPDX-License-Identifier: MIT
 * What times of the host's kernels and ours say about where weights shall live and who computes.
 * Knows no files: times are records of the runtime's table (tandem_runtime_add_hosted). */
#ifndef TND_BRIDGE_VERDICTS_H
#define TND_BRIDGE_VERDICTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/tensor.h"

enum { TND_TOKEN_CLASSES = 3, TND_SIZE_CLASSES = 4, TND_PRODUCT_KINDS = 4 };
/** Kind of a product: 0 plain, 1 of experts, and 2 more where rows of weights are short: what a
 *  row costs besides its values weighs more there. */
int tnd_verdicts_kind(bool has_experts, int64_t k);

struct tnd_bridge_verdict {
    bool is_known;                     /* it stands for the rest of the process */
    bool is_placed;                    /* weights live where we can use them */
    bool is_faster[TND_TOKEN_CLASSES]; /* we compute, with weights there */
};

/** A time and its standard error, as tandem_judge_times gives them. us 0: nobody measured it. */
struct tnd_bridge_time {
    double us, error_us;
};
/** A product with a number of tokens. */
struct tnd_bridge_times {
    struct tnd_bridge_time ours; /* and of starting the host's threads once more, as each product of
                                    ours makes it */
    struct tnd_bridge_time loaded; /* the host, with weights as its loaders would keep them */
    struct tnd_bridge_time plain;  /* the host, with weights where we can use them */
};
/** Whether more times can change nothing: it is clear which is the least, or what they leave open
 *  is less than 2 %. */
bool tnd_times_are_settled(const struct tnd_bridge_times *times);
/** The rule for weights of the type, and what the times of each class of tokens change in it: only
 *  what is clear, by three standard errors and 2 %. Returns whether all classes are settled. */
bool tnd_verdict_judge(struct tnd_bridge_verdict *out, enum tandem_type type,
                       const struct tnd_bridge_times times[TND_TOKEN_CLASSES]);

#endif
