/* SPDX-License-Identifier: MIT
 * ONNX's operators that work element by element: one case each, and what must be refused. */
#include "tests/suite_formats_onnx_case.h"

static const struct onnx_case unary[] = {
    {"Identity", 14, "", {"int64[2] 3 4"}, {"int64[2] 3 4"}},
    {"Abs", 13, "", {"int8[3] -128 -1 5"}, {"int8[3] -128 1 5"}},
    {"Abs", 13, "", {"uint64[1] 18446744073709551615"}, {"uint64[1] 18446744073709551615"}},
    {"Acos", 7, "", {"float32[2] 1 -1"}, {"float32[2] 0 3.14159265"}},
    {"Acosh", 9, "", {"float32[2] 1 2"}, {"float32[2] 0 1.3169579"}},
    {"Asin", 7, "", {"float64[1] 0.5"}, {"float64[1] 0.5235987756"}},
    {"Asinh", 9, "", {"float32[1] -1"}, {"float32[1] -0.88137359"}},
    {"Atan", 7, "", {"float32[2] inf 1"}, {"float32[2] 1.5707963 0.78539816"}},
    {"Atanh", 9, "", {"float32[2] 0.5 1"}, {"float32[2] 0.54930614 inf"}},
    {"Ceil", 13, "", {"float32[3] -1.5 1.2 nan"}, {"float32[3] -1 2 nan"}},
    {"Cos", 7, "", {"float32[] 1"}, {"float32[] 0.54030231"}},
    {"Cosh", 9, "", {"float32[1] 1"}, {"float32[1] 1.5430806"}},
    {"Erf", 13, "", {"float32[3] 0 0.5 -inf"}, {"float32[3] 0 0.52049988 -1"}},
    {"Exp", 13, "", {"float16[2] 0 1"}, {"float16[2] 1 2.718"}},
    {"Floor", 13, "", {"bfloat16[2] -1.5 1.5"}, {"bfloat16[2] -2 1"}},
    {"IsNaN", 20, "", {"float32[3] nan inf 0"}, {"bool[3] 1 0 0"}},
    {"Log", 13, "", {"float32[3] 1 0 -1"}, {"float32[3] 0 -inf nan"}},
    {"Neg", 13, "", {"int32[2] -2147483648 7"}, {"int32[2] -2147483648 -7"}},
    {"Reciprocal", 13, "", {"float32[2] 4 0"}, {"float32[2] 0.25 inf"}},
    {"Round", 11, "", {"float32[5] 0.5 1.5 2.5 -0.5 -1.5"}, {"float32[5] 0 2 2 -0 -2"}},
    {"Sign", 13, "", {"float32[4] -3 0 2 nan"}, {"float32[4] -1 0 1 nan"}},
    {"Sign", 13, "", {"uint8[2] 0 200"}, {"uint8[2] 0 1"}},
    {"Sin", 7, "", {"float32[1] 1"}, {"float32[1] 0.84147098"}},
    {"Sinh", 9, "", {"float32[1] 1"}, {"float32[1] 1.1752012"}},
    {"Sqrt", 13, "", {"float32[3] 9 -1 inf"}, {"float32[3] 3 nan inf"}},
    {"Tan", 7, "", {"float32[1] 1"}, {"float32[1] 1.5574077"}},
    {"Tanh", 13, "", {"float32[2] 0.5 inf"}, {"float32[2] 0.46211716 1"}},
    {"Not", 1, "", {"bool[2] 0 1"}, {"!opset 1"}},
    {"Not", 7, "", {"bool[2] 0 1"}, {"bool[2] 1 0"}},
    {"Not", 7, "", {"int8[1] 1"}, {"!of type int8"}},
    {"BitwiseNot", 18, "", {"uint16[2] 0 65534"}, {"uint16[2] 65535 1"}},
    {"BitwiseNot", 18, "", {"float32[1] 0"}, {"!of type float32"}},
    {"Exp", 13, "", {"float32[2,0,3]"}, {"float32[2,0,3]"}},
    {"Exp", 13, "axis=1", {"float32[1] 0"}, {"!attribute axis"}},
};

static void operators_of_one_operand_have_their_values(void)
{
    check_onnx_cases(unary);
}

static const struct onnx_case binary[] = {
    {"Add", 14, "", {"int8[2] 127 -1", "int8[] 1"}, {"int8[2] -128 0"}},
    {"Add",
     14,
     "",
     {"float32[2,1] 1 2", "float32[3] 10 20 30"},
     {"float32[2,3] 11 21 31 12 22 32"}},
    {"Add", 14, "", {"float32[2] 1 2", "float64[2] 1 2"}, {"!float32 and float64"}},
    {"Add", 14, "", {"float32[2] 1 2", "float32[3] 1 2 3"}, {"!broadcast"}},
    {"Sub", 14, "", {"uint32[1] 0", "uint32[1] 1"}, {"uint32[1] 4294967295"}},
    {"Mul", 14, "", {"int64[1] 4611686018427387904", "int64[1] 4"}, {"int64[1] 0"}},
    {"Div",
     14,
     "",
     {"int32[5] 7 -7 7 -2147483648 5", "int32[5] 2 2 -2 -1 0"},
     {"int32[5] 3 -3 -3 -2147483648 0"}},
    {"Div",
     14,
     "",
     {"int64[1] -9223372036854775808", "int64[1] -1"},
     {"int64[1] -9223372036854775808"}},
    {"Div", 14, "", {"float32[2] 1 0", "float32[2] 0 0"}, {"float32[2] inf nan"}},
    {"Pow", 15, "", {"float32[2] 2 9", "float32[2] 3 0.5"}, {"float32[2] 8 3"}},
    {"Pow", 15, "", {"int32[3] 2 3 -2", "int64[3] 10 -1 3"}, {"int32[3] 1024 0 -8"}},
    {"Pow", 15, "", {"int32[2] 2 4", "float32[2] 0.5 0.5"}, {"int32[2] 1 2"}},
    {"Pow", 12, "", {"float32[2] 2 4", "int64[] 2"}, {"float32[2] 4 16"}},
    {"Mod", 13, "", {"int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"}, {"int32[4] 1 2 -2 -1"}},
    {"Mod", 13, "fmod=1", {"int32[4] 7 -7 7 -7", "int32[4] 3 3 -3 -3"}, {"int32[4] 1 -1 1 -1"}},
    {"Mod", 13, "fmod=1", {"float32[2] 5.5 -5.5", "float32[2] 2 2"}, {"float32[2] 1.5 -1.5"}},
    {"Mod", 13, "", {"float32[2] 5 -5.5", "float32[2] 2 2"}, {"float32[2] 1 0.5"}},
    {"Mod", 13, "", {"int64[2] -9223372036854775808 5", "int64[2] -1 0"}, {"int64[2] 0 0"}},
    {"BitShift",
     11,
     "direction='LEFT'",
     {"uint8[3] 16 4 1", "uint8[3] 1 2 8"},
     {"uint8[3] 32 16 0"}},
    {"BitShift", 11, "direction='RIGHT'", {"uint64[2] 16 4", "uint64[2] 1 64"}, {"uint64[2] 8 0"}},
    {"BitShift", 11, "direction='UP'", {"uint8[1] 1", "uint8[1] 1"}, {"!direction 'UP'"}},
    {"BitwiseAnd", 18, "", {"int8[1] -2", "int8[1] 7"}, {"int8[1] 6"}},
    {"BitwiseOr", 18, "", {"uint8[1] 8", "uint8[1] 7"}, {"uint8[1] 15"}},
    {"BitwiseXor", 18, "", {"int32[1] -1", "int32[1] 7"}, {"int32[1] -8"}},
    {"BitwiseAnd", 18, "", {"float32[1] 1", "float32[1] 1"}, {"!bits of float32"}},
    {"And", 7, "", {"bool[2] 1 1", "bool[2] 0 1"}, {"bool[2] 0 1"}},
    {"Or", 7, "", {"bool[2] 1 0", "bool[] 0"}, {"bool[2] 1 0"}},
    {"Xor", 7, "", {"bool[2] 1 1", "bool[2] 0 1"}, {"bool[2] 1 0"}},
    {"And", 7, "", {"int8[1] 1", "int8[1] 1"}, {"!expected bool"}},
    {"Equal", 13, "", {"float32[3] 1 nan 2", "float32[3] 1 nan 3"}, {"bool[3] 1 0 0"}},
    {"Less", 13, "", {"uint64[1] 1", "uint64[1] 18446744073709551615"}, {"bool[1] 1"}},
    {"LessOrEqual", 16, "", {"int32[3] 1 2 3", "int32[] 2"}, {"bool[3] 1 1 0"}},
    {"Greater", 13, "", {"int32[3] 1 2 3", "int32[] 2"}, {"bool[3] 0 0 1"}},
    {"GreaterOrEqual", 16, "", {"float32[2] nan 3", "float32[] 2"}, {"bool[2] 0 1"}},
    {"PRelu",
     16,
     "",
     {"float32[2,2] -1 2 -3 4", "float32[2] 0.5 2"},
     {"float32[2,2] -0.5 2 -1.5 4"}},
    {"PRelu", 16, "", {"float32[2] -1 2", "float32[2,2] 1 1 1 1"}, {"!broadcast"}},
};

static const struct onnx_case old[] = {
    {"Add", 6, "", {"float32[2] 1 2", "float32[2] 3 4"}, {"float32[2] 4 6"}},
    {"Add", 6, "", {"float32[2] 1 2", "float32[] 3"}, {"!broadcast is 0"}},
    {"Sub", 6, "broadcast=1", {"float32[2,2] 1 2 3 4", "float32[2] 1 2"}, {"float32[2,2] 0 0 2 2"}},
    {"Sub",
     6,
     "broadcast=1 axis=0",
     {"float32[2,2] 1 2 3 4", "float32[2] 1 2"},
     {"float32[2,2] 0 1 1 2"}},
    {"Sub", 6, "broadcast=1 axis=2", {"float32[2] 1 2", "float32[2] 1 2"}, {"!axis 2"}},
    {"Sub", 6, "broadcast=1", {"float32[2] 1 2", "float32[2,2] 1 2 3 4"}, {"!broadcast"}},
    {"Less", 6, "broadcast=1", {"float32[2] 1 2", "float32[] 2"}, {"bool[2] 1 0"}},
    {"Greater", 6, "broadcast=1", {"float32[2] 1 3", "float32[] 2"}, {"bool[2] 0 1"}},
    {"Pow", 6, "broadcast=1", {"float32[2] 1 3", "float32[] 2"}, {"float32[2] 1 9"}},
    {"PRelu",
     6,
     "",
     {"float32[1,2,1,2] -1 -1 -1 1", "float32[2] 2 3"},
     {"float32[1,2,1,2] -2 -2 -3 1"}},
    {"PRelu", 6, "", {"float32[2,2] -1 -2 3 4", "float32[1] 2"}, {"float32[2,2] -2 -4 3 4"}},
};

static void second_operands_lie_at_an_axis_in_old_models(void)
{
    check_onnx_cases(old);
}

static void operators_of_two_operands_have_their_values(void)
{
    check_onnx_cases(binary);
}

static const struct onnx_case several[] = {
    {"Max", 13, "", {"float32[3] 1 nan 3", "float32[3] 2 2 nan"}, {"float32[3] 2 nan nan"}},
    {"Max", 13, "", {"int8[1] -5"}, {"int8[1] -5"}},
    {"Min", 13, "", {"uint8[2] 3 200", "uint8[] 100", "uint8[2] 7 1"}, {"uint8[2] 3 1"}},
    {"Sum", 13, "", {"float32[2] 1 2", "float32[2] 3 4", "float32[] 1"}, {"float32[2] 5 7"}},
    {"Mean", 13, "", {"float32[2] 1 2", "float32[2] 3 6"}, {"float32[2] 2 4"}},
    {"Where", 16, "", {"bool[2] 1 0", "int32[2] 1 2", "int32[] 9"}, {"int32[2] 1 9"}},
    {"Where", 16, "", {"int32[1] 1", "int32[1] 1", "int32[1] 2"}, {"!expected bool"}},
    {"Clip", 5, "min=-1.0 max=1.0", {"float32[1] 5"}, {"!opset 5"}},
    {"Clip", 7, "min=-1.0 max=1.0", {"float32[4] -5 0.5 5 nan"}, {"float32[4] -1 0.5 1 nan"}},
    {"Clip", 7, "max=1.0", {"float32[2] -5 5"}, {"float32[2] -5 1"}},
    {"Clip", 13, "", {"int8[3] -5 0 5", "int8[] -1", "int8[] 1"}, {"int8[3] -1 0 1"}},
    {"Clip", 13, "", {"float32[2] -5 5", "", "float32[] 1"}, {"float32[2] -5 1"}},
    {"Clip", 13, "", {"float32[1] 5", "float32[2] 0 1"}, {"!more than one value"}},
    {"Cast", 13, "to=7", {"float32[4] 1.9 -1.9 nan 1e30"}, {"int64[4] 1 -1 0 9223372036854775807"}},
    {"Cast", 13, "to=9", {"float32[3] 0 0.1 nan"}, {"bool[3] 0 1 1"}},
    {"Cast", 13, "to=2", {"int32[3] 256 257 -1"}, {"uint8[3] 0 1 255"}},
    {"Cast", 19, "to=10 saturate=1", {"float64[2] 1e6 0.1"}, {"float16[2] inf 0.09998"}},
    {"Cast", 13, "to=16", {"float32[1] 1.00390625"}, {"bfloat16[1] 1"}},
    {"Cast", 13, "to=8", {"float32[1] 1"}, {"!string"}},
    {"Cast", 19, "to=17", {"float32[1] 1"}, {"!float8e4m3fn"}},
    {"Cast", 13, "to=99", {"float32[1] 1"}, {"!type 99"}},
    {"CastLike", 15, "", {"float32[1] 1.5", "int8[0]"}, {"int8[1] 1"}},
    {"CastLike", 15, "", {"float32[1] 1.5", ""}, {"!no operand"}},
    {"IsInf", 10, "", {"float32[4] inf -inf nan 1"}, {"bool[4] 1 1 0 0"}},
    {"IsInf", 10, "detect_negative=0", {"float32[3] inf -inf 1"}, {"bool[3] 1 0 0"}},
    {"IsInf", 10, "detect_positive=0", {"float32[3] inf -inf 1"}, {"bool[3] 0 1 0"}},
    {"IsInf", 10, "detect_positive=0 detect_negative=0", {"float32[2] inf -inf"}, {"bool[2] 0 0"}},
    {"NoSuchThing", 13, "", {"float32[1] 1"}, {"!NoSuchThing of opset 13, node it"}},
};

static void operators_of_several_operands_have_their_values(void)
{
    check_onnx_cases(several);
}

static const struct onnx_case activations[] = {
    {"Relu", 14, "", {"float32[3] -1 2 nan"}, {"float32[3] 0 2 nan"}},
    {"Relu", 14, "", {"int8[2] -128 3"}, {"int8[2] 0 3"}},
    {"LeakyRelu", 16, "alpha=0.1", {"float32[2] -1 2"}, {"float32[2] -0.1 2"}},
    {"ThresholdedRelu", 10, "alpha=1.5", {"float32[3] 1 1.5 2"}, {"float32[3] 0 0 2"}},
    {"Elu", 7, "alpha=2.0", {"float32[2] -1 1"}, {"float32[2] -1.2642411 1"}},
    {"Celu", 12, "alpha=2.0", {"float32[2] -1 1"}, {"float32[2] -0.78693868 1"}},
    {"Selu", 7, "alpha=2.0 gamma=3.0", {"float32[2] -1 1"}, {"float32[2] -3.7927234 3"}},
    {"Sigmoid", 13, "", {"float32[4] 0 1 -200 200"}, {"float32[4] 0.5 0.7310586 0 1"}},
    {"HardSigmoid", 7, "alpha=0.5 beta=0.6", {"float32[3] -2 0.2 2"}, {"float32[3] 0 0.7 1"}},
    {"HardSwish", 14, "", {"float32[3] -4 1.5 4"}, {"float32[3] 0 1.125 4"}},
    {"Softplus", 7, "", {"float32[3] 0 500 -500"}, {"float32[3] 0.69314718 500 0"}},
    {"Softsign", 7, "", {"float32[2] 1 -3"}, {"float32[2] 0.5 -0.75"}},
    {"Mish", 18, "", {"float32[2] 1 -100"}, {"float32[2] 0.86509841 0"}},
    {"Gelu", 20, "", {"float32[2] 1 -1"}, {"float32[2] 0.84134475 -0.15865525"}},
    {"Gelu", 20, "approximate='tanh'", {"float32[1] 1"}, {"float32[1] 0.84119199"}},
    {"Gelu", 20, "approximate='exact'", {"float32[1] 1"}, {"!approximate 'exact'"}},
    {"Shrink", 9, "lambd=1.5 bias=1.5", {"float32[3] -2 1 2"}, {"float32[3] -0.5 0 0.5"}},
    {"Shrink", 9, "lambd=1.5", {"int8[3] -2 1 2"}, {"int8[3] -2 0 2"}},
    {"Sigmoid", 13, "", {"float16[2] 0 1"}, {"float16[2] 0.5 0.731"}},
    {"Relu", 14, "alpha=0.1", {"float32[1] -1"}, {"!attribute alpha"}},
};

static void activation_functions_have_their_values(void)
{
    check_onnx_cases(activations);
}

static CU_TestInfo tests_onnx_math[] = {
    {"operators_of_one_operand_have_their_values", operators_of_one_operand_have_their_values},
    {"operators_of_two_operands_have_their_values", operators_of_two_operands_have_their_values},
    {"second_operands_lie_at_an_axis_in_old_models", second_operands_lie_at_an_axis_in_old_models},
    {"operators_of_several_operands_have_their_values",
     operators_of_several_operands_have_their_values},
    {"activation_functions_have_their_values", activation_functions_have_their_values},
    CU_TEST_INFO_NULL,
};

CU_SuiteInfo suites_formats_onnx_math[] = {
    {"onnx_math", NULL, NULL, NULL, NULL, tests_onnx_math},
    CU_SUITE_INFO_NULL,
};
