/* SPDX-License-Identifier: MIT
 * Products with few tokens: Y {n, m} = X {k, m} * W {k, n}, weights decoded in registers, once for
 * COLUMNS tokens. A group of LANES work-items makes ROWS rows for COLUMNS tokens; four lanes share a
 * unit, each has a quad of each of its parts, so that neighbours read neighbouring bytes of W and
 * X. Their sums are added up at the end, in an order that depends on LANES alone. Scales are
 * applied to sums of levels: sum (level * scale - min) * x = scale * sum level * x - min * sum x.
 * LANES=1 suits CPUs: a work-item for itself, parts and sums in vectors. */
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

float total(sum_type sum)
{
    float8 eight = sum.lo + sum.hi;
    float4 four = eight.lo + eight.hi;
    return (four.x + four.z) + (four.y + four.w);
}
#else
typedef float sum_type;

float dot4(float4 a, float4 b)
{
    return mad(a.x, b.x, a.y * b.y) + mad(a.z, b.z, a.w * b.w);
}

float sum4(float4 a)
{
    return (a.x + a.y) + (a.z + a.w);
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
#if LANES == 1
    for (uint u = 0; u < units_in_row(k); u++) {
#pragma unroll
        for (uint j = 0; j < UNIT_PARTS; j++) {
            uint part = unit_part(u, j);
            float16 weights[ROWS];
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
                weights[r] = weight16(w, rows[r], part, k);
            }
#pragma unroll
            for (uint c = 0; c < COLUMNS; c++) {
                float16 values = x16(from + columns[c], part, k);
#pragma unroll
                for (uint r = 0; r < ROWS; r++) {
                    sums[r][c] = mad(weights[r], values, sums[r][c]);
                }
            }
        }
    }
#else
    for (uint i = lane; i < units_in_row(k) * 4; i += LANES) {
#pragma unroll
        for (uint j = 0; j < UNIT_PARTS; j++) {
            uint part = unit_part(i / 4, j);
            uint at = part * 16 + i % 4 * 4;
            float4 weights[ROWS];
#ifdef QUAD_LINES
            float2 lines[ROWS];
#endif
#pragma unroll
            for (uint r = 0; r < ROWS; r++) {
#ifdef QUAD_LINES
                global const uchar *block = block_at(w, rows[r], part, k);
                weights[r] = quad_levels(block, part % BLOCK_PARTS, i % 4);
                lines[r] = quad_line(block, part % BLOCK_PARTS);
#else
                weights[r] = weight4(w, rows[r], at, k);
#endif
            }
#pragma unroll
            for (uint c = 0; c < COLUMNS; c++) {
                float4 values = x4(from + columns[c], at, k);
#ifdef QUAD_LINES
                float sum = sum4(values);
#endif
#pragma unroll
                for (uint r = 0; r < ROWS; r++) {
#ifdef QUAD_LINES
                    float product = mad(lines[r].x, dot4(weights[r], values), -lines[r].y * sum);
#else
                    float product = dot4(weights[r], values);
#endif
                    sums[r][c] += product;
                }
            }
        }
    }
#endif
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
