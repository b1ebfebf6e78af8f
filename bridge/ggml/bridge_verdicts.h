/* SPDX-License-Identifier: MIT
 * Decides, from times of the host's kernels and ours, where weights should be allocated and who
 * computes. Knows no files: times are records of the runtime's table
 * (tandem_runtime_add_hosted). */
#ifndef TND_BRIDGE_VERDICTS_H
#define TND_BRIDGE_VERDICTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tandem/tensor.h"

enum { TND_TOKEN_CLASSES = 3, TND_SIZE_CLASSES = 4, TND_PRODUCT_KINDS = 4 };
/** Kind of a product: 0 plain, 1 with experts, plus 2 if rows of weights are short, where the cost
 * per row dominates. */
int tnd_verdicts_kind(bool has_experts, int64_t k);

struct tnd_bridge_verdict {
    bool is_known;                     /* final for the process */
    bool is_placed;                    /* weights are allocated where we can use them */
    bool is_faster[TND_TOKEN_CLASSES]; /* we compute, if weights are placed */
};

/** A time and its standard error, as from tandem_judge_times. us 0: not measured. */
struct tnd_bridge_time {
    double us, error_us;
};
/** Times of a product with some number of tokens. */
struct tnd_bridge_times {
    struct tnd_bridge_time ours;   /* including one more start of the host's threads, which each
                                  * product of ours causes */
    struct tnd_bridge_time loaded; /* the host, with weights as its loaders would store them */
    struct tnd_bridge_time plain;  /* the host, with weights where we can use them */
};
/** Whether more measurements cannot change the verdict: the fastest is clear, or what is uncertain
 * is less than 2 %. */
bool tnd_times_are_settled(const struct tnd_bridge_times *times);
/** Applies the rule for weights of the type, and exceptions for each class of tokens whose times
 * are clear by three standard errors and 2 %. Returns whether all classes are settled. */
bool tnd_verdict_judge(struct tnd_bridge_verdict *out, enum tandem_type type,
                       const struct tnd_bridge_times times[TND_TOKEN_CLASSES]);

#endif
