/* SPDX-License-Identifier: MIT
 * From a kernel's name to work in the queue:
 *
 *     struct tnd_gpu_launch launch;
 *     struct tnd_gpu_variant variant = {.type = 1 + w->type, .rows = 4};
 *     TND_TRY(tnd_gpu_launch_begin(&launch, dev, TND_GPU_SOURCE_MATMUL, &variant, error));
 *     TND_TRY(tnd_gpu_bind_matvec(&launch, w, x, y, n, k, error));
 *     TND_TRY(tnd_gpu_launch_run(&launch, 1, &global, &local, error));
 *
 * The enums of sources and kernels and the functions that bind arguments are made by
 * tools/kernel-pack from backends/opencl/kernels: one source for each X.cl file there
 * (TND_GPU_SOURCE_X), one kernel for each `kernel void name(...)` (TND_GPU_KERNEL_NAME). Lines
 * `#include "file.clh"` (or .cl) are replaced by that file, once in a source; .clh files make no
 * source of their own. A kernel's arguments become those of tnd_gpu_bind_<kernel>:
 *     global T *p, ulong p_at   ->  struct tnd_gpu_range p   (p_at: bytes from the buffer's begin)
 *     int, uint, long, ulong, float, uchar -> int32_t, uint32_t, int64_t, uint64_t, float, uint8_t
 *     local T *p                ->  size_t p_bytes
 * Nothing else is allowed there. Kernels are written in the part of OpenCL C 1.2 that C++ has too,
 * with the words of dialect_opencl.cl, which stands in front of every program (dialect_cuda.cl for
 * CUDA): float2_of(a, b) is a vector, `shared float x[64]` lies in local memory, a pointer there is
 * `local float *`, and a kernel begins with `p = local_argument(p)`. HAVE_FP16, HAVE_FP64,
 * HAVE_SUBGROUPS (any kind), HAVE_INTEL_SUBGROUPS and IS_CPU are defined where the device has them.
 * `variant.type` t defines TYPE=t-1 and TYPE_<name> (TYPE_q4_0, as in tandem/type-list.h). */
#ifndef TND_GPU_LAUNCH_H
#define TND_GPU_LAUNCH_H

#include "backends/gpu/gpu-option-list.h"
#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h" /* made by kernel-pack */

/** Variant of a program. All zero: no options. */
struct tnd_gpu_variant {
    int32_t type; /* 1 + enum tandem_type; 0: none */
#define TND_GPU_OPTION_MEMBER(member, define, what) int32_t member;
    TND_GPU_OPTION_LIST(TND_GPU_OPTION_MEMBER)
#undef TND_GPU_OPTION_MEMBER
};

struct tnd_gpu_program; /* gpu_program.c */

/** A kernel to be submitted; lives on the caller's stack. */
struct tnd_gpu_launch {
    struct tnd_gpu_device *device;
    struct tnd_gpu_program *program;
    int kernel;                      /* enum tnd_gpu_kernel */
    struct tnd_gpu_function *handle; /* NULL until bound; owned by this launch */
};

/** Finds or builds the program. Nothing needs freeing if it fails, or if nothing is bound
 * afterwards. Errors: DEVICE with the compiler's first error message, MEMORY. Any thread. */
enum tandem_status tnd_gpu_launch_begin(struct tnd_gpu_launch *launch,
                                        struct tnd_gpu_device *device, enum tnd_gpu_source source,
                                        const struct tnd_gpu_variant *variant,
                                        struct tandem_error *error);

/** Submits the bound kernel and releases it, even if that fails. 1 to 3 dimensions; `global`
 * counts work-items and must be a multiple of `local`. An empty range does nothing. */
enum tandem_status tnd_gpu_launch_run(struct tnd_gpu_launch *launch, int n_dims,
                                      const size_t *global, const size_t *local,
                                      struct tandem_error *error);

/** Counts a submitted kernel, and flushes the queue every few launches. */
enum tandem_status tnd_gpu_launched(struct tnd_gpu_device *device, struct tandem_error *error);

/** Releases a bound kernel without running it. Harmless after run or a failed bind. */
void tnd_gpu_launch_drop(struct tnd_gpu_launch *launch);

/** Runs like tnd_gpu_launch_run and waits; returns nanoseconds on the device. For tuning. The
 * launch stays bound: run it again, or drop it. Measures on the host unless the setting profile=on
 * is given. */
enum tandem_status tnd_gpu_launch_time(struct tnd_gpu_launch *launch, int n_dims,
                                       const size_t *global, const size_t *local, int64_t *out_ns,
                                       struct tandem_error *error);

/* ---- for the functions made by kernel-pack ---- */

/** Gets a kernel object of the launch's program. */
enum tandem_status tnd_gpu_launch_take(struct tnd_gpu_launch *launch, enum tnd_gpu_kernel kernel,
                                       struct tandem_error *error);
/** Sets an argument; on failure releases the kernel. `value` NULL: local memory of `bytes`. */
enum tandem_status tnd_gpu_launch_argument(struct tnd_gpu_launch *launch, int index, size_t bytes,
                                           const void *value, struct tandem_error *error);

#endif
