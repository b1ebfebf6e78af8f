/* SPDX-License-Identifier: MIT
 * What follows the sums of a tile, in registers on their way to the result. Files of an instruction
 * set include it, so that its loops are compiled for that. The bits are those of fuse_strips.c. */
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

static inline tnd_finish_lanes tnd_finish_step(int kind, tnd_finish_lanes x, tnd_finish_lanes y)
{
    switch (kind) {
    case TND_BINARY_ADD:
        return x + y;
    case TND_BINARY_SUB:
        return x - y;
    case TND_BINARY_MUL:
        return x * y;
    case TND_BINARY_DIV:
        return x / y;
    case TND_BINARY_MAX: /* (x != x: NaN) */
        return tnd_finish_select((x > y) | (x != x), x, y);
    default:
        return tnd_finish_select((x < y) | (x != x), x, y);
    }
}

/* `width`: filters of a tile, a multiple of TND_FINISH_LANES, known when this is compiled. */
static inline void tnd_finish_places(const struct tnd_conv_finish *finish, int width)
{
    for (int m = 0; m < finish->n_places; m++) {
        for (int f = 0; f < width; f += TND_FINISH_LANES) {
            tnd_finish_lanes v;
            memcpy(&v, finish->sums + m * finish->stride + f, sizeof(v));
            for (int i = 0; i < finish->n_steps; i++) {
                const struct tnd_conv_step *step = &finish->steps[i];
                tnd_finish_lanes w;
                memcpy(&w, step->at + m * step->row + f, sizeof(w));
                v = step->is_right ? tnd_finish_step(step->kind, w, v)
                                   : tnd_finish_step(step->kind, v, w);
            }
            memcpy(finish->y + m * finish->line + f, &v, sizeof(v));
        }
    }
}

#endif
