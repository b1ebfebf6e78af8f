/* SPDX-License-Identifier: MIT
 * Products with few tokens: Y {n, m} = X {k, m} * W {k, n}; how is in matvec.clh. */
#include "matvec.clh"

work_group(LANES)
kernel void
matvec(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at, global uchar *y,
       ulong y_at, uint k, uint n, uint m, uint row_begin, uint row_end)
{
    uint lane = (uint)get_local_id(0);
    uint row = row_begin + (uint)get_group_id(0) * ROWS;
    uint column = (uint)get_group_id(1) * COLUMNS;
    global float *to = (global float *)(y + y_at);
    uint rows[ROWS]; /* rows and tokens behind the last are the last once more, and not stored */
    ulong columns[COLUMNS];
    sum_type sums[ROWS][COLUMNS];
#pragma unroll
    for (uint c = 0; c < COLUMNS; c++) {
        columns[c] = (ulong)min(column + c, m - 1) * k;
    }
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        rows[r] = min(row + r, row_end - 1);
    }
    add_products(w + w_at, (global const float *)(x + x_at), k, rows, columns, lane, sums);
#if LANES == 1
    for (uint r = 0; r < ROWS && row + r < row_end; r++) {
        for (uint c = 0; c < COLUMNS && column + c < m; c++) {
            to[(ulong)(column + c) * n + row + r] = total(sums[r][c]);
        }
    }
#else
    shared float parts[ROWS * COLUMNS][LANES];
    uint n_parts = add_lanes(sums, lane, parts);
    for (uint i = lane; i < ROWS * COLUMNS; i += LANES) {
        float sum = sum_of(parts[i], n_parts);
        if (row + i / COLUMNS < row_end && column + i % COLUMNS < m) {
            to[(ulong)(column + i % COLUMNS) * n + row + i / COLUMNS] = sum;
        }
    }
#endif
}
