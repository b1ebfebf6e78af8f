/* SPDX-License-Identifier: MIT
 * Products of packed weights by ARM's matrix product of bytes. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "backends/cpu/arm/dot_i8mm.h"

#include "backends/cpu/arm/packed_lanes128.h"

bool tnd_packed_kernels_i8mm(enum tandem_type type, struct tnd_packed_kernels *out)
{
    return find_kernels(type, out);
}
#else
typedef int tnd_no_i8mm;
#endif
