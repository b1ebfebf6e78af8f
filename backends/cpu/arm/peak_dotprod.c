/* SPDX-License-Identifier: MIT
 * Peak of ARM's dot product of bytes. */
#if defined(__ARM_FEATURE_DOTPROD)
#define PEAK_W     int8x16_t
#define PEAK_SET   vdupq_n_s8
#define PEAK_DOT   vdotq_s32
#define PEAK_MADDS 16
#include "backends/cpu/arm/peak_int8.h"

void tnd_peaks_fill_dotprod(struct tnd_peaks *out)
{
    out->int8 = int8_peak;
    out->int8_unit = "int8 dotprod";
}
#else
typedef int tnd_no_dotprod;
#endif
