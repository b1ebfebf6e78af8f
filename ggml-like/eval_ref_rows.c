/* SPDX-License-Identifier: MIT
 * Reference of operations along rows: norms, soft_max, causal mask, rotary embedding. */
#include <math.h>
#include <string.h>

#include "ggml-like/eval_ref.h"

/* Mean of (value - shift)^power over one row. */
static double row_mean(const struct tandem_tensor *a, int power, double shift, int64_t i1,
                       int64_t i2, int64_t i3)
{
    double sum = 0.0;
    for (int64_t i0 = 0; i0 < a->ne[0]; i0++) {
        const double value = tnd_ref_value(a, i0, i1, i2, i3) - shift;
        sum += power == 2 ? value * value : value;
    }
    return sum / (double)a->ne[0];
}

static void norm_row(const struct tandem_tensor *node, float *y, int64_t i1, int64_t i2, int64_t i3)
{
    const struct tandem_tensor *a = node->src[0];
    const double shift = node->op == TANDEM_OP_NORM ? row_mean(a, 1, 0.0, i1, i2, i3) : 0.0;
    const double root = sqrt(row_mean(a, 2, shift, i1, i2, i3) + (double)node->params.eps);
    for (int64_t i0 = 0; i0 < a->ne[0]; i0++) {
        y[i0] = (float)((tnd_ref_value(a, i0, i1, i2, i3) - shift) / root);
    }
}

/* a * scale + mask at one place */
static double soft_max_score(const struct tandem_tensor *node, int64_t i0, int64_t i1, int64_t i2,
                             int64_t i3)
{
    const struct tandem_tensor *mask = node->n_src > 1 ? node->src[1] : NULL;
    const double score =
        tnd_ref_value(node->src[0], i0, i1, i2, i3) * (double)node->params.soft_max_scale;
    return mask == NULL ? score : score + tnd_ref_value(mask, i0, i1, 0, 0);
}

static void soft_max_row(const struct tandem_tensor *node, float *y, int64_t i1, int64_t i2,
                         int64_t i3)
{
    double largest = -(double)INFINITY;
    double sum = 0.0;
    for (int64_t i0 = 0; i0 < node->ne[0]; i0++) {
        largest = fmax(largest, soft_max_score(node, i0, i1, i2, i3));
    }
    if (largest == -(double)INFINITY) { /* everything is masked: no share for anybody, not 0 / 0 */
        memset(y, 0, (size_t)node->ne[0] * sizeof(y[0]));
        return;
    }
    for (int64_t i0 = 0; i0 < node->ne[0]; i0++) {
        sum += exp(soft_max_score(node, i0, i1, i2, i3) - largest);
    }
    for (int64_t i0 = 0; i0 < node->ne[0]; i0++) {
        y[i0] = (float)(exp(soft_max_score(node, i0, i1, i2, i3) - largest) / sum);
    }
}

static void mask_row(const struct tandem_tensor *node, float *y, int64_t i1, int64_t i2, int64_t i3)
{
    for (int64_t i0 = 0; i0 < node->ne[0]; i0++) {
        y[i0] = i0 > node->params.n_past + i1 ? -INFINITY
                                              : (float)tnd_ref_value(node->src[0], i0, i1, i2, i3);
    }
}

static void rope_row(const struct tandem_tensor *node, float *y, int64_t i1, int64_t i2, int64_t i3)
{
    const struct tandem_tensor *a = node->src[0]; /* {head size, heads, M, ...} */
    const int64_t n_rot = node->params.rope.n_rot;
    const struct tandem_tensor *factors = node->n_src > 2 ? node->src[2] : NULL;
    const double position = tnd_ref_value(node->src[1], i2, 0, 0, 0);
    for (int64_t pair = 0; pair < n_rot / 2; pair++) {
        const bool is_adjacent = node->params.rope.pairs == TANDEM_ROPE_ADJACENT;
        const int64_t first = is_adjacent ? 2 * pair : pair;
        const int64_t second = is_adjacent ? first + 1 : first + n_rot / 2;
        const double frequency =
            pow((double)node->params.rope.freq_base, -2.0 * (double)pair / (double)n_rot);
        const double factor = factors != NULL ? tnd_ref_value(factors, pair, 0, 0, 0) : 1.0;
        const double angle = position * (double)node->params.rope.freq_scale * frequency / factor;
        const double x0 = tnd_ref_value(a, first, i1, i2, i3);
        const double x1 = tnd_ref_value(a, second, i1, i2, i3);
        y[first] = (float)(x0 * cos(angle) - x1 * sin(angle));
        y[second] = (float)(x0 * sin(angle) + x1 * cos(angle));
    }
    for (int64_t i0 = n_rot; i0 < a->ne[0]; i0++) {
        y[i0] = (float)tnd_ref_value(a, i0, i1, i2, i3);
    }
}

enum tandem_status tnd_ref_rows(struct tandem_tensor *node, struct tandem_error *error)
{
    (void)error;
    for (int64_t i3 = 0; i3 < node->ne[3]; i3++) {
        for (int64_t i2 = 0; i2 < node->ne[2]; i2++) {
            for (int64_t i1 = 0; i1 < node->ne[1]; i1++) {
                float *y = (float *)(void *)tnd_ref_at(node, 0, i1, i2, i3);
                switch (node->op) {
                case TANDEM_OP_ROPE:
                    rope_row(node, y, i1, i2, i3);
                    break;
                case TANDEM_OP_SOFT_MAX:
                    soft_max_row(node, y, i1, i2, i3);
                    break;
                case TANDEM_OP_DIAG_MASK_INF:
                    mask_row(node, y, i1, i2, i3);
                    break;
                default:
                    norm_row(node, y, i1, i2, i3);
                    break;
                }
            }
        }
    }
    return TANDEM_OK;
}
