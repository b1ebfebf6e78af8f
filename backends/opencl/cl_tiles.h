/* SPDX-License-Identifier: MIT
 * Tile numbers of the matrix products of one device: what they may be, what they are before anyone
 * has measured, and their form in files. cl_tune.c finds better ones. */
#ifndef TND_CL_TILES_H
#define TND_CL_TILES_H

#include "backends/opencl/cl-tile-list.h"
#include "backends/opencl/cl_device.h"
#include "base/text.h"

enum { TND_CL_TILES_VERSION = 1 };

struct tnd_cl_tiles {
#define TND_CL_TILE_MEMBER(member, least, most, what) int32_t member;
    TND_CL_TILE_LIST(TND_CL_TILE_MEMBER)
#undef TND_CL_TILE_MEMBER
};

/** Numbers that work on any device with these capabilities. */
void tnd_cl_tiles_default(const struct tnd_cl_caps *caps, struct tnd_cl_tiles *out);

/** Whether kernels can be built with these numbers, and a device can run them. */
bool tnd_cl_tiles_fit(const struct tnd_cl_caps *caps, const struct tnd_cl_tiles *tiles);

/** Work-items of a group of the tiled kernel. */
static inline int tnd_cl_tiles_group(const struct tnd_cl_tiles *tiles)
{
    return tiles->tile_m / tiles->item_m * (tiles->tile_n / tiles->item_n);
}

/** The contents of a tune file, and back. `source` names it in messages. What is read lies in the
 *  list's ranges, nothing more: ask tnd_cl_tiles_fit. Errors: FORMAT. */
void tnd_cl_tiles_print(const struct tnd_cl_tiles *tiles, const char *device,
                        struct tnd_text *text);
enum tandem_status tnd_cl_tiles_read(const void *bytes, size_t n, const char *source,
                                     struct tnd_cl_tiles *out, struct tandem_error *error);

#endif
