/* SPDX-License-Identifier: MIT
 * ONNX's constants, re-indexing, joins, gathers, windows, einsum and resizing: cases of each
 * operator, and what must be refused. */
#include "tests/suite_formats_onnx_case.h"

#define X6 "float32[2,3] 1 2 3 4 5 6"

static const struct onnx_case shapes[] = {
    {"Constant", 13, "value_ints=[3,-4]", {NULL}, {"int64[2] 3 -4"}},
    {"Constant", 13, "value_float=0.5", {NULL}, {"float32[] 0.5"}},
    {"Constant", 13, "", {NULL}, {"!neither dense numbers"}},
    {"ConstantOfShape", 13, "", {"int64[2] 1 2"}, {"float32[1,2] 0 0"}},
    {"ConstantOfShape", 13, "", {"int64[1] -1"}, {"!a dimension of -1"}},
    {"Range", 13, "", {"float32[] 1", "float32[] 2", "float32[] 0.5"}, {"float32[2] 1 1.5"}},
    {"Range", 13, "", {"int64[] 5", "int64[] 0", "int64[] -2"}, {"int64[3] 5 3 1"}},
    {"Range", 13, "", {"int64[] 0", "int64[] 9", "int64[] 0"}, {"!a range of"}},
    {"Shape", 15, "start=-1", {X6}, {"int64[1] 3"}},
    {"Shape", 15, "start=1 end=-9", {X6}, {"int64[0]"}},
    {"Size", 13, "", {X6}, {"int64[] 6"}},
    {"Reshape", 14, "", {X6, "int64[2] 0 -1"}, {X6}},
    {"Reshape", 14, "", {X6, "int64[2] -1 -1"}, {"!dimension 1 of the new shape is -1"}},
    {"Reshape", 14, "", {X6, "int64[1] 5"}, {"!cannot be read as"}},
    {"Reshape", 14, "allowzero=1", {"float32[0,3]", "int64[2] 3 0"}, {"float32[3,0]"}},
    {"Flatten", 13, "axis=-1", {"float32[1,2,2] 1 2 3 4"}, {"float32[2,2] 1 2 3 4"}},
    {"Flatten", 13, "axis=4", {X6}, {"!axis 4 of 2"}},
    {"Squeeze", 13, "", {"float32[1,2,1] 1 2", "int64[1] -1"}, {"float32[1,2] 1 2"}},
    {"Squeeze", 13, "", {X6, "int64[1] 0"}, {"!has 2 values, expected 1"}},
    {"Unsqueeze", 11, "axes=[0,-1]", {"float32[2] 1 2"}, {"float32[1,2,1] 1 2"}},
    {"Unsqueeze", 13, "", {"float32[2] 1 2", "int64[2] 0 0"}, {"!axis 0 twice"}},
    {"Transpose", 13, "", {X6}, {"float32[3,2] 1 4 2 5 3 6"}},
    {"Transpose", 13, "perm=[0,0]", {X6}, {"!axis 0 twice"}},
    {"Expand", 13, "", {"int8[2,1] 1 2", "int64[1] 2"}, {"int8[2,2] 1 1 2 2"}},
    {"Expand", 13, "", {"int8[2] 1 2", "int64[1] 3"}, {"!cannot be broadcast"}},
    {"Tile", 13, "", {"int8[1,2] 1 2", "int64[2] 2 2"}, {"int8[2,4] 1 2 1 2 1 2 1 2"}},
    {"Tile", 13, "", {"int8[2] 1 2", "int64[1] 0"}, {"int8[0]"}},
    {"Tile", 13, "", {"int8[2] 1 2", "int64[1] -1"}, {"!repeats of -1"}},
};

static void shapes_have_their_values(void)
{
    check_onnx_cases(shapes);
}

static const struct onnx_case moves[] = {
    {"Concat", 13, "axis=-1", {"int8[1,1] 1", "int8[1,2] 2 3"}, {"int8[1,3] 1 2 3"}},
    {"Concat", 13, "axis=0", {"int8[1] 1", "int16[1] 2"}, {"!one type"}},
    {"Split", 18, "num_outputs=2", {"int8[3] 1 2 3"}, {"int8[2] 1 2", "int8[1] 3"}},
    {"Split", 13, "", {"int8[3] 1 2 3", "int64[2] 1 1"}, {"!its parts", ""}},
    {"Slice",
     13,
     "",
     {"int8[4] 1 2 3 4", "int64[1] -1", "int64[1] -9", "int64[1] 0", "int64[1] -2"},
     {"int8[2] 4 2"}},
    {"Slice", 13, "", {"int8[2] 1 2", "int64[1] 9", "int64[1] 99"}, {"int8[0]"}},
    {"Slice",
     13,
     "",
     {"int8[2] 1 2", "int64[1] 0", "int64[1] 2", "int64[1] 0", "int64[1] 0"},
     {"!a step of 0"}},
    {"Slice", 9, "starts=[1] ends=[2] axes=[1]", {X6}, {"float32[2,1] 2 5"}},
    {"Gather", 13, "axis=1", {X6, "int64[2] 2 -3"}, {"float32[2,2] 3 1 6 4"}},
    {"GatherElements", 13, "axis=1", {X6, "int64[2,1] 2 0"}, {"float32[2,1] 3 4"}},
    {"GatherND", 13, "", {X6, "int64[2,2] 0 2 -1 0"}, {"float32[2] 3 4"}},
    {"GatherND", 13, "batch_dims=1", {X6, "int64[2,1] 2 0"}, {"float32[2] 3 4"}},
    {"GatherND", 13, "", {X6, "int64[1,3] 0 0 0"}, {"!tuples of 3 indices"}},
    {"ScatterElements",
     18,
     "reduction='add'",
     {"int8[3] 1 2 3", "int64[2] 1 1", "int8[2] 5 6"},
     {"int8[3] 1 13 3"}},
    {"ScatterElements",
     18,
     "reduction='avg'",
     {"int8[1] 1", "int64[1] 0", "int8[1] 5"},
     {"!reduction 'avg'"}},
    {"ScatterND", 18, "", {X6, "int64[1,1] 1", "float32[1,3] 7 8 9"}, {"float32[2,3] 1 2 3 7 8 9"}},
    {"Pad", 13, "", {"int8[2] 1 2", "int64[2] 1 1", "int8[] 9"}, {"int8[4] 9 1 2 9"}},
    {"Pad", 13, "mode='reflect'", {"int8[3] 1 2 3", "int64[2] 2 0"}, {"int8[5] 3 2 1 2 3"}},
    {"Pad", 13, "mode='edge'", {"int8[2] 1 2", "int64[2] 1 -1"}, {"int8[2] 1 1"}},
    {"Pad", 13, "mode='fill'", {"int8[2] 1 2", "int64[2] 1 0"}, {"!mode 'fill'"}},
    {"Pad", 13, "", {"int8[2] 1 2", "int64[1] 1"}, {"!pads has 1 values, expected 2"}},
    {"DepthToSpace", 13, "blocksize=2", {"int8[1,4,1,1] 1 2 3 4"}, {"int8[1,1,2,2] 1 2 3 4"}},
    {"SpaceToDepth", 13, "blocksize=2", {"int8[1,1,2,2] 1 2 3 4"}, {"int8[1,4,1,1] 1 2 3 4"}},
    {"SpaceToDepth", 13, "blocksize=2", {"int8[1,1,2,3] 1 2 3 4 5 6"}, {"!no multiples"}},
    {"Trilu", 14, "", {"int8[2,2] 1 2 3 4", "int64[] 1"}, {"int8[2,2] 0 2 0 0"}},
    {"Trilu", 14, "upper=0", {"int8[2,2] 1 2 3 4"}, {"int8[2,2] 1 0 3 4"}},
    {"EyeLike", 9, "k=-1 dtype=1", {"int8[2,2] 0 0 0 0"}, {"float32[2,2] 0 0 1 0"}},
    {"OneHot", 11, "", {"int64[2] 1 -1", "int64[] 3", "int8[2] 5 7"}, {"int8[2,3] 5 7 5 5 5 7"}},
    {"ReverseSequence",
     10,
     "time_axis=1 batch_axis=0",
     {X6, "int64[2] 2 3"},
     {"float32[2,3] 2 1 3 6 5 4"}},
    {"Compress", 11, "axis=1", {X6, "bool[3] 1 0 1"}, {"float32[2,2] 1 3 4 6"}},
    {"NonZero", 13, "", {"int8[2,2] 0 5 6 0"}, {"int64[2,2] 0 1 1 0"}},
    {"CenterCropPad", 18, "axes=[1]", {X6, "int64[1] 1"}, {"float32[2,1] 2 5"}},
};

static void moves_have_their_values(void)
{
    check_onnx_cases(moves);
}

static const struct onnx_case products[] = {
    {"MatMul", 13, "", {X6, "float32[3] 1 0 1"}, {"float32[2] 4 10"}},
    {"MatMul", 13, "", {X6, "float32[2,2] 1 2 3 4"}, {"!no product of 2x3 and 2x2"}},
    {"Gemm",
     13,
     "transB=1 alpha=2.0 beta=0.5",
     {"float32[1,2] 1 2", "float32[2,2] 1 0 0 1", "float32[2] 2 4"},
     {"float32[1,2] 3 6"}},
    {"Gemm", 13, "", {"float32[2] 1 2", "float32[2,1] 1 1"}, {"!dimensions, expected 2"}},
    {"Einsum",
     12,
     "equation='ij,jk->ik'",
     {"float32[1,2] 1 2", "float32[2,1] 3 4"},
     {"float32[1,1] 11"}},
    {"Einsum", 12, "equation='ii->i'", {"float32[2,2] 1 2 3 4"}, {"float32[2] 1 4"}},
    {"Einsum", 12, "equation='ij->'", {X6}, {"float32[] 21"}},
    {"Einsum", 12, "equation='...i,i'", {X6, "float32[3] 1 1 1"}, {"float32[2] 6 15"}},
    {"Einsum", 12, "equation='a,b->ba'", {"float32[2] 1 2", "float32[1] 3"}, {"float32[1,2] 3 6"}},
    {"Einsum",
     12,
     "equation='ij,jk'",
     {"float32[1,2] 1 2", "float32[3,1] 3 4 5"},
     {"!stands for 2 and 3 values"}},
    {"Einsum", 12, "equation='ij'", {"float32[2] 1 2"}, {"!a term of 2 dimensions"}},
    {"Einsum", 12, "equation='i->ij'", {"float32[2] 1 2"}, {"!no operand has"}},
    {"Einsum", 12, "equation='i-i'", {"float32[2] 1 2"}, {"!cannot be read"}},
};

static void products_have_their_values(void)
{
    check_onnx_cases(products);
}

#define ROW "float32[1,1,4] 1 2 3 4"

static const struct onnx_case windows[] = {
    {"Conv",
     11,
     "pads=[1,0]",
     {ROW, "float32[1,1,2] 1 10", "float32[1] 0.5"},
     {"float32[1,1,4] 10.5 21.5 32.5 43.5"}},
    {"Conv",
     11,
     "auto_pad='SAME_UPPER' strides=[3]",
     {ROW, "float32[1,1,2] 1 10"},
     {"float32[1,1,2] 21 4"}},
    {"Conv", 11, "group=2", {"float32[1,2,1] 1 2", "float32[2,1,1] 3 4"}, {"float32[1,2,1] 3 8"}},
    {"Conv", 11, "dilations=[2]", {ROW, "float32[1,1,2] 1 10"}, {"float32[1,1,2] 31 42"}},
    {"Conv", 11, "kernel_shape=[3]", {ROW, "float32[1,1,2] 1 10"}, {"!kernel_shape is not"}},
    {"Conv", 11, "strides=[0]", {ROW, "float32[1,1,2] 1 10"}, {"!strides has a 0"}},
    {"Conv", 11, "", {ROW, "float32[1,1,5] 1 1 1 1 1"}, {"!a window that does not fit"}},
    {"ConvTranspose",
     11,
     "strides=[2]",
     {"float32[1,1,2] 1 2", "float32[1,1,2] 1 10"},
     {"float32[1,1,4] 1 10 2 20"}},
    {"ConvTranspose",
     11,
     "pads=[1,0] output_padding=[1]",
     {"float32[1,1,2] 1 2", "float32[1,1,2] 1 10"},
     {"float32[1,1,3] 12 20 0"}},
    {"MaxPool",
     12,
     "kernel_shape=[2] strides=[2]",
     {ROW},
     {"float32[1,1,2] 2 4", "int64[1,1,2] 1 3"}},
    {"MaxPool", 12, "kernel_shape=[3] strides=[2] ceil_mode=1", {ROW}, {"float32[1,1,2] 3 4"}},
    {"AveragePool", 11, "kernel_shape=[2] pads=[1,0]", {ROW}, {"float32[1,1,4] 1 1.5 2.5 3.5"}},
    {"AveragePool",
     11,
     "kernel_shape=[2] pads=[1,0] count_include_pad=1",
     {ROW},
     {"float32[1,1,4] 0.5 1.5 2.5 3.5"}},
    {"AveragePool", 11, "", {ROW}, {"!kernel_shape is missing"}},
    {"LpPool", 11, "kernel_shape=[4]", {"float32[1,1,4] 1 1 1 1"}, {"float32[1,1,1] 2"}},
    {"GlobalAveragePool", 1, "", {ROW}, {"!of opset 1"}},
    {"GlobalAveragePool", 7, "", {ROW}, {"float32[1,1,1] 2.5"}},
    {"GlobalMaxPool", 7, "", {ROW}, {"float32[1,1,1] 4"}},
    {"GlobalMaxPool", 7, "", {X6}, {"!2 dimensions"}},
    {"Resize", 13, "", {"float32[2] 1 2", "", "float32[1] 2"}, {"float32[4] 1 1 2 2"}},
    {"Resize",
     13,
     "mode='linear'",
     {"float32[2] 1 2", "", "float32[1] 2"},
     {"float32[4] 1 1.25 1.75 2"}},
    {"Resize",
     13,
     "mode='linear' coordinate_transformation_mode='align_corners'",
     {"float32[2] 1 3", "", "", "int64[1] 3"},
     {"float32[3] 1 2 3"}},
    {"Resize",
     13,
     "mode='cubic' exclude_outside=1",
     {"float32[2] 3 3", "", "float32[1] 3"},
     {"float32[6] 3 3 3 3 3 3"}},
    {"Resize",
     18,
     "axes=[1] keep_aspect_ratio_policy='not_larger'",
     {"float32[1,2] 1 2", "", "", "int64[1] 4"},
     {"float32[1,4] 1 1 2 2"}},
    {"Resize",
     13,
     "coordinate_transformation_mode='tf_crop_and_resize'",
     {"float32[2] 1 2", "", "float32[1] 2"},
     {"!roi has -1 values, expected 2"}},
    {"Resize", 13, "mode='linear'", {"int8[2] 1 2", "", "float32[1] 2"}, {"!values of int8"}},
    {"Resize", 13, "", {"float32[2] 1 2", "", "float32[1] -1"}, {"!a scale or size of -1"}},
    {"Resize", 13, "", {X6, "", "float32[1] 2"}, {"!1 scales or sizes for 2 axes"}},
    {"Resize", 10, "", {"float32[2] 1 2", "float32[1] 1.5"}, {"float32[3] 1 1 2"}},
    {"Upsample", 9, "mode='linear'", {"float32[2] 1 2", "float32[1] 2"}, {"float32[4] 1 1.5 2 2"}},
    {"Upsample", 7, "scales=[2.0]", {"float32[2] 1 2"}, {"float32[4] 1 1 2 2"}},
};

static void windows_have_their_values(void)
{
    check_onnx_cases(windows);
}

static CU_TestInfo tests_shape[] = {
    {"shapes_have_their_values", shapes_have_their_values},
    {"moves_have_their_values", moves_have_their_values},
    {"products_have_their_values", products_have_their_values},
    {"windows_have_their_values", windows_have_their_values},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_shape[] = {
    {"onnx shape", NULL, NULL, NULL, NULL, tests_shape},
    CU_SUITE_INFO_NULL,
};
