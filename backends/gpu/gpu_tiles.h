/* SPDX-License-Identifier: MIT
 * Tile numbers of a device's matrix products: valid values, defaults, and their form in timing
 * tables. gpu_tune.c measures others. */
#ifndef TND_GPU_TILES_H
#define TND_GPU_TILES_H

#include "backends/gpu/gpu-tile-list.h"
#include "backends/gpu/gpu_device.h"
#include "backends/tuner.h"

struct tnd_gpu_tiles {
#define TND_GPU_TILE_MEMBER(member, least, most, what) int32_t member;
    TND_GPU_TILE_LIST(TND_GPU_TILE_MEMBER)
#undef TND_GPU_TILE_MEMBER
};

/** Numbers that work on any device with these capabilities. */
void tnd_gpu_tiles_default(const struct tnd_gpu_caps *caps, struct tnd_gpu_tiles *out);

/** Whether kernels can be built with these numbers and the device can run them. */
bool tnd_gpu_tiles_fit(const struct tnd_gpu_caps *caps, const struct tnd_gpu_tiles *tiles);

/** Work-items per group of the tiled kernel. */
static inline int tnd_gpu_tiles_group(const struct tnd_gpu_tiles *tiles)
{
    return tiles->tile_m / tiles->item_m * (tiles->tile_n / tiles->item_n);
}

/** Bytes of local memory per group of the tiled kernel, with or without tensor cores. */
uint64_t tnd_gpu_tiles_local_bytes(const struct tnd_gpu_tiles *tiles);

/** Prints and parses numbers (tnd_numbers_print, tnd_numbers_read). Parsed numbers are only
 * checked against the list's ranges: call tnd_gpu_tiles_fit. */
bool tnd_gpu_tiles_print(const struct tnd_gpu_tiles *tiles, const char *names,
                         char out[TND_NUMBERS_MAX]);
enum tandem_status tnd_gpu_tiles_read(const char *numbers, const char *device,
                                      struct tnd_gpu_tiles *io_tiles, struct tandem_error *error);

#endif
