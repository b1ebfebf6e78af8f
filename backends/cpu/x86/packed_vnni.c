/* SPDX-License-Identifier: MIT
 * Products of packed weights for AVX-512 with VNNI: one panel, up to 8 tokens. For many tokens,
 * panels are unpacked for gemm_vnni.c. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/packed_lanes512.h"

/* Unpacks part of a panel to the layout that decoders of kernels.h produce. */
TND_INLINE void unpack(const uint8_t *unit, int n_blocks, const struct shape shape, size_t ahead,
                       uint8_t *values, float *scales, float *mins)
{
    const int n_groups = (shape.form & TND_GROUPS_OF_16) != 0 ? 2 : 1;
    const size_t unit_bytes = (size_t)(shape.header + shape.blocks * shape.group);
    for (int left = n_blocks; left > 0; left -= shape.blocks, unit += unit_bytes) {
        const int blocks = left < shape.blocks ? left : shape.blocks;
        for (size_t i = 0; i < unit_bytes; i += 64) {
            _mm_prefetch((const char *)unit + ahead + i, _MM_HINT_T0);
        }
        for (int b = 0; b < blocks; b++) {
            const uint8_t *group = unit + shape.header + b * shape.group;
            TND_UNROLL
            for (int half = 0; half < 2; half++, values += 4 * STEP) {
                __m512i w[4];
                unpack_half(group, 0, half, shape, w);
                TND_UNROLL
                for (int s = 0; s < 4; s++) {
                    _mm512_store_si512((void *)(values + s * STEP), w[s]);
                }
            }
            TND_UNROLL
            for (int g = 0; g < n_groups; g++, scales += LANES, mins += LANES) {
                __m512 scale;
                __m512 min = _mm512_setzero_ps();
                read_scales(unit, shape, b, g, &scale, &min);
                _mm512_store_ps(scales, scale);
                if ((shape.form & TND_AFFINE) != 0) {
                    _mm512_store_ps(mins, min);
                }
            }
        }
    }
}

#if defined(TND_IS_CHECKED) /* one function for any number of tokens; see TND_UNROLL */
#define PACKED(NAME, form, offset, bits, is_super)                                                 \
    static void packed_##NAME(const struct tnd_tile_packed *tile)                                  \
    {                                                                                              \
        multiply(tile, SHAPE(form, bits, is_super), tile->n_tokens);                               \
    }
#else
#define TOKENS_CASE(shape, n)                                                                      \
    case n:                                                                                        \
        multiply(tile, shape, n);                                                                  \
        break;
#define PACKED(NAME, form, offset, bits, is_super)                                                 \
    static void packed_##NAME(const struct tnd_tile_packed *tile)                                  \
    {                                                                                              \
        switch (tile->n_tokens) {                                                                  \
            TOKENS_CASE(SHAPE(form, bits, is_super), 1)                                            \
            TOKENS_CASE(SHAPE(form, bits, is_super), 2)                                            \
            TOKENS_CASE(SHAPE(form, bits, is_super), 3)                                            \
            TOKENS_CASE(SHAPE(form, bits, is_super), 4)                                            \
            TOKENS_CASE(SHAPE(form, bits, is_super), 5)                                            \
            TOKENS_CASE(SHAPE(form, bits, is_super), 6)                                            \
            TOKENS_CASE(SHAPE(form, bits, is_super), 7)                                            \
        default:                                                                                   \
            multiply(tile, SHAPE(form, bits, is_super), 8);                                        \
            break;                                                                                 \
        }                                                                                          \
    }
#endif
#define UNPACK(NAME, form, offset, bits, is_super)                                                 \
    static void unpack_##NAME(const uint8_t *units, int n_blocks, size_t ahead, uint8_t *values,   \
                              float *scales, float *mins)                                          \
    {                                                                                              \
        unpack(units, n_blocks, SHAPE(form, bits, is_super), ahead, values, scales, mins);         \
    }
TND_QUANT_KERNELS(PACKED)
TND_QUANT_KERNELS(UNPACK)
#undef PACKED
#undef UNPACK

void tnd_fill_packed_vnni(struct tnd_cpu_kernels *out)
{
#define FILL(NAME, form, offset, bits, is_super)                                                   \
    out->packed[TANDEM_TYPE_##NAME] =                                                              \
        (struct tnd_packed_kernels){.multiply = packed_##NAME, .unpack = unpack_##NAME};
    TND_QUANT_KERNELS(FILL)
#undef FILL
}
#else
typedef int tnd_no_vnni;
#endif
