/* SPDX-License-Identifier: MIT
 * What follows the sums of a tile, in registers on their way to the result. Files of an instruction
 * set include it, so that its loops are compiled for that. The bits are those of fuse_run.c. */
#ifndef TND_CONV_FINISH_H
#define TND_CONV_FINISH_H

#include <string.h>

#include "graph/conv_tile.h"
#include "graph/net.h"

#if defined(__AVX512F__)
#define TND_FINISH_LANES 16
#elif defined(__AVX2__)
#define TND_FINISH_LANES 8
#else
#define TND_FINISH_LANES 4
#endif
typedef float tnd_finish_lanes __attribute__((vector_size(TND_FINISH_LANES * sizeof(float))));
typedef int32_t tnd_finish_mask __attribute__((vector_size(TND_FINISH_LANES * sizeof(float))));

/* `a` where the mask says so, else `b`. */
static inline tnd_finish_lanes tnd_finish_select(tnd_finish_mask mask, tnd_finish_lanes a,
                                                 tnd_finish_lanes b)
{
    return (tnd_finish_lanes)((mask & (tnd_finish_mask)a) | (~mask & (tnd_finish_mask)b));
}

#define TND_FINISH_ALL(expression)                                                                 \
    TND_CONV_UNROLL                                                                                \
    for (int i = 0; i < n; i++) {                                                                  \
        const tnd_finish_lanes x = a[i];                                                           \
        const tnd_finish_lanes y = b[i];                                                           \
        v[i] = (expression);                                                                       \
    }                                                                                              \
    break

/* `n`: vectors, known when this is compiled. */
__attribute__((always_inline)) static inline void tnd_finish_step(int kind,
                                                                  const tnd_finish_lanes *a,
                                                                  const tnd_finish_lanes *b, int n,
                                                                  tnd_finish_lanes *v)
{
    switch (kind) {
    case TND_BINARY_ADD:
        TND_FINISH_ALL(x + y);
    case TND_BINARY_SUB:
        TND_FINISH_ALL(x - y);
    case TND_BINARY_MUL:
        TND_FINISH_ALL(x * y);
    case TND_BINARY_DIV:
        TND_FINISH_ALL(x / y);
    case TND_BINARY_MAX: /* (x != x: NaN) */
        TND_FINISH_ALL(tnd_finish_select((x > y) | (x != x), x, y));
    default:
        TND_FINISH_ALL(tnd_finish_select((x < y) | (x != x), x, y));
    }
}

/* `places` and `width`, a multiple of TND_FINISH_LANES, are known when this is compiled. */
__attribute__((always_inline)) static inline void
tnd_finish_some(const struct tnd_conv_finish *finish, int first, int places, int width)
{
    enum { MOST = 4 * TND_CONV_FILTERS / TND_FINISH_LANES };
    tnd_finish_lanes v[MOST];
    tnd_finish_lanes w[MOST];
    const int each = width / TND_FINISH_LANES;
    TND_CONV_UNROLL
    for (int i = 0; i < places * each; i++) {
        memcpy(&v[i],
               finish->sums + (first + i / each) * finish->stride + i % each * TND_FINISH_LANES,
               sizeof(v[i]));
    }
    for (int s = 0; s < finish->n_steps; s++) {
        const struct tnd_conv_step *step = &finish->steps[s];
        TND_CONV_UNROLL
        for (int i = 0; i < places * each; i++) {
            memcpy(&w[i], step->at + (first + i / each) * step->row + i % each * TND_FINISH_LANES,
                   sizeof(w[i]));
        }
        if (step->is_right) {
            tnd_finish_step(step->kind, w, v, places * each, v);
        } else {
            tnd_finish_step(step->kind, v, w, places * each, v);
        }
    }
    TND_CONV_UNROLL
    for (int i = 0; i < places * each; i++) {
        memcpy(finish->y + (first + i / each) * finish->line + i % each * TND_FINISH_LANES, &v[i],
               sizeof(v[i]));
    }
}

/* Four places together, so that choosing an operation takes a small share. */
static inline void tnd_finish_places(const struct tnd_conv_finish *finish, int width)
{
    int m = 0;
    for (; m + 4 <= finish->n_places; m += 4) {
        tnd_finish_some(finish, m, 4, width);
    }
    for (; m < finish->n_places; m++) {
        tnd_finish_some(finish, m, 1, width);
    }
}

#endif
