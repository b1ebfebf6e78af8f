/* SPDX-License-Identifier: MIT
 * Sorts the pairs of products of experts by expert and cuts them into tiles (experts.clh). */
#include "ops.clh"
#include "experts.clh"

/* One group. `tile`: pairs of a tile at most; `counts` and `firsts` have a member for each expert and
 * one for nobody. The order of an expert's pairs is left to chance: no result depends on it. */
work_group(GROUP)
kernel void group_experts(global const uchar *ids, ulong ids_at, global uchar *groups,
                          ulong groups_at, global uchar *fault, ulong fault_at, ulong ids_nb1,
                          uint n_pairs, uint used, uint experts, uint tile, uint n_tiles,
                          local int *counts, local int *firsts)
{
    const uint item = get_local_id(0);
    global uint *order = (global uint *)(groups + groups_at);
    global uint *tiles = order + n_pairs;
    global volatile int *told = (global volatile int *)(fault + fault_at);
    shared uint n_used;
    ids += ids_at;
    counts = local_argument(counts);
    firsts = local_argument(firsts);
    for (uint e = item; e <= experts; e += GROUP) {
        counts[e] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < n_pairs; i += GROUP) {
        atomic_inc(&counts[expert_of(ids, ids_nb1, i, used, experts, told, true)]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) { /* firsts: of the tiles; counts: of the pairs */
        uint pair = 0;
        uint first = 0;
        for (uint e = 0; e <= experts; e++) {
            const uint n = (uint)counts[e];
            counts[e] = (int)pair;
            firsts[e] = (int)first;
            pair += n;
            first += (n + tile - 1) / tile;
        }
        n_used = first;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = item; e <= experts; e += GROUP) {
        uint begin = (uint)counts[e];
        const uint end = e < experts ? (uint)counts[e + 1] : n_pairs;
        for (uint i = (uint)firsts[e]; begin < end; i++, begin += tile) {
            tiles[i * TILE_WORDS + TILE_EXPERT] = e;
            tiles[i * TILE_WORDS + TILE_FIRST] = begin;
            tiles[i * TILE_WORDS + TILE_PAIRS] = min(tile, end - begin);
        }
    }
    for (uint i = n_used + item; i < n_tiles; i += GROUP) {
        tiles[i * TILE_WORDS + TILE_EXPERT] = experts;
        tiles[i * TILE_WORDS + TILE_FIRST] = 0;
        tiles[i * TILE_WORDS + TILE_PAIRS] = 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = item; i < n_pairs; i += GROUP) {
        const uint e = expert_of(ids, ids_nb1, i, used, experts, told, false);
        order[atomic_inc(&counts[e])] = i;
    }
}
