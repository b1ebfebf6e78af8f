/* SPDX-License-Identifier: MIT
 * Products of experts with many tokens each: as tiled.cl, the tokens of a tile are those of one
 * expert. */
struct columns {
    local const ulong *places;
};

ulong x_place(struct columns columns, uint c)
{
    return columns.places[c];
}

#include "tiled.clh"
#include "experts.clh"

/* As many tokens as the work-items take at a time, and again. */
static uint whole_steps(uint n_pairs)
{
    return (n_pairs + COLUMN_STEP - 1) / COLUMN_STEP * COLUMN_STEP;
}

work_group(GROUP_ITEMS)
kernel void
experts_tiled(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at, global uchar *y,
              ulong y_at, global const uchar *groups, ulong groups_at, uint k, uint n, uint n_pairs,
              uint used, uint experts, uint x_used, ulong w_nb2, ulong x_nb1, ulong x_nb2)
{
    shared struct staged staged;
    shared ulong places[TILE_M];
    uint item = (uint)get_local_id(0);
    uint row = (uint)get_group_id(0) * TILE_N;
    struct tile tile;
    struct columns columns = {places};
    global float *to = (global float *)(y + y_at);
    float sums[ITEM_M][ITEM_N];
    read_tile(groups + groups_at, n_pairs, (uint)get_group_id(1), &tile);
    for (uint c = item; c < TILE_M; c += GROUP_ITEMS) {
        places[c] = x_of_pair(pair_of(&tile, c), used, x_used, x_nb1, x_nb2);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    add_tile(w + w_at + tile.expert % experts * w_nb2, (global const float *)(x + x_at),
             tile.expert < experts ? k : 0, row, n, columns, whole_steps(tile.n_pairs),
             &staged, sums);
#pragma unroll
    for (uint c = 0; c < ITEM_M; c++) {
        uint at_column = column_of(item, c);
        ulong y_row = (ulong)pair_of(&tile, at_column) * n;
#pragma unroll
        for (uint r = 0; r < ITEM_N; r++) {
            uint at_row = row + row_of(item, r);
            if (at_row < n && at_column < tile.n_pairs) {
                to[y_row + at_row] = sums[c][r];
            }
        }
    }
}
