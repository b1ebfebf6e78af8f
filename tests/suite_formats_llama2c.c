/* SPDX-License-Identifier: MIT
 * llama2.c checkpoints: both layouts, from the trained model and from small files made here, and
 * what damaged ones give. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/llama2c.h"
#include "tests/support.h"

/* A checkpoint in memory whose k-th float is k. */
struct checkpoint {
    unsigned char *bytes;
    size_t n;
};

enum { DIM = 8, HIDDEN = 12, LAYERS = 2, HEADS = 2, KV_HEADS = 1, VOCABULARY = 5, CONTEXT = 6 };
enum { KV_DIM = DIM / HEADS * KV_HEADS, HEAD_SIZE = DIM / HEADS };
enum {
    LAYER_FLOATS = 2 * DIM + 2 * DIM * DIM + 2 * DIM * KV_DIM + 3 * DIM * HIDDEN,
    COMMON_FLOATS = LAYERS * LAYER_FLOATS + DIM + VOCABULARY * DIM,
    ROPE_FLOATS = CONTEXT * HEAD_SIZE,
    OUTPUT_FLOATS = VOCABULARY * DIM
};

static void put_i32(unsigned char *at, int32_t value)
{
    memcpy(at, &value, sizeof(value));
}

static void put_sizes(unsigned char *at, int32_t vocabulary)
{
    const int32_t sizes[7] = {DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, vocabulary, CONTEXT};
    memcpy(at, sizes, sizeof(sizes));
}

static struct checkpoint make_checkpoint(int version, bool is_shared)
{
    const size_t header = version == 0 ? 28 : 256;
    size_t n_floats = COMMON_FLOATS + (is_shared ? 0 : OUTPUT_FLOATS);
    n_floats += version == 0 ? ROPE_FLOATS : 0;
    struct checkpoint made = {calloc(1, header + n_floats * 4), header + n_floats * 4};
    if (version == 0) {
        put_sizes(made.bytes, is_shared ? VOCABULARY : -VOCABULARY);
    } else {
        put_i32(made.bytes, 0x616b3432);
        put_i32(made.bytes + 4, version);
        put_sizes(made.bytes + 8, VOCABULARY);
        made.bytes[36] = is_shared;
    }
    for (size_t i = 0; i < n_floats; i++) {
        const float value = (float)i;
        memcpy(made.bytes + header + 4 * i, &value, sizeof(value));
    }
    return made;
}

/* First value of a tensor, which tells where in the file it stands; -1 when it is missing. */
static float first_value(const tandem_source *source, const char *name)
{
    struct tandem_source_tensor tensor;
    float value = -1.0f;
    if (tandem_source_find(source, name, &tensor)) {
        memcpy(&value, tensor.data, sizeof(value));
    }
    return value;
}

static void both_versions_of_the_trained_model_have_the_same_tensors_and_values(void)
{
    const char *path_v0 = tnd_test_data("llama/stories260K.bin");
    const char *path_v1 = tnd_test_data("llama/stories260K.v1.bin");
    if (path_v0 == NULL || path_v1 == NULL) {
        return;
    }
    tandem_source *v0 = NULL;
    tandem_source *v1 = NULL;
    check_ok(tandem_source_open(path_v0, &v0, NULL));
    check_ok(tandem_source_open(path_v1, &v1, NULL));
    check_string(tandem_source_format(v0), "llama2.c version 0");
    check_string(tandem_source_format(v1), "llama2.c version 1");
    check_int(tandem_source_tensor_count(v0), 2 + 9 * 5);
    check_int(tandem_source_tensor_count(v1), 2 + 9 * 5);
    struct tandem_source_tensor a;
    struct tandem_source_tensor b;
    for (int i = 0; tandem_source_tensor_at(v0, i, &a); i++) {
        CU_ASSERT_FATAL(tandem_source_find(v1, a.name, &b));
        check_int(a.bytes, b.bytes);
        check_int(a.n_dims, b.n_dims);
        check_bits(a.data, b.data, a.bytes, a.name);
    }
    int64_t value = 0;
    CU_ASSERT(tandem_source_integer(v0, "llama.feed_forward_length", &value));
    check_int(value, 172);
    CU_ASSERT(tandem_source_integer(v1, "llama.attention.head_count_kv", &value));
    check_int(value, 4);
    const char *text = NULL;
    CU_ASSERT(tandem_source_text(v1, "general.architecture", &text));
    check_string(text, "llama");
    CU_ASSERT_FALSE(tandem_source_integer(v1, "general.architecture", &value));
    tandem_source_close(v0);
    tandem_source_close(v1);
}

static void tensors_stand_where_version_0_puts_them(void)
{
    struct checkpoint made = make_checkpoint(0, false);
    tandem_source *source = NULL;
    check_ok(tnd_llama2c_read(made.bytes, made.n, "made", &source, NULL));
    int at = VOCABULARY * DIM;
    CU_ASSERT_EQUAL(first_value(source, "token_embd.weight"), 0.0f);
    CU_ASSERT_EQUAL(first_value(source, "blk.0.attn_norm.weight"), (float)at);
    CU_ASSERT_EQUAL(first_value(source, "blk.1.attn_norm.weight"), (float)(at + DIM));
    at += LAYERS * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.1.attn_q.weight"), (float)(at + DIM * DIM));
    at += LAYERS * DIM * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.1.attn_k.weight"), (float)(at + DIM * KV_DIM));
    at += LAYERS * DIM * KV_DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.attn_v.weight"), (float)at);
    at += LAYERS * DIM * KV_DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.attn_output.weight"), (float)at);
    at += LAYERS * DIM * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.ffn_norm.weight"), (float)at);
    at += LAYERS * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.ffn_gate.weight"), (float)at);
    at += LAYERS * DIM * HIDDEN;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.ffn_down.weight"), (float)at);
    at += LAYERS * DIM * HIDDEN;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.ffn_up.weight"), (float)at);
    at += LAYERS * DIM * HIDDEN;
    CU_ASSERT_EQUAL(first_value(source, "output_norm.weight"), (float)at);
    at += DIM + ROPE_FLOATS;
    CU_ASSERT_EQUAL(first_value(source, "output.weight"), (float)at);
    tandem_source_close(source);
    free(made.bytes);
}

static void tensors_stand_where_version_1_puts_them(void)
{
    struct checkpoint made = make_checkpoint(1, false);
    tandem_source *source = NULL;
    check_ok(tnd_llama2c_read(made.bytes, made.n, "made", &source, NULL));
    int at = LAYERS * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.attn_norm.weight"), 0.0f);
    CU_ASSERT_EQUAL(first_value(source, "blk.0.ffn_norm.weight"), (float)at);
    at += LAYERS * DIM;
    CU_ASSERT_EQUAL(first_value(source, "output_norm.weight"), (float)at);
    at += DIM;
    CU_ASSERT_EQUAL(first_value(source, "token_embd.weight"), (float)at);
    at += VOCABULARY * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.attn_q.weight"), (float)at);
    at += LAYERS * (DIM * DIM + DIM * KV_DIM + DIM * KV_DIM);
    CU_ASSERT_EQUAL(first_value(source, "blk.0.attn_output.weight"), (float)at);
    at += LAYERS * DIM * DIM;
    CU_ASSERT_EQUAL(first_value(source, "blk.0.ffn_gate.weight"), (float)at);
    CU_ASSERT_EQUAL(first_value(source, "output.weight"), (float)COMMON_FLOATS);
    tandem_source_close(source);
    free(made.bytes);
}

static void a_shared_classifier_has_no_output_tensor(void)
{
    for (int version = 0; version <= 1; version++) {
        struct checkpoint made = make_checkpoint(version, true);
        tandem_source *source = NULL;
        struct tandem_source_tensor tensor;
        check_ok(tnd_llama2c_read(made.bytes, made.n, "made", &source, NULL));
        CU_ASSERT_FALSE(tandem_source_find(source, "output.weight", &tensor));
        CU_ASSERT_TRUE(tandem_source_find(source, "blk.1.ffn_down.weight", &tensor));
        check_int(tensor.ne[0], HIDDEN);
        check_int(tensor.ne[1], DIM);
        check_int(tensor.n_dims, 2);
        tandem_source_close(source);
        free(made.bytes);
    }
}

static void version_2_is_refused_by_name(void)
{
    struct checkpoint made = make_checkpoint(2, true);
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    check_status(tnd_llama2c_read(made.bytes, made.n, "made", &source, &error),
                 TANDEM_E_UNSUPPORTED_BUILD, "version 2 (weights in groups of int8)", &error);
    CU_ASSERT_PTR_NULL(source);
    free(made.bytes);
}

/* What people give for a model: each is named for what it is. */
static void a_file_of_another_kind_is_told_by_its_kind(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *part;
    } rows[] = {
        {"", 0, "made: not a model file, but an empty file"},
        {"\x08\x0a\x12\x04made:\x04", 11, "an ONNX model, which tandem-graph runs"},
        {"\x08\x0e:\x02", 4, "an ONNX model, which tandem-graph runs"},
        {"\x93NUMPY\x01\x00v\x00{'descr': '<f4', ", 28, "an array of NumPy"},
        {"version https://git-lfs.github.com/spec/v1\noid", 46, "'git lfs pull' fetches the file"},
        {"<!DOCTYPE html><html lang=\"en\">", 32, "a web page: download the file itself"},
        {"\x08\x0e:", 3, "an ONNX model"},
        {"\x08\x0e", 2, "it has 2 bytes, the header of a llama2.c checkpoint has 28"},
        {"Some text that is no model, of course", 37, "GGUF, safetensors, PyTorch and llama2.c"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        CU_ASSERT_NOT_EQUAL(tnd_llama2c_read(rows[i].bytes, rows[i].n, "made", &source, &error),
                            TANDEM_OK);
        check_contains(error.text, rows[i].part);
    }
}

static void every_truncation_is_an_error_that_names_the_file(void)
{
    for (int version = 0; version <= 1; version++) {
        struct checkpoint made = make_checkpoint(version, false);
        for (size_t n = 0; n < made.n; n++) {
            unsigned char *cut = tnd_guarded_alloc(n, 1);
            struct tandem_error error = {0};
            tandem_source *source = NULL;
            memcpy(cut, made.bytes, n);
            const enum tandem_status status = tnd_llama2c_read(cut, n, "cut.bin", &source, &error);
            CU_ASSERT_EQUAL(status, TANDEM_E_TRUNCATED);
            CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "cut.bin"));
            CU_ASSERT_PTR_NULL(source);
            tnd_guarded_free(cut);
        }
        free(made.bytes);
    }
}

static void every_changed_byte_gives_an_error_or_a_source(void)
{
    for (int version = 0; version <= 1; version++) {
        struct checkpoint made = make_checkpoint(version, false);
        const size_t header = version == 0 ? 28 : 37;
        for (size_t i = 0; i < header * 255 + made.n - header;
             i++) { /* behind it one change each */
            const size_t at = i < header * 255 ? i / 255 : i - header * 254;
            const unsigned char kept = made.bytes[at];
            struct tandem_error error = {0};
            tandem_source *source = NULL;
            tnd_alloc_peak_begin();
            made.bytes[at] = (unsigned char)(kept + 1 + i % 255);
            if (tnd_llama2c_read(made.bytes, made.n, "changed.bin", &source, &error) != TANDEM_OK) {
                CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "changed.bin"));
                CU_ASSERT_PTR_NULL(source);
            }
            CU_ASSERT(tnd_alloc_largest() <= made.n + TND_SOURCE_SPARE_BYTES);
            tandem_source_close(source);
            made.bytes[at] = kept;
        }
        free(made.bytes);
    }
}

static void sizes_that_do_not_fit_together_are_told_apart(void)
{
    const struct {
        int word; /* of the seven sizes */
        int32_t value;
        const char *part;
    } cases[] = {
        {0, 0, "dim is 0"},
        {0, 2147483647, "number of heads"},
        {1, -5, "hidden dim is -5"},
        {3, 3, "number of heads is 3, expected a divisor of dim"},
        {3, 8, "head size is 1"},
        {4, 3, "KV heads is 3, expected a divisor"},
        {2, 2147483647, "by its header"},
        {6, 0, "context is 0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct checkpoint made = make_checkpoint(1, true);
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        put_i32(made.bytes + 8 + 4 * cases[i].word, cases[i].value);
        CU_ASSERT_NOT_EQUAL(tnd_llama2c_read(made.bytes, made.n, "made", &source, &error),
                            TANDEM_OK);
        check_contains(error.text, cases[i].part);
        free(made.bytes);
    }
}

static void other_formats_and_missing_files_are_named(void)
{
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    char gguf[64] = "GGUF";
    const char *path = tnd_test_temp("model.gguf");
    CU_ASSERT_TRUE(tnd_test_write_file(path, gguf, sizeof(gguf)));
    check_status(tandem_source_open(path, &source, &error), TANDEM_E_UNSUPPORTED_BUILD,
                 "GGUF of version 0", &error);
    check_status(tandem_source_open(tnd_test_temp("none.bin"), &source, &error), TANDEM_E_FILE,
                 "none.bin", &error);
    check_status(tandem_source_open(NULL, &source, &error), TANDEM_E_ARGUMENT, NULL, &error);
    CU_ASSERT_PTR_NULL(source);
    tandem_source_close(NULL);
}

static void each_failing_allocation_is_reported_and_leaks_nothing(void)
{
    struct checkpoint made = make_checkpoint(1, false);
    const long live = tnd_alloc_live();
    enum tandem_status status = TANDEM_E_MEMORY;
    long n = 0;
    while (status != TANDEM_OK && n < 1000) {
        tandem_source *source = NULL;
        tnd_alloc_fail_after(++n);
        status = tnd_llama2c_read(made.bytes, made.n, "made", &source, NULL);
        tnd_alloc_fail_after(-1);
        if (status != TANDEM_OK) {
            CU_ASSERT_EQUAL(status, TANDEM_E_MEMORY);
            CU_ASSERT_PTR_NULL(source);
        }
        tandem_source_close(source);
        CU_ASSERT_EQUAL(tnd_alloc_live(), live);
    }
    CU_ASSERT_EQUAL(status, TANDEM_OK);
    CU_ASSERT(n > 20);
    free(made.bytes);
}

static CU_TestInfo llama2c_tests[] = {
    {"both_versions_of_the_trained_model_have_the_same_tensors_and_values",
     both_versions_of_the_trained_model_have_the_same_tensors_and_values},
    {"tensors_stand_where_version_0_puts_them", tensors_stand_where_version_0_puts_them},
    {"tensors_stand_where_version_1_puts_them", tensors_stand_where_version_1_puts_them},
    {"a_shared_classifier_has_no_output_tensor", a_shared_classifier_has_no_output_tensor},
    {"version_2_is_refused_by_name", version_2_is_refused_by_name},
    {"a_file_of_another_kind_is_told_by_its_kind", a_file_of_another_kind_is_told_by_its_kind},
    {"every_truncation_is_an_error_that_names_the_file",
     every_truncation_is_an_error_that_names_the_file},
    {"every_changed_byte_gives_an_error_or_a_source",
     every_changed_byte_gives_an_error_or_a_source},
    {"sizes_that_do_not_fit_together_are_told_apart",
     sizes_that_do_not_fit_together_are_told_apart},
    {"other_formats_and_missing_files_are_named", other_formats_and_missing_files_are_named},
    {"each_failing_allocation_is_reported_and_leaks_nothing",
     each_failing_allocation_is_reported_and_leaks_nothing},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_llama2c[] = {
    {"llama2c", NULL, NULL, NULL, NULL, llama2c_tests},
    CU_SUITE_INFO_NULL,
};
