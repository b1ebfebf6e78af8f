/* SPDX-License-Identifier: MIT
 * Weights that others quantised, against the definitions of their formats in double precision, and
 * what cannot be one of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/safetensors.h"
#include "tests/support.h"

enum { K = 128, N = 24, GROUP = 64, GROUPS = K / GROUP, ROWS = 10, COLUMNS = 48, WORD = 8 };

/* A matrix of one of the formats, and what it is. */
struct made {
    tandem_source *source;
    struct tnd_test_rng rng;
    uint8_t bytes[N][K]; /* e4m3 */
    float scale_inv[(N - 1) / ROWS + 1][(K - 1) / COLUMNS + 1];
    uint32_t words[K * N / WORD], zeros[GROUPS * N / WORD];
    uint16_t scales[GROUPS][N];
    int32_t groups[K];
    double want[N][K];
};

static struct made *made_new(enum tnd_hf_method method)
{
    struct made *m = calloc(1, sizeof(*m));
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    m->rng = tnd_test_rng_new(tnd_test_seed());
    check_ok(tnd_source_new("made", &m->source, NULL));
    m->source->hf_quantized = (struct tnd_hf_quantized){
        .method = method, .group = GROUP, .block = {ROWS, COLUMNS}, .zero_step = 1};
    m->source->hf_quantized.zero_step = method == TND_HF_GPTQ;
    return m;
}

static void made_free(struct made *m)
{
    tandem_source_close(m->source);
    free(m);
}

static void add(struct made *m, const char *name, enum tandem_type type, int64_t ne0, int64_t ne1,
                const void *data, size_t bytes)
{
    const int64_t ne[] = {ne0, ne1 > 0 ? ne1 : 1, 1, 1};
    check_ok(tnd_source_add(m->source, name, type, ne1 > 0 ? 2 : 1, ne, data, bytes, NULL));
}

static int below(struct made *m, int n)
{
    return (int)tnd_test_rng_int(&m->rng, 0, n - 1);
}

/* ---- the formats ---- */

/* OCP's table of e4m3: no infinities, one not-a-number of each sign. */
static double e4m3(uint8_t bits)
{
    const int exponent = bits >> 3 & 15;
    const double fraction = (bits & 7) / 8.0;
    const double size = exponent == 0 ? ldexp(fraction, -6) : ldexp(1.0 + fraction, exponent - 7);
    return (bits & 0x80) != 0 ? -size : size;
}

/* `are_powers`: scales of 2^n. */
static struct made *make_fp8(bool are_powers)
{
    struct made *m = made_new(TND_HF_FP8);
    const int64_t columns = (K - 1) / COLUMNS + 1;
    for (int i = 0; i < (N - 1) / ROWS + 1; i++) {
        for (int j = 0; j < columns; j++) {
            m->scale_inv[i][j] =
                are_powers ? ldexpf(1.0f, below(m, 40) - 30) : 0.01f + tnd_test_rng_float(&m->rng);
        }
    }
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < K; k++) {
            const int bits = below(m, 256);
            m->bytes[n][k] = (uint8_t)((bits & 0x7f) == 0x7f ? 3 : bits);
            m->want[n][k] = e4m3(m->bytes[n][k]) * (double)m->scale_inv[n / ROWS][k / COLUMNS];
        }
    }
    add(m, "blk.0.attn_q.weight", TND_HF_RAW_F8, K, N, m->bytes, sizeof(m->bytes));
    add(m, "blk.0.attn_q.weight_scale_inv", TANDEM_TYPE_F32, columns, (N - 1) / ROWS + 1,
        m->scale_inv, sizeof(m->scale_inv));
    return m;
}

enum zeros { ALL_8, EXACT, ANY };

static int zero_of(struct made *m, enum zeros zeros)
{
    return zeros == ALL_8 ? 8 : zeros == EXACT ? 1 << below(m, 5) : 1 + below(m, 16);
}

/* `by_activation`: rows of a group do not lie side by side. */
static struct made *make_words(enum tnd_hf_method method, enum zeros zeros, bool by_activation)
{
    static const int awq_order[] = {0, 2, 4, 6, 1, 3, 5, 7}; /* column of each place of a word */
    struct made *m = made_new(method);
    const bool is_awq = method == TND_HF_AWQ;
    int zero[GROUPS][N];
    for (int g = 0; g < GROUPS; g++) {
        for (int n = 0; n < N; n++) {
            const float scale = 0.001f + 0.1f * fabsf(tnd_test_rng_float(&m->rng));
            check_ok(tandem_quantize(TANDEM_TYPE_F16, &scale, &m->scales[g][n], 1));
            zero[g][n] = zero_of(m, zeros);
            zero[g][n] = is_awq && zero[g][n] > 15 ? 15 : zero[g][n];
        }
        for (int n = 0; n < N; n++) {
            const int column = is_awq ? n / WORD * WORD + awq_order[n % WORD] : n;
            const uint32_t stored = (uint32_t)(zero[g][column] - (is_awq ? 0 : 1));
            m->zeros[g * N / WORD + n / WORD] |= stored << (4 * (n % WORD));
        }
    }
    for (int k = 0; k < K; k++) {
        m->groups[k] = by_activation ? (k * 5) % GROUPS : k / GROUP;
        for (int n = 0; n < N; n++) {
            float scale;
            const int q = below(m, 16);
            check_ok(tandem_dequantize(TANDEM_TYPE_F16, &m->scales[m->groups[k]][n], &scale, 1));
            m->want[n][k] = (double)scale * (q - zero[m->groups[k]][n]);
            int place = k % WORD;
            for (int i = 0; i < WORD && is_awq; i++) {
                place = awq_order[i] == n % WORD ? i : place;
            }
            m->words[is_awq ? k * N / WORD + n / WORD : k / WORD * N + n] |= (uint32_t)q
                                                                             << (4 * place);
        }
    }
    add(m, "blk.0.attn_q.qweight", TANDEM_TYPE_I32, is_awq ? N / WORD : N, is_awq ? K : K / WORD,
        m->words, sizeof(m->words));
    add(m, "blk.0.attn_q.qzeros", TANDEM_TYPE_I32, N / WORD, GROUPS, m->zeros, sizeof(m->zeros));
    add(m, "blk.0.attn_q.scales", TANDEM_TYPE_F16, N, GROUPS, m->scales, sizeof(m->scales));
    if (!is_awq) {
        add(m, "blk.0.attn_q.g_idx", TANDEM_TYPE_I32, K, 0, m->groups, sizeof(m->groups));
    }
    return m;
}

/* All values are those of the format, rounded to F32 at most. */
static void check_made(struct made *m, enum tandem_type type, const char *what)
{
    float row[K];
    int wrong = 0;
    struct tandem_source_tensor t;
    struct tandem_error error = {.text = ""};
    check_status(tnd_hf_unpack(m->source, &error), TANDEM_OK, NULL, &error);
    check_int(tandem_source_tensor_count(m->source), 1);
    CU_ASSERT_TRUE_FATAL(tandem_source_find(m->source, "blk.0.attn_q.weight", &t));
    check_string(tandem_type_name(t.type), tandem_type_name(type));
    CU_ASSERT_TRUE(t.ne[0] == K && t.ne[1] == N && t.n_dims == 2);
    for (int n = 0; n < N; n++) {
        const char *from = (const char *)t.data + (size_t)n * tandem_type_row_bytes(t.type, K);
        check_ok(tandem_dequantize(t.type, from, row, K));
        for (int k = 0; k < K; k++) {
            wrong += row[k] != (float)m->want[n][k];
        }
    }
    check_int(wrong, 0);
    if (wrong > 0) {
        printf("\n    %s: %d values\n", what, wrong);
    }
    made_free(m);
}

static void quantised_weights_keep_all_of_their_values(void)
{
    for (int round = 0; round < 3 * tnd_effort(); round++) {
        check_made(make_fp8(true), TANDEM_TYPE_BF16, "fp8, powers of 2");
        check_made(make_fp8(false), TANDEM_TYPE_F32, "fp8");
        check_made(make_words(TND_HF_GPTQ, ALL_8, false), TANDEM_TYPE_Q4_0, "gptq");
        check_made(make_words(TND_HF_GPTQ, EXACT, false), TANDEM_TYPE_Q4_1, "gptq, zeros");
        check_made(make_words(TND_HF_GPTQ, ANY, false), TANDEM_TYPE_F32, "gptq, any zeros");
        check_made(make_words(TND_HF_GPTQ, ALL_8, true), TANDEM_TYPE_F32, "gptq, desc_act");
        check_made(make_words(TND_HF_AWQ, ALL_8, false), TANDEM_TYPE_Q4_0, "awq");
        check_made(make_words(TND_HF_AWQ, ANY, false), TANDEM_TYPE_F32, "awq, any zeros");
    }
}

/* ---- what cannot be ---- */

static struct tandem_source_tensor *tensor_of(struct made *m, const char *end)
{
    char name[64];
    snprintf(name, sizeof(name), "blk.0.attn_q.%s", end);
    const int64_t at = tnd_source_find(m->source, name);
    CU_ASSERT_TRUE_FATAL(at >= 0);
    return &m->source->tensors[at];
}

static void check_refused(struct made *m, const char *part)
{
    struct tandem_error error = {.text = ""};
    const enum tandem_status status = tnd_hf_unpack(m->source, &error);
    CU_ASSERT_TRUE(status == TANDEM_E_SHAPE || status == TANDEM_E_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.text, part));
    if (strstr(error.text, part) == NULL) {
        printf("\n    '%s', expected '%s'\n", error.text, part);
    }
    made_free(m);
}

static void parts_that_do_not_fit_are_refused(void)
{
    struct made *m = make_fp8(false);
    tensor_of(m, "weight_scale_inv")->ne[0]++;
    check_refused(m, "a float for each block");
    m = make_fp8(false);
    strcpy((char *)(uintptr_t)tensor_of(m, "weight_scale_inv")->name, "blk.0.attn_q.other");
    check_refused(m, "weight_scale_inv beside it");
    m = make_fp8(false);
    tensor_of(m, "weight_scale_inv")->type = TANDEM_TYPE_I32;
    check_refused(m, "a float for each block");
    m = make_fp8(false);
    tensor_of(m, "weight")->n_dims = 3;
    check_refused(m, "a matrix .weight");
    static const struct {
        const char *end;
        const char *part;
    } words[] = {{"qzeros", "4 bits for each group"},
                 {"scales", "a float for each group"},
                 {"g_idx", "the group of each row"}};
    for (int i = 0; i < 3; i++) {
        m = make_words(TND_HF_GPTQ, ALL_8, false);
        tensor_of(m, words[i].end)->ne[0] += 8;
        check_refused(m, words[i].part);
    }
    m = make_words(TND_HF_GPTQ, ALL_8, false);
    m->groups[77] = GROUPS;
    check_refused(m, "row 77 is of group 2, expected 0 to 1");
    m = make_words(TND_HF_GPTQ, ALL_8, false);
    m->groups[0] = -1;
    check_refused(m, "row 0 is of group -1");
    m = make_words(TND_HF_AWQ, ALL_8, false);
    tensor_of(m, "qweight")->type = TANDEM_TYPE_F32;
    check_refused(m, "a matrix of i32");
}

/* Then there is no such model, and it is refused by the name of what is left over. */
static void scales_of_plain_weights_stay(void)
{
    static const float plain[4] = {1, 2, 3, 4};
    struct made *m = make_fp8(true);
    add(m, "blk.1.attn_q.weight", TANDEM_TYPE_F32, 2, 2, plain, sizeof(plain));
    add(m, "blk.1.attn_q.weight_scale_inv", TANDEM_TYPE_F32, 1, 1, plain, sizeof(float));
    add(m, "blk.1.attn_k.scales", TANDEM_TYPE_F32, 1, 1, plain, sizeof(float));
    check_ok(tnd_hf_unpack(m->source, NULL));
    check_int(tandem_source_tensor_count(m->source), 4);
    made_free(m);
}

static void configurations_say_what_is_read(void)
{
    static const struct {
        const char *text, *part; /* NULL: it is read */
    } rows[] = {
        {"{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\",\"weight_block_size\":[128,128]}", NULL},
        {"{\"quant_method\":\"fp8\",\"activation_scheme\":\"dynamic\",\"ignored_layers\":[1]}",
         NULL},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":null}", NULL},
        {"{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}", "expected fmt e4m3"},
        {"{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"}",
         "activation_scheme dynamic"},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[128]}", "weight_block_size"},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[0,128]}", "weight_block_size"},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[1,2,3]}", "weight_block_size"},
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,\"desc_act\":true}", NULL},
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":-1}", NULL},
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":0}", "a group_size"},
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":1.5}", "a group_size"},
        {"{\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":128}", "gptq in 8 bits"},
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,\"checkpoint_format\":"
         "\"marlin\"}",
         "checkpoint_format gptq"},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"version\":\"gemm\"}", NULL},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"version\":\"gemv\"}",
         "version gemm"},
        {"{\"quant_method\":\"compressed-tensors\"}", "quantised by compressed-tensors"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t n = strlen(rows[i].text);
        struct tnd_json json = {rows[i].text, rows[i].text, rows[i].text + n, "config.json"};
        struct tnd_hf_quantized how;
        struct tandem_error error = {.text = ""};
        check_status(tnd_hf_read_quantized(&json, "quantization_config", &how, &error),
                     rows[i].part == NULL ? TANDEM_OK : TANDEM_E_UNSUPPORTED_BUILD, rows[i].part,
                     &error);
    }
}

static CU_TestInfo tests[] = {
    {"quantised weights keep all of their values", quantised_weights_keep_all_of_their_values},
    {"parts that do not fit are refused", parts_that_do_not_fit_are_refused},
    {"scales of plain weights stay", scales_of_plain_weights_stay},
    {"configurations say what is read", configurations_say_what_is_read},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_quantized[] = {
    {"quantised by others", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
