/* SPDX-License-Identifier: MIT
 * Main of the formats suites. */
#include "tests/support.h"

extern CU_SuiteInfo suites_formats_architectures[];
extern CU_SuiteInfo suites_formats_bounds[];
extern CU_SuiteInfo suites_formats_gguf[];
extern CU_SuiteInfo suites_formats_llama[];
extern CU_SuiteInfo suites_formats_llama2c[];
extern CU_SuiteInfo suites_formats_mapped[];
extern CU_SuiteInfo suites_formats_onnx_attention[];
extern CU_SuiteInfo suites_formats_onnx_microsoft[];
extern CU_SuiteInfo suites_formats_npy[];
extern CU_SuiteInfo suites_formats_npz[];
extern CU_SuiteInfo suites_formats_sound[];
extern CU_SuiteInfo suites_formats_onnx_math[];
extern CU_SuiteInfo suites_formats_onnx_functions[];
extern CU_SuiteInfo suites_formats_onnx_ml[];
extern CU_SuiteInfo suites_formats_onnx_newest[];
extern CU_SuiteInfo suites_formats_onnx_reader[];
extern CU_SuiteInfo suites_formats_onnx_recurrent[];
extern CU_SuiteInfo suites_formats_onnx_reduce[];
extern CU_SuiteInfo suites_formats_onnx_rules[];
extern CU_SuiteInfo suites_formats_onnx_shape[];
extern CU_SuiteInfo suites_formats_parts[];
extern CU_SuiteInfo suites_formats_safetensors[];
extern CU_SuiteInfo suites_formats_mix[];
extern CU_SuiteInfo suites_formats_synth[];
extern CU_SuiteInfo suites_formats_template[];
extern CU_SuiteInfo suites_formats_tokenizer[];
extern CU_SuiteInfo suites_formats_tokenizer_files[];
extern CU_SuiteInfo suites_formats_tokenizer_judged[];
extern CU_SuiteInfo suites_formats_tokenizer_patterns[];
extern CU_SuiteInfo suites_formats_torch[];
extern CU_SuiteInfo suites_formats_tokenizer_json[];
extern CU_SuiteInfo suites_formats_vocab[];
extern CU_SuiteInfo suites_formats_wordpiece[];
extern CU_SuiteInfo suites_formats_experts[];
extern CU_SuiteInfo suites_formats_quantized[];
extern CU_SuiteInfo suites_formats_partial[];

int main(int argc, char **argv)
{
    return tnd_suites_run(
        argc, argv, suites_formats_gguf, suites_formats_bounds, suites_formats_llama,
        suites_formats_llama2c, suites_formats_mapped, suites_formats_safetensors,
        suites_formats_mix, suites_formats_synth, suites_formats_tokenizer,
        suites_formats_tokenizer_files, suites_formats_tokenizer_json,
        suites_formats_tokenizer_judged, suites_formats_tokenizer_patterns, suites_formats_torch,
        suites_formats_vocab, suites_formats_wordpiece, suites_formats_experts, suites_formats_npy,
        suites_formats_npz, suites_formats_sound, suites_formats_onnx_math,
        suites_formats_onnx_newest, suites_formats_onnx_ml, suites_formats_onnx_functions,
        suites_formats_onnx_attention, suites_formats_onnx_microsoft, suites_formats_onnx_reader,
        suites_formats_onnx_recurrent, suites_formats_onnx_reduce, suites_formats_onnx_shape,
        suites_formats_onnx_rules, suites_formats_template, suites_formats_architectures,
        suites_formats_quantized, suites_formats_parts, suites_formats_partial, NULL);
}
