/* SPDX-License-Identifier: MIT
 * The panel layout of BCML1 in plain C, the reference for kernels. */
#include "backends/gpu/bcml1_panels.h"

#include <string.h>

#include "base/checked.h"

enum { BLOCK_VALUES = 32, BLOCK_BYTES = 20, WORD = 4 };

size_t tnd_bcml1_panel_bytes(int64_t n, int64_t k)
{
    size_t bytes = 0;
    if (n < 0 || k < 0 || k % BLOCK_VALUES != 0) {
        return 0;
    }
    uint64_t panels = ((uint64_t)n + TND_PANEL_ROWS - 1) / TND_PANEL_ROWS;
    uint64_t columns = (uint64_t)k / BLOCK_VALUES;
    if (panels > SIZE_MAX || columns > SIZE_MAX ||
        !tnd_mul_size((size_t)panels, (size_t)columns, &bytes) ||
        !tnd_mul_size(bytes, TND_PANEL_COLUMN_BYTES, &bytes)) {
        return 0;
    }
    return bytes;
}

/* Offset of a block's header in the panels, in bytes. */
static size_t header_at(int64_t row, int64_t column, int64_t columns)
{
    size_t place = (size_t)(row / TND_PANEL_ROWS * columns + column);
    return place * TND_PANEL_COLUMN_BYTES + (size_t)(row % TND_PANEL_ROWS) * WORD;
}

void tnd_bcml1_to_panels(const void *rows, int64_t n, int64_t k, void *panels)
{
    const int64_t columns = k / BLOCK_VALUES;
    const char *from = rows;
    memset(panels, 0, tnd_bcml1_panel_bytes(n, k));
    for (int64_t row = 0; row < n; row++) {
        for (int64_t column = 0; column < columns; column++, from += BLOCK_BYTES) {
            char *to = (char *)panels + header_at(row, column, columns);
            for (int word = 0; word < BLOCK_BYTES / WORD; word++) {
                memcpy(to + word * TND_PANEL_ROWS * WORD, from + word * WORD, WORD);
            }
        }
    }
}

void tnd_bcml1_from_panels(const void *panels, int64_t n, int64_t k, void *rows)
{
    const int64_t columns = k / BLOCK_VALUES;
    char *to = rows;
    for (int64_t row = 0; row < n; row++) {
        for (int64_t column = 0; column < columns; column++, to += BLOCK_BYTES) {
            const char *from = (const char *)panels + header_at(row, column, columns);
            for (int word = 0; word < BLOCK_BYTES / WORD; word++) {
                memcpy(to + word * WORD, from + word * TND_PANEL_ROWS * WORD, WORD);
            }
        }
    }
}
