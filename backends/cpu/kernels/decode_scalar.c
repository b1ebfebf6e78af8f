/* SPDX-License-Identifier: MIT
 * Decoders of the plain C kernels: one row per panel. */
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "base/half.h"

typedef uint32_t vec;
typedef float vecf;
#define LANES 1

static inline vec v_first(const uint8_t *p, size_t stride)
{
    vec v;
    (void)stride;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline void v_transpose(const uint8_t *p, size_t stride, vec out[4])
{
    (void)stride;
    memcpy(out, p, 16);
}

static inline vec v_book(const uint8_t *codes, vec v)
{
    return (vec)codes[v & 15] | (vec)codes[v >> 8 & 15] << 8 | (vec)codes[v >> 16 & 15] << 16 |
           (vec)codes[v >> 24] << 24;
}

static inline vec v_set(int32_t value)
{
    return (vec)value;
}

static inline vecf vf_half(vec v)
{
    return tnd_f16_to_f32((uint16_t)v);
}

static inline vecf vf_int(vec v)
{
    return (float)(int32_t)v;
}

static inline void v_store(uint8_t *p, vec v)
{
    memcpy(p, &v, sizeof(v));
}

static inline void v_store_f(float *p, vec v)
{
    memcpy(p, &v, sizeof(v));
}

static inline void vf_store(float *p, vecf v)
{
    *p = v;
}

#define v_last       v_first
#define v_and(a, b)  ((a) & (b))
#define v_or(a, b)   ((a) | (b))
#define v_xor(a, b)  ((a) ^ (b))
#define v_sub(a, b)  ((a) - (b))
#define v_mul(a, b)  ((a) * (b))
#define v_sll(a, n)  ((a) << (n))
#define v_srl(a, n)  ((a) >> (n))
#define v_sra(a, n)  ((vec)((int32_t)(a) >> (n)))
#define vf_mul(a, b) ((a) * (b))
#define vf_negate(a) (-(a))

#include "backends/cpu/kernels/decode_lanes.h"

void tnd_fill_decode_scalar(struct tnd_cpu_kernels *out)
{
    fill_decoders_q(&out->q);
    fill_decoders_f(&out->f);
}
