/* SPDX-License-Identifier: MIT
 * The cases: small odd shapes, rows longer than a block of sums, repeated operands, strided views,
 * every pair of types that can be copied. */
#include <math.h>
#include <string.h>

#include "tests/suite_backends_cpu_cases.h"

/* One line a case. */
/* clang-format off */
#define CASE(name) static tandem_tensor *name(tandem_context *c, struct tnd_test_rng *r)

static tandem_tensor *leaf(tandem_context *c, struct tnd_test_rng *r, int64_t ne0, int64_t ne1,
                           int64_t ne2, int64_t ne3)
{
    return tnd_test_leaf(c, TANDEM_TYPE_F32, (int64_t[]){ne0, ne1, ne2, ne3}, r);
}

static tandem_tensor *typed(tandem_context *c, struct tnd_test_rng *r, enum tandem_type type,
                            int64_t ne0, int64_t ne1)
{
    return tnd_test_leaf(c, type, (int64_t[]){ne0, ne1, 1, 1}, r);
}

/* Values in [3, 5), for roots and divisors. */
static tandem_tensor *positive(tandem_context *c, struct tnd_test_rng *r, int64_t ne0, int64_t ne1)
{
    tandem_tensor *a = leaf(c, r, ne0, ne1, 1, 1);
    float *values = a->data;
    for (int64_t i = 0; i < ne0 * ne1; i++) {
        values[i] += 4;
    }
    return a;
}

/* A view with gaps between rows and matrices, beginning in the middle of a row. */
static tandem_tensor *strided(tandem_context *c, struct tnd_test_rng *r, int64_t ne0, int64_t ne1,
                              int64_t ne2, int64_t ne3)
{
    tandem_tensor *a = leaf(c, r, ne0 + 3, ne1 + 1, ne2, ne3);
    return tandem_view(c, a, 4, (int64_t[]){ne0, ne1, ne2, ne3}, a->nb + 1, 2 * sizeof(float));
}

/* Positions step, 2 step, ... */
static tandem_tensor *positions(tandem_context *c, int64_t n, int step)
{
    tandem_tensor *ids = tandem_tensor_new(c, TANDEM_TYPE_I32, 1, &n);
    for (int64_t i = 0; i < n; i++) {
        ((int32_t *)ids->data)[i] = (int32_t)(i + 1) * step;
    }
    return ids;
}

/* ---- element by element ---- */

CASE(add_equal) { return tandem_add(c, leaf(c, r, 13, 7, 3, 2), leaf(c, r, 13, 7, 3, 2)); }
CASE(add_long) { return tandem_add(c, leaf(c, r, 5000, 3, 1, 1), leaf(c, r, 5000, 3, 1, 1)); }
CASE(add_row) { return tandem_add(c, leaf(c, r, 100, 30, 2, 1), leaf(c, r, 100, 1, 1, 1)); }
CASE(add_one) { return tandem_add(c, leaf(c, r, 70, 5, 1, 1), leaf(c, r, 1, 1, 1, 1)); }
CASE(add_part) { return tandem_add(c, leaf(c, r, 1200, 4, 6, 2), leaf(c, r, 3, 2, 3, 1)); }
CASE(add_column) { return tandem_add(c, leaf(c, r, 33, 9, 1, 1), leaf(c, r, 1, 9, 1, 1)); }
CASE(add_strided) { return tandem_add(c, strided(c, r, 21, 5, 3, 2), strided(c, r, 7, 5, 1, 2)); }
CASE(add_empty) { return tandem_add(c, leaf(c, r, 0, 5, 1, 1), leaf(c, r, 0, 5, 1, 1)); }
CASE(add_no_rows) { return tandem_add(c, leaf(c, r, 8, 0, 1, 1), leaf(c, r, 8, 1, 1, 1)); }
CASE(sub) { return tandem_sub(c, strided(c, r, 19, 5, 3, 2), leaf(c, r, 19, 1, 3, 1)); }
CASE(mul) { return tandem_mul(c, leaf(c, r, 2048, 17, 1, 1), leaf(c, r, 2048, 1, 1, 1)); }
CASE(mul_halves) { return tandem_mul(c, leaf(c, r, 68, 4, 1, 1), leaf(c, r, 34, 2, 1, 1)); }
CASE(division) { return tandem_div(c, leaf(c, r, 31, 6, 1, 1), positive(c, r, 31, 3)); }
CASE(scale) { return tandem_scale(c, leaf(c, r, 3001, 3, 1, 1), 0.37f); }
CASE(scale_strided) { return tandem_scale(c, strided(c, r, 45, 6, 2, 2), -3.5f); }
CASE(sqr) { return tandem_sqr(c, leaf(c, r, 99, 5, 1, 1)); }
CASE(square_root) { return tandem_sqrt(c, positive(c, r, 77, 3)); }
CASE(silu) { return tandem_silu(c, leaf(c, r, 1, 1, 1, 1)); }
CASE(silu_wide)
{
    tandem_tensor *a = leaf(c, r, 5632, 3, 1, 1);
    for (int64_t i = 0; i < 5632 * 3; i++) {
        ((float *)a->data)[i] *= 20;
    }
    return tandem_silu(c, a);
}
CASE(silu_strided) { return tandem_silu(c, strided(c, r, 23, 5, 1, 3)); }
CASE(gelu) { return tandem_gelu(c, leaf(c, r, 1025, 4, 1, 1)); }
CASE(tanh_row) { return tandem_tanh(c, leaf(c, r, 1025, 4, 1, 1)); }
CASE(gelu_erf) { return tandem_gelu_erf(c, leaf(c, r, 1025, 4, 1, 1)); }
CASE(gelu_strided) { return tandem_gelu(c, strided(c, r, 9, 5, 2, 1)); }
CASE(relu) { return tandem_relu(c, leaf(c, r, 517, 3, 2, 1)); }
CASE(clamp) { return tandem_clamp(c, leaf(c, r, 517, 3, 2, 1), -0.25f, 0.5f); }
CASE(clamp_strided) { return tandem_clamp(c, strided(c, r, 45, 6, 2, 2), -INFINITY, 0.1f); }
CASE(relu_empty) { return tandem_relu(c, leaf(c, r, 0, 1, 1, 1)); }

/* ---- rows ---- */

CASE(rms_norm) { return tandem_rms_norm(c, leaf(c, r, 2048, 5, 1, 1), 1e-5f); }
CASE(rms_norm_long) { return tandem_rms_norm(c, leaf(c, r, 70001, 2, 1, 1), 1e-5f); }
CASE(rms_norm_strided) { return tandem_rms_norm(c, strided(c, r, 37, 3, 2, 2), 1e-6f); }
CASE(rms_norm_one) { return tandem_rms_norm(c, leaf(c, r, 1, 3, 1, 1), 1e-6f); }
CASE(rms_norm_zeros)
{
    tandem_tensor *a = leaf(c, r, 64, 2, 1, 1);
    memset(a->data, 0, 64 * sizeof(float));
    return tandem_rms_norm(c, a, 1e-6f);
}
CASE(norm) { return tandem_norm(c, leaf(c, r, 300, 9, 1, 1), 1e-5f); }
CASE(norm_shifted) { return tandem_norm(c, positive(c, r, 1500, 3), 1e-5f); }
CASE(norm_strided) { return tandem_norm(c, strided(c, r, 15, 3, 2, 2), 1e-5f); }
CASE(soft_max) { return tandem_soft_max(c, leaf(c, r, 17, 5, 3, 2), NULL, 3.0f); }
CASE(soft_max_long) { return tandem_soft_max(c, leaf(c, r, 3000, 2, 1, 1), NULL, 9.0f); }
CASE(soft_max_one) { return tandem_soft_max(c, leaf(c, r, 1, 5, 1, 1), NULL, 1.0f); }
CASE(soft_max_mask)
{
    tandem_tensor *mask = leaf(c, r, 40, 11, 1, 1);
    for (int64_t i = 0; i < 40 * 11; i++) {
        if (i % 40 > 3 + i / 40) {
            ((float *)mask->data)[i] = -INFINITY;
        }
    }
    return tandem_soft_max(c, strided(c, r, 40, 9, 3, 1), mask, 0.125f);
}
CASE(diag_mask) { return tandem_diag_mask_inf(c, leaf(c, r, 19, 12, 2, 1), 5); }
CASE(diag_mask_strided) { return tandem_diag_mask_inf(c, strided(c, r, 9, 12, 2, 1), 0); }

static tandem_tensor *rope(tandem_context *c, tandem_tensor *a, int step,
                           enum tandem_rope_pairs pairs, int64_t n_rot)
{
    struct tandem_rope_options options = TANDEM_ROPE_OPTIONS_INIT;
    options.pairs = pairs;
    options.n_rot = n_rot;
    if (n_rot != 0) {
        options.freq_base = 50000.0f;
        options.freq_scale = 0.25f;
    }
    return tandem_rope(c, a, positions(c, a->ne[2], step), &options);
}
CASE(rope_pairs) { return rope(c, leaf(c, r, 64, 5, 9, 2), 7, TANDEM_ROPE_ADJACENT, 0); }
CASE(rope_halves) { return rope(c, leaf(c, r, 64, 5, 9, 2), 7, TANDEM_ROPE_HALVES, 0); }
CASE(rope_part) { return rope(c, strided(c, r, 71, 3, 4, 2), 30, TANDEM_ROPE_ADJACENT, 22); }
CASE(rope_part_halves) { return rope(c, strided(c, r, 71, 3, 4, 2), 30, TANDEM_ROPE_HALVES, 22); }
CASE(rope_factors)
{
    tandem_tensor *factors = positive(c, r, 32, 1);
    return tandem_rope_factors(c, leaf(c, r, 64, 5, 9, 1), positions(c, 9, 7), factors, NULL);
}
static tandem_tensor *attention(tandem_context *c, struct tnd_test_rng *r, enum tandem_type type,
                                int64_t m, int64_t t, int64_t window)
{
    tandem_tensor *k = tnd_test_leaf(c, type, (int64_t[]){64, 2, t, 1}, r);
    tandem_tensor *v = tnd_test_leaf(c, type, (int64_t[]){64, 2, t, 1}, r);
    tandem_tensor *q = tandem_permute(c, leaf(c, r, 64, 6, m, 1), 0, 2, 1, 3);
    tandem_tensor *orders = positions(c, t + m, 1); /* keys 0 .. t - 1, the last m of them asked */
    for (int64_t i = 0; i < m; i++) {
        ((int32_t *)orders->data)[t + i] = (int32_t)(t - m + i);
    }
    return tandem_attention_ordered(c, q, tandem_permute(c, k, 0, 2, 1, 3),
                                    tandem_permute(c, v, 0, 2, 1, 3), orders, window, 0.125f);
}
CASE(attention_causal) { return attention(c, r, TANDEM_TYPE_F32, 37, 150, 0); }
CASE(attention_window) { return attention(c, r, TANDEM_TYPE_F16, 21, 300, 70); }
CASE(attention_one) { return attention(c, r, TANDEM_TYPE_Q8_0, 1, 201, 0); }
/* Many queries: head and value of any length, `texts` of them in turn in cells and in the batch. */
static tandem_tensor *panel(tandem_context *c, struct tnd_test_rng *r, enum tandem_type type,
                             int64_t head, int64_t value, int64_t group, int64_t m, int64_t t,
                             int64_t texts, int64_t window)
{
    tandem_tensor *k = tnd_test_leaf(c, type, (int64_t[]){head, 2, t, 1}, r);
    tandem_tensor *v = tnd_test_leaf(c, type, (int64_t[]){value, 2, t, 1}, r);
    tandem_tensor *q = tandem_permute(c, leaf(c, r, head, 2 * group, m, 1), 0, 2, 1, 3);
    tandem_tensor *orders = positions(c, t + m, 1);
    for (int64_t i = 0; i < t + m; i++) {
        const int64_t cell = i < t ? i : i - m; /* the last of the keys ask */
        ((int32_t *)orders->data)[i] = (int32_t)(cell % texts * 100000 + cell / texts);
    }
    return tandem_attention_ordered(c, q, tandem_permute(c, k, 0, 2, 1, 3),
                                    tandem_permute(c, v, 0, 2, 1, 3), orders, window, 0.3f);
}
CASE(attention_panels) { return panel(c, r, TANDEM_TYPE_F32, 64, 64, 8, 100, 100, 1, 50000); }
CASE(attention_panels_odd) { return panel(c, r, TANDEM_TYPE_F32, 83, 21, 1, 77, 134, 1, 50000); }
CASE(attention_panels_long) { return panel(c, r, TANDEM_TYPE_F16, 130, 9, 3, 51, 65, 1, 50000); }
CASE(attention_panels_q8) { return panel(c, r, TANDEM_TYPE_Q8_0, 128, 64, 4, 60, 190, 1, 50000); }
CASE(attention_panels_window) { return panel(c, r, TANDEM_TYPE_BF16, 40, 40, 2, 90, 250, 1, 33); }
CASE(attention_texts) { return panel(c, r, TANDEM_TYPE_F32, 32, 32, 2, 80, 160, 2, 50000); }
CASE(attention_texts_window) { return panel(c, r, TANDEM_TYPE_F16, 32, 48, 8, 30, 300, 3, 20); }
CASE(attention_no_head) { return panel(c, r, TANDEM_TYPE_F32, 0, 9, 2, 30, 40, 1, 50000); }
CASE(attention_panels_masked)
{
    tandem_tensor *mask = leaf(c, r, 150, 61, 1, 1);
    for (int64_t i = 0; i < 150 * 61; i++) { /* row 7 sees nothing, some see no whole tile */
        if (i / 150 == 7 || i % 5 == 0 || (i / 150 % 2 == 0 && i % 150 > 60)) {
            ((float *)mask->data)[i] = -INFINITY;
        }
    }
    return tandem_attention(c, leaf(c, r, 24, 60, 4, 1), leaf(c, r, 24, 150, 2, 1),
                            leaf(c, r, 72, 150, 2, 1), mask, 0.3f);
}
CASE(attention_panels_all)
{
    return tandem_attention(c, leaf(c, r, 16, 41, 3, 1), leaf(c, r, 16, 99, 3, 1),
                            leaf(c, r, 16, 99, 3, 1), NULL, 0.3f);
}
CASE(rope_one_token) { return rope(c, leaf(c, r, 128, 32, 1, 1), 511, TANDEM_ROPE_ADJACENT, 0); }

/* ---- rows by index ---- */

static tandem_tensor *rows(tandem_context *c, struct tnd_test_rng *r, enum tandem_type type)
{
    return tandem_get_rows(c, typed(c, r, type, 512, 60), positions(c, 19, 3));
}
CASE(rows_strided)
{
    tandem_tensor *w = leaf(c, r, 40, 60, 1, 1);
    size_t stride = w->nb[1];
    return tandem_get_rows(c, tandem_view(c, w, 2, (int64_t[]){33, 59}, &stride, 12),
                           positions(c, 5, 11));
}

/* ---- moving ---- */

static tandem_tensor *copy(tandem_context *c, struct tnd_test_rng *r, enum tandem_type from,
                           enum tandem_type to)
{
    return tandem_cpy(c, typed(c, r, from, 768, 5), typed(c, r, to, 768, 5));
}

#define FLOAT_TYPES(X) X(F32) X(F16) X(BF16)
#define BLOCK_TYPES(X)                                                                             \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K)               \
    X(BCML1)
#define TYPE_CASES(NAME)                                                                           \
    CASE(rows_##NAME) { return rows(c, r, TANDEM_TYPE_##NAME); }                                   \
    CASE(to_##NAME) { return copy(c, r, TANDEM_TYPE_F32, TANDEM_TYPE_##NAME); }
FLOAT_TYPES(TYPE_CASES)
BLOCK_TYPES(TYPE_CASES)

CASE(f16_to_f32) { return copy(c, r, TANDEM_TYPE_F16, TANDEM_TYPE_F32); }
CASE(f16_to_f16) { return copy(c, r, TANDEM_TYPE_F16, TANDEM_TYPE_F16); }
CASE(f16_to_bf16) { return copy(c, r, TANDEM_TYPE_F16, TANDEM_TYPE_BF16); }
CASE(bf16_to_f32) { return copy(c, r, TANDEM_TYPE_BF16, TANDEM_TYPE_F32); }
CASE(bf16_to_f16) { return copy(c, r, TANDEM_TYPE_BF16, TANDEM_TYPE_F16); }
CASE(ints_to_ints)
{
    (void)r;
    return tandem_cpy(c, positions(c, 50, 3), positions(c, 50, 0));
}

/* Into the transposed part of a larger F16 tensor, as a cache of values is written. */
CASE(into_transposed)
{
    tandem_tensor *cache = typed(c, r, TANDEM_TYPE_F16, 100, 48); /* {positions, channels} */
    size_t stride = cache->nb[1];
    tandem_tensor *part = tandem_view(c, cache, 2, (int64_t[]){7, 48}, &stride, 13 * 2);
    return tandem_cpy(c, leaf(c, r, 48, 7, 1, 1), tandem_transpose(c, part));
}
CASE(transposed_f16_to_f32)
{
    return tandem_cpy(c, tandem_transpose(c, typed(c, r, TANDEM_TYPE_F16, 300, 290)),
                      leaf(c, r, 290, 300, 1, 1));
}
CASE(other_shape) { return tandem_cpy(c, strided(c, r, 10, 9, 8, 1), leaf(c, r, 24, 5, 3, 2)); }
CASE(blocks_strided)
{
    tandem_tensor *cache = typed(c, r, TANDEM_TYPE_Q8_0, 96, 9);
    size_t stride = 2 * cache->nb[1];
    tandem_tensor *part = tandem_view(c, cache, 2, (int64_t[]){64, 4}, &stride, 34);
    return tandem_cpy(c, strided(c, r, 64, 4, 1, 1), part);
}
CASE(cont_plain) { return tandem_cont(c, leaf(c, r, 33, 200, 1, 1)); }
CASE(cont_transposed) { return tandem_cont(c, tandem_transpose(c, leaf(c, r, 65, 130, 2, 1))); }
CASE(cont_permuted)
{
    return tandem_cont(c, tandem_permute(c, leaf(c, r, 6, 11, 7, 3), 2, 0, 3, 1));
}
CASE(cont_heads) { return tandem_cont(c, tandem_permute(c, leaf(c, r, 64, 9, 4, 1), 0, 2, 1, 3)); }
CASE(cont_strided) { return tandem_cont(c, strided(c, r, 12, 5, 3, 2)); }
CASE(cont_ones) { return tandem_cont(c, tandem_transpose(c, leaf(c, r, 1, 300, 1, 4))); }
CASE(cont_f16) { return tandem_cont(c, tandem_transpose(c, typed(c, r, TANDEM_TYPE_F16, 30, 9))); }
CASE(cont_empty) { return tandem_cont(c, leaf(c, r, 4, 0, 3, 1)); }
CASE(concat_0) { return tandem_concat(c, leaf(c, r, 13, 5, 2, 3), leaf(c, r, 4, 5, 2, 3), 0); }
CASE(concat_1) { return tandem_concat(c, leaf(c, r, 13, 5, 2, 3), leaf(c, r, 13, 1, 2, 3), 1); }
CASE(concat_2) { return tandem_concat(c, strided(c, r, 13, 5, 2, 3), leaf(c, r, 13, 5, 9, 3), 2); }
CASE(concat_3) { return tandem_concat(c, leaf(c, r, 99, 5, 2, 3), strided(c, r, 99, 5, 2, 1), 3); }
CASE(concat_empty) { return tandem_concat(c, leaf(c, r, 0, 5, 1, 1), leaf(c, r, 3, 5, 1, 1), 0); }

static enum tandem_status double_items(void *user, const tandem_tensor *node, int64_t begin,
                                       int64_t end)
{
    const float *a = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *y = tandem_tensor_data(node);
    (void)user;
    for (int64_t i = begin; i < end; i++) {
        y[i] = 2 * a[i];
    }
    return TANDEM_OK;
}
CASE(custom)
{
    tandem_tensor *a = leaf(c, r, 333, 1, 1, 1);
    return tandem_custom(c, 1, a->ne, &a, 1, 333, double_items, NULL);
}
CASE(custom_nothing)
{
    tandem_tensor *a = leaf(c, r, 0, 1, 1, 1);
    return tandem_custom(c, 1, a->ne, &a, 1, 0, double_items, NULL);
}

/* What is rounded once is exact; sums, exponentials and angles in single precision are not. */
#define EXACT(name) {#name, 0, name, 0},
#define NEAR(name) {#name, 1e-12, name, 0},
#define TURNED(name) {#name, 1e-9, name, 0},
#define WORDS(name) {#name, 1e-12, name, 5e-8},
#define EXACT_ROWS(NAME) EXACT(rows_##NAME)
#define EXACT_TO(NAME) EXACT(to_##NAME)
const struct tnd_cpu_case tnd_cpu_cases[] = {
    EXACT(add_equal) EXACT(add_long) EXACT(add_row) EXACT(add_one) EXACT(add_part)
    EXACT(add_column) EXACT(add_strided) EXACT(add_empty) EXACT(add_no_rows) EXACT(sub) EXACT(mul)
    EXACT(mul_halves) EXACT(division) EXACT(scale) EXACT(scale_strided) EXACT(sqr)
    EXACT(square_root) EXACT(relu) EXACT(relu_empty) EXACT(clamp)
    EXACT(clamp_strided)
    NEAR(silu) NEAR(silu_wide) NEAR(silu_strided) NEAR(gelu) NEAR(gelu_erf) NEAR(gelu_strided)
    NEAR(tanh_row)
    NEAR(rms_norm) NEAR(rms_norm_long) NEAR(rms_norm_strided) NEAR(rms_norm_one)
    NEAR(rms_norm_zeros) NEAR(norm) NEAR(norm_shifted) NEAR(norm_strided)
    NEAR(soft_max) NEAR(soft_max_long) NEAR(soft_max_one) NEAR(soft_max_mask)
    EXACT(diag_mask) EXACT(diag_mask_strided)
    TURNED(rope_pairs) TURNED(rope_halves) TURNED(rope_part) TURNED(rope_part_halves)
    TURNED(rope_one_token) TURNED(rope_factors)
    NEAR(attention_causal) WORDS(attention_window) NEAR(attention_one)
    NEAR(attention_panels) NEAR(attention_panels_odd) WORDS(attention_panels_long)
    WORDS(attention_panels_q8) WORDS(attention_panels_window) NEAR(attention_texts)
    WORDS(attention_texts_window) NEAR(attention_no_head)
    NEAR(attention_panels_masked) NEAR(attention_panels_all)
    EXACT(rows_strided) FLOAT_TYPES(EXACT_ROWS) BLOCK_TYPES(EXACT_ROWS)
    FLOAT_TYPES(EXACT_TO) BLOCK_TYPES(EXACT_TO)
    EXACT(f16_to_f32) EXACT(f16_to_f16) EXACT(f16_to_bf16) EXACT(bf16_to_f32) EXACT(bf16_to_f16)
    EXACT(ints_to_ints) EXACT(into_transposed) EXACT(transposed_f16_to_f32) EXACT(other_shape)
    EXACT(blocks_strided) EXACT(cont_plain) EXACT(cont_transposed) EXACT(cont_permuted)
    EXACT(cont_heads) EXACT(cont_strided) EXACT(cont_ones) EXACT(cont_f16) EXACT(cont_empty)
    EXACT(concat_0) EXACT(concat_1) EXACT(concat_2) EXACT(concat_3) EXACT(concat_empty)
    EXACT(custom) EXACT(custom_nothing)
};
const int tnd_cpu_case_count = (int)(sizeof(tnd_cpu_cases) / sizeof(tnd_cpu_cases[0]));
