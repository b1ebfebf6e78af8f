/* SPDX-License-Identifier: MIT
 * Rows of a matrix by index, as F32. */
#include "ops.clh"
#include "fault.clh"
#ifndef TYPE_i32
#include "decode.clh"
#endif

/* Work item: 16 values of a row, integers as they are. For an index outside 0 .. v - 1 the nearest
 * row is read, never memory outside the matrix; it is noted for the host: see fault.clh. */
work_group(GROUP)
kernel void get_rows(global uchar *y, ulong y_at, global const uchar *w, ulong w_at,
                     global const uchar *ids, ulong ids_at, global uchar *fault, ulong fault_at,
                     uint n, uint k, uint row_parts, uint v,
                     ulong w_nb1)
{
    const uint item = get_global_id(0);
    if (item >= n) {
        return;
    }
    const uint m = item / row_parts;
    const uint part = item - m * row_parts;
    const int id = ((global const int *)(ids + ids_at))[m];
    global volatile int *told = (global volatile int *)(fault + fault_at);
    if ((id < 0 || (uint)id >= v) && atomic_cmpxchg(&told[FAULT_OP], 0, FAULT_GET_ROWS) == 0) {
        note_fault(told, m, id, 0, v);
    }
    const uint row = id < 0 ? 0 : min((uint)id, v - 1);
    global const uchar *from = w + w_at + row * w_nb1;
    global float *to = (global float *)(y + y_at) + (ulong)m * k + part * 16;
#ifdef TYPE_i32
    const uint end = min(k - part * 16, 16u);
    for (uint i = 0; i < end; i++) {
        ((global int *)to)[i] = ((global const int *)from)[part * 16 + i];
    }
#elif defined(FLOAT_TYPE)
    const uint end = min(k - part * 16, 16u);
    for (uint i = 0; i < end; i++) {
        to[i] = value_at(from, part * 16 + i);
    }
#else
    vstore16(decode16(from + (ulong)(part / BLOCK_PARTS) * BLOCK_BYTES, part % BLOCK_PARTS), 0, to);
#endif
}
