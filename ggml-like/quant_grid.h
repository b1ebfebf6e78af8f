/* SPDX-License-Identifier: MIT
 * Types whose values are grid points (IQ1 to IQ3) or one of three levels (TQ1, TQ2), as blocks of
 * 256 integers: shared by codecs, decoders of kernels and packing. */
#ifndef TND_QUANT_GRID_H
#define TND_QUANT_GRID_H

#include <stdint.h>

/* X(NAME, bytes per block, values per group, unit): value = d * scale[group] * unit * q. */
#define TND_GRID_LIST(X)                                                                           \
    X(IQ3_XXS, 98, 32, 0.25f)                                                                      \
    X(IQ3_S, 110, 32, 1.0f)                                                                        \
    X(IQ2_XXS, 66, 32, 0.125f)                                                                     \
    X(IQ2_XS, 74, 16, 0.125f)                                                                      \
    X(IQ2_S, 82, 16, 0.125f)                                                                       \
    X(IQ1_S, 50, 32, 0.125f)                                                                       \
    X(IQ1_M, 56, 16, 0.125f)                                                                       \
    X(TQ1_0, 54, 32, 1.0f)                                                                         \
    X(TQ2_0, 66, 32, 1.0f)

enum { TND_GRID_VALUES = 256 };

/* The scale is an odd number up to 31; of TQ1_0 and TQ2_0 it is 1. Products of d and a scale,
 * rounded to single precision, equal ggml's: units differ from its units by powers of two only. */
struct tnd_grid_values {
    _Alignas(16) int8_t q[TND_GRID_VALUES];
    int8_t scale[16];
    uint16_t d; /* f16 bits */
};

typedef void tnd_grid_decode_fn(const void *block, struct tnd_grid_values *out);
#define TND_GRID_DECLARE(NAME, bytes, group, unit) tnd_grid_decode_fn tnd_grid_decode_##NAME;
TND_GRID_LIST(TND_GRID_DECLARE)
#undef TND_GRID_DECLARE

/* A grid: points of `width` numbers, each a digit 0..2 or 0..7 that indexes the list of
 * magnitudes. */
enum tnd_grid_name {
    TND_GRID_IQ2_XXS,
    TND_GRID_IQ2_XS,
    TND_GRID_IQ2_S,
    TND_GRID_IQ1,
    TND_GRID_IQ3_XXS,
    TND_GRID_IQ3_S,
    TND_GRIDS
};
struct tnd_grid {
    int n, width;
    const int8_t *points;     /* n * width numbers */
    const uint16_t *codes;    /* n codes: a point's digits as a number, the first value's lowest */
    const int8_t *magnitudes; /* by digit */
    int base;                 /* number of different digits */
};
/** Built at the first call. Any thread. */
const struct tnd_grid *tnd_grid(enum tnd_grid_name name);

#endif
