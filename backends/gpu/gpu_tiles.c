/* SPDX-License-Identifier: MIT
 * Tile numbers: defaults, constraints, and their text. */
#include "backends/gpu/gpu_tiles.h"

#include <stddef.h>

#include "backends/gpu/gpu_gemm.h"

/* ---- what may be ---- */

void tnd_gpu_tiles_default(const struct tnd_gpu_caps *caps, struct tnd_gpu_tiles *out)
{
    if (caps->is_cpu) {
        /* On a CPU, one work-item per row, whose vectors are the lanes. Tiles in "local" memory,
         * which is ordinary memory there, are slower than the skinny kernel for all M (measured: 5
         * times). */
        *out = (struct tnd_gpu_tiles){
            .matvec_lanes = 1,
            .matvec_rows = 1,
            .skinny_lanes = 1,
            .skinny_rows = 2,
            .skinny_columns = 8,
            .skinny_most = 1 << 30,
            .tile_m = 16,
            .tile_n = 128,
            .tile_k = 32,
            .item_m = 4,
            .item_n = 8,
        };
    } else {
        *out = (struct tnd_gpu_tiles){
            .matvec_lanes = 64,
            .matvec_rows = 2,
            .skinny_lanes = 64,
            .skinny_rows = 2,
            .skinny_columns = 8,
            .skinny_most = 16,
            .tile_m = 64,
            .tile_n = 64,
            .tile_k = 32,
            .item_m = 4,
            .item_n = 4,
        };
    }
    if (!tnd_gpu_tiles_fit(caps, out)) {
        *out = (struct tnd_gpu_tiles){
            .matvec_lanes = 1,
            .matvec_rows = 1,
            .skinny_lanes = 1,
            .skinny_rows = 1,
            .skinny_columns = 4,
            .skinny_most = 1 << 30,
            .tile_m = 8,
            .tile_n = 8,
            .tile_k = 16,
            .item_m = 8,
            .item_n = 8,
        };
    }
}

static bool is_power_of_two(int32_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

/* LANES work-items with one partial sum each for all results of a group. */
static bool lanes_fit(const struct tnd_gpu_caps *caps, int32_t lanes, int32_t results)
{
    size_t local_bytes = lanes > 1 ? (size_t)lanes * (size_t)results * sizeof(float) : 0;
    return is_power_of_two(lanes) && (size_t)lanes <= caps->max_group &&
           (size_t)lanes <= caps->max_items[0] && local_bytes <= caps->local_bytes;
}

uint64_t tnd_gpu_tiles_local_bytes(const struct tnd_gpu_tiles *tiles)
{
    const uint64_t m = (uint64_t)tiles->tile_m;
    const uint64_t n = (uint64_t)tiles->tile_n;
    const uint64_t k = (uint64_t)tiles->tile_k;
    const uint64_t plain = (m + 1 + n + 1) * k; /* see tiled.clh, and tiled_mma.clh for words */
    const uint64_t words = (2 * n + 3 * m) * (k / 2 + 4) + 2 * n * (k / 16);
    return sizeof(float) * (tiles->mma != 0 && words > plain ? words : plain);
}

/* Warps of fragments of 16 rows and 8 tokens; a work-item stages the same k of all its rows. */
static bool mma_fits(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles)
{
    return caps->mma && 32 % (tiles->tile_k / 4) == 0 && tiles->item_n % 2 == 0 &&
           tiles->item_m % 2 == 0 && tiles->tile_n % (8 * tiles->item_n) == 0 &&
           tiles->tile_m % (4 * tiles->item_m) == 0;
}

static bool tile_fits(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles)
{
    if (tiles->tile_k % 16 != 0 || tiles->tile_m % tiles->item_m != 0 ||
        tiles->tile_n % tiles->item_n != 0 || (tiles->mma != 0 && !mma_fits(caps, tiles))) {
        return false;
    }
    size_t group = (size_t)tnd_gpu_tiles_group(tiles);
    return group <= caps->max_group && group <= caps->max_items[0] &&
           tnd_gpu_tiles_local_bytes(tiles) <= caps->local_bytes;
}

bool tnd_gpu_tiles_fit(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles)
{
#define OUT_OF_RANGE(member, least, most, what)                                                    \
    if (tiles->member < (least) || tiles->member > (most)) {                                       \
        return false;                                                                              \
    }
    TND_GPU_TILE_LIST(OUT_OF_RANGE)
#undef OUT_OF_RANGE
    return lanes_fit(caps, tiles->matvec_lanes, tiles->matvec_rows) &&
           (tiles->skinny_columns == 4 || tiles->skinny_columns == 8) &&
           lanes_fit(caps, tiles->skinny_lanes, tiles->skinny_rows * tiles->skinny_columns) &&
           tile_fits(caps, tiles) && tnd_gpu_gemm_fits(caps, tiles->gemm);
}

/* ---- text ---- */

static const struct tnd_number list[] = {
#define NUMBER(member, least, most, what)                                                          \
    {#member, (least), (most), offsetof(struct tnd_gpu_tiles, member)},
    TND_GPU_TILE_LIST(NUMBER)
#undef NUMBER
};
enum { N_NUMBERS = sizeof(list) / sizeof(list[0]) };

bool tnd_gpu_tiles_print(const struct tnd_gpu_tiles *tiles, const char *names,
                         char out[TND_NUMBERS_MAX])
{
    return tnd_numbers_print(list, N_NUMBERS, tiles, names, out);
}

enum tandem_status tnd_gpu_tiles_read(const char *numbers, const char *device,
                                      struct tnd_gpu_tiles *io_tiles, struct tandem_error *error)
{
    return tnd_numbers_read(list, N_NUMBERS, numbers, device, io_tiles, error);
}
