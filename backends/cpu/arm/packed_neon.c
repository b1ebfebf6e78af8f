/* SPDX-License-Identifier: MIT
 * Products of packed weights with baseline NEON instructions. */
#if defined(__aarch64__)
#include "backends/cpu/arm/dot_neon.h"

#include "backends/cpu/arm/packed_lanes128.h"

void tnd_fill_packed_neon(struct tnd_cpu_kernels *out)
{
    fill_packed(out);
}
#else
typedef int tnd_no_neon;
#endif
