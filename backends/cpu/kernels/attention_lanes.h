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

#include "backends/cpu/kernels/kernels.h"

enum { PANEL = PANEL_VECTORS * LANES };

/* ---- rows into lanes and back ---- */

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

/* The reverse, of sums. */
TND_INLINE void finish_block(const float *sums, int n_rows, int64_t i, int rest, vec f,
                             float *const *rows)
{
    vec x[LANES];
    TND_UNROLL
    for (int l = 0; l < LANES; l++) {
        x[l] = l < rest ? v_mul(v_load(sums + (i + l) * PANEL), f) : f;
    }
    exchange(x);
    TND_UNROLL
    for (int l = 0; l < LANES; l++) {
        if (l < n_rows) {
            v_store_part(rows[l] + i, rest, x[l]);
        }
    }
}

static void panel_finish(const struct tnd_query_panel *panel, float *const *rows)
{
    float factors[PANEL] = {0};
    for (int r = 0; r < panel->n_queries; r++) {
        factors[r] = panel->weight[r] == 0.0f ? 0.0f : 1.0f / panel->weight[r];
    }
    for (int r = 0; r < panel->n_queries; r += LANES) {
        const vec f = v_load(factors + r);
        int64_t i = 0;
        for (; i + LANES <= panel->value && r + LANES <= panel->n_queries; i += LANES) {
            finish_block(panel->sums + r, LANES, i, LANES, f, rows + r);
        }
        for (; i < panel->value; i += LANES) {
            const int rest = (int)(panel->value - i < LANES ? panel->value - i : LANES);
            finish_block(panel->sums + r, panel->n_queries - r, i, rest, f, rows + r);
        }
    }
}

/* Rows that are read or written soon are asked for a few lines at a time: more at once than the
 * core can keep in mind are forgotten. Returns how far it came. */
TND_INLINE int bring_some(const struct tnd_query_panel *panel, int at)
{
    const int end = at + 6 < panel->n_soon ? at + 6 : panel->n_soon;
    for (; at < end; at++) {
        __builtin_prefetch(panel->soon[at], 1, 3);
    }
    return at;
}

/* ---- scores ---- */

/* Scores of `n_keys` keys and n_vectors vectors of queries, over `n` values of the head: */
TND_INLINE void scores_tile(const float *queries, const float *keys, int64_t n, bool continues,
                            float *scores, const int n_keys, const int n_vectors)
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
}

TND_INLINE int scores_all(const struct tnd_query_panel *panel, int soon, const int n_vectors)
{
    const float *keys = panel->keys;
    for (int64_t i = 0; i < panel->head; i += TND_KEY_BLOCK, keys += TND_KEY_BLOCK * TND_KEYS) {
        const int64_t n = panel->head - i < TND_KEY_BLOCK ? panel->head - i : TND_KEY_BLOCK;
        const float *q = panel->queries + i * PANEL;
        int j = 0;
        for (; j + PANEL_TILE <= panel->n_keys; j += PANEL_TILE) {
            scores_tile(q, keys + j * TND_KEY_BLOCK, n, i > 0, panel->scores + j * PANEL,
                        PANEL_TILE, n_vectors);
            soon = bring_some(panel, soon);
        }
        for (; j < panel->n_keys; j++) {
            scores_tile(q, keys + j * TND_KEY_BLOCK, n, i > 0, panel->scores + j * PANEL, 1,
                        n_vectors);
        }
    }
    return soon;
}

/* ---- weights ---- */

/* Masks the scores and makes weights of them. Sets what the sums so far are to be multiplied
 * with, since the largest score has changed. */
TND_INLINE void weigh_all(const struct tnd_query_panel *panel, vec *shrink, const int n_vectors)
{
    vec largest[PANEL_VECTORS], shift[PANEL_VECTORS], weight[PANEL_VECTORS];
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        largest[v] = v_load(panel->largest + v * LANES);
    }
    for (int j = 0; j < panel->n_keys; j++) {
        float *s = panel->scores + j * PANEL;
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            const int at = v * LANES;
            vec x = v_load(s + at);
            if (panel->cap > 0.0f) {
                x = v_mul(v_set(panel->cap), tnd_vec_tanh(x));
                v_store(s + at, x);
            }
            if (panel->mask != NULL) {
                x = v_add(x, v_load(panel->mask + j * PANEL + at));
                v_store(s + at, x);
            } else if (panel->orders != NULL) {
                x = v_between(x, panel->orders[j], panel->first + at, panel->last + at);
                v_store(s + at, x);
            }
            largest[v] = v_max(x, largest[v]); /* NaN does not count */
        }
    }
    TND_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        const int at = v * LANES;
        /* where nothing is seen yet: -infinity less 0, not less itself */
        shift[v] = v_max(largest[v], v_set(-FLT_MAX));
        shrink[v] = tnd_vec_exp_below(v_sub(v_load(panel->largest + at), shift[v]));
        weight[v] = v_set(0.0f);
        v_store(panel->largest + at, largest[v]);
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

TND_INLINE void sums_tile(const struct tnd_query_panel *panel, int64_t i, const vec *shrink,
                          const int n_values, const int n_vectors)
{
    vec sum[PANEL_TILE][PANEL_VECTORS];
    float *y = panel->sums + i * PANEL;
    const float *values = panel->values + i;
    const float *weights = panel->scores;
    TND_UNROLL
    for (int k = 0; k < n_values; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[k][v] = v_mul(v_load(y + k * PANEL + v * LANES), shrink[v]);
        }
    }
    for (int j = 0; j < panel->n_keys; j++, values += panel->value_stride, weights += PANEL) {
        vec w[PANEL_VECTORS];
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            w[v] = v_load(weights + v * LANES);
        }
        TND_UNROLL
        for (int k = 0; k < n_values; k++) {
            const vec x = v_set(values[k]);
            TND_UNROLL
            for (int v = 0; v < n_vectors; v++) {
                sum[k][v] = v_fmadd(x, w[v], sum[k][v]);
            }
        }
    }
    TND_UNROLL
    for (int k = 0; k < n_values; k++) {
        TND_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            v_store(y + k * PANEL + v * LANES, sum[k][v]);
        }
    }
}

TND_INLINE void attend(const struct tnd_query_panel *panel, const int n_vectors)
{
    vec shrink[PANEL_VECTORS];
    int64_t i = 0;
    int soon = scores_all(panel, 0, n_vectors);
    weigh_all(panel, shrink, n_vectors);
    for (; i + PANEL_TILE <= panel->value; i += PANEL_TILE) {
        sums_tile(panel, i, shrink, PANEL_TILE, n_vectors);
        soon = bring_some(panel, soon);
    }
    for (; i < panel->value; i++) {
        sums_tile(panel, i, shrink, 1, n_vectors);
    }
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
