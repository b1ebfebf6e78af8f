/* SPDX-License-Identifier: MIT
 * Mixes of types and importance matrices: which tensor gets which type, which columns count, and
 * what is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/importance.h"
#include "formats/mix.h"
#include "tests/support.h"
#include "tests/support_blob.h"

/* 16 layers, four queries a key. */
static tandem_source *make_model(void)
{
    const struct tandem_llama_shape shape = {.size = sizeof(shape),
                                             .dim = 256,
                                             .hidden = 512,
                                             .layers = 16,
                                             .heads = 8,
                                             .kv_heads = 2,
                                             .vocabulary = 64,
                                             .context = 32};
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F16, 1, &source, NULL));
    CU_ASSERT_FATAL(source != NULL);
    return source;
}

/* The letters of a type by layer: 4 for q4_k and so on. */
static void letters_of(const struct tnd_mix *mix, const tandem_source *source, const char *part,
                       char out[17])
{
    for (int layer = 0; layer < 16; layer++) {
        char name[64];
        struct tandem_source_tensor tensor;
        snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, part);
        CU_ASSERT_FATAL(tandem_source_find(source, name, &tensor));
        const char *type = tandem_type_name(tnd_mix_type(mix, &tensor));
        out[layer] = type[0] == 'i' ? type[2] : type[1];
    }
    out[16] = '\0';
}

/* As llama-quantize lays such a model out. */
static void tensors_get_the_types_that_llama_cpp_gives_them(void)
{
    static const struct {
        const char *mix, *part, *types;
        int file_type;
    } rows[] = {{"Q4_K_M", "attn_v", "6644644644644666", 15},
                {"q4_k_m", "ffn_down", "6644644644644666", 15},
                {"q4_k_m", "ffn_up", "4444444444444444", 15},
                {"q4_k_s", "attn_v", "5555444444444444", 14},
                {"q4_k_s", "ffn_down", "5544444444444444", 14},
                {"q5_k_m", "attn_v", "6655655655655666", 17},
                {"q3_k_m", "attn_v", "5544444444444444", 12},
                {"q3_k_m", "ffn_down", "5444444444444444", 12},
                {"q3_k_m", "attn_output", "4444444444444444", 12},
                {"q3_k_l", "ffn_down", "5555555555555555", 13},
                {"q2_k", "attn_v", "4444444444444444", 10},
                {"q2_k", "ffn_down", "3333333333333333", 10},
                {"iq3_xs", "ffn_gate", "3333333333333333", 22},
                {"iq4_xs", "attn_v", "5555555555555555", 30},
                {"iq4_xs", "ffn_down", "5544444444444444", 30},
                {"iq1_m", "attn_output", "2222222222222222", 31}};
    tandem_source *source = make_model();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tnd_mix mix;
        char types[17];
        check_ok(tnd_mix_find(source, rows[i].mix, false, &mix, NULL));
        letters_of(&mix, source, rows[i].part, types);
        CU_ASSERT_STRING_EQUAL(types, rows[i].types);
        check_int(mix.file_type, rows[i].file_type);
    }
    tandem_source_close(source);
}

static void outputs_norms_and_rows_that_do_not_fit_have_rules_of_their_own(void)
{
    tandem_source *source = make_model();
    struct tandem_source_tensor tensor;
    struct tandem_error error = {.text = ""};
    struct tnd_mix mix;
    check_ok(tnd_mix_find(source, "q4_k_m", false, &mix, NULL));
    CU_ASSERT_FATAL(tandem_source_find(source, "output.weight", &tensor));
    check_int(tnd_mix_type(&mix, &tensor), TANDEM_TYPE_Q6_K);
    CU_ASSERT_FATAL(tandem_source_find(source, "token_embd.weight", &tensor));
    check_int(tnd_mix_type(&mix, &tensor), TANDEM_TYPE_Q4_K);
    mix.is_tied = true;
    check_int(tnd_mix_type(&mix, &tensor), TANDEM_TYPE_Q6_K);
    CU_ASSERT_FATAL(tandem_source_find(source, "blk.0.attn_norm.weight", &tensor));
    check_int(tnd_mix_type(&mix, &tensor), TANDEM_TYPE_F32);
    CU_ASSERT_FATAL(tandem_source_find(source, "blk.3.attn_q.weight", &tensor));
    tensor.ne[0] = 96;
    check_int(tnd_mix_type(&mix, &tensor), TANDEM_TYPE_Q5_0);
    tensor.ne[0] = 90;
    check_int(tnd_mix_type(&mix, &tensor), TANDEM_TYPE_F16);
    check_status(tnd_mix_find(source, "q4_k_x", false, &mix, &error), TANDEM_E_NOT_FOUND, "q4_k_x",
                 &error);
    tandem_source_close(source);
}

static void add_entry(struct tnd_blob *blob, const char *name, uint64_t n, int important)
{
    tnd_blob_number(blob, strlen(name), 4);
    tnd_blob_string(blob, name);
    tnd_blob_number(blob, 1, 4);
    tnd_blob_number(blob, n, 4);
    for (uint64_t i = 0; i < n; i++) { /* 1, or 1024 */
        tnd_blob_number(blob, (int)i == important ? 0x44800000 : 0x3f800000, 4);
    }
}

static void write_model(const char *mix, const char *importance, const char *path,
                        enum tandem_status expected, const char *part)
{
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    struct tandem_error error = {.text = ""};
    tandem_source *source = make_model();
    options.mix = mix;
    options.importance = importance;
    options.threads = 2;
    check_status(tandem_source_save_gguf(source, path, &options, &error), expected, part, &error);
    tandem_source_close(source);
}

static double column_error(const char *path, const char *name, int column)
{
    tandem_source *before = make_model();
    tandem_source *after = NULL;
    struct tandem_source_tensor from;
    struct tandem_source_tensor to;
    double error = 0;
    check_ok(tandem_source_open(path, &after, NULL));
    CU_ASSERT_FATAL(tandem_source_find(before, name, &from) &&
                    tandem_source_find(after, name, &to));
    for (int64_t r = 0; r < from.ne[1]; r++) {
        float x[512];
        float y[512];
        tandem_dequantize(from.type,
                          (const char *)from.data +
                              (size_t)r * tandem_type_row_bytes(from.type, from.ne[0]),
                          x, from.ne[0]);
        tandem_dequantize(
            to.type, (const char *)to.data + (size_t)r * tandem_type_row_bytes(to.type, to.ne[0]),
            y, to.ne[0]);
        error += ((double)x[column] - (double)y[column]) * ((double)x[column] - (double)y[column]);
    }
    tandem_source_close(before);
    tandem_source_close(after);
    return error;
}

static void an_important_column_has_the_smaller_error(void)
{
    char matrix[256];
    char plain[256];
    char weighted[256];
    struct tnd_blob blob = {NULL, 0};
    snprintf(matrix, sizeof(matrix), "%s", tnd_test_temp("x.dat"));
    snprintf(plain, sizeof(plain), "%s", tnd_test_temp("plain.gguf"));
    snprintf(weighted, sizeof(weighted), "%s", tnd_test_temp("weighted.gguf"));
    tnd_blob_number(&blob, 1, 4);
    add_entry(&blob, "blk.5.ffn_up.weight", 256, 77);
    CU_ASSERT_FATAL(tnd_test_write_file(matrix, blob.bytes, blob.n));
    tnd_blob_free(&blob);
    write_model("q4_k_m", NULL, plain, TANDEM_OK, NULL);
    write_model("q4_k_m", matrix, weighted, TANDEM_OK, NULL);
    CU_ASSERT_TRUE(column_error(weighted, "blk.5.ffn_up.weight", 77) <
                   0.5 * column_error(plain, "blk.5.ffn_up.weight", 77));
    CU_ASSERT_TRUE(column_error(weighted, "blk.6.ffn_up.weight", 77) ==
                   column_error(plain, "blk.6.ffn_up.weight", 77));
    write_model("iq2_xs", NULL, plain, TANDEM_E_ARGUMENT, "needs an importance matrix");
    write_model("iq2_xs", matrix, plain, TANDEM_E_ARGUMENT, "needs an importance matrix");
    write_model("nothing", NULL, plain, TANDEM_E_NOT_FOUND, "nothing");
}

static void broken_importance_matrices_are_refused(void)
{
    struct tandem_error error = {.text = ""};
    tandem_source *source = NULL;
    struct tnd_blob blob = {NULL, 0};
    float *columns = NULL;
    tnd_blob_number(&blob, 1, 4);
    add_entry(&blob, "w", 256, 3);
    for (size_t n = 0; n < blob.n; n++) {
        CU_ASSERT_NOT_EQUAL(tnd_importance_read(blob.bytes, n, "x", &source, &error), TANDEM_OK);
    }
    check_ok(tnd_importance_read(blob.bytes, blob.n, "x", &source, &error));
    struct tandem_source_tensor tensor = {.name = "w", .n_dims = 2, .ne = {256, 2, 1, 1}};
    check_ok(tnd_importance_of(source, &tensor, &columns, &error));
    CU_ASSERT_FATAL(columns != NULL);
    CU_ASSERT_TRUE(columns[3] == 1024.0f && columns[4] == 1.0f);
    tnd_free(columns);
    tensor.ne[0] = 128;
    check_status(tnd_importance_of(source, &tensor, &columns, &error), TANDEM_E_FORMAT,
                 "256 numbers", &error);
    tandem_source_close(source);
    tnd_blob_free(&blob);
    tnd_blob_number(&blob, 2, 4); /* twice the same */
    add_entry(&blob, "w", 2, 0);
    add_entry(&blob, "w", 2, 0);
    check_status(tnd_importance_read(blob.bytes, blob.n, "x", &source, &error), TANDEM_E_FORMAT,
                 "twice", &error);
    tnd_blob_free(&blob);
}

static CU_TestInfo mix_tests[] = {
    {"tensors get the types that llama.cpp gives them",
     tensors_get_the_types_that_llama_cpp_gives_them},
    {"outputs, norms and rows that do not fit have rules of their own",
     outputs_norms_and_rows_that_do_not_fit_have_rules_of_their_own},
    {"an important column has the smaller error", an_important_column_has_the_smaller_error},
    {"broken importance matrices are refused", broken_importance_matrices_are_refused},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_mix[] = {
    {"mix", NULL, NULL, NULL, NULL, mix_tests},
    CU_SUITE_INFO_NULL,
};
