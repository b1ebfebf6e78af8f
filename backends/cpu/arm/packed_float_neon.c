/* SPDX-License-Identifier: MIT
 * Products of packed float weights for NEON: the operations of 4 lanes. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "backends/cpu/kernels/kernels.h"

#define LANES 4
typedef float32x4_t vec;

TND_INLINE vec v_halves(const uint8_t *p, const enum tandem_type type)
{
    uint16x4_t halves = vreinterpret_u16_u8(vld1_u8(p));
    return type == TANDEM_TYPE_F16 ? vcvt_f32_f16(vreinterpret_f16_u16(halves))
                                   : vreinterpretq_f32_u32(vshll_n_u16(halves, 16));
}

#define v_load(p)        vld1q_f32(p)
#define v_store(p, v)    vst1q_f32(p, v)
#define v_set(x)         vdupq_n_f32(x)
#define v_add(a, b)      vaddq_f32(a, b)
#define v_fmadd(a, b, c) vfmaq_f32(c, a, b)

#include "backends/cpu/kernels/packed_float_lanes.h"

void tnd_fill_packed_float_neon(struct tnd_cpu_kernels *out)
{
    out->packed_f[TANDEM_TYPE_F32] = packed_F32;
    out->packed_f[TANDEM_TYPE_F16] = packed_F16;
    out->packed_f[TANDEM_TYPE_BF16] = packed_BF16;
}
#else
typedef int tnd_no_neon;
#endif
