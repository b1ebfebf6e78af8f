/* SPDX-License-Identifier: MIT
 * Products of packed weights by the first instructions of NEON. */
#if defined(__aarch64__)
#include "backends/cpu/arm/dot_neon.h"

#include "backends/cpu/arm/packed_lanes128.h"

bool tnd_packed_kernels_neon(enum tandem_type type, struct tnd_packed_kernels *out)
{
    return find_kernels(type, out);
}
#else
typedef int tnd_no_neon;
#endif
