/* SPDX-License-Identifier: MIT
 * Products with many tokens: Y {n, m} = X {k, m} * W {k, n} in tiles; how is in tiled.clh. With
 * TYPE_f32 this is the plain F32 product. */
struct columns {
    uint first, m, k; /* tokens behind the last are the last once more, and not stored */
};

ulong x_place(struct columns columns, uint c)
{
    return (ulong)min(columns.first + c, columns.m - 1) * columns.k;
}

#include "tiled.clh"

work_group(GROUP_ITEMS)
kernel void
tiled(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at, global uchar *y,
      ulong y_at, uint k, uint n, uint m, uint row_begin, uint row_end)
{
    shared struct staged staged;
    uint item = (uint)get_local_id(0);
    uint row = row_begin + (uint)get_group_id(0) * TILE_N;
    uint column = (uint)get_group_id(1) * TILE_M;
    struct columns columns = {column, m, k};
    global float *to = (global float *)(y + y_at);
    float sums[ITEM_M][ITEM_N];
    add_tile(w + w_at, (global const float *)(x + x_at), k, row, row_end, columns, TILE_M,
             &staged, sums);
#pragma unroll
    for (uint c = 0; c < ITEM_M; c++) {
        uint at_column = column + column_of(item, c);
        if (at_column >= m) {
            continue;
        }
        global float *values = to + (ulong)at_column * n;
#pragma unroll
        for (uint r = 0; r < ITEM_N; r++) {
            uint at_row = row + row_of(item, r);
            if (at_row < row_end) {
                values[at_row] = sums[c][r];
            }
        }
    }
}
