/* SPDX-License-Identifier: MIT
 * GGUF: small files made here, real vocabularies, writing and reading again, and hostile files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/gguf.h"
#include "tests/support.h"
#include "tests/support_blob.h"

/* ---- making files ---- */

static void put_text(struct tnd_blob *blob, const char *text)
{
    tnd_blob_number(blob, strlen(text), 8);
    tnd_blob_string(blob, text);
}

static void put_header(struct tnd_blob *blob, int version, uint64_t n_tensors, uint64_t n_values)
{
    tnd_blob_string(blob, "GGUF");
    tnd_blob_number(blob, (uint64_t)version, 4);
    tnd_blob_number(blob, n_tensors, 8);
    tnd_blob_number(blob, n_values, 8);
}

static void put_scalar(struct tnd_blob *blob, const char *key, int type, uint64_t bits, int bytes)
{
    put_text(blob, key);
    tnd_blob_number(blob, (uint64_t)type, 4);
    tnd_blob_number(blob, bits, bytes);
}

static void put_list(struct tnd_blob *blob, const char *key, int type, uint64_t count)
{
    put_text(blob, key);
    tnd_blob_number(blob, TND_GGUF_ARRAY, 4);
    tnd_blob_number(blob, (uint64_t)type, 4);
    tnd_blob_number(blob, count, 8);
}

struct tensor_row {
    const char *name;
    int n_dims;
    uint64_t ne[5];
    uint32_t type;
    uint64_t offset;
};

static void put_tensor(struct tnd_blob *blob, const struct tensor_row *row)
{
    put_text(blob, row->name);
    tnd_blob_number(blob, (uint64_t)row->n_dims, 4);
    for (int i = 0; i < row->n_dims; i++) {
        tnd_blob_number(blob, row->ne[i], 8);
    }
    tnd_blob_number(blob, row->type, 4);
    tnd_blob_number(blob, row->offset, 8);
}

static void put_data(struct tnd_blob *blob, size_t alignment, size_t bytes)
{
    tnd_blob_pad(blob, alignment);
    for (size_t i = 0; i < bytes; i++) {
        tnd_blob_number(blob, i, 1);
    }
}

/* A file with every type of value, lists, a list of lists, and three tensors. */
static struct tnd_blob make_file(int version)
{
    struct tnd_blob blob = {NULL, 0};
    put_header(&blob, version, 3, 17);
    put_scalar(&blob, "general.alignment", TND_GGUF_U32, 64, 4);
    put_text(&blob, "general.architecture");
    tnd_blob_number(&blob, TND_GGUF_TEXT, 4);
    put_text(&blob, "llama");
    put_scalar(&blob, "v.u8", TND_GGUF_U8, 200, 1);
    put_scalar(&blob, "v.i8", TND_GGUF_I8, 0xfe, 1);
    put_scalar(&blob, "v.u16", TND_GGUF_U16, 60000, 2);
    put_scalar(&blob, "v.i16", TND_GGUF_I16, 0xfffd, 2);
    put_scalar(&blob, "v.u32", TND_GGUF_U32, 4000000000u, 4);
    put_scalar(&blob, "v.i32", TND_GGUF_I32, 0xfffffffcu, 4);
    put_scalar(&blob, "v.f32", TND_GGUF_F32, 0x3fc00000u, 4);
    put_scalar(&blob, "v.bool", TND_GGUF_BOOL, 1, 1);
    put_scalar(&blob, "v.u64", TND_GGUF_U64, UINT64_MAX, 8);
    put_scalar(&blob, "v.i64", TND_GGUF_I64, (uint64_t)-5, 8);
    put_scalar(&blob, "v.f64", TND_GGUF_F64, 0x4004000000000000u, 8);
    put_list(&blob, "l.text", TND_GGUF_TEXT, 3);
    put_text(&blob, "a");
    put_text(&blob, "");
    put_text(&blob, "token");
    put_list(&blob, "l.f32", TND_GGUF_F32, 2);
    tnd_blob_number(&blob, 0x3f800000u, 4);
    tnd_blob_number(&blob, 0xc0000000u, 4);
    put_list(&blob, "l.i16", TND_GGUF_I16, 2);
    tnd_blob_number(&blob, 7, 2);
    tnd_blob_number(&blob, 0xffff, 2);
    put_list(&blob, "l.lists", TND_GGUF_ARRAY, 2);
    tnd_blob_number(&blob, TND_GGUF_U8, 4);
    tnd_blob_number(&blob, 3, 8);
    tnd_blob_number(&blob, 0x030201, 3);
    tnd_blob_number(&blob, TND_GGUF_BOOL, 4);
    tnd_blob_number(&blob, 1, 8);
    tnd_blob_number(&blob, 0, 1);
    put_tensor(&blob, &(struct tensor_row){"matrix", 2, {4, 3}, TANDEM_TYPE_F32, 0});
    put_tensor(&blob, &(struct tensor_row){"blocks", 2, {32, 2}, TANDEM_TYPE_Q4_0, 64});
    put_tensor(&blob, &(struct tensor_row){"vector", 1, {5}, TANDEM_TYPE_F16, 128});
    put_data(&blob, 64, 138);
    return blob;
}

/* ---- reading ---- */

static void check_values(const tandem_source *source)
{
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {{"v.u8", 200},         {"v.i8", -2},  {"v.u16", 60000}, {"v.i16", -3},
                    {"v.u32", 4000000000}, {"v.i32", -4}, {"v.bool", 1},    {"v.i64", -5}};
    double number = 0.0;
    int64_t integer = 0;
    const char *text = NULL;
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++) {
        CU_ASSERT_TRUE(tandem_source_integer(source, integers[i].key, &integer));
        check_int(integer, integers[i].value);
    }
    CU_ASSERT_TRUE(tandem_source_number(source, "v.f32", &number) && number == 1.5);
    CU_ASSERT_TRUE(tandem_source_number(source, "v.f64", &number) && number == 2.5);
    CU_ASSERT_TRUE(tandem_source_number(source, "v.u64", &number) && number == 0x1p64);
    CU_ASSERT_FALSE(tandem_source_integer(source, "v.u64", &integer));
    CU_ASSERT_TRUE(tandem_source_text(source, "general.architecture", &text));
    check_string(text, "llama");
}

static void check_lists(const tandem_source *source)
{
    struct tandem_array list;
    const char *text = NULL;
    size_t n = 0;
    int64_t integer = 0;
    double number = 0.0;
    CU_ASSERT_FALSE(tandem_source_array(source, "v.u8", &list));
    CU_ASSERT_TRUE(tandem_source_array(source, "l.text", &list));
    check_int(list.kind, TANDEM_VALUE_TEXT);
    check_int(list.count, 3);
    CU_ASSERT_TRUE(tandem_array_text(&list, 2, &text, &n));
    check_int(n, 5);
    CU_ASSERT_TRUE(n == 5 && memcmp(text, "token", 5) == 0);
    CU_ASSERT_TRUE(tandem_array_text(&list, 1, &text, &n) && n == 0);
    CU_ASSERT_FALSE(tandem_array_text(&list, 3, &text, &n));
    CU_ASSERT_FALSE(tandem_array_text(&list, -1, &text, &n));
    CU_ASSERT_FALSE(tandem_array_number(&list, 0, &number));
    CU_ASSERT_TRUE(tandem_source_array(source, "l.f32", &list));
    CU_ASSERT_TRUE(tandem_array_number(&list, 1, &number) && number == -2.0);
    CU_ASSERT_FALSE(tandem_array_integer(&list, 1, &integer));
    CU_ASSERT_TRUE(tandem_source_array(source, "l.i16", &list));
    CU_ASSERT_TRUE(tandem_array_integer(&list, 1, &integer) && integer == -1);
    CU_ASSERT_TRUE(tandem_source_array(source, "l.lists", &list));
    check_int(list.kind, TANDEM_VALUE_ARRAY);
    check_int(list.count, 2);
}

static void check_tensors(const tandem_source *source)
{
    struct tandem_source_tensor tensor = {.name = NULL};
    check_int(tandem_source_tensor_count(source), 3);
    CU_ASSERT_TRUE(tandem_source_find(source, "matrix", &tensor));
    check_int(tensor.type, TANDEM_TYPE_F32);
    check_int(tensor.ne[0], 4);
    check_int(tensor.ne[1], 3);
    check_int(tensor.ne[2], 1);
    check_int(tensor.bytes, 48);
    check_int(((const unsigned char *)tensor.data)[47], 47);
    CU_ASSERT_TRUE(tandem_source_find(source, "blocks", &tensor));
    check_int(tensor.bytes, 36);
    check_int(((const unsigned char *)tensor.data)[0], 64);
    CU_ASSERT_TRUE(tandem_source_find(source, "vector", &tensor));
    check_int(tensor.n_dims, 1);
    check_int(tensor.bytes, 10);
}

static void files_of_both_versions_give_all_values_lists_and_tensors(void)
{
    for (int version = 2; version <= 3; version++) {
        struct tnd_blob blob = make_file(version);
        tandem_source *source = NULL;
        check_ok(tnd_gguf_read(blob.bytes, blob.n, "made", &source, NULL));
        check_string(tandem_source_format(source),
                     version == 2 ? "GGUF version 2" : "GGUF version 3");
        check_values(source);
        check_lists(source);
        check_tensors(source);
        tandem_source_close(source);
        tnd_blob_free(&blob);
    }
}

/* Saves and opens again; the result may be compared with the source. */
static tandem_source *save_and_open(const tandem_source *source,
                                    const struct tandem_save_options *options)
{
    const char *path = tnd_test_temp("saved.gguf");
    tandem_source *again = NULL;
    check_ok(tandem_source_save_gguf(source, path, options, NULL));
    check_ok(tandem_source_open(path, &again, NULL));
    return again;
}

static void a_written_file_reads_back_the_same(void)
{
    struct tnd_blob blob = make_file(3);
    tandem_source *source = NULL;
    check_ok(tnd_gguf_read(blob.bytes, blob.n, "made", &source, NULL));
    tandem_source *again = save_and_open(source, NULL);
    check_values(again);
    check_lists(again);
    check_tensors(again);
    check_int(again->n_values, source->n_values); /* alignment gone, quantization version new */
    for (size_t i = 0, k = 1; i + 1 < again->n_values; i++, k++) {
        check_string(again->values[i].key, source->values[k].key);
        check_int(again->values[i].gguf_type, source->values[k].gguf_type);
    }
    tandem_source *twice = save_and_open(again, NULL);
    check_tensors(twice);
    tandem_source_close(twice);
    tandem_source_close(again);
    tandem_source_close(source);
    tnd_blob_free(&blob);
}

static void copied_values_outlive_their_source(void)
{
    struct tnd_blob blob = make_file(3);
    tandem_source *source = NULL;
    tandem_source *copy = NULL;
    check_ok(tnd_gguf_read(blob.bytes, blob.n, "made", &source, NULL));
    check_ok(tandem_source_convert(source, TANDEM_TYPE_F16, &copy, NULL));
    tandem_source_close(source);
    tnd_blob_free(&blob);
    check_values(copy);
    check_lists(copy);
    tandem_source_close(copy);
}

static void vocabularies_of_the_field_are_read(void)
{
    static const struct {
        const char *name;
        const char *model;
        int64_t tokens[2]; /* of the real file, of its stand-in */
    } files[] = {{"llama-spm", "llama", {32000, 700}},
                 {"gpt-2", "gpt2", {50257, 700}},
                 {"falcon", "gpt2", {65024, 600}},
                 {"phi-3", "llama", {32064, 502}},
                 {"starcoder", "gpt2", {49152, 600}}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "gguf-vocab/ggml-vocab-%s.gguf", files[i].name);
        const char *path = tnd_test_data(name);
        if (path == NULL) {
            return;
        }
        tandem_source *source = NULL;
        struct tandem_array list = {.count = 0};
        const char *model = NULL;
        check_ok(tandem_source_open(path, &source, NULL));
        CU_ASSERT_TRUE(tandem_source_text(source, "tokenizer.ggml.model", &model));
        check_string(model, files[i].model);
        CU_ASSERT_TRUE(tandem_source_array(source, "tokenizer.ggml.tokens", &list));
        check_int(list.count, files[i].tokens[tnd_test_stands_in(name)]);
        tandem_source *again = save_and_open(source, NULL);
        struct tandem_array copy = {.count = 0};
        CU_ASSERT_TRUE(tandem_source_array(again, "tokenizer.ggml.tokens", &copy));
        for (int64_t t = 0; t < list.count; t += 97) {
            const char *a = "";
            const char *b = "";
            size_t n_a = 0;
            size_t n_b = 0;
            CU_ASSERT_TRUE(tandem_array_text(&list, t, &a, &n_a));
            CU_ASSERT_TRUE(tandem_array_text(&copy, t, &b, &n_b));
            CU_ASSERT_TRUE(n_a == n_b && memcmp(a, b, n_a) == 0);
        }
        tandem_source_close(again);
        tandem_source_close(source);
    }
}

/* ---- split models ---- */

static struct tnd_blob make_part(int no, int count, const char *name)
{
    struct tnd_blob blob = {NULL, 0};
    put_header(&blob, 3, 1, 3);
    put_scalar(&blob, "split.no", TND_GGUF_U16, (uint64_t)no, 2);
    put_scalar(&blob, "split.count", TND_GGUF_U16, (uint64_t)count, 2);
    put_scalar(&blob, "split.tensors.count", TND_GGUF_I32, (uint64_t)count, 4);
    put_tensor(&blob, &(struct tensor_row){name, 1, {4}, TANDEM_TYPE_F32, 0});
    put_data(&blob, 32, 16);
    return blob;
}

static void write_part(const char *folder_name, int no, int count, const char *tensor)
{
    struct tnd_blob blob = make_part(no, count, tensor);
    CU_ASSERT_TRUE(tnd_test_write_file(tnd_test_temp(folder_name), blob.bytes, blob.n));
    tnd_blob_free(&blob);
}

static void the_parts_of_a_split_model_are_one_source(void)
{
    struct tandem_error error = {0};
    struct tandem_source_tensor tensor;
    tandem_source *source = NULL;
    write_part("m-00001-of-00003.gguf", 0, 3, "a");
    write_part("m-00002-of-00003.gguf", 1, 3, "b");
    write_part("m-00003-of-00003.gguf", 2, 3, "c");
    check_ok(tandem_source_open(tnd_test_temp("m-00001-of-00003.gguf"), &source, &error));
    check_int(tandem_source_tensor_count(source), 3);
    CU_ASSERT_TRUE(tandem_source_find(source, "c", &tensor));
    tandem_source_close(source);
    source = NULL;
    check_status(tandem_source_open(tnd_test_temp("m-00002-of-00003.gguf"), &source, &error),
                 TANDEM_E_FORMAT, "open the first", &error);
    write_part("m-00002-of-00003.gguf", 1, 3, "a");
    check_status(tandem_source_open(tnd_test_temp("m-00001-of-00003.gguf"), &source, &error),
                 TANDEM_E_FORMAT, "'a' stands in it twice", &error);
    write_part("m-00002-of-00003.gguf", 2, 3, "b");
    check_status(tandem_source_open(tnd_test_temp("m-00001-of-00003.gguf"), &source, &error),
                 TANDEM_E_FORMAT, "part 3 of 3, expected 2 of 3", &error);
    remove(tnd_test_temp("m-00003-of-00003.gguf"));
    write_part("m-00002-of-00003.gguf", 1, 3, "b");
    check_status(tandem_source_open(tnd_test_temp("m-00001-of-00003.gguf"), &source, &error),
                 TANDEM_E_FILE, "00003-of-00003", &error);
    write_part("other.gguf", 0, 2, "a");
    check_status(tandem_source_open(tnd_test_temp("other.gguf"), &source, &error), TANDEM_E_FORMAT,
                 "-00001-of-00002.gguf", &error);
    CU_ASSERT_PTR_NULL(source);
}

/* ---- writing ---- */

struct progress {
    int64_t done;
    int64_t all;
    int calls;
    int stop_at;
};

static bool note_progress(void *user, const char *tensor, int64_t done, int64_t all)
{
    struct progress *progress = user;
    CU_ASSERT_TRUE(tensor != NULL && done > progress->done && done <= all);
    *progress = (struct progress){done, all, progress->calls + 1, progress->stop_at};
    return progress->calls != progress->stop_at;
}

static void converting_while_writing_equals_converting_in_memory(void)
{
    const struct tandem_llama_shape shape = {sizeof(shape), 256, 352, 2, 8, 4, 512, 64, 0, 0, 0};
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    const enum tandem_type types[] = {TANDEM_TYPE_F16, TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q6_K,
                                      TANDEM_TYPE_BCML1};
    for (int t = 0; t < 4; t++) {
        tandem_source *wanted = NULL;
        struct progress progress = {0};
        struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
        options.converts = true;
        options.type = types[t];
        options.threads = 1 + t;
        options.progress = note_progress;
        options.user = &progress;
        check_ok(tandem_source_convert(source, types[t], &wanted, NULL));
        tandem_source *again = save_and_open(source, &options);
        check_int(progress.done, progress.all);
        for (int i = 0; i < tandem_source_tensor_count(wanted); i++) {
            struct tandem_source_tensor a = {.name = ""};
            struct tandem_source_tensor b = {.name = ""};
            CU_ASSERT_TRUE(tandem_source_tensor_at(wanted, i, &a));
            CU_ASSERT_TRUE(tandem_source_tensor_at(again, i, &b));
            check_string(b.name, a.name);
            check_int(b.type, a.type);
            check_int(b.bytes, a.bytes);
            check_bits(b.data, a.data, a.bytes, a.name);
        }
        tandem_source_close(again);
        tandem_source_close(wanted);
    }
    tandem_source_close(source);
}

static void a_cancelled_or_impossible_file_leaves_the_old_one(void)
{
    const struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 2, 8, 4, 128, 64, 0, 0, 0};
    tandem_source *source = NULL;
    struct tandem_error error = {0};
    struct progress progress = {.stop_at = 3};
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    options.progress = note_progress;
    options.user = &progress;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    const char *path = tnd_test_temp("old.gguf");
    CU_ASSERT_TRUE(tnd_test_write_file(path, "old", 3));
    check_status(tandem_source_save_gguf(source, path, &options, &error), TANDEM_E_CANCELLED,
                 "cancelled", &error);
    size_t n = 0;
    char *text = tnd_test_read_file(path, &n);
    check_string(text, "old");
    free(text);
    check_status(tandem_source_save_gguf(source, "/nowhere/x.gguf", NULL, &error), TANDEM_E_FILE,
                 "/nowhere/x.gguf", &error);
    check_status(tandem_source_save_gguf(NULL, path, NULL, &error), TANDEM_E_ARGUMENT, NULL,
                 &error);
    options.converts = true;
    options.type = TANDEM_TYPE_I32;
    check_status(tandem_source_save_gguf(source, path, &options, &error), TANDEM_E_ARGUMENT, "i32",
                 &error);
    tandem_source_close(source);
}

/* A source of one tensor that borrows `values`. */
static tandem_source *source_of(const char *name, const int64_t *ne, const float *values,
                                size_t bytes)
{
    tandem_source *source = NULL;
    check_ok(tnd_source_new("test", &source, NULL));
    check_ok(tnd_source_add(source, name, TANDEM_TYPE_F32, 2, ne, values, bytes, NULL));
    return source;
}

static void tensors_that_gguf_cannot_hold_are_refused_by_name(void)
{
    const float values[4] = {0};
    const int64_t empty[] = {4, 0};
    const int64_t endless[] = {INT64_MAX / 8, INT64_MAX / 8};
    const int64_t small[] = {4, 1};
    struct tandem_error error = {0};
    tandem_source *copy = NULL;
    char name[65];
    memset(name, 'n', 64);
    name[64] = '\0';
    const struct {
        tandem_source *source;
        enum tandem_status status;
        const char *part;
    } rows[] = {{source_of(name, small, values, 16), TANDEM_E_ARGUMENT, "the name has 64 bytes"},
                {source_of("", small, values, 16), TANDEM_E_ARGUMENT, "the name has 0 bytes"},
                {source_of("none", empty, values, 0), TANDEM_E_ARGUMENT, "none: has no values"},
                {source_of("much", endless, values, 0), TANDEM_E_OVERFLOW, "much: the bytes"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_status(
            tandem_source_save_gguf(rows[i].source, tnd_test_temp("no.gguf"), NULL, &error),
            rows[i].status, rows[i].part, &error);
    }
    check_status(tandem_source_convert(rows[3].source, TANDEM_TYPE_F16, &copy, &error),
                 TANDEM_E_OVERFLOW, "much: the bytes as f16", &error);
    check_status(tandem_source_convert(rows[0].source, TANDEM_TYPE_I32, &copy, &error),
                 TANDEM_E_ARGUMENT, "got type i32", &error);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tandem_source_close(rows[i].source);
    }
}

/* The number that such tensors had when their values lay in the order of Q4_1. */
static void bcml1_of_before_is_read_as_q4_1(void)
{
    static const char name[] = "blk.0.ffn_up.weight";
    const struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 1, 8, 4, 128, 64, 0, 0, 0};
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    tandem_source *source = NULL;
    tandem_source *before = NULL;
    size_t n = 0;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    options.converts = true;
    options.type = TANDEM_TYPE_Q4_1;
    tandem_source *wanted = save_and_open(source, &options);
    unsigned char *bytes = tnd_test_read_file(tnd_test_temp("saved.gguf"), &n);
    unsigned char *at = bytes != NULL ? memmem(bytes, n, name, sizeof(name) - 1) : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    at += sizeof(name) - 1 + 4 + 2 * 8; /* two extents */
    check_int(at[0], 3);
    at[0] = 240;
    const char *path = tnd_test_temp("before.gguf");
    CU_ASSERT_TRUE(tnd_test_write_file(path, bytes, n));
    check_ok(tandem_source_open(path, &before, NULL));
    struct tandem_source_tensor a = {.name = ""};
    struct tandem_source_tensor b = {.name = ""};
    CU_ASSERT_TRUE(tandem_source_find(wanted, name, &a) && tandem_source_find(before, name, &b));
    check_int(b.type, TANDEM_TYPE_Q4_1);
    check_bits(b.data, a.data, tandem_type_row_bytes(b.type, 64) * 96, name);
    free(bytes);
    tandem_source_close(before);
    tandem_source_close(wanted);
    tandem_source_close(source);
}

/* BCML1 has no number for it, and the one of the file before would be wrong. */
static void the_file_type_is_that_of_the_new_weights_or_left_out(void)
{
    const struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 1, 8, 4, 128, 64, 0, 0, 0};
    const enum tandem_type types[] = {TANDEM_TYPE_Q4_0, TANDEM_TYPE_Q8_0, TANDEM_TYPE_BCML1};
    const int64_t numbers[] = {2, 7, -1};
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    for (int t = 0; t < 3; t++) {
        struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
        int64_t number = -1;
        options.converts = true;
        options.type = types[t];
        tandem_source *again = save_and_open(source, &options);
        (void)tandem_source_integer(again, "general.file_type", &number);
        check_int(number, numbers[t]);
        tandem_source_close(source);
        source = again;
    }
    tandem_source_close(source);
}

/* ---- hostile files ---- */

static void try_read(const void *bytes, size_t n)
{
    tandem_source *source = NULL;
    struct tandem_error error = {0};
    const long live = tnd_alloc_live();
    if (tnd_gguf_read(bytes, n, "damaged", &source, &error) == TANDEM_OK) {
        tandem_source_close(source);
    } else if (source != NULL || strstr(error.text, "damaged") == NULL) {
        CU_FAIL("an error without the file's name");
    }
    if (tnd_alloc_live() != live) {
        CU_FAIL("memory was not given back");
    }
}

static void every_damage_gives_an_error_or_a_source(void)
{
    struct tnd_blob blob = make_file(3);
    tnd_blob_damage(blob.bytes, blob.n, try_read);
    tnd_blob_free(&blob);
}

static void check_refused(struct tnd_blob blob, enum tandem_status wanted, const char *part)
{
    tandem_source *source = NULL;
    struct tandem_error error = {0};
    check_status(tnd_gguf_read(blob.bytes, blob.n, "bad", &source, &error), wanted, part, &error);
    CU_ASSERT_PTR_NULL(source);
    tnd_blob_free(&blob);
}

static void numbers_beyond_the_file_are_refused(void)
{
    struct tnd_blob blob = {NULL, 0};
    put_header(&blob, 3, UINT64_MAX, 0);
    check_refused(blob, TANDEM_E_FORMAT, "18446744073709551615 tensors");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3, 0, (uint64_t)1 << 63);
    check_refused(blob, TANDEM_E_FORMAT, "9223372036854775808 values");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3, 2, 0);
    check_refused(blob, TANDEM_E_TRUNCATED, "2 tensors");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3, 0, 1);
    tnd_blob_number(&blob, (uint64_t)1 << 63, 8);
    tnd_blob_string(&blob, "abcdefgh");
    check_refused(blob, TANDEM_E_FORMAT, "its length is 9223372036854775808");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3, 0, 1);
    put_list(&blob, "l", TND_GGUF_U64, ((uint64_t)1 << 61) + 1); /* times 8 wraps to 8 */
    tnd_blob_number(&blob, 0, 8);
    check_refused(blob, TANDEM_E_TRUNCATED, "a list of 2305843009213693953 items");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3, 0, 1);
    put_list(&blob, "l", 77, 0);
    check_refused(blob, TANDEM_E_FORMAT, "the type of a list's items is 77");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 1, 0, 0);
    check_refused(blob, TANDEM_E_UNSUPPORTED_BUILD, "version 1");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3 << 24, 0, 0);
    check_refused(blob, TANDEM_E_UNSUPPORTED_BUILD, "big-endian");
}

static void lists_in_lists_are_bounded(void)
{
    struct tnd_blob blob = {NULL, 0};
    put_header(&blob, 3, 0, 1);
    put_list(&blob, "bomb", TND_GGUF_ARRAY, 1);
    for (int i = 0; i < 100000; i++) {
        tnd_blob_number(&blob, TND_GGUF_ARRAY, 4);
        tnd_blob_number(&blob, 1, 8);
    }
    check_refused(blob, TANDEM_E_FORMAT, "the depth of lists in lists is 5");
}

/* A file with one or two tensors of these descriptions and 64 bytes of data. */
static struct tnd_blob file_of(const struct tensor_row *first, const struct tensor_row *second)
{
    struct tnd_blob blob = {NULL, 0};
    put_header(&blob, 3, second == NULL ? 1 : 2, 0);
    put_tensor(&blob, first);
    if (second != NULL) {
        put_tensor(&blob, second);
    }
    put_data(&blob, 32, 64);
    return blob;
}

static void impossible_tensors_are_refused(void)
{
    static const struct {
        struct tensor_row row;
        enum tandem_status status;
        const char *part;
    } rows[] = {
        {{"t", 5, {1, 1, 1, 1, 1}, 0, 0}, TANDEM_E_FORMAT, "number of dimensions of t is 5"},
        {{"t", 2, {4, 0}, 0, 0}, TANDEM_E_FORMAT, "dimension 1 of t is 0"},
        {{"t", 1, {UINT64_MAX}, 0, 0}, TANDEM_E_FORMAT, "dimension 0 of t"},
        {{"t", 2, {(uint64_t)1 << 62, 16}, 0, 0}, TANDEM_E_FORMAT, "product fits into 64 bits"},
        {{"t", 3, {4, (uint64_t)1 << 31, (uint64_t)1 << 31}, 0, 0}, TANDEM_E_FORMAT, "product"},
        {{"t", 1, {33}, TANDEM_TYPE_Q4_0, 0}, TANDEM_E_FORMAT, "a multiple of its type's block"},
        {{"t", 1, {4}, 24, 0}, TANDEM_E_UNSUPPORTED_BUILD, "tensor t has type I8, number 24"},
        {{"t", 1, {4}, UINT32_MAX, 0}, TANDEM_E_UNSUPPORTED_BUILD, "type number 4294967295"},
        {{"t", 1, {4}, 0, 8}, TANDEM_E_FORMAT, "offset of t is 8"},
        {{"t", 1, {4}, 0, 64}, TANDEM_E_TRUNCATED, "tensor t needs 16 bytes at offset 64"},
        {{"t", 1, {4}, 0, UINT64_MAX - 31}, TANDEM_E_TRUNCATED, "at offset 18446744073709551584"},
        {{"t", 1, {17}, 0, 0}, TANDEM_E_TRUNCATED, "needs 68 bytes"},
        {{"", 1, {4}, 0, 0}, TANDEM_E_FORMAT, "name is 0, expected 1 to 64"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_refused(file_of(&rows[i].row, NULL), rows[i].status, rows[i].part);
    }
    const struct tensor_row twice[] = {{"twice", 1, {4}, 0, 0}, {"twice", 1, {4}, 0, 32}};
    check_refused(file_of(&twice[0], &twice[1]), TANDEM_E_FORMAT, "'twice' stands in it twice");
}

/* Otherwise a file of 8 MB could become one of gigabytes by converting. */
static void tensors_that_share_bytes_are_refused_by_name(void)
{
    const struct tensor_row whole = {"whole", 1, {16}, 0, 0};
    const struct tensor_row same = {"same", 1, {16}, 0, 0};
    const struct tensor_row part = {"part", 1, {1}, 0, 32};
    const struct tensor_row behind = {"behind", 1, {8}, 0, 32};
    const struct tensor_row half = {"half", 1, {8}, 0, 0};
    check_refused(file_of(&whole, &same), TANDEM_E_FORMAT,
                  "overlapping data: tensor whole ends at byte 64, tensor same begins at 0");
    check_refused(file_of(&part, &whole), TANDEM_E_FORMAT,
                  "tensor whole ends at byte 64, tensor part begins at 32");
    struct tnd_blob good = file_of(&behind, &half); /* in any order */
    tandem_source *source = NULL;
    check_ok(tnd_gguf_read(good.bytes, good.n, "good", &source, NULL));
    tandem_source_close(source);
    tnd_blob_free(&good);
}

static void bad_values_are_refused(void)
{
    const uint64_t alignments[] = {0, 4, 24, 1 << 17};
    for (int i = 0; i < 4; i++) {
        struct tnd_blob blob = {NULL, 0};
        put_header(&blob, 3, 0, 1);
        put_scalar(&blob, "general.alignment", TND_GGUF_U32, alignments[i], 4);
        check_refused(blob, TANDEM_E_FORMAT, "general.alignment is");
    }
    static const struct {
        uint64_t no, count;
        const char *part;
    } splits[] = {{0, 100000, "split.count is 100000"},
                  {3, 3, "split.no is 3"},
                  {(uint64_t)-1, 3, "split.no is 18446744073709551615"}};
    for (int i = 0; i < 3; i++) {
        struct tnd_blob blob = {NULL, 0};
        put_header(&blob, 3, 0, 2);
        put_scalar(&blob, "split.no", TND_GGUF_I64, splits[i].no, 8);
        put_scalar(&blob, "split.count", TND_GGUF_U32, splits[i].count, 4);
        check_refused(blob, TANDEM_E_FORMAT, splits[i].part);
    }
    struct tnd_blob blob = {NULL, 0};
    put_header(&blob, 3, 0, 1);
    put_scalar(&blob, "b", TND_GGUF_BOOL, 2, 1);
    check_refused(blob, TANDEM_E_FORMAT, "a truth value is 2");
    blob = (struct tnd_blob){NULL, 0};
    put_header(&blob, 3, 0, 2);
    put_scalar(&blob, "k", TND_GGUF_U8, 2, 1);
    put_scalar(&blob, "k", TND_GGUF_I8, 2, 1);
    check_refused(blob, TANDEM_E_FORMAT, "the key 'k' stands in it twice");
}

static void every_failing_allocation_gives_memory_errors_and_no_leak(void)
{
    struct tnd_blob blob = make_file(3);
    bool failed = true;
    for (long n = 1; failed && n < 1000; n++) {
        tandem_source *source = NULL;
        const long live = tnd_alloc_live();
        tnd_alloc_fail_after(n);
        const enum tandem_status status = tnd_gguf_read(blob.bytes, blob.n, "made", &source, NULL);
        tnd_alloc_fail_after(-1);
        failed = status == TANDEM_E_MEMORY;
        CU_ASSERT_TRUE(failed || status == TANDEM_OK);
        tandem_source_close(source);
        check_int(tnd_alloc_live(), live);
    }
    tnd_blob_free(&blob);
}

static void every_failing_allocation_while_writing_leaves_no_file(void)
{
    const struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 1, 8, 4, 128, 64, 0, 0, 0};
    tandem_source *source = NULL;
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    options.converts = true;
    options.type = TANDEM_TYPE_Q8_0;
    options.threads = 2;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 3, &source, NULL));
    const char *path = tnd_test_temp("never.gguf");
    bool failed = true;
    for (long n = 1; failed && n < 1000; n++) {
        const long live = tnd_alloc_live();
        tnd_alloc_fail_after(n);
        const enum tandem_status status = tandem_source_save_gguf(source, path, &options, NULL);
        tnd_alloc_fail_after(-1);
        failed = status != TANDEM_OK;
        CU_ASSERT_TRUE(!failed || status == TANDEM_E_MEMORY);
        CU_ASSERT_EQUAL(tnd_file_exists(path), !failed);
        check_int(tnd_alloc_live(), live);
    }
    CU_ASSERT_FALSE(failed);
    tandem_source_close(source);
}

/* clang-format off */
static CU_TestInfo tests_gguf[] = {
    {"files of both versions give all values, lists and tensors",
     files_of_both_versions_give_all_values_lists_and_tensors},
    {"a written file reads back the same", a_written_file_reads_back_the_same},
    {"copied values outlive their source", copied_values_outlive_their_source},
    {"vocabularies of the field are read", vocabularies_of_the_field_are_read},
    {"the parts of a split model are one source", the_parts_of_a_split_model_are_one_source},
    {"converting while writing equals converting in memory",
     converting_while_writing_equals_converting_in_memory},
    {"bcml1 of before is read as q4_1", bcml1_of_before_is_read_as_q4_1},
    {"the file type is that of the new weights or left out",
     the_file_type_is_that_of_the_new_weights_or_left_out},
    {"a cancelled or impossible file leaves the old one",
     a_cancelled_or_impossible_file_leaves_the_old_one},
    {"every damage gives an error or a source", every_damage_gives_an_error_or_a_source},
    {"numbers beyond the file are refused", numbers_beyond_the_file_are_refused},
    {"lists in lists are bounded", lists_in_lists_are_bounded},
    {"impossible tensors are refused", impossible_tensors_are_refused},
    {"tensors that share bytes are refused by name", tensors_that_share_bytes_are_refused_by_name},
    {"bad values are refused", bad_values_are_refused},
    {"tensors that GGUF cannot hold are refused by name",
     tensors_that_gguf_cannot_hold_are_refused_by_name},
    {"every failing allocation gives memory errors and no leak",
     every_failing_allocation_gives_memory_errors_and_no_leak},
    {"every failing allocation while writing leaves no file",
     every_failing_allocation_while_writing_leaves_no_file},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_gguf[] = {
    {"gguf", NULL, NULL, NULL, NULL, tests_gguf},
    CU_SUITE_INFO_NULL,
};
/* clang-format on */
