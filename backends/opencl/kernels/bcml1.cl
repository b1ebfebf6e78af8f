/* SPDX-License-Identifier: MIT
 * BCML1 in panels of 64 rows (bcml1.clh): made from rows of blocks, to floats, and products with
 * few tokens. A work-item is a row, so that a group reads whole panels' words side by side. Built
 * with TYPE_bcml1 and FLAGS=1; products with many tokens are those of tiled.cl. */
#include "decode.clh"

/* Rows of blocks to panels; rows behind the last become zeros. Global: rows up to a whole panel,
 * columns. */
work_group(PANEL_ROWS)
kernel void
bcml1_pack(global const uchar *rows, ulong rows_at, global uchar *panels, ulong panels_at, uint n,
           uint columns)
{
    uint row = (uint)get_global_id(0);
    uint column = (uint)get_global_id(1);
    global uint *to = (global uint *)panel_block(panels + panels_at, row, column, columns);
    global const uchar *from = rows + rows_at + ((ulong)row * columns + column) * BLOCK_BYTES;
#pragma unroll
    for (uint word = 0; word < BLOCK_BYTES / 4; word++) {
        to[word * PANEL_ROWS] = row < n ? u32_at(from + 4 * word) : 0;
    }
}

/* The 32 values of a block. */
void decode_block(global const uint *block, float *values)
{
    float2 line = vload_half2(0, (global const half *)block);
#pragma unroll
    for (uint j = 0; j < 4; j++) {
        uint word = block[(j + 1) * PANEL_ROWS];
        vstore4(levels4(nibbles4(word & 0xFFFFu)) * line.x + line.y, 2 * j, values);
        vstore4(levels4(nibbles4(word >> 16)) * line.x + line.y, 2 * j + 1, values);
    }
}

/* To rows of floats (halves with TO_HALF). A group takes a column of a panel and turns it over in
 * local memory, so that reading and writing both go along. */
work_group(PANEL_ROWS)
kernel void
bcml1_dequantize(global const uchar *w, ulong w_at, global uchar *y, ulong y_at, uint k,
                 uint row_begin, uint row_end)
{
    shared float turned[PANEL_ROWS][BLOCK_VALUES + 1];
    uint item = (uint)get_local_id(0);
    uint first = (row_begin / PANEL_ROWS + (uint)get_group_id(0)) * PANEL_ROWS;
    uint column = (uint)get_group_id(1);
    float values[BLOCK_VALUES];
    decode_block(panel_block(w + w_at, first + item, column, k / BLOCK_VALUES), values);
#pragma unroll
    for (uint v = 0; v < BLOCK_VALUES; v++) {
        turned[item][v] = values[v];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < PANEL_ROWS * BLOCK_VALUES; i += PANEL_ROWS) {
        uint row = first + i / BLOCK_VALUES;
        ulong at = (ulong)row * k + column * BLOCK_VALUES + i % BLOCK_VALUES;
        if (row >= row_begin && row < row_end) {
            float value = turned[i / BLOCK_VALUES][i % BLOCK_VALUES];
#ifdef TO_HALF
            vstore_half_rte(value, at, (global half *)(y + y_at));
#else
            ((global float *)(y + y_at))[at] = value;
#endif
        }
    }
}

#if defined(GROUP) && defined(COLUMNS)
#define SHARES (GROUP / PANEL_ROWS) /* work-items of a row, each with every SHARES-th block */
#define STAGED_BLOCKS (64 / COLUMNS)
#define STAGED_QUADS (STAGED_BLOCKS * (BLOCK_VALUES / 4))
#else /* built for the other kernels */
#define GROUP PANEL_ROWS
#define COLUMNS 1
#define SHARES 1
#define STAGED_BLOCKS 1
#define STAGED_QUADS 8
#endif

/* Y {n, m} = X {k, m} * W {k, n}, COLUMNS tokens at a time: 1, 2, 4, 8 or 16. Activations are
 * staged, with the sums of each 32, which the offset of a block multiplies:
 * sum (q * multiplier + offset) * x = multiplier * sum q * x + offset * sum x. */
work_group(GROUP)
kernel void
bcml1_matvec(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at, global uchar *y,
             ulong y_at, uint k, uint n, uint m, uint row_begin, uint row_end)
{
    shared float4 staged[COLUMNS * STAGED_QUADS]; /* {STAGED_QUADS, COLUMNS} */
    shared float quad_sums[COLUMNS * STAGED_QUADS];
    shared float block_sums[COLUMNS * STAGED_BLOCKS];
    shared float shares[GROUP];
    uint item = (uint)get_local_id(0);
    uint share = item / PANEL_ROWS;
    uint row = (row_begin / PANEL_ROWS + (uint)get_group_id(0)) * PANEL_ROWS + item % PANEL_ROWS;
    uint token = (uint)get_group_id(1) * COLUMNS;
    uint columns = k / BLOCK_VALUES;
    global const float *from = (global const float *)(x + x_at);
    global float *to = (global float *)(y + y_at);
    float sums[COLUMNS];
#pragma unroll
    for (uint c = 0; c < COLUMNS; c++) {
        sums[c] = 0.0f;
    }
    for (uint first = 0; first < columns; first += STAGED_BLOCKS) {
        uint n_blocks = min(columns - first, (uint)STAGED_BLOCKS);
        for (uint i = item; i < COLUMNS * STAGED_QUADS; i += GROUP) {
            uint quad = i % STAGED_QUADS;
            uint t = token + i / STAGED_QUADS;
            float4 values = 0.0f;
            if (quad < n_blocks * (BLOCK_VALUES / 4) && t < m) {
                values = vload4(0, from + (ulong)t * k + first * BLOCK_VALUES + quad * 4);
            }
            staged[i] = values;
            quad_sums[i] = (values.x + values.y) + (values.z + values.w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint i = item; i < COLUMNS * STAGED_BLOCKS; i += GROUP) {
            local const float *quads = quad_sums + i * (BLOCK_VALUES / 4);
            block_sums[i] = ((quads[0] + quads[1]) + (quads[2] + quads[3])) +
                            ((quads[4] + quads[5]) + (quads[6] + quads[7]));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint b = share; b < n_blocks; b += SHARES) {
            global const uint *block = panel_block(w + w_at, row, first + b, columns);
            float2 line = vload_half2(0, (global const half *)block);
            float dots[COLUMNS];
#pragma unroll
            for (uint c = 0; c < COLUMNS; c++) {
                dots[c] = 0.0f;
            }
#pragma unroll
            for (uint j = 0; j < 4; j++) {
                uint word = block[(j + 1) * PANEL_ROWS];
                float4 low = levels4(nibbles4(word & 0xFFFFu));
                float4 high = levels4(nibbles4(word >> 16));
#pragma unroll
                for (uint c = 0; c < COLUMNS; c++) {
                    local const float4 *values = staged + c * STAGED_QUADS + b * 8 + 2 * j;
                    dots[c] += dot(low, values[0]) + dot(high, values[1]);
                }
            }
#pragma unroll
            for (uint c = 0; c < COLUMNS; c++) {
                float offset = line.y * block_sums[c * STAGED_BLOCKS + b];
                sums[c] += mad(line.x, dots[c], offset);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (uint c = 0; c < COLUMNS; c++) {
        float sum = sums[c];
#if SHARES > 1
        shares[item] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint s = 1; s < SHARES && share == 0; s++) {
            sum += shares[item + s * PANEL_ROWS];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#endif
        if (share == 0 && row >= row_begin && row < row_end && token + c < m) {
            to[(ulong)(token + c) * n + row] = sum;
        }
    }
}
