/* SPDX-License-Identifier: MIT
 * BCML1 as devices read it: panels of 64 rows of W {k, n}. Column c of a panel holds the blocks of
 * values 32 c .. 32 c + 31 of its rows, 1280 bytes, in 32-bit words (row 0 .. 63 fastest):
 *
 *      0   64 headers: multiplier (low half) and offset (high half) of row 0, of row 1, ...
 *    256   word 0 of the 64 payloads: values 0..7, four bits each, the first one lowest
 *    512   word 1: values 8..15
 *    768   word 2: values 16..23
 *   1024   word 3: values 24..31
 *
 * The columns of a panel lie one behind the other, then the next panel follows. The last panel is
 * filled up with zeros. Devices make it by the kernel bcml1_pack; this is the plain form of it. */
#ifndef TND_BCML1_PANELS_H
#define TND_BCML1_PANELS_H

#include <stddef.h>
#include <stdint.h>

enum { TND_PANEL_ROWS = 64, TND_PANEL_COLUMN_BYTES = 1280 };

/** Size of the panels of a matrix of n rows of k values, in bytes; 0 if k is not a multiple of 32,
 * or too large. */
size_t tnd_bcml1_panel_bytes(int64_t n, int64_t k);

/** Converts rows of blocks to panels. */
void tnd_bcml1_to_panels(const void *rows, int64_t n, int64_t k, void *panels);

/** Converts panels to rows of blocks. */
void tnd_bcml1_from_panels(const void *panels, int64_t n, int64_t k, void *rows);

#endif
