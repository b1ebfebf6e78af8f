/* SPDX-License-Identifier: MIT
 * Products of packed weights with codes of 2 or 3 bits and one token, for AVX-512 with VNNI, VBMI
 * and GFNI: for one token, unpacking takes longer than reading memory. With more tokens,
 * multiplication takes longer (packed_vnni.c). */
#if defined(__AVX512VNNI__) && defined(__AVX512VBMI__) && defined(__GFNI__)
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/packed_lanes512.h"

#define IS_SHORT(form, bits) (TND_PACKED_BITS(form, bits) <= 3)
#define PACKED(NAME, form, offset, bits, is_super)                                                 \
    static void packed_##NAME(const struct tnd_tile_packed *tile)                                  \
    {                                                                                              \
        if (IS_SHORT(form, bits)) {                                                                \
            multiply(tile, SHAPE(form, bits, is_super), 1);                                        \
        }                                                                                          \
    }
TND_QUANT_KERNELS(PACKED)
#undef PACKED

void tnd_fill_packed_gfni(struct tnd_cpu_kernels *out)
{
#define FILL(NAME, form, offset, bits, is_super)                                                   \
    if (IS_SHORT(form, bits)) {                                                                    \
        out->packed[TANDEM_TYPE_##NAME].multiply_one = packed_##NAME;                              \
    }
    TND_QUANT_KERNELS(FILL)
#undef FILL
}
#else
typedef int tnd_no_gfni;
#endif
