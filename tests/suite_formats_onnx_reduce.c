/* SPDX-License-Identifier: MIT
 * ONNX's reductions, norms, losses and quantised operators: one case each, and what must be
 * refused. */
#include "tests/suite_formats_onnx_case.h"

static const struct onnx_case reductions[] = {
    {"ReduceSum", 11, "axes=[1] keepdims=0", {"float32[2,3] 1 2 3 4 5 6"}, {"float32[2] 6 15"}},
    {"ReduceSum", 13, "", {"float32[2,3] 1 2 3 4 5 6", "int64[1] -2"}, {"float32[1,3] 5 7 9"}},
    {"ReduceSum", 13, "", {"float32[2,3] 1 2 3 4 5 6"}, {"float32[1,1] 21"}},
    {"ReduceSum", 13, "noop_with_empty_axes=1", {"float32[2] 1 2"}, {"float32[2] 1 2"}},
    {"ReduceSum", 13, "", {"float32[2,0,2]", "int64[1] 1"}, {"float32[2,1,2] 0 0 0 0"}},
    {"ReduceSum", 13, "axes=[1]", {"float32[2,1] 1 2"}, {"!attribute axes"}},
    {"ReduceSum", 13, "", {"float32[2,1] 1 2", "int64[1] 2"}, {"!axis 2 of 2"}},
    {"ReduceSum", 13, "", {"int8[3] 100 100 100"}, {"int8[1] 44"}},
    {"ReduceMean", 18, "keepdims=0", {"float16[2,2] 1 2 3 6", "int64[1] 0"}, {"float16[2] 2 4"}},
    {"ReduceMean", 13, "axes=[0]", {"int32[2] 3 4"}, {"int32[1] 3"}},
    {"ReduceMax", 18, "", {"int8[0]"}, {"int8[1] -128"}},
    {"ReduceMax", 18, "", {"float32[0]"}, {"float32[1] -inf"}},
    {"ReduceMax", 20, "", {"bool[3] 0 1 0"}, {"bool[1] 1"}},
    {"ReduceMax", 13, "", {"float32[3] 1 nan 2"}, {"float32[1] nan"}},
    {"ReduceMin", 18, "", {"int64[0]"}, {"int64[1] 9223372036854775807"}},
    {"ReduceMin", 18, "", {"uint8[0]"}, {"uint8[1] 255"}},
    {"ReduceProd", 18, "", {"float32[0]"}, {"float32[1] 1"}},
    {"ReduceL1", 18, "", {"float32[2] -3 4"}, {"float32[1] 7"}},
    {"ReduceL2", 18, "", {"float32[2] -3 4"}, {"float32[1] 5"}},
    {"ReduceL2", 18, "", {"int32[2] 3 4"}, {"int32[1] 5"}},
    {"ReduceLogSum", 18, "", {"float32[0]"}, {"float32[1] -inf"}},
    {"ReduceLogSumExp", 18, "", {"float32[2] 1000 1000"}, {"float32[1] 1000.6931"}},
    {"ReduceLogSumExp", 18, "", {"float32[2] -inf -inf"}, {"float32[1] -inf"}},
    {"ReduceLogSumExp", 18, "", {"float32[0]"}, {"float32[1] -inf"}},
    {"ReduceSumSquare", 18, "keepdims=0", {"float32[2,2] 1 2 3 4"}, {"float32[] 30"}},
    {"ReduceSum", 13, "", {"float32[] 3"}, {"float32[] 3"}},
    {"ArgMax", 13, "axis=1", {"float32[2,3] 1 3 3 5 4 5"}, {"int64[2,1] 1 0"}},
    {"ArgMax",
     13,
     "axis=-1 keepdims=0 select_last_index=1",
     {"float32[2,3] 1 3 3 5 4 5"},
     {"int64[2] 2 2"}},
    {"ArgMin", 13, "", {"int32[2,2] 1 5 1 2"}, {"int64[1,2] 0 1"}},
    {"ArgMin", 13, "", {"int32[0,2]"}, {"!no values"}},
    {"ArgMax", 13, "", {"float32[] 1"}, {"!axis 0 of 0"}},
    {"CumSum", 14, "", {"float32[4] 1 2 3 4", "int32[] 0"}, {"float32[4] 1 3 6 10"}},
    {"CumSum", 14, "exclusive=1", {"float32[3] 1 2 3", "int32[] 0"}, {"float32[3] 0 1 3"}},
    {"CumSum", 14, "reverse=1", {"int32[2,2] 1 2 3 4", "int32[] -1"}, {"int32[2,2] 3 2 7 4"}},
};

static void reductions_have_their_values(void)
{
    check_onnx_cases(reductions);
}

static const struct onnx_case sorted[] = {
    {"Softmax",
     13,
     "",
     {"float32[2,2] 0 0 1000 1001"},
     {"float32[2,2] 0.5 0.5 0.26894142 0.73105858"}},
    {"Softmax", 11, "", {"float32[1,2,2] 0 0 0 0"}, {"float32[1,2,2] 0.25 0.25 0.25 0.25"}},
    {"Softmax", 11, "axis=2", {"float32[1,2,2] 0 0 0 0"}, {"float32[1,2,2] 0.5 0.5 0.5 0.5"}},
    {"Softmax", 13, "axis=3", {"float32[1,2,2] 0 0 0 0"}, {"!axis 3"}},
    {"LogSoftmax", 13, "axis=0", {"float32[2] 0 0"}, {"float32[2] -0.69314718 -0.69314718"}},
    {"Hardmax", 13, "", {"float32[2,3] 1 3 3 5 4 5"}, {"float32[2,3] 0 1 0 1 0 0"}},
    {"Hardmax", 13, "", {"float32[0,3]"}, {"float32[0,3]"}},
    {"Softmax", 13, "", {"float32[2,0]"}, {"float32[2,0]"}},
    {"TopK", 11, "", {"float32[4] 1 4 2 4", "int64[1] 2"}, {"float32[2] 4 4", "int64[2] 1 3"}},
    {"TopK",
     11,
     "largest=0 axis=0",
     {"int32[2,2] 4 1 3 2", "int64[1] 1"},
     {"int32[1,2] 3 1", "int64[1,2] 1 0"}},
    {"TopK", 11, "", {"float32[2] 1 2", "int64[1] 3"}, {"!K is 3", ""}},
    {"TopK", 9, "k=1", {"float32[2] 1 2"}, {"float32[1] 2", "int64[1] 1"}},
};

static void softmax_and_sorting_have_their_values(void)
{
    check_onnx_cases(sorted);
}

static const struct onnx_case norms[] = {
    {"LayerNormalization",
     17,
     "epsilon=0.0",
     {"float32[2,2] 1 3 2 6", "float32[2] 1 2", "float32[2] 0 1"},
     {"float32[2,2] -1 3 -1 3", "float32[2,1] 2 4", "float32[2,1] 1 0.5"}},
    {"LayerNormalization",
     17,
     "stash_type=16",
     {"float32[2] 1 2", "float32[2] 1 1"},
     {"!stash_type"}},
    {"RMSNormalization",
     23,
     "epsilon=0.0",
     {"float32[1,2] 3 3", "float32[2] 1 2"},
     {"float32[1,2] 1 2"}},
    {"InstanceNormalization",
     7,
     "epsilon=0.0",
     {"float32[1,2,2] 1 3 2 6", "float32[2] 1 2", "float32[2] 0 1"},
     {"float32[1,2,2] -1 1 -1 3"}},
    {"GroupNormalization",
     21,
     "num_groups=1 epsilon=0.0",
     {"float32[1,2,1] 1 3", "float32[2] 1 2", "float32[2] 0 1"},
     {"float32[1,2,1] -1 3"}},
    {"GroupNormalization",
     18,
     "num_groups=1 epsilon=0.0",
     {"float32[1,2,1] 1 3", "float32[1] 2", "float32[1] 1"},
     {"float32[1,2,1] -1 3"}},
    {"GroupNormalization",
     21,
     "num_groups=3",
     {"float32[1,2,1] 1 3", "float32[2] 1 2", "float32[2] 0 1"},
     {"!3 groups"}},
    {"BatchNormalization",
     15,
     "epsilon=0.0",
     {"float32[1,2,1] 1 3", "float32[2] 1 2", "float32[2] 0 1", "float32[2] 0 1", "float32[2] 4 4"},
     {"float32[1,2,1] 0.5 3"}},
    {"BatchNormalization",
     15,
     "epsilon=0.0 training_mode=1 momentum=0.5",
     {"float32[2,1] 1 3", "float32[1] 1", "float32[1] 0", "float32[1] 0", "float32[1] 3"},
     {"float32[2,1] -1 1", "float32[1] 1", "float32[1] 2"}},
    {"BatchNormalization",
     6,
     "is_test=0",
     {"float32[1,1] 1", "float32[1] 1", "float32[1] 1", "float32[1] 1", "float32[1] 1"},
     {"!it trains"}},
    {"BatchNormalization",
     7,
     "spatial=0",
     {"float32[1,1] 1", "float32[1] 1", "float32[1] 1", "float32[1] 1", "float32[1] 1"},
     {"!spatial"}},
    {"MeanVarianceNormalization", 13, "axes=[0]", {"float32[2] 1 3"}, {"float32[2] -1 1"}},
    {"LpNormalization", 7, "", {"float32[2] 3 4"}, {"float32[2] 0.6 0.8"}},
    {"LpNormalization", 7, "p=1", {"float32[2] 3 -1"}, {"float32[2] 0.75 -0.25"}},
    {"LpNormalization", 7, "", {"float32[2] 0 0"}, {"float32[2] 0 0"}},
    {"LpNormalization", 7, "p=3", {"float32[2] 3 -1"}, {"!p is 3"}},
    {"LRN",
     13,
     "size=3 alpha=3.0 beta=1.0 bias=0.0",
     {"float32[1,3,1] 1 2 3"},
     {"float32[1,3,1] 0.2 0.14285714 0.23076923"}},
    {"LRN", 13, "size=0", {"float32[1,3,1] 1 2 3"}, {"!size of 0"}},
    {"Dropout", 13, "", {"float32[2] 1 2", "float32[] 0.5"}, {"float32[2] 1 2", "bool[2] 1 1"}},
    {"Dropout", 6, "is_test=1 ratio=0.5", {"float32[2] 1 2"}, {"float32[2] 1 2"}},
    {"Dropout", 6, "ratio=0.5", {"float32[2] 1 2"}, {"!random"}},
    {"Dropout", 13, "", {"float32[2] 1 2", "float32[] 0.5", "bool[] 1"}, {"!random"}},
    {"Dropout", 13, "", {"float32[2] 1 2", "float32[] 0", "bool[] 1"}, {"float32[2] 1 2"}},
};

static void normalisations_have_their_values(void)
{
    check_onnx_cases(norms);
}

static const struct onnx_case losses[] = {
    {"NegativeLogLikelihoodLoss",
     13,
     "",
     {"float32[2,2] 1 2 3 4", "int64[2] 0 1"},
     {"float32[] -2.5"}},
    {"NegativeLogLikelihoodLoss",
     13,
     "reduction='none' ignore_index=1",
     {"float32[2,2] 1 2 3 4", "int64[2] 0 1"},
     {"float32[2] -1 0"}},
    {"NegativeLogLikelihoodLoss",
     13,
     "ignore_index=-1",
     {"float32[2,2] 1 2 3 4", "int64[2] 0 -1", "float32[2] 3 1"},
     {"float32[] -1"}},
    {"NegativeLogLikelihoodLoss",
     13,
     "reduction='sum'",
     {"float32[1,2,2] 1 2 3 4", "int64[1,2] 0 1", "float32[2] 2 1"},
     {"float32[] -6"}},
    {"NegativeLogLikelihoodLoss",
     13,
     "reduction='max'",
     {"float32[1,2] 1 2", "int64[1] 0"},
     {"!reduction 'max'"}},
    {"NegativeLogLikelihoodLoss", 13, "", {"float32[2] 1 2", "int64[2] 0 0"}, {"!dimensions"}},
    {"SoftmaxCrossEntropyLoss",
     13,
     "",
     {"float32[1,2] 0 0", "int64[1] 1"},
     {"float32[] 0.69314718", "float32[1,2] -0.69314718 -0.69314718"}},
};

static void losses_have_their_values(void)
{
    check_onnx_cases(losses);
}

static const struct onnx_case quantised[] = {
    {"QuantizeLinear",
     13,
     "",
     {"float32[5] 0.5 1.5 3 1000 -1000", "float32[] 1", "uint8[] 10"},
     {"uint8[5] 10 12 13 255 0"}},
    {"QuantizeLinear", 13, "", {"float32[2] 1 2", "float32[] 1"}, {"uint8[2] 1 2"}},
    {"QuantizeLinear",
     13,
     "axis=0",
     {"float32[2,1] 1 2", "float32[2] 1 2", "int8[2] 0 -1"},
     {"int8[2,1] 1 0"}},
    {"QuantizeLinear",
     21,
     "axis=1 block_size=2 output_dtype=5",
     {"float32[1,3] 4 8 9", "float32[1,2] 2 3"},
     {"int16[1,3] 2 4 3"}},
    {"QuantizeLinear",
     21,
     "axis=1 block_size=3",
     {"float32[1,3] 4 8 9", "float32[1,2] 2 3"},
     {"!blocks of 3"}},
    {"QuantizeLinear", 13, "", {"float32[2,1] 1 2", "float32[3] 1 2 3"}, {"!cannot be read"}},
    {"DequantizeLinear",
     13,
     "",
     {"uint8[2] 10 255", "float32[] 0.5", "uint8[] 10"},
     {"float32[2] 0 122.5"}},
    {"DequantizeLinear", 13, "axis=0", {"int32[2] 10 20", "float32[2] 1 2"}, {"float32[2] 10 40"}},
    {"DynamicQuantizeLinear",
     11,
     "",
     {"float32[3] 0 1 2.55"},
     {"uint8[3] 0 100 255", "float32[] 0.01", "uint8[] 0"}},
    {"MatMulInteger",
     10,
     "",
     {"uint8[1,2] 12 13", "uint8[2,1] 3 4", "uint8[] 10", "uint8[] 1"},
     {"int32[1,1] 13"}},
    {"MatMulInteger",
     10,
     "",
     {"uint8[2,1] 3 4", "uint8[1,1] 1", "uint8[2] 1 2"},
     {"int32[2,1] 2 2"}},
    {"QLinearMatMul",
     10,
     "",
     {"uint8[1,1] 12", "float32[] 0.5", "uint8[] 10", "uint8[1,1] 4", "float32[] 0.5", "uint8[] 0",
      "float32[] 1", "uint8[] 100"},
     {"uint8[1,1] 102"}},
    {"QLinearMatMul",
     10,
     "",
     {"int8[1,1] 12", "float32[] 0.5", "int8[] 10", "int8[1,1] 4", "float32[] 0.5", "int8[] 0",
      "float32[] 1", "int8[] 100"},
     {"int8[1,1] 102"}},
};

static void quantised_operators_have_their_values(void)
{
    check_onnx_cases(quantised);
}

/* ---- branches and loops ---- */

static struct tnd_onnx_node node_of(const char *op, const char *const *in, int n_in,
                                    const char *const *out, int n_out)
{
    return (struct tnd_onnx_node){.name = "",
                                  .op = op,
                                  .domain = "",
                                  .n_inputs = n_in,
                                  .n_outputs = n_out,
                                  .inputs = in,
                                  .outputs = out};
}

/* A net of one node of a graph's, whose inputs are given. */
static void check_flow(const struct tnd_onnx_node *node, const char *const *names,
                       const char *const *texts, int n, const char *want)
{
    struct tnd_onnx_value inputs[4] = {{0}};
    struct tnd_array *arrays[4] = {NULL};
    struct tnd_array *outs[4] = {NULL};
    struct tnd_onnx_value outputs[4] = {{0}};
    struct tandem_error error = {0};
    struct tnd_net *net = NULL;
    for (int i = 0; i < n; i++) {
        arrays[i] = onnx_case_array(texts[i]);
        inputs[i] =
            (struct tnd_onnx_value){.name = names[i], .kind = TND_ONNX_TENSOR, .n_dims = -1};
        inputs[i].type = arrays[i]->type == TANDEM_DTYPE_I64    ? TND_ONNX_I64
                         : arrays[i]->type == TANDEM_DTYPE_BOOL ? TND_ONNX_BOOL
                                                                : TND_ONNX_F32;
    }
    for (int i = 0; i < node->n_outputs; i++) {
        outputs[i].name = node->outputs[i];
    }
    const struct tnd_onnx_graph graph = {.name = "flow",
                                         .n_nodes = 1,
                                         .n_inputs = n,
                                         .n_outputs = node->n_outputs,
                                         .nodes = node,
                                         .inputs = inputs,
                                         .outputs = outputs};
    const struct tnd_onnx_model model = {.opset = 16, .graph = &graph};
    const struct tnd_onnx_build_options options = {
        .n_arrays = n, .array_names = names, .arrays = (const struct tnd_array *const *)arrays};
    const enum tandem_status status = tnd_onnx_build(&model, &options, &net, &error);
    if (want[0] == '!') {
        CU_ASSERT_NOT_EQUAL(status, TANDEM_OK);
        check_contains(error.text, want + 1);
    } else if (tnd_check_status(status, TANDEM_OK, NULL, &error, node->op, __FILE__, __LINE__)) {
        check_ok(tnd_net_run(net, arrays, outs, &error));
        check_onnx_array(outs[net->n_outputs - 1], want, node->op);
    }
    tnd_net_free(net);
    for (int i = 0; i < 4; i++) {
        tnd_array_free(arrays[i]);
        tnd_array_free(outs[i]);
    }
}

static void a_branch_is_taken_where_its_condition_is_known(void)
{
    static const char *const x[] = {"x"};
    static const char *const y[] = {"y"};
    static const char *const c[] = {"c"};
    static const char *const names[] = {"c", "x"};
    static const char *const yes[] = {"bool[] 1", "float32[2] 1 -2"};
    static const char *const no[] = {"bool[] 0", "float32[2] 1 -2"};
    const struct tnd_onnx_node nodes[] = {node_of("Neg", x, 1, y, 1), node_of("Abs", x, 1, y, 1)};
    const struct tnd_onnx_value out = {.name = "y"};
    struct tnd_onnx_graph then = {.n_nodes = 1, .n_outputs = 1, .nodes = nodes, .outputs = &out};
    struct tnd_onnx_graph other = then;
    other.nodes = &nodes[1];
    const struct tnd_onnx_attribute branches[] = {
        {.name = "then_branch", .type = TND_ONNX_ATTRIBUTE_GRAPH, .reference = "", .graph = &then},
        {.name = "else_branch", .type = TND_ONNX_ATTRIBUTE_GRAPH, .reference = "", .graph = &other},
    };
    struct tnd_onnx_node node = node_of("If", c, 1, y, 1);
    node.attributes = branches;
    node.n_attributes = 2;
    check_flow(&node, names, yes, 2, "float32[2] -1 2");
    check_flow(&node, names, no, 2, "float32[2] 1 2");
    then.n_outputs = 0;
    check_flow(&node, names, yes, 2, "!0 outputs");
    node.n_attributes = 1;
    check_flow(&node, names, no, 2, "!branch is missing");
}

/* The body doubles what it carries, and leaves it behind. */
static const char *const v_v[] = {"v", "v"};
static const char *const w[] = {"w"};
static const char *const final[] = {"final", "all"};
static const struct tnd_onnx_value body_inputs[] = {{.name = "i"}, {.name = "go"}, {.name = "v"}};
static const struct tnd_onnx_value body_outputs[] = {{.name = "go"}, {.name = "w"}, {.name = "w"}};

static void check_loop(const char *const *in, int n_in, const char *const *texts, const char *want)
{
    static const char *const names[] = {"n", "c", "v0"};
    const struct tnd_onnx_node add = node_of("Add", v_v, 2, w, 1);
    const struct tnd_onnx_graph body = {.n_nodes = 1,
                                        .n_inputs = 3,
                                        .n_outputs = 3,
                                        .nodes = &add,
                                        .inputs = body_inputs,
                                        .outputs = body_outputs};
    const struct tnd_onnx_attribute attributes[] = {
        {.name = "body", .type = TND_ONNX_ATTRIBUTE_GRAPH, .reference = "", .graph = &body},
    };
    struct tnd_onnx_node node = node_of("Loop", in, n_in, final, 2);
    node.attributes = attributes;
    node.n_attributes = 1;
    check_flow(&node, names, texts, 3, want);
}

static void a_loop_is_unrolled_where_its_count_is_known(void)
{
    static const char *const in[] = {"n", "c", "v0"};
    static const char *const endless[] = {"", "c", "v0"};
    static const char *const unconditional[] = {"n", "", "v0"};
    static const char *const three[] = {"int64[] 3", "bool[] 1", "float32[1] 1"};
    static const char *const none[] = {"int64[] 3", "bool[] 0", "float32[1] 1"};
    static const char *const many[] = {"int64[] 1000000000000", "bool[] 1", "float32[1] 1"};
    check_loop(in, 3, three, "float32[3,1] 2 4 8");
    static const char *const never[] = {"int64[] 1000000000000", "bool[] 0", "float32[1] 1"};
    check_loop(in, 3, none, "float32[0,1]");
    check_loop(in, 3, never, "float32[0,1]"); /* as a loop that its condition ends is exported */
    check_loop(in, 3, many, "!more than 4096 rounds");
    check_loop(unconditional, 3, many, "!expected at most");
    check_loop(endless, 3, three, "!more than 4096 rounds");
    check_loop(in, 2, three, "!inputs");
}

static void a_scan_walks_along_its_operands(void)
{
    static const char *const names[] = {"v0", "xs"};
    static const char *const texts[] = {"float32[] 10", "float32[3] 1 2 3"};
    static const char *const in[] = {"v", "x"};
    static const struct tnd_onnx_value inputs[] = {{.name = "v"}, {.name = "x"}};
    static const int64_t backwards[] = {1};
    const struct tnd_onnx_node add = node_of("Add", in, 2, w, 1);
    const struct tnd_onnx_graph body = {.n_nodes = 1,
                                        .n_inputs = 2,
                                        .n_outputs = 2,
                                        .nodes = &add,
                                        .inputs = inputs,
                                        .outputs = body_outputs + 1};
    struct tnd_onnx_attribute attributes[] = {
        {.name = "body", .type = TND_ONNX_ATTRIBUTE_GRAPH, .reference = "", .graph = &body},
        {.name = "num_scan_inputs", .type = TND_ONNX_ATTRIBUTE_I64, .reference = "", .i = 1},
        {.name = "scan_input_directions",
         .type = TND_ONNX_ATTRIBUTE_I64S,
         .reference = "",
         .n = 1,
         .ints = backwards},
    };
    struct tnd_onnx_node node = node_of("Scan", names, 2, final, 2);
    node.attributes = attributes;
    node.n_attributes = 2;
    check_flow(&node, names, texts, 2, "float32[3] 11 13 16");
    node.n_attributes = 3;
    check_flow(&node, names, texts, 2, "float32[3] 13 15 16");
    attributes[1].i = 3;
    check_flow(&node, names, texts, 2, "!3 operands");
    attributes[1].i = 2;
    check_flow(&node, names, texts, 2, "!axis 0 of 0");
}

static CU_TestInfo tests_onnx_reduce[] = {
    {"reductions_have_their_values", reductions_have_their_values},
    {"softmax_and_sorting_have_their_values", softmax_and_sorting_have_their_values},
    {"normalisations_have_their_values", normalisations_have_their_values},
    {"losses_have_their_values", losses_have_their_values},
    {"quantised_operators_have_their_values", quantised_operators_have_their_values},
    {"a_branch_is_taken_where_its_condition_is_known",
     a_branch_is_taken_where_its_condition_is_known},
    {"a_loop_is_unrolled_where_its_count_is_known", a_loop_is_unrolled_where_its_count_is_known},
    {"a_scan_walks_along_its_operands", a_scan_walks_along_its_operands},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_reduce[] = {
    {"onnx_reduce", NULL, NULL, NULL, NULL, tests_onnx_reduce},
    CU_SUITE_INFO_NULL,
};
