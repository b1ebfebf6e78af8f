/* SPDX-License-Identifier: MIT
 * Rules that nodes and outputs of an ONNX model must keep, and the messages that name the node. */
#include <stdio.h>
#include <string.h>

#include "tests/suite_formats_onnx_case.h"
#include "tests/support_wire.h"

/* ---- numbers of operands ---- */

static const struct tnd_onnx_op *const families[] = {
#define FAMILY_ROW(name) tnd_onnx_##name,
    TND_ONNX_FAMILIES(FAMILY_ROW) TND_ONNX_MICROSOFT(FAMILY_ROW) TND_ONNX_ML(FAMILY_ROW)
        TND_ONNX_PREVIEW(FAMILY_ROW)
#undef FAMILY_ROW
};

static void every_operator_says_how_many_operands_it_has(void)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        for (const struct tnd_onnx_op *op = families[i]; op->name != NULL; op++) {
            struct tnd_onnx_span in = {-1, -1};
            struct tnd_onnx_span out = {-1, -1};
            check_int((int64_t)strspn(op->arity, "0123456789-*>: "), (int64_t)strlen(op->arity));
            tnd_onnx_arity(op, 23, &in, &out);
            CU_ASSERT_TRUE(in.min >= 0 && in.max >= in.min);
            CU_ASSERT_TRUE(out.min >= 0 && out.max >= 1 && out.max >= out.min);
        }
    }
}

static const struct onnx_case other_numbers[] = {
    {"Relu",
     14,
     "",
     {"float32[1] 1", "float32[1] 1"},
     {"!Relu of opset 14, node it: 2 inputs, expected 1 (float32 1, float32 1)"}},
    {"LogSoftmax", 13, "", {"float32[1] 1", "int64[] 0"}, {"!2 inputs, expected 1"}},
    {"Flatten", 13, "", {"float32[1] 1", "int64[] 0"}, {"!node it: 2 inputs, expected 1"}},
    {"Add", 13, "", {"float32[1] 1"}, {"!Add of opset 13, node it: 1 inputs, expected 2"}},
    {"Constant", 13, "value_float=1.0", {"float32[1] 1"}, {"!1 inputs, expected 0"}},
    {"Concat", 13, "axis=0", {NULL}, {"!0 inputs, expected 1 or more"}},
    {"Squeeze", 11, "", {"float32[1] 1", "int64[1] 0"}, {"!2 inputs, expected 1"}},
    {"Squeeze", 13, "", {"float32[1] 1", "int64[1] 0"}, {"float32[] 1"}},
    {"Clip", 13, "", {"float32[1] 1", "", "", "float32[] 1"}, {"!4 inputs, expected 1 to 3"}},
    {"LayerNormalization",
     17,
     "",
     {"float32[1] 1", "float32[1] 1", "float32[1] 1", "float32[1] 1"},
     {"!4 inputs, expected 2 to 3"}},
};

static void nodes_with_other_numbers_of_operands_are_refused(void)
{
    check_onnx_cases(other_numbers);
}

static const struct onnx_case named[] = {
    {"Reshape",
     13,
     "",
     {"float32[4] 1 2 3 4", "int64[2] 3 3"},
     {"!Reshape of opset 13, node it: 4 cannot be read as 3x3 (float32 4, int64 2)"}},
    {"MatMul",
     13,
     "",
     {"float32[2,3] 1 2 3 4 5 6", "float32[2] 1 2"},
     {"!MatMul of opset 13, node it: "}},
    {"Add", 13, "", {"float32[2] 1 2", "float32[3] 1 2 3"}, {"!Add of opset 13, node it: "}},
    {"Add", 13, "", {"float32[2] 1 2", "float32[3] 1 2 3"}, {"!(float32 2, float32 3)"}},
};

static void errors_name_the_node_and_its_operands(void)
{
    check_onnx_cases(named);
}

/* ---- outputs ---- */

/* Builds the model of a text, in which `n` has this extent; `note` gets the net's. */
static enum tandem_status build_with(const char *text, int64_t n, char *note, size_t size,
                                     struct tandem_error *error)
{
    const struct tandem_onnx_dim dims[] = {{"n", n}};
    const struct tnd_onnx_build_options options = {.n_dims = 1, .dims = dims};
    struct tnd_blob blob = {NULL, 0};
    struct tnd_onnx_model *model = NULL;
    struct tnd_net *net = NULL;
    tnd_blob_fields(&blob, text);
    enum tandem_status status = tnd_onnx_read(blob.bytes, blob.n, "x.onnx", &model, error);
    if (status == TANDEM_OK) {
        status = tnd_onnx_build(model, &options, &net, error);
    }
    (void)snprintf(note, size, "%s", status == TANDEM_OK ? net->note : "");
    tnd_net_free(net);
    tnd_onnx_close(model);
    tnd_blob_free(&blob);
    return status;
}

/* y = Relu(x), x of n values; the type of y and its shape follow. */
#define RELU_OF(type, shape)                                                                       \
    "1:8 8:{2:17} 7:{1:{1:'x' 2:'y' 4:'Relu'} 11:{1:'x' 2:{1:{1:1 2:{1:{2:'n'}}}}} "               \
    "12:{1:'y' 2:{1:{1:" type " " shape "}}}}"

static void outputs_have_the_types_that_the_model_states(void)
{
    static const struct {
        const char *text, *message, *note;
    } rows[] = {
        {RELU_OF("1", "2:{1:{1:4}}"), NULL, ""},
        {RELU_OF("1", "2:{1:{2:'n'}}"), NULL, ""},
        {RELU_OF("1", "2:{1:{2:'m'}}"), NULL, ""},
        {RELU_OF("1", "2:{1:{}}"), NULL, ""},
        {RELU_OF("1", ""), NULL, ""},
        {RELU_OF("1", "2:{1:{1:9}}"), NULL, "output 'y' has the shape 4, the model states 9"},
        {RELU_OF("1", "2:{1:{2:'n'} 1:{1:1}}"), NULL, "the model states nx1"},
        {RELU_OF("1", "2:{}"), NULL, "the model states scalar"},
        {RELU_OF("7", "2:{1:{1:4}}"),
         "output 'y': computed is float32 of 4, the model states int64", ""},
        {RELU_OF("7", ""), "the model states int64", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tandem_error error = {.text = ""};
        const bool is_good = rows[i].message == NULL;
        char note[256];
        check_status(build_with(rows[i].text, 4, note, sizeof(note), &error),
                     is_good ? TANDEM_OK : TANDEM_E_TYPE, NULL, &error);
        check_contains(error.text, is_good ? "" : rows[i].message);
        check_contains(note, rows[i].note);
        CU_ASSERT_EQUAL(note[0] == '\0', rows[i].note[0] == '\0');
    }
}

/* y = Concat(x, x), said to be as long as x. */
static void symbolic_extents_of_outputs_are_those_of_inputs(void)
{
    const char *text = "1:8 8:{2:17} 7:{1:{1:'x' 1:'x' 2:'y' 4:'Concat' 5:{1:'axis' 3:0 20:2}} "
                       "11:{1:'x' 2:{1:{1:1 2:{1:{2:'n'}}}}} 12:{1:'y' 2:{1:{1:1 2:{1:{2:'n'}}}}}}";
    struct tandem_error error = {.text = ""};
    char note[256];
    check_int(build_with(text, 4, note, sizeof(note), &error), TANDEM_OK);
    check_string(note, "output 'y' has the shape 8, the model states n, n being 4");
    check_int(build_with(text, 0, note, sizeof(note), &error), TANDEM_OK);
    check_string(note, "");
}

static CU_TestInfo tests_onnx_rules[] = {
    {"every_operator_says_how_many_operands_it_has", every_operator_says_how_many_operands_it_has},
    {"nodes_with_other_numbers_of_operands_are_refused",
     nodes_with_other_numbers_of_operands_are_refused},
    {"errors_name_the_node_and_its_operands", errors_name_the_node_and_its_operands},
    {"outputs_have_the_types_that_the_model_states", outputs_have_the_types_that_the_model_states},
    {"symbolic_extents_of_outputs_are_those_of_inputs",
     symbolic_extents_of_outputs_are_those_of_inputs},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_rules[] = {
    {"onnx_rules", NULL, NULL, NULL, NULL, tests_onnx_rules},
    CU_SUITE_INFO_NULL,
};
