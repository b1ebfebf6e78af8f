/* SPDX-License-Identifier: MIT
 * The quantised types that have integer kernels, and how their values are coded. Kernels, packing,
 * tests and benches are generated from it. X(TYPE, form, offset, bits, is_super): value = scale *
 * (q - offset), or scale * q + min if the form is affine. q is an unsigned number of `bits` bits. A
 * scale belongs to 32 values, or to 16 if the form says so. is_super: scales are integers times one
 * half per block. If the form names a codebook, q is one of its numbers plus the offset; packed
 * weights store its index there in 3 or 4 bits. */
#ifndef TND_KERNEL_LIST_H
#define TND_KERNEL_LIST_H

#define TND_QUANT_KERNELS(X)                                                                       \
    X(Q4_0, 0, 8, 4, false)                                                                        \
    X(Q4_1, TND_AFFINE, 0, 4, false)                                                               \
    X(Q5_0, 0, 16, 5, false)                                                                       \
    X(Q5_1, TND_AFFINE, 0, 5, false)                                                               \
    X(Q8_0, 0, 128, 8, false)                                                                      \
    X(Q2_K, TND_AFFINE | TND_GROUPS_OF_16, 0, 2, true)                                             \
    X(Q3_K, TND_GROUPS_OF_16, 4, 3, true)                                                          \
    X(Q4_K, TND_AFFINE, 0, 4, true)                                                                \
    X(Q5_K, TND_AFFINE, 0, 5, true)                                                                \
    X(Q6_K, TND_GROUPS_OF_16, 32, 6, true)                                                         \
    X(BCML1, TND_AFFINE, 0, 4, false)                                                              \
    X(IQ4_NL, TND_BOOK_IQ4, 128, 8, false)                                                         \
    X(IQ4_XS, TND_BOOK_IQ4, 128, 8, true)                                                          \
    X(MXFP4, TND_BOOK_FP4, 12, 5, false)                                                           \
    X(IQ3_XXS, TND_BOOK_IQ3_XXS, 62, 7, true)                                                      \
    X(IQ3_S, TND_BOOK_IQ3_S, 15, 5, true)                                                          \
    X(IQ2_XXS, TND_BOOK_IQ2, 43, 7, true)                                                          \
    X(IQ2_XS, TND_BOOK_IQ2 | TND_GROUPS_OF_16, 43, 7, true)                                        \
    X(IQ2_S, TND_BOOK_IQ2 | TND_GROUPS_OF_16, 43, 7, true)                                         \
    X(IQ1_S, TND_BOOK_IQ1, 9, 5, true)                                                             \
    X(IQ1_M, TND_BOOK_IQ1 | TND_GROUPS_OF_16, 9, 5, true)                                          \
    X(TQ1_0, 0, 1, 2, true)                                                                        \
    X(TQ2_0, 0, 1, 2, true)

#endif
