/* SPDX-License-Identifier: MIT
 * The operations that decode_lanes.h needs, for 4 rows at once (NEON). */
#include <arm_neon.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"

typedef uint32x4_t vec;
typedef float32x4_t vecf;
#define LANES 4

/* Splits 16 bytes of each row into halves: rows 0 and 1 in out[0] (bytes 0..7) and out[2] (8..15),
 * rows 2 and 3 in out[1] and out[3]. */
TND_INLINE void zip_rows(const uint8_t *p, size_t stride, vec out[4])
{
    uint64x2_t r0 = vreinterpretq_u64_u8(vld1q_u8(p));
    uint64x2_t r1 = vreinterpretq_u64_u8(vld1q_u8(p + stride));
    uint64x2_t r2 = vreinterpretq_u64_u8(vld1q_u8(p + 2 * stride));
    uint64x2_t r3 = vreinterpretq_u64_u8(vld1q_u8(p + 3 * stride));
    out[0] = vreinterpretq_u32_u64(vzip1q_u64(r0, r1));
    out[1] = vreinterpretq_u32_u64(vzip1q_u64(r2, r3));
    out[2] = vreinterpretq_u32_u64(vzip2q_u64(r0, r1));
    out[3] = vreinterpretq_u32_u64(vzip2q_u64(r2, r3));
}

TND_INLINE void v_transpose(const uint8_t *p, size_t stride, vec out[4])
{
    vec rows[4];
    zip_rows(p, stride, rows);
    out[0] = vuzp1q_u32(rows[0], rows[1]);
    out[1] = vuzp2q_u32(rows[0], rows[1]);
    out[2] = vuzp1q_u32(rows[2], rows[3]);
    out[3] = vuzp2q_u32(rows[2], rows[3]);
}

TND_INLINE vec v_first(const uint8_t *p, size_t stride)
{
    uint32_t lane[LANES];
    for (int r = 0; r < LANES; r++) {
        memcpy(&lane[r], p + (size_t)r * stride, sizeof(lane[r]));
    }
    vec v = vdupq_n_u32(lane[0]);
    v = vsetq_lane_u32(lane[1], v, 1);
    v = vsetq_lane_u32(lane[2], v, 2);
    return vsetq_lane_u32(lane[3], v, 3);
}

TND_INLINE vecf vf_half(vec v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(v)));
}

TND_INLINE void v_store(uint8_t *p, vec v)
{
    vst1q_u8(p, vreinterpretq_u8_u32(v));
}

TND_INLINE vec v_book(const uint8_t *codes, vec v)
{
    return vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(codes), vreinterpretq_u8_u32(v)));
}

#define v_last          v_first
#define v_set(value)    vreinterpretq_u32_s32(vdupq_n_s32(value))
#define v_and(a, b)     vandq_u32(a, b)
#define v_or(a, b)      vorrq_u32(a, b)
#define v_xor(a, b)     veorq_u32(a, b)
#define v_sub(a, b)     vsubq_u32(a, b)
#define v_mul(a, b)     vmulq_u32(a, b)
#define v_sll(a, n)     vshlq_n_u32(a, n)
#define v_srl(a, n)     vshrq_n_u32(a, n)
#define v_sra(a, n)     vreinterpretq_u32_s32(vshrq_n_s32(vreinterpretq_s32_u32(a), n))
#define v_store_f(p, v) vst1q_f32(p, vreinterpretq_f32_u32(v))
#define vf_int(v)       vcvtq_f32_s32(vreinterpretq_s32_u32(v))
#define vf_mul(a, b)    vmulq_f32(a, b)
#define vf_negate(a)    vnegq_f32(a)
#define vf_store(p, v)  vst1q_f32(p, v)
