/* SPDX-License-Identifier: MIT
 * What a router of experts needs beside products and soft_max: the largest values of a row, values
 * by index, sums by weights; formulas in tandem/ops.h. Results are contiguous. */
#include "ops.clh"
#include "fault.clh"

/* A work group takes a row and counts for each value how many stand before it: the larger one, of
 * equal ones the first; not-a-numbers come last. */
work_group(GROUP)
kernel void top_k(global uchar *y, ulong y_at, global const uchar *a, ulong a_at, uint k, uint ne0,
                  uint ne1, uint ne2, ulong a_nb1, ulong a_nb2, ulong a_nb3)
{
    const uint row = get_group_id(0);
    const uint matrix = row / ne1;
    global const float *x = (global const float *)(a + a_at + row % ne1 * a_nb1 +
                                                   matrix % ne2 * a_nb2 + matrix / ne2 * a_nb3);
    global int *to = (global int *)(y + y_at) + (ulong)row * k;
    for (uint i = get_local_id(0); i < ne0; i += GROUP) {
        const float value = x[i];
        uint place = 0;
        for (uint j = 0; j < ne0; j++) {
            const float other = x[j];
            const bool is_equal = other == value || (isnan(other) && isnan(value));
            place += is_equal ? j < i : isnan(value) || other > value;
        }
        if (place < k) {
            to[place] = (int)i;
        }
    }
}

/* y[i, m] = a[ids[i, m], m]; an index outside 0 .. ne0 - 1 gives the nearest value, and is noted
 * for the host: see fault.clh. */
work_group(GROUP)
kernel void gather(global uchar *y, ulong y_at, global const uchar *a, ulong a_at,
                   global const uchar *ids, ulong ids_at, global uchar *fault, ulong fault_at,
                   uint n, uint used, uint ne0, ulong a_nb1, ulong ids_nb1)
{
    const uint i = get_global_id(0);
    if (i >= n) {
        return;
    }
    const int id = ((global const int *)(ids + ids_at + i / used * ids_nb1))[i % used];
    global volatile int *told = (global volatile int *)(fault + fault_at);
    if ((id < 0 || (uint)id >= ne0) && atomic_cmpxchg(&told[FAULT_OP], 0, FAULT_GATHER) == 0) {
        note_fault(told, i, id, used, ne0);
    }
    const uint at = id < 0 ? 0 : min((uint)id, ne0 - 1);
    ((global float *)(y + y_at))[i] = ((global const float *)(a + a_at + i / used * a_nb1))[at];
}

/* y[n, m] = sum over i of weights[i, m] a[n, i, m] */
work_group(GROUP)
kernel void weighted_sum(global uchar *y, ulong y_at, global const uchar *a, ulong a_at,
                         global const uchar *weights, ulong weights_at, uint n, uint ne0, uint used,
                         ulong a_nb1, ulong a_nb2, ulong weights_nb1)
{
    const uint i = get_global_id(0);
    if (i >= n) {
        return;
    }
    const uint m = i / ne0;
    global const float *row = (global const float *)(weights + weights_at + m * weights_nb1);
    global const uchar *from = a + a_at + m * a_nb2 + i % ne0 * sizeof(float);
    float sum = 0.0f;
    for (uint u = 0; u < used; u++) {
        sum += row[u] * *(global const float *)(from + u * a_nb1);
    }
    ((global float *)(y + y_at))[i] = sum;
}
