/* SPDX-License-Identifier: MIT
 * Integer kernels for ARM CPUs with matrix products of bytes (i8mm). */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "backends/cpu/arm/dot_i8mm.h"

#define PANELS_Q 2
#define TOKENS_Q 4

#include "backends/cpu/arm/gemm_lanes128.h"

void tnd_fill_gemm_i8mm(struct tnd_cpu_kernels *out)
{
    fill_gemm_q(&out->q);
    out->isa_q = "i8mm";
}
#else
typedef int tnd_no_i8mm;
#endif
