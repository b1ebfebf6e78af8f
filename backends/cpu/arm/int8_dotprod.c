/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers with SDOT. */
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#define DOT_IS_SIGNED
#define DOT(sum, w, x) vdotq_s32(sum, w, vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(128))))
#include "backends/cpu/arm/int8_dotprod.h"

void tnd_fill_int8_dotprod(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(ROWS, multiply);
}
#else
typedef int tnd_no_int8_dotprod;
#endif
