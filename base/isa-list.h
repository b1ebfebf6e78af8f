/* SPDX-License-Identifier: MIT
 * The instruction sets that kernels exist for, from the plainest to the fastest. They are levels
 * of TANDEM_CPU, and the order in which the CPU backend fills its table of kernels: each one
 * overwrites what it has of the ones before.
 *
 * X(name, features that it needs, F(file) ...): F names the files of backends/cpu/ that bring its
 * kernels; each has a function tnd_fill_<file>. */
#ifndef TND_ISA_LIST_H
#define TND_ISA_LIST_H

#if defined(__x86_64__)
#define TND_ISA_LIST(X, F)                                                                         \
    X(scalar, 0u, F(decode_scalar) F(gemm_scalar) F(int8_scalar) F(net_scalar) F(vec_scalar))      \
    X(avx2, TND_CPU_SET_AVX2,                                                                      \
      F(decode_avx2) F(dequant_avx2) F(gemm_avx2) F(int8_avx2) F(net_avx2) F(packed_avx2)          \
          F(packed_float_avx2) F(vec_avx2))                                                        \
    X(avxvnni, TND_CPU_SET_AVX2 | (uint32_t)TND_CPU_AVX_VNNI, F(int8_avxvnni) F(packed_avxvnni))   \
    X(avx512, TND_CPU_SET_AVX512,                                                                  \
      F(decode_avx512) F(gemm_avx512) F(net_avx512) F(packed_float_avx512) F(vec_avx512))          \
    X(vnni, TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI,                                    \
      F(attention_vnni) F(decode_q_avx512) F(gemm_vnni) F(gemv_vnni) F(int8_vnni)                  \
          F(packed_vnni))                                                                         \
    X(gfni, TND_CPU_SET_GFNI, F(packed_gfni))                                                      \
    X(bf16, TND_CPU_SET_AVX512 | (uint32_t)TND_CPU_AVX512_VNNI | (uint32_t)TND_CPU_AVX512_BF16,    \
      F(packed_bf16))                                                                              \
    X(amx, TND_CPU_SET_AMX, F(tiles_amx))
#elif defined(__aarch64__)
#define TND_ISA_LIST(X, F)                                                                         \
    X(scalar, 0u, F(decode_scalar) F(gemm_scalar) F(int8_scalar) F(net_scalar) F(vec_scalar))      \
    X(neon, (uint32_t)TND_CPU_NEON,                                                                \
      F(decode_neon) F(dequant_neon) F(gemm_neon) F(packed_neon) F(packed_float_neon) F(vec_neon)) \
    X(dotprod, TND_CPU_SET_DOTPROD, F(gemm_dotprod) F(int8_dotprod) F(packed_dotprod))             \
    X(i8mm, TND_CPU_SET_I8MM, F(decode_i8mm) F(gemm_i8mm) F(int8_i8mm) F(packed_i8mm))
#else
#define TND_ISA_LIST(X, F)                                                                         \
    X(scalar, 0u, F(decode_scalar) F(gemm_scalar) F(int8_scalar) F(net_scalar) F(vec_scalar))
#endif

#endif
