/* SPDX-License-Identifier: MIT
 * Row-wise operations (along dimension 0): norms, soft_max, causal mask and rope; builders and
 * reference. */
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "ggml-like/eval_ref.h"
#include "ggml-like/tensor_internal.h"

static tandem_tensor *norm(tandem_context *context, enum tandem_op op, tandem_tensor *a, float eps)
{
    if (!tnd_build_ready_f32(context, op, "a", a)) {
        return NULL;
    }
    if (!(eps >= 0.0f) || isinf(eps)) {
        const char *name = tandem_op_name(op);
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, name, 0, 0,
                              "%s: eps is %g, expected a finite number of 0 or more", name,
                              (double)eps);
    }
    tandem_tensor *node = tnd_build_node(context, op, TANDEM_TYPE_F32, a->ne, a, NULL);
    if (node != NULL) {
        node->params.eps = eps;
    }
    return node;
}

tandem_tensor *tandem_rms_norm(tandem_context *context, tandem_tensor *a, float eps)
{
    return norm(context, TANDEM_OP_RMS_NORM, a, eps);
}

tandem_tensor *tandem_norm(tandem_context *context, tandem_tensor *a, float eps)
{
    return norm(context, TANDEM_OP_NORM, a, eps);
}

tandem_tensor *tandem_soft_max(tandem_context *context, tandem_tensor *a, tandem_tensor *mask,
                               float scale)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_SOFT_MAX, "a", a) ||
        (mask != NULL && !tnd_build_ready_f32(context, TANDEM_OP_SOFT_MAX, "mask", mask))) {
        return NULL;
    }
    if (mask != NULL && (mask->ne[0] != a->ne[0] || mask->ne[1] < a->ne[1] || mask->ne[2] != 1 ||
                         mask->ne[3] != 1)) {
        char a_shape[TND_SHAPE_TEXT_BYTES];
        char mask_shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(context, TANDEM_E_SHAPE, "soft_max", mask->ne[0], a->ne[0],
                              "soft_max: mask %s does not cover the rows of a %s",
                              tnd_shape_text(mask->ne, mask_shape), tnd_shape_text(a->ne, a_shape));
    }
    tandem_tensor *node =
        tnd_build_node(context, TANDEM_OP_SOFT_MAX, TANDEM_TYPE_F32, a->ne, a, mask);
    if (node != NULL) {
        node->params.soft_max_scale = scale;
    }
    return node;
}

tandem_tensor *tandem_diag_mask_inf(tandem_context *context, tandem_tensor *a, int64_t n_past)
{
    if (!tnd_build_ready_f32(context, TANDEM_OP_DIAG_MASK_INF, "a", a)) {
        return NULL;
    }
    /* the upper bound keeps n_past + row index within 64 bits */
    if (n_past < 0 || n_past > INT64_MAX / 2) {
        return tnd_build_fail(context, TANDEM_E_ARGUMENT, "diag_mask_inf", n_past, INT64_MAX / 2,
                              "diag_mask_inf: n_past is %lld, expected 0 or more",
                              (long long)n_past);
    }
    tandem_tensor *node =
        tnd_build_node(context, TANDEM_OP_DIAG_MASK_INF, TANDEM_TYPE_F32, a->ne, a, NULL);
    if (node != NULL) {
        node->params.n_past = n_past;
    }
    return node;
}

/* Copies the caller's options and fills in defaults. */
static bool rope_options_read(tandem_context *context, const struct tandem_rope_options *given,
                              const tandem_tensor *a, struct tandem_rope_options *out)
{
    struct tandem_error error;
    *out = (struct tandem_rope_options)TANDEM_ROPE_OPTIONS_INIT;
    enum tandem_status status = tnd_options_read(given, "rope options", out, sizeof(*out), &error);
    if (status != TANDEM_OK) {
        tnd_build_fail(context, status, "rope", error.got, error.limit, "rope: %s", error.text);
        return false;
    }
    out->n_rot = out->n_rot == 0 ? a->ne[0] : out->n_rot;
    out->freq_base = out->freq_base == 0.0f ? 10000.0f : out->freq_base;
    out->freq_scale = out->freq_scale == 0.0f ? 1.0f : out->freq_scale;
    return true;
}

static bool rope_options_check(tandem_context *context, const tandem_tensor *a,
                               const struct tandem_rope_options *options)
{
    if (options->n_rot < 0 || options->n_rot > a->ne[0] || options->n_rot % 2 != 0) {
        char shape[TND_SHAPE_TEXT_BYTES];
        tnd_build_fail(context, TANDEM_E_ARGUMENT, "rope", options->n_rot, a->ne[0],
                       "rope: n_rot is %lld, expected an even number of at most ne[0] of a %s",
                       (long long)options->n_rot, tnd_shape_text(a->ne, shape));
        return false;
    }
    if (options->pairs != TANDEM_ROPE_ADJACENT && options->pairs != TANDEM_ROPE_HALVES) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, "rope", options->pairs, TANDEM_ROPE_HALVES,
                       "rope: pairs is %d, expected adjacent (0) or halves (1)",
                       (int)options->pairs);
        return false;
    }
    if (!(options->freq_base > 0.0f) || !isfinite(options->freq_base) ||
        !isfinite(options->freq_scale)) {
        tnd_build_fail(context, TANDEM_E_ARGUMENT, "rope", 0, 0,
                       "rope: freq_base is %g and freq_scale %g, expected finite numbers above 0",
                       (double)options->freq_base, (double)options->freq_scale);
        return false;
    }
    return true;
}

/* Checks for one factor per pair of dimensions, or none. */
static bool rope_factors_check(tandem_context *context, const tandem_tensor *factors,
                               const struct tandem_rope_options *options)
{
    if (factors == NULL) {
        return true;
    }
    if (!tnd_build_ready_f32(context, TANDEM_OP_ROPE, "factors", factors)) {
        return false;
    }
    if (factors->ne[0] != options->n_rot / 2 || tnd_tensor_rows(factors) != 1) {
        char shape[TND_SHAPE_TEXT_BYTES];
        tnd_build_fail(context, TANDEM_E_SHAPE, "rope", factors->ne[0], options->n_rot / 2,
                       "rope: factors %s is no row of n_rot / 2 = %lld values",
                       tnd_shape_text(factors->ne, shape), (long long)options->n_rot / 2);
        return false;
    }
    return true;
}

static tandem_tensor *rope(tandem_context *context, tandem_tensor *a, tandem_tensor *positions,
                           tandem_tensor *factors, const struct tandem_rope_options *options)
{
    struct tandem_rope_options settings;
    if (!tnd_build_ready_f32(context, TANDEM_OP_ROPE, "a", a) ||
        !tnd_build_ready(context, TANDEM_OP_ROPE, "positions", positions) ||
        !rope_options_read(context, options, a, &settings) ||
        !rope_options_check(context, a, &settings) ||
        !rope_factors_check(context, factors, &settings)) {
        return NULL;
    }
    if (positions->type != TANDEM_TYPE_I32) {
        return tnd_build_fail(context, TANDEM_E_TYPE, "rope", positions->type, TANDEM_TYPE_I32,
                              "rope: positions is %s, expected i32",
                              tandem_type_name(positions->type));
    }
    if (positions->ne[0] != a->ne[2] || tnd_tensor_rows(positions) != 1 ||
        positions->nb[0] != sizeof(int32_t)) {
        char a_shape[TND_SHAPE_TEXT_BYTES];
        char positions_shape[TND_SHAPE_TEXT_BYTES];
        return tnd_build_fail(context, TANDEM_E_SHAPE, "rope", positions->ne[0], a->ne[2],
                              "rope: positions %s is no dense row of ne[2] of a %s",
                              tnd_shape_text(positions->ne, positions_shape),
                              tnd_shape_text(a->ne, a_shape));
    }
    tandem_tensor *node =
        tnd_build_node(context, TANDEM_OP_ROPE, TANDEM_TYPE_F32, a->ne, a, positions);
    if (node != NULL) {
        node->params.rope.pairs = settings.pairs;
        node->params.rope.n_rot = settings.n_rot;
        node->params.rope.freq_base = settings.freq_base;
        node->params.rope.freq_scale = settings.freq_scale;
        node->src[2] = factors;
        node->n_src = factors != NULL ? 3 : 2;
    }
    return node;
}

tandem_tensor *tandem_rope(tandem_context *context, tandem_tensor *a, tandem_tensor *positions,
                           const struct tandem_rope_options *options)
{
    return rope(context, a, positions, NULL, options);
}

tandem_tensor *tandem_rope_factors(tandem_context *context, tandem_tensor *a,
                                   tandem_tensor *positions, tandem_tensor *factors,
                                   const struct tandem_rope_options *options)
{
    return tnd_build_ready(context, TANDEM_OP_ROPE, "factors", factors)
               ? rope(context, a, positions, factors, options)
               : NULL;
}

/* ---- reference ---- */

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

/* a * scale + mask of one value */
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
    if (largest == -(double)INFINITY) { /* everything is masked: all results are 0, not 0 / 0 */
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

#define ROWS(family, row)                                                                          \
    enum tandem_status tnd_ref_##family(struct tandem_tensor *node, struct tandem_error *error)    \
    {                                                                                              \
        (void)error;                                                                               \
        for (int64_t i3 = 0; i3 < node->ne[3]; i3++) {                                             \
            for (int64_t i2 = 0; i2 < node->ne[2]; i2++) {                                         \
                for (int64_t i1 = 0; i1 < node->ne[1]; i1++) {                                     \
                    row(node, (float *)(void *)tnd_ref_at(node, 0, i1, i2, i3), i1, i2, i3);       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return TANDEM_OK;                                                                          \
    }
ROWS(norm, norm_row)
ROWS(soft_max, soft_max_row)
ROWS(diag_mask_inf, mask_row)
ROWS(rope, rope_row)
#undef ROWS
