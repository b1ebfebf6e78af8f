/* SPDX-License-Identifier: MIT
 * Peak of ARM's matrix product of bytes. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define PEAK_W     uint8x16_t
#define PEAK_SET   vdupq_n_u8
#define PEAK_DOT   vusmmlaq_s32
#define PEAK_MADDS 32
#include "backends/cpu/arm/peak_int8.h"

void tnd_peaks_fill_i8mm(struct tnd_peaks *out)
{
    out->int8 = int8_peak;
    out->int8_unit = "int8 i8mm";
}
#else
typedef int tnd_no_i8mm;
#endif
