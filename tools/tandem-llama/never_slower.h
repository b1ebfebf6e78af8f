/* SPDX-License-Identifier: MIT
 * Whether the plan is ever slower than a fixed choice: bench --never-slower. */
#ifndef TANDEM_LLAMA_NEVER_SLOWER_H
#define TANDEM_LLAMA_NEVER_SLOWER_H

#include <stdint.h>

struct tnd_never_slower {
    const char *shape; /* of the synthetic model */
    const char *type;  /* of its weights */
    const char *table; /* NULL: this machine's own */
    int64_t threads;
    int64_t rounds; /* in which each choice that is not hopeless runs once */
};

/** Prompts of 8, 32, 128 and 512 tokens and generation, by the plan, by the rule, by the
 *  baselines and by each profile alone, in turns; prints ratios. Returns the exit status: 1 when
 *  the plan takes more than 1.02 times as long as the best fixed choice. */
int tnd_never_slower_run(const struct tnd_never_slower *wanted);

#endif
