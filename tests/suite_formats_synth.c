/* SPDX-License-Identifier: MIT
 * Synthetic llamas, and sources converted to another type. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tandem/formats.h"
#include "tests/support.h"

static struct tandem_llama_shape small_shape(void)
{
    struct tandem_llama_shape shape = {.size = sizeof(shape),
                                       .dim = 256,
                                       .hidden = 336,
                                       .layers = 2,
                                       .heads = 8,
                                       .kv_heads = 2,
                                       .vocabulary = 100,
                                       .context = 32};
    return shape;
}

static void weights_have_the_wanted_type_where_rows_fit(void)
{
    const struct tandem_llama_shape shape = small_shape();
    tandem_source *source = NULL;
    struct tandem_source_tensor tensor;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_Q4_0, 1, &source, NULL));
    check_string(tandem_source_format(source), "synthetic");
    check_int(tandem_source_tensor_count(source), 3 + 9 * 2);
    CU_ASSERT_FATAL(tandem_source_find(source, "blk.1.attn_k.weight", &tensor));
    check_int(tensor.type, TANDEM_TYPE_Q4_0);
    check_int(tensor.ne[0], 256);
    check_int(tensor.ne[1], 64);
    check_int(tensor.bytes, 256 / 32 * 18 * 64);
    CU_ASSERT_FATAL(tandem_source_find(source, "blk.0.ffn_down.weight", &tensor));
    check_int(tensor.type, TANDEM_TYPE_F32); /* rows of 336 are not whole blocks of 32 */
    CU_ASSERT_FATAL(tandem_source_find(source, "blk.0.attn_norm.weight", &tensor));
    check_int(tensor.type, TANDEM_TYPE_F32);
    CU_ASSERT_EQUAL(((const float *)tensor.data)[255], 1.0f);
    tandem_source_close(source);
}

static void weights_deviate_by_one_over_the_root_of_k_in_every_type(void)
{
    const enum tandem_type types[] = {
#define TYPE_VALUE(name, number, text, values, bytes) TANDEM_TYPE_##name,
        TANDEM_TYPE_LIST(TYPE_VALUE)
#undef TYPE_VALUE
    };
    const struct tandem_llama_shape shape = small_shape();
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        if (types[t] == TANDEM_TYPE_I32) {
            continue;
        }
        tandem_source *source = NULL;
        struct tandem_source_tensor tensor;
        float row[256];
        double sum = 0.0;
        check_ok(tandem_source_synthesize(&shape, types[t], 7, &source, NULL));
        CU_ASSERT_FATAL(tandem_source_find(source, "blk.1.ffn_up.weight", &tensor));
        check_int(tensor.type, types[t]);
        const size_t row_bytes = tandem_type_row_bytes(types[t], 256);
        for (int64_t i = 0; i < tensor.ne[1]; i++) {
            check_ok(tandem_dequantize(types[t], (const char *)tensor.data + i * (int64_t)row_bytes,
                                       row, 256));
            for (int j = 0; j < 256; j++) {
                sum += (double)row[j] * (double)row[j];
            }
        }
        /* Below 3 bits much of a value is lost. */
        const bool is_coarse = row_bytes * 8 < 3 * 256;
        CU_ASSERT_DOUBLE_EQUAL(sqrt(sum / (256.0 * 336.0)) * 16.0, 1.0, is_coarse ? 0.25 : 0.05);
        tandem_source_close(source);
    }
}

static void the_same_seed_gives_the_same_weights_and_another_seed_others(void)
{
    const struct tandem_llama_shape shape = small_shape();
    tandem_source *sources[3] = {NULL, NULL, NULL};
    struct tandem_source_tensor tensors[3];
    const uint64_t seeds[3] = {5, 5, 6};
    for (int i = 0; i < 3; i++) {
        check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_Q8_0, seeds[i], &sources[i], NULL));
        CU_ASSERT_FATAL(tandem_source_find(sources[i], "output.weight", &tensors[i]));
    }
    check_bits(tensors[0].data, tensors[1].data, tensors[0].bytes, "seed 5");
    CU_ASSERT_NOT_EQUAL(memcmp(tensors[0].data, tensors[2].data, tensors[0].bytes), 0);
    for (int i = 0; i < 3; i++) {
        tandem_source_close(sources[i]);
    }
}

static void impossible_shapes_are_refused(void)
{
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    struct tandem_llama_shape shape = small_shape();
    shape.kv_heads = 3;
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error),
                 TANDEM_E_ARGUMENT, "KV heads is 3", &error);
    shape = small_shape();
    shape.layers = INT32_MAX;
    shape.vocabulary = INT32_MAX;
    shape.hidden = INT32_MAX;
    CU_ASSERT_NOT_EQUAL(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error),
                        TANDEM_OK);
    shape = small_shape();
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_I32, 1, &source, &error),
                 TANDEM_E_ARGUMENT, "i32", &error);
    CU_ASSERT_PTR_NULL(source);
}

static void conversion_changes_matrices_that_fit_and_nothing_else(void)
{
    const struct tandem_llama_shape shape = small_shape();
    tandem_source *source = NULL;
    tandem_source *copy = NULL;
    struct tandem_source_tensor from;
    struct tandem_source_tensor to;
    float values[256];
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL));
    check_ok(tandem_source_convert(source, TANDEM_TYPE_Q8_0, &copy, NULL));
    check_int(tandem_source_tensor_count(copy), tandem_source_tensor_count(source));
    CU_ASSERT_FATAL(tandem_source_find(source, "token_embd.weight", &from));
    CU_ASSERT_FATAL(tandem_source_find(copy, "token_embd.weight", &to));
    check_int(to.type, TANDEM_TYPE_Q8_0);
    const size_t row_bytes = tandem_type_row_bytes(TANDEM_TYPE_Q8_0, 256);
    check_ok(tandem_dequantize(to.type, (const char *)to.data + 99 * row_bytes, values, 256));
    check_nmse(values, (const float *)from.data + 99 * 256, 256, 1e-4, "last row of token_embd");
    CU_ASSERT_FATAL(tandem_source_find(source, "blk.0.ffn_down.weight", &from));
    CU_ASSERT_FATAL(tandem_source_find(copy, "blk.0.ffn_down.weight", &to));
    check_int(to.type, TANDEM_TYPE_F32);
    check_bits(to.data, from.data, from.bytes, "ffn_down");
    CU_ASSERT_FATAL(tandem_source_find(copy, "output_norm.weight", &to));
    check_int(to.type, TANDEM_TYPE_F32);
    int64_t value = 0;
    CU_ASSERT_TRUE(tandem_source_integer(copy, "llama.block_count", &value));
    check_int(value, 2);
    tandem_source_close(source);
    tandem_source_close(copy);
}

static void each_failing_allocation_of_a_conversion_leaks_nothing(void)
{
    const struct tandem_llama_shape shape = small_shape();
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL));
    const long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    for (long n = 1; status != TANDEM_OK && n < 1000; n++) {
        tandem_source *copy = NULL;
        tnd_alloc_fail_after(n);
        status = tandem_source_convert(source, TANDEM_TYPE_F16, &copy, NULL);
        tnd_alloc_fail_after(-1);
        tandem_source_close(copy);
        CU_ASSERT_EQUAL(tnd_alloc_live(), live);
    }
    CU_ASSERT_EQUAL(status, TANDEM_OK);
    tandem_source_close(source);
}

static void heads_may_have_a_size_of_their_own(void)
{
    struct tandem_llama_shape shape = small_shape();
    struct tandem_hparams hparams = {.size = sizeof(hparams)};
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    shape.head_size = 2 * shape.dim / shape.heads;
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error), TANDEM_OK,
                 NULL, &error);
    check_status(tandem_source_hparams(source, &hparams, &error), TANDEM_OK, NULL, &error);
    check_int(hparams.head_size, shape.head_size);
    check_int(hparams.q_dim, 2 * shape.dim);
    tandem_source_close(source);
    shape.head_size = -2;
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error),
                 TANDEM_E_ARGUMENT, "head size", &error);
    shape.head_size = 3;
    check_status(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, &error),
                 TANDEM_E_ARGUMENT, "head size", &error);
}

static CU_TestInfo synth_tests[] = {
    {"weights_have_the_wanted_type_where_rows_fit", weights_have_the_wanted_type_where_rows_fit},
    {"weights_deviate_by_one_over_the_root_of_k_in_every_type",
     weights_deviate_by_one_over_the_root_of_k_in_every_type},
    {"the_same_seed_gives_the_same_weights_and_another_seed_others",
     the_same_seed_gives_the_same_weights_and_another_seed_others},
    {"impossible_shapes_are_refused", impossible_shapes_are_refused},
    {"conversion_changes_matrices_that_fit_and_nothing_else",
     conversion_changes_matrices_that_fit_and_nothing_else},
    {"each_failing_allocation_of_a_conversion_leaks_nothing",
     each_failing_allocation_of_a_conversion_leaks_nothing},
    {"heads may have a size of their own", heads_may_have_a_size_of_their_own},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_synth[] = {
    {"synth", NULL, NULL, NULL, NULL, synth_tests},
    CU_SUITE_INFO_NULL,
};
