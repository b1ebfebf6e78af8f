/* SPDX-License-Identifier: MIT
 * Mixes of types that llama.cpp writes: the type of each tensor (llama_tensor_get_type of
 * src/llama-quant.cpp in ggml-org/llama.cpp; its special rules for Falcon are left out). */
#ifndef TND_MIX_LIST_H
#define TND_MIX_LIST_H

/* X(MIX, "name", general.file_type, type of most tensors, of the output, of token embeddings).
 * Embeddings tied to the output have the output's type. */
#define TND_MIX_LIST(X)                                                                            \
    X(Q4_0, "q4_0", 2, Q4_0, Q6_K, Q4_0)                                                           \
    X(Q4_1, "q4_1", 3, Q4_1, Q6_K, Q4_1)                                                           \
    X(Q8_0, "q8_0", 7, Q8_0, Q8_0, Q8_0)                                                           \
    X(Q5_0, "q5_0", 8, Q5_0, Q6_K, Q5_0)                                                           \
    X(Q5_1, "q5_1", 9, Q5_1, Q6_K, Q5_1)                                                           \
    X(Q2_K, "q2_k", 10, Q2_K, Q6_K, Q2_K)                                                          \
    X(Q3_K_S, "q3_k_s", 11, Q3_K, Q6_K, Q3_K)                                                      \
    X(Q3_K_M, "q3_k_m", 12, Q3_K, Q6_K, Q3_K)                                                      \
    X(Q3_K_L, "q3_k_l", 13, Q3_K, Q6_K, Q3_K)                                                      \
    X(Q4_K_S, "q4_k_s", 14, Q4_K, Q6_K, Q4_K)                                                      \
    X(Q4_K_M, "q4_k_m", 15, Q4_K, Q6_K, Q4_K)                                                      \
    X(Q5_K_S, "q5_k_s", 16, Q5_K, Q6_K, Q5_K)                                                      \
    X(Q5_K_M, "q5_k_m", 17, Q5_K, Q6_K, Q5_K)                                                      \
    X(Q6_K, "q6_k", 18, Q6_K, Q6_K, Q6_K)                                                          \
    X(IQ2_XXS, "iq2_xxs", 19, IQ2_XXS, Q5_K, Q2_K)                                                 \
    X(IQ2_XS, "iq2_xs", 20, IQ2_XS, Q5_K, Q2_K)                                                    \
    X(Q2_K_S, "q2_k_s", 21, Q2_K, Q6_K, Q2_K)                                                      \
    X(IQ3_XS, "iq3_xs", 22, IQ3_S, Q6_K, IQ3_S)                                                    \
    X(IQ3_XXS, "iq3_xxs", 23, IQ3_XXS, Q5_K, IQ3_S)                                                \
    X(IQ1_S, "iq1_s", 24, IQ1_S, Q5_K, Q2_K)                                                       \
    X(IQ4_NL, "iq4_nl", 25, IQ4_NL, Q6_K, IQ4_NL)                                                  \
    X(IQ3_S, "iq3_s", 26, IQ3_S, Q6_K, IQ3_S)                                                      \
    X(IQ3_M, "iq3_m", 27, IQ3_S, Q6_K, IQ3_S)                                                      \
    X(IQ2_S, "iq2_s", 28, IQ2_XS, Q5_K, IQ3_S)                                                     \
    X(IQ2_M, "iq2_m", 29, IQ2_S, Q5_K, IQ3_S)                                                      \
    X(IQ4_XS, "iq4_xs", 30, IQ4_XS, Q6_K, IQ4_XS)                                                  \
    X(IQ1_M, "iq1_m", 31, IQ1_M, Q5_K, Q2_K)                                                       \
    X(TQ1_0, "tq1_0", 36, TQ1_0, Q6_K, Q4_K)                                                       \
    X(TQ2_0, "tq2_0", 37, TQ2_0, Q6_K, Q4_K)                                                       \
    X(MXFP4_MOE, "mxfp4_moe", 38, Q8_0, Q8_0, Q8_0)

/* X(MIX, part of a block, condition, type): the first row that holds; none: the type of most
 * tensors. V includes the fused QKV matrix; UP includes the gate. */
#define TND_MIX_RULES(X)                                                                           \
    X(Q2_K, V, GROUPS_OF_4, Q4_K)                                                                  \
    X(Q2_K, V, ALWAYS, Q3_K)                                                                       \
    X(Q2_K, OUT, FEW_EXPERTS, Q3_K)                                                                \
    X(Q2_K, OUT, EIGHT_EXPERTS, Q5_K)                                                              \
    X(Q2_K, DOWN, ALWAYS, Q3_K)                                                                    \
    X(Q2_K_S, V, GROUPS_OF_4, Q4_K)                                                                \
    X(Q2_K_S, DOWN, FIRST_EIGHTH, Q4_K)                                                            \
    X(Q3_K_S, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(Q3_K_M, V, FIRST_2, Q5_K)                                                                    \
    X(Q3_K_M, V, ALWAYS, Q4_K)                                                                     \
    X(Q3_K_M, DOWN, FIRST_SIXTEENTH, Q5_K)                                                         \
    X(Q3_K_M, DOWN, ALWAYS, Q4_K)                                                                  \
    X(Q3_K_M, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(Q3_K_M, OUT, ALWAYS, Q4_K)                                                                   \
    X(Q3_K_L, V, ALWAYS, Q5_K)                                                                     \
    X(Q3_K_L, DOWN, ALWAYS, Q5_K)                                                                  \
    X(Q3_K_L, OUT, FEW_EXPERTS, Q5_K)                                                              \
    X(Q4_0, DOWN, IMPORTANT_FIRST_EIGHTH, Q4_1)                                                    \
    X(Q5_0, DOWN, IMPORTANT_FIRST_EIGHTH, Q5_1)                                                    \
    X(Q4_K_S, V, FIRST_4, Q5_K)                                                                    \
    X(Q4_K_S, DOWN, FIRST_EIGHTH, Q5_K)                                                            \
    X(Q4_K_S, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(Q4_K_M, V, MORE_BITS, Q6_K)                                                                  \
    X(Q4_K_M, DOWN, MORE_BITS, Q6_K)                                                               \
    X(Q4_K_M, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(Q5_K_M, V, MORE_BITS, Q6_K)                                                                  \
    X(Q5_K_M, DOWN, MORE_BITS, Q6_K)                                                               \
    X(IQ4_NL, V, GROUPS_OF_4, Q5_K)                                                                \
    X(IQ4_NL, DOWN, PLAIN_FIRST_EIGHTH, Q5_K)                                                      \
    X(IQ4_NL, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(IQ4_XS, V, GROUPS_OF_4, Q5_K)                                                                \
    X(IQ4_XS, DOWN, PLAIN_FIRST_EIGHTH, Q5_K)                                                      \
    X(IQ4_XS, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(IQ3_M, V, ALWAYS, Q4_K)                                                                      \
    X(IQ3_M, DOWN, FIRST_EIGHTH, Q4_K)                                                             \
    X(IQ3_M, DOWN, EIGHT_EXPERTS_MORE_BITS, Q4_K)                                                  \
    X(IQ3_M, OUT, EIGHT_EXPERTS, Q5_K)                                                             \
    X(IQ3_M, OUT, ALWAYS, Q4_K)                                                                    \
    X(IQ3_S, V, GROUPS_OF_4, Q4_K)                                                                 \
    X(IQ3_S, OUT, EIGHT_EXPERTS, Q5_K)                                                             \
    X(IQ3_XS, V, GROUPS_OF_4, Q4_K)                                                                \
    X(IQ3_XS, K, ALWAYS, IQ3_XXS)                                                                  \
    X(IQ3_XS, Q, ALWAYS, IQ3_XXS)                                                                  \
    X(IQ3_XS, UP, MIDDLE, IQ3_XXS)                                                                 \
    X(IQ3_XS, OUT, EIGHT_EXPERTS, Q5_K)                                                            \
    X(IQ3_XXS, V, GROUPS_OF_4, Q4_K)                                                               \
    X(IQ3_XXS, V, PLAIN, IQ3_S)                                                                    \
    X(IQ3_XXS, K, ALWAYS, IQ2_S)                                                                   \
    X(IQ3_XXS, Q, ALWAYS, IQ2_S)                                                                   \
    X(IQ3_XXS, DOWN, PLAIN_FIRST_EIGHTH, Q4_K)                                                     \
    X(IQ3_XXS, DOWN, PLAIN, Q3_K)                                                                  \
    X(IQ3_XXS, OUT, EIGHT_EXPERTS, Q5_K)                                                           \
    X(IQ3_XXS, OUT, ALWAYS, IQ3_S)                                                                 \
    TND_MIX_RULES_BELOW_3_BITS(X, IQ2_XXS, Q2_K)                                                   \
    TND_MIX_RULES_BELOW_3_BITS(X, IQ2_XS, Q2_K)                                                    \
    TND_MIX_RULES_BELOW_3_BITS(X, IQ2_S, IQ3_S)                                                    \
    X(IQ2_S, OUT, ALWAYS, IQ3_S)                                                                   \
    TND_MIX_RULES_BELOW_3_BITS(X, IQ2_M, IQ3_S)                                                    \
    X(IQ2_M, OUT, ALWAYS, IQ3_S)                                                                   \
    TND_MIX_RULES_BELOW_3_BITS(X, IQ1_S, Q2_K)                                                     \
    X(IQ1_S, OUT, ALWAYS, IQ2_XXS)                                                                 \
    TND_MIX_RULES_BELOW_3_BITS(X, IQ1_M, Q2_K)                                                     \
    X(IQ1_M, OUT, ALWAYS, IQ2_XXS)

#define TND_MIX_RULES_BELOW_3_BITS(X, MIX, better)                                                 \
    X(MIX, V, GROUPS_OF_4, Q4_K)                                                                   \
    X(MIX, V, FOUR_EXPERTS, Q4_K)                                                                  \
    X(MIX, V, ALWAYS, better)                                                                      \
    X(MIX, K, EIGHT_EXPERTS, Q4_K)                                                                 \
    X(MIX, DOWN, FIRST_EIGHTH, better)                                                             \
    X(MIX, OUT, EIGHT_EXPERTS, Q5_K)

#endif
