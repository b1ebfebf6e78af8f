/* SPDX-License-Identifier: MIT
 * What stands in front of every program in OpenCL C: the few words of the kernels that OpenCL C
 * does not have by itself, because C++ could not say them its way. Other dialects:
 * dialect_cuda.cl, and dialect_host.clh in tests/standin. Generated programs need none of this. */

/* A variable in local memory; `local` is for pointers to one. */
#define shared local
#define work_group(items) __attribute__((reqd_work_group_size(items, 1, 1)))
/* A kernel's argument in local memory, before its first use. */
#define local_argument(pointer) (pointer)

#define float2_of(a, b)        ((float2)(a, b))
#define float4_of(a, b, c, d)  ((float4)(a, b, c, d))
#define uint4_of(a, b, c, d)   ((uint4)(a, b, c, d))
#define float16_of2(a, b)      ((float16)(a, b))
#define float16_of4(a, b, c, d) ((float16)(a, b, c, d))
#define ushort16_of2(a, b)     ((ushort16)(a, b))
