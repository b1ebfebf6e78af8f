/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * Choosing one of n values as a sampler chooses a token, in integers alone, so that every CPU and
 * every device makes the same choice from the same logits and random number:
 *
 * - Values stand in order, the largest first and equal ones as they stand in the row; zeros of both
 *   signs are equal. NaN and -infinity have no chance.
 * - A value weighs exp((logit - largest) / temperature), rounded to a multiple of 2^-31; what
 *   weighs nothing has no chance. Where the largest is +infinity, each +infinity weighs 1 and the
 *   others nothing. Subnormal logits and differences count as 0.
 * - Of those with a chance the first k are kept; of these the fewest first ones that have `share`
 *   of their weight; of these what weighs `least` or more.
 * - One of those kept is drawn: in the order of the row, the first one up to which they weigh more
 *   than `draw` of what all weigh.
 *
 * Weights are added as integers: the order of the additions does not matter. */
#ifndef TANDEM_SAMPLE_H
#define TANDEM_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tandem/tensor.h"

TANDEM_BEGIN_C

/** Weight of the largest value. */
#define TANDEM_SAMPLE_ONE 0x80000000u

/** Settings for choosing from a row; also a row of the operand `settings` of a node. The layout is
 * fixed. */
struct tandem_sample_settings {
    uint32_t scale;   /**< log2(e) / temperature is scale 2^exponent, scale 2^31 or more; 0: the
                           first of the largest values is taken */
    int32_t exponent; /**< see scale */
    uint32_t k;       /**< 0: all */
    uint32_t least;   /**< weight, 1 or more */
    uint64_t share;   /**< in 1/2^64; 0: all */
    uint64_t draw;    /**< random number, in 1/2^64 */
};

/** The choice from a row; also a row of a node's result. The layout is fixed. */
struct tandem_sample_choice {
    int32_t index;   /**< 0 if no value has a chance */
    uint32_t weight; /**< of the chosen value; 0: it has no chance */
    uint64_t total;  /**< of all that were kept: weight / total is the probability of the choice */
};

/** Fills in settings. `temperature` 0 or more and finite, `top_k` 0 or more, `top_p` and `min_p`
 *  0 to 1; 0 switches a step off, and at temperature 0 all. Never fails. Any thread. */
TANDEM_API void tandem_sample_settings_fill(struct tandem_sample_settings *out, float temperature,
                                            int64_t top_k, float top_p, float min_p, uint64_t draw);

/** Bytes of working memory for rows of up to n values, aligned to 8. Never fails. Any thread. */
TANDEM_API size_t tandem_sample_memory(int64_t n);

/** Chooses from a row of n values. `mask` {n}: which may be chosen, NULL: all; `memory`:
 *  tandem_sample_memory(n) bytes, no initial contents; `out_kept` {n} (NULL: not wanted): the
 *  indices that were kept, ascending. Returns how many were kept; 0: no value has a chance. O(n),
 *  no allocation. Never fails. Any thread, with memory of its own. */
TANDEM_API int64_t tandem_sample_row(const struct tandem_sample_settings *settings,
                                     const float *logits, int64_t n, const bool *mask, void *memory,
                                     int32_t *out_kept, struct tandem_sample_choice *out_choice);

/** One of the first values of a part of a row, in the order above. The layout is fixed. */
struct tandem_sample_first {
    float logit;
    int32_t index; /**< in the row */
};

/** The part's contribution to a choice from a row that no single part has completely. */
struct tandem_sample_part {
    const struct tandem_sample_first *first; /**< {n}, as they stand in the row */
    int64_t n;    /**< settings' `k` at least, or 1 where that is 0, unless the part has fewer */
    bool is_all;  /**< the part has no other value with a chance */
    uint64_t sum; /**< tandem_sample_sum of the part; needed for a `share` without a `k` */
};

/** Writes the first `k` (1 or more) of n values that have a chance, in row order, to `out` {k};
 * `memory`: tandem_sample_memory(n) bytes. Returns how many. O(n), no allocation. Never fails. Any
 * thread, with memory of its own. */
TANDEM_API int64_t tandem_sample_first(const float *logits, int64_t n, int64_t k, void *memory,
                                       struct tandem_sample_first *out, bool *out_is_all);
/** Total weight of n values if the largest one of the row is `largest`. Never fails. Any thread. */
TANDEM_API uint64_t tandem_sample_sum(const struct tandem_sample_settings *settings, float largest,
                                      const float *logits, int64_t n);
/** Makes the choice of tandem_sample_row from the contributions of a row's parts, in row order.
 * `memory`: tandem_sample_memory of the number of values in all parts. Returns whether they are
 * enough to be certain: always for one value without a scale, and with k. Never fails. Any thread,
 * with memory of its own. */
TANDEM_API bool tandem_sample_parts(const struct tandem_sample_settings *settings,
                                    const struct tandem_sample_part *parts, int n_parts,
                                    void *memory, struct tandem_sample_choice *out_choice);

/** Steps that rows of a node may use: bits. */
enum tandem_sample_steps {
    TANDEM_SAMPLE_DRAWS = 1, /**< a scale; without it the others are ignored */
    TANDEM_SAMPLE_K = 2,     /**< a k */
    TANDEM_SAMPLE_SHARE = 4  /**< a share */
};

/** Chooses a value of each row of `logits` F32 {n, M}. `settings` I32 {8, M}: a struct
 * tandem_sample_settings a row, of which only the steps in `steps` (enum tandem_sample_steps) are
 * used. `mask` I32 {(n + 31) / 32} or NULL: bit i % 32 of integer i / 32 is set if value i may be
 * chosen; the mask is ignored if it leaves no value with a chance. Result I32 {4, M}: a struct
 * tandem_sample_choice a row. One thread at a time per context. Errors: ARGUMENT (`steps`), SHAPE,
 * TYPE. */
TANDEM_API tandem_tensor *tandem_sample(tandem_context *context, tandem_tensor *logits,
                                        tandem_tensor *settings, tandem_tensor *mask, int steps);

TANDEM_END_C
#endif
