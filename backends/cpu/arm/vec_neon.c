/* SPDX-License-Identifier: MIT
 * Row kernels for every 64-bit ARM CPU (NEON): defines operations on 4 lanes; the kernels are in
 * vec_lanes.h. */
#define TND_VEC_FUSED
#include "backends/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <math.h>
#include <string.h>

#define LANES 4
typedef float32x4_t vec;

/* All bits set in the first `n` lanes. */
static inline uint32x4_t v_first(int n)
{
    static const int32_t lane[LANES] = {0, 1, 2, 3};
    return vcltq_s32(vld1q_s32(lane), vdupq_n_s32(n));
}

static inline vec v_set(float x)
{
    return vdupq_n_f32(x);
}

static inline vec v_load(const float *a)
{
    return vld1q_f32(a);
}

/* Lanes from `n` on are 0, and their memory is not read. */
static inline vec v_load_part(const float *a, int n)
{
    float part[LANES] = {0};
    if (n >= LANES) {
        return v_load(a);
    }
    for (int i = 0; i < n; i++) {
        part[i] = a[i];
    }
    return v_load(part);
}

static inline void v_store(float *y, vec x)
{
    vst1q_f32(y, x);
}

static inline void v_store_part(float *y, int n, vec x)
{
    float part[LANES];
    if (n >= LANES) {
        v_store(y, x);
        return;
    }
    v_store(part, x);
    for (int i = 0; i < n; i++) {
        y[i] = part[i];
    }
}

/* The first `n` lanes of x, the other lanes of `other`. */
static inline vec v_keep(vec x, int n, vec other)
{
    return n >= LANES ? x : vbslq_f32(v_first(n), x, other);
}

static inline vec v_add(vec a, vec b)
{
    return vaddq_f32(a, b);
}

static inline vec v_sub(vec a, vec b)
{
    return vsubq_f32(a, b);
}

static inline vec v_mul(vec a, vec b)
{
    return vmulq_f32(a, b);
}

static inline vec v_div(vec a, vec b)
{
    return vdivq_f32(a, b);
}

static inline vec v_sqrt(vec a)
{
    return vsqrtq_f32(a);
}

/* Returns b if one of them is NaN, as vec_lanes.h expects. */
static inline vec v_max(vec a, vec b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline vec v_min(vec a, vec b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

static inline vec v_fmadd(vec a, vec b, vec c)
{
    return vfmaq_f32(c, a, b);
}

static inline vec v_swap_pairs(vec a)
{
    return vrev64q_f32(a);
}

static inline double v_sum(vec a)
{
    return (double)vaddvq_f32(a);
}

static inline float v_largest(vec a)
{
    return vmaxvq_f32(a);
}

static inline vec v_load_f16(const uint16_t *a)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(a)));
}

/* The 16-bit float at `a` in all lanes. */
static inline vec v_set_f16(const void *a)
{
    uint16_t bits;
    memcpy(&bits, a, sizeof(bits));
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits)));
}

static inline vec v_load_i8(const void *a)
{
    uint32_t bytes;
    memcpy(&bytes, a, sizeof(bytes));
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(bytes)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}

/* Four bits of each byte, from bit `shift` on, minus 8. */
static inline vec v_load_q4(const void *a, int shift)
{
    uint32_t bytes;
    memcpy(&bytes, a, sizeof(bytes));
    const uint16x4_t wide = vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes))));
    const uint16x4_t q = vand_u16(vshl_u16(wide, vdup_n_s16((int16_t)-shift)), vdup_n_u16(15));
    return vcvtq_f32_s32(vsubq_s32(vreinterpretq_s32_u32(vmovl_u16(q)), vdupq_n_s32(8)));
}

static inline void v_store_f16(uint16_t *y, vec x)
{
    vst1_u16(y, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}

static inline vec v_load_bf16(const uint16_t *a)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(a), 16));
}

/* As tnd_f32_to_bf16: nearest, ties to even, NaN kept. */
static inline void v_store_bf16(uint16_t *y, vec x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t upper = vshrq_n_u32(bits, 16);
    uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    uint32x4_t rounded = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
    uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
    vst1_u16(y, vmovn_u32(vbslq_u32(vceqq_f32(x, x), vshrq_n_u32(rounded, 16), quiet)));
}

/* a0 b0 a1 b1 of the lower halves. */
static inline vec v_zip_low(vec a, vec b)
{
    return vzip1q_f32(a, b);
}

static inline vec v_zip_high(vec a, vec b)
{
    return vzip2q_f32(a, b);
}

/* x where first <= order <= last in the lane, -infinity elsewhere. */
static inline vec v_between(vec x, int32_t order, const int32_t *first, const int32_t *last)
{
    const int32x4_t place = vdupq_n_s32(order);
    uint32x4_t seen =
        vandq_u32(vcleq_s32(vld1q_s32(first), place), vcleq_s32(place, vld1q_s32(last)));
    return vbslq_f32(seen, x, v_set(-INFINITY));
}

#include "backends/cpu/kernels/vec_lanes.h"

enum { PANEL_VECTORS = 3, PANEL_TILE = 8 }; /* of 32 registers: 24 sums, 3 vectors, 1 broadcast */
#include "backends/cpu/kernels/attention_lanes.h"

enum {
    FEW_QUERIES = 8,
    FEW_TOGETHER = 1,
    FEW_SUMS = 16
}; /* 16 sums, 2 keys or values, 1 query or weight */
#include "backends/cpu/kernels/attention_few_lanes.h"

void tnd_fill_vec_neon(struct tnd_cpu_kernels *out)
{
    out->vec.isa = "neon";
    fill(out);
    fill_panel(&out->attention);
    fill_few(&out->few);
}
#endif
