/* SPDX-License-Identifier: MIT
 * Operations along rows: norms, soft_max, rotary embedding; formulas in tandem/ops.h. A work group
 * takes a row, but for the embedding, which has no sums. Results are contiguous F32. */
#include "ops.clh"

/* Sum over the work group, for everybody. */
static float group_sum(local float *scratch, float value)
{
    const uint item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_count = GROUP / 2; half_count > 0; half_count /= 2) {
        if (item < half_count) {
            scratch[item] += scratch[item + half_count];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float result = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

/* Largest number (not-a-numbers are passed over) over the work group, for everybody. */
static float group_largest(local float *scratch, float value)
{
    const uint item = get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_count = GROUP / 2; half_count > 0; half_count /= 2) {
        if (item < half_count) {
            scratch[item] = fmax(scratch[item], scratch[item + half_count]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float result = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

/* Row of a strided operand that the work group takes. */
static global const float *row_of(global const uchar *a, uint row, uint ne1, uint ne2, ulong nb1,
                                  ulong nb2, ulong nb3)
{
    const uint matrix = row / ne1;
    const uint i3 = matrix / ne2;
    return (global const float *)(a + (row - matrix * ne1) * nb1 + (matrix - i3 * ne2) * nb2 +
                                  i3 * nb3);
}

/* (a - shift) / sqrt(mean((a - shift)^2) + eps); the shift is the mean, or 0 (rms). */
work_group(GROUP)
kernel void norm_rows(global uchar *y, ulong y_at, global const uchar *a, ulong a_at,
                      uint has_shift, float eps, uint ne0, uint ne1, uint ne2, ulong a_nb1,
                      ulong a_nb2, ulong a_nb3)
{
    shared float scratch[GROUP];
    const uint row = get_group_id(0);
    global const float *x = row_of(a + a_at, row, ne1, ne2, a_nb1, a_nb2, a_nb3);
    global float *to = (global float *)(y + y_at) + (ulong)row * ne0;
    float shift = 0.0f;
    if (has_shift != 0) {
        float sum = 0.0f;
        for (uint i = get_local_id(0); i < ne0; i += GROUP) {
            sum += x[i];
        }
        shift = group_sum(scratch, sum) / (float)ne0;
    }
    float squares = 0.0f;
    for (uint i = get_local_id(0); i < ne0; i += GROUP) {
        const float value = x[i] - shift;
        squares += value * value;
    }
    const float factor = 1.0f / sqrt(group_sum(scratch, squares) / (float)ne0 + eps);
    for (uint i = get_local_id(0); i < ne0; i += GROUP) {
        to[i] = (x[i] - shift) * factor;
    }
}

/* soft_max(a * scale + mask). A row without a number above -infinity gives zeros. */
work_group(GROUP)
kernel void soft_max_rows(global uchar *y, ulong y_at, global const uchar *a, ulong a_at,
                          global const uchar *mask, ulong mask_at, uint has_mask, float scale,
                          uint ne0, uint ne1, uint ne2, ulong a_nb1, ulong a_nb2, ulong a_nb3,
                          ulong mask_nb1)
{
    shared float scratch[GROUP];
    const uint row = get_group_id(0);
    global const float *x = row_of(a + a_at, row, ne1, ne2, a_nb1, a_nb2, a_nb3);
    global const float *add = (global const float *)(mask + mask_at + (row % ne1) * mask_nb1);
    global float *to = (global float *)(y + y_at) + (ulong)row * ne0;
    float largest = -INFINITY;
    for (uint i = get_local_id(0); i < ne0; i += GROUP) {
        const float score = x[i] * scale + (has_mask != 0 ? add[i] : 0.0f);
        largest = fmax(largest, score);
        to[i] = score; /* read again by the same work item only */
    }
    largest = group_largest(scratch, largest);
    const bool is_empty = largest == -INFINITY;
    float sum = 0.0f;
    for (uint i = get_local_id(0); i < ne0; i += GROUP) {
        const float score = to[i];
        const float weight = is_empty ? (isnan(score) ? score : 0.0f) : exp(score - largest);
        sum += weight;
        to[i] = weight;
    }
    const float factor = is_empty ? 1.0f : 1.0f / group_sum(scratch, sum);
    for (uint i = get_local_id(0); i < ne0; i += GROUP) {
        to[i] *= factor;
    }
}

/* position * freq_scale * 2^-(pair * step) / factor, less whole turns. step_high + step_low is
 * 2 log2(freq_base) / n_rot. */
static float angle_of(int position, uint pair, float step_high, float step_low, float freq_scale,
                      float factor)
{
#ifdef HAVE_FP64
    const double exponent = (double)pair * ((double)step_high + (double)step_low);
    const double angle =
        (double)position * (double)freq_scale * exp2(-exponent) / (double)factor;
    const double turns = angle * 0.15915494309189533577;
    return (float)((turns - rint(turns)) * 6.28318530717958647693);
#else
    /* The exponent in two floats: an error in it would be an error of every angle. */
    const float high = (float)pair * step_high;
    const float low = fma((float)pair, step_high, -high) + (float)pair * step_low;
    const float whole = floor(high);
    const float frequency = ldexp(exp2(-((high - whole) + low)), -(int)whole);
    return (float)position * freq_scale * (frequency / factor);
#endif
}

/* Work item: a pair of a row, or one of the values behind the pairs. */
work_group(GROUP)
kernel void rope_rows(global uchar *y, ulong y_at, global const uchar *a, ulong a_at,
                      global const uchar *positions, ulong positions_at,
                      global const uchar *factors, ulong factors_at, uint has_factors,
                      uint is_adjacent, uint n, uint n_pairs, float step_high, float step_low,
                      float freq_scale, uint ne0, uint ne1, uint ne2, ulong a_nb1, ulong a_nb2,
                      ulong a_nb3)
{
    const uint per_row = ne0 - n_pairs;
    const uint item = get_global_id(0);
    if (item >= n) {
        return;
    }
    const uint row = item / per_row;
    const uint i = item - row * per_row;
    global const float *x = row_of(a + a_at, row, ne1, ne2, a_nb1, a_nb2, a_nb3);
    global float *to = (global float *)(y + y_at) + (ulong)row * ne0;
    if (i >= n_pairs) {
        to[n_pairs + i] = x[n_pairs + i];
        return;
    }
    const int position = ((global const int *)(positions + positions_at))[row / ne1 % ne2];
    const float factor =
        has_factors != 0 ? ((global const float *)(factors + factors_at))[i] : 1.0f;
    const float angle = angle_of(position, i, step_high, step_low, freq_scale, factor);
    const uint first = is_adjacent != 0 ? 2 * i : i;
    const uint second = is_adjacent != 0 ? first + 1 : first + n_pairs;
    float cosine;
    const float sine = sincos(angle, &cosine);
    const float x0 = x[first];
    const float x1 = x[second];
    to[first] = x0 * cosine - x1 * sine;
    to[second] = x0 * sine + x1 * cosine;
}
