/* SPDX-License-Identifier: MIT
 * Products of packed weights by ARM's dot product of bytes. */
#if defined(__ARM_FEATURE_DOTPROD)
#include "backends/cpu/arm/dot_dotprod.h"

#include "backends/cpu/arm/packed_lanes128.h"

bool tnd_packed_kernels_dotprod(enum tandem_type type, struct tnd_packed_kernels *out)
{
    return find_kernels(type, out);
}
#else
typedef int tnd_no_dotprod;
#endif
