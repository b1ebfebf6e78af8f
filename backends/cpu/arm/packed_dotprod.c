/* SPDX-License-Identifier: MIT
 * Products of packed weights with ARM's dot product of bytes. */
#if defined(__ARM_FEATURE_DOTPROD)
#include "backends/cpu/arm/dot_dotprod.h"

#include "backends/cpu/arm/packed_lanes128.h"

void tnd_fill_packed_dotprod(struct tnd_cpu_kernels *out)
{
    fill_packed(out);
}
#else
typedef int tnd_no_dotprod;
#endif
