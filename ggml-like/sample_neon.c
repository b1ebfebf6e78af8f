/* SPDX-License-Identifier: MIT
 * tnd_sample_weights for NEON, 4 values at once: the same integers as tnd_sample_weight. */
#if defined(__aarch64__)
#include <arm_neon.h>

#include "ggml-like/sample_weights.h"

/* f p / 2^32 */
static inline uint32x4_t high(uint32x4_t f, uint32x4_t p)
{
    const uint64x2_t low_lanes = vmull_u32(vget_low_u32(f), vget_low_u32(p));
    return vuzp2q_u32(vreinterpretq_u32_u64(low_lanes),
                      vreinterpretq_u32_u64(vmull_high_u32(f, p)));
}

/* 2^31 2^-x of x, in units of 1/2^32 */
static inline uint32x4_t power(uint32x4_t f)
{
    static const uint32_t coefficients[] = TND_SAMPLE_POWER;
    uint32x4_t p = vdupq_n_u32(coefficients[0]);
    for (int i = 1; i < TND_SAMPLE_DEGREE; i++) {
        p = vsubq_u32(vdupq_n_u32(coefficients[i]), high(f, p));
    }
    p = vshrq_n_u32(vaddq_u32(high(f, p), vdupq_n_u32(1)), 1);
    return vsubq_u32(vdupq_n_u32(TANDEM_SAMPLE_ONE), p);
}

/* Keys of values that cannot be chosen are 0. */
static inline uint32x4_t keys_of(uint32x4_t bits)
{
    const uint32x4_t sign = vdupq_n_u32(0x80000000u);
    const uint32x4_t none = vorrq_u32(vcgtq_u32(vbicq_u32(bits, sign), vdupq_n_u32(0x7f800000)),
                                      vceqq_u32(bits, vdupq_n_u32(0xff800000u)));
    const uint32x4_t of_negative = vbslq_u32(vceqq_u32(bits, sign), sign, vmvnq_u32(bits));
    const uint32x4_t key = vbslq_u32(vtstq_u32(bits, sign), of_negative, vorrq_u32(bits, sign));
    return vbicq_u32(key, none);
}

static inline uint32x4_t weights_of(uint32x4_t bits, uint32x4_t key, float largest,
                                    uint32_t largest_key,
                                    const struct tandem_sample_settings *settings)
{
    const uint32x4_t zero = vdupq_n_u32(0);
    const uint32x4_t is_small = vceqq_u32(vandq_u32(bits, vdupq_n_u32(0x7f800000)), zero);
    const float32x4_t value = vreinterpretq_f32_u32(vbicq_u32(bits, is_small));
    const uint32x4_t distance = vreinterpretq_u32_f32(vsubq_f32(vdupq_n_f32(largest), value));
    const uint32x4_t biased = vshrq_n_u32(distance, 23);
    const uint32x4_t fraction =
        vorrq_u32(vandq_u32(distance, vdupq_n_u32(0x7fffff)), vdupq_n_u32(0x800000));
    const int32x4_t shift =
        vsubq_s32(vdupq_n_s32(118 - tnd_sample_exponent(settings)), vreinterpretq_s32_u32(biased));
    /* shifts left by a negative number; products have 56 bits */
    const int32x4_t left = vnegq_s32(vminq_s32(shift, vdupq_n_s32(63)));
    const uint32x4_t scale = vdupq_n_u32(settings->scale);
    const uint64x2_t low_lanes = vshlq_u64(vmull_u32(vget_low_u32(fraction), vget_low_u32(scale)),
                                           vmovl_s32(vget_low_s32(left)));
    const uint64x2_t high_lanes = vshlq_u64(vmull_high_u32(fraction, scale), vmovl_high_s32(left));
    const uint32x4_t whole =
        vuzp2q_u32(vreinterpretq_u32_u64(low_lanes), vreinterpretq_u32_u64(high_lanes));
    const uint32x4_t part =
        vuzp1q_u32(vreinterpretq_u32_u64(low_lanes), vreinterpretq_u32_u64(high_lanes));
    uint32x4_t weight = vrshlq_u32(power(part), vnegq_s32(vreinterpretq_s32_u32(whole)));
    const uint32x4_t none =
        vorrq_u32(vorrq_u32(vcltzq_s32(shift), vceqq_u32(biased, vdupq_n_u32(255))),
                  vcgtq_u32(whole, vdupq_n_u32(31)));
    weight = vbicq_u32(weight, none);
    const uint32x4_t is_one =
        vorrq_u32(vceqq_u32(biased, zero), vceqq_u32(key, vdupq_n_u32(largest_key)));
    weight = vbslq_u32(is_one, vdupq_n_u32(TANDEM_SAMPLE_ONE), weight);
    /* cannot be chosen, or above the largest that can */
    return vandq_u32(weight,
                     vandq_u32(vtstq_u32(key, key), vcleq_u32(key, vdupq_n_u32(largest_key))));
}

void tnd_sample_weights_neon(const struct tandem_sample_settings *settings, float largest,
                             uint32_t largest_key, const float *logits, int64_t n, uint32_t *keys,
                             uint32_t *weights)
{
    for (int64_t i = 0; i + 4 <= n; i += 4) {
        const uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(logits + i));
        const uint32x4_t key = keys_of(bits);
        vst1q_u32(keys + i, key);
        vst1q_u32(weights + i, weights_of(bits, key, largest, largest_key, settings));
    }
}
#else
typedef int tnd_no_neon;
#endif
