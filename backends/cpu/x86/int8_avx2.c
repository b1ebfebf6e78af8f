/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for AVX2: bytes become 16 bits, whose products are summed in pairs
 * to 32 bits, so that nothing saturates as with _mm256_maddubs_epi16. A tile is 2 rows by a
 * panel. */
#if defined(__AVX2__)
#include <immintrin.h>

#include "backends/cpu/kernels/int8_lanes.h"

enum { ROWS = 2, VECTORS = 4 }; /* vectors of sums: 4 filters, two sums each */

TND_INLINE __m256i four_shorts(const uint8_t *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(value)));
}

TND_INLINE void multiply_rows(const struct tnd_int8_tile *tile, const int rows, const int8_t *w,
                              int32_t *sums)
{
    __m256i sum[ROWS][VECTORS];
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        TND_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            sum[r][v] = _mm256_setzero_si256();
        }
    }
    for (int64_t k = 0; k < tile->k; k += 4, w += 4 * PANEL) {
        __m256i x[ROWS];
        TND_UNROLL
        for (int r = 0; r < rows; r++) {
            x[r] = four_shorts(tile->x + r * tile->x_stride + k);
        }
        TND_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(w + 16 * v)));
            TND_UNROLL
            for (int r = 0; r < rows; r++) {
                sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(x[r], wide));
            }
        }
    }
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        TND_UNROLL
        for (int v = 0; v < VECTORS; v += 2) {
            /* pairs of both vectors by halves of 128 bits: filters 0 1 4 5 2 3 6 7 */
            const __m256i pairs = _mm256_hadd_epi32(sum[r][v], sum[r][v + 1]);
            _mm256_storeu_si256((void *)(sums + r * TILE + 4 * v),
                                _mm256_permute4x64_epi64(pairs, 0xd8));
        }
    }
}

INT8_ROWS(1)
INT8_ROWS(2)

static void multiply(const struct tnd_int8_tile *tile)
{
    static int8_rows_fn *const by_rows[ROWS] = {rows_1, rows_2};
    int8_by_panel(tile, by_rows);
}

void tnd_fill_int8_avx2(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(ROWS, multiply);
}
#else
typedef int tnd_no_int8_avx2;
#endif
