/* SPDX-License-Identifier: MIT
 * The kernels of attention_panel.h written once for every width of vectors; included by the files
 * vec_<isa>.c behind vec_lanes.h. They also define PANEL_VECTORS (vectors of queries in a panel),
 * PANEL_TILE (keys or values whose sums stand in registers with them), and v_zip_low, v_zip_high
 * and v_between. */
#ifndef TND_ATTENTION_LANES_H
#define TND_ATTENTION_LANES_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/attention_seen_lanes.h"

/* ---- rows into lanes ---- */

/* Exchanges vectors and lanes: each round rotates the bits of (vector, lane) by one place. */
TND_INLINE void exchange(vec x[LANES])
{
    TND_UNROLL
    for (int round = 1; round < LANES; round *= 2) {
        vec y[LANES];
        TND_UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = v_zip_low(x[i], x[i + LANES / 2]);
            y[2 * i + 1] = v_zip_high(x[i], x[i + LANES / 2]);
        }
        memcpy(x, y, sizeof(y));
    }
}

/* LANES values, or `rest` of them, of LANES rows or n_rows of them into lanes. */
TND_INLINE void transpose_block(const float *const *rows, int n_rows, int64_t i, int rest, vec f,
                                float *y)
{
    vec x[LANES];
    TND_UNROLL
    for (int l = 0; l < LANES; l++) {
        x[l] = l < n_rows ? v_mul(v_load_part(rows[l] + i, rest), f) : v_set(0.0f);
    }
    exchange(x);
    TND_UNROLL
    for (int l = 0; l < LANES; l++) {
        if (l < rest) {
            v_store(y + (i + l) * PANEL, x[l]);
        }
    }
}

static void panel_transpose(const float *const *rows, int n_rows, int64_t n, float factor, float *y)
{
    const vec f = v_set(factor);
    for (int r = 0; r < n_rows; r += LANES) {
        int64_t i = 0;
        for (; i + LANES <= n && r + LANES <= n_rows; i += LANES) {
            transpose_block(rows + r, LANES, i, LANES, f, y + r);
        }
        for (; i < n; i += LANES) {
            const int rest = (int)(n - i < LANES ? n - i : LANES);
            transpose_block(rows + r, n_rows - r, i, rest, f, y + r);
        }
    }
}

static void panel_finish(const struct tnd_query_panel *panel, float *const *rows)
{
    for (int r = 0; r < panel->n_queries; r++) {
        const float *sums = panel->sums + r * panel->value_stride;
        const vec f = v_set(panel->weight[r] == 0.0f ? 0.0f : 1.0f / panel->weight[r]);
        for (int64_t i = 0; i < panel->value; i += LANES) {
            const int rest = (int)(panel->value - i < LANES ? panel->value - i : LANES);
            v_store_part(rows[r] + i, rest, v_mul(v_load(sums + i), f));
        }
    }
}

/* ---- scores ---- */

/* Scores of `n_keys` keys and n_vectors vectors of queries, over `n` values of the head. Raises
 * `largest`, if there is one. */
TND_INLINE void scores_tile(const float *queries, const float *keys, int64_t n, bool continues,
                            float *scores, float *largest, const int n_keys, const int n_vectors)
{
    vec sum[PANEL_TILE][PANEL_VECTORS];
    TND_UNROLL
    for (int j = 0; j < n_keys; j++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[j][v] = continues ? v_load(scores + j * PANEL + v * LANES) : v_set(0.0f);
        }
    }
    for (int64_t i = 0; i < n; i++, queries += PANEL, keys++) {
        vec q[PANEL_VECTORS];
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            q[v] = v_load(queries + v * LANES);
        }
        TND_UNROLL
        for (int j = 0; j < n_keys; j++) {
            const vec k = v_set(keys[j * TND_KEY_BLOCK]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[j][v] = v_fmadd(k, q[v], sum[j][v]);
            }
        }
    }
    TND_UNROLL
    for (int j = 0; j < n_keys; j++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            v_store(scores + j * PANEL + v * LANES, sum[j][v]);
        }
    }
    if (largest == NULL) {
        return;
    }
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        vec most = v_load(largest + v * LANES);
        TND_UNROLL
        for (int j = 0; j < n_keys; j++) {
            most = v_max(sum[j][v], most); /* NaN does not count */
        }
        v_store(largest + v * LANES, most);
    }
}

/* The scores of a panel and the tile in hand. Keys that all queries see, as they are, raise
 * panel->largest here: *out_done from the first one on. */
TND_INLINE int scores_all(const struct tnd_query_panel *panel, int *out_done, const int n_vectors)
{
    const float *keys = panel->keys;
    const int n_seen = panel->cap > 0.0f ? 0 : panel->n_seen;
    int soon = 0;
    *out_done = 0;
    for (int64_t i = 0; i < panel->head; i += TND_KEY_BLOCK, keys += TND_KEY_BLOCK * TND_KEYS) {
        const int64_t n = panel->head - i < TND_KEY_BLOCK ? panel->head - i : TND_KEY_BLOCK;
        const int n_done = i + n == panel->head ? n_seen : 0;
        const float *q = panel->queries + i * PANEL;
        float *scores = panel->scores;
        int j = 0;
        for (; j + PANEL_TILE <= panel->n_keys; j += PANEL_TILE) {
            const bool is_done = j + PANEL_TILE <= n_done;
            scores_tile(q, keys + j * TND_KEY_BLOCK, n, i > 0, scores + j * PANEL,
                        is_done ? panel->largest : NULL, PANEL_TILE, n_vectors);
            *out_done += is_done ? PANEL_TILE : 0;
            soon = bring_some(panel, soon);
        }
        for (; j + PANEL_TILE / 2 <= panel->n_keys; j += PANEL_TILE / 2) {
            scores_tile(q, keys + j * TND_KEY_BLOCK, n, i > 0, scores + j * PANEL, NULL,
                        PANEL_TILE / 2, n_vectors);
        }
        for (; j < panel->n_keys; j++) {
            scores_tile(q, keys + j * TND_KEY_BLOCK, n, i > 0, scores + j * PANEL, NULL, 1,
                        n_vectors);
        }
    }
    return soon;
}

/* ---- weights ---- */

/* Turns scores into weights. Sets the factors of the present sums after a change of the largest
 * score: {panel}, which holds the previous largest score on entry. */
TND_INLINE void weigh_all(const struct tnd_query_panel *panel, int n_done, float *shrinks,
                          const int n_vectors)
{
    vec largest[PANEL_VECTORS], shift[PANEL_VECTORS], weight[PANEL_VECTORS], shrink[PANEL_VECTORS];
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        largest[v] = v_load(panel->largest + v * LANES);
    }
    mask_all(panel, n_done, largest, n_vectors);
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        const int at = v * LANES;
        /* nothing seen yet: -infinity less 0, not less itself */
        shift[v] = v_max(largest[v], v_set(-FLT_MAX));
        shrink[v] = tnd_vec_exp_below(v_sub(v_load(shrinks + at), shift[v]));
        weight[v] = v_set(0.0f);
        v_store(panel->largest + at, largest[v]);
        v_store(shrinks + at, shrink[v]);
    }
    for (int j = 0; j < panel->n_keys; j++) {
        float *s = panel->scores + j * PANEL;
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            const vec x = tnd_vec_exp_below(v_sub(v_load(s + v * LANES), shift[v]));
            weight[v] = v_add(weight[v], x);
            v_store(s + v * LANES, x);
        }
    }
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        float *w = panel->weight + v * LANES;
        v_store(w, v_fmadd(v_load(w), shrink[v], weight[v]));
    }
}

/* ---- sums ---- */

/* Weighted sums of the values, for n_rows queries from r on and n_vectors vectors of the values
 * from i on. Lanes are values here, so that results need not be transposed. */
TND_INLINE void sums_tile(const struct tnd_query_panel *panel, int r, int n_keys, int64_t i,
                          const float *shrinks, const int n_rows, const int n_vectors)
{
    vec sum[PANEL_ROWS][SUM_VECTORS];
    float *y = panel->sums + r * panel->value_stride + i;
    const float *values = panel->values + i;
    const float *weights = panel->scores + r;
    TND_UNROLL
    for (int k = 0; k < n_rows; k++) {
        const vec shrink = v_set(shrinks[r + k]);
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[k][v] = panel->is_first
                            ? v_set(0.0f)
                            : v_mul(v_load(y + k * panel->value_stride + v * LANES), shrink);
        }
    }
    for (int j = 0; j < n_keys; j++, values += panel->value_stride, weights += PANEL) {
        vec w[PANEL_ROWS];
        TND_UNROLL
        for (int k = 0; k < n_rows; k++) {
            w[k] = v_set(weights[k]);
        }
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            const vec x = v_load(values + v * LANES);
            TND_UNROLL
            for (int k = 0; k < n_rows; k++) {
                sum[k][v] = v_fmadd(w[k], x, sum[k][v]);
            }
        }
    }
    TND_UNROLL
    for (int k = 0; k < n_rows; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            v_store(y + k * panel->value_stride + v * LANES, sum[k][v]);
        }
    }
}

TND_INLINE int sums_rows(const struct tnd_query_panel *panel, int r, const float *shrinks, int soon,
                         const int n_rows)
{
    const int n_keys = keys_of_rows(panel, r, n_rows);
    int64_t i = 0;
    for (; i + SUM_VECTORS * LANES <= panel->value; i += SUM_VECTORS * LANES) {
        sums_tile(panel, r, n_keys, i, shrinks, n_rows, SUM_VECTORS);
        soon = bring_some(panel, soon);
    }
    for (; i < panel->value; i += LANES) {
        sums_tile(panel, r, n_keys, i, shrinks, n_rows, 1);
    }
    return soon;
}

static void sums_all(const struct tnd_query_panel *panel, const float *shrinks, int soon)
{
    int r = 0;
    for (; r + PANEL_ROWS <= panel->n_queries; r += PANEL_ROWS) {
        soon = sums_rows(panel, r, shrinks, soon, PANEL_ROWS);
    }
    for (; r + 2 <= panel->n_queries; r += 2) {
        soon = sums_rows(panel, r, shrinks, soon, 2);
    }
    for (; r < panel->n_queries; r++) {
        soon = sums_rows(panel, r, shrinks, soon, 1);
    }
}

TND_INLINE void attend(const struct tnd_query_panel *panel, const int n_vectors)
{
    float shrinks[PANEL];
    int n_done;
    memcpy(shrinks, panel->largest, sizeof(shrinks));
    const int soon = scores_all(panel, &n_done, n_vectors);
    weigh_all(panel, n_done, shrinks, n_vectors);
    sums_all(panel, shrinks, soon);
}

static void panel_attend(const struct tnd_query_panel *panel)
{
    const int n_vectors = (panel->n_queries + LANES - 1) / LANES;
    if (n_vectors == PANEL_VECTORS) {
        attend(panel, PANEL_VECTORS);
    } else if (n_vectors == 2) {
        attend(panel, 2);
    } else {
        attend(panel, 1);
    }
}

static void fill_panel(struct tnd_attention_kernels *out)
{
    out->queries = PANEL;
    out->transpose = panel_transpose;
    out->attend = panel_attend;
    out->finish = panel_finish;
}

#endif
