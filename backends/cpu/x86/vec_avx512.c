/* SPDX-License-Identifier: MIT
 * Row kernels for AVX-512 (F, BW, VL, DQ): defines operations on 16 lanes; the kernels are in
 * vec_lanes.h. All functions but the entry are static, because this file is compiled for a larger
 * instruction set. */
#define TND_VEC_FUSED
#include "backends/cpu/kernels/kernels.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include "backends/cpu/x86/lanes512.h"

#include "backends/cpu/kernels/vec_lanes.h"

enum { PANEL_VECTORS = 3, PANEL_TILE = 8 }; /* of 32 registers: 24 sums, 3 vectors, 1 broadcast */
#include "backends/cpu/kernels/attention_lanes.h"

/* Blends can use either vector port, permutations only one. */
#define HAS_FOLD
TND_INLINE vec v_fold(vec a, vec b, const int half)
{
    const __mmask16 is_b = half == 8 ? 0xff00 : half == 4 ? 0xf0f0 : half == 2 ? 0xcccc : 0xaaaa;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    /* the other lane of the pair; where the result is b's, from b, whose lanes have indices from 16
     * on */
    const __m512i other = _mm512_xor_si512(lane, _mm512_set1_epi32(half));
    const __m512i from = _mm512_mask_add_epi32(other, is_b, other, _mm512_set1_epi32(16));
    return v_add(_mm512_mask_blend_ps(is_b, a, b), _mm512_permutex2var_ps(a, from, b));
}

#define HAS_SPREAD
TND_INLINE vec v_spread(const float *a, const int n)
{
    return n == 4   ? _mm512_broadcast_f32x4(_mm_loadu_ps(a))
           : n == 8 ? _mm512_broadcast_f32x8(_mm256_loadu_ps(a))
                    : v_load(a);
}

TND_INLINE vec v_spread_f16(const uint16_t *a, const int n)
{
    if (n == 4) {
        int64_t bits;
        memcpy(&bits, a, sizeof(bits));
        return _mm512_cvtph_ps(_mm256_set1_epi64x(bits));
    }
    return n == 8 ? _mm512_cvtph_ps(_mm256_broadcastsi128_si256(
                        _mm_loadu_si128((const __m128i *)(const void *)a)))
                  : v_load_f16(a);
}

enum {
    FEW_QUERIES = 8,
    FEW_TOGETHER = 4,
    FEW_SUMS = 16
}; /* 16 sums, 2 keys or values, 1 query or weight */
#include "backends/cpu/kernels/attention_few_lanes.h"

void tnd_fill_vec_avx512(struct tnd_cpu_kernels *out)
{
    out->vec.isa = "avx512";
    fill(out);
    fill_panel(&out->attention);
    fill_few(&out->few);
}
#endif
