/* SPDX-License-Identifier: MIT
 * Prepares panels before they are needed; detects caches that were truncated. */
#include "backends/cpu/packing/packed_weights.h"
#include "base/tnd_mapped.h"

void tnd_packed_weight_finish(const struct tnd_kernels_q *kernels,
                              const struct tnd_packed_weight *packed, int64_t row, int64_t n_rows)
{
    int64_t per_matrix = tnd_packed_matrix_panels(packed);
    struct tnd_packed_weight all = *packed;
    all.n = INT64_MAX; /* panels are numbered through all matrices */
    for (int64_t end = row + n_rows; row < end;) {
        int64_t in_matrix = row % packed->matrix_rows;
        int64_t i = row / packed->matrix_rows * per_matrix + in_matrix / packed->panel_rows;
        (void)tnd_packed_panel(kernels, &all, i); /* reads the whole panel */
        int64_t next = (in_matrix / packed->panel_rows + 1) * packed->panel_rows;
        row += tnd_min(next, packed->matrix_rows) - in_matrix;
    }
}

enum tandem_status tnd_packed_weight_check(const struct tnd_packed_weight *packed,
                                           struct tandem_error *error)
{
    if (!packed->is_cached) {
        return TANDEM_OK;
    }
    if (atomic_load_explicit(&packed->states->is_lost, memory_order_relaxed)) {
        return tnd_error_set(error, TANDEM_E_FILE, packed->name, 0, 0,
                             "packed weights: '%.64s' is damaged, and the system has no memory to "
                             "pack it anew",
                             packed->name);
    }
    if (!tnd_mapped_has_faults()) {
        return TANDEM_OK;
    }
    size_t panels = (size_t)(tnd_packed_matrix_panels(packed) * packed->matrices);
    return tandem_mapped_check(packed->panels, panels * packed->panel_bytes, error);
}
