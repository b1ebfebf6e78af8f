/* SPDX-License-Identifier: MIT
 * Products of bytes with the dot-product instruction of ARMv8.2 (4 products per lane), for
 * rows_neon.h. Both operands are signed, so 8-bit codes are made signed, too. */
#include "backends/cpu/arm/rows_neon.h"

#define CORRECTED(bits) ((bits) < 8)

TND_INLINE void dot(const uint8x16_t w[4], const int8x16_t x[SET], const int bits,
                    int32x4_t sum[SET])
{
    sum[0] = vdotq_laneq_s32(sum[0], signed_codes(w[0], bits), x[0], 0);
    sum[0] = vdotq_laneq_s32(sum[0], signed_codes(w[1], bits), x[0], 1);
    sum[0] = vdotq_laneq_s32(sum[0], signed_codes(w[2], bits), x[0], 2);
    sum[0] = vdotq_laneq_s32(sum[0], signed_codes(w[3], bits), x[0], 3);
}
