/* SPDX-License-Identifier: MIT
 * Inner loops of convolutions with few filters, channels last. Lanes are values of a tap, summed at
 * the end, because a panel of filters would be mostly empty. Included, and so compiled, once per
 * instruction set. */
#ifndef TND_CONV_FEW_H
#define TND_CONV_FEW_H

#include "backends/cpu/kernels/conv_depthwise.h"

typedef float few_four __attribute__((vector_size(16)));

/* Reduces a vector to four sums of its lanes. */
static inline few_four few_quarter(tnd_vec v)
{
#if defined(__AVX512F__)
    const __m512d all = _mm512_castps_pd(v);
    const __m256 half = _mm256_castpd_ps(_mm512_castpd512_pd256(all)) +
                        _mm256_castpd_ps(_mm512_extractf64x4_pd(all, 1));
    return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
#elif defined(__AVX2__)
    return _mm256_castps256_ps128(v) + _mm256_extractf128_ps(v, 1);
#else
    return v;
#endif
}

/* The sums of four vectors. */
static inline few_four few_sums(const tnd_vec *v)
{
    const few_four a = few_quarter(v[0]);
    const few_four b = few_quarter(v[1]);
    const few_four c = few_quarter(v[2]);
    const few_four d = few_quarter(v[3]);
#if defined(__SSE2__)
    const few_four low = _mm_unpacklo_ps(a, b) + _mm_unpackhi_ps(a, b);
    const few_four high = _mm_unpacklo_ps(c, d) + _mm_unpackhi_ps(c, d);
    return _mm_movelh_ps(low, high) + _mm_movehl_ps(high, low);
#elif defined(__aarch64__)
    return vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
#else
    return (few_four){a[0] + a[1] + a[2] + a[3], b[0] + b[1] + b[2] + b[3],
                      c[0] + c[1] + c[2] + c[3], d[0] + d[1] + d[2] + d[3]};
#endif
}

/* `places` positions from `first` on, of `n_places`, and `filters` filters from `filter` on. */
static inline __attribute__((always_inline)) void few_block(const struct tnd_conv_tile *tile,
                                                            int n_places, int first,
                                                            const int places, int filter,
                                                            const int filters)
{
    enum { MOST = 16 };
    tnd_vec sum[MOST];
    const float *w = tile->w + filter * tile->w_panel;
    const int64_t whole = tile->run / TND_VEC_LANES * TND_VEC_LANES;
    const int left = (int)(tile->run - whole);
    TND_CONV_UNROLL
    for (int i = 0; i < MOST; i++) {
        sum[i] = tnd_vec_set(0);
    }
    for (int64_t tap = 0; tap < tile->n_taps; tap++, w += tnd_conv_few_row(tile->run)) {
        const float *const *rows = tile->rows + tap * n_places + first;
        for (int64_t c = 0; c < tile->run; c += TND_VEC_LANES) {
            tnd_vec of_filters[4];
            TND_CONV_UNROLL
            for (int f = 0; f < filters; f++) {
                of_filters[f] = tnd_vec_load(w + f * tile->w_panel + c);
            }
            TND_CONV_UNROLL
            for (int m = 0; m < places; m++) {
                const tnd_vec x =
                    c < whole ? tnd_vec_load(rows[m] + c) : depth_load(rows[m] + c, left);
                TND_CONV_UNROLL
                for (int f = 0; f < filters; f++) {
                    sum[m * filters + f] = depth_fma(x, of_filters[f], sum[m * filters + f]);
                }
            }
        }
    }
    TND_CONV_UNROLL
    for (int i = 0; i < places * filters; i += 4) {
        const few_four four = few_sums(sum + i);
        for (int k = 0; k < 4 && i + k < places * filters; k++) {
            const int place = first + (i + k) / filters;
            tile->y[place * TND_CONV_PANEL + filter + (i + k) % filters] = four[k];
        }
    }
}

/* Two filters at a time, so that sums stay in registers even if there are only 16. */
static void run_few(const struct tnd_conv_tile *tile, int n_places)
{
    int f = 0;
    for (; f + 2 <= tile->n_filters; f += 2) {
        int m = 0;
        for (; m + 4 <= n_places; m += 4) {
            few_block(tile, n_places, m, 4, f, 2);
        }
        for (; m < n_places; m++) {
            few_block(tile, n_places, m, 1, f, 2);
        }
    }
    for (int m = 0; f < tile->n_filters && m < n_places; m += m + 8 <= n_places ? 8 : 1) {
        if (m + 8 <= n_places) {
            few_block(tile, n_places, m, 8, f, 1);
        } else {
            few_block(tile, n_places, m, 1, f, 1);
        }
    }
}

#endif
