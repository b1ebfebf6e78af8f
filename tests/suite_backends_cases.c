/* SPDX-License-Identifier: MIT
 * The cases of the conformance suite. A new operation adds a builder and a row. */
#include "tests/suite_backends_cases.h"

#include <math.h>
#include <string.h>

#include "tandem/sample.h"

static const int64_t shapes[TND_TEST_SHAPES][TANDEM_MAX_DIMS] = {
    {1, 1, 1, 1}, {64, 3, 1, 1}, {37, 5, 3, 1}, {6, 4, 2, 3}, {130, 9, 1, 2}, {8, 0, 1, 1},
};

/* ---- operands ---- */

static tandem_tensor *leaf(struct tnd_test_kit *kit, enum tandem_type type, int64_t e0, int64_t e1,
                           int64_t e2, int64_t e3)
{
    return tnd_test_leaf(kit->context, type, (int64_t[]){e0, e1, e2, e3}, kit->rng);
}

static tandem_tensor *operand(struct tnd_test_kit *kit)
{
    return tnd_test_leaf(kit->context, TANDEM_TYPE_F32, kit->ne, kit->rng);
}

/* Values in [1, 2): for what divides or takes roots. */
static tandem_tensor *positive(tandem_tensor *tensor)
{
    float *values = tensor->data;
    for (int64_t i = 0; i < tandem_tensor_elements(tensor); i++) {
        values[i] = 1.5F + values[i] / 2;
    }
    return tensor;
}

/* A view whose rows stand apart: every second row of a tensor twice as high. */
static tandem_tensor *strided(struct tnd_test_kit *kit)
{
    const int64_t *ne = kit->ne;
    if (ne[1] == 0) {
        return operand(kit);
    }
    tandem_tensor *all = leaf(kit, TANDEM_TYPE_F32, ne[0] + 3, 2 * ne[1], ne[2], ne[3]);
    size_t nb[3] = {2 * all->nb[1], all->nb[2], all->nb[3]};
    return tandem_view(kit->context, all, 4, ne, nb, sizeof(float));
}

static tandem_tensor *integers(struct tnd_test_kit *kit, int64_t n, int64_t below)
{
    tandem_tensor *ids = tandem_tensor_new(kit->context, TANDEM_TYPE_I32, 1, &n);
    for (int64_t i = 0; i < n; i++) {
        ((int32_t *)ids->data)[i] = (int32_t)tnd_test_rng_int(kit->rng, 0, below - 1);
    }
    return ids;
}

/* ---- products and rows ---- */

/* Row length that fits the type's blocks. */
static int64_t row_length(const struct tnd_test_kit *kit)
{
    int64_t block = tandem_type_block_values(kit->type);
    return block == 1 ? kit->ne[0] : block * (1 + kit->ne[0] / 100);
}

static tandem_tensor *build_mul_mat(struct tnd_test_kit *kit)
{
    int64_t k = row_length(kit);
    tandem_tensor *w = leaf(kit, kit->type, k, 2 * kit->ne[1] + 1, 1, 1);
    return tandem_mul_mat(kit->context, w, leaf(kit, TANDEM_TYPE_F32, k, kit->ne[1], 1, 1));
}

/* Grouped: each matrix of weights meets two of activations. */
static tandem_tensor *build_mul_mat_grouped(struct tnd_test_kit *kit)
{
    int64_t k = row_length(kit);
    tandem_tensor *w = leaf(kit, kit->type, k, kit->ne[1] + 2, kit->ne[2], kit->ne[3]);
    tandem_tensor *x = leaf(kit, TANDEM_TYPE_F32, k, kit->ne[1], 2 * kit->ne[2], 3 * kit->ne[3]);
    return tandem_mul_mat(kit->context, w, x);
}

static tandem_tensor *build_mul_mat_strided(struct tnd_test_kit *kit)
{
    tandem_tensor *w = leaf(kit, TANDEM_TYPE_F32, kit->ne[0], 4, 1, 1);
    return tandem_mul_mat(kit->context, w, strided(kit));
}

static tandem_tensor *build_get_rows(struct tnd_test_kit *kit)
{
    tandem_tensor *w = leaf(kit, kit->type, row_length(kit), 11, 1, 1);
    return tandem_get_rows(kit->context, w, integers(kit, kit->ne[1], 11));
}

/* ---- experts ---- */

/* Indices below `below`, a row a token. */
static tandem_tensor *index_rows(struct tnd_test_kit *kit, int64_t n, int64_t m, int64_t below)
{
    return tandem_reshape(kit->context, integers(kit, n * m, below), 2, (int64_t[]){n, m});
}

static tandem_tensor *build_mul_mat_id(struct tnd_test_kit *kit)
{
    int64_t k = row_length(kit);
    int64_t m = kit->ne[1];
    tandem_tensor *w = leaf(kit, kit->type, k, m + 2, kit->ne[2] + 2, 1);
    tandem_tensor *x = leaf(kit, TANDEM_TYPE_F32, k, kit->ne[3] == 1 ? 1 : 3, m, 1);
    return tandem_mul_mat_id(kit->context, w, x, index_rows(kit, 3, m, kit->ne[2] + 2));
}

static tandem_tensor *build_top_k(struct tnd_test_kit *kit)
{
    return tandem_top_k(kit->context, strided(kit), (kit->ne[0] + 1) / 2);
}

/* Rows of top-k, top-p and min-p by turns, with a mask in every second shape. */
static tandem_tensor *build_sample(struct tnd_test_kit *kit)
{
    tandem_tensor *logits = leaf(kit, TANDEM_TYPE_F32, kit->ne[0], kit->ne[1], 1, 1);
    const int64_t n_words = (kit->ne[0] + 31) / 32;
    const int64_t ne[] = {8, kit->ne[1]};
    tandem_tensor *settings = tandem_tensor_new(kit->context, TANDEM_TYPE_I32, 2, ne);
    tandem_tensor *mask = kit->ne[2] % 2 == 0 ? integers(kit, n_words, INT32_MAX) : NULL;
    for (int64_t m = 0; m < ne[1]; m++) {
        struct tandem_sample_settings one;
        tandem_sample_settings_fill(&one, 0.3f * (float)(m % 5), m % 3 == 1 ? m : 0,
                                    m % 3 == 2 ? 0.7f : 0.0f, m % 4 == 3 ? 0.2f : 0.0f,
                                    0x9e3779b97f4a7c15u * (uint64_t)(m + 1));
        memcpy((char *)tandem_tensor_data(settings) + (size_t)m * sizeof(one), &one, sizeof(one));
    }
    return tandem_sample(kit->context, logits, settings, mask,
                         TANDEM_SAMPLE_DRAWS | TANDEM_SAMPLE_K | TANDEM_SAMPLE_SHARE);
}

static tandem_tensor *build_gather(struct tnd_test_kit *kit)
{
    tandem_tensor *a = leaf(kit, TANDEM_TYPE_F32, kit->ne[0], kit->ne[1], 1, 1);
    return tandem_gather(kit->context, a, index_rows(kit, 4, kit->ne[1], kit->ne[0]));
}

static tandem_tensor *build_weighted_sum(struct tnd_test_kit *kit)
{
    tandem_tensor *a = leaf(kit, TANDEM_TYPE_F32, kit->ne[0], kit->ne[2], kit->ne[1], 1);
    tandem_tensor *weights = leaf(kit, TANDEM_TYPE_F32, kit->ne[2], kit->ne[1], 1, 1);
    return tandem_weighted_sum(kit->context, a, positive(weights));
}

/* ---- element by element ---- */

#define BUILD_BINARY(name, second)                                                                 \
    static tandem_tensor *build_##name(struct tnd_test_kit *kit)                                   \
    {                                                                                              \
        return tandem_##name(kit->context, strided(kit), second);                                  \
    }                                                                                              \
    static tandem_tensor *build_##name##_repeated(struct tnd_test_kit *kit)                        \
    {                                                                                              \
        return tandem_##name(kit->context, operand(kit),                                           \
                             positive(leaf(kit, TANDEM_TYPE_F32, kit->ne[0], 1, kit->ne[2], 1)));  \
    }
BUILD_BINARY(add, operand(kit))
BUILD_BINARY(sub, operand(kit))
BUILD_BINARY(mul, operand(kit))
BUILD_BINARY(div, positive(operand(kit)))

#define BUILD_UNARY(name, first)                                                                   \
    static tandem_tensor *build_##name(struct tnd_test_kit *kit)                                   \
    {                                                                                              \
        return tandem_##name(kit->context, first);                                                 \
    }
BUILD_UNARY(sqr, strided(kit))
BUILD_UNARY(sqrt, positive(operand(kit)))
BUILD_UNARY(sigmoid, strided(kit))
BUILD_UNARY(tanh, strided(kit))
BUILD_UNARY(silu, strided(kit))
BUILD_UNARY(gelu, strided(kit))
BUILD_UNARY(gelu_erf, strided(kit))
BUILD_UNARY(relu, strided(kit))
BUILD_UNARY(cont, tandem_permute(kit->context, operand(kit), 1, 0, 3, 2))

static tandem_tensor *build_scale(struct tnd_test_kit *kit)
{
    return tandem_scale(kit->context, strided(kit), -1.75F);
}

static tandem_tensor *build_clamp(struct tnd_test_kit *kit)
{
    return tandem_clamp(kit->context, strided(kit), -0.25F, 0.5F);
}

/* ---- rows ---- */

static tandem_tensor *build_rms_norm(struct tnd_test_kit *kit)
{
    return tandem_rms_norm(kit->context, strided(kit), 1e-5F);
}

static tandem_tensor *build_norm(struct tnd_test_kit *kit)
{
    return tandem_norm(kit->context, strided(kit), 1e-5F);
}

static tandem_tensor *build_soft_max(struct tnd_test_kit *kit)
{
    return tandem_soft_max(kit->context, operand(kit), NULL, 3.0F);
}

static tandem_tensor *build_soft_max_masked(struct tnd_test_kit *kit)
{
    tandem_tensor *mask = leaf(kit, TANDEM_TYPE_F32, kit->ne[0], kit->ne[1] + 1, 1, 1);
    return tandem_soft_max(kit->context, strided(kit), mask, 0.5F);
}

static tandem_tensor *build_diag_mask_inf(struct tnd_test_kit *kit)
{
    return tandem_diag_mask_inf(kit->context, operand(kit), 2);
}

static tandem_tensor *build_rope_of(struct tnd_test_kit *kit, enum tandem_rope_pairs pairs,
                                    int64_t n_rot)
{
    if (kit->ne[0] % 2 != 0) {
        return NULL;
    }
    struct tandem_rope_options options = TANDEM_ROPE_OPTIONS_INIT;
    options.pairs = pairs;
    options.n_rot = n_rot;
    options.freq_scale = 0.5F;
    return tandem_rope(kit->context, operand(kit), integers(kit, kit->ne[2], 500), &options);
}

static tandem_tensor *build_rope_adjacent(struct tnd_test_kit *kit)
{
    return build_rope_of(kit, TANDEM_ROPE_ADJACENT, 0);
}

static tandem_tensor *build_rope_halves(struct tnd_test_kit *kit)
{
    return build_rope_of(kit, TANDEM_ROPE_HALVES, kit->ne[0] / 4 * 2);
}

static tandem_tensor *build_rope_factors(struct tnd_test_kit *kit)
{
    if (kit->ne[0] % 2 != 0) {
        return NULL;
    }
    tandem_tensor *factors = positive(leaf(kit, TANDEM_TYPE_F32, kit->ne[0] / 2, 1, 1, 1));
    return tandem_rope_factors(kit->context, operand(kit), integers(kit, kit->ne[2], 500), factors,
                               NULL);
}

/* ---- attention: 3 query heads share a KV head; values are longer than keys ---- */

struct qkv {
    tandem_tensor *q, *k, *v;
    int64_t t, m;
};

static struct qkv operands_of_attention(struct tnd_test_kit *kit)
{
    const int64_t head = row_length(kit);
    const int64_t kv_heads = kit->ne[2];
    struct qkv o = {.t = kit->ne[0] + 3, .m = kit->ne[1]};
    o.q = leaf(kit, TANDEM_TYPE_F32, head, 3 * kv_heads, o.m, 1);
    o.q = tandem_permute(kit->context, o.q, 0, 2, 1, 3);
    o.k = leaf(kit, kit->type, head, kv_heads, o.t, 1);
    o.k = tandem_permute(kit->context, o.k, 0, 2, 1, 3);
    o.v = leaf(kit, kit->type, 2 * head, o.t, kv_heads, 1);
    return o;
}

static tandem_tensor *build_attention(struct tnd_test_kit *kit)
{
    struct qkv o = operands_of_attention(kit);
    return tandem_attention(kit->context, o.q, o.k, o.v, NULL, 0.3F);
}

static tandem_tensor *build_attention_masked(struct tnd_test_kit *kit)
{
    struct qkv o = operands_of_attention(kit);
    tandem_tensor *mask = leaf(kit, TANDEM_TYPE_F32, o.t, o.m + 1, 1, 1);
    for (int64_t i = 0; i < o.t * o.m; i += 3) {
        ((float *)mask->data)[i] = -INFINITY;
    }
    return tandem_attention(kit->context, o.q, o.k, o.v, mask, 0.3F);
}

static tandem_tensor *build_attention_ordered(struct tnd_test_kit *kit)
{
    struct qkv o = operands_of_attention(kit);
    return tandem_attention_ordered(kit->context, o.q, o.k, o.v, integers(kit, o.t + o.m, 40), 25,
                                    0.3F);
}

static tandem_tensor *attention_with(struct tnd_test_kit *kit, float cap, bool has_mask)
{
    struct qkv o = operands_of_attention(kit);
    const struct tandem_attention_options options = {
        .size = sizeof(options),
        .scale = 0.3F,
        .cap = cap,
        .mask = has_mask ? integers(kit, o.t + o.m, 40) : NULL,
        .window = 25,
        .sinks = leaf(kit, TANDEM_TYPE_F32, 3 * kit->ne[2], 1, 1, 1)};
    return tandem_attention_with(kit->context, o.q, o.k, o.v, &options);
}

static tandem_tensor *build_attention_capped(struct tnd_test_kit *kit)
{
    return attention_with(kit, 0.4F, true);
}

static tandem_tensor *build_attention_sinks(struct tnd_test_kit *kit)
{
    return attention_with(kit, 0.0F, false);
}

/* ---- moving values ---- */

static tandem_tensor *build_cpy(struct tnd_test_kit *kit)
{
    int64_t k = row_length(kit);
    tandem_tensor *from = leaf(kit, TANDEM_TYPE_F32, k, kit->ne[1], kit->ne[2], 1);
    return tandem_cpy(kit->context, from, leaf(kit, kit->type, k, kit->ne[1], kit->ne[2], 1));
}

/* All places get a matrix, from the last one on, and some a second one, which counts. */
static tandem_tensor *build_scatter(struct tnd_test_kit *kit)
{
    const int64_t k = row_length(kit);
    const int64_t n = kit->ne[2] + 1;
    const int64_t m = n + 3;
    tandem_tensor *from = leaf(kit, TANDEM_TYPE_F32, k, kit->ne[1], m, 1);
    tandem_tensor *to = leaf(kit, kit->type, k, kit->ne[1], n, 1);
    tandem_tensor *ids = integers(kit, m, n);
    for (int64_t i = 0; i < n; i++) {
        ((int32_t *)ids->data)[i] = (int32_t)(n - 1 - i);
    }
    return tandem_scatter(kit->context, from, to, ids);
}

static tandem_tensor *build_cpy_from(struct tnd_test_kit *kit)
{
    tandem_tensor *from = tnd_test_leaf(kit->context, kit->type, kit->ne, kit->rng);
    return tandem_cpy(kit->context, from, operand(kit));
}

static tandem_tensor *build_concat_0(struct tnd_test_kit *kit)
{
    tandem_tensor *b =
        leaf(kit, TANDEM_TYPE_F32, kit->ne[0] + 2, kit->ne[1], kit->ne[2], kit->ne[3]);
    return tandem_concat(kit->context, strided(kit), b, 0);
}

static tandem_tensor *build_concat_2(struct tnd_test_kit *kit)
{
    tandem_tensor *b = leaf(kit, TANDEM_TYPE_F32, kit->ne[0], kit->ne[1], 4, kit->ne[3]);
    return tandem_concat(kit->context, operand(kit), b, 2);
}

/* ---- a user's own operation: item i is the square of value i ---- */

static enum tandem_status squares(void *user, const tandem_tensor *node, int64_t begin, int64_t end)
{
    (void)user;
    const float *from = tandem_tensor_data(tandem_tensor_src(node, 0));
    float *to = tandem_tensor_data(node);
    for (int64_t i = begin; i < end; i++) {
        to[i] = from[i] * from[i];
    }
    return TANDEM_OK;
}

static tandem_tensor *build_custom(struct tnd_test_kit *kit)
{
    tandem_tensor *a = operand(kit);
    return tandem_custom(kit->context, 4, kit->ne, &a, 1, tandem_tensor_elements(a), squares, NULL);
}

/* ---- the list ---- */

#define F32   TANDEM_TYPE_F32
#define EXACT 1e-14
#define CLOSE 1e-10
#define WORDS 2e-7 /* attention of rows in words: heads of 256, scores of some 5 */
static const struct tnd_test_case cases[] = {
    {"mul_mat f32", build_mul_mat, F32, 0},
    {"mul_mat f16", build_mul_mat, TANDEM_TYPE_F16, 0},
    {"mul_mat bf16", build_mul_mat, TANDEM_TYPE_BF16, 0},
    {"mul_mat q4_0", build_mul_mat, TANDEM_TYPE_Q4_0, 0},
    {"mul_mat q4_1", build_mul_mat, TANDEM_TYPE_Q4_1, 0},
    {"mul_mat q5_0", build_mul_mat, TANDEM_TYPE_Q5_0, 0},
    {"mul_mat q5_1", build_mul_mat, TANDEM_TYPE_Q5_1, 0},
    {"mul_mat q8_0", build_mul_mat, TANDEM_TYPE_Q8_0, 0},
    {"mul_mat q2_k", build_mul_mat, TANDEM_TYPE_Q2_K, 0},
    {"mul_mat q3_k", build_mul_mat, TANDEM_TYPE_Q3_K, 0},
    {"mul_mat q4_k", build_mul_mat, TANDEM_TYPE_Q4_K, 0},
    {"mul_mat q5_k", build_mul_mat, TANDEM_TYPE_Q5_K, 0},
    {"mul_mat q6_k", build_mul_mat, TANDEM_TYPE_Q6_K, 0},
    {"mul_mat bcml1", build_mul_mat, TANDEM_TYPE_BCML1, 0},
    {"mul_mat f32 grouped", build_mul_mat_grouped, F32, 0},
    {"mul_mat f16 grouped", build_mul_mat_grouped, TANDEM_TYPE_F16, 0},
    {"mul_mat q8_0 grouped", build_mul_mat_grouped, TANDEM_TYPE_Q8_0, 0},
    {"mul_mat f32 strided", build_mul_mat_strided, F32, 0},
    {"get_rows f32", build_get_rows, F32, EXACT},
    {"get_rows f16", build_get_rows, TANDEM_TYPE_F16, EXACT},
    {"get_rows q4_0", build_get_rows, TANDEM_TYPE_Q4_0, EXACT},
    {"get_rows q6_k", build_get_rows, TANDEM_TYPE_Q6_K, EXACT},
    {"mul_mat_id f32", build_mul_mat_id, F32, 0},
    {"mul_mat_id f16", build_mul_mat_id, TANDEM_TYPE_F16, 0},
    {"mul_mat_id q4_0", build_mul_mat_id, TANDEM_TYPE_Q4_0, 0},
    {"mul_mat_id q6_k", build_mul_mat_id, TANDEM_TYPE_Q6_K, 0},
    {"mul_mat_id bcml1", build_mul_mat_id, TANDEM_TYPE_BCML1, 0},
    {"top_k", build_top_k, F32, EXACT},
    {"sample", build_sample, F32, EXACT},
    {"gather", build_gather, F32, EXACT},
    {"weighted_sum", build_weighted_sum, F32, CLOSE},
    {"add", build_add, F32, EXACT},
    {"add repeated", build_add_repeated, F32, EXACT},
    {"sub", build_sub, F32, EXACT},
    {"sub repeated", build_sub_repeated, F32, EXACT},
    {"mul", build_mul, F32, EXACT},
    {"mul repeated", build_mul_repeated, F32, EXACT},
    {"div", build_div, F32, EXACT},
    {"div repeated", build_div_repeated, F32, EXACT},
    {"scale", build_scale, F32, EXACT},
    {"sqr", build_sqr, F32, EXACT},
    {"sqrt", build_sqrt, F32, EXACT},
    {"sigmoid", build_sigmoid, F32, CLOSE},
    {"tanh", build_tanh, F32, CLOSE},
    {"silu", build_silu, F32, CLOSE},
    {"gelu", build_gelu, F32, CLOSE},
    {"gelu_erf", build_gelu_erf, F32, CLOSE},
    {"relu", build_relu, F32, EXACT},
    {"clamp", build_clamp, F32, EXACT},
    {"rms_norm", build_rms_norm, F32, CLOSE},
    {"norm", build_norm, F32, 1e-8},
    {"soft_max", build_soft_max, F32, CLOSE},
    {"soft_max masked", build_soft_max_masked, F32, CLOSE},
    {"diag_mask_inf", build_diag_mask_inf, F32, EXACT},
    {"rope adjacent", build_rope_adjacent, F32, 1e-8},
    {"rope halves", build_rope_halves, F32, 1e-8},
    {"rope factors", build_rope_factors, F32, 1e-8},
    {"attention f32", build_attention, F32, CLOSE},
    {"attention f16", build_attention, TANDEM_TYPE_F16, WORDS},
    {"attention bf16", build_attention, TANDEM_TYPE_BF16, WORDS},
    {"attention q8_0", build_attention, TANDEM_TYPE_Q8_0, WORDS},
    {"attention q4_k", build_attention, TANDEM_TYPE_Q4_K, WORDS},
    {"attention masked", build_attention_masked, F32, CLOSE},
    {"attention ordered", build_attention_ordered, F32, CLOSE},
    {"attention sinks", build_attention_sinks, F32, CLOSE},
    {"attention capped, with sinks", build_attention_capped, TANDEM_TYPE_F16, WORDS},
    {"attention ordered q8_0", build_attention_ordered, TANDEM_TYPE_Q8_0, WORDS},
    {"attention ordered q4_0", build_attention_ordered, TANDEM_TYPE_Q4_0, WORDS},
    {"cpy to f32", build_cpy, F32, EXACT},
    {"cpy to f16", build_cpy, TANDEM_TYPE_F16, EXACT},
    {"cpy to bf16", build_cpy, TANDEM_TYPE_BF16, EXACT},
    {"cpy to q8_0", build_cpy, TANDEM_TYPE_Q8_0, EXACT},
    {"cpy to q4_0", build_cpy, TANDEM_TYPE_Q4_0, EXACT},
    {"cpy from f16", build_cpy_from, TANDEM_TYPE_F16, EXACT},
    {"scatter to f32", build_scatter, F32, EXACT},
    {"scatter to f16", build_scatter, TANDEM_TYPE_F16, EXACT},
    {"scatter to q8_0", build_scatter, TANDEM_TYPE_Q8_0, EXACT},
    {"scatter to q4_0", build_scatter, TANDEM_TYPE_Q4_0, EXACT},
    {"cont of a permutation", build_cont, F32, EXACT},
    {"concat along 0", build_concat_0, F32, EXACT},
    {"concat along 2", build_concat_2, F32, EXACT},
    {"custom", build_custom, F32, EXACT},
};

int tnd_test_case_count(void)
{
    return (int)(sizeof(cases) / sizeof(cases[0]));
}

const struct tnd_test_case *tnd_test_case_at(int i)
{
    return &cases[i];
}

tandem_tensor *tnd_test_case_build(const struct tnd_test_case *one, tandem_context *context,
                                   int shape, struct tnd_test_rng *rng)
{
    struct tnd_test_kit kit = {.context = context, .rng = rng, .type = one->type};
    memcpy(kit.ne, shapes[shape], sizeof(kit.ne));
    tandem_tensor *result = one->build(&kit);
    if (result == NULL) {
        struct tandem_error error = {0};
        (void)check_status(tandem_context_status(context, &error), TANDEM_OK, NULL, &error);
        return NULL;
    }
    return tnd_test_node(context, result);
}
