/* SPDX-License-Identifier: MIT
 * The lists that drive dispatch, tests and benches of the matrix products.
 *
 * TND_QUANT_KERNELS: X(TYPE, form, offset, bits): how the values of a quantised type are decoded
 * for the integer kernels: value = scale * (q - offset), or scale * q + min where the form is
 * affine. q is an unsigned byte below 2^bits. Scales belong to 32 values, or to 16 where the form
 * says so.
 *
 * TND_CPU_ISAS: X(isa, features that it needs): from the plainest to the fastest; each one
 * overwrites what it has of the one before. */
#ifndef TND_KERNEL_LIST_H
#define TND_KERNEL_LIST_H

#define TND_QUANT_KERNELS(X)                                                                       \
    X(Q4_0, 0, 8, 4)                                                                               \
    X(Q4_1, TND_AFFINE, 0, 4)                                                                      \
    X(Q5_0, 0, 16, 5)                                                                              \
    X(Q5_1, TND_AFFINE, 0, 5)                                                                      \
    X(Q8_0, 0, 128, 8)                                                                             \
    X(Q2_K, TND_AFFINE | TND_GROUPS_OF_16, 0, 2)                                                   \
    X(Q3_K, TND_GROUPS_OF_16, 4, 3)                                                                \
    X(Q4_K, TND_AFFINE, 0, 4)                                                                      \
    X(Q5_K, TND_AFFINE, 0, 5)                                                                      \
    X(Q6_K, TND_GROUPS_OF_16, 32, 6)                                                               \
    X(BCML1, TND_AFFINE, 0, 4)

#if defined(__x86_64__)
#define TND_CPU_ISAS(X)                                                                            \
    X(scalar, 0u)                                                                                  \
    X(avx2, TND_CPU_SET_AVX2)                                                                      \
    X(avx512, TND_CPU_SET_AVX512)                                                                  \
    X(vnni, TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI)
#elif defined(__aarch64__)
#define TND_CPU_ISAS(X)                                                                            \
    X(scalar, 0u)                                                                                  \
    X(neon, (uint32_t)TND_CPU_NEON)                                                                \
    X(dotprod, TND_CPU_SET_DOTPROD)                                                                \
    X(i8mm, TND_CPU_SET_I8MM)
#else
#define TND_CPU_ISAS(X) X(scalar, 0u)
#endif

#endif
