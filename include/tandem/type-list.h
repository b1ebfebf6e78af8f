/* SPDX-License-Identifier: MIT
 * room: ggml-like
 *
 * X(NAME, number, "text", values per block, bytes per block): one row per tensor type. The numbers
 * and block layouts are those of ggml (ggml.h, ggml-common.h of the ggml project), so that files
 * made for one library are read by the other. BCML1 is Tandem's own (docs/formats.md): its number
 * is far above those that ggml assigns consecutively, and between those of its forks, so that other
 * readers refuse it as unknown. */
#define TANDEM_TYPE_LIST(X)                                                                        \
    X(F32, 0, "f32", 1, 4)                                                                         \
    X(F16, 1, "f16", 1, 2)                                                                         \
    X(Q4_0, 2, "q4_0", 32, 18)                                                                     \
    X(Q4_1, 3, "q4_1", 32, 20)                                                                     \
    X(Q5_0, 6, "q5_0", 32, 22)                                                                     \
    X(Q5_1, 7, "q5_1", 32, 24)                                                                     \
    X(Q8_0, 8, "q8_0", 32, 34)                                                                     \
    X(Q2_K, 10, "q2_k", 256, 84)                                                                   \
    X(Q3_K, 11, "q3_k", 256, 110)                                                                  \
    X(Q4_K, 12, "q4_k", 256, 144)                                                                  \
    X(Q5_K, 13, "q5_k", 256, 176)                                                                  \
    X(Q6_K, 14, "q6_k", 256, 210)                                                                  \
    X(IQ2_XXS, 16, "iq2_xxs", 256, 66)                                                             \
    X(IQ2_XS, 17, "iq2_xs", 256, 74)                                                               \
    X(IQ3_XXS, 18, "iq3_xxs", 256, 98)                                                             \
    X(IQ1_S, 19, "iq1_s", 256, 50)                                                                 \
    X(IQ4_NL, 20, "iq4_nl", 32, 18)                                                                \
    X(IQ3_S, 21, "iq3_s", 256, 110)                                                                \
    X(IQ2_S, 22, "iq2_s", 256, 82)                                                                 \
    X(IQ4_XS, 23, "iq4_xs", 256, 136)                                                              \
    X(I32, 26, "i32", 1, 4)                                                                        \
    X(IQ1_M, 29, "iq1_m", 256, 56)                                                                 \
    X(BF16, 30, "bf16", 1, 2)                                                                      \
    X(TQ1_0, 34, "tq1_0", 256, 54)                                                                 \
    X(TQ2_0, 35, "tq2_0", 256, 66)                                                                 \
    X(MXFP4, 39, "mxfp4", 32, 17)                                                                  \
    X(BCML1, 241, "bcml1", 32, 20)
