/* SPDX-License-Identifier: MIT
 * Model files that another program cuts short while they are read: no result is made of what is
 * gone, and copies do not care. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tandem/formats.h"
#include "tandem/mapped.h"
#include "tandem/onnx_nets.h"
#include "tandem/tokenizer.h"
#include "tests/support.h"
#include "tests/support_wire.h"

/* A model in a file; its path is valid until the fourth call of tnd_test_temp from now. */
static const char *write_model(const char *name)
{
    struct tandem_llama_shape shape = {sizeof(shape), 64, 96, 2, 4, 2, 300, 64, 0, 0, 0};
    const char *path = tnd_test_temp(name);
    tandem_source *source = NULL;
    check_ok(tandem_source_synthesize(&shape, TANDEM_TYPE_F32, 1, &source, NULL));
    check_ok(tandem_source_save_gguf(source, path, NULL, NULL));
    tandem_source_close(source);
    return path;
}

static void nothing_is_written_of_a_file_cut_short(void)
{
    struct tandem_save_options options = TANDEM_SAVE_OPTIONS_INIT;
    options.type = TANDEM_TYPE_Q4_0;
    check_ok(tandem_guard_mapped_files(NULL));
    for (int converts = 0; converts < 2; converts++) {
        const char *path = write_model("cut.gguf");
        const char *target = tnd_test_temp("target.gguf");
        struct tandem_error error;
        tandem_source *source = NULL;
        tandem_source *copy = NULL;
        check_ok(tandem_source_open(path, &source, NULL));
        CU_ASSERT_EQUAL(truncate(path, 16384), 0);
        options.converts = converts;
        check_status(tandem_source_save_gguf(source, target, &options, &error), TANDEM_E_FILE,
                     "cut.gguf", &error);
        CU_ASSERT_FALSE(tnd_file_exists(target));
        check_status(tandem_source_convert(source, TANDEM_TYPE_Q8_0, &copy, &error), TANDEM_E_FILE,
                     "cut.gguf", &error);
        tandem_source_close(source);
    }
}

static void nothing_is_written_of_a_file_that_was_replaced(void)
{
    const char *path = write_model("old.gguf");
    const char *target = tnd_test_temp("target.gguf");
    struct tandem_error error;
    tandem_source *source = NULL;
    check_ok(tandem_source_open(path, &source, NULL));
    CU_ASSERT_EQUAL(rename(write_model("new.gguf"), path), 0);
    check_status(tandem_source_save_gguf(source, target, NULL, &error), TANDEM_E_FILE,
                 "changed or replaced", &error);
    CU_ASSERT_FALSE(tnd_file_exists(target));
    tandem_source_close(source);
}

static void a_source_that_is_read_does_not_need_its_file(void)
{
    struct tandem_source_options options = TANDEM_SOURCE_OPTIONS_INIT;
    const char *path = write_model("read.gguf");
    tandem_source *source = NULL;
    tandem_source *copy = NULL;
    options.copies = true;
    check_ok(tandem_source_open_with(path, &options, &source, NULL));
    CU_ASSERT_EQUAL(truncate(path, 0), 0);
    check_ok(tandem_source_convert(source, TANDEM_TYPE_Q8_0, &copy, NULL));
    tandem_source_close(copy);
    tandem_source_close(source);
    options.size = 0;
    check_status(tandem_source_open_with(path, &options, &source, NULL), TANDEM_E_ABI, NULL, NULL);
}

/* y = x + w of 4096 values: the text for tnd_blob_fields, which the caller frees. */
static char *addition_text(void)
{
    enum { HEX_DIGITS = 4096 * 8 };
    static const char begin[] = "1:8 8:{2:17} 7:{1:{1:'x' 1:'w' 2:'y' 4:'Add'} "
                                "11:{1:'x' 2:{1:{1:1 2:{1:{1:4096}}}}} 12:{1:'y'} "
                                "5:{8:'w' 1:4096 2:1 9=";
    char *text = malloc(sizeof(begin) + HEX_DIGITS + 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    memcpy(text, begin, sizeof(begin));
    memset(text + sizeof(begin) - 1, '1', HEX_DIGITS);
    memcpy(text + sizeof(begin) - 1 + HEX_DIGITS, "}}", 3);
    return text;
}

static void no_net_is_made_of_a_model_cut_short(void)
{
    const char *path = tnd_test_temp("cut.onnx");
    struct tnd_blob file = {NULL, 0};
    struct tandem_error error = {.text = ""};
    tandem_onnx *model = NULL;
    tandem_net *net = NULL;
    char *text = addition_text();
    tnd_blob_fields(&file, text);
    free(text);
    CU_ASSERT_TRUE_FATAL(tnd_test_write_file(path, file.bytes, file.n));
    tnd_blob_free(&file);
    check_ok(tandem_guard_mapped_files(NULL));
    check_ok(tandem_onnx_open(path, &model, NULL));
    check_ok(tandem_onnx_net(model, NULL, &net, NULL));
    tandem_net_free(net);
    net = NULL;
    CU_ASSERT_EQUAL(truncate(path, 100), 0);
    check_status(tandem_onnx_net(model, NULL, &net, &error), TANDEM_E_FILE, "cut.onnx", &error);
    CU_ASSERT_PTR_NULL(net);
    tandem_onnx_close(model);
}

static CU_TestInfo tests[] = {
    {"nothing_is_written_of_a_file_cut_short", nothing_is_written_of_a_file_cut_short},
    {"nothing_is_written_of_a_file_that_was_replaced",
     nothing_is_written_of_a_file_that_was_replaced},
    {"no_net_is_made_of_a_model_cut_short", no_net_is_made_of_a_model_cut_short},
    {"a_source_that_is_read_does_not_need_its_file", a_source_that_is_read_does_not_need_its_file},
    CU_TEST_INFO_NULL,
};

extern CU_SuiteInfo suites_formats_mapped[];
CU_SuiteInfo suites_formats_mapped[] = {
    {"mapped", NULL, NULL, NULL, NULL, tests},
    CU_SUITE_INFO_NULL,
};
