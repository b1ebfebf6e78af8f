/* SPDX-License-Identifier: MIT
 * safetensors: files made here, the trained checkpoint under Hugging Face's names, real files, and
 * hostile ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/safetensors.h"
#include "tests/support.h"
#include "tests/support_blob.h"
#include "tests/support_models.h"

static struct tnd_blob make_file(const char *header, size_t data_bytes)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_number(&blob, strlen(header), 8);
    tnd_blob_string(&blob, header);
    for (size_t i = 0; i < data_bytes; i++) {
        tnd_blob_number(&blob, i + 1, 1);
    }
    return blob;
}

static const char small[] =
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"h\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[24,32]},"
    "\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[40,48]},"
    "\"e\":{\"dtype\":\"BF16\",\"shape\":[0,5],\"data_offsets\":[48,48]},"
    "\"b\":{\"dtype\":\"BOOL\",\"shape\":[2,1,2,2],\"data_offsets\":[32,40]}}      ";

static void tensors_of_a_file_are_read(void)
{
    struct tnd_blob blob = make_file(small, 48);
    memset(blob.bytes + blob.n - 7, 0, 7); /* n = 41 */
    tandem_source *source = NULL;
    struct tandem_source_tensor t = {.name = NULL};
    const char *text = NULL;
    check_ok(tnd_safetensors_read(blob.bytes, blob.n, "made", &source, NULL));
    check_int(tandem_source_tensor_count(source), 5);
    CU_ASSERT_TRUE(tandem_source_text(source, "format", &text));
    check_string(text, "pt");
    CU_ASSERT_TRUE(tandem_source_find(source, "a.weight", &t));
    check_int(t.type, TANDEM_TYPE_F32);
    check_int(t.ne[0], 3);
    check_int(t.ne[1], 2);
    check_bits(t.data, blob.bytes + blob.n - 48, 24, "a.weight");
    CU_ASSERT_TRUE(tandem_source_find(source, "n", &t));
    check_int(t.type, TANDEM_TYPE_I32);
    check_int(t.n_dims, 0);
    check_int(*(const int32_t *)t.data, 41);
    CU_ASSERT_TRUE(tandem_source_find(source, "b", &t));
    check_int(t.n_dims, 4);
    check_int(t.bytes, 32);
    check_int(((const int32_t *)t.data)[7], 1);
    CU_ASSERT_TRUE(tandem_source_find(source, "e", &t));
    check_int(t.bytes, 0);
    check_int(t.ne[1], 0);
    tandem_source_close(source);
    tnd_blob_free(&blob);
}

static void a_file_of_the_field_is_read(void)
{
    const char *path =
        tnd_test_data("torch/burn/safetensors-tests/tests/multi_layer/multi_layer.safetensors");
    tandem_source *source = NULL;
    struct tandem_source_tensor t = {.name = NULL};
    if (path == NULL) {
        return;
    }
    check_ok(tandem_source_open(path, &source, NULL));
    CU_ASSERT(tandem_source_tensor_count(source) >= 8);
    CU_ASSERT_TRUE(tandem_source_find(source, "conv1.weight", &t));
    check_int(t.type, TANDEM_TYPE_F32);
    check_int(t.n_dims, 4);
    tandem_source_close(source);
}

/* ---- a model under Hugging Face's names ---- */

static const char config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"hidden_size\":64,"
    "\"intermediate_size\":172,\"num_hidden_layers\":5,\"num_attention_heads\":8,"
    "\"num_key_value_heads\":4,\"max_position_embeddings\":512,\"vocab_size\":512,"
    "\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,\"rope_scaling\":null,\"bos_token_id\":1,"
    "\"eos_token_id\":2,\"torch_dtype\":\"float32\"}";

/* The model, saved as GGUF from `path`, has the checkpoint's tensors. */
static void check_same_model(const char *path, const tandem_source *model)
{
    tandem_source *source = NULL;
    tandem_source *gguf = NULL;
    int64_t integer = 0;
    check_ok(tandem_source_open(path, &source, NULL));
    const char *saved = tnd_test_temp("from-safetensors.gguf");
    check_ok(tandem_source_save_gguf(source, saved, NULL, NULL));
    check_ok(tandem_source_open(saved, &gguf, NULL));
    check_int(tandem_source_tensor_count(gguf), tandem_source_tensor_count(model));
    for (int i = 0; i < tandem_source_tensor_count(model); i++) {
        struct tandem_source_tensor wanted = {.name = ""};
        struct tandem_source_tensor got = {.name = NULL};
        CU_ASSERT_TRUE(tandem_source_tensor_at(model, i, &wanted));
        if (tandem_source_find(gguf, wanted.name, &got)) {
            check_int(got.bytes, wanted.bytes);
            check_bits(got.data, wanted.data, wanted.bytes, wanted.name);
        } else {
            CU_FAIL("a tensor is missing");
        }
    }
    for (int i = 0; i < tandem_source_value_count(model); i++) {
        struct tandem_source_value value = {.key = ""};
        CU_ASSERT_TRUE(tandem_source_value_at(model, i, &value));
        if (value.kind == TANDEM_VALUE_INTEGER) {
            CU_ASSERT_TRUE(tandem_source_integer(gguf, value.key, &integer));
            check_int(integer, value.integer);
        }
    }
    tandem_source_close(gguf);
    tandem_source_close(source);
}

static void a_model_of_hugging_face_becomes_the_same_gguf(void)
{
    const char *checkpoint = tnd_test_data("llama/stories260K.bin");
    tandem_source *model = NULL;
    if (checkpoint == NULL) {
        return;
    }
    check_ok(tandem_source_open(checkpoint, &model, NULL));
    CU_ASSERT_TRUE(tnd_model_write_config(model, tnd_test_temp("config.json"), ""));
    const char *path = tnd_test_temp("model.safetensors");
    CU_ASSERT_TRUE(tnd_model_write_safetensors(model, path, 0, 1));
    check_same_model(path, model);
    CU_ASSERT_TRUE(tnd_model_write_safetensors(model, tnd_test_temp("part-1.safetensors"), 0, 2));
    CU_ASSERT_TRUE(tnd_model_write_safetensors(model, tnd_test_temp("part-2.safetensors"), 1, 2));
    path = tnd_test_temp("model.safetensors.index.json");
    CU_ASSERT_TRUE(tnd_model_write_index(model, path, "part-%d.safetensors", 2));
    check_same_model(path, model);
    char folder[4096];
    snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    check_same_model(folder, model);
    remove(tnd_test_temp("config.json"));
    remove(path);
    tandem_source_close(model);
}

/* ---- hostile files ---- */

static void try_read(const void *bytes, size_t n)
{
    tandem_source *source = NULL;
    struct tandem_error error = {0};
    const long live = tnd_alloc_live();
    if (tnd_safetensors_read(bytes, n, "damaged", &source, &error) == TANDEM_OK) {
        tandem_source_close(source);
    } else if (source != NULL || error.text[0] == '\0') {
        CU_FAIL("an error without a message");
    }
    if (tnd_alloc_live() != live) {
        CU_FAIL("memory was not given back");
    }
}

static void try_index(const void *bytes, size_t n)
{
    tandem_source *source = NULL;
    struct tandem_error error = {0};
    CU_ASSERT_NOT_EQUAL(tnd_safetensors_read_index(bytes, n, "damaged", &source, &error),
                        TANDEM_OK);
}

static void try_config(const void *bytes, size_t n)
{
    tandem_source *source = NULL;
    bool is_model = false;
    if (tnd_source_new("config", &source, NULL) == TANDEM_OK) {
        (void)tnd_safetensors_read_config(bytes, n, "damaged", NULL, source, &is_model, NULL);
        tandem_source_close(source);
    }
}

static void every_damage_gives_an_error_or_a_source(void)
{
    const char index[] = "{\"weight_map\":{\"a\\u00e4\\ud83d\\ude00\":\"none.safetensors\"}}";
    struct tnd_blob blob = make_file(small, 48);
    tnd_blob_damage(blob.bytes, blob.n, try_read);
    tnd_blob_damage(index, strlen(index), try_index);
    tnd_blob_damage(config, strlen(config), try_config);
    tnd_blob_free(&blob);
}

static void impossible_headers_are_refused(void)
{
    static const struct {
        const char *header;
        size_t data_bytes;
        enum tandem_status status;
        const char *part;
    } rows[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, TANDEM_E_FORMAT,
         "the number of its bytes is 4, expected 8"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4, TANDEM_E_TRUNCATED,
         "the file has 4 bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,4]}}", 8, TANDEM_E_TRUNCATED,
         "data from 8 to 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
         TANDEM_E_FORMAT, "more than 4 numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         TANDEM_E_FORMAT, "the number of its bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,0]}}", 0,
         TANDEM_E_FORMAT, "a whole number"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,0]}}", 0, TANDEM_E_FORMAT,
         "a whole number"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
         TANDEM_E_UNSUPPORTED_BUILD, "type F8_E4M3"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, TANDEM_E_FORMAT, "dtype, shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, TANDEM_E_FORMAT, "overlapping data: tensor a ends at byte 2, tensor b begins at 1"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 3, TANDEM_E_FORMAT,
         "a hole"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, TANDEM_E_FORMAT, "'a' stands in it twice"},
        {"{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, TANDEM_E_LIMIT,
         "does not fit into 32 bits"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tnd_blob blob = make_file(rows[i].header, rows[i].data_bytes);
        struct tandem_error error = {0};
        tandem_source *source = NULL;
        check_status(tnd_safetensors_read(blob.bytes, blob.n, "bad", &source, &error),
                     rows[i].status, rows[i].part, &error);
        tnd_blob_free(&blob);
    }
}

static void nested_and_endless_headers_are_refused(void)
{
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    struct tnd_blob deep = {NULL, 0};
    tnd_blob_number(&deep, 100005, 8);
    tnd_blob_string(&deep, "{\"a\":");
    for (int i = 0; i < 20000; i++) {
        tnd_blob_string(&deep, "{\"x\":");
    }
    check_status(tnd_safetensors_read(deep.bytes, deep.n, "deep", &source, &error), TANDEM_E_FORMAT,
                 "32 values in one another", &error);
    tnd_blob_free(&deep);
    const uint64_t lengths[] = {UINT64_MAX, (uint64_t)1 << 63, UINT64_MAX - 7, 100, 100000001};
    for (int i = 0; i < 5; i++) {
        struct tnd_blob blob = make_file("{}", 0);
        for (int k = 0; k < 8; k++) {
            blob.bytes[k] = (unsigned char)(lengths[i] >> (8 * k));
        }
        check_status(tnd_safetensors_read(blob.bytes, blob.n, "long", &source, &error),
                     lengths[i] == 100 ? TANDEM_E_TRUNCATED : TANDEM_E_FORMAT, "header", &error);
        tnd_blob_free(&blob);
    }
}

static void an_index_names_files_in_its_own_folder_only(void)
{
    struct tandem_error error = {0};
    tandem_source *source = NULL;
    const char *bad[] = {"{\"weight_map\":{\"a\":\"../x\"}}", "{\"weight_map\":{\"a\":\"\"}}",
                         "{\"weight_map\":{}}", "{}"};
    for (int i = 0; i < 4; i++) {
        check_status(tnd_safetensors_read_index(bad[i], strlen(bad[i]), "index", &source, &error),
                     TANDEM_E_FORMAT, i < 2 ? "without folder" : "names no files of weights",
                     &error);
    }
}

static void an_index_and_its_files_name_the_same_tensors(void)
{
    static const char one[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                              "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    static const char two[] = "{\"c\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    static const struct {
        const char *map;
        const char *part; /* of the message; NULL: it is right */
    } rows[] = {
        {"\"a\":\"1.st\",\"b\":\"1.st\",\"c\":\"2.st\"", NULL},
        {"\"c\":\"2.st\",\"b\":\"1.st\",\"a\":\"1.st\"", NULL},
        {"\"a\":\"1.st\",\"b\":\"2.st\",\"c\":\"2.st\"", "tensor b is not in 2.st"},
        {"\"a\":\"1.st\",\"d\":\"1.st\",\"c\":\"2.st\"", "tensor d is not in 1.st"},
        {"\"a\":\"1.st\",\"c\":\"2.st\"", "its 2 files have 3 tensors, it names 2"},
        {"\"a\":\"1.st\",\"b\":\"1.st\"", NULL},
        {"\"a\":\"1.st\",\"b\":\"3.st\"", "3.st"},
    };
    struct tnd_blob blob = make_file(one, 2);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("1.st"), blob.bytes, blob.n));
    tnd_blob_free(&blob);
    blob = make_file(two, 1);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp("2.st"), blob.bytes, blob.n));
    tnd_blob_free(&blob);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char index[256];
        struct tandem_error error = {.text = ""};
        tandem_source *source = NULL;
        const char *path = tnd_test_temp("some.index.json");
        snprintf(index, sizeof(index), "{\"weight_map\":{%s}}", rows[i].map);
        CU_ASSERT_TRUE(tnd_test_write_file(path, index, strlen(index)));
        const enum tandem_status status = tandem_source_open(path, &source, &error);
        CU_ASSERT_EQUAL(status == TANDEM_OK, rows[i].part == NULL);
        check_contains(error.text, rows[i].part == NULL ? "" : rows[i].part);
        tandem_source_close(source);
    }
}

static void every_failing_allocation_gives_memory_errors_and_no_leak(void)
{
    struct tnd_blob blob = make_file(small, 48);
    memset(blob.bytes + blob.n - 7, 0, 7);
    const char *path = tnd_test_temp("model.safetensors"); /* with config.json beside it */
    CU_ASSERT_TRUE(tnd_test_write_file(path, blob.bytes, blob.n));
    for (int has_config = 0; has_config < 2; has_config++) {
        bool failed = true;
        if (has_config != 0) {
            CU_ASSERT_TRUE(
                tnd_test_write_file(tnd_test_temp("config.json"), config, strlen(config)));
        }
        for (long n = 1; failed && n < 1000; n++) {
            tandem_source *source = NULL;
            const long live = tnd_alloc_live();
            tnd_alloc_fail_after(n);
            const enum tandem_status status = tandem_source_open(path, &source, NULL);
            tnd_alloc_fail_after(-1);
            failed = status == TANDEM_E_MEMORY;
            CU_ASSERT_TRUE(failed || status == TANDEM_OK);
            tandem_source_close(source);
            check_int(tnd_alloc_live(), live);
        }
        CU_ASSERT_FALSE(failed);
    }
    remove(tnd_test_temp("config.json"));
    tnd_blob_free(&blob);
}

/* clang-format off */
static CU_TestInfo tests_safetensors[] = {
    {"tensors of a file are read", tensors_of_a_file_are_read},
    {"a file of the field is read", a_file_of_the_field_is_read},
    {"a model of Hugging Face becomes the same GGUF",
     a_model_of_hugging_face_becomes_the_same_gguf},
    {"every damage gives an error or a source", every_damage_gives_an_error_or_a_source},
    {"impossible headers are refused", impossible_headers_are_refused},
    {"nested and endless headers are refused", nested_and_endless_headers_are_refused},
    {"an index names files in its own folder only",
     an_index_names_files_in_its_own_folder_only},
    {"an index and its files name the same tensors",
     an_index_and_its_files_name_the_same_tensors},
    {"every failing allocation gives memory errors and no leak",
     every_failing_allocation_gives_memory_errors_and_no_leak},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_safetensors[] = {
    {"safetensors", NULL, NULL, NULL, NULL, tests_safetensors},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */
