/* SPDX-License-Identifier: MIT
 * Products with many tokens: Y {n, m} = X {k, m} * W {k, n} in tiles. A group makes TILE_N rows of
 * W times TILE_M tokens; it decodes TILE_K values of each row to local memory once, and each of
 * its work-items multiplies ITEM_N rows by ITEM_M tokens in registers. Each result is one sum in
 * the order of k. With TYPE_f32 this is the plain F32 product. */
#include "decode.clh"

#define GROUP_N (TILE_N / ITEM_N)
#define GROUP_M (TILE_M / ITEM_M)
#define GROUP_ITEMS (GROUP_N * GROUP_M)
#define TILE_QUADS (TILE_K / 4)

kernel __attribute__((reqd_work_group_size(GROUP_ITEMS, 1, 1))) void
tiled(global const uchar *w, ulong w_at, global const uchar *x, ulong x_at, global uchar *y,
      ulong y_at, uint k, uint n, uint m, uint row_begin, uint row_end)
{
    /* Neighbours write neighbouring quads of k, a row apart: one more column keeps them in
     * different banks. */
    local float w_tile[TILE_K][TILE_N + 1];
    local float x_tile[TILE_K][TILE_M + 1];
    uint item = (uint)get_local_id(0);
    uint item_n = item % GROUP_N; /* its rows: item_n, item_n + GROUP_N, ... */
    uint item_m = item / GROUP_N;
    uint row = row_begin + (uint)get_group_id(0) * TILE_N;
    uint column = (uint)get_group_id(1) * TILE_M;
    global const float *from = (global const float *)(x + x_at);
    global float *to = (global float *)(y + y_at);
    float sums[ITEM_M][ITEM_N];
#pragma unroll
    for (uint c = 0; c < ITEM_M; c++) {
#pragma unroll
        for (uint r = 0; r < ITEM_N; r++) {
            sums[c][r] = 0.0f;
        }
    }
    w += w_at;
    for (uint first = 0; first < k; first += TILE_K) {
        for (uint i = item; i < TILE_N * TILE_QUADS; i += GROUP_ITEMS) {
            uint r = i / TILE_QUADS;
            uint v = i % TILE_QUADS * 4;
            float4 values = 0.0f;
            if (first + v < k) {
                values = weight4(w, min(row + r, row_end - 1), first + v, k);
            }
            w_tile[v][r] = values.x;
            w_tile[v + 1][r] = values.y;
            w_tile[v + 2][r] = values.z;
            w_tile[v + 3][r] = values.w;
        }
        for (uint i = item; i < TILE_M * TILE_QUADS; i += GROUP_ITEMS) {
            uint c = i / TILE_QUADS;
            uint v = i % TILE_QUADS * 4;
            float4 values = 0.0f;
            if (first + v < k) {
                values = x4(from + (ulong)min(column + c, m - 1) * k, first + v, k);
            }
            x_tile[v][c] = values.x;
            x_tile[v + 1][c] = values.y;
            x_tile[v + 2][c] = values.z;
            x_tile[v + 3][c] = values.w;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint v = 0; v < TILE_K; v++) {
            float weights[ITEM_N];
#pragma unroll
            for (uint r = 0; r < ITEM_N; r++) {
                weights[r] = w_tile[v][item_n + r * GROUP_N];
            }
#pragma unroll
            for (uint c = 0; c < ITEM_M; c++) {
                float value = x_tile[v][item_m + c * GROUP_M];
#pragma unroll
                for (uint r = 0; r < ITEM_N; r++) {
                    sums[c][r] = mad(weights[r], value, sums[c][r]);
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#pragma unroll
    for (uint c = 0; c < ITEM_M; c++) {
        uint at_column = column + item_m + c * GROUP_M;
#pragma unroll
        for (uint r = 0; r < ITEM_N; r++) {
            uint at_row = row + item_n + r * GROUP_N;
            if (at_row < row_end && at_column < m) {
                to[(ulong)at_column * n + at_row] = sums[c][r];
            }
        }
    }
}
