/* SPDX-License-Identifier: MIT
 * Decoders for 4 rows at once (NEON). */
#if defined(__aarch64__)
#include "backends/cpu/arm/decode_lanes128.h"

#include "backends/cpu/kernels/decode_lanes.h"

void tnd_decoders_neon(struct tnd_cpu_kernels *out)
{
    fill_decoders_q(&out->q);
    fill_decoders_f(&out->f);
    out->q.lanes = LANES;
    out->f.lanes = LANES;
}
#else
typedef int tnd_no_neon;
#endif
