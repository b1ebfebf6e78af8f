/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers for AVX-VNNI: a tile is 4 rows by a panel. */
#if defined(__AVXVNNI__)
#include <immintrin.h>

#include "backends/cpu/kernels/int8_lanes.h"

enum { ROWS = 4 };

TND_INLINE __m256i four_bytes(const uint8_t *p)
{
    int32_t value;
    memcpy(&value, p, sizeof(value));
    return _mm256_set1_epi32(value);
}

TND_INLINE void multiply_rows(const struct tnd_int8_tile *tile, const int rows, const int8_t *w,
                              int32_t *sums)
{
    __m256i sum[ROWS][2];
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    }
    for (int64_t k = 0; k < tile->k; k += 4, w += 4 * PANEL) {
        const __m256i w0 = _mm256_loadu_si256((const void *)w);
        const __m256i w1 = _mm256_loadu_si256((const void *)(w + 32));
        TND_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i x = four_bytes(tile->x + r * tile->x_stride + k);
            sum[r][0] = _mm256_dpbusd_avx_epi32(sum[r][0], x, w0);
            sum[r][1] = _mm256_dpbusd_avx_epi32(sum[r][1], x, w1);
        }
    }
    TND_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm256_storeu_si256((void *)(sums + r * TILE), sum[r][0]);
        _mm256_storeu_si256((void *)(sums + r * TILE + 8), sum[r][1]);
    }
}

INT8_ROWS(1)
INT8_ROWS(2)
INT8_ROWS(3)
INT8_ROWS(4)

static void multiply(const struct tnd_int8_tile *tile)
{
    static int8_rows_fn *const by_rows[ROWS] = {rows_1, rows_2, rows_3, rows_4};
    int8_by_panel(tile, by_rows);
}

void tnd_fill_int8_avxvnni(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(ROWS, multiply);
}
#else
typedef int tnd_no_int8_avxvnni;
#endif
