/* SPDX-License-Identifier: MIT
 * Products of experts with few tokens each: as matvec.cl, the tokens of a group of work-items are
 * those of one expert. FLAGS=2: one token, whose experts are read from `groups`, which are the
 * indices then; COLUMNS is 1. */
#include "matvec.clh"
#include "experts.clh"

#ifndef FLAGS
#define FLAGS 0
#endif

work_group(LANES)
kernel void
experts_matvec(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at,
               global uchar *y, ulong y_at, global const uchar *groups, ulong groups_at,
               global uchar *fault, ulong fault_at, uint k, uint n, uint n_pairs, uint used,
               uint experts, uint x_used, ulong w_nb2, ulong x_nb1, ulong x_nb2)
{
    uint lane = (uint)get_local_id(0);
    uint row = (uint)get_group_id(0) * ROWS;
    uint at = (uint)get_group_id(1);
    global float *to = (global float *)(y + y_at);
    uint rows[ROWS];
    ulong columns[COLUMNS];
    sum_type sums[ROWS][COLUMNS];
#if FLAGS == 2
    struct tile tile = {0, 1, 0, at};
    tile.expert = expert_of(groups + groups_at, 0, at, used, experts,
                            (global volatile int *)(fault + fault_at), row + lane == 0);
#else
    struct tile tile;
    read_tile(groups + groups_at, n_pairs, at, &tile);
#endif
#pragma unroll
    for (uint c = 0; c < COLUMNS; c++) {
        columns[c] = x_of_pair(pair_of(&tile, c), used, x_used, x_nb1, x_nb2);
    }
#pragma unroll
    for (uint r = 0; r < ROWS; r++) {
        rows[r] = min(row + r, n - 1);
    }
    add_products(w + w_at + tile.expert % experts * w_nb2, (global const float *)(x + x_at),
                 tile.expert < experts ? k : 0, rows, columns, lane, sums);
#if LANES == 1
    for (uint c = 0; c < COLUMNS && c < tile.n_pairs; c++) {
        for (uint r = 0; r < ROWS && row + r < n; r++) {
            to[(ulong)pair_of(&tile, c) * n + row + r] = total(sums[r][c]);
        }
    }
#else
    shared float parts[ROWS * COLUMNS][LANES];
    uint n_parts = add_lanes(sums, lane, parts);
    for (uint i = lane; i < ROWS * COLUMNS; i += LANES) {
        float sum = sum_of(parts[i], n_parts);
        if (row + i / COLUMNS < n && i % COLUMNS < tile.n_pairs) {
            to[(ulong)pair_of(&tile, i % COLUMNS) * n + row + i / COLUMNS] = sum;
        }
    }
#endif
}
