/* SPDX-License-Identifier: MIT
 * Least-squares choice of group scales for the K-quants. Knows only numbers, no block layout. */
#ifndef TND_QUANT_FIT_H
#define TND_QUANT_FIT_H

#include <stdint.h>

enum { TND_FIT_VALUES = 256, TND_FIT_GROUPS_MAX = 16 };

/** A block of 256 values as x = d * scale[g] * level[i] - dmin * min[g]
 * (affine, levels from 0) or as x = d * scale[g] * level[i] (symmetric, signed
 * levels). d and dmin are f16 bits. */
struct tnd_fit {
    uint16_t d, dmin;
    int scale[TND_FIT_GROUPS_MAX];
    int min[TND_FIT_GROUPS_MAX];
    int level[TND_FIT_VALUES];
};

/** Weights of squared errors: sqrt(mean x^2 + x^2) over the root mean square, times the importance
 * over its mean. Large values weigh more, as they do in a dot product, but not so much that they
 * drown the others. importance: n numbers, or NULL, as in the functions below. */
void tnd_fit_weigh(const float *x, const float *importance, int n, float *w);

/** Levels 0..level_top, scales and minima 0..scale_top, groups of `group`
 * values. */
void tnd_fit_affine(const float *x, const float *importance, int group, int level_top,
                    int scale_top, struct tnd_fit *out);

/** Levels level_low..-level_low-1, scales scale_low..-scale_low-1, groups
 * of 16. */
void tnd_fit_symmetric(const float *x, const float *importance, int level_low, int scale_low,
                       struct tnd_fit *out);

#endif
