/* SPDX-License-Identifier: MIT
 * Products of packed weights with ARM's matrix product of bytes. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "backends/cpu/arm/dot_i8mm.h"

#include "backends/cpu/arm/packed_lanes128.h"

void tnd_fill_packed_i8mm(struct tnd_cpu_kernels *out)
{
    fill_packed(out);
}
#else
typedef int tnd_no_i8mm;
#endif
