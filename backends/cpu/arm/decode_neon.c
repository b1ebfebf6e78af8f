/* SPDX-License-Identifier: MIT
 * Decoders for 4 rows at once (NEON). */
#if defined(__aarch64__)
#include "backends/cpu/arm/decode_lanes128.h"

#include "backends/cpu/kernels/decode_lanes.h"

void tnd_fill_decode_neon(struct tnd_cpu_kernels *out)
{
    fill_decoders_q(&out->q);
    fill_decoders_f(&out->f);
}
#else
typedef int tnd_no_neon;
#endif
