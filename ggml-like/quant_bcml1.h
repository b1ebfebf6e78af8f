/* SPDX-License-Identifier: MIT
 * The compressor of BCML1 for each instruction set. tnd_quantize_BCML1 of quant.h selects the
 * fastest one that the CPU supports; all of them give the same bits. */
#ifndef TND_QUANT_BCML1_H
#define TND_QUANT_BCML1_H

#include <stdint.h>

/** `n` values, a multiple of 32, into blocks of 20 bytes. */
void tnd_quantize_bcml1_scalar(const float *src, void *dst, int64_t n);

/** The same with AVX2; needs TND_CPU_SET_AVX2. Only on x86-64. */
void tnd_quantize_bcml1_avx2(const float *src, void *dst, int64_t n);

#endif
