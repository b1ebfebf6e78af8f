/* SPDX-License-Identifier: MIT
 * Models of more than a node: functions that a model defines itself, integers of fewer than 8 bits;
 * what they compute, and what must be refused. */
#include <stdio.h>

#include "tests/suite_formats_onnx_case.h"
#include "tests/support_wire.h"

/* F(a, b) of the domain "own": LeakyRelu(a) with the slope of attribute k. G calls it. */
#define F                                                                                          \
    " 25:{1:'F' 4:'a' 4:'b' 5:'c' 6:'k' 10:'own' 9:{2:17} "                                        \
    "7:{1:'a' 2:'c' 4:'LeakyRelu' 5:{1:'alpha' 20:1 21:'k'}}} "
#define G                                                                                          \
    " 25:{1:'G' 4:'a' 5:'c' 10:'own' 11:{1:'k' 2~0000803e 20:1} "                                  \
    "7:{1:'a' 2:'h' 4:'F' 7:'own' 5:{1:'k' 20:1 21:'k'}} 7:{1:'h' 1:'h' 2:'c' 4:'Add'}} "
#define MODEL(functions, node)                                                                     \
    "1:8 8:{2:17} 8:{1:'own' 2:1}" functions "7:{11:{1:'x' 2:{1:{1:1 2:{1:{1:2}}}}} 1:{" node      \
    "} 12:{1:'y'}}"
#define SLOPE_HALF "5:{1:'k' 2~0000003f 20:1}"

static const struct {
    const char *text;
    const char *want; /* of x = -2 3; one that begins with "!": refused with this text */
} rows[] = {
    {MODEL(F, "1:'x' 2:'y' 4:'F' 7:'own' " SLOPE_HALF), "float32[2] -1 3"},
    {MODEL(F, "1:'x' 1:'' 2:'y' 4:'F' 7:'own'"), "float32[2] -0.02 3"},
    {MODEL(F G, "1:'x' 2:'y' 4:'G' 7:'own'"), "float32[2] -1 6"},
    {MODEL(F G, "1:'x' 2:'y' 4:'G' 7:'own' " SLOPE_HALF), "float32[2] -2 6"},
    /* a function with the name of an operator comes first */
    {MODEL(" 25:{1:'Relu' 4:'a' 5:'c' 7:{1:'a' 2:'c' 4:'Neg'}} ", "1:'x' 2:'y' 4:'Relu'"),
     "float32[2] 2 -3"},
    {MODEL(F, "1:'x' 2:'y' 4:'F' 7:'own' 8:'other'"), "!operator is not known"},
    {MODEL(F, "1:'x' 1:'x' 1:'x' 2:'y' 4:'F' 7:'own'"), "!its function has 2 and 1"},
    {MODEL(F, "1:'x' 2:'y' 4:'F' 7:'own' 5:{1:'z' 3:1 20:2}"), "!attribute z is not known"},
    /* a function sees its own operands alone, and does not call itself for ever */
    {MODEL(" 25:{1:'F' 5:'c' 10:'own' 7:{1:'x' 2:'c' 4:'Neg'}} ", "2:'y' 4:'F' 7:'own'"),
     "!reads 'x', which nothing in front"},
    {MODEL(" 25:{1:'F' 4:'a' 4:'b' 5:'c' 10:'own' 7:{1:'b' 2:'c' 4:'Neg'}} ",
           "1:'x' 2:'y' 4:'F' 7:'own'"),
     "!Neg of opset 17"},
    {MODEL(" 25:{1:'F' 4:'a' 5:'c' 10:'own' 7:{1:'a' 2:'c' 4:'F' 7:'own'}} ",
           "1:'x' 2:'y' 4:'F' 7:'own'"),
     "!more than 64 functions"},
    {MODEL(" 25:{1:'F' 4:'a' 5:'a' 10:'own' 9:{2:99}} ", "1:'x' 2:'y' 4:'F' 7:'own'"),
     "!of opset 99"},
    {MODEL(" 25:{1:'F' 4:'a' 5:'c' 10:'own'} ", "1:'x' 2:'y' 4:'F' 7:'own'"),
     "!nothing makes the output 'c'"},
};

/* Integers of 4 and 2 bits: w is -8 -2 7 or 8 14 7, t is 0 1 -2 -1, s a half, z a 0 of int4. */
#define NARROW(nodes)                                                                              \
    "1:8 8:{2:25} 7:{11:{1:'x' 2:{1:{1:1 2:{1:{1:2}}}}} 5:{8:'w' 1:3 2:22 9=e807} "                \
    "5:{8:'u' 1:3 2:21 9=e807} 5:{8:'t' 1:4 2:26 9=e4} 5:{8:'s' 2:1 9=0000003f} "                  \
    "5:{8:'z' 2:22 9=00} 5:{8:'one' 2:3 9=01} 5:{8:'at' 1:1 2:7 7=02} " nodes " 12:{1:'y'}}"
#define TO(type) "5:{1:'to' 3:" type " 20:2}"

static const struct {
    const char *text;
    const char *want;
} narrow[] = {
    {NARROW("1:{1:'w' 1:'s' 2:'y' 4:'DequantizeLinear'}"), "float32[3] -4 -1 3.5"},
    {NARROW("1:{1:'u' 1:'s' 2:'y' 4:'DequantizeLinear'}"), "float32[3] 4 7 3.5"},
    {NARROW("1:{1:'t' 2:'y' 4:'Cast' " TO("1") "}"), "float32[4] 0 1 -2 -1"},
    {NARROW("1:{1:'x' 1:'s' 1:'z' 2:'y' 4:'QuantizeLinear'}"), "int8[2] -4 6"},
    {NARROW("1:{1:'x' 1:'x' 2:'xx' 4:'Mul'} 1:{1:'xx' 1:'s' 1:'z' 2:'y' 4:'QuantizeLinear'}"),
     "int8[2] 7 7"},
    {NARROW("1:{1:'x' 2:'a' 4:'Cast' " TO("6") "} 1:{1:'a' 2:'y' 4:'Cast' " TO("21") "}"),
     "uint8[2] 14 3"},
    {NARROW("1:{1:'x' 1:'z' 2:'y' 4:'CastLike'}"), "int8[2] -2 3"},
    /* what was moved is narrow still, what was cast is not */
    {NARROW("1:{1:'w' 1:'at' 2:'g' 4:'Gather'} 1:{1:'x' 1:'s' 1:'g' 2:'y' 4:'QuantizeLinear'}"),
     "int8[2] 3 7"},
    {NARROW("1:{1:'w' 2:'b' 4:'Cast' " TO("3") "} 1:{1:'b' 1:'one' 2:'y' 4:'Add'}"),
     "int8[3] -7 -1 8"},
    /* floats of 4 and 6 bits share bytes in the file */
    {NARROW("5:{8:'f' 1:3 2:23 9=210f} 1:{1:'f' 2:'y' 4:'Cast' " TO("1") "}"),
     "float32[3] 0.5 1 -6"},
    {NARROW("5:{8:'f' 1:2 2:27 9=c107} 1:{1:'f' 2:'y' 4:'Cast' " TO("1") "}"),
     "float32[2] 0.125 7.5"},
    {NARROW("5:{8:'f' 1:5 2:28 9=c1f72320} 1:{1:'f' 2:'y' 4:'Cast' " TO("1") "}"),
     "float32[5] 0.0625 28 -28 0.5 -0"},
    {NARROW("1:{1:'w' 1:'one' 2:'y' 4:'Add'}"), "!operand 0 is of int4"},
    {NARROW("1:{1:'x' 1:'u' 2:'y' 4:'Gather'}"), "!operand 1 is of uint4"},
};

/* Sequences: x is -2 3, d is 10 20; i is 1, m -1, k 2, two 1 1, yes true. */
#define SEQUENCE(nodes)                                                                            \
    "1:8 8:{2:18} 7:{11:{1:'x' 2:{1:{1:1 2:{1:{1:2}}}}} 5:{8:'d' 1:2 2:1 9=000020410000a041} "     \
    "5:{8:'i' 2:7 7=01} 5:{8:'m' 2:7 7=ffffffffffffffffff01} 5:{8:'k' 2:7 7=02} "                  \
    "5:{8:'two' 1:2 2:7 7=0101} 5:{8:'yes' 2:9 9=01} " nodes " 12:{1:'y'}}"
#define BOTH            "1:{1:'x' 1:'d' 2:'s' 4:'SequenceConstruct'} "
#define NUMBER(name, n) "5:{1:'" name "' 3:" n " 20:2} "
#define LENGTH          "1:{1:'t' 2:'y' 4:'SequenceLength'}"
#define BODY(graph)     "5:{1:'body' 20:5 6:{" graph "}} "
#define JOIN            "1:{1:'t' 2:'y' 4:'ConcatFromSequence' " NUMBER("axis", "0") "}"

static const struct {
    const char *text;
    const char *want;
} sequences[] = {
    {SEQUENCE(BOTH "1:{1:'s' 2:'t' 4:'Identity'} " JOIN), "float32[4] -2 3 10 20"},
    {SEQUENCE(BOTH "1:{1:'s' 2:'y' 4:'ConcatFromSequence' " NUMBER("axis", "1")
                  NUMBER("new_axis", "1") "}"),
     "float32[2,2] -2 10 3 20"},
    {SEQUENCE(BOTH "1:{1:'s' 2:'y' 4:'ConcatFromSequence' " NUMBER("axis", "1") "}"),
     "!axis 1 of 1 dimensions"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'m' 2:'y' 4:'SequenceAt'}"), "float32[2] 10 20"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'k' 2:'y' 4:'SequenceAt'}"), "!place 2 of a sequence of 2"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'x' 1:'i' 2:'t' 4:'SequenceInsert'} " JOIN),
     "float32[6] -2 3 -2 3 10 20"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'x' 2:'t' 4:'SequenceInsert'} " JOIN), "float32[6] -2 3 10 20 -2 3"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'m' 2:'t' 4:'SequenceErase'} " JOIN), "float32[2] -2 3"},
    {SEQUENCE("1:{2:'s' 4:'SequenceEmpty' " NUMBER(
         "dtype", "1") "} "
                       "1:{1:'s' 1:'x' 2:'t' 4:'SequenceInsert'} " LENGTH),
     "int64[] 1"},
    {SEQUENCE("1:{2:'s' 4:'SequenceEmpty'} 1:{1:'s' 2:'t' 4:'SequenceErase'} " LENGTH),
     "!place -1 of a sequence of 0"},
    {SEQUENCE("1:{2:'t' 4:'SequenceEmpty'} " JOIN), "!an empty sequence"},
    {SEQUENCE("1:{1:'x' 2:'s' 4:'SplitToSequence' " NUMBER(
         "keepdims", "0") "} "
                          "1:{1:'s' 1:'i' 2:'y' 4:'SequenceAt'}"),
     "float32[] 3"},
    {SEQUENCE("1:{1:'x' 1:'two' 2:'t' 4:'SplitToSequence'} " LENGTH), "int64[] 2"},
    {SEQUENCE("1:{1:'x' 1:'k' 2:'t' 4:'SplitToSequence'} " LENGTH), "int64[] 1"},
    {SEQUENCE("1:{1:'x' 1:'m' 2:'t' 4:'SplitToSequence'} " LENGTH), "!parts that do not fit"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'x' 2:'t' 4:'SequenceMap' " BODY(
         "11:{1:'a'} 11:{1:'b'} 1:{1:'a' 1:'b' 2:'c' 4:'Mul'} 12:{1:'c'}") "} " JOIN),
     "float32[4] 4 9 -20 60"},
    {SEQUENCE(BOTH "1:{1:'k' 1:'yes' 1:'s' 2:'t' 4:'Loop' " BODY(
         "11:{1:'n'} 11:{1:'c'} 11:{1:'v'} 1:{1:'v' 1:'x' 2:'w' 4:'SequenceInsert'} 12:{1:'c'} "
         "12:{1:'w'}") "} " LENGTH),
     "int64[] 4"},
    {SEQUENCE(BOTH "1:{1:'k' 1:'yes' 2:'y' 4:'Loop' " BODY(
         "11:{1:'n'} 11:{1:'c'} 1:{1:'s' 2:'w' 4:'Identity'} 12:{1:'c'} 12:{1:'w'}") "}"),
     "!leaves a sequence behind"},
    {SEQUENCE("1:{1:'x' 1:'x' 2:'q' 4:'Mul'} 1:{1:'q' 1:'m' 2:'t' 4:'SequenceInsert'} " LENGTH),
     "!operand 0 is no sequence"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'x' 2:'y' 4:'Add'}"), "!operand 0 is a sequence or optional"},
    {SEQUENCE(BOTH "1:{1:'s' 1:'s' 2:'y' 4:'SequenceConstruct'}"), "!operand 0 is no tensor"},
    {SEQUENCE("1:{1:'x' 2:'y' 4:'SequenceConstruct'}"), "!output 'y' is a sequence or optional"},
    {SEQUENCE("1:{1:'x' 2:'o' 4:'Optional'} 1:{1:'o' 2:'y' 4:'OptionalGetElement'}"),
     "float32[2] -2 3"},
    {SEQUENCE("1:{1:'x' 2:'y' 4:'OptionalHasElement'}"), "bool[] 1"},
    {SEQUENCE("1:{2:'y' 4:'OptionalHasElement'}"), "bool[] 0"},
    {SEQUENCE("1:{2:'o' 4:'Optional'} 1:{1:'o' 2:'y' 4:'OptionalHasElement'}"), "bool[] 0"},
    {SEQUENCE("1:{2:'o' 4:'Optional'} 1:{1:'o' 2:'y' 4:'OptionalGetElement'}"),
     "!the optional holds nothing"},
    {SEQUENCE("1:{2:'o' 4:'Optional'} 1:{1:'o' 2:'y' 4:'SequenceLength'}"), "!is no sequence"},
};

static void check(const char *text, const char *want)
{
    struct tandem_error error = {.text = ""};
    struct tnd_onnx_model *model = NULL;
    struct tnd_net *net = NULL;
    struct tnd_array *x = onnx_case_array("float32[2] -2 3");
    struct tnd_array *y = NULL;
    const char *const names[] = {"x"};
    const struct tnd_array *const arrays[] = {x};
    const struct tnd_onnx_build_options options = {
        .n_arrays = 1, .array_names = names, .arrays = arrays};
    struct tnd_blob blob = {NULL, 0};
    tnd_blob_fields(&blob, text);
    check_status(tnd_onnx_read(blob.bytes, blob.n, "functions", &model, &error), TANDEM_OK, NULL,
                 &error);
    const enum tandem_status status =
        model == NULL ? TANDEM_E_FORMAT : tnd_onnx_build(model, &options, &net, &error);
    if (want[0] == '!') {
        CU_ASSERT_NOT_EQUAL(status, TANDEM_OK);
        check_contains(error.text, want + 1);
    } else {
        check_status(status, TANDEM_OK, NULL, &error);
        if (status == TANDEM_OK && tnd_net_run(net, &x, &y, &error) == TANDEM_OK) {
            check_onnx_array(y, want, "a function");
        }
    }
    tnd_net_free(net);
    tnd_onnx_close(model);
    tnd_blob_free(&blob);
    tnd_array_free(x);
    tnd_array_free(y);
}

static void functions_of_models_stand_for_their_nodes(void)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(rows[i].text, rows[i].want);
    }
}

static void integers_of_few_bits_keep_their_type(void)
{
    for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
        check(narrow[i].text, narrow[i].want);
    }
}

static void sequences_are_known_while_the_net_is_built(void)
{
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
        check(sequences[i].text, sequences[i].want);
    }
}

static CU_TestInfo tests_onnx_functions[] = {
    {"sequences_are_known_while_the_net_is_built", sequences_are_known_while_the_net_is_built},
    {"integers_of_few_bits_keep_their_type", integers_of_few_bits_keep_their_type},
    {"functions_of_models_stand_for_their_nodes", functions_of_models_stand_for_their_nodes},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_functions[] = {
    {"onnx_functions", NULL, NULL, NULL, NULL, tests_onnx_functions},
    CU_SUITE_INFO_NULL,
};
