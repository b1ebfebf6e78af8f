/* SPDX-License-Identifier: MIT
 * X(member, "DEFINE", what): small integers that distinguish variants of a program. Each line adds
 * a member to struct tnd_gpu_variant and -DDEFINE=value for its kernels; a member that is 0 defines
 * nothing. The type of weights is separate (tnd_gpu_variant.type). */
#define TND_GPU_OPTION_LIST(X)                                                                     \
    X(rows, "ROWS", "rows of W of a work-item or group")                                           \
    X(columns, "COLUMNS", "columns of X (tokens) of a work-item or group")                         \
    X(tile_m, "TILE_M", "tokens of a tile")                                                        \
    X(tile_n, "TILE_N", "rows of W of a tile")                                                     \
    X(tile_k, "TILE_K", "depth of a tile")                                                         \
    X(item_m, "ITEM_M", "tokens of a work-item in a tile")                                         \
    X(item_n, "ITEM_N", "rows of W of a work-item in a tile")                                      \
    X(group, "GROUP", "work-items of a group")                                                     \
    X(lanes, "LANES", "work-items that share a row")                                               \
    X(aligned, "ALIGNED", "matrices begin at multiples of 16 bytes, k is one of 16")               \
    X(use_subgroups, "USE_SUBGROUPS", "sums by subgroup functions")                                \
    X(to_half, "TO_HALF", "results are half")                                                      \
    X(use_mma, "USE_MMA", "products of tiles on tensor cores")                                     \
    X(flags, "FLAGS", "bits of the source's own meaning")
