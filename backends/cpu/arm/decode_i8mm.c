/* SPDX-License-Identifier: MIT
 * Decoders for the matrix instructions of gemm_i8mm.c, which take 8 values of two rows: of each two
 * steps, the codes of rows 0 and 1 come first, then those of rows 2 and 3. Scales stay one per
 * lane. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "backends/cpu/arm/decode_lanes128.h"

#define v_codes zip_rows

TND_INLINE void v_pair(vec a, vec b, vec out[2])
{
    out[0] = vzip1q_u32(a, b);
    out[1] = vzip2q_u32(a, b);
}

#include "backends/cpu/kernels/decode_lanes.h"

void tnd_fill_decode_i8mm(struct tnd_cpu_kernels *out)
{
    fill_decoders_q(&out->q);
    fill_decoders_f(&out->f);
}
#else
typedef int tnd_no_i8mm;
#endif
