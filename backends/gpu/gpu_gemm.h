/* SPDX-License-Identifier: MIT
 * Products by a library, and parameters of CLBlast's kernels that we may put in place of its
 * own. */
#ifndef TND_GPU_GEMM_H
#define TND_GPU_GEMM_H

#include "backends/gpu/gpu_device.h"
#include "backends/gpu/gpu_kernels.h"

/** Y {n, m} = X {k, m} * W {k, n}, columns begin..end-1 of Y only. All F32, dense, none empty. */
struct tnd_gpu_gemm {
    struct tnd_gpu_range w, x, y;
    size_t n, m, k;
    size_t begin, end;
};

/** Puts the product into the queue. The device has a library. Errors: those of the device. */
enum tandem_status tnd_gpu_gemm_submit(struct tnd_gpu_device *device,
                                       const struct tnd_gpu_gemm *product,
                                       struct tandem_error *error);

/** Whether the device multiplies in half precision. */
bool tnd_gpu_gemm_has_half(const struct tnd_gpu_device *device);

/** As tnd_gpu_gemm_submit, in half precision, all rows (begin and end are not looked at). Operands
 *  are converted to scratch memory where the library takes halves; then none may be beyond 65504.
 *  Where sums are halves too, that holds for them as well, and their error is about 4e-8 * k of
 *  the mean square. */
enum tandem_status tnd_gpu_gemm_submit_half(struct tnd_gpu_device *device,
                                            const struct tnd_gpu_gemm *product,
                                            struct tandem_error *error);

/** Rows of parameters that a tuner may try: 0 is CLBlast's own choice, 1 to this number ours. */
int tnd_gpu_gemm_rows(void);
/** Whether the kernels of a row can run on a device. */
bool tnd_gpu_gemm_fits(const struct tnd_gpu_caps *caps, int32_t row);
/** Makes CLBlast use a row from now on; not 0: what was chosen once cannot be taken back. Errors:
 *  UNSUPPORTED_BACKEND (no CLBlast, or without this function), those of the device. */
enum tandem_status tnd_gpu_gemm_choose(struct tnd_gpu_device *device, int32_t row,
                                       struct tandem_error *error);

#endif
