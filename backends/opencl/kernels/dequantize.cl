/* SPDX-License-Identifier: MIT
 * Weights to floats: rows of W {k, n} to rows of {k, n} F32 (or F16 with TO_HALF), whole matrix,
 * row-major. A work-item makes one part of 16 values. */
#include "decode.clh"

kernel void dequantize(global const uchar *w, ulong w_at, global uchar *y, ulong y_at, uint k,
                       uint row_begin, uint row_end)
{
    uint part = (uint)get_global_id(0);
    uint row = row_begin + (uint)get_global_id(1);
    if (part * 16 >= k || row >= row_end) {
        return;
    }
    float16 values = weight16(w + w_at, row, part, k);
    ulong at = (ulong)row * k + part * 16;
#ifdef TO_HALF
    global half *out = (global half *)(y + y_at) + at;
#else
    global float *out = (global float *)(y + y_at) + at;
#endif
#ifdef HAVE_TAILS
    if (part * 16 + 16 > k) {
        for (uint i = 0; part * 16 + i < k; i++) {
#ifdef TO_HALF
            vstore_half_rte(((float *)&values)[i], i, out);
#else
            out[i] = ((float *)&values)[i];
#endif
        }
        return;
    }
#endif
#ifdef TO_HALF
    vstore_half16_rte(values, 0, out);
#else
    vstore16(values, 0, out);
#endif
}
