/* SPDX-License-Identifier: MIT
 * The smallest kernel: y[i] = x[i] * factor + offset. Tests run it to see that programs, arguments
 * and queue work. */
#ifndef FLAGS
#define FLAGS 0
#endif

kernel void smoke(global const uchar *x, ulong x_at, global uchar *y, ulong y_at,
                  local float *staged, float factor, int offset, uint n)
{
    global const float *in = (global const float *)(x + x_at);
    global float *out = (global float *)(y + y_at);
    uint i = get_global_id(0);
    staged = local_argument(staged);
    staged[get_local_id(0)] = i < n ? in[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) {
        out[i] = staged[get_local_id(0)] * factor + (float)(offset + FLAGS);
    }
}
