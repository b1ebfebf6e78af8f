/* SPDX-License-Identifier: MIT
 * The reader of ONNX models on files that are broken or meant to harm, written as text
 * (support_wire.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/onnx_build.h"
#include "tests/support.h"
#include "tests/support_wire.h"

static struct tnd_blob model_of(const char *text)
{
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_fields(&blob, text);
    return blob;
}

/* ---- reading ---- */

struct row {
    const char *text;
    enum tandem_status status;
    const char *message;
};

static enum tandem_status build_of(const struct tnd_onnx_model *model, struct tandem_error *error)
{
    static const struct tnd_onnx_build_options options;
    struct tnd_net *net = NULL;
    const enum tandem_status status = tnd_onnx_build(model, &options, &net, error);
    tnd_net_free(net);
    return status;
}

/* Whether reading, or building what was read, fails as the row says. */
static void check_row(const struct row *row)
{
    struct tandem_error error = {.text = ""};
    struct tnd_onnx_model *model = NULL;
    struct tnd_blob blob = model_of(row->text);
    enum tandem_status status = tnd_onnx_read(blob.bytes, blob.n, "x.onnx", &model, &error);
    if (status == TANDEM_OK) {
        status = build_of(model, &error);
    }
    if (status != row->status) {
        (void)printf("\n%s\n", row->text);
    }
    check_int(status, row->status);
    check_contains(error.text, row->message);
    tnd_onnx_close(model);
    tnd_blob_free(&blob);
}

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_row(&rows[i]);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

/* A model around a graph, and around one tensor. */
#define MODEL(graph)   "1:8 8:{2:17} 7:{" graph "}"
#define TENSOR(fields) MODEL("5:{" fields "}")
#define RELU           "1:{1:'x' 2:'y' 4:'Relu'}"
#define F32_OF(name)   "{1:'" name "' 2:{1:{1:1 2:{1:{1:2}}}}}"

static void a_broken_wire_format_is_refused_with_its_place(void)
{
    static const struct row rows[] = {
        {"", TANDEM_E_FORMAT, "x.onnx: no ONNX model, but an empty file"},
        {"1:8", TANDEM_E_FORMAT, "no ONNX model, or a damaged one: 0 graphs and a version"},
        {"1:8 7:{} 7:{}", TANDEM_E_FORMAT, "2 graphs and a version"},
        {"!4747554603000000", TANDEM_E_FORMAT, "but a GGUF file, which tandem-llama runs"},
        {"!10000000000000007b22", TANDEM_E_FORMAT, "but a safetensors file, which tandem-llama"},
        {"!504b030414000000", TANDEM_E_FORMAT, "but a ZIP archive, as PyTorch and NumPy"},
        {"!08ff", TANDEM_E_TRUNCATED, "at byte 2: a number needs 1 bytes, 0 are left"},
        {"!08ffffffffffffffffffff01", TANDEM_E_FORMAT, "takes more than 10 bytes"},
        {"!3aff01", TANDEM_E_TRUNCATED, "at byte 3: a field needs 255 bytes, 0 are left"},
        {"!3affffffffffffffff7f", TANDEM_E_TRUNCATED, "needs 9223372036854775807 bytes"},
        {"!0b", TANDEM_E_FORMAT, "the wire type 3, expected 0, 1, 2 or 5"},
        {"!0d0000", TANDEM_E_TRUNCATED, "a number of 4 bytes needs 4 bytes, 2 are left"},
        {"!0900", TANDEM_E_TRUNCATED, "a number of 8 bytes needs 8 bytes, 1 are left"},
        {"7:{!0aff}", TANDEM_E_FORMAT, "no version"},
        {"1:8 7:{!0aff01}", TANDEM_E_TRUNCATED, "at byte 7: a field needs 255 bytes, 0 are left"},
        {"1:'8' 7:{}", TANDEM_E_FORMAT,
         "before byte 3: field 1 of a model has the wire type 2, expected 0"},
        {"1:8 7:5", TANDEM_E_FORMAT, "field 7 of a model has the wire type 0, expected 2"},
        {"1:8 8:{2:'x'} 7:{}", TANDEM_E_FORMAT, "field 2 of an opset has the wire type 2"},
        {MODEL("1:7"), TANDEM_E_FORMAT, "field 1 of a graph has the wire type 0, expected 2"},
        {MODEL("1:{4:7}"), TANDEM_E_FORMAT, "field 4 of a node has the wire type 0, expected 2"},
        {MODEL("2=6100"), TANDEM_E_FORMAT, "field 2 of a graph holds a zero byte, expected a text"},
    };
    CHECK_ROWS(rows);
}

static void a_broken_tensor_is_refused_by_name(void)
{
    static const struct row rows[] = {
        {TENSOR("8:'w' 1:-1 2:1"), TANDEM_E_FORMAT, "'w': an extent is -1, expected 0"},
        {TENSOR("8:'w' 1:-9223372036854775808 2:1"), TANDEM_E_FORMAT, "-9223372036854775808"},
        {TENSOR("8:'w' 1:4294967296 1:4294967296 2:1"), TANDEM_E_OVERFLOW,
         "tensor 'w': its number of values does not fit"},
        {TENSOR("8:'w' 1:36028797018963968 2:1"), TANDEM_E_OVERFLOW,
         "tensor 'w': its number of values does not fit"},
        {TENSOR("8:'w' 1:36028797018963967 2:1"), TANDEM_E_FORMAT,
         "'w': the count of its numbers is 0, expected 36028797018963967"},
        {TENSOR("8:'w' 1:0 2:1 9=00"), TANDEM_E_FORMAT, "raw bytes is 1, expected 0"},
        {TENSOR("8:'w' 1:1099511627776 2:1"), TANDEM_E_FORMAT,
         "'w': the count of its numbers is 0, expected 1099511627776"},
        {TENSOR("8:'w' 1:1099511627776 2:1 9=00"), TANDEM_E_FORMAT,
         "'w': the number of its raw bytes is 1, expected 4398046511104"},
        {TENSOR("8:'w' 1:2 2:1 9=000000"), TANDEM_E_FORMAT, "raw bytes is 3, expected 8"},
        {TENSOR("8:'w' 1:1 2:1 4=00000000 4~00000000"), TANDEM_E_FORMAT, "is 2, expected 1"},
        {TENSOR("8:'w' 1:1 2:1 4=000000"), TANDEM_E_TRUNCATED,
         "a number of 4 bytes in a list needs 4 bytes, 3 are left"},
        {TENSOR("8:'w' 1:1 2:7 7=ff"), TANDEM_E_TRUNCATED, "a number of a list needs 1 bytes"},
        {TENSOR("8:'w' 1:1 2:1 4:1"), TANDEM_E_FORMAT,
         "field 4 of a list of numbers has the wire type 0, expected 5"},
        {TENSOR("8:'w' 1:2 2:8 6:'a'"), TANDEM_E_FORMAT, "'w': the number of its texts is 1"},
        {TENSOR("8:'w' 2:27"), TANDEM_E_UNSUPPORTED_BUILD,
         "'w': a list of float6e2m3, expected raw bytes"},
        {TENSOR("8:'w' 2:29"), TANDEM_E_UNSUPPORTED_BUILD,
         "'w' has the type number 29, expected 1 to 28"},
        {TENSOR("8:'w'"), TANDEM_E_UNSUPPORTED_BUILD, "'w' has the type number 0"},
        {TENSOR("8:'w' 2:1 14:2"), TANDEM_E_FORMAT, "the location of its data is 2, expected 1"},
        {TENSOR("8:'w' 2:1 3:{1:0}"), TANDEM_E_UNSUPPORTED_BUILD, "a tensor in segments"},
        {TENSOR("8:'w' 1=0101010101010101010101010101010101010101010101010101010101010101"
                "01 2:1"),
         TANDEM_E_FORMAT, "'w': its number of dimensions is 33, expected 32"},
        {TENSOR("8:'w' 1=010101010101010101 2:1 9=00000000"), TANDEM_E_UNSUPPORTED_BUILD,
         "tensor 'w': type float32, 9 dimensions"},
        {TENSOR("8:'w' 2:8 6:'a'"), TANDEM_E_UNSUPPORTED_BUILD, "tensor 'w': type string"},
        {TENSOR("8:'w' 1:1 2:1 14:1 13:{1:'location' 2:'w.bin'}"), TANDEM_E_FORMAT,
         "its data is in another file, 'w.bin': expected all data in this one"},
        {TENSOR("8:'w' 1:1 2:1 14:1 13:{1:'offset' 2:'-4'}"), TANDEM_E_FORMAT,
         "external data: offset is '-4', expected a number of bytes"},
        {TENSOR("8:'w' 1:1 2:1 14:1 13:{1:'length' 2:'99999999999999999999'}"), TANDEM_E_FORMAT,
         "length is '99999999999999999999'"},
    };
    CHECK_ROWS(rows);
}

static void broken_types_nodes_and_attributes_are_refused(void)
{
    static const struct row rows[] = {
        {MODEL("11:{1:'x' 2:{1:{1:29}}}"), TANDEM_E_UNSUPPORTED_BUILD,
         "'x' has the type number 29, expected 1 to 28"},
        {MODEL("11:{1:'x' 2:{1:{1:1 2:{1:{1:-2}}}}}"), TANDEM_E_FORMAT,
         "an extent is -2, expected at least 0"},
        {MODEL("11:{1:'x' 2:{1:{1:1 2:{1:{1:-1}}}}}"), TANDEM_E_ARGUMENT,
         "input 'x': its dimension 0 is not fixed"},
        {MODEL("11:{1:'x' 2:{1:{1:1 2:{1:{2:'n'}}}}}"), TANDEM_E_ARGUMENT, "dimension 0 (n)"},
        {MODEL("11:{1:'x' 2:{1:{1:1}}}"), TANDEM_E_ARGUMENT, "does not state its shape"},
        {MODEL("11:{1:'x' 2:{4:{}}}"), TANDEM_E_UNSUPPORTED_BUILD, "input 'x' is no tensor"},
        {MODEL("11:{1:'x' 2:{1:{1:1 2:{1:{1:4294967296} 1:{1:4294967296}}}}}"), TANDEM_E_OVERFLOW,
         "4294967296"},
        {MODEL("1:{1:'x'}"), TANDEM_E_FORMAT, "the length of an operator's name is 0, expected"},
        {MODEL("1:{4:'A' 5:{1:'a' 20:15}}"), TANDEM_E_FORMAT,
         "an attribute's type is 15, expected 0 to 14"},
        {MODEL("1:{4:'A' 5:{1:'a' 20:4}}"), TANDEM_E_FORMAT,
         "an attribute without its value is 4, expected a tensor or a graph"},
        {MODEL("1:{4:'A' 5:{1:'a' 2:1 20:1}}"), TANDEM_E_FORMAT,
         "the wire type of a float is 0, expected 5"},
        {MODEL("1:{4:'A' 5:{1:'a' 8=ff 20:7}}"), TANDEM_E_TRUNCATED, "a number of a list"},
        {MODEL("1:{4:'A' 5:{1:'a' 9:1 20:8}}"), TANDEM_E_FORMAT, "field 9 of an attribute"},
    };
    CHECK_ROWS(rows);
}

static void graphs_that_break_a_rule_are_refused_by_name(void)
{
    static const struct row rows[] = {
        {"1:8 7:{}", TANDEM_E_UNSUPPORTED_BUILD, "opset 0, expected 6 to 28"},
        {"1:8 8:{2:29} 7:{}", TANDEM_E_UNSUPPORTED_BUILD, "opset 29, expected 6 to 28"},
        {"1:8 8:{2:-1} 7:{}", TANDEM_E_UNSUPPORTED_BUILD, "opset -1, expected 6 to 28"},
        {"1:8 8:{1:'other' 2:17} 7:{}", TANDEM_E_UNSUPPORTED_BUILD, "opset 0, expected"},
        {MODEL("15:{}"), TANDEM_E_UNSUPPORTED_BUILD, "has 1 sparse initializers, expected dense"},
        {MODEL(RELU), TANDEM_E_FORMAT,
         "Relu of opset 17, which makes y: it reads 'x', which nothing in front of it makes"},
        {MODEL("1:{1:'b' 2:'a' 4:'Relu'} 1:{1:'a' 2:'b' 4:'Relu'}"), TANDEM_E_FORMAT,
         "it reads 'b', which nothing in front of it makes"},
        {MODEL("1:{1:'a' 2:'a' 4:'Relu'}"), TANDEM_E_FORMAT, "it reads 'a'"},
        {MODEL("11:" F32_OF("x") RELU RELU), TANDEM_E_FORMAT, "the value 'y' is made twice"},
        {MODEL("11:" F32_OF("x") " 1:{1:'x' 2:'x' 4:'Relu'}"), TANDEM_E_FORMAT,
         "the value 'x' is made twice"},
        {MODEL("11:" F32_OF("x") "12:{1:'z'}"), TANDEM_E_FORMAT, "nothing makes the output 'z'"},
        {MODEL("5:{8:'w' 2:1 9=00000000} 5:{8:'w' 2:1 9=00000000}"), TANDEM_E_FORMAT,
         "the value 'w' is made twice"},
        {MODEL("1:{2:'y' 4:'Nothing' 3:'first'}"), TANDEM_E_UNSUPPORTED_BUILD,
         "Nothing of opset 17, node first: the operator is not known"},
        {MODEL("1:{2:'y' 4:'Relu' 7:'other'}"), TANDEM_E_UNSUPPORTED_BUILD,
         "other.Relu of opset 17, which makes y: the operator is not known"},
        {MODEL("1:{2:'y' 4:'Conv' 7:'com.microsoft.nchwc'}"), TANDEM_E_UNSUPPORTED_BUILD,
         "save it with ORT_ENABLE_EXTENDED"},
        {MODEL("11:" F32_OF("x") "1:{1:'x' 2:'y' 4:'Relu' 3:'r' 5:{1:'odd' 3:1 20:2}}"),
         TANDEM_E_UNSUPPORTED_BUILD, "Relu of opset 17, node r: attribute odd is not known"},
        {MODEL("11:" F32_OF("x") "1:{1:'x' 4:'Split' 3:'s'}"), TANDEM_E_UNSUPPORTED_BUILD,
         "node s: 0 outputs, expected 1 or more (float32 2)"},
        {MODEL("11:" F32_OF("x") "11:{1:'n' 2:{1:{1:7 2:{1:{1:2}}}}} 11:{1:'w' 2:{1:{1:1 2:{}}}} "
                                 "1:{1:'x' 1:'n' 1:'w' 2:'y' 4:'NegativeLogLikelihoodLoss' 3:'l'}"),
         TANDEM_E_UNSUPPORTED_BUILD, "node l: weights of 0 dimensions, expected 1"},
        {MODEL("11:" F32_OF("x") "1:{1:'x' 1:'x' 2:'y' 4:'Pad' 3:'p' 5:{1:'pads' 4:'x' 20:3}}"),
         TANDEM_E_UNSUPPORTED_BUILD, "node p: attribute pads has type 3, expected 7"},
        {MODEL("11:" F32_OF("x") "5:{8:'s' 1:2 2:7 7:524 7:23476150781083660} "
                                 "1:{1:'x' 1:'s' 2:'y' 4:'Reshape' 3:'r'}"),
         TANDEM_E_UNSUPPORTED_BUILD, "node r: the new shape is too large"},
        {MODEL("11:" F32_OF("x") "1:{1:'x' 2:'y' 4:'Concat' 3:'c' 5:{1:'axis' 2~00000000 20:1}}"),
         TANDEM_E_UNSUPPORTED_BUILD, "node c: attribute axis has type 1, expected 2"},
    };
    CHECK_ROWS(rows);
}

/* A node with so many operands, and graphs so deep within graphs. */
static void counts_beyond_the_limits_are_refused(void)
{
    static char many[16384];
    static char deep[2048];
    size_t n = (size_t)snprintf(many, sizeof(many), "1:8 8:{2:17} 7:{5:{8:'w' 2:1 9=00000000} 1:{");
    for (int i = 0; i < 1025; i++) {
        n += (size_t)snprintf(many + n, sizeof(many) - n, "1:'w' ");
    }
    (void)snprintf(many + n, sizeof(many) - n, "2:'y' 3:'m' 4:'Sum'}}");
    check_row(&(struct row){many, TANDEM_E_UNSUPPORTED_BUILD, "node m: more than 1024 operands"});
    n = (size_t)snprintf(deep, sizeof(deep), "1:8 8:{2:17} 7:{");
    for (int i = 0; i < 17; i++) {
        n += (size_t)snprintf(deep + n, sizeof(deep) - n, "1:{4:'If' 5:{1:'then_branch' 20:5 6:{");
    }
    for (int i = 0; i < 17; i++) {
        n += (size_t)snprintf(deep + n, sizeof(deep) - n, "}}}");
    }
    (void)snprintf(deep + n, sizeof(deep) - n, "}");
    check_row(&(struct row){deep, TANDEM_E_FORMAT,
                            "the depth of graphs within graphs is 17, expected at most 16"});
}

/* ---- external data ---- */

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    check_int(fwrite(bytes, 1, n, file), n);
    check_int(fclose(file), 0);
}

/* Opens a model in `folder` whose only tensor of two floats lies where the entries say. */
static enum tandem_status open_with(const char *folder, const char *entries,
                                    struct tandem_error *error)
{
    char text[400];
    char path[400];
    struct tnd_onnx_model *model = NULL;
    (void)snprintf(text, sizeof(text), "1:8 8:{2:17} 7:{5:{8:'w' 1:2 2:1 14:1 %s} 12:{1:'w'}}",
                   entries);
    (void)snprintf(path, sizeof(path), "%s/m.onnx", folder);
    struct tnd_blob blob = model_of(text);
    write_file(path, blob.bytes, blob.n);
    tnd_blob_free(&blob);
    enum tandem_status status = tnd_onnx_open(path, &model, error);
    if (status == TANDEM_OK) {
        status = build_of(model, error);
        check_int(memcmp(model->graph->initializers[0].data, "\0\0\200\77\0\0\0\100", 8), 0);
    }
    tnd_onnx_close(model);
    return status;
}

#define AT(location) "13:{1:'location' 2:'" location "'}"

static void external_data_is_read_inside_of_the_folder_alone(void)
{
    static const struct row rows[] = {
        {AT("w.bin") "13:{1:'offset' 2:'4'}", TANDEM_OK, ""},
        {AT("./w.bin") "13:{1:'offset' 2:'4'} 13:{1:'length' 2:'8'}", TANDEM_OK, ""},
        {AT("below/w.bin"), TANDEM_OK, ""},
        {AT("inner.bin") "13:{1:'offset' 2:'4'}", TANDEM_OK, ""},
        {AT("../outside.bin"), TANDEM_E_FORMAT, "'../outside.bin': expected a name inside"},
        {AT("below/../../outside.bin"), TANDEM_E_FORMAT, "expected a name inside the model's"},
        {AT(".."), TANDEM_E_FORMAT, "'..': expected a name inside"},
        {AT("/etc/passwd"), TANDEM_E_FORMAT, "'/etc/passwd': expected a name inside"},
        {"", TANDEM_E_FORMAT, "tensor 'w': its data is in another file, ''"},
        {AT("link.bin"), TANDEM_E_FILE, "'link.bin' is a link that leads out of the model's"},
        {AT("away/outside.bin"), TANDEM_E_FILE, "is a link that leads out of the model's folder"},
        {AT("none.bin"), TANDEM_E_FILE, "none.bin: No such file"},
        {AT("below"), TANDEM_E_FILE, "below"},
        {AT("w.bin") "13:{1:'offset' 2:'8'}", TANDEM_E_TRUNCATED,
         "8 bytes at 8 of 'w.bin', which has 12 bytes"},
        {AT("w.bin") "13:{1:'offset' 2:'9223372036854775807'}", TANDEM_E_TRUNCATED,
         "8 bytes at 9223372036854775807"},
        {AT("w.bin") "13:{1:'length' 2:'4'}", TANDEM_E_FORMAT,
         "the length of its external data, in bytes, is 4, expected 8"},
    };
    char parent[300];
    char folder[340];
    char path[400];
    (void)snprintf(parent, sizeof(parent), "%s", tnd_test_temp("onnx_external"));
    (void)snprintf(folder, sizeof(folder), "%s/model", parent);
    (void)mkdir(parent, 0777);
    (void)mkdir(folder, 0777);
#define PATH(name) ((void)snprintf(path, sizeof(path), "%s/%s", folder, name), path)
    (void)mkdir(PATH("below"), 0777);
    write_file(PATH("w.bin"), "....\0\0\200\77\0\0\0\100", 12);
    write_file(PATH("below/w.bin"), "\0\0\200\77\0\0\0\100", 8);
    write_file(PATH("../outside.bin"), "\0\0\200\77\0\0\0\100", 8);
    CU_ASSERT_TRUE(symlink("../outside.bin", PATH("link.bin")) == 0 || errno == EEXIST);
    CU_ASSERT_TRUE(symlink("..", PATH("away")) == 0 || errno == EEXIST);
    CU_ASSERT_TRUE(symlink("w.bin", PATH("inner.bin")) == 0 || errno == EEXIST);
#undef PATH
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_error error = {.text = ""};
        check_int(open_with(folder, rows[i].text, &error), rows[i].status);
        check_contains(error.text, rows[i].message);
    }
}

/* ---- damage ---- */

static void read_damaged(const void *bytes, size_t n)
{
    struct tandem_error error = {.text = ""};
    struct tnd_onnx_model *model = NULL;
    enum tandem_status status = tnd_onnx_read(bytes, n, "x.onnx", &model, &error);
    if (status == TANDEM_OK) {
        status = build_of(model, &error);
    } else {
        CU_ASSERT_PTR_NULL(model);
    }
    CU_ASSERT_TRUE(status == TANDEM_OK || error.text[0] != '\0');
    tnd_onnx_close(model);
}

static void a_damaged_model_is_read_or_refused_with_a_message(void)
{
    struct tnd_blob blob = model_of(
        MODEL("2:'g' 5:{8:'w' 1:2 2:1 9=0000803f00000040} 5:{8:'n' 1:1 2:7 7=02} 11:" F32_OF(
            "x") "1:{1:'x' 1:'w' 2:'a' 4:'Add' 3:'add'} "
                 "1:{1:'a' 2:'y' 4:'LeakyRelu' 5:{1:'alpha' 2~0000003f 20:1}} 12:" F32_OF("y")));
    struct tandem_error error = {.text = ""};
    struct tnd_onnx_model *model = NULL;
    check_ok(tnd_onnx_read(blob.bytes, blob.n, "x.onnx", &model, &error));
    check_ok(build_of(model, &error));
    tnd_onnx_close(model);
    tnd_blob_damage(blob.bytes, blob.n, read_damaged);
    tnd_blob_free(&blob);
}

static CU_TestInfo tests_onnx_reader[] = {
    {"a broken wire format is refused with its place",
     a_broken_wire_format_is_refused_with_its_place},
    {"a broken tensor is refused by name", a_broken_tensor_is_refused_by_name},
    {"broken types, nodes and attributes are refused",
     broken_types_nodes_and_attributes_are_refused},
    {"graphs that break a rule are refused by name", graphs_that_break_a_rule_are_refused_by_name},
    {"counts beyond the limits are refused", counts_beyond_the_limits_are_refused},
    {"external data is read inside of the folder alone",
     external_data_is_read_inside_of_the_folder_alone},
    {"a damaged model is read or refused with a message",
     a_damaged_model_is_read_or_refused_with_a_message},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_reader[] = {
    {"onnx_reader", NULL, NULL, NULL, NULL, tests_onnx_reader},
    CU_SUITE_INFO_NULL,
};
