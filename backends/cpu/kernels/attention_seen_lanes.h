/* SPDX-License-Identifier: MIT
 * What kernels of attention_panel.h have in common, whether they multiply floats
 * (attention_lanes.h) or words: masks, and prefetching. Included by files that define PANEL_VECTORS
 * (vectors of queries in a panel), PANEL_TILE (keys or values whose sums stand in registers with
 * them) and v_between. */
#ifndef TND_ATTENTION_SEEN_LANES_H
#define TND_ATTENTION_SEEN_LANES_H

#include "backends/cpu/kernels/kernels.h"
#include "base/lanes_math.h"

enum {
    PANEL = PANEL_VECTORS * LANES,
    SUM_VECTORS = 4, /* of values */
    PANEL_ROWS =
        PANEL_TILE * PANEL_VECTORS / SUM_VECTORS /* queries whose sums are in registers at a time */
};

/* Prefetches a few cache lines of rows that are read or written soon: more at once than the core
 * can track are dropped. Returns the index of the next line. */
TND_INLINE int bring_some(const struct tnd_query_panel *panel, int at)
{
    const int end = at + 6 < panel->n_soon ? at + 6 : panel->n_soon;
    for (; at < end; at++) {
        __builtin_prefetch(panel->soon[at], 1, 3);
    }
    return at;
}

/* Caps and masks scores from key j on, and finds the largest. */
TND_INLINE void mask_all(const struct tnd_query_panel *panel, int j, vec *largest,
                         const int n_vectors)
{
    for (; j < panel->n_keys; j++) {
        const bool is_masked = j >= panel->n_seen;
        float *s = panel->scores + j * PANEL;
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            const int at = v * LANES;
            vec x = v_load(s + at);
            if (panel->cap > 0.0f) {
                x = v_mul(v_set(panel->cap), tnd_vec_tanh(x));
                v_store(s + at, x);
            }
            if (is_masked && panel->mask != NULL) {
                x = v_add(x, v_load(panel->mask + j * PANEL + at));
                v_store(s + at, x);
            } else if (is_masked) {
                x = v_between(x, panel->orders[j], panel->first + at, panel->last + at);
                v_store(s + at, x);
            }
            largest[v] = v_max(x, largest[v]); /* NaN does not count */
        }
    }
}

/* Number of keys up to the last one that any of these queries sees: the weights of later ones are
 * 0. */
static inline int keys_of_rows(const struct tnd_query_panel *panel, int r, int n_rows)
{
    int n = panel->n_keys;
    if (panel->orders == NULL) {
        return n;
    }
    int32_t last = panel->last[r];
    for (int k = 1; k < n_rows; k++) {
        last = panel->last[r + k] > last ? panel->last[r + k] : last;
    }
    while (n > panel->n_seen && panel->orders[n - 1] > last) {
        n--;
    }
    return n;
}

#endif
