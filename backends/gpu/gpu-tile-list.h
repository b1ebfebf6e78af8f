/* SPDX-License-Identifier: MIT
 * X(member, least, most, what): the tile numbers of a device. Each row adds a member to struct
 * tnd_gpu_tiles and a name in the timing table; gpu_tune.c has the candidates. */
#define TND_GPU_TILE_LIST(X)                                                                       \
    X(matvec_lanes, 1, 256, "M = 1: work-items that share rows of W; 1: each has its own")         \
    X(matvec_rows, 1, 8, "M = 1: rows of W of a group")                                            \
    X(skinny_lanes, 1, 256, "few tokens: work-items that share rows of W")                         \
    X(skinny_rows, 1, 4, "few tokens: rows of W of a group")                                       \
    X(skinny_columns, 4, 8, "few tokens: tokens that a group decodes for (4 when M is at most 4)") \
    X(skinny_most, 1, 1 << 30, "few tokens: the largest M, more are tiled")                        \
    X(tile_m, 8, 256, "tiled: tokens of a group")                                                  \
    X(tile_n, 8, 256, "tiled: rows of W of a group")                                               \
    X(tile_k, 16, 64, "tiled: depth in local memory")                                              \
    X(item_m, 1, 8, "tiled: tokens of a work-item")                                                \
    X(item_n, 1, 8, "tiled: rows of W of a work-item")                                             \
    X(mma, 0, 1, "tiled, 1: on tensor cores; a warp has 8 * item_n rows, 4 * item_m tokens")       \
    X(gemm, 0, 63, "CLBlast: row of our parameters, 0: its own")                                   \
    X(half_most, 0, 1 << 30, "library: the largest K multiplied in half precision")                \
    X(graphs, 0, 1, "launches, 1: in graphs, where the driver has them")
