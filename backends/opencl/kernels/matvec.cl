/* SPDX-License-Identifier: MIT
 * Products with few tokens: Y {n, m} = X {k, m} * W {k, n}, weights decoded in registers, each
 * part once for COLUMNS tokens. A group of LANES work-items makes ROWS rows for COLUMNS tokens; its
 * lanes take the units of the rows in turn and add up their sums at the end, in an order that
 * depends on LANES alone. LANES=1 suits CPUs: a work-item for itself, sums in vectors. */
#include "decode.clh"

#if defined(USE_SUBGROUPS) && USE_SUBGROUPS == 2
/* Subgroups of one work-item, to test on devices that have none. */
#define get_num_sub_groups()       LANES
#define get_sub_group_id()         get_local_id(0)
#define get_sub_group_local_id()   0
#define sub_group_reduce_add(value) (value)
#elif defined(USE_SUBGROUPS) && defined(HAVE_INTEL_SUBGROUPS)
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#elif defined(USE_SUBGROUPS)
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#endif

#if LANES == 1
typedef float16 sum_type;

sum_type add_products(sum_type sum, float16 a, float16 b)
{
    return mad(a, b, sum);
}

float total(sum_type sum)
{
    float8 eight = sum.lo + sum.hi;
    float4 four = eight.lo + eight.hi;
    return (four.x + four.z) + (four.y + four.w);
}
#else
typedef float sum_type;

/* Four chains, so that one addition need not wait for the other. */
sum_type add_products(sum_type sum, float16 a, float16 b)
{
    float4 four = a.s0123 * b.s0123;
    four = mad(a.s4567, b.s4567, four);
    four = mad(a.s89ab, b.s89ab, four);
    four = mad(a.scdef, b.scdef, four);
    return sum + ((four.x + four.y) + (four.z + four.w));
}
#endif

kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void
matvec(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at, global uchar *y,
       ulong y_at, uint k, uint n, uint m, uint row_begin, uint row_end)
{
    uint lane = (uint)get_local_id(0);
    uint row = row_begin + (uint)get_group_id(0) * ROWS;
    uint column = (uint)get_group_id(1) * COLUMNS;
    global const float *from = (global const float *)(x + x_at);
    global float *to = (global float *)(y + y_at);
    uint rows[ROWS]; /* rows and tokens behind the last are the last once more, and not stored */
    ulong columns[COLUMNS];
    sum_type sums[ROWS][COLUMNS];
    w += w_at;
#pragma unroll
    for (uint c = 0; c < COLUMNS; c++) {
        columns[c] = (ulong)min(column + c, m - 1) * k;
    }
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        rows[r] = min(row + r, row_end - 1);
#pragma unroll
        for (uint c = 0; c < COLUMNS; c++) {
            sums[r][c] = 0.0f;
        }
    }
    for (uint u = lane; u < units_in_row(k); u += LANES) {
#pragma unroll
        for (uint j = 0; j < UNIT_PARTS; j++) {
            uint part = unit_part(u, j);
            float16 values[COLUMNS];
#pragma unroll
            for (uint c = 0; c < COLUMNS; c++) {
                values[c] = x16(from + columns[c], part, k);
            }
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                float16 weights = weight16(w, rows[r], part, k);
#pragma unroll
                for (uint c = 0; c < COLUMNS; c++) {
                    sums[r][c] = add_products(sums[r][c], weights, values[c]);
                }
            }
        }
    }
#if LANES == 1
    for (uint r = 0; r < ROWS && row + r < row_end; r++) {
        for (uint c = 0; c < COLUMNS && column + c < m; c++) {
            to[(ulong)(column + c) * n + row + r] = total(sums[r][c]);
        }
    }
#else
    local float parts[ROWS * COLUMNS][LANES];
#ifdef USE_SUBGROUPS
    uint n_parts = get_num_sub_groups();
#pragma unroll
    for (uint i = 0; i < ROWS * COLUMNS; i++) {
        float sum = sub_group_reduce_add(sums[i / COLUMNS][i % COLUMNS]);
        if (get_sub_group_local_id() == 0) {
            parts[i][get_sub_group_id()] = sum;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    uint n_parts = 1;
#pragma unroll
    for (uint i = 0; i < ROWS * COLUMNS; i++) {
        parts[i][lane] = sums[i / COLUMNS][i % COLUMNS];
    }
    for (uint half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < half_lanes) {
#pragma unroll
            for (uint i = 0; i < ROWS * COLUMNS; i++) {
                parts[i][lane] += parts[i][lane + half_lanes];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    for (uint i = lane; i < ROWS * COLUMNS; i += LANES) {
        float sum = parts[i][0];
        for (uint part = 1; part < n_parts; part++) {
            sum += parts[i][part];
        }
        if (row + i / COLUMNS < row_end && column + i % COLUMNS < m) {
            to[(ulong)(column + i % COLUMNS) * n + row + i / COLUMNS] = sum;
        }
    }
#endif
}
