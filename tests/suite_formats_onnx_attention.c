/* SPDX-License-Identifier: MIT
 * ONNX's attention, transforms of signals and quantised convolution, and what must be refused. */
#include "tests/suite_formats_onnx_case.h"

static const struct onnx_case attention[] = {
    {"Attention",
     23,
     "",
     {"float32[1,1,1,1] 0", "float32[1,1,2,1] 1 2", "float32[1,1,2,1] 10 20"},
     {"float32[1,1,1,1] 15"}},
    {"Attention",
     23,
     "is_causal=1",
     {"float16[1,1,2,1] 0 0", "float16[1,1,2,1] 1 2", "float16[1,1,2,1] 10 20"},
     {"float16[1,1,2,1] 10 15"}},
    {"Attention",
     23,
     "",
     {"float32[1,1,1,1] 0", "float32[1,1,2,1] 1 2", "float32[1,1,2,1] 10 20", "bool[1,2] 0 1"},
     {"float32[1,1,1,1] 20"}},
    {"Attention",
     23,
     "qk_matmul_output_mode=1",
     {"float32[1,1,1,1] 0", "float32[1,1,1,1] 1", "float32[1,1,1,1] 10", "float32[1,2] 0 0",
      "float32[1,1,1,1] 5", "float32[1,1,1,1] 40"},
     {"float32[1,1,1,1] 25", "float32[1,1,2,1] 5 1", "float32[1,1,2,1] 40 10",
      "float32[1,1,1,2] 0 0"}},
    {"Attention",
     23,
     "scale=1.0 softcap=2.0 qk_matmul_output_mode=2",
     {"float32[1,1,1,1] 2", "float32[1,1,1,1] 1", "float32[1,1,1,1] 10"},
     {"float32[1,1,1,1] 10", "", "", "float32[1,1,1,1] 1.5231883"}},
    {"Attention",
     23,
     "is_causal=1",
     {"float32[1,1,1,1] 0", "float32[1,1,1,1] 1", "float32[1,1,1,1] 1", "bool[1] 1"},
     {"!beside a mask"}},
    {"Attention",
     23,
     "q_num_heads=1 kv_num_heads=1",
     {"float32[1,1,1] 0", "float32[1,1,1] 1", "float32[1,1,1] 1"},
     {"float32[1,1,1] 1"}},
    {"Attention",
     23,
     "q_num_heads=2 kv_num_heads=1",
     {"float32[1,1,2] 0 1", "float32[1,2,1] 0 100", "float32[1,2,1] 3 5"},
     {"float32[1,1,2] 4 5"}},
    {"Attention",
     23,
     "q_num_heads=2 kv_num_heads=2",
     {"float32[1,2,2] 0 0 0 0", "float32[1,1,2] 1 1", "float32[1,1,2] 1 1"},
     {"!2 heads in 3 dimensions: onnx has not settled"}},
    {"Attention",
     23,
     "",
     {"float32[1,2,1,1] 0 0", "float32[1,1,1,1] 1", "float32[1,1,1,1] 7"},
     {"float32[1,2,1,1] 7 7"}},
    {"Attention",
     23,
     "",
     {"float32[1,4,1,1] 0 0 0 0", "float32[1,2,1,1] 1 1", "float32[1,2,1,1] 1 1"},
     {"!4 heads of queries, 2 of keys"}},
    {"Attention", 23, "", {"float32[1,1,1,1] 0"}, {"!dimensions"}},
    {"RotaryEmbedding",
     23,
     "",
     {"float32[1,1,1,4] 1 2 3 4", "float32[1,1,2] 0 1", "float32[1,1,2] 1 0"},
     {"float32[1,1,1,4] -3 2 1 4"}},
    {"RotaryEmbedding",
     23,
     "interleaved=1",
     {"float32[1,1,1,4] 1 2 3 4", "float32[1,1,2] 0 1", "float32[1,1,2] 1 0"},
     {"float32[1,1,1,4] -2 1 3 4"}},
    {"RotaryEmbedding",
     23,
     "num_heads=2 rotary_embedding_dim=2",
     {"float32[1,1,6] 1 2 3 4 5 6", "float32[2,1] 9 0", "float32[2,1] 9 1", "int64[1,1] 1"},
     {"float32[1,1,6] -2 1 3 -5 4 6"}},
    {"RotaryEmbedding",
     23,
     "rotary_embedding_dim=3",
     {"float32[1,1,1,4] 1 2 3 4", "float32[1,1,2] 0 1", "float32[1,1,2] 1 0"},
     {"!3 values"}},
    {"RotaryEmbedding",
     23,
     "",
     {"float32[1,1,1,4] 1 2 3 4", "float32[1,1,1] 0", "float32[1,1,1] 1"},
     {"!angles"}},
};

static void attention_and_rotation_have_their_values(void)
{
    check_onnx_cases(attention);
}

static const struct onnx_case signals[] = {
    {"HannWindow", 17, "", {"int64[] 4"}, {"float32[4] 0 0.5 1 0.5"}},
    {"HannWindow", 17, "periodic=0 output_datatype=11", {"int32[] 3"}, {"float64[3] 0 1 0"}},
    {"HannWindow", 17, "periodic=0", {"int64[] 1"}, {"float32[1] 0"}},
    {"HammingWindow", 17, "", {"int64[] 2"}, {"float32[2] 0.086956522 1"}},
    {"BlackmanWindow", 17, "", {"int64[] 2"}, {"float32[2] 0 1"}},
    {"BlackmanWindow", 17, "", {"int64[] -1"}, {"!-1 values"}},
    {"BlackmanWindow", 17, "", {"int64[] 1000000000000"}, {"!1000000000000 values"}},
    {"DFT", 17, "axis=1", {"float32[1,4,1] 1 0 0 0"}, {"float32[1,4,2] 1 0 1 0 1 0 1 0"}},
    {"DFT", 20, "onesided=1", {"float32[1,4,1] 0 1 0 0"}, {"float32[1,3,2] 1 0 0 -1 -1 0"}},
    {"DFT", 20, "inverse=1", {"float32[1,2,2] 2 0 0 2"}, {"float32[1,2,2] 1 1 1 -1"}},
    {"DFT", 20, "", {"float32[2,1,1] 3 5", "int64[] 2", "int64[] 0"}, {"float32[2,1,2] 8 0 -2 0"}},
    {"DFT", 20, "", {"float32[1,1,1] 3", "int64[] 2"}, {"float32[1,2,2] 3 0 3 0"}},
    {"DFT", 20, "", {"float32[1,2,1] 3 5", "", "int64[] 2"}, {"!along axis 2"}},
    {"DFT", 20, "", {"float32[1,2,1] 3 5", "int64[] 1000000"}, {"!1000000 values"}},
    {"DFT", 20, "", {"float32[1,2,3] 1 2 3 4 5 6"}, {"!2 values"}},
};

static void windows_and_transforms_have_their_values(void)
{
    check_onnx_cases(signals);
}

static const struct onnx_case convolutions[] = {
    {"ConvInteger",
     10,
     "pads=[0,0,0,1]",
     {"uint8[1,1,2,2] 2 3 4 5", "uint8[1,1,1,1] 3", "uint8[] 1", "uint8[] 1"},
     {"int32[1,1,2,3] 2 4 0 6 8 0"}},
    {"ConvInteger", 10, "", {"uint8[2] 2 3", "uint8[1] 3"}, {"!weights of 1"}},
    {"QLinearConv",
     10,
     "",
     {"uint8[1,1,1,2] 12 14", "float32[] 0.5", "uint8[] 10", "uint8[2,1,1,1] 2 4",
      "float32[2] 0.5 1", "uint8[2] 0 0", "float32[] 1", "uint8[] 1", "int32[2] 0 2"},
     {"uint8[1,2,1,2] 2 3 6 10"}},
    {"QLinearConv",
     10,
     "",
     {"uint8[1,1,1,1] 255", "float32[] 1", "uint8[] 0", "uint8[1,1,1,1] 255", "float32[] 1",
      "uint8[] 0", "float32[] 1", "int8[] 0"},
     {"int8[1,1,1,1] 127"}},
};

static void quantised_convolutions_have_their_values(void)
{
    check_onnx_cases(convolutions);
}

static CU_TestInfo tests_onnx_attention[] = {
    {"attention_and_rotation_have_their_values", attention_and_rotation_have_their_values},
    {"windows_and_transforms_have_their_values", windows_and_transforms_have_their_values},
    {"quantised_convolutions_have_their_values", quantised_convolutions_have_their_values},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_attention[] = {
    {"onnx_attention", NULL, NULL, NULL, NULL, tests_onnx_attention},
    CU_SUITE_INFO_NULL,
};
