/* SPDX-License-Identifier: MIT
 * Internals of tandem/sample.h, for the files that choose on the CPU and for tests. Device kernels
 * are in backends/opencl/kernels/ops_sample.cl. */
#ifndef TND_SAMPLE_H
#define TND_SAMPLE_H

#include "tandem/sample.h"

struct tnd_sample_candidate {
    uint32_t key, weight;
    int32_t index;
};

/** Keys are processed digit by digit, the highest first: 12, 10 and 10 bits. */
enum { TND_SAMPLE_DIGIT_BITS = 12, TND_SAMPLE_DIGITS = 1 << TND_SAMPLE_DIGIT_BITS };

/** Working memory; no initial contents. */
struct tnd_sample_memory {
    uint64_t sums[TND_SAMPLE_DIGITS];
    uint32_t counts[TND_SAMPLE_DIGITS];
    struct tnd_sample_candidate candidates[]; /* {2 n}: kept ones, and spare room */
};

/** By how many units the difference of two weights may be off from the formula. */
enum { TND_SAMPLE_OFF = 8 };

/** Sort key of a value, given its bits; 0: it cannot be chosen. */
uint32_t tnd_sample_key(uint32_t bits);

/** Weight of a value by its key, which is not 0; `largest`: the key of the largest value. */
uint32_t tnd_sample_weight(const struct tandem_sample_settings *settings, uint32_t largest,
                           uint32_t key);

/** As tandem_sample_row; the mask may be given as bits, and is ignored if it leaves nothing. */
void tnd_sample_row(const struct tandem_sample_settings *settings, const float *logits, int64_t n,
                    const uint32_t *bits, struct tnd_sample_memory *memory,
                    struct tandem_sample_choice *out);

/** Row m of a node's settings, with the steps that the node enables. */
struct tandem_sample_settings tnd_sample_settings_of(const tandem_tensor *node, int64_t m);

#endif
