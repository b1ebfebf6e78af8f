/* SPDX-License-Identifier: MIT
 * Products by a library, and parameters of CLBlast's kernels that can replace its own. */
#ifndef TND_GPU_GEMM_H
#define TND_GPU_GEMM_H

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h"

/** Y {n, m} = X {k, m} * W {k, n}, only columns begin..end-1 of Y. All F32 and dense; none is
 * empty. */
struct tnd_gpu_gemm {
    struct tnd_gpu_range w, x, y;
    size_t n, m, k;
    size_t begin, end;
};

/** Submits the product. The device must have a library. Errors: those of the device. */
enum tandem_status tnd_gpu_gemm_submit(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_gemm *product,
                                       struct tandem_error *error);

/** Whether the device can multiply in half precision. */
bool tnd_gpu_gemm_has_half(const struct tnd_gpu_device *device);

/** As tnd_gpu_gemm_submit in half precision, for all rows (begin and end are ignored). Operands
 * are converted to scratch memory if the library takes halves; then none may exceed 65504. If sums
 * are halves, too, the same holds for them, and their mean square error is about 4e-8 * k. */
enum tandem_status tnd_gpu_gemm_submit_half(struct tnd_gpu_device *device,
                                            const struct tnd_gpu_gemm *product,
                                            struct tandem_error *error);

/** Number of parameter rows that a tuner may try: 0 is CLBlast's own choice, 1 to this number are
 * ours. */
int tnd_gpu_gemm_rows(void);
/** Whether the kernels of a row can run on the device. */
bool tnd_gpu_gemm_fits(const struct tnd_gpu_caps *caps, int32_t row);
/** Makes CLBlast use a row from now on; not 0, because a choice cannot be undone. Errors:
 * UNSUPPORTED_BACKEND (no CLBlast, or without this function), those of the device. */
enum tandem_status tnd_gpu_gemm_choose(struct tnd_gpu_device *device, int32_t row,
                                       struct tandem_error *error);

#endif
