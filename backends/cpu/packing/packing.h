/* SPDX-License-Identifier: MIT
 * Packing of weights, and sizes of packed weights. The layouts are those of kernels/packed.h and
 * kernels/packed_float.h. Knows no instruction set and no storage of weights. */
#ifndef TND_PACKING_H
#define TND_PACKING_H

#include "backends/cpu/kernels/kernels.h"

/** Values of K and bytes per unit; 0 for a type without a packed form. */
int tnd_packed_unit_values(enum tandem_type type);
size_t tnd_packed_unit_bytes(enum tandem_type type);
/** Bytes of a panel of rows with k values. */
size_t tnd_packed_panel_bytes(enum tandem_type type, int64_t k);

/** Packs n_rows (1..16, missing ones become zeros) rows of k values, row_bytes apart. */
void tnd_pack_panel(const struct tnd_kernels_q *kernels, enum tandem_type type, const uint8_t *rows,
                    size_t row_bytes, int n_rows, int64_t k, uint8_t *out);

/** As tnd_pack_panel, for float types: a panel of 1..32 rows, of which values begin to end - 1 go
 * to `out`. Prefetches the following values. */
void tnd_pack_panel_f(enum tandem_type type, const uint8_t *rows, size_t row_bytes, int n_rows,
                      int64_t begin, int64_t end, uint8_t *out);

#endif
