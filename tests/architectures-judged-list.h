/* SPDX-License-Identifier: MIT
 * What tools/judges/models.py --list found. X(model_type, configurations equal, all;
 * changed tensors equal, all; changed members equal, all; silently different) */
#ifndef TND_TESTS_ARCHITECTURES_JUDGED_LIST_H
#define TND_TESTS_ARCHITECTURES_JUDGED_LIST_H

/* clang-format off */
#define TND_JUDGED_WITH "transformers 5.24.0, torch 2.15.0, 2026-11-29"
#define TND_JUDGED(X) \
    X("arcee", 7, 7, 2, 397, 245, 625, 0) \
    X("bert", 7, 7, 25, 566, 169, 568, 0) \
    X("cohere", 7, 7, 2, 496, 240, 597, 0) \
    X("cohere2", 7, 7, 2, 414, 259, 642, 0) \
    X("deepseek_v2", 7, 7, 18, 800, 337, 1000, 0) \
    X("deepseek_v3", 7, 7, 57, 1242, 338, 996, 0) \
    X("ernie4_5", 7, 7, 2, 465, 223, 593, 0) \
    X("falcon", 7, 7, 2, 302, 253, 622, 0) \
    X("gemma", 7, 7, 2, 457, 248, 637, 0) \
    X("gemma2", 7, 7, 2, 578, 285, 709, 0) \
    X("gemma3", 7, 7, 82, 1037, 317, 836, 0) \
    X("gemma3_text", 7, 7, 2, 614, 294, 683, 0) \
    X("glm4", 7, 7, 2, 493, 242, 628, 0) \
    X("glm4_moe", 7, 7, 32, 961, 301, 842, 0) \
    X("got_ocr2", 7, 7, 66, 531, 245, 700, 0) \
    X("gpt2", 7, 7, 2, 406, 197, 599, 0) \
    X("gpt_neox", 7, 7, 2, 408, 256, 618, 0) \
    X("gpt_oss", 7, 7, 2, 528, 307, 785, 0) \
    X("granite", 7, 7, 2, 457, 274, 637, 0) \
    X("hunyuan_v1_dense", 7, 7, 2, 542, 283, 663, 0) \
    X("idefics3", 7, 7, 53, 460, 249, 714, 0) \
    X("internvl", 7, 7, 62, 624, 266, 757, 0) \
    X("llama", 7, 7, 2, 501, 265, 650, 0) \
    X("llava", 7, 7, 63, 556, 254, 720, 0) \
    X("llava_next", 7, 7, 65, 496, 285, 750, 0) \
    X("llava_onevision", 7, 7, 74, 451, 292, 758, 0) \
    X("mistral", 7, 7, 2, 438, 254, 625, 0) \
    X("mistral3", 7, 7, 39, 614, 243, 719, 0) \
    X("mixtral", 7, 7, 20, 858, 280, 710, 0) \
    X("modernbert", 7, 7, 8, 440, 320, 758, 0) \
    X("olmo2", 7, 7, 2, 572, 239, 585, 0) \
    X("olmo3", 7, 7, 2, 530, 266, 593, 0) \
    X("phi", 7, 7, 2, 490, 257, 614, 0) \
    X("phi3", 7, 7, 2, 312, 273, 703, 0) \
    X("qwen2", 7, 7, 3, 483, 256, 645, 0) \
    X("qwen2_moe", 7, 7, 14, 954, 319, 834, 0) \
    X("qwen3", 7, 7, 2, 548, 261, 667, 0) \
    X("qwen3_moe", 7, 7, 5, 653, 282, 770, 0) \
    X("roberta", 7, 7, 25, 460, 178, 588, 0) \
    X("seed_oss", 7, 7, 2, 493, 275, 675, 0) \
    X("smollm3", 7, 7, 3, 443, 263, 679, 0) \
    X("smolvlm", 7, 7, 57, 537, 249, 716, 0) \
    X("stablelm", 7, 7, 2, 495, 246, 623, 0) \
    X("starcoder2", 7, 7, 2, 479, 259, 624, 0) \
    X("vipllava", 7, 7, 71, 652, 257, 727, 0) \
    X("xlm-roberta", 7, 7, 25, 354, 170, 582, 0)
/* clang-format on */

#endif
