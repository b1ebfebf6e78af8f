/* SPDX-License-Identifier: MIT
 * Products of bytes with baseline NEON instructions, for rows_neon.h: 16-bit sums, of which as many
 * are added as cannot overflow. */
#include "backends/cpu/arm/rows_neon.h"

#define CORRECTED(bits) ((bits) < 8)
/* Steps of 4 values whose 16-bit sums can be added, and then pairs of these: steps * 2 * 127 *
 * (2^bits - 1) < 2^15; codes of 8 bits are made signed. */
#define SPAN(bits)      ((bits) <= 5 ? 4 : (bits) == 6 ? 2 : 1)

/* 4 activations, repeated for each row. */
TND_INLINE int8x16_t broadcast_4(int8x16_t x, const int step)
{
    int32x4_t v = vreinterpretq_s32_s8(x);
    return vreinterpretq_s8_s32(step == 0   ? vdupq_laneq_s32(v, 0)
                                : step == 1 ? vdupq_laneq_s32(v, 1)
                                : step == 2 ? vdupq_laneq_s32(v, 2)
                                            : vdupq_laneq_s32(v, 3));
}

TND_INLINE void dot(const uint8x16_t w[4], const int8x16_t x[SET], const int bits,
                    int32x4_t sum[SET])
{
    const int span = SPAN(bits);
    TND_UNROLL
    for (int begin = 0; begin < 4; begin += span) {
        int16x8_t low;
        int16x8_t high;
        TND_UNROLL
        for (int s = begin; s < begin + span; s++) {
            int8x16_t codes = signed_codes(w[s], bits);
            int8x16_t four = broadcast_4(x[0], s);
            if (s == begin) {
                low = vmull_s8(vget_low_s8(codes), vget_low_s8(four));
                high = vmull_high_s8(codes, four);
            } else {
                low = vmlal_s8(low, vget_low_s8(codes), vget_low_s8(four));
                high = vmlal_high_s8(high, codes, four);
            }
        }
        sum[0] = vpadalq_s16(sum[0], vpaddq_s16(low, high));
    }
}
