/* SPDX-License-Identifier: MIT
 * Integer kernels for ARM CPUs with dot products of bytes (dotprod). */
#if defined(__ARM_FEATURE_DOTPROD)
#include "backends/cpu/arm/dot_dotprod.h"

#define PANELS_Q 2
#define TOKENS_Q 4

#include "backends/cpu/arm/gemm_lanes128.h"

void tnd_fill_gemm_dotprod(struct tnd_cpu_kernels *out)
{
    fill_gemm_q(&out->q);
    out->isa_q = "dotprod";
}
#else
typedef int tnd_no_dotprod;
#endif
