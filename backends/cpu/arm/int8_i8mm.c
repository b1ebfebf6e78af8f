/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers with USDOT, whose first operand is unsigned. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include <arm_neon.h>

#define DOT(sum, w, x) vusdotq_s32(sum, x, w)
#include "backends/cpu/arm/int8_dotprod.h"

void tnd_fill_int8_i8mm(struct tnd_cpu_kernels *out)
{
    out->int8 = INT8_KERNELS(ROWS, multiply);
}
#else
typedef int tnd_no_int8_i8mm;
#endif
