/* SPDX-License-Identifier: MIT
 * bench --never-slower: whether the plan is ever slower than a fixed choice. */
#ifndef TANDEM_LLAMA_NEVER_SLOWER_H
#define TANDEM_LLAMA_NEVER_SLOWER_H

#include <stdint.h>

struct tnd_never_slower {
    const char *shape; /* of the synthetic model */
    const char *type;  /* of the synthetic model */
    const char *table; /* NULL: this machine's own */
    int64_t threads;
    int64_t rounds; /* in each of which every remaining choice runs once */
};

/** Measures prompts of 8, 32, 128 and 512 tokens and generation, by the plan, the rule, the
 * baselines and each profile, in turns; prints ratios. Returns the exit status: 1 when the plan
 * takes more than 1.02 times as long as the best fixed choice. */
int tnd_never_slower_run(const struct tnd_never_slower *wanted);

#endif
