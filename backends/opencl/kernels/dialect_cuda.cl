/* SPDX-License-Identifier: MIT
 * What stands in front of every program for CUDA: OpenCL C's words in the C++ that NVRTC compiles,
 * and clang when the library is built, without any of CUDA's headers. A program is compiled as
 *     #include "dialect"
 *     extern "C" {
 *     #include "kernels"
 *     }
 * so that kernels keep their names, with --device-as-default-execution-space, since functions have
 * no mark of where they run. */

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong; /* 64 bits: Linux */
static_assert(sizeof(ulong) == 8, "long has 64 bits in kernels");

#ifdef __clang__ /* with __clang_cuda_builtin_vars.h, a header of its own; see docs/cuda.md */
#pragma clang force_cuda_host_device begin
typedef unsigned long size_t;

#define __launch_bounds__(most, least) __attribute__((launch_bounds(most, least)))
#define __shfl_xor_sync(all, v, step)  __nvvm_shfl_sync_bfly_f32(all, v, step, 31)
#define __int_as_float(bits)           __builtin_bit_cast(float, bits)
#define __umul64hi                     __nvvm_mulhi_ull
#define __clz(bits)                    ((bits) == 0 ? 32 : __builtin_clz(bits))
#define atomicAdd(p, value)            __atomic_fetch_add(p, value, __ATOMIC_RELAXED)
#define atomicOr(p, bits)              __atomic_fetch_or(p, bits, __ATOMIC_RELAXED)
#define atomicCAS(p, expected, value)  __sync_val_compare_and_swap(p, expected, value)
/* (the built-in function is taken for a product that may be fused) */
static float __fmul_rn(float a, float b)
{
    float product;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
    return product;
}

#define memcpy    __builtin_memcpy
#define isnan     __builtin_isnan
#define isfinite  __builtin_isfinite
#define fabs      __builtin_fabsf
#define fmin      __builtin_fminf
#define fmax      __builtin_fmaxf
#define fma       __builtin_fmaf
#define sqrt      __nvvm_sqrt_rn_f
#define rint      __builtin_rint
#define roundf    __builtin_roundf
#define exp2_fast __nvvm_ex2_approx_f
#define min(a, b) ((b) < (a) ? (b) : (a))
#define max(a, b) ((a) < (b) ? (b) : (a))
#include "math.clh"
#else
static float sincos(float angle, float *cosine)
{
    float sine;
    sincosf(angle, &sine, cosine);
    return sine;
}
#endif

/* NVRTC's own __global__ and __shared__ are attributes named global and shared, which are other
 * words here; an attribute has underscores as a second name. */
#undef __global__
#undef __shared__
#define kernel __attribute__((__global__))
#define shared __attribute__((__shared__)) /* a variable in local memory; `local`: a pointer to it */
#define local
#define global
/* At least 256 threads of a multiprocessor: at most 255 registers each. Left to itself ptxas aims
 * at more threads and spills, and so it does with 384 (make judges JOBS=cuda). */
#define work_group(items) __launch_bounds__(items, (items) < 256 ? 256 / (items) : 1)
#undef INFINITY
#define INFINITY __int_as_float(0x7f800000)

/* The launch gives a kernel's arguments in local memory as offsets in bytes from its begin, each a
 * multiple of 16. */
extern shared char local_memory[] __attribute__((aligned(16)));
template <typename T> T *local_argument(T *offset)
{
    return (T *)(local_memory + (size_t)offset);
}

/* ---- items and groups ---- */

#define PLACE(name, triple)                                                                        \
    static uint name(int d)                                                                        \
    {                                                                                              \
        return d == 0 ? triple.x : d == 1 ? triple.y : triple.z;                                   \
    }
PLACE(get_local_id, threadIdx)
PLACE(get_local_size, blockDim)
PLACE(get_group_id, blockIdx)
PLACE(get_num_groups, gridDim)
#undef PLACE
#define get_global_id(d) (get_group_id(d) * get_local_size(d) + get_local_id(d))

#define barrier(fence)                    __syncthreads()
#define atomic_inc(p)                     atomicAdd((int *)(p), 1)
#define atomic_add(p, value)              atomicAdd((uint *)(p), value)
#define atomic_or(p, bits)                atomicOr((int *)(p), bits)
#define atomic_cmpxchg(p, expected, bits) atomicCAS((int *)(p), expected, bits)

/* ---- subgroups: warps, of groups of one dimension ---- */

#define get_num_sub_groups()     ((blockDim.x + 31) / 32)
#define get_sub_group_id()       (threadIdx.x / 32)
#define get_sub_group_local_id() (threadIdx.x % 32)
/* For all of the subgroup, whose size is a power of 2. */
static float sub_group_reduce_add(float value)
{
    const uint size = blockDim.x < 32 ? blockDim.x : 32;
    const uint all = size < 32 ? (1u << size) - 1 : ~0u;
    for (uint step = size / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(all, value, step);
    }
    return value;
}

/* For all 32 work-items of a warp, from sm_80 on: sums += A {16, 16} * B {16, 8} of bf16 numbers,
 * with exact products and sums in F32. A word is two neighbours along the 16 that are summed over,
 * the first one in its low half. Work-item 4 * g + t has of A the words (row g, from column 2 * t),
 * (g + 8, 2 * t), (g, 2 * t + 8) and (g + 8, 2 * t + 8), of B (from row 2 * t, column g) and
 * (2 * t + 8, g), of the sums (row g, column 2 * t), (g, 2 * t + 1), (g + 8, 2 * t) and
 * (g + 8, 2 * t + 1). (NVIDIA, PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point
 * type") */
static void mma_bf16(float sums[4], const uint a[4], const uint b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* ---- numbers ---- */

static float half_value(ushort bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
static ushort half_bits(float value)
{
    ushort bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
static float product(float a, float b)
{
    return __fmul_rn(a, b);
}
static float mad(float a, float b, float c)
{
    return fma(a, b, c);
}
#define mul_hi    __umul64hi
#define clz(bits) __clz((int)(bits))

#include "vectors.clh"
