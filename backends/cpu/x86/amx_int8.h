/* SPDX-License-Identifier: MIT
 * Products of 8-bit integers on AMX tiles, real or emulated: up to 32 rows by two panels, whose
 * layout suits tiles (ggml-like/conv_int8.h). */
#ifndef TND_AMX_INT8_H
#define TND_AMX_INT8_H

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/x86/amx_tiles.h"

enum { INT8_LINE = TND_INT8_TILE * (int)sizeof(int32_t) }; /* bytes per row of sums */

/* Tiles 0 to 3: sums, by rows and panel; 4 and 5: rows of x; 6 and 7: panels. Reads and writes
 * whole tiles of rows, for which there must be memory. */
static void amx_int8_multiply(const struct tnd_int8_tile *tile)
{
    const bool two_rows = tile->n_rows > TILE_ROWS;
    const bool two_panels = tile->n_panels > 1;
    const uint8_t *x = tile->x;
    const int8_t *w = tile->w;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t k = 0; k < tile->k; k += TILE_ROW_BYTES, w += TILE_BYTES) {
        TILE_LOAD(4, x + k, tile->x_stride);
        TILE_LOAD(6, w, TILE_ROW_BYTES);
        TILE_DOT_U8S8(0, 4, 6);
        if (two_panels) {
            TILE_LOAD(7, w + tile->w_panel, TILE_ROW_BYTES);
            TILE_DOT_U8S8(1, 4, 7);
        }
        if (two_rows) {
            TILE_LOAD(5, x + TILE_ROWS * tile->x_stride + k, tile->x_stride);
            TILE_DOT_U8S8(2, 5, 6);
        }
        if (two_rows && two_panels) {
            TILE_DOT_U8S8(3, 5, 7);
        }
    }
    TILE_STORE(0, tile->sums, INT8_LINE);
    TILE_STORE(1, tile->sums + TND_INT8_PANEL, INT8_LINE);
    TILE_STORE(2, tile->sums + TILE_ROWS * TND_INT8_TILE, INT8_LINE);
    TILE_STORE(3, tile->sums + TILE_ROWS * TND_INT8_TILE + TND_INT8_PANEL, INT8_LINE);
}

/* Only replaces `multiply`; the kernels that finish sums stay. */
static void fill_amx_int8(struct tnd_cpu_kernels *out)
{
    out->int8.rows = TND_INT8_ROWS;
    out->int8.panels = TND_INT8_PANELS;
    out->int8.step = TILE_ROW_BYTES;
    out->int8.multiply = amx_int8_multiply;
    out->int8.begin = out->amx.begin;
    out->int8.end = out->amx.end;
}

#endif
